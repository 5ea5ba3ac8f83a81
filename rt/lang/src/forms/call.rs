//! Calls of functions by name: `(str.len $s)`, `(http.get? $url)`, `($helper 1)`.

use std::fmt::Write as _;

use crate::emit::flow::{EmittedCode, Flow};
use crate::emit::stack_effect::StackEffect;
use crate::emit::{EmitResult, Emitter};
use crate::fix::Change;
use crate::kinds::{self, ValueKind};
use crate::messages::{Fault, form};
use crate::ops::Val;
use crate::rewrite;
use crate::tree::NodeId;
use crate::{Signature, Ty};

/// The function that a list's head names.
pub(crate) enum Callee {
    /// A host function. If the flag is true, the program ends if the call fails.
    Host(Signature, bool),
    /// A function of the program, by name.
    Helper(String),
}

impl Callee {
    /// Returns the signature of a host function.
    pub(crate) fn signature(&self) -> Option<Signature> {
        match self {
            Callee::Host(signature, _) => Some(*signature),
            Callee::Helper(_) => None,
        }
    }

    /// Returns the number of values that a call leaves.
    pub(crate) fn pushes(&self) -> usize {
        match self {
            Callee::Host(signature, true) => signature.results.len(),
            Callee::Host(signature, false) => signature.pushes().count(),
            Callee::Helper(_) => 1,
        }
    }
}

/// Resolves the head of a list: the full name of a host function, with or without `?`, or the name
/// of a helper function.
pub(crate) fn called(emit: &Emitter<'_, '_>, head: &str) -> Option<Callee> {
    if head.starts_with('$') {
        if emit.program.defined.contains_key(head) {
            return Some(Callee::Helper(head.to_owned()));
        }
        let plain = head.strip_prefix('$').filter(|plain| plain.contains('.'))?;
        return called(emit, plain);
    }
    if !head.contains('.') {
        return None;
    }
    match head.strip_suffix('?') {
        Some(name) => emit.host.get(name).map(|signature| Callee::Host(*signature, true)),
        None => emit.host.get(head).map(|signature| Callee::Host(*signature, false)),
    }
}

/// Emits a call.
pub(crate) fn expand(emit: &mut Emitter<'_, '_>, list: NodeId, called: &Callee) -> EmitResult {
    match called {
        Callee::Host(signature, question) => host(emit, list, signature, *question),
        Callee::Helper(name) => helper(emit, list, name),
    }
}

fn host(
    emit: &mut Emitter<'_, '_>,
    list: NodeId,
    signature: &Signature,
    question: bool,
) -> EmitResult {
    let tree = emit.tree;
    if question && !signature.fallible() {
        let plain = tree.head(list).map(|head| head.trim_end_matches('?'));
        let change = plain.and_then(|plain| rewrite::replace_head(tree, list, plain));
        return Err(Fault::new(tree.span(list), form::cannot_fail(signature).maybe_safe(change)));
    }
    let operands = super::all_operands(tree, list);
    let name = format!("{}.{}", signature.module, signature.name);
    let signature = emit.host.called(&name, operands.len()).copied().unwrap_or(*signature);
    let signature = &signature;
    let missing = signature.params.get(operands.len()..).unwrap_or(&[]);
    if !signature.takes(operands.len()) {
        let message = match operands.len() > signature.params.len() && !tree.open.is_empty() {
            true => crate::messages::unclosed_form(tree.head(list).unwrap_or(""), None),
            false => form::call_operands(signature, operands.len())
                .maybe_safe(rewrite_as_fmt(emit, list, signature, &operands)),
        };
        return Err(Fault::new(tree.span(list), message));
    }
    emit.import(signature);
    emit.put(list, "(call $");
    emit.out.push_str(signature.module);
    emit.out.push('.');
    emit.out.push_str(signature.name);
    emit.enter(list)?;
    for (operand, param) in operands.iter().zip(signature.params) {
        emit.separate(*operand);
        emit.value(list, *operand, Some(Val::from(param.ty.val())))?;
    }
    for none in missing.iter().filter_map(|param| param.ty.missing()) {
        _ = write!(emit.out, " (i32.const {none})");
    }
    emit.depth -= 1;
    emit.out.push(')');
    let effect = StackEffect::of_host(signature);
    if !question {
        let count = i32::try_from(effect.pushes).unwrap_or(0);
        let droppable = !signature.fallible() && count == 1;
        return Ok(EmittedCode {
            is_bool: effect.is_bool,
            droppable,
            ..EmittedCode::net(count, effect.ty)
        });
    }
    emit.out.push(' ');
    emit.return_on_error(list)?;
    Ok(match signature.results.first() {
        Some(result) => EmittedCode {
            droppable: true,
            is_bool: result.ty == Ty::Bool,
            ..EmittedCode::one(Val::from(result.ty.val()))
        },
        None => EmittedCode::NOTHING,
    })
}

/// Rewrites `(str.cat A B C)` as a `fmt` of all arguments.
fn rewrite_as_fmt(
    emit: &Emitter<'_, '_>,
    list: NodeId,
    signature: &Signature,
    operands: &[NodeId],
) -> Option<Change> {
    let tree = emit.tree;
    if (signature.module, signature.name) != ("str", "cat") || operands.len() <= 2 {
        return None;
    }
    let kinds = kinds::enclosing(tree, emit.program, emit.host, list);
    let kind = |node: &NodeId| kinds.as_ref().and_then(|kinds| kinds.kind(*node));
    let placeholders: String = operands.iter().map(|node| placeholder(kind(node))).collect();
    rewrite::replace_head(tree, list, format!("fmt \"{placeholders}\""))
}

/// Returns the placeholder of `fmt` for a value of this kind.
pub(crate) fn placeholder(kind: Option<ValueKind>) -> &'static str {
    match kind {
        Some(ValueKind::Number | ValueKind::Code) => "{i}",
        _ => "{}",
    }
}

fn helper(emit: &mut Emitter<'_, '_>, list: NodeId, name: &str) -> EmitResult {
    let tree = emit.tree;
    let effect = emit.called(name);
    let operands = super::all_operands(tree, list);
    let wanted = effect.as_ref().map(|effect| effect.pops.len());
    if let Some(wanted) = wanted.filter(|wanted| *wanted != operands.len()) {
        return Err(Fault::new(
            tree.span(list),
            form::helper_operands(name, wanted, operands.len()),
        ));
    }
    emit.put(list, "(call ");
    emit.out.push_str(name);
    emit.enter(list)?;
    for (at, operand) in operands.iter().enumerate() {
        emit.separate(*operand);
        let want = effect.as_ref().and_then(|effect| effect.pops.get(at));
        emit.value(list, *operand, want)?;
    }
    emit.depth -= 1;
    emit.out.push(')');
    Ok(match effect {
        Some(effect) => EmittedCode::net(i32::try_from(effect.pushes).unwrap_or(0), effect.ty),
        None => EmittedCode { flow: Flow::Unknown, ..EmittedCode::UNKNOWN },
    })
}
