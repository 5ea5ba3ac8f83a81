//! Resolves paths. Follows the links on a path as if the base and the overlay were one tree, and
//! checks that the run may use the resolved path.

use std::sync::Arc;

use wattle_lang::Target;

use super::Tree;
use crate::base::EntryInfo;
use crate::error::FilesError;
use crate::git_names::{completes_layout, path_is_in_repository};
use crate::host_files::HostFileRules;
use crate::path::{Intent, RunPath};

/// A function that decides whether a run may use a path. It receives the kind of use and a path
/// relative to the workdir's root. If it denies the use, it returns an error with the reason. It is
/// called for each spelling of a path: as written, after each link that is followed, and resolved.
pub type PathGuard = Arc<dyn Fn(Target, &str) -> Result<(), String> + Send + Sync>;

/// Maximum number of links that are followed on a path. A path with more links counts as a loop.
/// Linux has the same limit.
const MAX_LINKS: usize = 40;

/// Top-level folders of operating systems.
const SYSTEM_FOLDERS: &[&str] =
    &["Library", "System", "boot", "dev", "etc", "proc", "root", "sbin", "sys", "usr", "var"];

/// Top-level folders of operating systems whose names are also common in projects. Writing to an
/// absolute path in one of them may create the folder in the workdir.
const SHARED_NAMES: &[&str] = &[
    "Applications",
    "Users",
    "Volumes",
    "bin",
    "home",
    "lib",
    "lib32",
    "lib64",
    "media",
    "mnt",
    "opt",
    "private",
    "run",
    "snap",
    "srv",
];

/// The treatment of a link at the end of a path: follow it, or return the link itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLink {
    Follow,
    Keep,
}

/// Resolves a path. The result contains no link, except possibly its last name if `final_link` is
/// [`FinalLink::Keep`]. Names that do not exist are kept.
///
/// Asks the guard about the path as written, the path after each link that is followed, and the
/// resolved path. For these checks, a link at the end of the path is followed even if the result
/// keeps it.
pub(crate) fn resolve(
    tree: &dyn Tree,
    text: &str,
    final_link: FinalLink,
    target: Target,
    guard: Option<&PathGuard>,
) -> Result<RunPath, FilesError> {
    let intent = Intent::of(target);
    let mut walk = Walk::new(tree, text, intent)?;
    let entry = walk.resolve_entry()?;
    let Some(guard) = guard else {
        let path = if final_link == FinalLink::Keep { entry } else { walk.resolve_end()? };
        check_access(tree, &path, intent)?;
        return Ok(path);
    };
    check_access(tree, &entry, intent)?;
    let end = walk.resolve_end()?;
    let ask = |path: &RunPath| {
        guard(target, path.as_str()).map_err(|why| FilesError::guarded(intent, &why))
    };
    if end != entry {
        check_access(tree, &end, intent)?;
    }
    walk.spellings.iter().try_for_each(ask)?;
    ask(&end)?;
    Ok(if final_link == FinalLink::Keep { entry } else { end })
}

/// Rejects an absolute path into a folder of the operating system, such as `/etc/shadow`, unless
/// the workdir has such a folder. Without this check, the path would name a file in the workdir,
/// although the author meant a file of the operating system.
pub(crate) fn check_inside(tree: &dyn Tree, text: &str, intent: Intent) -> Result<(), FilesError> {
    // A leading `//` results from joining a name to the root, as in `$PWD/lib`.
    if !text.starts_with('/') || text.starts_with("//") {
        return Ok(());
    }
    let path = RunPath::parse(text).map_err(|fault| FilesError::path(intent, text, fault))?;
    let Some(folder) = path.steps().next() else { return Ok(()) };
    let is_outside = SYSTEM_FOLDERS.contains(&folder.as_str())
        || (intent == Intent::Read && SHARED_NAMES.contains(&folder.as_str()));
    if is_outside && tree.entry(&folder, intent)? == EntryInfo::Absent {
        return Err(FilesError::outside(intent, text));
    }
    Ok(())
}

/// Checks that a path, the result of resolving `text`, names a file and not a folder.
pub(crate) fn check_names_file(
    path: &RunPath,
    text: &str,
    target: Target,
) -> Result<(), FilesError> {
    if path.is_top() {
        return Err(FilesError::is_folder(Intent::of(target), path));
    }
    if text.ends_with('/') || text.ends_with("/.") {
        return Err(FilesError::names_a_folder(text));
    }
    Ok(())
}

