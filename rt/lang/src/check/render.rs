//! Rendering of a [`Diagnostic`] with its source lines. The diagnostic's range is underlined.

use std::fmt::{self, Write};

use unicode_width::UnicodeWidthChar;

use crate::diagnose::diagnostic::Diagnostic;

/// The role of a piece of text in a rendered diagnostic. It determines the text's colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `error[code]` or `warning[code]`.
    Severity,
    /// The message.
    Message,
    /// Arrows, line numbers and separators.
    Margin,
    /// The program's source.
    Source,
    /// The underline.
    Mark,
    /// `hint:` or `fix:`.
    Hint,
    /// The hint, or the description of the fix.
    Advice,
    /// A line as it was before the fix.
    Removed,
    /// A line as it is after the fix.
    Added,
}

/// Maximum width of a line, in terminal columns. If a line is wider, only the part around the
/// diagnostic's range is shown.
const MAX_WIDTH: usize = 120;

/// Maximum number of lines that are shown from a diagnostic's range.
const MAX_LINES: usize = 6;

/// Distance between tab stops, in columns.
const TAB: usize = 4;

impl Diagnostic {
    /// Renders the diagnostic for people: its message, the lines of its range, its hint, and the
    /// changes that its fix makes. `source` is the text that the diagnostic refers to, and `paint`
    /// colours each piece of the output.
    ///
    /// ```
    /// use wattle_lang::{Signatures, explain};
    /// let source = "(drop “x”)";
    /// let diagnostic = explain(source, &Signatures::default()).ok_or("no fault")?;
    /// assert_eq!(
    ///     diagnostic.render(source, |_, piece| piece.to_owned()),
    ///     "error[bad-character]: unexpected character `“`\n \
    ///      --> line 1, column 7\n  \
    ///      1 | (drop “x”)\n    \
    ///        |       ^\n\
    ///      hint: write a string in plain quotes: \"…\"\n\
    ///      fix: `“x”` → `\"x\"`\n  \
    ///      1 - (drop “x”)\n  \
    ///      1 + (drop \"x\")\n"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn render(&self, source: &str, paint: impl Fn(Role, &str) -> String) -> String {
        let mut out = String::new();
        let last = self.end.line.max(self.position.line);
        let width = last.to_string().len();
        let margin = |out: &mut String, number: &str, sign: &str| {
            let _ = write!(out, "{} ", paint(Role::Margin, &format!("  {number:>width$} {sign}")));
        };
        let title = paint(Role::Severity, &format!("{}[{}]", self.severity, self.code));
        let _ = writeln!(out, "{title}: {}", paint(Role::Message, &self.message));
        let _ = writeln!(out, "{}", paint(Role::Margin, &format!(" --> {}", self.position)));
        let count = (last - self.position.line) as usize + 1;
        let lines = source.split('\n').map(|line| line.trim_end_matches('\r'));
        for (nth, line) in lines.skip(self.position.line as usize - 1).take(count).enumerate() {
            let skipped = count > MAX_LINES && nth >= MAX_LINES - 2 && nth + 1 < count;
            if skipped {
                if nth == MAX_LINES - 2 {
                    margin(&mut out, "…", "|");
                    out.push('\n');
                }
                continue;
            }
            let blank = line.len() - line.trim_start().len();
            let from = if nth == 0 {
                self.position.column as usize - 1
            } else {
                line.get(..blank).map_or(0, chars)
            };
            let to = if nth + 1 == count { self.end.column as usize - 1 } else { chars(line) };
            let MarkedLine { line, indent, marks } = marked(line, from, to);
            margin(&mut out, &(self.position.line as usize + nth).to_string(), "|");
            let _ = writeln!(out, "{}", paint(Role::Source, &line));
            margin(&mut out, "", "|");
            let _ =
                writeln!(out, "{}{}", " ".repeat(indent), paint(Role::Mark, &"^".repeat(marks)));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "{} {}", paint(Role::Hint, "hint:"), paint(Role::Advice, hint));
        }
        let Some(fix) = &self.fix else { return out };
        let _ = writeln!(
            out,
            "{} {}",
            paint(Role::Hint, "fix:"),
            paint(Role::Advice, &fix.description)
        );
        let fixed = fix.apply(source);
        for (number, (old, new)) in
            (1..).zip(source.lines().zip(fixed.lines())).filter(|(_, (old, new))| old != new)
        {
            // A fix never changes the number of lines, so lines with the same number correspond.
            for (role, sign, line) in [(Role::Removed, "-", old), (Role::Added, "+", new)] {
                let shown = marked(line, 0, 1).line;
                let _ = writeln!(
                    out,
                    "  {:>width$} {} {}",
                    paint(Role::Margin, &number.to_string()),
                    sign,
                    paint(role, &shown)
                );
            }
        }
        out
    }
}

/// Renders the diagnostic for models: its message, its position, its first line with the range
/// underlined, and its hint.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.position.column as usize - 1;
        let total = chars(&self.line_text);
        let to =
            if self.end.line > self.position.line { total } else { self.end.column as usize - 1 };
        let MarkedLine { line, indent, marks } = marked(&self.line_text, from, to);
        let number = self.position.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        writeln!(f, " --> {}", self.position)?;
        writeln!(f, "  {number} | {line}")?;
        writeln!(f, "  {margin} | {}{}", " ".repeat(indent), "^".repeat(marks))?;
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A line to display, with the position and length of its underline, both in terminal columns.
struct MarkedLine {
    line: String,
    indent: usize,
    marks: usize,
}

/// Lays out a line with the characters `from..to` underlined.
///
/// Tabs and control characters become spaces, so that the underline stays aligned.
fn marked(line: &str, from: usize, to: usize) -> MarkedLine {
    let mut laid = Vec::new();
    let mut column = 0;
    let mut begin = None;
    let mut end = None;
    for (nth, c) in line.chars().enumerate() {
        if nth == from {
            begin = Some(column);
        }
        if nth == to {
            end = Some(column);
        }
        let (shown, width) = match c {
            '\t' => (' ', TAB - column % TAB),
            c if c.is_control() || is_direction_mark(c) => (' ', 1),
            c => (c, c.width().unwrap_or(0)),
        };
        laid.push((shown, width, c == '\t'));
        column += width;
    }
    let begin = begin.unwrap_or(column);
    let end = end.unwrap_or(column);
    let skip = if column <= MAX_WIDTH { 0 } else { begin.saturating_sub(MAX_WIDTH / 2) };
    let mut shown = String::new();
    let mut at = 0;
    for (c, width, tab) in laid {
        if at >= skip && at + width <= skip + MAX_WIDTH {
            shown.extend(std::iter::repeat_n(c, if tab { width } else { 1 }));
        }
        at += width;
    }
    let cut = skip + MAX_WIDTH < column;
    let (before, after) = (if skip > 0 { "…" } else { "" }, if cut { "…" } else { "" });
    let end = end.min(skip + MAX_WIDTH);
    MarkedLine {
        line: format!("{before}{shown}{after}"),
        indent: begin - skip + usize::from(skip > 0),
        marks: end.saturating_sub(begin).max(1),
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Returns true if a character changes the text direction.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
