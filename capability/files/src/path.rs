//! Paths in the run's files. A path cannot name anything outside these files.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wattle_lang::Target;

use crate::error::FilesError;

/// Maximum size of a path in bytes: the operating system's limit, minus the final NUL.
const MAX_PATH: usize = 4095;
/// Maximum size of a name in bytes, as in common file systems.
const MAX_NAME: usize = 255;
/// Maximum number of names in a path. It bounds the depth of every recursion over a tree of
/// folders.
const MAX_DEPTH: usize = 256;

/// A reason why a string is not a valid path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathFault {
    Empty,
    Nul,
    Escapes,
    PathTooLong,
    NameTooLong,
    TooDeep,
}

/// The purpose of an operation on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Read,
    Write,
}

impl Intent {
    pub(crate) fn of(target: Target) -> Intent {
        if target == Target::Read { Intent::Read } else { Intent::Write }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Intent::Read => "read",
            Intent::Write => "write",
        }
    }
}

/// A path relative to the workdir's root: names joined by `/`, without a leading or trailing `/`.
/// The root is the empty string.
///
/// Invariant: no name is empty, `.` or `..`, no name contains `/` or NUL, and the path satisfies
/// the limits on size and depth. `..` is resolved in the string, before any link is followed, so a
/// path that leads above the root is rejected without a lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RunPath(String);

impl RunPath {
    /// Returns the path of the workdir's root.
    pub(crate) const fn top() -> RunPath {
        RunPath(String::new())
    }

    /// Parses a path that a program or a model wrote. Relative and absolute paths both start at the
    /// root of the workdir. Resolves `.`, `..` and repeated `/`.
    pub(crate) fn parse(text: &str) -> Result<RunPath, PathFault> {
        if text.is_empty() {
            return Err(PathFault::Empty);
        }
        if text.contains('\0') {
            return Err(PathFault::Nul);
        }
        let mut names: Vec<&str> = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop().ok_or(PathFault::Escapes)?;
                }
                _ if name.len() > MAX_NAME => return Err(PathFault::NameTooLong),
                _ => names.push(name),
            }
        }
        if names.len() > MAX_DEPTH {
            return Err(PathFault::TooDeep);
        }
        let joined = names.join("/");
        if joined.len() > MAX_PATH { Err(PathFault::PathTooLong) } else { Ok(RunPath(joined)) }
    }

    /// Returns the path of the entry `name` in this folder. Rejects invalid names, including `..`.
    pub(crate) fn join(&self, name: &str) -> Result<RunPath, PathFault> {
        match name {
            "" | "." => return Err(PathFault::Empty),
            ".." => return Err(PathFault::Escapes),
            _ if name.len() > MAX_NAME => return Err(PathFault::NameTooLong),
            _ if name.contains('\0') => return Err(PathFault::Nul),
            _ if name.contains('/') => return Err(PathFault::Escapes),
            _ => {}
        }
        if self.is_top() {
            return Ok(RunPath(name.to_owned()));
        }
        if self.0.len() + 1 + name.len() > MAX_PATH {
            return Err(PathFault::PathTooLong);
        }
        if self.depth() >= MAX_DEPTH {
            return Err(PathFault::TooDeep);
        }
        Ok(RunPath(format!("{}/{name}", self.0)))
    }

    /// Returns the path of the entry `name` in this folder, as [`join`](RunPath::join) does, or the
    /// error for this folder.
    pub(crate) fn child(&self, name: &str, intent: Intent) -> Result<RunPath, FilesError> {
        self.join(name).map_err(|fault| FilesError::path(intent, self.as_str(), fault))
    }

    /// Appends names to this path.
    fn join_all<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<RunPath, PathFault> {
        let mut path = self.clone();
        for name in names {
            path = path.join(name)?;
        }
        Ok(path)
    }

    /// Returns the new path of the entry at this path after `from` was moved to `to`. This path
    /// must be `from` or under it.
    pub(crate) fn relocate(&self, from: &RunPath, to: &RunPath) -> Result<RunPath, PathFault> {
        to.join_all(self.below(from).into_iter().flatten())
    }

    /// Returns the target to store in a link at this path. The stored target is relative, with `..`
    /// only at its start, so that every program that follows the link reaches the same entry. An
    /// absolute `target` starts at the root of the workdir.
    pub(crate) fn link_to(&self, target: &str) -> Result<String, PathFault> {
        if target.is_empty() {
            return Err(PathFault::Empty);
        }
        if target.contains('\0') {
            return Err(PathFault::Nul);
        }
        let parent = self.parent().unwrap_or_else(RunPath::top);
        let here: Vec<&str> = parent.names().collect();
        let mut there = if target.starts_with('/') { Vec::new() } else { here.clone() };
        let mut shared = here.len().min(there.len());
        for name in target.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    there.pop().ok_or(PathFault::Escapes)?;
                    shared = shared.min(there.len());
                }
                _ => there.push(name),
            }
        }
        let up = here.iter().skip(shared).map(|_| "..");
        let names: Vec<&str> = up.chain(there.iter().skip(shared).copied()).collect();
        // The path that the link leads to must satisfy the limits that apply to every path.
        RunPath::parse(&format!("/{}", there.join("/")))?;
        Ok(if names.is_empty() { ".".to_owned() } else { names.join("/") })
    }

    /// Returns true if a link with this target stays in the workdir at this path, but would lead
    /// out of it at `to`.
    pub(crate) fn leaves_from(&self, to: &RunPath, target: &str) -> bool {
        self.link_to(target).is_ok() && to.link_to(target) == Err(PathFault::Escapes)
    }

    pub(crate) fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn depth(&self) -> usize {
        self.names().count()
    }

    /// Returns the components of the path, outermost first. The root has none.
    pub(crate) fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Returns the folder that contains the entry and the entry's name in it, or `None` for the
    /// root.
    pub(crate) fn split(&self) -> Option<(RunPath, &str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((RunPath(parent.to_owned()), name)),
            None if self.is_top() => None,
            None => Some((RunPath::top(), &self.0)),
        }
    }

    /// Returns the folder that contains the entry, or `None` for the root.
    pub(crate) fn parent(&self) -> Option<RunPath> {
        self.split().map(|(parent, _)| parent)
    }

    /// Returns the ancestors of the path except the root, outermost first, and then the path
    /// itself.
    pub(crate) fn steps(&self) -> impl Iterator<Item = RunPath> + '_ {
        let ends = self.0.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain((!self.is_top()).then_some(self.0.len()));
        ends.filter_map(|end| self.0.get(..end)).map(|text| RunPath(text.to_owned()))
    }

    /// Returns the ancestors of the path except the root, outermost first.
    pub(crate) fn parents(&self) -> impl Iterator<Item = RunPath> + '_ {
        self.steps().take(self.depth().saturating_sub(1))
    }

    /// Returns the components of this path relative to `folder`, or `None` if the path is neither
    /// `folder` nor under it.
    pub(crate) fn below<'a>(&'a self, folder: &RunPath) -> Option<impl Iterator<Item = &'a str>> {
        let rest = self.0.strip_prefix(&folder.0)?;
        (folder.is_top() || rest.is_empty() || rest.starts_with('/'))
            .then(|| rest.split('/').filter(|name| !name.is_empty()))
    }

    /// Returns the path as a string, which is empty for the root.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path for system calls that resolve it relative to the base's folder. For the
    /// root, returns `.`.
    pub(crate) fn in_base(&self) -> &str {
        if self.is_top() { "." } else { &self.0 }
    }
}

