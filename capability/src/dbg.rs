//! `dbg`: debug output in the trace. It is not part of the results that the user and the model see.

use std::fmt::Write;

use wattle_rt::abi::Untyped;
use wattle_rt::{Code, Failure, Run, capability, quote};

use crate::arr::{Arrays, Handle};
use crate::decimal::Number;
use crate::json::document;
use crate::map::{self, Entry};

capability! {
    /// Debug trace output.
    pub const DBG: "dbg" 2;

    /// Writes a line to the run's trace
    #[example = r#"(dbg.log "here")"#]
    #[prompt(name)]
    fn log(ptr: str) = log;

    /// Writes a value to the run's trace: a string or bytes with length, kind and first part, an
    /// array or map with its items, or a number
    #[example = r#"(dbg.dump "answer" "{\"a\":1}")"#]
    #[prompt(name)]
    fn dump(label: str, value: any) = dump;
}

/// Maximum number of items printed for an array or map.
const ITEMS: usize = 10;
/// Maximum length of a printed string, in characters.
const TEXT: usize = 200;
/// Maximum length of a printed item, in characters.
const ITEM: usize = 40;
/// Maximum number of bytes printed for a binary value.
const BYTES: usize = 16;

fn log(run: &mut Run, line: &str) -> Result<(), Failure> {
    run.log(line);
    Ok(())
}

/// Logs every possible interpretation of a value: an i32 may be a number, a pointer or a handle.
fn dump(run: &mut Run, label: &str, value: Untyped<'_>) -> Result<(), Failure> {
    let number = value.number;
    let mut readings = Vec::new();
    readings.extend(value.bytes.map(describe));
    if let Ok(items) = Arrays::of(run).get(Handle(number)) {
        readings.push(format!(
            "array of {}: [{}]",
            items.len(),
            list(&*items, |item| preview(item, ITEM))
        ));
    }
    if let Ok(entries) = map::of(run, number) {
        let entry = |(key, value): (&String, &Entry)| {
            format!("{}: {}", preview(key.as_bytes(), ITEM), preview(&value.text(), ITEM))
        };
        readings.push(format!("map of {}: {{{}}}", entries.len(), list(&*entries, entry)));
    }
    let code = Code::ALL
        .iter()
        .find(|code| code.number() == number && readings.is_empty())
        .and_then(|code| code.name());
    match (readings.as_slice(), code) {
        ([], Some(code)) => readings.push(format!("a number, as a code {code}")),
        ([], None) => readings.push("a number".to_owned()),
        _ => {}
    }
    run.log(&format!("{label}: {number} = {}", readings.join(", or ")));
    Ok(())
}

/// Renders the first items, followed by the number of remaining items.
fn list<I: IntoIterator<IntoIter: ExactSizeIterator>>(
    items: I,
    show: impl Fn(I::Item) -> String,
) -> String {
    let items = items.into_iter();
    let more = items.len().saturating_sub(ITEMS);
    let mut text = items.take(ITEMS).map(show).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, ", … {more} more");
    }
    text
}

/// Describes a value: its format, its length and a preview.
fn describe(bytes: &[u8]) -> String {
    let length = bytes.len();
    match std::str::from_utf8(bytes) {
        Ok("") => "an empty string".to_owned(),
        Ok(text) => format!("{} of {length} bytes: {}", kind_of_text(text), preview(bytes, TEXT)),
        Err(_) => format!("{} of {length} bytes: {}", kind_of_bytes(bytes), preview(bytes, TEXT)),
    }
}

/// Returns a truncated preview: a string in quotes, or binary data as hexadecimal digits.
fn preview(bytes: &[u8], chars: usize) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => quote(text, chars),
        Err(_) => {
            let digits: Vec<String> =
                bytes.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
            format!("{}{}", digits.join(" "), if bytes.len() > BYTES { " …" } else { "" })
        }
    }
}

/// Returns the format of a string. A string that is too long to parse as JSON is classified by its
/// first character.
fn kind_of_text(text: &str) -> &'static str {
    const MAX_PARSED: usize = 64 << 10;
    let trimmed = text.trim();
    let is_json = || trimmed.len() > MAX_PARSED || document::check(trimmed).is_ok();
    let starts_with = |prefixes: &[&str]| {
        prefixes
            .iter()
            .any(|b| trimmed.get(..b.len()).is_some_and(|start| start.eq_ignore_ascii_case(b)))
    };
    match trimmed.as_bytes() {
        [] => "blank text",
        [b'{', ..] if is_json() => "JSON object",
        [b'[', ..] if is_json() => "JSON array",
        _ if starts_with(&["<!doctype html", "<html"]) => "HTML",
        _ if starts_with(&["<?xml"]) => "XML",
        _ if starts_with(&["http://", "https://"]) && !trimmed.contains(char::is_whitespace) => {
            "URL"
        }
        _ if trimmed.parse::<i64>().is_ok() => "text of an integer",
        _ if trimmed.len() < 64 && Number::read(trimmed.as_bytes()).is_some() => "text of a number",
        _ => "text",
    }
}

/// Returns the format of binary data, based on its magic number.
fn kind_of_bytes(bytes: &[u8]) -> &'static str {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF-", "PDF"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip"),
        (b"\0asm", "WebAssembly module"),
    ];
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("bytes", |(_, kind)| kind)
}
