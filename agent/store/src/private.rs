//! Makes the store's files private: only their owner has access, regardless of the umask. The files
//! are the database, its write-ahead log, the index of the log, and the store's marker.

use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::db::sqlite::beside;
use super::marker;
use crate::error::Cause;
use crate::folder::create_folder;

/// The mode of the store's files.
const FILE_MODE: u32 = 0o600;

/// The suffixes of the files next to a store.
const SUFFIXES: &[&str] = &["-wal", "-shm", "-journal", marker::SUFFIX];

/// Creates the store's file and its folder if they are absent. Makes the file private. Returns the
/// path to open, which contains no links to folders.
pub(super) fn prepare(path: &Path) -> Result<PathBuf, Cause> {
    let name = path.file_name().ok_or("it is not the path of a file")?;
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_folder(folder)?;
    let folder = folder.canonicalize()?;
    reject_shared_folder(&folder)?;
    let path = folder.join(name);
    tighten(&path, true)?;
    for suffix in SUFFIXES {
        tighten(&beside(&path, suffix), false)?;
    }
    Ok(path)
}

/// Rejects a folder in which other users could replace the store's files.
fn reject_shared_folder(folder: &Path) -> Result<(), Cause> {
    let meta = std::fs::metadata(folder)?;
    if others_write(&meta) {
        Err(format!(
            "others can write to its folder `{}` (mode {:03o}), and could put their own files in \
             its place\nhint: `chmod go-w` the folder, or keep the store in a folder of its own",
            folder.display(),
            meta.mode() & 0o777
        )
        .into())
    } else {
        Ok(())
    }
}

/// Returns true if users other than the owner can write to the file or folder. The owner's private
/// group, which has the same id as the owner, does not count.
fn others_write(meta: &std::fs::Metadata) -> bool {
    let mode = meta.mode();
    mode & 0o002 != 0 || (mode & 0o020 != 0 && meta.gid() != meta.uid())
}

/// Rejects a link, and removes the permissions of other users from a file. A missing file is
/// created if `create` is true, and ignored otherwise.
///
/// A private file is not opened: when a process closes any descriptor of a file, the system drops
/// all locks that the process has on it, also those of its connections to the database.
fn tighten(path: &Path, create: bool) -> Result<(), Cause> {
    let meta = match std::fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound && create => return create_new(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if meta.is_symlink() {
        return Err(format!(
            "`{}` is a link, and a store is not opened through one",
            path.display()
        )
        .into());
    }
    if !meta.is_file() {
        return Err(format!("`{}` is not a regular file", path.display()).into());
    }
    if meta.mode() & 0o777 != FILE_MODE {
        make_private(path);
    }
    Ok(())
}

/// Creates a file, unless another process creates it at the same time.
fn create_new(path: &Path) -> Result<(), Cause> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => tighten(path, false),
        Err(error) => Err(error.into()),
        // The umask may have removed permissions.
        Ok(file) => Ok(file.set_permissions(Permissions::from_mode(FILE_MODE))?),
    }
}

fn make_private(path: &Path) {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let changed =
        options.open(path).and_then(|file| file.set_permissions(Permissions::from_mode(FILE_MODE)));
    if let Err(error) = changed {
        tracing::warn!(
            path = %path.display(),
            %error,
            "others can read a file of the store, and its mode cannot be changed"
        );
    }
}

/// The files and folders of a store that users other than the owner can access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privacy {
    /// The store's folder and the folder's mode, or `None` if only the owner has access to the
    /// folder.
    pub open_folder: Option<(PathBuf, u32)>,
    /// The store's files that other users can access, each with its mode.
    pub open_files: Vec<(PathBuf, u32)>,
}

/// Returns the files and folders of the store at `path` that users other than the owner can access.
/// The folder `keys` next to the store is also checked.
#[must_use]
pub fn privacy(path: &Path) -> Privacy {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let open = |path: &Path| -> Option<(PathBuf, u32)> {
        let mode = std::fs::symlink_metadata(path).ok()?.mode() & 0o777;
        (mode & 0o077 != 0).then(|| (path.to_owned(), mode))
    };
    let files = SUFFIXES
        .iter()
        .map(|suffix| beside(path, suffix))
        .chain([path.to_owned(), folder.join("keys")]);
    Privacy {
        open_folder: open(folder),
        open_files: files.filter_map(|path| open(&path)).collect(),
    }
}
