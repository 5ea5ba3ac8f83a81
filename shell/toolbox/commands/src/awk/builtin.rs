//! The built-in functions of awk.

use std::cmp::Ordering;
use std::rc::Rc;
use std::time::SystemTime;

use jiff::tz::TimeZone;

use super::record::Splitter;
use super::run::{Run, Slot, Stop, failed, truth};
use super::syntax::{Expr, Place, place};
use super::value::{Array, Cell, Text, Value};
use crate::clock;
use crate::pattern::{Groups, Posix};

/// Calls a built-in function.
pub(crate) fn call<'a>(
    run: &mut Run<'a>,
    name: &'static str,
    args: &'a [Expr],
) -> Result<Value, Stop> {
    let (least, most) = counts(name);
    if args.len() < least || args.len() > most {
        return failed(format!(
            "{} arguments are wrong for {name}(), which takes {least} to {most}",
            args.len()
        ));
    }
    match name {
        "length" => return length(run, args),
        "split" => return split(run, args),
        "patsplit" => return split_by_content(run, args),
        "sub" | "gsub" => return substitute(run, args, name == "gsub"),
        "gensub" => return general(run, args),
        "match" => return matched(run, args),
        "asort" | "asorti" => return sorted(run, args, name == "asorti"),
        "typeof" => return kind(run, args),
        "isarray" => return is_array(run, args),
        _ => {}
    }
    let values = args.iter().map(|arg| run.eval(arg)).collect::<Result<Vec<_>, _>>()?;
    of_values(run, name, &values)
}

/// Calls a built-in function whose arguments are all scalar values.
pub(super) fn of_values(
    run: &mut Run<'_>,
    name: &'static str,
    values: &[Value],
) -> Result<Value, Stop> {
    let text = |run: &Run<'_>, n: usize| {
        values.get(n).map_or_else(|| Rc::from(""), |value| run.text(value))
    };
    if let Some(answer) = arithmetic(name, values) {
        return Ok(Value::Number(answer));
    }
    let answer = match name {
        "substr" => {
            let start = values.get(1);
            let length = values.get(2);
            let start = start.map_or(0.0, Value::number);
            return Ok(Value::text(substr(&text(run, 0), start, length.map(Value::number))));
        }
        "index" => {
            let whole = text(run, 0);
            let part = text(run, 1);
            if run.ignores_case() {
                index(&whole.to_lowercase(), &part.to_lowercase())
            } else {
                index(&whole, &part)
            }
        }
        "sprintf" => return Ok(Value::text(run.formatted(values)?)),
        "tolower" => return Ok(Value::text(text(run, 0).to_lowercase())),
        "toupper" => return Ok(Value::text(text(run, 0).to_uppercase())),
        "length" => text(run, 0).chars().count() as f64,
        "rand" => random(run),
        "srand" => seeded(run, values.first()),
        "system" => {
            let command = text(run, 0);
            f64::from(run.streams.run(&command))
        }
        "close" => {
            let name = text(run, 0);
            f64::from(run.streams.close(&name))
        }
        "fflush" => {
            run.streams.flush();
            0.0
        }
        "systime" => clock::epoch(SystemTime::now()).0 as f64,
        "strftime" => return Ok(Value::text(formatted_time(run, values))),
        "mktime" => mktime(&text(run, 0), values.get(1).is_some_and(Value::truth)),
        "strtonum" => strtonum(&text(run, 0)),
        _ => return failed(format!("function `{name}' is not defined")),
    };
    Ok(Value::Number(answer))
}

/// Calls an arithmetic function. Returns `None` if `name` is not an arithmetic function.
fn arithmetic(name: &str, values: &[Value]) -> Option<f64> {
    let number = |n: usize| values.get(n).map_or(0.0, Value::number);
    let whole = |n: usize| number(n) as u64;
    Some(match name {
        "sin" => number(0).sin(),
        "cos" => number(0).cos(),
        "atan2" => number(0).atan2(number(1)),
        "exp" => number(0).exp(),
        "log" if number(0) < 0.0 => -f64::NAN,
        "log" => number(0).ln(),
        "sqrt" if number(0) < 0.0 => -f64::NAN,
        "sqrt" => number(0).sqrt(),
        "int" => number(0).trunc(),
        "and" => values.iter().fold(u64::MAX, |all, value| all & value.number() as u64) as f64,
        "or" => values.iter().fold(0, |all, value| all | value.number() as u64) as f64,
        "xor" => values.iter().fold(0, |all, value| all ^ value.number() as u64) as f64,
        "lshift" => whole(0).checked_shl(whole(1) as u32).unwrap_or(0) as f64,
        "rshift" => whole(0).checked_shr(whole(1) as u32).unwrap_or(0) as f64,
        "compl" => (!whole(0) & ((1 << 53) - 1)) as f64,
        _ => return None,
    })
}

