//! Formats of values in a placeholder, such as `>8` or `,.2`.

use std::fmt;

/// The format of a value: `[<>^][0][width][,][.N][%]` or `hex`. A leading `:` and a final `d`, `f`,
/// `s` or `x` are accepted, as Python writes them; `x` is like `hex`.
///
/// ```
/// use wattle_lang::{Alignment, FormatSpec};
///
/// let spec = FormatSpec::parse(">12,.2")?;
/// assert_eq!((spec.alignment, spec.width), (Some(Alignment::Right), 12));
/// assert!(spec.thousands && spec.places == Some(2));
/// assert!(FormatSpec::parse("12px").is_err());
/// # Ok::<(), wattle_lang::FormatError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatSpec {
    /// The alignment within the width. Without it, numbers are aligned right and strings left.
    pub alignment: Option<Alignment>,
    /// If true, numbers are padded with zeros after their sign.
    pub zero: bool,
    /// Minimum number of characters, at most [`MAX_WIDTH`](Self::MAX_WIDTH).
    pub width: usize,
    /// If true, commas separate the thousands.
    pub thousands: bool,
    /// Number of decimal places, at most [`MAX_PLACES`](Self::MAX_PLACES), or the maximum number of
    /// characters of a string.
    pub places: Option<usize>,
    /// If true, the number is multiplied by 100 and followed by `%`.
    pub percent: bool,
    /// If true, the number is written in hexadecimal.
    pub hex: bool,
}

/// The side on which a value stands within its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// `<`: the value comes first.
    Left,
    /// `>`: the value comes last.
    Right,
    /// `^`: the value is in the middle.
    Center,
}

/// The reason why a text is not a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    text: String,
    is_too_large: bool,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = crate::quote(&self.text, 40);
        if self.is_too_large {
            let (width, places) = (FormatSpec::MAX_WIDTH, FormatSpec::MAX_PLACES);
            return write!(
                f,
                "the format {text} is too wide: at most {width} characters and {places} decimal \
                 places"
            );
        }
        write!(
            f,
            "{text} is not a format: use [<>^][0][width][,][.N][%] or hex, such as 02, >8, <12, \
             ,.2 or .1%"
        )
    }
}

impl std::error::Error for FormatError {}

impl FormatSpec {
    /// Maximum width, in characters.
    pub const MAX_WIDTH: usize = 1_000;

    /// Maximum number of decimal places.
    pub const MAX_PLACES: usize = 100;

    /// Parses a format.
    ///
    /// # Errors
    /// If the text is not a format, or if it asks for too many characters.
    pub fn parse(text: &str) -> Result<FormatSpec, FormatError> {
        let failed = |is_too_large| FormatError { text: text.to_owned(), is_too_large };
        let mut spec = FormatSpec::default();
        let mut rest = text.trim();
        rest = rest.strip_prefix(':').unwrap_or(rest);
        if rest == "hex" {
            return Ok(FormatSpec { hex: true, ..spec });
        }
        let sides = [('<', Alignment::Left), ('>', Alignment::Right), ('^', Alignment::Center)];
        let side = sides.into_iter().find(|(sign, _)| take(&mut rest, *sign));
        spec.alignment = side.map(|(_, side)| side);
        spec.zero = take(&mut rest, '0');
        let width = take_number(&mut rest, Self::MAX_WIDTH).map_err(|()| failed(true))?;
        spec.width = width.unwrap_or(0);
        spec.thousands = take(&mut rest, ',');
        if take(&mut rest, '.') {
            let places = take_number(&mut rest, Self::MAX_PLACES).map_err(|()| failed(true))?;
            spec.places = Some(places.ok_or_else(|| failed(false))?);
        }
        match rest {
            "" | "d" | "f" | "s" => {}
            "%" => spec.percent = true,
            "x" | "hex" if !spec.thousands && spec.places.is_none() => spec.hex = true,
            _ => return Err(failed(false)),
        }
        // A final `f` without places has six, as in Python.
        if rest == "f" && spec.places.is_none() {
            spec.places = Some(6);
        }
        Ok(spec)
    }
}

/// Removes a character from the start of a text, if it is there.
fn take(rest: &mut &str, character: char) -> bool {
    let after = rest.strip_prefix(character);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

/// Removes the digits at the start of a text and returns their number. Fails if it exceeds `max`.
fn take_number(rest: &mut &str, max: usize) -> Result<Option<usize>, ()> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at_checked(end).unwrap_or_default();
    *rest = after;
    match digits.parse() {
        _ if digits.is_empty() => Ok(None),
        Ok(n) if n <= max => Ok(Some(n)),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed() {
        let none = FormatSpec::default();
        for (text, spec) in [
            ("", none),
            ("02", FormatSpec { zero: true, width: 2, ..none }),
            (":>8", FormatSpec { alignment: Some(Alignment::Right), width: 8, ..none }),
            ("<12", FormatSpec { alignment: Some(Alignment::Left), width: 12, ..none }),
            ("^5s", FormatSpec { alignment: Some(Alignment::Center), width: 5, ..none }),
            (",.2f", FormatSpec { thousands: true, places: Some(2), ..none }),
            (".1%", FormatSpec { places: Some(1), percent: true, ..none }),
            (",d", FormatSpec { thousands: true, ..none }),
            ("hex", FormatSpec { hex: true, ..none }),
            ("04x", FormatSpec { zero: true, width: 4, hex: true, ..none }),
            ("0", FormatSpec { zero: true, ..none }),
            ("1000", FormatSpec { width: 1_000, ..none }),
        ] {
            assert_eq!(FormatSpec::parse(text), Ok(spec), "{text}");
        }
        for text in ["1001", ".101", ".999999999999999999999", "99999999999999999999"] {
            let error = FormatSpec::parse(text).unwrap_err();
            assert!(error.to_string().contains("too wide"), "{error}");
        }
        for text in [">>8", "x8", ".", ".f", "8px", "%%", ",.2x", "é", "{}", "i", "-8"] {
            let error = FormatSpec::parse(text).unwrap_err();
            assert!(error.to_string().contains("is not a format"), "{error}");
        }
    }
}
