//! What is told about a program's text: one format for people, the model and tools.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde_json::json;

use crate::fix::{Edit, Fix};

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
/// use wattle_lang::{Diagnostic, Severity};
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
    /// The place's end as line and column: that of the first character behind it.
    pub end: Position,
    /// What was found and what was expected.
    pub message: String,
    /// What to do about it, where that can be said.
    pub hint: Option<String>,
    /// The edits that put it right, where they are known.
    pub fix: Option<Fix>,
    /// The line of `position`, without its line end.
    pub line_text: String,
}

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
            end: Position::of(source, end),
            message: message.into(),
            hint,
            fix: None,
            line_text: line_text.trim_end_matches('\r').to_owned(),
        }
    }

    /// The same finding with edits that put it right.
    #[must_use]
    pub fn with_fix(self, fix: Option<Fix>) -> Diagnostic {
        Diagnostic { fix, ..self }
    }

    /// The finding as one JSON object. Lines and columns count from 1, columns in characters; `start` and `end` are
    /// bytes from 0, in `span` and in `edits`; `end` and the end's column are those behind the last character.
    ///
    /// ```text
    /// { "severity": "error" | "warning", "code": "unknown-function", "line": 1, "column": 7,
    ///   "span": { "start": 6, "end": 17, "line": 1, "column": 7, "end_line": 1, "end_column": 18 },
    ///   "message": "…", "hint": "…" | null,
    ///   "fix": null | { "description": "…", "certainty": "safe" | "likely",
    ///                   "edits": [{ "start": 6, "end": 17, "text": "$http.get" }] } }
    /// ```
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let (at, end) = (self.position, self.end);
        let fix = self.fix.as_ref().map(|fix| {
            let edit = |edit: &Edit| json!({"start": edit.span.start, "end": edit.span.end, "text": edit.text});
            let edits: Vec<_> = fix.edits.iter().map(edit).collect();
            json!({"description": fix.description, "certainty": fix.certainty, "edits": edits})
        });
        json!({
            "severity": self.severity,
            "code": self.code,
            "line": at.line,
            "column": at.column,
            "span": {
                "start": self.span.start, "end": self.span.end,
                "line": at.line, "column": at.column, "end_line": end.line, "end_column": end.column,
            },
            "message": self.message,
            "hint": self.hint,
            "fix": fix,
        })
    }
}

impl std::error::Error for Diagnostic {}

/// A place as the 32 bits that positions are kept in; sources are far shorter.
pub(super) fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
