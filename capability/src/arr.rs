//! `arr`: arrays of strings that the host stores for the run. Programs refer to them by handle.

mod numbers;
mod rows;

use std::cmp::Ordering;
use std::collections::HashSet;

use wattle_rt::tape::RecordedValue;
use wattle_rt::{Code, Failure, Record, Run, Value, capability, host, quote};

use crate::QUOTED;
use crate::decimal::Number;
use crate::json::document::{Document, quoted};

capability! {
    /// Arrays of strings; indexes start at 0; sort, uniq and reverse change the array itself and
    /// return it.
    pub const ARR: "arr" 3;

    /// Creates an empty array
    #[example = r#"(let $a (arr.new)) (arr.push $a "x") (ret (str.from_int (arr.len $a)))"# => "1"]
    #[prompt(omitted)]
    fn new() -> h: arr = new;

    /// Appends a string
    #[example = r#"(let $a (arr.new)) (arr.push $a "x") (arr.push $a "y") (ret (arr.to_json $a))"# => r#"["x","y"]"#]
    #[prompt(omitted)]
    fn push(h: arr, item: bytes) ! EBOUND ENOMEM = push;

    /// Returns the string at index i
    #[example = r#"(ret (arr.get (str.split "a b" " ") 1))"# => "b"]
    #[prompt(omitted)]
    fn get(h: arr, i: int) -> ptr: str ! EBOUND = get;

    /// Replaces the string at index i
    #[example = r#"(let $a (str.split "a b" " ")) (arr.set $a 0 "z") (ret (str.join $a " "))"# => "z b"]
    #[prompt(omitted)]
    fn set(h: arr, i: int, item: bytes) ! EBOUND ENOMEM = set;

    /// Returns the number of items
    #[example = r#"(ret (str.from_int (arr.len (str.split "a b" " "))))"# => "2"]
    #[prompt(omitted)]
    fn len(h: arr) -> n: int = len;

    /// Returns 1 if an item equals item, else 0
    #[example = r#"(when (arr.has (str.split "a b" " ") "b") (out "yes"))"# => "yes"]
    #[prompt(omitted)]
    fn has(h: arr, item: bytes) -> yes: bool = has;

    /// Removes the last item and returns it; EBOUND if there is none
    #[example = r#"(let $a (str.split "a b" " ")) (let $last (arr.pop $a)) (ret (fmt "{} {i}" $last (arr.len $a)))"# => "b 1"]
    #[prompt(omitted)]
    fn pop(h: arr) -> ptr: str ! EBOUND = pop;

    /// Returns a new array of the items from start to end (exclusive, clamped to the length);
    /// without end, those from start on, none if start is past the end
    #[example = r#"(ret (str.join (arr.slice (str.split "a b c d" " ") 1 3) " "))"# => "b c"]
    #[prompt(omitted)]
    fn slice(h: arr, start: int, end: opt_int) -> arr: arr ! EBOUND ENOMEM = slice;

    /// Returns the sum of the items, which must be numbers; decimals are added exactly; EBOUND if a
    /// float would change the digits of a whole sum
    #[example = r#"(ret (str.from_float (arr.sum (str.split "0.1 0.2 3" " ")) 1))"# => "3.3"]
    #[prompt(omitted)]
    fn sum(h: arr) -> x: float ! EBOUND EPARSE ENOMEM = numbers::sum;

    /// Returns the smallest of the items, which must be numbers; EBOUND if there is none, or if a
    /// float would change the digits of a whole number (`arr.sort` by "num" keeps them)
    #[example = r#"(ret (str.from_float (arr.min (str.split "10 9 -1" " ")) 0))"# => "-1"]
    #[prompt(omitted)]
    fn min(h: arr) -> x: float ! EBOUND EPARSE ENOMEM = numbers::min;

    /// Returns the largest of the items, which must be numbers; EBOUND as for `arr.min`
    #[example = r#"(ret (str.from_float (arr.max (str.split "10 9 -1" " ")) 0))"# => "10"]
    #[prompt(omitted)]
    fn max(h: arr) -> x: float ! EBOUND EPARSE ENOMEM = numbers::max;

    /// Sorts in place by bytes, ascending
    #[example = r#"(let $a (str.split "b 10 a 9" " ")) (arr.sort $a) (ret (str.join $a " "))"# => "10 9 a b"]
    #[prompt(omitted)]
    fn sort(h: arr) ! EBOUND ENOMEM = sort;

    /// Sorts in place by "text" (bytes, the default) or "num" (numbers only), stably; "-text" and
    /// "-num" descend
    #[example = r#"(let $a (str.split "9 10 -1" " ")) (arr.sort $a "-num") (ret (str.join $a " "))"# => "10 9 -1"]
    #[prompt(omitted)]
    fn sort/2(h: arr, by: opt_str) ! EBOUND EPARSE ENOMEM = sort_in_order;

    /// Sorts in place, like `arr.sort` with an order
    #[example = r#"(let $a (str.split "9 10 -1" " ")) (arr.sort_by $a "-num") (ret (str.join $a " "))"# => "10 9 -1"]
    #[prompt(omitted)]
    fn sort_by(h: arr, by: str) ! EBOUND EPARSE ENOMEM = sort_by;

    /// Sorts rows in place, stably, by the value at a path in JSON objects or in a column (counted
    /// from 0) of tab-separated rows; by is "text", "num" or "value" (the default: null, false,
    /// true, numbers, then strings), descending with a `-` before it
    #[example = r#"(let $a (str.split "{\"n\":10} {\"n\":9}" " ")) (arr.sort_rows $a "n") (ret (str.join $a " "))"# => r#"{"n":9} {"n":10}"#]
    #[prompt(omitted)]
    fn sort_rows(h: arr, key: str, by: opt_str) ! EBOUND ENOENT EPARSE ENOMEM = rows::sort;

    /// Removes duplicates in place; keeps the first of each
    #[example = r#"(let $a (str.split "b a b" " ")) (arr.uniq $a) (ret (str.join $a " "))"# => "b a"]
    #[prompt(omitted)]
    fn uniq(h: arr) ! EBOUND ENOMEM = uniq;

    /// Reverses in place
    #[example = r#"(let $a (str.split "a b" " ")) (arr.reverse $a) (ret (str.join $a " "))"# => "b a"]
    #[prompt(omitted)]
    fn reverse(h: arr) ! EBOUND = reverse;

    /// Returns a new array: the items of a, then those of b
    #[example = r#"(ret (str.join (arr.concat (str.split "a b" " ") (str.split "c d" " ")) " "))"# => "a b c d"]
    #[prompt(omitted)]
    fn concat(a: arr, b: arr) -> arr: arr ! EBOUND ENOMEM = concat;

    /// Returns the index of the first item equal to item, or -1
    #[example = r#"(ret (str.from_int (arr.index_of (str.split "a b" " ") "b")))"# => "1"]
    #[prompt(omitted)]
    fn index_of(h: arr, item: bytes) -> i: int = index_of;

    /// Encodes as a JSON array of strings; `json.make_arr` keeps numbers and objects
    #[example = r#"(ret (arr.to_json (str.split "a 1" " ")))"# => r#"["a","1"]"#]
    #[prompt(omitted)]
    fn to_json(h: arr) -> ptr: str ! EBOUND ENOMEM = to_json;

    /// Parses CSV with a header line into JSON objects, one per row; types "num" turns fields like
    /// 2.50 into numbers
    #[example = r#"(ret (json.get (at (arr.from_csv "name,n\npen,2\ncup,3\n") 1) "n"))"# => "3"]
    #[prompt(omitted)]
    fn from_csv(text: str, sep: opt_str, types: opt_str) -> arr: arr ! EPARSE ENOMEM = rows::from_csv;

    /// Parses a JSON array; strings lose their quotes, anything else stays JSON
    #[example = r#"(ret (str.join (arr.from_json "[1.50,\"b\",{}]") " "))"# => "1.50 b {}"]
    #[prompt(omitted)]
    fn from_json(doc: str) -> h: arr ! EPARSE ENOMEM = from_json;
}

