//! The built-in functions of awk.

use std::rc::Rc;
use std::time::SystemTime;

use super::run::{Run, Stop, failed};
use super::syntax::{Expr, Place};
use super::value::{Cell, Value};
use super::{sort, text};
use crate::clock::{self, Zone};

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
        "split" => return text::split(run, args),
        "patsplit" => return text::split_by_content(run, args),
        "sub" | "gsub" => return text::substitute(run, args, name == "gsub"),
        "gensub" => return text::general(run, args),
        "match" => return text::matched(run, args),
        "asort" | "asorti" => return sort::sorted(run, args, name == "asorti"),
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
            let (start, length) = (values.get(1), values.get(2));
            let start = start.map_or(0.0, Value::number);
            return Ok(Value::text(text::substr(&text(run, 0), start, length.map(Value::number))));
        }
        "index" => {
            let (whole, part) = (text(run, 0), text(run, 1));
            match run.ignores_case() {
                true => text::index(&whole.to_lowercase(), &part.to_lowercase()),
                false => text::index(&whole, &part),
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
    Ok(super::eval::truth(matches!(cell, Some(Cell::Array(_)))))
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
    let zone = match values.get(2).is_some_and(Value::truth) {
        true => Zone::utc("GMT"),
        false => Zone::of_environment(),
    };
    clock::format(&zone.moment(seconds), &format)
}

/// Converts `YYYY MM DD HH MM SS` (UTC or local) to seconds since 1970. Returns -1 on failure.
fn mktime(text: &str, utc: bool) -> f64 {
    let numbers: Vec<i64> = text.split_whitespace().map_while(|part| part.parse().ok()).collect();
    let [year, month, day, hour, minute, second, ..] = numbers.as_slice() else { return -1.0 };
    // Larger numbers do not occur in dates and could overflow.
    if [year, month, day, hour, minute, second].iter().any(|part| part.abs() > 1_000_000_000) {
        return -1.0;
    }
    let local =
        clock::days_before(*year, *month, *day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let zone = if utc { Zone::utc("GMT") } else { Zone::of_environment() };
    zone.epoch(local) as f64
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
