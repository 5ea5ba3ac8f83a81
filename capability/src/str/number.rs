//! Conversion of numbers to and from strings.

use wattle_rt::{Code, Failure, Run, quote};

use crate::QUOTED;

pub(super) fn from_int(_: &mut Run, n: i32) -> Result<String, Failure> {
    Ok(n.to_string())
}

pub(crate) fn to_int(_: &mut Run, s: &str) -> Result<i32, Failure> {
    s.trim().parse().map_err(|_| {
        let why =
            format!("{} is not an integer from {} to {}", quote(s, QUOTED), i32::MIN, i32::MAX);
        let why = match s.trim().parse::<i64>() {
            Ok(_) => why + "; for a larger one, write `(let $n long (str.to_int …))`",
            Err(_) => why + decimal(s),
        };
        Failure::new(Code::EPARSE, why)
    })
}

pub(super) fn from_long(_: &mut Run, n: i64) -> Result<String, Failure> {
    Ok(n.to_string())
}

pub(super) fn from_float(_: &mut Run, x: f64, digits: Option<i32>) -> Result<String, Failure> {
    let Some(digits) = digits else {
        return Ok(float_text(x));
    };
    let digits = usize::try_from(digits.clamp(0, 20)).unwrap_or(0);
    Ok(format!("{x:.digits$}"))
}

/// Writes a float in its shortest exact form. Very large and very small numbers are written with an
/// exponent, because they would otherwise have too many digits.
pub(crate) fn float_text(x: f64) -> String {
    let plain = x == 0.0 || !x.is_finite() || (1e-6..1e21).contains(&x.abs());
    if plain { x.to_string() } else { format!("{x:e}") }
}

pub(crate) fn to_long(_: &mut Run, s: &str) -> Result<i64, Failure> {
    s.trim().parse().map_err(|_| {
        let why =
            format!("{} is not an integer from {} to {}", quote(s, QUOTED), i64::MIN, i64::MAX);
        Failure::new(Code::EPARSE, why + decimal(s))
    })
}

/// Returns a hint if the string is a decimal number and not an integer, and an empty string
/// otherwise.
fn decimal(s: &str) -> &'static str {
    let digits = s.trim().trim_start_matches(['-', '+']);
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    match crate::decimal::float(s.as_bytes()) {
        Some(_) if !is_integer => "; a decimal number is read by `(float …)`",
        _ => "",
    }
}

pub(crate) fn to_float(_: &mut Run, s: &str) -> Result<f64, Failure> {
    crate::decimal::float(s.as_bytes()).ok_or_else(|| {
        Failure::new(
            Code::EPARSE,
            format!("{} is not a decimal number that fits a float", quote(s, QUOTED)),
        )
    })
}
