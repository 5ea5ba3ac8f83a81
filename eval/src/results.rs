//! Results files. Each attempt is appended as a line when it ends, so an interrupted evaluation can
//! be resumed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::attempt::{Attempt, Verdict};
use crate::error::EvalError;

/// The name of the file in a folder.
const NAME: &str = "results.jsonl";

/// A results file, and the attempts that it contained when it was opened.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: Mutex<File>,
    previous: Vec<Attempt>,
}

impl Results {
    /// Opens a file, or `results.jsonl` in a folder, and creates it if it does not exist. With
    /// `fresh`, its content is dropped. An incomplete last line is always dropped.
    ///
    /// # Errors
    /// The file cannot be read or written, or any other line is not an attempt.
    pub fn open(path: &Path, fresh: bool) -> Result<Results, EvalError> {
        let path = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
        let failed = |why: std::io::Error| EvalError::write(&path, why.to_string());
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut open = OpenOptions::new();
        let file = open.append(true).read(true).create(true).open(&path).map_err(failed)?;
        let mut previous = Vec::new();
        if fresh {
            file.set_len(0).map_err(failed)?;
        } else {
            let bytes = std::fs::read(&path).map_err(failed)?;
            let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            previous = read(&path, bytes.get(..complete).unwrap_or_default())?;
            file.set_len(complete as u64).map_err(failed)?;
        }
        Ok(Results { path, file: Mutex::new(file), previous })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last earlier result of the same attempt, unless it is an error.
    pub(crate) fn find(&self, wanted: &Attempt) -> Option<&Attempt> {
        let same = |attempt: &&Attempt| {
            attempt.verdict != Verdict::Error
                && (&attempt.task, &attempt.model, attempt.approach)
                    == (&wanted.task, &wanted.model, wanted.approach)
                && (attempt.trial, attempt.recorded) == (wanted.trial, wanted.recorded)
                && attempt.fingerprint == wanted.fingerprint
        };
        self.previous.iter().rev().find(same)
    }

    /// Appends an attempt, and returns when it is written to the file.
    pub(crate) fn add(&self, attempt: &Attempt) -> Result<(), EvalError> {
        let written =
            serde_json::to_vec(attempt).map_err(std::io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(&line)?;
                file.flush()
            });
        written.map_err(|why| EvalError::write(&self.path, why.to_string()))
    }
}

fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Attempt>, EvalError> {
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .zip(1..)
        .filter(|(line, _)| !line.trim_ascii().is_empty());
    let attempt = |(line, at)| {
        serde_json::from_slice(line).map_err(|why| {
            EvalError::load(path, format!("the line is not an attempt: {why}"))
                .at(at)
                .hint("name another file with `--out FILE`, or start over with `--fresh`")
        })
    };
    lines.map(attempt).collect()
}
