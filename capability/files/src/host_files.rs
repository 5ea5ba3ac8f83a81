//! The host's own files. They may be in a workdir, but runs cannot change them, and some are hidden
//! from runs.

mod inodes;
mod paths;
mod route;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use self::paths::HostPaths;

use self::inodes::Inodes;
use self::route::Route;
use crate::git_names::is_named;
use crate::jail::Meta;
use crate::path::{Intent, RunPath};
use crate::{EVENTS_FILE, ISSUES_FILE, LEDGER_FILE, PROJECT_FILE, ROTATED_FOLDER, TRACE_FILE};

/// Names of the files in a workdir's root that only the host writes, each with a noun for messages.
const HOST_WRITTEN: &[(&str, &str)] = &[
    (TRACE_FILE, "the run's trace"),
    (LEDGER_FILE, "the ledger of the run's trace"),
    (EVENTS_FILE, "the outline of runs"),
    (ISSUES_FILE, "the list of tickets"),
    (ROTATED_FOLDER, "the folder of rotated traces"),
];
/// Prefix of the names of staging folders and staged files.
pub(crate) const STAGING_PREFIX: &str = ".wattle-tmp-";

/// Minimum time between two reads of the inodes. No run can create a hard link, so a run cannot
/// exploit a file that appears between them.
const REFRESH_INTERVAL: Duration = Duration::from_millis(50);

/// The host's own files and folders, identified by their paths on the host. They need not exist
/// yet. Everything in such a folder also belongs to the host. Files in a workdir are protected from
/// its runs under every name: other spellings, links, hard links and mounts. The links on the path
/// of such a file are protected, too: if a run replaced one, the host would use another file.
///
/// ```
/// use wattle_files::HostFiles;
/// let files = HostFiles::default()
///     .hide_database("/home/ada/work/store.db", "the store")
///     .hide("/home/ada/work/keys", "the folder of keys")
///     .protect("/home/ada/work/wattle.toml", "the project file");
/// assert_eq!(files.paths().count(), 8);
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostFiles(Vec<HostFile>);

#[derive(Clone, Debug)]
struct HostFile {
    path: PathBuf,
    what: String,
    /// If true, runs cannot see the file.
    hidden: bool,
    /// The extensions of the files that the host loads from this folder. Empty if the whole folder
    /// is protected even if it is the workdir.
    loaded: Vec<String>,
}

impl HostFile {
    /// Returns true if the host would load a file with this name from the folder.
    fn has_loaded_extension(&self, path: &Path) -> bool {
        path.extension().and_then(OsStr::to_str).is_some_and(|extension| {
            self.loaded.iter().any(|loaded| loaded.eq_ignore_ascii_case(extension))
        })
    }
}

impl HostFiles {
    /// Adds a file or a folder that runs can neither see nor change. `what` is its name in error
    /// messages, such as `the store`.
    #[must_use]
    pub fn hide(self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        self.add(path.into(), what, true, &[])
    }

    /// Adds an SQLite database, its auxiliary files, and those that a store keeps beside it (its id
    /// and a file that checks the disk), in the same way as [`HostFiles::hide`].
    #[must_use]
    pub fn hide_database(self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        let path = path.into();
        ["", "-wal", "-shm", "-journal", "-id", "-check"].into_iter().fold(self, |files, suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            files.hide(PathBuf::from(name), what)
        })
    }

    /// Adds a file or a folder that runs can read but not change.
    #[must_use]
    pub fn protect(self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        self.add(path.into(), what, false, &[])
    }

    /// Adds a folder from which the host loads the files with one of these extensions, but no files
    /// in subfolders. Runs can read but not change the folder. If the workdir is this folder, only
    /// the files that the host loads are protected, whatever the letter case of their extension.
    ///
    /// ```
    /// use wattle_files::{Files, HostFiles, OVERLAY_LIMIT};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let workdir = dir.path();
    /// let host = HostFiles::default().protect_folder(workdir, &["wat"], "a folder of programs");
    /// let base = Files::open_protected_base(workdir, host)?;
    /// let files = Files::overlay(Some(base), OVERLAY_LIMIT);
    /// files.write("notes.txt", b"rain")?;
    /// let refused = files.write("greet.wat", b"").unwrap_err();
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "write blocked: `greet.wat` is in a folder of programs, which only the host writes"
    /// );
    /// # Ok::<(), wattle_files::FilesError>(())
    /// ```
    #[must_use]
    pub fn protect_folder(
        self,
        path: impl Into<PathBuf>,
        extensions: &[&str],
        what: &str,
    ) -> HostFiles {
        self.add(path.into(), what, false, extensions)
    }

    fn add(mut self, path: PathBuf, what: &str, hidden: bool, loaded: &[&str]) -> HostFiles {
        let loaded = loaded.iter().map(|&extension| extension.to_owned()).collect();
        self.0.push(HostFile { path, what: what.to_owned(), hidden, loaded });
        self
    }

    /// Returns the host paths of all files and folders that were added.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|file| file.path.as_path())
    }

    /// Returns the paths, relative to the root of `workdir`, that no commit may contain: the hidden
    /// files and the files that only the host writes.
    #[must_use]
    pub fn not_committed(&self, workdir: &Path) -> Vec<PathBuf> {
        let top = workdir.canonicalize().unwrap_or_else(|_| workdir.to_owned());
        let hidden =
            self.0.iter().filter(|file| file.hidden).flat_map(|file| Route::to(&file.path).paths);
        let inside = hidden.filter_map(|path| Some(path.strip_prefix(&top).ok()?.to_owned()));
        HOST_WRITTEN.iter().map(|(name, _)| PathBuf::from(name)).chain(inside).collect()
    }
}

