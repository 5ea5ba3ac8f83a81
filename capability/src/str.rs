//! `str`: text. Lengths and offsets are bytes; a cut inside a character moves outward to its edge.

use wattle_rt::{Code, Failure, Run, capability};

use crate::arr::{Arrays, Handle};

capability! {
    /// Text; lengths and offsets are bytes, cuts inside a character move outward.
    pub const STR: "str" 1;

    /// Gives the length in bytes
    #[example = "(resv (call $str.from_int (call $str.len \"abc\"))) (i32.const 0)"]
    fn len(s: bytes) -> n: int = len;

    /// Joins two texts
    #[example = "(call $str.cat \"a\" \"b\") (drop) (call $sys.resv) (i32.const 0)"]
    fn cat(a: str, b: str) -> ptr: str ! ENOMEM = cat;

    /// Gives the bytes from start up to end
    #[example = "(call $str.slice \"abcdef\" (i32.const 1) (i32.const 3)) (drop) (call $sys.resv) (i32.const 0)"]
    fn slice(s: str, start: int, end: int) -> ptr: str ! EBOUND = slice;

    /// Gives the offset of needle at or after from, -1 where absent
    #[example = "(resv (call $str.from_int (call $str.find \"hello\" \"l\" (i32.const 0)))) (i32.const 0)"]
    fn find(s: str, needle: str, from: int) -> n: int = find;

    /// Gives the offset of the last needle, -1 where absent
    #[example = "(resv (call $str.from_int (call $str.rfind \"hello\" \"l\"))) (i32.const 0)"]
    fn rfind(s: str, needle: str) -> n: int = rfind;

    /// Tells whether needle occurs
    #[example = "(resv (call $str.from_int (call $str.contains \"hello\" \"ell\"))) (i32.const 0)"]
    fn contains(s: str, needle: str) -> yes: bool = contains;

    /// Tells whether the text begins so
    #[example = "(resv (call $str.from_int (call $str.starts \"hello\" \"he\"))) (i32.const 0)"]
    fn starts(s: str, prefix: str) -> yes: bool = starts;

    /// Tells whether the text ends so
    #[example = "(resv (call $str.from_int (call $str.ends \"hello\" \"lo\"))) (i32.const 0)"]
    fn ends(s: str, suffix: str) -> yes: bool = ends;

    /// Tells whether two texts are the same
    #[example = "(resv (call $str.from_int (call $str.eq \"a\" \"a\"))) (i32.const 0)"]
    fn eq(a: bytes, b: bytes) -> yes: bool = eq;

    /// Compares by bytes: -1, 0, 1
    #[example = "(resv (call $str.from_int (call $str.cmp \"a\" \"b\"))) (i32.const 0)"]
    fn cmp(a: str, b: str) -> n: int = cmp;

    /// Splits at each sep
    #[example = "(call $str.split \"a,b\" \",\") (drop) (call $str.join \"-\") (drop) (call $sys.resv) (i32.const 0)"]
    fn split(s: str, sep: str) -> arr: arr ! EBOUND ENOMEM = split;

    /// Joins an array's texts with sep between them
    #[example = "(call $str.split \"a b\" \" \") (drop) (call $str.join \"+\") (drop) (call $sys.resv) (i32.const 0)"]
    fn join(arr: arr, sep: str) -> ptr: str ! EBOUND = join;

    /// Splits into lines, without their ends
    #[example = "(call $str.lines \"a\\nb\") (drop) (call $str.join \"|\") (drop) (call $sys.resv) (i32.const 0)"]
    fn lines(s: str) -> arr: arr ! ENOMEM = lines;

    /// Removes blanks at both ends
    #[example = "(call $str.trim \" a \") (drop) (call $sys.resv) (i32.const 0)"]
    fn trim(s: str) -> ptr: str ! ENOMEM = trim;

    /// Makes lower case
    #[example = "(call $str.lower \"ABC\") (drop) (call $sys.resv) (i32.const 0)"]
    fn lower(s: str) -> ptr: str ! ENOMEM = lower;

    /// Makes upper case
    #[example = "(call $str.upper \"abc\") (drop) (call $sys.resv) (i32.const 0)"]
    fn upper(s: str) -> ptr: str ! ENOMEM = upper;

    /// Replaces every needle
    #[example = "(call $str.replace \"a-b\" \"-\" \"+\") (drop) (call $sys.resv) (i32.const 0)"]
    fn replace(s: str, needle: str, with: str) -> ptr: str ! EBOUND ENOMEM = replace;

    /// Repeats the text n times
    #[example = "(call $str.repeat \"ab\" (i32.const 3)) (drop) (call $sys.resv) (i32.const 0)"]
    fn repeat(s: str, n: int) -> ptr: str ! EBOUND ENOMEM = repeat;

    /// Writes an integer as text
    #[example = "(resv (call $str.from_int (i32.const 42))) (i32.const 0)"]
    fn from_int(n: int) -> ptr: str = from_int;

    /// Reads an integer; blanks around it and a sign are fine
    #[example = "(call $str.to_int \" -7 \") (drop) (call $str.from_int) (call $sys.resv) (i32.const 0)"]
    fn to_int(s: str) -> n: int ! EPARSE = to_int;

    /// Writes a float with that many digits behind the point
    #[example = "(resv (call $str.from_float (f64.const 2.5) (i32.const 2))) (i32.const 0)"]
    fn from_float(x: float, digits: int) -> ptr: str = from_float;

    /// Reads a float
    #[example = "(call $str.to_float \"2.5\") (drop) (i32.const 1) (call $str.from_float) (call $sys.resv) (i32.const 0)"]
    fn to_float(s: str) -> x: float ! EPARSE = to_float;

    /// Cuts into pieces of n characters
    #[example = "(call $str.chunk \"abcde\" (i32.const 2)) (drop) (call $str.join \"|\") (drop) (call $sys.resv) (i32.const 0)"]
    fn chunk(s: str, n: int) -> arr: arr ! EBOUND ENOMEM = chunk;
}

