//! The host's own files, which may lie in a workdir: no run changes them, and some it does not even see.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::base::Base;
use super::error::{FilesError, Intent};
use super::jail::Meta;
use super::path::RunPath;

/// What only the host writes at the top of a workdir, and what each is.
const LINES: &[(&str, &str)] = &[
    (super::TRACE_FILE, "the run's trace"),
    (super::LEDGER_FILE, "the ledger of the run's trace"),
    (super::EVENTS_FILE, "the outline of runs"),
    (super::ISSUES_FILE, "the list of tickets"),
];
/// The prefix of the names that changes are prepared under.
pub(super) const WORKING: &str = ".wattle-tmp-";
/// The most files of a hidden folder that are told apart by what they are, not by their names.
const FOLDER_FILES: usize = 1_000;

/// How long what a path is stays known. No run can give a file a second name, so none gains by a file that is new.
const KNOWN: Duration = Duration::from_millis(50);

/// Files and folders of the host's own. Each is a path of the host, and need not be there yet; a folder stands for all that it
/// holds. Those that lie in a workdir are kept from its runs under every name that leads to them: other spellings, links, hard
/// links and mounts.
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
    /// Whether runs do not see it.
    hidden: bool,
}

impl HostFiles {
    /// Adds a file or a folder that runs neither see nor change; `what` names it in refusals, such as `the store`.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        self.0.push(HostFile { path: path.into(), what: what.to_owned(), hidden: true });
        self
    }

    /// Adds the file of an SQLite database, with the files that belong to it, as [`HostFiles::hide`].
    #[must_use]
    pub fn hide_database(self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        let path = path.into();
        ["", "-wal", "-shm", "-journal"].into_iter().fold(self, |files, suffix| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            files.hide(PathBuf::from(name), what)
        })
    }

    /// Adds a file or a folder that runs may read but not change.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>, what: &str) -> HostFiles {
        self.0.push(HostFile { path: path.into(), what: what.to_owned(), hidden: false });
        self
    }

    /// Returns the paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|file| file.path.as_path())
    }

    /// Returns the paths below a workdir, from its top, that no commit of it may have: the hidden files, and the lines that the
    /// host writes there itself.
    #[must_use]
    pub fn not_committed(&self, workdir: &Path) -> Vec<PathBuf> {
        let top = workdir.canonicalize().unwrap_or_else(|_| workdir.to_owned());
        let hidden = self.0.iter().filter(|file| file.hidden).flat_map(|file| spellings(&file.path));
        let inside = hidden.filter_map(|path| Some(path.strip_prefix(&top).ok()?.to_owned()));
        LINES.iter().map(|(name, _)| PathBuf::from(name)).chain(inside).collect()
    }
}

/// The host's files as a base meets them.
#[derive(Default)]
pub(super) struct Kept {
    rules: Vec<Rule>,
    /// What is hidden now, by device and inode.
    hidden: Vec<(u64, u64)>,
    /// What is protected now.
    protected: Vec<(u64, u64)>,
    looked: Option<Instant>,
}

struct Rule {
    file: HostFile,
    /// Where it lies in the base.
    inside: Vec<RunPath>,
}

/// Why a run may not touch an entry.
pub(super) struct Refusal<'a> {
    /// The name of what is kept.
    pub(super) name: &'a str,
    pub(super) what: &'a str,
    pub(super) hidden: bool,
}

impl Kept {
    pub(super) fn new(files: HostFiles, top: &Path) -> Kept {
        let rules = files.0.into_iter().map(|file| {
            let inside = spellings(&file.path).into_iter().filter_map(|path| {
                let path = path.strip_prefix(top).ok()?.to_str()?.to_owned();
                RunPath::parse(&format!("/{path}")).ok()
            });
            let inside = inside.filter(|path| !path.is_top()).collect();
            Rule { file, inside }
        });
        Kept { rules: rules.collect(), ..Kept::default() }
    }

    /// Looks again at what is there. A file of a hidden folder may have another name elsewhere, so its files are listed, too.
    pub(super) fn refresh(&mut self) {
        if self.rules.is_empty() || self.looked.is_some_and(|looked| looked.elapsed() < KNOWN) {
            return;
        }
        self.looked = Some(Instant::now());
        self.hidden.clear();
        self.protected.clear();
        for Rule { file, .. } in &self.rules {
            let list = if file.hidden { &mut self.hidden } else { &mut self.protected };
            let Some(is_folder) = note(&file.path, list) else { continue };
            if is_folder && let Ok(entries) = std::fs::read_dir(&file.path) {
                entries.take(FOLDER_FILES).flatten().for_each(|entry| {
                    note(&entry.path(), list);
                });
            }
        }
    }

