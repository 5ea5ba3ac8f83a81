//! Kinds of values. Strings, numbers, codes and handles are all i32, so only their kinds tell them
//! apart.
//!
//! A local has a kind if everything that sets it has that kind. If a value is certainly of another
//! kind than expected, the program is rejected, because it would use a number as an address.
//! Uncertain values are accepted, and so are all numbers in programs that access memory themselves.

mod locals;
mod operands;

pub(crate) use self::locals::LocalKinds;
pub(crate) use self::operands::placeholders;
use crate::messages::Fault;
use crate::program::Program;
use crate::tree::{NodeId, Tree};
use crate::{Signatures, Ty};

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Text,
    Number,
    Code,
    Array,
    Map,
}

impl ValueKind {
    pub(crate) fn of(ty: Ty) -> Option<ValueKind> {
        match ty {
            Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes => Some(ValueKind::Text),
            Ty::Int | Ty::OptInt | Ty::Bool => Some(ValueKind::Number),
            Ty::Arr => Some(ValueKind::Array),
            Ty::Map | Ty::OptMap => Some(ValueKind::Map),
            Ty::Long | Ty::Float | Ty::Addr | Ty::Any => None,
        }
    }

    /// Returns true if a value of this kind is accepted in place of one of the other kind.
    pub(crate) fn is_accepted_as(self, wanted: ValueKind) -> bool {
        match wanted {
            // A handle may be printed as a number.
            ValueKind::Number => self != ValueKind::Text,
            ValueKind::Code => matches!(self, ValueKind::Number | ValueKind::Code),
            ValueKind::Text | ValueKind::Array | ValueKind::Map => self == wanted,
        }
    }

    /// Returns the kind as messages name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ValueKind::Text => "a string",
            ValueKind::Number => "a number",
            ValueKind::Code => "an error code",
            ValueKind::Array => "an array",
            ValueKind::Map => "a map",
        }
    }

    pub(crate) const fn module(self) -> Option<&'static str> {
        match self {
            ValueKind::Text => Some("str"),
            ValueKind::Array => Some("arr"),
            ValueKind::Map => Some("map"),
            ValueKind::Number | ValueKind::Code => None,
        }
    }
}

/// Rejects a program that uses a value of one kind as another.
pub(crate) fn check(
    tree: &Tree<'_>,
    program: &Program<'_>,
    host: &Signatures,
) -> Result<(), Box<Fault>> {
    let raw = uses_raw_memory(tree.source);
    let last = program.funcs.len().saturating_sub(1);
    for (at, func) in program.funcs.iter().enumerate() {
        let kinds = LocalKinds::read(tree, program, host, func, raw);
        kinds.check_sequence(func.body)?;
        if at == last {
            kinds.check_returned_value(func.body)?;
        }
    }
    Ok(())
}

/// Returns the kinds in the function that contains a node. The program need not be valid.
pub(crate) fn enclosing<'a, 's>(
    tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    host: &'a Signatures,
    node: NodeId,
) -> Option<LocalKinds<'a, 's>> {
    let func = program
        .funcs
        .iter()
        .rev()
        .find(|func| func.node.is_none_or(|list| tree.contains_node(list, node)))?;
    Some(LocalKinds::read(tree, program, host, func, uses_raw_memory(tree.source)))
}

/// Returns true if a program reads or writes memory itself, so that a number may be an address.
fn uses_raw_memory(source: &str) -> bool {
    ["load", "store", "memory.", "sys.alloc"].iter().any(|word| source.contains(word))
}
