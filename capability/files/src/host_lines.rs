//! Line-based files in a workdir, such as the trace. Only the host writes them.
//!
//! If the path of such a file is a link, the link is never followed, because a link that came with
//! the workdir could point anywhere.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::jail::{NO_SIDE_EFFECTS, is_absent, regular_file_meta};

/// Maximum time to wait for a lock. A process holds it only during one or two writes, so a longer
/// wait means that the process is paused.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
/// Interval between attempts to lock a file.
const LOCK_RETRY: Duration = Duration::from_millis(1);

/// Appends a line to a file in one write. Creates the file if it does not exist.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be written.
pub fn append_line(path: &Path, line: &[u8]) -> io::Result<()> {
    let mut file = open(path, OpenOptions::new().create(true).append(true))?;
    // Several processes may append at the same time. Only the removal of an incomplete line has to
    // wait. If this process cannot get the lock, the line is more important.
    _ = lock_soon(&file, File::try_lock_shared);
    file.write_all(line)
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

/// Returns true if the file exists, its last line has no line break, and no process is writing that
/// line.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be read.
pub fn has_partial_line(path: &Path) -> io::Result<bool> {
    let Some(file) = open_lines_to_read(path)? else { return Ok(false) };
    Ok(is_partial(&file)? && {
        _ = lock_soon(&file, File::try_lock);
        is_partial(&file)?
    })
}

fn is_partial(file: &File) -> io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

/// Locks a file until it is closed. `attempt` takes the lock without waiting, and is repeated for
/// at most 100 ms.
///
/// # Errors
/// The error of the last attempt.
pub fn lock_soon(
    file: &File,
    attempt: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<(), TryLockError> {
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match attempt(file) {
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(LOCK_RETRY);
            }
            ended => return ended,
        }
    }
}

/// Removes the last line if it has no line break. A process that was stopped while writing leaves
/// such a line. Does nothing if the file does not exist, if another process may be writing the
/// line, or if the line is longer than any line that the host writes.
///
/// # Errors
/// If the path is not a regular file, or the file cannot be changed.
pub fn truncate_partial_line(path: &Path) -> io::Result<()> {
    const CHUNK: u64 = 1 << 16;
    const LONGEST: u64 = 16 << 20;
    if !open_lines_to_read(path)?.map_or(Ok(false), |file| is_partial(&file))? {
        return Ok(());
    }
    let file = open(path, OpenOptions::new().read(true).write(true))?;
    // Without the lock, a line that another process has just completed could be removed.
    if lock_soon(&file, File::try_lock).is_err() || !is_partial(&file)? {
        return Ok(());
    }
    let mut end = file.metadata()?.len();
    let first = end.saturating_sub(LONGEST);
    while end > first {
        let from = end.saturating_sub(CHUNK).max(first);
        let mut chunk = vec![0; usize::try_from(end - from).unwrap_or(0)];
        file.read_exact_at(&mut chunk, from)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return file.set_len(from + at as u64 + 1);
        }
        end = from;
    }
    if first == 0 { file.set_len(0) } else { Ok(()) }
}

/// Opens a regular file without following a link. A new file is accessible to its owner only.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (NO_SIDE_EFFECTS & !OFlags::CLOEXEC).bits().cast_signed();
    let opened = options.custom_flags(flags).mode(0o600).open(path);
    let opened = opened.and_then(|file| regular_file_meta(&file).map(|_| file));
    opened.map_err(|cause| match Errno::from_io_error(&cause) {
        Some(Errno::LOOP) => io::Error::other("it is a link"),
        Some(Errno::NXIO | Errno::ISDIR) => io::Error::other("it is not a regular file"),
        _ => cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_line_is_removed_unless_it_is_longer_than_any_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        truncate_partial_line(&path).unwrap();
        assert!(!path.exists() && !has_partial_line(&path).unwrap());
        let long = format!("a\n{}", "x".repeat(200_000));
        for (text, left) in
            [("", ""), ("a\n", "a\n"), ("a\nb", "a\n"), ("b", ""), (long.as_str(), "a\n")]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(has_partial_line(&path).unwrap(), text != left);
            truncate_partial_line(&path).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), left);
        }
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        truncate_partial_line(&path).unwrap();
        assert_eq!(path.metadata().unwrap().len(), 1 << 40);
    }

    #[test]
    fn a_new_file_is_accessible_to_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        for (name, create) in [
            ("a", (|path: &Path| append_line(path, b"x\n")) as fn(&Path) -> io::Result<()>),
            ("b", |path| open_lines(path).map(drop)),
        ] {
            let path = dir.path().join(name);
            create(&path).unwrap();
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_line_that_another_process_is_writing_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "a\nb").unwrap();
        let writer = open_lines(&path).unwrap();
        writer.lock_shared().unwrap();
        truncate_partial_line(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb");
        append_line(&path, b"\n").unwrap();
        assert!(!has_partial_line(&path).unwrap());
        append_line(&path, b"c").unwrap();
        drop(writer);
        truncate_partial_line(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\n");
    }

    #[test]
    fn a_link_or_a_folder_is_refused_in_plain_words() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        for (path, words) in
            [(link.as_path(), "it is a link"), (dir.path(), "it is not a regular file")]
        {
            assert_eq!(append_line(path, b"x\n").unwrap_err().to_string(), words);
            assert_eq!(open_lines(path).unwrap_err().to_string(), words);
            assert_eq!(open_lines_to_read(path).unwrap_err().to_string(), words);
        }
        let device = Path::new("/dev/null");
        let words = "it is not a regular file";
        assert_eq!(open_lines(device).unwrap_err().to_string(), words);
    }
}
