//! The operands of forms: their values, and the conversions between types.

use std::borrow::Cow;

use super::flow::{Context, Flow, Lowered, Want};
use super::forms::call::Callee;
use super::output::Wat;
use super::{CodeResult, LowerResult, Lowering, forms};
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{Fault, form, types as type_wording};
use crate::syntax::literal::{self, fits, is_number, number_type};
use crate::syntax::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::types::{Type, Val};
use crate::{Code, habits};

impl<'s> Lowering<'_, 's> {
    /// Lowers an operand of a form to exactly one value, converted to the expected type.
    pub(crate) fn value(&mut self, form: NodeId, node: NodeId, want: Want) -> CodeResult<'s> {
        let tree = self.tree;
        let out = match tree.node(node).kind {
            NodeKind::Atom => match self.operand(Some(form), node, want)? {
                Some(out) => out.on_line(tree.node(node).starts_line),
                None => return Err(self.invalid_operand(form, node)),
            },
            _ => self.node(node, Context::Operand(want))?,
        };
        self.fit(form, node, out, want)
    }

    /// Checks that code leaves one value, and converts the value to the expected type.
    pub(crate) fn fit(
        &mut self,
        form: NodeId,
        node: NodeId,
        out: Lowered<'s>,
        want: Want,
    ) -> CodeResult<'s> {
        let out = match out.flow {
            Flow::Net(1) => out,
            Flow::Never | Flow::Unknown => {
                let ty = match want {
                    Want::Type(ty) => ty,
                    Want::Val(val) => Type::of_wat(val),
                    Want::Any | Want::Hint(_) => out.ty,
                };
                return Ok(Lowered { ty, ..out });
            }
            // For WAT instructions, `check::walk` reports a more precise fault.
            Flow::Net(_) if self.is_plain(node) => {
                let ty = want.val().map_or(Type::Any, Type::of_wat);
                return Ok(Lowered { ty, ..Lowered::unknown(out.wat) });
            }
            Flow::Net(count) => return Err(self.wrong_value_count(form, node, count)),
        };
        match want {
            Want::Type(ty) => self.convert(form, node, out, ty),
            Want::Val(val) if !out.ty.val().fits(val) && !self.is_plain(node) => {
                Err(self.type_fault(form, node, out.ty, Type::of_wat(val)))
            }
            Want::Val(_) | Want::Any | Want::Hint(_) => Ok(out),
        }
    }

    /// Converts a value to another type if the conversion is lossless: for example, a number to a
    /// string, or an int to a long or a float. Otherwise, returns a fault.
    pub(crate) fn convert(
        &mut self,
        form: NodeId,
        node: NodeId,
        out: Lowered<'s>,
        ty: Type,
    ) -> CodeResult<'s> {
        let found = out.ty;
        if out.flow != Flow::Net(1) {
            return Ok(Lowered { ty, ..out });
        }
        if ty == Type::Str {
            self.check_character(form, node)?;
        }
        let wat = match (found, ty) {
            _ if found == ty || ty == Type::Any || found == Type::Any => out.wat,
            (found, Type::Val) if found.is_shaped() => self.boxed(node, out.wat, found)?,
            (Type::Numbers(elem), Type::Val) => self.list_of_numbers(node, elem, out.wat)?,
            (Type::Null, ty) if ty.is_number() => Wat::number(node, ty.val(), 0),
            (Type::Null, Type::Str | Type::Numbers(_)) => {
                return Err(self.type_fault(form, node, found, ty));
            }
            (Type::Val, Type::I32) => return Ok(out),
            (Type::Val, ty) if ty.is_shaped() => self.unboxed(form, node, out.wat, ty)?,
            // A boolean or an error code keeps its type.
            (found, Type::Int) if found.is_int() => return Ok(out),
            (Type::Int, Type::Bool) => out.wat,
            (Type::Int | Type::Bool, Type::Code) => out.wat,
            (found, Type::Long) if found.is_int() => Wat::list(node, "i64.extend_i32_s", [out.wat]),
            (found, Type::Float) if found.is_int() => {
                self.warn_of_quotient(form, node);
                Wat::list(node, "f64.convert_i32_s", [out.wat])
            }
            (Type::Int | Type::Bool | Type::Long | Type::Float, Type::Str)
                if !self.raw_number(found) =>
            {
                self.number_text(node, out.wat, found, None)?
            }
            // A program that accesses memory itself may also compute with handles.
            (Type::Arr | Type::Map | Type::Numbers(_), Type::Int) if self.words.raw() => out.wat,
            (found, Type::I32) if found.val() == Val::I32 => return Ok(out),
            (Type::I32, ty) if ty.val() == Val::I32 => out.wat,
            // 0 represents a missing value.
            (found, _)
                if found.is_int()
                    && ty.val() == Val::I32
                    && (self.words.raw() || out.wat.constant() == Some(0)) =>
            {
                out.wat
            }
            _ => return Err(self.type_fault(form, node, found, ty)),
        };
        Ok(Lowered { wat, ty, ..out })
    }

    /// Returns true if a number may be an address. Such a number is not converted to a string.
    fn raw_number(&self, found: Type) -> bool {
        self.words.raw() && found.is_int()
    }

    /// Returns code that converts a number to a string. An integer is formatted in decimal, and a
    /// float with `digits` digits after the decimal point or, if `digits` is `None`, in its
    /// shortest form.
    pub(crate) fn number_text(
        &mut self,
        from: NodeId,
        value: Wat<'s>,
        ty: Type,
        digits: Option<u32>,
    ) -> LowerResult<Wat<'s>> {
        match ty {
            Type::Long => self.host_call(from, "str.from_long", [value]),
            Type::Float => {
                let digits = digits.map_or(i64::from(i32::MIN), i64::from);
                self.host_call(from, "str.from_float", [value, Wat::i32(from, digits)])
            }
            _ => self.host_call(from, "str.from_int", [value]),
        }
    }

    /// Lowers a condition. A condition is an int, and 0 means false.
    pub(crate) fn condition(&mut self, form: NodeId, node: NodeId) -> CodeResult<'s> {
        let out = self.value(form, node, Want::Any)?;
        if matches!(out.ty, Type::Val | Type::Null) && out.flow == Flow::Net(1) {
            return self.convert(form, node, out, Type::Bool);
        }
        let is_wat = self.tree.head(form) == Some("if") && !self.is_choice(form);
        if out.ty.val().fits(Val::I32) && (is_wat || out.ty.is_number() || out.ty.is_vague()) {
            return Ok(out);
        }
        let text = self.tree.text(node);
        self.fault(node, form::condition_type(text, out.ty))
    }

    /// Lowers a name, a number, an error code, a boolean or a quoted character. Returns `None` for
    /// any other atom.
    pub(crate) fn bare(&mut self, node: NodeId, want: Want) -> LowerResult<Option<Lowered<'s>>> {
        self.operand(None, node, want)
    }

    /// Lowers an atom, like [`bare`](Lowering::bare). If the atom is an operand of a form, `form`
    /// is that form.
    fn operand(
        &mut self,
        form: Option<NodeId>,
        node: NodeId,
        want: Want,
    ) -> LowerResult<Option<Lowered<'s>>> {
        let text = self.tree.text(node);
        if text.starts_with('$') {
            let Some(found) = self.resolve(text) else { return self.path_value(node, text) };
            return Ok(Some(Lowered::one(self.read_variable(node, &found, form), found.ty)));
        }
        // If an error code is expected, the name of a code on another system denotes its nearest
        // equivalent.
        let code = match want {
            Want::Type(Type::Code) => Code::from_name(text).or_else(|| Code::meant(text)),
            _ => Code::from_name(text),
        };
        let constant = match text {
            _ if let Some(code) = code => Some((i64::from(code.number()), Type::Code)),
            _ if let Some(c) = literal::character(text) => Some((i64::from(c), Type::Int)),
            "true" => Some((1, Type::Bool)),
            "false" => Some((0, Type::Bool)),
            "null" | "nil" => Some((0, Type::Null)),
            _ => None,
        };
        if let Some((number, ty)) = constant {
            return Ok(Some(Lowered::one(Wat::i32(node, number), ty)));
        }
        let Some(own) = number_type(text) else { return Ok(None) };
        if want == Want::Type(Type::Val) && own == Val::F64 {
            let digits = Wat::literal(node, text.as_bytes());
            return Ok(Some(Lowered::one(self.value_call(node, "decimal", [digits])?, Type::Val)));
        }
        let own = Type::of_wat(own);
        let own = if own == Type::I32 { Type::Int } else { own };
        // WAT's integers have no sign.
        let is_wat = matches!(want, Want::Val(_)) || want.number() == Some(Type::I32);
        let ty = match want.number() {
            Some(Type::I32) if is_number(Val::I32, text) => Type::Int,
            Some(Type::Bool | Type::Code | Type::I32) | None => own,
            Some(ty) => ty,
        };
        let val = match want {
            Want::Val(val @ (Val::I32 | Val::I64 | Val::F32 | Val::F64)) => val,
            _ => ty.val(),
        };
        let is_valid = if is_wat { is_number(val, text) } else { fits(val, text) };
        if !is_valid {
            return self.fault(node, form::number_type(text, val, own.val()));
        }
        let ty = match val {
            Val::I32 => Type::Int,
            val => Type::of_wat(val),
        };
        Ok(Some(Lowered::one(Wat::list(node, [val.name(), ".const ", text].concat(), []), ty)))
    }

    /// Returns true if a node is a folded WAT instruction other than `if`.
    fn is_plain(&self, node: NodeId) -> bool {
        self.tree.head(node).is_some_and(|head| {
            forms::form(head).is_none_or(|_| !self.is_form(node, head))
                && self.callee(head).is_none()
                && self.host.program(head).is_none()
                && head != "if"
        })
    }

    /// Creates the fault for a value whose type the form does not accept.
    pub(crate) fn type_fault(
        &self,
        form: NodeId,
        node: NodeId,
        found: Type,
        want: Type,
    ) -> Box<Fault> {
        let tree = self.tree;
        let head = tree.head(form).unwrap_or("");
        let text = tree.text(node);
        let has = |name: &str| self.host.get(name).is_some();
        let change = match (found, want) {
            (Type::Str, Type::Int) if tree.node(node).kind == NodeKind::Text => {
                let digits = text.trim_matches('"').trim();
                (number_type(digits) == Some(Val::I32)).then(|| Change::Replace(digits.to_owned()))
            }
            (Type::Str, Type::Code) if tree.node(node).kind == NodeKind::Text => {
                let code = text.trim_matches('"');
                Code::from_name(code).map(|_| Change::Replace(code.to_owned()))
            }
            (Type::Str, Type::Int) if has("str.to_int") => Some(Change::wrap("(int ", ")")),
            (Type::Str, Type::Long) if has("str.to_int") => Some(Change::wrap("(long ", ")")),
            (Type::Str, Type::Float) if has("str.to_float") => Some(Change::wrap("(float ", ")")),
            (Type::Map, Type::Arr) if has("map.keys") => Some(Change::wrap("(map.keys ", ")")),
            _ => None,
        };
        let declared = tree
            .name(node)
            .and_then(|name| self.func.scope.get(name))
            .map(|variable| tree.line(variable.node));
        let message = type_wording::operand(head, text, found, want, declared).maybe_safe(change);
        Fault::at(tree, node, message)
    }

    /// Builds the fault for an atom that is not a value.
    fn invalid_operand(&mut self, form: NodeId, node: NodeId) -> Box<Fault> {
        let tree = self.tree;
        let text = tree.text(node);
        let head = tree.head(form).unwrap_or("");
        let declared_later = self.declared_later(text);
        let message = match text.strip_prefix('$') {
            Some(plain) if self.host.get(plain).is_some() => {
                form::function_as_value(plain).maybe_safe(self.bare_call(plain))
            }
            Some(_) if self.program.defined.contains_key(text) => form::function_as_value(text),
            Some(_) => {
                let known = self.known_variables();
                let message = form::unknown_local(text, known, declared_later);
                let typed = self.remove_colon(text);
                message.maybe_safe(typed.or_else(|| self.declare_set_local(text)))
            }
            None => match self.host.get(text.trim_end_matches('?')) {
                Some(_) => form::function_as_value(text).maybe_safe(self.bare_call(text)),
                None if is_code_name(text) => form::unknown_code(text, Code::meant(text)),
                None => {
                    let is_local = self.func.scope.get(&format!("${text}")).is_some();
                    let change = habits::fix_word(tree, form, node);
                    form::not_a_value(head, forms::usage(head), text, is_local).maybe_safe(change)
                }
            },
        };
        Fault::at(tree, node, message)
    }

    /// Builds the fault for an operand that leaves no value or several values.
    fn wrong_value_count(&self, form: NodeId, node: NodeId, count: i32) -> Box<Fault> {
        let tree = self.tree;
        let head = tree.head(form).unwrap_or("");
        let callee = match tree.head(node) {
            // WAT's `call` also leaves the error code.
            Some("call") => forms::all_operands(tree, node).first().copied(),
            _ => None,
        };
        let plain = callee.and_then(|callee| tree.name(callee)?.strip_prefix('$'));
        if let Some(signature) = plain.and_then(|plain| self.host.get(plain)).filter(|_| count > 1)
        {
            let change = habits::rewrite::call_by_name(tree, node, signature);
            let message = form::value_and_err(signature).maybe_safe(change);
            return Fault::at(tree, node, message);
        }
        let called = tree.head(node).and_then(|inner| self.callee(inner));
        let message = match called {
            Some(Callee::Host(signature, _)) if signature.results.is_empty() => {
                form::missing_result(&signature)
            }
            Some(Callee::Fn(at, name)) if count == 0 => {
                let body = self.program.funcs.get(at).map(|func| func.body);
                let last = body.unwrap_or(Nodes::NONE).iter(tree).last();
                let last = last.map(|last| (tree.text(last), self.tree.line(last)));
                form::no_result(head, tree.text(node), name, last)
            }
            _ => form::value_count(head, tree.text(node), count),
        };
        Fault::at(tree, node, message)
    }
}

