//! `map`: maps from string to string, in insertion order, that the host stores for the run.

use indexmap::IndexMap;
use wattle_rt::tape::RecordedValue;
use wattle_rt::{Code, Failure, Record, Run, Value, capability, host, quote};

use crate::QUOTED;
use crate::arr::{Arrays, Handle as ArrHandle, Order, numbered};
use crate::json::document::{Document, quoted};

capability! {
    /// Maps from string to string in insertion order, stored by the host; a handle is a number
    /// above 0; set, del, incr, sort change it in place.
    pub const MAP: "map" 2;

    /// Creates an empty map
    #[example = r#"(ret (str.from_int (map.len (map.new))))"# => "0"]
    #[prompt(signature)]
    fn new() -> h: map = new;

    /// Sets a key; a new key is added last, an existing one keeps its position
    #[example = r#"(let $m (map.new)) (map.set? $m "k" "v") (ret (map.to_json? $m))"# => r#"{"k":"v"}"#]
    #[prompt(signature)]
    fn set(h: map, key: str, value: bytes) ! EBOUND ENOMEM = set;

    /// Returns a key's value; ENOENT if missing
    #[example = r#"(let $m (map.from_json? "{\"k\":\"v\"}")) (ret (map.get? $m "k"))"# => "v"]
    #[prompt(signature)]
    fn get(h: map, key: str) -> ptr: str ! ENOENT = get;

    /// Returns 1 if the map has the key, else 0
    #[example = r#"(let $m (map.from_json? "{\"k\":\"v\"}")) (ret (str.from_int (map.has $m "k")))"# => "1"]
    #[prompt(signature)]
    fn has(h: map, key: str) -> yes: bool = has;

    /// Removes a key; ENOENT if missing
    #[example = r#"(let $m (map.from_json? "{\"k\":\"v\"}")) (map.del? $m "k") (ret (map.to_json? $m))"# => "{}"]
    #[prompt(signature)]
    fn del(h: map, key: str) ! ENOENT = del;

    /// Adds n to a key's integer (0 if missing) and returns the sum
    #[example = r#"(let $m (map.new)) (map.incr $m "k" 2) (ret (str.from_int (map.incr $m "k" 3)))"# => "5"]
    #[prompt(signature)]
    fn incr(h: map, key: str, n: int) -> sum: int = incr;

    /// Returns the keys as an array, in the map's order
    #[example = r#"(ret (str.join? (map.keys (map.from_json? "{\"b\":1,\"a\":2}")) " "))"# => "b a"]
    #[prompt(signature)]
    fn keys(h: map) -> arr: arr = keys;

    /// Returns the values as an array, in the map's order
    #[example = r#"(ret (str.join? (map.values (map.from_json? "{\"b\":1,\"a\":2}")) " "))"# => "1 2"]
    #[prompt(signature)]
    fn values(h: map) -> arr: arr = values;

    /// Returns the number of keys
    #[example = r#"(ret (str.from_int (map.len (map.from_json? "{\"b\":1,\"a\":2}"))))"# => "2"]
    #[prompt(signature)]
    fn len(h: map) -> n: int = len;

    /// Sorts in place by "key", "value" or "num" (if every value is a number, else EPARSE), stably;
    /// "-key", "-value", "-num" sort descending
    #[example = r#"(let $m (map.from_json? "{\"a\":9,\"b\":10}")) (map.sort? $m "-num") (ret (str.join? (map.keys $m) " "))"# => "b a"]
    fn sort(h: map, by: str) ! EBOUND EPARSE ENOMEM = sort;

    /// Encodes as a JSON object of strings; `json.make` keeps numbers and objects
    #[example = r#"(let $m (map.new)) (map.set? $m "k" "1") (ret (map.to_json? $m))"# => r#"{"k":"1"}"#]
    #[prompt(signature)]
    fn to_json(h: map) -> ptr: str ! EBOUND ENOMEM = to_json;

    /// Parses a JSON object; string values lose their quotes, anything else stays JSON
    #[example = r#"(ret (map.get? (map.from_json? "{\"a\":[1,2]}") "a"))"# => "[1,2]"]
    #[prompt(signature)]
    fn from_json(doc: str) -> h: map ! EPARSE ENOMEM = from_json;
}

/// A map's handle.
struct Handle(i32);

impl Record for Handle {
    /// Records keys and values in turn, because in a replay the handle may belong to another map.
    fn record(&self, run: &mut Run) -> RecordedValue {
        let entries = of(run, self.0).into_iter().flat_map(|texts| &*texts);
        RecordedValue::Items(
            entries.flat_map(|(key, value)| [key.clone().into_bytes(), value.clone()]).collect(),
        )
    }
}

