//! The host's own files, for the files that the host writes on behalf of a program or a model.

use std::path::{Path, PathBuf};

use super::{HostFile, HostFiles, Route};

/// The paths of the host's own files when this value was created, so that a run that changes links
/// afterwards changes nothing about them.
#[derive(Debug, Default)]
pub struct HostPaths(Vec<Located>);

#[derive(Debug)]
struct Located {
    file: HostFile,
    paths: Vec<PathBuf>,
    passed: Vec<PathBuf>,
    /// If true, the workdir is the folder, or is in it, and the host loads files from the folder.
    holds_workdir: bool,
}

impl HostFiles {
    /// Returns the current paths of the files. `workdir` is the folder of the runs.
    #[must_use]
    pub fn locate(&self, workdir: &Path) -> HostPaths {
        let top = workdir.canonicalize().unwrap_or_else(|_| workdir.to_owned());
        let locate = |file: &HostFile| {
            let Route { paths, passed } = Route::to(&file.path);
            let holds_workdir =
                !file.loaded.is_empty() && paths.iter().any(|path| top.starts_with(path));
            Located { file: file.clone(), paths, passed, holds_workdir }
        };
        HostPaths(self.0.iter().map(locate).collect())
    }
}

impl HostPaths {
    /// Returns true if `path`, an absolute path in a folder without links, is one of the files, is
    /// in one of the folders, or is a link that leads to one of them. In a folder that contains the
    /// workdir and from which the host loads files, only the files that it loads count.
    ///
    /// ```
    /// use std::path::Path;
    /// use wattle_files::HostFiles;
    /// let files = HostFiles::default()
    ///     .hide("/work/store.db", "the store")
    ///     .protect_folder("/work", &["wat"], "a folder of programs");
    /// let paths = files.locate(Path::new("/work"));
    /// assert!(paths.covers(Path::new("/work/store.db")));
    /// assert!(paths.covers(Path::new("/work/greet.wat")));
    /// assert!(!paths.covers(Path::new("/work/notes.txt")));
    /// ```
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        self.0.iter().any(|located| located.covers(path))
    }
}

impl Located {
    fn covers(&self, path: &Path) -> bool {
        let is_in = |folder: &PathBuf| match self.holds_workdir {
            true => path.parent() == Some(folder.as_path()) && self.file.has_loaded_extension(path),
            false => path.starts_with(folder),
        };
        self.passed.iter().any(|passed| passed == path) || self.paths.iter().any(is_in)
    }
}