/// The number by which programs refer to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub i32);

impl Record for Handle {
    /// Records the items instead of the handle, because the handle may refer to a different array
    /// in a replay.
    fn record(&self, run: &mut Run) -> RecordedValue {
        RecordedValue::Items(
            Arrays::of(run).get(*self).map(|items| items.clone()).unwrap_or_default(),
        )
    }
}

impl Value for Handle {
    type Raw = i32;
    fn store(self, _: &mut host::Caller<'_>) -> Result<i32, Failure> {
        Ok(self.0)
    }
    fn restore(recorded: RecordedValue, caller: &mut host::Caller<'_>) -> Result<i32, Failure> {
        match recorded {
            RecordedValue::Items(items) => {
                Arrays::make(caller.data_mut(), items).map(|handle| handle.0)
            }
            _ => Err(host::wrong_recorded_type()),
        }
    }
}

/// The arrays of a run.
#[derive(Default)]
pub struct Arrays(Vec<Vec<Vec<u8>>>);

impl Arrays {
    /// Returns the run's arrays.
    pub fn of(run: &mut Run) -> &mut Arrays {
        run.state()
    }

    /// Creates an array from the items and returns its handle.
    ///
    /// # Errors
    /// `ENOMEM` if the run's memory limit is reached.
    pub fn make<T: AsRef<[u8]>>(
        run: &mut Run,
        items: impl IntoIterator<Item = T>,
    ) -> Result<Handle, Failure> {
        let mut list = Vec::new();
        run.charge(0)?;
        for item in items {
            run.charge(item.as_ref().len())?;
            list.push(item.as_ref().to_vec());
        }
        let arrays = &mut Arrays::of(run).0;
        arrays.push(list);
        Ok(Handle(i32::try_from(arrays.len()).unwrap_or(i32::MAX)))
    }

