//! Looking: the base and the overlay as one tree, links resolved over both.

use std::collections::HashMap;

use super::base::{Base, Found};
use super::error::{FilesError, Intent};
use super::host_files::Kept;
use super::jail::is_absent;
use super::journal::Journal;
use super::layer::{Body, Layer, Spot};
use super::path::RunPath;
use super::reader::Reader;
use super::stamp::{FileStamp, Stamp};
use super::{ENTRY_LIMIT, Entry, EntryKind, Stat};

/// The links that are followed on one path before it is taken for a circle; the operating system's own number.
const MAX_LINKS: usize = 40;
/// The entries of a folder that are looked through for names to offer in an error, and how many are offered.
const HINT_ENTRIES: usize = 1000;
const HINT_NAMES: usize = 8;

/// A run's tree of files.
#[derive(Debug)]
pub(super) enum Store {
    /// Writes stay in the layer, over the base where there is one.
    Overlay { base: Option<Base>, layer: Box<Layer>, reads: Reads },
    /// Writes go to the base; the journal remembers what was there.
    Through { base: Base, journal: Journal },
}

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// What the run read last of the base: the newest few thousand files, so that one which is written after it was read is
/// known to rest on what was read then.
#[derive(Debug, Default)]
pub(super) struct Reads {
    newer: HashMap<RunPath, FileStamp>,
    older: HashMap<RunPath, FileStamp>,
}

impl Reads {
    const GENERATION: usize = 4096;

    fn note(&mut self, path: &RunPath, stamp: FileStamp) {
        if self.newer.len() >= Reads::GENERATION {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(path.clone(), stamp);
    }

    pub(super) fn get(&self, path: &RunPath) -> Option<Stamp> {
        self.newer.get(path).or_else(|| self.older.get(path)).cloned().map(Stamp::File)
    }

    pub(super) fn clear(&mut self) {
        *self = Reads::default();
    }
}

impl Store {
    pub(super) fn base(&self) -> Option<&Base> {
        match self {
            Store::Overlay { base, .. } => base.as_ref(),
            Store::Through { base, .. } => Some(base),
        }
    }

    /// Looks again at what the host keeps from runs. Called at the beginning of each operation.
    pub(super) fn refresh(&mut self) {
        if let Store::Overlay { base: Some(base), .. } | Store::Through { base, .. } = self {
            base.kept.refresh();
        }
    }

    /// What stands at a path whose folders are no links, not following one at its end.
    pub(super) fn found(&self, path: &RunPath, intent: Intent) -> Result<Found, FilesError> {
        if let Store::Overlay { layer, .. } = self {
            match layer.find(path) {
                Spot::Hidden => return Ok(Found::Absent),
                Spot::Below => {}
                Spot::Node(node) => {
                    let modified = Some(node.modified);
                    return Ok(match &node.body {
                        Body::File { content, .. } => Found::File { size: content.len(), modified, version: None },
                        Body::Folder(_) => Found::Folder { modified },
                        Body::Link(target) => Found::Link(target.clone()),
                        Body::Gone => Found::Absent,
                    });
                }
            }
        }
        match self.base() {
            Some(base) => base.look(path).map_err(|cause| FilesError::io(intent, path, cause)),
            None => Ok(Found::Absent),
        }
    }

    /// Reads a path and follows the links on it. The result has no link in it but, where it is kept, the last; what is
    /// not there is taken as it stands.
    pub(super) fn resolve(&self, text: &str, last: Last, intent: Intent) -> Result<RunPath, FilesError> {
        let path = self.walk(text, last, intent)?;
        // A run that could edit its own trace could not be trusted by it.
        if let Some(base) = self.base() {
            base.admit(&path, intent)?;
        } else if let Some(refusal) = Kept::default().refusal(&path, intent) {
            return Err(FilesError::kept(intent, &refusal));
        }
        if intent == Intent::Write {
            self.check_repository(&path)?;
        }
        Ok(path)
    }

