//! `dbg`: lines for the trace, which neither user nor model sees as a result.

use std::fmt::Write;

use wattle_rt::abi::Untyped;
use wattle_rt::{Code, Failure, Run, capability, quote};

use crate::arr::{Arrays, Handle};
use crate::map;

capability! {
    /// Lines for the trace.
    pub const DBG: "dbg" 2;

    /// Writes a line into the run's trace
    #[example = r#"(dbg.log "here")"#]
    #[prompt(signature)]
    fn log(ptr: str) = log;

    /// Writes what a value is into the run's trace: a text or bytes with length, kind and beginning, an array or map with its items, or a number
    #[example = r#"(dbg.dump "answer" "{\"a\":1}")"#]
    #[prompt(name)]
    fn dump(label: str, value: any) = dump;
}

/// How many items of an array or map are shown.
const ITEMS: usize = 10;
/// How many characters of a text, and of an item, are shown.
const TEXT: usize = 200;
const ITEM: usize = 40;
/// How many bytes are shown of what is no text.
const BYTES: usize = 16;

fn log(run: &mut Run, line: &str) -> Result<(), Failure> {
    run.log(line);
    Ok(())
}

/// A number means only what the program takes it for, so everything that it can be is told.
fn dump(run: &mut Run, label: &str, value: Untyped<'_>) -> Result<(), Failure> {
    let number = value.number;
    let mut readings = Vec::new();
    readings.extend(value.bytes.map(described));
    if let Ok(items) = Arrays::of(run).get(Handle(number)) {
        readings.push(format!("array of {}: [{}]", items.len(), listed(&*items, |item| shown(item, ITEM))));
    }
    if let Ok(entries) = map::of(run, number) {
        let entry =
            |(key, value): (&String, &Vec<u8>)| format!("{}: {}", shown(key.as_bytes(), ITEM), shown(value, ITEM));
        readings.push(format!("map of {}: {{{}}}", entries.len(), listed(&*entries, entry)));
    }
    let code =
        Code::ALL.iter().find(|code| code.number() == number && readings.is_empty()).and_then(|code| code.name());
    match (readings.as_slice(), code) {
        ([], Some(code)) => readings.push(format!("a number, as a code {code}")),
        ([], None) => readings.push("a number".to_owned()),
        _ => {}
    }
    run.log(&format!("{label}: {number} = {}", readings.join(", or ")));
    Ok(())
}

/// The first items, and how many there are beyond.
fn listed<I: IntoIterator<IntoIter: ExactSizeIterator>>(items: I, show: impl Fn(I::Item) -> String) -> String {
    let items = items.into_iter();
    let more = items.len().saturating_sub(ITEMS);
    let mut text = items.take(ITEMS).map(show).collect::<Vec<_>>().join(", ");
    if more > 0 {
        let _ = write!(text, ", … {more} more");
    }
    text
}

/// Length, kind and beginning of a value.
fn described(bytes: &[u8]) -> String {
    let length = bytes.len();
    match std::str::from_utf8(bytes) {
        Ok("") => "an empty text".to_owned(),
        Ok(text) => format!("{} of {length} bytes: {}", kind_of_text(text), shown(bytes, TEXT)),
        Err(_) => format!("{} of {length} bytes: {}", kind_of_bytes(bytes), shown(bytes, TEXT)),
    }
}

/// A text in quotes, or bytes in hexadecimal digits, cut off.
fn shown(bytes: &[u8], chars: usize) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => quote(text, chars),
        Err(_) => {
            let digits: Vec<String> = bytes.iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect();
            format!("{}{}", digits.join(" "), if bytes.len() > BYTES { " …" } else { "" })
        }
    }
}

/// What a text looks like; what is too long to be read here is told by how it begins.
fn kind_of_text(text: &str) -> &'static str {
    const READ: usize = 64 << 10;
    let trimmed = text.trim();
    let is_json = || trimmed.len() > READ || serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok();
    let begins = |beginnings: &[&str]| {
        beginnings.iter().any(|b| trimmed.get(..b.len()).is_some_and(|start| start.eq_ignore_ascii_case(b)))
    };
    match trimmed.as_bytes() {
        [] => "blank text",
        [b'{', ..] if is_json() => "JSON object",
        [b'[', ..] if is_json() => "JSON array",
        _ if begins(&["<!doctype html", "<html"]) => "HTML",
        _ if begins(&["<?xml"]) => "XML",
        _ if begins(&["http://", "https://"]) && !trimmed.contains(char::is_whitespace) => "URL",
        _ if trimmed.parse::<i64>().is_ok() => "text of an integer",
        _ if trimmed.len() < 64 && trimmed.parse::<f64>().is_ok() => "text of a number",
        _ => "text",
    }
}

/// What bytes that are no text look like, by how they begin.
fn kind_of_bytes(bytes: &[u8]) -> &'static str {
    const SIGNS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"%PDF-", "PDF"),
        (b"PK\x03\x04", "ZIP archive"),
        (b"\x1f\x8b", "gzip"),
        (b"\0asm", "WebAssembly module"),
    ];
    SIGNS.iter().find(|(sign, _)| bytes.starts_with(sign)).map_or("bytes", |(_, kind)| kind)
}