/// Returns the minimum and maximum number of arguments of a built-in function.
fn counts(name: &str) -> (usize, usize) {
    match name {
        "systime" | "rand" => (0, 0),
        "length" | "srand" | "fflush" => (0, 1),
        "strftime" => (0, 3),
        "sin" | "cos" | "exp" | "log" | "sqrt" | "int" | "tolower" | "toupper" | "system"
        | "compl" | "strtonum" | "typeof" | "isarray" => (1, 1),
        "close" | "mktime" => (1, 2),
        "index" | "atan2" | "lshift" | "rshift" => (2, 2),
        "substr" | "sub" | "gsub" | "match" => (2, 3),
        "split" | "patsplit" => (2, 4),
        "gensub" => (3, 4),
        "asort" | "asorti" => (1, 3),
        "and" | "or" | "xor" => (2, usize::MAX),
        _ => (1, usize::MAX),
    }
}

fn length<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let text = match args.first().map(|arg| run.argument(arg, false)).transpose()? {
        Some(Cell::Array(array)) => return Ok(Value::Number(array.borrow().len() as f64)),
        Some(Cell::Scalar(value)) => run.text(&value),
        Some(Cell::Unused) => Rc::from(""),
        None => Rc::from(run.whole_text()),
    };
    Ok(Value::Number(text.chars().count() as f64))
}

fn is_array<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let cell = args.first().map(|arg| run.argument(arg, false)).transpose()?;
    Ok(truth(matches!(cell, Some(Cell::Array(_)))))
}

fn kind<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let Some(arg) = args.first() else { return Ok(Value::Nothing) };
    let Cell::Scalar(value) = run.argument(arg, false)? else { return Ok(Value::text("array")) };
    Ok(Value::text(match value {
        Value::Nothing if matches!(arg, Expr::Read(Place::Field(_))) => "unassigned",
        Value::Nothing => "untyped",
        Value::Number(_) => "number",
        Value::Text(_) => "string",
        Value::Either(..) => "strnum",
        Value::Regex(_) => "regexp",
        Value::Array(_) => "array",
    }))
}

/// Sets the seed of `rand` and returns the previous seed.
fn seeded(run: &mut Run<'_>, seed: Option<&Value>) -> f64 {
    let before = run.seed;
    run.seed = seed.map_or_else(|| clock::epoch(SystemTime::now()).0 as f64, |seed| seed.number());
    run.random = run.seed.to_bits() ^ 0x9e37_79b9_7f4a_7c15;
    (0..8).for_each(|_| _ = random(run));
    before
}

/// Returns a random number that is at least 0 and less than 1.
fn random(run: &mut Run<'_>) -> f64 {
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    (run.random >> 11) as f64 / (1_u64 << 53) as f64
}

/// Runs `strftime(format, seconds, utc)`.
fn formatted_time(run: &Run<'_>, values: &[Value]) -> String {
    let format = values
        .first()
        .map_or_else(|| Rc::from("%a %b %e %H:%M:%S %Z %Y"), |format| run.text(format));
    let seconds = values
        .get(1)
        .map_or_else(|| clock::epoch(SystemTime::now()).0, |value| value.number() as i64);
    let zone = zone(values.get(2).is_some_and(Value::truth));
    clock::format(&clock::in_zone(seconds, 0, zone), &format)
}

/// Converts `YYYY MM DD HH MM SS` (UTC or local) to seconds since 1970. Returns -1 on failure.
fn mktime(text: &str, utc: bool) -> f64 {
    let numbers: Vec<i64> = text.split_whitespace().map_while(|part| part.parse().ok()).collect();
    let parts = numbers.first_chunk();
    parts.and_then(|parts| clock::moment(*parts, zone(utc))).map_or(-1.0, |seconds| seconds as f64)
}

fn zone(utc: bool) -> TimeZone {
    let greenwich = || TimeZone::posix("GMT0").unwrap_or(TimeZone::UTC);
    if utc { greenwich() } else { clock::local_zone() }
}

fn strtonum(text: &str) -> f64 {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let digits = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        return hex.get(..digits).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
            as f64;
    }
    if text.len() > 1
        && text.starts_with('0')
        && text.bytes().all(|byte| (b'0'..b'8').contains(&byte))
    {
        return u64::from_str_radix(text, 8).unwrap_or(0) as f64;
    }
    Value::text(text).number()
}

