//! The reason why a module cannot be encoded or compiled.

use crate::Signatures;
use crate::check::walk::{ParsedModule, Stop};
use crate::check::{locate, verify};
use crate::cost::{self, Refusal};
use crate::diagnose::diagnostic::{Diagnostic, Severity};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{self, Fault};
use crate::lower::module::Module;
use crate::lower::program::Program;
use crate::syntax::tree::{NodeId, Tree};

/// Checks the instructions of a program. Returns the first fault as an error.
pub(crate) fn first_fault(
    tree: &Tree<'_>,
    program: &Program<'_>,
    module: &Module,
    host: &Signatures,
) -> Result<(), Box<Fault>> {
    let written = ParsedModule::read(tree, module, host)?;
    let fault = |result| match result {
        Err(Stop::Fault(fault)) => Some(fault),
        Err(Stop::Unsupported) | Ok(_) => None,
    };
    // The helper functions are in source order, so only the first faulty one matters. The program
    // itself comes last in the module, but may come earlier in the source.
    let own = written.walk_program().map_or_else(|stop| fault(Err(stop)), |_| None);
    let first = written.walk_helpers().find_map(fault);
    match first.into_iter().chain(own).min_by_key(|fault| fault.span.start) {
        Some(first) => Err(first),
        None => invalid(tree, program, module),
    }
}

/// Builds the diagnostic for a fault. Includes the fix only if it improves the program.
pub(crate) fn diagnose(fault: Fault, source: &str, host: &Signatures) -> Diagnostic {
    verify::verified(unverified(fault, source, host), source, host)
}

/// Builds the diagnostic for a fault, without verifying its fix. If an unclosed form has no fix
/// yet, adds one that inserts the closing parenthesis, provided that exactly one position for it
/// makes the program valid.
pub(crate) fn unverified(fault: Fault, source: &str, host: &Signatures) -> Diagnostic {
    let change = if fault.message.is_unclosed() && fault.message.lacks_fix() {
        closed_anywhere(source, host)
    } else {
        None
    };
    Fault { message: fault.message.maybe_safe(change), ..fault }
        .into_diagnostic(source, Severity::Error)
}

/// Maximum length, in bytes, of a source that is searched for the position of a missing
/// parenthesis.
const MAX_SEARCHED: usize = 4 << 10;

/// Maximum number of positions to try for a missing parenthesis.
const MAX_TRIED: usize = 48;

/// Returns the change that inserts a missing parenthesis, if exactly one position for it makes the
/// program valid.
fn closed_anywhere(source: &str, host: &Signatures) -> Option<Change> {
    let tree = Tree::read(source).ok().filter(|_| source.len() <= MAX_SEARCHED)?;
    let [open] = tree.open.as_slice() else { return None };
    // All positions in a sequence of closing parentheses are equivalent.
    let behind = |at: usize| {
        at + source.get(at..).map_or(0, |rest| rest.len() - rest.trim_start_matches(')').len())
    };
    let mut positions: Vec<usize> =
        (open.0..tree.len()).map(|node| tree.span(NodeId(node)).end).map(behind).collect();
    positions.sort_unstable();
    positions.dedup();
    if positions.len() > MAX_TRIED {
        return None;
    }
    let closed = |at: usize| Some(format!("{}){}", source.get(..at)?, source.get(at..)?));
    let mut valid = positions
        .into_iter()
        .filter(|at| closed(*at).is_some_and(|text| crate::fault(&text, host).is_none()));
    let at = valid.next()?;
    valid.next().is_none().then(|| Change::edit(at..at, ")"))
}

/// Encodes and validates the module. A parse error, an exceeded cost limit or a validation error is
/// reported at its position in the source.
fn invalid(tree: &Tree<'_>, program: &Program<'_>, module: &Module) -> Result<(), Box<Fault>> {
    let at = |node: Option<_>| node.map_or(0..0, |node| tree.span(node));
    let read = |e: &wast::Error| {
        Fault::new(at(locate::origin(module, e.span().offset())), wording::invalid(&e.message()))
    };
    let buffer = wast::parser::ParseBuffer::new(&module.text).map_err(|e| read(&e))?;
    let binary = wast::parser::parse::<wast::Wat<'_>>(&buffer)
        .and_then(|mut wat| wat.encode())
        .map_err(|e| read(&e))?;
    let in_code = |offset: usize| locate::nodes_at(module, &[offset])?.pop()?;
    if let Err(Refusal::Excess(excess)) = cost::of(&binary) {
        let message = wording::too_large(excess.measure, excess.found);
        return Err(Fault::new(at(excess.offset.and_then(in_code)), message));
    }
    wasmparser::Validator::new().validate_all(&binary).map_err(|e| {
        let global = |nth| {
            program
                .items
                .iter()
                .filter(|item| tree.head(**item) == Some("global"))
                .nth(nth)
                .copied()
        };
        let node = in_code(e.offset()).or_else(|| global(locate::global_at(module, e.offset())?));
        Fault::new(at(node), wording::invalid(e.message()))
    })?;
    Ok(())
}
