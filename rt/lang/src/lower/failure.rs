//! Control flow after a failed call, and run-time checks.
//!
//! A failed check, such as one for integer overflow or array bounds, calls a function in the
//! module, which ends the program with a message. Such a function has no source, so the failure is
//! reported at the position of the call.

use crate::diagnose::wording;
use crate::lower::flow::{Flow, Lowered};
use crate::lower::function::{FuncKind, Handler};
use crate::lower::output::Wat;
use crate::lower::variables::Hidden;
use crate::lower::{LowerResult, LoweredFunc, Lowering, TRAP};
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

impl<'s> Lowering<'_, 's> {
    /// Returns code for a host call. If the call fails, the code jumps to the enclosing handler or,
    /// if there is none, returns the error code from the function.
    pub(crate) fn checked_call(
        &mut self,
        list: NodeId,
        name: &str,
        args: impl Into<Vec<Wat<'s>>>,
    ) -> LowerResult<Wat<'s>> {
        let call = self.host_call(list, name, args)?;
        if self.host.get(name).is_some_and(|signature| !signature.fallible()) {
            return Ok(call);
        }
        let ended = self.end_on_error(list)?;
        Ok(Wat::sequence(list, [call, ended]))
    }

    /// Returns the hidden variable for error codes.
    pub(crate) fn code(&mut self) -> Hidden {
        self.func.uses_code = true;
        Hidden { name: [self.prefix(), "err"].concat() }
    }

    /// Generates instructions that pop an error code. If the error code is not 0, they jump to the
    /// enclosing handler or, if there is none, return the error code from the current function.
    pub(crate) fn end_on_error(&mut self, form: NodeId) -> LowerResult<Wat<'s>> {
        let tested = self.code().tee(form, []);
        self.fail_if(form, tested)
    }

    /// Generates instructions that do nothing if `test` is 0. Otherwise, they jump to the enclosing
    /// handler or, if there is none, return the stored error code. The hidden variable for error
    /// codes must already contain the code.
    fn fail_if(&mut self, form: NodeId, test: Wat<'s>) -> LowerResult<Wat<'s>> {
        if let Some(handler) = self.func.handlers.last_mut() {
            handler.is_used = true;
            return Ok(Wat::br_if(form, &handler.label, test));
        }
        let code = self.code().get(form);
        Ok(Wat::when(form, test, self.return_code(form, code)?))
    }

    /// Generates instructions that fail with the stored error code: they jump to the enclosing
    /// handler or, if there is none, return the code from the current function.
    pub(crate) fn fail_again(&mut self, form: NodeId) -> LowerResult<Wat<'s>> {
        if let Some(handler) = self.func.handlers.last_mut() {
            handler.is_used = true;
            return Ok(Wat::br(form, &handler.label));
        }
        let code = self.code().get(form);
        self.return_code(form, code)
    }

    /// Generates instructions that fail with the error code `code`: they jump to the enclosing
    /// handler or, if there is none, return the error code from the current function.
    pub(crate) fn fail_with(&mut self, form: NodeId, code: Wat<'s>) -> LowerResult<Wat<'s>> {
        if self.func.handlers.is_empty() {
            return self.return_code(form, code);
        }
        let set = self.code().set(form, code);
        Ok(Wat::sequence(form, [set, self.fail_again(form)?]))
    }

    /// Generates instructions that return an error code from the current function.
    pub(crate) fn return_code(&mut self, form: NodeId, code: Wat<'s>) -> LowerResult<Wat<'s>> {
        let at = self.func.at;
        let mut results = Vec::new();
        match self.func.kind {
            FuncKind::Run => {}
            FuncKind::Wat(_) => self.require_code_result(form)?,
            FuncKind::Fn => {
                self.facts.set_fallible(at);
                results.extend(
                    self.facts.result(at).map(|(ty, _)| Wat::number(form, ty.stored().val(), 0)),
                );
            }
        }
        results.push(code);
        Ok(Wat::list(form, "return", results))
    }

    /// Checks that the current function can return an error code. `form` is the form that returns
    /// it.
    pub(crate) fn require_code_result(&self, form: NodeId) -> LowerResult<()> {
        if self.func.kind != FuncKind::Wat(false) {
            return Ok(());
        }
        let func = self.program.funcs.get(self.func.at).and_then(|func| func.name);
        let name = self.tree.head(form).unwrap_or("");
        self.fault(form, wording::cannot_return_code(name, func.unwrap_or("(func …)")))
    }

    /// Lowers code with a handler for its failures. Returns the code and, if anything inside may
    /// fail, the label of the block that a failure exits.
    pub(crate) fn guarded<T>(
        &mut self,
        lower: impl FnOnce(&mut Self) -> LowerResult<T>,
    ) -> LowerResult<(T, Option<String>)> {
        let label = self.new_label("failed");
        self.func.handlers.push(Handler { label, is_used: false });
        let lowered = lower(self);
        let handler = self.func.handlers.pop();
        Ok((lowered?, handler.filter(|handler| handler.is_used).map(|handler| handler.label)))
    }

    /// Stores a value in a hidden variable, unless the value can be evaluated twice. Returns the
    /// code that stores the value, if any, and the code that reads it.
    pub(crate) fn once(
        &mut self,
        form: NodeId,
        value: Wat<'s>,
        val: Val,
    ) -> (Option<Wat<'s>>, Wat<'s>) {
        if value.is_simple() {
            return (None, value);
        }
        self.stored(form, "value", value, val)
    }

    /// Stores a value in a new hidden variable. Returns the code that stores the value, and the
    /// code that reads it, which may be copied.
    pub(crate) fn stored(
        &mut self,
        form: NodeId,
        name: &str,
        value: Wat<'s>,
        val: Val,
    ) -> (Option<Wat<'s>>, Wat<'s>) {
        let variable = self.hidden(name, val);
        (Some(variable.set(form, value)), variable.get(form))
    }

    /// Wraps code in a block with this label. The block leaves a value of type `ty`, or no value if
    /// `ty` is `None`.
    pub(crate) fn typed_block(
        &self,
        form: NodeId,
        label: &str,
        ty: Option<Type>,
        pieces: Vec<Wat<'s>>,
    ) -> Lowered<'s> {
        match ty {
            Some(ty) => {
                let val = match ty.val() {
                    Val::Any => Val::I32,
                    val => val,
                };
                let head = format!("block {label} (result {})", val.name());
                Lowered::one(Wat::list(form, head, pieces), ty)
            }
            None => Lowered {
                flow: Flow::Net(0),
                ..Lowered::none(Wat::list(form, format!("block {label}"), pieces))
            },
        }
    }
}

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
        Wat::when(form, test, call)
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
            let header = Vec::new();
            let variables = Vec::new();
            let pieces = vec![call];
            let flow = Flow::Net(0);
            funcs.push(LoweredFunc { node, head, header, variables, pieces, flow });
        }
        Ok(funcs)
    }
}
