//! A mapping from byte offsets in a module to source nodes.

use wasmparser::{Parser, Payload};
use wast::core::{FuncKind, ModuleField, ModuleKind};
use wast::parser::{self, ParseBuffer};

use crate::lower::module::Module;
use crate::syntax::tree::NodeId;

/// Returns the source node of the instruction at each of the given offsets in the encoded module.
/// The list contains `None` for each offset without an instruction. Returns `None` instead of a
/// list if the module cannot be encoded.
///
/// The instructions of a function have the same order in the binary and in the text format, so they
/// are matched by counting.
pub(crate) fn nodes_at(module: &Module, offsets: &[usize]) -> Option<Vec<Option<NodeId>>> {
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
        // The function's final `end` is not an instruction in the text, so it is mapped to the last
        // instruction.
        let span = spans.get(instruction).or(spans.last())?;
        origin(module, span.offset())
    };
    Some(
        instructions_at(&binary, offsets)
            .into_iter()
            .map(|instruction| instruction.and_then(node))
            .collect(),
    )
}

/// Returns the source node for which the module text at `offset` was emitted, if any.
pub(crate) fn origin(module: &Module, offset: usize) -> Option<NodeId> {
    let after = module.marks.partition_point(|(start, _)| *start as usize <= offset);
    let (_, node) = module.marks.get(after.checked_sub(1)?)?;
    Some(*node).filter(|node| *node != NodeId::NONE)
}

/// Returns, for each offset, the index of the function that contains the offset, and the index of
/// the instruction in that function. Returns `None` for each offset outside all functions.
fn instructions_at(binary: &[u8], offsets: &[usize]) -> Vec<Option<(usize, usize)>> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    order.sort_by_key(|at| offsets.get(*at));
    let mut pending = order.into_iter().filter_map(|at| Some((at, *offsets.get(at)?))).peekable();
    let mut found = vec![None; offsets.len()];
    let bodies =
        Parser::new(0).parse_all(binary).map_while(Result::ok).filter_map(
            |payload| match payload {
                Payload::CodeSectionEntry(body) => Some(body),
                _ => None,
            },
        );
    for (func, body) in bodies.enumerate() {
        while pending.next_if(|(_, offset)| *offset < body.range().start).is_some() {}
        let Ok(mut operators) = body.get_operators_reader() else { continue };
        let mut before = 0_usize;
        while let Some((at, offset)) = pending.next_if(|(_, offset)| *offset <= body.range().end) {
            while !operators.eof()
                && operators.original_position() <= offset
                && operators.read().is_ok()
            {
                before += 1;
            }
            if let Some(slot) = found.get_mut(at) {
                *slot = Some((func, before.saturating_sub(1)));
            }
        }
    }
    found
}

/// Returns the index of the global whose type or initial value contains a byte offset in the
/// encoded module, or `None` if there is no such global.
pub(crate) fn global_at(module: &Module, offset: usize) -> Option<usize> {
    let buffer = ParseBuffer::new(&module.text).ok()?;
    let binary = parser::parse::<wast::Wat<'_>>(&buffer).ok()?.encode().ok()?;
    for payload in Parser::new(0).parse_all(&binary) {
        let Payload::GlobalSection(section) = payload.ok()? else { continue };
        let before =
            |item: &Result<(usize, _), _>| item.as_ref().is_ok_and(|(start, _)| *start <= offset);
        let count = section.clone().into_iter_with_offsets().take_while(before).count();
        return section.range().contains(&offset).then_some(count.checked_sub(1)).flatten();
    }
    None
}
