//! Exact sums of decimal numbers, so that 0.1 + 0.2 is 0.3.

use std::fmt;

/// Maximum number of decimal places.
const MAX_SCALE: usize = 18;
/// Maximum number of digits of a parsed number. A sum may have a few more.
const MAX_DIGITS: usize = 30;

/// A decimal number: an integer divided by a power of ten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    digits: i128,
    /// The number of decimal places.
    scale: u32,
}

impl Decimal {
    pub(crate) const ZERO: Decimal = Decimal { digits: 0, scale: 0 };

    /// Parses a number without an exponent, with optional surrounding whitespace. Returns `None`
    /// for any other text, and for a number with too many digits.
    pub(crate) fn read(text: &[u8]) -> Option<Decimal> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let count = whole.len() + decimals.len();
        if count == 0 || count > MAX_DIGITS || decimals.len() > MAX_SCALE {
            return None;
        }
        let mut digits = 0_i128;
        for digit in whole.bytes().chain(decimals.bytes()) {
            digits = digits * 10 + i128::from(char::from(digit).to_digit(10)?);
        }
        let digits = if text.starts_with('-') { -digits } else { digits };
        Some(Decimal { digits, scale: u32::try_from(decimals.len()).ok()? })
    }

    /// Adds two numbers. Returns `None` if the sum has too many digits.
    pub(crate) fn plus(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let scaled =
            |number: Decimal| number.digits.checked_mul(10_i128.checked_pow(scale - number.scale)?);
        Some(Decimal { digits: scaled(self)?.checked_add(scaled(other)?)?, scale })
    }

    /// Returns the nearest float.
    pub(crate) fn to_float(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

/// Writes the number without trailing zeros after the decimal point.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.scale as usize;
        let digits = format!("{:0>1$}", self.digits.unsigned_abs(), width + 1);
        let (whole, decimals) = digits.split_at_checked(digits.len() - width).unwrap_or_default();
        let decimals = decimals.trim_end_matches('0');
        let sign = if self.digits < 0 { "-" } else { "" };
        let point = if decimals.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{decimals}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(numbers: &[&str]) -> Option<String> {
        let read = |number: &&str| Decimal::read(number.as_bytes());
        let sum = numbers.iter().try_fold(Decimal::ZERO, |sum, number| sum.plus(read(number)?));
        sum.map(|sum| sum.to_string())
    }

    #[test]
    fn sums_are_exact() {
        for (numbers, expected) in [
            (&["0.1", "0.2"][..], "0.3"),
            (&["1.50", "2.50"], "4"),
            (&["-0.05", "0.04"], "-0.01"),
            (&[" 7 ", "+.5", "-3."], "4.5"),
            (&[], "0"),
            (&["999999999999999999999999999999", "1"], "1000000000000000000000000000000"),
            (&["0.000000000000000001", "100000000000"], "100000000000.000000000000000001"),
            (&["-1", "1.0"], "0"),
        ] {
            assert_eq!(sum(numbers).as_deref(), Some(expected), "{numbers:?}");
        }
        for other in ["", ".", "-", "1e5", "0x1", "1_0", "١", "1 2", "--1", "nan"] {
            assert_eq!(sum(&[other]), None, "{other}");
        }
        assert_eq!(sum(&[&"9".repeat(31)]), None);
        assert_eq!(sum(&["0.0000000000000000001"]), None);
        assert_eq!(Decimal::read(b"0.3").map(Decimal::to_float), Some(0.3));
    }
}
