//! The host's own files, recognized by device and inode. A mount, or a file system that ignores
//! letter case, gives such a file names that the rules for paths do not cover.

use std::fs::FileType;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{HOST_WRITTEN, Owner, Rule};
use crate::REPOSITORY;
use crate::path::RunPath;

/// Maximum number of files in a folder that are recognized by their inodes.
const MAX_FOLDER_FILES: usize = 1_000;

/// Device and inode of an entry.
type Identity = (u64, u64);

/// Existing entries, with their paths on the host.
type Entries = Vec<(Identity, PathBuf)>;

#[derive(Default)]
pub(super) struct Inodes {
    hidden: Entries,
    protected: Entries,
    /// The repository in the root of the workdir, and the entries in it.
    repository: Entries,
    /// The root of the workdir, and the entries in it on the paths of the host's own files.
    places: Vec<(Identity, RunPath)>,
}

impl Inodes {
    /// Reads the inodes of the existing files that the rules for the workdir at `top` protect.
    /// Includes the files in a folder, because they may have hard links elsewhere.
    pub(super) fn read(rules: &[Rule], top: &Path) -> Inodes {
        let mut inodes = Inodes::default();
        for (name, _) in HOST_WRITTEN {
            let path = top.join(name);
            if path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                add(&path, &mut inodes.protected);
            }
        }
        add_with_entries(&top.join(REPOSITORY), &mut inodes.repository);
        for rule in rules {
            let list = if rule.file.hidden { &mut inodes.hidden } else { &mut inodes.protected };
            if rule.loads.is_some() {
                // Neither the workdir nor the other entries of the folder are protected.
                let is_loaded = |path: &Path, kind: FileType| {
                    kind.is_file() && rule.file.has_loaded_extension(path)
                };
                add_entries(&rule.file.path, is_loaded, list);
            } else {
                add_with_entries(&rule.file.path, list);
            }
        }
        inodes.add_place(top, &RunPath::top());
        let paths = rules.iter().flat_map(|rule| rule.paths.iter().chain(&rule.passed));
        for place in paths.flat_map(RunPath::steps) {
            inodes.add_place(top, &place);
        }
        inodes
    }

    fn add_place(&mut self, top: &Path, place: &RunPath) {
        if self.places.iter().any(|(_, known)| known == place) {
            return;
        }
        if let Ok(meta) = std::fs::symlink_metadata(top.join(place.as_str())) {
            self.places.push(((meta.dev(), meta.ino()), place.clone()));
        }
    }

    pub(super) fn hides(&self, identity: Identity) -> bool {
        contains(&self.hidden, identity)
    }

    pub(super) fn hides_any(&self) -> bool {
        !self.hidden.is_empty()
    }

    pub(super) fn owner(&self, identity: Identity) -> Option<Owner> {
        let owners = [
            (&self.hidden, Owner::Hidden),
            (&self.protected, Owner::Protected),
            (&self.repository, Owner::Repository),
        ];
        owners.into_iter().find(|(list, _)| contains(list, identity)).map(|(_, owner)| owner)
    }

    pub(super) fn places(&self, identity: Identity) -> impl Iterator<Item = &RunPath> {
        self.places.iter().filter(move |(known, _)| *known == identity).map(|(_, path)| path)
    }
}

/// Returns true if one of the entries has this inode. The inode may have been reused for a file
/// that a run created, so the entry's path is looked up again.
fn contains(entries: &[(Identity, PathBuf)], identity: Identity) -> bool {
    let is_current = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == identity)
    };
    entries.iter().any(|(known, path)| *known == identity && is_current(path))
}

/// Adds the inode of an entry. Returns true if the entry is a folder, and `None` if it does not
/// exist.
fn add(path: &Path, inodes: &mut Entries) -> Option<bool> {
    let meta = std::fs::metadata(path).ok()?;
    inodes.push(((meta.dev(), meta.ino()), path.to_owned()));
    Some(meta.is_dir())
}

/// Adds the inode of an entry and, if it is a folder, those of its entries.
fn add_with_entries(path: &Path, inodes: &mut Entries) {
    if add(path, inodes) == Some(true) {
        // A folder that is only linked from here does not belong to the host.
        let belongs = |path: &Path, kind: FileType| !kind.is_symlink() || path.is_file();
        add_entries(path, belongs, inodes);
    }
}

/// Adds the inodes of the entries of a folder for which `filter` returns true. `filter` receives
/// the path and the type of the entry.
fn add_entries(folder: &Path, filter: impl Fn(&Path, FileType) -> bool, inodes: &mut Entries) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let chosen = entries.filter_map(|entry| {
        let path = entry.path();
        entry.file_type().is_ok_and(|kind| filter(&path, kind)).then_some(path)
    });
    for path in chosen.take(MAX_FOLDER_FILES) {
        add(&path, inodes);
    }
}
