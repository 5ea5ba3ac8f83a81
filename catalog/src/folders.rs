//! The folders of a catalog, and the catalog as they are now.

use std::path::Path;

use crate::folder::Folder;
use crate::problem::Problem;
use crate::{Catalog, Entry};

/// A catalog and the folders that it was read from. A value that does not change: a further look makes another one.
///
/// A file whose new version is not in order keeps the version before, as long as the process knows it, and the catalog's
/// [`problems`](Catalog::problems) say so.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use wattle_catalog::Folders;
///
/// let dir = tempfile::tempdir()?;
/// let program = |body: &str| format!(";;; name = \"hello\"\n;;; description = \"Greet\"\n{body}\n");
/// std::fs::write(dir.path().join("hello.wat"), program("(resv \"hello\")"))?;
/// let before = Folders::open(&[dir.path()], &|_| Ok(()));
/// assert!(before.look(&|_| Ok(())).is_none(), "nothing changed");
///
/// std::fs::write(dir.path().join("hello.wat"), program("(resv \"good day\")"))?;
/// let after = before.look(&|_| Ok(())).expect("a file changed");
/// assert!(after.catalog().get("hello").expect("it is there").body().contains("good day"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Folders {
    folders: Vec<Folder>,
    catalog: Catalog,
}

impl Folders {
    /// Reads the built-in programs and over them those of the folders, as [`Catalog::load`] does. A program of a folder that
    /// `check` refuses is left out.
    #[must_use]
    pub fn open<P: AsRef<Path>>(folders: &[P], check: &dyn Fn(&Entry) -> Result<(), Problem>) -> Folders {
        Folders::of(folders.iter().map(|folder| Folder::read(folder.as_ref(), check)).collect())
    }

    fn of(folders: Vec<Folder>) -> Folders {
        let catalog = Catalog::of_folders(&folders);
        Folders { folders, catalog }
    }

    /// The catalog as the folders were at the last look.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Looks at the folders again and reads the files that changed; `None` where nothing did. Costs the reading of the
    /// folders' entries where nothing did.
    #[must_use]
    pub fn look(&self, check: &dyn Fn(&Entry) -> Result<(), Problem>) -> Option<Folders> {
        let mut any = false;
        let folders = self.folders.iter().map(|folder| {
            let (folder, changed) = folder.look(check);
            any |= changed;
            folder
        });
        let folders: Vec<Folder> = folders.collect();
        any.then(|| Folders::of(folders))
    }

    /// The same without the files that those problems are about: what a check refuses that came after the look.
    #[must_use]
    pub fn refuse(&self, problems: &[Problem]) -> Folders {
        Folders::of(self.folders.iter().map(|folder| folder.refuse(problems)).collect())
    }
}

/// A catalog that comes from no folder never changes.
impl From<Catalog> for Folders {
    fn from(catalog: Catalog) -> Folders {
        Folders { folders: Vec::new(), catalog }
    }
}
