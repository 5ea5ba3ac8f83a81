//! The project file, `wattle.toml` in the workdir or in a folder above it. Its author may be someone other than the user,
//! so each setting's class and the user's trust decide what the file may set.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
pub(crate) use wattle_agent::host::capability::files::PROJECT_FILE;

use super::file::Source;
use super::{File, Kind, Layer, Places, file, regular_file};
use crate::fault::Fault;

/// A project file.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// The folder, with links resolved.
    pub(crate) folder: PathBuf,
    /// The path of the file, as shown in messages. Relative paths in the file are relative to its
    /// folder.
    pub(crate) path: PathBuf,
    /// The content.
    pub(crate) bytes: Vec<u8>,
    /// The settings.
    pub(crate) requests: Vec<Request>,
    layer: Layer,
}

/// A setting of a project file.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The setting's key.
    pub(crate) key: &'static str,
    /// The setting's class.
    pub(crate) kind: Kind,
    /// The value in the file.
    pub(crate) value: Json,
    /// The value that applies without the project file.
    pub(crate) otherwise: Json,
    /// If true, the value takes effect only in a trusted folder.
    pub(crate) needs_trust: bool,
}

impl Project {
    /// Reads the project file of a folder: the one in the folder, or else the nearest one
    /// [above](above) it. Returns `None` if there is none. `user` contains the settings of the user file, the next lower layer.
    ///
    /// # Errors
    /// If the project file is not a regular file of the allowed size, is not TOML, or sets an
    /// unknown key or one that no project file may set.
    pub(super) fn read(
        folder: &Path,
        user: &Layer,
        places: &Places,
    ) -> Result<Option<Project>, Fault> {
        let path = folder.join(PROJECT_FILE);
        let bytes = regular_file::in_folder(folder, PROJECT_FILE, regular_file::LARGEST);
        let Some(bytes) = bytes.map_err(|why| file::unreadable(&path, &why))? else {
            let above = above(folder).map(|above| Project::read(&above, user, places));
            return above.transpose().map(Option::flatten);
        };
        let folder =
            folder.canonicalize().map_err(|error| file::unreadable(&path, &error.to_string()))?;
        Project::of_bytes(bytes, &path, &folder, user, places).map(Some)
    }

    /// Parses the content of a project file. `user` contains the settings of the user file, the
    /// next lower layer.
    ///
    /// # Errors
    /// If the content is not TOML, or sets an unknown key or one that no project file may set.
    pub(crate) fn of_bytes(
        bytes: Vec<u8>,
        path: &Path,
        folder: &Path,
        user: &Layer,
        places: &Places,
    ) -> Result<Project, Fault> {
        let text = file::text(bytes.clone(), path)?;
        let source = Source { path, text: &text };
        let table = source.table()?;
        let never = |key: &&String| *key == "trusted" || file::kind(key) == Some(Kind::Never);
        if let Some(key) = table.keys().find(never) {
            let fault = Fault::configuration(format!(
                "the project file `{}` may not set `{key}`",
                path.display()
            ));
            return Err(fault.hint("set it in the user file, by a flag or by a variable"));
        }
        source.check_keys(&table)?;
        let layer = Layer::of_table(&table, &source)?;
        let requests = layer.requests(user, places);
        Ok(Project { folder: folder.to_owned(), path: path.to_owned(), bytes, requests, layer })
    }

    /// Returns the settings that take effect only in a trusted folder.
    pub(crate) fn untrusted(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.needs_trust)
    }

    /// Returns the catalog folders that the file sets.
    pub(crate) fn catalog(&self) -> &[PathBuf] {
        self.layer.catalog.as_deref().unwrap_or_default()
    }

    /// Returns the agent folders that the file sets.
    pub(crate) fn agents(&self) -> &[PathBuf] {
        self.layer.agents.as_deref().unwrap_or_default()
    }

    /// Returns the recording that the file sets, or `None` if it sets none.
    pub(crate) fn cassette(&self) -> Option<&Path> {
        self.layer.cassette.as_ref()?.as_deref()
    }

    /// Returns all settings of the file.
    pub(crate) fn whole(self) -> File {
        File { path: self.path, layer: self.layer }
    }

    /// Returns the file's settings that take effect without trust.
    pub(crate) fn narrowing(self) -> File {
        let keys: Vec<&str> = self.untrusted().map(|request| request.key).collect();
        let layer = self.layer.clone().without(&keys);
        File { path: self.path, layer }
    }
}

/// Returns the nearest folder above `folder` that contains a project file. The search ends at the
/// root of the repository or at the user's home folder, whichever is nearer. Outside of both, no
/// folder is searched, and neither is one that belongs to another user than `folder` does: its
/// project file would be a stranger's.
pub(crate) fn above(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let is_top = |at: &&Path| at.join(".git").exists() || Some(*at) == home.as_deref();
    let top = folder.ancestors().find(is_top)?;
    let owner = |at: &Path| at.metadata().map(|about| about.uid()).ok();
    folder
        .ancestors()
        .take_while(|at| at.starts_with(top) && owner(at) == owner(&folder))
        .skip(1)
        .find(|at| at.join(PROJECT_FILE).symlink_metadata().is_ok())
        .map(Path::to_owned)
}

/// Returns a folder and the folders above it up to the root of its repository, nearest first, with
/// links resolved. Outside of a repository, returns only the folder. The folders of other users than
/// the folder's are left out.
pub(crate) fn repository_folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(folder) = folder.canonicalize() else { return Vec::new() };
    let root = folder.ancestors().find(|at| at.join(".git").exists()).unwrap_or(&folder);
    let owner = |at: &Path| at.metadata().map(|about| about.uid()).ok();
    let inside = folder.ancestors().take_while(|at| at.starts_with(root));
    inside.take_while(|at| owner(at) == owner(&folder)).map(Path::to_owned).collect()
}

/// Returns the settings of a project file that take effect without trust, as lines such as
/// `max_steps = 3`. Each line is paired with a flag that is true if the setting needs trust. A fuzz
/// target checks that all flags are false.
///
/// # Errors
/// If the bytes are not TOML, or set an unknown key or one that no project file may set.
pub(crate) fn untrusted_settings(bytes: &[u8]) -> Result<Vec<(String, bool)>, Fault> {
    let (user, places) = (Layer::default(), Places::default());
    let path = Path::new(PROJECT_FILE);
    let project = Project::of_bytes(bytes.to_vec(), path, Path::new("."), &user, &places)?;
    let effective = project.narrowing().layer.requests(&user, &places);
    Ok(effective.into_iter().map(|request| (request.to_string(), request.needs_trust)).collect())
}

/// Formats the setting as a line: `max_steps = 3`.
impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}
