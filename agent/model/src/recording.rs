//! Reads recordings from files.

use std::fs::File;
use std::io;
use std::path::Path;

use wattle_files::{read_open_file, read_regular_file};

/// Maximum size of a recording, in bytes.
pub const MAX_RECORDING: u64 = 64 << 20;

/// Reads a recording. Follows links.
///
/// # Errors
/// If the file does not exist, is not a regular file, is not UTF-8, has more than
/// [`MAX_RECORDING`] bytes, or cannot be read.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let bytes = read_regular_file(path, MAX_RECORDING)?;
    text(bytes.ok_or_else(|| io::Error::other("it does not exist"))?)
}

/// Reads an open recording from the file's current position to its end.
///
/// # Errors
/// If the recording is not UTF-8, has more than [`MAX_RECORDING`] bytes, or cannot be read.
pub(super) fn read_open(file: &File) -> io::Result<String> {
    text(read_open_file(file, MAX_RECORDING)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    wattle_rt::decode_text(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}
