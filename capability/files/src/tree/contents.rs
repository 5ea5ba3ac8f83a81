//! Checks everything in a folder that is moved or removed as a whole.
//!
//! Resolving a path checks the rules for that path alone. Moving or removing a folder also changes
//! the paths of everything in it, so the folder is searched for repositories and project files.

use super::Tree;
use crate::ENTRY_LIMIT;
use crate::base::{Base, EntryInfo};
use crate::error::FilesError;
use crate::git_names::{has_repository_layout, is_named, is_repository, is_repository_part};
use crate::host_files::is_project_file;
use crate::path::{Intent, RunPath};

/// The noun for a repository in error messages.
const A_REPOSITORY: &str = "a repository";

/// An entry of a folder, with its name.
type Child = (String, EntryInfo);

/// Checks that a folder contains no repository and no project file at any depth, so that it may be
/// removed. Does nothing if `entry`, the entry at `path`, is not a folder.
pub(super) fn check_removal(
    tree: &dyn Tree,
    path: &RunPath,
    entry: &EntryInfo,
) -> Result<(), FilesError> {
    let EntryInfo::Folder { .. } = entry else { return Ok(()) };
    let list = |folder: &RunPath, max| tree.children(folder, max, Intent::Write);
    check(path, list, |_, _| Ok(()))
}

/// Checks that a folder contains no repository and no project file at any depth, and that none of
/// its entries completes a repository at its new path, so that the folder may be moved.
pub(super) fn check_move(tree: &dyn Tree, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
    let list = |folder: &RunPath, max| tree.children(folder, max, Intent::Write);
    check(from, list, |folder, children| {
        if !children.iter().any(|(name, _)| is_repository_part(name)) {
            return Ok(());
        }
        let moved = folder
            .relocate(from, to)
            .map_err(|fault| FilesError::path(Intent::Write, folder.as_str(), fault))?;
        // Entries in the base that an overlay hides at the new path count, too, because they exist
        // until the changes are applied.
        let has = |part: &str| {
            if contains(children, part) { Ok(true) } else { tree.has_repository_part(&moved, part) }
        };
        if has_repository_layout(has)? { Err(FilesError::repository(&moved)) } else { Ok(()) }
    })
}

/// Checks that an entry in the base contains no repository and no project file at any depth, so
/// that applying an overlay may remove it.
pub(crate) fn check_in_base(base: &Base, path: &RunPath) -> Result<(), FilesError> {
    match base.entry(path) {
        Ok(EntryInfo::Folder { .. }) => {
            let list = |folder: &RunPath, max| base.children(folder, max, Intent::Write);
            check(path, list, |_, _| Ok(()))
        }
        _ => Ok(()),
    }
}

/// Searches a folder for repositories and project files. Follows no links. `list` returns the
/// entries of a folder, or `None` if there are more than the given maximum. `check_folder` checks
/// each folder and its entries.
fn check(
    top: &RunPath,
    list: impl Fn(&RunPath, usize) -> Result<Option<Vec<Child>>, FilesError>,
    check_folder: impl Fn(&RunPath, &[Child]) -> Result<(), FilesError>,
) -> Result<(), FilesError> {
    let mut left = ENTRY_LIMIT;
    let mut folders = vec![top.clone()];
    while let Some(folder) = folders.pop() {
        let children = list(&folder, left)?;
        let children = children.ok_or_else(|| FilesError::too_many(top, ENTRY_LIMIT))?;
        left = left.saturating_sub(children.len());
        let has = |part: &str| -> Result<bool, FilesError> { Ok(contains(&children, part)) };
        if has_repository_layout(has)? {
            return Err(if folder == *top {
                FilesError::repository(top)
            } else {
                FilesError::holds_host_file(top, &folder, A_REPOSITORY)
            });
        }
        for (name, entry) in &children {
            let what = protected(name);
            if what.is_none() && !matches!(entry, EntryInfo::Folder { .. }) {
                continue;
            }
            let path = folder.child(name, Intent::Write)?;
            match what {
                Some(what) => return Err(FilesError::holds_host_file(top, &path, what)),
                None => folders.push(path),
            }
        }
        check_folder(&folder, &children)?;
    }
    Ok(())
}

/// Returns a noun for an entry that must stay in its folder because of its name, or `None` if the
/// name is an ordinary one.
fn protected(name: &str) -> Option<&'static str> {
    if is_repository(name) {
        return Some(A_REPOSITORY);
    }
    is_project_file(name).then_some("a project file")
}

/// Returns true if one of the entries has this name, in any spelling.
fn contains(children: &[Child], name: &str) -> bool {
    children.iter().any(|(child, _)| is_named(child, name))
}
