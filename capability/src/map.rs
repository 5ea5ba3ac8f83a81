//! `map`: maps from strings to strings in insertion order, which the host stores for the run.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use wattle_rt::tape::RecordedValue;
use wattle_rt::{Code, Failure, Record, Run, Value, capability, host, quote};

use crate::QUOTED;
use crate::arr::{Arrays, Handle as ArrHandle, Order, numbers};
use crate::decimal::{Decimal, Number, float};
use crate::json::document::{Document, quoted};

capability! {
    /// Maps from string to string in insertion order; del, incr and sort change the map itself.
    pub const MAP: "map" 3;

    /// Creates an empty map
    #[example = r#"(ret (str.from_int (map.len (map.new))))"# => "0"]
    #[prompt(omitted)]
    fn new() -> h: map = new;

    /// Sets a key; a new key is added last, an existing one keeps its position
    #[example = r#"(let $m (map.new)) (map.set $m "k" "v") (ret (map.to_json $m))"# => r#"{"k":"v"}"#]
    #[prompt(omitted)]
    fn set(h: map, key: str, value: bytes) ! EBOUND ENOMEM = set;

    /// Returns a key's value; ENOENT if missing
    #[example = r#"(let $m (map.from_json "{\"k\":\"v\"}")) (ret (map.get $m "k"))"# => "v"]
    #[prompt(omitted)]
    fn get(h: map, key: str) -> ptr: str ! ENOENT = get;

    /// Returns 1 if the map has the key, else 0
    #[example = r#"(let $m (map.from_json "{\"k\":\"v\"}")) (ret (str.from_int (map.has $m "k")))"# => "1"]
    #[prompt(omitted)]
    fn has(h: map, key: str) -> yes: bool = has;

    /// Removes a key; ENOENT if missing
    #[example = r#"(let $m (map.from_json "{\"k\":\"v\"}")) (map.del $m "k") (ret (map.to_json $m))"# => "{}"]
    #[prompt(omitted)]
    fn del(h: map, key: str) ! ENOENT = del;

    /// Adds n to a key's integer (0 if missing) and returns the sum
    #[example = r#"(let $m (map.new)) (map.incr $m "k" 2) (ret (str.from_int (map.incr $m "k" 3)))"# => "5"]
    #[prompt(omitted)]
    fn incr(h: map, key: str, n: int) -> sum: int = incr;

    /// Adds n to a key's 64-bit integer (0 if missing) and returns the sum
    #[example = r#"(let $m (map.new)) (map.incr/i64 $m "k" 3000000000) (ret (map.get $m "k"))"# => "3000000000"]
    #[prompt(omitted)]
    fn incr/i64(h: map, key: str, n: long) -> sum: long = incr_long;

    /// Adds n to a key's number (0 if missing) and returns the sum; decimals are added exactly
    #[example = r#"(let $m (map.new)) (map.incr/f64 $m "k" 0.1) (map.incr/f64 $m "k" 0.2) (ret (map.get $m "k"))"# => "0.3"]
    #[prompt(omitted)]
    fn incr/f64(h: map, key: str, n: float) -> sum: float = incr_float;

    /// Adds a key with the value 1; returns 1 if it was new, else 0 and changes nothing
    #[example = r#"(let $m (map.new)) (map.add $m "k") (ret (str.from_int (map.add $m "k")))"# => "0"]
    #[prompt(omitted)]
    fn add(h: map, key: str) -> new: bool = add;

    /// Appends an item to the JSON array at a key, which is created if missing; JSON numbers,
    /// bools, nulls, arrays and objects stay JSON, any other item becomes a string
    #[example = r#"(let $m (map.new)) (map.push $m "k" "a") (map.push $m "k" "2") (ret (map.get $m "k"))"# => r#"["a",2]"#]
    #[prompt(omitted)]
    fn push(h: map, key: str, item: bytes) ! EBOUND ENOMEM = push;

    /// Returns a key's list as an array: the items that `map.push` appended, or those of a JSON
    /// array; any other value is a list of one item; empty if missing
    #[example = r#"(let $m (map.new)) (map.push $m "k" "a") (map.push $m "k" "2") (ret (str.join (map.list $m "k") " "))"# => "a 2"]
    #[prompt(omitted)]
    fn list(h: map, key: str) -> arr: arr = list;

    /// Returns the keys as an array, in the map's order
    #[example = r#"(ret (str.join (map.keys (map.from_json "{\"b\":1,\"a\":2}")) " "))"# => "b a"]
    #[prompt(omitted)]
    fn keys(h: map) -> arr: arr = keys;

    /// Returns the values as an array, in the map's order
    #[example = r#"(ret (str.join (map.values (map.from_json "{\"b\":1,\"a\":2}")) " "))"# => "1 2"]
    #[prompt(omitted)]
    fn values(h: map) -> arr: arr = values;

    /// Returns the number of keys
    #[example = r#"(ret (str.from_int (map.len (map.from_json "{\"b\":1,\"a\":2}"))))"# => "2"]
    #[prompt(omitted)]
    fn len(h: map) -> n: int = len;

    /// Sorts in place by "key", "value" or "num" (numbers only), stably; "-num" and the like
    /// descend
    #[example = r#"(let $m (map.from_json "{\"a\":9,\"b\":10}")) (map.sort $m "-num") (ret (str.join (map.keys $m) " "))"# => "b a"]
    #[prompt(omitted)]
    fn sort(h: map, by: str) ! EBOUND EPARSE ENOMEM = sort;

    /// Encodes as a JSON object of strings; `json.make` keeps numbers and objects
    #[example = r#"(let $m (map.new)) (map.set $m "k" "1") (ret (map.to_json $m))"# => r#"{"k":"1"}"#]
    #[prompt(omitted)]
    fn to_json(h: map) -> ptr: str ! EBOUND ENOMEM = to_json;

    /// Parses a JSON object; string values lose their quotes, anything else stays JSON
    #[example = r#"(ret (map.get (map.from_json "{\"a\":[1,2]}") "a"))"# => "[1,2]"]
    #[prompt(omitted)]
    fn from_json(doc: str) -> h: map ! EPARSE ENOMEM = from_json;
}

