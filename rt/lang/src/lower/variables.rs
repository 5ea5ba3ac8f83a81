//! The parameters and variables of a function, and the code that declares, reads and sets them.
//!
//! A string variable that is the target of `append` grows in place. It has a companion variable,
//! which holds the address of the string if no other variable refers to the string, and 0
//! otherwise. While the two variables are equal, `str.append` may change the string in place. If
//! the string variable is read in a way that may keep the address, the companion is set to 0, so
//! the next `append` copies the string.

use std::borrow::Cow;

use crate::diagnose::wording::{self, Fault, types as type_wording};
use crate::lower::facts::{Fact, LocalType, Slot};
use crate::lower::forms::call::Callee;
use crate::lower::function::FuncKind;
use crate::lower::function::global;
use crate::lower::output::Wat;
use crate::lower::range::Range;
use crate::lower::table::Table;
use crate::lower::{KEPT, LowerResult, Lowering, forms};
use crate::syntax::tree::{NodeId, Tree};
use crate::types::{Type, Val};

/// Maximum number of variables in a function. This is the engine's limit.
const MAX_VARIABLES: usize = 50_000;

/// The construct that declares a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// A parameter.
    Param,
    /// WAT's `(local $x i32)`.
    Local,
    /// `let`. The variable's type is that of all values that it is set to.
    Let,
    /// Another form, such as `each`.
    Form,
}

/// A parameter or variable.
#[derive(Clone, Debug)]
pub(crate) struct Variable<'s> {
    /// The name in the source, with its `$`. `None` for an unnamed WAT parameter or local.
    pub(crate) name: Option<&'s str>,
    /// The name in the module. It differs from the name in the source if the source declares that
    /// name with several types, or if functions share the variable.
    pub(crate) text: Cow<'s, str>,
    /// The type in the module.
    pub(crate) wat: &'s str,
    /// The type known so far.
    ty: Fact<Type>,
    /// The node that declares the variable.
    pub(crate) node: NodeId,
    pub(crate) declared: Declared,
    /// If true, the variable belongs to the program and is used by a function. It is a global in
    /// the module.
    pub(crate) shared: bool,
    /// The bounds of the variable's value in the code being lowered, if known.
    pub(crate) range: Option<Range>,
}

impl<'s> Variable<'s> {
    /// Creates a variable that is not shared with functions.
    pub(crate) fn new(
        name: Option<&'s str>,
        text: Cow<'s, str>,
        wat: &'s str,
        ty: Type,
        node: NodeId,
        declared: Declared,
    ) -> Variable<'s> {
        let ty = Fact::new(ty);
        Variable { name, text, wat, ty, node, declared, shared: false, range: None }
    }

    /// Returns what a name that refers to the variable resolves to. `at` is the variable's index in
    /// the current function's scope, if it is in that scope.
    fn resolved(&self, at: Option<usize>) -> Resolved<'s> {
        Resolved {
            text: self.text.clone(),
            ty: self.ty(),
            is_global: self.shared,
            node: Some(self.node),
            declared: Some(self.declared),
            at,
            range: self.range,
        }
    }

    /// Returns the type known so far, and records that code depends on it.
    pub(crate) fn ty(&self) -> Type {
        *self.ty.read()
    }

    /// Sets the type known so far. Returns true if code depends on a different type.
    pub(crate) fn set_ty(&mut self, ty: Type) -> bool {
        self.ty.set(ty)
    }
}

/// The variables of a function, parameters first.
pub(crate) type Scope<'s> = Table<'s, Variable<'s>>;

impl<'s> Scope<'s> {
    /// Adds a variable. Returns its index.
    pub(crate) fn add(
        &mut self,
        tree: &Tree<'s>,
        variable: Variable<'s>,
    ) -> Result<usize, Box<Fault>> {
        if self.len() >= MAX_VARIABLES {
            let message = wording::too_many_locals(MAX_VARIABLES);
            return Err(Fault::at(tree, variable.node, message));
        }
        Ok(self.push(variable.name, variable))
    }
}

