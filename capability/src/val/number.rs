//! Arithmetic of values. Whole numbers of 64 bits overflow with an error, decimals are exact, and a
//! float makes the result a float.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use wattle_rt::{Code, Failure};

use super::arena::{Values, View};
use crate::decimal::{Decimal, Number as Written};

/// Maximum number of digits of an exact decimal result.
const MAX_DIGITS: usize = 10_000;
/// Maximum number of bits of a big number.
pub(super) const MAX_BITS: u64 = 1 << 20;

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number<'v> {
    Whole(i64),
    Decimal(&'v str),
    Float(f64),
    Big(&'v BigInt),
}

/// The result of an operation.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Whole(i64),
    /// A decimal number as JSON.
    Decimal(String),
    Float(f64),
    Big(BigInt),
}

/// An operation on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl Op {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Op::Add => "+",
            Op::Sub => "-",
            Op::Mul => "*",
            Op::Div => "/",
            Op::Rem => "%",
        }
    }
}

impl Number<'_> {
    /// Returns the nearest float. It is infinite if the number is out of range.
    pub(super) fn to_float(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the nearest float is meant")]
            Number::Whole(n) => n as f64,
            Number::Decimal(text) => text.parse().unwrap_or(f64::NAN),
            Number::Float(x) => x,
            Number::Big(n) => big_to_float(n),
        }
    }

    /// Returns the number as JSON: as written, or in its shortest exact form.
    pub(super) fn text(self) -> String {
        match self {
            Number::Whole(n) => n.to_string(),
            Number::Decimal(text) => text.to_owned(),
            Number::Float(x) => float_text(x),
            Number::Big(n) => n.to_string(),
        }
    }

    /// Returns the number as a whole number, if it is one of 64 bits.
    pub(super) fn to_whole(self) -> Option<i64> {
        match self {
            Number::Whole(n) => Some(n),
            Number::Big(n) => i64::try_from(n).ok(),
            // The bounds are exact: the first float past them is out of range.
            #[expect(clippy::cast_possible_truncation, reason = "the float is whole and in range")]
            Number::Float(x) => {
                let fits = x.trunc() == x && (-TWO_TO_63..TWO_TO_63).contains(&x);
                fits.then_some(x as i64)
            }
            Number::Decimal(text) => Exact::read(text).ok()?.to_whole()?.try_into().ok(),
        }
    }

    /// Returns the number as a whole number of any size, if it is one.
    pub(super) fn to_big(self) -> Option<BigInt> {
        match self {
            Number::Whole(n) => Some(n.into()),
            Number::Big(n) => Some(n.clone()),
            number => number.exact().ok()?.to_whole(),
        }
    }

    /// Returns the exact value of a number. A float has the value of its shortest text.
    pub(super) fn exact(self) -> Result<Exact, Failure> {
        match self {
            Number::Whole(n) => Ok(Exact { digits: n.into(), scale: 0 }),
            Number::Big(n) => Ok(Exact { digits: n.clone(), scale: 0 }),
            Number::Decimal(text) => Exact::read(text),
            Number::Float(x) => Exact::read(&float_text(x)),
        }
    }

    /// Returns the number with the opposite sign. A decimal keeps its digits.
    pub(super) fn negated(self) -> Result<Answer, Failure> {
        Ok(match self {
            Number::Decimal(text) => Answer::Decimal(match text.strip_prefix('-') {
                Some(text) => text.to_owned(),
                None => format!("-{text}"),
            }),
            Number::Float(x) => Answer::Float(-x),
            number => calculate(Op::Sub, Number::Whole(0), number)?,
        })
    }

    /// Returns the number as a decimal of few digits, if it is one.
    pub(super) fn small_decimal(self) -> Option<Decimal> {
        match self {
            Number::Whole(n) => Some(Decimal::from(n)),
            Number::Decimal(text) => Decimal::read(text.as_bytes()),
            Number::Float(_) | Number::Big(_) => None,
        }
    }

    /// Compares two numbers exactly. A float has the value of its shortest text.
    pub(super) fn compare(self, other: Number<'_>) -> Ordering {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Number::Big(a), Number::Big(b)) => a.cmp(b),
            (Number::Big(a), Number::Whole(b)) => a.cmp(&BigInt::from(b)),
            (Number::Whole(a), Number::Big(b)) => BigInt::from(a).cmp(b),
            (a, b) => {
                let (a, b) = (a.text(), b.text());
                Written::read(a.as_bytes()).cmp(&Written::read(b.as_bytes()))
            }
        }
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Writes a float in its shortest exact form. Very large and very small numbers get an exponent.
pub(super) fn float_text(x: f64) -> String {
    crate::str::number::float_text(x)
}

