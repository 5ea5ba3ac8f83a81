//! What an overlay holds, as text, so that another process can go on with it: after each step what has changed since the last one.
//!
//! The text is a JSON array of `[path, node]`, the node null where the overlay has none any more. A path comes before those below it, and a
//! node brings along all that lies below it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Files;
use super::error::FilesError;
use super::layer::{Body, Content, Folder, Layer, Node};
use super::path::RunPath;
use super::view::Store;

/// One change: a path from the top, and what the overlay has there now.
type Change<N> = (String, Option<N>);

impl Files {
    /// What has changed in the overlay since this was asked last, for [`restore`](Files::restore); `None` where nothing has, and in a run
    /// that writes through.
    #[must_use]
    pub fn changed(&self) -> Option<String> {
        let Store::Overlay { layer, .. } = &mut *self.lock() else { return None };
        let changed = layer.take_changed();
        if changed.is_empty() {
            return None;
        }
        let changes: Vec<Change<&Node>> =
            changed.iter().map(|path| (path.as_str().to_owned(), layer.node(path))).collect();
        serde_json::to_string(&changes).ok()
    }

    /// Lets [`changed`](Files::changed) give next all that the overlay holds, for somebody who begins with nothing.
    pub fn keep_all(&self) {
        if let Store::Overlay { layer, .. } = &mut *self.lock()
            && layer.used() > 0
        {
            layer.changed.insert(RunPath::top());
        }
    }

    /// Takes up what [`changed`](Files::changed) gave, in the order in which it was given, over the same base.
    ///
    /// # Errors
    /// Where the text is no such thing.
    pub fn restore(&self, changes: &str) -> Result<(), FilesError> {
        let Store::Overlay { layer, .. } = &mut *self.lock() else { return Ok(()) };
        let changes: Vec<Change<Node>> = serde_json::from_str(changes).map_err(|_| FilesError::not_kept())?;
        for (path, node) in changes {
            let path = if path.is_empty() {
                RunPath::top()
            } else {
                let path = RunPath::parse(&path).map_err(|_| FilesError::not_kept())?;
                if path.names().any(|name| name == "..") {
                    return Err(FilesError::not_kept());
                }
                path
            };
            layer.restore(&path, node);
        }
        layer.settle();
        Ok(())
    }

    /// Whether what the run writes is kept in memory, and gone with the process.
    #[must_use]
    pub fn is_overlay(&self) -> bool {
        matches!(&*self.lock(), Store::Overlay { .. })
    }
}

impl Layer {
    /// The topmost paths of what has changed since the last time.
    fn take_changed(&mut self) -> BTreeSet<RunPath> {
        let mut top: BTreeSet<RunPath> = BTreeSet::new();
        for path in std::mem::take(&mut self.changed) {
            if !path.steps().chain([RunPath::top()]).any(|above| above != path && top.contains(&above)) {
                top.insert(path);
            }
        }
        top
    }

    fn restore(&mut self, path: &RunPath, node: Option<Node>) {
        match (path.split(), node) {
            (None, Some(node)) => self.root = node,
            (None, None) => self.clear(),
            (Some(_), None) => self.take(path),
            (Some((parent, name)), Some(node)) => {
                if let Some(Node { body: Body::Folder(Folder { children, .. }), .. }) = self.node_mut(&parent) {
                    children.insert(name.to_owned(), node);
                }
            }
        }
    }

    /// Takes what it holds now for what it held from the beginning.
    fn settle(&mut self) {
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
        base64::prelude::BASE64_STANDARD.decode(text).map(Content::new).map_err(serde::de::Error::custom)
    }
}

/// A hash as its digits.
pub(super) mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(hash: &blake3::Hash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hash.to_hex())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<blake3::Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)
    }
}

/// A hash as its digits, where there is one.
pub(super) mod some_hex {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(hash: &Option<blake3::Hash>, serializer: S) -> Result<S::Ok, S::Error> {
        hash.map(|hash| hash.to_hex().to_string()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<blake3::Hash>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OVERLAY_LIMIT;

    fn over(dir: &std::path::Path) -> Files {
        Files::overlay(Some(Files::open_base(dir).unwrap()), OVERLAY_LIMIT)
    }

    /// Every kind of change, taken up step by step, gives the same files and the same changes as the first process saw.
    #[test]
    fn another_process_goes_on_with_the_same_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("old/deep")).unwrap();
        std::fs::write(dir.path().join("old/deep/a.txt"), "a").unwrap();
        std::fs::write(dir.path().join("b.txt"), "b").unwrap();
        let files = over(dir.path());
        let mut kept = Vec::new();
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
            kept.extend(files.changed());
            let again = over(dir.path());
            kept.iter().for_each(|changes| again.restore(changes).unwrap());
            assert_eq!(again.changes().unwrap(), files.changes().unwrap());
            assert_eq!(again.used(), files.used());
            assert_eq!(again.changed(), None);
            assert_eq!(again.read("b.txt").unwrap(), files.read("b.txt").unwrap());
        }
        assert_eq!(kept.len(), steps.len() - 1, "a step that changes nothing keeps nothing");

        files.keep_all();
        let whole = over(dir.path());
        whole.restore(&files.changed().unwrap()).unwrap();
        assert_eq!(whole.changes().unwrap(), files.changes().unwrap());

        let again = over(dir.path());
        kept.iter().for_each(|changes| again.restore(changes).unwrap());
        std::fs::write(dir.path().join("b.txt"), "somebody else's").unwrap();
        let told = again.apply().unwrap_err().to_string();
        assert!(told.contains("b.txt"), "a conflict with what the first process saw is found: {told}");
    }

    #[test]
    fn what_is_no_such_text_is_refused() {
        let files = Files::overlay(None, OVERLAY_LIMIT);
        for text in ["", "{}", "[[1,null]]", r#"[["a",{"body":{"File":{"content":"%"}}}]]"#] {
            assert!(files.restore(text).is_err(), "{text}");
        }
        files.restore(r#"[["../b",null]]"#).unwrap_err();
    }
}
