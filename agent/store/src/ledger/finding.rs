//! Findings about a trace, and their wording.

use std::fmt;

use wattle_capability::files::{ROTATED_FOLDER, TRACE_FILE};

use super::LEDGER_FILE;

/// A finding about a trace or its ledger. Lines are numbered from 1 in the file that the finding
/// names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A finding in a rotated part of the trace.
    Rotated {
        /// The name of the part's folder, such as `0001`.
        part: String,
        /// The finding.
        finding: Box<Finding>,
    },
    /// The ledger is missing.
    NoLedger,
    /// The run has lines but no seal.
    NoSeals {
        /// The number of the run's first line in the trace.
        line: u64,
    },
    /// The run was sealed with a key that is not pinned, and nothing else is wrong with it. It may
    /// be a run of another store, or a forged one.
    UnknownKey {
        /// The fingerprint of the seals' key.
        found: String,
    },
    /// A seal was made with another key than the run's first seal, or a run of the store was sealed
    /// with a key that is not pinned.
    OtherKey {
        /// The line number in the ledger.
        line: u64,
        /// The fingerprint of the seal's key.
        found: String,
    },
    /// A line of the ledger is not a seal in canonical form.
    BadSeal {
        /// The line number in the ledger.
        line: u64,
    },
    /// A seal's signature does not match its content.
    Forged {
        /// The line number in the ledger.
        line: u64,
    },
    /// The chain was started for another run or tenant.
    OtherGenesis {
        /// The line number in the ledger.
        line: u64,
    },
    /// Seals are missing or reordered.
    SealsBroken {
        /// The number of the ledger line with the unexpected count.
        line: u64,
        /// The expected count.
        expected: u64,
        /// The actual count.
        found: u64,
    },
    /// A line was edited.
    Edited {
        /// The line number in the trace.
        line: u64,
    },
    /// Lines were removed.
    Removed {
        /// The number of the trace line after the removed lines.
        line: u64,
        /// Number of removed lines.
        lines: u64,
    },
    /// A line was inserted.
    Inserted {
        /// The line number in the trace.
        line: u64,
    },
    /// Lines were reordered.
    Reordered {
        /// The number of the first misplaced line in the trace.
        line: u64,
    },
    /// The end of the trace is missing.
    Truncated {
        /// Number of sealed lines.
        sealed: u64,
        /// Number of the run's lines in the trace.
        found: u64,
    },
    /// Lines of different runs are not in the order of their seals.
    OtherOrder {
        /// The number of the first misplaced line in the trace.
        line: u64,
    },
    /// The lines differ from their seals. There are too many lines to find the first difference.
    Differs,
    /// A line of a file is empty.
    Empty {
        /// The file's name.
        file: &'static str,
        /// The line number in the file.
        line: u64,
    },
    /// A line of a file is longer than 4 MiB.
    TooLong {
        /// The file's name.
        file: &'static str,
        /// The line number in the file.
        line: u64,
    },
    /// The last line of a file has no line break, because it is incomplete or was changed.
    NoLineBreak {
        /// The file's name.
        file: &'static str,
        /// The line number in the file.
        line: u64,
    },
    /// The line before a seal differs from the line that the seal names: lines were removed,
    /// inserted or reordered.
    Unchained {
        /// The line number in the ledger.
        line: u64,
        /// The run whose seal was on the previous line when this seal was written. Empty if this
        /// seal was on the first line, or the previous line was not a seal.
        previous_run: String,
    },
    /// The store contains the final seal of the run, but the ledger contains no seal of that run.
    RunRemoved {
        /// Number of sealed lines.
        lines: u64,
    },
    /// The end of the run is missing from the ledger. According to the final seal in the store,
    /// more lines were sealed than the ledger contains.
    EndRemoved {
        /// Number of sealed lines according to the store.
        lines: u64,
        /// Number of sealed lines according to the ledger.
        found: u64,
    },
    /// The run's last seal in the ledger differs from its final seal in the store.
    OtherEnd,
    /// Lines follow the last seal. They were written before the process stopped, or were added
    /// later.
    Unsealed {
        /// The number of the first unsealed line in the trace.
        line: u64,
        /// Number of unsealed lines.
        lines: u64,
    },
}

impl Finding {
    /// Returns true if the run could not be verified without its key. All other findings are faults.
    #[must_use]
    pub fn is_unverified(&self) -> bool {
        match self {
            Finding::Rotated { finding, .. } => finding.is_unverified(),
            finding => matches!(finding, Finding::UnknownKey { .. }),
        }
    }

