//! A path inside the run's files that cannot name anything outside them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most bytes that a whole path may have; the operating system's own bound, less the closing NUL.
const MAX_PATH: usize = 4095;
/// The most bytes that one name may have; the bound of the common file systems.
const MAX_NAME: usize = 255;
/// The most names that a path may have. It bounds every walk and every recursion over a tree.
const MAX_DEPTH: usize = 256;

/// What is wrong with a path, before anything was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathFault {
    Empty,
    Nul,
    Escapes,
    PathTooLong,
    NameTooLong,
    TooDeep,
}

/// A path from the workdir's top: names joined by `/`, without a leading or closing `/`; the top is the empty text.
///
/// Invariant: no name is empty, `.` or `..`, none holds `/` or NUL, and the bounds on length and depth hold. `..` is
/// taken from the text, before any link is followed, so a path that climbs above the top is known without a look-up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RunPath(String);

impl RunPath {
    /// The workdir's top.
    pub(super) const fn top() -> RunPath {
        RunPath(String::new())
    }

    /// Reads a path as a program or a model writes it: relative or absolute (from the workdir's top), with `.`, `..`
    /// and repeated `/` resolved.
    pub(super) fn parse(text: &str) -> Result<RunPath, PathFault> {
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

    /// The entry `name` of this folder. `name` must be one name; `..` escapes.
    pub(super) fn join(&self, name: &str) -> Result<RunPath, PathFault> {
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

    /// This path with the names of `below` after it.
    pub(super) fn join_all<'a>(&self, below: impl Iterator<Item = &'a str>) -> Result<RunPath, PathFault> {
        let mut whole = self.clone();
        for name in below {
            whole = whole.join(name)?;
        }
        Ok(whole)
    }

    /// The target of a link that is made here, as it is kept: relative, and with `..` only at its beginning, so that it leads to the same
    /// place for everybody who follows it. An absolute `target` is taken from the top.
    pub(super) fn link_to(&self, target: &str) -> Result<String, PathFault> {
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
        let kept: Vec<&str> = up.chain(there.iter().skip(shared).copied()).collect();
        // The place that it leads to is held to the bounds of any path.
        RunPath::parse(&format!("/{}", there.join("/")))?;
        Ok(if kept.is_empty() { ".".to_owned() } else { kept.join("/") })
    }

    /// Whether a link that is kept here with this target leads out from `to`, and does not from here.
    pub(super) fn leaves_from(&self, to: &RunPath, target: &str) -> bool {
        self.link_to(target).is_ok() && to.link_to(target) == Err(PathFault::Escapes)
    }

    pub(super) fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn depth(&self) -> usize {
        self.names().count()
    }

    /// The names from the top down.
    pub(super) fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The folder that holds the entry, and the entry's name in it; `None` for the top.
    pub(super) fn split(&self) -> Option<(RunPath, &str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((RunPath(parent.to_owned()), name)),
            None if self.is_top() => None,
            None => Some((RunPath::top(), &self.0)),
        }
    }

    /// The folder that holds the entry; `None` for the top.
    pub(super) fn parent(&self) -> Option<RunPath> {
        self.split().map(|(parent, _)| parent)
    }

    /// The path itself and every folder above it but the top, the topmost first.
    pub(super) fn steps(&self) -> impl Iterator<Item = RunPath> + '_ {
        let ends = self.0.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain((!self.is_top()).then_some(self.0.len()));
        ends.filter_map(|end| self.0.get(..end)).map(|text| RunPath(text.to_owned()))
    }

    /// The names of this path below `folder`; `None` where it does not lie below it (nor is it).
    pub(super) fn below<'a>(&'a self, folder: &RunPath) -> Option<impl Iterator<Item = &'a str>> {
        let rest = self.0.strip_prefix(&folder.0)?;
        (folder.is_top() || rest.is_empty() || rest.starts_with('/'))
            .then(|| rest.split('/').filter(|name| !name.is_empty()))
    }

    /// The text, empty for the top.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as the jailed directory takes it.
    pub(super) fn in_base(&self) -> &str {
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
        RunPath::parse(&format!("/{text}")).map_err(|_| serde::de::Error::custom("no path of a workdir"))
    }
}

/// The path as it is shown: `/` for the top.
impl fmt::Display for RunPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_top() { "/" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_top_and_cannot_leave_it() {
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
        assert_eq!(RunPath::parse(&format!("{}/", "n".repeat(255)).repeat(17)), Err(PathFault::PathTooLong));
    }

    #[test]
    fn steps_and_relations() {
        let path = RunPath::parse("a/b/c").unwrap();
        assert_eq!(path.steps().map(|step| step.0).collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
        assert_eq!(RunPath::top().steps().count(), 0);
        assert_eq!(path.below(&RunPath::parse("a").unwrap()).unwrap().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(path.below(&path).unwrap().count(), 0);
        assert_eq!(path.below(&RunPath::top()).unwrap().count(), 3);
        assert!(RunPath::parse("ab").unwrap().below(&RunPath::parse("a").unwrap()).is_none());
        for bad in ["", ".", "..", "a/b", "a\0"] {
            assert!(path.join(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn links_are_kept_as_they_lead_from_where_they_stand() {
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
            assert_eq!(link.link_to(target).as_deref().map_err(|fault| *fault), expected, "{target}");
        }
        assert_eq!(RunPath::parse("link").unwrap().link_to("/"), Ok(".".to_owned()));
    }
}