fn big_to_float(n: &BigInt) -> f64 {
    // The text of a number that is out of range is long.
    match (n.bits() > 1_024, n.sign()) {
        (true, Sign::Minus) => f64::NEG_INFINITY,
        (true, _) => f64::INFINITY,
        (false, _) => n.to_string().parse().unwrap_or(f64::NAN),
    }
}

/// An exact decimal number: `digits` divided by ten to the power of `scale`.
#[derive(Clone, Debug)]
pub(super) struct Exact {
    digits: BigInt,
    scale: i64,
}

fn too_many_digits() -> Failure {
    let why = format!(
        "the exact result has more than {MAX_DIGITS} digits; (float X) makes an operand \
         approximate"
    );
    Failure::new(Code::EBOUND, why)
}

/// Returns ten to a power of at most [`MAX_DIGITS`].
fn power_of_ten(exponent: i64) -> Result<BigInt, Failure> {
    match u32::try_from(exponent) {
        Ok(exponent) if exponent as usize <= 2 * MAX_DIGITS => Ok(BigInt::from(10).pow(exponent)),
        _ => Err(too_many_digits()),
    }
}

impl Exact {
    /// Parses a number.
    pub(super) fn read(text: &str) -> Result<Exact, Failure> {
        let number = Written::read(text.as_bytes())
            .ok_or_else(|| Failure::new(Code::EPARSE, format!("{text:?} is not a number")))?;
        let (digits, exponent) = number.parts().ok_or_else(too_many_digits)?;
        if digits.len() > MAX_DIGITS || exponent.unsigned_abs() > 1 << 40 {
            return Err(too_many_digits());
        }
        let digits = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default();
        Ok(Exact { digits, scale: -exponent })
    }

    /// Returns true if the number has no digits after the decimal point.
    pub(super) fn is_whole(&self) -> bool {
        self.scale <= 0 || self.to_whole().is_some()
    }

    /// Returns the number without the digits after its decimal point. Returns `None` if it has too
    /// many digits.
    pub(super) fn truncated(&self) -> Option<BigInt> {
        if self.scale <= 0 {
            return self.to_whole();
        }
        // A number with more decimals than digits is less than 1.
        match power_of_ten(self.scale) {
            Ok(power) => Some(&self.digits / power),
            Err(_) => Some(BigInt::default()),
        }
    }

    /// Rounds to decimal places; half is rounded away from 0. Returns `None` if the number has no
    /// more places.
    pub(super) fn rounded(self, places: i64) -> Result<Option<Exact>, Failure> {
        let dropped = self.scale - places;
        if dropped <= 0 {
            return Ok(None);
        }
        // A number of fewer digits than are dropped is less than half.
        if dropped > MAX_DIGITS as i64 + 1 {
            return Ok(Some(Exact { digits: BigInt::default(), scale: 0 }));
        }
        let power = power_of_ten(dropped)?;
        let half = &power / 2 * if self.digits.sign() == Sign::Minus { -1 } else { 1 };
        Ok(Some(Exact { digits: (self.digits + half) / power, scale: places }))
    }

    fn is_zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    /// Returns the digits of both numbers with the same scale.
    fn align(self, other: Exact) -> Result<(BigInt, BigInt, i64), Failure> {
        let scale = self.scale.max(other.scale);
        let scaled = |number: Exact| -> Result<BigInt, Failure> {
            if number.is_zero() {
                return Ok(number.digits);
            }
            Ok(number.digits * power_of_ten(scale - number.scale)?)
        };
        Ok((scaled(self)?, scaled(other)?, scale))
    }

    /// Returns the number, if it is whole and has few digits.
    fn to_whole(&self) -> Option<BigInt> {
        if self.scale <= 0 {
            return Some(&self.digits * power_of_ten(-self.scale).ok()?);
        }
        let power = power_of_ten(self.scale).ok()?;
        let is_whole = (&self.digits % &power).sign() == Sign::NoSign;
        is_whole.then(|| &self.digits / &power)
    }

