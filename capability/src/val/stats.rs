//! Sums and statistics of lists of numbers.

use std::cmp::Ordering;

use wattle_rt::{Code, Failure, Run};

use super::ValueHandle;
use super::arena::{Values, with};
use super::number::{Answer, Number, Op, as_number, calculate};
use crate::decimal::Decimal;

impl Values {
    /// Checks that a list contains only numbers, and returns a copy of its items.
    fn numbers(&mut self, x: i32, what: &str) -> Result<Vec<i32>, Failure> {
        let items = self.copied(x, &format!("{what} takes a list"))?;
        for (at, item) in items.iter().enumerate() {
            if as_number(self.view(*item)?).is_none() {
                self.remember(*item, x, at);
                let takes = format!("{what} takes numbers");
                return Err(self
                    .number(*item, &takes)
                    .err()
                    .unwrap_or_else(|| self.wrong(*item, &takes, "")));
            }
        }
        Ok(items)
    }

    /// Returns a number of a list that contains only numbers.
    fn number_at(&self, item: i32) -> Result<Number<'_>, Failure> {
        self.number(item, "")
    }

    /// Adds numbers. The sum is exact unless one of them is a float.
    fn total(&self, items: &[i32]) -> Result<Answer, Failure> {
        if let Some(sum) = self.short_total(items)? {
            return Ok(sum);
        }
        items.iter().try_fold(Answer::Whole(0), |sum, item| {
            calculate(Op::Add, sum.number(), self.number_at(*item)?)
        })
    }

    /// Adds whole numbers and decimals of few digits. Returns `None` if there are others.
    fn short_total(&self, items: &[i32]) -> Result<Option<Answer>, Failure> {
        let mut sum = Decimal::ZERO;
        let mut is_whole = true;
        for item in items {
            let number = self.number_at(*item)?;
            is_whole &= matches!(number, Number::Whole(_));
            let Some(next) = number.small_decimal().and_then(|number| sum.plus(number)) else {
                return Ok(None);
            };
            sum = next;
        }
        let text = sum.to_string();
        Ok(match text.parse() {
            Ok(whole) => Some(Answer::Whole(whole)),
            // The sum of whole numbers must fit, which the exact way reports.
            Err(_) if is_whole => None,
            Err(_) => Some(Answer::Decimal(text)),
        })
    }

    /// Returns the items in ascending order. The list must not be empty.
    fn ascending(&mut self, x: i32, what: &str) -> Result<Vec<i32>, Failure> {
        let items = self.numbers(x, what)?;
        if items.is_empty() {
            return Err(self.is_empty(x, what));
        }
        let positions = self.sorted(&items, false, what)?;
        Ok(positions.into_iter().filter_map(|at| items.get(at).copied()).collect())
    }
}

pub(super) fn sum(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let items = values.numbers(x, "sum")?;
        let sum = values.total(&items)?;
        values.keep(sum)
    })
    .map(ValueHandle)
}

pub(super) fn avg(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let items = values.numbers(x, "avg")?;
        if items.is_empty() {
            return Err(values.is_empty(x, "average"));
        }
        let sum = values.total(&items)?;
        let count = Number::Whole(i64::try_from(items.len()).unwrap_or(i64::MAX));
        let average = calculate(Op::Div, sum.number(), count)?;
        values.keep(average)
    })
    .map(ValueHandle)
}

pub(super) fn median(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let items = values.ascending(x, "median")?;
        let middle = items.len() / 2;
        let upper = items.get(middle).copied().unwrap_or_default();
        if items.len() % 2 == 1 {
            return Ok(upper);
        }
        let lower = items.get(middle - 1).copied().unwrap_or_default();
        let sum = calculate(Op::Add, values.number_at(lower)?, values.number_at(upper)?)?;
        let median = calculate(Op::Div, sum.number(), Number::Whole(2))?;
        values.keep(median)
    })
    .map(ValueHandle)
}

pub(super) fn stdev(run: &mut Run, x: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let items = values.numbers(x, "stdev")?;
        if items.len() < 2 {
            let why = "stdev needs at least 2 numbers";
            return Err(values.out_of_range(x, why));
        }
        let mut floats = Vec::with_capacity(items.len());
        for item in items {
            floats.push(values.number_at(item)?.to_float());
        }
        #[expect(clippy::cast_precision_loss, reason = "a list has far fewer items than 2^53")]
        let count = floats.len() as f64;
        let mean = floats.iter().sum::<f64>() / count;
        let squares: f64 = floats.iter().map(|x| (x - mean) * (x - mean)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        if !deviation.is_finite() {
            return Err(values.out_of_range(x, "the result is out of the range of a float"));
        }
        values.float(deviation)
    })
    .map(ValueHandle)
}

