//! The operands and results of WAT instructions, derived from their names.

use super::instruction::{Instruction, instruction};
use crate::ValType;

/// The type of a value on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Val {
    I32,
    I64,
    F32,
    F64,
    V128,
    Func,
    Extern,
    /// Any type, as in unreachable code.
    Any,
}

impl Val {
    /// Parses the WAT name of a type.
    pub(crate) fn from_wat(name: &str) -> Option<Val> {
        Some(match name {
            "i32" => Val::I32,
            "i64" => Val::I64,
            "f32" => Val::F32,
            "f64" => Val::F64,
            "v128" => Val::V128,
            "funcref" => Val::Func,
            "externref" => Val::Extern,
            _ => return None,
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Val::I32 => "i32",
            Val::I64 => "i64",
            Val::F32 => "f32",
            Val::F64 => "f64",
            Val::V128 => "v128",
            Val::Func => "funcref",
            Val::Extern => "externref",
            Val::Any => "any",
        }
    }

    pub(crate) fn fits(self, wanted: Val) -> bool {
        self == wanted || self == Val::Any || wanted == Val::Any
    }

    const fn single(self) -> &'static [Val] {
        match self {
            Val::I32 => &[Val::I32],
            Val::I64 => &[Val::I64],
            Val::F32 => &[Val::F32],
            Val::F64 => &[Val::F64],
            _ => &[],
        }
    }

    const fn pair(self) -> &'static [Val] {
        match self {
            Val::I32 => &[Val::I32, Val::I32],
            Val::I64 => &[Val::I64, Val::I64],
            Val::F32 => &[Val::F32, Val::F32],
            Val::F64 => &[Val::F64, Val::F64],
            _ => &[],
        }
    }

    /// Returns the operands of a store instruction for this type: the address and the value.
    const fn store_operands(self) -> &'static [Val] {
        match self {
            Val::I32 => &[Val::I32, Val::I32],
            Val::I64 => &[Val::I32, Val::I64],
            Val::F32 => &[Val::I32, Val::F32],
            Val::F64 => &[Val::I32, Val::F64],
            _ => &[],
        }
    }
}

