//! Values: what stands where a form takes one.

use super::super::emit::{Emitted, Emitter};
use super::super::fix::Change;
use super::super::ops::{self, Val};
use super::super::out::{Flow, Out, Place};
use super::super::plain::Ends;
use super::super::tree::{Kind, NodeId, Nodes};
use super::super::wording::Fault;
use super::super::{habits, nearest, rewrite};
use super::words;
use crate::Code;

impl Emitter<'_, '_> {
    /// Writes the operand of a form: exactly one value, of the type `want` where that is given. Gives its type.
    pub(crate) fn value(&mut self, form: NodeId, node: NodeId, want: Option<Val>) -> Emitted<Out> {
        let tree = self.tree;
        let out = match tree.node(node).kind {
            Kind::Atom => match self.bare(node, want)? {
                Some(out) => out,
                None => return Err(self.no_value(form, node)),
            },
            _ => self.node(node, Place::Operand(want))?,
        };
        let ty = match out.flow {
            Flow::Net(1) => out.ty,
            Flow::Never | Flow::Unknown => want.unwrap_or(out.ty),
            // What WAT's own instructions leave too much or too little of, the walk over them tells better.
            Flow::Net(_) if self.is_plain(node) => return Ok(Out { ty: want.unwrap_or(Val::Any), ..Out::UNKNOWN }),
            Flow::Net(count) => return Err(self.not_one(form, node, count)),
        };
        if let Some(want) = want.filter(|want| !ty.fits(*want)) {
            let head = tree.head(form).unwrap_or("");
            let words = words::operand_type(head, tree.text(node), want, ty, ops::conversion(ty, want));
            return Err(Fault::new(tree.span(node), words));
        }
        Ok(Out { ty, ..out })
    }

    /// Writes a condition: an i32 that is 0 or not.
    pub(crate) fn condition(&mut self, form: NodeId, node: NodeId) -> Emitted<Out> {
        let out = self.value(form, node, None)?;
        if out.ty.fits(Val::I32) {
            return Ok(out);
        }
        let tree = self.tree;
        Err(Fault::new(tree.span(node), words::condition_type(tree.text(node), out.ty)))
    }

    /// Writes the value of a name, a number or an error code; `None` where the atom is none of these.
    pub(crate) fn bare(&mut self, node: NodeId, want: Option<Val>) -> Emitted<Option<Out>> {
        let text = self.tree.text(node);
        if text.starts_with('$') {
            if let Some(ty) = self.local(text) {
                self.put(node, "(local.get ");
                self.out.push_str(text);
                self.out.push(')');
                return Ok(Some(Out::one(ty)));
            }
            if let Some(at) = self.types.globals.by_name.get(text) {
                let ty = self.types.globals.list.get(*at).copied().flatten().map_or(Val::Any, |global| global.ty);
                self.put(node, "(global.get ");
                self.out.push_str(text);
                self.out.push(')');
                return Ok(Some(Out::one(ty)));
            }
            return Ok(None);
        }
        if let Some(code) = Code::from_name(text) {
            self.put(node, &format!("(i32.const {})", code.number()));
            return Ok(Some(Out::one(Val::I32)));
        }
        let Some(own) = number_type(text) else { return Ok(None) };
        let ty = want.filter(|want| *want != Val::Any).unwrap_or(own);
        if !is_number(ty, text) {
            return Err(Fault::new(self.tree.span(node), words::number_type(text, ty, own)));
        }
        self.put(node, "(");
        self.out.push_str(ty.name());
        self.out.push_str(".const ");
        self.out.push_str(text);
        self.out.push(')');
        Ok(Some(Out::one(ty)))
    }

    /// Whether a node is a list of WAT's own.
    fn is_plain(&self, node: NodeId) -> bool {
        let head = self.tree.head(node);
        head.is_some_and(|head| {
            super::form(head).is_none() && super::call::called(self, head).is_none() && head != "if"
        })
    }

    /// Says what an atom is that is no value.
    fn no_value(&self, form: NodeId, node: NodeId) -> Box<Fault> {
        let tree = self.tree;
        let text = tree.text(node);
        let head = tree.head(form).unwrap_or("");
        let locals = self.locals.by_name.keys().copied();
        let declared_later = || self.declared_later(text);
        let words = match text.strip_prefix('$') {
            Some(plain) if self.host.get(plain).is_some() => {
                words::function_as_value(plain).perhaps(self.bare_call(plain))
            }
            Some(_) if self.program.defined.contains_key(text) => words::helper_as_value(text),
            Some(_) => match self.set_by_instruction(text) {
                Some(change) => words::unknown_local(text, locals, declared_later()).safe(change),
                None => words::unknown_local(text, locals, declared_later()),
            },
            None => match self.host.get(text.trim_end_matches('?')) {
                Some(_) => words::function_as_value(text).perhaps(self.bare_call(text)),
                None => {
                    let is_local = self.local(&format!("${text}")).is_some();
                    let change = habits::no_value(tree, form, node);
                    words::not_a_value(head, super::usage(head), text, is_local).perhaps(change)
                }
            },
        };
        Fault::new(tree.span(node), words)
    }

    /// A function that takes nothing, called.
    fn bare_call(&self, name: &str) -> Option<Change> {
        let known = self.host.get(name.trim_end_matches('?'))?;
        known.params.is_empty().then(|| Change::Instead(format!("({name})")))
    }

