//! Read access to a tree: files, listings, metadata, and suggestions for paths that do not exist.

use super::Tree;
use crate::ENTRY_LIMIT;
use crate::base::{EntryInfo, NAME_NOT_UTF8};
use crate::entry::{Entry, EntryKind, Stat};
use crate::error::FilesError;
use crate::host_files::is_host_written;
use crate::path::{Intent, RunPath};
use crate::reader::Reader;

/// Maximum number of entries in a folder that is searched for similar names.
const MAX_SEARCHED: usize = 1000;
/// Maximum number of names that an error lists.
const MAX_LISTED: usize = 8;

/// Opens a file for reading.
pub(crate) fn open(tree: &mut dyn Tree, path: &RunPath) -> Result<Reader, FilesError> {
    match tree.entry(path, Intent::Read)? {
        EntryInfo::File { .. } => tree.open_file(path),
        EntryInfo::Absent => Err(missing(tree, path)),
        EntryInfo::Folder { .. } => Err(FilesError::is_folder(Intent::Read, path)),
        EntryInfo::Link(_) => Err(FilesError::link_loop(path)),
        EntryInfo::Other(what) => Err(FilesError::special(Intent::Read, path, what)),
    }
}

/// Lists a folder, sorted by name.
pub(crate) fn list(tree: &dyn Tree, path: &RunPath) -> Result<Vec<Entry>, FilesError> {
    match tree.entry(path, Intent::Read)? {
        EntryInfo::Folder { .. } => {}
        EntryInfo::Absent => return Err(missing(tree, path)),
        EntryInfo::File { .. } | EntryInfo::Link(_) => return Err(FilesError::not_folder(path)),
        EntryInfo::Other(what) => return Err(FilesError::special(Intent::Read, path, what)),
    }
    let children = shown_children(tree, path, ENTRY_LIMIT)?;
    let children = children.ok_or_else(|| FilesError::too_many(path, ENTRY_LIMIT))?;
    let entries = children.into_iter().map(|(name, entry)| Entry {
        name,
        kind: entry.kind().unwrap_or(EntryKind::Other),
        size: entry.size(),
        modified: entry.modified(),
        version: if let EntryInfo::File { version, .. } = entry { version } else { None },
    });
    Ok(entries.collect())
}

/// Returns the result of [`Tree::children`] without the files that the host writes in the root of
/// the workdir. Runs can still read those files by name.
fn shown_children(
    tree: &dyn Tree,
    path: &RunPath,
    max: usize,
) -> Result<Option<Vec<(String, EntryInfo)>>, FilesError> {
    let mut children = tree.children(path, max, Intent::Read)?;
    if let Some(children) = children.as_mut().filter(|_| path.is_top()) {
        children.retain(|(name, entry)| {
            !(is_host_written(name) && matches!(entry, EntryInfo::File { .. }))
        });
    }
    Ok(children)
}

/// Returns the metadata of an entry.
pub(crate) fn stat(tree: &dyn Tree, path: &RunPath) -> Result<Stat, FilesError> {
    let entry = tree.entry(path, Intent::Read)?;
    let kind = entry.kind().ok_or_else(|| missing(tree, path))?;
    Ok(Stat { kind, size: entry.size(), modified: entry.modified() })
}

/// Returns the target of a link.
pub(crate) fn read_link(tree: &dyn Tree, path: &RunPath) -> Result<String, FilesError> {
    match tree.entry(path, Intent::Read)? {
        EntryInfo::Link(target) => Ok(target),
        EntryInfo::Absent => Err(missing(tree, path)),
        _ => Err(FilesError::not_link(path)),
    }
}

/// Returns the error for a path that does not exist, or that names an entry whose name is not
/// UTF-8. For a path that does not exist, it lists the entries of the nearest existing
/// folder, with the most similar names first.
pub(crate) fn missing(tree: &dyn Tree, path: &RunPath) -> FilesError {
    let mut folder = RunPath::top();
    let mut wanted = path.names().next().unwrap_or_default().to_owned();
    for step in path.steps() {
        match tree.entry(&step, Intent::Read) {
            Ok(EntryInfo::Folder { .. }) => folder = step,
            Ok(EntryInfo::Absent) => {
                wanted = step.split().map(|(_, name)| name.to_owned()).unwrap_or_default();
                break;
            }
            Ok(_) if step != *path => return FilesError::not_folder(&step),
            _ => break,
        }
    }
    if has_unreadable_name(tree, &folder, &wanted) {
        return FilesError::special(Intent::Read, path, NAME_NOT_UTF8);
    }
    let (names, more) = similar_names(tree, &folder, &wanted);
    FilesError::not_found(path, &folder, &names, more)
}

/// Returns true if a folder lists an entry under this name whose name on disk is not UTF-8.
fn has_unreadable_name(tree: &dyn Tree, folder: &RunPath, name: &str) -> bool {
    let is_escaped = name.contains("\\x");
    let listed = is_escaped.then(|| shown_children(tree, folder, ENTRY_LIMIT).ok().flatten());
    listed.flatten().is_some_and(|children| {
        let is_unreadable = |entry: &EntryInfo| matches!(entry, EntryInfo::Other(NAME_NOT_UTF8));
        children.iter().any(|(child, entry)| child == name && is_unreadable(entry))
    })
}

/// Returns a few of the names in a folder, and a flag that is true if the folder contains more. If
/// it does, the names most similar to `wanted` are returned, most similar first. If the folder has
/// too many entries to search or cannot be listed, returns a message in place of the names.
pub(crate) fn similar_names(
    tree: &dyn Tree,
    folder: &RunPath,
    wanted: &str,
) -> (Vec<String>, bool) {
    let (mut children, mut more) = match shown_children(tree, folder, MAX_SEARCHED) {
        Ok(Some(children)) => (children, false),
        _ => return (vec!["too many entries to name".to_owned()], false),
    };
    let similarity = |name: &str| strsim::jaro_winkler(name, wanted);
    if children.len() > MAX_LISTED {
        children.sort_by(|a, b| similarity(&b.0).total_cmp(&similarity(&a.0)));
        children.truncate(MAX_LISTED);
        more = true;
    }
    let names = children.into_iter().map(|(name, entry)| match entry {
        EntryInfo::Folder { .. } => format!("{name}/"),
        _ => name,
    });
    (names.collect(), more)
}

/// Checks that the existing parents of `path` are folders. Returns the number of existing parents.
pub(crate) fn check_parents(tree: &dyn Tree, path: &RunPath) -> Result<usize, FilesError> {
    let mut existing = 0;
    for parent in path.parents() {
        match tree.entry(&parent, Intent::Write)? {
            EntryInfo::Folder { .. } => existing += 1,
            EntryInfo::Absent => break,
            EntryInfo::File { .. } | EntryInfo::Link(_) => {
                return Err(FilesError::not_folder(&parent));
            }
            EntryInfo::Other(what) => {
                return Err(FilesError::special(Intent::Write, &parent, what));
            }
        }
    }
    Ok(existing)
}
