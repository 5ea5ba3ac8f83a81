//! The tree of a trusted run, which changes the base directly. A journal records the previous state
//! of each changed entry.

mod journal;

use std::collections::BTreeSet;
use std::io;
use std::time::SystemTime;

use rustix::fs::OFlags;

use crate::FILE_LIMIT;
use crate::base::{Base, EntryInfo};
use crate::entry::Change;
use crate::error::{AtPath as _, FilesError};
use crate::path::{Intent, RunPath};
use crate::reader::Reader;
use crate::stamp::FileStamp;
use crate::tree::lookup::check_parents;
use crate::tree::{Edit, OpenFile, Tree};
use journal::Journal;

/// A tree that writes through to its base.
#[derive(Debug)]
pub(crate) struct WriteThrough {
    base: Base,
    journal: Journal,
    /// The paths whose last change failed in the host's file system, for example because the disk is
    /// full.
    unwritten: BTreeSet<RunPath>,
}

impl WriteThrough {
    pub(crate) fn new(base: Base) -> WriteThrough {
        WriteThrough { base, journal: Journal::default(), unwritten: BTreeSet::new() }
    }

    /// Creates the missing parent folders of `path`.
    fn create_parents(&mut self, path: &RunPath) -> Result<(), FilesError> {
        let existing = check_parents(self, path)?;
        for parent in path.parents().skip(existing) {
            self.change(&parent, |base| base.create_folder(&parent))?;
        }
        Ok(())
    }

    /// Checks that the base may be changed, and records the state of the entries that a change
    /// concerns. Called before every change.
    fn record<'a>(
        &mut self,
        paths: impl IntoIterator<Item = &'a RunPath>,
    ) -> Result<(), FilesError> {
        self.base.check_place()?;
        self.journal.record(&self.base, paths)
    }

    /// Checks that the base is still at its path.
    pub(crate) fn check_place(&self) -> Result<(), FilesError> {
        self.base.check_place()
    }

    /// Records the state of a base entry, then changes the entry.
    fn change(
        &mut self,
        path: &RunPath,
        change: impl FnOnce(&Base) -> io::Result<()>,
    ) -> Result<(), FilesError> {
        self.record([path])?;
        let changed = change(&self.base).at(Intent::Write, path);
        self.note(path, &changed);
        changed
    }

    /// Remembers the path of a change that failed in the host's file system.
    pub(crate) fn note<T>(&mut self, path: &RunPath, changed: &Result<T, FilesError>) {
        if changed.as_ref().is_err_and(FilesError::is_host_failure) {
            self.unwritten.insert(path.clone());
        }
    }

    /// Forgets a failed change of an entry whose content was replaced or removed since.
    pub(crate) fn forget_failure(&mut self, path: &RunPath) {
        self.unwritten.remove(path);
    }

    /// Returns the paths of the changes that failed since the last call, sorted.
    pub(crate) fn take_unwritten(&mut self) -> BTreeSet<RunPath> {
        std::mem::take(&mut self.unwritten)
    }

    /// Returns an entry and, if it is a folder, all of its descendants.
    fn with_descendants(
        &self,
        path: &RunPath,
        entry: EntryInfo,
    ) -> Result<Vec<(RunPath, EntryInfo)>, FilesError> {
        let is_folder = matches!(entry, EntryInfo::Folder { .. });
        let mut entries = vec![(path.clone(), entry)];
        if is_folder {
            entries.extend(
                self.base.walk(path)?.into_iter().map(|walked| (walked.path, walked.entry)),
            );
        }
        Ok(entries)
    }
}

impl Tree for WriteThrough {
    fn base(&self) -> Option<&Base> {
        Some(&self.base)
    }

    fn refresh(&mut self) {
        self.base.host_files.refresh();
    }

    fn entry(&self, path: &RunPath, intent: Intent) -> Result<EntryInfo, FilesError> {
        self.base.entry(path).at(intent, path)
    }

    fn open_file(&mut self, path: &RunPath) -> Result<Reader, FilesError> {
        let opened = self.base.open_file(path);
        let (file, meta) = opened.at(Intent::Read, path)?;
        Ok(Reader::base(path.clone(), file, FileStamp::of(&meta)))
    }

