//! Seals: signed heads of a chain, one per line of the ledger.

use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::Signer;
use super::chain::{Hash, hex, unhex};

/// The version of the seal format.
pub(super) const VERSION: u32 = 2;

/// A seal, which is stored as one line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// The version, which is [`VERSION`].
    pub(super) v: u32,
    /// The run's id.
    pub(super) run: String,
    /// The tenant of the run.
    pub(super) tenant: String,
    /// Number of the run's lines that have been sealed so far.
    pub(super) count: u64,
    /// Time of the seal, in milliseconds since 1970.
    pub(super) time: u64,
    /// The SHA-256 hash of the sealed line; empty in the seal that ends a run.
    pub(super) line: String,
    /// The head of the run's hash chain after the first `count` lines.
    pub(super) head: String,
    /// The SHA-256 hash of the ledger's previous line. Empty in the first line.
    pub(super) prev: String,
    /// The id of the run whose seal is the ledger's previous line. Empty in the first line, or if
    /// the previous line is not a seal.
    pub(super) prev_run: String,
    /// If true, this is the last seal of an ended run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) last: bool,
    /// If true, the line was sealed late: by the process that resumed the run, or after another
    /// process had kept the ledger locked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) late: bool,
    /// The fingerprint of the key that verifies the signature.
    pub(super) key: String,
    /// The Ed25519 signature.
    pub(super) sig: String,
}

/// The line that a seal covers, or the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A new line with this hash.
    Line(Hash),
    /// A line with this hash that was written earlier, but not sealed at that time.
    Late(Hash),
    /// The end of the run.
    End,
}

/// The line of the ledger before a new seal.
#[derive(Clone, Debug, Default)]
pub(super) struct PreviousLine {
    /// The line's hash. Empty if there is no line.
    pub(super) hash: String,
    /// The id of the run that the line seals. Empty if the line is not a seal.
    pub(super) run: String,
}

impl PreviousLine {
    /// Returns the hash and the run id of a ledger line. Both are empty if there is no line.
    pub(super) fn of(line: Option<&[u8]>) -> PreviousLine {
        let Some(line) = line else { return PreviousLine::default() };
        let run = serde_json::from_slice::<Seal>(line).map(|seal| seal.run).unwrap_or_default();
        PreviousLine { hash: hex(&super::chain::of(line)), run }
    }
}

impl Seal {
    /// Creates a signed seal of the chain's `head` after `count` lines.
    pub(super) fn sign(
        signer: &Signer,
        run: &str,
        (count, head): (u64, &Hash),
        subject: Subject,
        previous: PreviousLine,
        time: u64,
    ) -> Seal {
        let line = match subject {
            Subject::Line(hash) | Subject::Late(hash) => hex(&hash),
            Subject::End => String::new(),
        };
        let mut seal = Seal {
            v: VERSION,
            run: run.to_owned(),
            tenant: signer.tenant().to_owned(),
            count,
            time,
            line,
            head: hex(head),
            prev: previous.hash,
            prev_run: previous.run,
            last: subject == Subject::End,
            late: matches!(subject, Subject::Late(_)),
            key: signer.public().fingerprint(),
            sig: String::new(),
        };
        seal.sig = hex(&signer.sign(&seal.signed()));
        seal
    }

    /// Parses a line of the ledger. Returns `None` if it is not a seal in canonical form.
    pub(super) fn parse(line: &[u8]) -> Option<Seal> {
        let seal: Seal = serde_json::from_slice(line).ok()?;
        let is_written = serde_json::to_vec(&seal).is_ok_and(|written| written == line);
        (seal.v == VERSION && is_written).then_some(seal)
    }

    /// Returns true if the signature is valid for `key`.
    pub(super) fn is_signed_by(&self, key: &VerifyingKey) -> bool {
        let signature = unhex::<64>(&self.sig).map(|bytes| Signature::from_bytes(&bytes));
        signature.is_some_and(|signature| key.verify_strict(&self.signed(), &signature).is_ok())
    }

    /// Returns the signed bytes: everything except the key's fingerprint and the signature.
    fn signed(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        for part in ["wattle seal 2", &self.run, &self.tenant] {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.time.to_le_bytes());
        bytes.push(u8::from(self.last) | u8::from(self.late) << 1);
        bytes.extend_from_slice(self.head.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(self.line.as_bytes());
        for part in [&self.prev, &self.prev_run] {
            bytes.push(0);
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}
