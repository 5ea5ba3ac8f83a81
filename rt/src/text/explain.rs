//! Why a module cannot be encoded or compiled.

use super::emit::{self, Module};
use super::locate;
use super::program;
use super::tree::Tree;
use super::wording::{self, Fault};
use crate::Signatures;

/// Finds the first fault of a text.
pub(super) fn first_fault(mut tree: Tree<'_>, host: &Signatures) -> Result<(), Box<Fault>> {
    let program = program::read(&mut tree, host)?;
    let module = emit::module(&tree, &program, host, "", true)?;
    invalid(&tree, &module)
}

/// What the module's reader and validator say, at the place that they mean.
fn invalid(tree: &Tree<'_>, module: &Module) -> Result<(), Box<Fault>> {
    let at = |node: Option<_>| node.map_or(0..0, |node| tree.span(node));
    let read =
        |e: &wast::Error| Fault::new(at(locate::origin(module, e.span().offset())), wording::invalid(&e.message()));
    let buffer = wast::parser::ParseBuffer::new(&module.text).map_err(|e| read(&e))?;
    let binary =
        wast::parser::parse::<wast::Wat<'_>>(&buffer).and_then(|mut wat| wat.encode()).map_err(|e| read(&e))?;
    wasmparser::Validator::new().validate_all(&binary).map_err(|e| {
        let node = usize::try_from(e.offset()).ok().and_then(|offset| locate::node_at(module, offset));
        Fault::new(at(node), wording::invalid(e.message()))
    })?;
    Ok(())
}
