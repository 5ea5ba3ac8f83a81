//! The host's own files. They may be in a workdir, but runs cannot change them, and some are hidden
//! from runs.

use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use crate::jail::Meta;
use crate::path::{Intent, RunPath};
use crate::{EVENTS_FILE, ISSUES_FILE, LEDGER_FILE, PROJECT_FILE, TRACE_FILE};

/// Names of the files in a workdir's root that only the host writes, each with a noun for messages.
const HOST_WRITTEN: &[(&str, &str)] = &[
    (TRACE_FILE, "the run's trace"),
    (LEDGER_FILE, "the ledger of the run's trace"),
    (EVENTS_FILE, "the outline of runs"),
    (ISSUES_FILE, "the list of tickets"),
];
/// Prefix of the names of staging folders and staged files.
pub(crate) const STAGING_PREFIX: &str = ".wattle-tmp-";
/// Maximum number of files in a folder that are recognized by their inodes.
const MAX_FOLDER_FILES: usize = 1_000;

/// Maximum number of links that are followed on the path of one of the host's own files. Linux has
/// the same limit.
const MAX_LINKS: usize = 40;

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
/// assert_eq!(files.paths().count(), 6);
/// ```
#[derive(Clone, Debug, Default)]
pub struct HostFiles(Vec<HostFile>);

#[derive(Clone, Debug)]
struct HostFile {
    path: PathBuf,
    what: String,
    /// If true, runs cannot see the file.
    hidden: bool,
}

impl HostFiles {
    /// Adds a file or a folder that runs can neither see nor change. `what` is its name in error
    /// messages, such as `the store`.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        self.0.push(HostFile { path: path.into(), what: what.to_owned(), hidden: true });
        self
    }

    /// Adds an SQLite database and its auxiliary files, in the same way as [`HostFiles::hide`].
    #[must_use]
    pub fn hide_database(self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        let path = path.into();
        ["", "-wal", "-shm", "-journal"].into_iter().fold(self, |files, suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            files.hide(PathBuf::from(name), what)
        })
    }

    /// Adds a file or a folder that runs can read but not change.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        self.0.push(HostFile { path: path.into(), what: what.to_owned(), hidden: false });
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
    /// Device and inode of each hidden file that exists.
    hidden: Vec<(u64, u64)>,
    /// Device and inode of each protected file that exists.
    protected: Vec<(u64, u64)>,
    refreshed: Option<Instant>,
}

struct Rule {
    file: HostFile,
    /// The paths of the file in the base.
    paths: Vec<RunPath>,
    /// The entries in the base that determine where these paths lead; see [`Route::passed`].
    passed: Vec<RunPath>,
}

/// The reason why a run may not use an entry.
pub(crate) struct Refusal<'a> {
    /// The path or name of the protected entry.
    pub(crate) name: &'a str,
    pub(crate) what: &'a str,
    pub(crate) hidden: bool,
}

impl HostFileRules {
    pub(crate) fn new(files: HostFiles, top: &Path) -> HostFileRules {
        let rules = files.0.into_iter().map(|file| {
            let Route { paths, passed } = Route::to(&file.path);
            Rule { file, paths: in_base(&paths, top), passed: in_base(&passed, top) }
        });
        HostFileRules { rules: rules.collect(), ..HostFileRules::default() }
    }

    /// Rereads the device and inode numbers of the hidden and protected files, unless they were
    /// read a moment ago. Includes the files in hidden and protected folders, because they may have
    /// hard links elsewhere.
    pub(crate) fn refresh(&mut self) {
        if self.rules.is_empty()
            || self.refreshed.is_some_and(|refreshed| refreshed.elapsed() < REFRESH_INTERVAL)
        {
            return;
        }
        self.refreshed = Some(Instant::now());
        self.hidden.clear();
        self.protected.clear();
        for Rule { file, .. } in &self.rules {
            let inodes = if file.hidden { &mut self.hidden } else { &mut self.protected };
            let Some(is_folder) = add_inode(&file.path, inodes) else { continue };
            if is_folder && let Ok(entries) = std::fs::read_dir(&file.path) {
                entries.take(MAX_FOLDER_FILES).flatten().for_each(|entry| {
                    add_inode(&entry.path(), inodes);
                });
            }
        }
    }

    /// Returns true if an entry is hidden because of its inode.
    pub(crate) fn hides(&self, meta: &Meta) -> bool {
        self.hidden.contains(&meta.identity())
    }

    /// Returns true if an entry is hidden because of its path.
    pub(crate) fn hides_path(&self, path: &RunPath) -> bool {
        is_staging(path)
            || self.rules.iter().any(|rule| {
                rule.file.hidden && rule.paths.iter().any(|at| path.below(at).is_some())
            })
    }

