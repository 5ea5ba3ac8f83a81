//! Styled lines, and functions that wrap them to a given width.

use anstyle::Style;

use crate::output::width::{split, width};
use crate::output::{link, paint};

/// A stretch of text within a line, in a single style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
    /// The address that the span links to.
    pub(super) link: Option<String>,
}

/// A line, or a paragraph before it is wrapped.
pub(super) type Line = Vec<Span>;

impl Span {
    /// Creates a span without a style.
    pub(super) fn plain(text: impl Into<String>) -> Span {
        Span::styled(text, Style::new())
    }

    /// Creates a span with a style.
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Span {
        Span { text: text.into(), style, link: None }
    }
}

/// Returns the width of a line, in columns.
pub(super) fn line_width(line: &Line) -> usize {
    line.iter().map(|span| width(&span.text)).sum()
}

/// Renders a line for [`styled`](crate::output::styled).
pub(super) fn render_line(line: &Line) -> String {
    let render = |span: &Span| {
        let text = match &span.link {
            Some(address) => link(address, &span.text),
            None => span.text.clone(),
        };
        if span.style == Style::new() { text } else { paint(span.style, &text) }
    };
    line.iter().map(render).collect()
}

/// Wraps a paragraph at spaces. A word that is too long is split. A line end in the text begins a
/// new line.
pub(super) fn wrap(paragraph: &Line, columns: usize) -> Vec<Line> {
    let mut lines = vec![Line::new()];
    let mut used = 0;
    // Spaces are printed only if a word follows on the same line.
    let mut pending: Option<Span> = None;
    for span in paragraph {
        let of = |text: &str| Span { text: text.to_owned(), ..span.clone() };
        for word in words(&span.text) {
            if word == "\n" {
                lines.push(Line::new());
                (used, pending) = (0, None);
                continue;
            }
            if word.chars().all(char::is_whitespace) {
                pending = (used > 0).then(|| of(" "));
                continue;
            }
            let space = usize::from(pending.is_some());
            if used > 0 && used + space + width(word) > columns && (space > 0 || used >= columns) {
                lines.push(Line::new());
                (used, pending) = (0, None);
            } else if let (Some(space), Some(line)) = (pending.take(), lines.last_mut()) {
                line.push(space);
                used += 1;
            }
            let mut rest = word;
            while !rest.is_empty() {
                if used >= columns {
                    lines.push(Line::new());
                    used = 0;
                }
                let (part, after) = split(rest, columns.saturating_sub(used));
                used += width(part);
                if let Some(line) = lines.last_mut() {
                    line.push(of(part));
                }
                rest = after;
            }
        }
    }
    lines
}

/// Splits a string into words, the spaces between them, and line ends.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            '\n' => 1,
            c if c.is_whitespace() => {
                rest.find(|c: char| !c.is_whitespace() || c == '\n').unwrap_or(rest.len())
            }
            _ => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(word)
    })
}
