//! The builtin `printf`. The format is reused until all arguments are consumed.

use jiff::Timestamp;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;

use super::Arguments;
use crate::bounds::amount;
use crate::language::escape::{self, Dialect};
use crate::language::interpreter::{Attempt, Interpreter, usage};

/// Maximum width and precision of a directive.
const MAX_WIDTH: usize = 1 << 20;

/// Maximum number of significant fraction digits of a double. All digits after them are zeros.
const MAX_FRACTION: usize = 1_100;

/// A directive such as `%-08.3f`.
#[derive(Clone, Debug, Default)]
struct Directive {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// The formatted output.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    /// Messages about invalid arguments and directives.
    errors: Vec<String>,
    /// Messages about numbers that were out of range and were replaced by the nearest valid number.
    /// As in bash, these messages do not change the status.
    warnings: Vec<String>,
    /// If true, the output ends here because of `\c` or an invalid directive.
    ended: bool,
    /// Maximum size of the output, in bytes. Formatting stops when the output exceeds it.
    limit: usize,
    clock: Clock,
}

/// The times and the zone of `%(…)T`.
struct Clock {
    /// The current time, which `-1` stands for.
    now: Timestamp,
    /// The time when the shell started, which `-2` stands for.
    started: Timestamp,
    zone: TimeZone,
}

impl Default for Clock {
    fn default() -> Clock {
        let now = Timestamp::now();
        Clock { now, started: now, zone: TimeZone::UTC }
    }
}

impl Clock {
    /// Formats a number of seconds since 1970 as `strftime` does. As in bash, an empty format is
    /// `%X`.
    fn format(&self, format: &str, seconds: i64) -> Result<String, String> {
        let time = match seconds {
            -1 => self.now,
            -2 => self.started,
            seconds => Timestamp::from_second(seconds)
                .map_err(|_| format!("{seconds}: the time is out of range"))?,
        };
        let format = if format.is_empty() { "%X" } else { format };
        let config = Config::new().custom(PosixCustom::new()).lenient(true);
        BrokenDownTime::from(&time.to_zoned(self.zone.clone()))
            .to_string_with_config(&config, format)
            .map_err(|error| format!("`{format}': invalid time format specification: {error}"))
    }
}

impl Interpreter {
    pub(super) async fn printf(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "v:")?;
        let variable = given.value('v').map(str::to_owned);
        let mut words = given.words.into_iter();
        let Some(format) = words.next() else {
            return Err(usage("usage: printf [-v var] format [arguments]"));
        };
        let arguments: Vec<String> = words.collect();
        let limit = usize::try_from(self.run.bounds.variables).unwrap_or(usize::MAX);
        let mut output = Output { limit, clock: self.clock(), ..Output::default() };
        let mut rest = arguments.as_slice();
        loop {
            let before = rest.len();
            output.format_once(&format, &mut rest);
            if output.bytes.len() > limit {
                return Err(format!("the text is longer than {}", amount(limit)).into());
            }
            if output.ended || rest.is_empty() || rest.len() == before {
                break;
            }
        }
        let status = u8::from(!output.errors.is_empty());
        for message in output.errors.iter().chain(&output.warnings) {
            self.report(&format!("printf: {message}")).await;
        }
        match variable {
            Some(name) => {
                self.set(&name, String::from_utf8_lossy(&output.bytes)).await?;
                Ok(status)
            }
            None => Ok(self.print(output.bytes).await?.max(status)),
        }
    }

    /// Returns the times of this shell, in the zone that the exported variable `TZ` names. The
    /// default is UTC.
    fn clock(&self) -> Clock {
        let clock = Clock::default();
        let started = clock.now.checked_sub(self.lifecycle.started.elapsed()).unwrap_or(clock.now);
        let name = self.variables.get("TZ").filter(|zone| zone.exported);
        let name = name.and_then(|zone| zone.text()).map_or("UTC", |zone| zone);
        let zone = TimeZone::get(name.trim_start_matches(':')).or_else(|_| TimeZone::posix(name));
        Clock { started, zone: zone.unwrap_or(TimeZone::UTC), ..clock }
    }
}

