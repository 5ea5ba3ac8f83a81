//! Devices: no path below `/dev` ever reaches the host's own.

use bytes::{Bytes, BytesMut};

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
    /// The device of an absolute path without `.` and `..` in it; `None` where it does not lie below `/dev`.
    #[must_use]
    pub fn named(path: &str) -> Option<Device> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        if names.next() != Some("dev") {
            return None;
        }
        let name = names.next()?;
        let below = names.next();
        if names.next().is_some() {
            return Some(Device::Other);
        }
        Some(match (name, below) {
            ("null", None) => Device::Null,
            ("zero", None) => Device::Zero,
            ("full", None) => Device::Full,
            ("random" | "urandom", None) => Device::Random,
            ("tty" | "console", None) => Device::Terminal,
            ("stdin", None) => Device::Descriptor(0),
            ("stdout", None) => Device::Descriptor(1),
            ("stderr", None) => Device::Descriptor(2),
            ("fd", Some(number)) => match number.parse() {
                Ok(number) => Device::Descriptor(number),
                Err(_) => Device::Other,
            },
            _ => Device::Other,
        })
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
        ] {
            assert_eq!(Device::named(path), expected, "{path}");
        }
    }
}
