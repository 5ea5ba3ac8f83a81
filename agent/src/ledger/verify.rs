//! Verifying: what became of a trace since it was sealed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::chain::{Hash, genesis, next, of, unhex};
use super::seal::{Seal, VERSION};
use super::{KeyError, Keys, LEDGER_FILE, PublicKey};
use crate::STEPS_FILE;

/// Where the public keys come from that seals are checked by.
#[derive(Clone, Debug)]
pub enum Pins {
    /// Each tenant's pinned key.
    Keys(Keys),
    /// One key, for a trace that came from elsewhere.
    One(PublicKey),
}

/// What verifying found out about one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The run.
    pub run: String,
    /// Whose run it is, as its seals say.
    pub tenant: Option<String>,
    /// How many of its lines are as they were sealed, from the first on.
    pub sealed: u64,
    /// When the last of them was sealed, in milliseconds since 1970.
    pub time: Option<u64>,
    /// Whether the seal is there that ends a run. Where it is not, the run was cut short, is under way, or its end was cut off.
    pub ended: bool,
    /// How many lines were sealed at a restart.
    pub late: u64,
    /// The first thing that is wrong; `None` where all is as it was sealed.
    pub finding: Option<Finding>,
}

/// What is wrong with a trace. Lines are counted from 1 in the file that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The ledger is not there.
    NoLedger,
    /// The run has lines and no seal.
    NoSeals {
        /// Its first line in the trace.
        line: usize,
    },
    /// No public key is pinned for the tenant that the seals name.
    NoKey,
    /// The seals are of another key than the pinned one.
    OtherKey {
        /// The line in the ledger.
        line: usize,
        /// The fingerprint of the key that sealed.
        found: String,
        /// That of the pinned one.
        pinned: String,
    },
    /// A line of the ledger is no seal, or of another version.
    BadSeal {
        /// The line in the ledger.
        line: usize,
    },
    /// A seal's signature does not fit what it says.
    Forged {
        /// The line in the ledger.
        line: usize,
    },
    /// The seals begin with another run or tenant than they say.
    OtherGenesis {
        /// The line in the ledger.
        line: usize,
    },
    /// Seals are missing, or in another order.
    SealsBroken {
        /// The line in the ledger where the count does not go on.
        line: usize,
        /// The count that should stand there.
        expected: u64,
        /// The count that stands there.
        found: u64,
    },
    /// A line has another content.
    Edited {
        /// The line in the trace.
        line: usize,
    },
    /// Lines were taken out.
    Removed {
        /// The line in the trace that now stands where they stood.
        line: usize,
        /// How many.
        lines: u64,
    },
    /// A line was put in.
    Inserted {
        /// The line in the trace.
        line: usize,
    },
    /// Lines stand in another order.
    Reordered {
        /// The first line in the trace that does not stand in its place.
        line: usize,
    },
    /// The end of the trace is missing.
    Truncated {
        /// How many lines were sealed.
        sealed: u64,
        /// How many there are.
        found: u64,
    },
    /// Lines follow the last seal: written when the process stopped before it sealed them, or put there by somebody.
    Unsealed {
        /// The first of them in the trace.
        line: usize,
        /// How many.
        lines: u64,
    },
}

/// What is wrong in words, with the file and line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, ledger) = (STEPS_FILE, LEDGER_FILE);
        match self {
            Finding::NoLedger => write!(f, "the ledger `{ledger}` is missing"),
            Finding::NoSeals { line } => write!(f, "{steps} line {line}: the run has no seal in `{ledger}`"),
            Finding::NoKey => write!(f, "no public key is pinned for this tenant; give the right one with `--key`"),
            Finding::OtherKey { line, found, pinned } => {
                write!(f, "{ledger} line {line}: sealed with another key ({found}; the pinned one is {pinned})")
            }
            Finding::BadSeal { line } => write!(f, "{ledger} line {line}: not a seal of version {VERSION}"),
            Finding::Forged { line } => {
                write!(
                    f,
                    "{ledger} line {line}: the signature does not fit; the count, the time or the head was changed"
                )
            }
            Finding::OtherGenesis { line } => {
                write!(f, "{ledger} line {line}: the chain was begun for another run or another tenant")
            }
            Finding::SealsBroken { line, expected, found } => write!(
                f,
                "{ledger} line {line}: this is seal {found}, and seal {expected} should stand here; seals were removed or reordered"
            ),
            Finding::Edited { line } => write!(f, "{steps} line {line}: edited"),
            Finding::Removed { line, lines: 1 } => write!(f, "{steps} line {line}: the line before it was removed"),
            Finding::Removed { line, lines } => write!(f, "{steps} line {line}: {lines} lines before it were removed"),
            Finding::Inserted { line } => write!(f, "{steps} line {line}: inserted"),
            Finding::Reordered { line } => write!(f, "{steps} line {line}: reordered"),
            Finding::Truncated { sealed, found } => {
                write!(f, "{steps}: truncated; {sealed} lines were sealed, {found} are there")
            }
            Finding::Unsealed { line, lines: 1 } => {
                write!(
                    f,
                    "{steps} line {line}: written after the last seal; the process stopped before it, or it was added"
                )
            }
            Finding::Unsealed { line, lines } => {
                write!(f, "{steps} line {line}: {lines} lines were added after the last seal")
            }
        }
    }
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
    /// A pinned key cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Holds the trace in a folder against its ledger: one verdict a run, in the order of their first lines.
