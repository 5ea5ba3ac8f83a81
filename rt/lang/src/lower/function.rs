//! Functions: the program itself, WAT functions, and functions declared with `fn`.

use std::borrow::Cow;

use super::facts::{Decided, LocalType, Slot};
use super::flow::{Context, Flow, Lowered, Want};
use super::leaves::Leaves;
use super::output::Wat;
use super::{CodeResult, LowerResult, LoweredFunc, Lowering};
use crate::diagnose::wording::{self, types as type_wording};
use crate::lower::program::Func;
use crate::lower::variables::{Declared, Scope, Variable};
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::{Type, Val};

/// Maximum number of functions whose lowering is suspended at the same time. Lowering a function is
/// suspended while a function that it calls is lowered.
const MAX_WAITING: usize = 48;

/// Initial capacity of a function's scope for variables declared by forms.
const SPARE_VARIABLES: usize = 4;

/// The kind of a function. It determines how the function returns an error code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FuncKind {
    /// The program.
    #[default]
    Run,
    /// A WAT function. If the flag is true, its result may be an error code.
    Wat(bool),
    /// A function declared with `fn`.
    Fn,
}

/// The labels of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// The number in the name of the label that exits the loop.
    pub(crate) leave: usize,
    /// The number in the name of the label that continues with the next iteration.
    pub(crate) next: usize,
}

/// A block that handles failures. A failure inside the block exits the block instead of ending the
/// current function.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    pub(crate) label: String,
    /// If true, code inside the block may fail.
    pub(crate) is_used: bool,
}

/// The state of the function that is being lowered.
#[derive(Default)]
pub(crate) struct FuncState<'s> {
    /// The index of the function in the program.
    pub(crate) at: usize,
    pub(crate) kind: FuncKind,
    pub(crate) scope: Scope<'s>,
    /// The hidden variables that generated code uses.
    pub(crate) hidden: Vec<(String, Val)>,
    /// The number of names generated so far.
    pub(crate) names: usize,
    /// If true, generated code uses the hidden variable for error codes.
    pub(crate) uses_code: bool,
    /// The enclosing loops that forms create, innermost last.
    pub(crate) loops: Vec<Loop>,
    /// The enclosing failure handlers, innermost last.
    pub(crate) handlers: Vec<Handler>,
    /// The functions that stand in the enclosing forms, innermost last: the label that `return`
    /// branches to, and true if it does.
    pub(crate) inline: Vec<(String, bool)>,
    /// The index of the first variable that belongs to the innermost of these functions.
    pub(crate) own: usize,
    /// The number of open flat blocks.
    pub(crate) flat: usize,
}

/// The progress of a function's lowering.
#[derive(Default)]
pub(super) struct Progress<'s> {
    begun: bool,
    /// If true, lowered code refers to the function.
    referenced: bool,
    /// The lowered function.
    pub(super) done: Option<LoweredFunc<'s>>,
}

