//! The text of a module: imports, the memory, static data, and then the program's items and
//! functions.

use std::fmt::Write;

use super::LoweredProgram;
use super::flow::Flow;
use super::output::{Printer, Wat};
use crate::Signature;
use crate::diagnose::diagnostic::clamp;
use crate::diagnose::wording::Fault;
use crate::syntax::tree::{NodeId, Tree};

/// The text of a module, with its source positions.
pub(crate) struct Module {
    pub(crate) text: String,
    pub(crate) imports: Vec<Signature>,
    pub(crate) heap_base: u32,
    pub(crate) warnings: Vec<Fault>,
    /// The offset and the source node of each piece of WAT in the text, in ascending order of
    /// offset. Empty unless requested.
    pub(crate) marks: Vec<(u32, NodeId)>,
    /// The control flow at the end of the program's body, and the number of values that the body
    /// leaves.
    pub(crate) flow: Flow,
    /// The range of the program's items and functions in the text.
    pub(crate) body: std::ops::Range<usize>,
    /// The offset, in the text, of the parenthesis that closes the program's function.
    end: usize,
}

/// Prints a lowered program. If `marked` is true, records [`Module::marks`].
pub(crate) fn write(
    tree: &Tree<'_>,
    lowered: LoweredProgram<'_>,
    marked: bool,
) -> Result<Module, Box<Fault>> {
    let LoweredProgram { items, funcs, imports, warnings } = lowered;
    let mut printer = Printer::new(tree, marked);
    for item in items {
        printer.print(&item.on_line(true))?;
    }
    let (mut flow, mut end) = (Flow::Unknown, 0);
    for func in funcs {
        flow = func.flow;
        printer.open(func.node, &func.head);
        for part in &func.header {
            printer.print(part)?;
        }
        for (name, ty) in &func.variables {
            printer.declare(func.node, name, ty);
        }
        let begins_line = func.variables.is_empty();
        printer.print(&Wat::sequence(func.node, func.pieces).on_line(begins_line))?;
        end = printer.close();
    }
    let mut text = String::with_capacity(printer.out.len() + 1024);
    text.push_str("(module\n");
    for import in &imports {
        write_import(&mut text, import);
    }
    let heap_base = printer.data.end();
    let pages = heap_base.div_ceil(65_536) + 1;
    let _ = writeln!(text, "  (memory (export \"mem.tape\") {pages})");
    printer.data.write(&mut text);
    let start = text.len();
    text.push_str(&printer.out);
    let body = start..text.len();
    text.push_str(")\n");
    let mut marks = printer.marks.unwrap_or_default();
    for (offset, _) in &mut marks {
        *offset += clamp(start);
    }
    Ok(Module { text, imports, heap_base, warnings, marks, flow, body, end: start + end })
}

impl Module {
    /// Makes the program return 0.
    pub(crate) fn end_with_success(&mut self) {
        const ENDING: &str = "\n    (i32.const 0)";
        self.text.insert_str(self.end, ENDING);
        self.body.end += ENDING.len();
    }
}

/// Writes an import, such as `(import "str" "len" (func $str.len (param i32) (result i32)))`.
fn write_import(text: &mut String, import: &Signature) {
    let (module, name) = (import.module, import.name);
    let parts = ["  (import \"", module, "\" \"", name, "\" (func $", module, ".", name];
    text.extend(parts);
    if !import.params.is_empty() {
        text.push_str(" (param");
        for ty in import.pops() {
            text.push(' ');
            text.push_str(ty.wat());
        }
        text.push(')');
    }
    if import.pushes().next().is_some() {
        text.push_str(" (result");
        for ty in import.pushes() {
            text.push(' ');
            text.push_str(ty.wat());
        }
        text.push(')');
    }
    text.push_str("))\n");
}
