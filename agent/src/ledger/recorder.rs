//! The recorder: writes lines of the trace and seals them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wattle_capability::files::{TRACE_FILE, open_lines_to_read, truncate_partial_line};

use super::chain::{Hash, genesis, hex, next, of, unhex};
use super::file::LockedLedger;
use super::seal::{PreviousLine, Seal, Subject};
use super::{FinalSeal, LEDGER_FILE, Signer};
use crate::lines::{Line, LineReader, append};
use crate::sink::now_ms;

/// A recorder that appends the lines of one run to `_steps.jsonl`, and their seals to
/// `_ledger.jsonl`.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    lines: u64,
    chain: Option<SealedChain>,
}

/// The chain of one run up to its last seal.
#[derive(Debug)]
struct SealedChain {
    run: String,
    signer: Arc<Signer>,
    count: u64,
    /// The head; `None` before the first seal, which determines the start of the chain.
    head: Option<Hash>,
}

impl Recorder {
    /// Opens the trace of a run in `folder`. Without a signer, the trace is not sealed. If the run
    /// is resumed, lines that the previous process wrote but did not seal are sealed now and marked
    /// as late.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn open(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> io::Result<Recorder> {
        Recorder::resume(folder, run, signer, &mut |_| {})
    }

    /// Starts the trace of a new run. Nothing is read, because the run has no lines yet.
    #[must_use]
    pub fn begin(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> Recorder {
        let chain =
            signer.map(|signer| SealedChain { run: run.to_owned(), signer, count: 0, head: None });
        Recorder { folder: folder.to_owned(), lines: 0, chain }
    }

    /// Opens a trace like [`Recorder::open`], and passes each existing line of the run to `each`,
    /// without its line break. The files are read line by line, so their size does not matter.
    ///
    /// # Errors
    /// The same as for [`Recorder::open`].
    pub fn resume(
        folder: &Path,
        run: &str,
        signer: Option<Arc<Signer>>,
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Recorder> {
        let mut recorder = Recorder::begin(folder, run, signer);
        if let Some(chain) = &mut recorder.chain {
            chain.resume(&folder.join(LEDGER_FILE))?;
        }
        let steps = folder.join(TRACE_FILE);
        truncate_partial_line(&steps)?;
        let Some(file) = open_lines_to_read(&steps)? else { return Ok(recorder) };
        let mut lines = LineReader::of(file);
        while let Some((_, line)) = lines.next()? {
            let Line::Whole(line) = line else { continue };
            if !belongs_to(line, run) {
                continue;
            }
            recorder.lines += 1;
            each(line);
            if let Some(chain) =
                recorder.chain.as_mut().filter(|chain| chain.count < recorder.lines)
            {
                chain.add(
                    &mut LockedLedger::open(&folder.join(LEDGER_FILE))?,
                    line,
                    Subject::Late(of(line)),
                )?;
            }
        }
        Ok(recorder)
    }

    /// Returns the number of lines that the run has in the trace.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Appends a line and seals it. If sealing fails, the line is still written, but later lines of
    /// the run are not sealed, and verification reports that.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let (bytes, steps) = (serde_json::to_vec(line)?, self.folder.join(TRACE_FILE));
        self.lines += 1;
        let Some(chain) = &mut self.chain else { return append(&steps, &bytes) };
        // The lock is held for both writes, so that lines and seals have the same order.
        let sealed = match LockedLedger::open(&self.folder.join(LEDGER_FILE)) {
            Ok(mut ledger) => {
                append(&steps, &bytes)?;
                chain.add(&mut ledger, &bytes, Subject::Line(of(&bytes)))
            }
            Err(error) => append(&steps, &bytes).and(Err(error)),
        };
        if sealed.is_err() {
            self.chain = None;
        }
        sealed
    }

    /// Seals the end of the run. Returns the final seal, or `None` if the run is not sealed.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn end(&mut self) -> io::Result<Option<FinalSeal>> {
        let Some(chain) = &mut self.chain else { return Ok(None) };
        let head =
            chain.write(&mut LockedLedger::open(&self.folder.join(LEDGER_FILE))?, Subject::End)?;
        let folder = self.folder.canonicalize()?;
        Ok(Some(FinalSeal { run: chain.run.clone(), folder, lines: chain.count, head: hex(&head) }))
    }
}

impl SealedChain {
    /// Continues after the run's last seal that was signed with our key.
    fn resume(&mut self, path: &Path) -> io::Result<()> {
        let Some(file) = open_lines_to_read(path)? else { return Ok(()) };
        let key = self.signer.public();
        let mut lines = LineReader::of(file);
        while let Some((_, line)) = lines.next()? {
            let Line::Whole(line) = line else { continue };
            let Some(seal) = Seal::parse(line).filter(|seal| seal.run == self.run) else {
                continue;
            };
            if let Some(head) = unhex(&seal.head).filter(|_| seal.is_signed_by(&key.0)) {
                (self.count, self.head) = (seal.count, Some(head));
            }
        }
        Ok(())
    }

    fn add(&mut self, ledger: &mut LockedLedger, line: &[u8], subject: Subject) -> io::Result<()> {
        let previous = PreviousLine::of(ledger.last()?.as_deref());
        let head = next(&self.head(&previous), line);
        self.append(ledger, (self.count + 1, head), subject, previous)?;
        (self.count, self.head) = (self.count + 1, Some(head));
        Ok(())
    }

    fn write(&mut self, ledger: &mut LockedLedger, subject: Subject) -> io::Result<Hash> {
        let previous = PreviousLine::of(ledger.last()?.as_deref());
        let head = self.head(&previous);
        self.append(ledger, (self.count, head), subject, previous)?;
        self.head = Some(head);
        Ok(head)
    }

    fn head(&self, previous: &PreviousLine) -> Hash {
        self.head.unwrap_or_else(|| genesis(&self.run, self.signer.tenant(), Some(&previous.hash)))
    }

    fn append(
        &self,
        ledger: &mut LockedLedger,
        (count, head): (u64, Hash),
        subject: Subject,
        previous: PreviousLine,
    ) -> io::Result<()> {
        let seal = Seal::sign(&self.signer, &self.run, (count, &head), subject, previous, now_ms());
        ledger.append(&serde_json::to_vec(&seal)?)
    }
}

/// Returns true if the line belongs to the run.
fn belongs_to(line: &[u8], run: &str) -> bool {
    #[derive(Deserialize)]
    struct RunField {
        run_id: String,
    }
    serde_json::from_slice::<RunField>(line).is_ok_and(|of| of.run_id == run)
}
