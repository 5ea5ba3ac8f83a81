//! The recorder, which writes and seals the lines of a trace.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wattle_capability::files::{
    TRACE_FILE, has_partial_line, open_lines_to_read, truncate_partial_line,
};

use super::chain::{Hash, genesis, hex, next, of, unhex};
use super::file::{Ledger, LockedLedger};
use super::index::{self, begin_ms};
use super::seal::{PreviousLine, Seal, Subject};
use super::{FinalSeal, LEDGER_FILE, Signer};
use crate::lines::{Line, LineReader, append};
use crate::now_ms;

/// A recorder that appends the lines of one run to `_steps.jsonl`, and their seals to
/// `_ledger.jsonl`.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    lines: u64,
    /// If true, the trace may end with an incomplete line, left by another process or by a failed
    /// write of this process. Nothing may be appended to that line.
    may_be_partial: bool,
    chain: Option<SealedChain>,
}

/// The chain of one run up to its last seal.
#[derive(Debug)]
struct SealedChain {
    run: String,
    signer: Arc<Signer>,
    count: u64,
    /// The chain's head, or `None` before the first seal. The start of the chain depends on the
    /// ledger line before that seal.
    head: Option<Hash>,
    /// If true, another process has sealed the end of the run.
    has_ended: bool,
    /// A byte position in the trace, and the number of the run's lines before it. All of these
    /// lines are sealed. `None` if no such position is known yet.
    sealed_to: Option<(u64, u64)>,
    /// If true, the trace may have unsealed lines of the run after `sealed_to`.
    is_behind: bool,
    /// The byte position up to which the ledger has been read, or `None` if nothing has been read
    /// yet.
    read: Option<u64>,
}

