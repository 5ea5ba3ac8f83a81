//! What is wrong with a trace, and the words for it.

use std::fmt;

use super::LEDGER_FILE;
use crate::STEPS_FILE;

/// What is wrong with a trace. Lines are counted from 1 in the file that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The ledger is not there.
    NoLedger,
    /// The run has lines and no seal.
    NoSeals {
        /// Its first line in the trace.
        line: u64,
    },
    /// No public key is pinned for the tenant that the seals name.
    NoKey,
    /// The seals are of another key than the pinned one.
    OtherKey {
        /// The line in the ledger.
        line: u64,
        /// The fingerprint of the key that sealed.
        found: String,
        /// That of the pinned one.
        pinned: String,
    },
    /// A line of the ledger is not a seal, or not byte for byte as seals are written.
    BadSeal {
        /// The line in the ledger.
        line: u64,
    },
    /// A seal's signature does not fit what it says.
    Forged {
        /// The line in the ledger.
        line: u64,
    },
    /// The seals begin with another run or tenant than they say.
    OtherGenesis {
        /// The line in the ledger.
        line: u64,
    },
    /// Seals are missing, or in another order.
    SealsBroken {
        /// The line in the ledger where the count does not go on.
        line: u64,
        /// The count that should stand there.
        expected: u64,
        /// The count that stands there.
        found: u64,
    },
    /// A line has another content.
    Edited {
        /// The line in the trace.
        line: u64,
    },
    /// Lines were taken out.
    Removed {
        /// The line in the trace that now stands where they stood.
        line: u64,
        /// How many.
        lines: u64,
    },
    /// A line was put in.
    Inserted {
        /// The line in the trace.
        line: u64,
    },
    /// Lines stand in another order.
    Reordered {
        /// The first line in the trace that does not stand in its place.
        line: u64,
    },
    /// The end of the trace is missing.
    Truncated {
        /// How many lines were sealed.
        sealed: u64,
        /// How many there are.
        found: u64,
    },
    /// The lines of several runs stand in another order than they were sealed in.
    OtherOrder {
        /// The first line in the trace that does not stand in its position.
        line: u64,
    },
    /// The lines are not as they were sealed; there is too much wrong to say where.
    Differs,
    /// A line of a file is empty.
    Blank {
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
    /// The last line of a file has no line break: it broke off, or was changed.
    NoLineBreak {
        /// The file's name.
        file: &'static str,
        /// The line.
        line: u64,
    },
    /// A seal was set behind another line of the ledger than the one that is there: lines were removed, inserted or reordered.
    Unchained {
        /// The line in the ledger.
        line: u64,
        /// The run of the seal that stood before it; empty if it was to be the first.
        behind: String,
    },
    /// The store knows the run and how it was sealed, and the ledger has no seal of it.
    RunRemoved {
        /// How many lines were sealed.
        lines: u64,
    },
    /// The store knows that more lines were sealed than the ledger has seals.
    EndRemoved {
        /// How many lines were sealed.
        lines: u64,
        /// How many seals there are.
        found: u64,
    },
    /// The last seal is another one than the store knows.
    OtherEnd,
    /// Lines follow the last seal: written when the process stopped before it sealed them, or put there by somebody.
    Unsealed {
        /// The first of them in the trace.
        line: u64,
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
            Finding::BadSeal { line } => write!(f, "{ledger} line {line}: not a seal as the host writes them"),
            Finding::OtherOrder { line } => {
                write!(f, "{steps} line {line}: reordered; the lines of several runs were sealed in another order")
            }
            Finding::Differs => write!(f, "{steps}: the lines of the run are not as they were sealed"),
            Finding::Blank { file, line } => write!(f, "{file} line {line}: an empty line was inserted"),
            Finding::TooLong { file, line } => write!(f, "{file} line {line}: longer than 4 MiB; it was not read"),
            Finding::NoLineBreak { file, line } => {
                write!(f, "{file} line {line}: the line break at its end is missing; it broke off, or was changed")
            }
            Finding::Unchained { line, behind } if behind.is_empty() => {
                write!(f, "{ledger} line {line}: this was the first line; what stands before it was inserted")
            }
            Finding::Unchained { line, behind } => write!(
                f,
                "{ledger} line {line}: the seal before it, of the run {behind}, is not the one it was set behind; seals were removed, inserted or reordered"
            ),
            Finding::RunRemoved { lines } => {
                write!(
                    f,
                    "the store knows this run, which ended with {lines} sealed lines; it was removed from `{ledger}`"
                )
            }
            Finding::EndRemoved { lines, found } => {
                write!(
                    f,
                    "{ledger}: the store knows {lines} sealed lines of the run, {found} are there; its end was cut off"
                )
            }
            Finding::OtherEnd => write!(f, "{ledger}: the last seal of the run is not the one that the store knows"),
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