impl From<ValType> for Val {
    fn from(ty: ValType) -> Val {
        match ty {
            ValType::I32 => Val::I32,
            ValType::I64 => Val::I64,
            ValType::F32 => Val::F32,
            ValType::F64 => Val::F64,
        }
    }
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

const INT_UNARY: &[&str] = &["clz", "ctz", "popcnt", "extend8_s", "extend16_s"];
const INT_BINARY: &[&str] = &[
    "add", "sub", "mul", "div_s", "div_u", "rem_s", "rem_u", "and", "or", "xor", "shl", "shr_s",
    "shr_u", "rotl", "rotr",
];
const INT_COMPARE: &[&str] =
    &["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"];
const INT_LOAD: &[&str] = &["load", "load8_s", "load8_u", "load16_s", "load16_u"];
const INT_STORE: &[&str] = &["store", "store8", "store16"];
const FLOAT_UNARY: &[&str] = &["abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt"];
const FLOAT_BINARY: &[&str] = &["add", "sub", "mul", "div", "min", "max", "copysign"];
const FLOAT_COMPARE: &[&str] = &["eq", "ne", "lt", "gt", "le", "ge"];

const CONVERSIONS: &[(&str, Val, Val)] = &[
    ("i32.wrap_i64", Val::I64, Val::I32),
    ("i64.extend_i32_s", Val::I32, Val::I64),
    ("i64.extend_i32_u", Val::I32, Val::I64),
    ("i64.extend32_s", Val::I64, Val::I64),
    ("i32.trunc_f32_s", Val::F32, Val::I32),
    ("i32.trunc_f32_u", Val::F32, Val::I32),
    ("i32.trunc_f64_s", Val::F64, Val::I32),
    ("i32.trunc_f64_u", Val::F64, Val::I32),
    ("i64.trunc_f32_s", Val::F32, Val::I64),
    ("i64.trunc_f32_u", Val::F32, Val::I64),
    ("i64.trunc_f64_s", Val::F64, Val::I64),
    ("i64.trunc_f64_u", Val::F64, Val::I64),
    ("i32.trunc_sat_f32_s", Val::F32, Val::I32),
    ("i32.trunc_sat_f32_u", Val::F32, Val::I32),
    ("i32.trunc_sat_f64_s", Val::F64, Val::I32),
    ("i32.trunc_sat_f64_u", Val::F64, Val::I32),
    ("i64.trunc_sat_f32_s", Val::F32, Val::I64),
    ("i64.trunc_sat_f32_u", Val::F32, Val::I64),
    ("i64.trunc_sat_f64_s", Val::F64, Val::I64),
    ("i64.trunc_sat_f64_u", Val::F64, Val::I64),
    ("f32.convert_i32_s", Val::I32, Val::F32),
    ("f32.convert_i32_u", Val::I32, Val::F32),
    ("f32.convert_i64_s", Val::I64, Val::F32),
    ("f32.convert_i64_u", Val::I64, Val::F32),
    ("f64.convert_i32_s", Val::I32, Val::F64),
    ("f64.convert_i32_u", Val::I32, Val::F64),
    ("f64.convert_i64_s", Val::I64, Val::F64),
    ("f64.convert_i64_u", Val::I64, Val::F64),
    ("f32.demote_f64", Val::F64, Val::F32),
    ("f64.promote_f32", Val::F32, Val::F64),
    ("i32.reinterpret_f32", Val::F32, Val::I32),
    ("f32.reinterpret_i32", Val::I32, Val::F32),
    ("i64.reinterpret_f64", Val::F64, Val::I64),
    ("f64.reinterpret_i64", Val::I64, Val::F64),
    ("i64.load32_s", Val::I32, Val::I64),
    ("i64.load32_u", Val::I32, Val::I64),
];

const OTHERS: &[(&str, &[Val], &[Val])] = &[
    ("nop", &[], &[]),
    ("drop", &[Val::Any], &[]),
    ("memory.size", &[], &[Val::I32]),
    ("memory.grow", &[Val::I32], &[Val::I32]),
    ("memory.fill", &[Val::I32, Val::I32, Val::I32], &[]),
    ("memory.copy", &[Val::I32, Val::I32, Val::I32], &[]),
];

/// Names of instructions for which [`op`] returns `None`, and the keywords `then`, `else` and
/// `end`.
const SPECIAL: &[&str] = &[
    "block",
    "loop",
    "if",
    "then",
    "else",
    "end",
    "br",
    "br_if",
    "br_table",
    "return",
    "unreachable",
    "call",
    "call_indirect",
    "return_call",
    "select",
    "local.get",
    "local.set",
    "local.tee",
    "global.get",
    "global.set",
    "ref.func",
    "ref.null",
    "ref.is_null",
];

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

/// Returns the instructions whose names determine their operands and results.
pub(super) fn all() -> Vec<(String, Op)> {
    names().into_iter().filter_map(|name| described(&name).map(|op| (name, op))).collect()
}

/// Returns the instruction with this name, if the name determines its operands and results.
pub(crate) fn op(name: &str) -> Option<Op> {
    match instruction(name) {
        Some(Instruction::Op(op)) => Some(*op),
        _ => None,
    }
}

/// Derives the operands, results and immediate of an instruction from its name. Returns `None` if
/// the name does not determine them.
fn described(name: &str) -> Option<Op> {
    let of = |pops, pushes, immediate| Some(Op { pops, pushes, immediate, compares: false });
    if let Some((_, pops, pushes)) = OTHERS.iter().find(|(known, ..)| *known == name) {
        let immediate = match name.starts_with("memory.") {
            true => Immediate::Memories,
            false => Immediate::None,
        };
        return of(pops, pushes, immediate);
    }
    if let Some((_, from, to)) = CONVERSIONS.iter().find(|(known, ..)| *known == name) {
        let immediate = if name.contains("load") { Immediate::Memory } else { Immediate::None };
        return of(from.single(), to.single(), immediate);
    }
    let (ty, rest) = name.split_once('.')?;
    let ty = Val::from_wat(ty)?;
    let plain = |pops, pushes| of(pops, pushes, Immediate::None);
    let memory = |pops, pushes| of(pops, pushes, Immediate::Memory);
    let comparison = |pops| {
        let op = plain(pops, Val::I32.single())?;
        Some(Op { compares: true, ..op })
    };
    match ty {
        _ if rest == "const" && !ty.single().is_empty() => {
            of(&[], ty.single(), Immediate::Number(ty))
        }
        Val::I32 | Val::I64 if rest == "eqz" => comparison(ty.single()),
        Val::I32 | Val::I64 if INT_UNARY.contains(&rest) => plain(ty.single(), ty.single()),
        Val::I32 | Val::I64 if INT_BINARY.contains(&rest) => plain(ty.pair(), ty.single()),
        Val::I32 | Val::I64 if INT_COMPARE.contains(&rest) => comparison(ty.pair()),
        Val::I32 | Val::I64 if INT_LOAD.contains(&rest) => memory(Val::I32.single(), ty.single()),
        Val::I32 | Val::I64 if INT_STORE.contains(&rest) => memory(ty.store_operands(), &[]),
        Val::I64 if rest == "store32" => memory(ty.store_operands(), &[]),
        Val::F32 | Val::F64 if FLOAT_UNARY.contains(&rest) => plain(ty.single(), ty.single()),
        Val::F32 | Val::F64 if FLOAT_BINARY.contains(&rest) => plain(ty.pair(), ty.single()),
        Val::F32 | Val::F64 if FLOAT_COMPARE.contains(&rest) => comparison(ty.pair()),
        Val::F32 | Val::F64 if rest == "load" => memory(Val::I32.single(), ty.single()),
        Val::F32 | Val::F64 if rest == "store" => memory(ty.store_operands(), &[]),
        _ => None,
    }
}

/// Returns the usual instruction that converts a number of type `from` to type `to`, or `None` if
/// there is no such instruction.
pub(crate) fn conversion(from: Val, to: Val) -> Option<&'static str> {
    Some(match (from, to) {
        (Val::I32, Val::I64) => "i64.extend_i32_s",
        (Val::I64, Val::I32) => "i32.wrap_i64",
        (Val::I32, Val::F64) => "f64.convert_i32_s",
        (Val::I64, Val::F64) => "f64.convert_i64_s",
        (Val::I32, Val::F32) => "f32.convert_i32_s",
        (Val::I64, Val::F32) => "f32.convert_i64_s",
        (Val::F64, Val::I32) => "i32.trunc_sat_f64_s",
        (Val::F64, Val::I64) => "i64.trunc_sat_f64_s",
        (Val::F32, Val::I32) => "i32.trunc_sat_f32_s",
        (Val::F32, Val::I64) => "i64.trunc_sat_f32_s",
        (Val::F32, Val::F64) => "f64.promote_f32",
        (Val::F64, Val::F32) => "f32.demote_f64",
        _ => return None,
    })
}

