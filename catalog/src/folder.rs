//! One folder of programs: what is in it, and what of that changed since it was looked at.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::problem::{Fault, Problem};
use crate::{Entry, Origin};

/// The largest file of a program, in bytes.
pub(crate) const LARGEST: u64 = 1 << 20;

/// What a look at a folder gave: its programs, or why it has none.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    files: Result<BTreeMap<PathBuf, File>, Problem>,
}

/// A file of a folder.
#[derive(Clone, Debug)]
struct File {
    stamp: Option<Stamp>,
    /// The last version that was in order.
    entry: Option<Arc<Entry>>,
    /// What is wrong with the version that is there.
    problem: Option<Problem>,
}

/// What changes with a file's content, without a look into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    written: Option<SystemTime>,
    /// On Unix: which file it is, and when anything about it changed; nobody can set that back.
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

/// Says of a program that could be read whether it may be used.
pub(crate) type Check<'a> = &'a dyn Fn(&Entry) -> Result<(), Problem>;

impl Folder {
    /// Reads the `.wat` files that lie directly in a folder. Hidden files are passed over.
    pub(crate) fn read(path: &Path, check: Check<'_>) -> Folder {
        Folder { path: path.to_owned(), files: Ok(BTreeMap::new()) }.look(check).0
    }

    /// Looks again: reads the files that changed, and says whether there were any. A file whose new version is not in order
    /// keeps the one before.
    pub(crate) fn look(&self, check: Check<'_>) -> (Folder, bool) {
        let path = self.path.clone();
        let paths = match list(&path) {
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
                    file(&path, stamp, known, check)
                }
            };
            files.insert(path, file);
        }
        (Folder { path, files: Ok(files) }, changed)
    }

    /// The same without the files that those problems are about.
    pub(crate) fn refuse(&self, problems: &[Problem]) -> Folder {
        let mut folder = self.clone();
        for (path, file) in folder.files.iter_mut().flatten() {
            let place = path.display().to_string();
            if let Some(problem) = problems.iter().find(|problem| problem.place() == place) {
                *file = File { stamp: file.stamp, entry: None, problem: Some(problem.clone()) };
            }
        }
        folder
    }

    /// The programs and problems of the folder, in the order of the files' names.
    pub(crate) fn contents(&self) -> Vec<Result<Arc<Entry>, Problem>> {
        let files = match &self.files {
            Ok(files) => files,
            Err(problem) => return vec![Err(problem.clone())],
        };
        let of_file = |file: &File| [file.entry.clone().map(Ok), file.problem.clone().map(Err)];
        files.values().flat_map(of_file).flatten().collect()
    }
}

/// Reads a file; `known` is what was there before.
fn file(path: &Path, stamp: Option<Stamp>, known: Option<&File>, check: Check<'_>) -> File {
    let read = program(path).and_then(|entry| check(&entry).map(|()| entry));
    match read {
        Ok(entry) => File { stamp, entry: Some(Arc::new(entry)), problem: None },
        Err(problem) => {
            let entry = known.and_then(|file| file.entry.clone());
            let problem = if entry.is_some() { problem.kept() } else { problem };
            File { stamp, entry, problem: Some(problem) }
        }
    }
}

/// The paths of a folder's programs, sorted.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| is_program(path));
    paths.sort();
    Ok(paths)
}

fn is_program(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "wat")
}

/// Reads the program of a file.
pub(crate) fn program(path: &Path) -> Result<Entry, Problem> {
    match text(path) {
        Ok(text) => Entry::parse(&text, Origin::File(path.to_owned())),
        Err(fault) => Err(Problem::new(path.display().to_string(), None, fault)),
    }
}

fn text(path: &Path) -> Result<String, Fault> {
    // What is no plain file is never opened: a pipe would block, a link may lead anywhere.
    let kind = fs::symlink_metadata(path).map_err(|e| unreadable(&e))?.file_type();
    if kind.is_symlink() {
        return Err(Fault::Link);
    }
    if !kind.is_file() {
        return Err(Fault::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|e| unreadable(&e))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::TooLarge);
    }
    String::from_utf8(bytes).map_err(|e| Fault::NotUtf8(e.utf8_error().valid_up_to()))
}

fn unreadable(error: &io::Error) -> Fault {
    let words = match error.kind() {
        io::ErrorKind::NotFound => "nothing is there".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a folder".to_owned(),
        _ => error.to_string(),
    };
    Fault::Unreadable(words)
}
