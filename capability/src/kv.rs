//! `kv`: key-value state that outlives a program.
//!
//! A key that starts with `tenant:` belongs to the tenant and is shared by all of its sessions. Any
//! other key belongs to the session. Every write is atomic, even across processes: no other write
//! can happen between reading the old value and writing the new one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_rt::{Code, Config, Failure, Run, capability};

use crate::PortFuture;
use crate::arr::{Arrays, Handle};

capability! {
    /// Key-value state of the session; keys that start with tenant: are shared by all sessions of
    /// the tenant.
    pub const KV: "kv" 2;

    /// Returns a key's value
    #[example = r#"(kv.set "name" "Ada") (ret (kv.get "name"))"# => "Ada"]
    #[prompt(signature)]
    #[effect(reads)]
    async get(k: key) with Kv -> ptr: str ! ENOENT EBOUND EREMOTE ENOMEM = get;

    /// Sets a key
    #[example = r#"(kv.set "name" "Ada") (ret (kv.get "name"))"# => "Ada"]
    #[prompt(signature)]
    #[effect(repeatable)]
    async set(k: key, v: bytes) with Kv ! EBOUND EBUDGET EREMOTE = set;

    /// Removes a key
    #[example = r#"(kv.set "name" "Ada") (kv.del "name") (ret (default (kv.get "name") "gone"))"# => "gone"]
    #[prompt(signature)]
    #[effect(repeatable)]
    async del(k: key) with Kv ! ENOENT EBOUND EREMOTE = del;

    /// Returns the sorted keys that start with prefix
    #[example = r#"(kv.set "user:1" "Ada") (kv.set "user:2" "Bob") (ret (str.join (kv.list "user:") " "))"# => "user:1 user:2"]
    #[prompt(signature)]
    #[effect(reads)]
    async list(prefix: key_prefix) with Kv -> arr: arr ! EREMOTE ENOMEM = list;

    /// Adds n to a key's integer (0 if missing) and returns the sum
    #[example = r#"(kv.incr "count" 2) (ret (str.from_int (kv.incr "count" 3)))"# => "5"]
    #[prompt(signature)]
    #[effect(repeatable)]
    async incr(k: key, n: int) with Kv -> sum: int ! EPARSE EBOUND EBUDGET EREMOTE = incr;

    /// Sets a key to new if its value is old, and returns 1 if it was; if old is 0, the key must be
    /// missing; if new is 0, the key is removed
    #[example = r#"(kv.cas "lock" 0 "mine") (ret (str.from_int (kv.cas "lock" 0 "yours")))"# => "0"]
    #[prompt(name)]
    #[effect(repeatable)]
    async cas(k: key, old: opt_bytes, new: opt_bytes) with Kv -> swapped: bool ! EBOUND EBUDGET EREMOTE = cas;
}

/// Prefix of the keys that refer to the tenant's state.
pub(crate) const TENANT: &str = "tenant:";

/// Maximum length of a key, in bytes.
const MAX_KEY: usize = 1_024;
/// Maximum size of a value, in bytes.
const MAX_VALUE: usize = 8 << 20;

/// The storage for the state of one session or one tenant.
///
/// All writes go through `update`, which computes the new value from the old one atomically. A new
/// value of `None` removes the key. A failure of the backend is reported as `EREMOTE`.
pub trait Backend: Send + Sync {
    /// Returns the value of a key, or `None` if the key is missing.
    fn get(&self, key: String) -> PortFuture<'_, Option<Vec<u8>>>;
    /// Atomically replaces the value of a key with the result of `change`.
    fn update(&self, key: String, change: Change) -> PortFuture<'_, ()>;
    /// Updates a key like [`update`](Backend::update), but only once per idempotency key (`call`).
    /// If the call is repeated, `change` receives the old value that `kept` restores, and the
    /// stored value is not replaced. A backend whose state does not outlive its process need not
    /// track calls.
    fn update_once(
        &self,
        call: String,
        key: String,
        kept: Kept,
        change: Change,
    ) -> PortFuture<'_, ()> {
        drop((call, kept));
        self.update(key, change)
    }
    /// Returns the keys with a prefix, sorted.
    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>>;
}

/// A function that computes the new value of a key from the old one. If it fails, the old value is
/// kept. A backend calls it again if it has to repeat the change, for example because another
/// process has changed the key in the meantime.
pub type Change = Box<dyn FnMut(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Failure> + Send>;

/// The information about the old value that a repeated call needs. A backend records nothing else,
/// so that replacing a large value again and again does not fill its storage.
///
/// ```
/// use wattle_capability::kv::Kept;
/// let kept = Kept::Equality(Some(b"expected".to_vec()));
/// let record = kept.record(Some(b"another value"));
/// assert_ne!(kept.restore(record), Some(b"expected".to_vec()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing: the change does not depend on the old value.
    Nothing,
    /// The presence of the key. An existing value is restored as an empty one.
    Presence,
    /// The old value without surrounding whitespace, if it has at most [`MAX_NUMBER`] bytes.
    /// Changes to longer values fail.
    Number,
    /// The result of comparing the old value with this one. If they differed, an arbitrary
    /// different value is restored.
    Equality(Option<Vec<u8>>),
}

