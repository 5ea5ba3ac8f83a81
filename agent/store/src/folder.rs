//! Folders that only their owner can access.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// The mode of a folder that only its owner can access.
const MODE: u32 = 0o700;

/// Creates a folder and its missing parents, accessible to the owner only. Does not change an
/// existing folder.
///
/// # Errors
/// If the folder cannot be created.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_folder(parent)?;
    }
    match DirBuilder::new().mode(MODE).create(folder) {
        // The umask may have removed permissions that the owner needs.
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}
