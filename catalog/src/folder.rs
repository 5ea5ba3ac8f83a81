//! A folder of programs, as of the last scan.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::problem::{Fault, Problem};
use crate::{Entry, Origin};

/// Maximum size of a program file, in bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;

/// A scanned folder: its files, or the problem that made the folder unreadable.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    files: Result<BTreeMap<PathBuf, File>, Problem>,
}

/// A program file in a scanned folder.
#[derive(Clone, Debug)]
struct File {
    stamp: Option<Stamp>,
    /// The last valid version of the program.
    entry: Option<Arc<Entry>>,
    /// The problem with the current version, if there is one.
    problem: Option<Problem>,
    /// The program before `entry`, until the checks that follow a scan have accepted `entry`.
    previous: Option<Arc<Entry>>,
    /// If true, these checks have not accepted `entry`.
    is_new: bool,
}

/// File metadata that changes whenever the file's content changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    written: Option<SystemTime>,
    /// On Unix, the inode number, and the time of the last status change in seconds and
    /// nanoseconds. No process can set this time.
    #[cfg(unix)]
    node: (u64, i64, i64),
}

impl Stamp {
    fn of(data: &Metadata) -> Stamp {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Stamp {
            length: data.len(),
            written: data.modified().ok(),
            #[cfg(unix)]
            node: (data.ino(), data.ctime(), data.ctime_nsec()),
        }
    }
}

impl File {
    /// Creates the state of a file that is invalid. The previous version of its program stays in use.
    fn invalid(stamp: Option<Stamp>, entry: Option<Arc<Entry>>, problem: Problem) -> File {
        let problem = if entry.is_some() { problem.with_previous() } else { problem };
        File { stamp, entry, problem: Some(problem), previous: None, is_new: false }
    }
}

impl Folder {
    /// Reads all `.wat` files that are directly in a folder, except hidden files.
    pub(crate) fn read(path: &Path) -> Folder {
        Folder { path: path.to_owned(), files: Ok(BTreeMap::new()) }.rescan().0
    }

    /// Scans the folder again and reads the changed files. The returned bool is true if any file
    /// changed. If the new version of a file is invalid, the previous version stays in use. New
    /// versions are to be checked and then [accepted](Folder::accept).
    pub(crate) fn rescan(&self) -> (Folder, bool) {
        let path = self.path.clone();
        let paths = match files_in(&path, "wat") {
            Ok(paths) => paths,
            Err(error) => {
                let problem = Problem::new(path.display().to_string(), None, unreadable(&error));
                let changed = self.files.as_ref().err() != Some(&problem);
                return (Folder { path, files: Err(problem) }, changed);
            }
        };
        let nothing = BTreeMap::new();
        let before = self.files.as_ref().unwrap_or(&nothing);
        let mut changed = self.files.is_err() || before.keys().any(|known| !paths.contains(known));
        let mut files = BTreeMap::new();
        for path in paths {
            let stamp = fs::symlink_metadata(&path).ok().map(|data| Stamp::of(&data));
            let known = before.get(&path);
            let file = match known.filter(|file| file.stamp.is_some() && file.stamp == stamp) {
                Some(same) => same.clone(),
                None => {
                    changed = true;
                    file(&path, stamp, known)
                }
            };
            files.insert(path, file);
        }
        (Folder { path, files: Ok(files) }, changed)
    }

    /// Returns a copy of the folder. For each file that one of the problems names, the copy
    /// contains the problem instead of the program, and the previous version of a new program.
    pub(crate) fn refuse(&self, problems: &[Problem]) -> Folder {
        let mut folder = self.clone();
        for (path, file) in folder.files.iter_mut().flatten() {
            let path = path.display().to_string();
            if let Some(problem) = problems.iter().find(|problem| problem.path() == path) {
                *file = File::invalid(file.stamp, file.previous.take(), problem.clone());
            }
        }
        folder
    }

    /// Returns the programs that are not accepted yet.
    pub(crate) fn new_programs(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let files = self.files.iter().flat_map(BTreeMap::values);
        files.filter(|file| file.is_new).filter_map(|file| file.entry.as_ref())
    }

    /// Accepts the new programs: their previous versions are forgotten.
    pub(crate) fn accept(&mut self) {
        for file in self.files.iter_mut().flat_map(BTreeMap::values_mut) {
            (file.previous, file.is_new) = (None, false);
        }
    }

    /// Returns the programs and problems of the folder, sorted by file name.
    pub(crate) fn contents(&self) -> Vec<Result<Arc<Entry>, Problem>> {
        let files = match &self.files {
            Ok(files) => files,
            Err(problem) => return vec![Err(problem.clone())],
        };
        let of_file = |file: &File| [file.entry.clone().map(Ok), file.problem.clone().map(Err)];
        files.values().flat_map(of_file).flatten().collect()
    }
}

/// Reads a program file. If the file is invalid, keeps the program from `known`, the file's previous
/// state.
fn file(path: &Path, stamp: Option<Stamp>, known: Option<&File>) -> File {
    let previous = known.and_then(|file| file.entry.clone());
    match program(path) {
        Ok(entry) => {
            File { stamp, entry: Some(Arc::new(entry)), problem: None, previous, is_new: true }
        }
        Err(problem) => File::invalid(stamp, previous, problem),
    }
}

/// Returns the paths of the files with the given extension in a folder, sorted. Hidden files are
/// omitted.
///
/// # Errors
/// If the folder cannot be read.
pub fn files_in(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<Vec<_>>>()?;
    let hidden = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    paths.retain(|path| !hidden(path) && path.extension().is_some_and(|own| own == extension));
    paths.sort();
    Ok(paths)
}

/// Reads a program from a file.
pub(crate) fn program(path: &Path) -> Result<Entry, Problem> {
    match text(path) {
        Ok(text) => Entry::parse(&text, Origin::File(path.to_owned())),
        Err(fault) => Err(Problem::new(path.display().to_string(), None, fault)),
    }
}

fn text(path: &Path) -> Result<String, Fault> {
    utf8(regular_file(path, MAX_FILE)?)
}

/// Converts the bytes of a file to text.
pub(crate) fn utf8(bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|e| Fault::NotUtf8(e.utf8_error().valid_up_to()))
}

/// Reads a regular file of at most `max` bytes.
pub(crate) fn regular_file(path: &Path, max: u64) -> Result<Vec<u8>, Fault> {
    // Only regular files are opened, because a pipe would block and a link may point anywhere.
    let kind = fs::symlink_metadata(path).map_err(|e| unreadable(&e))?.file_type();
    if kind.is_symlink() {
        return Err(Fault::Link);
    }
    if !kind.is_file() {
        return Err(Fault::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|e| unreadable(&e))?;
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    if bytes.len() as u64 > max { Err(Fault::TooLarge) } else { Ok(bytes) }
}

pub(crate) fn unreadable(error: &io::Error) -> Fault {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "not found".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a folder".to_owned(),
        _ => error.to_string(),
    };
    Fault::Unreadable(reason)
}
