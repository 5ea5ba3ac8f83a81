//! Numbers in texts: exact comparisons of numbers of any length, and exact sums of decimal numbers,
//! so that 0.1 + 0.2 is 0.3.

use std::cmp::Ordering;
use std::fmt;

/// A number in a text. Numbers are equal if their values are, whatever their spelling: `1e3` is
/// `1000`, `1.50` is `1.5`, and `-0` is `0`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number<'a> {
    text: &'a str,
    /// -1, 0 or 1.
    sign: i8,
    /// The value is `0.DIGITS` times ten to this power. 0 for zero.
    exponent: i128,
    /// The digits before the decimal point and those after it. Together, they neither start nor end
    /// with a zero.
    whole: &'a [u8],
    decimals: &'a [u8],
}

impl<'a> Number<'a> {
    /// Parses a decimal number, with optional surrounding whitespace, sign and exponent. Returns
    /// `None` for any other text, such as `nan`. An exponent of more than 30 digits counts as one of
    /// 30 nines.
    pub(crate) fn read(text: &'a [u8]) -> Option<Number<'a>> {
        let text = std::str::from_utf8(text).ok()?.trim();
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (digits, shift) = match unsigned.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, read_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if whole.len() + decimals.len() == 0 || !is_number(whole) || !is_number(decimals) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let places = whole.len();
        let (whole, decimals) = match decimals.trim_end_matches('0') {
            "" => (whole.trim_end_matches('0'), ""),
            decimals => (whole, decimals),
        };
        // The zeros between the point and the first other digit.
        let kept = if whole.is_empty() { decimals.trim_start_matches('0') } else { decimals };
        let zeros = decimals.len() - kept.len();
        let (sign, exponent) = match (whole.is_empty() && kept.is_empty(), text.starts_with('-')) {
            (true, _) => (0, 0),
            (false, is_negative) => {
                let point = i128::try_from(places).ok()? - i128::try_from(zeros).ok()?;
                (if is_negative { -1 } else { 1 }, shift + point)
            }
        };
        Some(Number { text, sign, exponent, whole: whole.as_bytes(), decimals: kept.as_bytes() })
    }

    /// Returns the number as written, without surrounding whitespace.
    pub(crate) fn text(self) -> &'a str {
        self.text
    }

    /// Returns the nearest float. It is infinite if the number is out of range.
    pub(crate) fn to_float(self) -> f64 {
        self.text.parse().unwrap_or(f64::NAN)
    }

    /// Returns true if the number is an integer that a float would change, such as
    /// 9007199254740993.
    pub(crate) fn changes_as_float(self) -> bool {
        let digits = self.whole.len() + self.decimals.len();
        let is_integer = i128::try_from(digits).is_ok_and(|digits| digits <= self.exponent);
        let float = self.to_float().to_string();
        is_integer && Number::read(float.as_bytes()).is_none_or(|float| float != self)
    }

    /// Returns the digits with their sign, and the power of ten that they are multiplied by. Returns
    /// `None` if the power does not fit.
    pub(crate) fn parts(self) -> Option<(String, i64)> {
        let mut digits = String::from(if self.sign < 0 { "-" } else { "" });
        digits.extend(self.digits().map(char::from));
        let count = digits.len() - usize::from(self.sign < 0);
        if count == 0 {
            return Some(("0".to_owned(), 0));
        }
        Some((digits, i64::try_from(self.exponent - i128::try_from(count).ok()?).ok()?))
    }

    fn digits(self) -> impl Iterator<Item = u8> + 'a {
        self.whole.iter().chain(self.decimals).copied()
    }
}

/// Parses the digits after the `e` of a number.
fn read_exponent(text: &str) -> Option<i128> {
    const MOST: i128 = 10_i128.pow(30) - 1;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() {
        return None;
    }
    let exponent = digits.bytes().try_fold(0_i128, |exponent, digit| {
        let digit = char::from(digit).to_digit(10)?;
        Some((exponent * 10 + i128::from(digit)).min(MOST))
    })?;
    Some(if text.starts_with('-') { -exponent } else { exponent })
}

impl PartialEq for Number<'_> {
    fn eq(&self, other: &Number<'_>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number<'_> {}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Number<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Number<'_>) -> Ordering {
        let by_size = || {
            let by_exponent = self.exponent.cmp(&other.exponent);
            by_exponent.then_with(|| self.digits().cmp(other.digits()))
        };
        self.sign.cmp(&other.sign).then_with(|| match self.sign {
            0 => Ordering::Equal,
            1 => by_size(),
            _ => by_size().reverse(),
        })
    }
}

