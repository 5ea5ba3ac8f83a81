//! Formatting for awk's `printf` and `sprintf`.

use std::iter::Peekable;
use std::str::Chars;

use super::value::Value;

/// Formats values as `printf` does. `text` converts a value to a string.
///
/// # Errors
///
/// If the format requires more values than `values` contains.
pub(crate) fn format(
    format: &str,
    values: &[Value],
    text: impl Fn(&Value) -> std::rc::Rc<str>,
) -> Result<String, String> {
    let mut out = String::with_capacity(format.len());
    let mut values = Values { values, next: 0 };
    let mut rest = format;
    while let Some((before, directive)) = rest.split_once('%') {
        out.push_str(before);
        let mut letters = directive.chars().peekable();
        let (mut spec, position) = Spec::parse(&mut letters, &mut values)?;
        let Some(kind) = letters.next() else {
            out.push('%');
            rest = directive;
            continue;
        };
        rest = directive.get(directive.len() - letters.collect::<String>().len()..).unwrap_or("");
        if let Some(position) = position {
            values.next = position.saturating_sub(1);
        }
        match kind {
            '%' => out.push('%'),
            'c' => {
                let letter: String = match values.take()? {
                    Value::Number(code) => {
                        char::from_u32(*code as u32).map(String::from).unwrap_or_default()
                    }
                    // The first character, or a NUL if the string is empty.
                    other => text(other).chars().next().unwrap_or('\0').to_string(),
                };
                spec.pad(&mut out, &letter, "");
            }
            's' => {
                let value = text(values.take()?);
                let value: String =
                    value.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
                spec.zero = false;
                spec.pad(&mut out, &value, "");
            }
            'd' | 'i' | 'o' | 'x' | 'X' | 'u' => {
                spec.whole(&mut out, kind, values.take()?.number())
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => {
                spec.real(&mut out, kind, values.take()?.number())
            }
            _ => {
                let length = directive.len() - rest.len();
                out.push('%');
                out.push_str(directive.get(..length).unwrap_or_default());
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// A cursor over the values that a format consumes.
struct Values<'a> {
    values: &'a [Value],
    next: usize,
}

impl<'a> Values<'a> {
    fn take(&mut self) -> Result<&'a Value, String> {
        let value = self.values.get(self.next);
        self.next += 1;
        value.ok_or_else(|| "not enough arguments to satisfy format string".to_owned())
    }
}

/// Formats a number with a format that contains one directive.
pub(crate) fn float(format_text: &str, number: f64) -> String {
    format(format_text, &[Value::Number(number)], |_| std::rc::Rc::from("")).unwrap_or_default()
}

#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    other: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

impl Spec {
    /// Parses a directive up to its letter. Also returns the number of the value to format, if the
    /// directive specifies one (`%2$s`).
    fn parse(
        letters: &mut Peekable<Chars<'_>>,
        values: &mut Values<'_>,
    ) -> Result<(Spec, Option<usize>), String> {
        let mut spec = Spec::default();
        let mut position = None;
        let mut ahead = letters.clone();
        let digits = digits(&mut ahead);
        if ahead.next() == Some('$') {
            position = digits;
            *letters = ahead;
        }
        while let Some(flag) = letters.next_if(|letter| "-+ #0'".contains(*letter)) {
            match flag {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '#' => spec.other = true,
                '0' => spec.zero = true,
                _ => {}
            }
        }
        let mut number = |letters: &mut Peekable<Chars<'_>>| {
            if letters.next_if_eq(&'*').is_some() {
                return values.take().map(|value| Some(value.number() as i64));
            }
            Ok(self::digits(letters).map(|number| number as i64))
        };
        let width = number(letters)?.unwrap_or(0);
        spec.left |= width < 0;
        spec.width = width.unsigned_abs().min(1 << 20) as usize;
        if letters.next_if_eq(&'.').is_some() {
            let precision = number(letters)?.unwrap_or(0);
            spec.precision =
                usize::try_from(precision).ok().map(|precision| precision.min(1 << 20));
        }
        while letters.next_if(|letter| "hlLqjzt".contains(*letter)).is_some() {}
        Ok((spec, position))
    }

    fn pad(&self, out: &mut String, body: &str, sign: &str) {
        let length = sign.chars().count() + body.chars().count();
        let fill = self.width.saturating_sub(length);
        if !self.left && !self.zero {
            out.extend(std::iter::repeat_n(' ', fill));
        }
        out.push_str(sign);
        if !self.left && self.zero {
            out.extend(std::iter::repeat_n('0', fill));
        }
        out.push_str(body);
        if self.left {
            out.extend(std::iter::repeat_n(' ', fill));
        }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn whole(&mut self, out: &mut String, kind: char, number: f64) {
        if !number.is_finite() {
            return self.real(out, 'f', number);
        }
        let number = number.trunc();
        let size = number.abs() as u128;
        let signed = matches!(kind, 'd' | 'i');
        let wrapped = if number < 0.0 && !signed { (number as i64) as u64 as u128 } else { size };
        let mut digits = match kind {
            'o' => format!("{wrapped:o}"),
            'x' => format!("{wrapped:x}"),
            'X' => format!("{wrapped:X}"),
            'u' => wrapped.to_string(),
            _ => size.to_string(),
        };
        if let Some(least) = self.precision {
            self.zero = false;
            if digits.len() < least {
                digits.insert_str(0, &"0".repeat(least - digits.len()));
            }
        }
        let sign = match (self.other && wrapped != 0, kind) {
            (true, 'o') => "0",
            (true, 'x') => "0x",
            (true, 'X') => "0X",
            _ if signed => self.sign(number < 0.0 && size > 0),
            _ => "",
        };
        self.pad(out, &digits, sign);
    }

    fn real(&mut self, out: &mut String, kind: char, number: f64) {
        let sign = self.sign(number.is_sign_negative() && !number.is_nan());
        let size = number.abs();
        if !size.is_finite() {
            self.zero = false;
            return self.pad(out, if size.is_nan() { "nan" } else { "inf" }, sign);
        }
        let precision = self.precision.unwrap_or(6);
        let body = match kind {
            'f' | 'F' => fixed(size, precision),
            'e' | 'E' => exponent(&scientific(size, precision)),
            _ => self.shortest(size, precision.max(1)),
        };
        let body = if kind.is_uppercase() { body.to_uppercase() } else { body };
        self.pad(out, &body, sign);
    }

    /// Formats a number as `%g` does, with at most `digits` significant digits.
    fn shortest(&self, size: f64, digits: usize) -> String {
        let written = scientific(size, digits - 1);
        let power: i32 =
            written.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
        let small = power < -4 || power >= digits as i32;
        let text =
            if small { written } else { fixed(size, (digits as i32 - 1 - power).max(0) as usize) };
        let (mantissa, power) = text
            .split_once('e')
            .map_or((text.as_str(), None), |(mantissa, power)| (mantissa, Some(power)));
        let mantissa = if mantissa.contains('.') && !self.other {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        match power {
            Some(power) => exponent(&format!("{mantissa}e{power}")),
            None => mantissa.to_owned(),
        }
    }
}

fn digits(letters: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let mut digits = String::new();
    while let Some(digit) = letters.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    digits.parse().ok()
}

/// The maximum number of decimal places of a double. All digits after them are zeros.
const DIGITS: usize = 1_074;

/// Formats a number with `precision` decimal places. Appends the trailing zeros itself, because the
/// standard library's formatter panics above 65,535 digits.
fn fixed(size: f64, precision: usize) -> String {
    let written = precision.min(DIGITS);
    let mut text = format!("{size:.written$}");
    text.extend(std::iter::repeat_n('0', precision - written));
    text
}

/// Formats a number in scientific notation, with `precision` digits after the decimal point.
fn scientific(size: f64, precision: usize) -> String {
    let written = precision.min(DIGITS);
    let text = format!("{size:.written$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa}{}e{power}", "0".repeat(precision - written))
}

/// Rewrites the exponent with a sign and at least two digits.
fn exponent(text: &str) -> String {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}