    /// The declaration that a `local.set` of a name lacks.
    fn set_by_instruction(&self, name: &str) -> Option<Change> {
        let tree = self.tree;
        if nearest::certain(name, self.locals.by_name.keys().copied()).is_some() {
            return None;
        }
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let sets = matches!(tree.head(node), Some("local.set" | "local.tee"));
            if sets && rewrite::items(tree, node).get(1).is_some_and(|target| tree.name(*target) == Some(name)) {
                let start = tree.span(node).start;
                return Some(Change::Edits(vec![(start..start, format!("(local {name} i32) "))]));
            }
        }
        None
    }

    /// The line of a form after this that declares a local of that name.
    fn declared_later(&self, name: &str) -> Option<u32> {
        let tree = self.tree;
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let declares = matches!(tree.head(node), Some("let" | "catch" | "for" | "each" | "argv"));
            if declares
                && super::all_operands(tree, node).iter().take(2).any(|operand| tree.name(*operand) == Some(name))
            {
                return Some(super::super::Position::of(tree.source, tree.span(node).start).line);
            }
        }
        None
    }

    /// Says that an operand gives no value, or several.
    fn not_one(&self, form: NodeId, node: NodeId, count: i32) -> Box<Fault> {
        let tree = self.tree;
        let head = tree.head(form).unwrap_or("");
        let called = tree.head(node).and_then(|inner| super::call::called(self, inner));
        let words = match called.and_then(|called| called.signature()) {
            Some(signature) if count > 1 => {
                words::value_and_err(&signature, tree.text(node)).perhaps(rewrite::question(tree, node, &signature))
            }
            Some(signature) if signature.results.is_empty() => words::no_result(&signature),
            _ => words::value_count(head, tree.text(node), count),
        };
        Fault::new(tree.span(node), words)
    }
}

/// The type that a number has by itself; `None` where the text is no number.
pub(crate) fn number_type(text: &str) -> Option<Val> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    [Val::I32, Val::I64, Val::F64].into_iter().find(|ty| is_number(*ty, text))
}

/// Whether a text is a number of that type. Unusual ways to write floats are left to the engine's reader.
pub(crate) fn is_number(ty: Val, text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = digits.starts_with(|c: char| c.is_ascii_digit());
    match ty {
        Val::I32 => is_integer(text, 32),
        Val::I64 => is_integer(text, 64),
        _ if digits.starts_with("0x") || digits.starts_with("nan") || digits == "inf" => true,
        _ => number && digits.replace('_', "").parse::<f64>().is_ok(),
    }
}

/// Whether an atom is an integer that fits so many bits, signed or unsigned.
fn is_integer(text: &str, bits: u32) -> bool {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let well_spaced = !digits.starts_with(['_', '+']) && !digits.ends_with('_') && !digits.contains("__");
    let limit = if negative { 1 << (bits - 1) } else { u64::MAX >> (64 - bits) };
    well_spaced && u64::from_str_radix(&digits.replace('_', ""), radix).is_ok_and(|value| value <= limit)
}

/// The one value in which the branches of a form end.
pub(crate) struct Join {
    wanted: bool,
    want: Option<Val>,
    /// The type of the branches so far that leave a value.
    found: Option<Val>,
    truth: bool,
    /// Whether every branch so far goes elsewhere.
    never: bool,
}

impl Join {
    /// Branches without a value.
    pub(crate) fn none() -> Join {
        Join { wanted: false, want: None, found: None, truth: false, never: true }
    }

    /// Branches whose value is taken, as one of the type where that is known.
    pub(crate) fn wanted(want: Option<Val>) -> Join {
        Join { wanted: true, want, found: None, truth: true, never: true }
    }

    /// Branches that leave a value of that type.
    pub(crate) fn of(ty: Val) -> Join {
        Join { found: Some(ty), ..Join::wanted(Some(ty)) }
    }

    /// Of the place that a form stands in.
    pub(crate) fn at(place: Place) -> Join {
        match place {
            Place::Statement => Join::none(),
            Place::Operand(want) => Join::wanted(want),
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The type of the value.
    pub(crate) fn ty(&self) -> Option<Val> {
        self.found
    }

    /// Writes what stands in one branch.
    pub(crate) fn branch(&mut self, emit: &mut Emitter<'_, '_>, at: NodeId, nodes: &mut Nodes) -> Emitted<Flow> {
        let ends = if self.wanted { Ends::Value(self.want.or(self.found)) } else { Ends::Bare };
        let out = emit.sequence(nodes, ends)?;
        self.never &= out.flow == Flow::Never;
        if !self.wanted || out.flow == Flow::Never {
            return Ok(out.flow);
        }
        match out.flow {
            Flow::Net(count) if count != 1 => {
                return Err(Fault::new(emit.tree.span(at), words::branch_value(count)));
            }
            _ => {}
        }
        self.truth &= out.truth;
        match self.found {
            Some(first) if !out.ty.fits(first) => {
                Err(Fault::new(emit.tree.span(at), words::branch_types(first, out.ty)))
            }
            Some(first) if first != Val::Any => Ok(out.flow),
            _ => {
                self.found = Some(out.ty);
                Ok(out.flow)
            }
        }
    }

    /// Ends a block whose type belongs at `type_at`, now that it is known.
    pub(crate) fn close(self, emit: &mut Emitter<'_, '_>, list: NodeId, type_at: usize) -> Out {
        if !self.wanted {
            return Out::NOTHING;
        }
        match self.found {
            Some(ty) => {
                let ty = if ty == Val::Any { self.want.unwrap_or(Val::I32) } else { ty };
                emit.splice(type_at, 0, &format!(" (result {})", ty.name()));
                Out { truth: self.truth, ..Out::one(ty) }
            }
            None if self.never => {
                emit.put(list, " (unreachable)");
                Out::NEVER
            }
            None => Out::NOTHING,
        }
    }
}