/// Denies access to the host's own files, and denies writes to repositories. A run that could edit
/// its own trace would make the trace worthless.
pub(crate) fn check_access(
    tree: &dyn Tree,
    path: &RunPath,
    intent: Intent,
) -> Result<(), FilesError> {
    if let Some(base) = tree.base() {
        base.check_host_files(path, intent)?;
    } else if let Some(refusal) = HostFileRules::default().refusal(path, intent) {
        return Err(FilesError::host_file(intent, &refusal));
    }
    if intent == Intent::Write {
        check_repository(tree, path)?;
    }
    Ok(())
}

/// Rejects a write to a path that is in a repository, whose content can make `git` start programs,
/// or that would complete the layout of one. A repository is a folder named `.git`, in any spelling,
/// or any folder with the layout of a repository, which `git` accepts as a bare repository.
fn check_repository(tree: &dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    let has = |folder: &RunPath, part: &str| tree.has_repository_part(folder, part);
    if path_is_in_repository(path) || completes_layout(path, has)? {
        return Err(FilesError::repository(path));
    }
    Ok(())
}

/// A walk along a path, which follows the links on the path.
struct Walk<'a> {
    tree: &'a dyn Tree,
    text: &'a str,
    intent: Intent,
    path: RunPath,
    /// The remaining names, in reverse order.
    names: Vec<String>,
    at: RunPath,
    /// The path before each link was followed: the link and the remaining names.
    spellings: Vec<RunPath>,
}

impl<'a> Walk<'a> {
    fn new(tree: &'a dyn Tree, text: &'a str, intent: Intent) -> Result<Walk<'a>, FilesError> {
        let path = RunPath::parse(text).map_err(|fault| FilesError::path(intent, text, fault))?;
        let names = path.names().rev().map(str::to_owned).collect();
        Ok(Walk { tree, text, intent, path, names, at: RunPath::top(), spellings: Vec::new() })
    }

    /// Walks to the last name and returns its path, without following a link at that path.
    fn resolve_entry(&mut self) -> Result<RunPath, FilesError> {
        while self.names.len() > 1 {
            self.step()?;
        }
        match self.names.last() {
            Some(name) => self.child(name),
            None => Ok(self.at.clone()),
        }
    }

    /// Walks to the end of the path, following a link there.
    fn resolve_end(&mut self) -> Result<RunPath, FilesError> {
        while !self.names.is_empty() {
            self.step()?;
        }
        Ok(self.at.clone())
    }

    fn leads_outside(&self) -> FilesError {
        FilesError::leads_outside(self.intent, self.text)
    }

    fn child(&self, name: &str) -> Result<RunPath, FilesError> {
        self.at.join(name).map_err(|fault| FilesError::path(self.intent, self.text, fault))
    }

    /// Appends the remaining names, up to the first `..`, to `link` and returns the resulting path.
    /// A `..` would be relative to the target of the link, so the path cannot continue after it.
    fn spelling(&self, link: RunPath) -> Result<RunPath, FilesError> {
        let mut names = self.names.iter().rev().take_while(|name| *name != "..");
        names
            .try_fold(link, |path, name| path.join(name))
            .map_err(|fault| FilesError::path(self.intent, self.text, fault))
    }

    /// Resolves the next name. If it is a link, queues the names of its target.
    fn step(&mut self) -> Result<(), FilesError> {
        let Some(name) = self.names.pop() else { return Ok(()) };
        if name == ".." {
            self.at = self.at.parent().ok_or_else(|| self.leads_outside())?;
            return Ok(());
        }
        let next = self.child(&name)?;
        let EntryInfo::Link(target) = self.tree.entry(&next, self.intent)? else {
            self.at = next;
            return Ok(());
        };
        if self.spellings.len() == MAX_LINKS {
            return Err(FilesError::link_loop(&self.path));
        }
        self.spellings.push(self.spelling(next)?);
        let mut rest = target.as_str();
        if target.starts_with('/') {
            let inside = self.tree.base().and_then(|base| base.strip_top(&target));
            rest = inside.ok_or_else(|| self.leads_outside())?;
            self.at = RunPath::top();
        }
        let parts = rest.split('/').rev().filter(|part| !part.is_empty() && *part != ".");
        self.names.extend(parts.map(str::to_owned));
        Ok(())
    }
}
