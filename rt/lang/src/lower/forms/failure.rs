//! Forms that handle failures: `catch`, `default`, `retry` and `check`.

use super::call::Callee;
use super::{all_operands, operand_count, operands};
use crate::diagnose::fix::Edits;
use crate::diagnose::wording::{Message, form};
use crate::habits::rewrite;
use crate::lower::flow::{Context, Flow, Lowered, Want};
use crate::lower::leaves::Leaves;
use crate::lower::output::Wat;
use crate::lower::variables::Resolved;
use crate::lower::{CodeResult, LowerResult, Lowering};
use crate::syntax::tree::{NodeId, NodeKind, Tree};
use crate::types::{Type, Val};
use crate::{Code, Signature};

/// Code that may fail.
enum Guarded<'s> {
    /// A call to a host function, which leaves its value, if any, and its error code.
    Raw(Wat<'s>, Option<Type>),
    /// Code and, if it can fail, the label of the block that its failures exit.
    Block(Lowered<'s>, Option<String>),
}

impl<'s> Lowering<'_, 's> {
    /// Lowers the operand of `catch` or `default`.
    fn guarded_call(&mut self, form: NodeId, call: NodeId, want: Want) -> LowerResult<Guarded<'s>> {
        let tree = self.tree;
        let head = tree.head(form).unwrap_or("");
        if !tree.is_list(call) && !self.is_value_operand(call) {
            return self.fault(call, form::catch_call(head, super::usage(head), tree.text(call)));
        }
        let signature =
            tree.head(call).and_then(|inner| self.callee(inner)).and_then(|callee| match callee {
                Callee::Host(signature, _) => Some(self.for_result(&signature, want)),
                Callee::Wat(_) | Callee::Fn(..) => None,
            });
        if let Some(signature) = signature.filter(Signature::fallible)
            && all_operands(tree, call).len() <= signature.params.len()
        {
            let ((lowered, signature), label) =
                self.guarded(|lowering| lowering.raw_host_call(call, &signature))?;
            let ty = signature.results.first().map(|result| Type::of_host(result.ty));
            return Ok(match label {
                None => Guarded::Raw(lowered, ty),
                Some(label) => {
                    let code = self.code();
                    let tested = code.tee(call, []);
                    let left = Wat::br_if(call, &label, tested);
                    let wat = Wat::sequence(call, [lowered, left]);
                    let out = ty.map_or_else(|| Flow::Net(0), |_| Flow::Net(1));
                    let ty = ty.unwrap_or(Type::Any);
                    Guarded::Block(Lowered { wat, flow: out, ty, droppable: false }, Some(label))
                }
            });
        }
        let leaves = self.leaves(call);
        let (lowered, label) = self.guarded(|lowering| match leaves {
            Leaves::Value => lowering.value(form, call, want),
            Leaves::Nothing | Leaves::Never => lowering.node(call, Context::Statement),
        })?;
        if label.is_none()
            && let Some(signature) = signature
        {
            let message =
                form::catch_infallible(head, &signature).maybe_safe(without_err(tree, form, call));
            return self.fault(call, message);
        }
        Ok(Guarded::Block(lowered, label))
    }

    /// Returns true if an operand is the name of a value or of a part of one.
    fn is_value_operand(&mut self, node: NodeId) -> bool {
        let Some(text) = self.tree.name(node) else { return false };
        match self.resolve(text) {
            Some(found) => found.ty == Type::Val,
            None => text.contains('.'),
        }
    }

    /// Lowers `(catch $v $e $why CALL)`, which stores the value, the error code and the reason for
    /// a failure. For a call without a value, the names are `$e $why`.
    pub(super) fn lower_catch(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let nodes = all_operands(tree, list);
        let Some((call, targets)) =
            nodes.split_last().filter(|(_, targets)| matches!(targets.len(), 1..=3))
        else {
            return Err(operand_count(tree, list, 4, nodes.len()));
        };
        let mut names = Vec::new();
        for target in targets {
            names.push((*target, self.target_name(list, *target)?));
        }
        let lowered = self.guarded_call(list, *call, Want::Any)?;
        let value = match &lowered {
            Guarded::Raw(_, ty) => *ty,
            Guarded::Block(out, _) => (out.flow == Flow::Net(1)).then_some(out.ty),
        };
        if value.is_none() && names.len() > 2 {
            let message = form::catch_names(tree.text(*call));
            return self.fault(list, message);
        }
        if value.is_some()
            && let Some(message) = misread_names(tree, targets, tree.text(*call))
        {
            return self.fault(list, message);
        }
        let mut names = names.into_iter();
        let mut next = |lowering: &mut Self, ty: Type| match names.next() {
            Some((node, name)) => lowering.declare(name, ty, node).map(Some),
            None => Ok(None),
        };
        let caught = Caught {
            value: match value {
                Some(ty) => next(self, ty)?,
                None => None,
            },
            code: next(self, Type::Code)?,
            reason: next(self, Type::Str)?,
        };
        let wat = match lowered {
            Guarded::Raw(call, _) => caught.raw(self, list, call, value)?,
            Guarded::Block(out, label) => caught.block(self, list, out, label)?,
        };
        Ok(Lowered::none(wat))
    }

    /// Returns code that leaves the value of the guarded code, or the value of `other` if the
    /// guarded code fails.
    pub(super) fn value_or(
        &mut self,
        list: NodeId,
        out: Lowered<'s>,
        label: Option<String>,
        other: NodeId,
    ) -> CodeResult<'s> {
        let ty = out.ty;
        let other = self.value(list, other, Want::Type(ty))?.wat;
        let Some(label) = label else { return Ok(out) };
        let done = self.new_label("done");
        let left = Wat::list(list, format!("br {done}"), [out.wat]);
        let tried = Wat::list(list, format!("block {label}"), [left]);
        Ok(self.typed_block(list, &done, Some(ty), vec![tried, other]))
    }

    /// Lowers `(default CALL D)`: the call's value, or D if anything in the call fails.
    pub(super) fn lower_default(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let [call, other] = operands::<2>(tree, list)?;
        let lowered = self.guarded_call(list, call, context.want())?;
        // A value that may be null keeps its type.
        let may_be_null = matches!(tree.atom(other), Some("null" | "nil"));
        match lowered {
            Guarded::Raw(wat, Some(ty)) if ty == Type::Val || may_be_null && ty.is_shaped() => {
                let code = self.code();
                let label = self.new_label("failed");
                let tested = code.tee(list, []);
                let left = Wat::br_if(list, &label, tested);
                let value = Wat::sequence(list, [wat, left]);
                let handle = self.boxed(call, value, ty)?;
                self.value_or_null(list, Lowered::one(handle, Type::Val), Some(label), other)
            }
            Guarded::Block(out, label)
                if out.flow == Flow::Net(1)
                    && (out.ty == Type::Val || may_be_null && out.ty.is_shaped()) =>
            {
                let out = self.convert(list, call, out, Type::Val)?;
                self.value_or_null(list, out, label, other)
            }
            Guarded::Raw(wat, Some(ty)) => {
                let other = self.value(list, other, Want::Type(ty))?.wat;
                let name = ty.val().name();
                let then = Wat::list(list, "then", [Wat::list(list, "drop", []), other]);
                let head = format!("if (param {name}) (result {name})");
                let chosen = Wat::list(list, head, [then, Wat::list(list, "else", [])]);
                Ok(Lowered::one(Wat::sequence(list, [wat, chosen]), ty))
            }
            Guarded::Block(out, label) if out.flow != Flow::Net(0) => {
                self.value_or(list, out, label, other)
            }
            // The call has no value.
            Guarded::Raw(..) | Guarded::Block(..) => {
                let message = form::catch_call("default", super::usage("default"), tree.text(call));
                self.fault(call, message)
            }
        }
    }

    /// Lowers `(retry N MS FORM)`, which repeats a form that fails with EREMOTE or ETIME.
    pub(super) fn lower_retry(&mut self, list: NodeId, context: Context) -> CodeResult<'s> {
        let [count, pause, form] = operands::<3>(self.tree, list)?;
        let count = self.value(list, count, Want::Type(Type::Int))?.wat;
        let pause = self.value(list, pause, Want::Type(Type::Int))?.wat;
        let number = self.next_number();
        let left = self.numbered("tries", number, Val::I32);
        let wait = self.numbered("wait", number, Val::I32);
        let leaves = self.leaves(form);
        let (out, label) = self.guarded(|lowering| match (context, leaves) {
            (Context::Operand(want), _) => lowering.value(list, form, want),
            (_, Leaves::Value) => Ok(lowering.value(list, form, Want::Any)?.without_value(form)),
            _ => lowering.node(form, Context::Statement),
        })?;
        let Some(label) = label else { return Ok(out) };
        let (done, again) = (self.label("done", number), self.label("again", number));
        let ty = (out.flow == Flow::Net(1)).then_some(out.ty);
        let code = self.code();
        let is = |expected: Code| {
            Wat::list(list, "i32.eq", [code.get(list), Wat::i32(list, expected.number().into())])
        };
        let passing = Wat::list(list, "i32.or", [is(Code::EREMOTE), is(Code::ETIME)]);
        let more = Wat::list(list, "i32.gt_s", [left.get(list), Wat::i32(list, 1)]);
        let fewer = Wat::list(list, "i32.sub", [left.get(list), Wat::i32(list, 1)]);
        let slept = self.host_call(list, "sys.sleep", [wait.get(list)])?;
        let retried = [left.set(list, fewer), slept, Wat::br(list, &again)];
        let tested = Wat::list(list, "i32.and", [passing, more]);
        let failed = self.fail_again(list)?;
        let finished = match ty {
            Some(_) => vec![Wat::list(list, format!("br {done}"), [out.wat])],
            None => vec![out.wat, Wat::br(list, &done)],
        };
        let body = [
            Wat::list(list, format!("block {label}"), finished),
            Wat::list(list, "if", [tested, Wat::list(list, "then", retried)]),
            failed,
        ];
        let repeated = Wat::list(list, format!("loop {again}"), body);
        let end = Wat::list(list, "unreachable", []);
        let Lowered { wat, flow, ty, .. } = self.typed_block(list, &done, ty, vec![repeated, end]);
        let wat = Wat::sequence(list, [left.set(list, count), wait.set(list, pause), wat]);
        Ok(Lowered { wat, flow, ty, droppable: flow == Flow::Net(1) })
    }

    /// Lowers `(check X)`, which returns X from the function if X is not 0.
    pub(super) fn lower_check(&mut self, list: NodeId, _: Context) -> CodeResult<'s> {
        let tree = self.tree;
        let [operand] = operands::<1>(tree, list)?;
        self.require_code_result(list)?;
        if tree.name(operand).is_some() {
            let value = self.value(list, operand, Want::Type(Type::Code))?.wat;
            let code = value.copy();
            let failed = self.fail_with(list, code)?;
            return Ok(Lowered::none(Wat::when(list, value, failed)));
        }
        // If the call leaves a value and an error code, the value stays on the stack.
        let (wat, below) = match tree.node(operand).kind {
            NodeKind::List => {
                let out = self.list(operand, Context::Stack)?;
                match out.flow {
                    Flow::Net(count @ 2..) => (out.wat, Some((Flow::Net(count - 1), out.ty))),
                    Flow::Net(1) | Flow::Never => (out.wat, None),
                    Flow::Unknown => (out.wat, Some((Flow::Unknown, Type::Any))),
                    // A call with a mark after its name already ends the program if it fails.
                    Flow::Net(0) if is_marked(tree, operand) => return Ok(Lowered::none(out.wat)),
                    Flow::Net(_) => {
                        let message = form::missing_code(tree.text(operand))
                            .safe(rewrite::replace_with_child(tree, list, operand));
                        return self.fault(operand, message);
                    }
                }
            }
            _ => (self.value(list, operand, Want::Type(Type::Code))?.wat, None),
        };
        let ended = self.end_on_error(list)?;
        let wat = Wat::sequence(list, [wat, ended]);
        Ok(match below {
            Some((flow, ty)) => Lowered { wat, flow, ty, droppable: false },
            None => Lowered::none(wat),
        })
    }
}

