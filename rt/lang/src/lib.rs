//! The language of Wattle programs. This crate translates a program's source to a WebAssembly
//! module and maps positions in the module back to the source.
//!
//! ```text
//! source ── lex ── tree ── program ── emit ──▶ module text ── encode ──▶ module bytes
//!    ▲                                  │                                   │
//!    └────────────── explain ◀──────────┴───────────── locate ◀─────────────┘
//! ```
//!
//! Each step towards the module is one linear pass that records no source positions. To map a
//! position back after a failure, the steps are repeated, this time with positions recorded. An
//! assembled module therefore contains no information about its source.
//!
//! The crate knows host functions only by their [`Signature`] and does not depend on an engine.

mod bom;
mod call_effect;
mod check;
mod code;
pub mod cost;
mod diagnose;
mod format_spec;
mod habits;
mod lower;
mod signature;
mod syntax;
mod types;

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use foldhash::fast::RandomState;

pub use self::bom::{decode_text, without_bom};
pub use self::call_effect::CallEffect;
pub use self::check::render::Role;
pub use self::check::{FixResult, check, fix};
use self::check::{ending, locate, reason};
pub use self::code::Code;
use self::diagnose::diagnostic::narrow;
pub use self::diagnose::diagnostic::{Diagnostic, Position, Severity};
pub use self::diagnose::fix::{Certainty, Edit, Fix};
pub use self::diagnose::truncate::{quote, truncate};
use self::diagnose::wording::{self, Fault};
pub use self::format_spec::{Alignment, FormatError, FormatSpec};
pub use self::lower::forms::{FormDoc, forms, is_word};
pub use self::lower::{FAIL, KEPT, TRAP};
pub use self::signature::{
    Callable, CallableParam, Names, Param, Service, Signature, Signatures, Target, Touch, Ty,
    ValType,
};
pub use self::syntax::format::format;
use self::syntax::indent;
use self::syntax::tree::{self, Tree};

/// The module assembled from a program.
#[derive(Clone, Debug)]
pub struct AssembledModule {
    /// The module in WAT. It depends only on the source. Comments and spaces within lines do not
    /// affect it.
    pub module: String,
    /// The imported host functions: exactly those that the module uses, in the order of first use.
    pub imports: Vec<Signature>,
    /// The first address after the static data, a multiple of 16.
    pub heap_base: u32,
    /// Warnings about parts of the program that were fixed or ignored, in source order. At most 16.
    pub warnings: Vec<Diagnostic>,
}

/// A map with names as keys. Its hash function is fast and uses a new random seed in each process.
type NameMap<K, V> = HashMap<K, V, RandomState>;

/// Maximum number of warnings. Each warning requires a search for its line number.
const MAX_WARNINGS: usize = 16;

/// Translates a program to a module, in time linear in the program's length.
///
/// Faults in instructions and their operands are found only when the module is encoded and
/// compiled. [`explain`] then describes them.
///
/// ```
/// # use wattle_lang::{Code, Names, Param, Signature, Signatures, Ty};
/// # const S: Ty = Ty::Str;
/// # let host = Signatures::new([
/// #     Signature {
/// #         module: "sys",
/// #         name: "argv",
/// #         params: &[Param { name: "n", ty: Ty::Int, names: Names::Nothing }],
/// #         results: &[Param { name: "ptr", ty: S, names: Names::Nothing }],
/// #         errors: &[Code::EBOUND],
/// #         touches: &[],
/// #     },
/// #     Signature {
/// #         module: "sys",
/// #         name: "resv",
/// #         params: &[Param { name: "ptr", ty: S, names: Names::Nothing }],
/// #         results: &[],
/// #         errors: &[],
/// #         touches: &[],
/// #     },
/// # ]);
/// let source = "(argv 0 $name) (resv $name) (resv \"hello\") (i32.const 0)";
/// let program = wattle_lang::assemble(source, &host)?;
/// assert_eq!(program.imports.len(), 2);
/// assert!(program.module.contains(r#"(import "sys" "resv" (func $sys.resv (param i32)))"#));
/// assert!(program.encode()?.starts_with(b"\0asm"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If a fault prevents the translation, such as an unclosed parenthesis or an unknown function. The
/// error is the first such fault.
pub fn assemble(source: &str, host: &Signatures) -> Result<AssembledModule, Box<Diagnostic>> {
    let BuiltModule { module, .. } = build(source, host, false)
        .map_err(|fault| Box::new(reason::diagnose(*fault, source, host)))?;
    let warnings = module.warnings.into_iter().take(MAX_WARNINGS);
    let warnings = warnings.map(|fault| fault.into_diagnostic(source, Severity::Warning)).collect();
    Ok(AssembledModule {
        module: module.text,
        imports: module.imports,
        heap_base: module.heap_base,
        warnings,
    })
}