///
/// # Errors
/// Where there is no trace, or a file cannot be read.
pub fn verify(folder: &Path, pins: &Pins) -> Result<Vec<Verdict>, VerifyError> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|cause| VerifyError::Read { path, cause })
    };
    let steps = read(STEPS_FILE)?;
    let ledger = match read(LEDGER_FILE) {
        Err(VerifyError::Read { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => None,
        other => Some(other?),
    };
    let seals = Seals::read(ledger.as_deref().unwrap_or_default());
    let trace = Trace::read(&steps, &seals);
    let mut order: Vec<&str> = trace.order.iter().map(String::as_str).collect();
    order.extend(seals.runs.keys().map(String::as_str).filter(|run| !trace.runs.contains_key(*run)));
    let mut verdicts = Vec::with_capacity(order.len());
    for run in order {
        let lines = trace.runs.get(run).map(Vec::as_slice).unwrap_or_default();
        let sealed = seals.runs.get(run).map(Vec::as_slice).unwrap_or_default();
        let mut verdict = Verdict::of(run, sealed);
        verdict.finding = match (ledger.is_some(), lines.first()) {
            (false, _) => Some(Finding::NoLedger),
            (true, Some(first)) if sealed.is_empty() => Some(Finding::NoSeals { line: first.number }),
            _ => judge(&mut verdict, lines, sealed, &trace.strays, pins)?,
        };
        verdicts.push(verdict);
    }
    if let (Some(line), Some(first)) = (seals.bad, verdicts.iter_mut().find(|verdict| verdict.finding.is_none())) {
        first.finding = Some(Finding::BadSeal { line });
    }
    Ok(verdicts)
}

impl Verdict {
    fn of(run: &str, seals: &[(usize, Seal)]) -> Verdict {
        Verdict {
            run: run.to_owned(),
            tenant: seals.first().map(|(_, seal)| seal.tenant.clone()),
            sealed: 0,
            time: None,
            ended: seals.last().is_some_and(|(_, seal)| seal.last),
            late: seals.iter().filter(|(_, seal)| seal.late).count() as u64,
            finding: None,
        }
    }
}

/// The seals of a ledger, by run, each with its line.
#[derive(Default)]
struct Seals {
    runs: BTreeMap<String, Vec<(usize, Seal)>>,
    /// The first line that is none.
    bad: Option<usize>,
}

impl Seals {
    fn read(text: &[u8]) -> Seals {
        let mut seals = Seals::default();
        for (number, line) in lines(text) {
            match serde_json::from_slice::<Seal>(line) {
                Ok(seal) if seal.v == VERSION => seals.runs.entry(seal.run.clone()).or_default().push((number, seal)),
                _ => seals.bad = seals.bad.or(Some(number)),
            }
        }
        seals
    }
}

/// A line of the trace.
struct Line<'a> {
    number: usize,
    bytes: &'a [u8],
    hash: Hash,
}

/// The lines of a trace, by run.
struct Trace<'a> {
    runs: BTreeMap<String, Vec<Line<'a>>>,
    order: Vec<String>,
    /// The numbers of lines that belong to no run which has seals: they may be edited lines of one that has.
    strays: BTreeSet<usize>,
}

