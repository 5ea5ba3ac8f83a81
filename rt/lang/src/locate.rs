//! From a place in the module's bytes back to the author's line.

use wasmparser::{Parser, Payload};
use wast::core::{FuncKind, ModuleField, ModuleKind};
use wast::parser::{self, ParseBuffer};

use crate::module::Module;
use crate::tree::NodeId;

/// The nodes that the instructions at those offsets of the encoded module come from.
///
/// The instructions of a function stand in its binary in the order of its text, so the one that holds an offset is
/// found by counting.
pub(super) fn nodes_at(module: &Module, offsets: &[usize]) -> Option<Vec<Option<NodeId>>> {
    let mut buffer = ParseBuffer::new(&module.text).ok()?;
    buffer.track_instr_spans(true);
    let mut wat = parser::parse::<wast::Wat<'_>>(&buffer).ok()?;
    let binary = wat.encode().ok()?;
    let wast::Wat::Module(parsed) = &wat else { return None };
    let ModuleKind::Text(fields) = &parsed.kind else { return None };
    let functions = fields.iter().filter_map(|field| match field {
        ModuleField::Func(func) => match &func.kind {
            FuncKind::Inline { expression, .. } => Some(expression),
            FuncKind::Import(..) => None,
        },
        _ => None,
    });
    let functions: Vec<_> = functions.collect();
    let node = |(func, instruction): (usize, usize)| {
        let spans = functions.get(func)?.instr_spans.as_ref()?;
        // The function's own end is no instruction of the text: it stands for the last one.
        let span = spans.get(instruction).or(spans.last())?;
        origin(module, span.offset())
    };
    Some(instructions_at(&binary, offsets).into_iter().map(|place| place.and_then(node)).collect())
}

/// The node that the text at `offset` of the module comes from.
pub(super) fn origin(module: &Module, offset: usize) -> Option<NodeId> {
    let after = module.marks.partition_point(|(start, _)| *start as usize <= offset);
    module.marks.get(after.checked_sub(1)?).map(|(_, node)| *node)
}

/// Which function, and which of its instructions, holds each of those bytes of a module.
fn instructions_at(binary: &[u8], offsets: &[usize]) -> Vec<Option<(usize, usize)>> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    order.sort_by_key(|at| offsets.get(*at));
    let mut waiting = order.into_iter().filter_map(|at| Some((at, u64::try_from(*offsets.get(at)?).ok()?))).peekable();
    let mut places = vec![None; offsets.len()];
    let bodies = Parser::new(0).parse_all(binary).map_while(Result::ok).filter_map(|payload| match payload {
        Payload::CodeSectionEntry(body) => Some(body),
        _ => None,
    });
    for (func, body) in bodies.enumerate() {
        while waiting.next_if(|(_, offset)| *offset < body.range().start).is_some() {}
        let Ok(mut operators) = body.get_operators_reader() else { continue };
        let mut before = 0_usize;
        while let Some((at, _)) = waiting.next_if(|(_, offset)| *offset <= body.range().end) {
            let offset = offsets.get(at).map_or(0, |offset| *offset as u64);
            while !operators.eof() && operators.original_position() <= offset && operators.read().is_ok() {
                before += 1;
            }
            if let Some(place) = places.get_mut(at) {
                *place = Some((func, before.saturating_sub(1)));
            }
        }
    }
    places
}

/// Which global's type and initial value hold a byte of a module.
pub(super) fn global_at(module: &Module, offset: u64) -> Option<usize> {
    let buffer = ParseBuffer::new(&module.text).ok()?;
    let binary = parser::parse::<wast::Wat<'_>>(&buffer).ok()?.encode().ok()?;
    for payload in Parser::new(0).parse_all(&binary) {
        let Payload::GlobalSection(section) = payload.ok()? else { continue };
        let before = |item: &Result<(u64, _), _>| item.as_ref().is_ok_and(|(start, _)| *start <= offset);
        let count = section.clone().into_iter_with_offsets().take_while(before).count();
        return section.range().contains(&offset).then_some(count.checked_sub(1)).flatten();
    }
    None
}
