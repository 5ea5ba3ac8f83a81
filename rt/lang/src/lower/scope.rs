//! The parameters and variables of a function.

use std::borrow::Cow;

use foldhash::fast::RandomState;

use super::facts::Fact;
use super::range::Range;
use crate::NameMap;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, Tree};
use crate::types::Type;

/// Maximum number of variables in a function. This is the engine's limit.
const MAX_VARIABLES: usize = 50_000;

/// The construct that declares a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// A parameter.
    Param,
    /// WAT's `(local $x i32)`.
    Local,
    /// A form, such as `let`.
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

    /// Returns the type known so far, and records that code depends on it.
    pub(crate) fn ty(&self) -> Type {
        *self.ty.read()
    }

    /// Sets the type known so far. Returns true if code depends on a different type.
    pub(crate) fn set_ty(&mut self, ty: Type) -> bool {
        self.ty.set(ty)
    }
}

/// The variables of a function. A name refers to its latest declaration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope<'s> {
    list: Vec<Variable<'s>>,
    by_name: NameMap<&'s str, usize>,
}

impl<'s> Scope<'s> {
    /// Creates an empty scope with space for `count` variables.
    pub(crate) fn with_capacity(count: usize) -> Scope<'s> {
        let by_name = NameMap::with_capacity_and_hasher(count, RandomState::default());
        Scope { list: Vec::with_capacity(count), by_name }
    }

    /// Adds a variable. Returns its index.
    pub(crate) fn add(
        &mut self,
        tree: &Tree<'s>,
        variable: Variable<'s>,
    ) -> Result<usize, Box<Fault>> {
        if self.list.len() >= MAX_VARIABLES {
            let message = wording::too_many_locals(MAX_VARIABLES);
            return Err(Fault::new(tree.span(variable.node), message));
        }
        let at = self.list.len();
        if let Some(name) = variable.name {
            self.by_name.insert(name, at);
        }
        self.list.push(variable);
        Ok(at)
    }

    /// Returns the index of the variable that a name refers to.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the variable that a name refers to.
    pub(crate) fn get(&self, name: &str) -> Option<&Variable<'s>> {
        self.list.get(self.find(name)?)
    }

    /// Returns the variable at an index.
    pub(crate) fn at(&self, at: usize) -> Option<&Variable<'s>> {
        self.list.get(at)
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> Option<&mut Variable<'s>> {
        self.list.get_mut(at)
    }

    /// Returns all variables, parameters first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Variable<'s>> {
        self.list.iter()
    }

    /// Returns the number of variables.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the names of the variables, as written in the source.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'s str> + '_ {
        self.by_name.keys().copied()
    }
}