impl Value for Handle {
    type Raw = i32;
    fn store(self, _: &mut host::Caller<'_>) -> Result<i32, Failure> {
        Ok(self.0)
    }
    fn restore(recorded: RecordedValue, caller: &mut host::Caller<'_>) -> Result<i32, Failure> {
        let RecordedValue::Items(items) = recorded else { return Err(host::wrong_recorded_type()) };
        let mut items = items.into_iter();
        let mut texts = Texts::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            texts.insert(String::from_utf8(key).map_err(|_| host::wrong_recorded_type())?, value);
        }
        make(caller.data_mut(), texts).map(|handle| handle.0)
    }
}

type Texts = IndexMap<String, Vec<u8>>;

/// The maps of a run.
#[derive(Default)]
struct Maps(Vec<Texts>);

/// Returns the map that a handle refers to.
///
/// # Errors
/// `EBOUND` if no map has the handle.
pub(crate) fn of(run: &mut Run, h: i32) -> Result<&mut Texts, Failure> {
    let at = usize::try_from(h).ok().and_then(|h| h.checked_sub(1));
    at.and_then(|at| run.state::<Maps>().0.get_mut(at)).ok_or_else(|| {
        Failure::new(
            Code::EBOUND,
            format!("no map has the handle {h}; handles come from `map.new`"),
        )
    })
}

/// Memory overhead of a map and of each entry, in bytes.
const ENTRY: usize = 64;

fn make(run: &mut Run, texts: Texts) -> Result<Handle, Failure> {
    run.charge(ENTRY)?;
    for (key, value) in &texts {
        run.charge(key.len() + value.len() + ENTRY)?;
    }
    let maps = &mut run.state::<Maps>().0;
    maps.push(texts);
    Ok(Handle(i32::try_from(maps.len()).unwrap_or(i32::MAX)))
}

fn no_key(key: &str) -> Failure {
    Failure::new(Code::ENOENT, format!("the map has no key {}", quote(key, QUOTED)))
}

fn new(run: &mut Run) -> Result<Handle, Failure> {
    make(run, Texts::new())
}

fn set(run: &mut Run, h: i32, key: &str, value: &[u8]) -> Result<(), Failure> {
    of(run, h)?;
    run.charge(key.len() + value.len() + ENTRY)?;
    of(run, h)?.insert(key.to_owned(), value.to_vec());
    Ok(())
}

fn get(run: &mut Run, h: i32, key: &str) -> Result<Vec<u8>, Failure> {
    of(run, h)?.get(key).cloned().ok_or_else(|| no_key(key))
}

fn has(run: &mut Run, h: i32, key: &str) -> Result<bool, Failure> {
    Ok(of(run, h)?.contains_key(key))
}

fn del(run: &mut Run, h: i32, key: &str) -> Result<(), Failure> {
    of(run, h)?.shift_remove(key).map(drop).ok_or_else(|| no_key(key))
}

fn incr(run: &mut Run, h: i32, key: &str, n: i32) -> Result<i32, Failure> {
    let old = match of(run, h)?.get(key) {
        None => 0,
        Some(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.trim().parse::<i32>().ok())
            .ok_or_else(|| {
                Failure::new(Code::EPARSE, format!("the map's value of {key:?} is not an integer"))
            })?,
    };
    let sum = old.checked_add(n).ok_or_else(|| {
        Failure::new(Code::EBOUND, format!("{old} + {n} is out of the integer range"))
    })?;
    set(run, h, key, sum.to_string().as_bytes())?;
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

fn sort(run: &mut Run, h: i32, by: &str) -> Result<(), Failure> {
    let account = run.account().clone();
    let map = of(run, h)?;
    let order = Order::read(by, &["key", "value", "num"])?;
    // The sorted entries and the sorted copy of the map.
    let size = map.iter().map(|(key, value)| key.len() + value.len() + 2 * ENTRY).sum();
    let _scratch = account.hold(size)?;
    let mut entries: Vec<(&String, &Vec<u8>)> = map.iter().collect();
    match order.by {
        "key" => order.sort(&mut entries, |a, b| a.0.cmp(b.0)),
        "value" => order.sort(&mut entries, |a, b| a.1.cmp(b.1)),
        _ => {
            let mut keyed = numbered(entries, |(_, value)| value)?;
            order.sort(&mut keyed, |a, b| a.0.total_cmp(&b.0));
            entries = keyed.into_iter().map(|(_, entry)| entry).collect();
        }
    }
    *map = entries.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok(())
}

fn to_json(run: &mut Run, h: i32) -> Result<String, Failure> {
    let text = |value: &[u8]| quoted(&String::from_utf8_lossy(value));
    crate::join_in_brackets(
        '{',
        '}',
        of(run, h)?.iter().map(|(key, value)| format!("{}:{}", quoted(key), text(value))),
    )
}

fn from_json(run: &mut Run, doc: &str) -> Result<Handle, Failure> {
    match Document::read(doc)? {
        Document::Object(fields) => {
            let texts = fields.into_iter().map(|(key, value)| (key, value.plain().into_bytes()));
            make(run, texts.collect())
        }
        other => Err(Failure::new(
            Code::EPARSE,
            format!("the JSON is {}, not an object", other.a_kind()),
        )),
    }
}