/// The most bytes that one call may make; the program's memory bounds it further.
const MOST: usize = 64 << 20;

fn int(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn too_large() -> Failure {
    Failure::new(Code::ENOMEM, "the text would have more than 64 MiB; work on smaller pieces")
}

fn len(_: &mut Run, s: &[u8]) -> Result<i32, Failure> {
    Ok(int(s.len()))
}

fn cat(_: &mut Run, a: &str, b: &str) -> Result<String, Failure> {
    if a.len() + b.len() > MOST {
        return Err(too_large());
    }
    Ok([a, b].concat())
}

fn slice(_: &mut Run, s: &str, start: i32, end: i32) -> Result<String, Failure> {
    let bad = |why: &str| {
        let length = s.len();
        Failure::new(Code::EBOUND, format!("no slice from {start} to {end} of a text of {length} bytes: {why}"))
    };
    let from = usize::try_from(start).map_err(|_| bad("the start is negative"))?;
    let to = usize::try_from(end).map_err(|_| bad("the end is negative"))?.min(s.len());
    if from > s.len() {
        return Err(bad("the start lies behind the text's end"));
    }
    if from > to {
        return Err(bad("the end lies before the start"));
    }
    // An empty slice stays empty even inside a character.
    let to = if from == to { s.floor_char_boundary(from) } else { s.ceil_char_boundary(to) };
    Ok(s.get(s.floor_char_boundary(from)..to).unwrap_or_default().to_owned())
}

fn find(_: &mut Run, s: &str, needle: &str, from: i32) -> Result<i32, Failure> {
    let from = s.ceil_char_boundary(usize::try_from(from).unwrap_or(0));
    Ok(s.get(from..).and_then(|rest| rest.find(needle)).map_or(-1, |at| int(from + at)))
}

fn rfind(_: &mut Run, s: &str, needle: &str) -> Result<i32, Failure> {
    Ok(s.rfind(needle).map_or(-1, int))
}

fn contains(_: &mut Run, s: &str, needle: &str) -> Result<bool, Failure> {
    Ok(s.contains(needle))
}

fn starts(_: &mut Run, s: &str, prefix: &str) -> Result<bool, Failure> {
    Ok(s.starts_with(prefix))
}

fn ends(_: &mut Run, s: &str, suffix: &str) -> Result<bool, Failure> {
    Ok(s.ends_with(suffix))
}

fn eq(_: &mut Run, a: &[u8], b: &[u8]) -> Result<bool, Failure> {
    Ok(a == b)
}

fn cmp(_: &mut Run, a: &str, b: &str) -> Result<i32, Failure> {
    Ok(a.cmp(b) as i32)
}

fn split(run: &mut Run, s: &str, sep: &str) -> Result<Handle, Failure> {
    if sep.is_empty() {
        return Err(Failure::new(Code::EBOUND, "the separator is empty; for single characters use `str.chunk` with 1"));
    }
    Arrays::make(run, s.split(sep))
}

fn join(run: &mut Run, arr: i32, sep: &str) -> Result<Vec<u8>, Failure> {
    let items = Arrays::of(run).get(Handle(arr))?;
    let size: usize = items.iter().map(|item| item.len() + sep.len()).sum();
    if size > MOST {
        return Err(too_large());
    }
    Ok(items.join(sep.as_bytes()))
}

fn lines(run: &mut Run, s: &str) -> Result<Handle, Failure> {
    Arrays::make(run, s.lines())
}

fn trim(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(s.trim().to_owned())
}

fn lower(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(s.to_lowercase())
}

fn upper(_: &mut Run, s: &str) -> Result<String, Failure> {
    Ok(s.to_uppercase())
}

fn replace(_: &mut Run, s: &str, needle: &str, with: &str) -> Result<String, Failure> {
    if needle.is_empty() {
        return Err(Failure::new(Code::EBOUND, "the text to replace is empty"));
    }
    let grown = s.matches(needle).count().saturating_mul(with.len()).saturating_add(s.len());
    if grown > MOST {
        return Err(too_large());
    }
    Ok(s.replace(needle, with))
}

fn repeat(_: &mut Run, s: &str, n: i32) -> Result<String, Failure> {
    let n = usize::try_from(n).map_err(|_| Failure::new(Code::EBOUND, format!("cannot repeat a text {n} times")))?;
    if s.len().saturating_mul(n) > MOST {
        return Err(too_large());
    }
    Ok(s.repeat(n))
}

fn from_int(_: &mut Run, n: i32) -> Result<String, Failure> {
    Ok(n.to_string())
}

/// A text as a message shows it: short.
fn shown(s: &str) -> String {
    match s.char_indices().nth(40) {
        Some((at, _)) => format!("{:?}…", s.get(..at).unwrap_or_default()),
        None => format!("{s:?}"),
    }
}

fn to_int(_: &mut Run, s: &str) -> Result<i32, Failure> {
    s.trim().parse().map_err(|_| {
        let why = format!("{} is no integer between {} and {}", shown(s), i32::MIN, i32::MAX);
        Failure::new(Code::EPARSE, why)
    })
}

fn from_float(_: &mut Run, x: f64, digits: i32) -> Result<String, Failure> {
    let digits = usize::try_from(digits.clamp(0, 20)).unwrap_or(0);
    Ok(format!("{x:.digits$}"))
}

fn to_float(_: &mut Run, s: &str) -> Result<f64, Failure> {
    s.trim().parse().map_err(|_| Failure::new(Code::EPARSE, format!("{} is no number", shown(s))))
}

fn chunk(run: &mut Run, s: &str, n: i32) -> Result<Handle, Failure> {
    let n = usize::try_from(n)
        .ok()
        .filter(|n| *n > 0)
        .ok_or_else(|| Failure::new(Code::EBOUND, format!("a piece has at least 1 character, not {n}")))?;
    let mut rest = s;
    Arrays::make(
        run,
        std::iter::from_fn(|| {
            if rest.is_empty() {
                return None;
            }
            let at = rest.char_indices().nth(n).map_or(rest.len(), |(at, _)| at);
            let (piece, tail) = rest.split_at_checked(at)?;
            rest = tail;
            Some(piece)
        }),
    )
}
