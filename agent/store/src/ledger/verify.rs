//! Verification of a trace against its seals.
//!
//! The trace and the ledger are both read line by line. If they are valid, each of them is read
//! only once. Memory use grows with the number of runs, not with the number of lines: the last head
//! in a run's chain verifies all of the run's sealed lines. Only the lines of a run with a fault
//! are compared one by one (see `diagnosis`).

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use wattle_capability::files::{TRACE_FILE, open_lines_to_read};

use super::chain::{Hash, genesis, hex, next, of, unhex};
use super::diagnosis::{diagnose, first_out_of_order};
use super::finding::Finding;
use super::rotate::{self, Before};
use super::seal::Seal;
use super::{FinalSeal, KeyError, Keys, LEDGER_FILE, PublicKey};
use crate::lines::{Line, LineReader};

/// Maximum number of runs in one trace.
const MAX_RUNS: usize = 250_000;

/// Maximum number of findings about the files.
const MAX_FINDINGS: usize = 50;

/// The source of the public keys that verify seals.
#[derive(Clone, Debug)]
pub enum Pins {
    /// The pinned key of each tenant.
    Keys(Keys),
    /// A single key, for a trace that was written elsewhere.
    One(PublicKey),
}

/// The result of verifying a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The verdict on each run, ordered by the run's first line in the trace.
    pub runs: Vec<Verdict>,
    /// The findings that concern a file rather than one run; at most 50.
    pub files: Vec<Finding>,
}

/// The verdict on one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The run's id.
    pub run: String,
    /// The tenant named in the run's seals.
    pub tenant: Option<String>,
    /// Number of unchanged lines at the start of the run.
    pub sealed: u64,
    /// Time of the last seal whose line is unchanged, in milliseconds since 1970.
    pub time: Option<u64>,
    /// If true, the ledger contains the run's final seal. Otherwise the run was stopped or is in
    /// progress, or its end was removed.
    pub ended: bool,
    /// Number of lines that were sealed late: when the run was resumed, or after another process
    /// had kept the ledger locked.
    pub late: u64,
    /// The first fault, [`Finding::UnknownKey`] if the run could not be verified, or `None` if the
    /// run is unchanged.
    pub finding: Option<Finding>,
}

/// The reason why a trace cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file cannot be read.
    #[error("failed to read `{}`: {cause}", .path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// The trace has too many runs.
    #[error("failed to verify `{}`: it has more than {MAX_RUNS} runs", .0.display())]
    TooMany(PathBuf),
    /// A pinned key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Verifies the trace in a folder with its rotated parts. The ledgers must contain each of the
/// `known` final seals, which come from a store.
///
/// # Errors
/// If a file or a pinned key cannot be read, if the trace has too many runs, or if there is no
/// trace and `known` is empty.
pub fn verify(
    folder: &Path,
    pins: &Pins,
    known: &[FinalSeal],
) -> Result<Verification, VerifyError> {
    let failed = |cause| VerifyError::Read { path: folder.to_owned(), cause };
    let parts = rotate::parts(folder).map_err(failed)?;
    let (mut all, mut known) = (Verification::default(), known.to_vec());
    for (_, part) in &parts {
        let files = Files::of(part);
        let mut found = Findings::default();
        found.read(&files, pins, false)?;
        // The other final seals are in later parts.
        let (here, later) =
            known.into_iter().partition(|sealed| found.runs.contains_key(&sealed.run));
        known = later;
        let name = part.file_name().unwrap_or_default().to_string_lossy();
        let rotated =
            |finding| Finding::Rotated { part: name.to_string(), finding: Box::new(finding) };
        let Verification { runs, files } = found.verdicts(&files, &here)?;
        all.runs.extend(
            runs.into_iter()
                .map(|verdict| Verdict { finding: verdict.finding.map(rotated), ..verdict }),
        );
        all.files.extend(files.into_iter().map(rotated));
    }
    let files = Files::of(folder);
    // After a rotation, the folder has no trace until the next run. A rotation that was killed may
    // have left the first names of the files.
    let current = rotate::identity(&files.ledger).map_err(failed)?;
    let newest = match parts.last() {
        Some((_, part)) => rotate::identity(&part.join(LEDGER_FILE)).map_err(failed)?,
        None => None,
    };
    let is_rotated = current.is_some() && current == newest;
    if !is_rotated {
        let mut found = Findings::default();
        found.read(&files, pins, known.is_empty() && parts.is_empty())?;
        let Verification { runs, files } = found.verdicts(&files, &known)?;
        all.runs.extend(runs);
        all.files.extend(files);
    }
    Ok(all)
}