/// A variable or a global that a name refers to.
#[derive(Clone, Debug)]
pub(crate) struct Resolved<'s> {
    /// The name in the module.
    pub(crate) text: Cow<'s, str>,
    pub(crate) ty: Type,
    /// If true, the variable is a global of the module.
    pub(crate) is_global: bool,
    /// The node that declares the variable. `None` for a WAT global or a hidden variable.
    pub(crate) node: Option<NodeId>,
    /// The construct that declares the variable, or `None` like `node`.
    pub(crate) declared: Option<Declared>,
    /// The index of the variable in the current function's scope. `None` if it is not in that
    /// scope.
    pub(crate) at: Option<usize>,
    /// The bounds of the variable's value, if known.
    pub(crate) range: Option<Range>,
}

impl<'s> Resolved<'s> {
    /// Returns a global of the module that no node declares.
    fn global(text: impl Into<Cow<'s, str>>, ty: Type) -> Resolved<'s> {
        let text = text.into();
        Resolved { text, ty, is_global: true, node: None, declared: None, at: None, range: None }
    }

    /// Returns code that reads the value.
    pub(crate) fn read(&self, from: NodeId) -> Wat<'s> {
        let get = if self.is_global { "global.get " } else { "local.get " };
        Wat::list(from, [get, &self.text].concat(), []).within(self.range)
    }

    /// Returns code that sets the value. If `value` is `None`, the value is taken from the stack.
    pub(crate) fn write(&self, from: NodeId, value: Option<Wat<'s>>) -> Wat<'s> {
        let set = if self.is_global { "global.set " } else { "local.set " };
        Wat::list(from, [set, &self.text].concat(), value.into_iter().collect::<Vec<_>>())
    }
}

/// A variable of generated code, which the source does not name.
#[derive(Clone)]
pub(crate) struct Hidden {
    pub(super) name: String,
}

impl Hidden {
    /// Returns code that reads the variable.
    pub(crate) fn get<'s>(&self, from: NodeId) -> Wat<'s> {
        Wat::list(from, ["local.get ", &self.name].concat(), [])
    }

    /// Returns code that sets the variable.
    pub(crate) fn set<'s>(&self, from: NodeId, value: Wat<'s>) -> Wat<'s> {
        Wat::list(from, ["local.set ", &self.name].concat(), [value])
    }

    /// Returns code that sets the variable and leaves the value. Without `value`, the value is
    /// taken from the stack.
    pub(crate) fn tee<'s>(&self, from: NodeId, value: impl Into<Vec<Wat<'s>>>) -> Wat<'s> {
        Wat::list(from, ["local.tee ", &self.name].concat(), value)
    }
}

