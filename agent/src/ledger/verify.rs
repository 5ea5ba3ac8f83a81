//! Verifying: whether a trace is as it was sealed.
//!
//! Both files are read line by line, each once where all is sound, with a memory that grows with the number of runs and not of lines: of
//! each run the last head tells everything, since it follows from all lines before it. Only where something is wrong the lines of that
//! run are compared one by one (`diagnosis`).

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::chain::{Hash, genesis, hex, next, of, unhex};
use super::diagnosis::{first_out_of_order, look_closer};
use super::finding::Finding;
use super::seal::{Seal, VERSION};
use super::{KeyError, Keys, LEDGER_FILE, PublicKey, Sealed};
use crate::STEPS_FILE;
use crate::lines::{Line, LineReader};

/// Maximum number of runs of one trace.
const RUNS: usize = 250_000;

/// Maximum number of findings about a file as a whole.
const FINDINGS: usize = 50;

/// Where the public keys come from that seals are checked by.
#[derive(Clone, Debug)]
pub enum Pins {
    /// Each tenant's pinned key.
    Keys(Keys),
    /// One key, for a trace that came from elsewhere.
    One(PublicKey),
}

/// What verifying a trace found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// A verdict on each run, in the order of their first lines.
    pub runs: Vec<Verdict>,
    /// What is wrong with the files beside that: at most 50 findings.
    pub files: Vec<Finding>,
}

/// What verifying found about one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The run.
    pub run: String,
    /// Whose run it is, as its seals say.
    pub tenant: Option<String>,
    /// The version of its seals; 0 if it has none. One of version 1 is not chained to the seals before it: that a run before it was
    /// removed is not seen.
    pub version: u32,
    /// How many of its lines are as they were sealed, from the first on.
    pub sealed: u64,
    /// When the last of them was sealed, in milliseconds since 1970.
    pub time: Option<u64>,
    /// If true, the seal is there that ends a run. If not, the run was cut short, is under way, or its end was cut off.
    pub ended: bool,
    /// How many lines were sealed at a restart.
    pub late: u64,
    /// The first thing that is wrong; `None` if all is as it was sealed.
    pub finding: Option<Finding>,
}

/// Why a trace cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file cannot be read.
    #[error("failed to read `{}`: {cause}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
    /// It has too many runs.
    #[error("failed to verify `{}`: it has more than {RUNS} runs", .0.display())]
    TooMany(PathBuf),
    /// A pinned key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Verifies the trace in a folder by its ledger. `known` is what a store knows of the ends of its runs: each of them must be there.
///
/// # Errors
/// If there is no trace, or a file cannot be read.
pub fn verify(folder: &Path, pins: &Pins, known: &[Sealed]) -> Result<Verified, VerifyError> {
    let files = Files { steps: folder.join(STEPS_FILE), ledger: folder.join(LEDGER_FILE) };
    let has_ledger = files.ledger()?.is_some();
    let mut found = Found::default();
    found.read_ledger(&files, pins)?;
    found.read_steps(&files, known.is_empty())?;
    let suspects: Vec<String> =
        found.runs.iter().filter(|(_, run)| run.is_suspect()).map(|(id, _)| id.clone()).collect();
    for (run, suspect) in look_closer(&files, &suspects, &found)? {
        if let Some(seen) = found.runs.get_mut(&run) {
            (seen.verified, seen.verdict.time) = (suspect.sealed, suspect.time.or(seen.verdict.time));
            seen.verdict.finding = Some(suspect.finding);
        }
    }
    let is_sound = found.runs.values().all(|run| run.verdict.finding.is_none());
    if is_sound && found.files.is_empty() && found.in_ledger.clone().finalize() != found.in_steps.clone().finalize() {
        let line = first_out_of_order(&files, &found)?;
        found.files.push(Finding::OtherOrder { line });
    }
    Ok(found.finish(has_ledger, known))
}

/// The files of a trace.
pub(super) struct Files {
    steps: PathBuf,
    ledger: PathBuf,
}

