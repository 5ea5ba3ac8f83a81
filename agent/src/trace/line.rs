//! The host's own files in a workdir: lines are added at their end, and nothing else ever changes there.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Adds a line in one write, so that runs which share a file do not tear each other's lines. A link in the file's place is not
/// followed: what a workdir holds may come from anybody.
pub(crate) fn append(path: &Path, line: &[u8]) -> std::io::Result<()> {
    let line = [line, b"\n"].concat();
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)?.write_all(&line)
}