/// Returns the change that removes a `catch` or `default` around a call that cannot fail.
fn without_err(tree: &Tree<'_>, form: NodeId, call: NodeId) -> Option<Edits> {
    let (outer, inner) = (tree.span(form), tree.span(call));
    match (tree.head(form)?, all_operands(tree, form).as_slice()) {
        ("default", _) => Some(rewrite::replace_with_child(tree, form, call)),
        ("catch", [value, err, _]) => {
            let (value, err) = (tree.name(*value)?, tree.name(*err)?);
            let edits = Edits::one(outer.start..inner.start, format!("(let {value} "));
            Some(edits.insert(outer.end, format!(" (let {err} 0)")))
        }
        _ => None,
    }
}

/// Common variable names for error codes.
const CODES: &[&str] = &["$e", "$err", "$errno", "$error"];

/// Common variable names for failure reasons.
const REASONS: &[&str] = &["$why", "$reason", "$msg", "$message"];

/// Returns a message if the first name of a `catch` looks like a name for the error code. The call
/// returns a value, so the first name receives that value.
fn misread_names(tree: &Tree<'_>, targets: &[NodeId], call: &str) -> Option<Message> {
    let named =
        |node: &NodeId, names: &[&str]| tree.name(*node).is_some_and(|name| names.contains(&name));
    let code = match targets {
        [code] => code,
        [code, reason] if named(reason, REASONS) => code,
        _ => return None,
    };
    let change = Edits::default().insert(tree.start(*code), "$_ ");
    named(code, CODES).then(|| form::catch_order(tree.text(*code), call).safe(change))
}

