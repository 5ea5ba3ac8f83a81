//! Devices: no path below `/dev` ever reaches the host's own.

use bytes::{Bytes, BytesMut};

use wattle_capability::files::Files;

use super::Stream;
use crate::errno::Errno;

/// What a path below `/dev` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Empty, and takes anything.
    Null,
    /// Zeros without end.
    Zero,
    /// Takes nothing.
    Full,
    /// Random bytes without end.
    Random,
    /// The terminal: what is read comes from descriptor 0, what is written goes to descriptor 2.
    Terminal,
    /// One of the caller's own descriptors.
    Descriptor(u32),
    /// No device that is known. It is as `/dev/null`, unless the run's files have a folder `dev` of their own.
    Other,
}

impl Device {
    /// The device of an absolute path; `None` where it does not lie below `/dev`.
    #[must_use]
    pub fn named(path: &str) -> Option<Device> {
        let mut names = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()?),
                name => names.push(name),
            }
        }
        Some(match names.as_slice() {
            ["dev", "null"] => Device::Null,
            ["dev", "zero"] => Device::Zero,
            ["dev", "full"] => Device::Full,
            ["dev", "random" | "urandom"] => Device::Random,
            ["dev", "tty" | "console"] => Device::Terminal,
            ["dev", "stdin"] => Device::Descriptor(0),
            ["dev", "stdout"] => Device::Descriptor(1),
            ["dev", "stderr"] => Device::Descriptor(2),
            ["dev", "fd", number] => number.parse().map_or(Device::Other, Device::Descriptor),
            ["dev", _, ..] => Device::Other,
            _ => return None,
        })
    }

    /// The stream to read the device by, or to `write` to it. `fd` gives the caller's own descriptors; one that is not open is as
    /// `/dev/null`.
    #[must_use]
    pub fn stream(self, write: bool, fd: impl FnOnce(u32) -> Option<Stream>) -> Stream {
        match self {
            Device::Null | Device::Other => Stream::null(),
            Device::Zero => Stream::zero(),
            Device::Full => Stream::full(),
            Device::Random => Stream::random(),
            Device::Terminal => fd(if write { 2 } else { 0 }).unwrap_or_else(Stream::null),
            Device::Descriptor(number) => fd(number).unwrap_or_else(Stream::null),
        }
    }

    /// The device that `path` names in a run with those files, where a folder `dev` of theirs comes before a name that is none.
    #[must_use]
    pub fn in_run(path: &str, files: &Files) -> Option<Device> {
        let device = Device::named(path)?;
        (device != Device::Other || files.stat("/dev").is_err()).then_some(device)
    }
}

/// A device with a content of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endless {
    Null,
    Zero,
    Full,
    Random,
}

/// The most bytes that a device gives at once.
const PIECE: usize = 64 << 10;

impl Endless {
    pub(super) fn read(self, max: usize) -> Result<Bytes, Errno> {
        let max = max.min(PIECE);
        match self {
            Endless::Null => Ok(Bytes::new()),
            Endless::Zero | Endless::Full => {
                static ZEROS: [u8; PIECE] = [0; PIECE];
                Ok(Bytes::from_static(&ZEROS).slice(..max))
            }
            Endless::Random => {
                let mut data = BytesMut::zeroed(max);
                fastrand::fill(&mut data);
                Ok(data.freeze())
            }
        }
    }

    pub(super) fn write(self) -> Result<(), Errno> {
        if self == Endless::Full { Err(Errno::NOSPC) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_below_dev_is_a_device() {
        for (path, expected) in [
            ("/dev/null", Some(Device::Null)),
            ("/dev//zero", Some(Device::Zero)),
            ("/dev/urandom", Some(Device::Random)),
            ("/dev/tty", Some(Device::Terminal)),
            ("/dev/stderr", Some(Device::Descriptor(2))),
            ("/dev/fd/63", Some(Device::Descriptor(63))),
            ("/dev/fd/x", Some(Device::Other)),
            ("/dev/fd/99999999999", Some(Device::Other)),
            ("/dev/sda", Some(Device::Other)),
            ("/dev/tcp/host/80", Some(Device::Other)),
            ("/dev/null/x", Some(Device::Other)),
            ("/dev", None),
            ("/", None),
            ("/work/dev/null", None),
            ("/device/null", None),
            ("/a/../dev/./null", Some(Device::Null)),
            ("/dev/../dev/null", Some(Device::Null)),
            ("/../dev/null", None),
            ("/dev/..", None),
        ] {
            assert_eq!(Device::named(path), expected, "{path}");
        }
    }
}