/// Maximum length of a number in the state, in bytes.
pub const MAX_NUMBER: usize = 64;

impl Kept {
    /// Returns the record of an old value.
    #[must_use]
    pub fn record(&self, old: Option<&[u8]>) -> Option<Vec<u8>> {
        match self {
            Kept::Nothing => None,
            Kept::Presence => old.map(|_| Vec::new()),
            Kept::Number => {
                let number = old?.trim_ascii();
                Some(number.get(..number.len().min(MAX_NUMBER)).unwrap_or_default().to_vec())
            }
            Kept::Equality(expected) if old == expected.as_deref() => {
                expected.as_deref().map(|value| blake3::hash(value).as_bytes().to_vec())
            }
            Kept::Equality(expected) => Kept::other(expected.as_deref()),
        }
    }

    /// Returns the old value that a repeated call receives. The record may also be a whole old
    /// value, which earlier versions recorded.
    #[must_use]
    pub fn restore(&self, record: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let Kept::Equality(expected) = self else { return record };
        let hash = expected.as_deref().map(|value| blake3::hash(value).as_bytes().to_vec());
        if record == hash || record == *expected {
            expected.clone()
        } else {
            Kept::other(expected.as_deref())
        }
    }

    /// Returns a value that is not equal to `expected`.
    fn other(expected: Option<&[u8]>) -> Option<Vec<u8>> {
        if expected.is_some() { None } else { Some(Vec::new()) }
    }
}

/// The `kv` grant: the state of a session and of its tenant.
pub struct Kv {
    /// The state of the session.
    pub session: Arc<dyn Backend>,
    /// The state of the tenant. Its keys have no `tenant:` prefix.
    pub tenant: Arc<dyn Backend>,
}

impl Kv {
    /// Returns the backend for a key or a key prefix, and the key or prefix without `tenant:`.
    pub fn locate<'a>(&self, key: &'a str) -> (&dyn Backend, &'a str) {
        match key.strip_prefix(TENANT) {
            Some(name) => (&*self.tenant, name),
            None => (&*self.session, key),
        }
    }

    async fn update(
        &self,
        call: Option<String>,
        key: &str,
        kept: Kept,
        change: Change,
    ) -> Result<(), Failure> {
        let (backend, name) = self.locate(key);
        let name = validate(name)?;
        match call {
            Some(call) => backend.update_once(format!("{call}/{name}"), name, kept, change).await,
            None => backend.update(name, change).await,
        }
    }
}

impl Config for Kv {
    const CAPABILITIES: &'static [&'static str] = &["kv"];
}

/// In-memory state, which is lost when the process ends.
#[derive(Default)]
pub struct InMemory {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    values: BTreeMap<String, Vec<u8>>,
    /// The total size of all entries, in bytes.
    bytes: usize,
}

/// Number of bytes that an entry of an in-memory state takes in addition to its key and its value.
const ENTRY: usize = 96;

/// Maximum size of an in-memory state, in bytes.
const MAX_IN_MEMORY: usize = 64 << 20;

impl Backend for InMemory {
    fn get(&self, key: String) -> PortFuture<'_, Option<Vec<u8>>> {
        let value = self.lock().values.get(&key).cloned();
        Box::pin(async { Ok(value) })
    }

    fn update(&self, key: String, change: Change) -> PortFuture<'_, ()> {
        let done = self.lock().update(key, change);
        Box::pin(async { done })
    }

    fn keys(&self, prefix: String) -> PortFuture<'_, Vec<String>> {
        let entries = self.lock();
        let keys = entries
            .values
            .range(prefix.clone()..)
            .map(|(k, _)| k)
            .take_while(|k| k.starts_with(&prefix));
        let keys = keys.cloned().collect();
        Box::pin(async { Ok(keys) })
    }
}

impl Entries {
    fn update(&mut self, key: String, mut change: Change) -> Result<(), Failure> {
        let size = |value: &Vec<u8>| key.len() + value.len() + ENTRY;
        let old = self.values.get(&key);
        let held = old.map_or(0, size);
        let new = change(old.cloned())?;
        let bytes = self.bytes - held + new.as_ref().map_or(0, size);
        if bytes > MAX_IN_MEMORY && bytes > self.bytes {
            return Err(Failure::new(
                Code::EBUDGET,
                "the state is full (64 MiB); delete keys first",
            ));
        }
        self.bytes = bytes;
        match new {
            Some(value) => drop(self.values.insert(key, value)),
            None => drop(self.values.remove(&key)),
        }
        Ok(())
    }
}

