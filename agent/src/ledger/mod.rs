//! The ledger: what shows that the trace of a run is as the host wrote it.
//!
//! Beside `_steps.jsonl` stands `_ledger.jsonl`. Each line of the trace is followed by one *seal* in the ledger, so that a run which is
//! cut short at any moment leaves a valid beginning. A seal carries the head of a hash chain over the run's own lines, how many they
//! are, and when it was made, all signed with the key of the tenant whose run it is:
//!
//! ```text
//! head 0 = SHA-256( "wattle ledger 1" 0 run 0 tenant 0 )
//! head n = SHA-256( head n-1 · length of line n (8 bytes, little-endian) · line n without its newline )
//! signed = "wattle seal 1" 0 run 0 tenant 0 · n (8 bytes) · time in ms (8 bytes) · flags (1 byte: 1 last, 2 late) · head n (hex) 0 SHA-256 of line n (hex)
//! ```
//!
//! The last seal of a run that came to its end says so: where it is missing, the run was cut short or its end was cut off. Runs that
//! share a trace have a chain each, over their own lines.
//!
//! A seal names the fingerprint of its key, never the key: what a file says of itself proves nothing. The public key is *pinned*
//! outside, in the folder of [`Keys`], when the tenant's key is made.

mod chain;
mod keys;
mod recorder;
mod seal;
mod verify;

pub use keys::{Cipher, KeyError, Keys, PublicKey, Signer};
pub use recorder::Recorder;
pub use verify::{Finding, Pins, Verdict, VerifyError, verify};

/// The file's name in the workdir.
pub const LEDGER_FILE: &str = wattle_capability::files::LEDGER_FILE;
