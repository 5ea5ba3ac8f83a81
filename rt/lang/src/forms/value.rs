//! The operands of forms.

use crate::Code;
use crate::emit::flow::{Context, EmittedCode, Flow};
use crate::emit::instruction::Tail;
use crate::emit::{EmitResult, Emitter};
use crate::fix::Change;
use crate::messages::{Fault, form};
use crate::ops::{self, Val};
use crate::tree::{NodeId, NodeKind, Nodes};
use crate::{idioms, nearest, rewrite};

impl Emitter<'_, '_> {
    /// Emits the operand of a form: exactly one value, of the type `want` if given. Returns its
    /// type.
    pub(crate) fn value(
        &mut self,
        form: NodeId,
        node: NodeId,
        want: Option<Val>,
    ) -> EmitResult<EmittedCode> {
        let tree = self.tree;
        let out = match tree.node(node).kind {
            NodeKind::Atom => match self.bare(node, want)? {
                Some(out) => out,
                None => return Err(self.invalid_operand(form, node)),
            },
            _ => self.node(node, Context::Operand(want))?,
        };
        let ty = match out.flow {
            Flow::Net(1) => out.ty,
            Flow::Never | Flow::Unknown => want.unwrap_or(out.ty),
            // For WAT's own instructions, the walk over the module reports a more precise fault.
            Flow::Net(_) if self.is_plain(node) => {
                return Ok(EmittedCode { ty: want.unwrap_or(Val::Any), ..EmittedCode::UNKNOWN });
            }
            Flow::Net(count) => return Err(self.wrong_value_count(form, node, count)),
        };
        if let Some(want) = want.filter(|want| !ty.fits(*want)) {
            let head = tree.head(form).unwrap_or("");
            let message =
                form::operand_type(head, tree.text(node), want, ty, ops::conversion(ty, want));
            return Err(Fault::new(tree.span(node), message));
        }
        Ok(EmittedCode { ty, ..out })
    }

    /// Emits a condition: an i32 that is 0 for false.
    pub(crate) fn condition(&mut self, form: NodeId, node: NodeId) -> EmitResult<EmittedCode> {
        let out = self.value(form, node, None)?;
        if out.ty.fits(Val::I32) {
            return Ok(out);
        }
        let tree = self.tree;
        Err(Fault::new(tree.span(node), form::condition_type(tree.text(node), out.ty)))
    }

    /// Emits the value of a name, a number or an error code. Returns `None` for any other atom.
    pub(crate) fn bare(
        &mut self,
        node: NodeId,
        want: Option<Val>,
    ) -> EmitResult<Option<EmittedCode>> {
        let text = self.tree.text(node);
        if text.starts_with('$') {
            if let Some(ty) = self.local(text) {
                self.put(node, "(local.get ");
                self.out.push_str(text);
                self.out.push(')');
                return Ok(Some(EmittedCode::one(ty)));
            }
            if let Some(at) = self.types.globals.by_name.get(text) {
                let ty = self
                    .types
                    .globals
                    .list
                    .get(*at)
                    .copied()
                    .flatten()
                    .map_or(Val::Any, |global| global.ty);
                self.put(node, "(global.get ");
                self.out.push_str(text);
                self.out.push(')');
                return Ok(Some(EmittedCode::one(ty)));
            }
            return Ok(None);
        }
        if let Some(code) = Code::from_name(text) {
            self.put(node, &format!("(i32.const {})", code.number()));
            return Ok(Some(EmittedCode::one(Val::I32)));
        }
        let Some(own) = number_type(text) else { return Ok(None) };
        let ty = want.filter(|want| *want != Val::Any).unwrap_or(own);
        if !is_number(ty, text) {
            return Err(Fault::new(self.tree.span(node), form::number_type(text, ty, own)));
        }
        self.put(node, "(");
        self.out.push_str(ty.name());
        self.out.push_str(".const ");
        self.out.push_str(text);
        self.out.push(')');
        Ok(Some(EmittedCode::one(ty)))
    }

