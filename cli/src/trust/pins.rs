//! The hashes that identify trusted content: one for the project file, and one for each file that
//! its settings load. These are the programs of its catalog folders, the agents and traits of its
//! agent folders, and its recording.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wattle_agent::agents::TRAITS_FOLDER;

use crate::config::{Project, regular_file};
use crate::fault::Fault;

/// Maximum number of files that a project's settings may load.
const MOST_FILES: usize = 2_000;
/// Maximum total size of the files that a project's settings may load, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// The file extension of programs.
pub(crate) const PROGRAM: &str = "wat";
/// The file extension of agents and traits.
pub(crate) const AGENT: &str = "toml";

/// The hashes of a project's files, keyed by the file names that messages show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pins(BTreeMap<String, String>);

impl Pins {
    /// Hashes a project file and the files that its settings load.
    ///
    /// # Errors
    /// If there are too many files, if they are too large in total, if a name is not UTF-8, or if
    /// the recording is not a regular file.
    pub(crate) fn of(project: &Project) -> Result<Pins, Fault> {
        let pins = BTreeMap::from([(FILE.to_owned(), hash(&project.bytes))]);
        let mut pinning = Pinning { project, pins, left: MOST_BYTES };
        for folder in project.catalog() {
            pinning.add_folder(folder, PROGRAM)?;
        }
        for folder in project.agents() {
            pinning.add_folder(folder, AGENT)?;
            pinning.add_folder(&folder.join(TRAITS_FOLDER), AGENT)?;
        }
        if let Some(recording) = project.cassette() {
            pinning.add_recording(recording)?;
        }
        Ok(Pins(pinning.pins))
    }

    /// Returns a single hash of all files.
    pub(crate) fn hash(&self) -> String {
        let lines = self.0.iter().map(|(name, pin)| format!("{pin}  {name}\n"));
        hash(lines.collect::<String>().as_bytes())
    }

    /// Returns the names of the programs.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &str> {
        self.loaded().filter(|name| is_program(name))
    }

    /// Returns the names of the agents, the traits and the recording.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.loaded().filter(|name| !is_program(name))
    }

    /// Returns the names of all files that the settings load, each with its kind.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.loaded().map(|name| (kind(name), name))
    }

    fn loaded(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| *name != FILE)
    }

    /// Returns a line for each file that was added, changed or removed since `before`.
    pub(super) fn differences(&self, before: &Pins) -> Vec<String> {
        let changed = self.0.iter().filter_map(|(name, pin)| match before.0.get(name) {
            None => Some(format!("{name} is new")),
            Some(was) if was != pin => Some(format!("{name} has other content")),
            Some(_) => None,
        });
        let gone = before
            .0
            .keys()
            .filter(|name| !self.0.contains_key(*name))
            .map(|name| format!("{name} is gone"));
        changed.chain(gone).collect()
    }
}

/// The key of the project file in [`Pins`].
const FILE: &str = crate::config::PROJECT_FILE;

pub(super) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn is_program(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|own| own == PROGRAM)
}

fn kind(name: &str) -> &'static str {
    if is_program(name) { "program" } else { "file" }
}

/// The hashes of a project's files, while they are computed.
struct Pinning<'a> {
    project: &'a Project,
    pins: BTreeMap<String, String>,
    /// Maximum total size of the remaining files, in bytes.
    left: u64,
}

impl Pinning<'_> {
    /// Adds the files in a folder that have the given extension, but not those in subfolders. An
    /// unreadable folder adds no files. The catalog and the agents report the error when they load
    /// the folder.
    fn add_folder(&mut self, folder: &Path, extension: &str) -> Result<(), Fault> {
        for name in self.names(folder, extension)? {
            match regular_file::in_folder(folder, &name, regular_file::LARGEST) {
                Ok(Some(bytes)) => self.add_content(&folder.join(&name), &bytes)?,
                Ok(None) => {}
                // The catalog and the agents reject the file for the same reason.
                Err(why) => self.add(&folder.join(&name), why)?,
            }
        }
        Ok(())
    }

    /// Adds the recording. A recording that cannot be pinned is an error, because playback has no
    /// maximum size and follows links.
    fn add_recording(&mut self, path: &Path) -> Result<(), Fault> {
        let unusable = |why: &str| self.unusable_recording(path, why);
        // A path without a file name, such as `..`, is a folder and cannot be played.
        let Some(name) = path.file_name() else { return Ok(()) };
        let name = name.to_str().ok_or_else(|| unusable("its name is not UTF-8"))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let content = regular_file::in_folder(folder.unwrap_or(Path::new(".")), name, self.left);
        let content = content.map_err(|why| unusable(&why))?;
        content.map_or(Ok(()), |bytes| self.add_content(path, &bytes))
    }

    fn add_content(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| self.too_many())?;
        self.add(path, hash(bytes))
    }

    fn add(&mut self, path: &Path, pin: String) -> Result<(), Fault> {
        if self.pins.len() > MOST_FILES {
            return Err(self.too_many());
        }
        let folder = self.project.path.parent().unwrap_or(Path::new(""));
        let shown = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        // The project file may itself be in an agent folder. Its earlier pin is kept, because it
        // is the hash of the bytes that are in effect.
        self.pins.entry(shown).or_insert(pin);
        Ok(())
    }

    /// Returns the names of the files in a folder that have the given extension, sorted. These are
    /// the files that the catalog or the agents load from the folder.
    fn names(&self, folder: &Path, extension: &str) -> Result<Vec<String>, Fault> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for name in entries.flatten().map(|entry| entry.file_name()) {
            if is_loaded(&name, extension) {
                names.push(name.into_string().map_err(|_| self.unnamed(folder))?);
            }
            if names.len() > MOST_FILES {
                return Err(self.too_many());
            }
        }
        names.sort();
        Ok(names)
    }

    fn too_many(&self) -> Fault {
        Fault::configuration(format!(
            "the settings of `{}` load more than {MOST_FILES} files or {} MiB, and cannot be \
             trusted",
            self.project.path.display(),
            MOST_BYTES >> 20
        ))
        .hint("name smaller folders, or name the folders by `--catalog DIR` and `--agents DIR`")
    }

    fn unnamed(&self, folder: &Path) -> Fault {
        Fault::configuration(format!(
            "the project file `{}` cannot be trusted: the name of a file in `{}` is not UTF-8",
            self.project.path.display(),
            folder.display()
        ))
        .hint("rename or remove the file")
    }

    fn unusable_recording(&self, path: &Path, why: &str) -> Fault {
        Fault::configuration(format!(
            "the project file `{}` cannot be trusted: failed to read its recording `{}`: {why}",
            self.project.path.display(),
            path.display()
        ))
        .hint(format!(
            "the recording must be a regular file, and all files together may have {} MiB; name \
             another one by `--cassette FILE` instead of in the project file",
            MOST_BYTES >> 20
        ))
    }
}

/// Returns true if the catalog or the agents load a file with this name. `extension` is the
/// extension of the files that they load. Hidden files are never loaded.
fn is_loaded(name: &OsStr, extension: &str) -> bool {
    let is_hidden = name.as_encoded_bytes().starts_with(b".");
    !is_hidden && Path::new(name).extension().is_some_and(|own| own == extension)
}
