//! The overlay's changes: what they are, and carrying them out on the base.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::base::{Base, Found};
use super::error::{ApplyError, FilesError, Intent};
use super::layer::{Body, Content, Folder, Layer};
use super::path::RunPath;
use super::stamp::Stamp;
use super::view::Store;
use super::{Change, ChangeKind, ENTRY_LIMIT, EntryKind};

/// One change and how to carry it out.
struct Step {
    change: Change,
    path: RunPath,
    act: Act,
    /// The place whose state in the base the change rests on.
    guard: RunPath,
    seen: Stamp,
    /// Whether an entry of another kind has to be removed from this place, or from a folder above it, first.
    displaces: bool,
}

enum Act {
    Remove,
    Folder,
    File { content: Content, mode: Option<u32> },
    Link(String),
}

impl Store {
    pub(super) fn changes(&self) -> Result<Vec<Change>, FilesError> {
        match self {
            Store::Through { base, journal } => journal.changes(base),
            Store::Overlay { base, layer, .. } => {
                let mut changes: Vec<Change> =
                    plan(layer, base.as_ref())?.into_iter().map(|step| step.change).collect();
                changes.sort();
                Ok(changes)
            }
        }
    }

    pub(super) fn apply(&mut self) -> Result<Vec<Change>, ApplyError> {
        let nothing = |reason| ApplyError { done: Vec::new(), failed: vec![(whole(), reason)] };
        let Store::Overlay { base, layer, reads } = self else { return Ok(Vec::new()) };
        let steps = plan(layer, base.as_ref()).map_err(nothing)?;
        let Some(base) = base else {
            let failed = steps.into_iter().map(|step| (step.change, FilesError::no_base())).collect::<Vec<_>>();
            return if failed.is_empty() { Ok(Vec::new()) } else { Err(ApplyError { done: Vec::new(), failed }) };
        };
        let (mut done, mut failed) = carry_out(base, layer, steps);
        done.sort();
        failed.sort_by(|a, b| a.0.cmp(&b.0));
        reads.clear();
        if failed.is_empty() {
            layer.clear();
            Ok(done)
        } else {
            Err(ApplyError { done, failed })
        }
    }
}

/// The change that stands for all of them, where they could not even be told apart.
fn whole() -> Change {
    Change { path: String::new(), kind: ChangeKind::Modified, entry: EntryKind::Folder, size: 0 }
}

type Failed = Vec<(Change, FilesError)>;

/// Carries the steps out: first what takes nothing away, then what replaces an entry by one of another kind, and last
/// what only removes; the latter two only where all before them was done.
fn carry_out(base: &Base, layer: &mut Layer, steps: Vec<Step>) -> (Vec<Change>, Failed) {
    let mut still: BTreeMap<RunPath, bool> = BTreeMap::new();
    for step in &steps {
        if !still.contains_key(&step.guard) {
            let is_still = base.is_still(&step.guard, &step.seen).unwrap_or(false);
            still.insert(step.guard.clone(), is_still);
        }
    }
    let (mut done, mut failed) = (Vec::new(), Failed::new());
    let mut renewed = BTreeSet::new();
    let group = |step: &Step| match step.act {
        _ if step.displaces => 1,
        Act::Remove => 2,
        _ => 0,
    };
    let mut groups = [Vec::new(), Vec::new(), Vec::new()];
    for step in steps {
        if let Some(group) = groups.get_mut(group(&step)) {
            group.push(step);
        }
    }
    for (order, group) in groups.into_iter().enumerate() {
        let held_back = order > 0 && !failed.is_empty();
        for step in group {
            let outcome = if still.get(&step.guard) != Some(&true) {
                Err(FilesError::conflict(&step.path))
            } else if held_back {
                Err(FilesError::held_back())
            } else {
                step.carry_out(base)
            };
            match outcome {
                Ok(()) => {
                    renewed.insert(step.guard);
                    done.push(step.change);
                }
                Err(reason) => failed.push((step.change, reason)),
            }
        }
    }
    if !failed.is_empty() {
        // What was done must not be taken for somebody else's change at the next attempt.
        for guard in renewed {
            if let Ok(seen) = base.stamp(&guard) {
                layer.set_seen(&guard, seen);
            }
        }
    }
    (done, failed)
}

impl Step {
    fn carry_out(&self, base: &Base) -> Result<(), FilesError> {
        let io = |cause| FilesError::io(Intent::Write, &self.path, cause);
        match &self.act {
            Act::Folder => base.create_folder(&self.path).map_err(io),
            Act::File { content, mode } => base.replace(&self.path, content.as_ref(), *mode).map_err(io),
            Act::Link(target) => base.link(&self.path, target).map_err(io),
            Act::Remove => {
                let found = base.look(&self.path).map_err(io)?;
                if let Found::Folder { .. } = found {
                    for entry in base.walk(&self.path)?.iter().rev() {
                        let io = |cause| FilesError::io(Intent::Write, &entry.path, cause);
                        base.remove(&entry.path, &entry.found).map_err(io)?;
                    }
                }
                base.remove(&self.path, &found).map_err(io)
            }
        }
    }
}

/// All differences between the overlay and the base, each folder before what is in it.
fn plan(layer: &Layer, base: Option<&Base>) -> Result<Vec<Step>, FilesError> {
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
                    } else if inner.opaque {
                        self.left_over(&at, inner)?;
                    }
                    let cover = cover.or(inner.opaque.then_some((&path, &node.seen)));
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
        if meta.len() != content.len() {
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
