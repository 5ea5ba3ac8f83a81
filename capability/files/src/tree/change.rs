//! The rules for changes to a tree. Each function takes a resolved path, checks that the change is
//! allowed, and passes it to the tree.

use std::time::SystemTime;

use super::contents;
use super::lookup::{check_parents, missing, similar_names};
use super::{Edit, OpenFile, Tree};
use crate::base::EntryInfo;
use crate::error::FilesError;
use crate::path::{Intent, RunPath};

/// Writes a whole file.
pub(crate) fn write(tree: &mut dyn Tree, path: &RunPath, data: &[u8]) -> Result<(), FilesError> {
    file_size(tree, path)?;
    tree.write_file(path, data)
}

/// Changes part of a file and returns the file's new size.
pub(crate) fn edit(tree: &mut dyn Tree, path: &RunPath, edit: Edit<'_>) -> Result<u64, FilesError> {
    let old = file_size(tree, path)?;
    if old.is_none() && matches!(edit, Edit::Truncate(_)) {
        return Err(missing(tree, path));
    }
    let old = old.unwrap_or(0);
    tree.edit_file(path, old, edit)?;
    Ok(edit.new_size(old))
}

/// Opens an existing file for writing.
pub(crate) fn open(tree: &mut dyn Tree, path: &RunPath) -> Result<OpenFile, FilesError> {
    if file_size(tree, path)?.is_none() {
        return Err(missing(tree, path));
    }
    tree.open_for_writing(path)
}

/// Creates a link at `path`, which is the result of resolving `text`.
pub(crate) fn create_link(
    tree: &mut dyn Tree,
    target: &str,
    path: &RunPath,
    text: &str,
) -> Result<(), FilesError> {
    if tree.entry(path, Intent::Write)? != EntryInfo::Absent {
        return Err(FilesError::already_exists(path));
    }
    if text.ends_with('/') {
        return Err(FilesError::names_a_folder(text));
    }
    check_parents(tree, path)?;
    check_leads_to_no_host_file(tree, path)?;
    let target =
        path.link_to(target).map_err(|fault| FilesError::path(Intent::Write, target, fault))?;
    tree.create_link(path, &target)
}

/// Creates an empty file at `path`, which is the result of resolving `text`.
pub(crate) fn create_file(
    tree: &mut dyn Tree,
    path: &RunPath,
    text: &str,
) -> Result<(), FilesError> {
    check_vacant(tree, path)?;
    if text.ends_with('/') {
        return Err(FilesError::names_a_folder(text));
    }
    tree.create_file(path)
}

/// Creates a folder. The folder must not exist yet, and its parent must exist.
pub(crate) fn create_folder(tree: &mut dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    check_vacant(tree, path)?;
    tree.create_folder(path)
}

/// Creates a folder and its missing parents, unless the folder exists.
pub(crate) fn create_folders(tree: &mut dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    match tree.entry(path, Intent::Write)? {
        EntryInfo::Folder { .. } => return Ok(()),
        EntryInfo::File { .. } | EntryInfo::Link(_) => return Err(FilesError::file_exists(path)),
        EntryInfo::Other(what) => return Err(FilesError::special(Intent::Write, path, what)),
        EntryInfo::Absent => check_parents(tree, path)?,
    };
    tree.create_folder(path)
}

/// Sets a file's modification time.
pub(crate) fn set_modified(
    tree: &mut dyn Tree,
    path: &RunPath,
    time: SystemTime,
) -> Result<(), FilesError> {
    match tree.entry(path, Intent::Write)? {
        EntryInfo::Folder { .. } => return Ok(()),
        EntryInfo::Absent => return Err(missing(tree, path)),
        _ => {}
    }
    // An empty edit copies a file in the base into an overlay. An unmodified copy does not count as
    // a change.
    edit(tree, path, Edit::WriteAt(0, &[]))?;
    tree.set_modified(path, time)
}

/// Removes a file, a link or an empty folder.
pub(crate) fn remove(tree: &mut dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    let entry = check_removable(tree, path, "removed")?;
    if let EntryInfo::Folder { .. } = entry {
        check_empty(tree, path)?;
    }
    tree.remove(path, &entry)
}

/// Removes an entry and everything in it.
pub(crate) fn remove_all(tree: &mut dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    let entry = check_removable(tree, path, "removed")?;
    contents::check_removal(tree, path, &entry)?;
    tree.remove_all(path, &entry)
}

/// Checks that an entry may be moved, but does not search it for repositories and project files.
/// Returns the entry.
pub(crate) fn check_movable(tree: &dyn Tree, from: &RunPath) -> Result<EntryInfo, FilesError> {
    check_removable(tree, from, "moved")
}

