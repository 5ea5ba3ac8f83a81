//! `fmt`: text with holes.

use std::borrow::Cow;

use super::super::emit::{Emitted, Emitter};
use super::super::ops::Val;
use super::super::out::{Out, Place};
use super::super::tree::{Kind, NodeId};
use super::super::wording::Fault;
use super::{all_operands, operand_count, words};

/// A piece of the text.
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
pub(super) fn fmt(emit: &mut Emitter<'_, '_>, list: NodeId, _: Place) -> Emitted {
    let tree = emit.tree;
    let nodes = all_operands(tree, list);
    let Some((template, values)) = nodes.split_first() else { return Err(operand_count(tree, list, 1, 0)) };
    if !matches!(tree.node(*template).kind, Kind::Text | Kind::Block) {
        return Err(Fault::new(tree.span(*template), words::fmt_template(tree.text(*template))));
    }
    let text = emit.text_value(*template)?;
    let pieces = pieces(&text).map_err(|found| Fault::new(tree.span(*template), words::fmt_hole(&found)))?;
    let holes = pieces.iter().filter(|piece| !matches!(piece, Piece::Text(_))).count();
    if holes != values.len() {
        let words = match values.len() > holes && !tree.open.is_empty() {
            true => super::wording::unclosed_form("fmt", None),
            false => words::fmt_count(holes, values.len()),
        };
        return Err(Fault::new(tree.span(list), words));
    }
    let mut values = values.iter();
    emit.enter(list)?;
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            emit.blank();
        }
        match piece {
            Piece::Text(bytes) => {
                let address = emit.data.address(Cow::Owned(bytes.clone()));
                emit.put(*template, &format!("(i32.const {address})"));
            }
            hole => {
                let Some(value) = values.next() else { continue };
                self::value(emit, list, hole, *value)?;
            }
        }
        if at > 0 {
            emit.blank();
            emit.open_call(list, "str.cat")?;
            emit.out.push_str(") ");
            emit.leave_on_error(list)?;
        }
    }
    if pieces.is_empty() {
        let address = emit.data.address(Cow::Borrowed(b""));
        emit.put(*template, &format!("(i32.const {address})"));
    }
    emit.depth -= 1;
    Ok(Out::one(Val::I32))
}

/// Writes the text of a value.
fn value(emit: &mut Emitter<'_, '_>, list: NodeId, hole: &Piece, node: NodeId) -> Emitted<()> {
    let (function, ty, after) = match hole {
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

/// Takes a template apart; gives a hole that is none.
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
                let hole = hole(inside).ok_or_else(|| shown(inside, "}"))?;
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(hole);
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

fn hole(inside: &[u8]) -> Option<Piece> {
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
