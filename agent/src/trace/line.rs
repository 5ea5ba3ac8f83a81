//! The host's own files in a workdir: lines are added at their end, and nothing else ever changes there.

use std::path::Path;

use wattle_capability::files::append_line;

/// Adds a line in one write, so that runs which share a file do not tear each other's lines. A link in the file's place is not
/// followed: what a workdir holds may come from anybody.
pub(crate) fn append(path: &Path, line: &[u8]) -> std::io::Result<()> {
    append_line(path, &[line, b"\n"].concat())
}