impl Output {
    /// Applies the format once and removes the consumed arguments from `rest`.
    fn format_once(&mut self, format: &str, rest: &mut &[String]) {
        let mut chars = format.chars().peekable();
        let mut plain = String::new();
        while let Some(c) = chars.next() {
            if c == '\\' {
                plain.push('\\');
                plain.extend(chars.next());
                continue;
            }
            if c != '%' {
                plain.push(c);
                continue;
            }
            self.bytes.extend(escape::unescape(&std::mem::take(&mut plain), Dialect::Format).0);
            if chars.peek() == Some(&'%') {
                chars.next();
                self.bytes.push(b'%');
                continue;
            }
            let mut directive = Directive::default();
            while let Some(flag) =
                chars.next_if(|c| matches!(c, '-' | '0' | '+' | ' ' | '#' | '\''))
            {
                match flag {
                    '-' => directive.left = true,
                    '0' => directive.zero = true,
                    '+' => directive.plus = true,
                    ' ' => directive.space = true,
                    '#' => directive.alternate = true,
                    _ => {}
                }
            }
            if chars.next_if_eq(&'*').is_some() {
                let width = self.number(next(rest), true);
                directive.left |= width < 0;
                directive.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
            } else {
                directive.width = digits(&mut chars).unwrap_or_default();
            }
            if chars.next_if_eq(&'.').is_some() {
                directive.precision = if chars.next_if_eq(&'*').is_some() {
                    usize::try_from(self.number(next(rest), true)).ok()
                } else {
                    Some(digits(&mut chars).unwrap_or_default())
                };
            }
            if directive.width.max(directive.precision.unwrap_or_default()) > MAX_WIDTH {
                self.errors.push(format!("a field is wider than {MAX_WIDTH} characters"));
                self.ended = true;
                return;
            }
            while chars.next_if(|c| matches!(c, 'l' | 'h' | 'j' | 'z' | 't' | 'L')).is_some() {}
            if chars.next_if_eq(&'(').is_some() {
                let format: String = chars.by_ref().take_while(|c| *c != ')').collect();
                if chars.next_if_eq(&'T').is_none() {
                    self.errors.push(format!("`({format})': invalid time format specification"));
                    self.ended = true;
                    return;
                }
                self.time(&directive, &format, rest);
                continue;
            }
            let Some(kind) = chars.next() else {
                self.errors.push("`%': missing format character".into());
                self.ended = true;
                return;
            };
            self.directive(&directive, kind, rest);
            if self.ended || self.bytes.len() > self.limit {
                return;
            }
        }
        self.bytes.extend(escape::unescape(&plain, Dialect::Format).0);
    }

    /// Formats the next argument, a number of seconds since 1970, according to `%(format)T`.
    /// Without an argument, formats the current time.
    fn time(&mut self, directive: &Directive, format: &str, rest: &mut &[String]) {
        let seconds = next(rest).map_or(-1, |word| self.number(Some(word), true));
        match self.clock.format(format, seconds) {
            Ok(text) => self.pad(directive, truncated(text, directive.precision).as_bytes()),
            Err(message) => self.errors.push(message),
        }
    }