    /// Returns the file that the finding is about, with the line number if it is about one line.
    /// Returns `None` if the finding is not about the content of a file.
    fn location(&self) -> Option<(&'static str, Option<u64>)> {
        match self {
            Finding::NoSeals { line }
            | Finding::Edited { line }
            | Finding::Removed { line, .. }
            | Finding::Inserted { line }
            | Finding::Reordered { line }
            | Finding::OtherOrder { line }
            | Finding::Unsealed { line, .. } => Some((TRACE_FILE, Some(*line))),
            Finding::OtherKey { line, .. }
            | Finding::BadSeal { line }
            | Finding::Forged { line }
            | Finding::OtherGenesis { line }
            | Finding::SealsBroken { line, .. }
            | Finding::Unchained { line, .. } => Some((LEDGER_FILE, Some(*line))),
            Finding::Empty { file, line }
            | Finding::TooLong { file, line }
            | Finding::NoLineBreak { file, line } => Some((*file, Some(*line))),
            Finding::Truncated { .. } | Finding::Differs => Some((TRACE_FILE, None)),
            Finding::EndRemoved { .. } | Finding::OtherEnd => Some((LEDGER_FILE, None)),
            Finding::Rotated { .. }
            | Finding::NoLedger
            | Finding::UnknownKey { .. }
            | Finding::RunRemoved { .. } => None,
        }
    }

    /// Writes the finding without its location.
    fn write_reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Finding::Rotated { part, finding } => {
                return write!(f, "{ROTATED_FOLDER}/{part}: {finding}");
            }
            Finding::NoLedger => return write!(f, "the ledger `{LEDGER_FILE}` is missing"),
            Finding::NoSeals { .. } => return write!(f, "the run has no seal in `{LEDGER_FILE}`"),
            Finding::UnknownKey { found } => {
                return write!(f, "sealed by another store's key ({found})");
            }
            Finding::OtherKey { found, .. } => {
                return write!(f, "sealed with another key ({found}); the seal was replaced");
            }
            Finding::BadSeal { .. } => "not a valid seal",
            Finding::OtherOrder { .. } => {
                "reordered; the lines of several runs were sealed in another order"
            }
            Finding::Differs => "the lines of the run differ from their seals",
            Finding::Empty { .. } => "an empty line was inserted",
            Finding::TooLong { .. } => "longer than 4 MiB; it was not read",
            Finding::NoLineBreak { .. } => {
                "the line break at its end is missing; the line is incomplete, or was changed"
            }
            Finding::Unchained { previous_run, .. } if previous_run.is_empty() => {
                "this was the first line; the lines before it were inserted"
            }
            Finding::Unchained { previous_run, .. } => {
                return write!(
                    f,
                    "the previous seal is not the one of the run {previous_run} that it names; \
                     seals were removed, inserted or reordered"
                );
            }
            Finding::RunRemoved { lines } => {
                return write!(
                    f,
                    "the store has this run, which ended with {lines} sealed lines; it was \
                     removed from `{LEDGER_FILE}`"
                );
            }
            Finding::EndRemoved { lines, found } => {
                return write!(
                    f,
                    "the store has {lines} sealed lines of the run, the ledger has {found}; its \
                     end was cut off"
                );
            }
            Finding::OtherEnd => "the last seal of the run differs from the one in the store",
            Finding::Forged { .. } => {
                "the signature is invalid; the count, the time or the head was changed"
            }
            Finding::OtherGenesis { .. } => {
                "the chain was started for another run or another tenant"
            }
            Finding::SealsBroken { expected, found, .. } => {
                return write!(
                    f,
                    "expected seal {expected}, found seal {found}; seals were removed or reordered"
                );
            }
            Finding::Edited { .. } => "edited",
            Finding::Removed { lines: 1, .. } => "the line before it was removed",
            Finding::Removed { lines, .. } => {
                return write!(f, "{lines} lines before it were removed");
            }
            Finding::Inserted { .. } => "inserted",
            Finding::Reordered { .. } => "reordered",
            Finding::Truncated { sealed, found } => {
                return write!(f, "truncated; {sealed} lines were sealed, {found} remain");
            }
            Finding::Unsealed { lines: 1, .. } => {
                "follows the last seal; the process stopped before sealing it, or it was added"
            }
            Finding::Unsealed { lines, .. } => {
                return write!(f, "{lines} lines were added after the last seal");
            }
        })
    }
}

/// Formats the finding, preceded by its file and line number if it has them.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location() {
            Some((file, Some(line))) => write!(f, "{file} line {line}: ")?,
            Some((file, None)) => write!(f, "{file}: ")?,
            None => {}
        }
        self.write_reason(f)
    }
}
