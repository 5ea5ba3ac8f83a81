//! The hashes that identify trusted content: one for the project file, and one for each program in
//! its catalog folders.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{Project, regular_file};
use crate::fault::Fault;

/// Maximum number of programs in a project's catalog folders.
const MOST_PROGRAMS: usize = 2_000;
/// Maximum total size of the programs in a project's catalog folders, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// The hashes of a project's files, keyed by the file names that messages show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pins(BTreeMap<String, String>);

impl Pins {
    /// Hashes a project file and the programs in the catalog folders that it sets.
    ///
    /// # Errors
    /// If there are too many programs, or they are too large in total.
    pub(crate) fn of(project: &Project) -> Result<Pins, Fault> {
        let mut pins = BTreeMap::from([(FILE.to_owned(), hash(&project.bytes))]);
        let mut left = MOST_BYTES;
        for folder in project.catalog() {
            let shown = folder
                .strip_prefix(project.path.parent().unwrap_or(Path::new("")))
                .unwrap_or(folder);
            // An unreadable folder adds no programs. The catalog reports the error when it loads
            // the folder.
            for name in programs(folder, project)? {
                let content =
                    regular_file::in_folder(folder, &name, regular_file::LARGEST.min(left));
                let pin = match &content {
                    Ok(Some(bytes)) => hash(bytes),
                    Ok(None) => continue,
                    // The catalog rejects the file for the same reason.
                    Err(why) => why.clone(),
                };
                left = left
                    .saturating_sub(content.ok().flatten().map_or(0, |bytes| bytes.len() as u64));
                if left == 0 || pins.len() > MOST_PROGRAMS {
                    return Err(too_many(project));
                }
                pins.insert(shown.join(&name).to_string_lossy().into_owned(), pin);
            }
        }
        Ok(Pins(pins))
    }

    /// Returns a single hash of all files.
    pub(crate) fn hash(&self) -> String {
        let lines = self.0.iter().map(|(name, pin)| format!("{pin}  {name}\n"));
        hash(lines.collect::<String>().as_bytes())
    }

    /// Returns the names of the programs.
    pub(crate) fn programs(&self) -> impl Iterator<Item = &str> {
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

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Returns the sorted names of a folder's programs. Selects the same files as the catalog.
fn programs(folder: &Path, project: &Project) -> Result<Vec<String>, Fault> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && name.ends_with(".wat") {
            names.push(name);
        }
        if names.len() > MOST_PROGRAMS {
            return Err(too_many(project));
        }
    }
    names.sort();
    Ok(names)
}

fn too_many(project: &Project) -> Fault {
    Fault::configuration(format!(
        "the catalog folders of `{}` have more than {MOST_PROGRAMS} programs or {} MiB, and \
         cannot be trusted",
        project.path.display(),
        MOST_BYTES >> 20
    ))
    .hint("name a smaller folder, or name the folders by `--catalog DIR`")
}
