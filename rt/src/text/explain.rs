//! Why a module cannot be encoded or compiled.

use super::locate;
use super::module::Module;
use super::program::Program;
use super::tree::Tree;
use super::walk::{Stop, Written};
use super::wording::{self, Fault};
use crate::Signatures;

/// Finds the first fault in the instructions of a program, whose module is `module`.
pub(super) fn first_fault(
    tree: &Tree<'_>,
    program: &Program<'_>,
    module: &Module,
    host: &Signatures,
) -> Result<(), Box<Fault>> {
    let written = Written::read(tree, module, host)?;
    let faults = written.walks().filter_map(|walked| match walked {
        Err(Stop::Fault(fault)) => Some(fault),
        Err(Stop::Unknown) | Ok(_) => None,
    });
    match faults.min_by_key(|fault| fault.span.start) {
        Some(first) => Err(first),
        None => invalid(tree, program, module),
    }
}

/// What the module's reader and validator say, at the place that they mean.
fn invalid(tree: &Tree<'_>, program: &Program<'_>, module: &Module) -> Result<(), Box<Fault>> {
    let at = |node: Option<_>| node.map_or(0..0, |node| tree.span(node));
    let read =
        |e: &wast::Error| Fault::new(at(locate::origin(module, e.span().offset())), wording::invalid(&e.message()));
    let buffer = wast::parser::ParseBuffer::new(&module.text).map_err(|e| read(&e))?;
    let binary =
        wast::parser::parse::<wast::Wat<'_>>(&buffer).and_then(|mut wat| wat.encode()).map_err(|e| read(&e))?;
    wasmparser::Validator::new().validate_all(&binary).map_err(|e| {
        let in_code = usize::try_from(e.offset()).ok().and_then(|offset| locate::nodes_at(module, &[offset])?.pop()?);
        let global = |nth| program.items.iter().filter(|item| tree.head(**item) == Some("global")).nth(nth).copied();
        let node = in_code.or_else(|| global(locate::global_at(module, e.offset())?));
        Fault::new(at(node), wording::invalid(e.message()))
    })?;
    Ok(())
}
