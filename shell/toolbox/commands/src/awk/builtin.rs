//! The built-in functions of awk.

use std::rc::Rc;
use std::time::SystemTime;

use regex::Regex;

use super::run::{Run, Stop, failed, place};
use super::syntax::{Expr, Place, Variable};
use super::value::{Array, Text, Value};
use crate::clock;

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
        "sub" | "gsub" => return substitute(run, args, name == "gsub"),
        "gensub" => return general(run, args),
        "match" => return matched(run, args),
        "asort" | "asorti" => return sorted(run, args, name == "asorti"),
        "typeof" => return kind(run, args),
        _ => {}
    }
    let values = args.iter().map(|arg| run.eval(arg)).collect::<Result<Vec<_>, _>>()?;
    let number = |n: usize| values.get(n).map_or(0.0, Value::number);
    let whole = |n: usize| number(n) as u64;
    let text = |run: &Run<'a>, n: usize| {
        values.get(n).map_or_else(|| Rc::from(""), |value| run.text(value))
    };
    let answer = match name {
        "substr" => {
            return Ok(Value::text(substr(
                &text(run, 0),
                number(1),
                values.get(2).map(Value::number),
            )));
        }
        "index" => {
            let (text, part) = (text(run, 0), text(run, 1));
            text.find(&*part).map_or(0.0, |at| {
                text.get(..at).map_or(0, |before| before.chars().count()) as f64 + 1.0
            })
        }
        "sprintf" => return Ok(Value::text(run.formatted(&values))),
        "tolower" => return Ok(Value::text(text(run, 0).to_lowercase())),
        "toupper" => return Ok(Value::text(text(run, 0).to_uppercase())),
        "sin" => number(0).sin(),
        "cos" => number(0).cos(),
        "atan2" => number(0).atan2(number(1)),
        "exp" => number(0).exp(),
        "log" => number(0).ln(),
        "sqrt" => number(0).sqrt(),
        "int" => number(0).trunc(),
        "rand" => random(run),
        "srand" => {
            let before = run.seed;
            run.seed = if values.is_empty() {
                clock::epoch(SystemTime::now()).0 as f64
            } else {
                number(0)
            };
            run.random = run.seed.to_bits() ^ 0x9e37_79b9_7f4a_7c15;
            (0..8).for_each(|_| _ = random(run));
            before
        }
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
        "strftime" => {
            let format =
                if values.is_empty() { Rc::from("%a %b %e %H:%M:%S %Z %Y") } else { text(run, 0) };
            let seconds = values
                .get(1)
                .map_or_else(|| clock::epoch(SystemTime::now()).0, |value| value.number() as i64);
            return Ok(Value::text(clock::format(&clock::moment(seconds, 0), &format)));
        }
        "mktime" => mktime(&text(run, 0)),
        "and" => values.iter().fold(u64::MAX, |all, value| all & value.number() as u64) as f64,
        "or" => values.iter().fold(0, |all, value| all | value.number() as u64) as f64,
        "xor" => values.iter().fold(0, |all, value| all ^ value.number() as u64) as f64,
        "lshift" => whole(0).checked_shl(whole(1) as u32).unwrap_or(0) as f64,
        "rshift" => whole(0).checked_shr(whole(1) as u32).unwrap_or(0) as f64,
        "compl" => (!whole(0) & ((1 << 53) - 1)) as f64,
        "strtonum" => strtonum(&text(run, 0)),
        _ => return failed(format!("function `{name}' is not defined")),
    };
    Ok(Value::Number(answer))
}

/// Returns the minimum and the maximum number of arguments.
fn counts(name: &str) -> (usize, usize) {
    match name {
        "systime" | "rand" => (0, 0),
        "length" | "srand" | "fflush" => (0, 1),
        "strftime" => (0, 3),
        "sin" | "cos" | "exp" | "log" | "sqrt" | "int" | "tolower" | "toupper" | "system"
        | "compl" | "strtonum" | "typeof" => (1, 1),
        "close" | "mktime" => (1, 2),
        "index" | "atan2" | "lshift" | "rshift" => (2, 2),
        "substr" | "sub" | "gsub" | "match" => (2, 3),
        "split" => (2, 4),
        "gensub" => (3, 4),
        "asort" | "asorti" => (1, 3),
        "and" | "or" | "xor" => (2, usize::MAX),
        _ => (1, usize::MAX),
    }
}

fn length<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    if let Some(variable) = args.first().and_then(bare)
        && run.is_array(variable)
    {
        return Ok(Value::Number(run.array(variable)?.borrow().len() as f64));
    }
    let text = match args.first() {
        Some(arg) => run.eval_text(arg)?,
        None => Rc::from(run.whole_text()),
    };
    Ok(Value::Number(text.chars().count() as f64))
}

fn bare(expr: &Expr) -> Option<Variable> {
    match expr {
        Expr::Read(Place::Variable(variable)) => Some(*variable),
        _ => None,
    }
}

