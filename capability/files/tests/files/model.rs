//! Performs random operations on a simple model, on an overlay, and in a write-through run. Each
//! operation must either succeed in all three or fail in all three, and result in the same tree.
//! The overlay and the write-through run must list the same changes, and applying the overlay's
//! changes must create the same tree on disk.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wattle_files::{Files, OVERLAY_LIMIT};

use crate::common::{Tree, base, tree, view};

#[derive(Clone, Debug)]
enum Op {
    Write(String, Vec<u8>),
    Append(String, Vec<u8>),
    WriteAt(String, u64, Vec<u8>),
    Truncate(String, u64),
    Mkdir(String),
    Remove(String),
    RemoveAll(String),
    Rename(String, String),
}

/// The contents of files by path. `None` stands for a folder. The map does not contain the root.
#[derive(Clone, Debug, Default)]
struct Model(BTreeMap<String, Option<Vec<u8>>>);

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Model {
    fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || matches!(self.0.get(path), Some(None))
    }

    fn has_children(&self, path: &str) -> bool {
        self.0.keys().any(|key| key.starts_with(&format!("{path}/")))
    }

    fn make_folders(&mut self, path: &str) -> bool {
        if path.is_empty() {
            return true;
        }
        match self.0.get(path) {
            Some(None) => true,
            Some(Some(_)) => false,
            None => {
                if !self.make_folders(parent(path)) {
                    return false;
                }
                self.0.insert(path.to_owned(), None);
                true
            }
        }
    }

    fn edit(&mut self, path: &str, make: bool, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let fresh = !self.0.contains_key(path);
        if self.is_folder(path) || (fresh && !(make && self.clone().make_folders(parent(path)))) {
            return false;
        }
        self.make_folders(parent(path));
        match self.0.entry(path.to_owned()).or_insert_with(|| Some(Vec::new())) {
            Some(data) => change(data),
            None => return false,
        }
        true
    }

    /// Performs an operation. Returns true if it succeeded; a failed operation changes nothing.
    fn apply(&mut self, op: &Op) -> bool {
        match op {
            Op::Write(path, data) => self.edit(path, true, |old| data.clone_into(old)),
            Op::Append(path, data) => self.edit(path, true, |old| old.extend(data)),
            Op::WriteAt(path, at, data) => self.edit(path, true, |old| {
                let at = *at as usize;
                if !data.is_empty() {
                    old.resize(old.len().max(at + data.len()), 0);
                    old[at..at + data.len()].copy_from_slice(data);
                }
            }),
            Op::Truncate(path, size) => self.edit(path, false, |old| old.resize(*size as usize, 0)),
            Op::Mkdir(path) => self.clone().make_folders(path) && self.make_folders(path),
            Op::Remove(path) => !self.has_children(path) && self.0.remove(path).is_some(),
            Op::RemoveAll(path) => {
                self.0.retain(|key, _| !key.starts_with(&format!("{path}/")));
                self.0.remove(path).is_some()
            }
            Op::Rename(from, to) => {
                let Some(moved) = self.0.get(from).cloned() else { return false };
                if from == to {
                    return true;
                }
                if to.starts_with(&format!("{from}/")) {
                    return false;
                }
                let fits = match self.0.get(to) {
                    None => self.clone().make_folders(parent(to)),
                    Some(None) => moved.is_none() && !self.has_children(to),
                    Some(Some(_)) => moved.is_some(),
                };
                if !fits {
                    return false;
                }
                self.make_folders(parent(to));
                let below = format!("{from}/");
                let all: Vec<String> = self
                    .0
                    .keys()
                    .filter(|key| *key == from || key.starts_with(&below))
                    .cloned()
                    .collect();
                for old in all {
                    let node = self.0.remove(&old).unwrap();
                    self.0.insert(format!("{to}{}", &old[from.len()..]), node);
                }
                true
            }
        }
    }

    fn tree(&self) -> Tree {
        let mark = |(path, node): (&String, &Option<Vec<u8>>)| match node {
            None => (format!("{path}/"), None),
            Some(data) => (path.clone(), Some(data.clone())),
        };
        self.0.iter().map(mark).collect()
    }

    fn lay_out(&self, top: &std::path::Path) {
        for (path, node) in &self.0 {
            match node {
                None => std::fs::create_dir(top.join(path)).unwrap(),
                Some(data) => std::fs::write(top.join(path), data).unwrap(),
            }
        }
    }
}

