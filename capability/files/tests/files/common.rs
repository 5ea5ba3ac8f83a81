//! Helpers for the tests of the run's files.

use std::collections::BTreeMap;
use std::path::Path;

use wattle_files::{Base, Change, ChangeKind, EntryKind, Files};

/// The contents of a tree's entries, by path. The path of a folder ends in `/`, and its content is
/// `None`. The path of a link ends in `@`, and its content is the link's target.
pub(crate) type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// Returns all entries under a folder on the host.
pub(crate) fn tree(top: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
            let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                tree.insert(format!("{name}/"), None);
                folders.push(path);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                tree.insert(
                    format!("{name}@"),
                    Some(target.to_string_lossy().into_owned().into_bytes()),
                );
            } else if kind.is_file() {
                tree.insert(name, Some(std::fs::read(&path).unwrap()));
            } else {
                tree.insert(format!("{name}?"), None);
            }
        }
    }
    tree
}

/// Returns all entries that a run sees.
pub(crate) fn view(files: &Files) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in files.list(&format!("/{folder}")).unwrap() {
            let path = format!("{folder}{}", entry.name);
            match entry.kind {
                EntryKind::Folder => {
                    tree.insert(format!("{path}/"), None);
                    folders.push(format!("{path}/"));
                }
                EntryKind::File => {
                    let data = files.read(&path).unwrap();
                    assert_eq!(data.len() as u64, entry.size, "{path}");
                    tree.insert(path, Some(data.to_vec()));
                }
                EntryKind::Link => {
                    let target = files.read_link(&path).unwrap();
                    tree.insert(format!("{path}@"), Some(target.into_bytes()));
                }
                EntryKind::Other => drop(tree.insert(format!("{path}?"), None)),
            }
        }
    }
    tree
}

pub(crate) fn base(dir: &tempfile::TempDir) -> Base {
    Files::open_base(dir.path()).unwrap()
}

/// Returns the names in a folder. Names of folders end in `/`, of links in `@`, and of special
/// files in `?`.
pub(crate) fn names(files: &Files, path: &str) -> Vec<String> {
    let mark = |kind| match kind {
        EntryKind::Folder => "/",
        EntryKind::Link => "@",
        EntryKind::File => "",
        EntryKind::Other => "?",
    };
    files
        .list(path)
        .unwrap()
        .iter()
        .map(|entry| format!("{}{}", entry.name, mark(entry.kind)))
        .collect()
}

pub(crate) fn kinds(changes: &[Change]) -> Vec<(&str, ChangeKind)> {
    changes.iter().map(|change| (change.path.as_str(), change.kind)).collect()
}
