//! Tests that discarding changes shows the base's entries again and leaves all other changes as
//! they are.

use std::path::Path;

use proptest::prelude::*;
use wattle_files::{ErrorKind, Files, OVERLAY_LIMIT};

use crate::common::{Tree, base, tree, view};

/// The files of the base.
const FILES: &[&str] = &["a/b/c", "a/b/d", "a/e", "f"];
/// The paths that random operations and discards use.
const PATHS: &[&str] = &["a", "a/b", "a/b/c", "a/b/d", "a/b/n", "a/e", "a/n", "f", "f/n", "n"];

/// A random operation. Each field is the index of a path in [`PATHS`].
#[derive(Clone, Debug)]
enum Op {
    Write(usize),
    Mkdir(usize),
    Remove(usize),
    Move(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let path = || 0..PATHS.len();
    prop_oneof![
        path().prop_map(Op::Write),
        path().prop_map(Op::Mkdir),
        path().prop_map(Op::Remove),
        (path(), path()).prop_map(|(from, to)| Op::Move(from, to)),
    ]
}

fn write_base(top: &Path) {
    for path in FILES {
        let path = top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "base").unwrap();
    }
}

/// Returns true if the key of a tree's entry denotes `path` or an entry under it.
fn is_at(key: &str, path: &str) -> bool {
    let rest = key.trim_end_matches(['/', '@']).strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the tree that a run sees after it has discarded its changes at `path`. `seen` is the
/// tree that it saw before, and `disk` is the base.
fn expected(seen: &Tree, disk: &Tree, path: &str) -> Tree {
    let parent = path.rsplit_once('/').map(|(parent, _)| format!("{parent}/"));
    if parent.is_some_and(|parent| !seen.contains_key(&parent)) {
        return seen.clone();
    }
    let kept = seen.iter().filter(|(key, _)| !is_at(key, path));
    let shown = disk.iter().filter(|(key, _)| is_at(key, path));
    kept.chain(shown).map(|(key, data)| (key.clone(), data.clone())).collect()
}

#[test]
fn a_discarded_change_in_a_replaced_folder_stays_in_the_base() {
    let dir = tempfile::tempdir().unwrap();
    write_base(dir.path());
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.remove_all("a").unwrap();
    files.write("a/new", b"run").unwrap();

    files.discard("a/e").unwrap();
    assert_eq!(files.read("a/e").unwrap(), "base");
    files.apply().unwrap();
    assert_eq!(std::fs::read(dir.path().join("a/e")).unwrap(), b"base");
    assert_eq!(std::fs::read(dir.path().join("a/new")).unwrap(), b"run");
    assert!(!dir.path().join("a/b").exists());
}

#[test]
fn a_replaced_folder_is_discarded_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    write_base(dir.path());
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.remove_all("a").unwrap();
    files.mkdir("a").unwrap();

    files.discard("a").unwrap();
    assert!(files.changes().unwrap().is_empty());
    assert_eq!(view(&files), tree(dir.path()));
}

#[test]
fn a_change_is_not_discarded_in_a_replaced_folder_that_somebody_changed() {
    let dir = tempfile::tempdir().unwrap();
    write_base(dir.path());
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.remove_all("a").unwrap();
    files.mkdir("a").unwrap();
    std::fs::write(dir.path().join("a/b/c"), "the user's words").unwrap();

    assert_eq!(files.discard("a/e").unwrap_err().kind(), ErrorKind::Conflict);
    assert!(files.list("a").unwrap().is_empty());
    files.discard("a").unwrap();
    assert_eq!(files.read("a/b/c").unwrap(), "the user's words");
}

#[test]
fn nothing_is_discarded_outside_of_the_path() {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    files.write("a/b", b"1").unwrap();
    files.write("ab", b"2").unwrap();
    files.discard("a/b/c").unwrap();
    files.discard("none/deeper").unwrap();
    files.discard("../a").unwrap_err();
    assert_eq!(files.changes().unwrap().len(), 3);
    files.discard("a").unwrap();
    assert_eq!(view(&files).into_keys().collect::<Vec<_>>(), ["ab"]);
    files.discard("/").unwrap();
    assert_eq!((files.changes().unwrap().len(), files.used()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn discarded_changes_leave_the_base_and_all_others_stay(
        ops in prop::collection::vec(op(), 1..16),
        discarded in prop::collection::vec(0..PATHS.len(), 1..4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        write_base(dir.path());
        let disk = tree(dir.path());
        let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
        for op in ops {
            // An operation that is not possible changes nothing.
            drop(match op {
                Op::Write(path) => files.write(PATHS[path], b"run"),
                Op::Mkdir(path) => files.mkdir(PATHS[path]),
                Op::Remove(path) => files.remove_all(PATHS[path]),
                Op::Move(from, to) => files.rename(PATHS[from], PATHS[to]),
            });
        }
        let mut deltas: Vec<String> = files.take_delta().into_iter().collect();
        for path in discarded {
            let wanted = expected(&view(&files), &disk, PATHS[path]);
            files.discard(PATHS[path]).unwrap();
            prop_assert_eq!(view(&files), wanted, "{}", PATHS[path]);
        }
        deltas.extend(files.take_delta());
        let restored = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
        deltas.iter().for_each(|delta| restored.restore(delta).unwrap());
        prop_assert_eq!(restored.changes().unwrap(), files.changes().unwrap());
        prop_assert_eq!(restored.used(), files.used());

        let wanted = view(&files);
        files.apply().unwrap();
        prop_assert_eq!(tree(dir.path()), wanted);
    }
}
