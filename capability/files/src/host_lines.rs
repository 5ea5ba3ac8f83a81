//! Line-based files in a workdir, such as the trace. Only the host writes them.
//!
//! If the path of such a file is a link, the link is never followed, because a link that came with
//! the workdir could point anywhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::jail::{NO_SIDE_EFFECTS, is_absent, regular_file_meta};

/// Appends a line to a file in one write. Creates the file if it does not exist.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be written.
pub fn append_line(path: &Path, line: &[u8]) -> io::Result<()> {
    open(path, OpenOptions::new().create(true).append(true))?.write_all(line)
}

/// Opens a file for reading and appending. Creates the file if it does not exist.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be opened.
pub fn open_lines(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().create(true).read(true).append(true))
}

/// Opens a file for reading. Returns `None` if it does not exist.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be opened.
pub fn open_lines_to_read(path: &Path) -> io::Result<Option<File>> {
    match open(path, OpenOptions::new().read(true)) {
        Err(cause) if is_absent(&cause) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Removes the last line if it has no line break. A process that was stopped while writing leaves
/// such a line. Does nothing if the file does not exist.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be changed.
pub fn truncate_partial_line(path: &Path) -> io::Result<()> {
    const CHUNK: u64 = 1 << 16;
    let file = match open(path, OpenOptions::new().read(true).write(true)) {
        Err(cause) if is_absent(&cause) => return Ok(()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    let mut end = length;
    while end > 0 {
        let from = end.saturating_sub(CHUNK);
        let mut chunk = vec![0; usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(&mut chunk, from)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < length { file.set_len(end) } else { Ok(()) }
}

/// Opens a regular file without following a link.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (NO_SIDE_EFFECTS & !OFlags::CLOEXEC).bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    regular_file_meta(&file)?;
    Ok(file)
}
