//! The content of an overlay as a string, so that another process can continue with it. A *delta*
//! contains the nodes that changed since the previous delta.
//!
//! The string is a JSON array of `[path, node]` pairs. The node is null if the overlay no longer
//! has a node at the path. A path precedes the paths under it, and a node includes all of its
//! descendants.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Overlay;
use super::layer::{Body, Content, Folder, Layer, Node};
use crate::error::FilesError;
use crate::path::RunPath;

/// A path relative to the workdir's root, and the overlay's node at that path, or `None` if the
/// node is gone.
type NodeChange<N> = (String, Option<N>);

impl Overlay {
    /// Returns the changes since the last call, or `None` if there are none.
    pub(crate) fn take_delta(&mut self) -> Option<String> {
        let changed = self.layer.take_changed();
        if changed.is_empty() {
            return None;
        }
        let changes: Vec<NodeChange<&Node>> =
            changed.iter().map(|path| (path.as_str().to_owned(), self.layer.node(path))).collect();
        serde_json::to_string(&changes).ok()
    }

    /// Marks all nodes as changed, so that the next delta is complete.
    pub(crate) fn mark_all_changed(&mut self) {
        if self.layer.used() > 0 {
            self.layer.changed.insert(RunPath::top());
        }
    }

    /// Applies a delta. If it fails, the overlay must not be used.
    pub(crate) fn restore(&mut self, delta: &str) -> Result<(), FilesError> {
        // The content in a delta is longer than in the overlay.
        let most = self.layer.used().saturating_add(delta.len() as u64);
        self.charged.grow_to(None, most)?;
        let changes: Vec<NodeChange<Node>> =
            serde_json::from_str(delta).map_err(|_| FilesError::bad_delta())?;
        for (path, node) in changes {
            let path = if path.is_empty() {
                RunPath::top()
            } else {
                let path = RunPath::parse(&path).map_err(|_| FilesError::bad_delta())?;
                if path.names().any(|name| name == "..") {
                    return Err(FilesError::bad_delta());
                }
                path
            };
            self.layer.restore(&path, node);
        }
        self.layer.finish_restore();
        self.charged.grow_to(None, self.layer.used())
    }
}

impl Layer {
    /// Removes and returns the changed paths, without those under another changed path.
    fn take_changed(&mut self) -> BTreeSet<RunPath> {
        let mut top: BTreeSet<RunPath> = BTreeSet::new();
        for path in std::mem::take(&mut self.changed) {
            if !path
                .steps()
                .chain([RunPath::top()])
                .any(|above| above != path && top.contains(&above))
            {
                top.insert(path);
            }
        }
        top
    }

    fn restore(&mut self, path: &RunPath, node: Option<Node>) {
        match (path.split(), node) {
            (None, Some(node)) => self.root = node,
            (None, None) => self.clear(),
            (Some(_), None) => self.remove(path),
            (Some((parent, name)), Some(node)) => match self.node_mut(&parent).map(|n| &mut n.body)
            {
                Some(Body::Folder(Folder { children, .. })) => {
                    children.insert(name.to_owned(), node);
                }
                Some(_) => {}
                // The folder left the overlay when it was applied, so it is in the base now.
                None => self.place(path, node, usize::MAX),
            },
        }
    }

    /// Recomputes the cost and marks all nodes as unchanged.
    fn finish_restore(&mut self) {
        self.used = self.root.cost().saturating_sub(Node::new(Body::Gone).cost());
        self.changed.clear();
    }
}

impl Serialize for Content {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::Engine as _;
        serializer.serialize_str(&base64::prelude::BASE64_STANDARD.encode(self.as_ref()))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use base64::Engine as _;
        let text = String::deserialize(deserializer)?;
        base64::prelude::BASE64_STANDARD
            .decode(text)
            .map(Content::new)
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Files, OVERLAY_LIMIT};

    fn over(dir: &std::path::Path) -> Files {
        Files::overlay(Some(Files::open_base(dir).unwrap()), OVERLAY_LIMIT)
    }

    /// Tests that restoring the deltas of every kind of change results in the same files and the
    /// same changes.
    #[test]
    fn another_process_continues_with_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("old/deep")).unwrap();
        std::fs::write(dir.path().join("old/deep/a.txt"), "a").unwrap();
        std::fs::write(dir.path().join("b.txt"), "b").unwrap();
        let files = over(dir.path());
        let mut deltas = Vec::new();
        let steps: &[&dyn Fn()] = &[
            &|| files.write("new/one.bin", &[0, 255]).unwrap(),
            &|| files.append("b.txt", b"more").unwrap(),
            &|| files.append("new/one.bin", b"x").unwrap(),
            &|| files.rename("old", "moved/here").unwrap(),
            &|| files.mkdir("empty/folder").unwrap(),
            &|| files.remove("new/one.bin").unwrap(),
            &|| files.write("old", b"a file now").unwrap(),
            &|| files.remove_all("moved").unwrap(),
            &|| drop(files.read("b.txt").unwrap()),
        ];
        for step in steps {
            step();
            deltas.extend(files.take_delta());
            let restored = over(dir.path());
            deltas.iter().for_each(|changes| restored.restore(changes).unwrap());
            assert_eq!(restored.changes().unwrap(), files.changes().unwrap());
            assert_eq!(restored.used(), files.used());
            assert_eq!(restored.take_delta(), None);
            assert_eq!(restored.read("b.txt").unwrap(), files.read("b.txt").unwrap());
        }
        assert_eq!(deltas.len(), steps.len() - 1, "a step that changes nothing has no delta");

        files.mark_all_changed();
        let whole = over(dir.path());
        whole.restore(&files.take_delta().unwrap()).unwrap();
        assert_eq!(whole.changes().unwrap(), files.changes().unwrap());

        let restored = over(dir.path());
        deltas.iter().for_each(|changes| restored.restore(changes).unwrap());
        std::fs::write(dir.path().join("b.txt"), "somebody else's").unwrap();
        let error = restored.apply().unwrap_err().to_string();
        assert!(error.contains("b.txt"), "the state that the first process saw conflicts: {error}");
    }

    #[test]
    fn a_text_that_is_not_a_delta_is_refused() {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        for text in ["", "{}", "[[1,null]]", r#"[["a",{"body":{"File":{"content":"%"}}}]]"#] {
            assert!(files.restore(text).is_err(), "{text}");
        }
        files.restore(r#"[["../b",null]]"#).unwrap_err();
    }
}