    fn children(
        &self,
        path: &RunPath,
        max: usize,
        intent: Intent,
    ) -> Result<Option<Vec<(String, EntryInfo)>>, FilesError> {
        self.base.children(path, max, intent)
    }

    fn has_repository_part(&self, folder: &RunPath, name: &str) -> Result<bool, FilesError> {
        let path = folder.child(name, Intent::Write)?;
        match self.entry(&path, Intent::Write) {
            Ok(entry) => Ok(entry != EntryInfo::Absent),
            // A link replaced the folder. The caller resolves the path again.
            Err(error) if error.is_raced() => Err(error),
            Err(_) => Ok(false),
        }
    }

    fn write_file(&mut self, path: &RunPath, data: &[u8]) -> Result<(), FilesError> {
        if data.len() as u64 > FILE_LIMIT {
            return Err(FilesError::exceeds_file_limit(path, FILE_LIMIT));
        }
        self.create_parents(path)?;
        self.change(path, |base| base.replace(path, data))?;
        self.forget_failure(path);
        Ok(())
    }

    fn edit_file(
        &mut self,
        path: &RunPath,
        old_size: u64,
        edit: Edit<'_>,
    ) -> Result<(), FilesError> {
        if edit.new_size(old_size) > FILE_LIMIT {
            return Err(FilesError::exceeds_file_limit(path, FILE_LIMIT));
        }
        self.create_parents(path)?;
        self.change(path, |base| match edit {
            Edit::Append(data) => base.append(path, data),
            Edit::WriteAt(offset, data) => base.write_at(path, offset, data),
            Edit::Truncate(size) => base.truncate(path, size),
        })
    }

    fn create_file(&mut self, path: &RunPath) -> Result<(), FilesError> {
        self.change(path, |base| base.create_empty(path))
    }

    fn create_folder(&mut self, path: &RunPath) -> Result<(), FilesError> {
        self.create_parents(path)?;
        self.change(path, |base| base.create_folder(path))
    }

    fn create_link(&mut self, path: &RunPath, target: &str) -> Result<(), FilesError> {
        self.create_parents(path)?;
        self.change(path, |base| base.link(path, target))
    }

    fn set_modified(&mut self, path: &RunPath, time: SystemTime) -> Result<(), FilesError> {
        self.change(path, |base| base.set_modified(path, time))
    }

    fn remove(&mut self, path: &RunPath, entry: &EntryInfo) -> Result<(), FilesError> {
        self.change(path, |base| base.remove(path, entry))?;
        self.journal.forget(path);
        self.forget_failure(path);
        Ok(())
    }

    fn remove_all(&mut self, path: &RunPath, entry: &EntryInfo) -> Result<(), FilesError> {
        let entries = self.with_descendants(path, entry.clone())?;
        self.record(entries.iter().map(|(path, _)| path))?;
        for (path, entry) in entries.iter().rev() {
            self.base.remove(path, entry).at(Intent::Write, path)?;
            self.journal.forget(path);
            self.unwritten.remove(path);
        }
        Ok(())
    }

    fn rename(&mut self, from: &RunPath, to: &RunPath) -> Result<(), FilesError> {
        self.create_parents(to)?;
        let entries = self.with_descendants(from, self.entry(from, Intent::Write)?)?;
        let mut moves = Vec::new();
        for (old, entry) in entries {
            let new = old.relocate(from, to);
            let new = new.map_err(|fault| FilesError::path(Intent::Write, old.as_str(), fault))?;
            if let EntryInfo::Link(target) = entry
                && old.leaves_from(&new, &target)
            {
                return Err(FilesError::link_leaves(&old));
            }
            moves.push((old, new));
        }
        self.record(moves.iter().map(|(old, _)| old).chain(moves.iter().map(|(_, new)| new)))?;
        self.base.rename(from, to).at(Intent::Write, from)?;
        for (old, _) in &moves {
            self.journal.forget(old);
        }
        Ok(())
    }

    fn open_for_writing(&mut self, path: &RunPath) -> Result<OpenFile, FilesError> {
        self.record([path])?;
        let opened = self.base.open_in_place(path, OFlags::empty());
        let file = opened.at(Intent::Write, path)?;
        Ok(OpenFile::Base { path: path.clone(), file })
    }

    fn changes(&self) -> Result<Vec<Change>, FilesError> {
        self.journal.changes(&self.base)
    }
}