    /// Returns the array that a handle refers to.
    ///
    /// # Errors
    /// `EBOUND` if no array has the handle.
    pub fn get(&mut self, handle: Handle) -> Result<&mut Vec<Vec<u8>>, Failure> {
        let at = usize::try_from(handle.0).ok().and_then(|h| h.checked_sub(1));
        at.and_then(|at| self.0.get_mut(at)).ok_or_else(|| {
            Failure::new(
                Code::EBOUND,
                format!(
                    "no array has the handle {}; handles come from `arr.new`, `str.split` and the \
                     like",
                    handle.0
                ),
            )
        })
    }

    fn item(&mut self, handle: Handle, i: i32) -> Result<&mut Vec<u8>, Failure> {
        let list = self.get(handle)?;
        let length = list.len();
        usize::try_from(i).ok().and_then(|i| list.get_mut(i)).ok_or_else(|| {
            Failure::new(
                Code::EBOUND,
                format!("index {i} is out of range: the length of the array is {length}"),
            )
        })
    }
}

/// A named sort order, such as `num`, or `-num` for descending order.
pub(crate) struct Order<'a> {
    /// The name, without a leading `-`.
    pub(crate) by: &'a str,
    descending: bool,
}

impl<'a> Order<'a> {
    /// Parses an order whose name is one of `names`.
    ///
    /// # Errors
    /// `EPARSE` if the order is unknown. The message lists the valid names.
    pub(crate) fn read(text: &'a str, names: &[&str]) -> Result<Self, Failure> {
        let order = Order { by: text.trim_start_matches('-'), descending: text.starts_with('-') };
        if names.contains(&order.by) && text.len() - order.by.len() <= 1 {
            return Ok(order);
        }
        let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        let message = format!(
            "{text:?} is not an order; use one of {}, with a `-` before it for descending",
            names.join(", ")
        );
        Err(Failure::new(Code::EPARSE, message))
    }

    /// Sorts items in this order, stably.
    pub(crate) fn sort<T>(&self, items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
        items.sort_by(|a, b| if self.descending { compare(b, a) } else { compare(a, b) });
    }
}

/// Parses all items as numbers, which compare exactly.
///
/// # Errors
/// `EPARSE` if an item is not a number. The message quotes the first such item.
pub(crate) fn numbers<'a>(
    items: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Number<'a>>, Failure> {
    let read = |(i, item): (usize, &'a [u8])| {
        Number::read(item).ok_or_else(|| {
            let shown = quote(&String::from_utf8_lossy(item), QUOTED);
            Failure::new(Code::EPARSE, format!("{shown} at index {i} is not a number"))
        })
    };
    items.into_iter().enumerate().map(read).collect()
}

fn new(run: &mut Run) -> Result<Handle, Failure> {
    Arrays::make(run, std::iter::empty::<&[u8]>())
}

fn push(run: &mut Run, h: i32, item: &[u8]) -> Result<(), Failure> {
    Arrays::of(run).get(Handle(h))?;
    run.charge(item.len())?;
    Arrays::of(run).get(Handle(h))?.push(item.to_vec());
    Ok(())
}

fn get(run: &mut Run, h: i32, i: i32) -> Result<Vec<u8>, Failure> {
    Arrays::of(run).item(Handle(h), i).cloned()
}

fn set(run: &mut Run, h: i32, i: i32, item: &[u8]) -> Result<(), Failure> {
    run.charge(item.len())?;
    *Arrays::of(run).item(Handle(h), i)? = item.to_vec();
    Ok(())
}

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn len(run: &mut Run, h: i32) -> Result<i32, Failure> {
    Ok(int(Arrays::of(run).get(Handle(h))?.len()))
}

fn has(run: &mut Run, h: i32, item: &[u8]) -> Result<bool, Failure> {
    Ok(Arrays::of(run).get(Handle(h))?.iter().any(|known| known == item))
}

fn pop(run: &mut Run, h: i32) -> Result<Vec<u8>, Failure> {
    let last = Arrays::of(run).get(Handle(h))?.pop();
    last.ok_or_else(|| Failure::new(Code::EBOUND, "the array has no items"))
}