impl<'s> Lowering<'_, 's> {
    /// Lowers a function unless it has already been lowered or its lowering is suspended.
    pub(super) fn lower_func(&mut self, at: usize) -> LowerResult<()> {
        let program = self.program;
        let Some(func) = program.funcs.get(at).filter(|_| !self.is_begun(at)) else {
            return Ok(());
        };
        let last = program.funcs.len().saturating_sub(1);
        let kind = if at == last {
            FuncKind::Run
        } else if func.fn_params.is_some() {
            FuncKind::Fn
        } else {
            let results = self.types.funcs.get(at).and_then(|ty| ty.as_ref());
            FuncKind::Wat(results.is_none_or(|ty| ty.results == [Val::I32]))
        };
        let params = func.fn_params.as_ref().map_or(0, Vec::len);
        let scope = Scope::with_capacity(params + func.locals.len() + SPARE_VARIABLES);
        let state = FuncState { at, kind, scope, ..FuncState::default() };
        self.outer.push(std::mem::replace(&mut self.func, state));
        if let Some(progress) = self.progress.get_mut(at) {
            progress.begun = true;
        }
        self.declare_params(at, func)?;
        let lowered = match kind {
            FuncKind::Run | FuncKind::Wat(_) => self.wat_func(at, func)?,
            FuncKind::Fn => self.fn_func(at, func)?,
        };
        if let Some(progress) = self.progress.get_mut(at) {
            progress.done = Some(lowered);
        }
        let state = std::mem::replace(&mut self.func, self.outer.pop().unwrap_or_default());
        if kind == FuncKind::Run {
            self.main = state.scope;
        }
        Ok(())
    }

    fn is_begun(&self, at: usize) -> bool {
        self.progress.get(at).is_none_or(|func| func.begun)
    }

    /// Returns true if a function is lowered completely.
    pub(crate) fn is_done(&self, at: usize) -> bool {
        self.progress.get(at).is_some_and(|func| func.done.is_some())
    }

    fn is_referenced(&self, at: usize) -> bool {
        self.progress.get(at).is_some_and(|func| func.referenced)
    }

    /// Returns true if a function must still be lowered. WAT functions are always lowered. A
    /// function declared with `fn` is lowered only if it is used, because the calls to it determine
    /// the types of its parameters.
    pub(super) fn is_needed(&self, at: usize) -> bool {
        let is_wat = self.program.funcs.get(at).is_some_and(|func| func.fn_params.is_none());
        !self.is_begun(at) && (is_wat || self.is_referenced(at))
    }

    /// Records that code refers to a function.
    pub(crate) fn record_use(&mut self, at: usize) {
        if let Some(func) = self.progress.get_mut(at) {
            func.referenced = true;
        }
    }

    /// Warns about functions declared with `fn` that are never used.
    pub(super) fn warn_of_unused(&mut self) {
        let program = self.program;
        let last = program.funcs.len().saturating_sub(1);
        for (at, func) in program.funcs.iter().enumerate().take(last) {
            if let (false, Some(node), Some(_)) =
                (self.is_referenced(at), func.node, &func.fn_params)
            {
                self.warn(node, type_wording::unused_function(func.name.unwrap_or("")));
            }
        }
    }

    /// Adds the function's parameters and its WAT locals to the scope.
    fn declare_params(&mut self, at: usize, func: &Func<'s>) -> LowerResult<()> {
        for (nth, param) in func.fn_params.iter().flatten().enumerate() {
            let known = self.facts.ty(at, Slot::Param(nth));
            let default = if self.is_referenced(at) { Type::Int } else { Type::I32 };
            let ty = param.declared.or(known.map(|(ty, _)| ty)).unwrap_or(default).stored();
            let text = format!("${}", param.name.trim_start_matches('$')).into();
            let name = Some(param.name);
            let wat = ty.val().name();
            let variable = Variable::new(name, text, wat, ty, param.node, Declared::Param);
            self.func.scope.add(self.tree, variable)?;
        }
        for (nth, local) in func.locals.iter().enumerate() {
            let val = Val::from_wat(local.ty);
            let ty = match self.facts.local((at, self.func.scope.len())) {
                Some(LocalType::One(ty)) => ty,
                _ => Type::of_wat(val.unwrap_or(Val::Any)),
            };
            let shared = self.facts.is_shared(local.node);
            let text = match local.name {
                Some(name) if shared => self.global_name(name, nth).into(),
                Some(name) => name.into(),
                None => "".into(),
            };
            let declared = if local.param { Declared::Param } else { Declared::Local };
            let mut variable = Variable::new(local.name, text, local.ty, ty, local.node, declared);
            variable.shared = shared;
            self.func.scope.add(self.tree, variable)?;
        }
        Ok(())
    }

    /// Lowers the program or a WAT function.
    fn wat_func(&mut self, at: usize, func: &Func<'s>) -> LowerResult<LoweredFunc<'s>> {
        let node = func.node.unwrap_or(NodeId(0));
        let run = self.func.kind == FuncKind::Run;
        let export = if run { " (export \"run\") (result i32)" } else { "" };
        let head = match func.name.or(run.then_some("$run")) {
            Some(name) => ["func ", name, export].concat(),
            None => ["func", export].concat(),
        };
        let mut header = Vec::new();
        for part in &func.header {
            header.push(self.raw(*part)?.wat);
        }
        let ty = self.types.funcs.get(at).and_then(Option::as_ref);
        let context = match ty.map(|ty| ty.results.as_slice()) {
            Some([one]) if !run => Context::Operand(Want::Val(*one)),
            _ => Context::Statement,
        };
        let mut body = func.body;
        let lowered = self.sequence(&mut body, context)?;
        if run {
            self.check_end(func.body, &lowered)?;
        }
        let flow = lowered.flow;
        let variables = self.variables();
        Ok(LoweredFunc { node, head, header, variables, pieces: vec![lowered.wat], flow })
    }

    /// Lowers a function declared with `fn`.
    fn fn_func(&mut self, at: usize, func: &Func<'s>) -> LowerResult<LoweredFunc<'s>> {
        let node = func.node.unwrap_or(NodeId(0));
        let last = func.body.iter(self.tree).last();
        let leaves = last.map_or(Leaves::Nothing, |last| self.leaves(last));
        let mut body = func.body;
        let mut pieces = Vec::new();
        let flow = match leaves {
            Leaves::Value => {
                let want = self.facts.result(at).map_or(Want::Any, |(ty, _)| Want::Hint(ty));
                let lowered = self.sequence(&mut body, Context::Operand(want))?;
                let flow = lowered.flow;
                if flow == Flow::Never {
                    pieces.push(lowered.wat);
                } else {
                    let last = last.unwrap_or(node);
                    self.join_result(last, lowered.ty)?;
                    let joined = self.facts.result(at).map_or(lowered.ty, |(ty, _)| ty);
                    pieces.push(self.convert(node, last, lowered, joined)?.wat);
                }
                flow
            }
            Leaves::Nothing | Leaves::Never => {
                let lowered = self.sequence(&mut body, Context::Statement)?;
                pieces.push(lowered.wat);
                match (leaves, self.facts.result(at)) {
                    (Leaves::Nothing, Some((ty, first))) if lowered.flow != Flow::Never => {
                        let line = self.tree.line(first);
                        let name = func.name.unwrap_or("");
                        return self.fault(
                            last.unwrap_or(node),
                            type_wording::missing_last_value(name, ty, line),
                        );
                    }
                    (Leaves::Never, _) => {
                        pieces.push(Wat::list(node, "unreachable", []).on_line(true));
                        Flow::Never
                    }
                    _ => lowered.flow,
                }
            }
        };
        let is_fallible = self.facts.is_fallible(at);
        if is_fallible && flow != Flow::Never {
            pieces.push(Wat::i32(node, 0).on_line(true));
        }
        let mut head = format!("func {}", func.name.unwrap_or(""));
        for variable in self.func.scope.iter().filter(|v| v.declared == Declared::Param) {
            head.push_str(&format!(" (param {} {})", variable.text, variable.wat));
        }
        let result = self.facts.result(at).map(|(ty, _)| ty.stored().val());
        let results = result.into_iter().chain(is_fallible.then_some(Val::I32));
        let results: Vec<&str> = results.map(wat_name).collect();
        if !results.is_empty() {
            head.push_str(&format!(" (result {})", results.join(" ")));
        }
        let variables = self.variables();
        Ok(LoweredFunc { node, head, header: Vec::new(), variables, pieces, flow })
    }

    /// Returns the variables that the function declares, each with its type.
    fn variables(&mut self) -> Vec<(Cow<'s, str>, &'s str)> {
        let code = self.func.uses_code.then(|| [self.prefix(), "err"].concat());
        let hidden = std::mem::take(&mut self.func.hidden);
        let own = self.func.scope.iter().filter(|v| v.declared != Declared::Param && !v.shared);
        let mut all: Vec<_> = Vec::with_capacity(self.func.scope.len() + 1 + hidden.len());
        all.extend(own.map(|variable| (variable.text.clone(), variable.wat)));
        all.extend(code.map(|name| (name.into(), "i32")));
        all.extend(hidden.into_iter().map(|(name, val)| (name.into(), val.name())));
        all
    }

    /// Returns the globals that hold the program's shared variables.
    pub(super) fn shared_globals(&self) -> Vec<Wat<'s>> {
        let mut globals = Vec::new();
        for variable in self.main.iter().filter(|variable| variable.shared) {
            globals.push(global(variable.node, &variable.text, variable.wat));
            if self.facts.is_growing(variable.node) {
                let name = self.companion_name(variable.node);
                globals.push(global(variable.node, &name, "i32"));
            }
        }
        globals
    }

    /// Adds code before the body of a function that is lowered.
    pub(super) fn add_before(&mut self, at: usize, code: Wat<'s>) {
        let done = self.progress.get_mut(at).and_then(|progress| progress.done.as_mut());
        if let Some(func) = done {
            func.pieces.insert(0, code);
        }
    }

    /// Joins the type of a returned value with the common type of the values returned earlier in
    /// the current function.
    pub(crate) fn join_result(&mut self, node: NodeId, ty: Type) -> LowerResult<()> {
        let at = self.func.at;
        if ty == Type::Any {
            return Ok(());
        }
        let ty = ty.stored();
        self.facts.join(at, Slot::Result, ty, node).or_else(|(known, first)| {
            self.fault(node, type_wording::two_results(ty, known, self.tree.line(first)))
        })
    }

    /// Lowers a call to a function declared with `fn`.
    pub(crate) fn call_fn(
        &mut self,
        list: NodeId,
        at: usize,
        name: &'s str,
        operands: &[NodeId],
    ) -> CodeResult<'s> {
        let program = self.program;
        let params = program.funcs.get(at).and_then(|func| func.fn_params.as_deref());
        let params = params.unwrap_or(&[]);
        if params.len() != operands.len() {
            let names: Vec<&str> = params.iter().map(|param| param.name).collect();
            return self.fault(list, type_wording::fn_operands(name, &names, operands.len()));
        }
        let mut args = Vec::new();
        for (nth, (operand, param)) in operands.iter().zip(params).enumerate() {
            let want = match param.declared {
                Some(ty) => Want::Type(ty),
                None if self.is_number(*operand) => {
                    self.wanted_number(*operand, self.facts.ty_so_far(at, Slot::Param(nth)))
                }
                None => Want::Any,
            };
            args.push((*operand, self.value(list, *operand, want)?));
        }
        self.call_fn_lowered(list, at, name, args)
    }

    /// Lowers a call to a function declared with `fn`, whose arguments are lowered already. Each
    /// comes with its node.
    pub(crate) fn call_fn_lowered(
        &mut self,
        list: NodeId,
        at: usize,
        name: &'s str,
        given: Vec<(NodeId, Lowered<'s>)>,
    ) -> CodeResult<'s> {
        let program = self.program;
        let params = program.funcs.get(at).and_then(|func| func.fn_params.as_deref());
        let params = params.unwrap_or(&[]);
        if params.len() != given.len() {
            let names: Vec<&str> = params.iter().map(|param| param.name).collect();
            return self.fault(list, type_wording::fn_operands(name, &names, given.len()));
        }
        let mut args = Vec::new();
        for (nth, ((operand, arg), param)) in given.into_iter().zip(params).enumerate() {
            if let Some(ty) = param.declared {
                args.push(self.convert(list, operand, arg, ty)?.wat);
                continue;
            }
            if arg.flow == Flow::Never || arg.ty == Type::Any {
                args.push(arg.wat);
                continue;
            }
            let ty = arg.ty.stored();
            let slot = Slot::Param(nth);
            self.facts.join(at, slot, ty, operand).or_else(|(known, first)| {
                let line = self.tree.line(first);
                self.fault(operand, type_wording::two_arguments(param.name, name, ty, known, line))
            })?;
            let joined = self.facts.ty(at, slot).map_or(ty, |(ty, _)| ty);
            args.push(self.convert(list, operand, arg, joined)?.wat);
        }
        self.record_use(at);
        if !self.is_begun(at) && self.outer.len() < MAX_WAITING {
            self.lower_func(at)?;
        }
        let call = Wat::list(list, ["call ", name].concat(), args);
        let fallible = self.facts.is_fallible(at);
        let wat =
            if fallible { Wat::sequence(list, [call, self.end_on_error(list)?]) } else { call };
        Ok(match self.facts.result(at) {
            Some((ty, _)) => Lowered::one(wat, ty).dropped_if_unused(),
            None if self.is_done(at) => Lowered::none(wat),
            None => Lowered { ty: Type::Any, ..Lowered::unknown(wat) },
        })
    }

    /// Rejects a program that returns a string or a handle. The result of a program is its error
    /// code.
    fn check_end(&self, body: Nodes, lowered: &Lowered<'s>) -> LowerResult<()> {
        let last = body.iter(self.tree).last();
        let ends = matches!(lowered.flow, Flow::Net(1..) | Flow::Unknown);
        match last.filter(|_| ends && !lowered.ty.is_number() && !lowered.ty.is_vague()) {
            Some(last) if lowered.ty.val() == Val::I32 => {
                Err(self.returned_value(last, last, lowered.ty))
            }
            _ => Ok(()),
        }
    }

    /// Creates the fault for a program that ends with a value of this type.
    pub(crate) fn returned_value(
        &self,
        last: NodeId,
        value: NodeId,
        ty: Type,
    ) -> Box<wording::Fault> {
        use crate::diagnose::fix::{Change, Edits};
        let tree = self.tree;
        let change = (ty == Type::Str && tree.node(last).kind != NodeKind::Atom).then(|| {
            if value == last {
                Change::wrap("(ret ", ")")
            } else {
                Edits::one(tree.start(last)..tree.start(value), "(ret ")
                    .replace(tree.end(value)..tree.end(last), ")")
                    .into()
            }
        });
        let message = type_wording::returned_value(ty, tree.text(value)).maybe_safe(change);
        wording::Fault::at(tree, last, message)
    }

    /// Returns true if a node is a number literal.
    pub(crate) fn is_number(&self, node: NodeId) -> bool {
        self.tree.atom(node).and_then(crate::syntax::literal::number_type).is_some()
    }

    /// Returns the expected type of a number literal, based on the known type of earlier values. A
    /// literal that only fits in a long keeps its own type, and the earlier values are widened to
    /// it.
    pub(crate) fn wanted_number(&self, node: NodeId, known: Decided) -> Want {
        let own = self.tree.atom(node).and_then(crate::syntax::literal::number_type);
        match known {
            Some((ty, _)) if !(ty.is_int() && own == Some(Val::I64)) => Want::Type(ty),
            _ => Want::Any,
        }
    }

    /// Returns a generated name for a variable that functions share or that redeclares a name. The dot
    /// before the number distinguishes it from the host's own names.
    pub(crate) fn global_name(&self, name: &str, number: usize) -> String {
        format!("{}{}.{number}", self.prefix(), name.trim_start_matches('$'))
    }
}

/// Returns the WAT name of a type, or `i32` if the type is not yet known.
fn wat_name(val: Val) -> &'static str {
    if val == Val::Any { "i32" } else { val.name() }
}

/// Returns the declaration of a global that is 0 at first.
pub(super) fn global<'s>(from: NodeId, name: &str, ty: &str) -> Wat<'s> {
    let zero = Wat::list(from, format!("{ty}.const 0"), []);
    Wat::list(from, format!("global {name} (mut {ty})"), [zero])
}
