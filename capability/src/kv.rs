//! `kv`: the session's key-value state: what one program writes, the next one reads.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_rt::{Code, Config, Failure, Run, capability};

use crate::arr::{Arrays, Handle};

capability! {
    /// The session's key-value state.
    pub const KV: "kv" 1;

    /// Gives a key's value
    #[example = "(local $e i32) (local $v i32) (call $kv.get \"name\") (local.set $e) (local.set $v) (local.get $e)"]
    async get(k: key) -> ptr: str ! ENOENT EREMOTE = get;

    /// Sets a key
    #[example = "(call $kv.set \"name\" \"Ada\")"]
    async set(k: key, v: bytes) ! EBUDGET EREMOTE = set;

    /// Removes a key
    #[example = "(drop (call $kv.set \"name\" \"Ada\")) (call $kv.del \"name\")"]
    async del(k: key) ! ENOENT EREMOTE = del;

    /// Gives the keys that begin with prefix, sorted
    #[example = "(call $kv.list \"\") (drop) (call $arr.len) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    async list(prefix: key_prefix) -> arr: arr ! EREMOTE = list;

    /// Adds n to a key's integer (0 where absent) and gives the sum
    #[example = "(call $kv.incr \"count\" (i32.const 1)) (drop) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    async incr(k: key, n: int) -> sum: int ! EPARSE EBUDGET EREMOTE = incr;
}

/// The longest key, in bytes.
const KEY_BYTES: usize = 1_024;
/// The largest value, in bytes.
const VALUE_BYTES: usize = 8 << 20;

/// A future of a backend.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

/// Where the state of one session is kept.
///
/// `update` is the one way to write: it sees the old value and decides the new one (`None` removes it), and nothing comes between.
/// A backend that fails gives `EREMOTE`.
pub trait Backend: Send + Sync {
    /// The value of a key.
    fn get(&self, key: String) -> Answer<'_, Option<Vec<u8>>>;
    /// Replaces the value of a key by what `change` makes of it, at once.
    fn update(&self, key: String, change: Change) -> Answer<'_, ()>;
    /// The keys that begin with the prefix, sorted.
    fn keys(&self, prefix: String) -> Answer<'_, Vec<String>>;
}

/// Decides the new value of a key from the old one; an error leaves the old one.
pub type Change = Box<dyn FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Failure> + Send>;

/// Grants `kv` on that backend.
pub struct Kv(pub Arc<dyn Backend>);

impl Config for Kv {
    const CAPABILITY: &'static str = "kv";
}

/// State in memory, gone with the process.
#[derive(Default)]
pub struct InMemory {
    values: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// The most bytes that an in-memory state holds.
const IN_MEMORY_BYTES: usize = 64 << 20;

impl Backend for InMemory {
    fn get(&self, key: String) -> Answer<'_, Option<Vec<u8>>> {
        let value = self.lock().get(&key).cloned();
        Box::pin(async { Ok(value) })
    }

    fn update(&self, key: String, change: Change) -> Answer<'_, ()> {
        let done = (|| {
            let mut values = self.lock();
            let new = change(values.get(&key).cloned())?;
            match new {
                None => drop(values.remove(&key)),
                Some(value) => {
                    let others = values.iter().filter(|(k, _)| **k != key);
                    let held: usize = others.map(|(k, v)| k.len() + v.len()).sum();
                    if held + key.len() + value.len() > IN_MEMORY_BYTES {
                        return Err(Failure::new(
                            Code::EBUDGET,
                            "the session's state is full (64 MiB); delete keys first",
                        ));
                    }
                    values.insert(key, value);
                }
            }
            Ok(())
        })();
        Box::pin(async { done })
    }

    fn keys(&self, prefix: String) -> Answer<'_, Vec<String>> {
        let values = self.lock();
        let keys = values.range(prefix.clone()..).map(|(k, _)| k).take_while(|k| k.starts_with(&prefix)).cloned();
        let keys = keys.collect();
        Box::pin(async { Ok(keys) })
    }
}

impl InMemory {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        // A change that panicked has changed nothing.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn checked(key: String) -> Result<String, Failure> {
    match key.len() {
        0 => Err(Failure::new(Code::EBOUND, "the key is empty")),
        n if n > KEY_BYTES => Err(Failure::new(Code::EBOUND, format!("the key has {n} bytes, more than {KEY_BYTES}"))),
        _ => Ok(key),
    }
}

fn no_key(key: &str) -> Failure {
    Failure::new(Code::ENOENT, format!("the session's state has no key {key:?}"))
}

async fn get(run: &mut Run, k: String) -> Result<Vec<u8>, Failure> {
    let k = checked(k)?;
    run.config::<Kv>()?.0.get(k.clone()).await?.ok_or_else(|| no_key(&k))
}

async fn set(run: &mut Run, k: String, v: Vec<u8>) -> Result<(), Failure> {
    let k = checked(k)?;
    if v.len() > VALUE_BYTES {
        let n = v.len();
        return Err(Failure::new(
            Code::EBUDGET,
            format!("the value has {n} bytes, more than {VALUE_BYTES}; write it to a file"),
        ));
    }
    run.config::<Kv>()?.0.update(k, Box::new(|_| Ok(Some(v)))).await
}

async fn del(run: &mut Run, k: String) -> Result<(), Failure> {
    let k = checked(k)?;
    let missing = no_key(&k);
    run.config::<Kv>()?.0.update(k, Box::new(|old| old.map(|_| None).ok_or(missing))).await
}

async fn list(run: &mut Run, prefix: String) -> Result<Handle, Failure> {
    let keys = run.config::<Kv>()?.0.keys(prefix).await?;
    Arrays::make(run, keys)
}

async fn incr(run: &mut Run, k: String, n: i32) -> Result<i32, Failure> {
    let k = checked(k)?;
    let sum = Arc::new(Mutex::new(0));
    let out = Arc::clone(&sum);
    let name = k.clone();
    let change: Change = Box::new(move |old| {
        let old = match old {
            None => 0,
            Some(text) => String::from_utf8_lossy(&text)
                .trim()
                .parse::<i32>()
                .map_err(|_| Failure::new(Code::EPARSE, format!("the value of {name:?} is no integer")))?,
        };
        let new = old
            .checked_add(n)
            .ok_or_else(|| Failure::new(Code::EBOUND, format!("{old} + {n} is out of the range of an integer")))?;
        *out.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(Some(new.to_string().into_bytes()))
    });
    run.config::<Kv>()?.0.update(k, change).await?;
    Ok(*sum.lock().unwrap_or_else(PoisonError::into_inner))
}
