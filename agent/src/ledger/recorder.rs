//! Recording: a line of the trace, and its seal behind it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wattle_capability::files::{open_lines_to_read, truncate_partial_line};

use super::chain::{Hash, genesis, hex, next, of, unhex};
use super::file::Locked;
use super::seal::{Behind, Occasion, Seal};
use super::{LEDGER_FILE, Sealed, Signer};
use crate::lines::{Line, LineReader};
use crate::trace::append;
use crate::{STEPS_FILE, now_ms};

/// Appends the lines of one run to `_steps.jsonl`, and seals each in `_ledger.jsonl`.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    lines: u64,
    seals: Option<Seals>,
}

/// The chain of one run, as far as it is sealed.
#[derive(Debug)]
struct Seals {
    run: String,
    signer: Arc<Signer>,
    count: u64,
    /// The head; `None` before the first seal, which decides what the chain begins with.
    head: Option<Hash>,
}

impl Recorder {
    /// The trace of that run in that folder; without a key it is not sealed. A run that is resumed goes on where it was: a line that the
    /// process wrote and did not come to seal is sealed now, with a mark.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn open(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> io::Result<Recorder> {
        Recorder::resume(folder, run, signer, &mut |_| {})
    }

    /// The trace of a run that begins: nothing of it is there, so nothing is read.
    #[must_use]
    pub fn begin(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> Recorder {
        let seals = signer.map(|signer| Seals { run: run.to_owned(), signer, count: 0, head: None });
        Recorder { folder: folder.to_owned(), lines: 0, seals }
    }

    /// As [`Recorder::open`]; `each` gets the lines that the run has, each without its line break. The files are read line by line, so
    /// they may be of any size.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn resume(
        folder: &Path,
        run: &str,
        signer: Option<Arc<Signer>>,
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Recorder> {
        let mut recorder = Recorder::begin(folder, run, signer);
        if let Some(seals) = &mut recorder.seals {
            seals.go_on(&folder.join(LEDGER_FILE))?;
        }
        let steps = folder.join(STEPS_FILE);
        truncate_partial_line(&steps)?;
        let Some(file) = open_lines_to_read(&steps)? else { return Ok(recorder) };
        let mut lines = LineReader::of(file);
        while let Some((_, line)) = lines.next()? {
            let Line::Whole(line) = line else { continue };
            if !is_of(line, run) {
                continue;
            }
            recorder.lines += 1;
            each(line);
            if let Some(seals) = recorder.seals.as_mut().filter(|seals| seals.count < recorder.lines) {
                seals.add(&mut Locked::open(&folder.join(LEDGER_FILE))?, line, Occasion::Late(of(line)))?;
            }
        }
        Ok(recorder)
    }

    /// How many lines of the run there are.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Appends a line, and seals it. If it cannot be sealed, it is written all the same, and the run's later lines are not sealed:
    /// verifying then says so.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let (bytes, steps) = (serde_json::to_vec(line)?, self.folder.join(STEPS_FILE));
        self.lines += 1;
        let Some(seals) = &mut self.seals else { return append(&steps, &bytes) };
        // The lock is held over both: so lines and seals stand in the same order.
        let sealed = match Locked::open(&self.folder.join(LEDGER_FILE)) {
            Ok(mut ledger) => {
                append(&steps, &bytes)?;
                seals.add(&mut ledger, &bytes, Occasion::Line(of(&bytes)))
            }
            Err(error) => append(&steps, &bytes).and(Err(error)),
        };
        if sealed.is_err() {
            self.seals = None;
        }
        sealed
    }

    /// Seals the end of the run, and returns what the seal says; `None` if the run is not sealed.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub fn end(&mut self) -> io::Result<Option<Sealed>> {
        let Some(seals) = &mut self.seals else { return Ok(None) };
        let head = seals.write(&mut Locked::open(&self.folder.join(LEDGER_FILE))?, Occasion::End)?;
        let folder = self.folder.canonicalize()?;
        Ok(Some(Sealed { run: seals.run.clone(), folder, lines: seals.count, head: hex(&head) }))
    }
}

impl Seals {
    /// Goes on behind the run's last seal that is ours.
    fn go_on(&mut self, path: &Path) -> io::Result<()> {
        let Some(file) = open_lines_to_read(path)? else { return Ok(()) };
        let key = self.signer.public();
        let mut lines = LineReader::of(file);
        while let Some((_, line)) = lines.next()? {
            let Line::Whole(line) = line else { continue };
            let Some(seal) = Seal::read(line).filter(|seal| seal.run == self.run) else { continue };
            if let Some(head) = unhex(&seal.head).filter(|_| seal.is_signed_by(&key.0)) {
                (self.count, self.head) = (seal.count, Some(head));
            }
        }
        Ok(())
    }

    fn add(&mut self, ledger: &mut Locked, line: &[u8], occasion: Occasion) -> io::Result<()> {
        let behind = Behind::of(ledger.last()?.as_deref());
        let head = next(&self.head(&behind), line);
        self.put(ledger, (self.count + 1, head), occasion, behind)?;
        (self.count, self.head) = (self.count + 1, Some(head));
        Ok(())
    }

    fn write(&mut self, ledger: &mut Locked, occasion: Occasion) -> io::Result<Hash> {
        let behind = Behind::of(ledger.last()?.as_deref());
        let head = self.head(&behind);
        self.put(ledger, (self.count, head), occasion, behind)?;
        self.head = Some(head);
        Ok(head)
    }

    fn head(&self, behind: &Behind) -> Hash {
        self.head.unwrap_or_else(|| genesis(&self.run, self.signer.tenant(), Some(&behind.hash)))
    }

    fn put(
        &self,
        ledger: &mut Locked,
        (count, head): (u64, Hash),
        occasion: Occasion,
        behind: Behind,
    ) -> io::Result<()> {
        let seal = Seal::sign(&self.signer, &self.run, (count, &head), occasion, behind, now_ms());
        ledger.add(&serde_json::to_vec(&seal)?)
    }
}

/// If true, a line belongs to that run.
fn is_of(line: &[u8], run: &str) -> bool {
    #[derive(Deserialize)]
    struct OfRun {
        run_id: String,
    }
    serde_json::from_slice::<OfRun>(line).is_ok_and(|of| of.run_id == run)
}
