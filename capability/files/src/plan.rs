//! What the overlay's changes are: each difference from the base, with what carries it out and what it rests on.

use std::io::Read;

use super::base::{Base, Found};
use super::error::{FilesError, Intent};
use super::layer::{Body, Content, Folder, Layer};
use super::path::RunPath;
use super::stamp::Stamp;
use super::{Change, ChangeKind, ENTRY_LIMIT, EntryKind};

/// One change and how to carry it out.
pub(super) struct Step {
    pub(super) change: Change,
    pub(super) path: RunPath,
    pub(super) act: Act,
    /// The place whose state in the base the change rests on.
    pub(super) guard: RunPath,
    pub(super) seen: Stamp,
    /// Whether an entry of another kind has to be removed from this place, or from a folder above it, first.
    pub(super) displaces: bool,
}

pub(super) enum Act {
    Remove,
    Folder,
    File { content: Content, mode: Option<u32> },
    Link(String),
}

/// All differences between the overlay and the base, each folder before what is in it.
pub(super) fn plan(layer: &Layer, base: Option<&Base>) -> Result<Vec<Step>, FilesError> {
    let mut plan = Plan { base, steps: Vec::new() };
    if let Body::Folder(root) = &layer.root().body {
        plan.folder(&RunPath::top(), root, base.is_some(), None, false)?;
    }
    Ok(plan.steps)
}

/// Where a change is, and what it rests on; see [`Step`].
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a RunPath,
    guard: &'a RunPath,
    seen: &'a Stamp,
    displaces: bool,
}

struct Plan<'a> {
    base: Option<&'a Base>,
    steps: Vec<Step>,
}

impl Plan<'_> {
    /// `in_base` tells whether the base has this folder too; `cover` is the opaque folder that stands for all below it,
    /// with its stamp. Recurses no deeper than a path may be.
    fn folder(
        &mut self,
        path: &RunPath,
        folder: &Folder,
        in_base: bool,
        cover: Option<(&RunPath, &Stamp)>,
        displaces: bool,
    ) -> Result<(), FilesError> {
        for (name, node) in &folder.children {
            let path = path.join(name).map_err(|fault| FilesError::path(Intent::Write, path.as_str(), fault))?;
            let below = match self.base {
                Some(base) if in_base => {
                    base.look(&path).map_err(|cause| FilesError::io(Intent::Write, &path, cause))?
                }
                _ => Found::Absent,
            };
            // A folder that the run made where nothing was hides nothing: what somebody else put there since stays.
            let hides = matches!(&node.body, Body::Folder(inner) if inner.opaque && node.seen != Stamp::Absent);
            let cover = cover.or(hides.then_some((&path, &node.seen)));
            let (guard, seen) = cover.unwrap_or((&path, &node.seen));
            let same_kind = matches!(
                (&node.body, &below),
                (Body::File { .. }, Found::File { .. })
                    | (Body::Folder(_), Found::Folder { .. })
                    | (Body::Link(_), Found::Link(_))
            );
            let replaced = !same_kind && !matches!(node.body, Body::Gone) && below != Found::Absent;
            let at = Place { path: &path, guard, seen, displaces: displaces || replaced };
            if let Some(entry) = below.kind().filter(|_| !same_kind) {
                self.add(&at, ChangeKind::Deleted, entry, below.size(), Act::Remove);
            }
            let kind = if same_kind { ChangeKind::Modified } else { ChangeKind::Created };
            match &node.body {
                Body::Gone => {}
                Body::File { content, mode } => {
                    if !(same_kind && self.holds(&path, content)?) {
                        let act = Act::File { content: content.clone(), mode: *mode };
                        self.add(&at, kind, EntryKind::File, content.len(), act);
                    }
                }
                Body::Link(target) => {
                    if below != Found::Link(target.clone()) {
                        self.add(&at, kind, EntryKind::Link, 0, Act::Link(target.clone()));
                    }
                }
                Body::Folder(inner) => {
                    if !same_kind {
                        self.add(&at, kind, EntryKind::Folder, 0, Act::Folder);
                    } else if cover.is_some() {
                        self.left_over(&at, inner)?;
                    }
                    self.folder(&path, inner, same_kind, cover, at.displaces)?;
                }
            }
        }
        Ok(())
    }

    /// What the base has in a folder that the run removed and made anew, and that is not in the new one.
    fn left_over(&mut self, at: &Place<'_>, folder: &Folder) -> Result<(), FilesError> {
        let Some(base) = self.base else { return Ok(()) };
        let listed = base.list(at.path, ENTRY_LIMIT, |name| !folder.children.contains_key(name));
        let listed = listed.map_err(|cause| FilesError::io(Intent::Write, at.path, cause))?;
        for child in listed.ok_or_else(|| FilesError::too_many(at.path, ENTRY_LIMIT))? {
            if child.foreign {
                return Err(FilesError::foreign_name(at.path));
            }
            let path = at.path.join(&child.name);
            let path = path.map_err(|fault| FilesError::path(Intent::Write, at.path.as_str(), fault))?;
            if let Some(entry) = child.found.kind() {
                let at = Place { path: &path, displaces: false, ..*at };
                self.add(&at, ChangeKind::Deleted, entry, child.found.size(), Act::Remove);
            }
        }
        Ok(())
    }

    fn add(&mut self, at: &Place<'_>, kind: ChangeKind, entry: EntryKind, size: u64, act: Act) {
        self.steps.push(Step {
            change: Change { path: at.path.as_str().to_owned(), kind, entry, size },
            path: at.path.clone(),
            act,
            guard: at.guard.clone(),
            seen: at.seen.clone(),
            displaces: at.displaces,
        });
    }

    /// Whether the base's file holds just this.
    fn holds(&self, path: &RunPath, content: &Content) -> Result<bool, FilesError> {
        let Some(base) = self.base else { return Ok(false) };
        let io = |cause| FilesError::io(Intent::Write, path, cause);
        let (file, meta) = base.open_file(path).map_err(io)?;
        if meta.size != content.len() {
            return Ok(false);
        }
        let mut file = file.take(content.len().saturating_add(1));
        let mut rest = content.as_ref();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut buffer).map_err(io)?;
            let part = buffer.get(..read).unwrap_or_default();
            match rest.strip_prefix(part) {
                Some(_) if read == 0 => return Ok(rest.is_empty()),
                Some(left) => rest = left,
                None => return Ok(false),
            }
        }
    }
}
