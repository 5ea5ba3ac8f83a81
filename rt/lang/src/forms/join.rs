//! `fmt`: strings with placeholders.

use std::borrow::Cow;

use super::call::placeholder as placeholder_for;
use super::{all_operands, operand_count};
use crate::emit::flow::{Context, EmittedCode};
use crate::emit::{EmitResult, Emitter};
use crate::fix::Change;
use crate::kinds;
use crate::messages::{Fault, form};
use crate::ops::Val;
use crate::tree::{NodeId, NodeKind, Tree};

/// A piece of the template.
enum Piece {
    Text(Vec<u8>),
    /// `{}`: a string.
    Str,
    /// `{i}`: an i32 in decimal.
    Int,
    /// `{.N}`: an f64 with N digits after the point.
    Float(u32),
}

/// `(fmt "{} has {i}" $name $n)`: joins strings.
pub(super) fn fmt(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let nodes = all_operands(tree, list);
    let Some((template, values)) = nodes.split_first() else {
        return Err(operand_count(tree, list, 1, 0));
    };
    if !matches!(tree.node(*template).kind, NodeKind::Text | NodeKind::Block) {
        return Err(Fault::new(tree.span(*template), form::fmt_template(tree.text(*template))));
    }
    let text = emit.text_value(*template)?;
    let pieces = pieces(&text).map_err(|found| {
        let message = form::fmt_placeholder(&found)
            .maybe_safe(rewrite_placeholders(emit, list, *template, values));
        Fault::new(tree.span(*template), message)
    })?;
    let placeholders = pieces.iter().filter(|piece| !matches!(piece, Piece::Text(_))).count();
    if placeholders != values.len() {
        let message = match values.len() > placeholders && !tree.open.is_empty() {
            true => crate::messages::unclosed_form("fmt", None),
            false => form::fmt_count(placeholders, values.len()).maybe_safe(rewrite_percent(
                tree,
                *template,
                placeholders,
                values.len(),
            )),
        };
        return Err(Fault::new(tree.span(list), message));
    }
    let mut values = values.iter();
    emit.enter(list)?;
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            emit.space();
        }
        match piece {
            Piece::Text(bytes) => {
                let address = emit.data.address(Cow::Owned(bytes.clone()));
                emit.put(*template, &format!("(i32.const {address})"));
            }
            placeholder => {
                let Some(value) = values.next() else { continue };
                self::value(emit, list, placeholder, *value)?;
            }
        }
        if at > 0 {
            emit.space();
            emit.open_call(list, "str.cat")?;
            emit.out.push_str(") ");
            emit.return_on_error(list)?;
        }
    }
    if pieces.is_empty() {
        let address = emit.data.address(Cow::Borrowed(b""));
        emit.put(*template, &format!("(i32.const {address})"));
    }
    emit.depth -= 1;
    Ok(EmittedCode::one(Val::I32))
}

/// Rewrites the placeholders of other languages as those of `fmt`.
///
/// `{name}` is replaced by a placeholder for the local of this name, `{0}` is accepted if all
/// numbers are in order, and `{s}`, `{d}` and `{:.2f}` are translated. Braces that begin no
/// placeholder are doubled.
fn rewrite_placeholders(
    emit: &Emitter<'_, '_>,
    list: NodeId,
    template: NodeId,
    values: &[NodeId],
) -> Option<Change> {
    let tree = emit.tree;
    let (mut edits, mut names, mut count) = (Vec::new(), String::new(), 0);
    let kinds = kinds::enclosing(tree, emit.program, emit.host, list);
    let kind = |node: &NodeId| kinds.as_ref().and_then(|kinds| kinds.kind(*node));
    for (span, inside) in kinds::placeholders(tree, template) {
        let local = format!("${}", inside.trim_start_matches('$'));
        let word = inside.trim_start_matches(':').trim_end_matches('f');
        let written = match inside {
            "" | "i" => None,
            _ if inside.starts_with('.')
                && inside.get(1..).is_some_and(|digits| digits.parse::<u32>().is_ok()) =>
            {
                None
            }
            "s" | ":s" | "str" if values.len() > count => Some("{}".to_owned()),
            "d" | ":d" | "int" | "n" if values.len() > count => Some("{i}".to_owned()),
            _ if inside.parse() == Ok(count) => {
                values.get(count).map(|value| placeholder_for(kind(value)).to_owned())
            }
            _ if word.starts_with('.') && word.get(1..)?.parse::<u32>().is_ok() => {
                Some(format!("{{{word}}}"))
            }
            _ if emit.local(&local).is_some() && values.is_empty() => {
                names.push(' ');
                names.push_str(&local);
                let known = emit.locals.get(&local)?;
                let kind = kinds.as_ref().and_then(|kinds| kinds.local(&local));
                Some(if known.ty == "f64" { "{.2}" } else { placeholder_for(kind) }.to_owned())
            }
            _ => return double_braces(tree, template),
        };
        count += 1;
        edits.extend(written.map(|written| (span, written)));
    }
    let end = tree.span(list).end.checked_sub(1)?;
    if !names.is_empty() {
        edits.push((end..end, names));
    }
    (!edits.is_empty()).then_some(Change::Edits(edits))
}