fn slice(run: &mut Run, h: i32, start: i32, end: Option<i32>) -> Result<Handle, Failure> {
    let items = Arrays::of(run).get(Handle(h))?;
    let length = items.len();
    let range = usize::try_from(start).ok().and_then(|from| match end {
        Some(end) => Some(from..usize::try_from(end).ok()?.min(length)),
        None => Some(from.min(length)..length),
    });
    let part = range.and_then(|range| items.get(range)).map(<[_]>::to_vec).ok_or_else(|| {
        let end = end.map_or("the end".to_owned(), |end| end.to_string());
        let message = format!(
            "cannot slice {start} to {end} of an array of {length} items: 0 <= start <= end, \
             start <= length"
        );
        Failure::new(Code::EBOUND, message)
    })?;
    Arrays::make(run, part)
}

/// Scratch memory per item of a stable sort, in bytes.
const SORT_SCRATCH: usize = size_of::<Vec<u8>>();

/// Scratch memory per item of a sort by number, in bytes: the numbers, the numbered items, the
/// sort's buffer and the sorted copy. The copied bytes of the items are counted separately.
const NUMBERED_SCRATCH: usize =
    size_of::<Number<'_>>() + 2 * size_of::<(Number<'_>, &Vec<u8>)>() + size_of::<Vec<u8>>();

/// Scratch memory per item for removing duplicates, in bytes: a hash set with free slots.
const UNIQ_SCRATCH: usize = 2 * size_of::<(&[u8], bool)>();

fn sort(run: &mut Run, h: i32) -> Result<(), Failure> {
    let account = run.account().clone();
    let items = Arrays::of(run).get(Handle(h))?;
    let _scratch = account.hold(items.len() * SORT_SCRATCH)?;
    items.sort();
    Ok(())
}

fn sort_in_order(run: &mut Run, h: i32, by: Option<&str>) -> Result<(), Failure> {
    sort_by(run, h, by.unwrap_or("text"))
}

fn sort_by(run: &mut Run, h: i32, by: &str) -> Result<(), Failure> {
    let account = run.account().clone();
    let items = Arrays::of(run).get(Handle(h))?;
    let order = Order::read(by, &["text", "num"])?;
    if order.by == "text" {
        let _scratch = account.hold(items.len() * SORT_SCRATCH)?;
        order.sort(items, Ord::cmp);
        return Ok(());
    }
    let size = items.iter().map(|item| item.len() + NUMBERED_SCRATCH).sum();
    let _scratch = account.hold(size)?;
    let mut keyed: Vec<_> =
        numbers(items.iter().map(Vec::as_slice))?.into_iter().zip(items.iter()).collect();
    order.sort(&mut keyed, |a, b| a.0.cmp(&b.0));
    *items = keyed.into_iter().map(|(_, item)| item.clone()).collect();
    Ok(())
}

fn uniq(run: &mut Run, h: i32) -> Result<(), Failure> {
    let account = run.account().clone();
    let items = Arrays::of(run).get(Handle(h))?;
    let _scratch = account.hold(items.len() * UNIQ_SCRATCH)?;
    let mut seen = HashSet::new();
    let firsts: Vec<bool> = items.iter().map(|item| seen.insert(item.as_slice())).collect();
    let mut first = firsts.iter();
    items.retain(|_| first.next().copied().unwrap_or(true));
    Ok(())
}

fn reverse(run: &mut Run, h: i32) -> Result<(), Failure> {
    Arrays::of(run).get(Handle(h))?.reverse();
    Ok(())
}

fn concat(run: &mut Run, a: i32, b: i32) -> Result<Handle, Failure> {
    let arrays = Arrays::of(run);
    let mut items = arrays.get(Handle(a))?.clone();
    items.extend_from_slice(arrays.get(Handle(b))?);
    Arrays::make(run, items)
}

fn index_of(run: &mut Run, h: i32, item: &[u8]) -> Result<i32, Failure> {
    Ok(Arrays::of(run).get(Handle(h))?.iter().position(|known| known == item).map_or(-1, int))
}

fn to_json(run: &mut Run, h: i32) -> Result<String, Failure> {
    let items = Arrays::of(run).get(Handle(h))?;
    crate::join_in_brackets(
        '[',
        ']',
        items.iter().map(|item| Ok(quoted(&String::from_utf8_lossy(item)))),
    )
}

fn from_json(run: &mut Run, doc: &str) -> Result<Handle, Failure> {
    match Document::read(doc)? {
        Document::Array(items) => Arrays::make(run, items.iter().map(Document::plain)),
        other => {
            Err(Failure::new(Code::EPARSE, format!("the JSON is {}, not an array", other.a_kind())))
        }
    }
}
