//! Closing parentheses and error codes that are missing at the end of a program and can be added
//! without guessing.

use crate::Signatures;
use crate::check::walk::{End, ParsedModule, Stop};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{self, Fault};
use crate::lower::flow::Flow;
use crate::lower::module::Module;
use crate::lower::program::Program;
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree, indentation};

/// Checks the forms that are not closed at the end of a program. Returns a warning if their closing
/// parentheses can only be missing at the end of the source, or `None` if all forms are closed.
///
/// Indentation shows where an unclosed form should end: before the first later line that is not
/// indented more deeply than the form. If the parsed form contains that line, a closing parenthesis
/// is missing before the line, and the program is rejected.
pub(crate) fn closed_at_end(tree: &Tree<'_>) -> Result<Option<Box<Fault>>, Box<Fault>> {
    if tree.open.is_empty() {
        return Ok(None);
    }
    let mut nodes = tree.top();
    let mut level = 0;
    // The enclosing lists of the current node, each with the indentation of its line.
    let mut around: Vec<(NodeId, usize)> = Vec::new();
    while let Some(node) = nodes.next_deep(tree) {
        while around.pop_if(|(list, _)| !tree.contains_node(*list, node)).is_some() {}
        if tree.node(node).starts_line {
            level = indentation(tree.source, tree.span(node).start);
            if let Some((left, _)) = around.iter().rev().find(|(_, indented)| *indented >= level) {
                let start = tree.span(*left).start;
                let line = tree.line(node);
                let message = wording::unclosed_form(tree.head(*left).unwrap_or(""), Some(line));
                // The form ends after the last node before that line.
                let line_start = tree.span(node).start;
                let within = (left.0 + 1..node.0)
                    .map(|id| tree.span(NodeId(id)).end)
                    .filter(|end| *end <= line_start);
                let head_end = tree.span(NodeId(left.0 + 1)).end;
                let end = within.max().unwrap_or(head_end);
                let change = Change::edit(end..end, ")");
                return Err(Fault::new(start..start + 1, message.safe(change)));
            }
        }
        if tree.is_list(node) && !is_container(tree, node) {
            around.push((node, level));
        }
    }
    Ok(warn_added(tree))
}

fn warn_added(tree: &Tree<'_>) -> Option<Box<Fault>> {
    let end = tree.source.trim_end().len();
    let last =
        tree.source.get(..end).and_then(|text| text.chars().next_back()).map_or(0, char::len_utf8);
    (!tree.open.is_empty())
        .then(|| Fault::new(end - last..end, wording::closed_at_end(tree.open.len())))
}

/// Returns true if the list is a module or the program's function. Both can end only at the end of
/// the source, regardless of indentation.
fn is_container(tree: &Tree<'_>, list: NodeId) -> bool {
    let mut nodes = tree.children(list);
    match nodes.next(tree).and_then(|node| tree.atom(node)) {
        Some("module") => true,
        Some("func") => nodes.next(tree).and_then(|node| tree.name(node)) == Some("$run"),
        _ => false,
    }
}

/// Returns true if the program certainly ends without leaving its error code on the stack.
///
/// # Errors
///
/// If an unclosed form cannot end at the end of the source.
pub(crate) fn lacks_code(
    tree: &Tree<'_>,
    program: &Program<'_>,
    module: &Module,
    host: &Signatures,
) -> Result<bool, Box<Fault>> {
    if tree.open.is_empty() {
        match module.flow {
            Flow::Net(count) => return Ok(count == 0),
            Flow::Never => return Ok(false),
            Flow::Unknown
                if program.funcs.last().is_some_and(|func| plainly_ends(tree, func.body)) =>
            {
                return Ok(false);
            }
            Flow::Unknown => {}
        }
    }
    let written = ParsedModule::read(tree, module, host)?;
    if !tree.open.is_empty() {
        // If a helper function has a fault about an unclosed form, that fault is the error. Other
        // faults in functions are ignored here.
        let faults = written.walk_helpers().filter_map(|result| match result {
            Err(Stop::Fault(fault)) => Some(fault),
            Err(Stop::Unsupported) | Ok(_) => None,
        });
        if let Some(fault) = faults.take(MAX_FAULTS).find(|fault| fault.message.is_unclosed()) {
            return Err(fault);
        }
    }
    match written.walk_program() {
        Ok(end) => Ok(end == End::MissingCode),
        Err(Stop::Fault(fault)) if fault.message.is_unclosed() && !tree.open.is_empty() => {
            Err(fault)
        }
        Err(Stop::Fault(_) | Stop::Unsupported) => Ok(false),
    }
}

/// Maximum number of faulty functions to examine when searching for an unclosed form.
const MAX_FAULTS: usize = 16;

/// Returns true if the program's last instruction certainly leaves a value on the stack or ends the
/// program.
fn plainly_ends(tree: &Tree<'_>, body: Nodes) -> bool {
    let Some(last) = body.iter(tree).last() else { return false };
    match tree.node(last).kind {
        NodeKind::List => {
            matches!(tree.head(last), Some("i32.const" | "local.get" | "return" | "unreachable"))
        }
        NodeKind::Atom => {
            let before = body.iter(tree).take_while(|node| *node < last).last();
            let before = before.and_then(|node| tree.atom(node));
            matches!(before, Some("i32.const" | "local.get"))
                || matches!(tree.text(last), "return" | "unreachable")
        }
        NodeKind::Text | NodeKind::Block => true,
    }
}