impl Findings {
    /// Reads a ledger and its trace.
    fn read(&mut self, files: &Files, pins: &Pins, is_required: bool) -> Result<(), VerifyError> {
        self.read_ledger(files, pins)?;
        self.read_steps(files, is_required)
    }

    /// Finds the faults of runs, and returns the verdicts.
    fn verdicts(mut self, files: &Files, known: &[FinalSeal]) -> Result<Verification, VerifyError> {
        let has_ledger = files.ledger()?.is_some();
        let damaged: Vec<String> = self
            .runs
            .iter()
            .filter(|(_, run)| run.is_damaged())
            .map(|(id, _)| id.clone())
            .collect();
        for (run, diagnosis) in diagnose(files, &damaged, &self)? {
            if let Some(seen) = self.runs.get_mut(&run) {
                (seen.verified, seen.verdict.time) =
                    (diagnosis.sealed, diagnosis.time.or(seen.verdict.time));
                seen.verdict.finding = Some(diagnosis.finding);
            }
        }
        let is_sound = self.runs.values().all(|run| run.verdict.finding.is_none());
        if is_sound
            && self.files.is_empty()
            && self.in_ledger.clone().finalize() != self.in_steps.clone().finalize()
        {
            let line = first_out_of_order(files, &self)?;
            self.files.push(Finding::OtherOrder { line });
        }
        Ok(self.finish(has_ledger, known))
    }
}

/// The paths of a trace file and its ledger.
pub(super) struct Files {
    steps: PathBuf,
    ledger: PathBuf,
}

impl Files {
    fn of(folder: &Path) -> Files {
        Files { steps: folder.join(TRACE_FILE), ledger: folder.join(LEDGER_FILE) }
    }

    fn open(path: &Path) -> Result<Option<File>, VerifyError> {
        let failed = |cause| VerifyError::Read { path: path.to_owned(), cause };
        open_lines_to_read(path).map_err(failed)
    }

    fn ledger(&self) -> Result<Option<File>, VerifyError> {
        Files::open(&self.ledger)
    }