/// Returns the substring that starts at `start`, counted from 1. As in gawk, a `start` below 1 is
/// treated as 1.
fn substr(text: &str, start: f64, length: Option<f64>) -> String {
    let whole = |number: f64| if number.is_nan() { 0.0 } else { number.trunc() };
    let skip = (whole(start) - 1.0).max(0.0) as usize;
    let count = length.map_or(usize::MAX, |length| whole(length).max(0.0) as usize);
    if text.is_ascii() {
        let end = skip.saturating_add(count).min(text.len());
        return text.get(skip.min(end)..end).unwrap_or_default().to_owned();
    }
    text.chars().skip(skip).take(count).collect()
}

/// Returns the 1-based position of `part` in a text, in characters, or 0 if it is not found.
fn index(text: &str, part: &str) -> f64 {
    text.find(part).map_or(0.0, |at| letters(text, at) + 1.0)
}

/// Returns the number of characters before a byte offset.
fn letters(text: &str, at: usize) -> f64 {
    text.get(..at).map_or(0, |before| before.chars().count()) as f64
}

/// Replaces an array's content with `values`, keyed by numbers from `first`. Returns their count.
fn fill(array: &Array, first: usize, values: impl IntoIterator<Item = Value>) -> f64 {
    let mut array = array.borrow_mut();
    array.clear();
    let numbered = values.into_iter().enumerate();
    array.extend(numbered.map(|(n, value)| (Text::from((n + first).to_string()), value)));
    array.len() as f64
}

/// Runs `split(text, array, [separator], [separators])`.
fn split<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let [text, array, rest @ ..] = args else { return Ok(Value::Nothing) };
    let text = run.eval_text(text)?;
    let array = run.array_of("split", Some(array))?;
    let splitter = match rest.first() {
        Some(arg @ Expr::Regex(_)) => Splitter::Regex(run.regex(arg)?),
        Some(arg) => {
            let separator = run.eval_text(arg)?;
            run.splitter(&separator)?
        }
        None => {
            let separator = run.global_text(place::FS);
            run.splitter(&separator)?
        }
    };
    let mut parts = Vec::new();
    let mut between = Vec::new();
    splitter.split(&text, false, |part, behind| {
        parts.push(Value::outside(part));
        between.push(Value::text(behind));
    });
    between.pop();
    if let Some(separators) = rest.get(1) {
        let separators = run.array_of("split", Some(separators))?;
        fill(&separators, 1, between);
    }
    Ok(Value::Number(fill(&array, 1, parts)))
}

/// Runs `patsplit(text, array, [field], [separators])`.
fn split_by_content<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let [text, array, rest @ ..] = args else { return Ok(Value::Nothing) };
    let text = run.eval_text(text)?;
    let array = run.array_of("patsplit", Some(array))?;
    let regex = match rest.first() {
        Some(pattern) => run.regex(pattern)?,
        None => {
            let pattern = run.global_text(place::FPAT);
            run.dynamic(&pattern)?
        }
    };
    let mut parts = Vec::new();
    let mut between = Vec::new();
    let mut end = 0;
    let part = |range| Value::outside(text.get(range).unwrap_or_default());
    regex.each(text.as_bytes(), |groups| {
        let whole = groups.whole();
        between.push(part(end..whole.start));
        end = whole.end;
        parts.push(part(whole));
        true
    });
    between.push(part(end..text.len()));
    if let Some(separators) = rest.get(1) {
        let separators = run.array_of("patsplit", Some(separators))?;
        fill(&separators, 0, between);
    }
    Ok(Value::Number(fill(&array, 1, parts)))
}

/// Runs `sub`, or `gsub` if `all` is true.
fn substitute<'a>(run: &mut Run<'a>, args: &'a [Expr], all: bool) -> Result<Value, Stop> {
    let [pattern, replacement, rest @ ..] = args else { return Ok(Value::Nothing) };
    let regex = run.regex(pattern)?;
    let replacement = run.eval_text(replacement)?;
    let slot = match rest.first() {
        None => Slot::Field(0),
        Some(Expr::Read(place)) => run.slot(place)?,
        Some(Expr::Group(items)) if let [Expr::Read(place)] = items.as_slice() => {
            run.slot(place)?
        }
        Some(_) => {
            return failed(format!(
                "{}() needs something to change as its third argument",
                if all { "gsub" } else { "sub" }
            ));
        }
    };
    let text = run.read_slot(&slot)?;
    let text = run.text(&text);
    let only = if all { None } else { Some(1) };
    let (changed, count) =
        replace(&regex, &text, only, |found, out| amp(&replacement, &text, found, out));
    if count > 0 {
        run.assign_slot(&slot, Value::text(changed))?;
    }
    Ok(Value::Number(count as f64))
}