    /// Formats the next argument according to a directive.
    fn directive(&mut self, directive: &Directive, kind: char, rest: &mut &[String]) {
        let text = match kind {
            's' => truncated(next(rest).unwrap_or_default(), directive.precision),
            'b' => {
                let (bytes, ended) =
                    escape::unescape(&next(rest).unwrap_or_default(), Dialect::Echo);
                self.ended = ended;
                self.pad(directive, &bytes);
                return;
            }
            'q' => escape::backslashed(&next(rest).unwrap_or_default()),
            'c' => next(rest).unwrap_or_default().chars().take(1).collect(),
            'd' | 'i' => {
                let value = self.number(next(rest), true);
                whole(directive, &value.unsigned_abs().to_string(), sign(directive, value < 0))
            }
            'u' => {
                whole(directive, &self.number(next(rest), false).cast_unsigned().to_string(), "")
            }
            'x' | 'X' | 'o' => {
                let value = self.number(next(rest), false);
                let (digits, prefix) = match kind {
                    'x' => (format!("{value:x}"), "0x"),
                    'X' => (format!("{value:X}"), "0X"),
                    _ => (format!("{value:o}"), "0"),
                };
                whole(directive, &digits, if directive.alternate { prefix } else { "" })
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' => {
                let value = self.real(next(rest));
                let text = real(directive, kind, value.abs());
                let sign = sign(directive, value.is_sign_negative());
                if directive.zero && !directive.left && value.is_finite() {
                    zeros_before(sign, &text, directive.width.saturating_sub(sign.len()))
                } else {
                    format!("{sign}{text}")
                }
            }
            other => {
                self.errors.push(format!("`{other}': invalid format character"));
                self.ended = true;
                return;
            }
        };
        self.pad(directive, text.as_bytes());
    }

    /// Appends bytes, padded with spaces to the width of the directive.
    fn pad(&mut self, directive: &Directive, text: &[u8]) {
        let missing = directive.width.saturating_sub(String::from_utf8_lossy(text).chars().count());
        if !directive.left {
            self.bytes.extend(std::iter::repeat_n(b' ', missing));
        }
        self.bytes.extend_from_slice(text);
        if directive.left {
            self.bytes.extend(std::iter::repeat_n(b' ', missing));
        }
    }

    /// Parses an integer argument. `'c` is parsed as the code of the character `c`. If the number
    /// does not fit into 64 bits, reports it and, as in C, returns the nearest signed number or, if
    /// `signed` is false, the largest unsigned number.
    fn number(&mut self, word: Option<String>, signed: bool) -> i64 {
        let word = word.unwrap_or_default();
        let text = word.trim_start();
        if let Some(c) = text.strip_prefix(['\'', '"']) {
            return c.chars().next().map_or(0, |c| i64::from(u32::from(c)));
        }
        let (negative, plain) = match text.strip_prefix('-') {
            Some(plain) => (true, plain),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if text.is_empty() {
            return 0;
        }
        let (base, digits, rest) = leading_number(plain);
        if digits.is_empty() || !rest.is_empty() {
            self.errors.push(format!("{word}: invalid number"));
        }
        let (max, nearest) = match (signed, negative) {
            (false, _) => (u64::MAX, u64::MAX.cast_signed()),
            (true, false) => (i64::MAX.unsigned_abs(), i64::MAX),
            (true, true) => (i64::MIN.unsigned_abs(), i64::MIN),
        };
        let digits = digits.chars().filter_map(|c| c.to_digit(base));
        let value = digits
            .map(u64::from)
            .try_fold(0_u64, |value, digit| value.checked_mul(u64::from(base))?.checked_add(digit));
        match value.filter(|value| *value <= max).map(u64::cast_signed) {
            Some(value) if negative => value.wrapping_neg(),
            Some(value) => value,
            None => {
                let warning = format!("warning: {word}: the number does not fit into 64 bits");
                self.warnings.push(warning);
                nearest
            }
        }
    }

    /// Parses a floating-point argument.
    fn real(&mut self, word: Option<String>) -> f64 {
        let word = word.unwrap_or_default();
        let text = word.trim();
        if text.is_empty() {
            return 0.0;
        }
        if text.starts_with(['\'', '"']) || text.to_ascii_lowercase().contains("0x") {
            #[expect(clippy::cast_precision_loss, reason = "as C converts a long to a double")]
            return self.number(Some(word), true) as f64;
        }
        match text.parse() {
            Ok(value) => value,
            Err(_) => {
                self.errors.push(format!("{word}: invalid number"));
                0.0
            }
        }
    }
}

/// Removes the next argument from `rest` and returns it.
fn next(rest: &mut &[String]) -> Option<String> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(first.clone())
}