    /// Returns true if a node is an instruction of WAT.
    fn is_plain(&self, node: NodeId) -> bool {
        let head = self.tree.head(node);
        head.is_some_and(|head| {
            super::form(head).is_none() && super::call::called(self, head).is_none() && head != "if"
        })
    }

    /// Builds the fault of an atom that is not a value.
    fn invalid_operand(&self, form: NodeId, node: NodeId) -> Box<Fault> {
        let tree = self.tree;
        let text = tree.text(node);
        let head = tree.head(form).unwrap_or("");
        let locals = self.locals.by_name.keys().copied();
        let declared_later = || self.declared_later(text);
        let message = match text.strip_prefix('$') {
            Some(plain) if self.host.get(plain).is_some() => {
                form::function_as_value(plain).maybe_safe(self.bare_call(plain))
            }
            Some(_) if self.program.defined.contains_key(text) => form::function_as_value(text),
            Some(_) => match self.declare_set_local(text) {
                Some(change) => form::unknown_local(text, locals, declared_later()).safe(change),
                None => form::unknown_local(text, locals, declared_later()),
            },
            None => match self.host.get(text.trim_end_matches('?')) {
                Some(_) => form::function_as_value(text).maybe_safe(self.bare_call(text)),
                None => {
                    let is_local = self.local(&format!("${text}")).is_some();
                    let change = idioms::fix_word(tree, form, node);
                    form::not_a_value(head, super::usage(head), text, is_local).maybe_safe(change)
                }
            },
        };
        Fault::new(tree.span(node), message)
    }

    /// Returns the call of a function without parameters.
    fn bare_call(&self, name: &str) -> Option<Change> {
        let known = self.host.get(name.trim_end_matches('?'))?;
        known.params.is_empty().then(|| Change::Replace(format!("({name})")))
    }

    /// Returns the declaration of a local that is set with `local.set` but not declared.
    fn declare_set_local(&self, name: &str) -> Option<Change> {
        let tree = self.tree;
        if nearest::certain(name, self.locals.by_name.keys().copied()).is_some() {
            return None;
        }
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let sets = matches!(tree.head(node), Some("local.set" | "local.tee"));
            if sets
                && rewrite::items(tree, node)
                    .get(1)
                    .is_some_and(|target| tree.name(*target) == Some(name))
            {
                let start = tree.span(node).start;
                return Some(Change::Edits(vec![(start..start, format!("(local {name} i32) "))]));
            }
        }
        None
    }

    /// Returns the line of a form that declares a local of this name.
    fn declared_later(&self, name: &str) -> Option<u32> {
        let tree = self.tree;
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let declares =
                matches!(tree.head(node), Some("let" | "catch" | "for" | "each" | "argv"));
            if declares
                && super::all_operands(tree, node)
                    .iter()
                    .take(2)
                    .any(|operand| tree.name(*operand) == Some(name))
            {
                return Some(crate::Position::of(tree.source, tree.span(node).start).line);
            }
        }
        None
    }

    /// Builds the fault of an operand that leaves no value, or several.
    fn wrong_value_count(&self, form: NodeId, node: NodeId, count: i32) -> Box<Fault> {
        let tree = self.tree;
        let head = tree.head(form).unwrap_or("");
        let called = tree.head(node).and_then(|inner| super::call::called(self, inner));
        let message = match called.and_then(|called| called.signature()) {
            Some(signature) if count > 1 => form::value_and_err(&signature, tree.text(node))
                .maybe_safe(rewrite::add_question_mark(tree, node, &signature)),
            Some(signature) if signature.results.is_empty() => form::missing_result(&signature),
            _ => form::value_count(head, tree.text(node), count),
        };
        Fault::new(tree.span(node), message)
    }
}

