//! Forms of control flow: conditions, loops, and the ways to end a program.

use super::binding::{binding_list, target_name};
use super::value::Join;
use super::{all_operands, macros, operand_count, operands};
use crate::emit::flow::{Context, EmittedCode, Flow};
use crate::emit::instruction::Tail;
use crate::emit::{EmitResult, Emitter, Loop};
use crate::messages::{Fault, form};
use crate::ops::Val;
use crate::tree::{NodeId, NodeKind, Nodes};
use crate::{idioms, rewrite};

/// `(when C …)`, `(unless C …)`: runs the body if C is true, or for `unless`, if C is false.
pub(super) fn when(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let (condition, mut body) = first_and_rest(emit, list)?;
    let unless = tree.head(list) == Some("unless");
    emit.put(list, if unless { "(if (i32.eqz " } else { "(if " });
    emit.enter(list)?;
    emit.condition(list, condition)?;
    emit.put(list, if unless { ") (then" } else { " (then" });
    statements(emit, &mut body)?;
    emit.depth -= 1;
    emit.out.push_str("))");
    Ok(EmittedCode::NOTHING)
}

/// `(cond (C …) … (else …))`: runs the first clause whose condition is true.
pub(super) fn cond(emit: &mut Emitter<'_, '_>, list: NodeId, context: Context) -> EmitResult {
    let tree = emit.tree;
    let clauses = all_operands(tree, list);
    let Some((last, others)) = clauses.split_last() else {
        return Err(operand_count(tree, list, 2, 0));
    };
    let mut value = Join::at(context);
    if value.is_wanted() && tree.head(*last) != Some("else") {
        return Err(Fault::new(tree.span(list), form::value_needs_else("cond")));
    }
    if let Some(early) = others.iter().find(|clause| tree.head(**clause) == Some("else")) {
        return Err(Fault::new(tree.span(*early), form::else_not_last()));
    }
    let number = emit.next_number();
    let done = emit.generated_name("done", number);
    emit.put(list, &format!("(block {done}"));
    let type_at = emit.out.len();
    emit.enter(list)?;
    for clause in &clauses {
        if tree.node(*clause).kind != NodeKind::List {
            return Err(Fault::new(tree.span(*clause), form::clause(tree.text(*clause))));
        }
        let mut nodes = tree.children(*clause);
        let Some(condition) = nodes.next(tree) else {
            return Err(Fault::new(tree.span(*clause), form::clause("()")));
        };
        emit.separate(*clause);
        if tree.atom(condition) == Some("else") {
            value.branch(emit, *clause, &mut nodes)?;
            continue;
        }
        emit.put(*clause, "(if ");
        emit.enter(*clause)?;
        emit.condition(list, condition)?;
        emit.put(*clause, " (then");
        emit.enter(*clause)?;
        let flow = value.branch(emit, *clause, &mut nodes)?;
        if flow != Flow::Never && clause != last {
            emit.put(*clause, &format!(" (br {done})"));
        }
        emit.depth -= 2;
        emit.out.push_str("))");
    }
    emit.depth -= 1;
    emit.out.push(')');
    Ok(value.close(emit, list, type_at))
}

/// `(while C …)`: repeats the body while C is true.
pub(super) fn repeat(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let (condition, mut body) = first_and_rest(emit, list)?;
    let around = Loop { leave: emit.next_number(), next: emit.next_number() };
    let (leave, next) =
        (emit.generated_name("leave", around.leave), emit.generated_name("next", around.next));
    emit.put(list, &format!("(block {leave} (loop {next} (br_if {leave} (i32.eqz "));
    emit.enter(list)?;
    emit.condition(list, condition)?;
    emit.put(list, "))");
    emit.loops.push(around);
    statements(emit, &mut body)?;
    emit.loops.pop();
    emit.depth -= 1;
    emit.put(list, &format!(" (br {next})))"));
    Ok(EmittedCode::NOTHING)
}

