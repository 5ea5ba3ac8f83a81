//! Values that a program keeps for the later programs of its run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tape::{Args, CallId, Halt, RecordedValue, Replay, Tape};
use crate::{Account, CallEffect, Code, Failure, MemoryCharge};

/// The function name that represents a kept value on a tape. The recorded result is the value's JSON
/// text.
pub const KEEP: &str = "val.keep";

/// The number of the call that records what a program printed. No call of a program has it.
const OF_RESULT: u32 = u32::MAX - 1;

/// The values that earlier programs of the run kept, and those that this program keeps. Clones share
/// them. The run gives them to the programs that it starts itself; a program that another one starts
/// does not see them.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    before: BTreeMap<String, KeptText>,
    limits: KeptLimits,
    added: Mutex<Vec<KeptText>>,
}

/// The limits on the kept values of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptLimits {
    /// Maximum number of names.
    pub names: usize,
    /// Maximum total size of the values as JSON, in bytes.
    pub bytes: usize,
}

/// A kept value, which is held in memory until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct KeptText(Arc<Text>);

#[derive(Debug)]
struct Text {
    name: String,
    json: String,
    about: String,
    hash: String,
    /// The charge for the value, to the account of the run.
    _charge: MemoryCharge,
}

impl Kept {
    /// Creates the kept values of a program. `before` are those that earlier programs kept.
    #[must_use]
    pub fn new(before: impl IntoIterator<Item = KeptText>, limits: KeptLimits) -> Kept {
        let before = before.into_iter().map(|text| (text.name().to_owned(), text)).collect();
        Kept(Arc::new(Inner { before, limits, added: Mutex::default() }))
    }

    /// Returns the value that an earlier program kept under a name, if there is one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&KeptText> {
        self.0.before.get(name)
    }

    /// Returns the names under which earlier programs kept values.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.before.keys().map(String::as_str)
    }

    /// Returns the values that this program has kept, in order. Of several values with the same
    /// name, only the last one is kept.
    #[must_use]
    pub fn added(&self) -> Vec<KeptText> {
        self.lock().clone()
    }

    /// Checks that a value of this name and size can be kept.
    ///
    /// # Errors
    /// `EBOUND` if the values of the run would exceed their limits.
    pub fn check(&self, name: &str, bytes: usize) -> Result<(), Failure> {
        let added = self.lock();
        let is_added = |name: &str| added.iter().any(|known| known.name() == name);
        let before = self.0.before.values().filter(|known| !is_added(known.name()));
        let others = before.chain(added.iter()).filter(|known| known.name() != name);
        let sizes = others.map(|known| known.json().len());
        let (names, bytes) = sizes.fold((1, bytes), |(names, all), own| (names + 1, all + own));
        let KeptLimits { names: max_names, bytes: max_bytes } = self.0.limits;
        if names <= max_names && bytes <= max_bytes {
            return Ok(());
        }
        let why = format!(
            "`{name}` is not kept: a run keeps at most {max_names} values of together {} MiB; keep \
             less of it, or replace one that is no longer needed: (keep NAME V)",
            max_bytes >> 20
        );
        Err(Failure::new(Code::EBOUND, why))
    }

    /// Keeps a value.
    ///
    /// # Errors
    /// `EBOUND` if the values of the run would exceed their limits.
    pub fn add(&self, text: KeptText) -> Result<(), Failure> {
        self.check(text.name(), text.json().len())?;
        let mut added = self.lock();
        added.retain(|known| known.name() != text.name());
        added.push(text);
        Ok(())
    }

    /// Returns a hash of the values that earlier programs kept. It is part of the identity of a
    /// program that reads one of them.
    pub(crate) fn identity(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in self.0.before.values() {
            hasher.update(text.name().as_bytes()).update(&[0]).update(text.hash().as_bytes());
        }
        hasher.finalize().to_string()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptText>> {
        self.0.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptText {
    /// Creates a kept value from its JSON text. `about` is a short description of its shape, such as
    /// `list of 240 {id, name}`.
    ///
    /// # Errors
    /// `ENOMEM` if the account has no memory for the text.
    pub fn new(
        account: &Account,
        name: &str,
        json: String,
        about: String,
    ) -> Result<KeptText, Failure> {
        let charge = account.hold(json.len())?;
        let hash = KeptText::hash_of(&json);
        let name = name.to_owned();
        Ok(KeptText(Arc::new(Text { name, json, about, hash, _charge: charge })))
    }

    /// Adds the arguments of the call that keeps a value.
    pub fn feed(name: &str, hash: &str, args: &mut Args) {
        args.add(&name);
        args.add(&hash);
    }

    /// Records that the run itself keeps this value, which is what a program printed, after the
    /// program's end.
    ///
    /// # Errors
    /// If the tape is halted, or has another record.
    pub fn record(&self, tape: &dyn Tape) -> Result<(), Halt> {
        let mut args = Args::default();
        KeptText::feed(self.name(), self.hash(), &mut args);
        let id = CallId::of_program(OF_RESULT, KEEP, CallEffect::Reads, args);
        if tape.begin(&id)? == Replay::Perform {
            tape.end(&id, Ok(RecordedValue::Bytes(self.json().as_bytes().to_vec())));
        }
        Ok(())
    }

    /// Returns the hash of a value's JSON text, in hexadecimal.
    #[must_use]
    pub fn hash_of(json: &str) -> String {
        blake3::hash(json.as_bytes()).to_string()
    }

    /// Returns the name, without `$`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the value as JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.0.json
    }

    /// Returns the description of the value's shape.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.0.about
    }

    /// Returns the hash of the value's JSON text.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.0.hash
    }
}