    /// Passes each line of a file to `take`, if the file exists. Returns the number of lines, and
    /// whether the last line ends with a line break.
    fn each(
        path: &Path,
        file: Option<File>,
        mut take: impl FnMut(u64, Line<'_>) -> Result<(), VerifyError>,
    ) -> Result<(u64, bool), VerifyError> {
        let Some(file) = file else { return Ok((0, true)) };
        let (mut lines, mut count) = (LineReader::of(file), 0);
        loop {
            let line = lines
                .next_line()
                .map_err(|cause| VerifyError::Read { path: path.to_owned(), cause })?;
            let Some((number, line)) = line else { break };
            count = number;
            take(number, line)?;
            if !lines.is_ended() {
                return Ok((count, false));
            }
        }
        Ok((count, true))
    }

    /// Passes each line of the trace to `take`. Returns the same values as [`each`](Files::each).
    pub(super) fn each_step(
        &self,
        take: impl FnMut(u64, Line<'_>) -> Result<(), VerifyError>,
    ) -> Result<(u64, bool), VerifyError> {
        Files::each(&self.steps, Files::open(&self.steps)?, take)
    }

    /// Passes each line of the ledger to `take`. Returns the same values as [`each`](Files::each).
    pub(super) fn each_seal(
        &self,
        take: impl FnMut(u64, Line<'_>) -> Result<(), VerifyError>,
    ) -> Result<(u64, bool), VerifyError> {
        Files::each(&self.ledger, self.ledger()?, take)
    }
}

/// The findings and state of a verification.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) runs: HashMap<String, Run>,
    files: Vec<Finding>,
    /// A hash over the lines whose order is checked, in the order of their seals.
    in_ledger: Sha256,
    /// A hash over the lines whose order is checked, in the order of the trace.
    in_steps: Sha256,
}

/// The verification state of one run.
#[derive(Default)]
pub(super) struct Run {
    verdict: Verdict,
    /// The number of the run's first line in the trace.
    first: Option<u64>,
    /// The number of the ledger line with the run's first seal.
    first_seal: Option<u64>,
    /// The fingerprint of the key of the run's first seal.
    key: String,
    /// If true, `key` is not pinned, so the signatures were not checked.
    is_unverified: bool,
    /// Number of sealed lines.
    count: u64,
    /// The chain's head before the run's first line.
    pub(super) genesis: Hash,
    /// The chain's head in the run's last seal.
    head: Option<Hash>,
    /// The numbers of the lines that were sealed late.
    late: Vec<u64>,
    /// Number of the run's lines in the trace.
    lines: u64,
    /// The chain's head, computed from the sealed lines of the trace.
    reached: Option<Hash>,
    /// Number of unchanged lines at the start of the run, if the run has a fault.
    verified: u64,
}

impl Run {
    /// Returns true if the seals are valid but the lines do not match them.
    fn is_damaged(&self) -> bool {
        let is_same = self.lines == self.count && (self.count == 0 || self.reached == self.head);
        self.has_seals() && self.verdict.finding.is_none() && !is_same
    }

    /// Returns true if the ledger contains seals of the run.
    pub(super) fn has_seals(&self) -> bool {
        self.first_seal.is_some()
    }

    /// Returns true if the run's line number `count` is included in the check that the trace lines
    /// and their seals are in the same order. Lines that were sealed late are excluded, because
    /// their order may legitimately differ.
    pub(super) fn is_in_order(&self, count: u64) -> bool {
        count <= self.count && self.late.binary_search(&count).is_err()
    }
}

impl Findings {
    fn report(&mut self, finding: Finding) {
        if self.files.len() < MAX_FINDINGS {
            self.files.push(finding);
        }
    }

    fn run(&mut self, id: &str, path: &Path) -> Result<&mut Run, VerifyError> {
        if !self.runs.contains_key(id) && self.runs.len() >= MAX_RUNS {
            return Err(VerifyError::TooMany(path.to_owned()));
        }
        Ok(self.runs.entry(id.to_owned()).or_insert_with(|| Run {
            verdict: Verdict { run: id.to_owned(), ..Verdict::default() },
            ..Run::default()
        }))
    }

    fn read_ledger(&mut self, files: &Files, pins: &Pins) -> Result<(), VerifyError> {
        let mut keys = BTreeMap::new();
        let folder = files.ledger.parent().unwrap_or(Path::new(""));
        let failed = |cause| VerifyError::Read { path: files.ledger.clone(), cause };
        let (mut before, mut is_free) = match rotate::before(folder).map_err(failed)? {
            Before::Nothing => (Some(String::new()), false),
            Before::Line(line) => (Some(hex(&of(&line))), false),
            Before::Removed => (None, true),
        };
        let (last, is_ended) = files.each_seal(|line, text| {
            let (previous, follows_removed) = (before.take(), std::mem::take(&mut is_free));
            let Line::Whole(bytes) = text else {
                self.report(Finding::TooLong { file: LEDGER_FILE, line });
                return Ok(());
            };
            before = Some(hex(&of(bytes)));
            match Seal::parse(bytes) {
                Some(seal) => {
                    let previous = previous.or_else(|| follows_removed.then(|| seal.prev.clone()));
                    self.seal(line, seal, previous.as_deref(), files, (pins, &mut keys))
                }
                None => {
                    let is_empty = bytes.is_empty();
                    self.report(if is_empty {
                        Finding::Empty { file: LEDGER_FILE, line }
                    } else {
                        Finding::BadSeal { line }
                    });
                    Ok(())
                }
            }
        })?;
        if !is_ended {
            self.report(Finding::NoLineBreak { file: LEDGER_FILE, line: last });
        }
        Ok(())
    }

    /// Checks one seal and updates the state of its run. `previous` is the hash of the ledger line
    /// before the seal, or `None` if that line is too long to be read.
    fn seal(
        &mut self,
        line: u64,
        seal: Seal,
        previous: Option<&str>,
        files: &Files,
        (pins, keys): (&Pins, &mut BTreeMap<String, Option<PublicKey>>),
    ) -> Result<(), VerifyError> {
        if previous != Some(seal.prev.as_str()) {
            self.report(Finding::Unchained { line, previous_run: seal.prev_run.clone() });
        }
        let run = self.run(&seal.run, &files.ledger)?;
        // A run has one tenant: the one named in its first seal.
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

    fn read_steps(&mut self, files: &Files, is_required: bool) -> Result<(), VerifyError> {
        if is_required && Files::open(&files.steps)?.is_none() {
            let cause = ErrorKind::NotFound.into();
            return Err(VerifyError::Read { path: files.steps.clone(), cause });
        }
        let (last, is_ended) = files.each_step(|number, line| {
            let Line::Whole(bytes) = line else {
                self.report(Finding::TooLong { file: TRACE_FILE, line: number });
                return Ok(());
            };
            if bytes.is_empty() {
                self.report(Finding::Empty { file: TRACE_FILE, line: number });
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
            self.report(Finding::NoLineBreak { file: TRACE_FILE, line: last });
        }
        Ok(())
    }

    fn finish(mut self, has_ledger: bool, known: &[FinalSeal]) -> Verification {
        for sealed in known {
            let known = || Verdict { run: sealed.run.clone(), ..Verdict::default() };
            let run = self
                .runs
                .entry(sealed.run.clone())
                .or_insert_with(|| Run { verdict: known(), ..Run::default() });
            if run.verdict.finding.is_none() {
                run.verdict.finding = run.compare(sealed);
            }
        }
        for run in self.runs.values_mut().filter(|run| run.is_unverified) {
            if run.verdict.finding.is_none() {
                run.verdict.finding = Some(Finding::UnknownKey { found: run.key.clone() });
            }
            run.verdict.time = None;
        }
        let mut runs: Vec<Run> = self.runs.into_values().collect();
        // Runs without lines come last, in the order of their ids.
        runs.sort_by_cached_key(|run| (run.first.unwrap_or(u64::MAX), run.verdict.run.clone()));
        let runs = runs.into_iter().map(|mut run| {
            let is_sound = run.verdict.finding.is_none();
            run.verdict.finding = match (run.verdict.finding, run.first, run.head) {
                (
                    Some(known @ (Finding::RunRemoved { .. } | Finding::EndRemoved { .. })),
                    None,
                    _,
                ) => Some(known),
                (_, Some(_), _) if !has_ledger => Some(Finding::NoLedger),
                (_, Some(line), None) if run.first_seal.is_none() => {
                    Some(Finding::NoSeals { line })
                }
                (finding, ..) => finding,
            };
            run.verdict.sealed = if is_sound { run.count.min(run.lines) } else { run.verified };
            run.verdict
        });
        Verification { runs: runs.collect(), files: self.files }
    }
}

impl Run {
    /// Checks the next seal of the run and updates the run's state. Returns true if the sealed line
    /// is included in the check that the trace lines and their seals are in the same order.
    fn take(&mut self, line: u64, seal: &Seal, key: Option<PublicKey>) -> bool {
        let is_first = self.first_seal.is_none();
        self.first_seal.get_or_insert(line);
        if is_first {
            self.verdict.tenant = Some(seal.tenant.clone());
            self.genesis = genesis(&seal.run, &seal.tenant, &seal.prev);
            self.key.clone_from(&seal.key);
            self.is_unverified = key.is_none_or(|key| key.fingerprint() != seal.key);
        }
        self.verdict.ended = seal.last;
        self.verdict.late += u64::from(seal.late);
        if self.verdict.finding.is_some() {
            return false;
        }
        self.verdict.finding = self.find_fault(line, seal, key);
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
        self.is_in_order(seal.count)
    }

    fn find_fault(&self, line: u64, seal: &Seal, key: Option<PublicKey>) -> Option<Finding> {
        if seal.key != self.key {
            return Some(Finding::OtherKey { line, found: seal.key.clone() });
        }
        if !self.is_unverified && !key.is_some_and(|key| seal.is_signed_by(&key.0)) {
            return Some(Finding::Forged { line });
        }
        if self.verdict.tenant.as_deref() != Some(&seal.tenant) {
            return Some(Finding::OtherGenesis { line });
        }
        let expected = self.count + u64::from(!seal.last);
        if seal.count != expected {
            return Some(Finding::SealsBroken { line, expected, found: seal.count });
        }
        // The final seal repeats the previous head.
        let repeats = self.head.unwrap_or(self.genesis);
        (seal.last && unhex(&seal.head) != Some(repeats)).then_some(Finding::OtherGenesis { line })
    }

    /// Compares the run with its final seal from the store. Returns a finding if they differ.
    fn compare(&self, known: &FinalSeal) -> Option<Finding> {
        let Some(line) = self.first_seal else {
            return Some(Finding::RunRemoved { lines: known.lines });
        };
        if self.is_unverified {
            return Some(Finding::OtherKey { line, found: self.key.clone() });
        }
        if self.count < known.lines || !self.verdict.ended {
            return Some(Finding::EndRemoved { lines: known.lines, found: self.count });
        }
        let is_same =
            self.count == known.lines && self.head.is_some_and(|head| hex(&head) == known.head);
        (!is_same).then_some(Finding::OtherEnd)
    }
}

/// Returns the id of the run that a trace line names, or an empty string if it names no run.
pub(super) fn run_of(line: &[u8]) -> String {
    #[derive(Deserialize)]
    struct RunField {
        run_id: String,
    }
    serde_json::from_slice::<RunField>(line).map(|of| of.run_id).unwrap_or_default()
}
