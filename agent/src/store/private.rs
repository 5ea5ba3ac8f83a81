//! Makes the store's files private: only their owner has access, regardless of the umask. The files
//! are the database, its write-ahead log and the index of the log.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::Cause;
use crate::folder::create_folder;

/// The mode of the store's files.
const FILE_MODE: u32 = 0o600;

/// The suffixes of the files that SQLite keeps next to a database.
const SUFFIXES: &[&str] = &["-wal", "-shm", "-journal"];

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
    match others_write(&meta) {
        false => Ok(()),
        true => Err(format!(
            "others can write to its folder `{}` (mode {:03o}), and could put their own files in \
             its place\nhint: `chmod go-w` the folder, or keep the store in a folder of its own",
            folder.display(),
            meta.mode() & 0o777
        )
        .into()),
    }
}

/// Returns true if users other than the owner can write to the file or folder. The owner's private
/// group, which has the same id as the owner, does not count.
fn others_write(meta: &std::fs::Metadata) -> bool {
    let mode = meta.mode();
    mode & 0o002 != 0 || (mode & 0o020 != 0 && meta.gid() != meta.uid())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens a file without following a link. Removes the permissions of other users. A missing file is
/// created if `create` is true, and ignored otherwise.
fn tighten(path: &Path, create: bool) -> Result<(), Cause> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(create).create(create).mode(FILE_MODE);
    options.custom_flags(flags.bits().cast_signed());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) if path.is_symlink() => {
            return Err(format!(
                "`{}` is a link, and a store is not opened through one",
                path.display()
            )
            .into());
        }
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(format!("`{}` is not a regular file", path.display()).into());
    }
    make_private(&file, &meta, path);
    Ok(())
}

fn make_private(file: &File, meta: &std::fs::Metadata, path: &Path) {
    if meta.mode() & 0o777 == FILE_MODE {
        return;
    }
    if let Err(error) = file.set_permissions(Permissions::from_mode(FILE_MODE)) {
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
