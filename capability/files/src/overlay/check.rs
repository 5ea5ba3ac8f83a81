//! Checks each step of applying an overlay against the rules for runs. The run's operations were
//! checked against the same rules, but another process may have created parts of a repository since
//! then, the host may use other files than it did for an earlier run, and a restored overlay may
//! contain anything.

use std::collections::BTreeSet;

use super::Overlay;
use super::plan::{Action, Step};
use crate::base::{Base, EntryInfo};
use crate::error::FilesError;
use crate::path::{Intent, RunPath};
use crate::tree::contents;
use crate::tree::resolve::check_access;

impl Overlay {
    /// Checks that a step does not change one of the host's own files, an entry on the path to one,
    /// a project file or a repository. Also checks that the step creates no link that leads out of
    /// the workdir, except by moving an existing link. `carried` is the result of
    /// [`Overlay::carried_links`].
    pub(super) fn check_step(
        &self,
        step: &Step,
        carried: &BTreeSet<String>,
    ) -> Result<(), FilesError> {
        check_access(self, &step.path, Intent::Write)?;
        let Some(base) = &self.base else { return Ok(()) };
        if step.displaces || matches!(step.action, Action::Remove) {
            base.check_no_host_files(&step.path)?;
        }
        match &step.action {
            Action::Remove => contents::check_in_base(base, &step.path),
            Action::Link(target) => {
                base.check_leads_to_no_host_file(&step.path)?;
                if leaves(base, &step.path, target) && !carried.contains(target) {
                    Err(FilesError::link_leaves(&step.path))
                } else {
                    Ok(())
                }
            }
            Action::Folder | Action::File { .. } => Ok(()),
        }
    }

    /// Returns the targets of the links in the base that the steps remove or replace. A run cannot
    /// create a link that leads out of the workdir, but it can move an existing one.
    pub(super) fn carried_links(&self, steps: &[Step]) -> BTreeSet<String> {
        let mut carried = BTreeSet::new();
        let Some(base) = &self.base else { return carried };
        let new_link = |step: &Step| match &step.action {
            Action::Link(target) => leaves(base, &step.path, target),
            _ => false,
        };
        if !steps.iter().any(new_link) {
            return carried;
        }
        for step in steps {
            match base.entry(&step.path) {
                Ok(EntryInfo::Link(target)) => {
                    carried.insert(target);
                }
                Ok(EntryInfo::Folder { .. }) if matches!(step.action, Action::Remove) => {
                    let walked = base.walk(&step.path).unwrap_or_default();
                    carried.extend(walked.into_iter().filter_map(|found| match found.entry {
                        EntryInfo::Link(target) => Some(target),
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        carried
    }
}

/// Returns true if a link at `path` with this target would lead out of the workdir.
fn leaves(base: &Base, path: &RunPath, target: &str) -> bool {
    if target.starts_with('/') {
        let inside = base.strip_top(target);
        return inside.is_none_or(|rest| RunPath::parse(&format!("/{rest}")).is_err());
    }
    path.link_to(target).is_err()
}
