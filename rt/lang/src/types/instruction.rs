//! The instructions and other keywords of WAT, by name.

use std::sync::LazyLock;

use crate::NameMap;
use crate::types::Val;

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

/// The immediate operand after an instruction's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Immediate {
    None,
    /// A number of this type.
    Number(Val),
    /// An optional memory index, `offset=` and `align=`.
    Memory,
    /// Optional memory indices.
    Memories,
}

/// An instruction whose name determines its operands and results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) pops: &'static [Val],
    pub(crate) pushes: &'static [Val],
    pub(crate) immediate: Immediate,
    /// If true, the instruction returns 0 or 1.
    pub(crate) compares: bool,
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

/// The number of values that an operator pops. Not used if it depends on the operator's immediates.
macro_rules! pops {
    (arity custom) => {
        0
    };
    (arity $pops:literal -> $pushes:literal) => {
        $pops
    };
}

macro_rules! define_operators {
    ($(
        @$proposal:ident $op:ident $({ $($arg:ident: $ty:ty),* })?
            => $visit:ident ($($arity:tt)*)
    )*) => {
        /// All operators: the proposal, the visitor's method, such as `visit_i32_add`, and the
        /// number of values that the operator pops.
        const OPERATORS: &[(&str, &str, usize)] =
            &[$((stringify!($proposal), stringify!($visit), pops!($($arity)*))),*];
    };
}
wasmparser::for_each_operator!(define_operators);

/// The proposals whose instructions are known.
const PROPOSALS: &[&str] = &["mvp", "sign_extension", "saturating_float_to_int", "bulk_memory"];

/// The instructions by name.
static BY_NAME: LazyLock<NameMap<String, Instruction>> = LazyLock::new(|| {
    let special = NAMES.iter().map(|(name, instruction)| ((*name).to_owned(), *instruction));
    let known = OPERATORS.iter().filter(|(proposal, ..)| PROPOSALS.contains(proposal));
    let ops = known.filter_map(|(_, visit, pops)| {
        let name = visit.strip_prefix("visit_")?.replacen('_', ".", 1);
        described(&name, *pops).map(|op| (name, Instruction::Op(op)))
    });
    special.chain(ops).collect()
});

/// Returns the instruction with this name, or `None` if the name is unknown.
pub(crate) fn instruction(name: &str) -> Option<&'static Instruction> {
    BY_NAME.get(name)
}

/// Returns all instructions with their names.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static Instruction)> {
    BY_NAME.iter().map(|(name, instruction)| (name.as_str(), instruction))
}

/// Returns the names of all instructions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let is_name = |(name, instruction): &(&str, &Instruction)| {
        !matches!(instruction, Instruction::Part) || matches!(*name, "then" | "else")
    };
    all().filter(is_name).map(|(name, _)| name).chain(["end"])
}

/// Returns the instruction with this name, if the name determines its operands and results.
pub(crate) fn op(name: &str) -> Option<Op> {
    match instruction(name) {
        Some(Instruction::Op(op)) => Some(*op),
        _ => None,
    }
}

/// Derives the operands, results and immediate of an instruction from its name and the number of
/// values that it pops. Returns `None` if they do not determine them.
fn described(name: &str, pops: usize) -> Option<Op> {
    let op = |pops, pushes, immediate| Some(Op { pops, pushes, immediate, compares: false });
    match name {
        "nop" | "drop" => return op(Val::Any.times(pops), &[], Immediate::None),
        "memory.size" | "memory.grow" => {
            return op(Val::I32.times(pops), Val::I32.times(1), Immediate::Memories);
        }
        "memory.fill" | "memory.copy" => return op(Val::I32.times(pops), &[], Immediate::Memories),
        _ => {}
    }
    let (ty, rest) = name.split_once('.')?;
    let ty = Val::from_wat(ty)?;
    // A conversion's name contains the type that it converts.
    let numbers = [Val::I32, Val::I64, Val::F32, Val::F64];
    let from = numbers.into_iter().find(|from| rest.contains(from.name())).unwrap_or(ty);
    match rest.split('_').next()? {
        "const" => op(&[], ty.times(1), Immediate::Number(ty)),
        load if load.starts_with("load") => op(Val::I32.times(1), ty.times(1), Immediate::Memory),
        store if store.starts_with("store") => op(ty.store_operands(), &[], Immediate::Memory),
        "eqz" | "eq" | "ne" | "lt" | "gt" | "le" | "ge" => {
            let (pops, pushes) = (ty.times(pops), Val::I32.times(1));
            Some(Op { pops, pushes, immediate: Immediate::None, compares: true })
        }
        _ => op(from.times(pops), ty.times(1), Immediate::None),
    }
}

