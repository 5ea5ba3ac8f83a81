//! From a place in the module's bytes back to the author's line.

use wasmparser::{Parser, Payload};
use wast::core::{FuncKind, ModuleField, ModuleKind};
use wast::parser::{self, ParseBuffer};

use super::module::Module;
use super::tree::NodeId;

/// The node that the instruction at `offset` of the encoded module comes from.
///
/// The instructions of a function stand in its binary in the order of its text, so the one that holds the offset is
/// found by counting.
pub(super) fn node_at(module: &Module, offset: usize) -> Option<NodeId> {
    let mut buffer = ParseBuffer::new(&module.text).ok()?;
    buffer.track_instr_spans(true);
    let mut wat = parser::parse::<wast::Wat<'_>>(&buffer).ok()?;
    let binary = wat.encode().ok()?;
    let (func, instruction) = instruction_at(&binary, u64::try_from(offset).ok()?)?;
    let wast::Wat::Module(parsed) = &wat else { return None };
    let ModuleKind::Text(fields) = &parsed.kind else { return None };
    let expression = fields
        .iter()
        .filter_map(|field| match field {
            ModuleField::Func(func) => match &func.kind {
                FuncKind::Inline { expression, .. } => Some(expression),
                FuncKind::Import(..) => None,
            },
            _ => None,
        })
        .nth(func)?;
    let spans = expression.instr_spans.as_ref()?;
    // The function's own end is no instruction of the text: it stands for the last one.
    let span = spans.get(instruction).or(spans.last())?;
    origin(module, span.offset())
}

/// The node that the text at `offset` of the module comes from.
pub(super) fn origin(module: &Module, offset: usize) -> Option<NodeId> {
    let after = module.marks.partition_point(|(start, _)| *start as usize <= offset);
    module.marks.get(after.checked_sub(1)?).map(|(_, node)| *node)
}

/// Which function, and which of its instructions, holds a byte of a module.
fn instruction_at(binary: &[u8], offset: u64) -> Option<(usize, usize)> {
    let mut func = 0;
    for payload in Parser::new(0).parse_all(binary) {
        let Payload::CodeSectionEntry(body) = payload.ok()? else { continue };
        if body.range().contains(&offset) || body.range().end == offset {
            let mut operators = body.get_operators_reader().ok()?;
            let mut count = 0_usize;
            while !operators.eof() {
                if operators.original_position() > offset {
                    break;
                }
                operators.read().ok()?;
                count += 1;
            }
            return Some((func, count.saturating_sub(1)));
        }
        func += 1;
    }
    None
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
