//! `val`: values of any shape that the host stores for the run. Programs refer to them by handle.

mod access;
mod arena;
mod arithmetic;
mod convert;
mod forms;
mod message;
mod number;
mod objects;
mod order;
mod read;
mod write;

use wattle_rt::tape::RecordedValue;
use wattle_rt::{Failure, Record, Run, Value, capability, host};

use arena::{Values, with};
pub(crate) use forms::texts_of;

capability! {
    /// Values of any shape: null, bools, numbers, strings, lists and objects; lists and objects are
    /// shared, so that a change is seen through every reference.
    pub const VAL: "val" 1;

    /// Returns a whole number as a value
    #[example = r#"(ret (val.text (val.of_long 5)))"# => "5"]
    #[prompt(omitted)]
    fn of_long(n: long) -> v: val = convert::of_long;

    /// Returns a float as a value; it must be finite
    #[example = r#"(ret (val.text (val.of_float 0.5)))"# => "0.5"]
    #[prompt(omitted)]
    fn of_float(x: float) -> v: val = convert::of_float;

    /// Returns a string as a value
    #[example = r#"(ret (val.json (val.of_str "a")))"# => r#""a""#]
    #[prompt(omitted)]
    fn of_str(s: str) -> v: val = convert::of_str;

    /// Copies an array to a list of strings
    #[example = r#"(ret (val.text (val.of_arr (str.split "a b" " "))))"# => r#"["a","b"]"#]
    #[prompt(omitted)]
    fn of_arr(h: arr) -> v: val = convert::of_arr;

    /// Copies a map to an object of strings
    #[example = r#"(ret (val.text (val.of_map (map.from_json "{\"a\":1}"))))"# => r#"{"a":"1"}"#]
    #[prompt(omitted)]
    fn of_map(h: map) -> v: val = convert::of_map;

    /// Creates an empty list
    #[example = r#"(ret (val.text (val.list)))"# => "[]"]
    #[prompt(omitted)]
    fn list() -> v: val = convert::list;

    /// Creates an empty object
    #[example = r#"(ret (val.text (val.object)))"# => "{}"]
    #[prompt(omitted)]
    fn object() -> v: val = convert::object;

    /// Parses JSON, or a literal of Python; numbers keep their digits, and a repeated key is an
    /// error
    #[example = r#"(ret (val.text (val.parse "{'a': [1.10, None]}")))"# => r#"{"a":[1.10,null]}"#]
    #[prompt(omitted)]
    fn parse(s: str) -> v: val ! EPARSE EBOUND ENOMEM = read::parse;

    /// Returns the value of a key of an object
    #[example = r#"(ret (val.text (val.key (val.parse "{\"a\":5}") "a")))"# => "5"]
    #[prompt(omitted)]
    fn key(v: val, key: str) -> x: val ! ENOENT EKIND = access::key;

    /// Returns the item of a list at index i, or the value of the key i of an object
    #[example = r#"(ret (val.text (val.item (val.parse "[4,5]") 1)))"# => "5"]
    #[prompt(omitted)]
    fn item(v: val, i: int) -> x: val ! ENOENT EBOUND EKIND = access::item;

    /// Returns the part of a list or an object that a value selects: an index or a key
    #[example = r#"(ret (val.text (val.part (val.parse "{\"a\":5}") (val.of_str "a"))))"# => "5"]
    #[prompt(omitted)]
    fn part(v: val, k: val) -> x: val ! ENOENT EBOUND EKIND = access::part;

    /// Returns a part, like `val.part`; a part that is missing or null becomes a new object
    #[example = r#"(let $v (val.object)) (val.put (val.open $v (val.of_str "a")) (val.of_str "b") (val.of_long 1)) (ret (val.text $v))"# => r#"{"a":{"b":1}}"#]
    #[prompt(omitted)]
    fn open(v: val, k: val) -> x: val ! EKIND EBOUND ENOENT ENOMEM = access::open;

    /// Sets a key of an object, or replaces an item of a list
    #[example = r#"(let $v (val.parse "[1,2]")) (val.put $v (val.of_long 0) (val.of_str "a")) (ret (val.text $v))"# => r#"["a",2]"#]
    #[prompt(omitted)]
    fn put(v: val, k: val, x: val) ! EKIND EBOUND ENOENT ENOMEM = access::put;

    /// Appends an item to a list
    #[example = r#"(let $v (val.list)) (val.push $v (val.of_str "a")) (ret (val.text $v))"# => r#"["a"]"#]
    #[prompt(omitted)]
    fn push(v: val, x: val) ! EKIND ENOMEM = access::push;

    /// Removes the last item of a list and returns it; EBOUND if there is none
    #[example = r#"(let $v (val.parse "[1,2]")) (ret (val.text (val.pop $v)))"# => "2"]
    #[prompt(omitted)]
    fn pop(v: val) -> x: val ! EKIND EBOUND = access::pop;

    /// Returns 1 if a list contains x, an object has the key x, or a string contains the string x,
    /// else 0
    #[example = r#"(ret (str.from_int (val.has (val.parse "[1,2]") (val.of_float 2.0))))"# => "1"]
    #[prompt(omitted)]
    fn has(v: val, x: val) -> yes: bool ! EKIND = access::has;

    /// Returns the number of items of a list, of keys of an object, or of bytes of a string
    #[example = r#"(ret (str.from_int (val.len (val.parse "[4,5]"))))"# => "2"]
    #[prompt(omitted)]
    fn len(v: val) -> n: int ! EKIND = access::len;

    /// Returns the number of items of a list or of keys of an object, for a loop
    #[example = r#"(ret (str.from_int (val.size (val.parse "{\"a\":1}"))))"# => "1"]
    #[prompt(omitted)]
    fn size(v: val) -> n: int ! EKIND = access::size;

    /// Returns the i-th item of a list, or the i-th value of an object
    #[example = r#"(ret (val.text (val.nth (val.parse "{\"a\":5}") 0)))"# => "5"]
    #[prompt(omitted)]
    fn nth(v: val, i: int) -> x: val ! EBOUND EKIND = access::nth;

    /// Returns i for a list, and the i-th key of an object
    #[example = r#"(ret (val.text (val.nth_key (val.parse "{\"a\":5}") 0)))"# => "a"]
    #[prompt(omitted)]
    fn nth_key(v: val, i: int) -> k: val ! EBOUND EKIND = access::nth_key;

    /// Returns a whole number as an int; what is the form that takes it
    #[example = r#"(ret (str.from_int (val.int (val.parse "2.0") "str.pad")))"# => "2"]
    #[prompt(omitted)]
    fn int(v: val, what: str) -> n: int ! EKIND EBOUND = convert::int;

    /// Returns a whole number as a long; what is the form that takes it
    #[example = r#"(ret (str.from_long (val.long (val.parse "5000000000") "date.add")))"# => "5000000000"]
    #[prompt(omitted)]
    fn long(v: val, what: str) -> n: long ! EKIND EBOUND = convert::long;

    /// Returns the float nearest to a number; what is the form that takes it
    #[example = r#"(ret (str.from_float (val.float (val.parse "2.5") "math.sqrt")))"# => "2.5"]
    #[prompt(omitted)]
    fn float(v: val, what: str) -> x: float ! EKIND EBOUND = convert::float;

    /// Returns a string, a number or a bool as a string; what is the form that takes it
    #[example = r#"(ret (val.str (val.parse "1.10") "str.upper"))"# => "1.10"]
    #[prompt(omitted)]
    fn str(v: val, what: str) -> s: str ! EKIND EBOUND ENOMEM = convert::str;

    /// Copies a list to an array, as `val.text` returns its items; what is the form that takes it
    #[example = r#"(ret (str.join (val.arr (val.parse "[1,\"b\",{}]") "str.join") " "))"# => "1 b {}"]
    #[prompt(omitted)]
    fn arr(v: val, what: str) -> h: arr ! EKIND EBOUND ENOMEM = convert::arr;

    /// Copies an object to a map, as `val.text` returns its values; what is the form that takes it
    #[example = r#"(ret (map.get (val.map (val.parse "{\"a\":1}") "map.get") "a"))"# => "1"]
    #[prompt(omitted)]
    fn map(v: val, what: str) -> h: map ! EKIND EBOUND ENOMEM = convert::map;

    /// Returns 0 for null, false, 0 and "", else 1
    #[example = r#"(ret (str.from_int (val.truth (val.parse "0.0"))))"# => "0"]
    #[prompt(omitted)]
    fn truth(v: val) -> yes: bool ! EKIND = convert::truth;

    /// Returns a string itself, and any other value as JSON
    #[example = r#"(ret (val.text (val.parse "[1,\"a\"]")))"# => r#"[1,"a"]"#]
    #[prompt(omitted)]
    fn text(v: val) -> s: str ! EBOUND ENOMEM = convert::text;

    /// Returns a value as JSON, with `indent` spaces a level or on one line
    #[example = r#"(ret (val.json (val.parse "[1,\"a\"]") 1))"# => "[\n 1,\n \"a\"\n]"]
    #[prompt(omitted)]
    fn json(v: val, indent: opt_int) -> s: str ! EBOUND ENOMEM = convert::json;

    /// Converts a number, a bool or a string to an int; decimals are cut
    #[example = r#"(ret (str.from_int (val.to_int (val.parse "2.7"))))"# => "2"]
    #[prompt(omitted)]
    fn to_int(v: val) -> n: int ! EKIND EPARSE EBOUND = convert::to_int;

    /// Converts a number, a bool or a string to a long; decimals are cut
    #[example = r#"(ret (str.from_long (val.to_long (val.of_str "12"))))"# => "12"]
    #[prompt(omitted)]
    fn to_long(v: val) -> n: long ! EKIND EPARSE EBOUND = convert::to_long;

    /// Converts a number, a bool or a string to a float
    #[example = r#"(ret (str.from_float (val.to_float (val.of_str "2.5"))))"# => "2.5"]
    #[prompt(omitted)]
    fn to_float(v: val) -> x: float ! EKIND EPARSE EBOUND = convert::to_float;

    /// Returns the exact number that a string contains; a number is returned as it is
    #[example = r#"(ret (val.text (val.add (val.num (val.of_str "0.1")) (val.num (val.of_str "0.2")))))"# => "0.3"]
    #[prompt(omitted)]
    fn num(v: val) -> x: val ! EPARSE EKIND EBOUND ENOMEM = convert::num;

    /// Returns a whole number whose arithmetic does not overflow
    #[example = r#"(ret (val.text (val.mul (val.big (val.of_str "9000000000000000000")) (val.of_long 2))))"# => "18000000000000000000"]
    #[prompt(omitted)]
    fn big(v: val) -> x: val ! EPARSE EKIND EBOUND ENOMEM = convert::big;

    /// Returns the kind: null, bool, number, string, list or object
    #[example = r#"(ret (val.kind (val.parse "[]")))"# => "list"]
    #[prompt(omitted)]
    fn kind(v: val) -> s: str = convert::kind;

    /// Adds two numbers
    #[example = r#"(ret (val.text (val.add (val.parse "1.10") (val.of_long 2))))"# => "3.1"]
    #[prompt(omitted)]
    fn add(a: val, b: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::add;

    /// Subtracts two numbers
    #[example = r#"(ret (val.text (val.sub (val.parse "0.3") (val.parse "0.1"))))"# => "0.2"]
    #[prompt(omitted)]
    fn sub(a: val, b: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::sub;

    /// Multiplies two numbers
    #[example = r#"(ret (val.text (val.mul (val.parse "1.10") (val.of_long 3))))"# => "3.3"]
    #[prompt(omitted)]
    fn mul(a: val, b: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::mul;

    /// Divides two numbers; a quotient that is not whole is a float
    #[example = r#"(ret (val.text (val.div (val.of_long 7) (val.of_long 2))))"# => "3.5"]
    #[prompt(omitted)]
    fn div(a: val, b: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::div;

    /// Returns the remainder of a division, which has the sign of a
    #[example = r#"(ret (val.text (val.rem (val.of_long 7) (val.of_long 2))))"# => "1"]
    #[prompt(omitted)]
    fn rem(a: val, b: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::rem;

    /// Returns the smaller of two numbers or two strings
    #[example = r#"(ret (val.text (val.min (val.of_long 7) (val.of_long 2))))"# => "2"]
    #[prompt(omitted)]
    fn min(a: val, b: val) -> x: val ! EKIND = arithmetic::min;

    /// Returns the larger of two numbers or two strings
    #[example = r#"(ret (val.text (val.max (val.of_long 7) (val.of_long 2))))"# => "7"]
    #[prompt(omitted)]
    fn max(a: val, b: val) -> x: val ! EKIND = arithmetic::max;

    /// Returns a number with the opposite sign
    #[example = r#"(ret (val.text (val.neg (val.of_long 7))))"# => "-7"]
    #[prompt(omitted)]
    fn neg(a: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::neg;

    /// Returns a number without its sign
    #[example = r#"(ret (val.text (val.abs (val.of_long -7))))"# => "7"]
    #[prompt(omitted)]
    fn abs(a: val) -> x: val ! EKIND EBOUND ENOMEM = arithmetic::abs;

    /// Returns 1 if two values are equal, else 0; numbers are compared by value, and the order of
    /// keys does not matter
    #[example = r#"(ret (str.from_int (val.eq (val.parse "[1.0]") (val.parse "[1]"))))"# => "1"]
    #[prompt(omitted)]
    fn eq(a: val, b: val) -> yes: bool = arithmetic::eq;

    /// Compares two numbers or two strings; returns -1, 0 or 1
    #[example = r#"(ret (str.from_int (val.cmp (val.of_long 7) (val.of_long 2))))"# => "1"]
    #[prompt(omitted)]
    fn cmp(a: val, b: val) -> order: int ! EKIND = arithmetic::cmp;

    /// Returns a part, like `val.part`, or null if it is missing
    #[example = r#"(ret (val.text (val.get (val.object) (val.of_str "a"))))"# => "null"]
    #[prompt(omitted)]
    fn get(v: val, k: val) -> x: val ! EKIND EBOUND = forms::get;

    /// Sets a key of an object
    #[example = r#"(let $v (val.object)) (val.put_key $v "a" (val.of_long 1)) (ret (val.text $v))"# => r#"{"a":1}"#]
    #[prompt(omitted)]
    fn put_key(v: val, key: str, x: val) ! EKIND EBOUND ENOMEM = forms::put_key;

    /// Returns 1 if a value is this string, else 0
    #[example = r#"(ret (str.from_int (val.eq_str (val.of_str "a") "a")))"# => "1"]
    #[prompt(omitted)]
    fn eq_str(v: val, s: str) -> yes: bool = forms::eq_str;

    /// Returns the exact number that a literal is
    #[example = r#"(ret (val.text (val.mul (val.decimal "1.10") (val.of_long 3))))"# => "3.3"]
    #[prompt(omitted)]
    fn decimal(s: str) -> x: val = forms::decimal;

    /// Parses a string as JSON; any other value is itself
    #[example = r#"(ret (val.kind (val.reparse (val.of_str "[1]"))))"# => "list"]
    #[prompt(omitted)]
    fn reparse(v: val) -> x: val ! EPARSE EBOUND ENOMEM = forms::reparse;

    /// Returns the number of items of a list, for a loop
    #[example = r#"(ret (str.from_int (val.list_len (val.parse "[4,5]"))))"# => "2"]
    #[prompt(omitted)]
    fn list_len(v: val) -> n: int ! EKIND = forms::list_len;

    /// Copies a value and all values in it
    #[example = r#"(let $a (val.parse "[[]]")) (let $b (val.copy $a)) (val.push $b (val.of_long 1)) (ret (val.text $a))"# => "[[]]"]
    #[prompt(omitted)]
    fn copy(v: val) -> x: val ! EBOUND ENOMEM = objects::copy;

    /// Returns an object with the keys of both; objects of the same key are merged, and any other
    /// value of b replaces that of a
    #[example = r#"(ret (val.text (val.merge (val.parse "{\"a\":{\"x\":1},\"b\":1}") (val.parse "{\"a\":{\"y\":2},\"b\":2}"))))"# => r#"{"a":{"x":1,"y":2},"b":2}"#]
    #[prompt(omitted)]
    fn merge(a: val, b: val) -> v: val ! EKIND EBOUND ENOMEM = objects::merge;
}

/// The number by which programs refer to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueHandle(pub i32);

impl Record for ValueHandle {
    /// Records the value as JSON instead of the handle, because the handle may refer to a different
    /// value in a replay.
    fn record(&self, run: &mut Run) -> RecordedValue {
        let json = values(run).json(self.0, None).unwrap_or_else(|_| "null".to_owned());
        RecordedValue::Bytes(json.into_bytes())
    }
}

impl Value for ValueHandle {
    type Raw = i32;
    fn store(self, _: &mut host::Caller<'_>) -> Result<i32, Failure> {
        Ok(self.0)
    }
    fn restore(recorded: RecordedValue, caller: &mut host::Caller<'_>) -> Result<i32, Failure> {
        let RecordedValue::Bytes(json) = recorded else { return Err(host::wrong_recorded_type()) };
        let json = String::from_utf8(json).map_err(|_| host::wrong_recorded_type())?;
        with(caller.data_mut(), |values| values.parse(&json))
    }
}

/// Returns the run's values, for calls that need no memory.
fn values(run: &mut Run) -> &mut Values {
    run.state()
}
