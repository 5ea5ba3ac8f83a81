//! Checks of operands and results against the kinds that are expected.

use super::ValueKind;
use super::locals::{LocalKinds, ValueErrPair};
use crate::fix::Change;
use crate::forms::value::number_type;
use crate::messages::{self, Fault};
use crate::ops::Val;
use crate::rewrite::{self, items};
use crate::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::{Code, Signature};

impl LocalKinds<'_, '_> {
    /// Returns true if the node's value is dropped when nothing uses it, so that a program that
    /// ends with it returns something else. This applies to `(arg …)` and to calls of host
    /// functions by name, but not to a plain `call`.
    fn is_droppable(&self, node: NodeId) -> bool {
        match self.tree.head(node) {
            Some("call") | None => false,
            Some("arg") => true,
            Some(_) => self.called(&items(self.tree, node)).is_some(),
        }
    }

    /// Rejects a program that returns a string or a handle. Its result is its error code.
    pub(super) fn check_returned_value(&self, body: Nodes) -> Result<(), Box<Fault>> {
        let tree = self.tree;
        let (mut before, mut last, mut nodes) = (None, None, body);
        while let Some(node) = nodes.next(tree) {
            (before, last) = (last, Some(node));
        }
        let Some(last) = last else { return Ok(()) };
        if self.is_droppable(last) {
            return Ok(());
        }
        // The name may be the immediate of the instruction before it.
        let is_name = tree.name(last).is_some();
        let flat = before.and_then(|node| tree.atom(node)) == Some("local.get");
        if is_name && before.is_some_and(|node| tree.atom(node).is_some()) && !flat {
            return Ok(());
        }
        let value = match (tree.head(last), items(tree, last).as_slice()) {
            (Some("return"), [_, value]) => *value,
            _ => last,
        };
        let Some(kind) =
            self.kind(value).filter(|kind| !matches!(kind, ValueKind::Number | ValueKind::Code))
        else {
            return Ok(());
        };
        let change = (kind == ValueKind::Text && !flat).then(|| match value == last {
            true => Change::wrap("(ret ", ")"),
            false => Change::Edits(vec![
                (tree.span(last).start..tree.span(value).start, "(ret ".to_owned()),
                (tree.span(value).end..tree.span(last).end, ")".to_owned()),
            ]),
        });
        Err(Fault::new(
            tree.span(last),
            messages::returned_value(kind, tree.text(value)).maybe_safe(change),
        ))
    }

    /// Checks the operands of a sequence and of everything nested in it.
    pub(super) fn check_sequence(&self, mut nodes: Nodes) -> Result<(), Box<Fault>> {
        while let Some(node) = nodes.next(self.tree) {
            if self.tree.node(node).kind == NodeKind::List {
                self.check_list(node)?;
                let mut inner = self.tree.children(node);
                inner.next(self.tree);
                self.check_sequence(inner)?;
            }
        }
        Ok(())
    }

    fn check_list(&self, list: NodeId) -> Result<(), Box<Fault>> {
        let tree = self.tree;
        let all = items(tree, list);
        if let Some((signature, _, operands)) = self.called(&all) {
            return self.check_call(list, &signature, operands);
        }
        let head = tree.head(list).unwrap_or("");
        match (head, all.as_slice()) {
            ("out" | "ret" | "resv", [_, operand]) => {
                self.check_operand(head, *operand, ValueKind::Text)
            }
            ("check" | "fail", [_, operand]) => self.check_operand(head, *operand, ValueKind::Code),
            ("fail", [_, code, message]) => {
                self.check_operand(head, *code, ValueKind::Code)?;
                self.check_operand(head, *message, ValueKind::Text)
            }
            ("each", [_, _, array, ..]) => self.check_operand(head, *array, ValueKind::Array),
            ("arg", [_, number]) | ("argv", [_, number, _]) => {
                self.check_operand(head, *number, ValueKind::Number)
            }
            ("fmt", [_, template, values @ ..]) => self.check_placeholders(*template, values),
            _ => Ok(()),
        }
    }

    /// Checks the operand of a form.
    fn check_operand(
        &self,
        head: &str,
        operand: NodeId,
        wanted: ValueKind,
    ) -> Result<(), Box<Fault>> {
        match self.kind(operand).filter(|kind| !kind.is_accepted_as(wanted)) {
            Some(found) => Err(self.mismatch(
                head,
                operand,
                found,
                wanted,
                self.conversion(operand, found, wanted),
            )),
            None => Ok(()),
        }
    }

