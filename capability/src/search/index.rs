//! The index of a workdir, as one run sees it.
//!
//! A row of the table `file` is a *snapshot*: the content of a path at one time. The runs of a
//! workdir share one database for its files on disk (the base). Each run searches only its *view*:
//! the snapshots of the files that it sees. An unchanged file is recognized by its version: device,
//! inode, size and times. The times include the time of the last status change (ctime), which
//! programs cannot set.

use std::collections::HashSet;
use std::path::PathBuf;

use super::database::{self, Cause};
use super::query::Query;
use super::rank::{PassageId, fuse};
use super::store::{Store, StoredPassage};
use super::walk::{Bounds, SearchedFiles, Stop, walk};

/// The identifiers of the snapshots that a run sees.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    shared: HashSet<i64>,
    own: HashSet<i64>,
}

impl View {
    pub(super) fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty()
    }
}

/// The index of one workdir, as a run sees it.
///
/// The snapshots of the base are stored in a file that later runs also use. The snapshots of the
/// run's overlay are kept separately in memory and dropped at the end of the run, so no run can add
/// a passage to the results of another.
pub(super) struct Index {
    shared: Store,
    own: Store,
    notes: Vec<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// The passages that the keyword search found, with their scores, best first.
    pub(super) by_words: Vec<(PassageId, f64)>,
    /// The snapshots that the run sees.
    pub(super) view: View,
    /// If true, the time ran out before all files were indexed.
    pub(super) timed_out: bool,
    /// Notes for the trace.
    pub(super) notes: Vec<String>,
}

impl Index {
    /// Opens the index in the file at `path`. If `path` is `None` or the file cannot be used, the
    /// index is kept in memory.
    pub(super) fn open(path: Option<PathBuf>) -> Index {
        let mut index = Index {
            shared: Store::new(path, false),
            own: Store::new(None, true),
            notes: Vec::new(),
        };
        if let Some(path) = &index.shared.path {
            match database::open(path) {
                Ok(connection) => index.shared.connection = Some(connection),
                Err(cause) => index.switch_to_memory(&cause),
            }
        }
        index
    }

    /// Switches from the database in the file to an empty in-memory database.
    fn switch_to_memory(&mut self, cause: &Cause) {
        self.notes
            .push(format!("the index is in memory, because its file cannot be used: {cause}"));
        (self.shared.connection, self.shared.path) = (None, None);
        self.shared.view.clear();
    }

    fn store(&mut self, own: bool) -> &mut Store {
        if own { &mut self.own } else { &mut self.shared }
    }

    /// Updates the index with the current files and searches it.
    pub(super) fn search(
        &mut self,
        files: &SearchedFiles<'_>,
        query: &Query,
        bounds: &Bounds,
        stop: &Stop,
    ) -> Result<Findings, Cause> {
        let found = match self.try_search(files, query, bounds, stop) {
            Err(cause) if self.shared.path.is_some() => {
                match self.shared.path.clone().filter(|_| database::is_broken(&cause)) {
                    Some(path) => {
                        self.shared.connection = None;
                        self.shared.view.clear();
                        database::remove(&path);
                        match database::open(&path) {
                            Ok(connection) => self.shared.connection = Some(connection),
                            Err(cause) => self.switch_to_memory(&cause),
                        }
                    }
                    None => self.switch_to_memory(&cause),
                }
                self.try_search(files, query, bounds, stop)
            }
            found => found,
        };
        let mut found = found?;
        found.notes.append(&mut self.notes);
        Ok(found)
    }

    fn try_search(
        &mut self,
        files: &SearchedFiles<'_>,
        query: &Query,
        bounds: &Bounds,
        stop: &Stop,
    ) -> Result<Findings, Cause> {
        let walked = walk(files.all, files.admits, bounds, stop);
        let mut found =
            Findings { timed_out: walked.timed_out, notes: walked.notes, ..Findings::default() };
        let (base, overlay) = walked.files.into_iter().partition(|file| file.version.is_some());
        found.timed_out |= self.shared.update(files, base, stop, found.timed_out)?;
        found.timed_out |= self.own.update(files, overlay, stop, found.timed_out)?;
        if found.timed_out {
            found
                .notes
                .push("there was no time for all files; the next search continues here".to_owned());
        }
        let (shared, own) = (self.shared.by_words(query)?, self.own.by_words(query)?);
        // The scores from two databases are not comparable, but the ranks are.
        found.by_words = match (shared.is_empty(), own.is_empty()) {
            (false, false) => fuse(&shared, &own),
            (true, _) => own,
            (_, true) => shared,
        };
        found.view = View { shared: self.shared.view.clone(), own: self.own.view.clone() };
        Ok(found)
    }

    /// Returns a passage, or `None` if it has been removed.
    pub(super) fn passage(&mut self, id: PassageId) -> Result<Option<StoredPassage>, Cause> {
        self.store(id.own).passage(id.id)
    }

    /// Removes the snapshot that contains a passage. Called if the file has changed since it was
    /// indexed.
    pub(super) fn forget(&mut self, id: PassageId, found: &StoredPassage) -> Result<(), Cause> {
        self.store(id.own).forget(found)
    }

    /// Returns the ids and texts of at most `max` passages of the run's view that have no vector
    /// from the model. Passages in `candidates` come first.
    pub(super) fn without_vector(
        &mut self,
        model: &str,
        candidates: &[(PassageId, f64)],
        view: &View,
        max: usize,
    ) -> Result<Vec<(PassageId, String)>, Cause> {
        let mut all = Vec::new();
        for (own, view) in [(true, &view.own), (false, &view.shared)] {
            let own_candidates: Vec<i64> =
                candidates.iter().filter(|(id, _)| id.own == own).map(|(id, _)| id.id).collect();
            let max = max.saturating_sub(all.len());
            let found = self.store(own).without_vector(model, &own_candidates, view, max)?;
            all.extend(found.into_iter().map(|(id, text)| (PassageId { own, id }, text)));
        }
        Ok(all)
    }

    /// Stores vectors that a model computed for passages.
    pub(super) fn add_vectors(
        &mut self,
        model: &str,
        vectors: &[(PassageId, Vec<u8>)],
    ) -> Result<(), Cause> {
        for own in [true, false] {
            let own_vectors: Vec<(i64, &[u8])> = vectors
                .iter()
                .filter(|(id, _)| id.own == own)
                .map(|(id, bytes)| (id.id, bytes.as_slice()))
                .collect();
            if !own_vectors.is_empty() {
                self.store(own).add_vectors(model, &own_vectors)?;
            }
        }
        Ok(())
    }

    /// Calls `each` with the id and the vector of every passage of the run's view that has a vector
    /// from the model.
    pub(super) fn for_each_vector(
        &mut self,
        model: &str,
        view: &View,
        mut each: impl FnMut(PassageId, &[u8]),
    ) -> Result<(), Cause> {
        for (own, view) in [(true, &view.own), (false, &view.shared)] {
            if !view.is_empty() {
                self.store(own)
                    .for_each_vector(model, view, |id, bytes| each(PassageId { own, id }, bytes))?;
            }
        }
        Ok(())
    }
}
