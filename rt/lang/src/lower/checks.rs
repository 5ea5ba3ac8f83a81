//! Run-time checks, such as those for integer overflow and array bounds. A failed check calls a
//! function in the module, which ends the program with a message. Such a function has no source, so
//! the failure is reported at the position of the call.

use super::flow::Flow;
use super::output::Wat;
use super::{LowerResult, LoweredFunc, Lowering, TRAP};
use crate::syntax::tree::NodeId;
use crate::types::Val;

/// A run-time check, identified by its failure message. In the message, `{a}` and `{b}` are
/// replaced with two numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    message: String,
    /// The types of the two numbers.
    params: [Val; 2],
}

impl<'s> Lowering<'_, 's> {
    /// Returns code that ends the program with a message if `test` is not 0. In the message, `{a}`
    /// and `{b}` are replaced with the two integers in `shown`, which have type `val`.
    pub(crate) fn trap_if(
        &mut self,
        form: NodeId,
        test: Wat<'s>,
        message: String,
        val: Val,
        shown: [Wat<'s>; 2],
    ) -> Wat<'s> {
        let check = Check { message, params: [val, val] };
        let at = self.checks.iter().position(|known| *known == check).unwrap_or_else(|| {
            self.checks.push(check);
            self.checks.len() - 1
        });
        let name = self.label("check", at + 1);
        let call = Wat::list(form, format!("call {name}"), shown);
        Wat::list(form, "if", [test, Wat::list(form, "then", [call])])
    }

    /// Returns the functions that the checks call.
    pub(super) fn check_funcs(&mut self) -> LowerResult<Vec<LoweredFunc<'s>>> {
        let node = NodeId::NONE;
        let mut funcs = Vec::new();
        for (at, check) in std::mem::take(&mut self.checks).into_iter().enumerate() {
            let mut args = vec![Wat::literal(node, check.message.into_bytes())];
            let mut head = format!("func {}", self.label("check", at + 1));
            for (name, val) in ["$a", "$b"].into_iter().zip(check.params) {
                head.push_str(&format!(" (param {name} {})", val.name()));
                let value = Wat::list(node, format!("local.get {name}"), []);
                args.push(match val {
                    Val::I32 => Wat::list(node, "i64.extend_i32_s", [value]),
                    _ => value,
                });
            }
            let call = self.host_call(node, TRAP, args)?;
            let (header, variables, pieces) = (Vec::new(), Vec::new(), vec![call]);
            let flow = Flow::Net(0);
            funcs.push(LoweredFunc { node, head, header, variables, pieces, flow });
        }
        Ok(funcs)
    }
}