/// The number by which programs refer to a map.
pub(crate) struct Handle(i32);

impl Record for Handle {
    /// Records alternating keys and values instead of the handle, because the handle may refer to a
    /// different map in a replay.
    fn record(&self, run: &mut Run) -> RecordedValue {
        let entries = of(run, self.0).into_iter().flat_map(|entries| &*entries);
        let texts =
            entries.flat_map(|(key, value)| [key.clone().into_bytes(), value.text().into_owned()]);
        RecordedValue::Items(texts.collect())
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
        let mut entries = Entries::default();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            let key = String::from_utf8(key).map_err(|_| host::wrong_recorded_type())?;
            entries.insert(key, Entry::Text(value));
        }
        make(caller.data_mut(), entries).map(|handle| handle.0)
    }
}

/// The value of a map entry.
pub(crate) enum Entry {
    Text(Vec<u8>),
    /// A list to which `map.push` appends.
    List(Vec<Vec<u8>>),
}

impl Entry {
    /// Returns the value as a string. A list is rendered as a JSON array.
    pub(crate) fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Entry::Text(text) => Cow::Borrowed(text),
            Entry::List(items) => {
                let items: Vec<String> = items.iter().map(|item| list_item(item)).collect();
                Cow::Owned(format!("[{}]", items.join(",")).into_bytes())
            }
        }
    }

    /// Replaces a text by one that fits into its space. Otherwise changes nothing and returns the
    /// number of bytes by which the value would grow.
    fn overwrite(&mut self, text: &[u8]) -> Result<(), usize> {
        match self {
            Entry::Text(old) if text.len() <= old.capacity() => {
                old.clear();
                old.extend_from_slice(text);
                Ok(())
            }
            Entry::Text(old) => Err(text.len() - old.capacity()),
            Entry::List(_) => Err(text.len()),
        }
    }

    /// Returns the value as a list. A JSON array is split into its items. Any other string becomes
    /// the only item.
    fn items(&self) -> Cow<'_, [Vec<u8>]> {
        match self {
            Entry::List(items) => Cow::Borrowed(items),
            Entry::Text(text) => Cow::Owned(match Document::read(&String::from_utf8_lossy(text)) {
                Ok(Document::Array(items)) => {
                    items.iter().map(|item| item.plain().into_bytes()).collect()
                }
                _ => vec![text.clone()],
            }),
        }
    }
}

/// Converts an item of a list to JSON. Valid JSON other than a string is kept, and anything else
/// becomes a JSON string, so that [`Entry::items`] returns the original item.
fn list_item(item: &[u8]) -> String {
    let text = String::from_utf8_lossy(item);
    match Document::read(&text) {
        Ok(Document::Text(_)) | Err(_) => quoted(&text),
        Ok(document) => document.to_json(),
    }
}

pub(crate) type Entries = IndexMap<String, Entry, RandomState>;

/// The maps of a run.
#[derive(Default)]
struct Maps(Vec<Entries>);

/// Returns the map that a handle refers to.
///
/// # Errors
/// `EBOUND` if no map has the handle.
pub(crate) fn of(run: &mut Run, h: i32) -> Result<&mut Entries, Failure> {
    let at = usize::try_from(h).ok().and_then(|h| h.checked_sub(1));
    at.and_then(|at| run.state::<Maps>().0.get_mut(at)).ok_or_else(|| {
        Failure::new(
            Code::EBOUND,
            format!("no map has the handle {h}; handles come from `map.new`"),
        )
    })
}

