//! What became of the lines of a run that are not as they were sealed: edited, removed, inserted, reordered, cut off.

use std::collections::{BTreeSet, HashMap};

use super::chain::{Hash, next, of, unhex};
use super::finding::Finding;
use super::seal::Seal;
use super::verify::{Files, Found, Run, VerifyError, run_of};
use crate::lines::Line;

/// Maximum number of lines and seals that are compared one by one; runs beyond it are named without their lines.
const COMPARED: usize = 500_000;

/// What is wrong with a run, and how far it is well.
pub(super) struct Suspect {
    /// How many lines are as they were sealed, from the first on.
    pub(super) sealed: u64,
    /// When the last of them was sealed.
    pub(super) time: Option<u64>,
    pub(super) finding: Finding,
}

/// The lines and the seals of one run.
#[derive(Default)]
struct Sides {
    lines: Vec<Seen>,
    seals: Vec<Sealed>,
    is_whole: bool,
}

/// A line of the trace, with the head that follows from it and those before it.
struct Seen {
    number: u64,
    hash: Hash,
    head: Hash,
}

/// A seal of the ledger.
struct Sealed {
    line: u64,
    hash: Option<Hash>,
    head: Option<Hash>,
    time: u64,
}

/// Compares the lines of those runs with their seals.
pub(super) fn look_closer(
    files: &Files,
    runs: &[String],
    found: &Found,
) -> Result<Vec<(String, Suspect)>, VerifyError> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let mut sides: HashMap<&str, Sides> =
        runs.iter().map(|run| (run.as_str(), Sides { is_whole: true, ..Sides::default() })).collect();
    let mut room = COMPARED;
    files.each_seal(|line, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let Some(seal) = Seal::read(bytes).filter(|seal| !seal.last) else { return Ok(()) };
        if let Some(side) = sides.get_mut(seal.run.as_str()) {
            side.is_whole &= room > 0;
            if side.is_whole {
                let (hash, head) = (unhex(&seal.line), unhex(&seal.head));
                side.seals.push(Sealed { line, hash, head, time: seal.time });
                room -= 1;
            }
        }
        Ok(())
    })?;
    let mut strays = BTreeSet::new();
    files.each_step(|number, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let run = run_of(bytes);
        if let Some(side) = sides.get_mut(run.as_str()) {
            side.is_whole &= room > 0;
            if side.is_whole {
                let genesis = found.runs.get(&run).map(|run| run.genesis).unwrap_or_default();
                let head = next(side.lines.last().map_or(&genesis, |line| &line.head), bytes);
                side.lines.push(Seen { number, hash: of(bytes), head });
                room -= 1;
            }
        } else if room > 0 && !found.runs.get(&run).is_some_and(Run::has_seals) {
            strays.insert(number);
            room -= 1;
        }
        Ok(())
    })?;
    let judged = sides.into_iter().filter_map(|(run, sides)| Some((run.to_owned(), judge(&sides, &strays)?)));
    Ok(judged.collect())
}

/// The first thing that is wrong with the lines of a run.
fn judge(Sides { lines, seals, is_whole }: &Sides, strays: &BTreeSet<u64>) -> Option<Suspect> {
    let hashes: Vec<Option<Hash>> = seals.iter().map(|seal| seal.hash).collect();
    let (mut sealed, mut time) = (0, None);
    if !is_whole {
        return Some(Suspect { sealed, time, finding: Finding::Differs });
    }
    for (at, seal) in seals.iter().enumerate() {
        let finding = match lines.get(at) {
            None => Some(missing(lines, &hashes, strays)),
            Some(line) if Some(line.hash) != seal.hash => Some(moved(at, lines, &hashes, strays)),
            Some(line) => (seal.head != Some(line.head)).then_some(Finding::OtherGenesis { line: seal.line }),
        };
        if let Some(finding) = finding {
            return Some(Suspect { sealed, time, finding });
        }
        (sealed, time) = (at as u64 + 1, Some(seal.time));
    }
    let first = lines.get(seals.len())?;
    Some(Suspect { sealed, time, finding: after(first, lines, &hashes) })
}

/// What lines behind the last seal are.
fn after(first: &Seen, lines: &[Seen], hashes: &[Option<Hash>]) -> Finding {
    if hashes.contains(&Some(first.hash)) {
        return Finding::Inserted { line: first.number };
    }
    Finding::Unsealed { line: first.number, lines: (lines.len() - hashes.len()) as u64 }
}

/// What it means that there are fewer lines than were sealed, and all that are there are right.
fn missing(lines: &[Seen], hashes: &[Option<Hash>], strays: &BTreeSet<u64>) -> Finding {
    let end = lines.last().map_or(0, |line| line.number);
    // The lines at the end were changed so that they are not lines of the run any more.
    match strays.range(end + 1..).next() {
        Some(line) => Finding::Edited { line: *line },
        None => Finding::Truncated { sealed: hashes.len() as u64, found: lines.len() as u64 },
    }
}

/// What it means that another line stands where the line `at` was sealed.
fn moved(at: usize, lines: &[Seen], hashes: &[Option<Hash>], strays: &BTreeSet<u64>) -> Finding {
    let Some(found) = lines.get(at) else { return missing(lines, hashes, strays) };
    let line = found.number;
    let rest = hashes.get(at..).unwrap_or_default();
    let is_there = |hash: Option<Hash>| lines.iter().skip(at).any(|line| Some(line.hash) == hash);
    let expected_is_later = is_there(rest.first().copied().flatten());
    match rest.iter().position(|hash| *hash == Some(found.hash)) {
        // A line that was sealed further on stands here.
        Some(_) if expected_is_later => Finding::Reordered { line },
        Some(ahead) => {
            let before = at.checked_sub(1).and_then(|before| lines.get(before)).map_or(0, |line| line.number);
            match strays.range(before + 1..line).next() {
                // It is there, but its run is not to be read from it any more.
                Some(stray) => Finding::Edited { line: *stray },
                None => Finding::Removed { line, lines: ahead as u64 },
            }
        }
        None if expected_is_later => Finding::Inserted { line },
        None => Finding::Edited { line },
    }
}

/// The first line of the trace that stands in another order, among those of several runs, than the seals do.
pub(super) fn first_out_of_order(files: &Files, found: &Found) -> Result<u64, VerifyError> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut sealed = Vec::new();
    files.each_seal(|_, text| {
        let Line::Whole(bytes) = text else { return Ok(()) };
        let Some(seal) = Seal::read(bytes).filter(|seal| !seal.last) else { return Ok(()) };
        let is_ordered = found.runs.get(&seal.run).is_some_and(|run| run.is_in_order(seal.count));
        if is_ordered && sealed.len() < COMPARED {
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