fn carry_out(files: &Files, op: &Op) -> Result<(), wattle_files::FilesError> {
    match op {
        Op::Write(path, data) => files.write(path, data),
        Op::Append(path, data) => files.append(path, data),
        Op::WriteAt(path, at, data) => files.write_at(path, *at, data),
        Op::Truncate(path, size) => files.truncate(path, *size),
        Op::Mkdir(path) => files.mkdir(path),
        Op::Remove(path) => files.remove(path),
        Op::RemoveAll(path) => files.remove_all(path),
        Op::Rename(from, to) => files.rename(from, to),
    }
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "a-"]), 1..4)
        .prop_map(|names| names.join("/"))
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec![&b""[..], b"x", b"yy", b"yz", b"long words"]).prop_map(<[u8]>::to_vec)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (path(), data()).prop_map(|(path, data)| Op::Write(path, data)),
        2 => (path(), data()).prop_map(|(path, data)| Op::Append(path, data)),
        1 => (path(), 0..6u64, data()).prop_map(|(path, at, data)| Op::WriteAt(path, at, data)),
        1 => (path(), 0..6u64).prop_map(|(path, size)| Op::Truncate(path, size)),
        3 => path().prop_map(Op::Mkdir),
        2 => path().prop_map(Op::Remove),
        2 => path().prop_map(Op::RemoveAll),
        4 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn overlay_and_write_through_agree_with_the_model(
        first in prop::collection::vec(op(), 0..12),
        then in prop::collection::vec(op(), 1..24),
        last in prop::collection::vec(op(), 0..6),
    ) {
        let mut model = Model::default();
        for op in &first {
            model.apply(op);
        }
        let (under, through_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        model.lay_out(under.path());
        model.lay_out(through_dir.path());
        let start = tree(under.path());
        let overlay = Files::overlay(Some(base(&under)), OVERLAY_LIMIT);
        let through = Files::write_through(base(&through_dir));
        for op in &then {
            let done = model.apply(op);
            let results = [carry_out(&overlay, op), carry_out(&through, op)];
            for result in &results {
                prop_assert_eq!(result.is_ok(), done, "{:?}: {:?}", op, result);
            }
            if let [Err(a), Err(b)] = &results {
                prop_assert_eq!(a.to_string(), b.to_string(), "{:?}", op);
            }
            prop_assert_eq!(&view(&overlay), &model.tree(), "overlay after {:?}", op);
            prop_assert_eq!(&view(&through), &model.tree(), "write-through after {:?}", op);
            prop_assert_eq!(
                overlay.changes().unwrap(),
                through.changes().unwrap(),
                "changes after {:?}",
                op
            );
        }
        prop_assert_eq!(&tree(under.path()), &start, "the base is untouched");
        let listed = overlay.changes().unwrap();
        prop_assert_eq!(overlay.apply().unwrap(), listed);
        prop_assert_eq!(&tree(under.path()), &model.tree());
        prop_assert_eq!(&tree(through_dir.path()), &model.tree());
        prop_assert_eq!(overlay.used(), 0);
        // The run can continue and apply its changes again.
        for op in &last {
            let done = model.apply(op);
            prop_assert_eq!(carry_out(&overlay, op).is_ok(), done, "{:?}", op);
        }
        overlay.apply().unwrap();
        prop_assert_eq!(&tree(under.path()), &model.tree());
    }

    #[test]
    fn the_memory_is_counted_to_the_last_byte(ops in prop::collection::vec(op(), 1..40)) {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        let mut model = Model::default();
        for op in &ops {
            model.apply(op);
            let _ = carry_out(&files, op);
        }
        prop_assert_eq!(&view(&files), &model.tree());
        let cost: usize = model.0.iter().map(|(path, node)| {
            256 + path.rsplit('/').next().unwrap().len() + node.as_ref().map_or(0, Vec::len)
        }).sum();
        prop_assert_eq!(files.used(), cost as u64);
        for name in ["a", "b", "c", "a-"] {
            let _ = files.remove_all(name);
        }
        prop_assert_eq!(files.used(), 0);
    }
}