impl Recorder {
    /// Opens the trace of a run in `folder`. Without a signer, the trace is not sealed. If the run
    /// is resumed, the recorder seals any lines that the previous process left unsealed, as soon as
    /// the ledger can be locked, and marks them as late.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn open(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> io::Result<Recorder> {
        Recorder::resume(folder, run, signer, &mut |_| {})
    }

    /// Starts the trace of a new run. Nothing is read, because the run has no lines yet.
    #[must_use]
    pub fn begin(folder: &Path, run: &str, signer: Option<Arc<Signer>>) -> Recorder {
        let chain = signer.map(|signer| SealedChain {
            run: run.to_owned(),
            signer,
            count: 0,
            head: None,
            has_ended: false,
            sealed_to: None,
            is_behind: false,
            read: None,
        });
        Recorder { folder: folder.to_owned(), lines: 0, may_be_partial: true, chain }
    }

    /// Opens a trace like [`Recorder::open`] and passes each existing line of the run, without its
    /// line break, to `each`. The files are read line by line, so they may be of any size.
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
        let (ledger, steps) = (folder.join(LEDGER_FILE), folder.join(TRACE_FILE));
        if let Some(chain) = &mut recorder.chain {
            chain.read = Some(0);
            if let Some(file) = open_lines_to_read(&ledger)? {
                chain.learn(LineReader::of(file))?;
            }
        }
        let sealed = recorder.chain.as_ref().map_or(u64::MAX, |chain| chain.count);
        // The first line that may have to be sealed: its byte position, and the number of the run's
        // lines before it.
        let mut unsealed = None;
        if let Some(file) = open_lines_to_read(&steps)? {
            let mut lines = LineReader::of(file);
            let mut position = 0;
            while let Some((_, line)) = lines.next_line()? {
                if let Line::Whole(line) = line
                    && belongs_to(line, run)
                {
                    if recorder.lines >= sealed {
                        unsealed.get_or_insert((position, recorder.lines));
                    }
                    recorder.lines += 1;
                    each(line);
                }
                if lines.is_ended() {
                    position = lines.position();
                }
            }
            let lines = recorder.lines;
            if let Some(chain) = &mut recorder.chain {
                (chain.sealed_to, chain.is_behind) =
                    (Some(unsealed.unwrap_or((position, lines))), true);
                drop(recorder.lock(each).or_else(when_locked)?);
            } else {
                truncate_partial_line(&steps)?;
            }
        }
        // A run can continue after its end was sealed if the store did not record the end.
        if let Some(chain) = &mut recorder.chain {
            chain.has_ended = false;
        }
        Ok(recorder)
    }

    /// Locks the ledger, reads the seals that other processes have added, and seals the lines that
    /// were written while the ledger could not be locked. Calls `each` for every line of the run
    /// that another process has written in the meantime. Returns `None` if the trace is not sealed.
    fn lock(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<Option<LockedLedger>> {
        let Some(chain) = &mut self.chain else { return Ok(None) };
        let steps = self.folder.join(TRACE_FILE);
        if chain.is_behind && chain.sealed_to.is_none() {
            // The whole trace is searched before the ledger is locked, so that the lock is not held
            // during the search.
            chain.sealed_to = Some((first_line(&steps, &chain.run)?, 0));
        }
        // While the ledger is locked, no other process can add seals.
        let mut ledger = LockedLedger::open(&self.folder.join(LEDGER_FILE))?;
        chain.catch_up(&ledger)?;
        if chain.is_behind || self.may_be_partial {
            truncate_partial_line(&steps)?;
            // An incomplete line that is too long to be removed stays.
            self.may_be_partial = has_partial_line(&steps)?;
        }
        if chain.is_behind {
            let (mut position, mut number) = chain.sealed_to.unwrap_or_default();
            if let Some(file) = open_lines_to_read(&steps)? {
                let mut lines = LineReader::from(file, position)?;
                while let Some((_, line)) = lines.next_line()? {
                    if let Line::Whole(line) = line
                        && belongs_to(line, &chain.run)
                    {
                        number += 1;
                        if number > self.lines {
                            self.lines = number;
                            each(line);
                        }
                        if number > chain.count {
                            chain.add(&mut ledger, line, Subject::Late(of(line)))?;
                        }
                    }
                    position = lines.position();
                }
            }
            (chain.sealed_to, chain.is_behind) = (Some((position, number)), false);
        }
        Ok(Some(ledger))
    }

    /// Returns the number of the run's lines in the trace.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Appends a line and seals it. If another process keeps the ledger locked, or sealing fails,
    /// the line is still written. It is sealed when the next line is written, or at the end of the
    /// run, and marked as late. Nothing is written after another process has taken over the run and
    /// sealed its end.
    ///
    /// # Errors
    /// If a file cannot be written, or another process has ended the run. A locked ledger is not an
    /// error.
    pub fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let (bytes, steps) = (serde_json::to_vec(line)?, self.folder.join(TRACE_FILE));
        // The lock is held for both writes, so that lines and seals have the same order.
        let locked = self.lock(&mut |_| {});
        if let Some(chain) = &mut self.chain {
            if locked.is_err() {
                // Another process may have ended the run in the meantime. If the ledger cannot be
                // read either, the line is written nevertheless.
                _ = chain.catch_up_unlocked(&self.folder.join(LEDGER_FILE));
            }
            // The process that took over the run has already written this line.
            if chain.has_ended {
                return Err(io::Error::other("another process has ended the run"));
            }
            chain.is_behind = true;
        }
        // Without the lock, another process may still be writing an incomplete line. Therefore the
        // line is not removed, but ended with a line break.
        let begins_line = self.may_be_partial && has_partial_line(&steps)?;
        self.may_be_partial = true;
        if begins_line {
            append(&steps, &[&b"\n"[..], &bytes].concat())?
        } else {
            append(&steps, &bytes)?
        }
        (self.lines, self.may_be_partial) = (self.lines + 1, false);
        let Some(mut ledger) = locked.or_else(when_locked)? else { return Ok(()) };
        let Some(chain) = &mut self.chain else { return Ok(()) };
        chain.add(&mut ledger, &bytes, Subject::Line(of(&bytes)))?;
        (chain.sealed_to, chain.is_behind) = (Some((steps.metadata()?.len(), chain.count)), false);
        Ok(())
    }

    /// Seals the end of the run, unless another process has already done so. Returns the final
    /// seal, or `None` if the run is not sealed.
    ///
    /// # Errors
    /// If the ledger cannot be written. If the kind of the error is [`io::ErrorKind::WouldBlock`],
    /// another process keeps the ledger locked, and the call can be repeated.
    pub fn end(&mut self) -> io::Result<Option<FinalSeal>> {
        let Some(mut ledger) = self.lock(&mut |_| {})? else { return Ok(None) };
        let Some(chain) = &mut self.chain else { return Ok(None) };
        let head = match (chain.has_ended, chain.head) {
            (true, Some(head)) => head,
            _ => chain.write(&mut ledger, Subject::End)?,
        };
        let folder = self.folder.canonicalize()?;
        Ok(Some(FinalSeal { run: chain.run.clone(), folder, lines: chain.count, head: hex(&head) }))
    }
}

impl SealedChain {
    /// Reads the run's seals that other processes have added to the ledger. For example, a process
    /// that was paused while this process took over the run may add seals when it continues. Lines
    /// that other runs of this process have read are not read again.
    fn catch_up(&mut self, ledger: &Ledger) -> io::Result<()> {
        if self.read == Some(ledger.length()?) {
            return Ok(());
        }
        if let Some(read) = index::read_without(ledger, &self.run, self.read)? {
            self.read = Some(read);
            return Ok(());
        }
        let from = match self.read {
            Some(from) => from,
            None => self.first_position(ledger)?,
        };
        self.learn(ledger.lines_from(from)?)
    }

