//! The cost of individual operators, and the number of values that they pop and push.

use wasmparser::Operator;

/// The number of instructions that each operator of a WebAssembly proposal counts as.
macro_rules! proposal_weight {
    // These operators check bounds and call into the engine.
    (bulk_memory) => {
        8
    };
    (simd) => {
        4
    };
    (relaxed_simd) => {
        4
    };
    (threads) => {
        4
    };
    (saturating_float_to_int) => {
        2
    };
    ($other:ident) => {
        1
    };
}

/// The numbers of values that an operator pops and pushes, or `None` if they depend on its
/// immediates.
macro_rules! arity {
    (arity custom) => {
        None
    };
    (arity $pops:literal -> $pushes:literal) => {
        Some(($pops, $pushes))
    };
}

macro_rules! define_operators {
    ($(
        @$proposal:ident $op:ident $({ $($arg:ident: $ty:ty),* })?
            => $visit:ident ($($arity:tt)*)
    )*) => {
        /// Returns the weight of an operator according to the WebAssembly proposal that defines it.
        fn of_proposal(operator: &Operator<'_>) -> u64 {
            match operator {
                $(Operator::$op { .. } => proposal_weight!($proposal),)*
                _ => 1,
            }
        }

        /// Returns the numbers of values that an operator pops and pushes. Returns `None` if they
        /// depend on the operator's immediates.
        pub(super) fn arity(operator: &Operator<'_>) -> Option<(u64, u64)> {
            match operator {
                $(Operator::$op { .. } => arity!($($arity)*),)*
                _ => None,
            }
        }
    };
}
wasmparser::for_each_operator!(define_operators);

/// Returns the number of instructions that an operator counts as. An operator that the compiler
/// translates into many machine instructions counts as several.
pub(super) fn weight(operator: &Operator<'_>) -> u64 {
    use Operator as O;
    match operator {
        // The result is checked for NaN. These operators have a single operand, so a source can
        // contain twice as many of them as of operators with two operands.
        O::F32Ceil
        | O::F32Floor
        | O::F32Trunc
        | O::F32Nearest
        | O::F32Sqrt
        | O::F32DemoteF64
        | O::F64Ceil
        | O::F64Floor
        | O::F64Trunc
        | O::F64Nearest
        | O::F64Sqrt
        | O::F64PromoteF32 => 4,
        O::F32Add
        | O::F32Sub
        | O::F32Mul
        | O::F32Div
        | O::F32Min
        | O::F32Max
        | O::F64Add
        | O::F64Sub
        | O::F64Mul
        | O::F64Div
        | O::F64Min
        | O::F64Max
        | O::I32TruncF32S
        | O::I32TruncF32U
        | O::I32TruncF64S
        | O::I32TruncF64U
        | O::I64TruncF32S
        | O::I64TruncF32U
        | O::I64TruncF64S
        | O::I64TruncF64U
        | O::F32ConvertI32S
        | O::F32ConvertI32U
        | O::F32ConvertI64S
        | O::F32ConvertI64U
        | O::F64ConvertI32S
        | O::F64ConvertI32U
        | O::F64ConvertI64S
        | O::F64ConvertI64U => 2,
        // A call into the engine.
        O::MemoryGrow { .. } => 8,
        other => of_proposal(other),
    }
}
