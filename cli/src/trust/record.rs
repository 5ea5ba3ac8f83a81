//! The user's decisions to trust folders. They are stored in the user's data folder, in a file that
//! only the user can read and write.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_agent::host::create_folder;

use super::State;
use super::pins::Pins;
use crate::config::{Places, Project, regular_file};
use crate::fault::Fault;
use crate::files;

/// Maximum size of the file, in bytes.
const LARGEST: u64 = 64 << 20;

/// The records of all folders, keyed by the folders' paths with links resolved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Records {
    folders: BTreeMap<String, Record>,
    /// The decisions about files for agents, keyed by the paths of their folders, with links
    /// resolved, and then by their paths in the folders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    content: BTreeMap<String, BTreeMap<String, Decision>>,
}

/// The user's decision about a file or a skill for agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    /// If true, the user trusts the content. If false, the user declined.
    trusted: bool,
    /// The hash of the content.
    hash: String,
}

/// The user's decision about one folder, and the content that it applies to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// If true, the user trusts the folder. If false, the user declined.
    pub(crate) trusted: bool,
    /// The hashes of the content.
    pub(crate) pins: Pins,
    /// The settings that needed trust when the user decided.
    settings: BTreeMap<String, Json>,
}

impl Record {
    /// Returns one line for each difference between this record and the project's current content.
    /// Differences in settings come before those in files.
    pub(super) fn differences(&self, project: &Project, pins: &Pins) -> Vec<String> {
        let now = settings(project);
        let changed = now.iter().filter(|(key, value)| self.settings.get(*key) != Some(value)).map(
            |(key, value)| match self.settings.get(key) {
                Some(was) => format!("{key} was {was} and is {value}"),
                None => format!("{key} is {value}, and was not set"),
            },
        );
        let gone = self.settings.iter().filter(|(key, _)| !now.contains_key(*key));
        let gone = gone.map(|(key, was)| format!("{key} was {was}, and is not set"));
        changed.chain(gone).chain(pins.differences(&self.pins)).collect()
    }
}

/// Returns the settings of a project file that need trust.
fn settings(project: &Project) -> BTreeMap<String, Json> {
    project.untrusted().map(|request| (request.key.to_owned(), request.value.clone())).collect()
}

impl Records {
    /// Reads the records from the user's data folder. Returns none if their file does not exist.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn open(places: &Places) -> Result<Records, Fault> {
        let Some(path) = &places.trust else { return Ok(Records::default()) };
        let failed = |why: &str| {
            Fault::configuration(format!(
                "failed to read the trusted folders `{}`: {why}",
                path.display()
            ))
            .hint("remove that file, and trust your folders again by `wattle trust DIR`")
        };
        let Some(bytes) = regular_file::of_user(path, LARGEST).map_err(|why| failed(&why))? else {
            return Ok(Records::default());
        };
        serde_json::from_slice(&bytes).map_err(|error| failed(&error.to_string()))
    }

    /// Returns the record of a folder, or `None` if there is none.
    pub(crate) fn get(&self, folder: &Path) -> Option<&Record> {
        self.folders.get(folder.to_str()?)
    }

    /// Records the user's decision about a project file. A folder whose path is not UTF-8 cannot be
    /// recorded.
    pub(crate) fn set(&mut self, project: &Project, pins: &Pins, trusted: bool) {
        if let Some(folder) = project.folder.to_str() {
            let record = Record { trusted, pins: pins.clone(), settings: settings(project) };
            self.folders.insert(folder.to_owned(), record);
        }
    }

    /// Removes the record of a folder. Returns false if there was none.
    pub(crate) fn forget(&mut self, folder: &Path) -> bool {
        folder.to_str().is_some_and(|folder| self.folders.remove(folder).is_some())
    }

    /// Removes the decisions about the files for agents in a folder. Returns false if there were
    /// none.
    pub(crate) fn forget_content(&mut self, folder: &Path) -> bool {
        folder.to_str().is_some_and(|folder| self.content.remove(folder).is_some())
    }

    /// Records the user's decision about a file or a skill for agents. A folder whose path is not
    /// UTF-8 cannot be recorded.
    pub(super) fn set_content(&mut self, folder: &Path, place: &str, hash: &str, trusted: bool) {
        if let Some(folder) = folder.to_str() {
            let decision = Decision { trusted, hash: hash.to_owned() };
            self.content.entry(folder.to_owned()).or_default().insert(place.to_owned(), decision);
        }
    }

    /// Compares a file or a skill for agents with the decision about it.
    pub(super) fn state_of(&self, folder: &Path, place: &str, hash: &str) -> State {
        let decisions = folder.to_str().and_then(|folder| self.content.get(folder));
        match decisions.and_then(|decisions| decisions.get(place)) {
            None => State::Unknown,
            Some(decision) if decision.hash == hash => {
                if decision.trusted {
                    State::Trusted
                } else {
                    State::Declined
                }
            }
            Some(decision) if decision.trusted => {
                State::Changed(vec![format!("{place} has other content")])
            }
            Some(_) => State::Unknown,
        }
    }

    /// Changes the records and replaces the file atomically. A lock ensures that only one process
    /// does so at a time. Only the user can read the file. Returns the result of `change`.
    ///
    /// # Errors
    /// If the user has no data folder, or the file cannot be read or written.
    pub(crate) fn change<T>(
        places: &Places,
        change: impl FnOnce(&mut Records) -> T,
    ) -> Result<T, Fault> {
        let Some((path, folder)) =
            places.trust.as_ref().and_then(|path| Some((path, path.parent()?)))
        else {
            return Err(Fault::configuration(
                "there is no home directory for the record of trusted folders",
            ));
        };
        let failed = |error: std::io::Error| {
            Fault::configuration(format!(
                "failed to write the trusted folders `{}`: {error}",
                path.display()
            ))
        };
        create_folder(folder).map_err(failed)?;
        let lock = File::options()
            .create(true)
            .append(true)
            .open(folder.join("trust.lock"))
            .map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut records = Records::open(places)?;
        let done = change(&mut records);
        let text = serde_json::to_vec_pretty(&records).map_err(|error| failed(error.into()))?;
        files::write_private(path, &text).map_err(failed)?;
        Ok(done)
    }
}
