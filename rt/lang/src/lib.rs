//! The language of Wattle's programs: from a program's text to a module, and back to the author's lines.
//!
//! ```text
//! source ── lex ── tree ── program ── emit ──▶ module text ── encode ──▶ module bytes
//!    ▲                                  │                                   │
//!    └────────────── explain ◀──────────┴───────────── locate ◀─────────────┘
//! ```
//!
//! The way down is one linear pass each and keeps no map. The way back repeats it with one, which only happens after
//! a failure; so an assembled module carries nothing of the text that it came from. The crate knows host functions by
//! their [`Signature`] alone, and no engine.

mod bad_tokens;
mod call_effect;
mod check;
mod code;
pub mod cost;
mod diagnostic;
mod draft;
mod emit;
mod ending;
mod explain;
mod fix;
mod format;
mod forms;
mod idioms;
mod kinds;
mod lex;
mod literal;
mod locals;
mod locate;
mod messages;
mod module;
mod nearest;
mod ops;
mod program;
mod render;
mod rewrite;
mod signature;
mod tree;
mod truncate;
mod types;
mod walk;

use std::fmt;
use std::time::Duration;

pub use self::call_effect::CallEffect;
pub use self::check::{Fixed, check, fix};
pub use self::code::Code;
pub use self::diagnostic::{Diagnostic, Position, Severity};
pub use self::fix::{Certainty, Edit, Fix};
pub use self::format::format;
pub use self::forms::{FormDoc, forms};
use self::messages::Fault;
pub use self::render::Role;
pub use self::signature::{Names, Param, Service, Signature, Signatures, Target, Touch, Ty, ValType};
use self::tree::Tree;
pub use self::truncate::{quote, truncate};

/// A program's module.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The whole module in WAT. The same text gives the same bytes, and texts that differ only in blanks within
    /// lines and in comments do too.
    pub module: String,
    /// The host functions that it imports: exactly those that the text names, in the order of first use.
    pub imports: Vec<Signature>,
    /// The first address after the static data, a multiple of 16.
    pub heap_base: u32,
    /// What was mended or left out, in the order of the text; at most 16.
    pub warnings: Vec<Diagnostic>,
}

/// The most warnings that are told: each costs a search for its line.
const MAX_WARNINGS: usize = 16;

/// Makes a module of a program's text, in time linear in its length.
///
/// What is wrong with instructions and their operands shows only when the module is encoded and compiled;
/// [`explain`] then says what it is.
///
/// ```
/// # use wattle_lang::{Code, Names, Param, Signature, Signatures, Ty};
/// # const S: Ty = Ty::Str;
/// # let host = Signatures::new([
/// #     Signature { module: "sys", name: "argv", params: &[Param { name: "n", ty: Ty::Int, names: Names::Nothing }], results: &[Param { name: "ptr", ty: S, names: Names::Nothing }], errors: &[Code::EBOUND], touches: &[] },
/// #     Signature { module: "sys", name: "resv", params: &[Param { name: "ptr", ty: S, names: Names::Nothing }], results: &[], errors: &[], touches: &[] },
/// # ]);
/// let program = wattle_lang::assemble("(argv 0 $name) (resv $name) (resv \"hello\") (i32.const 0)", &host)?;
/// assert_eq!(program.imports.len(), 2);
/// assert!(program.module.contains(r#"(import "sys" "resv" (func $sys.resv (param i32)))"#));
/// assert!(program.encode()?.starts_with(b"\0asm"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The first thing in the text that cannot be read, or a function that there is not, at its place.
pub fn assemble(source: &str, host: &Signatures) -> Result<Assembled, Box<Diagnostic>> {
    let Built { module, .. } =
        build(source, host, false).map_err(|fault| Box::new(explain::diagnose(*fault, source, host)))?;
    let warnings = module.warnings.into_iter().take(MAX_WARNINGS);
    let warnings = warnings.map(|fault| fault.into_diagnostic(source, Severity::Warning)).collect();
    Ok(Assembled { module: module.text, imports: module.imports, heap_base: module.heap_base, warnings })
}

impl Assembled {
    /// The module's binary. Byte offsets in it are what [`locate`] takes.
    ///
    /// # Errors
    ///
    /// Where the text is not a module; [`explain`] says why in the author's lines.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let buffer = wast::parser::ParseBuffer::new(&self.module).map_err(EncodeError)?;
        let binary = wast::parser::parse::<wast::Wat<'_>>(&buffer).and_then(|mut wat| wat.encode());
        binary.map(without_names).map_err(EncodeError)
    }
}

