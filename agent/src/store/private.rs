//! The store's files are their owner's alone, whatever the umask says: the database, its write-ahead log and its index of that.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::Cause;

/// The mode of the store's files, and of folders that are made for them.
const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;

/// What SQLite appends to the name of a database for the files that go with it.
const BESIDE: &[&str] = &["-wal", "-shm", "-journal"];

/// Makes the store's file and its folder if they are absent, and private if they are not. Returns the path to open, in which no folder is
/// a link.
pub(super) fn make_ready(path: &Path) -> Result<PathBuf, Cause> {
    let name = path.file_name().ok_or("it is not the path of a file")?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(folder)?;
    let folder = folder.canonicalize()?;
    only_the_owner_writes(&folder)?;
    let path = folder.join(name);
    tighten(&path, true)?;
    for ending in BESIDE {
        tighten(&beside(&path, ending), false)?;
    }
    Ok(path)
}

/// Makes a folder, and those above it that are absent, for the owner alone. One that is there stays as it is.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_folder(above)?;
    }
    match DirBuilder::new().mode(FOLDER).create(folder) {
        // The umask may have taken bits away that the owner needs.
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(FOLDER)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Refuses a folder in which others could put files in place of the store's.
fn only_the_owner_writes(folder: &Path) -> Result<(), Cause> {
    let meta = std::fs::metadata(folder)?;
    match others_write(&meta) {
        false => Ok(()),
        true => Err(format!(
            "others can write to its folder `{}` (mode {:03o}), and could put their own files in its place\nhint: `chmod go-w` the folder, or keep the store in a folder of its own",
            folder.display(),
            meta.mode() & 0o777
        )
        .into()),
    }
}

/// If true, others than the owner can write there. The owner's private group, which has the owner's number, is not others.
fn others_write(meta: &std::fs::Metadata) -> bool {
    let mode = meta.mode();
    mode & 0o002 != 0 || (mode & 0o020 != 0 && meta.gid() != meta.uid())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Opens a file without following a link in its place, and takes away what others may do with it.
fn tighten(path: &Path, create: bool) -> Result<(), Cause> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(create).create(create).mode(FILE);
    options.custom_flags(flags.bits().cast_signed());
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) if path.is_symlink() => {
            return Err(format!("`{}` is a link, and a store is not opened through one", path.display()).into());
        }
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(format!("`{}` is not a plain file", path.display()).into());
    }
    make_private(&file, &meta, path);
    Ok(())
}

fn make_private(file: &File, meta: &std::fs::Metadata, path: &Path) {
    if meta.mode() & 0o777 == FILE {
        return;
    }
    if let Err(error) = file.set_permissions(Permissions::from_mode(FILE)) {
        tracing::warn!(path = %path.display(), %error, "others may read a file of the store, and its mode cannot be changed");
    }
}

/// Who besides the owner can reach a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privacy {
    /// The folder of the store, and its mode if others can look into it.
    pub open_folder: Option<(PathBuf, u32)>,
    /// The files of the store that others may read, with their modes.
    pub open_files: Vec<(PathBuf, u32)>,
}

/// Returns who besides the owner can reach the store in that file, and the keys beside it.
#[must_use]
pub fn privacy(path: &Path) -> Privacy {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let open = |path: &Path| -> Option<(PathBuf, u32)> {
        let mode = std::fs::symlink_metadata(path).ok()?.mode() & 0o777;
        (mode & 0o077 != 0).then(|| (path.to_owned(), mode))
    };
    let files = BESIDE.iter().map(|ending| beside(path, ending)).chain([path.to_owned(), folder.join("keys")]);
    Privacy { open_folder: open(folder), open_files: files.filter_map(|path| open(&path)).collect() }
}
