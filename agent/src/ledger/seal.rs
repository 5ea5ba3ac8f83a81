//! Seals: signed heads of a chain, one a line of the ledger.

use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::Signer;
use super::chain::{Hash, hex, unhex};

/// The version of the layout.
pub(super) const VERSION: u32 = 1;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// [`VERSION`].
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
    /// Whether the run came to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) last: bool,
    /// Whether the line was found at a restart: it was written before the process stopped, and sealed by the one that went on.
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

impl Seal {
    /// Seals the head that `count` lines led to.
    pub(super) fn sign(signer: &Signer, run: &str, count: u64, head: &Hash, occasion: Occasion, time: u64) -> Seal {
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
            last: occasion == Occasion::End,
            late: matches!(occasion, Occasion::Late(_)),
            key: signer.public().fingerprint(),
            sig: String::new(),
        };
        seal.sig = hex(&signer.sign(&seal.signed()));
        seal
    }

    /// Whether the signature is that key's.
    pub(super) fn is_signed_by(&self, key: &VerifyingKey) -> bool {
        let signature = unhex::<64>(&self.sig).map(|bytes| Signature::from_bytes(&bytes));
        signature.is_some_and(|signature| key.verify_strict(&self.signed(), &signature).is_ok())
    }

    /// What is signed. What is not in it is recomputed: the hash of a line follows from the line.
    fn signed(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        for part in ["wattle seal 1", &self.run, &self.tenant] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.time.to_le_bytes());
        bytes.push(u8::from(self.last) | u8::from(self.late) << 1);
        bytes.extend_from_slice(self.head.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(self.line.as_bytes());
        bytes
    }
}
