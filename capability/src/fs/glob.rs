//! `fs.glob`: the paths that match a pattern.

mod pattern;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use wattle_rt::{Code, Failure, Run, Unadmitted};

use super::Fs;
use crate::arr::{Arrays, Handle};
use crate::files::{EntryKind, ErrorKind, Files, FilesError};
use crate::search::Stop;
use pattern::{Pattern, Segment};

/// Maximum number of paths that a call returns.
const MAX_FOUND: usize = 50_000;
/// Maximum number of folders that a call lists.
const MAX_LISTED: usize = 100_000;

pub(super) async fn glob(
    fs: Arc<Fs>,
    run: &mut Run,
    pattern: Unadmitted<String>,
) -> Result<Handle, Failure> {
    let (pattern, gate) = pattern.open(run);
    let patterns = Pattern::read(&pattern)?;
    let files = fs.confined(gate);
    let stop = Stop::new(run.account(), run.deadline());
    let _stops = stop.stop_on_drop();
    let account = run.account().clone();
    let work = move || -> Result<(BTreeSet<String>, Vec<String>), Failure> {
        let mut search = Search::new(&files, &stop);
        for pattern in &patterns {
            search.walk(pattern)?;
        }
        Ok((search.found, search.skipped))
    };
    let found = match tokio::task::spawn_blocking(move || account.work(work)).await {
        Ok(found) => found,
        Err(_) => Err(Failure::new(Code::ECANCEL, "the host is shutting down")),
    };
    let (found, skipped) = found?;
    skipped.iter().for_each(|why| run.log(&format!("fs.glob: skipped: {why}")));
    Arrays::make(run, found)
}

/// A folder, and the pattern segment to match in it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// The folder's path. Empty for the workdir.
    folder: String,
    /// The index of the segment in the pattern.
    next: usize,
    /// If true, a wildcard matched the folder. Such a folder is skipped if the run may not read it.
    found: bool,
}

/// A search for the paths that match a pattern.
struct Search<'f> {
    files: &'f Files,
    stop: &'f Stop,
    found: BTreeSet<String>,
    /// The reasons why files and folders were skipped.
    skipped: Vec<String>,
    listed: usize,
}

/// Maximum number of skipped files and folders that are logged.
const MAX_SKIPPED: usize = 20;

impl<'f> Search<'f> {
    fn new(files: &'f Files, stop: &'f Stop) -> Search<'f> {
        Search { files, stop, found: BTreeSet::new(), skipped: Vec::new(), listed: 0 }
    }

    /// Adds to `found` all paths that match a pattern.
    fn walk(&mut self, pattern: &Pattern) -> Result<(), Failure> {
        let start = State { folder: String::new(), next: 0, found: false };
        let mut seen = HashSet::from([start.clone()]);
        let mut states = vec![start];
        while let Some(state) = states.pop() {
            for next in self.step(pattern, state)? {
                if seen.insert(next.clone()) {
                    states.push(next);
                }
            }
        }
        Ok(())
    }

    /// Matches a state's pattern segment against the entries of the state's folder. Adds complete
    /// matches to `found` and returns the states in which the search continues.
    fn step(&mut self, pattern: &Pattern, state: State) -> Result<Vec<State>, Failure> {
        let Pattern { segments, folders } = pattern;
        let folders = *folders;
        let State { folder, next, found } = state;
        let Some(segment) = segments.get(next) else { return Ok(Vec::new()) };
        let is_last = next + 1 == segments.len();
        if let Segment::Name(name) = segment {
            let path = join(&folder, name);
            if !is_last {
                return Ok(vec![State { folder: path, next: next + 1, found }]);
            }
            return self.check(&path, folders, found).map(|()| Vec::new());
        }
        let mut states = Vec::new();
        if *segment == Segment::Folders && !is_last {
            states.push(State { folder: folder.clone(), next: next + 1, found });
        }
        for (name, kind) in self.list(&folder, found)? {
            if !segment.matches(&name) {
                continue;
            }
            let path = join(&folder, &name);
            match (segment, kind) {
                (Segment::Folders, EntryKind::Folder) => {
                    if is_last && folders {
                        self.add(format!("{path}/"))?;
                    }
                    states.push(State { folder: path, next, found: true });
                }
                // Links are not followed: their targets are found at their own paths.
                (Segment::Folders, EntryKind::File) if is_last && !folders => self.add(path)?,
                // The name of an entry of another kind may be one that cannot be used.
                (_, EntryKind::Other) if is_last => self.check(&path, folders, true)?,
                (Segment::Folders, _) => {}
                (_, EntryKind::File) if is_last && !folders => self.add(path)?,
                (_, EntryKind::File | EntryKind::Other) => {}
                _ if is_last => self.check(&path, folders, true)?,
                _ => states.push(State { folder: path, next: next + 1, found: true }),
            }
        }
        Ok(states)
    }

    /// Adds a path if it has the requested type: a folder if `folders` is true, and a file
    /// otherwise. If a wildcard matched the path (`found` is true), skips a path that the run may
    /// not read.
    fn check(&mut self, path: &str, folders: bool, found: bool) -> Result<(), Failure> {
        let stat = self.files.stat(path);
        match self.unless_missing(stat, found)?.map(|stat| stat.kind) {
            Some(EntryKind::Folder) if folders => self.add(format!("{path}/")),
            Some(EntryKind::File) if !folders => self.add(path.to_owned()),
            _ => Ok(()),
        }
    }

    fn list(&mut self, folder: &str, found: bool) -> Result<Vec<(String, EntryKind)>, Failure> {
        self.listed += 1;
        if self.listed > MAX_LISTED {
            return Err(too_many("has to search more than 100,000 folders"));
        }
        if self.stop.is_set() {
            let why = "the run's time ended before all folders were searched";
            return Err(Failure::new(Code::ETIME, why));
        }
        let entries = self.files.list(if folder.is_empty() { "/" } else { folder });
        let entries = self.unless_missing(entries, found)?.unwrap_or_default();
        Ok(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect())
    }

    /// Returns the value in `result`, or `None` if the file or folder does not exist. If a wildcard
    /// matched the path (`found` is true), also returns `None` if the run may not read the file or
    /// folder, and adds the reason to `skipped`.
    fn unless_missing<T>(
        &mut self,
        result: Result<T, FilesError>,
        found: bool,
    ) -> Result<Option<T>, Failure> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotFolder => Ok(None),
            ErrorKind::Denied | ErrorKind::Escape | ErrorKind::Special | ErrorKind::LinkLoop
                if found =>
            {
                if self.skipped.len() < MAX_SKIPPED {
                    self.skipped.push(error.to_string());
                }
                Ok(None)
            }
            _ => Err(Failure::new(error.code(), error.to_string())),
        }
    }

    fn add(&mut self, path: String) -> Result<(), Failure> {
        self.found.insert(path);
        if self.found.len() > MAX_FOUND {
            Err(too_many("matches more than 50,000 paths"))
        } else {
            Ok(())
        }
    }
}

fn too_many(what: &str) -> Failure {
    Failure::new(Code::EBOUND, format!("the pattern {what}; begin it with a folder"))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