    fn checked(self) -> Result<Exact, Failure> {
        // A digit has more than 3 bits.
        if self.digits.bits() > 3 * MAX_DIGITS as u64 || self.scale.unsigned_abs() > 1 << 40 {
            return Err(too_many_digits());
        }
        Ok(self)
    }

    /// Returns the number in its shortest form: plain if few zeros are added to its digits, and
    /// otherwise with an exponent.
    pub(super) fn answer(self) -> Answer {
        const MAX_ZEROS: i64 = 30;
        let (sign, digits) = (self.digits.sign(), self.digits.magnitude().to_string());
        let kept = digits.trim_end_matches('0');
        let scale = self.scale - (digits.len() - kept.len()) as i64;
        if kept.is_empty() {
            return Answer::Whole(0);
        }
        let sign = if sign == Sign::Minus { "-" } else { "" };
        let count = kept.len() as i64;
        // The number of digits before the decimal point.
        let places = count - scale;
        let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or(0));
        let text = if scale <= 0 && -scale <= MAX_ZEROS {
            let whole = format!("{sign}{kept}{}", zeros(-scale));
            if let Ok(whole) = whole.parse() {
                return Answer::Whole(whole);
            }
            whole
        } else if scale > 0 && places > 0 {
            let at = usize::try_from(places).unwrap_or(0);
            let (whole, decimals) = kept.split_at_checked(at).unwrap_or_default();
            format!("{sign}{whole}.{decimals}")
        } else if scale > 0 && -places <= MAX_ZEROS {
            format!("{sign}0.{}{kept}", zeros(-places))
        } else {
            let (first, rest) = kept.split_at_checked(1).unwrap_or_default();
            let point = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{point}{rest}e{}", places - 1)
        };
        Answer::Decimal(text)
    }

    pub(super) fn times_hundred(self) -> Exact {
        Exact { scale: self.scale - 2, ..self }
    }

    /// Returns the number with exactly this many decimal places; half is rounded away from 0.
    pub(super) fn fixed(self, places: usize) -> Result<String, Failure> {
        let wanted = i64::try_from(places).unwrap_or(i64::MAX);
        let rounded = self.clone().rounded(wanted)?.unwrap_or(self);
        let digits = match rounded.is_zero() {
            true => rounded.digits,
            false => rounded.digits * power_of_ten(wanted - rounded.scale)?,
        };
        let text = format!("{:0>1$}", digits.magnitude().to_string(), places + 1);
        let (whole, decimals) = text.split_at_checked(text.len() - places).unwrap_or_default();
        let sign = if digits.sign() == Sign::Minus { "-" } else { "" };
        let point = if places == 0 { "" } else { "." };
        Ok(format!("{sign}{whole}{point}{decimals}"))
    }

    /// Divides two numbers. Returns the exact quotient if it is whole, and otherwise the nearest
    /// float.
    fn divide(self, other: Exact) -> Result<Answer, Failure> {
        /// The digits of a quotient, which are more than those of a float.
        const DIGITS: i64 = 40;
        let count = |n: &BigInt| n.bits() as i64 * 301 / 1_000;
        // A quotient of numbers of very different sizes is not made of their digits.
        let far = (self.scale - other.scale).abs() > MAX_DIGITS as i64;
        if !far {
            let (a, b, _) = self.clone().align(other.clone())?;
            if (&a % &b).sign() == Sign::NoSign {
                return Ok(Exact { digits: a / b, scale: 0 }.checked()?.answer());
            }
        }
        let more = (DIGITS + count(&other.digits) - count(&self.digits)).max(0);
        let numerator = &self.digits * power_of_ten(more)?;
        let quotient = &numerator / &other.digits;
        // A digit after the last one stands for the remainder.
        let rest = (numerator % &other.digits).sign() != Sign::NoSign;
        let exponent = other.scale - self.scale - more;
        let text = format!("{quotient}{}e{}", u8::from(rest), exponent - 1);
        Ok(Answer::Float(text.parse().unwrap_or(f64::NAN)))
    }
}

