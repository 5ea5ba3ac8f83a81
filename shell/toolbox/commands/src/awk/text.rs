//! The string functions of awk: `substr`, `split`, `sub`, `match` and similar functions.

use std::rc::Rc;

use super::places::Slot;
use super::record::Splitter;
use super::run::{Run, Stop, failed, place};
use super::syntax::Expr;
use super::value::{Array, Text, Value};
use crate::pattern::{Groups, Posix};

/// Returns the substring that starts at `start`, counted from 1. As in gawk, a `start` below 1 is
/// treated as 1.
pub(super) fn substr(text: &str, start: f64, length: Option<f64>) -> String {
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
pub(super) fn index(text: &str, part: &str) -> f64 {
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
pub(super) fn split<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
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
    let (mut parts, mut between) = (Vec::new(), Vec::new());
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
pub(super) fn split_by_content<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
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
    let (mut parts, mut between, mut end) = (Vec::new(), Vec::new(), 0);
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
pub(super) fn substitute<'a>(
    run: &mut Run<'a>,
    args: &'a [Expr],
    all: bool,
) -> Result<Value, Stop> {
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
    let (mut end, mut count, mut replaced) = (0, 0, 0);
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
pub(super) fn general<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
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
pub(super) fn matched<'a>(run: &mut Run<'a>, args: &'a [Expr]) -> Result<Value, Stop> {
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