impl Serialize for RunPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunPath, D::Error> {
        let text = String::deserialize(deserializer)?;
        RunPath::parse(&format!("/{text}"))
            .map_err(|_| serde::de::Error::custom("not a path of a workdir"))
    }
}

/// Formats the path for messages. The root is formatted as `/`.
impl fmt::Display for RunPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_top() { "/" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_from_the_top_and_cannot_leave_it() {
        for (text, expected) in [
            ("a", Ok("a")),
            ("/a/b", Ok("a/b")),
            ("//a///b//", Ok("a/b")),
            ("./a/./b/.", Ok("a/b")),
            ("a/../b", Ok("b")),
            ("a/b/../../c", Ok("c")),
            ("/", Ok("")),
            (".", Ok("")),
            ("a/..", Ok("")),
            ("...", Ok("...")),
            ("..a/b..", Ok("..a/b..")),
            ("a\\..\\b", Ok("a\\..\\b")),
            ("", Err(PathFault::Empty)),
            ("a\0b", Err(PathFault::Nul)),
            ("..", Err(PathFault::Escapes)),
            ("/..", Err(PathFault::Escapes)),
            ("a/../..", Err(PathFault::Escapes)),
            ("a/../../a", Err(PathFault::Escapes)),
            ("./../a", Err(PathFault::Escapes)),
        ] {
            assert_eq!(
                RunPath::parse(text).as_ref().map(RunPath::as_str).map_err(|fault| *fault),
                expected,
                "{text:?}"
            );
        }
        assert_eq!(RunPath::parse(&"n".repeat(256)), Err(PathFault::NameTooLong));
        assert_eq!(RunPath::parse(&"d/".repeat(257)), Err(PathFault::TooDeep));
        assert_eq!(
            RunPath::parse(&format!("{}/", "n".repeat(255)).repeat(16)),
            Ok(RunPath(vec!["n".repeat(255); 16].join("/")))
        );
        assert_eq!(
            RunPath::parse(&format!("{}/", "n".repeat(255)).repeat(17)),
            Err(PathFault::PathTooLong)
        );
    }

    #[test]
    fn steps_and_relations() {
        let path = RunPath::parse("a/b/c").unwrap();
        assert_eq!(path.steps().map(|step| step.0).collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
        assert_eq!(RunPath::top().steps().count(), 0);
        assert_eq!(
            path.below(&RunPath::parse("a").unwrap()).unwrap().collect::<Vec<_>>(),
            ["b", "c"]
        );
        assert_eq!(path.below(&path).unwrap().count(), 0);
        assert_eq!(path.below(&RunPath::top()).unwrap().count(), 3);
        assert!(RunPath::parse("ab").unwrap().below(&RunPath::parse("a").unwrap()).is_none());
        for bad in ["", ".", "..", "a/b", "a\0"] {
            assert!(path.join(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn link_targets_are_stored_relative_to_the_link() {
        let link = RunPath::parse("a/b/link").unwrap();
        for (target, expected) in [
            ("c", Ok("c")),
            ("./c//d", Ok("c/d")),
            ("../c", Ok("../c")),
            ("../b/c", Ok("../b/c")),
            ("c/../d", Ok("d")),
            ("../..", Ok("../..")),
            ("../../..", Err(PathFault::Escapes)),
            ("c/../../../..", Err(PathFault::Escapes)),
            ("/c/d", Ok("../../c/d")),
            ("/", Ok("../..")),
            ("/..", Err(PathFault::Escapes)),
            (".", Ok(".")),
            ("", Err(PathFault::Empty)),
            ("a\0", Err(PathFault::Nul)),
        ] {
            assert_eq!(
                link.link_to(target).as_deref().map_err(|fault| *fault),
                expected,
                "{target}"
            );
        }
        assert_eq!(RunPath::parse("link").unwrap().link_to("/"), Ok(".".to_owned()));
    }
}