    /// Returns true if there are no rules for the host's own files.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
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
            });
        }
        let settings = |name: &str| name.eq_ignore_ascii_case(PROJECT_FILE);
        if intent == Intent::Write && path.names().any(settings) {
            return Some(Refusal { name: path.as_str(), what: "a project file", hidden: false });
        }
        let alone = path.names().nth(1).is_none();
        let line = HOST_WRITTEN
            .iter()
            .find(|(line, _)| alone && intent == Intent::Write && name.eq_ignore_ascii_case(line));
        if let Some((name, what)) = line {
            return Some(Refusal { name, what, hidden: false });
        }
        let rule = self.rules.iter().find(|rule| {
            (rule.file.hidden || intent == Intent::Write)
                && rule.paths.iter().any(|at| path.below(at).is_some())
        })?;
        Some(Refusal { name: path.as_str(), what: &rule.file.what, hidden: rule.file.hidden })
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

    /// Returns true if an entry is protected because of its inode.
    pub(crate) fn protects(&self, meta: &Meta) -> bool {
        self.protected.contains(&meta.identity())
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

/// Returns true if a path is a staging path or is under one.
pub(crate) fn is_staging(path: &RunPath) -> bool {
    path.names().any(|name| name.starts_with(STAGING_PREFIX))
}

/// Adds the device and inode of an entry to `inodes`. Returns true if the entry is a folder, and
/// `None` if it does not exist.
fn add_inode(path: &Path, inodes: &mut Vec<(u64, u64)>) -> Option<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(path).ok()?;
    inodes.push((meta.dev(), meta.ino()));
    Some(meta.is_dir())
}

/// Returns the paths under the host folder `top`, relative to that folder. Omits all other paths
/// and `top` itself.
fn in_base(paths: &[PathBuf], top: &Path) -> Vec<RunPath> {
    let paths = paths.iter().filter_map(|path| {
        let path = path.strip_prefix(top).ok()?.to_str()?;
        RunPath::parse(&format!("/{path}")).ok()
    });
    paths.filter(|path| !path.is_top()).collect()
}

/// The route from the root of the host's file system to a file.
#[derive(Default)]
struct Route {
    /// The absolute paths of the file: as written, after each link that is followed, and resolved.
    paths: Vec<PathBuf>,
    /// The links on the route, and the folders that a `..` leaves. If one of these entries is
    /// replaced, the path leads to a different file.
    passed: Vec<PathBuf>,
}

impl Route {
    /// Finds the route to a file, which need not exist.
    fn to(path: &Path) -> Route {
        let Ok(path) = std::path::absolute(path) else { return Route::default() };
        let mut route = Route::default();
        let end = route.follow(&path);
        route.add(end);
        // The operating system may spell names differently, for example in another case.
        route.add(with_real_parents(&path));
        if let Ok(real) = path.canonicalize() {
            route.add(real);
        }
        route
    }

    /// Follows all links on an absolute path and returns the resulting path.
    fn follow(&mut self, path: &Path) -> PathBuf {
        let (mut at, mut rest, mut links) = (PathBuf::new(), path.to_owned(), 0);
        while let Some((first, after)) = split_first(&rest) {
            if first == ".." {
                self.passed.push(at.clone());
                at.pop();
            }
            if first == "." || first == ".." {
                rest = after;
                continue;
            }
            let next = at.join(first);
            rest = match std::fs::read_link(&next) {
                Ok(target) if links < MAX_LINKS => {
                    links += 1;
                    self.add_link(next, &after);
                    target.join(after)
                }
                _ => {
                    at = next;
                    after
                }
            };
        }
        at
    }

    /// Adds a link on the route. `rest` leads from the link to the file. If `rest` contains `..`,
    /// the link followed by `rest` is not added to the paths of the file, because `..` would be
    /// relative to the target of the link.
    fn add_link(&mut self, link: PathBuf, rest: &Path) {
        if !rest.components().any(|part| part == Component::ParentDir) {
            self.add(link.join(rest));
        }
        self.passed.push(link);
    }

    fn add(&mut self, path: PathBuf) {
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }
}

/// Splits a path into its first component and the rest, or returns `None` if it is empty.
fn split_first(path: &Path) -> Option<(OsString, PathBuf)> {
    let mut parts = path.components();
    let first = parts.next()?;
    Some((first.as_os_str().to_owned(), parts.as_path().to_owned()))
}

/// Returns an absolute path whose nearest existing ancestor is spelled as the operating system
/// spells it.
fn with_real_parents(path: &Path) -> PathBuf {
    let real = path
        .ancestors()
        .skip(1)
        .find_map(|above| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?)));
    real.unwrap_or_else(|| path.to_owned())
}