/// The rules for the host's own files in one base.
#[derive(Default)]
pub(crate) struct HostFileRules {
    rules: Vec<Rule>,
    /// The path of the workdir on the host.
    top: PathBuf,
    inodes: Inodes,
    refreshed: Option<Instant>,
}

struct Rule {
    file: HostFile,
    /// The paths of the file in the base.
    paths: Vec<RunPath>,
    /// The entries in the base that determine where these paths lead; see [`Route::passed`].
    passed: Vec<RunPath>,
    /// The folder from which the host loads files, if that folder is or contains the workdir.
    /// `None` if the whole folder is protected.
    loads: Option<LoadsFrom>,
}

/// The folder from which the host loads files, in relation to the workdir.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadsFrom {
    /// The workdir itself.
    Workdir,
    /// A folder that contains the workdir.
    AboveWorkdir,
}

impl Rule {
    fn new(file: HostFile, top: &Path) -> Rule {
        let Route { paths, passed } = Route::to(&file.path);
        let loads = if file.loaded.is_empty() {
            None
        } else if paths.iter().any(|path| path == top) {
            Some(LoadsFrom::Workdir)
        } else {
            paths.iter().any(|path| top.starts_with(path)).then_some(LoadsFrom::AboveWorkdir)
        };
        let (mut paths, mut passed) = (in_base(&paths, top), in_base(&passed, top));
        if loads.is_some() {
            paths.retain(|path| !path.is_top());
        }
        passed.retain(|path| !path.is_top());
        Rule { file, paths, passed, loads }
    }

    /// Returns true if the rule applies to a path. The rule for a folder applies to everything in
    /// it.
    fn covers(&self, path: &RunPath) -> bool {
        self.is_loaded(path) || self.paths.iter().any(|at| path.below(at).is_some())
    }

    /// Returns true if the host would load a file at this path because the workdir is a folder from
    /// which it loads files.
    fn is_loaded(&self, path: &RunPath) -> bool {
        self.loads == Some(LoadsFrom::Workdir)
            && path.depth() == 1
            && self.file.has_loaded_extension(Path::new(path.as_str()))
    }
}

/// The kind of a protected entry that is recognized by its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A file of the host's own that runs cannot see.
    Hidden,
    /// A file of the host's own that runs can read.
    Protected,
    /// The workdir's repository.
    Repository,
}

/// The reason why a run may not use an entry.
pub(crate) struct Refusal<'a> {
    /// The path or name of the protected entry.
    pub(crate) name: &'a str,
    pub(crate) what: &'a str,
    pub(crate) hidden: bool,
    /// If true, `what` is the folder that contains the entry, and not the entry itself.
    pub(crate) in_folder: bool,
}

impl HostFileRules {
    pub(crate) fn new(files: HostFiles, top: &Path) -> HostFileRules {
        let rules = files.0.into_iter().map(|file| Rule::new(file, top)).collect();
        HostFileRules { rules, top: top.to_owned(), ..HostFileRules::default() }
    }

    /// Rereads the device and inode numbers of the host's own files and of the folders on their
    /// paths, unless they were read a moment ago.
    pub(crate) fn refresh(&mut self) {
        if self.refreshed.is_some_and(|refreshed| refreshed.elapsed() < REFRESH_INTERVAL) {
            return;
        }
        self.refreshed = Some(Instant::now());
        self.inodes = Inodes::read(&self.rules, &self.top);
    }

