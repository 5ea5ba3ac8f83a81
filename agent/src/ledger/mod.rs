//! The ledger: what shows that the trace of a run is as the host wrote it.
//!
//! Beside `_steps.jsonl` is `_ledger.jsonl`. Each line of the trace is followed by one *seal* in the ledger, so that a run which is
//! cut short at any moment leaves a valid beginning. A seal carries the head of a hash chain over the run's own lines, how many they
//! are, when it was made, and the hash of the ledger's line before it, all signed with the key of the tenant whose run it is:
//!
//! ```text
//! prev   = SHA-256 of the line of the ledger before this one, in hex; empty in the first line
//! head 0 = SHA-256( "wattle ledger 2" 0 run 0 tenant 0 prev of the run's first seal 0 )
//! head n = SHA-256( head n-1 · length of line n (8 bytes, little-endian) · line n without its newline )
//! signed = "wattle seal 2" 0 run 0 tenant 0 · n (8 bytes) · time in ms (8 bytes) · flags (1 byte: 1 last, 2 late)
//!          · head n (hex) 0 SHA-256 of line n (hex) 0 prev 0 run of the seal before
//! ```
//!
//! The last seal of a run that came to its end says so: where it is missing, the run was cut short or its end was cut off. Runs that
//! share a trace have a chain each, over their own lines; the ledger as a whole is a chain of its lines. So a run that is removed with
//! all its seals leaves a gap. One at the end of the ledger leaves none, but the store knows it: it keeps what the last seal of each run
//! says.
//!
//! A line and its seal are written under a lock of the ledger's file, so the lines of several runs and processes stand in the order of
//! their seals. Seals of version 1 have no `prev`; they are verified without it.
//!
//! A seal names the fingerprint of its key, never the key: what a file says of itself proves nothing. The public key is *pinned*
//! outside, in the folder of [`Keys`], when the tenant's key is made.

mod chain;
mod diagnosis;
mod file;
mod finding;
mod keys;
mod recorder;
mod seal;
mod verify;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use finding::Finding;
pub use keys::{Cipher, KeyError, Keys, PublicKey, Signer};
pub use recorder::Recorder;
pub use verify::{Pins, Verdict, Verified, VerifyError, verify};

/// What the last seal of a run says, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// The run.
    pub run: String,
    /// The folder of its trace, without links.
    pub folder: PathBuf,
    /// How many lines it has.
    pub lines: u64,
    /// The head of its chain: 64 hexadecimal digits.
    pub head: String,
}

/// The file's name in the workdir.
pub const LEDGER_FILE: &str = wattle_capability::files::LEDGER_FILE;