impl InMemory {
    /// Creates a state with these values.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = (String, String)>) -> InMemory {
        let values: BTreeMap<String, Vec<u8>> =
            values.into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
        let bytes = values.iter().map(|(key, value)| key.len() + value.len() + ENTRY).sum();
        InMemory { entries: Mutex::new(Entries { values, bytes }) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        // A panic in a change leaves the entries unmodified, so a poisoned lock is safe to use.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the length of a key (without `tenant:`) and returns a copy of the key.
fn validate(name: &str) -> Result<String, Failure> {
    match name.len() {
        0 => Err(Failure::new(Code::EBOUND, "the key is empty")),
        n if n > MAX_KEY => {
            Err(Failure::new(Code::EBOUND, format!("the key has {n} bytes, more than {MAX_KEY}")))
        }
        _ => Ok(name.to_owned()),
    }
}

fn check_size(value: &[u8]) -> Result<(), Failure> {
    match value.len() {
        n if n > MAX_VALUE => {
            let message =
                format!("the value has {n} bytes, more than {MAX_VALUE}; write it to a file");
            Err(Failure::new(Code::EBUDGET, message))
        }
        _ => Ok(()),
    }
}

fn no_key(key: &str) -> Failure {
    let whose = if key.starts_with(TENANT) { "tenant" } else { "session" };
    Failure::new(Code::ENOENT, format!("the {whose}'s state has no key {key:?}"))
}

pub(crate) async fn get(kv: Arc<Kv>, run: &mut Run, k: String) -> Result<Vec<u8>, Failure> {
    let (backend, name) = kv.locate(&k);
    let name = validate(name)?;
    // The size of the value is unknown until it is read. If the account has no room for the largest
    // value, the actual size is charged after the read.
    let account = run.account();
    let mut held = account.hold(MAX_VALUE).unwrap_or_else(|_| account.nothing());
    let value = backend.get(name).await?.ok_or_else(|| no_key(&k))?;
    held.grow(value.len().saturating_sub(held.used()))?;
    Ok(value)
}

pub(crate) async fn set(kv: Arc<Kv>, run: &mut Run, k: String, v: Vec<u8>) -> Result<(), Failure> {
    check_size(&v)?;
    let call = run.change_key();
    kv.update(call, &k, Kept::Nothing, Box::new(move |_| Ok(Some(v.clone())))).await
}

async fn del(kv: Arc<Kv>, run: &mut Run, k: String) -> Result<(), Failure> {
    let missing = no_key(&k);
    let call = run.change_key();
    let change: Change = Box::new(move |old| old.map(|_| None).ok_or_else(|| missing.clone()));
    kv.update(call, &k, Kept::Presence, change).await
}

async fn list(kv: Arc<Kv>, run: &mut Run, prefix: String) -> Result<Handle, Failure> {
    let (backend, start) = kv.locate(&prefix);
    let scope = prefix.strip_suffix(start).unwrap_or_default();
    let keys = backend.keys(start.to_owned()).await?;
    let size = keys.iter().map(|key| key.len() + size_of::<String>()).sum();
    // The keys are charged separately, because they exist at the same time as the array.
    let _held = run.account().hold(size)?;
    Arrays::make(run, keys.into_iter().map(|key| format!("{scope}{key}")))
}

async fn incr(kv: Arc<Kv>, run: &mut Run, k: String, n: i32) -> Result<i32, Failure> {
    let name = k.clone();
    update_and_return(run, &kv, &k, Kept::Number, move |old| {
        let old = match old {
            None => 0,
            Some(text) => integer(&text).ok_or_else(|| {
                Failure::new(Code::EPARSE, format!("the value of {name:?} is not an integer"))
            })?,
        };
        let sum = old.checked_add(n).ok_or_else(|| {
            Failure::new(Code::EBOUND, format!("{old} + {n} is out of the integer range"))
        })?;
        Ok((Some(sum.to_string().into_bytes()), sum))
    })
    .await
}

/// Parses a number that is stored in the state. Allows surrounding whitespace.
fn integer(text: &[u8]) -> Option<i32> {
    let number = Some(text.trim_ascii()).filter(|number| number.len() <= MAX_NUMBER)?;
    str::from_utf8(number).ok()?.parse().ok()
}

async fn cas(
    kv: Arc<Kv>,
    run: &mut Run,
    k: String,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
) -> Result<bool, Failure> {
    new.as_deref().map_or(Ok(()), check_size)?;
    update_and_return(run, &kv, &k, Kept::Equality(old.clone()), move |found| {
        if found == old { Ok((new.clone(), true)) } else { Ok((found, false)) }
    })
    .await
}

/// Updates a key and returns a result. `change` computes the new value and the result from the
/// key's old value.
async fn update_and_return<T: Clone + Default + Send + 'static>(
    run: &mut Run,
    kv: &Kv,
    key: &str,
    kept: Kept,
    mut change: impl FnMut(Option<Vec<u8>>) -> Result<(Option<Vec<u8>>, T), Failure> + Send + 'static,
) -> Result<T, Failure> {
    let call = run.change_key();
    let found = Arc::new(Mutex::new(T::default()));
    let out = Arc::clone(&found);
    let change: Change = Box::new(move |old| {
        let (new, result) = change(old)?;
        *out.lock().unwrap_or_else(PoisonError::into_inner) = result;
        Ok(new)
    });
    kv.update(call, key, kept, change).await?;
    let found = found.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(found.clone())
}
