//! The functions on one or two numbers, and comparisons.

use wattle_rt::{Failure, Run};

use super::arena::with;
use super::number::Op;
use super::{ValueHandle, values};

pub(super) fn add(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| values.calculate(Op::Add, a, b)).map(ValueHandle)
}

pub(super) fn sub(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| values.calculate(Op::Sub, a, b)).map(ValueHandle)
}

pub(super) fn mul(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| values.calculate(Op::Mul, a, b)).map(ValueHandle)
}

pub(super) fn div(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| values.calculate(Op::Div, a, b)).map(ValueHandle)
}

pub(super) fn rem(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| values.calculate(Op::Rem, a, b)).map(ValueHandle)
}

pub(super) fn min(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    let order = values(run).compare(a, b, "min takes numbers or strings")?;
    Ok(ValueHandle(if order.is_le() { a } else { b }))
}

pub(super) fn max(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    let order = values(run).compare(a, b, "max takes numbers or strings")?;
    Ok(ValueHandle(if order.is_ge() { a } else { b }))
}

pub(super) fn neg(run: &mut Run, a: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let answer = values.number(a, "- takes numbers")?.negated()?;
        values.keep(answer)
    })
    .map(ValueHandle)
}

pub(super) fn abs(run: &mut Run, a: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let number = values.number(a, "abs takes numbers")?;
        if !number.is_negative() {
            return Ok(a);
        }
        let answer = number.negated()?;
        values.keep(answer)
    })
    .map(ValueHandle)
}

pub(super) fn eq(run: &mut Run, a: i32, b: i32) -> Result<bool, Failure> {
    values(run).equal(a, b)
}

pub(super) fn cmp(run: &mut Run, a: i32, b: i32) -> Result<i32, Failure> {
    let order = values(run).compare(a, b, "a comparison takes two numbers or two strings")?;
    Ok(order as i32)
}
