//! Reads a call, starting after its header.

use super::{
    Action, Note, answer,
    arguments::{self, is_ellipsis},
    body,
    header::{self, Header, Kind, after_decoration, closing_tag},
    quote,
    text::{after_parenthesis, after_space, char_at, fence, slice, trim_blank_lines},
};

/// A call and its end offset.
pub(super) struct Call {
    pub(super) action: Action,
    pub(super) end: usize,
    pub(super) note: Option<Note>,
    /// If true, the text only mentions a call: the call has no arguments, or an argument is an
    /// ellipsis.
    pub(super) is_mention: bool,
}

/// Reads the call that begins with `header`.
pub(super) fn read(text: &str, header: &Header<'_>) -> Call {
    let inside = header.inside;
    if is_escaped(text, inside) {
        // The text after the call is not read, because offsets in the unescaped text do not match
        // offsets in `text`.
        let unescaped = quote::unescape(slice(text, inside, text.len()));
        let call = read_from(&unescaped, &Header { inside: 0, ..*header });
        let more = after_decoration(&unescaped, call.end) < unescaped.len();
        return Call {
            end: text.len(),
            note: call.note.or(more.then_some(Note::DroppedAfterCall)),
            ..call
        };
    }
    read_from(text, header)
}

fn read_from(text: &str, header: &Header<'_>) -> Call {
    let inside = header.inside;
    let missing = (!header.parenthesis).then_some(Note::UnclosedCall);
    let mut call = match header.kind {
        Kind::Wat => wat(text, inside),
        Kind::Catalog => catalog(text, inside, None),
        Kind::Fix => fix(text, inside),
        Kind::Program(name) => catalog(text, inside, Some(name)),
        Kind::Response => {
            let found = answer::read(text, inside);
            let action = Action::Response { text: found.text };
            Call { action, end: found.end, note: found.note, is_mention: false }
        }
    };
    call.note = call.note.or(missing);
    call.is_mention |= is_hollow(text, inside);
    call
}

fn wat(text: &str, inside: usize) -> Call {
    if let Some(mut found) = arguments::read_object(text, inside, "body") {
        let body = trim_blank_lines(&found.take("body").unwrap_or_default()).to_owned();
        let (end, note) = (found.end, found.note);
        return Call {
            action: Action::Wat { body, args: found.into_values() },
            end,
            note,
            is_mention: false,
        };
    }
    let body = body::read(text, inside);
    let (args, end, note) = if body.continues && breaks_off(text, body.end) {
        (Vec::new(), body.end, Some(Note::UnclosedCall))
    } else if body.continues {
        let found = arguments::read(text, body.end);
        let (end, note) = (found.end, found.note);
        (found.into_values(), end, note)
    } else {
        (Vec::new(), body.end, None)
    };
    Call {
        action: Action::Wat { body: body.text, args },
        end,
        note: body.note.or(note),
        is_mention: false,
    }
}

/// Returns true if the line after a program begins with something other than an argument. The call
/// then ends without a closing parenthesis.
fn breaks_off(text: &str, at: usize) -> bool {
    let next = after_space(text, at);
    if closing_tag(text, next) > 0 {
        return true;
    }
    let continues = after_parenthesis(text, next).is_some()
        || matches!(char_at(text, next), None | Some(',' | '，'))
        || quote::at_offset(text, next).is_some_and(|quote| quote.mark != '`')
        || arguments::after_key(text, next).is_some()
        || arguments::is_comment(text, next);
    !continues && slice(text, at, next).contains('\n')
}

fn catalog(text: &str, inside: usize, name: Option<&str>) -> Call {
    let object = arguments::read_object(text, inside, "name").filter(|_| name.is_none());
    let mut found = object.unwrap_or_else(|| arguments::read(text, inside));
    let is_mention = found.have_ellipsis();
    let name = name.map_or_else(|| found.take_name(), str::to_owned);
    let (end, note) = (found.end, found.note);
    let (args, names) = found.into_named_values();
    Call { action: Action::Catalog { name, args, names }, end, note, is_mention }
}

/// Maximum number of consecutive fixes that are read. The limit keeps the reader's running time
/// linear.
const MAX_FIXES: usize = 32;

/// Reads a fix. Consecutive fixes are merged into one.
fn fix(text: &str, inside: usize) -> Call {
    let first = arguments::read(text, inside);
    let is_mention = first.have_ellipsis();
    let (mut end, mut note) = (first.end, first.note);
    let mut texts = first.into_fix_texts();
    for _ in 1..MAX_FIXES {
        let next = header::at_offset(text, after_decoration(text, end));
        let Some(next) = next.filter(|next| matches!(next.kind, Kind::Fix) && note.is_none())
        else {
            break;
        };
        let found = arguments::read(text, next.inside);
        if found.have_ellipsis() || is_hollow(text, next.inside) {
            break;
        }
        (end, note) = (found.end, found.note);
        texts.extend(found.into_fix_texts());
    }
    Call { action: Action::Fix { texts }, end, note, is_mention }
}

/// Returns true if the whole call is escaped as in a string literal: a backslash precedes the first
/// quote or follows the fence's language.
fn is_escaped(text: &str, inside: usize) -> bool {
    let start = after_space(text, inside);
    let is_word = |b: &&u8| b.is_ascii_alphanumeric();
    match fence(text, start) {
        Some((_, length)) => {
            let info =
                text.as_bytes().iter().skip(start + length).take(20).take_while(is_word).count();
            slice(text, start + length + info, start + length + info + 2) == "\\n"
        }
        None => matches!(slice(text, start, start + 2), "\\\"" | "\\'"),
    }
}

/// Returns true if the parentheses are empty or contain only an ellipsis.
fn is_hollow(text: &str, inside: usize) -> bool {
    let start = after_space(text, inside);
    let dots = slice(text, start, text.len())
        .chars()
        .take(4)
        .take_while(|c| is_ellipsis(c.encode_utf8(&mut [0; 4])));
    let end = start + dots.map(char::len_utf8).sum::<usize>();
    after_parenthesis(text, after_space(text, end)).is_some()
}
