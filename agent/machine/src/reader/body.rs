//! Reads the fenced, quoted or bare program in `ToolCall::Wat(…)`.

use super::{
    Note,
    arguments::after_key,
    quote::{self, Quote},
    scan::{Scan, Stop, Until, closes_call, scan},
    text::{
        after_blanks, after_space, byte, char_at, fence, line_end, run, slice, starts,
        trim_blank_lines,
    },
};

/// A program, and the offset at which the call continues.
pub(super) struct Body {
    pub(super) text: String,
    pub(super) end: usize,
    /// If true, arguments or the closing parenthesis may follow.
    pub(super) continues: bool,
    pub(super) note: Option<Note>,
}

/// Language names that may follow an opening fence.
const LANGUAGES: [&str; 9] =
    ["wat", "wast", "wasm", "webassembly", "text/wat", "lisp", "scheme", "clojure", "text"];

/// Reads the program that begins at `at`.
pub(super) fn read(text: &str, at: usize) -> Body {
    let at = after_space(text, at);
    let at = after_key(text, at).unwrap_or(at);
    if let Some((mark, length)) = fence(text, at) {
        return fenced(text, at, mark, length);
    }
    // Two backticks are treated as a fence with a missing backtick.
    if run(text, at, b'`') == 2 {
        return fenced(text, at, b'`', 2);
    }
    match quote::at_offset(text, at) {
        Some(quote) => {
            let body = quoted(text, quote);
            Body { text: without_fence(&body.text), ..body }
        }
        None => unquoted(text, at),
    }
}

/// Removes a fence around the whole program.
fn without_fence(program: &str) -> String {
    if let Some((mark, length)) = fence(program, 0) {
        let inner = fenced(program, 0, mark, length);
        if inner.end == program.len() && inner.note.is_none() {
            return inner.text;
        }
    }
    program.to_owned()
}

/// Reads a program in the fence that opens at `at`.
pub(super) fn fenced(text: &str, at: usize, mark: u8, length: usize) -> Body {
    let mut inside = after_info(text, at + length);
    // Ignores a second opening fence right after the first.
    let again = after_space(text, inside);
    if let Some((_, marks)) = fence(text, again)
        && !closes_call(text, again + marks)
    {
        inside = after_info(text, again + marks);
    }
    let scan = scan(text, inside, Until::Fence { mark, length });
    let note = (scan.stop != Stop::Closed).then_some(Note::UnclosedFence);
    Body { continues: scan.stop != Stop::Broken, ..body(text, inside, scan, note) }
}

fn unquoted(text: &str, at: usize) -> Body {
    let word = LANGUAGES.iter().find(|word| {
        starts(text, at, word)
            && matches!(byte(text, after_space(text, at + word.len())), b'(' | b';')
    });
    let inside = match word {
        Some(word) if !matches!(byte(text, at + word.len()), b'(' | b';') => at + word.len(),
        // The first line's indentation belongs to the program.
        _ => slice(text, 0, at)
            .rfind('\n')
            .map_or(at, |line| if after_blanks(text, line + 1) == at { line + 1 } else { at }),
    };
    let scan = scan(text, inside, Until::Parenthesis);
    let broken = scan.stop == Stop::Broken;
    Body { continues: !broken, ..body(text, inside, scan, broken.then_some(Note::UnclosedCall)) }
}

fn quoted(text: &str, quote: Quote) -> Body {
    if !quote.is_triple
        && let Some((end, after)) = quote::close(text, quote)
        && matches!(char_at(text, after_space(text, after)), None | Some(',' | ')' | '）'))
    {
        let source = quote::content(slice(text, quote.inside, end), quote);
        return Body {
            text: trim_blank_lines(&source).to_owned(),
            end: after,
            continues: true,
            note: None,
        };
    }
    let Ok(mark) = u8::try_from(quote.mark) else {
        return typographic(text, quote);
    };
    let length = if quote.is_triple { 3 } else { 1 };
    let scan = scan(text, quote.inside, Until::Quote { mark, length });
    let note = (scan.stop != Stop::Closed).then_some(Note::UnclosedString);
    Body { continues: scan.stop != Stop::Broken, ..body(text, quote.inside, scan, note) }
}

/// Reads a program in typographic quotes. If the closing quote is missing, reads the text as a bare
/// program.
fn typographic(text: &str, quote: Quote) -> Body {
    match quote::close(text, quote) {
        Some((end, after)) => {
            let source = trim_blank_lines(slice(text, quote.inside, end)).to_owned();
            Body { text: source, end: after, continues: true, note: None }
        }
        None => unquoted(text, quote.inside),
    }
}

fn body(text: &str, inside: usize, scan: Scan, note: Option<Note>) -> Body {
    let source = slice(text, inside, scan.end);
    let source =
        if scan.stop == Stop::Closed { source } else { without_fence_line(source.trim_end()) };
    Body {
        text: trim_blank_lines(source).trim_end().to_owned(),
        end: scan.after,
        continues: true,
        note,
    }
}

/// Removes the last line if it is a fence other than the expected closing one.
fn without_fence_line(source: &str) -> &str {
    match source.rsplit_once('\n') {
        Some((before, line))
            if fence(line.trim(), 0).is_some_and(|(_, length)| length == line.trim().len()) =>
        {
            before
        }
        _ => source,
    }
}

/// Returns the offset at which a fence's content begins: the start of the next line, or the start
/// of the program if the program begins on the fence's line.
fn after_info(text: &str, at: usize) -> usize {
    let line = line_end(text, at);
    let info = slice(text, at, line);
    let word = info.trim_start();
    let start = at + info.len() - word.len();
    let known = LANGUAGES.iter().find(|name| {
        starts(word, 0, name)
            && !byte(word, name.len()).is_ascii_alphanumeric()
            && byte(word, name.len()) != b'.'
    });
    let has_program = info.contains(['(', ';']) || info.contains("```");
    match known {
        Some(name) if has_program => after_blanks(text, start + name.len()),
        None if has_program || word.split_whitespace().count() > 1 => at,
        _ => (line + 1).min(text.len()),
    }
}