    /// Reads seals like [`catch_up`](SealedChain::catch_up) while another process keeps the ledger
    /// locked.
    fn catch_up_unlocked(&mut self, ledger: &Path) -> io::Result<()> {
        Ledger::open(ledger)?.map_or(Ok(()), |ledger| self.catch_up(&ledger))
    }

    /// Reads seals and continues the chain after the last seal that belongs to the run and is
    /// signed with the run's key.
    fn learn<R: BufRead>(&mut self, mut lines: LineReader<R>) -> io::Result<()> {
        let key = self.signer.public();
        self.read = Some(lines.position());
        while let Some((_, line)) = lines.next_line()? {
            index::count_line();
            if let Line::Whole(line) = line
                && let Some(seal) = Seal::parse(line).filter(|seal| seal.run == self.run)
                && let Some(head) = unhex(&seal.head).filter(|_| seal.is_signed_by(&key.0))
            {
                (self.count, self.head, self.has_ended) = (seal.count, Some(head), seal.last);
            }
            if lines.is_ended() {
                self.read = Some(lines.position());
            }
        }
        Ok(())
    }

    /// Returns a byte position in the ledger before which there are no seals of the run. A new run
    /// may already have seals if another process tried to begin it.
    fn first_position(&self, ledger: &Ledger) -> io::Result<u64> {
        let Some(begin) = begin_ms(&self.run) else { return ledger.position_after(|_| true) };
        ledger.position_after(|line| Seal::parse(line).is_some_and(|seal| seal.time < begin))
    }

    fn add(&mut self, ledger: &mut LockedLedger, line: &[u8], subject: Subject) -> io::Result<()> {
        let previous = PreviousLine::of(ledger.last()?.as_deref());
        let head = next(&self.head(&previous), line);
        self.append(ledger, (self.count + 1, head), subject, previous)?;
        (self.count, self.head, self.has_ended) = (self.count + 1, Some(head), false);
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
        self.head.unwrap_or_else(|| genesis(&self.run, self.signer.tenant(), &previous.hash))
    }

    fn append(
        &mut self,
        ledger: &mut LockedLedger,
        (count, head): (u64, Hash),
        subject: Subject,
        previous: PreviousLine,
    ) -> io::Result<()> {
        let seal = Seal::sign(&self.signer, &self.run, (count, &head), subject, previous, now_ms());
        let begin = ledger.length()?;
        let end = ledger.append(&serde_json::to_vec(&seal)?)?;
        self.read = Some(end);
        index::add(ledger, &self.run, begin..end)
    }
}

/// Returns `None` if the error means that another process has locked the ledger. Returns any other
/// error unchanged.
fn when_locked<T>(error: io::Error) -> io::Result<Option<T>> {
    if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) }
}

/// Returns the byte position of the run's first line in the trace, or the end of the trace if it
/// contains no line of the run.
fn first_line(steps: &Path, run: &str) -> io::Result<u64> {
    let Some(file) = open_lines_to_read(steps)? else { return Ok(0) };
    let mut lines = LineReader::of(file);
    let mut position = 0;
    while let Some((_, line)) = lines.next_line()? {
        if matches!(line, Line::Whole(line) if belongs_to(line, run)) {
            break;
        }
        if lines.is_ended() {
            position = lines.position();
        }
    }
    Ok(position)
}

/// Returns the lines of a run in a trace, each with its line break. `from` is a byte position in the
/// trace before which the run has no lines. A line that another process is still writing is left
/// out.
///
/// # Errors
/// If the trace cannot be read, or the lines have more than `max` bytes.
pub fn lines_of(steps: &Path, run: &str, from: u64, max: u64) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    let Some(file) = open_lines_to_read(steps)? else { return Ok(found) };
    let mut lines = LineReader::from(file, from)?;
    while let Some((_, line)) = lines.next_line()? {
        if let Line::Whole(line) = line
            && belongs_to(line, run)
        {
            found.extend_from_slice(line);
            found.push(b'\n');
            if found.len() as u64 > max {
                return Err(io::Error::other(format!("it is larger than {} MiB", max >> 20)));
            }
        }
    }
    Ok(found)
}

/// Returns true if the line belongs to the run.
fn belongs_to(line: &[u8], run: &str) -> bool {
    #[derive(Deserialize)]
    struct RunField {
        run_id: String,
    }
    serde_json::from_slice::<RunField>(line).is_ok_and(|of| of.run_id == run)
}
