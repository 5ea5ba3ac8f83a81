//! The module text: imports, the memory, static data, then the program's items and functions.

use std::fmt::Write;

use crate::diagnostic::clamp;
use crate::emit::Emitter;
use crate::emit::flow::Flow;
use crate::messages::Fault;
use crate::program::Program;
use crate::tree::{NodeId, Tree};
use crate::{Signature, Signatures};

/// A module's text, with its source positions.
pub(super) struct Module {
    pub(super) text: String,
    pub(super) imports: Vec<Signature>,
    pub(super) heap_base: u32,
    pub(super) warnings: Vec<Fault>,
    /// The source node of each piece of the text, by ascending offset. Empty unless requested.
    pub(super) marks: Vec<(u32, NodeId)>,
    /// The flow at the end of the program's body.
    pub(super) flow: Flow,
    /// The range of the program's items and functions in the text.
    pub(super) body: std::ops::Range<usize>,
    /// The end of the program's function in the text.
    end: usize,
}

/// Builds the module. If `marked` is true, records [`Module::marks`].
pub(super) fn write(
    tree: &Tree<'_>,
    program: &Program<'_>,
    host: &Signatures,
    marked: bool,
) -> Result<Module, Box<Fault>> {
    let mut emit = Emitter::new(tree, program, host, marked);
    for item in &program.items {
        emit.line();
        emit.raw(*item)?;
    }
    let last = program.funcs.len().saturating_sub(1);
    let (mut flow, mut end) = (Flow::Unknown, 0);
    for (at, func) in program.funcs.iter().enumerate() {
        let written = emit.func(func, at, at == last)?;
        (flow, end) = (written.flow, written.end);
    }
    let mut text = String::with_capacity(emit.out.len() + 1024);
    text.push_str("(module\n");
    for import in &emit.imports {
        write_import(&mut text, import);
    }
    let heap_base = emit.data.end();
    let pages = heap_base.div_ceil(65_536) + 1;
    let _ = writeln!(text, "  (memory (export \"mem.tape\") {pages})");
    emit.data.write(&mut text);
    let start = text.len();
    text.push_str(&emit.out);
    let body = start..text.len();
    text.push_str(")\n");
    let mut marks = emit.marks.unwrap_or_default();
    for (offset, _) in &mut marks {
        *offset += clamp(start);
    }
    let (imports, warnings) = (emit.imports, emit.warnings);
    Ok(Module { text, imports, heap_base, warnings, marks, flow, body, end: start + end })
}

impl Module {
    /// Makes the program return 0.
    pub(super) fn end_with_success(&mut self) {
        const ENDING: &str = "\n    (i32.const 0)";
        self.text.insert_str(self.end, ENDING);
        self.body.end += ENDING.len();
    }
}

/// Writes `(import "str" "len" (func $str.len (param i32) (result i32)))`.
fn write_import(text: &mut String, import: &Signature) {
    let (module, name) = (import.module, import.name);
    let _ = write!(text, "  (import \"{module}\" \"{name}\" (func ${module}.{name}");
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