/// Moves the entry at `from` to `to`. [`check_movable`] must have returned `entry` for `from`, and
/// `to` is the result of resolving `to_text`.
pub(crate) fn rename(
    tree: &mut dyn Tree,
    from: &RunPath,
    entry: &EntryInfo,
    to: &RunPath,
    to_text: &str,
) -> Result<(), FilesError> {
    if let EntryInfo::Other(what) = entry {
        return Err(FilesError::special(Intent::Write, from, what));
    }
    if from == to {
        return Ok(());
    }
    let is_folder = matches!(entry, EntryInfo::Folder { .. });
    if to.is_top() {
        return Err(FilesError::top("replaced"));
    }
    if to.below(from).is_some() {
        return Err(if is_folder {
            FilesError::into_itself(from, to)
        } else {
            FilesError::not_folder(from)
        });
    }
    check_no_host_files(tree, to)?;
    match tree.entry(to, Intent::Write)? {
        EntryInfo::Absent if to_text.ends_with('/') && !is_folder => {
            return Err(FilesError::names_a_folder(to_text));
        }
        EntryInfo::Absent => {
            check_parents(tree, to)?;
        }
        EntryInfo::Folder { .. } if !is_folder || from.below(to).is_some() => {
            let name = from.split().map(|(_, name)| name).unwrap_or_default();
            return Err(FilesError::folder_exists(to, name));
        }
        EntryInfo::Folder { .. } => check_empty(tree, to)?,
        EntryInfo::File { .. } | EntryInfo::Link(_) if is_folder => {
            return Err(FilesError::file_exists(to));
        }
        EntryInfo::File { .. } | EntryInfo::Link(_) => {}
        EntryInfo::Other(what) => return Err(FilesError::special(Intent::Write, to, what)),
    }
    if is_folder {
        contents::check_move(tree, from, to)?;
    }
    tree.rename(from, to)
}

/// Checks that a file can be written at `path`. Returns its size, or `None` if it does not exist.
pub(crate) fn file_size(tree: &dyn Tree, path: &RunPath) -> Result<Option<u64>, FilesError> {
    match tree.entry(path, Intent::Write)? {
        EntryInfo::File { size, .. } => Ok(Some(size)),
        EntryInfo::Absent => check_parents(tree, path).map(|_| None),
        EntryInfo::Folder { .. } => Err(FilesError::is_folder(Intent::Write, path)),
        EntryInfo::Link(_) => Err(FilesError::link_loop(path)),
        EntryInfo::Other(what) => Err(FilesError::special(Intent::Write, path, what)),
    }
}

/// Checks that nothing exists at `path`, and that the parent folder exists.
fn check_vacant(tree: &dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    if path.is_top() || tree.entry(path, Intent::Write)? != EntryInfo::Absent {
        return Err(FilesError::already_exists(path));
    }
    if check_parents(tree, path)? < path.parents().count() {
        return Err(missing(tree, path));
    }
    Ok(())
}

/// Checks that a folder is empty.
fn check_empty(tree: &dyn Tree, folder: &RunPath) -> Result<(), FilesError> {
    if tree.children(folder, 0, Intent::Write)?.is_some() {
        return Ok(());
    }
    let (names, more) = similar_names(tree, folder, "");
    Err(FilesError::not_empty(folder, &names, more))
}

/// Checks that an entry exists, is not the root, and contains none of the host's own files. Returns
/// the entry. `what` is the past participle in the error message about the root, such as `removed`.
fn check_removable(tree: &dyn Tree, path: &RunPath, what: &str) -> Result<EntryInfo, FilesError> {
    if path.is_top() {
        return Err(FilesError::top(what));
    }
    match tree.entry(path, Intent::Write)? {
        EntryInfo::Absent => Err(missing(tree, path)),
        entry => {
            check_no_host_files(tree, path)?;
            Ok(entry)
        }
    }
}

/// Checks that an entry contains none of the host's own files and is not on the path to one, so
/// that it may be moved, removed or replaced.
fn check_no_host_files(tree: &dyn Tree, entry: &RunPath) -> Result<(), FilesError> {
    tree.base().map_or(Ok(()), |base| base.check_no_host_files(entry))
}

/// Checks that a new link at `path` would not be on the path to one of the host's own files.
fn check_leads_to_no_host_file(tree: &dyn Tree, path: &RunPath) -> Result<(), FilesError> {
    tree.base().map_or(Ok(()), |base| base.check_leads_to_no_host_file(path))
}
