//! Findings about a trace, and their wording.

use std::fmt;

use wattle_capability::files::TRACE_FILE;

use super::LEDGER_FILE;

/// A finding about a trace. Lines are counted from 1 in the named file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The ledger is missing.
    NoLedger,
    /// The run has lines but no seal.
    NoSeals {
        /// The run's first line in the trace.
        line: u64,
    },
    /// No public key is pinned for the tenant named in the seals.
    NoKey,
    /// The seals were made with a key other than the pinned one.
    OtherKey {
        /// The line in the ledger.
        line: u64,
        /// The fingerprint of the seal's key.
        found: String,
        /// The fingerprint of the pinned key.
        pinned: String,
    },
    /// A line of the ledger is not a seal in canonical form.
    BadSeal {
        /// The line in the ledger.
        line: u64,
    },
    /// A seal's signature does not match its content.
    Forged {
        /// The line in the ledger.
        line: u64,
    },
    /// The chain was started for another run or tenant.
    OtherGenesis {
        /// The line in the ledger.
        line: u64,
    },
    /// Seals are missing or reordered.
    SealsBroken {
        /// The line in the ledger whose count is not the expected one.
        line: u64,
        /// The expected count.
        expected: u64,
        /// The actual count.
        found: u64,
    },
    /// A line was edited.
    Edited {
        /// The line in the trace.
        line: u64,
    },
    /// Lines were removed.
    Removed {
        /// The line in the trace after the removed lines.
        line: u64,
        /// Number of removed lines.
        lines: u64,
    },
    /// A line was inserted.
    Inserted {
        /// The line in the trace.
        line: u64,
    },
    /// Lines were reordered.
    Reordered {
        /// The first line in the trace that is not in its position.
        line: u64,
    },
    /// The end of the trace is missing.
    Truncated {
        /// Number of sealed lines.
        sealed: u64,
        /// Number of lines in the trace.
        found: u64,
    },
    /// The lines of several runs are in a different order from their seals.
    OtherOrder {
        /// The first line in the trace that is not in its position.
        line: u64,
    },
    /// The lines differ from their seals, in too many places to name them.
    Differs,
    /// A line of a file is empty.
    Empty {
        /// The file's name.
        file: &'static str,
        /// The line.
        line: u64,
    },
    /// A line of a file is longer than 4 MiB.
    TooLong {
        /// The file's name.
        file: &'static str,
        /// The line.
        line: u64,
    },
    /// The last line of a file has no line break, because it is incomplete or was changed.
    NoLineBreak {
        /// The file's name.
        file: &'static str,
        /// The line.
        line: u64,
    },
    /// The line before a seal is not the one that the seal names: lines were removed, inserted or
    /// reordered.
    Unchained {
        /// The line in the ledger.
        line: u64,
        /// The run of the seal that this seal names as the previous one; empty if this seal was
        /// written as the first line.
        previous_run: String,
    },
    /// The store has the final seal of the run, but the ledger has no seal of it.
    RunRemoved {
        /// Number of sealed lines.
        lines: u64,
    },
    /// The end of the run is missing from the ledger. The final seal in the store shows that more
    /// was sealed than the ledger contains.
    EndRemoved {
        /// Number of sealed lines according to the store.
        lines: u64,
        /// Number of sealed lines according to the ledger.
        found: u64,
    },
    /// The last seal differs from the one in the store.
    OtherEnd,
    /// Lines follow the last seal. They were written before the process stopped, or were added
    /// later.
    Unsealed {
        /// The first of them in the trace.
        line: u64,
        /// Number of lines.
        lines: u64,
    },
}

/// Describes the finding with file and line.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, ledger) = (TRACE_FILE, LEDGER_FILE);
        match self {
            Finding::NoLedger => write!(f, "the ledger `{ledger}` is missing"),
            Finding::NoSeals { line } => {
                write!(f, "{steps} line {line}: the run has no seal in `{ledger}`")
            }
            Finding::NoKey => write!(
                f,
                "no public key is pinned for this tenant; give the right one with `--key`"
            ),
            Finding::OtherKey { line, found, pinned } => {
                write!(
                    f,
                    "{ledger} line {line}: sealed with another key ({found}; the pinned one is \
                     {pinned})"
                )
            }
            Finding::BadSeal { line } => write!(f, "{ledger} line {line}: not a valid seal"),
            Finding::OtherOrder { line } => {
                write!(
                    f,
                    "{steps} line {line}: reordered; the lines of several runs were sealed in \
                     another order"
                )
            }
            Finding::Differs => write!(f, "{steps}: the lines of the run differ from their seals"),
            Finding::Empty { file, line } => {
                write!(f, "{file} line {line}: an empty line was inserted")
            }
            Finding::TooLong { file, line } => {
                write!(f, "{file} line {line}: longer than 4 MiB; it was not read")
            }
            Finding::NoLineBreak { file, line } => {
                write!(
                    f,
                    "{file} line {line}: the line break at its end is missing; the line is \
                     incomplete, or was changed"
                )
            }
            Finding::Unchained { line, previous_run } if previous_run.is_empty() => {
                write!(
                    f,
                    "{ledger} line {line}: this was the first line; the lines before it were \
                     inserted"
                )
            }
            Finding::Unchained { line, previous_run } => write!(
                f,
                "{ledger} line {line}: the previous seal is not the one of the run {previous_run} \
                 that it names; seals were removed, inserted or reordered"
            ),
            Finding::RunRemoved { lines } => {
                write!(
                    f,
                    "the store has this run, which ended with {lines} sealed lines; it was \
                     removed from `{ledger}`"
                )
            }
            Finding::EndRemoved { lines, found } => {
                write!(
                    f,
                    "{ledger}: the store has {lines} sealed lines of the run, the ledger has \
                     {found}; its end was cut off"
                )
            }
            Finding::OtherEnd => {
                write!(f, "{ledger}: the last seal of the run differs from the one in the store")
            }
            Finding::Forged { line } => {
                write!(
                    f,
                    "{ledger} line {line}: the signature is invalid; the count, the time or the \
                     head was changed"
                )
            }
            Finding::OtherGenesis { line } => {
                write!(
                    f,
                    "{ledger} line {line}: the chain was started for another run or another tenant"
                )
            }
            Finding::SealsBroken { line, expected, found } => write!(
                f,
                "{ledger} line {line}: expected seal {expected}, found seal {found}; seals were \
                 removed or reordered"
            ),
            Finding::Edited { line } => write!(f, "{steps} line {line}: edited"),
            Finding::Removed { line, lines: 1 } => {
                write!(f, "{steps} line {line}: the line before it was removed")
            }
            Finding::Removed { line, lines } => {
                write!(f, "{steps} line {line}: {lines} lines before it were removed")
            }
            Finding::Inserted { line } => write!(f, "{steps} line {line}: inserted"),
            Finding::Reordered { line } => write!(f, "{steps} line {line}: reordered"),
            Finding::Truncated { sealed, found } => {
                write!(f, "{steps}: truncated; {sealed} lines were sealed, {found} remain")
            }
            Finding::Unsealed { line, lines: 1 } => {
                write!(
                    f,
                    "{steps} line {line}: follows the last seal; the process stopped before \
                     sealing it, or it was added"
                )
            }
            Finding::Unsealed { line, lines } => {
                write!(f, "{steps} line {line}: {lines} lines were added after the last seal")
            }
        }
    }
}