/// Calculates with two numbers.
///
/// # Errors
/// `EBOUND` if the result does not fit, or if the second number of a division is 0.
pub(super) fn calculate(op: Op, a: Number<'_>, b: Number<'_>) -> Result<Answer, Failure> {
    let answer = match (a, b) {
        (Number::Whole(x), Number::Whole(y)) => whole(op, x, y)?,
        (Number::Float(_), _) | (_, Number::Float(_)) => {
            Answer::Float(float(op, a.to_float(), b.to_float())?)
        }
        (Number::Big(x), Number::Big(y)) => big(op, x, y)?,
        (Number::Big(x), Number::Whole(y)) => big(op, x, &y.into())?,
        (Number::Whole(x), Number::Big(y)) => big(op, &x.into(), y)?,
        _ => exact(op, a, b)?,
    };
    match answer {
        Answer::Float(x) if !x.is_finite() => Err(Failure::new(
            Code::EBOUND,
            format!(
                "{} {} {} is out of the range of a float",
                short(&a.text()),
                op.sign(),
                short(&b.text())
            ),
        )),
        answer => Ok(answer),
    }
}

fn short(text: &str) -> std::borrow::Cow<'_, str> {
    wattle_rt::truncate(text, crate::QUOTED)
}

fn division_by_zero() -> Failure {
    Failure::new(Code::EBOUND, "division by zero; check the divisor first")
}

fn whole(op: Op, a: i64, b: i64) -> Result<Answer, Failure> {
    const EXACT: std::ops::RangeInclusive<i64> = -(1 << 53)..=1 << 53;
    let result = match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div | Op::Rem if b == 0 => return Err(division_by_zero()),
        Op::Rem => Some(a.wrapping_rem(b)),
        Op::Div if a.wrapping_rem(b) == 0 => a.checked_div(b),
        Op::Div if EXACT.contains(&a) && EXACT.contains(&b) => {
            return Ok(Answer::Float(Number::Whole(a).to_float() / Number::Whole(b).to_float()));
        }
        Op::Div => return exact(op, Number::Whole(a), Number::Whole(b)),
    };
    result.map(Answer::Whole).ok_or_else(|| {
        let why = format!("{a} {} {b} does not fit a long; (big …) has no bound", op.sign());
        Failure::new(Code::EBOUND, why)
    })
}

fn float(op: Op, a: f64, b: f64) -> Result<f64, Failure> {
    Ok(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div | Op::Rem if b == 0.0 => return Err(division_by_zero()),
        Op::Div => a / b,
        Op::Rem => a % b,
    })
}

/// Returns the failure for a big number that would be too large.
pub(super) fn too_big() -> Failure {
    Failure::new(Code::EBOUND, "the result has more than 1,048,576 bits, the maximum of (big …)")
}

fn big(op: Op, a: &BigInt, b: &BigInt) -> Result<Answer, Failure> {
    let bits = match op {
        Op::Add | Op::Sub => a.bits().max(b.bits()) + 1,
        Op::Mul => a.bits() + b.bits(),
        Op::Div | Op::Rem => 0,
    };
    if bits > MAX_BITS {
        return Err(too_big());
    }
    Ok(Answer::Big(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div | Op::Rem if b.sign() == Sign::NoSign => return Err(division_by_zero()),
        Op::Rem => a % b,
        Op::Div => {
            let quotient = a / b;
            if &quotient * b != *a {
                return big_quotient(a, b);
            }
            quotient
        }
    }))
}

/// Returns the float nearest to a quotient that is not whole.
fn big_quotient(a: &BigInt, b: &BigInt) -> Result<Answer, Failure> {
    // The lowest bits of large numbers do not change the float.
    let shift = a.bits().min(b.bits()).saturating_sub(256);
    let cut = |n: &BigInt| Exact { digits: n >> shift, scale: 0 };
    if a.bits().abs_diff(b.bits()) > 2_048 {
        return Ok(Answer::Float(if a.bits() < b.bits() { 0.0 } else { f64::INFINITY }));
    }
    match cut(a).divide(cut(b))? {
        Answer::Whole(n) => Ok(Answer::Float(Number::Whole(n).to_float())),
        Answer::Decimal(text) => Ok(Answer::Float(Number::Decimal(&text).to_float())),
        answer => Ok(answer),
    }
}

