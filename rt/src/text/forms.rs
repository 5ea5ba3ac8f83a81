//! The forms that are not WAT: what each declares, and what it expands to.
//!
//! A form is a row of [`form`]'s table, with its locals in [`declare`]. Nothing else knows a form by name.

use super::emit::Emitter;
use super::locals::{Local, Locals};
use super::tree::{Kind, NodeId, Tree};
use super::walk::{Walk, Walked};
use super::wording::{self, Fault};

/// One form.
pub(super) struct Form {
    /// How it is written, for diagnostics.
    pub(super) usage: &'static str,
    /// Checks it on a walk.
    pub(super) walk: for<'a, 's> fn(&mut Walk<'a, 's>, NodeId) -> Walked<()>,
    /// Writes its expansion.
    pub(super) expand: for<'a, 's> fn(&mut Emitter<'a, 's>, NodeId) -> Result<(), Box<Fault>>,
}

/// The form of that head.
pub(super) fn form(head: &str) -> Option<&'static Form> {
    Some(match head {
        "argv" => &Form { usage: "(argv N $p)", walk: walk_argv, expand: argv },
        "check" => &Form { usage: "(check $err)", walk: walk_check, expand: check },
        "resv" => &Form { usage: "(resv $p)", walk: walk_resv, expand: resv },
        _ => return None,
    })
}

/// Declares the locals that a form brings with it.
pub(super) fn declare<'s>(
    tree: &Tree<'s>,
    head: &str,
    list: NodeId,
    locals: &mut Locals<'s>,
) -> Result<(), Box<Fault>> {
    match head {
        "argv" => {
            locals.code = true;
            if let Ok([_, node]) = operands::<2>(tree, list)
                && let Some(name) = tree.name(node)
                && !locals.get(name).is_some_and(|known| known.param)
            {
                locals.declare(tree, Local { name: Some(name), ty: "i32", node, param: false })?;
            }
        }
        "check" => {
            let mut nodes = tree.children(list);
            nodes.next(tree);
            locals.code |= nodes.next(tree).is_some_and(|operand| tree.name(operand).is_none());
        }
        _ => {}
    }
    Ok(())
}

/// The operands of a form that takes `N` of them.
pub(super) fn operands<const N: usize>(tree: &Tree<'_>, list: NodeId) -> Result<[NodeId; N], Box<Fault>> {
    let mut nodes = tree.children(list);
    nodes.next(tree);
    let mut found = [list; N];
    let mut count = 0;
    while let Some(node) = nodes.next(tree) {
        if let Some(slot) = found.get_mut(count) {
            *slot = node;
        }
        count += 1;
    }
    if count == N {
        return Ok(found);
    }
    let head = tree.head(list).unwrap_or("");
    let usage = form(head).map_or("", |form| form.usage);
    let words = match count > N && !tree.open.is_empty() {
        true => wording::unclosed_form(head, None),
        false => wording::form_operands(head, usage, N, count),
    };
    Err(Fault::new(tree.span(list), words))
}

/// The number that an atom is where it counts things, such as locals.
pub(super) fn index(text: &str) -> Option<usize> {
    let (radix, digits) = match text.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    usize::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// Whether an atom is an integer that fits 32 bits, as WAT writes it.
pub(super) fn is_i32(text: &str) -> bool {
    is_integer(text, 32)
}

/// Whether an atom is an integer that fits so many bits, signed or unsigned.
pub(super) fn is_integer(text: &str, bits: u32) -> bool {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let well_spaced = !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    let limit = if negative { 1 << (bits - 1) } else { u64::MAX >> (64 - bits) };
    well_spaced && u64::from_str_radix(&digits.replace('_', ""), radix).is_ok_and(|value| value <= limit)
}

/// `(argv N $p)`: sets `$p` to the pointer of argument N, returns EBOUND where there is none.
fn argv(emit: &mut Emitter<'_, '_>, list: NodeId) -> Result<(), Box<Fault>> {
    let tree = emit.tree;
    let [number, target] = operands::<2>(tree, list)?;
    let Some(target) = tree.name(target) else {
        return Err(Fault::new(tree.span(target), wording::argv_target(tree.text(target))));
    };
    emit.returns_code(list)?;
    emit.put(list, "(if (local.tee ");
    emit.code_name();
    emit.put(list, " (call ");
    emit.host_call("sys.argv", list)?;
    emit.put(list, " ");
    match tree.atom(number) {
        Some(text) if is_i32(text) => {
            emit.put(number, "(i32.const ");
            emit.put(number, text);
            emit.put(list, ")");
        }
        _ => value(emit, list, number)?,
    }
    emit.put(list, ")) (then (return (local.get ");
    emit.code_name();
    emit.put(list, ")))) (local.set ");
    emit.put(list, target);
    emit.put(list, ")");
    Ok(())
}

fn walk_argv(walk: &mut Walk<'_, '_>, list: NodeId) -> Walked<()> {
    let [number, target] = operands::<2>(walk.tree, list)?;
    walk.operand(list, number)?;
    walk.pointer(list, target)
}

/// `(check X)`: returns X from the function where it is not 0.
fn check(emit: &mut Emitter<'_, '_>, list: NodeId) -> Result<(), Box<Fault>> {
    let [operand] = operands::<1>(emit.tree, list)?;
    emit.returns_code(list)?;
    if let Some(name) = emit.tree.name(operand) {
        for part in ["(if (local.get ", name, ") (then (return (local.get ", name, "))))"] {
            emit.put(list, part);
        }
        return Ok(());
    }
    emit.put(list, "(if (local.tee ");
    emit.code_name();
    emit.put(list, " ");
    value(emit, list, operand)?;
    emit.put(list, ") (then (return (local.get ");
    emit.code_name();
    emit.put(list, "))))");
    Ok(())
}

fn walk_check(walk: &mut Walk<'_, '_>, list: NodeId) -> Walked<()> {
    let [operand] = operands::<1>(walk.tree, list)?;
    walk.operand(list, operand)
}

/// `(resv X)`: puts out the value at X as a result.
fn resv(emit: &mut Emitter<'_, '_>, list: NodeId) -> Result<(), Box<Fault>> {
    let [operand] = operands::<1>(emit.tree, list)?;
    emit.put(list, "(call ");
    emit.host_call("sys.resv", list)?;
    emit.put(list, " ");
    value(emit, list, operand)?;
    emit.put(list, ")");
    Ok(())
}

fn walk_resv(walk: &mut Walk<'_, '_>, list: NodeId) -> Walked<()> {
    let [operand] = operands::<1>(walk.tree, list)?;
    walk.operand(list, operand)
}

/// Writes an operand of a form: a local's value, a literal's address, or an expression.
fn value(emit: &mut Emitter<'_, '_>, list: NodeId, operand: NodeId) -> Result<(), Box<Fault>> {
    let tree = emit.tree;
    match tree.node(operand).kind {
        Kind::List => emit.list(operand),
        Kind::Text | Kind::Block => emit.literal(operand),
        Kind::Atom => {
            let Some(name) = tree.name(operand) else {
                let head = tree.head(list).unwrap_or("");
                let usage = form(head).map_or("", |form| form.usage);
                let words = wording::form_name(head, usage, tree.text(operand));
                return Err(Fault::new(tree.span(operand), words));
            };
            emit.put(operand, "(local.get ");
            emit.put(operand, name);
            emit.put(operand, ")");
            Ok(())
        }
    }
}