/// Replaces all matches, or only match number `only`. Returns the result and the replacement count.
fn replace(
    regex: &Posix,
    text: &str,
    only: Option<usize>,
    mut put: impl FnMut(&Groups, &mut String),
) -> (String, usize) {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    let mut count = 0;
    let mut replaced = 0;
    regex.each(text.as_bytes(), |found| {
        count += 1;
        if only.is_none_or(|only| only == count) {
            let whole = found.whole();
            out.push_str(text.get(end..whole.start).unwrap_or_default());
            put(found, &mut out);
            end = whole.end;
            replaced += 1;
        }
        only.is_none_or(|only| only > count)
    });
    out.push_str(text.get(end..).unwrap_or_default());
    (out, replaced)
}

fn group<'t>(text: &'t str, found: &Groups, number: usize) -> &'t str {
    found.get(number).and_then(|range| text.get(range)).unwrap_or_default()
}

/// Appends a replacement to `out`, with each `&` replaced by the match.
fn amp(replacement: &str, text: &str, found: &Groups, out: &mut String) {
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next_if(|next| *next == '&' || *next == '\\') {
                Some(next) => out.push(next),
                None => out.push('\\'),
            },
            '&' => out.push_str(group(text, found, 0)),
            other => out.push(other),
        }
    }
}

/// Runs `gensub(pattern, replacement, how, [text])`.
fn general<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let [pattern, replacement, how, rest @ ..] = args else { return Ok(Value::Nothing) };
    let regex = run.regex(pattern)?;
    let replacement = run.eval_text(replacement)?;
    let how = run.eval_text(how)?;
    let text = match rest.first() {
        None => Rc::from(run.whole_text()),
        Some(arg) => run.eval_text(arg)?,
    };
    let only =
        if how.starts_with(['g', 'G']) { None } else { Some(how.parse().unwrap_or(1).max(1)) };
    let (changed, _) = replace(&regex, &text, only, |found, out| {
        let mut letters = replacement.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some(digit) if digit.is_ascii_digit() => {
                        out.push_str(group(&text, found, digit as usize - '0' as usize))
                    }
                    Some(other) => out.push(other),
                    None => out.push('\\'),
                },
                '&' => out.push_str(group(&text, found, 0)),
                other => out.push(other),
            }
        }
    });
    Ok(Value::text(changed))
}

/// Runs `match(text, pattern, [groups])`.
fn matched<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let [text, pattern, rest @ ..] = args else { return Ok(Value::Nothing) };
    let text = run.eval_text(text)?;
    let regex = run.regex(pattern)?;
    let found = regex.groups_at(text.as_bytes(), 0);
    if !rest.is_empty() {
        let array = run.array_of("match", rest.first())?;
        let between = run.global_text(place::SUBSEP);
        let mut array = array.borrow_mut();
        array.clear();
        let count = found.as_ref().map_or(0, Groups::len);
        for (n, range) in
            (0..count).filter_map(|n| Some((n, found.as_ref().and_then(|found| found.get(n))?)))
        {
            let start = letters(&text, range.start);
            let length = letters(&text, range.end) - start;
            let part = text.get(range).unwrap_or_default();
            array.insert(Rc::from(n.to_string()), Value::outside(part));
            array.insert(Rc::from(format!("{n}{between}start")), Value::Number(start + 1.0));
            array.insert(Rc::from(format!("{n}{between}length")), Value::Number(length));
        }
    }
    let (start, length) = match found.map(|found| found.whole()) {
        Some(whole) => {
            let start = letters(&text, whole.start);
            (start + 1.0, letters(&text, whole.end) - start)
        }
        None => (0.0, -1.0),
    };
    run.set_global(place::RSTART, Value::Number(start));
    run.set_global(place::RLENGTH, Value::Number(length));
    Ok(Value::Number(start))
}

