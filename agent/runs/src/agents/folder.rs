//! Folders of agent and trait files, which are read again when they change.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, fs};

use wattle_catalog::files_in;

use super::read::{MAX_FILE, SpecError, seeming_name};
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
    /// The word for this kind of declaration in messages.
    const KIND: &'static str;

    /// Reads the declaration from TOML.
    fn parse(text: &str) -> Result<Self, SpecError>;

    /// Returns the declared name.
    fn name(&self) -> &str;
}

impl Declaration for AgentSpec {
    const KIND: &'static str = "agent";

    fn parse(text: &str) -> Result<Self, SpecError> {
        AgentSpec::parse(text)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Declaration for TraitSpec {
    const KIND: &'static str = "trait";

    fn parse(text: &str) -> Result<Self, SpecError> {
        TraitSpec::parse(text)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// A file in a folder, as of the last scan.
#[derive(Debug)]
struct DeclaredFile<T> {
    stamp: Option<(SystemTime, u64)>,
    /// The declaration from the last valid version of the file. If no version was valid, the name
    /// that the file seems to declare.
    declared: Result<Arc<T>, String>,
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
    /// If true, the folder exists but was never read successfully.
    is_unread: bool,
}

impl<T> Clone for DeclaredFolder<T> {
    fn clone(&self) -> Self {
        let DeclaredFolder { path, is_optional, files, problem, is_unread } = self;
        DeclaredFolder {
            path: path.clone(),
            is_optional: *is_optional,
            files: files.clone(),
            problem: problem.clone(),
            is_unread: *is_unread,
        }
    }
}

impl<T: Declaration> DeclaredFolder<T> {
    /// Returns the folder at `path`. Its files are not read until [`rescan`](Self::rescan) is
    /// called.
    pub(super) fn new(path: PathBuf, is_optional: bool) -> Self {
        let (files, problem) = (BTreeMap::new(), None);
        DeclaredFolder { path, is_optional, files, problem, is_unread: true }
    }

    /// Scans the folder again and returns its current state. Only files that changed since the last
    /// scan are read. If the folder exists but cannot be read, the files from the last scan are
    /// kept.
    pub(super) fn rescan(&self) -> Self {
        let (path, is_optional) = (self.path.clone(), self.is_optional);
        let empty = DeclaredFolder { is_unread: false, ..DeclaredFolder::new(path, is_optional) };
        let path = &self.path;
        if is_optional && matches!(path.try_exists(), Ok(false)) {
            return empty;
        }
        let paths = match files_in(path, "toml") {
            Ok(paths) => paths,
            Err(why) => {
                let problem = AgentProblem::new(path, format!("failed to read the folder: {why}"));
                let known = if why.kind() == ErrorKind::NotFound { empty } else { self.clone() };
                return DeclaredFolder { problem: Some(problem), ..known };
            }
        };
        let problem = (paths.len() > MAX_FILES).then(|| {
            let message = format!("it has more than {MAX_FILES} files; the others are not read");
            AgentProblem::new(path, message)
        });
        let files = paths.into_iter().enumerate().map(|(at, file)| {
            let read = if at < MAX_FILES {
                read(&file, self.files.get(&file))
            } else {
                let declared = Err(seeming_name(&file, ""));
                DeclaredFile { stamp: None, declared, problem: None }
            };
            (file, read)
        });
        DeclaredFolder { files: files.collect(), problem, ..empty }
    }

    /// Returns the declarations, sorted by file name, each with the path of its file.
    pub(super) fn declared(&self) -> impl Iterator<Item = (&Path, &Arc<T>)> {
        let files = self.files.iter();
        files.filter_map(|(path, file)| Some((path.as_path(), file.declared.as_ref().ok()?)))
    }

    /// Returns the problem with the folder if the folder exists but was never read successfully. In
    /// that case, the names that it declares are unknown.
    pub(super) fn unread(&self) -> Option<&AgentProblem> {
        self.problem.as_ref().filter(|_| self.is_unread)
    }

    /// Returns the names that the files declare, each with its declaration. If several files
    /// declare the same name, none of them is used, because the order of the files must not decide
    /// which limits apply. Each of these files except the first is added to `problems`. An unusable
    /// file counts as a declaration of the name that it seems to declare.
    pub(super) fn by_name(
        &self,
        problems: &mut Vec<AgentProblem>,
    ) -> BTreeMap<&str, NamedDeclaration<'_, T>> {
        let mut firsts: BTreeMap<&str, &Path> = BTreeMap::new();
        let mut named = BTreeMap::new();
        for (path, file) in &self.files {
            let (name, declared) = match &file.declared {
                Ok(declared) => (declared.name(), Ok((path.as_path(), declared))),
                Err(name) => {
                    let problem = file.problem.as_ref().or(self.problem.as_ref()).cloned();
                    let unread = || AgentProblem::new(path, "it was not read");
                    (name.as_str(), Err(problem.unwrap_or_else(unread)))
                }
            };
            let declared = match firsts.get(name) {
                None => {
                    firsts.insert(name, path);
                    declared
                }
                Some(first) => {
                    let (kind, first) = (T::KIND, first.display());
                    let message =
                        format!("the {kind} `{name}` is also in {first}; none of them is used");
                    let problem = AgentProblem::new(path, message);
                    problems.push(problem.clone());
                    Err(problem)
                }
            };
            named.insert(name, declared);
        }
        named
    }

    /// Returns the problems with the folder and its files.
    pub(super) fn problems(&self) -> impl Iterator<Item = &AgentProblem> {
        self.problem.iter().chain(self.files.values().filter_map(|file| file.problem.as_ref()))
    }
}

/// A declaration with the path of its file, or the problem that makes its name unusable.
pub(super) type NamedDeclaration<'a, T> = Result<(&'a Path, &'a Arc<T>), AgentProblem>;

fn read<T: Declaration>(path: &Path, known: Option<&DeclaredFile<T>>) -> DeclaredFile<T> {
    let data = fs::symlink_metadata(path).ok();
    let stamp = data.and_then(|data| Some((data.modified().ok()?, data.len())));
    if let Some(known) = known.filter(|known| known.stamp.is_some() && known.stamp == stamp) {
        return known.clone();
    }
    let bytes = bytes(path);
    let parsed = match &bytes {
        Ok(bytes) => parse(path, bytes),
        Err(problem) => Err(problem.clone()),
    };
    match parsed {
        Ok(declared) => DeclaredFile { stamp, declared: Ok(Arc::new(declared)), problem: None },
        Err(mut problem) => {
            let before = known.and_then(|known| known.declared.as_ref().ok()).cloned();
            if before.is_some() {
                problem.message.push_str("; its previous version stays in use");
            }
            let name = || seeming_name(path, &String::from_utf8_lossy(&bytes.unwrap_or_default()));
            DeclaredFile { stamp, declared: before.ok_or_else(name), problem: Some(problem) }
        }
    }
}

fn parse<T: Declaration>(path: &Path, bytes: &[u8]) -> Result<T, AgentProblem> {
    let problem = |message: String| AgentProblem::new(path, message);
    if bytes.len() as u64 > MAX_FILE {
        return Err(problem(format!("it is larger than {} KiB", MAX_FILE >> 10)));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| problem("it is not UTF-8".to_owned()))?;
    let text = wattle_rt::without_bom(text);
    T::parse(text).map_err(|SpecError { line, message }| AgentProblem { line, ..problem(message) })
}

/// Returns the content of a file, or only its first `MAX_FILE + 1` bytes.
fn bytes(path: &Path) -> Result<Vec<u8>, AgentProblem> {
    let problem = |message: String| AgentProblem::new(path, message);
    let unreadable = |why: std::io::Error| problem(format!("failed to read it: {why}"));
    // Only regular files are opened: reading a pipe would block, and a link may point anywhere.
    if !fs::symlink_metadata(path).map_err(unreadable)?.is_file() {
        return Err(problem("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}
