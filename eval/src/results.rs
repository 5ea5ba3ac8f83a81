//! Results files: one attempt a line, appended as it ends, so that a run that was cut short is taken up where it stopped.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::attempt::{Attempt, Verdict};
use crate::error::EvalError;

/// The file's name in a folder.
const NAME: &str = "results.jsonl";

/// A results file, and what stood in it when it was opened.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: Mutex<File>,
    kept: Vec<Attempt>,
}

impl Results {
    /// Opens a file, or `results.jsonl` in a folder; makes it where it is not there. With `fresh`, what stood in it is dropped. A last
    /// line that was cut off is dropped too.
    ///
    /// # Errors
    /// Where the file cannot be read or written, or another line of it is no attempt.
    pub fn open(path: &Path, fresh: bool) -> Result<Results, EvalError> {
        let path = if path.is_dir() { path.join(NAME) } else { path.to_owned() };
        let failed = |why: std::io::Error| EvalError::write(&path, why.to_string());
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut open = OpenOptions::new();
        let file = open.append(true).read(true).create(true).open(&path).map_err(failed)?;
        let mut kept = Vec::new();
        if fresh {
            file.set_len(0).map_err(failed)?;
        } else {
            let bytes = std::fs::read(&path).map_err(failed)?;
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            kept = read(&path, bytes.get(..whole).unwrap_or_default())?;
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok(Results { path, file: Mutex::new(file), kept })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What an earlier run learnt from the attempt that this one would be; the last of several.
    pub(crate) fn find(&self, wanted: &Attempt) -> Option<&Attempt> {
        let same = |kept: &&Attempt| {
            kept.verdict != Verdict::Error
                && (&kept.task, &kept.model, kept.approach) == (&wanted.task, &wanted.model, wanted.approach)
                && (kept.trial, kept.recorded) == (wanted.trial, wanted.recorded)
                && kept.fingerprint == wanted.fingerprint
        };
        self.kept.iter().rev().find(same)
    }

    /// Adds an attempt; it stands in the file when this comes back.
    pub(crate) fn add(&self, attempt: &Attempt) -> Result<(), EvalError> {
        let written = serde_json::to_vec(attempt).map_err(std::io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(&line)?;
            file.flush()
        });
        written.map_err(|why| EvalError::write(&self.path, why.to_string()))
    }
}

fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Attempt>, EvalError> {
    let lines = bytes.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
    let attempt = |(line, at)| {
        serde_json::from_slice(line).map_err(|why| {
            EvalError::load(path, format!("the line is no attempt: {why}"))
                .at(at)
                .hint("name another file by `--out FILE`, or begin anew with `--fresh`")
        })
    };
    lines.map(attempt).collect()
}
