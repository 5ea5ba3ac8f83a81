//! The diagnosis of a run whose lines differ from its seals: lines were edited, removed, inserted
//! or reordered, or the trace was truncated.

use std::collections::{BTreeSet, HashMap};

use super::chain::{Hash, next, of, unhex};
use super::finding::Finding;
use super::seal::Seal;
use super::verify::{Files, Findings, Run, VerifyError, run_of};
use crate::lines::Line;

/// Maximum number of lines and seals that are compared one by one. Runs beyond this limit are
/// reported without line numbers.
const MAX_COMPARED: usize = 500_000;

/// The first fault in a run's lines, and the extent of the unchanged lines before the fault.
pub(super) struct Diagnosis {
    /// Number of unchanged lines at the start of the run.
    pub(super) sealed: u64,
    /// Time of the last seal whose line is unchanged, in milliseconds since 1970.
    pub(super) time: Option<u64>,
    pub(super) finding: Finding,
}

/// The lines and the seals of one run.
#[derive(Default)]
struct RunLines {
    lines: Vec<TraceLine>,
    seals: Vec<LedgerSeal>,
    is_complete: bool,
}

/// A line of the trace, and the head of the chain after this line.
struct TraceLine {
    number: u64,
    hash: Hash,
    head: Hash,
}

/// A seal of the ledger.
struct LedgerSeal {
    line: u64,
    hash: Option<Hash>,
    head: Option<Hash>,
    time: u64,
}

/// Compares the lines of the given runs with their seals. Returns the ids of the runs whose lines
/// differ from their seals, each with its diagnosis.
pub(super) fn diagnose(
    files: &Files,
    runs: &[String],
    found: &Findings,
) -> Result<Vec<(String, Diagnosis)>, VerifyError> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut run_lines: HashMap<&str, RunLines> = runs
        .iter()
        .map(|run| (run.as_str(), RunLines { is_complete: true, ..RunLines::default() }))
        .collect();
    let mut remaining = MAX_COMPARED;
    files.each_seal(|line, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let Some(seal) = Seal::parse(bytes).filter(|seal| !seal.last) else { return Ok(()) };
        if let Some(side) = run_lines.get_mut(seal.run.as_str()) {
            side.is_complete &= remaining > 0;
            if side.is_complete {
                let (hash, head) = (unhex(&seal.line), unhex(&seal.head));
                side.seals.push(LedgerSeal { line, hash, head, time: seal.time });
                remaining -= 1;
            }
        }
        Ok(())
    })?;
    let mut strays = BTreeSet::new();
    files.each_step(|number, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let run = run_of(bytes);
        if let Some(side) = run_lines.get_mut(run.as_str()) {
            side.is_complete &= remaining > 0;
            if side.is_complete {
                let genesis = found.runs.get(&run).map(|run| run.genesis).unwrap_or_default();
                let head = next(side.lines.last().map_or(&genesis, |line| &line.head), bytes);
                side.lines.push(TraceLine { number, hash: of(bytes), head });
                remaining -= 1;
            }
        } else if remaining > 0 && !found.runs.get(&run).is_some_and(Run::has_seals) {
            strays.insert(number);
            remaining -= 1;
        }
        Ok(())
    })?;
    let diagnoses = run_lines
        .into_iter()
        .filter_map(|(run, run_lines)| Some((run.to_owned(), diagnose_run(&run_lines, &strays)?)));
    Ok(diagnoses.collect())
}

/// Returns the first fault in the lines of a run, or `None` if they match the seals.
fn diagnose_run(
    RunLines { lines, seals, is_complete }: &RunLines,
    strays: &BTreeSet<u64>,
) -> Option<Diagnosis> {
    let hashes: Vec<Option<Hash>> = seals.iter().map(|seal| seal.hash).collect();
    let (mut sealed, mut time) = (0, None);
    if !is_complete {
        return Some(Diagnosis { sealed, time, finding: Finding::Differs });
    }
    for (at, seal) in seals.iter().enumerate() {
        let finding = match lines.get(at) {
            None => Some(missing(lines, &hashes, strays)),
            Some(line) if Some(line.hash) != seal.hash => Some(moved(at, lines, &hashes, strays)),
            Some(line) => {
                (seal.head != Some(line.head)).then_some(Finding::OtherGenesis { line: seal.line })
            }
        };
        if let Some(finding) = finding {
            return Some(Diagnosis { sealed, time, finding });
        }
        (sealed, time) = (at as u64 + 1, Some(seal.time));
    }
    let first = lines.get(seals.len())?;
    Some(Diagnosis { sealed, time, finding: after(first, lines, &hashes) })
}

