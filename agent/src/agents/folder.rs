//! Folders of agent and trait files, which are read again when they change.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use wattle_catalog::files_in;

use super::read::{MAX_FILE, SpecError};
use super::spec::AgentSpec;
use super::traits::TraitSpec;

/// Maximum number of files in one folder.
const MAX_FILES: usize = 1_000;

/// A problem with a folder of agents or traits, or with one of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentProblem {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// The problem and how to fix it.
    pub message: String,
}

impl AgentProblem {
    pub(super) fn new(path: &Path, message: impl Into<String>) -> AgentProblem {
        AgentProblem { path: path.to_owned(), line: None, message: message.into() }
    }
}

impl fmt::Display for AgentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A declaration that can be read from a file.
pub(super) trait Declaration: Sized {
    /// Reads the declaration from TOML.
    fn parse(text: &str) -> Result<Self, SpecError>;
}

impl Declaration for AgentSpec {
    fn parse(text: &str) -> Result<Self, SpecError> {
        AgentSpec::parse(text)
    }
}

impl Declaration for TraitSpec {
    fn parse(text: &str) -> Result<Self, SpecError> {
        TraitSpec::parse(text)
    }
}

/// A file in a folder, as of the last scan.
#[derive(Debug)]
struct DeclaredFile<T> {
    stamp: Option<(SystemTime, u64)>,
    /// The declaration from the last valid version of the file, or `None` if no version was valid.
    declared: Option<Arc<T>>,
    problem: Option<AgentProblem>,
}

impl<T> Clone for DeclaredFile<T> {
    fn clone(&self) -> Self {
        let DeclaredFile { stamp, declared, problem } = self;
        DeclaredFile { stamp: *stamp, declared: declared.clone(), problem: problem.clone() }
    }
}

/// A folder of declarations. Each `.toml` file contains one declaration.
#[derive(Debug)]
pub(super) struct DeclaredFolder<T> {
    path: PathBuf,
    /// If true, the folder need not exist.
    is_optional: bool,
    files: BTreeMap<PathBuf, DeclaredFile<T>>,
    problem: Option<AgentProblem>,
}

impl<T> Clone for DeclaredFolder<T> {
    fn clone(&self) -> Self {
        let DeclaredFolder { path, is_optional, files, problem } = self;
        DeclaredFolder {
            path: path.clone(),
            is_optional: *is_optional,
            files: files.clone(),
            problem: problem.clone(),
        }
    }
}

impl<T: Declaration> DeclaredFolder<T> {
    /// Returns the folder at `path`. Its files are not read until [`rescan`](Self::rescan) is
    /// called.
    pub(super) fn new(path: PathBuf, is_optional: bool) -> Self {
        DeclaredFolder { path, is_optional, files: BTreeMap::new(), problem: None }
    }

    /// Scans the folder again and returns its current state. Only files that changed since the last
    /// scan are read.
    pub(super) fn rescan(&self) -> Self {
        let (path, is_optional) = (self.path.clone(), self.is_optional);
        if is_optional && !path.exists() {
            return DeclaredFolder::new(path, is_optional);
        }
        let paths = match files_in(&path, "toml") {
            Ok(paths) => paths,
            Err(why) => {
                let problem = AgentProblem::new(&path, format!("failed to read the folder: {why}"));
                let files = BTreeMap::new();
                return DeclaredFolder { path, is_optional, files, problem: Some(problem) };
            }
        };
        let problem = (paths.len() > MAX_FILES).then(|| {
            let message = format!("it has more than {MAX_FILES} files; the others are left out");
            AgentProblem::new(&path, message)
        });
        let files = paths.into_iter().take(MAX_FILES).map(|file| {
            let known = self.files.get(&file);
            let read = read(&file, known);
            (file, read)
        });
        DeclaredFolder { files: files.collect(), path, is_optional, problem }
    }

    /// Returns the declarations, sorted by file name, each with the path of its file.
    pub(super) fn declared(&self) -> impl Iterator<Item = (&Path, &Arc<T>)> {
        self.files.iter().filter_map(|(path, file)| Some((path.as_path(), file.declared.as_ref()?)))
    }

    /// Returns the problems with the folder and its files.
    pub(super) fn problems(&self) -> impl Iterator<Item = &AgentProblem> {
        self.problem.iter().chain(self.files.values().filter_map(|file| file.problem.as_ref()))
    }
}

fn read<T: Declaration>(path: &Path, known: Option<&DeclaredFile<T>>) -> DeclaredFile<T> {
    let data = fs::symlink_metadata(path).ok();
    let stamp = data.and_then(|data| Some((data.modified().ok()?, data.len())));
    if let Some(known) = known.filter(|known| known.stamp.is_some() && known.stamp == stamp) {
        return known.clone();
    }
    let parsed = text(path).and_then(|text| {
        T::parse(&text).map_err(|SpecError { line, message }| AgentProblem {
            line,
            ..AgentProblem::new(path, message)
        })
    });
    match parsed {
        Ok(declared) => DeclaredFile { stamp, declared: Some(Arc::new(declared)), problem: None },
        Err(mut problem) => {
            let declared = known.and_then(|known| known.declared.clone());
            if declared.is_some() {
                problem.message.push_str("; its previous version stays in use");
            }
            DeclaredFile { stamp, declared, problem: Some(problem) }
        }
    }
}

fn text(path: &Path) -> Result<String, AgentProblem> {
    let problem = |message: String| AgentProblem::new(path, message);
    let unreadable = |why: std::io::Error| problem(format!("failed to read it: {why}"));
    // Only regular files are opened: reading a pipe would block, and a link may point anywhere.
    if !fs::symlink_metadata(path).map_err(unreadable)?.is_file() {
        return Err(problem("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(problem(format!("it is larger than {} KiB", MAX_FILE >> 10)));
    }
    String::from_utf8(bytes).map_err(|_| problem("it is not UTF-8".to_owned()))
}
