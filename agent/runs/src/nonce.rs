//! Nonces of runs.

use wattle_machine::Nonce;

/// Creates the nonce of a run from random bits.
pub(crate) fn nonce() -> Nonce {
    let mut bits = [0; 8];
    // Even if the system provides no random numbers, the nonce differs from run to run.
    Nonce::new(
        getrandom::fill(&mut bits)
            .map_or_else(|_| fastrand::u64(..), |()| u64::from_le_bytes(bits)),
    )
}
