//! Arrays of numbers: their sum, minimum and maximum.

use wattle_rt::{Code, Failure, MemoryCharge, Run};

use super::{Arrays, Handle, numbered};
use crate::decimal::Decimal;

pub(super) fn sum(run: &mut Run, h: i32) -> Result<f64, Failure> {
    let (numbers, _scratch) = read(run, h)?;
    let exact = numbers
        .iter()
        .try_fold(Decimal::ZERO, |sum, (_, text)| sum.plus(Decimal::read(text)?))
        .map(Decimal::to_float);
    let sum = exact.unwrap_or_else(|| numbers.iter().map(|(number, _)| number).sum());
    if sum.is_finite() {
        Ok(sum)
    } else {
        Err(Failure::new(Code::EBOUND, "the sum is out of the range of a float"))
    }
}

pub(super) fn min(run: &mut Run, h: i32) -> Result<f64, Failure> {
    extreme(run, h, f64::min)
}

pub(super) fn max(run: &mut Run, h: i32) -> Result<f64, Failure> {
    extreme(run, h, f64::max)
}

fn extreme(run: &mut Run, h: i32, of: fn(f64, f64) -> f64) -> Result<f64, Failure> {
    let (numbers, _scratch) = read(run, h)?;
    let numbers = numbers.into_iter().map(|(number, _)| number);
    numbers.reduce(of).ok_or_else(|| Failure::new(Code::EBOUND, "the array has no items"))
}

/// A numeric item: its value and its text.
type NumberItem<'a> = (f64, &'a [u8]);

/// Parses an array's items as numbers. Also returns the charge for the memory of the numbers.
fn read(run: &mut Run, h: i32) -> Result<(Vec<NumberItem<'_>>, MemoryCharge), Failure> {
    let account = run.account().clone();
    let items = Arrays::of(run).get(Handle(h))?;
    let scratch = account.hold(items.len() * 2 * size_of::<NumberItem<'_>>())?;
    let numbers = numbered(items.iter().map(Vec::as_slice).collect(), |item| *item)?;
    Ok((numbers, scratch))
}