/// Returns the type of branches of different types: a value, if each has an equal value.
fn mixed(one: Type, other: Type) -> Option<Type> {
    (one.is_shaped() && other.is_shaped()).then_some(Type::Val)
}

/// Returns true if `list` is `(head nodes…)` and the code consists of these nodes, printed
/// unchanged.
fn is_arm(tree: &Tree<'_>, list: NodeId, head: &str, wat: &Wat<'_>) -> bool {
    let mut inside = tree.children(list);
    tree.head(list) == Some(head) && inside.next(tree).is_some() && wat.is_source(inside)
}

/// Returns true if a word looks like the name of an error code.
fn is_code_name(text: &str) -> bool {
    let rest = text.strip_prefix('E').unwrap_or("");
    let is_upper = |text: &str| text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    rest.len() > 1 && is_upper(rest) || text.contains('_') && Code::meant(text).is_some()
}

/// The branches of a form, with the common type of their values.
pub(crate) struct Join<'s> {
    /// The value expected from each branch, or `None` if the branches leave no value.
    want: Option<Want>,
    /// The branches, each with its source node, its head (such as `then`, or empty) and its code.
    branches: Vec<(NodeId, &'s str, Lowered<'s>)>,
    /// The common type so far, and the branch that determined it.
    found: Option<(Type, NodeId)>,
}

