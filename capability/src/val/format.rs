//! The texts of values in a format.

use unicode_segmentation::UnicodeSegmentation as _;
use wattle_rt::{Alignment, Code, Failure, FormatSpec, Run};

use super::arena::{Values, View};
use super::number::{Exact, Number, as_number};
use super::values;

impl Values {
    /// Returns the text of a value in a format.
    fn formatted(&self, v: i32, spec: FormatSpec) -> Result<String, Failure> {
        let Some(number) = as_number(self.view(v)?) else {
            if spec.zero || spec.thousands || spec.percent || spec.hex {
                let takes = "a format with zeros, commas, % or hex takes a number";
                return Err(self
                    .number(v, takes)
                    .err()
                    .unwrap_or_else(|| self.wrong(v, takes, "")));
            }
            let text = match self.view(v)? {
                View::Text(text) => text.to_owned(),
                _ => self.plain(v)?,
            };
            let kept = match spec.places {
                Some(places) => text.graphemes(true).take(places).collect(),
                None => text,
            };
            return Ok(align(&kept, spec.alignment.unwrap_or(Alignment::Left), spec.width));
        };
        let text = if spec.hex { self.hex(v, number)? } else { decimal(number, spec)? };
        if spec.zero && spec.alignment.is_none() {
            let digits = text.trim_start_matches('-');
            let sign = if digits.len() < text.len() { "-" } else { "" };
            let zeros = spec.width.saturating_sub(text.chars().count());
            return Ok(format!("{sign}{}{digits}", "0".repeat(zeros)));
        }
        Ok(align(&text, spec.alignment.unwrap_or(Alignment::Right), spec.width))
    }

    fn hex(&self, v: i32, number: Number<'_>) -> Result<String, Failure> {
        match number.to_big() {
            Some(n) => Ok(n.to_str_radix(16)),
            None => {
                let why = "hex takes a whole number; (round …) rounds it";
                Err(self.out_of_range(v, &format!("{}, but {why}", self.describe(v))))
            }
        }
    }
}

/// Returns the digits of a number with its decimal places, commas and percent sign.
fn decimal(number: Number<'_>, spec: FormatSpec) -> Result<String, Failure> {
    let exact = |number: Number<'_>| -> Result<Exact, Failure> {
        let exact = number.exact()?;
        Ok(if spec.percent { exact.times_hundred() } else { exact })
    };
    let mut text = match spec.places {
        Some(places) => exact(number)?.fixed(places)?,
        None if spec.percent => exact(number)?.answer().number().text(),
        None => number.text(),
    };
    if spec.thousands {
        text = with_commas(&text);
    }
    if spec.percent {
        text.push('%');
    }
    Ok(text)
}

/// Separates the thousands of a number by commas.
fn with_commas(text: &str) -> String {
    let start = text.len() - text.trim_start_matches('-').len();
    let whole = text.get(start..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit);
    let end = start + whole.count();
    let mut separated = String::new();
    for (at, character) in text.char_indices() {
        if at > start && at < end && (end - at).is_multiple_of(3) {
            separated.push(',');
        }
        separated.push(character);
    }
    separated
}

/// Pads a text with spaces to a number of characters.
fn align(text: &str, alignment: Alignment, width: usize) -> String {
    let missing = width.saturating_sub(text.graphemes(true).take(width).count());
    let left = match alignment {
        Alignment::Left => 0,
        Alignment::Right => missing,
        Alignment::Center => missing / 2,
    };
    format!("{}{text}{}", " ".repeat(left), " ".repeat(missing - left))
}

pub(super) fn format(run: &mut Run, v: i32, spec: &str) -> Result<String, Failure> {
    let spec =
        FormatSpec::parse(spec).map_err(|error| Failure::new(Code::EPARSE, error.to_string()))?;
    values(run).formatted(v, spec)
}
