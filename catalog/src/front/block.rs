//! Extracts the lines of front matter and maps errors to line numbers.

use toml::Spanned;
use wattle_rt::truncate;

use crate::front::LineFault;
use crate::problem::Fault;

/// The front matter of a file as TOML. Line numbers in the TOML are the same as in the file.
pub(super) struct Block {
    pub(super) toml: String,
    /// The byte offset of each line in the TOML.
    starts: Vec<usize>,
    /// The number of the first line of front matter, counted from 1.
    pub(super) first: usize,
    /// The byte offset in the file at which the front matter ends.
    pub(super) end: usize,
}

/// Returns the TOML in a line of front matter. Returns `None` for any other line, such as a comment
/// with four semicolons.
fn front_line(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix(";;;").filter(|rest| !rest.starts_with(';'))?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Extracts the front matter of a file: the lines that start with `;;;`, up to the first line that
/// is neither a comment nor empty.
pub(super) fn block(text: &str) -> Result<Block, LineFault> {
    let mut block = Block { toml: String::new(), starts: Vec::new(), first: 0, end: 0 };
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        at += line.len();
        block.starts.push(block.toml.len());
        if let Some(rest) = front_line(line) {
            block.toml.push_str(rest.trim_end_matches(['\n', '\r']));
            block.end = at;
            if block.first == 0 {
                block.first = index + 1;
            }
        } else if !line.trim().is_empty() && !line.trim_start().starts_with(";;") {
            break;
        }
        block.toml.push('\n');
    }
    if block.first > 0 {
        return Ok(block);
    }
    let is_setting = |line: &str| {
        front_line(line).is_some_and(|rest| rest.contains('=') || rest.starts_with('['))
    };
    let later = text.lines().position(is_setting).map(|index| index + 1);
    Err((1, Fault::NoFrontMatter { later }))
}

/// Splits the start of a file into two strings: the comments before the front matter, and the front
/// matter as TOML. Comments between lines of front matter become TOML comments.
pub(super) fn notes(front: &str) -> (String, String) {
    let (mut above, mut toml) = (String::new(), String::new());
    for line in front.lines() {
        match (front_line(line), line.trim()) {
            (Some(rest), _) => toml += &format!("{rest}\n"),
            (None, "") => {}
            (None, note) if toml.is_empty() => above += &format!("{note}\n"),
            (None, note) => toml += &format!("# {}\n", note.trim_start_matches(';').trim_start()),
        }
    }
    (above, toml)
}

impl Block {
    /// Returns the number of the line that contains a byte offset in the TOML. Lines are counted
    /// from 1.
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).max(self.first)
    }

    /// Returns the number of the line in which a value starts.
    pub(super) fn line_of<T>(&self, value: &Spanned<T>) -> usize {
        self.line(value.span().start)
    }

    /// Converts a TOML parser error to a fault with a line number.
    pub(super) fn fault(&self, error: &toml::de::Error) -> LineFault {
        let line = error.span().map_or(self.first, |span| self.line(span.start));
        let message = error.message();
        let fault = if let Some((key, known)) = unknown(message, "unknown field ") {
            let top = known.iter().any(|key| key == "args");
            Fault::UnknownKey { key, known, top }
        } else if let Some((hint, known)) = unknown(message, "unknown variant ") {
            Fault::UnknownHint { hint, known }
        } else if let Some(key) = message.strip_prefix("missing field ") {
            Fault::MissingKey(key.trim_matches('`').to_owned())
        } else if let Some(value) =
            message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))
        {
            Fault::Value(describe_value(value))
        } else {
            Fault::Toml(
                truncate(&message.split_whitespace().collect::<Vec<_>>().join(" "), MAX_QUOTED)
                    .into_owned(),
            )
        };
        (line, fault)
    }
}

/// Rewrites a serde message such as ``integer `5`, expected u64`` in TOML terms.
fn describe_value(message: &str) -> String {
    let (found, expected) = message.rsplit_once(", expected ").unwrap_or((message, ""));
    let found = found.strip_prefix("sequence").map_or(found, |_| "an array");
    let found = found.strip_prefix("map").map_or(found, |_| "a table");
    let expected = match expected {
        "u64" => "a non-negative integer",
        "i64" => "an integer",
        "a sequence" => "an array",
        "a map" => "a table",
        other if other.starts_with("struct") => "a table",
        other => other,
    };
    format!("found {}, expected {expected}", truncate(found, MAX_QUOTED))
}

/// Maximum length of a string that an error quotes, in characters.
const MAX_QUOTED: usize = 80;

/// Extracts the unknown word and the known words from a serde message that starts with `kind`, such
/// as ``unknown field `x`, expected one of `a`, `b` ``. Returns `None` for any other message.
pub(crate) fn unknown(message: &str, kind: &str) -> Option<(String, Vec<String>)> {
    let (word, rest) = message.strip_prefix(kind)?.strip_prefix('`')?.split_once("`, expected ")?;
    Some((
        truncate(word, MAX_QUOTED).into_owned(),
        rest.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
    ))
}
