//! Seals: signed heads of a chain, one a line of the ledger.

use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::Signer;
use super::chain::{Hash, hex, unhex};

/// The version of the layout that is written. Version 1 has no `prev` and no `prev_run`.
pub(super) const VERSION: u32 = 2;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// 1, or [`VERSION`].
    pub(super) v: u32,
    /// The run.
    pub(super) run: String,
    /// Whose run it is.
    pub(super) tenant: String,
    /// How many lines of the run are sealed.
    pub(super) count: u64,
    /// When, in milliseconds since 1970.
    pub(super) time: u64,
    /// The SHA-256 of the line that was added; empty in the seal that ends a run.
    pub(super) line: String,
    /// The head of the chain.
    pub(super) head: String,
    /// The SHA-256 of the line of the ledger before this one; empty in its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prev: Option<String>,
    /// The run that the line before belongs to; empty in the first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prev_run: Option<String>,
    /// If true, the run came to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) last: bool,
    /// If true, the line was found at a restart: it was written before the process stopped, and sealed by the one that resumed the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) late: bool,
    /// The fingerprint of the key.
    pub(super) key: String,
    /// The Ed25519 signature.
    pub(super) sig: String,
}

/// Why a seal is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A line with that hash was written.
    Line(Hash),
    /// A line with that hash was found at a restart.
    Late(Hash),
    /// The run came to its end.
    End,
}

/// The line of the ledger that a seal is set behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    /// Its hash; empty for the first line.
    pub(super) hash: String,
    /// Its run; empty if it is not a seal.
    pub(super) run: String,
}

impl Behind {
    /// That line, if there is one.
    pub(super) fn of(line: Option<&[u8]>) -> Behind {
        let Some(line) = line else { return Behind::default() };
        let run = serde_json::from_slice::<Seal>(line).map(|seal| seal.run).unwrap_or_default();
        Behind { hash: hex(&super::chain::of(line)), run }
    }
}

impl Seal {
    /// Seals the head that `count` lines led to.
    pub(super) fn sign(
        signer: &Signer,
        run: &str,
        (count, head): (u64, &Hash),
        occasion: Occasion,
        behind: Behind,
        time: u64,
    ) -> Seal {
        let line = match occasion {
            Occasion::Line(hash) | Occasion::Late(hash) => hex(&hash),
            Occasion::End => String::new(),
        };
        let mut seal = Seal {
            v: VERSION,
            run: run.to_owned(),
            tenant: signer.tenant().to_owned(),
            count,
            time,
            line,
            head: hex(head),
            prev: Some(behind.hash),
            prev_run: Some(behind.run),
            last: occasion == Occasion::End,
            late: matches!(occasion, Occasion::Late(_)),
            key: signer.public().fingerprint(),
            sig: String::new(),
        };
        seal.sig = hex(&signer.sign(&seal.signed()));
        seal
    }

    /// Reads a line of a ledger; `None` if it is not a seal, or not byte for byte as seals are written.
    pub(super) fn read(line: &[u8]) -> Option<Seal> {
        let seal: Seal = serde_json::from_slice(line).ok()?;
        let has_prev = seal.prev.is_some() && seal.prev_run.is_some();
        let has_none = seal.prev.is_none() && seal.prev_run.is_none();
        let is_known = (seal.v == 1 && has_none) || (seal.v == VERSION && has_prev);
        let is_written = serde_json::to_vec(&seal).is_ok_and(|written| written == line);
        (is_known && is_written).then_some(seal)
    }

    /// If true, the signature is that key's.
    pub(super) fn is_signed_by(&self, key: &VerifyingKey) -> bool {
        let signature = unhex::<64>(&self.sig).map(|bytes| Signature::from_bytes(&bytes));
        signature.is_some_and(|signature| key.verify_strict(&self.signed(), &signature).is_ok())
    }

    /// What is signed: everything but the key's fingerprint and the signature.
    fn signed(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        let version = if self.v == 1 { "wattle seal 1" } else { "wattle seal 2" };
        for part in [version, &self.run, &self.tenant] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.time.to_le_bytes());
        bytes.push(u8::from(self.last) | u8::from(self.late) << 1);
        bytes.extend_from_slice(self.head.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(self.line.as_bytes());
        for part in [&self.prev, &self.prev_run].into_iter().flatten() {
            bytes.push(0);
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}