/// Returns true if an instruction with this name may take values from the stack.
pub(crate) fn takes_operands(name: &str) -> bool {
    const TAKING: &[&str] = &[
        "if",
        "br_if",
        "br_table",
        "return",
        "call",
        "call_indirect",
        "return_call",
        "select",
        "local.set",
        "local.tee",
        "global.set",
        "ref.is_null",
        "end",
        "else",
    ];
    TAKING.contains(&name) || op(name).is_some_and(|op| !op.pops.is_empty())
}

/// The names of instructions, each with its names in older versions of WAT and in other languages.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("local.get", &["get_local", "get"]),
    ("local.set", &["set_local", "set"]),
    ("local.tee", &["tee_local"]),
    ("global.get", &["get_global"]),
    ("global.set", &["set_global"]),
    ("memory.grow", &["grow_memory"]),
    ("memory.size", &["current_memory"]),
    ("i32.rem_s", &["i32.mod"]),
    ("i32.eqz", &["i32.not"]),
    ("i64.eqz", &["i64.not"]),
    ("i32.ne", &["i32.neq"]),
    ("i32.load8_u", &["i32.load8"]),
    ("i32.load16_u", &["i32.load16"]),
    ("i64.load8_u", &["i64.load8"]),
    ("i32.wrap_i64", &["i32.extend_i64", "i32.wrap/i64"]),
    ("i64.extend_i32_s", &["i64.extend_i32", "i64.extend_s/i32"]),
    ("f64.convert_i32_s", &["f64.convert_i32", "f64.convert_s/i32"]),
    ("i32.trunc_f64_s", &["i32.trunc_s/f64"]),
    ("br", &["break", "jump", "goto"]),
    ("drop", &["pop"]),
    ("unreachable", &["trap"]),
];

/// Returns the current name of an instruction that has this name in an older version of WAT or in
/// another language, if any.
pub(crate) fn renamed(name: &str) -> Option<&'static str> {
    OTHER_NAMES.iter().find(|(_, others)| others.contains(&name)).map(|(current, _)| *current)
}

/// Returns the signed instruction that a name without its sign suffix means, if any.
pub(crate) fn signed(name: &str) -> Option<&'static str> {
    let (known, instruction) = BY_NAME.get_key_value(&format!("{name}_s"))?;
    matches!(instruction, Instruction::Op(_)).then_some(known)
}

/// Integer instructions whose unsigned variants are rarely used.
const USUALLY_SIGNED: &[&str] = &["div", "rem", "lt", "gt", "le", "ge", "shr"];

/// Returns the only instruction that an unknown name can mean, or `None` if there is no such
/// instruction. The name may be outdated or lack a sign suffix. Without the suffix, the signed
/// instruction is assumed, as it is for the operator `/`.
pub(crate) fn meant(name: &str) -> Option<&'static str> {
    const LOOSE: &[&str] = &["set", "get", "break", "jump", "goto"];
    if LOOSE.contains(&name) {
        return None;
    }
    let (_, operation) = name.split_once('.').unwrap_or_default();
    let signed = || signed(name).filter(|_| USUALLY_SIGNED.contains(&operation));
    renamed(name).or_else(signed)
}

#[cfg(test)]
mod tests {
    use crate::types::Val;

    #[test]
    fn tables_agree_with_the_validator() {
        for name in super::names() {
            let Some(op) = super::op(name) else { continue };
            let list = |types: &[Val]| {
                types
                    .iter()
                    .map(|ty| if *ty == Val::Any { "i32" } else { ty.name() })
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let gets: String = (0..op.pops.len()).map(|at| format!("(local.get {at}) ")).collect();
            let number =
                if matches!(op.immediate, super::Immediate::Number(_)) { " 0" } else { "" };
            let (params, results) = (list(op.pops), list(op.pushes));
            let text = format!(
                "(module (memory 1) (func (param {params}) (result {results}) {gets} \
                 {name}{number}))"
            );
            let buffer = wast::parser::ParseBuffer::new(&text).unwrap();
            let mut wat = wast::parser::parse::<wast::Wat<'_>>(&buffer)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            wasmparser::Validator::new()
                .validate_all(&wat.encode().unwrap())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