fn array_of(run: &mut Run<'_>, name: &str, arg: Option<&Expr>) -> Result<Array, Stop> {
    match arg.and_then(bare) {
        Some(variable) => run.array(variable),
        None => failed(format!("{name}() needs an array")),
    }
}

/// Returns a substring from `start` (the first character is 1), rounded as POSIX requires.
fn substr(text: &str, start: f64, length: Option<f64>) -> String {
    let round = |number: f64| if number.is_nan() { 0.0 } else { number.round_ties_even() };
    let from = round(start);
    let to = length.map_or(f64::INFINITY, |length| {
        if length.is_nan() { f64::NEG_INFINITY } else { from + round(length) }
    });
    let first = from.max(1.0);
    if to <= first {
        return String::new();
    }
    let skip = (first - 1.0) as usize;
    let count = if to.is_finite() { (to - first) as usize } else { usize::MAX };
    if text.is_ascii() {
        let end = skip.saturating_add(count).min(text.len());
        return text.get(skip.min(end)..end).unwrap_or_default().to_owned();
    }
    text.chars().skip(skip).take(count).collect()
}

fn split<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let text = match args.first() {
        Some(arg) => run.eval_text(arg)?,
        None => Rc::from(""),
    };
    let array = array_of(run, "split", args.get(1))?;
    let splitter = match args.get(2) {
        Some(Expr::Regex(_)) => {
            super::record::Splitter::Regex(run.regex(args.get(2).unwrap_or(&Expr::Number(0.0)))?)
        }
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
    splitter.split(&text, false, |part| parts.push(Value::outside(part)));
    let count = parts.len();
    let mut array = array.borrow_mut();
    array.clear();
    array.extend(
        parts.into_iter().enumerate().map(|(n, part)| (Text::from((n + 1).to_string()), part)),
    );
    Ok(Value::Number(count as f64))
}

fn substitute<'a>(run: &mut Run<'a>, args: &'a [Expr], all: bool) -> Result<Value, Stop> {
    let [pattern, replacement, rest @ ..] = args else { return Ok(Value::Nothing) };
    let regex = run.regex(pattern)?;
    let replacement = run.eval_text(replacement)?;
    let place = match rest.first() {
        None => None,
        Some(Expr::Read(place)) => Some(place),
        Some(Expr::Group(items)) if matches!(items.as_slice(), [Expr::Read(_)]) => {
            match items.first() {
                Some(Expr::Read(place)) => Some(place),
                _ => None,
            }
        }
        Some(_) => {
            return failed(format!(
                "{}() needs something to change as its third argument",
                if all { "gsub" } else { "sub" }
            ));
        }
    };
    let text = match rest.first() {
        None => Rc::from(run.whole_text()),
        Some(arg) => run.eval_text(arg)?,
    };
    let (changed, count) =
        replace(&regex, &text, if all { None } else { Some(1) }, |found, out| {
            amp(&replacement, found, out)
        });
    if count > 0 {
        match place {
            Some(place) => run.assign(place, Value::text(changed))?,
            None => run.assign_field(0, Value::text(changed))?,
        }
    }
    Ok(Value::Number(count as f64))
}

/// Replaces all matches, or only the nth.
fn replace(
    regex: &Regex,
    text: &str,
    only: Option<usize>,
    mut put: impl FnMut(&regex::Captures<'_>, &mut String),
) -> (String, usize) {
    let mut out = String::with_capacity(text.len());
    let (mut end, mut count, mut replaced) = (0, 0, 0);
    let mut last_end = None;
    for found in regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        // Nothing is found right behind what was found.
        if whole.is_empty() && last_end == Some(whole.start()) {
            continue;
        }
        last_end = Some(whole.end());
        count += 1;
        if only.is_some_and(|only| only != count) {
            continue;
        }
        out.push_str(text.get(end..whole.start()).unwrap_or_default());
        put(&found, &mut out);
        end = whole.end();
        replaced += 1;
        if only.is_some() {
            break;
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    (out, replaced)
}

/// Returns a replacement with `&` replaced by the match.
fn amp(replacement: &str, found: &regex::Captures<'_>, out: &mut String) {
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next_if(|next| *next == '&' || *next == '\\') {
                Some(next) => out.push(next),
                None => out.push('\\'),
            },
            '&' => out.push_str(found.get(0).map_or("", |whole| whole.as_str())),
            other => out.push(other),
        }
    }
}

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
        let group = |number: usize| found.get(number).map_or("", |group| group.as_str());
        let mut letters = replacement.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some(digit) if digit.is_ascii_digit() => {
                        out.push_str(group(digit as usize - '0' as usize))
                    }
                    Some(other) => out.push(other),
                    None => out.push('\\'),
                },
                '&' => out.push_str(group(0)),
                other => out.push(other),
            }
        }
    });
    Ok(Value::text(changed))
}