/// Runs `asort`, or `asorti` if `by_key` is true.
fn sorted<'a>(run: &mut Run<'a>, args: &'a [Expr], by_key: bool) -> Result<Value, Stop> {
    let name = if by_key { "asorti" } else { "asort" };
    let from = run.array_of(name, args.first())?;
    let to = match args.get(1) {
        Some(arg) => run.array_of(name, Some(arg))?,
        None => from.clone(),
    };
    let order = match args.get(2) {
        Some(arg) => run.eval_text(arg)?,
        None => Text::from(if by_key { "@ind_str_asc" } else { "@val_type_asc" }),
    };
    let entries = entries(run, &from, &order)?;
    let count = entries.len();
    let mut to = to.borrow_mut();
    to.clear();
    to.extend(entries.into_iter().enumerate().map(|(n, (key, value))| {
        (Text::from((n + 1).to_string()), if by_key { Value::outside(key) } else { value })
    }));
    Ok(Value::Number(count as f64))
}

/// Returns the keys of an array in `order`, a value of `PROCINFO["sorted_in"]`. An empty `order`
/// means insertion order.
pub(super) fn keys(run: &mut Run<'_>, array: &Array, order: &str) -> Result<Vec<Text>, Stop> {
    Ok(entries(run, array, order)?.into_iter().map(|(key, _)| key).collect())
}

fn entries(run: &mut Run<'_>, array: &Array, order: &str) -> Result<Vec<(Text, Value)>, Stop> {
    let mut entries: Vec<(Text, Value)> =
        array.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let (order, descending) = match order.strip_suffix("_desc") {
        Some(order) => (order, true),
        None => (order.strip_suffix("_asc").unwrap_or(order), false),
    };
    let number = |key: &Text| Value::Text(key.clone()).number();
    match order {
        "" | "@unsorted" => {}
        "@ind_str" => entries.sort_by(|left, right| left.0.cmp(&right.0)),
        "@ind_num" => entries.sort_by(|left, right| {
            by_number(number(&left.0), number(&right.0)).then_with(|| left.0.cmp(&right.0))
        }),
        "@val_num" => entries.sort_by(|left, right| {
            by_number(left.1.number(), right.1.number()).then_with(|| left.0.cmp(&right.0))
        }),
        "@val_str" => entries.sort_by(|left, right| {
            plain(&left.1).cmp(&plain(&right.1)).then_with(|| left.0.cmp(&right.0))
        }),
        "@val_type" => entries.sort_by(|left, right| by_type(&left.1, &right.1)),
        function => return by_function(run, entries, function),
    }
    if descending {
        entries.reverse();
    }
    Ok(entries)
}

fn by_number(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// Orders numbers before strings, and strings before arrays.
fn by_type(left: &Value, right: &Value) -> Ordering {
    let kind = |value: &Value| match value {
        Value::Array(_) => 2,
        value if value.numeric() => 0,
        _ => 1,
    };
    match (kind(left), kind(right)) {
        (0, 0) => by_number(left.number(), right.number()),
        (1, 1) => plain(left).cmp(&plain(right)),
        (left, right) => left.cmp(&right),
    }
}

/// Sorts entries with a user-defined comparison function. The function takes two keys with their
/// values, and returns a negative number, zero or a positive number.
fn by_function(
    run: &mut Run<'_>,
    entries: Vec<(Text, Value)>,
    name: &str,
) -> Result<Vec<(Text, Value)>, Stop> {
    let known = run.program.functions.iter().position(|function| function.name == name);
    let Some(function) = known else {
        return failed(format!("sort comparison function `{name}' is not defined"));
    };
    // The standard library's sort cannot stop on a failure, and may panic if the order is invalid.
    let mut runs: Vec<Vec<(Text, Value)>> = entries.into_iter().map(|entry| vec![entry]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            merged.push(match rest.next() {
                Some(right) => merge(run, left, right, function)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge(
    run: &mut Run<'_>,
    left: Vec<(Text, Value)>,
    right: Vec<(Text, Value)>,
    function: usize,
) -> Result<Vec<(Text, Value)>, Stop> {
    let mut out = Vec::with_capacity(left.len() + right.len());
    let mut left = left.into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let cell = |value: &Value| match value {
            Value::Array(array) => Cell::Array(array.clone()),
            value => Cell::Scalar(value.clone()),
        };
        let frame = [first, second]
            .into_iter()
            .flat_map(|(key, value)| [Cell::Scalar(Value::outside(key.clone())), cell(value)]);
        let order = run.call_with(function, frame.collect())?.number();
        out.extend(if order > 0.0 { right.next() } else { left.next() });
    }
    out.extend(left);
    out.extend(right);
    Ok(out)
}

fn plain(value: &Value) -> Text {
    value.to_text("%.6g")
}
