//! A catalog, together with the folders from which it was read.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::folder::Folder;
use crate::problem::Problem;
use crate::{Catalog, Entry, Name};

/// A function that checks a program of a catalog and returns a problem if the program cannot be
/// used.
pub type Check<'a> = &'a dyn Fn(&Catalog, &Entry) -> Result<(), Problem>;

/// A catalog, and the folders from which it was read. This value never changes: a rescan creates a
/// new one.
///
/// If the new version of a file is invalid, its previous version stays in use for as long as the
/// process runs, and the catalog's [`problems`](Catalog::problems) report it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use wattle_catalog::Folders;
///
/// let dir = tempfile::tempdir()?;
/// let program = |body: &str| {
///     format!(";;; name = \"hello\"\n;;; description = \"Greet\"\n{body}\n")
/// };
/// std::fs::write(dir.path().join("hello.wat"), program("(resv \"hello\")"))?;
/// let before = Folders::open(&[dir.path()], &|_, _| Ok(()));
/// assert!(before.rescan(&|_, _| Ok(())).is_none(), "nothing changed");
///
/// std::fs::write(dir.path().join("hello.wat"), program("(resv \"good day\")"))?;
/// let after = before.rescan(&|_, _| Ok(())).expect("a file changed");
/// assert!(after.catalog().get("hello").expect("the program exists").body().contains("good day"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Folders {
    folders: Vec<Folder>,
    /// The programs that were added one by one.
    added: Vec<Entry>,
    catalog: Catalog,
}

impl Folders {
    /// Reads the built-in programs and the programs in the folders, like [`Catalog::load`]. Omits
    /// programs in the folders that `check` rejects. `check` gets a program and the catalog that
    /// contains all programs which are not rejected so far.
    #[must_use]
    pub fn open<P: AsRef<Path>>(folders: &[P], check: Check<'_>) -> Folders {
        let folders = folders.iter().map(|folder| Folder::read(folder.as_ref()));
        Folders::of(folders.collect(), Vec::new()).checked(check)
    }

    fn new_programs(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.folders.iter().flat_map(Folder::new_programs)
    }

    /// Checks the new programs. Those that are rejected are replaced by their previous versions.
    fn checked(mut self, check: Check<'_>) -> Folders {
        let count = self.new_programs().count();
        // If a program is rejected, others may call one that is gone now, so they are checked again.
        for _ in 0..count {
            let rejected =
                self.new_programs().filter_map(|entry| check(&self.catalog, entry).err());
            let rejected: Vec<Problem> = rejected.collect();
            if rejected.is_empty() {
                break;
            }
            self = self.refuse(&rejected);
        }
        self.folders.iter_mut().for_each(Folder::accept);
        self
    }

    fn of(folders: Vec<Folder>, added: Vec<Entry>) -> Folders {
        let catalog = Catalog::of_folders(&folders, &added);
        Folders { folders, added, catalog }
    }

    /// Returns a copy of the folders with additional programs, which no rescan removes. They replace
    /// programs with the same names.
    #[must_use]
    pub fn adding(&self, programs: Vec<Entry>) -> Folders {
        if programs.is_empty() {
            return self.clone();
        }
        let names: HashSet<&Name> = programs.iter().map(Entry::name).collect();
        let known = self.added.iter().filter(|own| !names.contains(own.name()));
        let added = known.chain(&programs).cloned().collect();
        Folders::of(self.folders.clone(), added)
    }

    /// Returns the catalog as of the last scan.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Scans the folders again, reads only the changed files, and checks them like
    /// [`open`](Folders::open). Returns `None` if nothing changed.
    #[must_use]
    pub fn rescan(&self, check: Check<'_>) -> Option<Folders> {
        let mut any_changed = false;
        let folders = self.folders.iter().map(|folder| {
            let (folder, changed) = folder.rescan();
            any_changed |= changed;
            folder
        });
        let folders: Vec<Folder> = folders.collect();
        any_changed.then(|| Folders::of(folders, self.added.clone()).checked(check))
    }

    /// Returns a copy of the folders. For each file that one of the problems names, the copy
    /// contains the problem instead of the program. Checks that run after the scan use this
    /// function.
    #[must_use]
    pub fn refuse(&self, problems: &[Problem]) -> Folders {
        let folders = self.folders.iter().map(|folder| folder.refuse(problems)).collect();
        Folders::of(folders, self.added.clone())
    }
}

/// Wraps a catalog that was not read from folders. Rescanning has no effect.
impl From<Catalog> for Folders {
    fn from(catalog: Catalog) -> Folders {
        Folders { folders: Vec::new(), added: Vec::new(), catalog }
    }
}
