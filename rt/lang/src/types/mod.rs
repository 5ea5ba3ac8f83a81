//! The static types of values.

pub(crate) mod instruction;

use crate::{Ty, ValType};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    /// A signed 32-bit integer.
    Int,
    /// A boolean: an int that is 0 or 1.
    Bool,
    /// An error code, which is also an int.
    Code,
    /// A signed 64-bit integer.
    Long,
    /// A 64-bit float.
    Float,
    /// A string or bytes.
    Str,
    /// An array of strings.
    Arr,
    /// A map from strings to strings.
    Map,
    /// A value of any shape, which the host holds.
    Val,
    /// The literal `null`: the value null, or a number or handle that is missing.
    Null,
    /// An array of numbers in the program's memory.
    Numbers(Elem),
    /// An i32 of unknown kind, such as the result of a WAT instruction.
    I32,
    /// A value of a WAT type that has no equivalent in the language.
    Wat(Val),
    /// A value whose type is not yet known, or an unreachable value.
    Any,
}

/// The element type of an array of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Elem {
    /// An int.
    Int,
    /// A long.
    Long,
    /// A float.
    Float,
    /// An int from 0 to 255.
    Byte,
}

impl Elem {
    /// All element types.
    pub(crate) const ALL: [Elem; 4] = [Elem::Int, Elem::Long, Elem::Float, Elem::Byte];

    /// Returns the name of the array type with this element type, such as `ints`.
    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Elem::Int => "ints",
            Elem::Long => "longs",
            Elem::Float => "floats",
            Elem::Byte => "bytes",
        }
    }

    /// Returns the type of an element when it is read as a value.
    pub(crate) const fn ty(self) -> Type {
        match self {
            Elem::Int | Elem::Byte => Type::Int,
            Elem::Long => Type::Long,
            Elem::Float => Type::Float,
        }
    }

    /// Returns the base-2 logarithm of an element's size in bytes.
    pub(crate) const fn shift(self) -> u32 {
        match self {
            Elem::Byte => 0,
            Elem::Int => 2,
            Elem::Long | Elem::Float => 3,
        }
    }

    /// Returns the names of the instructions that load and store an element, in this order.
    pub(crate) const fn access(self) -> (&'static str, &'static str) {
        match self {
            Elem::Int => ("i32.load", "i32.store"),
            Elem::Long => ("i64.load", "i64.store"),
            Elem::Float => ("f64.load", "f64.store"),
            Elem::Byte => ("i32.load8_u", "i32.store8"),
        }
    }
}

impl Type {
    /// Returns the type of a host function's parameter or result.
    pub(crate) const fn of_host(ty: Ty) -> Type {
        match ty {
            Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes => Type::Str,
            Ty::Int | Ty::OptInt => Type::Int,
            Ty::Bool => Type::Bool,
            Ty::Long => Type::Long,
            Ty::Float => Type::Float,
            Ty::Arr => Type::Arr,
            Ty::Map | Ty::OptMap => Type::Map,
            Ty::Val => Type::Val,
            Ty::Addr | Ty::Any => Type::I32,
        }
    }

    /// Returns the type of a value that has the given WAT type.
    pub(crate) const fn of_wat(val: Val) -> Type {
        match val {
            Val::I32 => Type::I32,
            Val::I64 => Type::Long,
            Val::F64 => Type::Float,
            Val::Any => Type::Any,
            other => Type::Wat(other),
        }
    }

    /// Parses the name of a type in a declaration: `int`, `long`, `float`, `str`, `arr`, `map`, an
    /// array of numbers, or a WAT value type. Returns `None` for any other name.
    pub(crate) fn from_name(name: &str) -> Option<Type> {
        Some(match name {
            "int" => Type::Int,
            "long" => Type::Long,
            "float" => Type::Float,
            "str" => Type::Str,
            "arr" => Type::Arr,
            "map" => Type::Map,
            "val" => Type::Val,
            _ => match Elem::ALL.into_iter().find(|elem| elem.plural() == name) {
                Some(elem) => Type::Numbers(elem),
                None => Type::of_wat(Val::from_wat(name)?),
            },
        })
    }

    /// Returns the WAT value type that represents the type.
    pub(crate) const fn val(self) -> Val {
        match self {
            Type::Long => Val::I64,
            Type::Float => Val::F64,
            Type::Wat(val) => val,
            Type::Any => Val::Any,
            _ => Val::I32,
        }
    }

