//! Recording: a line of the trace, and its seal behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chain::{Hash, genesis, next, of, unhex};
use super::seal::{Occasion, Seal};
use super::{LEDGER_FILE, Signer};
use serde::{Deserialize, Serialize};
use wattle_capability::files::whole_lines;

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
        Recorder::take_up(folder, run, signer).map(|(recorder, _)| recorder)
    }

    /// The trace of a run that begins: nothing of it is there, so nothing is read.
    #[must_use]
    pub fn begin(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> Recorder {
        let seals = signer.map(|signer| Seals::begin(folder.join(LEDGER_FILE), run, signer));
        Recorder { steps: folder.join(STEPS_FILE), lines: 0, seals }
    }

    /// As [`Recorder::open`], with the lines that the run has, each without its newline.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn take_up(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> std::io::Result<(Recorder, Vec<Vec<u8>>)> {
        let mut recorder = Recorder::begin(folder, run, signer);
        let written = lines_of(&recorder.steps, run)?;
        recorder.lines = written.len() as u64;
        if let Some(seals) = &mut recorder.seals {
            seals.go_on()?;
            for line in written.iter().skip(usize::try_from(seals.count).unwrap_or(usize::MAX)) {
                seals.add(line, Occasion::Late(of(line)))?;
            }
        }
        Ok((recorder, written))
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
    fn begin(path: PathBuf, run: &str, signer: Arc<Signer>) -> Seals {
        let head = genesis(run, signer.tenant());
        Seals { path, run: run.to_owned(), signer, count: 0, head }
    }

    /// Goes on behind the run's last seal.
    fn go_on(&mut self) -> std::io::Result<()> {
        for line in lines(&whole_lines(&self.path)?) {
            let seal = serde_json::from_slice::<Seal>(line).ok().filter(|seal| seal.run == self.run && !seal.last);
            if let Some((seal, sealed)) = seal.and_then(|seal| unhex(&seal.head).map(|head| (seal, head))) {
                (self.count, self.head) = (seal.count, sealed);
            }
        }
        Ok(())
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
    let bytes = whole_lines(path)?;
    let of_run = |line: &&[u8]| serde_json::from_slice::<OfRun>(line).is_ok_and(|of| of.run_id == run);
    Ok(lines(&bytes).filter(of_run).map(<[u8]>::to_vec).collect())
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}
