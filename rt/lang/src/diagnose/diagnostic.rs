//! Diagnostics: errors and warnings about a program, for people, models and tools.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde_json::json;

use crate::diagnose::fix::{Edit, Fix};

/// A position in a program's source. Lines and columns are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Position {
    /// Returns the position of the byte at `offset`. An offset past the end counts as the end.
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

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program cannot run.
    Error,
    /// The program runs. Part of its source was fixed or ignored, or is probably a mistake.
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

/// An error or a warning about a range of a program's source.
///
/// ```
/// use wattle_lang::{Diagnostic, Severity};
/// let source = "(resv $p)\n(i32.div_s (i32.const 1) (i32.const 0))";
/// let why = "integer divide by zero";
/// let trap = Diagnostic::new(source, Severity::Error, "trap", 10..42, why, None);
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
    /// The stable code of the diagnostic, such as `unknown-function`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The range in the source, in bytes.
    pub span: Range<u32>,
    /// The line and column of the start of the range.
    pub position: Position,
    /// The line and column of the end of the range, exclusive.
    pub end: Position,
    /// A sentence that describes the fault.
    pub message: String,
    /// A sentence that explains how to fix the fault, if known.
    pub hint: Option<String>,
    /// The edits that fix the fault, if known.
    pub fix: Option<Fix>,
    /// The first line of the range, without its line end.
    pub line_text: String,
}

impl Diagnostic {
    /// Creates a diagnostic about `source`. A span that extends past the end of the source is
    /// truncated.
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
        let line_text =
            source.get(line_start..).and_then(|rest| rest.split('\n').next()).unwrap_or("");
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

    /// Returns the diagnostic with this fix.
    #[must_use]
    pub fn with_fix(self, fix: Option<Fix>) -> Diagnostic {
        Diagnostic { fix, ..self }
    }

    /// Returns the diagnostic as a JSON object. Lines and columns are counted from 1, and columns
    /// are in characters. In `span` and `edits`, `start` and `end` are byte offsets, counted from
    /// 0. All ends are exclusive.
    ///
    /// ```text
    /// { "severity": "error" | "warning", "code": "unknown-function", "line": 1, "column": 7,
    ///   "span": { "start": 6, "end": 17,
    ///     "line": 1, "column": 7, "end_line": 1, "end_column": 18 },
    ///   "message": "…", "hint": "…" | null,
    ///   "fix": null | { "description": "…", "certainty": "safe" | "likely",
    ///                   "edits": [{ "start": 6, "end": 17, "text": "$http.get" }] } }
    /// ```
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let (at, end) = (self.position, self.end);
        let fix = self.fix.as_ref().map(|fix| {
            let edit = |edit: &Edit| {
                json!({
                    "start": edit.span.start, "end": edit.span.end, "text": edit.text,
                })
            };
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
                "line": at.line, "column": at.column,
                "end_line": end.line, "end_column": end.column,
            },
            "message": self.message,
            "hint": self.hint,
            "fix": fix,
        })
    }
}

impl std::error::Error for Diagnostic {}

/// Converts an offset to a `u32`, which is large enough for any offset in a program.
pub(crate) fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Converts a range of offsets.
pub(crate) fn narrow(range: &Range<usize>) -> Range<u32> {
    clamp(range.start)..clamp(range.end)
}

/// Converts a range of offsets.
pub(crate) fn widen(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
