//! Values of any shape, which the host holds for the program: conversions from other types and to
//! other types, and calls to the functions on them.
//!
//! A value is represented by a handle: 0 is null, 1 and 2 are false and true, a negative handle
//! contains a small whole number, and any other handle is an address on the host.

use super::flow::{Flow, Lowered};
use super::output::Wat;
use super::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::NodeId;
use crate::types::Type;

/// The handle of the value null.
pub(crate) const NULL: i64 = 0;

/// The handle of the value false. The handle of true is one more.
const FALSE: i64 = 1;

/// The whole numbers from `-SMALL` to `SMALL`, excluding `SMALL`, are contained in their handles.
const SMALL: i64 = 1 << 30;

/// Returns the handle of a whole number, or `None` if the number is not small.
fn small(number: i64) -> Option<i64> {
    let handle = (number & 0x7fff_ffff) - (1 << 31);
    (-SMALL..SMALL).contains(&number).then_some(handle)
}

impl<'s> Lowering<'_, 's> {
    /// Returns code that calls a function on values, whose name within the namespace is given, as
    /// [`checked_call`](Lowering::checked_call) does.
    pub(crate) fn value_call(
        &mut self,
        from: NodeId,
        name: &str,
        args: impl Into<Vec<Wat<'s>>>,
    ) -> LowerResult<Wat<'s>> {
        self.checked_call(from, &["val.", name].concat(), args)
    }

    /// Returns code that converts a value of the given type, one for which
    /// [`is_shaped`](Type::is_shaped) is true, to a handle.
    pub(crate) fn boxed(&mut self, from: NodeId, value: Wat<'s>, ty: Type) -> LowerResult<Wat<'s>> {
        let constant = value.constant();
        match ty {
            Type::Null => Ok(Wat::i32(from, NULL)),
            Type::Bool if let Some(number) = constant => {
                Ok(Wat::i32(from, FALSE + i64::from(number != 0)))
            }
            Type::Bool => Ok(Wat::list(from, "i32.add", [value, Wat::i32(from, FALSE)])),
            Type::Int | Type::Code | Type::Long if let Some(handle) = constant.and_then(small) => {
                Ok(Wat::i32(from, handle))
            }
            Type::Int | Type::Code => {
                let wide = Wat::list(from, "i64.extend_i32_s", [value]);
                self.value_call(from, "of_long", [wide])
            }
            Type::Long => self.value_call(from, "of_long", [value]),
            Type::Float => self.value_call(from, "of_float", [value]),
            Type::Str => self.value_call(from, "of_str", [value]),
            Type::Arr => self.value_call(from, "of_arr", [value]),
            Type::Map => self.value_call(from, "of_map", [value]),
            _ => Ok(value),
        }
    }

    /// Returns code that converts a handle to a value of the given [shaped](Type::is_shaped) type. It
    /// fails if the value is of another kind. `form` is the form that takes the value.
    pub(crate) fn unboxed(
        &mut self,
        form: NodeId,
        from: NodeId,
        value: Wat<'s>,
        ty: Type,
    ) -> LowerResult<Wat<'s>> {
        let name = match ty {
            Type::Bool => return self.value_call(from, "truth", [value]),
            Type::Int | Type::Code => "int",
            Type::Long => "long",
            Type::Float => "float",
            Type::Str => "str",
            Type::Arr => "arr",
            Type::Map => "map",
            _ => return Ok(value),
        };
        let head = self.tree.head(form).unwrap_or("").trim_end_matches(['?', '!']);
        let what = Wat::literal(from, head.as_bytes());
        self.value_call(from, name, [value, what])
    }

    /// Lowers an operand to a handle.
    pub(crate) fn shaped(&mut self, form: NodeId, node: NodeId) -> LowerResult<Wat<'s>> {
        Ok(self.value(form, node, super::flow::Want::Type(Type::Val))?.wat)
    }

    /// Lowers an operand to a string that contains any value: a string itself, a number in decimal,
    /// and anything else as JSON.
    pub(crate) fn text_of(&mut self, form: NodeId, node: NodeId) -> LowerResult<Wat<'s>> {
        let out = self.value(form, node, super::flow::Want::Any)?;
        self.text_of_lowered(form, node, out)
    }

    /// Returns code that converts any value to a string, like [`text_of`](Lowering::text_of).
    pub(crate) fn text_of_lowered(
        &mut self,
        form: NodeId,
        node: NodeId,
        out: Lowered<'s>,
    ) -> LowerResult<Wat<'s>> {
        match out.ty {
            Type::Val | Type::Arr | Type::Map | Type::Null if out.flow == Flow::Net(1) => {
                let handle = self.boxed(node, out.wat, out.ty)?;
                self.value_call(node, "text", [handle])
            }
            _ => Ok(self.convert(form, node, out, Type::Str)?.wat),
        }
    }

    /// Returns code that leaves the value of the guarded code, or the value of `other` if the
    /// guarded code fails or its value is null.
    pub(crate) fn value_or_null(
        &mut self,
        list: NodeId,
        out: Lowered<'s>,
        label: Option<String>,
        other: NodeId,
    ) -> CodeResult<'s> {
        let other = self.shaped(list, other)?;
        let done = self.new_label("done");
        let found = self.hidden("found", Type::Val.val());
        let left = Wat::list(list, format!("br {done}"), [found.get(list)]);
        let inner = [found.set(list, out.wat), Wat::when(list, found.get(list), left)];
        let tried = match label {
            Some(label) => Wat::list(list, format!("block {label}"), inner),
            None => Wat::sequence(list, inner),
        };
        Ok(self.typed_block(list, &done, Some(Type::Val), vec![tried, other]))
    }
}