/// The branches of a form, converted to their common type.
pub(crate) struct JoinedArms<'s> {
    pub(crate) arms: Vec<Wat<'s>>,
    pub(crate) ty: Type,
    /// `Never` if control leaves every branch before its end, although a value is expected.
    pub(crate) flow: Flow,
}

impl<'s> JoinedArms<'s> {
    /// Returns `(result TYPE)` if the branches leave a value.
    pub(crate) fn result(&self, from: NodeId) -> Option<Wat<'s>> {
        let name = match self.ty.val() {
            Val::Any => "i32",
            val => val.name(),
        };
        (self.flow == Flow::Net(1)).then(|| Wat::list(from, format!("result {name}"), []))
    }

    /// Returns `(head before… arms…)`, with the type of the result before `before`.
    pub(crate) fn into_list(
        self,
        from: NodeId,
        head: impl Into<Cow<'s, str>>,
        before: Option<Wat<'s>>,
    ) -> Lowered<'s> {
        let (flow, ty) = (self.flow, self.ty);
        let mut pieces: Vec<Wat<'s>> = self.result(from).into_iter().chain(before).collect();
        pieces.extend(self.arms);
        Lowered { flow, ty, ..Lowered::none(Wat::list(from, head, pieces)) }.ending(from)
    }
}