    /// Whether an entry is hidden by what it is.
    pub(super) fn hides(&self, meta: &Meta) -> bool {
        self.hidden.contains(&meta.identity())
    }

    /// Whether an entry is hidden by its path.
    pub(super) fn hides_path(&self, path: &RunPath) -> bool {
        is_working(path)
            || self.rules.iter().any(|rule| rule.file.hidden && rule.inside.iter().any(|at| path.below(at).is_some()))
    }

    /// Whether entries are told apart at all.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Why a run may not touch this path: it is kept, or lies in a folder that is.
    pub(super) fn refusal<'a>(&'a self, path: &'a RunPath, intent: Intent) -> Option<Refusal<'a>> {
        let name = path.names().next().unwrap_or_default();
        if is_working(path) {
            return Some(Refusal { name: path.as_str(), what: "a place where changes are prepared", hidden: true });
        }
        let settings = |name: &str| name.eq_ignore_ascii_case(super::PROJECT_FILE);
        if intent == Intent::Write && path.names().any(settings) {
            return Some(Refusal { name: path.as_str(), what: "a project file", hidden: false });
        }
        let alone = path.names().nth(1).is_none();
        let line = LINES.iter().find(|(line, _)| alone && intent == Intent::Write && name.eq_ignore_ascii_case(line));
        if let Some((name, what)) = line {
            return Some(Refusal { name, what, hidden: false });
        }
        let rule = self.rules.iter().find(|rule| {
            (rule.file.hidden || intent == Intent::Write) && rule.inside.iter().any(|at| path.below(at).is_some())
        })?;
        Some(Refusal { name: path.as_str(), what: &rule.file.what, hidden: rule.file.hidden })
    }

    /// What is kept below a folder, which therefore cannot be moved or removed as a whole.
    pub(super) fn below(&self, folder: &RunPath) -> Option<(&RunPath, &str)> {
        self.rules.iter().find_map(|rule| {
            let inside = rule.inside.iter().find(|at| at.below(folder).is_some())?;
            Some((inside, rule.file.what.as_str()))
        })
    }

    /// Whether an entry may not be changed for what it is.
    pub(super) fn protects(&self, meta: &Meta) -> bool {
        self.protected.contains(&meta.identity())
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.file.path)).finish()
    }
}

impl Base {
    /// Keeps the host's own files from the runs that work on this base.
    #[must_use]
    pub fn keeping(mut self, files: HostFiles) -> Base {
        self.kept = Kept::new(files, &self.top);
        self.kept.refresh();
        self
    }

    /// Refuses a path of the host's own.
    pub(super) fn admit(&self, path: &RunPath, intent: Intent) -> Result<(), FilesError> {
        if let Some(refusal) = self.kept.refusal(path, intent) {
            return Err(FilesError::kept(intent, &refusal));
        }
        let changes = intent == Intent::Write && !self.kept.is_empty();
        if changes && self.meta(path).ok().flatten().is_some_and(|meta| self.kept.protects(&meta)) {
            let refusal = Refusal { name: path.as_str(), what: "a file of the host's own", hidden: false };
            return Err(FilesError::kept(intent, &refusal));
        }
        Ok(())
    }
}

/// Whether a path is, or lies in, a place where changes are prepared.
pub(super) fn is_working(path: &RunPath) -> bool {
    path.names().any(|name| name.starts_with(WORKING))
}

/// Notes what a path is; gives whether it is a folder, and `None` where nothing is there.
fn note(path: &Path, list: &mut Vec<(u64, u64)>) -> Option<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(path).ok()?;
    list.push((meta.dev(), meta.ino()));
    Some(meta.is_dir())
}

/// The absolute paths of a file, as it is named and, where it is a link, as it is: with all links on the way followed as far as
/// they are there.
fn spellings(path: &Path) -> Vec<PathBuf> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let mut named = path.clone();
    for above in path.ancestors().skip(1) {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            named = real.join(rest);
            break;
        }
    }
    let real = path.canonicalize().ok().filter(|real| *real != named);
    std::iter::once(named).chain(real).collect()
}
