//! The processes that write to a workdir directly. Two of them in one folder may lose each other's
//! updates, so the second one warns at its start.
//!
//! Each process has an entry: a file in the user's state folder, which is named after the device and
//! the inode of the workdir, and which the process keeps locked. The system releases the lock when
//! the process ends, however it ends. Entries without a lock are removed by the next process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use wattle_agent::host::create_folder;
use wattle_agent::host::journal::new_id;

use crate::config::Places;
use crate::output;

/// The folder of the entries, in the user's state folder.
const FOLDER: &str = "writers";

/// Maximum number of bytes of an entry that are read or written.
const MAX_ENTRY: usize = 256;

/// Maximum number of attempts to create an entry, which another process may remove before it is
/// locked.
const ATTEMPTS: usize = 8;

/// The entries of this process.
static OWN: Mutex<Own> = Mutex::new(Own { name: String::new(), entries: Vec::new() });

struct Own {
    /// The name of what this process runs, for the warnings of others.
    name: String,
    entries: Vec<Entry>,
}

/// An entry of this process.
struct Entry {
    /// The device and the inode of the workdir.
    workdir: String,
    /// The locked file.
    file: File,
}

/// Sets the name of what this process runs, such as a run's id, for the warnings of others.
pub(crate) fn set_name(name: String) {
    let own = &mut *OWN.lock();
    own.name = name;
    // Without the new name, the entry has the one before.
    own.entries.iter_mut().for_each(|entry| drop(write(&mut entry.file, &own.name)));
}

/// Records that this process writes to a workdir until it ends. Warns if other processes do so. If
/// the user's state folder cannot be written, other processes are not warned.
pub(crate) fn enter(workdir: &Path) {
    let (Some(state), Ok(found)) = (Places::of_user().state, workdir.metadata()) else { return };
    let id = format!("{:x}-{:x}.", found.dev(), found.ino());
    let own = &mut *OWN.lock();
    if own.entries.iter().any(|entry| entry.workdir == id) {
        return;
    }
    let folder = state.join(FOLDER);
    let Ok((path, file)) = create_folder(&folder).and_then(|()| create(&folder, &id, &own.name))
    else {
        return;
    };
    own.entries.push(Entry { workdir: id.clone(), file });
    for other in others(&folder, &id, &path) {
        output::warn(&format!(
            "{other} writes to `{}` at the same time, and each may overwrite what the other one \
             writes\nhint: without `--write`, changes are kept until `wattle apply` checks and \
             applies them",
            workdir.display()
        ));
    }
}

/// Creates an entry and locks it.
fn create(folder: &Path, workdir: &str, name: &str) -> io::Result<(PathBuf, File)> {
    for _ in 0..ATTEMPTS {
        let path = folder.join(format!("{workdir}{}", new_id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        match file.try_lock() {
            // A process that read the folder may have removed the file before it was locked.
            Ok(()) if file.metadata()?.nlink() > 0 => {
                write(&mut file, name)?;
                return Ok((path, file));
            }
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

fn write(file: &mut File, name: &str) -> io::Result<()> {
    let name = if name.is_empty() { "another command" } else { name };
    let text = format!("process {}: {name}", std::process::id());
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes().get(..MAX_ENTRY).unwrap_or(text.as_bytes()))
}

/// Returns the names of the other processes that write to a workdir. Removes the entries of ended
/// processes.
fn others(folder: &Path, workdir: &str, own: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| path != own);
    paths
        .filter_map(|path| {
            let file = File::open(&path).ok()?;
            match file.try_lock() {
                Ok(()) => drop(std::fs::remove_file(&path)),
                Err(TryLockError::WouldBlock) => {
                    let name = path.file_name()?.to_str()?;
                    return name.starts_with(workdir).then(|| read(file));
                }
                Err(TryLockError::Error(_)) => {}
            }
            None
        })
        .collect()
}

fn read(file: File) -> String {
    let mut text = Vec::new();
    match file.take(MAX_ENTRY as u64).read_to_end(&mut text) {
        Ok(read) if read > 0 => String::from_utf8_lossy(&text).into_owned(),
        _ => "another process".to_owned(),
    }
}
