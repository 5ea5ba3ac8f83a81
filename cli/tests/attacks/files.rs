//! The folders of an attack, and the changes in them.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wattle_cases::guests::SharedGuests;

use crate::format::Row;
use crate::text::Values;

/// The secret that no attack may read.
pub(crate) const CANARY: &str = "CANARY-7f3a";

/// A home directory, a workdir, and a folder outside both. They are removed after the attack.
pub(crate) struct Place(tempfile::TempDir);

/// Returns the compiled guests that tests share.
pub(crate) fn guests() -> SharedGuests {
    SharedGuests::in_target()
}

impl Drop for Place {
    fn drop(&mut self) {
        guests().keep(&self.at("home"));
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for name in ["home", "work", "outside"] {
            std::fs::create_dir(place.at(name)).unwrap();
        }
        std::fs::write(place.at("outside/secret.txt"), CANARY).unwrap();
        guests().lend(&place.at("home"));
        place
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Creates the files, links and private folders that a row defines.
    pub(crate) fn fill(&self, row: &Row, values: &Values) {
        for (folder, files) in [("work", &row.files), ("home", &row.home)] {
            for (path, text) in files {
                let path = self.at(folder).join(values.text(path));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, values.bytes(text)).unwrap();
            }
        }
        for (path, target) in &row.links {
            let path = self.at("work").join(values.text(path));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(values.text(target), path).unwrap();
        }
        for path in &row.private {
            let path = self.at("work").join(values.text(path));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
    }

    /// Returns the paths and contents of the files that must not change: those in the workdir, the
    /// configuration and the outside folder.
    pub(crate) fn state(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut state = BTreeMap::new();
        for folder in ["work", "home/.config", "outside"] {
            walk(self.0.path(), Path::new(folder), &mut state);
        }
        state
    }

    /// Compares the current state with an earlier one. Returns the faults: files that have changed
    /// and do not match `changed`, and files that now contain the secret.
    pub(crate) fn faults(
        &self,
        before: &BTreeMap<PathBuf, Vec<u8>>,
        changed: &[String],
    ) -> Vec<String> {
        let after = self.state();
        let mut paths: Vec<&PathBuf> = before.keys().chain(after.keys()).collect();
        paths.sort();
        paths.dedup();
        let mut faults = Vec::new();
        for path in paths {
            if before.get(path) != after.get(path) && !may_change(path, changed) {
                faults.push(format!("`{}` changed", path.display()));
            }
            let holds = after.get(path).is_some_and(|bytes| contains(bytes, CANARY.as_bytes()));
            if holds && !before.get(path).is_some_and(|bytes| contains(bytes, CANARY.as_bytes())) {
                faults.push(format!("`{}` has the secret from outside", path.display()));
            }
        }
        faults
    }
}

fn may_change(path: &Path, changed: &[String]) -> bool {
    let Ok(path) = path.strip_prefix("work") else { return false };
    changed.iter().any(|glob| matches(glob.as_bytes(), path.as_os_str().as_bytes()))
}

/// Returns true if the glob matches the path: `*` matches any string without `/`, and `**` matches
/// any string.
fn matches(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=path.len()).any(|at| matches(rest, &path[at..])),
        [b'*', rest @ ..] => {
            let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
            (0..=end).any(|at| matches(rest, &path[at..]))
        }
        [first, rest @ ..] => path.first() == Some(first) && matches(rest, &path[1..]),
    }
}

pub(crate) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    assert!(!part.is_empty(), "an attack expects an empty text");
    memchr::memmem::find(bytes, part).is_some()
}

/// Collects the content of each file and the target of each link under a folder.
fn walk(top: &Path, folder: &Path, state: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(top.join(folder)) else { return };
    for entry in entries {
        let path = folder.join(entry.unwrap().file_name());
        let full = top.join(&path);
        let kind = full.symlink_metadata().unwrap().file_type();
        if kind.is_dir() {
            walk(top, &path, state);
        } else if kind.is_symlink() {
            state.insert(path, full.read_link().unwrap().as_os_str().as_bytes().to_vec());
        } else if kind.is_file() {
            state.insert(path, std::fs::read(full).unwrap_or_default());
        }
    }
}

#[test]
fn globs_match_paths() {
    assert!(matches(b"a/*.txt", b"a/b.txt") && !matches(b"*", b"a/b") && matches(b"**", b"a/b"));
}