/// Returns the type of a number without context, or `None` if the text is not a number.
pub(crate) fn number_type(text: &str) -> Option<Val> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    [Val::I32, Val::I64, Val::F64].into_iter().find(|ty| is_number(*ty, text))
}

/// Returns true if a text is a number of this type. Unusual notations of floats are left to the WAT
/// parser.
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

/// Returns true if an atom is a signed or unsigned integer that fits in this many bits.
fn is_integer(text: &str, bits: u32) -> bool {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let well_spaced =
        !digits.starts_with(['_', '+']) && !digits.ends_with('_') && !digits.contains("__");
    let limit = if negative { 1 << (bits - 1) } else { u64::MAX >> (64 - bits) };
    well_spaced
        && u64::from_str_radix(&digits.replace('_', ""), radix).is_ok_and(|value| value <= limit)
}

/// The common value of a form's branches.
pub(crate) struct Join {
    wanted: bool,
    want: Option<Val>,
    /// The type of the first branches that leave a value, if there are any so far.
    found: Option<Val>,
    is_bool: bool,
    /// If true, control leaves every branch so far before its end.
    never: bool,
}

impl Join {
    /// Creates the join of branches that leave no value.
    pub(crate) fn none() -> Join {
        Join { wanted: false, want: None, found: None, is_bool: false, never: true }
    }

    /// Creates the join of branches that leave a value. `want` is its type if that is known.
    pub(crate) fn wanted(want: Option<Val>) -> Join {
        Join { wanted: true, want, found: None, is_bool: true, never: true }
    }

    /// Creates the join of branches that leave a value of this type.
    pub(crate) fn of(ty: Val) -> Join {
        Join { found: Some(ty), ..Join::wanted(Some(ty)) }
    }

    /// Creates the join of a form in this context.
    pub(crate) fn at(context: Context) -> Join {
        match context {
            Context::Statement => Join::none(),
            Context::Operand(want) => Join::wanted(want),
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Returns the type of the value.
    pub(crate) fn ty(&self) -> Option<Val> {
        self.found
    }

    /// Emits the nodes of a branch.
    pub(crate) fn branch(
        &mut self,
        emit: &mut Emitter<'_, '_>,
        at: NodeId,
        nodes: &mut Nodes,
    ) -> EmitResult<Flow> {
        let tail =
            if self.wanted { Tail::Value(self.want.or(self.found)) } else { Tail::Discarded };
        let out = emit.sequence(nodes, tail)?;
        self.never &= out.flow == Flow::Never;
        if !self.wanted || out.flow == Flow::Never {
            return Ok(out.flow);
        }
        match out.flow {
            Flow::Net(count) if count != 1 => {
                return Err(Fault::new(emit.tree.span(at), form::branch_value(count)));
            }
            _ => {}
        }
        self.is_bool &= out.is_bool;
        match self.found {
            Some(first) if !out.ty.fits(first) => {
                Err(Fault::new(emit.tree.span(at), form::branch_types(first, out.ty)))
            }
            Some(first) if first != Val::Any => Ok(out.flow),
            _ => {
                self.found = Some(out.ty);
                Ok(out.flow)
            }
        }
    }

    /// Ends a block. Its type is now known, and is inserted at `type_at`.
    pub(crate) fn close(
        self,
        emit: &mut Emitter<'_, '_>,
        list: NodeId,
        type_at: usize,
    ) -> EmittedCode {
        if !self.wanted {
            return EmittedCode::NOTHING;
        }
        match self.found {
            Some(ty) => {
                let ty = if ty == Val::Any { self.want.unwrap_or(Val::I32) } else { ty };
                emit.splice(type_at, 0, &format!(" (result {})", ty.name()));
                EmittedCode { is_bool: self.is_bool, ..EmittedCode::one(ty) }
            }
            None if self.never => {
                emit.put(list, " (unreachable)");
                EmittedCode::NEVER
            }
            None => EmittedCode::NOTHING,
        }
    }
}
