//! The parameters and locals of a function.

use crate::NameMap;
use crate::diagnose::diagnostic::Position;
use crate::diagnose::fix::Change;
use crate::diagnose::wording::{self, Fault};
use crate::syntax::tree::{NodeId, NodeKind, Tree};

/// Maximum number of locals in a function. This is the engine's limit.
const MAX_LOCALS: usize = 50_000;

/// Initial capacity for locals.
const FEW_LOCALS: usize = 7;

/// The parameters and locals of a function.
#[derive(Clone, Default)]
pub(crate) struct Locals<'s> {
    pub(crate) list: Vec<Local<'s>>,
    pub(crate) by_name: NameMap<&'s str, usize>,
}

/// A parameter or local.
#[derive(Clone, Copy)]
pub(crate) struct Local<'s> {
    pub(crate) name: Option<&'s str>,
    pub(crate) ty: &'s str,
    /// The node that declares the parameter or local.
    pub(crate) node: NodeId,
    pub(crate) param: bool,
}

impl<'s> Locals<'s> {
    /// Adds a parameter or local. A local may be declared twice with the same type, but a parameter
    /// may not.
    pub(crate) fn declare(&mut self, tree: &Tree<'s>, new: Local<'s>) -> Result<(), Box<Fault>> {
        if let Some(known) = new.name.and_then(|name| self.get(name)) {
            if !known.param && !new.param && known.ty == new.ty {
                return Ok(());
            }
            let line = Position::of(tree.source, tree.span(known.node).start).line;
            let name = new.name.unwrap_or("");
            let message = if known.param || new.param {
                wording::duplicate_param(name, line)
            } else {
                wording::two_types(name, known.ty, new.ty, line)
            };
            return Err(Fault::new(tree.span(new.node), message));
        }
        if self.list.len() >= MAX_LOCALS {
            return Err(Fault::new(tree.span(new.node), wording::too_many_locals(MAX_LOCALS)));
        }
        if self.list.is_empty() {
            self.list.reserve(FEW_LOCALS);
            self.by_name.reserve(FEW_LOCALS);
        }
        if let Some(name) = new.name {
            self.by_name.insert(name, self.list.len());
        }
        self.list.push(new);
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Local<'s>> {
        self.list.get(*self.by_name.get(name)?)
    }

    /// Reads `(local $x i32)`, `(local $a $b i32)`, `(local i32 i32)`, or the same with `param`.
    pub(crate) fn read(
        &mut self,
        tree: &Tree<'s>,
        list: NodeId,
        param: bool,
    ) -> Result<(), Box<Fault>> {
        let mut nodes = tree.operands(list);
        // Starts at the first name whose type has not been read yet.
        let mut names = nodes;
        while let Some(node) = nodes.next(tree) {
            if tree.name(node).is_some() {
                continue;
            }
            let ty = tree.text(node);
            if !is_type(tree, node) {
                let message = wording::unknown_type(ty)
                    .maybe_safe(split_initial_value(tree, list, node).filter(|_| !param));
                return Err(Fault::new(tree.span(node), message));
            }
            if names.peek(tree) == Some(node) {
                self.declare(tree, Local { name: None, ty, node, param })?;
            }
            while let Some(name) = names.next(tree).filter(|name| *name != node) {
                let local = Local { name: tree.name(name), ty, node: name, param };
                self.declare(tree, local)?;
            }
        }
        match names.next(tree) {
            Some(node) => {
                let name = tree.name(node).unwrap_or("");
                Err(Fault::new(tree.span(node), wording::missing_type(name, param)))
            }
            None => Ok(()),
        }
    }
}

/// Returns the change that splits a declaration with an initial value into a declaration and a
/// `local.set`. Returns `None` for any other declaration.
fn split_initial_value(tree: &Tree<'_>, list: NodeId, value: NodeId) -> Option<Change> {
    let items = tree.items(list);
    let [_, name, ty, last] = items.as_slice() else { return None };
    let (name, end, start) = (tree.name(*name)?, tree.span(*ty).end, tree.span(value).start);
    (*last == value && is_type(tree, *ty) && tree.node(value).kind != NodeKind::Atom)
        .then(|| Change::Edits(vec![(end..start, format!(") (local.set {name} "))]))
}

/// Returns true if a node is a value type.
fn is_type(tree: &Tree<'_>, node: NodeId) -> bool {
    match tree.node(node).kind {
        NodeKind::Atom => matches!(
            tree.text(node),
            "i32" | "i64" | "f32" | "f64" | "v128" | "funcref" | "externref"
        ),
        NodeKind::List => tree.head(node) == Some("ref"),
        NodeKind::Text | NodeKind::Block => false,
    }
}