/// The variables that `catch` sets. Any of them may be missing.
struct Caught<'s> {
    value: Option<Resolved<'s>>,
    code: Option<Resolved<'s>>,
    reason: Option<Resolved<'s>>,
}

impl<'s> Caught<'s> {
    /// Returns code that evaluates `call` and stores its results, including the error code.
    fn raw(
        &self,
        lowering: &mut Lowering<'_, 's>,
        list: NodeId,
        call: Wat<'s>,
        value: Option<Type>,
    ) -> LowerResult<Wat<'s>> {
        let dropped = || Wat::list(list, "drop", []);
        let mut pieces = vec![call];
        let Some(code) = &self.code else {
            pieces.push(dropped());
            pieces.extend(self.value.as_ref().map(|variable| variable.write(list, None)));
            return Ok(Wat::sequence(list, pieces));
        };
        pieces.push(code.write(list, None));
        match (&self.value, value) {
            (Some(variable), _) => pieces.push(variable.write(list, None)),
            (None, Some(_)) => pieces.push(dropped()),
            (None, None) => {}
        }
        if let Some(reason) = &self.reason {
            let why = lowering.host_call(list, "sys.why", [])?;
            let then = reason.write(list, Some(why));
            let other = reason.write(list, Some(Wat::literal(list, &b""[..])));
            pieces.push(Wat::choice(list, "if", code.read(list), then, other));
        }
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns code that evaluates `out` and stores its value or, after a failure, the error code
    /// and the reason. A failure exits the block `label`.
    fn block(
        &self,
        lowering: &mut Lowering<'_, 's>,
        list: NodeId,
        out: Lowered<'s>,
        label: Option<String>,
    ) -> LowerResult<Wat<'s>> {
        let mut done = Vec::new();
        let is_value = out.flow == Flow::Net(1);
        let ty = out.ty;
        match &self.value {
            Some(variable) => done.push(variable.write(list, Some(out.wat))),
            None if is_value => {
                done.push(out.wat);
                done.push(Wat::list(list, "drop", []));
            }
            None => done.push(out.wat),
        }
        let set_code =
            |value: Wat<'s>| self.code.as_ref().map(|code| code.write(list, Some(value)));
        done.extend(set_code(Wat::i32(list, 0)));
        let empty = || Wat::literal(list, &b""[..]);
        done.extend(self.reason.as_ref().map(|reason| reason.write(list, Some(empty()))));
        let Some(label) = label else { return Ok(Wat::sequence(list, done)) };
        let caught = lowering.new_label("caught");
        done.push(Wat::br(list, &caught));
        let mut pieces = vec![Wat::list(list, format!("block {label}"), done)];
        if let Some(variable) = &self.value {
            let zero = Wat::number(list, ty.val(), 0);
            pieces.push(variable.write(list, Some(zero)));
        }
        let code = lowering.code();
        pieces.extend(set_code(code.get(list)));
        if let Some(reason) = &self.reason {
            let why = lowering.host_call(list, "sys.why", [])?;
            pieces.push(reason.write(list, Some(why)));
        }
        Ok(Wat::list(list, format!("block {caught}"), pieces))
    }
}

/// Returns true if the head of a list ends with a mark, `?` or `!`.
fn is_marked(tree: &Tree<'_>, list: NodeId) -> bool {
    tree.head(list).is_some_and(|head| head.ends_with(['?', '!']))
}