/// Doubles the braces of JSON in a template: those that begin no placeholder, and their
/// counterparts.
fn double_braces(tree: &Tree<'_>, template: NodeId) -> Option<Change> {
    let (text, start) = (tree.text(template), tree.span(template).start);
    let (mut edits, mut open, mut at) = (Vec::new(), 0_usize, 0);
    while let Some(found) =
        text.get(at..).and_then(|rest| rest.find(['{', '}'])).map(|found| at + found)
    {
        let rest = text.get(found..)?;
        let placeholder =
            ["{}", "{i}", "{{", "}}"].into_iter().find(|placeholder| rest.starts_with(placeholder));
        at = found + placeholder.map_or(1, str::len);
        match placeholder {
            Some("}}") if open > 0 => {
                // Both characters close a brace that is doubled.
                edits.push((start + found..start + found + 2, "}}}}".to_owned()));
                open = open.checked_sub(2)?;
            }
            Some(_) => {}
            None if rest.starts_with('{') => {
                open += 1;
                edits.push((start + found..start + found + 1, "{{".to_owned()));
            }
            None => {
                open = open.checked_sub(1)?;
                edits.push((start + found..start + found + 1, "}}".to_owned()));
            }
        }
    }
    (open == 0 && !edits.is_empty()).then_some(Change::Edits(edits))
}

/// Rewrites `%s` and `%d` as placeholders, in a template that has none.
fn rewrite_percent(
    tree: &Tree<'_>,
    template: NodeId,
    placeholders: usize,
    values: usize,
) -> Option<Change> {
    let (text, start) = (tree.text(template), tree.span(template).start);
    let found: Vec<_> = text
        .match_indices('%')
        .filter_map(|(at, _)| {
            let placeholder = match text.get(at + 1..at + 2)? {
                "s" => "{}",
                "d" | "i" => "{i}",
                _ => return None,
            };
            Some((start + at..start + at + 2, placeholder.to_owned()))
        })
        .collect();
    (placeholders == 0 && found.len() == values && values > 0).then_some(Change::Edits(found))
}

/// Emits the string of a value.
fn value(
    emit: &mut Emitter<'_, '_>,
    list: NodeId,
    placeholder: &Piece,
    node: NodeId,
) -> EmitResult<()> {
    let (function, ty, after) = match placeholder {
        Piece::Int => ("str.from_int", Val::I32, ")".to_owned()),
        Piece::Float(digits) => ("str.from_float", Val::F64, format!(" (i32.const {digits}))")),
        _ => {
            emit.value(list, node, Some(Val::I32))?;
            return Ok(());
        }
    };
    emit.open_call(list, function)?;
    emit.out.push(' ');
    emit.value(list, node, Some(ty))?;
    emit.put(list, &after);
    Ok(())
}

/// Splits a template into pieces. Returns the text of an invalid placeholder as the error.
fn pieces(template: &[u8]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = template;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'{', Some(b'{')) | (b'}', Some(b'}')) => {
                text.push(*byte);
                rest = after.get(1..).unwrap_or(&[]);
            }
            (b'{', _) => {
                let Some(end) = after.iter().position(|byte| *byte == b'}') else {
                    return Err(shown(after.get(..after.len().min(12)).unwrap_or(&[]), ""));
                };
                let inside = after.get(..end).unwrap_or(&[]);
                let placeholder = placeholder(inside).ok_or_else(|| shown(inside, "}"))?;
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(placeholder);
                rest = after.get(end + 1..).unwrap_or(&[]);
            }
            _ => text.push(*byte),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn placeholder(inside: &[u8]) -> Option<Piece> {
    match inside {
        b"" => Some(Piece::Str),
        b"i" => Some(Piece::Int),
        [b'.', digits @ ..] => match std::str::from_utf8(digits).ok()?.parse() {
            Ok(digits @ 0..=17) => Some(Piece::Float(digits)),
            _ => None,
        },
        _ => None,
    }
}

fn shown(inside: &[u8], end: &str) -> String {
    format!("{{{}{end}", String::from_utf8_lossy(inside))
}