impl<'s> Lowering<'_, 's> {
    /// Resolves a name to a variable of the current function, a variable of the program (if the
    /// function is declared with `fn`), a WAT global, or a variable that an earlier program kept.
    /// Returns `None` if the name is unknown.
    pub(crate) fn resolve(&mut self, name: &str) -> Option<Resolved<'s>> {
        if let Some(at) = self.func.scope.find(name) {
            return self.variable(at);
        }
        if self.func.kind == FuncKind::Fn {
            let last = self.is_done(self.program.funcs.len().saturating_sub(1));
            // The state of the program, if its lowering has begun.
            let running = self.outer.iter().rev().find(|state| state.kind == FuncKind::Run);
            let running = running.filter(|_| !last);
            let scope = running.map_or(&self.main, |state| &state.scope);
            if let Some(variable) = scope.get(name) {
                self.facts.share(variable.node);
                let shared = variable.resolved(None);
                return Some(Resolved { is_global: true, range: None, ..shared });
            }
        }
        let Some(global) = self.types.globals.get_named(name) else {
            return self.kept_variable(name);
        };
        let ty = global.1.as_ref().map_or(Type::Any, |global| Type::of_wat(global.ty));
        Some(Resolved::global(global.0, ty))
    }

    /// Returns the variable of a kept value, or `None` if no value is kept under this name.
    fn kept_variable(&mut self, name: &str) -> Option<Resolved<'s>> {
        if !self.host.is_kept(name) {
            return None;
        }
        let at = match self.kept.iter().position(|known| known == name) {
            Some(at) => at,
            None => {
                self.kept.push(name.to_owned());
                self.kept.len() - 1
            }
        };
        Some(Resolved::global(self.label("kept", at), Type::Val))
    }

    /// Declares the variables of the kept values that the program reads. They get their values
    /// before the program, whose index is `run`, begins.
    pub(super) fn load_kept(&mut self, run: usize) -> LowerResult<Vec<Wat<'s>>> {
        let from = NodeId(0);
        let mut globals = Vec::new();
        for (at, name) in std::mem::take(&mut self.kept).into_iter().enumerate() {
            let variable = self.label("kept", at);
            let plain = name.trim_start_matches('$').as_bytes().to_vec();
            let value = self.host_call(from, KEPT, [Wat::literal(from, plain)])?;
            let set = Resolved::global(variable.clone(), Type::Val).write(from, Some(value));
            self.add_before(run, set);
            globals.push(global(from, &variable, "i32"));
        }
        Ok(globals)
    }

    /// Returns the names of the known variables.
    pub(crate) fn known_variables(&self) -> impl Iterator<Item = &str> {
        self.func.scope.names().chain(self.host.kept())
    }

    /// Returns the variable at an index in the current function.
    pub(crate) fn variable(&self, at: usize) -> Option<Resolved<'s>> {
        Some(self.func.scope.at(at)?.resolved(Some(at)))
    }

    /// Declares a variable that `let` sets to a value of this type. The variable's type may be
    /// wider: val, if the variable is also set to values of other types.
    pub(crate) fn declare_let(
        &mut self,
        name: &'s str,
        ty: Type,
        node: NodeId,
    ) -> LowerResult<Resolved<'s>> {
        let mut ty = self.facts.widened(node).unwrap_or(ty.stored());
        let own = self.func.own;
        // In a loop, the code before this one reads the variable again.
        if self.func.kind == FuncKind::Run
            && self.func.inline.is_empty()
            && ty.is_shaped()
            && self.func.scope.find(name).is_none()
            && self.kept.iter().any(|known| known == name)
            && let Some(kept) = self.kept_variable(name)
        {
            return Ok(kept);
        }
        let known = self.func.scope.find(name).filter(|at| *at >= own);
        let known = known.and_then(|at| self.func.scope.at(at));
        if let Some(known) = known.filter(|known| known.declared == Declared::Let) {
            let (found, declaration) = (known.ty(), known.node);
            let is_repeated = !self.func.loops.is_empty();
            match (found, ty) {
                // In the next iteration, the variable has the value from this one.
                (found, Type::Val) if is_repeated && found != ty && found.is_shaped() => {
                    self.facts.widen(declaration, Type::Val);
                }
                (Type::Val, found) if is_repeated && found.is_shaped() => ty = Type::Val,
                (Type::Bool, Type::Int | Type::Code) | (Type::Int | Type::Code, Type::Bool) => {
                    self.facts.widen(declaration, Type::Int);
                    self.facts.widen(node, Type::Int);
                    ty = Type::Int;
                }
                _ => {}
            }
        }
        self.declare_as(name, ty, node, Declared::Let)
    }

    /// Records that a variable is set to a value of another type, so it must be declared with the
    /// type `ty`. Returns false if its declaration determines its type.
    pub(crate) fn widen(&mut self, variable: &Resolved<'s>, ty: Type, node: NodeId) -> bool {
        match (variable.declared, variable.node, variable.at) {
            (Some(Declared::Let), Some(declaration), _) => {
                self.facts.widen(declaration, ty);
                true
            }
            (Some(Declared::Param), _, Some(at)) if self.func.kind == FuncKind::Fn => {
                let params = self.program.funcs.get(self.func.at);
                let param = params.and_then(|func| func.fn_params.as_ref()?.get(at));
                let is_inferred = param.is_some_and(|param| param.declared.is_none());
                is_inferred && self.facts.join(self.func.at, Slot::Param(at), ty, node).is_ok()
            }
            _ => false,
        }
    }

    /// Declares a variable that a form sets to a value of this type. If the name is already
    /// declared with the same type, reuses that variable.
    pub(crate) fn declare(
        &mut self,
        name: &'s str,
        ty: Type,
        node: NodeId,
    ) -> LowerResult<Resolved<'s>> {
        let ty = match ty.stored() {
            Type::Bool => Type::Int,
            ty => ty,
        };
        self.declare_as(name, ty, node, Declared::Form)
    }

    /// Declares a variable of exactly this type. If the name is already declared with the same type,
    /// reuses that variable.
    fn declare_as(
        &mut self,
        name: &'s str,
        ty: Type,
        node: NodeId,
        declared: Declared,
    ) -> LowerResult<Resolved<'s>> {
        if let Some(at) = self.func.scope.find(name).filter(|at| *at >= self.func.own) {
            let known = self.func.scope.at(at).map(|known| (known.ty(), known.declared));
            let same = match known {
                Some((known, _)) if known == ty => true,
                Some((known, _)) if known.is_int() && ty.is_int() => {
                    // No code depends on which of the 32-bit integer types the variable has.
                    if let Some(variable) = self.func.scope.at_mut(at) {
                        variable.set_ty(ty);
                    }
                    true
                }
                // A WAT variable has one representation, regardless of the values that it is set
                // to.
                Some((known, Declared::Local | Declared::Param)) => {
                    known.val() == ty.val() && known.is_vague()
                }
                _ => false,
            };
            if same {
                return self.variable(at).map_or_else(|| self.add(name, ty, node, declared), Ok);
            }
        }
        self.add(name, ty, node, declared)
    }

    /// Declares a new variable, which hides an earlier one with the same name.
    pub(crate) fn add(
        &mut self,
        name: &'s str,
        ty: Type,
        node: NodeId,
        declared: Declared,
    ) -> LowerResult<Resolved<'s>> {
        let at = self.func.scope.len();
        let shared = self.facts.is_shared(node);
        // The variables of a function in a form are unknown after it, but belong to the same function
        // of the module.
        let is_taken = !self.func.inline.is_empty() || self.func.scope.find(name).is_some();
        let text = if shared || is_taken { self.global_name(name, at).into() } else { name.into() };
        let wat = match ty.val() {
            Val::Any => "i32",
            val => val.name(),
        };
        let mut variable = Variable::new(Some(name), text, wat, ty, node, declared);
        variable.shared = shared;
        let at = self.func.scope.add(self.tree, variable)?;
        self.variable(at).map_or_else(|| self.fault(node, type_wording::unknown_variable(name)), Ok)
    }

    /// Sets the bounds of a variable's value in the code that follows. Returns the previous bounds.
    pub(crate) fn set_range(&mut self, at: Option<usize>, range: Option<Range>) -> Option<Range> {
        let variable = at.and_then(|at| self.func.scope.at_mut(at))?;
        std::mem::replace(&mut variable.range, range)
    }

    /// Records that a WAT variable is set to a value of this type.
    pub(crate) fn record_set(&mut self, at: Option<usize>, ty: Type) {
        let Some(at) = at else { return };
        let key = (self.func.at, at);
        let known = self.facts.local(key);
        let Some(variable) = self.func.scope.at_mut(at) else { return };
        if variable.declared == Declared::Let && ty != Type::Bool && variable.ty() == Type::Bool {
            self.facts.widen(variable.node, Type::Int);
        }
        if variable.declared != Declared::Local || Type::of_wat(ty.val()) != Type::I32 {
            return;
        }
        let found = match ty.stored() {
            Type::I32 => LocalType::Mixed,
            Type::Bool => LocalType::One(Type::Int),
            ty => LocalType::One(ty),
        };
        let joined = match self.sets.get(&key) {
            None => found,
            Some(known) if *known == found => found,
            Some(LocalType::One(a)) => match found {
                LocalType::One(b) if a.is_int() && b.is_int() => LocalType::One(Type::Int),
                _ => LocalType::Mixed,
            },
            Some(LocalType::Mixed) => LocalType::Mixed,
        };
        self.sets.insert(key, joined);
        let ty = match joined {
            LocalType::One(ty) => ty,
            LocalType::Mixed => Type::I32,
        };
        // In a later round, the variable has its type from the start.
        if known.is_none() && variable.set_ty(ty) {
            self.facts.outdate();
        }
    }
}

