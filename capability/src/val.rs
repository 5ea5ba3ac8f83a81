//! `val`: values of any shape that the host stores for the run. Programs refer to them by handle.

mod access;
mod arena;
mod arithmetic;
mod convert;
mod documents;
mod format;
mod forms;
mod html;
mod kept;
mod keys;
mod lists;
mod message;
mod number;
mod objects;
mod order;
mod read;
mod stats;
mod tables;
mod write;

use wattle_rt::tape::RecordedValue;
use wattle_rt::{Failure, Record, Run, Value, capability, host};

use arena::{of as values, with};
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

    /// Returns the part of a list or an object that a value selects: an index, a key, or a list of
    /// them, which is a path
    #[example = r#"(ret (val.text (val.part (val.parse "{\"a\":5}") (val.of_str "a"))))"# => "5"]
    #[prompt(omitted)]
    fn part(v: val, k: val) -> x: val ! ENOENT EBOUND EKIND = access::part;

    /// Returns a part, like `val.part`; a part that is missing or null becomes a new object
    #[example = r#"(let $v (val.object)) (val.put (val.open $v (val.of_str "a")) (val.of_str "b") (val.of_long 1)) (ret (val.text $v))"# => r#"{"a":{"b":1}}"#]
    #[prompt(omitted)]
    fn open(v: val, k: val) -> x: val ! EKIND EBOUND ENOENT ENOMEM = access::open;

    /// Sets a key of an object, or replaces an item of a list; k may be a path, on which missing
    /// objects are created
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

    /// Keeps a value under a name for the later programs of the run, which read it as a variable
    #[example = r#"(val.keep "rows" (val.parse "[1,2]")) (out "kept")"# => "kept"]
    #[prompt(omitted)]
    fn keep(name: str, v: val) ! EBOUND ENOMEM EACCESS = kept::keep;

    /// Returns the value that an earlier program kept under a name. Generated code calls it
    #[example = r#"(ret (val.text (val.kept "rows")))"# => "[1,2]"]
    #[prompt(omitted)]
    fn kept(name: str) -> v: val = kept::kept;

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

    /// Removes a part of a list or an object; one that is missing is none
    #[example = r#"(let $v (val.parse "{\"a\":1,\"b\":2}")) (val.remove $v (val.of_str "a")) (ret (val.text $v))"# => r#"{"b":2}"#]
    #[prompt(omitted)]
    fn remove(v: val, k: val) ! EKIND EBOUND = lists::remove;

    /// Copies a value and all values in it
    #[example = r#"(let $a (val.parse "[[]]")) (let $b (val.copy $a)) (val.push $b (val.of_long 1)) (ret (val.text $a))"# => "[[]]"]
    #[prompt(omitted)]
    fn copy(v: val) -> x: val ! EBOUND ENOMEM = objects::copy;

    /// Returns a list of the same items, or an object of the same entries, for a loop whose body
    /// deletes some; any other value is itself
    #[example = r#"(let $a (val.parse "[1,2]")) (let $b (val.held $a)) (drop (val.pop $a)) (ret (val.text $b))"# => "[1,2]"]
    #[prompt(omitted)]
    fn held(v: val) -> x: val ! EBOUND ENOMEM = objects::held;

    /// Returns an object with the keys of both; objects of the same key are merged, and any other
    /// value of b replaces that of a
    #[example = r#"(ret (val.text (val.merge (val.parse "{\"a\":{\"x\":1},\"b\":1}") (val.parse "{\"a\":{\"y\":2},\"b\":2}"))))"# => r#"{"a":{"x":1,"y":2},"b":2}"#]
    #[prompt(omitted)]
    fn merge(a: val, b: val) -> v: val ! EKIND EBOUND ENOMEM = objects::merge;

    /// Raises a number to a power; exact for whole numbers and decimals if the exponent is whole and
    /// not negative
    #[example = r#"(ret (val.text (val.pow (val.big (val.of_long 2)) (val.of_long 100))))"# => "1267650600228229401496703205376"]
    #[prompt(omitted)]
    fn pow(a: val, b: val) -> x: val ! EKIND EBOUND ENOMEM = stats::pow;

    /// Rounds to decimal places, half away from 0; negative digits round to tens, hundreds and so on
    #[example = r#"(ret (val.text (val.round (val.parse "2.675") 2)))"# => "2.68"]
    #[prompt(omitted)]
    fn round(a: val, digits: int) -> x: val ! EKIND EBOUND ENOMEM = stats::round;

    /// Returns a list sorted by a list of keys, one for each item, or by its items if keys is null;
    /// stable, also if descending; numbers, strings and bools are compared among themselves, lists
    /// item by item
    #[example = r#"(ret (val.text (val.sort (val.parse "[10,9,2.5]") (val.parse "null") (i32.const 1))))"# => "[10,9,2.5]"]
    #[prompt(omitted)]
    fn sort(x: val, keys: val, descending: bool) -> list: val ! EKIND EBOUND ENOMEM = lists::sort;

    /// Returns an object of lists: the items that have the same key, which becomes a string
    #[example = r#"(ret (val.text (val.group (val.parse "[1,2,3]") (val.parse "[\"a\",\"b\",\"a\"]"))))"# => r#"{"a":[1,3],"b":[2]}"#]
    #[prompt(omitted)]
    fn group(x: val, keys: val) -> object: val ! EKIND EBOUND ENOMEM = lists::group;

    /// Returns an object that says how often each key occurs
    #[example = r#"(ret (val.text (val.count (val.parse "[\"a\",\"b\",\"a\"]"))))"# => r#"{"a":2,"b":1}"#]
    #[prompt(omitted)]
    fn count(keys: val) -> object: val ! EKIND EBOUND ENOMEM = lists::count;

    /// Returns an object that says how often each item of an array occurs
    #[example = r#"(ret (val.text (val.count_arr (str.words "a b a"))))"# => r#"{"a":2,"b":1}"#]
    #[prompt(omitted)]
    fn count_arr(h: arr) -> object: val ! EBOUND ENOMEM = lists::count_arr;

    /// Returns an object of the items by their key; the last of those with the same key
    #[example = r#"(ret (val.text (val.index (val.parse "[1,2,3]") (val.parse "[\"a\",\"b\",\"a\"]"))))"# => r#"{"a":3,"b":2}"#]
    #[prompt(omitted)]
    fn index(x: val, keys: val) -> object: val ! EKIND EBOUND ENOMEM = lists::index;

    /// Returns the sum of a list of numbers; exact unless one is a float
    #[example = r#"(ret (val.text (val.sum (val.parse "[0.1,0.2,3]"))))"# => "3.3"]
    #[prompt(omitted)]
    fn sum(x: val) -> n: val ! EKIND EBOUND ENOMEM = stats::sum;

    /// Returns the average of a list of numbers
    #[example = r#"(ret (val.text (val.avg (val.parse "[1,2]"))))"# => "1.5"]
    #[prompt(omitted)]
    fn avg(x: val) -> n: val ! EKIND EBOUND ENOMEM = stats::avg;

    /// Returns the median of a list of numbers
    #[example = r#"(ret (val.text (val.median (val.parse "[9,1,2]"))))"# => "2"]
    #[prompt(omitted)]
    fn median(x: val) -> n: val ! EKIND EBOUND ENOMEM = stats::median;

    /// Returns the standard deviation of a sample of at least 2 numbers
    #[example = r#"(ret (val.text (val.stdev (val.parse "[1,2,3]"))))"# => "1"]
    #[prompt(omitted)]
    fn stdev(x: val) -> n: val ! EKIND EBOUND ENOMEM = stats::stdev;

    /// Returns the p-th percentile of a list of numbers, by the nearest rank
    #[example = r#"(ret (val.text (val.percentile (val.parse "[4,1,3,2]") 50)))"# => "2"]
    #[prompt(omitted)]
    fn percentile(x: val, p: float) -> n: val ! EKIND EBOUND ENOMEM = stats::percentile;

    /// Returns the item with the least key, or the least item if keys is null; the first of equals
    #[example = r#"(ret (val.text (val.least (val.parse "[10,9]") (val.parse "null"))))"# => "9"]
    #[prompt(omitted)]
    fn least(x: val, keys: val) -> item: val ! EBOUND EKIND ENOMEM = lists::least;

    /// Returns the item with the greatest key, or the greatest item if keys is null; the first of
    /// equals
    #[example = r#"(ret (val.text (val.greatest (val.parse "[1,2]") (val.parse "[\"b\",\"a\"]"))))"# => "1"]
    #[prompt(omitted)]
    fn greatest(x: val, keys: val) -> item: val ! EBOUND EKIND ENOMEM = lists::greatest;

    /// Returns a list without the items whose key occurred before; the items are their own keys if
    /// keys is null
    #[example = r#"(ret (val.text (val.uniq (val.parse "[1,1.0,\"1\"]") (val.parse "null"))))"# => r#"[1,"1"]"#]
    #[prompt(omitted)]
    fn uniq(x: val, keys: val) -> list: val ! EKIND EBOUND ENOMEM = lists::uniq;

    /// Returns the items of a list whose flag, at the same index of a second list, is true
    #[example = r#"(ret (val.text (val.filter (val.parse "[1,2,3]") (val.parse "[true,0,\"x\"]"))))"# => "[1,3]"]
    #[prompt(omitted)]
    fn filter(x: val, flags: val) -> list: val ! EKIND EBOUND ENOMEM = lists::filter;

    /// Returns the part of each item of a list that a key or an index selects
    #[example = r#"(ret (val.text (val.pluck (val.parse "[{\"a\":1},{\"a\":2}]") (val.of_str "a"))))"# => "[1,2]"]
    #[prompt(omitted)]
    fn pluck(x: val, key: val) -> list: val ! ENOENT EKIND EBOUND ENOMEM = lists::pluck;

    /// Returns the first n items of a list, or fewer if it has fewer
    #[example = r#"(ret (val.text (val.take (val.parse "[1,2,3]") 2)))"# => "[1,2]"]
    #[prompt(omitted)]
    fn take(x: val, n: int) -> list: val ! EKIND EBOUND ENOMEM = lists::take;

    /// Returns the items of a list from `from` to `to` (exclusive, clamped to the length); without
    /// `to`, those from `from` on
    #[example = r#"(ret (val.text (val.slice (val.parse "[1,2,3]") 1 9)))"# => "[2,3]"]
    #[prompt(omitted)]
    fn slice(x: val, from: int, to: opt_int) -> list: val ! EKIND EBOUND ENOMEM = lists::slice;

    /// Returns a list in reverse order
    #[example = r#"(ret (val.text (val.reverse (val.parse "[1,2,3]"))))"# => "[3,2,1]"]
    #[prompt(omitted)]
    fn reverse(x: val) -> list: val ! EKIND ENOMEM = lists::reverse;

    /// Returns the items of a, then those of b
    #[example = r#"(ret (val.text (val.concat (val.parse "[1]") (val.parse "[2]"))))"# => "[1,2]"]
    #[prompt(omitted)]
    fn concat(a: val, b: val) -> list: val ! EKIND ENOMEM = lists::concat;

    /// Returns a list in which each item that is a list is replaced by its items
    #[example = r#"(ret (val.text (val.flat (val.parse "[[1],2,[[3]]]"))))"# => "[1,2,[3]]"]
    #[prompt(omitted)]
    fn flat(x: val) -> list: val ! EKIND ENOMEM = lists::flat;

    /// Joins the items of a list, as `val.text` returns them
    #[example = r#"(ret (val.join (val.parse "[1,\"a\"]") ", "))"# => "1, a"]
    #[prompt(omitted)]
    fn join(x: val, sep: str) -> s: str ! EKIND EBOUND ENOMEM = lists::join;

    /// Returns the keys of an object
    #[example = r#"(ret (val.text (val.keys (val.parse "{\"b\":1,\"a\":2}"))))"# => r#"["b","a"]"#]
    #[prompt(omitted)]
    fn keys(v: val) -> list: val ! EKIND ENOMEM = lists::keys;

    /// Returns the values of an object
    #[example = r#"(ret (val.text (val.values (val.parse "{\"b\":1,\"a\":2}"))))"# => "[1,2]"]
    #[prompt(omitted)]
    fn values(v: val) -> list: val ! EKIND ENOMEM = lists::values_of;

    /// Returns a list or an object without the part that a key or an index selects; an object may
    /// lack the key
    #[example = r#"(ret (val.text (val.without (val.parse "{\"b\":1,\"a\":2}") (val.of_str "b"))))"# => r#"{"a":2}"#]
    #[prompt(omitted)]
    fn without(v: val, k: val) -> x: val ! ENOENT EKIND EBOUND ENOMEM = lists::without;

    /// Returns the first item of a list; EBOUND if there is none
    #[example = r#"(ret (val.text (val.first (val.parse "[1,2]"))))"# => "1"]
    #[prompt(omitted)]
    fn first(x: val) -> item: val ! EKIND EBOUND = lists::first;

    /// Returns the last item of a list; EBOUND if there is none
    #[example = r#"(ret (val.text (val.last (val.parse "[1,2]"))))"# => "2"]
    #[prompt(omitted)]
    fn last(x: val) -> item: val ! EKIND EBOUND = lists::last;

    /// Formats a value: `[<>^][0][width][,][.N][%]` or `hex`; `%` multiplies by 100, and the width is
    /// in characters
    #[example = r#"(ret (val.format (val.parse "1234.5") ">12,.2"))"# => "    1,234.50"]
    #[prompt(omitted)]
    fn format(v: val, spec: str) -> s: str ! EKIND EPARSE EBOUND ENOMEM = format::format;

    /// Parses CSV with a header line to a list of objects of strings; if typed is true, columns
    /// whose fields are all numbers become numbers; EPARSE if a row has more or fewer fields
    #[example = r#"(ret (val.text (val.csv "id,n\n007,2.50\n" "," (i32.const 1))))"# => r#"[{"id":"007","n":2.50}]"#]
    #[prompt(omitted)]
    fn csv(s: str, sep: opt_str, typed: bool) -> list: val ! EPARSE ENOMEM = tables::csv;

    /// Formats a list of objects as CSV with a header line, one column per key; null is empty
    #[example = r#"(ret (val.csv_text (val.parse "[{\"a\":1},{\"a\":\"x,y\"}]")))"# => "a\n1\n\"x,y\"\n"]
    #[prompt(omitted)]
    fn csv_text(list: val, sep: opt_str) -> s: str ! EKIND EPARSE EBOUND ENOMEM = tables::csv_text;

    /// Returns the n-th table of an HTML page, counted from 0, as a list of objects of strings; its
    /// first row is the keys; ENOENT if it is missing
    #[example = r#"(ret (val.text (val.html_table "<table><tr><th>a<th>b<tr><td>1<td>2</table>" 0)))"# => r#"[{"a":"1","b":"2"}]"#]
    #[prompt(omitted)]
    fn html_table(s: str, n: int) -> list: val ! ENOENT EBOUND ENOMEM = tables::html_table;

    /// Parses the first document of a YAML 1.2 text
    #[example = r#"(ret (val.text (val.yaml "a: 1\nb: [x, yes, null]\n")))"# => r#"{"a":1,"b":["x","yes",null]}"#]
    #[prompt(omitted)]
    fn yaml(s: str) -> v: val ! EPARSE EBOUND ENOMEM = documents::yaml;

    /// Parses TOML; dates become strings
    #[example = r#"(ret (val.text (val.toml "[a]\nb = [1, 2.5]\n")))"# => r#"{"a":{"b":[1,2.5]}}"#]
    #[prompt(omitted)]
    fn toml(s: str) -> v: val ! EPARSE EBOUND ENOMEM = documents::toml;

    /// Parses XML; an element is an object of its tag, attrs, children and text; entities other
    /// than the predefined ones are errors
    #[example = r#"(ret (val.text (val.xml "<a b='1'><c>x &amp; y</c></a>")))"# => r#"{"tag":"a","attrs":{"b":"1"},"children":[{"tag":"c","attrs":{},"children":[],"text":"x & y"}],"text":""}"#]
    #[prompt(omitted)]
    fn xml(s: str) -> v: val ! EPARSE EBOUND ENOMEM = documents::xml;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::arena::{NULL, Values};
    use super::number::{Answer, Number, Op, calculate};
    use super::*;

    /// Returns JSON values that contain numbers of 64 bits and floats.
    fn json() -> impl Strategy<Value = Json> {
        let scalar = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            (-1_000_i64..1_000).prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            "\\PC*".prop_map(Json::from),
            any::<String>().prop_map(Json::from),
        ];
        scalar.prop_recursive(5, 64, 30, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Json::from),
                prop::collection::hash_map("[a-z\"]{0,3}", inner, 0..30)
                    .prop_map(|fields| Json::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn read(values: &Values, v: i32) -> Json {
        serde_json::from_str(&values.json(v, None).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn values_are_those_of_the_json(json in json(), pretty in any::<bool>()) {
            let mut values = Values::unlimited();
            let text = match pretty {
                true => serde_json::to_string_pretty(&json).unwrap(),
                false => json.to_string(),
            };
            let v = values.parse(&text).unwrap();
            prop_assert_eq!(values.json(v, None).unwrap(), json.to_string());
            prop_assert_eq!(values.json(v, Some(2)).unwrap(), serde_json::to_string_pretty(&json).unwrap());
            let again = values.parse(&json.to_string()).unwrap();
            prop_assert!(values.equal(v, again).unwrap());
            prop_assert_eq!(values.canonical(v), values.canonical(again));
            if let Json::Object(fields) = &json {
                for (key, value) in fields {
                    let found = values.at_key(v, key).unwrap();
                    prop_assert_eq!(&read(&values, found), value);
                }
                prop_assert!(values.at_key(v, "missing").is_err());
            }
        }

        #[test]
        fn only_json_and_escapes_of_python_are_parsed(
            text in "[\\[\\]{}:,\"\\\\ \nu0-9a-fn.eE+-]{0,20}",
        ) {
            let json = text.replace("\\\\", "..").replace("\\a", "..");
            let json = json.split("\\0").collect::<Vec<_>>();
            let octal = json.iter().skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            match Values::unlimited().parse(&text) {
                Err(failure) if failure.reason.contains("is repeated") => {}
                parsed => {
                    prop_assert_eq!(parsed.is_ok(), !octal && is_json(&json.join("..")), "{}", text)
                }
            }
        }

        #[test]
        fn whole_arithmetic_is_exact(a in any::<i64>(), b in any::<i64>(), small in -9_i64..9) {
            for b in [b, small] {
                let exact = |op| match op {
                    Op::Add => Some(i128::from(a) + i128::from(b)),
                    Op::Sub => Some(i128::from(a) - i128::from(b)),
                    Op::Mul => Some(i128::from(a) * i128::from(b)),
                    _ if b == 0 => None,
                    Op::Div => Some(i128::from(a) / i128::from(b)),
                    Op::Rem => Some(i128::from(a) % i128::from(b)),
                };
                for op in [Op::Add, Op::Sub, Op::Mul, Op::Rem, Op::Div] {
                    let found = calculate(op, Number::Whole(a), Number::Whole(b));
                    let expected = exact(op).and_then(|n| i64::try_from(n).ok());
                    match (found, expected) {
                        (Ok(Answer::Whole(n)), Some(expected)) => prop_assert_eq!(n, expected),
                        (Ok(Answer::Float(_)), _) => prop_assert!(op == Op::Div && a % b != 0),
                        (Err(_), None) => {}
                        (found, expected) => {
                            prop_assert!(false, "{} {:?} {}: {:?} {:?}", a, op, b, found, expected)
                        }
                    }
                }
            }
        }

        #[test]
        fn decimal_arithmetic_is_exact(
            a in -1_000_000_000_000_i64..1_000_000_000_000,
            b in -1_000_000_000_i64..1_000_000_000,
            scales in (0_u32..9, 0_u32..9),
        ) {
            let text = |n: i64, scale: u32| format!("{n}e-{scale}");
            let (x, y) = (text(a, scales.0), text(b, scales.1));
            let (x, y) = (Number::Decimal(&x), Number::Decimal(&y));
            let ten = |scale: u32| 10_i128.pow(scale);
            let aligned = (i128::from(a) * ten(scales.1), i128::from(b) * ten(scales.0));
            let scale = scales.0 + scales.1;
            for (op, digits) in [
                (Op::Add, aligned.0 + aligned.1),
                (Op::Sub, aligned.0 - aligned.1),
                (Op::Mul, i128::from(a) * i128::from(b)),
            ] {
                let found = calculate(op, x, y).unwrap();
                let expected = format!("{digits}e-{scale}");
                let order = found.number().compare(Number::Decimal(&expected));
                prop_assert!(order.is_eq(), "{:?} {:?} {:?}: {:?}", x, op, y, found);
            }
        }
    }

    /// Returns true if another parser accepts a text. That parser refuses numbers that fit no float.
    fn is_json(text: &str) -> bool {
        match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => true,
            Err(error) => error.to_string().contains("number out of range"),
        }
    }

    #[test]
    fn a_million_values_fit_the_default_limit() {
        let mut values = Values::limited(64 << 20);
        let list = values.list(&[]).unwrap();
        for n in 0..1_000_000 {
            let item = values.float(f64::from(n)).unwrap();
            values.append(list, item).unwrap();
        }
        assert!(
            matches!(values.view(list), Ok(arena::View::List(items)) if items.len() == 1_000_000)
        );
    }

    #[test]
    fn a_failed_parse_leaves_nothing_and_memory_is_bounded() {
        let mut values = Values::limited(1 << 20);
        let before = values.parse("[1.5]").unwrap();
        assert!(values.parse(&format!("[{}", "1.5,".repeat(1_000))).is_err());
        let after = values.parse("[1.5]").unwrap();
        assert_eq!(after - before, 2);
        let wide = format!("[{}0.5]", "0.5,".repeat(1 << 18));
        assert_eq!(values.parse(&wide).unwrap_err().code, wattle_rt::Code::ENOMEM);
        assert_eq!(values.parse(&"[".repeat(200)).unwrap_err().code, wattle_rt::Code::EPARSE);
        assert!(values.equal(before, after).unwrap() && !values.equal(before, NULL).unwrap());
    }

    #[test]
    fn values_that_share_parts_do_not_take_forever() {
        let mut values = Values::limited(64 << 20);
        let doubled = |values: &mut Values| {
            let mut v = values.list(&[]).unwrap();
            for _ in 0..100 {
                v = values.list(&[v, v]).unwrap();
            }
            v
        };
        let (a, b) = (doubled(&mut values), doubled(&mut values));
        assert!(values.equal(a, a).unwrap());
        assert_eq!(values.equal(a, b).unwrap_err().code, wattle_rt::Code::EBOUND);
        let keys = values.sorted(&[a, b], false, "sort").map_err(|failure| failure.code);
        assert_eq!(keys, Err(wattle_rt::Code::ENOMEM));
    }
}
