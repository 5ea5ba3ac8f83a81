//! Syntax highlighting for programs.
//!
//! The highlighter must cope with any input, complete or not. Therefore it has its own small lexer:
//! the language's own lexer stops at the first error.

use std::sync::LazyLock;
use std::{collections::BTreeSet, iter};

use anstyle::{AnsiColor, Style};
use wattle_agent::host::capability;
use wattle_agent::host::rt::forms;

use super::{DIM, paint, visible};

/// The kind of a token, which determines how the token is highlighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A parenthesis or a bracket.
    Parenthesis,
    /// A string.
    Text,
    /// A comment.
    Comment,
    /// The name of a form, at the head of a list.
    Form,
    /// The name of a host function.
    Host,
    /// A name that begins with `$`.
    Name,
    /// A number.
    Number,
    /// Everything else.
    Plain,
}

impl Kind {
    /// Returns the style of this kind.
    pub(crate) fn style(self) -> Style {
        let plain = Style::new();
        match self {
            Kind::Parenthesis | Kind::Comment => DIM,
            Kind::Text => AnsiColor::Green.on_default(),
            Kind::Form => AnsiColor::Magenta.on_default(),
            Kind::Host => AnsiColor::Cyan.on_default(),
            Kind::Name => AnsiColor::Yellow.on_default(),
            Kind::Number => AnsiColor::Blue.on_default(),
            Kind::Plain => plain,
        }
    }
}

/// The names of the forms.
static FORMS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| forms().map(|form| form.name).collect());

/// The names of the host functions.
static FUNCTIONS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let functions = capability::ALL.iter().flat_map(|capability| capability.functions);
    functions.map(|function| function.name.split('/').next().unwrap_or_default()).collect()
});

/// A token of a program.
pub(crate) struct Piece<'a> {
    /// The byte index of its start.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
    pub(crate) kind: Kind,
}

/// Splits a program into tokens: parentheses, strings, comments, words and whitespace. Together,
/// the tokens cover the whole program.
pub(crate) fn pieces(program: &str) -> Vec<Piece<'_>> {
    let mut rest = program;
    let mut is_head = false;
    iter::from_fn(|| {
        let start = program.len() - rest.len();
        let first = rest.chars().next()?;
        let (length, kind) = piece(rest, first, is_head);
        // Whitespace between a parenthesis and the head of a list does not matter.
        is_head = rest.starts_with(['(', '[']) && kind == Kind::Parenthesis
            || is_head && rest.starts_with(char::is_whitespace);
        let (text, after) = rest.split_at(length);
        rest = after;
        Some(Piece { start, text, kind })
    })
    .collect()
}

/// Returns the length of the first token in `rest`, in bytes, and the token's kind. `first` is the
/// first character of `rest`.
fn piece(rest: &str, first: char, is_head: bool) -> (usize, Kind) {
    let run = |wanted: &dyn Fn(char) -> bool| rest.find(|c: char| !wanted(c)).unwrap_or(rest.len());
    if rest.starts_with(";;") {
        return (rest.find('\n').unwrap_or(rest.len()), Kind::Comment);
    }
    if rest.starts_with("(;") {
        return (rest.find(";)").map_or(rest.len(), |end| end + 2), Kind::Comment);
    }
    match first {
        '(' | ')' | '[' | ']' => (1, Kind::Parenthesis),
        '"' => (text_end(rest), Kind::Text),
        c if c.is_whitespace() => (run(&char::is_whitespace), Kind::Plain),
        _ => {
            let length =
                run(&|c| !c.is_whitespace() && !"()[]\";".contains(c)).max(first.len_utf8());
            (length, word(rest.split_at(length).0, is_head))
        }
    }
}

/// Returns the length of the string literal at the start of `rest`, in bytes.
fn text_end(rest: &str) -> usize {
    if let Some(inner) = rest.strip_prefix("\"\"\"") {
        return inner.find("\"\"\"").map_or(rest.len(), |end| end + 6);
    }
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |(at, _)| at + 1)
}

fn word(word: &str, is_head: bool) -> Kind {
    let bare = word.trim_end_matches(['?', '!']);
    let name = bare.trim_start_matches('$');
    if FUNCTIONS.contains(name) {
        return Kind::Host;
    }
    if word.starts_with('$') {
        return Kind::Name;
    }
    if is_head && (FORMS.contains(bare) || matches!(bare, "fn" | "func" | "global" | "call")) {
        return Kind::Form;
    }
    let digits = word.trim_start_matches(['-', '+']);
    if digits.starts_with(|c: char| c.is_ascii_digit()) { Kind::Number } else { Kind::Plain }
}

/// Renders a program in colours, for [`styled`](super::styled) or [`note`](super::note).
pub(crate) fn program(text: &str) -> String {
    let render = |Piece { text, kind, .. }: Piece<'_>| match kind {
        Kind::Plain => visible(text),
        kind => paint(kind.style(), &visible(text)),
    };
    pieces(text).into_iter().map(render).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(&str, Kind)> {
        let pieces = pieces(text).into_iter().map(|piece| (piece.text, piece.kind));
        pieces.filter(|(text, kind)| *kind != Kind::Plain || !text.trim().is_empty()).collect()
    }

    #[test]
    fn the_pieces_of_a_program_have_their_kinds() {
        assert_eq!(
            kinds("(let $n (str.len? \"a\\\"(\")) ;; why"),
            [
                ("(", Kind::Parenthesis),
                ("let", Kind::Form),
                ("$n", Kind::Name),
                ("(", Kind::Parenthesis),
                ("str.len?", Kind::Host),
                ("\"a\\\"(\"", Kind::Text),
                (")", Kind::Parenthesis),
                (")", Kind::Parenthesis),
                (";; why", Kind::Comment),
            ]
        );
        assert_eq!(
            kinds("( call $str.len -12 let)"),
            [
                ("(", Kind::Parenthesis),
                ("call", Kind::Form),
                ("$str.len", Kind::Host),
                ("-12", Kind::Number),
                ("let", Kind::Plain),
                (")", Kind::Parenthesis),
            ]
        );
    }

    #[test]
    fn the_pieces_cover_every_text() {
        for text in
            ["", "(", "\"", "\"\"\"a", "(; b", ";;", "é(漢\"字", "\\", "a;b", "\u{1b}[2J", ";"]
        {
            let whole: String = pieces(text).into_iter().map(|piece| piece.text).collect();
            assert_eq!(whole, text);
        }
    }
}
