//! The ledger: proof that the trace of a run has not been changed since the host wrote it.
//!
//! The ledger is the file `_ledger.jsonl` next to `_steps.jsonl`. For each line of the trace, the
//! ledger contains one *seal*, so sealed lines can be verified even if a run stops unexpectedly. A
//! seal contains the head of a hash chain over the run's own lines, their number, the time, and the
//! hash of the ledger's previous line. It is signed with the key of the run's tenant:
//!
//! ```text
//! prev   = SHA-256 of the previous line of the ledger, in hex; empty in the first line
//! head 0 = SHA-256( "wattle ledger 2" 0 run 0 tenant 0 prev of the run's first seal 0 )
//! head n = SHA-256( head n-1 · length of line n (8 bytes, little-endian)
//!          · line n without its newline )
//! signed = "wattle seal 2" 0 run 0 tenant 0 · n (8 bytes) · time in ms (8 bytes)
//!          · flags (1 byte: 1 last, 2 late)
//!          · head n (hex) 0 SHA-256 of line n (hex) 0 prev 0 run of the previous seal
//! ```
//!
//! The last seal of an ended run has the flag `last`. If no seal of a run has this flag, the run
//! was stopped, or its end was removed. Runs that share a trace have one chain each, over their own
//! lines; the lines of the ledger form another chain. Therefore a run that is removed together with
//! its seals leaves a gap. If it was the last run in the ledger, there is no gap, but the store
//! reveals the removal, because it keeps the final seal of each run.
//!
//! A line and its seal are written under a lock on the ledger file, so the lines of several runs
//! and processes have the same order as their seals.
//!
//! A trace is [rotated](Rotation) as a whole: its files move to a folder, and the first seal of the next
//! ledger names the last line of the one before.
//!
//! A seal contains the fingerprint of its key, never the key itself: a file cannot prove its own
//! integrity. The public key is *pinned* outside the ledger, in the folder of [`Keys`], when the
//! tenant's key is created.

mod chain;
mod diagnosis;
mod file;
mod finding;
mod index;
mod keys;
mod recorder;
mod rotate;
mod seal;
mod verify;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use finding::Finding;
pub use index::lines_read;
pub(crate) use keys::NONCE;
pub use keys::{Cipher, KeyError, KeyKind, Keys, PublicKey, Signer};
pub use recorder::Recorder;
pub use recorder::lines_of;
pub use rotate::{RotateError, Rotation};
pub use verify::{Pins, Verdict, Verification, VerifyError, verify};

/// The final seal of a run, as recorded in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FinalSeal {
    /// The run's id.
    pub run: String,
    /// The canonical path of the trace's folder.
    pub folder: PathBuf,
    /// Number of the run's sealed lines.
    pub lines: u64,
    /// The head of the run's chain, as 64 hexadecimal digits.
    pub head: String,
}

/// The name of the ledger file.
pub const LEDGER_FILE: &str = wattle_capability::files::LEDGER_FILE;
