//! Writes the files of commands.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::path::Path;

use wattle_agent::host::create_folder;

/// Writes a new file, and creates the missing folders of its path.
///
/// # Errors
/// If the file exists or cannot be written.
pub(crate) fn create(path: &Path, content: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::File::create_new(path)?.write_all(content.as_bytes())
}

/// Replaces the content of a file atomically. The file keeps its permissions. If the path is a
/// link, its target is replaced.
///
/// # Errors
/// If the file does not exist or cannot be written.
pub(crate) fn replace(path: &Path, content: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let permissions = std::fs::metadata(&path)?.permissions();
    persist(&path, content.as_bytes(), Some(permissions))
}

/// Writes a file atomically, and creates its folder if it is missing. Only the user can read the
/// file.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), create_folder)?;
    persist(path, content, None)
}

fn persist(path: &Path, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    // Only the user can read a new temporary file.
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