impl AssembledModule {
    /// Returns the module's binary. [`locate`] maps byte offsets in it to the source.
    ///
    /// # Errors
    ///
    /// If the module is invalid. [`explain`] describes the reason.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let buffer = wast::parser::ParseBuffer::new(&self.module).map_err(EncodeError)?;
        let binary = wast::parser::parse::<wast::Wat<'_>>(&buffer).and_then(|mut wat| wat.encode());
        binary.map(without_names).map_err(EncodeError)
    }
}

/// Removes the custom sections at the end of a module's binary. They contain only names, which
/// nothing reads, not even [`locate`].
fn without_names(mut binary: Vec<u8>) -> Vec<u8> {
    let mut at = 8; // after the magic number and the version
    while let Some([id, size @ ..]) = binary.get(at..) {
        if *id == 0 {
            break;
        }
        // The size is a LEB128 number of at most five bytes.
        let length = 1 + size.iter().take_while(|byte| **byte & 0x80 != 0).count();
        let bytes =
            size.iter().take(length).rev().fold(0, |n, byte| n << 7 | usize::from(byte & 0x7f));
        at += 1 + length + bytes;
    }
    binary.truncate(at);
    binary
}

/// The reason why a module cannot be encoded.
#[derive(Debug)]
pub struct EncodeError(wast::Error);

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message())
    }
}

impl std::error::Error for EncodeError {}

/// Returns the first fault in a program, or `None` if the program is valid. Also finds the faults
/// that [`assemble`] cannot find.
///
/// This function takes much longer than [`assemble`], so call it only after a failure or to check a
/// program.
#[must_use]
pub fn explain(source: &str, host: &Signatures) -> Option<Box<Diagnostic>> {
    let fault = fault(source, host)?;
    Some(Box::new(reason::diagnose(*fault, source, host)))
}

/// Returns true if a program is too long to be compiled.
#[must_use]
pub fn is_too_long(source: &str) -> bool {
    source.len() > tree::MAX_SOURCE
}

/// The reason why compiling or checking a program did not finish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The compile queue was full, or the work waited in it for too long. The same program may be
    /// submitted again.
    Busy,
    /// The work exceeded its time limit.
    Overdue,
    /// The work panicked with this message.
    Bug(String),
}

impl Interruption {
    /// Returns the diagnostic that reports the interruption. `time` is the time limit.
    #[must_use]
    pub fn diagnostic(&self, source: &str, time: Duration) -> Diagnostic {
        Fault::new(0..0, wording::unfinished(self, time)).into_diagnostic(source, Severity::Error)
    }
}

/// Returns the first fault in a program, or `None` if the program is valid.
fn fault(source: &str, host: &Signatures) -> Option<Box<Fault>> {
    let built = build(source, host, true);
    built
        .and_then(|built| reason::first_fault(&built.tree, &built.program, &built.module, host))
        .err()
}

/// Returns the source range of the instruction at byte `module_offset` of the binary that
/// [`AssembledModule::encode`] returns. Returns `None` if there is no instruction at the offset.
#[must_use]
pub fn locate(
    source: &str,
    host: &Signatures,
    module_offset: usize,
) -> Option<std::ops::Range<u32>> {
    locate_all(source, host, &[module_offset]).pop()?
}

/// Locates several byte offsets, at the cost of locating one. Returns the result of [`locate`] for
/// each offset, in the same order.
#[must_use]
pub fn locate_all(
    source: &str,
    host: &Signatures,
    offsets: &[usize],
) -> Vec<Option<std::ops::Range<u32>>> {
    let found = build(source, host, true).ok().and_then(|built| {
        let nodes = locate::nodes_at(&built.module, offsets)?;
        let range = |node| narrow(&built.tree.span(node));
        Some(nodes.into_iter().map(|node| node.map(range)).collect())
    });
    found.unwrap_or_else(|| vec![None; offsets.len()])
}

/// The results of all translation stages.
struct BuiltModule<'s> {
    tree: Tree<'s>,
    program: lower::program::Program<'s>,
    module: lower::module::Module,
}

/// Translates a program to a module. If `marked` is true, records source positions.
fn build<'s>(
    source: &'s str,
    host: &Signatures,
    marked: bool,
) -> Result<BuiltModule<'s>, Box<Fault>> {
    let mut tree = Tree::read(source)?;
    let added = ending::closed_at_end(&tree)?;
    let indented = indent::closed_early(&tree)?;
    if let Some(fault) = habits::call_syntax(&tree, host) {
        return Err(fault);
    }
    let mut program = lower::program::read(&mut tree, host)?;
    program.warnings.extend(added.map(|fault| *fault));
    program.warnings.extend(indented);
    let lowered = lower::program(&tree, &program, host)?;
    let marked = marked || !tree.open.is_empty();
    let mut module = lower::module::write(&tree, lowered, marked)?;
    if ending::lacks_code(&tree, &program, &module, host)? {
        module.end_with_success();
    }
    module.warnings.append(&mut program.warnings);
    module.warnings.sort_by_key(|warning| warning.span.start);
    Ok(BuiltModule { tree, program, module })
}
