//! What is told about a program's text: one format for people, the model and tools.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A place in a program's text, both numbers from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters, not bytes.
    pub column: u32,
}

impl Position {
    /// The place of the byte at `offset`; an offset beyond the end stands for the end.
    #[must_use]
    pub fn of(source: &str, offset: usize) -> Position {
        let before = source.get(..source.floor_char_boundary(offset)).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = 1 + before.bytes().filter(|b| *b == b'\n').count();
        let column = 1 + before.get(line_start..).unwrap_or("").chars().count();
        Position { line: clamp(line), column: clamp(column) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// How much a [`Diagnostic`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program cannot run.
    Error,
    /// The program runs; its text was mended or has a likely slip.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One finding about a program's text, at its place in the author's own lines.
///
/// ```
/// use wattle_rt::{Diagnostic, Severity};
/// let source = "(resv $p)\n(i32.div_s (i32.const 1) (i32.const 0))";
/// let trap = Diagnostic::new(source, Severity::Error, "trap", 10..42, "integer divide by zero", None);
/// assert_eq!(
///     trap.to_string(),
///     "error[trap]: integer divide by zero\n \
///      --> line 2, column 1\n  \
///      2 | (i32.div_s (i32.const 1) (i32.const 0))\n    \
///        | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The class of the finding, such as `unknown-function`; stable.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The place, in bytes of the source.
    pub span: Range<u32>,
    /// The place's begin as line and column.
    pub position: Position,
    /// What was found and what was expected.
    pub message: String,
    /// What to do about it, where that can be said.
    pub hint: Option<String>,
    /// The line of `position`, without its line end.
    pub line_text: String,
}

/// Lines longer than this are shown cut around the place.
const SHOWN: usize = 120;

impl Diagnostic {
    /// Makes a finding about `source`. A span beyond its end is moved to its end.
    #[must_use]
    pub fn new(
        source: &str,
        severity: Severity,
        code: &'static str,
        span: Range<u32>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Diagnostic {
        let start = source.floor_char_boundary(span.start as usize);
        let end = source.floor_char_boundary(span.end as usize).max(start);
        let line_start = source.get(..start).and_then(|s| s.rfind('\n')).map_or(0, |at| at + 1);
        let line_text = source.get(line_start..).and_then(|rest| rest.split('\n').next()).unwrap_or("");
        Diagnostic {
            code,
            severity,
            span: clamp(start)..clamp(end),
            position: Position::of(source, start),
            message: message.into(),
            hint,
            line_text: line_text.trim_end_matches('\r').to_owned(),
        }
    }

    /// The finding as one JSON object: `severity`, `code`, `line`, `column`, `message`, `hint` (or null).
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "severity": self.severity,
            "code": self.code,
            "line": self.position.line,
            "column": self.position.column,
            "message": self.message,
            "hint": self.hint,
        })
    }

    /// The shown part of the line, the column in it where the marks begin, and how many marks there are.
    fn excerpt(&self) -> (String, usize, usize) {
        let column = self.position.column.saturating_sub(1) as usize;
        let total = self.line_text.chars().count();
        let (skip, take) = if total <= SHOWN { (0, total) } else { (column.saturating_sub(SHOWN / 2), SHOWN) };
        // Characters that a terminal would act upon are shown as blanks, so that the marks stay in place.
        let visible = |c: char| if c.is_control() || is_direction_mark(c) { ' ' } else { c };
        let shown: String = self.line_text.chars().skip(skip).take(take).map(visible).collect();
        let (before, after) = (if skip > 0 { "…" } else { "" }, if skip + take < total { "…" } else { "" });
        let indent = before.chars().count() + column - skip;
        let marked = self.marked_chars().min((skip + take).saturating_sub(column)).max(1);
        (format!("{before}{shown}{after}"), indent, marked)
    }

    /// How many characters of the first line the span covers.
    fn marked_chars(&self) -> usize {
        let bytes = (self.span.end - self.span.start) as usize;
        let column = self.position.column.saturating_sub(1) as usize;
        let mut covered = 0;
        self.line_text
            .chars()
            .skip(column)
            .take_while(|c| {
                let inside = covered < bytes;
                covered += c.len_utf8();
                inside
            })
            .count()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, indent, marked) = self.excerpt();
        let number = self.position.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        writeln!(f, " --> {}", self.position)?;
        writeln!(f, "  {number} | {line}")?;
        writeln!(f, "  {margin} | {}{}", " ".repeat(indent), "^".repeat(marked))?;
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// Whether a character changes the direction in which its neighbours are shown.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A place as the 32 bits that positions are kept in; sources are far shorter.
pub(super) fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
