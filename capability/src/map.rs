//! `map`: maps from text to text that the host keeps for the run, in the order of insertion.

use indexmap::IndexMap;
use wattle_rt::{Code, Failure, Run, Value, capability, host};

use crate::arr::{Arrays, Handle as ArrHandle};

capability! {
    /// Maps from text to text in insertion order, held by the host.
    pub const MAP: "map" 1;

    /// Makes an empty map
    #[example = "(call $map.new) (call $map.len) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    fn new() -> h: map = new;

    /// Sets a key
    #[example = "(local $m i32) (local.set $m (call $map.new)) (call $map.set (local.get $m) \"k\" \"v\")"]
    fn set(h: map, k: str, v: bytes) ! EBOUND ENOMEM = set;

    /// Gives a key's value
    #[example = "(local $m i32) (local.set $m (call $map.new)) (drop (call $map.set (local.get $m) \"k\" \"v\")) (call $map.get (local.get $m) \"k\") (drop) (call $sys.resv) (i32.const 0)"]
    fn get(h: map, k: str) -> ptr: str ! ENOENT = get;

    /// Tells whether a key is there
    #[example = "(resv (call $str.from_int (call $map.has (call $map.new) \"k\"))) (i32.const 0)"]
    fn has(h: map, k: str) -> yes: bool = has;

    /// Removes a key
    #[example = "(local $m i32) (local.set $m (call $map.new)) (drop (call $map.set (local.get $m) \"k\" \"v\")) (call $map.del (local.get $m) \"k\")"]
    fn del(h: map, k: str) ! ENOENT = del;

    /// Adds n to a key's integer (0 where absent) and gives the sum
    #[example = "(resv (call $str.from_int (call $map.incr (call $map.new) \"k\" (i32.const 2)))) (i32.const 0)"]
    fn incr(h: map, k: str, n: int) -> sum: int = incr;

    /// Gives the keys as an array
    #[example = "(resv (call $str.from_int (call $arr.len (call $map.keys (call $map.new))))) (i32.const 0)"]
    fn keys(h: map) -> arr: arr = keys;

    /// Gives the values as an array
    #[example = "(resv (call $str.from_int (call $arr.len (call $map.values (call $map.new))))) (i32.const 0)"]
    fn values(h: map) -> arr: arr = values;

    /// Gives the number of keys
    #[example = "(resv (call $str.from_int (call $map.len (call $map.new)))) (i32.const 0)"]
    fn len(h: map) -> n: int = len;

    /// Writes the map as a JSON object of strings
    #[example = "(call $map.to_json (call $map.new)) (drop) (call $sys.resv) (i32.const 0)"]
    fn to_json(h: map) -> ptr: str ! EBOUND = to_json;
}

/// The handle of a map.
struct Handle(i32);

impl Value for Handle {
    type Wire = i32;
    fn store(self, _: &mut host::Caller<'_>) -> Result<i32, Failure> {
        Ok(self.0)
    }
}

/// The maps of a run.
#[derive(Default)]
struct Maps(Vec<IndexMap<String, Vec<u8>>>);

/// The map of that handle.
///
/// # Errors
/// `EBOUND` where no map has it.
pub(crate) fn of(run: &mut Run, h: i32) -> Result<&mut IndexMap<String, Vec<u8>>, Failure> {
    let at = usize::try_from(h).ok().and_then(|h| h.checked_sub(1));
    at.and_then(|at| run.state::<Maps>().0.get_mut(at))
        .ok_or_else(|| Failure::new(Code::EBOUND, format!("no map has the handle {h}; handles come from `map.new`")))
}

fn no_key(k: &str) -> Failure {
    Failure::new(Code::ENOENT, format!("the map has no key {k:?}"))
}

fn new(run: &mut Run) -> Result<Handle, Failure> {
    run.charge(64)?;
    let maps = &mut run.state::<Maps>().0;
    maps.push(IndexMap::new());
    Ok(Handle(i32::try_from(maps.len()).unwrap_or(i32::MAX)))
}

fn set(run: &mut Run, h: i32, k: &str, v: &[u8]) -> Result<(), Failure> {
    of(run, h)?;
    run.charge(k.len() + v.len() + 64)?;
    of(run, h)?.insert(k.to_owned(), v.to_vec());
    Ok(())
}

fn get(run: &mut Run, h: i32, k: &str) -> Result<Vec<u8>, Failure> {
    of(run, h)?.get(k).cloned().ok_or_else(|| no_key(k))
}

fn has(run: &mut Run, h: i32, k: &str) -> Result<bool, Failure> {
    Ok(of(run, h)?.contains_key(k))
}

fn del(run: &mut Run, h: i32, k: &str) -> Result<(), Failure> {
    of(run, h)?.shift_remove(k).map(drop).ok_or_else(|| no_key(k))
}

fn incr(run: &mut Run, h: i32, k: &str, n: i32) -> Result<i32, Failure> {
    let old = match of(run, h)?.get(k) {
        None => 0,
        Some(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.trim().parse::<i32>().ok())
            .ok_or_else(|| Failure::new(Code::EPARSE, format!("the map's value of {k:?} is no integer")))?,
    };
    let sum = old
        .checked_add(n)
        .ok_or_else(|| Failure::new(Code::EBOUND, format!("{old} + {n} is out of the range of an integer")))?;
    set(run, h, k, sum.to_string().as_bytes())?;
    Ok(sum)
}

fn keys(run: &mut Run, h: i32) -> Result<ArrHandle, Failure> {
    let keys: Vec<String> = of(run, h)?.keys().cloned().collect();
    Arrays::make(run, keys)
}

fn values(run: &mut Run, h: i32) -> Result<ArrHandle, Failure> {
    let values: Vec<Vec<u8>> = of(run, h)?.values().cloned().collect();
    Arrays::make(run, values)
}

fn len(run: &mut Run, h: i32) -> Result<i32, Failure> {
    Ok(i32::try_from(of(run, h)?.len()).unwrap_or(i32::MAX))
}

fn to_json(run: &mut Run, h: i32) -> Result<String, Failure> {
    let object: serde_json::Map<String, serde_json::Value> =
        of(run, h)?.iter().map(|(k, v)| (k.clone(), String::from_utf8_lossy(v).into_owned().into())).collect();
    Ok(serde_json::Value::Object(object).to_string())
}
