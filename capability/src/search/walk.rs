//! Which files are searched: the text files of a run that its guard lets it read, without what tools keep for themselves.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::files::{EVENTS_FILE, EntryKind, Files, ISSUES_FILE, LEDGER_FILE, TRACE_FILE, Version};

/// The most files that are searched; of more, those nearest to the workdir's top.
pub const MOST_FILES: usize = 50_000;

/// The most bytes that the searched files have together: 256 MiB.
pub const MOST_BYTES: u64 = 256 << 20;

/// The most bytes of a file that is searched: 2 MiB.
pub const MOST_FILE_BYTES: u64 = 2 << 20;

/// Folders that hold what was fetched or built, beside all whose names begin with a dot.
const LEFT_OUT: &[&str] = &["node_modules", "target", "__pycache__", "venv", "bower_components"];

/// The host's own lines at the top. What a run said must not be found as what a file says.
const OWN_LINES: &[&str] = &[TRACE_FILE, LEDGER_FILE, ISSUES_FILE, EVENTS_FILE];

/// How much is searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { files: MOST_FILES, bytes: MOST_BYTES }
    }
}

/// Ends work that blocks: when its time is up, or when nobody waits for it any more.
#[derive(Clone)]
pub(super) struct Stop {
    deadline: Instant,
    dropped: Arc<AtomicBool>,
}

impl Stop {
    pub(super) fn new(deadline: Instant) -> Stop {
        Stop { deadline, dropped: Arc::default() }
    }

    /// Stops the work when it is dropped.
    pub(super) fn when_dropped(&self) -> impl Drop + use<> {
        Dropped(Arc::clone(&self.dropped))
    }

    pub(super) fn is_now(&self) -> bool {
        self.dropped.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A file that may be searched, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) path: String,
    /// Which version it is of a file of the base; `None` for a file of the overlay.
    pub(super) version: Option<Version>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: Vec<Seen>,
    /// Whether it was stopped before its end.
    pub(super) late: bool,
    /// What was left out for a bound.
    pub(super) notes: Vec<String>,
}

/// Looks at all folders from the top down. Links are not followed: what they lead to inside is found where it is.
pub(super) fn walk(files: &Files, admits: &dyn Fn(&str) -> bool, bounds: &Bounds, stop: &Stop) -> Walked {
    let mut walked = Walked::default();
    let mut bytes = 0_u64;
    let mut folders = VecDeque::from([String::new()]);
    while let Some(folder) = folders.pop_front() {
        if stop.is_now() {
            walked.late = true;
            break;
        }
        let at_top = folder.is_empty();
        let entries = match files.list(if at_top { "/" } else { &folder }) {
            Ok(entries) => entries,
            Err(error) => {
                walked.notes.push(format!("a folder is left out: {error}"));
                continue;
            }
        };
        for entry in entries {
            let name = entry.name.as_str();
            if name.starts_with('.') || (at_top && OWN_LINES.contains(&name)) {
                continue;
            }
            let path = if at_top { name.to_owned() } else { format!("{folder}/{name}") };
            match entry.kind {
                EntryKind::Folder if !LEFT_OUT.contains(&name) => folders.push_back(path),
                EntryKind::File if (1..=MOST_FILE_BYTES).contains(&entry.size) && admits(&path) => {
                    if walked.files.len() == bounds.files || bytes + entry.size > bounds.bytes {
                        let (files, mib) = (bounds.files, bounds.bytes >> 20);
                        walked.notes.push(format!("only the first {files} files or {mib} MiB are searched"));
                        return walked;
                    }
                    bytes += entry.size;
                    walked.files.push(Seen { path, version: entry.version });
                }
                _ => {}
            }
        }
    }
    walked
}
