//! Where the recordings of a suite lie: `recordings/MODEL/KIND/NAME.jsonl`, and `NAME.tools.jsonl` for the baseline.

use std::path::{Path, PathBuf};

use wattle_agent::model::{Cassette, ModelError};

use crate::attempt::Approach;
use crate::error::EvalError;
use crate::task::Task;

/// The recordings that lie beside the tasks of a suite.
#[derive(Clone, Debug)]
pub struct Recordings {
    dir: PathBuf,
}

impl Recordings {
    /// The folder in a suite's.
    pub(crate) const FOLDER: &str = "recordings";

    pub(crate) fn beside(suite: &Path) -> Recordings {
        Recordings { dir: suite.join(Self::FOLDER) }
    }

    /// The models that there are recordings of, sorted.
    ///
    /// # Errors
    /// Where the folder is there and cannot be read.
    pub fn models(&self) -> Result<Vec<String>, EvalError> {
        let unreadable = |why: std::io::Error| EvalError::load(&self.dir, why.to_string());
        if !self.dir.exists() {
            return Ok(Vec::new());
        }
        let mut models = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).filter(|name| !name.starts_with('.'));
            models.extend(name.filter(|_| path.is_dir()).map(decoded));
        }
        models.sort();
        Ok(models)
    }

    /// The file of an attempt's recording: the first one's, unless it is a later one with a recording of its own.
    pub(crate) fn find(&self, model: &str, approach: Approach, task: &Task, trial: u32) -> Option<PathBuf> {
        let own = self.path(model, approach, task, trial);
        let first = || self.path(model, approach, task, 1);
        [own, first()].into_iter().find(|path| path.is_file())
    }

    /// Where an attempt's recording is written to.
    pub(crate) fn path(&self, model: &str, approach: Approach, task: &Task, trial: u32) -> PathBuf {
        let mut name = task.id.clone();
        if trial > 1 {
            name.push_str(&format!(".{trial}"));
        }
        if approach == Approach::Tools {
            name.push_str(".tools");
        }
        self.dir.join(encoded(model)).join(name + ".jsonl")
    }
}

/// Opens a recording, with its path in what goes wrong.
pub(crate) fn open(path: &Path) -> Result<Cassette, EvalError> {
    Cassette::open(path).map_err(|why: ModelError| EvalError::load(path, why.to_string()))
}

/// A model's name as that of a folder: what a folder's name cannot have is written as `%` and two hex digits.
fn encoded(model: &str) -> String {
    let mut name = String::new();
    for (at, byte) in model.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => name.push_str("%2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(char::from(byte)),
            byte => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// The model that a folder's name stands for.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        match after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_a_folder_of_its_own() {
        for (model, folder) in [
            ("gpt-5.1", "gpt-5.1"),
            ("openai/gpt-5.1:free", "openai%2fgpt-5.1%3afree"),
            ("..", "%2e."),
            ("ä %", "%c3%a4%20%25"),
        ] {
            assert_eq!(encoded(model), folder);
            assert_eq!(decoded(folder), model);
        }
        assert_eq!(decoded("50%"), "50%");
    }
}
