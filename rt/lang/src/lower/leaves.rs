//! The value that the last form of a body leaves on the stack, if any. It determines whether a
//! function has a result.

use super::Lowering;
use super::forms::{self, Yields};
use crate::syntax::tree::{NodeId, Nodes};

/// The kind of value that the last form of a body leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    Value,
    Nothing,
    /// Control does not reach the form's end, or the value depends on a call whose result is not
    /// yet known.
    Never,
}

impl Lowering<'_, '_> {
    /// Returns the kind of value that a form leaves if it is the last form of a body.
    pub(crate) fn leaves(&self, node: NodeId) -> Leaves {
        let tree = self.tree;
        // An atom, a string, or a list or an object in brackets.
        if tree.bracket(node) != Some(b'(') {
            return Leaves::Value;
        }
        let Some(head) = tree.head(node) else { return Leaves::Nothing };
        let mut nodes = tree.operands(node);
        let of = |yes: bool| if yes { Leaves::Value } else { Leaves::Nothing };
        if let Some(form) = forms::form(head).filter(|_| self.is_form(node, head)) {
            return match form.yields {
                Yields::Value => Leaves::Value,
                Yields::Nothing => Leaves::Nothing,
                Yields::Never => Leaves::Never,
                Yields::Last => self.leaves_last(nodes),
                Yields::Clauses => self.leaves_clauses(nodes),
                Yields::Arms => self.leaves_arms(nodes),
            };
        }
        if let Some(called) = self.callee(head) {
            return match called {
                forms::call::Callee::Host(signature, _) => of(!signature.results.is_empty()),
                forms::call::Callee::Fn(at, _) => match self.facts.result(at) {
                    Some(_) => Leaves::Value,
                    None if self.is_done(at) => Leaves::Nothing,
                    None => Leaves::Never,
                },
                forms::call::Callee::Wat(name) => {
                    of(self.called(name).is_some_and(|effect| effect.pushes > 0))
                }
            };
        }
        if self.host.program(head).is_some() {
            return Leaves::Value;
        }
        match head {
            "if" => self.leaves_arms(nodes),
            "block" | "loop" => of(tree.text(node).contains("(result")),
            _ => match self.named_effect(head, &mut nodes) {
                Some(effect) if effect.never => Leaves::Never,
                Some(effect) => of(effect.pushes > 0),
                None => Leaves::Nothing,
            },
        }
    }

    fn leaves_last(&self, nodes: Nodes) -> Leaves {
        nodes.iter(self.tree).last().map_or(Leaves::Nothing, |last| self.leaves(last))
    }

    /// Returns the kind of value that the clauses of a `cond` leave.
    fn leaves_clauses(&self, mut nodes: Nodes) -> Leaves {
        let tree = self.tree;
        let mut all = Leaves::Never;
        let mut has_else = false;
        while let Some(clause) = nodes.next(tree) {
            has_else = tree.head(clause) == Some("else");
            all = all.or(self.leaves_last(tree.operands(clause)));
        }
        if has_else { all } else { Leaves::Nothing }
    }

    /// Returns the kind of value that the arms of an `if` leave.
    fn leaves_arms(&self, nodes: Nodes) -> Leaves {
        let tree = self.tree;
        let all: Vec<NodeId> = nodes.iter(tree).collect();
        let inner = |node: &NodeId| self.leaves_last(tree.operands(*node));
        match all.as_slice() {
            [.., then, other]
                if tree.head(*then) == Some("then") && tree.head(*other) == Some("else") =>
            {
                inner(then).or(inner(other))
            }
            [.., last] if matches!(tree.head(*last), Some("then" | "else")) => Leaves::Nothing,
            [_, then, other] => self.leaves(*then).or(self.leaves(*other)),
            _ => Leaves::Nothing,
        }
    }
}

impl Leaves {
    /// Returns the kind of value that a form leaves if its two arms leave `self` and `other`.
    fn or(self, other: Leaves) -> Leaves {
        match (self, other) {
            (Leaves::Nothing, _) | (_, Leaves::Nothing) => Leaves::Nothing,
            (Leaves::Value, _) | (_, Leaves::Value) => Leaves::Value,
            (Leaves::Never, Leaves::Never) => Leaves::Never,
        }
    }
}
