//! The output of `jq`.

use std::io::{self, Write};

use jaq_json::{Num, Val};

/// The format of the output.
#[derive(Default)]
pub(crate) struct Look {
    /// The indentation of one level. If `None`, each value is printed on one line.
    pub indent: Option<String>,
    pub raw: bool,
    pub ascii: bool,
    pub sorted: bool,
    /// The text printed after each value; a newline by default.
    pub end: Option<&'static str>,
    /// If true, prints a record separator before each value.
    pub record_mark: bool,
}

/// Prints a value and the text after it.
pub(crate) fn value(out: &mut impl Write, look: &Look, value: &Val) -> io::Result<()> {
    if look.record_mark {
        out.write_all(b"\x1e")?;
    }
    match value {
        Val::TStr(bytes) if look.raw && !look.ascii => out.write_all(bytes)?,
        other => part(out, look, 0, other)?,
    }
    out.write_all(look.end.unwrap_or("\n").as_bytes())
}

fn part(out: &mut impl Write, look: &Look, level: usize, value: &Val) -> io::Result<()> {
    match value {
        Val::Null => out.write_all(b"null"),
        Val::Bool(yes) => write!(out, "{yes}"),
        Val::Num(number) => numeral(out, number),
        Val::TStr(bytes) | Val::BStr(bytes) => text(out, look, bytes),
        Val::Arr(items) => {
            out.write_all(b"[")?;
            for (n, item) in items.iter().enumerate() {
                next(out, look, level + 1, n)?;
                part(out, look, level + 1, item)?;
            }
            last(out, look, level, items.is_empty())?;
            out.write_all(b"]")
        }
        Val::Obj(map) => {
            let mut fields: Vec<(&Val, &Val)> = map.iter().collect();
            if look.sorted {
                fields.sort_by_key(|(name, _)| *name);
            }
            out.write_all(b"{")?;
            for (n, (name, value)) in fields.iter().enumerate() {
                next(out, look, level + 1, n)?;
                part(out, look, level + 1, name)?;
                out.write_all(if look.indent.is_some() { b": " } else { b":" })?;
                part(out, look, level + 1, value)?;
            }
            last(out, look, level, fields.is_empty())?;
            out.write_all(b"}")
        }
    }
}

fn next(out: &mut impl Write, look: &Look, level: usize, n: usize) -> io::Result<()> {
    if n > 0 {
        out.write_all(b",")?;
    }
    line(out, look, level)
}

fn last(out: &mut impl Write, look: &Look, level: usize, empty: bool) -> io::Result<()> {
    if empty { Ok(()) } else { line(out, look, level) }
}

fn line(out: &mut impl Write, look: &Look, level: usize) -> io::Result<()> {
    let Some(indent) = &look.indent else { return Ok(()) };
    out.write_all(b"\n")?;
    (0..level).try_for_each(|_| out.write_all(indent.as_bytes()))
}

fn numeral(out: &mut impl Write, number: &Num) -> io::Result<()> {
    match number {
        Num::Float(float) => out.write_all(float_text(*float).as_bytes()),
        Num::Dec(digits) => match digits.parse::<f64>() {
            // A literal keeps its digits, unless it has an exponent.
            Ok(float) if digits.contains(['e', 'E']) => out.write_all(float_text(float).as_bytes()),
            _ => out.write_all(digits.as_bytes()),
        },
        other => write!(out, "{other}"),
    }
}

/// Formats a float with at most 17 significant digits. Very small or large floats get an exponent.
fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "null".to_owned();
    }
    let float = float.clamp(f64::MIN, f64::MAX);
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let count = digits.bytes().filter(u8::is_ascii_digit).count() as i32;
    if exponent < -5 || exponent >= count + 15 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{float}")
}

fn text(out: &mut impl Write, look: &Look, bytes: &[u8]) -> io::Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = 0;
    out.write_all(b"\"")?;
    for (at, letter) in text.char_indices() {
        let escaped = match letter {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            '\r' => "\\r".to_owned(),
            '\x08' => "\\b".to_owned(),
            '\x0c' => "\\f".to_owned(),
            control if control < ' ' || control == '\x7f' => format!("\\u{:04x}", control as u32),
            wide if look.ascii && !wide.is_ascii() => {
                let mut units = [0; 2];
                wide.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }
            _ => continue,
        };
        out.write_all(text.get(plain..at).unwrap_or_default().as_bytes())?;
        out.write_all(escaped.as_bytes())?;
        plain = at + letter.len_utf8();
    }
    out.write_all(text.get(plain..).unwrap_or_default().as_bytes())?;
    out.write_all(b"\"")
}
