//! The hash chain over the lines of one run.

use sha2::{Digest, Sha256};

/// A SHA-256 hash.
pub(super) type Hash = [u8; 32];

/// Returns the head of a chain before its first line. It depends on the run, the tenant, and
/// `previous`, which is the hash of the ledger line before the run's first seal.
pub(super) fn genesis(run: &str, tenant: &str, previous: &str) -> Hash {
    let mut hash = Sha256::new();
    for part in ["wattle ledger 2", run, tenant, previous] {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().into()
}

/// Returns the chain's head after `line` is appended. `line` does not include the newline.
pub(super) fn next(head: &Hash, line: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(head);
    hash.update((line.len() as u64).to_le_bytes());
    hash.update(line);
    hash.finalize().into()
}

/// Returns the hash of a single line, which identifies the line even if it was moved.
pub(super) fn of(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
}

/// Formats bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses exactly `2 * N` hexadecimal digits, as written by [`hex`]. Returns `None` for any other
/// text.
pub(super) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}
