//! Devices. Paths under `/dev` never access a device of the host.

use bytes::{Bytes, BytesMut};
use wattle_capability::files::Files;

use super::{Kind, Stream};
use crate::errno::Errno;

/// A device in `/dev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/null`: reads as empty, and accepts all writes.
    Null,
    /// `/dev/zero`: reads as endless zeros.
    Zero,
    /// `/dev/full`: reads as endless zeros. All writes to it fail.
    Full,
    /// `/dev/random` and `/dev/urandom`: read as endless random bytes.
    Random,
    /// `/dev/tty` and `/dev/console`: reads come from descriptor 0, writes go to descriptor 2.
    Terminal,
    /// A descriptor of the caller, such as `/dev/stdin` or `/dev/fd/3`.
    Descriptor(u32),
    /// An unknown device. It behaves like `/dev/null`, unless the run's files contain a folder
    /// `dev`.
    Other,
}

impl Device {
    /// Returns the device that an absolute path names, or `None` if the path is not under `/dev`.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Device> {
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

    /// Returns a stream that reads from the device, or writes to it if `write` is true. `fd`
    /// returns the stream of one of the caller's descriptors. A descriptor that is not open behaves
    /// like `/dev/null`.
    #[must_use]
    pub fn stream(self, write: bool, fd: impl FnOnce(u32) -> Option<Stream>) -> Stream {
        match self {
            Device::Terminal => fd(if write { 2 } else { 0 }).unwrap_or_else(Stream::null),
            Device::Descriptor(number) => fd(number).unwrap_or_else(Stream::null),
            device => Stream::of_kind(Kind::Device(device)),
        }
    }

    /// Returns the device that `path` names in a run, or `None` if it names a file. If the run's
    /// files contain a folder `/dev`, a path under `/dev` that is not a known device names a file.
    #[must_use]
    pub fn resolve(path: &str, files: &Files) -> Option<Device> {
        let device = Device::from_path(path)?;
        (device != Device::Other || files.stat("/dev").is_err()).then_some(device)
    }
}

/// Maximum number of bytes that one read of a device returns.
const CHUNK: usize = 64 << 10;

/// The bytes of a device that does not refer to a descriptor.
impl Device {
    pub(super) fn read(self, max: usize) -> Result<Bytes, Errno> {
        let max = max.min(CHUNK);
        match self {
            Device::Zero | Device::Full => {
                static ZEROS: [u8; CHUNK] = [0; CHUNK];
                Ok(Bytes::from_static(&ZEROS).slice(..max))
            }
            Device::Random => {
                let mut data = BytesMut::zeroed(max);
                getrandom::fill(&mut data).map_err(|_| Errno::IO)?;
                Ok(data.freeze())
            }
            _ => Ok(Bytes::new()),
        }
    }

    pub(super) fn write(self) -> Result<(), Errno> {
        if self == Device::Full { Err(Errno::NOSPC) } else { Ok(()) }
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
            assert_eq!(Device::from_path(path), expected, "{path}");
        }
    }
}
