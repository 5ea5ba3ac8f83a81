//! A catalog, together with the folders from which it was read.

use std::path::Path;

use crate::folder::Folder;
use crate::problem::Problem;
use crate::{Catalog, Entry};

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
/// let before = Folders::open(&[dir.path()], &|_| Ok(()));
/// assert!(before.rescan(&|_| Ok(())).is_none(), "nothing changed");
///
/// std::fs::write(dir.path().join("hello.wat"), program("(resv \"good day\")"))?;
/// let after = before.rescan(&|_| Ok(())).expect("a file changed");
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
    /// programs in the folders that `check` rejects.
    #[must_use]
    pub fn open<P: AsRef<Path>>(
        folders: &[P],
        check: &dyn Fn(&Entry) -> Result<(), Problem>,
    ) -> Folders {
        let folders = folders.iter().map(|folder| Folder::read(folder.as_ref(), check));
        Folders::of(folders.collect(), Vec::new())
    }

    fn of(folders: Vec<Folder>, added: Vec<Entry>) -> Folders {
        let catalog = Catalog::of_folders(&folders, &added);
        Folders { folders, added, catalog }
    }

    /// Returns a copy of the folders with additional programs, which no rescan removes. They replace
    /// programs with the same names.
    #[must_use]
    pub fn adding(&self, programs: &[Entry]) -> Folders {
        let is_replaced = |own: &&Entry| programs.iter().any(|new| new.name() == own.name());
        let known = self.added.iter().filter(|own| !is_replaced(own));
        let added = known.chain(programs).cloned().collect();
        Folders::of(self.folders.clone(), added)
    }

    /// Returns the catalog as of the last scan.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Scans the folders again and reads only the changed files. Returns `None` if nothing changed.
    #[must_use]
    pub fn rescan(&self, check: &dyn Fn(&Entry) -> Result<(), Problem>) -> Option<Folders> {
        let mut any_changed = false;
        let folders = self.folders.iter().map(|folder| {
            let (folder, changed) = folder.rescan(check);
            any_changed |= changed;
            folder
        });
        let folders: Vec<Folder> = folders.collect();
        any_changed.then(|| Folders::of(folders, self.added.clone()))
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