/// `(for $i FROM TO …)`: counts from FROM up to TO, which is excluded.
pub(super) fn count(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let mut body = tree.children(list);
    body.next(tree);
    binding_list(emit, list)?;
    let (Some(target), Some(from), Some(to)) = (body.next(tree), body.next(tree), body.next(tree))
    else {
        return Err(operand_count(tree, list, 3, all_operands(tree, list).len()));
    };
    let name = target_name(emit, list, target)?;
    let around = Loop { leave: emit.next_number(), next: emit.next_number() };
    let (leave, next) =
        (emit.generated_name("leave", around.leave), emit.generated_name("next", around.next));
    let again = emit.next_number();
    let again = emit.generated_name("again", again);
    emit.put(list, "(local.set ");
    emit.put(target, name);
    emit.space();
    emit.enter(list)?;
    reject_loop_word(emit, list, from)?;
    let known = emit.local(name).or_else(|| bound_type(emit, to));
    let ty = emit.value(list, from, known)?.ty;
    let ty = if ty == Val::Any { Val::I32 } else { ty };
    if !matches!(ty, Val::I32 | Val::I64) {
        return Err(Fault::new(tree.span(from), form::count_type(tree.text(from), ty)));
    }
    emit.declare(name, ty, target)?;
    let ty_name = ty.name();
    emit.put(list, ") ");
    // The bound is evaluated once, before the first iteration.
    let bound = match tree.node(to).kind {
        NodeKind::Atom if tree.name(to).is_none() => None,
        _ => {
            let number = emit.next_number();
            let bound = emit.declare_hidden("to", number, ty);
            emit.put(list, &format!("(local.set {bound} "));
            emit.value(list, to, Some(ty))?;
            emit.put(list, ") ");
            Some(bound)
        }
    };
    emit.put(
        list,
        &format!("(block {leave} (loop {again} (br_if {leave} ({ty_name}.ge_s (local.get {name}) "),
    );
    match bound {
        Some(bound) => emit.put(list, &format!("(local.get {bound})")),
        None => {
            emit.value(list, to, Some(ty))?;
        }
    }
    emit.put(list, &format!(")) (block {next}"));
    emit.loops.push(around);
    statements(emit, &mut body)?;
    emit.loops.pop();
    emit.depth -= 1;
    let step = format!("(local.set {name} ({ty_name}.add (local.get {name}) ({ty_name}.const 1)))");
    emit.put(list, &format!(") {step} (br {again})))"));
    Ok(EmittedCode::NOTHING)
}

/// Returns the type of a bound that is a local. A number as the first value takes this type.
fn bound_type(emit: &Emitter<'_, '_>, to: NodeId) -> Option<Val> {
    emit.tree.name(to).and_then(|name| emit.local(name))
}

/// `(each $item ARR …)`: repeats the body for each item of an array.
pub(super) fn each(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    let mut body = tree.children(list);
    body.next(tree);
    binding_list(emit, list)?;
    let (Some(target), Some(array)) = (body.next(tree), body.next(tree)) else {
        return Err(operand_count(tree, list, 2, all_operands(tree, list).len()));
    };
    let name = target_name(emit, list, target)?;
    let around = Loop { leave: emit.next_number(), next: emit.next_number() };
    let (leave, next) =
        (emit.generated_name("leave", around.leave), emit.generated_name("next", around.next));
    let number = emit.next_number();
    let (arr, at, again) = (
        emit.declare_hidden("arr", number, Val::I32),
        emit.declare_hidden("at", number, Val::I32),
        emit.generated_name("again", number),
    );
    emit.put(list, &format!("(local.set {arr} "));
    emit.enter(list)?;
    reject_loop_word(emit, list, array)?;
    emit.value(list, array, Some(Val::I32))?;
    emit.declare(name, Val::I32, target)?;
    emit.put(list, &format!(") (local.set {at} (i32.const 0)) "));
    emit.put(
        list,
        &format!("(block {leave} (loop {again} (br_if {leave} (i32.ge_s (local.get {at}) "),
    );
    emit.open_call(list, "arr.len")?;
    emit.put(list, &format!(" (local.get {arr})))) "));
    emit.open_call(list, "arr.get")?;
    emit.put(list, &format!(" (local.get {arr}) (local.get {at})) (drop) (local.set "));
    emit.put(target, name);
    emit.put(list, &format!(") (block {next}"));
    emit.loops.push(around);
    statements(emit, &mut body)?;
    emit.loops.pop();
    emit.depth -= 1;
    emit.put(
        list,
        &format!(") (local.set {at} (i32.add (local.get {at}) (i32.const 1))) (br {again})))"),
    );
    Ok(EmittedCode::NOTHING)
}

