//! What values mean: strings, numbers, codes and handles are all i32, so only their kinds tell one from the other.
//!
//! A local has a kind where all that sets it has that one. Where a value of one kind is given for another, for certain, the
//! text is refused: it would read a number as an address. What is not certain is left alone, and so are numbers in programs
//! that lay out memory themselves.

use std::collections::HashMap;

use crate::fix::Change;
use crate::forms::index;
use crate::forms::value::number_type;
use crate::messages::{self, Fault};
use crate::ops::Val;
use crate::program::{Func, Program};
use crate::rewrite::{self, items};
use crate::tree::{NodeId, NodeKind, Nodes, Tree};
use crate::{Code, Signature, Signatures, Ty};

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Text,
    Number,
    Code,
    Array,
    Map,
}

impl ValueKind {
    fn of(ty: Ty) -> Option<ValueKind> {
        match ty {
            Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes => Some(ValueKind::Text),
            Ty::Int | Ty::Bool => Some(ValueKind::Number),
            Ty::Arr => Some(ValueKind::Array),
            Ty::Map => Some(ValueKind::Map),
            Ty::Long | Ty::Float | Ty::Addr | Ty::Any => None,
        }
    }

    /// Whether a value of the kind may be given where one of the other is taken.
    fn is_accepted_as(self, wanted: ValueKind) -> bool {
        match wanted {
            // A handle may be shown as the number that it is.
            ValueKind::Number => self != ValueKind::Text,
            ValueKind::Code => matches!(self, ValueKind::Number | ValueKind::Code),
            ValueKind::Text | ValueKind::Array | ValueKind::Map => self == wanted,
        }
    }

    /// The kind in words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ValueKind::Text => "a string",
            ValueKind::Number => "a number",
            ValueKind::Code => "an error code",
            ValueKind::Array => "an array",
            ValueKind::Map => "a map",
        }
    }

    const fn module(self) -> Option<&'static str> {
        match self {
            ValueKind::Text => Some("str"),
            ValueKind::Array => Some("arr"),
            ValueKind::Map => Some("map"),
            ValueKind::Number | ValueKind::Code => None,
        }
    }
}

/// How often the kinds of locals are derived from one another.
const ROUNDS: usize = 8;

/// How deep an expression is looked into.
const MAX_NESTING: usize = 16;

/// Refuses a program that gives a value of one kind for one of another.
pub(crate) fn check(tree: &Tree<'_>, program: &Program<'_>, host: &Signatures) -> Result<(), Box<Fault>> {
    let raw = uses_raw_memory(tree.source);
    let last = program.funcs.len().saturating_sub(1);
    for (at, func) in program.funcs.iter().enumerate() {
        let kinds = LocalKinds::read(tree, program, host, func, raw);
        kinds.sequence(func.body)?;
        if at == last {
            kinds.returned(func.body)?;
        }
    }
    Ok(())
}

/// The kinds of the function that a node of a text stands in, also of a text that is not accepted.
pub(crate) fn around<'a, 's>(
    tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    host: &'a Signatures,
    node: NodeId,
) -> Option<LocalKinds<'a, 's>> {
    let func = program.funcs.iter().rev().find(|func| func.node.is_none_or(|list| tree.contains_node(list, node)))?;
    Some(LocalKinds::read(tree, program, host, func, uses_raw_memory(tree.source)))
}

/// Whether a text reads or writes memory by itself: then a number may be an address.
fn uses_raw_memory(source: &str) -> bool {
    ["load", "store", "memory.", "sys.alloc"].iter().any(|word| source.contains(word))
}

/// What is known of a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    One(ValueKind),
    /// Several kinds, or one that is not known.
    Mixed,
}

/// A value and its err as two names take them up.
#[derive(Clone, Copy)]
struct ValueErrPair {
    value: NodeId,
    err: NodeId,
    /// Whether the names are those of a `catch`.
    catch: bool,
}

