//! The hash chain over the lines of one run.

use sha2::{Digest, Sha256};

/// A SHA-256.
pub(super) type Hash = [u8; 32];

/// The head before the first line: it belongs to that run of that tenant alone, and to its position: `behind` is the hash of the line of
/// the ledger before the run's first seal. A run of version 1 has none.
pub(super) fn genesis(run: &str, tenant: &str, behind: Option<&str>) -> Hash {
    let version = if behind.is_some() { "wattle ledger 2" } else { "wattle ledger 1" };
    let mut hash = Sha256::new();
    for part in [version, run, tenant].into_iter().chain(behind) {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().into()
}

/// The head after a line, given without its newline.
pub(super) fn next(head: &Hash, line: &[u8]) -> Hash {
    let mut hash = Sha256::new();
    hash.update(head);
    hash.update((line.len() as u64).to_le_bytes());
    hash.update(line);
    hash.finalize().into()
}

/// The hash of a line by itself, by which a line that moved is known again.
pub(super) fn of(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
}

/// A hash as it is written: 64 lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads what [`hex`] wrote.
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