/// `(break)`: leaves the innermost loop.
pub(super) fn leave(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    branch(emit, list, "leave", |around| around.leave)
}

/// `(continue)`: continues with the next iteration of the innermost loop.
pub(super) fn next(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    branch(emit, list, "next", |around| around.next)
}

fn branch(
    emit: &mut Emitter<'_, '_>,
    list: NodeId,
    label: &str,
    which: fn(&Loop) -> usize,
) -> EmitResult {
    let [] = operands::<0>(emit.tree, list)?;
    let Some(number) = emit.loops.last().map(which) else {
        let head = emit.tree.head(list).unwrap_or("");
        return Err(Fault::new(emit.tree.span(list), form::outside_loop(head)));
    };
    let label = emit.generated_name(label, number);
    emit.put(list, &format!("(br {label})"));
    Ok(EmittedCode::NEVER)
}

/// `(do …)`: runs several forms. Its value is that of the last one.
pub(super) fn sequence(emit: &mut Emitter<'_, '_>, list: NodeId, context: Context) -> EmitResult {
    let tree = emit.tree;
    let mut nodes = tree.children(list);
    nodes.next(tree);
    let tail = match context {
        Context::Statement => Tail::Discarded,
        Context::Operand(want) => Tail::Value(want),
    };
    let out = emit.sequence(&mut nodes, tail)?;
    Ok(EmittedCode { droppable: context == Context::Statement && out.droppable, ..out })
}

/// `(ret P)`, `(ret)`: outputs a result and ends the program.
pub(super) fn ret(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let tree = emit.tree;
    if !emit.run {
        let message = form::ret_in_helper(tree.text(list))
            .maybe_safe(rewrite::replace_head(tree, list, "return"));
        return Err(Fault::new(tree.span(list), message));
    }
    match all_operands(tree, list).as_slice() {
        [] => {}
        [operand] => {
            macros::result(emit, list, *operand)?;
            emit.out.push(' ');
        }
        more => return Err(operand_count(tree, list, 1, more.len())),
    }
    emit.put(list, "(return (i32.const 0))");
    Ok(EmittedCode::NEVER)
}

/// `(fail CODE)`, `(fail CODE P)`: ends the program with an error code. Outputs the string P first.
pub(super) fn fail(emit: &mut Emitter<'_, '_>, list: NodeId, _: Context) -> EmitResult {
    let nodes = all_operands(emit.tree, list);
    let (operand, text) = match nodes.as_slice() {
        [operand] => (*operand, None),
        [operand, text] => (*operand, Some(*text)),
        other => return Err(operand_count(emit.tree, list, 1, other.len())),
    };
    emit.require_code_result(list)?;
    if let Some(text) = text {
        macros::result(emit, list, text)?;
        emit.out.push(' ');
    }
    emit.put(list, "(return ");
    emit.value(list, operand, Some(Val::I32))?;
    emit.out.push(')');
    Ok(EmittedCode::NEVER)
}

/// Rejects a word such as `in` between the name and the range of a loop.
fn reject_loop_word(emit: &Emitter<'_, '_>, list: NodeId, word: NodeId) -> EmitResult<()> {
    let tree = emit.tree;
    match idioms::remove_loop_word(tree, list) {
        Some(change) => {
            let head = tree.head(list).unwrap_or("");
            let message = form::not_a_value(head, super::usage(head), tree.text(word), false);
            Err(Fault::new(tree.span(word), message.safe(change)))
        }
        None => Ok(()),
    }
}

/// Emits the body of a form.
fn statements(emit: &mut Emitter<'_, '_>, body: &mut Nodes) -> EmitResult<()> {
    emit.depth += 1;
    emit.sequence(body, Tail::Discarded)?;
    emit.depth -= 1;
    Ok(())
}

/// Returns a form's first operand, and the nodes after it.
fn first_and_rest(emit: &Emitter<'_, '_>, list: NodeId) -> EmitResult<(NodeId, Nodes)> {
    let tree = emit.tree;
    let mut nodes = tree.children(list);
    nodes.next(tree);
    match nodes.next(tree) {
        Some(first) => Ok((first, nodes)),
        None => Err(operand_count(tree, list, 2, 0)),
    }
}
