//! The files that a search covers: all files that the run's guard allows, except large files, files
//! and folders whose names start with a dot, folders of dependencies and build results, and what
//! the ignore files of the workdir name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use wattle_rt::Account;

use crate::files::{EntryKind, Files, IgnoreRules, Version};

/// Maximum number of searched files. The files nearest to the root of the workdir come first.
pub const MAX_FILES: usize = 50_000;

/// Maximum total size of all searched files, in bytes.
pub const MAX_BYTES: u64 = 256 << 20;

/// Maximum size of a searched file, in bytes.
pub const MAX_FILE_BYTES: u64 = 2 << 20;

/// Names of skipped folders, which contain dependencies and build results. Files and folders whose
/// names start with a dot are also skipped.
const SKIPPED_FOLDERS: &[&str] =
    &["node_modules", "target", "__pycache__", "venv", "bower_components"];

/// The files of a run: all of them, and the subset that the search may read.
pub(super) struct SearchedFiles<'a> {
    pub(super) all: &'a Files,
    pub(super) admitted: &'a Files,
    pub(super) admits: &'a dyn Fn(&str) -> bool,
}

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { files: MAX_FILES, bytes: MAX_BYTES }
    }
}

/// A signal that ends work on a blocking thread: at the deadline, when the run has no processor
/// time left, or when the result of the work is no longer needed.
#[derive(Clone)]
pub(crate) struct Stop {
    account: Account,
    deadline: Instant,
    dropped: Arc<AtomicBool>,
}

impl Stop {
    pub(crate) fn new(account: &Account, deadline: Instant) -> Stop {
        Stop { account: account.clone(), deadline, dropped: Arc::default() }
    }

    /// Returns a guard that stops the work when the guard is dropped.
    pub(crate) fn stop_on_drop(&self) -> impl Drop + use<> {
        StopOnDrop(Arc::clone(&self.dropped))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
            || Instant::now() >= self.deadline
            || self.account.cpu_left().is_zero()
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A searchable file, as found by the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenFile {
    pub(super) path: String,
    /// The version of a file in the base, or `None` for a file in the overlay.
    pub(super) version: Option<Version>,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) files: Vec<SeenFile>,
    /// If true, the walk was stopped before it was complete.
    pub(super) timed_out: bool,
    /// Notes on folders and files that were skipped.
    pub(super) notes: Vec<String>,
}

/// Walks the folders breadth-first from the root. Links are not followed, because their targets in
/// the workdir are found at their own paths.
pub(super) fn walk(
    files: &Files,
    admits: &dyn Fn(&str) -> bool,
    bounds: &Bounds,
    stop: &Stop,
) -> WalkResult {
    let mut walked = WalkResult::default();
    let mut bytes = 0_u64;
    let mut folders = VecDeque::from([(String::new(), IgnoreRules::default())]);
    while let Some((folder, rules)) = folders.pop_front() {
        if stop.is_set() {
            walked.timed_out = true;
            break;
        }
        let at_top = folder.is_empty();
        let entries = match files.list(if at_top { "/" } else { &folder }) {
            Ok(entries) => entries,
            Err(error) => {
                walked.notes.push(format!("skipped a folder: {error}"));
                continue;
            }
        };
        let rules = rules.within(files, &folder, &entries);
        for entry in entries {
            let name = entry.name.as_str();
            if name.starts_with('.') {
                continue;
            }
            let path = if at_top { name.to_owned() } else { format!("{folder}/{name}") };
            if rules.ignore(&path, entry.kind == EntryKind::Folder) {
                continue;
            }
            match entry.kind {
                EntryKind::Folder if !SKIPPED_FOLDERS.contains(&name) => {
                    folders.push_back((path, rules.clone()));
                }
                EntryKind::File if (1..=MAX_FILE_BYTES).contains(&entry.size) && admits(&path) => {
                    if walked.files.len() == bounds.files || bytes + entry.size > bounds.bytes {
                        let files = bounds.files;
                        let mib = bounds.bytes >> 20;
                        walked
                            .notes
                            .push(format!("searched only the first {files} files or {mib} MiB"));
                        return walked;
                    }
                    bytes += entry.size;
                    walked.files.push(SeenFile { path, version: entry.version });
                }
                _ => {}
            }
        }
    }
    walked
}