impl<'s> Join<'s> {
    /// Creates a join for the branches of a form in this context.
    pub(crate) fn at(context: Context) -> Join<'s> {
        let want = match context {
            Context::Statement | Context::Stack => None,
            Context::Operand(want) => Some(want),
        };
        Join { want, branches: Vec::new(), found: None }
    }

    /// Creates a join for branches that leave a value of this type, which is declared in WAT.
    pub(crate) fn declared(ty: Type) -> Join<'s> {
        let want = Context::Operand(Want::Val(ty.val()));
        Join { found: Some((ty, NodeId(0))), ..Join::at(want) }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.want.is_some()
    }

    /// Returns the common type of the branches so far.
    pub(crate) fn ty(&self) -> Option<Type> {
        self.found.map(|(ty, _)| ty)
    }

    /// Lowers the nodes of a branch into the list `(head nodes…)`, or into a sequence if the head
    /// is empty. Returns the branch's flow.
    pub(crate) fn branch(
        &mut self,
        lowering: &mut Lowering<'_, 's>,
        at: NodeId,
        head: &'s str,
        nodes: &mut Nodes,
    ) -> LowerResult<Flow> {
        let context = self.want.map_or(Context::Statement, Context::Operand);
        let out = lowering.sequence(nodes, context)?;
        self.add(lowering, at, head, out)
    }

    /// Adds a branch that is already lowered. Returns the branch's flow.
    pub(crate) fn add(
        &mut self,
        lowering: &mut Lowering<'_, 's>,
        at: NodeId,
        head: &'s str,
        out: Lowered<'s>,
    ) -> LowerResult<Flow> {
        let flow = out.flow;
        if let (Some(want), Flow::Net(count)) = (self.want, flow) {
            if count != 1 {
                return lowering.fault(at, form::branch_value(count));
            }
            let (ty, first) = match self.found {
                None => (Some(out.ty), at),
                Some((known, first)) => {
                    (known.join(out.ty).or_else(|| mixed(known, out.ty)), first)
                }
            };
            let Some(ty) =
                ty.filter(|_| !matches!(want, Want::Val(val) if !out.ty.val().fits(val)))
            else {
                let known = self.found.map_or(out.ty, |(ty, _)| ty);
                let line = lowering.tree.line(first);
                return lowering.fault(at, type_wording::branches(known, out.ty, line));
            };
            self.found = Some((ty, first));
        }
        self.branches.push((at, head, out));
        Ok(flow)
    }

    /// Converts the value of each branch to the common type.
    pub(crate) fn finish(
        self,
        lowering: &mut Lowering<'_, 's>,
        form: NodeId,
    ) -> LowerResult<JoinedArms<'s>> {
        let ty = self.ty();
        let never = self.branches.iter().all(|(.., out)| out.flow == Flow::Never);
        let mut arms = Vec::with_capacity(self.branches.len());
        for (at, head, out) in self.branches {
            let line = lowering.tree.node(at).starts_line;
            let out = match ty.filter(|_| self.want.is_some()) {
                Some(ty) if out.ty != ty => lowering.convert(form, at, out, ty)?,
                _ => out,
            };
            let arm = match head {
                "" => out.wat,
                head if is_arm(lowering.tree, at, head, &out.wat) => Wat::unchanged(at),
                head => Wat::list(at, head, [out.wat]),
            };
            arms.push(arm.on_line(line));
        }
        let (ty, flow) = match (self.want, ty) {
            (None, _) => (Type::Any, Flow::Net(0)),
            (Some(_), _) if never => (Type::Any, Flow::Never),
            (Some(_), Some(ty)) => (ty, Flow::Net(1)),
            (Some(_), None) => (Type::Any, Flow::Net(0)),
        };
        Ok(JoinedArms { arms, ty, flow })
    }
}
