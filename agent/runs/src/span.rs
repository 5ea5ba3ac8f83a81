//! Durations in settings.

use std::fmt;
use std::time::Duration;

/// A duration greater than zero, such as `90s`, `2m` or `1h30m`.
///
/// ```
/// let span: wattle_runs::Timeout = "1h30m".parse().unwrap();
/// assert_eq!(span.0.as_secs(), 5_400);
/// assert_eq!(span.to_string(), "90m");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeout(pub Duration);

impl Timeout {
    /// Prefix of the error message for a string that is not a duration.
    pub const EXPECTED: &str = "expected a time such as `90s`, `2m`, `1h30m` or `500ms`";
}

impl std::str::FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Timeout, String> {
        let found = || format!("{}, found {text:?}", Timeout::EXPECTED);
        let (mut rest, mut total) = (text.trim(), Duration::ZERO);
        if rest.is_empty() {
            return Err(found());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(found)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let number: u64 = number.parse().map_err(|_| found())?;
            let millis = match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(found()),
            };
            let part = Duration::from_millis(number.checked_mul(millis).ok_or_else(found)?);
            total = total.checked_add(part).ok_or_else(found)?;
            rest = tail;
        }
        if total.is_zero() {
            return Err(format!("expected a time above zero, found {text:?}"));
        }
        Ok(Timeout(total))
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        match units.iter().find(|(size, _)| millis.is_multiple_of(*size)) {
            Some((size, unit)) => write!(f, "{}{unit}", millis / size),
            None => write!(f, "{millis}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown() {
        for (text, millis, shown) in [
            ("90s", 90_000, "90s"),
            ("2m", 120_000, "2m"),
            ("120s", 120_000, "2m"),
            ("1h30m", 5_400_000, "90m"),
            (" 500ms ", 500, "500ms"),
            ("1s1ms", 1_001, "1001ms"),
            ("1d", 86_400_000, "24h"),
        ] {
            let span: Timeout = text.parse().unwrap();
            assert_eq!((span.0.as_millis(), span.to_string().as_str()), (millis, shown), "{text}");
        }
        for text in [
            "",
            " ",
            "90",
            "s",
            "-1s",
            "1.5s",
            "0s",
            "1 s",
            "1y",
            "99999999999999999999s",
            "18446744073709551615h",
            "９s",
        ] {
            assert!(text.parse::<Timeout>().is_err(), "{text}");
        }
    }
}
