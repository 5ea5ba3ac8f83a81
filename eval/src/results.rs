//! Results files. Each attempt is appended as a line when it ends, so an interrupted or killed
//! evaluation can be resumed.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use wattle_agent::host::capability::files::{open_lines, read_open_file, read_regular_file};

use crate::attempt::{Attempt, Verdict};
use crate::error::EvalError;
use crate::place;

/// The name of the results file in a folder.
const NAME: &str = "results.jsonl";

/// Maximum size of a results file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A results file, and the attempts that it contained when it was opened.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: Mutex<File>,
    previous: Vec<Attempt>,
}

/// The treatment of attempts that a results file already contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// Opening the file fails if it contains attempts.
    Refuse,
    /// The existing attempts are kept and not repeated.
    Resume,
    /// The existing attempts are deleted.
    Discard,
}

impl Results {
    /// Opens a results file, or `results.jsonl` in a folder. Creates the file if it does not exist.
    /// Drops an incomplete last line, which a killed process may have left.
    ///
    /// # Errors
    /// If the file cannot be read or written, another process has it open, a line other than the
    /// last is not an attempt, or the file contains attempts and `earlier` is
    /// [`Refuse`](Earlier::Refuse).
    pub fn open(path: &Path, earlier: Earlier) -> Result<Results, EvalError> {
        let path = file(path);
        let failed = |why: std::io::Error| EvalError::write(&path, why);
        place::prepare(path.parent().unwrap_or(Path::new("")), &path).map_err(failed)?;
        let file = open_lines(&path).map_err(failed)?;
        file.try_lock().map_err(|why| match why {
            TryLockError::WouldBlock => EvalError::in_use(&path),
            TryLockError::Error(why) => failed(why),
        })?;
        let mut previous = Vec::new();
        if earlier == Earlier::Discard {
            file.set_len(0).map_err(failed)?;
        } else {
            let bytes =
                read_open_file(&file, MAX_BYTES).map_err(|why| EvalError::load(&path, why))?;
            let complete = complete(&bytes);
            previous = read(&path, bytes.split_at(complete).0)?;
            if earlier == Earlier::Refuse && !previous.is_empty() {
                return Err(EvalError::has_attempts(&path, previous.len()));
            }
            file.set_len(complete as u64).map_err(failed)?;
        }
        Ok(Results { path, file: Mutex::new(file), previous })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the attempts that the file contained when it was opened.
    #[must_use]
    pub fn previous(&self) -> &[Attempt] {
        &self.previous
    }

    /// Returns the latest stored result of the attempt `wanted` with the same prompt, or `None` if
    /// there is none. Ignores results with the verdict `error`.
    pub(crate) fn find(&self, wanted: &Attempt) -> Option<&Attempt> {
        self.earlier(wanted).find(|attempt| attempt.prompt == wanted.prompt)
    }

    /// Returns true if the attempt `wanted` was made before, but only with other prompts.
    pub(crate) fn has_other_prompt(&self, wanted: &Attempt) -> bool {
        self.find(wanted).is_none() && self.earlier(wanted).next().is_some()
    }

    /// Returns the stored results of the attempt `wanted` with any prompt, latest first. Omits
    /// results with the verdict `error`.
    fn earlier<'r, 'w>(
        &'r self,
        wanted: &'w Attempt,
    ) -> impl Iterator<Item = &'r Attempt> + use<'r, 'w> {
        let same = move |attempt: &&'r Attempt| {
            attempt.verdict != Verdict::Error
                && (&attempt.task, &attempt.model, attempt.approach)
                    == (&wanted.task, &wanted.model, wanted.approach)
                && attempt.agent == wanted.agent
                && (attempt.trial, attempt.recorded) == (wanted.trial, wanted.recorded)
                && attempt.fingerprint == wanted.fingerprint
        };
        self.previous.iter().rev().filter(same)
    }

    /// Appends an attempt and waits until it is written to disk, because it may have cost money.
    pub(crate) fn add(&self, attempt: &Attempt) -> Result<(), EvalError> {
        let written =
            serde_json::to_vec(attempt).map_err(std::io::Error::from).and_then(|mut line| {
                line.push(b'\n');
                let mut file = self.file.lock();
                file.write_all(&line)?;
                file.sync_data()
            });
        written.map_err(|why| EvalError::write(&self.path, why))
    }
}

/// Reads the attempts of a results file. An incomplete last line is ignored.
///
/// # Errors
/// If the file cannot be read, or any other line is not an attempt.
pub fn read_attempts(path: &Path) -> Result<Vec<Attempt>, EvalError> {
    let path = file(path);
    let failed = |why: std::io::Error| EvalError::load(&path, why);
    let bytes = read_regular_file(&path, MAX_BYTES).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    read(&path, bytes.split_at(complete(&bytes)).0)
}

/// Returns the results file that a path names: the file itself, or the results file in a folder.
fn file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(NAME) } else { path.to_owned() }
}

/// Returns the total length of the complete lines, in bytes.
fn complete(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
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