fn matched<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let [text, pattern, rest @ ..] = args else { return Ok(Value::Nothing) };
    let text = run.eval_text(text)?;
    let regex = run.regex(pattern)?;
    let found = regex.captures(&text);
    let letters =
        |bytes: usize| text.get(..bytes).map_or(0, |before| before.chars().count()) as f64;
    if !rest.is_empty() {
        let array = array_of(run, "match", rest.first())?;
        let between = run.global_text(place::SUBSEP);
        let mut array = array.borrow_mut();
        array.clear();
        for (n, group) in found
            .iter()
            .flat_map(|found| found.iter().enumerate())
            .filter_map(|(n, group)| Some((n, group?)))
        {
            array.insert(Rc::from(n.to_string()), Value::outside(group.as_str()));
            array.insert(
                Rc::from(format!("{n}{between}start")),
                Value::Number(letters(group.start()) + 1.0),
            );
            array.insert(
                Rc::from(format!("{n}{between}length")),
                Value::Number(letters(group.end()) - letters(group.start())),
            );
        }
    }
    let (start, length) = match found.and_then(|found| found.get(0)) {
        Some(whole) => {
            (letters(whole.start()) + 1.0, letters(whole.end()) - letters(whole.start()))
        }
        None => (0.0, -1.0),
    };
    run.set_global(place::RSTART, Value::Number(start));
    run.set_global(place::RLENGTH, Value::Number(length));
    Ok(Value::Number(start))
}

fn sorted<'a>(run: &mut Run<'a>, args: &'a [Expr], by_key: bool) -> Result<Value, Stop> {
    let from = array_of(run, "asort", args.first())?;
    let to = match args.get(1) {
        Some(arg) => array_of(run, "asort", Some(arg))?,
        None => from.clone(),
    };
    let order = match args.get(2) {
        Some(arg) => run.eval_text(arg)?,
        None => Rc::from(if by_key { "@ind_str_asc" } else { "@val_type_asc" }),
    };
    let sorted: Vec<Value> = keys(&from, Some(&order))
        .into_iter()
        .map(|key| {
            if by_key {
                Value::outside(key)
            } else {
                from.borrow().get(&key).cloned().unwrap_or_default()
            }
        })
        .collect();
    let count = sorted.len();
    let mut to = to.borrow_mut();
    to.clear();
    to.extend(
        sorted.into_iter().enumerate().map(|(n, value)| (Text::from((n + 1).to_string()), value)),
    );
    Ok(Value::Number(count as f64))
}

/// Returns the keys of an array in insertion order, or in that of `PROCINFO["sorted_in"]`.
pub(crate) fn keys(array: &Array, order: Option<&str>) -> Vec<Text> {
    let array = array.borrow();
    let mut entries: Vec<(&Text, &Value)> = array.iter().collect();
    let order = order.unwrap_or_default();
    let by_number =
        |left: f64, right: f64| left.partial_cmp(&right).unwrap_or(std::cmp::Ordering::Equal);
    let text = |value: &Value| value.to_text("%.6g");
    match order.trim_end_matches("_asc").trim_end_matches("_desc") {
        "@ind_str" => entries.sort_by(|left, right| left.0.cmp(right.0)),
        "@ind_num" => entries.sort_by(|left, right| {
            let number = |key: &Text| Value::Text(key.clone()).number();
            by_number(number(left.0), number(right.0)).then_with(|| left.0.cmp(right.0))
        }),
        "@val_num" => entries.sort_by(|left, right| {
            by_number(left.1.number(), right.1.number()).then_with(|| left.0.cmp(right.0))
        }),
        "@val_str" => entries.sort_by(|left, right| {
            text(left.1).cmp(&text(right.1)).then_with(|| left.0.cmp(right.0))
        }),
        "@val_type" => entries.sort_by(|left, right| match (left.1.numeric(), right.1.numeric()) {
            (true, true) => by_number(left.1.number(), right.1.number()),
            (true, false) => std::cmp::Ordering::Less,
            (false, true) => std::cmp::Ordering::Greater,
            (false, false) => text(left.1).cmp(&text(right.1)),
        }),
        _ => {}
    }
    if order.ends_with("_desc") {
        entries.reverse();
    }
    entries.into_iter().map(|(key, _)| key.clone()).collect()
}

fn kind<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
    let Some(arg) = args.first() else { return Ok(Value::Nothing) };
    if let Some(variable) = bare(arg)
        && run.is_array(variable)
    {
        return Ok(Value::text("array"));
    }
    Ok(Value::text(match run.eval(arg)? {
        Value::Nothing => "untyped",
        Value::Number(_) => "number",
        Value::Text(_) => "string",
        Value::Either(..) => "strnum",
    }))
}

/// Returns a random number from 0 to 1.
fn random(run: &mut Run<'_>) -> f64 {
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    (run.random >> 11) as f64 / (1_u64 << 53) as f64
}

fn mktime(text: &str) -> f64 {
    let numbers: Vec<i64> = text.split_whitespace().map_while(|part| part.parse().ok()).collect();
    let [year, month, day, hour, minute, second, ..] = numbers.as_slice() else { return -1.0 };
    (clock::days_before(*year, *month, *day) * 86_400 + hour * 3_600 + minute * 60 + second) as f64
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