/// Memory overhead of a map, and of each of its entries, in bytes.
const ENTRY: usize = 64;

fn make(run: &mut Run, entries: Entries) -> Result<Handle, Failure> {
    run.charge(ENTRY)?;
    for (key, value) in &entries {
        run.charge(key.len() + value.text().len() + ENTRY)?;
    }
    let maps = &mut run.state::<Maps>().0;
    maps.push(entries);
    Ok(Handle(i32::try_from(maps.len()).unwrap_or(i32::MAX)))
}

/// Creates a map from pairs of strings and returns its handle.
///
/// # Errors
/// `ENOMEM` if the run's memory limit is reached.
pub(crate) fn of_texts(
    run: &mut Run,
    texts: impl IntoIterator<Item = (String, String)>,
) -> Result<Handle, Failure> {
    let entry = |(key, text): (String, String)| (key, Entry::Text(text.into_bytes()));
    make(run, texts.into_iter().map(entry).collect())
}

fn no_key(key: &str) -> Failure {
    Failure::new(Code::ENOENT, format!("the map has no key {}", quote(key, QUOTED)))
}

fn new(run: &mut Run) -> Result<Handle, Failure> {
    make(run, Entries::default())
}

fn set(run: &mut Run, h: i32, key: &str, value: &[u8]) -> Result<(), Failure> {
    // A program may change the same value a million times. Only growth is charged.
    let growth = match of(run, h)?.get_mut(key).map(|old| old.overwrite(value)) {
        Some(Ok(())) => return Ok(()),
        Some(Err(growth)) => growth,
        None => key.len() + value.len() + ENTRY,
    };
    if growth > 0 {
        run.charge(growth)?;
    }
    let entries = of(run, h)?;
    match entries.get_mut(key) {
        Some(Entry::Text(old)) => {
            old.clear();
            old.reserve_exact(value.len());
            old.extend_from_slice(value);
        }
        Some(list) => *list = Entry::Text(value.to_vec()),
        None => drop(entries.insert(key.to_owned(), Entry::Text(value.to_vec()))),
    }
    Ok(())
}

fn get(run: &mut Run, h: i32, key: &str) -> Result<Vec<u8>, Failure> {
    of(run, h)?.get(key).map(|value| value.text().into_owned()).ok_or_else(|| no_key(key))
}

fn has(run: &mut Run, h: i32, key: &str) -> Result<bool, Failure> {
    Ok(of(run, h)?.contains_key(key))
}

fn del(run: &mut Run, h: i32, key: &str) -> Result<(), Failure> {
    of(run, h)?.shift_remove(key).map(drop).ok_or_else(|| no_key(key))
}

fn incr(run: &mut Run, h: i32, key: &str, n: i32) -> Result<i32, Failure> {
    update(run, h, key, |old: i32| {
        old.checked_add(n).ok_or_else(|| {
            let more = "pass an i64 for larger sums";
            Failure::new(Code::EBOUND, format!("{old} + {n} is out of the integer range; {more}"))
        })
    })
}

fn incr_long(run: &mut Run, h: i32, key: &str, n: i64) -> Result<i64, Failure> {
    update(run, h, key, |old: i64| {
        old.checked_add(n).ok_or_else(|| {
            Failure::new(Code::EBOUND, format!("{old} + {n} is out of the range of an i64"))
        })
    })
}

/// Replaces the integer of a key by what `new` computes from it. The integer of a missing key is 0.
/// Returns the new integer.
fn update<T: Copy + Default + Display + FromStr>(
    run: &mut Run,
    h: i32,
    key: &str,
    new: impl FnOnce(T) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let value = of(run, h)?.get_mut(key);
    let old = value.as_deref().map_or(Ok(T::default()), |value| integer(key, value))?;
    let new = new(old)?;
    let text = new.to_string();
    let is_done = value.is_some_and(|value| value.overwrite(text.as_bytes()).is_ok());
    if !is_done {
        set(run, h, key, text.as_bytes())?;
    }
    Ok(new)
}

/// Parses the value of a key as an integer.
fn integer<T: FromStr>(key: &str, value: &Entry) -> Result<T, Failure> {
    let number = std::str::from_utf8(&value.text()).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| {
        Failure::new(Code::EPARSE, format!("the map's value of {key:?} is not an integer"))
    })
}

fn incr_float(run: &mut Run, h: i32, key: &str, n: f64) -> Result<f64, Failure> {
    let old = of(run, h)?.get(key).map_or(Cow::Borrowed(&b"0"[..]), Entry::text);
    let number = float(&old).ok_or_else(|| {
        Failure::new(Code::EPARSE, format!("the map's value of {key:?} is not a number"))
    })?;
    let exact =
        Decimal::read(&old).and_then(|old| old.plus(Decimal::read(n.to_string().as_bytes())?));
    let (sum, text) = match exact {
        Some(sum) => (sum.to_float(), sum.to_string()),
        None => (number + n, (number + n).to_string()),
    };
    if !sum.is_finite() {
        let message = format!("{number} + {n} is out of the range of a float");
        return Err(Failure::new(Code::EBOUND, message));
    }
    set(run, h, key, text.as_bytes())?;
    Ok(sum)
}

