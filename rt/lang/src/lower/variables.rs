//! Code that reads, sets and declares variables.

use super::facts::LocalType;
use super::function::FuncKind;
use super::output::Wat;
use super::range::Range;
use super::scope::{Declared, Variable};
use super::{LowerResult, Lowering};
use crate::diagnose::wording::types as type_wording;
use crate::syntax::tree::NodeId;
use crate::types::{Type, Val};

/// A variable or a global that a name refers to.
#[derive(Clone, Debug)]
pub(crate) struct Resolved<'s> {
    /// The name in the module.
    pub(crate) text: std::borrow::Cow<'s, str>,
    pub(crate) ty: Type,
    /// If true, the variable is a global of the module.
    pub(crate) is_global: bool,
    /// The node that declares the variable. `None` for a WAT global or a hidden variable.
    pub(crate) node: Option<NodeId>,
    /// The index of the variable in the current function's scope. `None` if it is not in that
    /// scope.
    pub(crate) at: Option<usize>,
    /// The bounds of the variable's value, if known.
    pub(crate) range: Option<Range>,
}

impl<'s> Resolved<'s> {
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

    /// Returns code that sets the variable and leaves the value. Without `value`, the value is taken
    /// from the stack.
    pub(crate) fn tee<'s>(&self, from: NodeId, value: impl Into<Vec<Wat<'s>>>) -> Wat<'s> {
        Wat::list(from, ["local.tee ", &self.name].concat(), value)
    }
}

impl<'s> Lowering<'_, 's> {
    /// Resolves a name to a variable of the current function, a variable of the program (if the
    /// function is declared with `fn`), or a WAT global. Returns `None` if the name is unknown.
    pub(crate) fn resolve(&mut self, name: &str) -> Option<Resolved<'s>> {
        if let Some(at) = self.func.scope.find(name) {
            return self.variable(at);
        }
        if self.func.kind == FuncKind::Fn {
            let last = self.done.last().is_some_and(Option::is_some);
            // The state of the program, if its lowering has begun.
            let running = self.outer.iter().rev().find(|state| state.kind == FuncKind::Run);
            let running = running.filter(|_| !last);
            let scope = running.map_or(&self.main, |state| &state.scope);
            if let Some(variable) = scope.get(name) {
                self.facts.share(variable.node);
                return Some(Resolved {
                    text: variable.text.clone(),
                    ty: variable.ty(),
                    is_global: true,
                    node: Some(variable.node),
                    at: None,
                    range: None,
                });
            }
        }
        let global = self.types.globals.get_named(name)?;
        Some(Resolved {
            text: global.0.into(),
            ty: global.1.as_ref().map_or(Type::Any, |global| Type::of_wat(global.ty)),
            is_global: true,
            node: None,
            at: None,
            range: None,
        })
    }

    /// Returns the variable at an index in the current function.
    pub(crate) fn variable(&self, at: usize) -> Option<Resolved<'s>> {
        let variable = self.func.scope.at(at)?;
        Some(Resolved {
            text: variable.text.clone(),
            ty: variable.ty(),
            is_global: variable.shared,
            node: Some(variable.node),
            at: Some(at),
            range: variable.range,
        })
    }

    /// Declares a variable that a form sets to a value of this type. If the name is already
    /// declared with the same type, reuses that variable.
    pub(crate) fn declare(
        &mut self,
        name: &'s str,
        ty: Type,
        node: NodeId,
    ) -> LowerResult<Resolved<'s>> {
        let ty = ty.stored();
        if let Some(at) = self.func.scope.find(name) {
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
                return self.variable(at).map_or_else(|| self.add(name, ty, node), Ok);
            }
        }
        self.add(name, ty, node)
    }

    fn add(&mut self, name: &'s str, ty: Type, node: NodeId) -> LowerResult<Resolved<'s>> {
        let at = self.func.scope.len();
        let shared = self.facts.is_shared(node);
        let text = if shared || self.func.scope.find(name).is_some() {
            self.global_name(name, at).into()
        } else {
            name.into()
        };
        let wat = match ty.val() {
            Val::Any => "i32",
            val => val.name(),
        };
        let mut variable = Variable::new(Some(name), text, wat, ty, node, Declared::Form);
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
        if variable.declared != Declared::Local || Type::of_wat(ty.val()) != Type::I32 {
            return;
        }
        let found = match ty.stored() {
            Type::I32 => LocalType::Mixed,
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