    fn walk(&self, text: &str, last: Last, intent: Intent) -> Result<RunPath, FilesError> {
        let path = RunPath::parse(text).map_err(|fault| FilesError::path(intent, text, fault))?;
        let mut names: Vec<String> = path.names().rev().map(str::to_owned).collect();
        let mut at = RunPath::top();
        let mut links = 0;
        while let Some(name) = names.pop() {
            if name == ".." {
                at = at.parent().ok_or_else(|| FilesError::escape(intent))?;
                continue;
            }
            let next = at.join(&name).map_err(|fault| FilesError::path(intent, text, fault))?;
            if names.is_empty() && last == Last::Keep {
                return Ok(next);
            }
            let Found::Link(target) = self.found(&next, intent)? else {
                at = next;
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(FilesError::link_loop(&path));
            }
            let mut rest = target.as_str();
            if target.starts_with('/') {
                let inside = self.base().and_then(|base| base.inside(&target));
                rest = inside.ok_or_else(|| FilesError::escape(intent))?;
                at = RunPath::top();
            }
            let parts = rest.split('/').rev().filter(|part| !part.is_empty() && *part != ".");
            names.extend(parts.map(str::to_owned));
        }
        Ok(at)
    }

    /// As [`Store::resolve`], for a path that must name a file: one that ends as a folder's does is refused.
    pub(super) fn resolve_file(&self, text: &str, intent: Intent) -> Result<RunPath, FilesError> {
        let path = self.resolve(text, Last::Follow, intent)?;
        if path.is_top() {
            return Err(FilesError::is_folder(intent, &path));
        }
        if text.ends_with('/') || text.ends_with("/.") {
            return Err(FilesError::names_a_folder(text));
        }
        Ok(path)
    }

    pub(super) fn open(&mut self, path: &RunPath) -> Result<Reader, FilesError> {
        let io = |cause| FilesError::io(Intent::Read, path, cause);
        match self.found(path, Intent::Read)? {
            Found::File { .. } => {}
            Found::Absent => return Err(self.missing(path)),
            Found::Folder { .. } => return Err(FilesError::is_folder(Intent::Read, path)),
            Found::Link(_) => return Err(FilesError::link_loop(path)),
            Found::Other(what) => return Err(FilesError::special(Intent::Read, path, what)),
        }
        if let Store::Overlay { layer, .. } = self
            && let Spot::Node(node) = layer.find(path)
            && let Body::File { content, .. } = &node.body
        {
            return Ok(Reader::memory(path.clone(), content.bytes()));
        }
        let Some(base) = self.base() else { return Err(self.missing(path)) };
        let (file, meta) = base.open_file(path).map_err(io)?;
        if let Store::Overlay { reads, .. } = self {
            reads.note(path, FileStamp::of(&meta));
        }
        Ok(Reader::base(path.clone(), file, FileStamp::of(&meta)))
    }

