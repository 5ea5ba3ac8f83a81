//! The instructions and other keywords of WAT, by name.

use std::sync::LazyLock;

use super::ops::{self, Op};
use crate::NameMap;

/// An instruction, or another keyword that begins a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    Block,
    Br,
    BrIf,
    BrTable,
    Call,
    CallIndirect,
    GlobalGet,
    GlobalSet,
    If,
    LocalGet,
    LocalSet,
    LocalTee,
    Loop,
    RefFunc,
    RefIsNull,
    RefNull,
    Return,
    ReturnCall,
    ReturnCallIndirect,
    Select,
    Unreachable,
    /// An instruction whose name determines its operands and results.
    Op(Op),
    /// A keyword that begins a component of a block, function or module item, such as `result` in
    /// `(result i32)`.
    Part,
}

const NAMES: &[(&str, Instruction)] = &[
    ("block", Instruction::Block),
    ("br", Instruction::Br),
    ("br_if", Instruction::BrIf),
    ("br_table", Instruction::BrTable),
    ("call", Instruction::Call),
    ("call_indirect", Instruction::CallIndirect),
    ("else", Instruction::Part),
    ("export", Instruction::Part),
    ("global.get", Instruction::GlobalGet),
    ("global.set", Instruction::GlobalSet),
    ("if", Instruction::If),
    ("item", Instruction::Part),
    ("local.get", Instruction::LocalGet),
    ("local.set", Instruction::LocalSet),
    ("local.tee", Instruction::LocalTee),
    ("loop", Instruction::Loop),
    ("mut", Instruction::Part),
    ("offset", Instruction::Part),
    ("param", Instruction::Part),
    ("ref", Instruction::Part),
    ("ref.func", Instruction::RefFunc),
    ("ref.is_null", Instruction::RefIsNull),
    ("ref.null", Instruction::RefNull),
    ("result", Instruction::Part),
    ("return", Instruction::Return),
    ("return_call", Instruction::ReturnCall),
    ("return_call_indirect", Instruction::ReturnCallIndirect),
    ("select", Instruction::Select),
    ("then", Instruction::Part),
    ("type", Instruction::Part),
    ("unreachable", Instruction::Unreachable),
];

/// The instructions by name.
static BY_NAME: LazyLock<NameMap<String, Instruction>> = LazyLock::new(|| {
    let special = NAMES.iter().map(|(name, instruction)| ((*name).to_owned(), *instruction));
    special.chain(ops::all().into_iter().map(|(name, op)| (name, Instruction::Op(op)))).collect()
});

/// Returns the instruction with this name, or `None` if the name is unknown.
pub(crate) fn instruction(name: &str) -> Option<&'static Instruction> {
    BY_NAME.get(name)
}

/// Returns all instructions with their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static Instruction)> {
    BY_NAME.iter().map(|(name, instruction)| (name.as_str(), instruction))
}