impl<'a> Trace<'a> {
    fn read(text: &'a [u8], seals: &Seals) -> Trace<'a> {
        let mut trace = Trace { runs: BTreeMap::new(), order: Vec::new(), strays: BTreeSet::new() };
        for (number, bytes) in lines(text) {
            let found: Option<Json> = serde_json::from_slice(bytes).ok();
            let run = found.as_ref().and_then(|line| line.get("run_id")).and_then(Json::as_str).unwrap_or_default();
            if !seals.runs.contains_key(run) {
                trace.strays.insert(number);
            }
            if !trace.runs.contains_key(run) {
                trace.order.push(run.to_owned());
            }
            trace.runs.entry(run.to_owned()).or_default().push(Line { number, bytes, hash: of(bytes) });
        }
        trace
    }
}

/// The lines of a file, numbered from 1; one that has no newline yet counts, one that is empty does not.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (1..).zip(text.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty())
}

/// The first thing that is wrong with a run. What its seals say is checked first: by what they say, its lines are judged.
fn judge(
    verdict: &mut Verdict,
    lines: &[Line<'_>],
    seals: &[(usize, Seal)],
    strays: &BTreeSet<usize>,
    pins: &Pins,
) -> Result<Option<Finding>, VerifyError> {
    let tenant = verdict.tenant.clone().unwrap_or_default();
    let key = match pins {
        Pins::One(key) => Some(*key),
        Pins::Keys(keys) => keys.pinned(&tenant)?,
    };
    let Some(key) = key else { return Ok(Some(Finding::NoKey)) };
    let mut heads = BTreeMap::new();
    for (line, seal) in seals {
        let line = *line;
        if seal.key != key.fingerprint() {
            let (found, pinned) = (seal.key.clone(), key.fingerprint());
            return Ok(Some(Finding::OtherKey { line, found, pinned }));
        }
        if !seal.is_signed_by(&key.0) {
            return Ok(Some(Finding::Forged { line }));
        }
        let expected = heads.len() as u64 + u64::from(!seal.last);
        if seal.tenant != tenant {
            return Ok(Some(Finding::OtherGenesis { line }));
        }
        if seal.count != expected {
            return Ok(Some(Finding::SealsBroken { line, expected, found: seal.count }));
        }
        if !seal.last {
            heads.insert(seal.count, (line, seal));
        }
    }
    let sealed: Vec<(usize, &Seal)> = heads.into_values().collect();
    let hashes: Vec<Option<Hash>> = sealed.iter().map(|(_, seal)| unhex(&seal.line)).collect();
    let mut head = genesis(&verdict.run, &tenant);
    for (at, (seal_line, seal)) in sealed.iter().enumerate() {
        let expected = hashes.get(at).copied().flatten();
        let Some(line) = lines.get(at) else { return Ok(Some(missing(lines, &hashes, strays))) };
        if Some(line.hash) != expected {
            return Ok(Some(moved(at, lines, &hashes, strays)));
        }
        head = next(&head, line.bytes);
        if unhex(&seal.head) != Some(head) {
            return Ok(Some(Finding::OtherGenesis { line: *seal_line }));
        }
        (verdict.sealed, verdict.time) = (seal.count, Some(seal.time));
    }
    Ok(lines.get(sealed.len()).map(|first| after(first, lines, &hashes)))
}

/// What lines behind the last seal are.
fn after(first: &Line<'_>, lines: &[Line<'_>], hashes: &[Option<Hash>]) -> Finding {
    if hashes.contains(&Some(first.hash)) {
        return Finding::Inserted { line: first.number };
    }
    Finding::Unsealed { line: first.number, lines: (lines.len() - hashes.len()) as u64 }
}

/// What it means that there are fewer lines than were sealed, and all that are there are right.
fn missing(lines: &[Line<'_>], hashes: &[Option<Hash>], strays: &BTreeSet<usize>) -> Finding {
    let end = lines.last().map_or(0, |line| line.number);
    // The lines at the end were changed so that they are no lines of the run any more.
    match strays.range(end + 1..).next() {
        Some(line) => Finding::Edited { line: *line },
        None => Finding::Truncated { sealed: hashes.len() as u64, found: lines.len() as u64 },
    }
}

/// What it means that another line stands where the line `at` was sealed.
fn moved(at: usize, lines: &[Line<'_>], hashes: &[Option<Hash>], strays: &BTreeSet<usize>) -> Finding {
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
