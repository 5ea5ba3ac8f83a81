//! Recording: a line of the trace, and its seal behind it.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chain::{Hash, genesis, next, of, unhex};
use super::seal::{Occasion, Seal};
use super::{LEDGER_FILE, Signer};
use crate::trace::append;
use crate::{STEPS_FILE, now_ms};

/// Appends the lines of one run to `_steps.jsonl`, and seals each in `_ledger.jsonl`.
#[derive(Debug)]
pub struct Recorder {
    steps: PathBuf,
    lines: u64,
    seals: Option<Seals>,
}

/// The chain of one run, as far as it is sealed.
#[derive(Debug)]
struct Seals {
    path: PathBuf,
    run: String,
    signer: Arc<Signer>,
    count: u64,
    head: Hash,
}

impl Recorder {
    /// The trace of that run in that folder; without a key it is not sealed. A run that is taken up again goes on where it was: a
    /// line that the process wrote and did not come to seal is sealed now, with a mark.
    ///
    /// # Errors
    /// Where a file cannot be read or written.
    pub fn open(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> std::io::Result<Recorder> {
        let steps = folder.join(STEPS_FILE);
        let written = lines_of(&steps, run)?;
        let seals = match signer {
            None => None,
            Some(signer) => {
                let mut seals = Seals::open(folder.join(LEDGER_FILE), run, signer)?;
                for line in written.iter().skip(usize::try_from(seals.count).unwrap_or(usize::MAX)) {
                    seals.add(line, Occasion::Late(of(line)))?;
                }
                Some(seals)
            }
        };
        Ok(Recorder { steps, lines: written.len() as u64, seals })
    }

    /// How many lines of the run there are.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Appends a line, and seals it.
    ///
    /// # Errors
    /// Where a file cannot be written.
    pub fn line(&mut self, line: &impl Serialize) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(line)?;
        append(&self.steps, &bytes)?;
        self.lines += 1;
        match &mut self.seals {
            Some(seals) => seals.add(&bytes, Occasion::Line(of(&bytes))),
            None => Ok(()),
        }
    }

    /// Seals the end of the run.
    ///
    /// # Errors
    /// Where the ledger cannot be written.
    pub fn end(&mut self) -> std::io::Result<()> {
        self.seals.as_ref().map_or(Ok(()), |seals| seals.write(Occasion::End))
    }
}

impl Seals {
    fn open(path: PathBuf, run: &str, signer: Arc<Signer>) -> std::io::Result<Seals> {
        let (mut count, mut head) = (0, genesis(run, signer.tenant()));
        each_line(&path, |line| {
            let seal = serde_json::from_slice::<Seal>(line).ok().filter(|seal| seal.run == run && !seal.last);
            if let Some((seal, sealed)) = seal.and_then(|seal| unhex(&seal.head).map(|head| (seal, head))) {
                (count, head) = (seal.count, sealed);
            }
        })?;
        Ok(Seals { path, run: run.to_owned(), signer, count, head })
    }

    fn add(&mut self, line: &[u8], occasion: Occasion) -> std::io::Result<()> {
        (self.count, self.head) = (self.count + 1, next(&self.head, line));
        self.write(occasion)
    }

    fn write(&self, occasion: Occasion) -> std::io::Result<()> {
        let seal = Seal::sign(&self.signer, &self.run, self.count, &self.head, occasion, now_ms());
        append(&self.path, &serde_json::to_vec(&seal)?)
    }
}

/// The lines of that run, as they stand in the file.
fn lines_of(path: &Path, run: &str) -> std::io::Result<Vec<Vec<u8>>> {
    #[derive(Deserialize)]
    struct OfRun {
        run_id: String,
    }
    let mut lines = Vec::new();
    each_line(path, |line| {
        if serde_json::from_slice::<OfRun>(line).is_ok_and(|of| of.run_id == run) {
            lines.push(line.to_vec());
        }
    })?;
    Ok(lines)
}

/// Shows the lines of a file; none where there is no file.
fn each_line(path: &Path, mut show: impl FnMut(&[u8])) -> std::io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for line in BufReader::new(file).split(b'\n') {
        show(&line?);
    }
    Ok(())
}
