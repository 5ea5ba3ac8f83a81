//! The standard layout of a program file: front matter with sorted keys, followed by the formatted
//! body.

use std::fmt;

use toml_edit::{Decor, DocumentMut, Item, RawString, Table};
use wattle_rt::Diagnostic;

use crate::problem::Problem;
use crate::{Entry, Origin, front};

/// The order of the keys in each table.
const ORDER: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "name",
            "description",
            "returns",
            "result",
            "uses",
            "grants",
            "version",
            "replaces",
            "tags",
            "exclusive",
            "silent",
            "whole",
            "timeout_ms",
            "args",
            "example",
        ],
    ),
    ("args", &["name", "type_hint", "format", "description", "default"]),
    (
        "example",
        &[
            "args",
            "files",
            "kv",
            "memory",
            "http",
            "ai",
            "shell",
            "now",
            "random",
            "code",
            "reason",
            "results",
            "contains",
            "files_after",
            "kv_after",
        ],
    ),
    ("http", &["method", "url", "status", "headers", "body"]),
    ("ai", &["when", "reply"]),
    ("shell", &["line", "stdout", "stderr", "status"]),
];

/// The reason why a file cannot be formatted.
#[derive(Clone, Debug, PartialEq)]
pub enum FormatError {
    /// The front matter is invalid.
    FrontMatter(Problem),
    /// The program cannot be parsed.
    Program(Box<Diagnostic>),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::FrontMatter(problem) => problem.fmt(f),
            FormatError::Program(diagnostic) => diagnostic.fmt(f),
        }
    }
}

impl std::error::Error for FormatError {}

/// Formats the content of a program file. The result consists of the front matter with sorted keys,
/// an empty line, and the body, formatted by [`wattle_rt::format`]. Content without front matter is
/// treated as a body. The meaning of the file does not change. Comments are kept, and comments
/// between lines of front matter become TOML comments.
///
/// ```
/// use wattle_catalog::{Origin, format};
///
/// let text = ";;; description=\"Greet\"\n;;; name = \"hello\"\n(resv\n\"hello\")\n";
/// let formatted = format(text, Origin::BuiltIn("hello.wat"))?;
/// assert_eq!(
///     formatted,
///     ";;; name = \"hello\"\n;;; description = \"Greet\"\n\n(resv\n  \"hello\")\n"
/// );
/// # Ok::<(), wattle_catalog::FormatError>(())
/// ```
///
/// # Errors
/// If the front matter is invalid or the program cannot be parsed. The problem names `origin`.
pub fn format(text: &str, origin: Origin) -> Result<String, FormatError> {
    let has_front = front::is_there(text);
    if has_front {
        Entry::parse(text, origin).map_err(FormatError::FrontMatter)?;
    }
    let formatted = wattle_rt::format(text).map_err(FormatError::Program)?;
    let Some((above, toml, body)) = front::split(text).filter(|_| has_front) else {
        return Ok(formatted);
    };
    let body = wattle_rt::format(body).map_err(FormatError::Program)?;
    // The front matter was parsed above, so it is valid TOML.
    let Ok(mut document) = toml.parse::<DocumentMut>() else { return Ok(formatted) };
    let trailing = notes(document.trailing());
    document.set_trailing(trailing);
    let mut position = 0;
    sort_table(document.as_table_mut(), "", &mut position);
    let mut out = above;
    for line in document.to_string().lines() {
        out.push_str(if line.is_empty() { ";;;" } else { ";;; " });
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&body);
    Ok(out)
}

/// Sorts the keys of a table and of its subtables, and sets the positions of the tables in the
/// document. `position` is the position of the table that was processed last.
fn sort_table(table: &mut Table, name: &str, position: &mut isize) {
    let order = ORDER.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, order)| *order);
    let rank = |key: &str| order.iter().position(|known| *known == key).unwrap_or(order.len());
    if !table.is_dotted() {
        *position += 1;
        table.set_position(Some(*position));
    }
    table.sort_values_by(|a, _, b, _| rank(a.get()).cmp(&rank(b.get())));
    for (mut key, item) in table.iter_mut() {
        if let Item::Value(value) = item {
            let decor = key.leaf_decor_mut();
            let above = decor.prefix().map(notes).unwrap_or_default();
            *decor = Decor::new(above, " ");
            let beside = value.decor().suffix().and_then(RawString::as_str).unwrap_or("").trim();
            let beside = if beside.is_empty() { String::new() } else { format!(" {beside}") };
            *value.decor_mut() = Decor::new(" ", beside);
        }
    }
    let mut keys: Vec<String> = table.iter().map(|(key, _)| key.to_owned()).collect();
    keys.sort_by_key(|key| rank(key));
    for key in keys {
        match table.get_mut(&key) {
            Some(Item::Table(inner)) => sort_section(inner, &key, position),
            Some(Item::ArrayOfTables(tables)) => {
                tables.iter_mut().for_each(|inner| sort_section(inner, &key, position))
            }
            _ => {}
        }
    }
}

/// Sorts a table that has a header and formats the comments around the header.
fn sort_section(table: &mut Table, name: &str, position: &mut isize) {
    let above = table.decor().prefix().map(notes).unwrap_or_default();
    let beside = table.decor().suffix().and_then(RawString::as_str).unwrap_or("").trim();
    let beside = if beside.is_empty() { String::new() } else { format!(" {beside}") };
    *table.decor_mut() = Decor::new(above, beside);
    sort_table(table, name, position);
}

/// Returns the comments before a key, one per line and without empty lines.
fn notes(above: &RawString) -> String {
    let lines = above.as_str().unwrap_or("").lines().map(str::trim).filter(|line| !line.is_empty());
    lines.fold(String::new(), |notes, line| notes + line + "\n")
}
