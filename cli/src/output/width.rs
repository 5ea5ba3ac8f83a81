//! Measures and splits strings by the number of columns that they occupy on a terminal. Wide
//! characters occupy two columns. Combining characters occupy none.

use std::io::{stderr, stdout};
use std::os::fd::AsFd;

use rustix::termios::{Winsize, tcgetwinsize};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Assumed width, in columns, of a terminal that does not report its width.
const USUAL: usize = 80;
/// Assumed height, in rows, of a terminal that does not report its height.
const USUAL_ROWS: usize = 24;
/// Minimum width of a layout, in columns.
const LEAST: usize = 20;
/// Maximum width of a layout, in columns. Longer lines are hard to read.
const MOST: usize = 100;

/// Returns the width of the terminal, in columns.
pub(crate) fn columns() -> usize {
    let columns = size().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    columns.unwrap_or(USUAL).max(LEAST)
}

/// Returns the height of the terminal, in rows.
pub(crate) fn rows() -> usize {
    let rows = size().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
    rows.unwrap_or(USUAL_ROWS)
}

fn size() -> Option<Winsize> {
    let of = |stream: &dyn AsFd| tcgetwinsize(stream.as_fd()).ok();
    of(&stdout()).or_else(|| of(&stderr()))
}

/// Returns the width of a layout, in columns: the width of the terminal, up to a readable maximum.
pub(crate) fn layout() -> usize {
    columns().min(MOST)
}

/// Returns the number of columns that a string without line ends occupies.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Returns a string on one line of at most `columns` columns. Line ends and tabs become spaces, and
/// the string is truncated if necessary.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let line: String =
        text.trim_end().chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
    if width(&line) <= columns {
        return line;
    }
    let (mut fitting, mut used) = (String::new(), 0);
    for grapheme in line.graphemes(true) {
        used += grapheme.width();
        if used >= columns {
            break;
        }
        fitting.push_str(grapheme);
    }
    fitting.push('…');
    fitting
}

/// Breaks a string at spaces into lines of at most `columns` columns. A word that is longer than
/// `columns` gets a line of its own and is not split.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    join(text.split_whitespace(), " ", columns)
}

/// Joins parts with a separator into lines of at most `columns` columns. A part that is wider than
/// `columns` gets a line of its own.
pub(crate) fn join(
    parts: impl IntoIterator<Item = impl AsRef<str>>,
    separator: &str,
    columns: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let part = part.as_ref();
        match lines.last_mut() {
            Some(last) if width(last) + width(separator) + width(part) <= columns => {
                last.push_str(separator);
                last.push_str(part);
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Splits a word after at most `columns` columns. The first part contains at least one character.
pub(crate) fn split(word: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    let end = word.grapheme_indices(true).find(|(at, grapheme)| {
        used += grapheme.width();
        *at > 0 && used > columns
    });
    word.split_at_checked(end.map_or(word.len(), |(at, _)| at)).unwrap_or((word, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_combining_characters_are_measured() {
        for (text, columns) in
            [("abc", 3), ("漢字", 4), ("e\u{301}", 1), ("👩‍👩‍👧", 2), ("שלום", 4), ("", 0)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn a_text_is_cut_to_whole_characters() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit("漢字漢字", 4), "漢…");
        assert_eq!(fit("one\ntwo\tthree\n", 20), "one two three");
    }

    #[test]
    fn a_text_is_wrapped_at_spaces() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("漢字 漢字", 8), ["漢字", "漢字"]);
        assert_eq!(wrap("abcdef gh", 4), ["abcdef", "gh"]);
        assert_eq!(join(["one", "two", "three"], " · ", 10), ["one · two", "three"]);
    }

    #[test]
    fn a_word_is_split_at_a_column() {
        assert_eq!(split("abcdef", 4), ("abcd", "ef"));
        assert_eq!(split("漢字", 3), ("漢", "字"));
        assert_eq!(split("漢字", 1), ("漢", "字"));
        assert_eq!(split("ab", 4), ("ab", ""));
    }
}