    /// Returns the type's name with its article, for messages.
    pub(crate) const fn described(self) -> &'static str {
        match self {
            Type::Int | Type::Bool => "an int",
            Type::Code => "an error code",
            Type::Long => "a long",
            Type::Float => "a float",
            Type::Str => "a string",
            Type::Arr => "an array",
            Type::Map => "a map",
            Type::Val => "a value",
            Type::Null => "null",
            Type::Numbers(Elem::Int) => "an array of ints",
            Type::Numbers(Elem::Long) => "an array of longs",
            Type::Numbers(Elem::Float) => "an array of floats",
            Type::Numbers(Elem::Byte) => "an array of bytes",
            Type::I32 => "an i32 of unknown kind",
            Type::Wat(Val::F32) => "an f32",
            Type::Wat(Val::V128) => "a v128",
            Type::Wat(Val::Func) => "a funcref",
            Type::Wat(_) => "an externref",
            Type::Any => "a value of unknown type",
        }
    }

    /// Returns the name that declarations use for the type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Type::Int | Type::Bool | Type::Code => "int",
            Type::Long => "long",
            Type::Float => "float",
            Type::Str => "str",
            Type::Arr => "arr",
            Type::Map => "map",
            Type::Val | Type::Null => "val",
            Type::Numbers(elem) => elem.plural(),
            Type::I32 | Type::Any => "i32",
            Type::Wat(val) => val.name(),
        }
    }

    /// Returns the namespace whose functions take values of this type, or `None` if there is none.
    pub(crate) const fn module(self) -> Option<&'static str> {
        match self {
            Type::Str => Some("str"),
            Type::Arr => Some("arr"),
            Type::Map => Some("map"),
            _ => None,
        }
    }

    /// Returns true if the type is an int, a bool or an error code.
    pub(crate) const fn is_int(self) -> bool {
        matches!(self, Type::Int | Type::Bool | Type::Code)
    }

    /// Returns true for a number type: an int, a bool, an error code, a long or a float.
    pub(crate) const fn is_number(self) -> bool {
        self.is_int() || matches!(self, Type::Long | Type::Float)
    }

    /// Returns true if every value of the type has an equal value of the type [`Val`](Type::Val).
    pub(crate) const fn is_shaped(self) -> bool {
        self.is_number()
            || matches!(self, Type::Str | Type::Arr | Type::Map | Type::Val | Type::Null)
    }

    /// Returns true if the type alone does not determine the meaning of a value.
    pub(crate) const fn is_vague(self) -> bool {
        matches!(self, Type::I32 | Type::Any)
    }

    /// Returns true if a number of this type can be converted to `other` without loss, or if
    /// `other` is [vague](Type::is_vague).
    pub(crate) fn widens_to(self, other: Type) -> bool {
        other == Type::Str
            || other.is_vague()
            || self.is_int() && other.is_int()
            || self.join(other) == Some(other)
    }

    /// Returns the type of a variable or function's result that is set to a value of this type: i32
    /// for a value of unknown type, val for null, and the value's type otherwise.
    pub(crate) const fn stored(self) -> Type {
        match self {
            Type::Null => Type::Val,
            Type::Any => Type::I32,
            other => other,
        }
    }

    /// Returns the type to which values of both types can be converted without loss, or `None` if
    /// there is no such type.
    pub(crate) fn join(self, other: Type) -> Option<Type> {
        Some(match (self, other) {
            _ if self == other => self,
            (Type::Any, known) | (known, Type::Any) => known,
            (Type::Val | Type::Null, other) | (other, Type::Val | Type::Null)
                if other.is_shaped() =>
            {
                Type::Val
            }
            (a, b) if a.is_int() && b.is_int() => Type::Int,
            (a, Type::Long) | (Type::Long, a) if a.is_int() => Type::Long,
            (a, Type::Float) | (Type::Float, a) if a.is_int() => Type::Float,
            (a, b)
                if a.val() == Val::I32 && b.val() == Val::I32 && (a.is_vague() || b.is_vague()) =>
            {
                Type::I32
            }
            _ => return None,
        })
    }
}

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

    /// Returns the type `count` times, at most 3 times.
    const fn times(self, count: usize) -> &'static [Val] {
        let all: &'static [Val] = match self {
            Val::I32 => &[Val::I32; 3],
            Val::I64 => &[Val::I64; 3],
            Val::F32 => &[Val::F32; 3],
            Val::F64 => &[Val::F64; 3],
            Val::V128 => &[Val::V128; 3],
            Val::Func => &[Val::Func; 3],
            Val::Extern => &[Val::Extern; 3],
            Val::Any => &[Val::Any; 3],
        };
        all.split_at(if count < 3 { count } else { 3 }).0
    }

    /// Returns the operands of a store instruction for this type: the address and the value.
    const fn store_operands(self) -> &'static [Val] {
        match self {
            Val::I64 => &[Val::I32, Val::I64],
            Val::F32 => &[Val::I32, Val::F32],
            Val::F64 => &[Val::I32, Val::F64],
            _ => &[Val::I32, Val::I32],
        }
    }
}

impl From<ValType> for Val {
    fn from(ty: ValType) -> Val {
        match ty {
            ValType::I32 => Val::I32,
            ValType::I64 => Val::I64,
            ValType::F64 => Val::F64,
        }
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

/// Formats types as a comma-separated list.
pub(crate) fn list_types(types: &[Val]) -> String {
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{Elem, Type};

    const ALL: &[Type] = &[
        Type::Int,
        Type::Bool,
        Type::Code,
        Type::Long,
        Type::Float,
        Type::Str,
        Type::Arr,
        Type::Map,
        Type::Val,
        Type::Null,
        Type::Numbers(Elem::Int),
        Type::Numbers(Elem::Float),
        Type::I32,
        Type::Any,
    ];

    #[test]
    fn a_join_does_not_depend_on_the_order() {
        for a in ALL {
            for b in ALL {
                assert_eq!(a.join(*b), b.join(*a), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn names_are_those_that_declarations_take() {
        for ty in ALL.iter().filter(|ty| **ty != Type::Any) {
            assert_eq!(Type::from_name(ty.name()).map(Type::name), Some(ty.name()));
        }
    }
}