/// Forms that read a string without keeping its address.
const READERS: [&str; 15] = [
    "=", "!=", "<", "<=", ">", ">=", "append", "arr", "has", "len", "map", "out", "push", "put",
    "ret",
];

impl<'s> Lowering<'_, 's> {
    /// Returns code that reads a variable. If the variable is an operand of a form, `form` is that
    /// form.
    pub(crate) fn read_variable(
        &mut self,
        from: NodeId,
        variable: &Resolved<'s>,
        form: Option<NodeId>,
    ) -> Wat<'s> {
        let value = variable.read(from);
        match self.companion(variable) {
            Some(companion) if !form.is_some_and(|form| self.only_reads(form)) => {
                let clear = companion.write(from, Some(Wat::i32(from, 0)));
                Wat::sequence(from, [clear, value])
            }
            _ => value,
        }
    }

    /// Returns code that appends a string to a string variable.
    pub(crate) fn append_to(
        &mut self,
        list: NodeId,
        variable: &Resolved<'s>,
        text: Wat<'s>,
    ) -> LowerResult<Wat<'s>> {
        let (set, text) = self.once(list, text, Val::I32);
        if let Some(node) = variable.node.filter(|_| !self.words.wat_variables()) {
            self.facts.grow(node);
        }
        let companion = self.companion(variable);
        let mut args = vec![variable.read(list), text];
        let function = match &companion {
            Some(companion) => {
                let same = [variable.read(list), companion.read(list)];
                args.push(Wat::list(list, "i32.eq", same));
                "str.append"
            }
            None => "str.cat",
        };
        let call = self.host_call(list, function, args)?;
        let whole = Wat::sequence(list, [call, self.end_on_error(list)?]);
        let mut pieces: Vec<Wat<'s>> = set.into_iter().collect();
        pieces.push(variable.write(list, Some(whole)));
        pieces.extend(companion.map(|companion| companion.write(list, Some(variable.read(list)))));
        Ok(Wat::sequence(list, pieces))
    }

    /// Returns the companion of a variable that grows in place, or `None` for any other variable.
    fn companion(&mut self, variable: &Resolved<'s>) -> Option<Resolved<'s>> {
        let node = variable.node.filter(|node| self.facts.is_growing(*node))?;
        let name = self.companion_name(node);
        let declared = self.func.hidden.iter().any(|(known, _)| *known == name);
        if !variable.is_global && !declared {
            self.func.hidden.push((name.clone(), Val::I32));
        }
        Some(Resolved {
            text: name.into(),
            node: None,
            declared: None,
            at: None,
            ..variable.clone()
        })
    }

    /// Returns the name of the companion of the variable that a node declares.
    pub(super) fn companion_name(&self, node: NodeId) -> String {
        self.label("own", node.0 as usize)
    }

    /// Returns true if a form reads its operands without keeping an address and no operand can
    /// append to a variable.
    fn only_reads(&self, form: NodeId) -> bool {
        let tree = self.tree;
        let Some(head) = tree.head(form) else { return false };
        let reads = match forms::form(head).filter(|_| forms::applies(tree, form, head)) {
            // With a single value, the result may be that value itself.
            Some(_) if head == "fmt" => forms::all_operands(tree, form).len() > 2,
            Some(_) => READERS.contains(&head),
            None => matches!(self.callee(head), Some(Callee::Host(..))),
        };
        reads && !self.may_append(form)
    }

    /// Returns true if something inside a form may append to a variable: an `append`, or a call to
    /// one of the program's functions.
    fn may_append(&self, form: NodeId) -> bool {
        let tree = self.tree;
        let mut nodes = tree.children(form);
        while let Some(node) = nodes.next_deep(tree) {
            let own = tree.head(node).and_then(|head| self.callee(head));
            if matches!(own, Some(Callee::Wat(_) | Callee::Fn(..)))
                || tree.atom(node).is_some_and(|word| word == "append" || word.starts_with("call"))
            {
                return true;
            }
        }
        false
    }
}