/// Cuts off the custom sections, which come last and hold names that nothing reads: places are found by [`locate`].
fn without_names(mut binary: Vec<u8>) -> Vec<u8> {
    let mut at = 8; // behind the magic number and the version
    while let Some([id, size @ ..]) = binary.get(at..) {
        if *id == 0 {
            break;
        }
        // The size is a LEB128 number of at most five bytes.
        let length = 1 + size.iter().take_while(|byte| **byte & 0x80 != 0).count();
        let bytes = size.iter().take(length).rev().fold(0, |n, byte| n << 7 | usize::from(byte & 0x7f));
        at += 1 + length + bytes;
    }
    binary.truncate(at);
    binary
}

/// A module text that has no binary.
#[derive(Debug)]
pub struct EncodeError(wast::Error);

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message())
    }
}

impl std::error::Error for EncodeError {}

/// Says what is wrong with a text: what [`assemble`] says, or why its module has no binary or cannot be compiled.
/// `None` where nothing is wrong with it. Takes far longer than assembling, so it is for after a failure, or for checks.
#[must_use]
pub fn explain(source: &str, host: &Signatures) -> Option<Box<Diagnostic>> {
    let fault = fault(source, host)?;
    Some(Box::new(explain::diagnose(*fault, source, host)))
}

/// If true, the text is refused for its length alone.
#[must_use]
pub fn is_too_long(source: &str) -> bool {
    source.len() > tree::MAX_SOURCE
}

/// The reason why compiling or checking a text was not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The queue was full, or did not move. The same text may be given again.
    Busy,
    /// The work took longer than its limit.
    Overdue,
    /// The work panicked with this message.
    Bug(String),
}

impl Unfinished {
    /// Returns the diagnostic of a text whose compiling or checking was limited to `time`.
    #[must_use]
    pub fn diagnostic(&self, source: &str, time: Duration) -> Diagnostic {
        Fault::new(0..0, messages::unfinished(self, time)).into_diagnostic(source, Severity::Error)
    }
}

/// The first thing that is wrong with a text.
fn fault(source: &str, host: &Signatures) -> Option<Box<Fault>> {
    let built = build(source, host, true);
    built.and_then(|built| explain::first_fault(&built.tree, &built.program, &built.module, host)).err()
}

/// The author's place of the instruction at byte `module_offset` of the binary that [`Assembled::encode`] gives for
/// this source; `None` where no instruction is there.
#[must_use]
pub fn locate(source: &str, host: &Signatures, module_offset: usize) -> Option<std::ops::Range<u32>> {
    locate_all(source, host, &[module_offset]).pop()?
}

/// As [`locate`], for several places at the price of one.
#[must_use]
pub fn locate_all(source: &str, host: &Signatures, offsets: &[usize]) -> Vec<Option<std::ops::Range<u32>>> {
    let found = build(source, host, true).ok().and_then(|built| {
        let nodes = locate::nodes_at(&built.module, offsets)?;
        let range = |node| {
            let span = built.tree.span(node);
            diagnostic::clamp(span.start)..diagnostic::clamp(span.end)
        };
        Some(nodes.into_iter().map(|node| node.map(range)).collect())
    });
    found.unwrap_or_else(|| vec![None; offsets.len()])
}

/// A text on all its levels.
struct Built<'s> {
    tree: Tree<'s>,
    program: program::Program<'s>,
    module: module::Module,
}

/// Builds the module, with marks where they are asked for.
fn build<'s>(source: &'s str, host: &Signatures, marked: bool) -> Result<Built<'s>, Box<Fault>> {
    let mut tree = Tree::read(source)?;
    let mended = ending::closed_at_end(&tree)?;
    if let Some(fault) = idioms::call_syntax(&tree, host) {
        return Err(fault);
    }
    let mut program = program::read(&mut tree, host)?;
    program.warnings.extend(mended.map(|fault| *fault));
    let mut module = module::write(&tree, &program, host, marked || !tree.open.is_empty())?;
    if ending::lacks_code(&tree, &program, &module, host)? {
        module.end_with_success();
    }
    kinds::check(&tree, &program, host)?;
    module.warnings.append(&mut program.warnings);
    module.warnings.sort_by_key(|warning| warning.span.start);
    Ok(Built { tree, program, module })
}
