//! Fixes for names that are not variables. Such a name may be part of a malformed declaration or
//! call.

use super::Lowering;
use super::forms;
use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::types::Type;

impl Lowering<'_, '_> {
    /// Returns the change that turns a bare name into a call if a host function without parameters
    /// has this name.
    pub(super) fn bare_call(&self, name: &str) -> Option<Change> {
        let name = name.trim_end_matches('?');
        let known = self.host.get(name)?;
        known.params.is_empty().then(|| Change::Replace(format!("({name})")))
    }

    /// Returns the change that removes the colon after a variable's name, if a form declares the
    /// variable as `$x:` or `$x:int`.
    pub(super) fn remove_colon(&self, name: &str) -> Option<Change> {
        let typed = |other: &str| {
            let ty = other.strip_prefix(name)?.strip_prefix(':')?;
            (ty.is_empty() || Type::from_name(ty).is_some()).then(|| ty.to_owned())
        };
        let (declared, ty) =
            self.func.scope.names().find_map(|other| Some((other, typed(other)?)))?;
        let node = self.func.scope.get(declared)?.node;
        let space = if ty.is_empty() { "" } else { " " };
        Some(Change::Edits(vec![(self.tree.span(node), format!("{name}{space}{ty}"))]))
    }

    /// Returns the change that declares the local `name`, which is set with `local.set` or
    /// `local.tee` but not declared. Returns `None` if the local is never set, or if the name is
    /// probably a misspelling of a known variable.
    pub(super) fn declare_set_local(&self, name: &str) -> Option<Change> {
        let tree = self.tree;
        if nearest::certain(name, self.func.scope.names()).is_some() {
            return None;
        }
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let sets = matches!(tree.head(node), Some("local.set" | "local.tee"));
            if sets
                && tree.items(node).get(1).is_some_and(|target| tree.name(*target) == Some(name))
            {
                let start = tree.span(node).start;
                return Some(Change::Edits(vec![(start..start, format!("(local {name} i32) "))]));
            }
        }
        None
    }

    /// Returns the line of the first form in the program that declares a variable with this name.
    pub(super) fn declared_later(&self, name: &str) -> Option<u32> {
        let tree = self.tree;
        let mut nodes = tree.top();
        while let Some(node) = nodes.next_deep(tree) {
            let declares =
                matches!(tree.head(node), Some("let" | "catch" | "for" | "each" | "argv"));
            let operands = forms::all_operands(tree, node);
            let names = match tree.head(node) {
                Some("let") => operands.len().saturating_sub(1).max(1),
                _ => 2,
            };
            if declares
                && operands.iter().take(names).any(|operand| tree.name(*operand) == Some(name))
            {
                return Some(self.line_of(node));
            }
        }
        None
    }
}
