//! The paths of the host's own files. The host does not write to these paths on behalf of a program
//! or a model.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{HostFile, HostFiles, Route, host_written, is_project_file};

/// The paths of the host's own files, resolved when this value is created. A run that changes links
/// afterwards does not affect them.
#[derive(Debug, Default)]
pub struct HostPaths {
    /// The root of the workdir, as an absolute path without links.
    top: PathBuf,
    files: Vec<Located>,
}

#[derive(Debug)]
struct Located {
    file: HostFile,
    paths: Vec<PathBuf>,
    passed: Vec<PathBuf>,
    /// If true, the host loads files from the folder, and the folder is or contains the workdir.
    holds_workdir: bool,
}

impl HostFiles {
    /// Resolves the current paths of the files. `workdir` is the workdir of the runs.
    #[must_use]
    pub fn locate(&self, workdir: &Path) -> HostPaths {
        let top = workdir.canonicalize().unwrap_or_else(|_| workdir.to_owned());
        let locate = |file: &HostFile| {
            let Route { paths, passed } = Route::to(&file.path);
            let holds_workdir =
                !file.loaded.is_empty() && paths.iter().any(|path| top.starts_with(path));
            Located { file: file.clone(), paths, passed, holds_workdir }
        };
        let files = self.0.iter().map(locate).collect();
        HostPaths { top, files }
    }
}

impl HostPaths {
    /// Returns the reason why the host does not write `path` on behalf of a program or a model, or
    /// `None` if it may. `path` is an absolute path in a folder without links. The names of project
    /// files and of the files that only the host writes are recognized in every spelling.
    ///
    /// ```
    /// use std::path::Path;
    /// use wattle_files::HostFiles;
    /// let files = HostFiles::default()
    ///     .hide("/work/store.db", "the store")
    ///     .protect_folder("/work", &["wat"], "a folder of programs");
    /// let paths = files.locate(Path::new("/work"));
    /// let reason = paths.refusal(Path::new("/work/examples/Wattle.toml"));
    /// assert_eq!(reason, Some("it is a project file"));
    /// assert!(paths.refusal(Path::new("/work/store.db")).is_some());
    /// assert!(paths.refusal(Path::new("/work/greet.wat")).is_some());
    /// assert_eq!(paths.refusal(Path::new("/work/notes.txt")), None);
    /// ```
    #[must_use]
    pub fn refusal(&self, path: &Path) -> Option<&'static str> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if is_project_file(name) {
            return Some("it is a project file");
        }
        if path.parent() == Some(&self.top) && host_written(name).is_some() {
            return Some("only the host writes this file");
        }
        self.covers(path).then_some("it is one of the host's own files, or on the path to one")
    }

    /// Returns true if `path`, an absolute path in a folder without links, is one of the files, is
    /// in one of the folders, or is a link that leads to one of them. In a folder that contains the
    /// workdir and from which the host loads files, only the files that it loads count.
    fn covers(&self, path: &Path) -> bool {
        self.files.iter().any(|located| located.covers(path))
    }
}

impl Located {
    fn covers(&self, path: &Path) -> bool {
        let is_in = |folder: &PathBuf| {
            if self.holds_workdir {
                path.parent() == Some(folder.as_path()) && self.file.has_loaded_extension(path)
            } else {
                path.starts_with(folder)
            }
        };
        self.passed.iter().any(|passed| passed == path) || self.paths.iter().any(is_in)
    }
}