pub(super) fn percentile(run: &mut Run, x: i32, p: f64) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        if !(0.0..=100.0).contains(&p) {
            let why = format!("a percentile is from 0 to 100, not {p}");
            return Err(Failure::new(Code::EBOUND, why));
        }
        let items = values.ascending(x, "percentile")?;
        #[expect(clippy::cast_precision_loss, reason = "a list has far fewer items than 2^53")]
        let rank = (p * items.len() as f64 / 100.0).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the rank is from 0 to the length of the list"
        )]
        let at = (rank as usize).saturating_sub(1);
        Ok(items.get(at).copied().unwrap_or_default())
    })
    .map(ValueHandle)
}

/// Raises a number to a power. Whole and decimal numbers are exact if the exponent is whole and not
/// negative.
pub(super) fn power(a: Number<'_>, b: Number<'_>) -> Result<Answer, Failure> {
    let exact = match (a, b.to_whole()) {
        (Number::Float(_), _) | (_, None) => None,
        _ if matches!(b, Number::Float(_)) => None,
        (_, Some(exponent)) => u32::try_from(exponent).ok(),
    };
    let Some(exponent) = exact else {
        let power = a.to_float().powf(b.to_float());
        if power.is_finite() {
            return Ok(Answer::Float(power));
        }
        let why = format!("pow {} {} is not a finite number", a.text(), b.text());
        return Err(Failure::new(Code::EBOUND, why));
    };
    // The base is squared for each bit of the exponent. Each step checks the size of its result.
    let (mut power, mut base) = (a.one(), a.answer());
    let mut rest = exponent;
    while rest > 0 {
        if rest & 1 == 1 {
            power = calculate(Op::Mul, power.number(), base.number())?;
        }
        rest >>= 1;
        if rest > 0 {
            base = calculate(Op::Mul, base.number(), base.number())?;
        }
    }
    Ok(power)
}

pub(super) fn pow(run: &mut Run, a: i32, b: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let takes = "pow takes numbers";
        let power = power(values.number(a, takes)?, values.number(b, takes)?)?;
        values.keep(power)
    })
    .map(ValueHandle)
}

/// Maximum number of decimal places that a number is rounded to.
const MAX_PLACES: i32 = 1_000;

pub(super) fn round(run: &mut Run, a: i32, digits: i32) -> Result<ValueHandle, Failure> {
    with(run, |values| {
        let number = values.number(a, "round takes a number")?;
        if !(-MAX_PLACES..=MAX_PLACES).contains(&digits) {
            let why = format!("a number is rounded to -{MAX_PLACES} to {MAX_PLACES} digits");
            return Err(Failure::new(Code::EBOUND, why));
        }
        let Some(rounded) = number.rounded(digits.into())? else { return Ok(a) };
        values.keep(rounded)
    })
    .map(ValueHandle)
}

impl Answer {
    pub(super) fn number(&self) -> Number<'_> {
        match self {
            Answer::Whole(n) => Number::Whole(*n),
            Answer::Decimal(text) => Number::Decimal(text),
            Answer::Float(x) => Number::Float(*x),
            Answer::Big(n) => Number::Big(n),
        }
    }
}

impl Number<'_> {
    fn answer(self) -> Answer {
        match self {
            Number::Whole(n) => Answer::Whole(n),
            Number::Decimal(text) => Answer::Decimal(text.to_owned()),
            Number::Float(x) => Answer::Float(x),
            Number::Big(n) => Answer::Big(n.clone()),
        }
    }

    /// Returns 1, as a big number if this is one.
    fn one(self) -> Answer {
        match self {
            Number::Big(_) => Answer::Big(1.into()),
            _ => Answer::Whole(1),
        }
    }

    /// Rounds to decimal places; half is rounded away from 0. Returns `None` if the number has no
    /// more places. A float stays a float.
    pub(super) fn rounded(self, places: i64) -> Result<Option<Answer>, Failure> {
        let Some(exact) = self.exact()?.rounded(places)? else { return Ok(None) };
        let answer = exact.answer();
        Ok(Some(match self {
            Number::Float(_) => Answer::Float(answer.number().to_float()),
            Number::Big(n) if n.bits() > 0 => match answer {
                Answer::Whole(n) => Answer::Big(n.into()),
                Answer::Decimal(text) => match Number::Decimal(&text).to_big() {
                    Some(n) => Answer::Big(n),
                    None => Answer::Decimal(text),
                },
                answer => answer,
            },
            Number::Whole(_) if matches!(answer, Answer::Decimal(_)) => {
                let why = "the rounded number does not fit a long; (big …) has no bound";
                return Err(Failure::new(Code::EBOUND, why));
            }
            _ => answer,
        }))
    }

    pub(super) fn is_negative(self) -> bool {
        self.compare(Number::Whole(0)) == Ordering::Less
    }
}
