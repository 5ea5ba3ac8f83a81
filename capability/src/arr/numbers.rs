//! Arrays of numbers: their sum, minimum and maximum.

use wattle_rt::{Code, Failure, MemoryCharge, Run};

use super::{Arrays, Handle, numbers};
use crate::decimal::{Decimal, Number};

pub(super) fn sum(run: &mut Run, h: i32) -> Result<f64, Failure> {
    let account = run.account().clone();
    let items = Arrays::of(run).get(Handle(h))?;
    let _scratch = account.hold(items.len() * size_of::<Number<'_>>())?;
    let numbers = numbers(items.iter().map(Vec::as_slice))?;
    let exact = items
        .iter()
        .try_fold(Decimal::ZERO, |sum, item| sum.plus(Decimal::read(item)?))
        .map(|sum| sum.to_string());
    let sum = match exact {
        Some(sum) => return Number::read(sum.as_bytes()).map_or(Ok(0.0), exact_float),
        None => numbers.into_iter().map(Number::to_float).sum::<f64>(),
    };
    if sum.is_finite() {
        Ok(sum)
    } else {
        Err(Failure::new(Code::EBOUND, "the sum is out of the range of a float"))
    }
}

pub(super) fn min(run: &mut Run, h: i32) -> Result<f64, Failure> {
    let (numbers, _scratch) = read(run, h)?;
    numbers.into_iter().min().ok_or_else(no_items).and_then(exact_float)
}

pub(super) fn max(run: &mut Run, h: i32) -> Result<f64, Failure> {
    let (numbers, _scratch) = read(run, h)?;
    numbers.into_iter().max().ok_or_else(no_items).and_then(exact_float)
}

fn no_items() -> Failure {
    Failure::new(Code::EBOUND, "the array has no items")
}

/// Returns a number as a float.
///
/// # Errors
/// `EBOUND` if it is out of range, or a whole number whose digits a float would change.
fn exact_float(number: Number<'_>) -> Result<f64, Failure> {
    let float = number.to_float();
    if float.is_finite() && !number.changes_as_float() {
        return Ok(float);
    }
    let why = if float.is_finite() { "has more digits than" } else { "is out of the range of" };
    let message = format!(
        "{} {why} a float; `arr.sort` by \"num\" compares and keeps all digits",
        wattle_rt::quote(number.text(), crate::QUOTED)
    );
    Err(Failure::new(Code::EBOUND, message))
}

/// Parses an array's items as numbers. Also returns the charge for the memory of the numbers.
fn read(run: &mut Run, h: i32) -> Result<(Vec<Number<'_>>, MemoryCharge), Failure> {
    let account = run.account().clone();
    let items = Arrays::of(run).get(Handle(h))?;
    let scratch = account.hold(items.len() * size_of::<Number<'_>>())?;
    Ok((numbers(items.iter().map(Vec::as_slice))?, scratch))
}
