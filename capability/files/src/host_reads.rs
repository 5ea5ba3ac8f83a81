//! Reads files that a stranger may have created, for example in a folder that was downloaded.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use crate::jail::{is_absent, regular_file_meta};

/// Reads a whole regular file. Follows links. Returns `None` if it does not exist. Never waits, for
/// example for the writer of a FIFO.
///
/// ```
/// use std::path::Path;
/// use wattle_files::read_regular_file;
/// assert_eq!(read_regular_file(Path::new("no-such-file"), 10)?, None);
/// let error = read_regular_file(Path::new("/dev/zero"), 10).unwrap_err();
/// assert_eq!(error.to_string(), "it is not a regular file");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the file is not a regular file, has more than `max` bytes, or cannot be read.
pub fn read_regular_file(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let irregular = || io::Error::other("it is not a regular file");
    // Opening a device can have effects, so the type is checked first. It is checked again below,
    // because the file may have changed since.
    match std::fs::metadata(path) {
        Ok(data) if data.is_file() => {}
        Ok(_) => return Err(irregular()),
        Err(cause) if is_absent(&cause) => return Ok(None),
        Err(cause) => return Err(cause),
    }
    let flags = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    regular_file_meta(&file).map_err(|_| irregular())?;
    read_open_file(&file, max).map(Some)
}

/// Reads an open file from its current position to its end.
///
/// # Errors
/// If the file has more than `max` bytes, or cannot be read.
pub fn read_open_file(file: &File, max: u64) -> io::Result<Vec<u8>> {
    let too_large = || Err(io::Error::other(format!("it is larger than {} KiB", max >> 10)));
    if file.metadata()?.len() > max {
        return too_large();
    }
    let mut bytes = Vec::new();
    // The file may grow in the meantime.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { too_large() } else { Ok(bytes) }
}