/// Returns the finding for lines after the last seal. `first` is the first of these lines.
fn after(first: &TraceLine, lines: &[TraceLine], hashes: &[Option<Hash>]) -> Finding {
    if hashes.contains(&Some(first.hash)) {
        return Finding::Inserted { line: first.number };
    }
    Finding::Unsealed { line: first.number, lines: (lines.len() - hashes.len()) as u64 }
}

/// Returns the finding for a run that has fewer lines than seals, although its remaining lines are
/// unchanged.
fn missing(lines: &[TraceLine], hashes: &[Option<Hash>], strays: &BTreeSet<u64>) -> Finding {
    let end = lines.last().map_or(0, |line| line.number);
    // A stray line does not name a sealed run. If one follows, it belonged to this run and was
    // changed so that it no longer names the run.
    match strays.range(end + 1..).next() {
        Some(line) => Finding::Edited { line: *line },
        None => Finding::Truncated { sealed: hashes.len() as u64, found: lines.len() as u64 },
    }
}

/// Returns the finding for the line at index `at`, which differs from the sealed line.
fn moved(
    at: usize,
    lines: &[TraceLine],
    hashes: &[Option<Hash>],
    strays: &BTreeSet<u64>,
) -> Finding {
    let Some(found) = lines.get(at) else { return missing(lines, hashes, strays) };
    let line = found.number;
    let rest = hashes.get(at..).unwrap_or_default();
    let is_there = |hash: Option<Hash>| lines.iter().skip(at).any(|line| Some(line.hash) == hash);
    let expected_is_later = is_there(rest.first().copied().flatten());
    match rest.iter().position(|hash| *hash == Some(found.hash)) {
        // The line at this position was sealed later.
        Some(_) if expected_is_later => Finding::Reordered { line },
        Some(ahead) => {
            let before = at
                .checked_sub(1)
                .and_then(|before| lines.get(before))
                .map_or(0, |line| line.number);
            match strays.range(before + 1..line).next() {
                // The line is present, but no longer names its run.
                Some(stray) => Finding::Edited { line: *stray },
                None => Finding::Removed { line, lines: ahead as u64 },
            }
        }
        None if expected_is_later => Finding::Inserted { line },
        None => Finding::Edited { line },
    }
}

/// Returns the number of the first line of the trace that is not in the order of the seals, or 0 if
/// there is none. Compares the lines of all runs together. Skips lines whose order may legitimately
/// differ from the order of their seals.
pub(super) fn first_out_of_order(files: &Files, found: &Findings) -> Result<u64, VerifyError> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut sealed = Vec::new();
    files.each_seal(|_, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let Some(seal) = Seal::parse(bytes).filter(|seal| !seal.last) else { return Ok(()) };
        let is_ordered = found.runs.get(&seal.run).is_some_and(|run| run.is_in_order(seal.count));
        if is_ordered && sealed.len() < MAX_COMPARED {
            sealed.push(seal.line);
        }
        Ok(())
    })?;
    let mut at = 0;
    let mut first = None;
    files.each_step(|number, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let run = run_of(bytes);
        let count = counts.entry(run.clone()).or_default();
        *count += 1;
        if found.runs.get(&run).is_some_and(|run| run.is_in_order(*count)) {
            let is_expected = sealed.get(at).and_then(|hash| unhex(hash)) == Some(of(bytes));
            if !is_expected {
                first.get_or_insert(number);
            }
            at += 1;
        }
        Ok(())
    })?;
    Ok(first.unwrap_or_default())
}
