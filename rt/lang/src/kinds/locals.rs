//! The kinds of a function's locals, derived from everything that sets them.

use std::collections::HashMap;

use super::ValueKind;
use crate::forms::index;
use crate::forms::value::number_type;
use crate::ops::Val;
use crate::program::{Func, Program};
use crate::rewrite::items;
use crate::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::{Code, Signature, Signatures};

/// Maximum number of rounds in which the kinds of locals are derived from one another.
const ROUNDS: usize = 8;

/// Maximum depth to which an expression is analyzed.
const MAX_NESTING: usize = 16;

/// The kind of a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalKind {
    One(ValueKind),
    /// Several kinds, or an unknown one.
    Mixed,
}

/// The names that the value and the err of a call are stored in.
#[derive(Clone, Copy)]
pub(super) struct ValueErrPair {
    pub(super) value: NodeId,
    pub(super) err: NodeId,
    /// If true, the names are those of a `catch`.
    pub(super) catch: bool,
}

/// The kinds of the locals of a function.
pub(crate) struct LocalKinds<'a, 's> {
    pub(super) tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    pub(super) host: &'a Signatures,
    locals: HashMap<&'s str, LocalKind>,
    pub(super) pairs: Vec<ValueErrPair>,
    /// If true, a number may be an address.
    raw: bool,
}

impl<'a, 's> LocalKinds<'a, 's> {
    pub(super) fn read(
        tree: &'a Tree<'s>,
        program: &'a Program<'s>,
        host: &'a Signatures,
        func: &Func<'s>,
        raw: bool,
    ) -> Self {
        let mut kinds =
            LocalKinds { tree, program, host, locals: HashMap::new(), pairs: Vec::new(), raw };
        let params =
            func.locals.list.iter().filter(|local| local.param).filter_map(|local| local.name);
        kinds.locals.extend(params.map(|name| (name, LocalKind::Mixed)));
        for round in 0..=ROUNDS {
            let before = kinds.locals.clone();
            kinds.pairs.clear();
            kinds.collect(func.body);
            if before == kinds.locals {
                return kinds;
            }
            if round == ROUNDS {
                kinds.locals.clear();
            }
        }
        kinds
    }

    fn set(&mut self, name: NodeId, kind: Option<ValueKind>) {
        let Some(name) = self.tree.name(name) else { return };
        let known = kind.map_or(LocalKind::Mixed, LocalKind::One);
        self.locals
            .entry(name)
            .and_modify(|before| {
                if *before != known {
                    *before = LocalKind::Mixed
                }
            })
            .or_insert(known);
    }

    /// Records the forms that set locals, in a sequence and in everything nested in it.
    fn collect(&mut self, mut nodes: Nodes) {
        let tree = self.tree;
        // The call whose value and err are on the stack, and the name that err was popped into.
        let (mut pending, mut err): (Option<Signature>, Option<NodeId>) = (None, None);
        while let Some(node) = nodes.next(tree) {
            if tree.node(node).kind != NodeKind::List {
                (pending, err) = (None, None);
                if matches!(tree.text(node), "local.set" | "local.tee")
                    && let Some(name) = nodes.peek(tree)
                {
                    self.set(name, None);
                }
                continue;
            }
            let all = items(tree, node);
            let popped = match (tree.head(node), all.as_slice()) {
                (Some("local.set"), [_, name]) => Some(*name),
                _ => None,
            };
            match (pending, err, popped) {
                (Some(_), None, Some(name)) => {
                    self.set(name, Some(ValueKind::Code));
                    err = Some(name);
                    continue;
                }
                (Some(signature), Some(first), Some(name)) => {
                    self.set(
                        name,
                        signature.results.first().and_then(|result| ValueKind::of(result.ty)),
                    );
                    self.pairs.push(ValueErrPair { value: name, err: first, catch: false });
                    (pending, err) = (None, None);
                    continue;
                }
                _ => err = None,
            }
            self.record_assignment(node, &all);
            let mut inner = tree.children(node);
            inner.next(tree);
            self.collect(inner);
            pending = self
                .called(&all)
                .filter(|(_, question, _)| !question)
                .map(|(signature, ..)| signature);
            pending =
                pending.filter(|signature| signature.fallible() && signature.results.len() == 1);
        }
    }

