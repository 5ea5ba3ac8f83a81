//! Jobs: a program in each language, its inputs, and the expected result.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::Result;

/// A job for all peers.
pub struct Job {
    name: String,
    /// The inputs by name, in the order of the program's arguments.
    inputs: Vec<(String, String)>,
    /// The result that every peer must return.
    pub expected: String,
}

impl Job {
    /// Loads a job from a file `NAME.json` with the keys `inputs` and `expected`.
    ///
    /// # Errors
    /// If the file cannot be read or has an invalid format.
    pub fn load(folder: &Path, name: &str) -> Result<Job> {
        let path = folder.join(format!("{name}.json"));
        let text =
            std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let document: Map<String, Value> = serde_json::from_str(&text)?;
        let string = |value: &Value| value.as_str().map(str::to_owned);
        let inputs = document.get("inputs").and_then(Value::as_object).into_iter().flatten();
        let inputs = inputs.map(|(key, value)| Some((key.clone(), string(value)?)));
        let expected = document.get("expected").and_then(string);
        match (inputs.collect::<Option<Vec<_>>>(), expected) {
            (Some(inputs), Some(expected)) => Ok(Job { name: name.to_owned(), inputs, expected }),
            _ => Err(format!("{}: `inputs` or `expected` is missing", path.display()).into()),
        }
    }

    /// Returns the job's name, which is also the name of its catalog program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the inputs, each with its name.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inputs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the inputs as arguments.
    #[must_use]
    pub fn args(&self) -> Vec<String> {
        self.inputs.iter().map(|(_, value)| value.clone()).collect()
    }

    /// Reads the job's program in a language: `python`, `js` or `wattle`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn program(&self, language: &str, extension: &str) -> Result<String> {
        let path = folder(language).join(format!("{}.{extension}", self.name));
        std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()).into())
    }
}

/// Returns the folder that contains the programs in a language.
#[must_use]
pub fn folder(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs").join(language)
}