/// Parses a number that fits a float, with optional surrounding whitespace. Returns `None` for any
/// other text.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    Number::read(text).map(Number::to_float).filter(|float| float.is_finite())
}

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

    /// Parses a number, like [`Number::read`]. Returns `None` for any other text, and for a number
    /// with too many digits.
    pub(crate) fn read(text: &[u8]) -> Option<Decimal> {
        let number = Number::read(text)?;
        let count = number.whole.len() + number.decimals.len();
        // The number of zeros to append to the digits or, if negative, of decimal places.
        let shift = number.exponent - i128::try_from(count).ok()?;
        let zeros = usize::try_from(shift.max(0)).ok()?;
        let scale = usize::try_from((-shift).max(0)).ok()?;
        if count.max(scale).saturating_add(zeros) > MAX_DIGITS || scale > MAX_SCALE {
            return None;
        }
        let zeros = std::iter::repeat_n(b'0', zeros);
        let digits = number.digits().chain(zeros).try_fold(0_i128, |digits, digit| {
            Some(digits * 10 + i128::from(char::from(digit).to_digit(10)?))
        })?;
        let digits = if number.sign < 0 { -digits } else { digits };
        Some(Decimal { digits, scale: u32::try_from(scale).ok()? })
    }

    /// Adds two numbers. Returns `None` if the sum has too many digits.
    pub(crate) fn plus(self, other: Decimal) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        let scaled =
            |number: Decimal| number.digits.checked_mul(10_i128.checked_pow(scale - number.scale)?);
        Some(Decimal { digits: scaled(self)?.checked_add(scaled(other)?)?, scale })
    }

    /// Multiplies two numbers. Returns `None` if the product has too many digits.
    pub(crate) fn times(self, other: Decimal) -> Option<Decimal> {
        let digits = self.digits.checked_mul(other.digits)?;
        Some(Decimal { digits, scale: self.scale + other.scale })
    }

    pub(crate) fn negated(self) -> Decimal {
        Decimal { digits: -self.digits, ..self }
    }

    /// Returns the nearest float.
    pub(crate) fn to_float(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }
}

impl From<i64> for Decimal {
    fn from(n: i64) -> Decimal {
        Decimal { digits: n.into(), scale: 0 }
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
    fn numbers_are_compared_exactly() {
        let ascending = [
            "-1e999999999999999999999999999999",
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1.49999999999999999999999999999999999",
            "-1e-400",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000000000000000000001",
            "1",
            "9",
            "10",
            "9007199254740992",
            "9007199254740992.5",
            "9007199254740993",
            "18446744073709551615",
            "123456789012345678901234567890",
            "123456789012345678901234567891",
            "1e400",
            "1e401",
        ];
        let number = |text: &'static str| Number::read(text.as_bytes()).unwrap();
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(number(a).cmp(&number(b)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [
            ("0", "-0"),
            ("0", "0e99"),
            ("-0.00", "+.0"),
            ("1000", "1e3"),
            ("1000", " 0001000.000 "),
            ("1000", "10000E-1"),
            ("1000", "0.001e+6"),
            ("1.5", "1.50"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("0.00012", "12e-5"),
            ("123456789012345678901234567890", "1.2345678901234567890123456789e29"),
        ] {
            assert_eq!(number(a), number(b), "{a} {b}");
        }
        for other in
            ["", " ", ".", "-", "nan", "inf", "-Infinity", "1e", "e5", "1e1.5", "0x1", "--1"]
        {
            assert_eq!(Number::read(other.as_bytes()), None, "{other}");
        }
        for (text, changes) in [
            ("9007199254740992", false),
            ("9007199254740993", true),
            ("-9007199254740993.0", true),
            ("1e23", false),
            ("1e400", true),
            ("0.1", false),
            ("0.3333333333333333333333", false),
            ("0", false),
        ] {
            assert_eq!(number(text).changes_as_float(), changes, "{text}");
        }
        assert_eq!(float(b" 1e3 "), Some(1000.0));
        assert_eq!((float(b"1e999"), float(b"nan")), (None, None));
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
            (&["1e5", "2.5E-3"], "100000.0025"),
            (&["-0", "00.10"], "0.1"),
            (&["1e29"], "100000000000000000000000000000"),
        ] {
            assert_eq!(sum(numbers).as_deref(), Some(expected), "{numbers:?}");
        }
        for other in
            ["", ".", "-", "1e", "e5", "1e30", "1e-19", "0x1", "1_0", "١", "1 2", "--1", "nan"]
        {
            assert_eq!(sum(&[other]), None, "{other}");
        }
        assert_eq!(sum(&[&"9".repeat(31)]), None);
        assert_eq!(sum(&["0.0000000000000000001"]), None);
        assert_eq!(Decimal::read(b"0.3").map(Decimal::to_float), Some(0.3));
    }
}
