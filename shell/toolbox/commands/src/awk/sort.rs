//! The sorting of arrays: `asort`, `asorti` and `PROCINFO["sorted_in"]`.

use std::cmp::Ordering;

use super::run::{Run, Stop, failed};
use super::syntax::Expr;
use super::value::{Array, Cell, Text, Value};

/// Runs `asort`, or `asorti` if `by_key` is true.
pub(super) fn sorted<'a>(run: &mut Run<'a>, args: &'a [Expr], by_key: bool) -> Result<Value, Stop> {
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
            text(&left.1).cmp(&text(&right.1)).then_with(|| left.0.cmp(&right.0))
        }),
        "@val_type" => entries.sort_by(|left, right| by_type(&left.1, &right.1)),
        function => return by_function(run, entries, function),
    }
    if descending {
        entries.reverse();
    }
    Ok(entries)
}

fn text(value: &Value) -> Text {
    value.to_text("%.6g")
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
        (1, 1) => text(left).cmp(&text(right)),
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
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
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
