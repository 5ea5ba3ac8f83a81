//! The whole module text: imports, the memory, static data, then what the author wrote.

use std::fmt::Write;

use super::diagnostic::clamp;
use super::emit::Emitter;
use super::program::Program;
use super::tree::{NodeId, Tree};
use super::wording::Fault;
use crate::{Signature, Signatures};

/// A module text with what is known of it.
pub(super) struct Module {
    pub(super) text: String,
    pub(super) imports: Vec<Signature>,
    pub(super) heap_base: u32,
    pub(super) warnings: Vec<Fault>,
    /// Where each piece of the text comes from, by ascending offset; empty unless it was asked for.
    pub(super) marks: Vec<(u32, NodeId)>,
}

/// Writes the module. `ending` is what the body lacks at its end; `marked` asks for [`Module::marks`].
pub(super) fn write(
    tree: &Tree<'_>,
    program: &Program<'_>,
    host: &Signatures,
    ending: &str,
    marked: bool,
) -> Result<Module, Box<Fault>> {
    let mut emit = Emitter::new(tree, program, host, marked);
    for item in &program.items {
        emit.line();
        emit.list(*item)?;
    }
    let last = program.funcs.len().saturating_sub(1);
    for (at, func) in program.funcs.iter().enumerate() {
        let run = at == last;
        emit.func(func, run, if run { ending } else { "" })?;
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
    let shift = clamp(text.len());
    text.push_str(&emit.out);
    text.push_str(")\n");
    let mut marks = emit.marks.unwrap_or_default();
    for (offset, _) in &mut marks {
        *offset += shift;
    }
    Ok(Module { text, imports: emit.imports, heap_base, warnings: emit.warnings, marks })
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