    /// The entries of a folder, sorted by name; those whose names cannot be used are marked by their kind. `None` where
    /// there are more than `most`.
    pub(super) fn children(
        &self,
        path: &RunPath,
        most: usize,
        intent: Intent,
    ) -> Result<Option<Vec<(String, Found)>>, FilesError> {
        let mut all: Vec<(String, Found)> = Vec::new();
        let mut below = true;
        let mut kept = None;
        if let Store::Overlay { layer, .. } = self {
            match layer.find(path) {
                Spot::Hidden => below = false,
                Spot::Below => {}
                Spot::Node(node) => {
                    kept = if let Body::Folder(folder) = &node.body { Some(folder) } else { None };
                    below = kept.is_some_and(|folder| !folder.opaque);
                }
            }
        }
        for name in kept.iter().flat_map(|folder| folder.children.keys()) {
            let child = path.join(name).map_err(|fault| FilesError::path(intent, path.as_str(), fault))?;
            let found = self.found(&child, intent)?;
            if found != Found::Absent {
                all.push((name.clone(), found));
            }
        }
        if below && let Some(base) = self.base() {
            let shows = |name: &str| kept.is_none_or(|folder| !folder.children.contains_key(name));
            let listed = match base.list(path, most, shows) {
                // A merged folder that somebody else removed from the base still has what the overlay put there.
                Err(cause) if kept.is_some() && is_absent(&cause) => Some(Vec::new()),
                listed => listed.map_err(|cause| FilesError::io(intent, path, cause))?,
            };
            let Some(listed) = listed else { return Ok(None) };
            all.extend(listed.into_iter().map(|child| (child.name, child.found)));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok((all.len() <= most).then_some(all))
    }

    /// The entries of a folder, or the error that says why there are none.
    pub(super) fn folder(&self, path: &RunPath, intent: Intent) -> Result<Vec<(String, Found)>, FilesError> {
        match self.found(path, intent)? {
            Found::Folder { .. } => {}
            Found::Absent => return Err(self.missing(path)),
            Found::File { .. } | Found::Link(_) => return Err(FilesError::not_folder(path)),
            Found::Other(what) => return Err(FilesError::special(intent, path, what)),
        }
        self.children(path, ENTRY_LIMIT, intent)?.ok_or_else(|| FilesError::too_many(path, ENTRY_LIMIT))
    }

    pub(super) fn list(&self, path: &RunPath) -> Result<Vec<Entry>, FilesError> {
        let children = self.folder(path, Intent::Read)?;
        let entries = children.into_iter().map(|(name, found)| Entry {
            name,
            kind: found.kind().unwrap_or(EntryKind::Other),
            size: found.size(),
            modified: found.modified(),
            version: if let Found::File { version, .. } = found { version } else { None },
        });
        Ok(entries.collect())
    }

    pub(super) fn stat(&self, path: &RunPath) -> Result<Stat, FilesError> {
        let found = self.found(path, Intent::Read)?;
        let kind = found.kind().ok_or_else(|| self.missing(path))?;
        Ok(Stat { kind, size: found.size(), modified: found.modified() })
    }

    pub(super) fn read_link(&self, path: &RunPath) -> Result<String, FilesError> {
        match self.found(path, Intent::Read)? {
            Found::Link(target) => Ok(target),
            Found::Absent => Err(self.missing(path)),
            _ => Err(FilesError::not_link(path)),
        }
    }

    /// Says that nothing is at `path`, and what is there instead: the entries of the nearest folder, most alike first.
    pub(super) fn missing(&self, path: &RunPath) -> FilesError {
        let mut folder = RunPath::top();
        let mut wanted = path.names().next().unwrap_or_default().to_owned();
        for step in path.steps() {
            match self.found(&step, Intent::Read) {
                Ok(Found::Folder { .. }) => folder = step,
                Ok(Found::Absent) => {
                    wanted = step.split().map(|(_, name)| name.to_owned()).unwrap_or_default();
                    break;
                }
                Ok(_) if step != *path => return FilesError::not_folder(&step),
                _ => break,
            }
        }
        let (near, more) = self.near(&folder, &wanted);
        FilesError::not_found(path, &folder, &near, more)
    }

    /// A few names in a folder, those most like `wanted` first, and whether there are more.
    pub(super) fn near(&self, folder: &RunPath, wanted: &str) -> (Vec<String>, bool) {
        let (mut children, mut more) = match self.children(folder, HINT_ENTRIES, Intent::Read) {
            Ok(Some(children)) => (children, false),
            _ => return (vec!["too many entries to name".to_owned()], false),
        };
        let alike = |name: &str| strsim::jaro_winkler(name, wanted);
        if children.len() > HINT_NAMES {
            children.sort_by(|a, b| alike(&b.0).total_cmp(&alike(&a.0)));
            children.truncate(HINT_NAMES);
            more = true;
        }
        let names = children.into_iter().map(|(name, found)| match found {
            Found::Folder { .. } => format!("{name}/"),
            _ => name,
        });
        (names.collect(), more)
    }

    /// Checks that what `path` lies in is a folder, as far as it is there; gives how many of the folders above it are.
    pub(super) fn check_above(&self, path: &RunPath) -> Result<usize, FilesError> {
        let mut there = 0;
        let above = path.depth().saturating_sub(1);
        for step in path.steps().take(above) {
            match self.found(&step, Intent::Write)? {
                Found::Folder { .. } => there += 1,
                Found::Absent => break,
                Found::File { .. } | Found::Link(_) => return Err(FilesError::not_folder(&step)),
                Found::Other(what) => return Err(FilesError::special(Intent::Write, &step, what)),
            }
        }
        Ok(there)
    }
}