/// Parses the next decimal number in the format. Returns `None` if the next character is not a
/// digit.
fn digits(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut value = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        value = Some(value.unwrap_or(0_usize).saturating_mul(10).saturating_add(digit as usize));
    }
    value
}

/// Truncates a string to the precision of a directive, in characters.
fn truncated(text: String, precision: Option<usize>) -> String {
    match precision {
        Some(max) => text.chars().take(max).collect(),
        None => text,
    }
}

fn sign(directive: &Directive, negative: bool) -> &'static str {
    match (negative, directive.plus, directive.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

/// Formats an integer from its sign and digits. Adds leading zeros up to the directive's precision
/// or width.
fn whole(directive: &Directive, digits: &str, sign: &str) -> String {
    let width = match directive.precision {
        Some(precision) => precision,
        None if directive.zero && !directive.left => directive.width.saturating_sub(sign.len()),
        None => 0,
    };
    zeros_before(sign, digits, width)
}

/// Joins a sign and digits. Pads the digits with leading zeros to a length of `width`. The standard
/// library's formatting is not used because it panics at widths over 65,535.
fn zeros_before(sign: &str, digits: &str, width: usize) -> String {
    [sign, &"0".repeat(width.saturating_sub(digits.len())), digits].concat()
}

/// Formats a number with exactly `precision` fraction digits.
fn fixed(value: f64, precision: usize) -> String {
    let exact = precision.min(MAX_FRACTION);
    let zeros = precision.saturating_sub(MAX_FRACTION);
    format!("{value:.exact$}{}", "0".repeat(zeros))
}

fn real(directive: &Directive, kind: char, value: f64) -> String {
    let precision = directive.precision.unwrap_or(6);
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        return if kind.is_ascii_uppercase() { text.to_uppercase() } else { text.into() };
    }
    let text = match kind.to_ascii_lowercase() {
        'f' => fixed(value, precision),
        'e' => scientific(value, precision),
        _ => {
            let precision = precision.max(1);
            let exponent: i64 = scientific(value, precision - 1)
                .split_once('e')
                .and_then(|(_, exponent)| exponent.parse().ok())
                .unwrap_or_default();
            let text = if exponent < -4 || exponent >= i64::try_from(precision).unwrap_or(i64::MAX)
            {
                scientific(value, precision - 1)
            } else {
                let places =
                    usize::try_from(i64::try_from(precision).unwrap_or(i64::MAX) - 1 - exponent)
                        .unwrap_or_default();
                fixed(value, places)
            };
            if directive.alternate { text } else { trimmed(&text) }
        }
    };
    if kind.is_ascii_uppercase() { text.to_uppercase() } else { text }
}

fn scientific(value: f64, precision: usize) -> String {
    let exact = precision.min(MAX_FRACTION);
    let zeros = precision.saturating_sub(MAX_FRACTION);
    let text = format!("{value:.exact$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}{}e{sign}{exponent:0>2}", "0".repeat(zeros))
        }
        None => text,
    }
}

/// Removes trailing zeros from the fraction of a number.
fn trimmed(text: &str) -> String {
    let (digits, exponent) =
        text.split_once('e').map_or((text, None), |(digits, exponent)| (digits, Some(exponent)));
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    match exponent {
        Some(exponent) => format!("{digits}e{exponent}"),
        None => digits.into(),
    }
}

/// Returns the base and the digits of the number at the start of a string, and the rest of the
/// string. As in C, `0x` begins a hexadecimal number, and `0` an octal one.
fn leading_number(text: &str) -> (u32, &str, &str) {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let hex = hex.filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (base, text) = match hex {
        Some(digits) => (16, digits),
        None if text.starts_with('0') => (8, text),
        None => (10, text),
    };
    let end = text.find(|c: char| !c.is_digit(base)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (base, digits, rest)
}
