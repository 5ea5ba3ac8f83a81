//! The text of a module: imports, the memory, static data, and then the program's items and
//! functions.
//!
//! The static data is the program's string literals. Each literal is stored in wire format, aligned
//! to 4 bytes. Equal literals are stored once.
//!
//! ```text
//! 0        the null address
//! 1024     u32 length, little-endian │ bytes │ zeros up to a multiple of 4
//! …        the next literal
//! ```

use std::borrow::Cow;
use std::fmt::Write;

use crate::diagnose::diagnostic::clamp;
use crate::diagnose::wording::Fault;
use crate::lower::LoweredProgram;
use crate::lower::flow::Flow;
use crate::lower::output::{Printer, Wat};
use crate::syntax::tree::{NodeId, Tree};
use crate::{NameMap, Signature};

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
    let mut flow = Flow::Unknown;
    let mut end = 0;
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

/// The first address of static data. It is greater than every error code, so that no address can be
/// mistaken for a code. Lower addresses are unused, and 0 is the null pointer.
pub(crate) const BASE: u32 = 1_024;

/// The literals of a program.
#[derive(Default)]
pub(crate) struct StaticData<'s> {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    known: NameMap<Cow<'s, [u8]>, u32>,
}

impl<'s> StaticData<'s> {
    /// Returns the address of a literal with this value, and stores the literal if it is new.
    #[expect(clippy::ptr_arg, reason = "a new literal is kept, and borrowed if it can be")]
    pub(crate) fn address(&mut self, value: &Cow<'s, [u8]>) -> u32 {
        if let Some(address) = self.known.get(value) {
            return *address;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let address = BASE + clamp(self.bytes.len());
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(&clamp(value.len()).to_le_bytes());
        self.bytes.extend_from_slice(value);
        self.known.insert(value.clone(), address);
        address
    }

    /// Returns the address after the data, rounded up to a multiple of 16.
    pub(crate) fn end(&self) -> u32 {
        (BASE + clamp(self.bytes.len())).next_multiple_of(16)
    }

    /// Writes the data segment, one literal on each line. Writes nothing if there are no literals.
    pub(crate) fn write(&self, out: &mut String) {
        if self.starts.is_empty() {
            return;
        }
        let _ = write!(out, "  (data (i32.const {BASE})");
        let ends = self.starts.iter().skip(1).copied().chain([self.bytes.len()]);
        for (start, end) in self.starts.iter().zip(ends) {
            out.push_str("\n    \"");
            for byte in self.bytes.get(*start..end).unwrap_or(&[]) {
                match byte {
                    b' '..=b'~' if !matches!(byte, b'"' | b'\\') => out.push(char::from(*byte)),
                    _ => out.extend(['\\', hex_digit(byte >> 4), hex_digit(byte & 15)]),
                }
            }
            out.push('"');
        }
        out.push_str(")\n");
    }
}

/// Returns the hexadecimal digit of a number below 16.
fn hex_digit(number: u8) -> char {
    char::from_digit(number.into(), 16).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use crate::Code;

    #[test]
    fn static_data_begins_above_all_error_codes() {
        assert!(Code::ALL.iter().all(|code| code.number().cast_unsigned() < super::BASE));
        assert_eq!(super::BASE % 16, 0);
    }
}