fn add(run: &mut Run, h: i32, key: &str) -> Result<bool, Failure> {
    let is_new = !of(run, h)?.contains_key(key);
    if is_new {
        set(run, h, key, b"1")?;
    }
    Ok(is_new)
}

fn push(run: &mut Run, h: i32, key: &str, item: &[u8]) -> Result<(), Failure> {
    let (new_key, parsed) = match of(run, h)?.get(key) {
        None => (key.len() + ENTRY, Some(Vec::new())),
        Some(Entry::List(_)) => (0, None),
        Some(text) => (0, Some(text.items().into_owned())),
    };
    // The charge is for the list as JSON, which may take several times the memory of the items.
    for item in parsed.iter().flatten() {
        run.charge(list_item(item).len())?;
    }
    run.charge(list_item(item).len() + new_key)?;
    let entries = of(run, h)?;
    if let Some(items) = parsed {
        entries.insert(key.to_owned(), Entry::List(items));
    }
    if let Some(Entry::List(items)) = entries.get_mut(key) {
        items.push(item.to_vec());
    }
    Ok(())
}

fn list(run: &mut Run, h: i32, key: &str) -> Result<ArrHandle, Failure> {
    let items = of(run, h)?.get(key).map(|value| value.items().into_owned()).unwrap_or_default();
    Arrays::make(run, items)
}

fn keys(run: &mut Run, h: i32) -> Result<ArrHandle, Failure> {
    let keys: Vec<String> = of(run, h)?.keys().cloned().collect();
    Arrays::make(run, keys)
}

fn values(run: &mut Run, h: i32) -> Result<ArrHandle, Failure> {
    let values: Vec<_> = of(run, h)?.values().map(|value| value.text().into_owned()).collect();
    Arrays::make(run, values)
}

fn len(run: &mut Run, h: i32) -> Result<i32, Failure> {
    Ok(i32::try_from(of(run, h)?.len()).unwrap_or(i32::MAX))
}

/// An entry to be sorted: its position in the map, its key and its value.
type SortedEntry<'a> = (usize, (&'a str, Cow<'a, [u8]>));

fn sort(run: &mut Run, h: i32, by: &str) -> Result<(), Failure> {
    let account = run.account().clone();
    let map = of(run, h)?;
    let order = Order::read(by, &["key", "value", "num"])?;
    let texts = map.iter().map(|(key, value)| (key.as_str(), value.text()));
    let mut entries: Vec<SortedEntry<'_>> = texts.enumerate().collect();
    // The charge covers the sorted entries and the sorted copy of the map.
    let entry = 2 * ENTRY + 2 * size_of::<(Number<'_>, usize)>();
    let size = entries.iter().map(|(_, (_, value))| value.len() + entry).sum();
    let _scratch = account.hold(size)?;
    let places: Vec<usize> = if order.by == "num" {
        let numbers = numbers(entries.iter().map(|(_, (_, value))| value.as_ref()))?;
        let mut keyed: Vec<_> = numbers.into_iter().zip(0..).collect();
        order.sort(&mut keyed, |a, b| a.0.cmp(&b.0));
        keyed.into_iter().map(|(_, at)| at).collect()
    } else {
        order.sort(&mut entries, |a, b| match order.by {
            "key" => a.1.0.cmp(b.1.0),
            _ => a.1.1.cmp(&b.1.1),
        });
        entries.into_iter().map(|(at, _)| at).collect()
    };
    let mut old: Vec<Option<(String, Entry)>> = std::mem::take(map).into_iter().map(Some).collect();
    *map = places.into_iter().filter_map(|at| old.get_mut(at)?.take()).collect();
    Ok(())
}

fn to_json(run: &mut Run, h: i32) -> Result<String, Failure> {
    let text = |value: &[u8]| quoted(&String::from_utf8_lossy(value));
    crate::join_in_brackets(
        '{',
        '}',
        of(run, h)?
            .iter()
            .map(|(key, value)| Ok(format!("{}:{}", quoted(key), text(&value.text())))),
    )
}

fn from_json(run: &mut Run, doc: &str) -> Result<Handle, Failure> {
    match Document::read(doc)? {
        Document::Object(fields) => {
            of_texts(run, fields.into_iter().map(|(key, value)| (key, value.plain())))
        }
        other => Err(Failure::new(
            Code::EPARSE,
            format!("the JSON is {}, not an object", other.a_kind()),
        )),
    }
}