    fn check_call(
        &self,
        list: NodeId,
        signature: &Signature,
        operands: &[NodeId],
    ) -> Result<(), Box<Fault>> {
        if operands.len() > signature.params.len() {
            return Ok(());
        }
        let kinds: Vec<Option<ValueKind>> =
            operands.iter().map(|operand| self.kind(*operand)).collect();
        let wanted: Vec<Option<ValueKind>> =
            signature.params.iter().map(|param| ValueKind::of(param.ty)).collect();
        let fits = |at: usize, given: Option<ValueKind>| match (
            given,
            wanted.get(at).copied().flatten(),
        ) {
            (Some(given), Some(wanted)) => given.is_accepted_as(wanted),
            _ => true,
        };
        let Some(bad) = (0..kinds.len()).find(|at| !fits(*at, kinds.get(*at).copied().flatten()))
        else {
            return Ok(());
        };
        let kind = |at: usize| kinds.get(at).copied().flatten();
        let (Some(operand), Some(found), Some(want)) =
            (operands.get(bad), kind(bad), wanted.get(bad).copied().flatten())
        else {
            return Ok(());
        };
        let name = format!("{}.{}", signature.module, signature.name);
        // Two operands whose kinds are certain, and correct once swapped.
        let fits_swapped = |other: &usize| {
            *other != bad
                && kind(*other).is_some()
                && fits(*other, kind(bad))
                && fits(bad, kind(*other))
        };
        let swaps: Vec<usize> = (0..kinds.len()).filter(fits_swapped).collect();
        if let ([other], Some(partner)) =
            (swaps.as_slice(), swaps.first().and_then(|at| operands.get(*at)))
            && kind(*other) != Some(found)
        {
            return Err(Fault::new(
                self.tree.span(list),
                messages::operands_swapped(signature)
                    .safe(rewrite::swap(self.tree, *operand, *partner)),
            ));
        }
        // The function of the same name for values of the kind that was found.
        let same = found
            .module()
            .and_then(|module| self.host.get(&format!("{module}.{}", signature.name)));
        if bad == 0
            && let Some(same) = same.filter(|same| same.params.len() == signature.params.len())
            && let Some(change) = self.rename_callee(list, same)
        {
            let message = messages::kind_mismatch(&name, self.tree.text(*operand), found, want);
            let other = format!("{}.{}", same.module, same.name);
            return Err(Fault::new(
                self.tree.span(*operand),
                message.use_function(&other).safe(change),
            ));
        }
        Err(self.mismatch(&name, *operand, found, want, self.conversion(*operand, found, want)))
    }

    /// Makes a list call another host function.
    fn rename_callee(&self, list: NodeId, known: &Signature) -> Option<Change> {
        let tree = self.tree;
        let all = items(tree, list);
        let name = format!("{}.{}", known.module, known.name);
        let head = tree.head(list)?;
        if head == "call" {
            return Some(Change::Edits(vec![(tree.span(*all.get(1)?), format!("${name}"))]));
        }
        let question = if head.ends_with('?') && known.fallible() { "?" } else { "" };
        rewrite::replace_head(tree, list, format!("{name}{question}"))
    }

    /// Returns the change that converts a value to another kind.
    fn conversion(&self, operand: NodeId, found: ValueKind, wanted: ValueKind) -> Option<Change> {
        let tree = self.tree;
        let has = |name: &str| self.host.get(name).is_some();
        match (found, wanted) {
            (ValueKind::Number, ValueKind::Text)
                if tree.atom(operand).is_some_and(|text| number_type(text).is_some()) =>
            {
                Some(Change::Replace(format!("\"{}\"", tree.text(operand))))
            }
            (ValueKind::Number | ValueKind::Code, ValueKind::Text) if has("str.from_int") => {
                Some(Change::wrap("(str.from_int ", ")"))
            }
            (ValueKind::Text, ValueKind::Number)
                if tree.node(operand).kind != NodeKind::List && tree.name(operand).is_none() =>
            {
                let text = tree.text(operand).trim_matches('"').trim();
                (number_type(text) == Some(Val::I32)).then(|| Change::Replace(text.to_owned()))
            }
            (ValueKind::Text, ValueKind::Code) => {
                let text = tree.text(operand).trim_matches('"');
                Code::from_name(text).map(|_| Change::Replace(text.to_owned()))
            }
            (ValueKind::Map, ValueKind::Array) if has("map.keys") => {
                Some(Change::wrap("(map.keys ", ")"))
            }
            (ValueKind::Text, ValueKind::Number) if has("str.to_int") => {
                Some(Change::wrap("(str.to_int? ", ")"))
            }
            _ => None,
        }
    }