impl Files {
    fn open(path: &Path) -> Result<Option<File>, VerifyError> {
        match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(VerifyError::Read { path: path.to_owned(), cause }),
        }
    }

    fn ledger(&self) -> Result<Option<File>, VerifyError> {
        Files::open(&self.ledger)
    }

    /// Gives each line of a file to a function; nothing if there is no such file. Returns how many there are, and whether the last one has
    /// its line break.
    fn each(
        path: &Path,
        file: Option<File>,
        mut take: impl FnMut(u64, Line<'_>) -> Result<(), VerifyError>,
    ) -> Result<(u64, bool), VerifyError> {
        let Some(file) = file else { return Ok((0, true)) };
        let (mut lines, mut count) = (LineReader::of(file), 0);
        loop {
            let line = lines.next().map_err(|cause| VerifyError::Read { path: path.to_owned(), cause })?;
            let Some((number, line)) = line else { break };
            count = number;
            take(number, line)?;
            if !lines.is_ended() {
                return Ok((count, false));
            }
        }
        Ok((count, true))
    }

    /// Gives each line of the trace to a function.
    pub(super) fn each_step(
        &self,
        take: impl FnMut(u64, Line<'_>) -> Result<(), VerifyError>,
    ) -> Result<(u64, bool), VerifyError> {
        Files::each(&self.steps, Files::open(&self.steps)?, take)
    }

    /// Gives each line of the ledger to a function.
    pub(super) fn each_seal(
        &self,
        take: impl FnMut(u64, Line<'_>) -> Result<(), VerifyError>,
    ) -> Result<(u64, bool), VerifyError> {
        Files::each(&self.ledger, self.ledger()?, take)
    }
}

/// What was found in both files.
#[derive(Default)]
pub(super) struct Found {
    pub(super) runs: HashMap<String, Run>,
    files: Vec<Finding>,
    /// The lines that are sealed in the order in which they stand, as the ledger has them and as the trace has them.
    in_ledger: Sha256,
    in_steps: Sha256,
}

/// One run.
#[derive(Default)]
pub(super) struct Run {
    verdict: Verdict,
    /// The first line in the trace, and in the ledger.
    first: Option<u64>,
    first_seal: Option<u64>,
    /// How many lines are sealed.
    count: u64,
    /// What the chain begins with.
    pub(super) genesis: Hash,
    /// The last head by the seals.
    head: Option<Hash>,
    /// Seals from this count on are of the newer version.
    newer_from: Option<u64>,
    /// The lines that were sealed at a restart.
    late: Vec<u64>,
    /// How many lines were seen in the trace, and the head that follows from those that are sealed.
    lines: u64,
    reached: Option<Hash>,
    /// How many lines are as they were sealed.
    verified: u64,
}

impl Run {
    /// If true, its seals are well and its lines are not as they say.
    fn is_suspect(&self) -> bool {
        let is_same = self.lines == self.count && (self.count == 0 || self.reached == self.head);
        self.has_seals() && self.verdict.finding.is_none() && !is_same
    }

    /// If true, the ledger has seals of it.
    pub(super) fn has_seals(&self) -> bool {
        self.first_seal.is_some()
    }

    /// If true, the line of that count stands in the trace where its seal stands in the ledger.
    pub(super) fn is_in_order(&self, count: u64) -> bool {
        count <= self.count
            && self.newer_from.is_some_and(|from| count >= from)
            && self.late.binary_search(&count).is_err()
    }
}

impl Found {
    fn about(&mut self, finding: Finding) {
        if self.files.len() < FINDINGS {
            self.files.push(finding);
        }
    }

    fn run(&mut self, id: &str, path: &Path) -> Result<&mut Run, VerifyError> {
        if !self.runs.contains_key(id) && self.runs.len() >= RUNS {
            return Err(VerifyError::TooMany(path.to_owned()));
        }
        Ok(self
            .runs
            .entry(id.to_owned())
            .or_insert_with(|| Run { verdict: Verdict { run: id.to_owned(), ..Verdict::default() }, ..Run::default() }))
    }

    fn read_ledger(&mut self, files: &Files, pins: &Pins) -> Result<(), VerifyError> {
        let mut keys = BTreeMap::new();
        let mut before: Option<String> = Some(String::new());
        let (last, is_ended) = files.each_seal(|line, text| {
            let behind = before.take();
            let Line::Whole(bytes) = text else {
                self.about(Finding::TooLong { file: LEDGER_FILE, line });
                return Ok(());
            };
            before = Some(hex(&of(bytes)));
            match Seal::read(bytes) {
                Some(seal) => self.seal(line, seal, behind.as_deref(), files, (pins, &mut keys)),
                None => {
                    let blank = bytes.is_empty();
                    self.about(if blank {
                        Finding::Blank { file: LEDGER_FILE, line }
                    } else {
                        Finding::BadSeal { line }
                    });
                    Ok(())
                }
            }
        })?;
        if !is_ended {
            self.about(Finding::NoLineBreak { file: LEDGER_FILE, line: last });
        }
        Ok(())
    }

    /// Takes one seal in, which stands behind a line with that hash.
    fn seal(
        &mut self,
        line: u64,
        seal: Seal,
        behind: Option<&str>,
        files: &Files,
        (pins, keys): (&Pins, &mut BTreeMap<String, Option<PublicKey>>),
    ) -> Result<(), VerifyError> {
        if seal.prev.is_some() && seal.prev.as_deref() != behind {
            self.about(Finding::Unchained { line, behind: seal.prev_run.clone().unwrap_or_default() });
        }
        let run = self.run(&seal.run, &files.ledger)?;
        // A run has one tenant: the one that its first seal names.
        let tenant = run.verdict.tenant.as_ref().unwrap_or(&seal.tenant);
        let key = match pins {
            Pins::One(key) => Some(*key),
            Pins::Keys(all) => match keys.get(tenant) {
                Some(known) => *known,
                None => *keys.entry(tenant.clone()).or_insert(all.pinned(tenant)?),
            },
        };
        let is_ordered = run.take(line, &seal, key);
        if is_ordered && let Some(hash) = unhex::<32>(&seal.line) {
            self.in_ledger.update(hash);
        }
        Ok(())
    }

    fn read_steps(&mut self, files: &Files, must_be_there: bool) -> Result<(), VerifyError> {
        if must_be_there && Files::open(&files.steps)?.is_none() {
            let cause = ErrorKind::NotFound.into();
            return Err(VerifyError::Read { path: files.steps.clone(), cause });
        }
        let (last, is_ended) = files.each_step(|number, line| {
            let Line::Whole(bytes) = line else {
                self.about(Finding::TooLong { file: STEPS_FILE, line: number });
                return Ok(());
            };
            if bytes.is_empty() {
                self.about(Finding::Blank { file: STEPS_FILE, line: number });
                return Ok(());
            }
            let run = self.run(&run_of(bytes), &files.steps)?;
            run.first.get_or_insert(number);
            run.lines += 1;
            if run.lines <= run.count {
                let head = next(&run.reached.unwrap_or(run.genesis), bytes);
                run.reached = Some(head);
            }
            if run.is_in_order(run.lines) {
                self.in_steps.update(of(bytes));
            }
            Ok(())
        })?;
        if !is_ended {
            self.about(Finding::NoLineBreak { file: STEPS_FILE, line: last });
        }
        Ok(())
    }

    fn finish(mut self, has_ledger: bool, known: &[Sealed]) -> Verified {
        for sealed in known {
            let known = || Verdict { run: sealed.run.clone(), ..Verdict::default() };
            let run = self.runs.entry(sealed.run.clone()).or_insert_with(|| Run { verdict: known(), ..Run::default() });
            if run.verdict.finding.is_none() {
                run.verdict.finding = run.against(sealed);
            }
        }
        let mut runs: Vec<Run> = self.runs.into_values().collect();
        // Those that have no line come last, in the order of their ids.
        runs.sort_by_cached_key(|run| (run.first.unwrap_or(u64::MAX), run.verdict.run.clone()));
        let runs = runs.into_iter().map(|mut run| {
            let is_sound = run.verdict.finding.is_none();
            run.verdict.finding = match (run.verdict.finding, run.first, run.head) {
                (Some(known @ (Finding::RunRemoved { .. } | Finding::EndRemoved { .. })), None, _) => Some(known),
                (_, Some(_), _) if !has_ledger => Some(Finding::NoLedger),
                (_, Some(line), None) if run.first_seal.is_none() => Some(Finding::NoSeals { line }),
                (finding, ..) => finding,
            };
            run.verdict.sealed = if is_sound { run.count.min(run.lines) } else { run.verified };
            run.verdict
        });
        Verified { runs: runs.collect(), files: self.files }
    }
}

impl Run {
    /// Takes the next seal of the run in. Returns true if the line that it seals stands in the trace where the seal stands in the ledger.
    fn take(&mut self, line: u64, seal: &Seal, key: Option<PublicKey>) -> bool {
        let is_first = self.first_seal.is_none();
        self.first_seal.get_or_insert(line);
        if is_first {
            self.verdict.tenant = Some(seal.tenant.clone());
            self.verdict.version = seal.v;
            self.genesis = genesis(&seal.run, &seal.tenant, seal.prev.as_deref());
        }
        self.verdict.ended = seal.last;
        self.verdict.late += u64::from(seal.late);
        if self.verdict.finding.is_some() {
            return false;
        }
        self.verdict.finding = self.wrong_with(line, seal, key);
        if self.verdict.finding.is_some() {
            return false;
        }
        self.head = unhex(&seal.head);
        if seal.last {
            return false;
        }
        (self.count, self.verdict.time) = (seal.count, Some(seal.time));
        if seal.late {
            self.late.push(seal.count);
        }
        if seal.v == VERSION {
            self.newer_from.get_or_insert(seal.count);
        }
        self.is_in_order(seal.count)
    }

    fn wrong_with(&self, line: u64, seal: &Seal, key: Option<PublicKey>) -> Option<Finding> {
        let Some(key) = key else { return Some(Finding::NoKey) };
        if seal.key != key.fingerprint() {
            let (found, pinned) = (seal.key.clone(), key.fingerprint());
            return Some(Finding::OtherKey { line, found, pinned });
        }
        if !seal.is_signed_by(&key.0) {
            return Some(Finding::Forged { line });
        }
        if self.verdict.tenant.as_deref() != Some(&seal.tenant) {
            return Some(Finding::OtherGenesis { line });
        }
        let expected = self.count + u64::from(!seal.last);
        if seal.count != expected {
            return Some(Finding::SealsBroken { line, expected, found: seal.count });
        }
        // The seal that ends a run repeats the head before it.
        let repeats = self.head.unwrap_or(self.genesis);
        (seal.last && unhex(&seal.head) != Some(repeats)).then_some(Finding::OtherGenesis { line })
    }

    /// Compares the run with what the store knows of its end.
    fn against(&self, known: &Sealed) -> Option<Finding> {
        if self.first_seal.is_none() {
            return Some(Finding::RunRemoved { lines: known.lines });
        }
        if self.count < known.lines || !self.verdict.ended {
            return Some(Finding::EndRemoved { lines: known.lines, found: self.count });
        }
        let is_same = self.count == known.lines && self.head.is_some_and(|head| hex(&head) == known.head);
        (!is_same).then_some(Finding::OtherEnd)
    }
}

/// The run that a line of the trace belongs to; empty if it says none.
pub(super) fn run_of(line: &[u8]) -> String {
    #[derive(Deserialize)]
    struct OfRun {
        run_id: String,
    }
    serde_json::from_slice::<OfRun>(line).map(|of| of.run_id).unwrap_or_default()
}