fn exact(op: Op, a: Number<'_>, b: Number<'_>) -> Result<Answer, Failure> {
    if let Some(answer) = small(op, a, b) {
        return Ok(answer);
    }
    let (x, y) = (a.exact()?, b.exact()?);
    if matches!(op, Op::Div | Op::Rem) && y.is_zero() {
        return Err(division_by_zero());
    }
    let answer = match op {
        Op::Add | Op::Sub | Op::Rem => {
            let (x, y, scale) = x.align(y)?;
            let digits = match op {
                Op::Add => x + y,
                Op::Sub => x - y,
                _ => x % y,
            };
            Exact { digits, scale }.checked()?.answer()
        }
        Op::Mul => {
            if x.digits.bits() + y.digits.bits() > 4 * MAX_DIGITS as u64 {
                return Err(too_many_digits());
            }
            Exact { digits: x.digits * y.digits, scale: x.scale + y.scale }.checked()?.answer()
        }
        Op::Div => x.divide(y)?,
    };
    // A big number stays one in whole arithmetic.
    match answer {
        Answer::Whole(n) if matches!((a, b), (Number::Big(_), _) | (_, Number::Big(_))) => {
            Ok(Answer::Big(n.into()))
        }
        answer => Ok(answer),
    }
}

/// Calculates with decimals of few digits. Returns `None` if others are needed.
fn small(op: Op, a: Number<'_>, b: Number<'_>) -> Option<Answer> {
    if matches!(op, Op::Div | Op::Rem) {
        return None;
    }
    let (a, b) = (a.small_decimal()?, b.small_decimal()?);
    let result = match op {
        Op::Add => a.plus(b)?,
        Op::Sub => a.plus(b.negated())?,
        _ => a.times(b)?,
    };
    let text = result.to_string();
    Some(match text.parse() {
        Ok(whole) => Answer::Whole(whole),
        Err(_) => Answer::Decimal(text),
    })
}

impl Values {
    /// Returns a number. `takes` says who takes numbers, such as `+ takes numbers`.
    pub(super) fn number(&self, handle: i32, takes: &str) -> Result<Number<'_>, Failure> {
        match as_number(self.view(handle)?) {
            Some(number) => Ok(number),
            None => Err(self.wrong(handle, takes, &self.number_hint(handle, takes))),
        }
    }

    /// Returns the advice for a value that should be a number.
    fn number_hint(&self, handle: i32, takes: &str) -> String {
        match self.view(handle) {
            Ok(View::Null) => "(default V 0) replaces null".to_owned(),
            Ok(View::Bool(_)) => "(int …) converts it".to_owned(),
            Ok(View::Text(text)) => match Written::read(text.as_bytes()) {
                Some(_) if text.trim().parse::<i64>().is_ok() => "(int …) converts it".to_owned(),
                Some(_) => "(num …) converts it".to_owned(),
                None if takes.starts_with('+') => "(str A B) joins strings".to_owned(),
                None => String::new(),
            },
            Ok(View::List(_) | View::Object(_)) if takes.starts_with('+') => {
                "(concat A B) joins lists, (merge A B) objects".to_owned()
            }
            _ => String::new(),
        }
    }

    /// Adds the result of an operation to the arena.
    pub(super) fn keep(&mut self, answer: Answer) -> Result<i32, Failure> {
        match answer {
            Answer::Whole(n) => self.whole(n),
            Answer::Decimal(text) => self.decimal(&text),
            Answer::Float(x) => self.float(x),
            Answer::Big(n) => self.big(n),
        }
    }

    pub(super) fn calculate(&mut self, op: Op, a: i32, b: i32) -> Result<i32, Failure> {
        let takes = match op {
            Op::Add => "+ takes numbers",
            Op::Sub => "- takes numbers",
            Op::Mul => "* takes numbers",
            Op::Div => "/ takes numbers",
            Op::Rem => "% takes numbers",
        };
        let answer = calculate(op, self.number(a, takes)?, self.number(b, takes)?)?;
        self.keep(answer)
    }
}

/// Returns a view as a number, if it is one.
pub(super) fn as_number(view: View<'_>) -> Option<Number<'_>> {
    match view {
        View::Whole(n) => Some(Number::Whole(n)),
        View::Decimal(text) => Some(Number::Decimal(text)),
        View::Float(x) => Some(Number::Float(x)),
        View::Big(n) => Some(Number::Big(n)),
        _ => None,
    }
}