    /// Returns true if an entry is hidden because of its inode.
    pub(crate) fn hides(&self, meta: &Meta) -> bool {
        self.inodes.hides(meta.identity())
    }

    /// Returns true if an entry is hidden because of its path.
    pub(crate) fn hides_path(&self, path: &RunPath) -> bool {
        is_staging(path) || self.rules.iter().any(|rule| rule.file.hidden && rule.covers(path))
    }

    /// Returns the reason why a run may not use a path, or `None` if it may. The rule for a folder
    /// applies to everything in it.
    pub(crate) fn refusal<'a>(&'a self, path: &'a RunPath, intent: Intent) -> Option<Refusal<'a>> {
        let name = path.names().next().unwrap_or_default();
        if is_staging(path) {
            return Some(Refusal {
                name: path.as_str(),
                what: "a folder for staged changes",
                hidden: true,
                in_folder: false,
            });
        }
        if intent == Intent::Write && path.names().any(is_project_file) {
            let name = path.as_str();
            return Some(Refusal { name, what: "a project file", hidden: false, in_folder: false });
        }
        let alone = path.names().nth(1).is_none();
        if intent == Intent::Write
            && alone
            && let Some((name, what)) = host_written(name)
        {
            return Some(Refusal { name, what, hidden: false, in_folder: false });
        }
        let applies = |rule: &&Rule| rule.file.hidden || intent == Intent::Write;
        let rule = self.rules.iter().filter(applies).find(|rule| rule.covers(path))?;
        let name = if path.is_top() { "/" } else { path.as_str() };
        let HostFile { what, hidden, .. } = &rule.file;
        Some(Refusal { name, what, hidden: *hidden, in_folder: rule.is_loaded(path) })
    }

    /// Returns the path and the description of one of the host's files at or under `folder`, or
    /// `None` if there is none. Such a file prevents moving or removing the folder.
    pub(crate) fn below(&self, folder: &RunPath) -> Option<(&RunPath, &str)> {
        self.rules.iter().find_map(|rule| {
            let path = rule.paths.iter().find(|at| at.below(folder).is_some())?;
            Some((path, rule.file.what.as_str()))
        })
    }

    /// Returns the description of one of the host's files whose path leads through an entry at or
    /// under `entry`, or `None` if there is none. Such an entry may not be moved, removed or
    /// replaced.
    pub(crate) fn passing(&self, entry: &RunPath) -> Option<&str> {
        let passes = |rule: &&Rule| rule.passed.iter().any(|at| at.below(entry).is_some());
        self.rules.iter().find(passes).map(|rule| rule.file.what.as_str())
    }

    /// Returns the kind of a protected entry, given its device and inode, or `None` if the entry is
    /// an ordinary one.
    pub(crate) fn owner(&self, identity: (u64, u64)) -> Option<Owner> {
        self.inodes.owner(identity)
    }

    /// Returns the recorded paths of an existing entry. Paths are recorded only for the root of the
    /// workdir and for the entries on the paths of the host's own files.
    pub(crate) fn places(&self, identity: (u64, u64)) -> impl Iterator<Item = &RunPath> {
        self.inodes.places(identity)
    }

    /// Returns true if at least one existing file is hidden from runs.
    pub(crate) fn hides_any(&self) -> bool {
        self.inodes.hides_any()
    }
}

impl fmt::Debug for HostFileRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.file.path)).finish()
    }
}

/// Returns true if `name` is the name of a file in a workdir's root that only the host writes.
pub(crate) fn is_host_written(name: &str) -> bool {
    HOST_WRITTEN.iter().any(|(written, _)| *written == name)
}

/// Returns the entry of [`HOST_WRITTEN`] with this name, in any spelling.
fn host_written(name: &str) -> Option<(&'static str, &'static str)> {
    HOST_WRITTEN.iter().copied().find(|(written, _)| is_named(name, written))
}

/// Returns true if `name` is the name of a project file, in any spelling.
pub(crate) fn is_project_file(name: &str) -> bool {
    is_named(name, PROJECT_FILE)
}

/// Returns true if a path is a staging path or is under one.
pub(crate) fn is_staging(path: &RunPath) -> bool {
    path.names().any(|name| name.starts_with(STAGING_PREFIX))
}

/// Returns the paths at and under the host folder `top`, relative to that folder. Omits all other
/// paths.
fn in_base(paths: &[PathBuf], top: &Path) -> Vec<RunPath> {
    let paths = paths.iter().filter_map(|path| {
        let path = path.strip_prefix(top).ok()?.to_str()?;
        RunPath::parse(&format!("/{path}")).ok()
    });
    paths.collect()
}