/// The kinds of the locals of one function.
pub(crate) struct LocalKinds<'a, 's> {
    tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    host: &'a Signatures,
    locals: HashMap<&'s str, Known>,
    pairs: Vec<ValueErrPair>,
    /// Whether a number may be an address.
    raw: bool,
}

impl<'a, 's> LocalKinds<'a, 's> {
    fn read(tree: &'a Tree<'s>, program: &'a Program<'s>, host: &'a Signatures, func: &Func<'s>, raw: bool) -> Self {
        let mut kinds = LocalKinds { tree, program, host, locals: HashMap::new(), pairs: Vec::new(), raw };
        let params = func.locals.list.iter().filter(|local| local.param).filter_map(|local| local.name);
        kinds.locals.extend(params.map(|name| (name, Known::Mixed)));
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
        let known = kind.map_or(Known::Mixed, Known::One);
        self.locals
            .entry(name)
            .and_modify(|before| {
                if *before != known {
                    *before = Known::Mixed
                }
            })
            .or_insert(known);
    }

    /// Notes what sets locals in siblings and all below them.
    fn collect(&mut self, mut nodes: Nodes) {
        let tree = self.tree;
        // A call whose value and err lie on the stack, and the name that err was popped into.
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
                    self.set(name, signature.results.first().and_then(|result| ValueKind::of(result.ty)));
                    self.pairs.push(ValueErrPair { value: name, err: first, catch: false });
                    (pending, err) = (None, None);
                    continue;
                }
                _ => err = None,
            }
            self.assigned(node, &all);
            let mut inner = tree.children(node);
            inner.next(tree);
            self.collect(inner);
            pending = self.called(&all).filter(|(_, question, _)| !question).map(|(signature, ..)| signature);
            pending = pending.filter(|signature| signature.fallible() && signature.results.len() == 1);
        }
    }

    /// Notes what a form sets.
    fn assigned(&mut self, list: NodeId, all: &[NodeId]) {
        let tree = self.tree;
        match (tree.head(list), all) {
            (Some("let" | "set" | "local.set" | "local.tee"), [_, name, .., value]) => {
                let kind = self.kind(*value);
                // What is derived from a local that nothing is known of yet says nothing.
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

    /// Whether a value is that of a local which nothing was seen to set yet.
    fn is_undetermined(&self, node: NodeId) -> bool {
        let name = match items(self.tree, node).as_slice() {
            [_, name] if self.tree.head(node) == Some("local.get") => *name,
            _ => node,
        };
        // 0 is nothing of any kind.
        self.tree.atom(name) == Some("0") || self.tree.name(name).is_some_and(|name| !self.locals.contains_key(name))
    }

    /// The host function that a list calls, whether with a `?`, and the operands.
    fn called<'n>(&self, all: &'n [NodeId]) -> Option<(Signature, bool, &'n [NodeId])> {
        let (first, rest) = all.split_first()?;
        let head = self.tree.atom(*first)?;
        if head == "call" {
            let (callee, operands) = rest.split_first()?;
            let name = self.tree.name(*callee)?;
            if self.program.defined.contains_key(name) {
                return None;
            }
            let known = self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))?;
            return Some((*known, false, operands));
        }
        if !head.contains('.') || self.program.defined.contains_key(head) {
            return None;
        }
        let plain = head.strip_prefix('$').unwrap_or(head);
        let (name, question) = plain.strip_suffix('?').map_or((plain, false), |name| (name, true));
        self.host.get(name).map(|known| (*known, question, rest))
    }

    /// The kind of a call's value.
    fn result(&self, call: NodeId) -> Option<ValueKind> {
        let (signature, ..) = self.called(&items(self.tree, call))?;
        ValueKind::of(signature.results.first()?.ty)
    }

    /// The kind of a local, where it is certain.
    pub(crate) fn local(&self, name: &str) -> Option<ValueKind> {
        match self.locals.get(name)? {
            Known::One(kind) => Some(*kind),
            Known::Mixed => None,
        }
    }

    /// The kind of a value, where it is certain.
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
                // 0 is nothing of any kind.
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
            ("=" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or" | "not", _) => Some(ValueKind::Number),
            ("+" | "-" | "*" | "/" | "%", [_, operands @ ..]) => {
                // Each operand is looked at once: looking again at each level would double the work with each.
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

    /// Whether a node leaves a value that is dropped where no one takes it, so that a program that ends with it returns
    /// something else: an `(arg …)`, or a call of a host function by its name. A plain `call` leaves its value.
    fn is_spare(&self, node: NodeId) -> bool {
        match self.tree.head(node) {
            Some("call") | None => false,
            Some("arg") => true,
            Some(_) => self.called(&items(self.tree, node)).is_some(),
        }
    }

    /// Refuses a program that returns a string or a handle: what it returns is its error code.
    fn returned(&self, body: Nodes) -> Result<(), Box<Fault>> {
        let tree = self.tree;
        let (mut before, mut last, mut nodes) = (None, None, body);
        while let Some(node) = nodes.next(tree) {
            (before, last) = (last, Some(node));
        }
        let Some(last) = last else { return Ok(()) };
        if self.is_spare(last) {
            return Ok(());
        }
        // A name may be what an instruction before it is written with.
        let is_name = tree.name(last).is_some();
        let flat = before.and_then(|node| tree.atom(node)) == Some("local.get");
        if is_name && before.is_some_and(|node| tree.atom(node).is_some()) && !flat {
            return Ok(());
        }
        let value = match (tree.head(last), items(tree, last).as_slice()) {
            (Some("return"), [_, value]) => *value,
            _ => last,
        };
        let Some(kind) = self.kind(value).filter(|kind| !matches!(kind, ValueKind::Number | ValueKind::Code)) else {
            return Ok(());
        };
        let change = (kind == ValueKind::Text && !flat).then(|| match value == last {
            true => Change::wrap("(ret ", ")"),
            false => Change::Edits(vec![
                (tree.span(last).start..tree.span(value).start, "(ret ".to_owned()),
                (tree.span(value).end..tree.span(last).end, ")".to_owned()),
            ]),
        });
        Err(Fault::new(tree.span(last), messages::returned_value(kind, tree.text(value)).maybe_safe(change)))
    }

    /// Checks the operands of siblings and all below them.
    fn sequence(&self, mut nodes: Nodes) -> Result<(), Box<Fault>> {
        while let Some(node) = nodes.next(self.tree) {
            if self.tree.node(node).kind == NodeKind::List {
                self.list(node)?;
                let mut inner = self.tree.children(node);
                inner.next(self.tree);
                self.sequence(inner)?;
            }
        }
        Ok(())
    }

    fn list(&self, list: NodeId) -> Result<(), Box<Fault>> {
        let tree = self.tree;
        let all = items(tree, list);
        if let Some((signature, _, operands)) = self.called(&all) {
            return self.call(list, &signature, operands);
        }
        let head = tree.head(list).unwrap_or("");
        match (head, all.as_slice()) {
            ("out" | "ret" | "resv", [_, operand]) => self.takes(head, *operand, ValueKind::Text),
            ("check" | "fail", [_, operand]) => self.takes(head, *operand, ValueKind::Code),
            ("fail", [_, code, message]) => {
                self.takes(head, *code, ValueKind::Code)?;
                self.takes(head, *message, ValueKind::Text)
            }
            ("each", [_, _, array, ..]) => self.takes(head, *array, ValueKind::Array),
            ("arg", [_, number]) | ("argv", [_, number, _]) => self.takes(head, *number, ValueKind::Number),
            ("fmt", [_, template, values @ ..]) => self.holes(*template, values),
            _ => Ok(()),
        }
    }

    /// Checks the operand of a form.
    fn takes(&self, head: &str, operand: NodeId, wanted: ValueKind) -> Result<(), Box<Fault>> {
        match self.kind(operand).filter(|kind| !kind.is_accepted_as(wanted)) {
            Some(found) => Err(self.fault(head, operand, found, wanted, self.converted(operand, found, wanted))),
            None => Ok(()),
        }
    }

    fn call(&self, list: NodeId, signature: &Signature, operands: &[NodeId]) -> Result<(), Box<Fault>> {
        if operands.len() > signature.params.len() {
            return Ok(());
        }
        let kinds: Vec<Option<ValueKind>> = operands.iter().map(|operand| self.kind(*operand)).collect();
        let wanted: Vec<Option<ValueKind>> = signature.params.iter().map(|param| ValueKind::of(param.ty)).collect();
        let fits = |at: usize, given: Option<ValueKind>| match (given, wanted.get(at).copied().flatten()) {
            (Some(given), Some(wanted)) => given.is_accepted_as(wanted),
            _ => true,
        };
        let Some(bad) = (0..kinds.len()).find(|at| !fits(*at, kinds.get(*at).copied().flatten())) else {
            return Ok(());
        };
        let kind = |at: usize| kinds.get(at).copied().flatten();
        let (Some(operand), Some(found), Some(want)) =
            (operands.get(bad), kind(bad), wanted.get(bad).copied().flatten())
        else {
            return Ok(());
        };
        let name = format!("{}.{}", signature.module, signature.name);
        // Two operands in each other's place: of certain kinds both, and right then.
        let fits_swapped = |other: &usize| {
            *other != bad && kind(*other).is_some() && fits(*other, kind(bad)) && fits(bad, kind(*other))
        };
        let swaps: Vec<usize> = (0..kinds.len()).filter(fits_swapped).collect();
        if let ([other], Some(partner)) = (swaps.as_slice(), swaps.first().and_then(|at| operands.get(*at)))
            && kind(*other) != Some(found)
        {
            return Err(Fault::new(
                self.tree.span(list),
                messages::operands_swapped(signature).safe(rewrite::swap(self.tree, *operand, *partner)),
            ));
        }
        // The function of that name for values of the kind that is given.
        let same = found.module().and_then(|module| self.host.get(&format!("{module}.{}", signature.name)));
        if bad == 0
            && let Some(same) = same.filter(|same| same.params.len() == signature.params.len())
            && let Some(change) = self.renamed(list, same)
        {
            let message = messages::kind_mismatch(&name, self.tree.text(*operand), found, want);
            let other = format!("{}.{}", same.module, same.name);
            return Err(Fault::new(self.tree.span(*operand), message.use_function(&other).safe(change)));
        }
        Err(self.fault(&name, *operand, found, want, self.converted(*operand, found, want)))
    }

    /// Another host function in the place of the one that a list calls.
    fn renamed(&self, list: NodeId, known: &Signature) -> Option<Change> {
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

    /// A value as one of another kind.
    fn converted(&self, operand: NodeId, found: ValueKind, wanted: ValueKind) -> Option<Change> {
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
            (ValueKind::Map, ValueKind::Array) if has("map.keys") => Some(Change::wrap("(map.keys ", ")")),
            (ValueKind::Text, ValueKind::Number) if has("str.to_int") => Some(Change::wrap("(str.to_int? ", ")")),
            _ => None,
        }
    }

    /// Says that a value is of the wrong kind; or, where two names took a value and its err in the wrong order, that.
    fn fault(
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
        let pair = self.pairs.iter().find(mixed_up).filter(|pair| !self.is_used_rightly(pair));
        if let Some(pair) = pair {
            let (value, err) = (tree.text(pair.value), tree.text(pair.err));
            let message = messages::names_swapped(value, err, pair.catch);
            let at = if pair.catch { pair.value } else { pair.err };
            return Fault::new(tree.span(at), message.safe(rewrite::swap(tree, pair.value, pair.err)));
        }
        let message = messages::kind_mismatch(head, tree.text(operand), found, wanted).maybe_safe(change);
        Fault::new(tree.span(operand), message)
    }

    /// Whether one of the names of a value and its err is used as what it holds.
    fn is_used_rightly(&self, pair: &ValueErrPair) -> bool {
        let tree = self.tree;
        let named = |node: NodeId, name: NodeId| {
            let node = match items(tree, node).as_slice() {
                [_, inner] if tree.head(node) == Some("local.get") => *inner,
                _ => node,
            };
            tree.name(node).is_some() && tree.name(node) == tree.name(name)
        };
        for list in (0..tree.len()).map(NodeId) {
            for (operand, wanted) in self.wants(list) {
                let right = match wanted {
                    ValueKind::Code => named(operand, pair.err),
                    wanted => {
                        named(operand, pair.value) && self.kind(operand).is_some_and(|kind| kind.is_accepted_as(wanted))
                    }
                };
                if right {
                    return true;
                }
            }
        }
        false
    }

    /// The operands of a list whose kind it fixes.
    fn wants(&self, list: NodeId) -> Vec<(NodeId, ValueKind)> {
        let all = items(self.tree, list);
        if let Some((signature, _, operands)) = self.called(&all) {
            let wanted = signature.params.iter().map(|param| ValueKind::of(param.ty));
            return operands.iter().zip(wanted).filter_map(|(node, kind)| Some((*node, kind?))).collect();
        }
        match (self.tree.head(list), all.as_slice()) {
            (Some("out" | "ret" | "resv"), [_, operand]) => vec![(*operand, ValueKind::Text)],
            (Some("check" | "fail"), [_, operand]) => vec![(*operand, ValueKind::Code)],
            (Some("fail"), [_, code, message]) => vec![(*code, ValueKind::Code), (*message, ValueKind::Text)],
            (Some("each"), [_, _, array, ..]) => vec![(*array, ValueKind::Array)],
            _ => Vec::new(),
        }
    }

    /// Checks the values of a `fmt` against its holes.
    fn holes(&self, template: NodeId, values: &[NodeId]) -> Result<(), Box<Fault>> {
        let holes = holes(self.tree, template);
        if holes.len() != values.len() {
            return Ok(());
        }
        for ((span, hole), value) in holes.into_iter().zip(values) {
            let (wanted, other) = match hole {
                "" => (ValueKind::Text, "{i}"),
                "i" => (ValueKind::Number, "{}"),
                _ => continue,
            };
            let Some(found) = self.kind(*value).filter(|kind| !kind.is_accepted_as(wanted)) else { continue };
            let fits = matches!(
                (found, wanted),
                (ValueKind::Number | ValueKind::Code, ValueKind::Text) | (ValueKind::Text, ValueKind::Number)
            );
            let change = fits.then(|| Change::Edits(vec![(span, other.to_owned())]));
            let fault = self.fault("fmt", *value, found, wanted, change);
            return Err(Fault::new(
                fault.span,
                if fits { fault.message.use_placeholder(other) } else { fault.message },
            ));
        }
        Ok(())
    }
}

/// The holes of a template: the place of each, braces included, and what stands in it.
pub(crate) fn holes<'s>(tree: &Tree<'s>, template: NodeId) -> Vec<(std::ops::Range<usize>, &'s str)> {
    let (text, start) = (tree.text(template), tree.span(template).start);
    let mut holes = Vec::new();
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|found| at + found) {
        let rest = text.get(open + 1..).unwrap_or("");
        if rest.starts_with('{') {
            at = open + 2;
            continue;
        }
        let Some(end) = rest.find('}') else { break };
        holes.push((start + open..start + open + end + 2, rest.get(..end).unwrap_or("")));
        at = open + end + 2;
    }
    holes
}
