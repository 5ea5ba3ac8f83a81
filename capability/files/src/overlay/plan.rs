//! The plan for applying an overlay. It lists each difference from the base, with the action that
//! applies it and the state of the base that the action relies on.

use std::io::Read;

use super::layer::{Body, Content, Folder, Layer};
use crate::ENTRY_LIMIT;
use crate::base::{Base, EntryInfo};
use crate::entry::{Change, ChangeKind, EntryKind};
use crate::error::{AtPath as _, FilesError};
use crate::path::{Intent, RunPath};
use crate::stamp::Stamp;

/// A change and the action that applies it.
pub(super) struct Step {
    pub(super) change: Change,
    pub(super) path: RunPath,
    pub(super) action: Action,
    /// The path of the base entry that the change depends on: `path` or one of its parent folders.
    pub(super) basis: RunPath,
    /// The state of the entry at `basis` when the run saw it.
    pub(super) seen: Stamp,
    /// If true, an entry of a different type, at `path` or at the path of a parent folder, must be
    /// removed first.
    pub(super) displaces: bool,
}

pub(super) enum Action {
    Remove,
    Folder,
    File { content: Content, mode: Option<u32> },
    Link(String),
}

/// Returns all differences between the overlay and the base, each folder before its entries.
pub(super) fn plan(layer: &Layer, base: Option<&Base>) -> Result<Vec<Step>, FilesError> {
    let mut plan = Plan { base, steps: Vec::new() };
    if let Body::Folder(root) = &layer.root().body {
        plan.folder(&RunPath::top(), root, base.is_some(), None, false)?;
    }
    Ok(plan.steps)
}

/// The path of a change and the state that it relies on; see [`Step`].
#[derive(Clone, Copy)]
struct Site<'a> {
    path: &'a RunPath,
    basis: &'a RunPath,
    seen: &'a Stamp,
    displaces: bool,
}

struct Plan<'a> {
    base: Option<&'a Base>,
    steps: Vec<Step>,
}

impl Plan<'_> {
    /// Adds the differences in a folder. `in_base` is true if the base also has the folder. `cover`
    /// is the path and the stamp of the topmost folder that hides an entry in the base: this
    /// folder, or one of its ancestors. That stamp covers everything under the topmost folder.
    /// `cover` is `None` if there is no such folder. The maximum depth of a path limits the
    /// recursion.
    fn folder(
        &mut self,
        path: &RunPath,
        folder: &Folder,
        in_base: bool,
        cover: Option<(&RunPath, &Stamp)>,
        displaces: bool,
    ) -> Result<(), FilesError> {
        for (name, node) in &folder.children {
            let path = path.child(name, Intent::Write)?;
            let old = match self.base {
                Some(base) if in_base => base.entry(&path).at(Intent::Write, &path)?,
                _ => EntryInfo::Absent,
            };
            // A folder that the run created at an unused path hides nothing. Entries that another
            // process has since created there remain.
            let hides = matches!(
                &node.body,
                Body::Folder(inner) if inner.opaque && node.seen != Stamp::Absent
            );
            let cover = cover.or(hides.then_some((&path, &node.seen)));
            let (basis, seen) = cover.unwrap_or((&path, &node.seen));
            let same_kind = matches!(
                (&node.body, &old),
                (Body::File { .. }, EntryInfo::File { .. })
                    | (Body::Folder(_), EntryInfo::Folder { .. })
                    | (Body::Link(_), EntryInfo::Link(_))
            );
            let replaced =
                !same_kind && !matches!(node.body, Body::Gone) && old != EntryInfo::Absent;
            let site = Site { path: &path, basis, seen, displaces: displaces || replaced };
            if let Some(entry) = old.kind().filter(|_| !same_kind) {
                self.add(&site, ChangeKind::Deleted, entry, old.size(), Action::Remove);
            }
            let kind = if same_kind { ChangeKind::Modified } else { ChangeKind::Created };
            match &node.body {
                Body::Gone => {}
                Body::File { content, mode } => {
                    if !(same_kind && self.has_content(&path, content)?) {
                        let action = Action::File { content: content.clone(), mode: *mode };
                        self.add(&site, kind, EntryKind::File, content.len(), action);
                    }
                }
                Body::Link(target) => {
                    if old != EntryInfo::Link(target.clone()) {
                        self.add(&site, kind, EntryKind::Link, 0, Action::Link(target.clone()));
                    }
                }
                Body::Folder(inner) => {
                    if !same_kind {
                        self.add(&site, kind, EntryKind::Folder, 0, Action::Folder);
                    } else if cover.is_some() {
                        self.removed_children(&site, inner)?;
                    }
                    self.folder(&path, inner, same_kind, cover, site.displaces)?;
                }
            }
        }
        Ok(())
    }

    /// Adds removals for a folder that the run removed and created again: one for each entry of the
    /// base folder that is not in the new folder.
    fn removed_children(&mut self, site: &Site<'_>, folder: &Folder) -> Result<(), FilesError> {
        let Some(base) = self.base else { return Ok(()) };
        let listed = base.list(site.path, ENTRY_LIMIT, |name| !folder.children.contains_key(name));
        let listed = listed.at(Intent::Write, site.path)?;
        for child in listed.ok_or_else(|| FilesError::too_many(site.path, ENTRY_LIMIT))? {
            if child.not_utf8 {
                return Err(FilesError::name_not_utf8(site.path));
            }
            let path = site.path.child(&child.name, Intent::Write)?;
            if let Some(entry) = child.entry.kind() {
                let site = Site { path: &path, displaces: false, ..*site };
                self.add(&site, ChangeKind::Deleted, entry, child.entry.size(), Action::Remove);
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        site: &Site<'_>,
        kind: ChangeKind,
        entry: EntryKind,
        size: u64,
        action: Action,
    ) {
        self.steps.push(Step {
            change: Change { path: site.path.as_str().to_owned(), kind, entry, size },
            path: site.path.clone(),
            action,
            basis: site.basis.clone(),
            seen: site.seen.clone(),
            displaces: site.displaces,
        });
    }

    /// Returns true if the base's file has this content.
    fn has_content(&self, path: &RunPath, content: &Content) -> Result<bool, FilesError> {
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
