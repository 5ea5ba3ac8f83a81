//! Carrying the overlay's changes out on the base.

use std::collections::{BTreeMap, BTreeSet};

use super::base::{Base, Found};
use super::error::{ApplyError, FilesError, Intent};
use super::layer::Layer;
use super::path::RunPath;
use super::plan::{Act, Step, plan};
use super::view::Store;
use super::{Change, ChangeKind, EntryKind};

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
        let failed_before = !failed.is_empty();
        for step in group {
            let held_back = match order {
                0 => false,
                1 => !failed.is_empty(),
                _ => failed_before,
            };
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