/// Names of instructions in older versions of WAT and in other languages, each with the current
/// name.
pub(crate) const OTHER_NAMES: &[(&str, &str)] = &[
    ("get_local", "local.get"),
    ("set_local", "local.set"),
    ("tee_local", "local.tee"),
    ("get_global", "global.get"),
    ("set_global", "global.set"),
    ("set", "local.set"),
    ("get", "local.get"),
    ("grow_memory", "memory.grow"),
    ("current_memory", "memory.size"),
    ("i32.mod", "i32.rem_s"),
    ("i32.not", "i32.eqz"),
    ("i64.not", "i64.eqz"),
    ("i32.neq", "i32.ne"),
    ("i32.load8", "i32.load8_u"),
    ("i32.load16", "i32.load16_u"),
    ("i64.load8", "i64.load8_u"),
    ("i32.extend_i64", "i32.wrap_i64"),
    ("i64.extend_i32", "i64.extend_i32_s"),
    ("f64.convert_i32", "f64.convert_i32_s"),
    ("f64.convert_s/i32", "f64.convert_i32_s"),
    ("i32.trunc_s/f64", "i32.trunc_f64_s"),
    ("i32.wrap/i64", "i32.wrap_i64"),
    ("i64.extend_s/i32", "i64.extend_i32_s"),
    ("break", "br"),
    ("jump", "br"),
    ("goto", "br"),
    ("pop", "drop"),
    ("trap", "unreachable"),
];

/// Returns the only instruction that an unknown name can mean, or `None` if there is no such
/// instruction. The name may be outdated or lack a sign suffix. Without the suffix, the signed
/// instruction is assumed, as it is for the operator `/`.
pub(crate) fn meant(name: &str) -> Option<&'static str> {
    const LOOSE: &[&str] = &["set", "get", "break", "jump", "goto"];
    if LOOSE.contains(&name) {
        return None;
    }
    let old = OTHER_NAMES.iter().find(|(known, _)| *known == name).map(|(_, meant)| *meant);
    old.or_else(|| SIGNED.iter().copied().find(|signed| signed.strip_suffix("_s") == Some(name)))
}

/// Signed instructions whose unsigned counterparts are rarely used.
const SIGNED: &[&str] = &[
    "i32.div_s",
    "i32.rem_s",
    "i32.lt_s",
    "i32.gt_s",
    "i32.le_s",
    "i32.ge_s",
    "i32.shr_s",
    "i64.div_s",
    "i64.rem_s",
    "i64.lt_s",
    "i64.gt_s",
    "i64.le_s",
    "i64.ge_s",
    "i64.shr_s",
];

/// Formats types as a comma-separated list.
pub(crate) fn list_types(types: &[Val]) -> String {
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ")
}

/// Returns the names of all instructions.
pub(crate) fn names() -> Vec<String> {
    let mut all: Vec<String> = SPECIAL.iter().map(|name| (*name).to_owned()).collect();
    all.extend(OTHERS.iter().map(|(name, ..)| (*name).to_owned()));
    all.extend(CONVERSIONS.iter().map(|(name, ..)| (*name).to_owned()));
    for ty in ["i32", "i64"] {
        let lists = [INT_UNARY, INT_BINARY, INT_COMPARE, INT_LOAD, INT_STORE, &["const", "eqz"]];
        all.extend(lists.iter().flat_map(|list| list.iter()).map(|rest| format!("{ty}.{rest}")));
    }
    for ty in ["f32", "f64"] {
        let lists = [FLOAT_UNARY, FLOAT_BINARY, FLOAT_COMPARE, &["const", "load", "store"]];
        all.extend(lists.iter().flat_map(|list| list.iter()).map(|rest| format!("{ty}.{rest}")));
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_agree_with_the_validator() {
        for name in super::names() {
            let Some(op) = super::op(&name) else { continue };
            let list = |types: &[super::Val]| {
                types
                    .iter()
                    .map(|ty| if *ty == super::Val::Any { "i32" } else { ty.name() })
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
