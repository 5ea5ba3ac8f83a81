//! The host's own append-only files in a workdir.

use std::path::Path;

use wattle_capability::files::append_line;

/// Appends a line in one write, so that runs that share a file do not interleave their lines. A
/// link in place of the file is not followed, because anybody may have written the workdir.
pub(crate) fn append(path: &Path, line: &[u8]) -> std::io::Result<()> {
    append_line(path, &[line, b"\n"].concat())
}