    /// Records the locals that a form sets.
    fn record_assignment(&mut self, list: NodeId, all: &[NodeId]) {
        let tree = self.tree;
        match (tree.head(list), all) {
            (Some("let" | "set" | "local.set" | "local.tee"), [_, name, .., value]) => {
                let kind = self.kind(*value);
                // A value derived from a local of still unknown kind is ignored.
                let silent = kind.is_none() && self.is_undetermined(*value);
                if !silent {
                    self.set(*name, kind);
                }
            }
            (Some("local.set" | "local.tee"), [_, name]) => self.set(*name, None),
            (Some("argv"), [_, _, name]) => self.set(*name, Some(ValueKind::Text)),
            (Some("each"), [_, name, ..]) => self.set(*name, Some(ValueKind::Text)),
            (Some("for"), [_, name, ..]) => self.set(*name, Some(ValueKind::Number)),
            (Some("catch"), [_, value, err, call]) => {
                let kind = self.result(*call);
                self.set(*value, kind);
                self.set(*err, Some(ValueKind::Code));
                self.pairs.push(ValueErrPair { value: *value, err: *err, catch: true });
            }
            (Some("catch"), [_, err, _]) => self.set(*err, Some(ValueKind::Code)),
            _ => {}
        }
    }

    /// Returns true for the value of a local that nothing has set so far.
    pub(super) fn is_undetermined(&self, node: NodeId) -> bool {
        let name = match items(self.tree, node).as_slice() {
            [_, name] if self.tree.head(node) == Some("local.get") => *name,
            _ => node,
        };
        // 0 has no kind.
        self.tree.atom(name) == Some("0")
            || self.tree.name(name).is_some_and(|name| !self.locals.contains_key(name))
    }

    /// Returns the host function that a list calls, whether it is called with `?`, and the
    /// operands.
    pub(super) fn called<'n>(&self, all: &'n [NodeId]) -> Option<(Signature, bool, &'n [NodeId])> {
        let (first, rest) = all.split_first()?;
        let head = self.tree.atom(*first)?;
        if head == "call" {
            let (callee, operands) = rest.split_first()?;
            let name = self.tree.name(*callee)?;
            if self.program.defined.contains_key(name) {
                return None;
            }
            let known = self
                .program
                .aliases
                .get(name)
                .or_else(|| self.host.get(name.strip_prefix('$')?))?;
            return Some((*known, false, operands));
        }
        if !head.contains('.') || self.program.defined.contains_key(head) {
            return None;
        }
        let plain = head.strip_prefix('$').unwrap_or(head);
        let (name, question) = plain.strip_suffix('?').map_or((plain, false), |name| (name, true));
        self.host.called(name, rest.len()).map(|known| (*known, question, rest))
    }

    /// Returns the kind of a call's value.
    fn result(&self, call: NodeId) -> Option<ValueKind> {
        let (signature, ..) = self.called(&items(self.tree, call))?;
        ValueKind::of(signature.results.first()?.ty)
    }

    /// Returns the kind of a local, if it is certain.
    pub(crate) fn local(&self, name: &str) -> Option<ValueKind> {
        match self.locals.get(name)? {
            LocalKind::One(kind) => Some(*kind),
            LocalKind::Mixed => None,
        }
    }

    /// Returns the kind of a value, if it is certain.
    pub(crate) fn kind(&self, node: NodeId) -> Option<ValueKind> {
        self.kind_within(node, MAX_NESTING)
    }

    fn kind_within(&self, node: NodeId, depth: usize) -> Option<ValueKind> {
        let tree = self.tree;
        let depth = depth.checked_sub(1)?;
        match tree.node(node).kind {
            NodeKind::Text | NodeKind::Block => return Some(ValueKind::Text),
            NodeKind::Atom => {
                let text = tree.text(node);
                if text.starts_with('$') {
                    return self.local(text);
                }
                if Code::from_name(text).is_some() {
                    return Some(ValueKind::Code);
                }
                // 0 has no kind.
                let number = number_type(text) == Some(Val::I32) && index(text) != Some(0);
                return (number && !self.raw).then_some(ValueKind::Number);
            }
            NodeKind::List => {}
        }
        let all = items(tree, node);
        if let Some((signature, question, _)) = self.called(&all) {
            return match (signature.results, signature.fallible() && !question) {
                ([one], false) => ValueKind::of(one.ty),
                ([], true) => Some(ValueKind::Code),
                _ => None,
            };
        }
        match (tree.head(node)?, all.as_slice()) {
            ("local.get", [_, name]) => self.kind(*name),
            ("local.tee", [_, _, value]) => self.kind_within(*value, depth),
            ("arg" | "fmt", _) => Some(ValueKind::Text),
            ("default", [_, call, _]) => self.result(*call),
            ("=" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or" | "not", _) => {
                Some(ValueKind::Number)
            }
            ("+" | "-" | "*" | "/" | "%", [_, operands @ ..]) => {
                // Each operand is analyzed once. A second analysis would double the work at each
                // level of nesting.
                let mut any = false;
                for node in operands {
                    let number = self.kind_within(*node, depth) == Some(ValueKind::Number)
                        || tree.atom(*node).and_then(number_type) == Some(Val::I32);
                    any |= number;
                    if !number && !self.is_undetermined(*node) {
                        return None;
                    }
                }
                (any && !self.raw).then_some(ValueKind::Number)
            }
            _ => None,
        }
    }
}