    /// Builds the fault of a value of the wrong kind. If the names of a value and its err are
    /// swapped, reports that instead.
    fn mismatch(
        &self,
        head: &str,
        operand: NodeId,
        found: ValueKind,
        wanted: ValueKind,
        change: Option<Change>,
    ) -> Box<Fault> {
        let tree = self.tree;
        let name = match items(tree, operand).as_slice() {
            [_, name] if tree.head(operand) == Some("local.get") => *name,
            _ => operand,
        };
        let is = |node: NodeId| tree.name(name).is_some() && tree.name(node) == tree.name(name);
        let mixed_up = |pair: &&ValueErrPair| match (found, wanted) {
            (ValueKind::Code, ValueKind::Text | ValueKind::Array | ValueKind::Map) => is(pair.err),
            (_, ValueKind::Code) => is(pair.value),
            _ => false,
        };
        let pair = self.pairs.iter().find(mixed_up).filter(|pair| !self.is_used_correctly(pair));
        if let Some(pair) = pair {
            let (value, err) = (tree.text(pair.value), tree.text(pair.err));
            let message = messages::names_swapped(value, err, pair.catch);
            let at = if pair.catch { pair.value } else { pair.err };
            return Fault::new(
                tree.span(at),
                message.safe(rewrite::swap(tree, pair.value, pair.err)),
            );
        }
        let message =
            messages::kind_mismatch(head, tree.text(operand), found, wanted).maybe_safe(change);
        Fault::new(tree.span(operand), message)
    }

    /// Returns true if one of the two names is used correctly somewhere.
    fn is_used_correctly(&self, pair: &ValueErrPair) -> bool {
        let tree = self.tree;
        let named = |node: NodeId, name: NodeId| {
            let node = match items(tree, node).as_slice() {
                [_, inner] if tree.head(node) == Some("local.get") => *inner,
                _ => node,
            };
            tree.name(node).is_some() && tree.name(node) == tree.name(name)
        };
        for list in (0..tree.len()).map(NodeId) {
            for (operand, wanted) in self.expected_kinds(list) {
                let right = match wanted {
                    ValueKind::Code => named(operand, pair.err),
                    wanted => {
                        named(operand, pair.value)
                            && self.kind(operand).is_some_and(|kind| kind.is_accepted_as(wanted))
                    }
                };
                if right {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the operands of a list whose kind is known, each with its kind.
    fn expected_kinds(&self, list: NodeId) -> Vec<(NodeId, ValueKind)> {
        let all = items(self.tree, list);
        if let Some((signature, _, operands)) = self.called(&all) {
            let wanted = signature.params.iter().map(|param| ValueKind::of(param.ty));
            return operands
                .iter()
                .zip(wanted)
                .filter_map(|(node, kind)| Some((*node, kind?)))
                .collect();
        }
        match (self.tree.head(list), all.as_slice()) {
            (Some("out" | "ret" | "resv"), [_, operand]) => vec![(*operand, ValueKind::Text)],
            (Some("check" | "fail"), [_, operand]) => vec![(*operand, ValueKind::Code)],
            (Some("fail"), [_, code, message]) => {
                vec![(*code, ValueKind::Code), (*message, ValueKind::Text)]
            }
            (Some("each"), [_, _, array, ..]) => vec![(*array, ValueKind::Array)],
            _ => Vec::new(),
        }
    }

    /// Checks the values of a `fmt` against its placeholders.
    fn check_placeholders(&self, template: NodeId, values: &[NodeId]) -> Result<(), Box<Fault>> {
        let placeholders = placeholders(self.tree, template);
        if placeholders.len() != values.len() {
            return Ok(());
        }
        for ((span, placeholder), value) in placeholders.into_iter().zip(values) {
            let (wanted, other) = match placeholder {
                "" => (ValueKind::Text, "{i}"),
                "i" => (ValueKind::Number, "{}"),
                _ => continue,
            };
            let Some(found) = self.kind(*value).filter(|kind| !kind.is_accepted_as(wanted)) else {
                continue;
            };
            let fits = matches!(
                (found, wanted),
                (ValueKind::Number | ValueKind::Code, ValueKind::Text)
                    | (ValueKind::Text, ValueKind::Number)
            );
            let change = fits.then(|| Change::Edits(vec![(span, other.to_owned())]));
            let fault = self.mismatch("fmt", *value, found, wanted, change);
            return Err(Fault::new(
                fault.span,
                if fits { fault.message.use_placeholder(other) } else { fault.message },
            ));
        }
        Ok(())
    }
}

/// Returns the placeholders of a template: the range of each with its braces, and the text between
/// them.
pub(crate) fn placeholders<'s>(
    tree: &Tree<'s>,
    template: NodeId,
) -> Vec<(std::ops::Range<usize>, &'s str)> {
    let (text, start) = (tree.text(template), tree.span(template).start);
    let mut placeholders = Vec::new();
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|found| at + found) {
        let rest = text.get(open + 1..).unwrap_or("");
        if rest.starts_with('{') {
            at = open + 2;
            continue;
        }
        let Some(end) = rest.find('}') else { break };
        placeholders.push((start + open..start + open + end + 2, rest.get(..end).unwrap_or("")));
        at = open + end + 2;
    }
    placeholders
}
