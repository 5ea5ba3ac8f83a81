//! What values mean: strings, numbers, codes and handles are all i32, so only their sorts tell one from the other.
//!
//! A local has a sort where all that sets it has that one. Where a value of one sort is given for another, for certain, the
//! text is refused: it would read a number as an address. What is not certain is left alone, and so are numbers in programs
//! that lay out memory themselves.

use std::collections::HashMap;

use super::fix::Change;
use super::forms::index;
use super::forms::value::number_type;
use super::ops::Val;
use super::program::{Func, Program};
use super::rewrite::{self, items};
use super::tree::{Kind, NodeId, Nodes, Tree};
use super::wording::{self, Fault};
use crate::{Code, Signature, Signatures, Ty};

/// What a value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Text,
    Number,
    Code,
    Array,
    Map,
}

impl Sort {
    fn of(ty: Ty) -> Option<Sort> {
        match ty {
            Ty::Str | Ty::OptStr | Ty::Bytes | Ty::OptBytes => Some(Sort::Text),
            Ty::Int | Ty::Bool => Some(Sort::Number),
            Ty::Arr => Some(Sort::Array),
            Ty::Map => Some(Sort::Map),
            Ty::Long | Ty::Float | Ty::Addr | Ty::Any => None,
        }
    }

    /// Whether a value of the sort may be given where one of the other is taken.
    fn serves(self, wanted: Sort) -> bool {
        match wanted {
            // A handle may be shown as the number that it is.
            Sort::Number => self != Sort::Text,
            Sort::Code => matches!(self, Sort::Number | Sort::Code),
            Sort::Text | Sort::Array | Sort::Map => self == wanted,
        }
    }

    /// The sort in words.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Sort::Text => "a string",
            Sort::Number => "a number",
            Sort::Code => "an error code",
            Sort::Array => "an array",
            Sort::Map => "a map",
        }
    }

    const fn module(self) -> Option<&'static str> {
        match self {
            Sort::Text => Some("str"),
            Sort::Array => Some("arr"),
            Sort::Map => Some("map"),
            Sort::Number | Sort::Code => None,
        }
    }
}

/// How often the sorts of locals are derived from one another.
const ROUNDS: usize = 8;

/// How deep an expression is looked into.
const MAX_NESTING: usize = 16;

/// Refuses a program that gives a value of one sort for one of another.
pub(super) fn check(tree: &Tree<'_>, program: &Program<'_>, host: &Signatures) -> Result<(), Box<Fault>> {
    let raw = is_raw(tree.source);
    let last = program.funcs.len().saturating_sub(1);
    for (at, func) in program.funcs.iter().enumerate() {
        let sorts = Sorts::read(tree, program, host, func, raw);
        sorts.sequence(func.body)?;
        if at == last {
            sorts.returned(func.body)?;
        }
    }
    Ok(())
}

/// The sorts of the function that a node of a text stands in, also of a text that is not accepted.
pub(super) fn around<'a, 's>(
    tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    host: &'a Signatures,
    node: NodeId,
) -> Option<Sorts<'a, 's>> {
    let func = program.funcs.iter().rev().find(|func| func.node.is_none_or(|list| tree.holds(list, node)))?;
    Some(Sorts::read(tree, program, host, func, is_raw(tree.source)))
}

/// Whether a text reads or writes memory by itself: then a number may be an address.
fn is_raw(source: &str) -> bool {
    ["load", "store", "memory.", "sys.alloc"].iter().any(|word| source.contains(word))
}

/// What is known of a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    One(Sort),
    /// Several sorts, or one that is not known.
    Mixed,
}

/// A value and its err as two names take them up.
#[derive(Clone, Copy)]
struct Pair {
    value: NodeId,
    err: NodeId,
    /// Whether the names are those of a `catch`.
    catch: bool,
}

/// The sorts of the locals of one function.
pub(super) struct Sorts<'a, 's> {
    tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    host: &'a Signatures,
    locals: HashMap<&'s str, Known>,
    pairs: Vec<Pair>,
    /// Whether a number may be an address.
    raw: bool,
}

impl<'a, 's> Sorts<'a, 's> {
    fn read(tree: &'a Tree<'s>, program: &'a Program<'s>, host: &'a Signatures, func: &Func<'s>, raw: bool) -> Self {
        let mut sorts = Sorts { tree, program, host, locals: HashMap::new(), pairs: Vec::new(), raw };
        let params = func.locals.list.iter().filter(|local| local.param).filter_map(|local| local.name);
        sorts.locals.extend(params.map(|name| (name, Known::Mixed)));
        for round in 0..=ROUNDS {
            let before = sorts.locals.clone();
            sorts.pairs.clear();
            sorts.collect(func.body);
            if before == sorts.locals {
                return sorts;
            }
            if round == ROUNDS {
                sorts.locals.clear();
            }
        }
        sorts
    }

    fn set(&mut self, name: NodeId, sort: Option<Sort>) {
        let Some(name) = self.tree.name(name) else { return };
        let known = sort.map_or(Known::Mixed, Known::One);
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
            if tree.node(node).kind != Kind::List {
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
                    self.set(name, Some(Sort::Code));
                    err = Some(name);
                    continue;
                }
                (Some(signature), Some(first), Some(name)) => {
                    self.set(name, signature.results.first().and_then(|result| Sort::of(result.ty)));
                    self.pairs.push(Pair { value: name, err: first, catch: false });
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
                let sort = self.sort(*value);
                // What is derived from a local that nothing is known of yet says nothing.
                let silent = sort.is_none() && self.waits(*value);
                if !silent {
                    self.set(*name, sort);
                }
            }
            (Some("local.set" | "local.tee"), [_, name]) => self.set(*name, None),
            (Some("argv"), [_, _, name]) => self.set(*name, Some(Sort::Text)),
            (Some("each"), [_, name, ..]) => self.set(*name, Some(Sort::Text)),
            (Some("for"), [_, name, ..]) => self.set(*name, Some(Sort::Number)),
            (Some("catch"), [_, value, err, call]) => {
                let sort = self.result(*call);
                self.set(*value, sort);
                self.set(*err, Some(Sort::Code));
                self.pairs.push(Pair { value: *value, err: *err, catch: true });
            }
            (Some("catch"), [_, err, _]) => self.set(*err, Some(Sort::Code)),
            _ => {}
        }
    }

    /// Whether a value is that of a local which nothing was seen to set yet.
    fn waits(&self, node: NodeId) -> bool {
        let name = match items(self.tree, node).as_slice() {
            [_, name] if self.tree.head(node) == Some("local.get") => *name,
            _ => node,
        };
        // 0 is nothing of any sort.
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

    /// The sort of a call's value.
    fn result(&self, call: NodeId) -> Option<Sort> {
        let (signature, ..) = self.called(&items(self.tree, call))?;
        Sort::of(signature.results.first()?.ty)
    }

    /// The sort of a local, where it is certain.
    pub(super) fn local(&self, name: &str) -> Option<Sort> {
        match self.locals.get(name)? {
            Known::One(sort) => Some(*sort),
            Known::Mixed => None,
        }
    }

    /// The sort of a value, where it is certain.
    pub(super) fn sort(&self, node: NodeId) -> Option<Sort> {
        self.sort_within(node, MAX_NESTING)
    }

    fn sort_within(&self, node: NodeId, depth: usize) -> Option<Sort> {
        let tree = self.tree;
        let depth = depth.checked_sub(1)?;
        match tree.node(node).kind {
            Kind::Text | Kind::Block => return Some(Sort::Text),
            Kind::Atom => {
                let text = tree.text(node);
                if text.starts_with('$') {
                    return self.local(text);
                }
                if Code::from_name(text).is_some() {
                    return Some(Sort::Code);
                }
                // 0 is nothing of any sort.
                let number = number_type(text) == Some(Val::I32) && index(text) != Some(0);
                return (number && !self.raw).then_some(Sort::Number);
            }
            Kind::List => {}
        }
        let all = items(tree, node);
        if let Some((signature, question, _)) = self.called(&all) {
            return match (signature.results, signature.fallible() && !question) {
                ([one], false) => Sort::of(one.ty),
                ([], true) => Some(Sort::Code),
                _ => None,
            };
        }
        match (tree.head(node)?, all.as_slice()) {
            ("local.get", [_, name]) => self.sort(*name),
            ("local.tee", [_, _, value]) => self.sort_within(*value, depth),
            ("arg" | "fmt", _) => Some(Sort::Text),
            ("default", [_, call, _]) => self.result(*call),
            ("=" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or" | "not", _) => Some(Sort::Number),
            ("+" | "-" | "*" | "/" | "%", [_, operands @ ..]) => {
                // Each operand is looked at once: looking again at each level would double the work with each.
                let mut any = false;
                for node in operands {
                    let number = self.sort_within(*node, depth) == Some(Sort::Number)
                        || tree.atom(*node).and_then(number_type) == Some(Val::I32);
                    any |= number;
                    if !number && !self.waits(*node) {
                        return None;
                    }
                }
                (any && !self.raw).then_some(Sort::Number)
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
        let Some(sort) = self.sort(value).filter(|sort| !matches!(sort, Sort::Number | Sort::Code)) else {
            return Ok(());
        };
        let change = (sort == Sort::Text && !flat).then(|| match value == last {
            true => Change::around("(ret ", ")"),
            false => Change::Edits(vec![
                (tree.span(last).start..tree.span(value).start, "(ret ".to_owned()),
                (tree.span(value).end..tree.span(last).end, ")".to_owned()),
            ]),
        });
        Err(Fault::new(tree.span(last), wording::returned_value(sort, tree.text(value)).perhaps(change)))
    }

    /// Checks the operands of siblings and all below them.
    fn sequence(&self, mut nodes: Nodes) -> Result<(), Box<Fault>> {
        while let Some(node) = nodes.next(self.tree) {
            if self.tree.node(node).kind == Kind::List {
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
            ("out" | "ret" | "resv", [_, operand]) => self.takes(head, *operand, Sort::Text),
            ("check" | "fail", [_, operand]) => self.takes(head, *operand, Sort::Code),
            ("fail", [_, code, said]) => {
                self.takes(head, *code, Sort::Code)?;
                self.takes(head, *said, Sort::Text)
            }
            ("each", [_, _, array, ..]) => self.takes(head, *array, Sort::Array),
            ("arg", [_, number]) | ("argv", [_, number, _]) => self.takes(head, *number, Sort::Number),
            ("fmt", [_, template, values @ ..]) => self.holes(*template, values),
            _ => Ok(()),
        }
    }

    /// Checks the operand of a form.
    fn takes(&self, head: &str, operand: NodeId, wanted: Sort) -> Result<(), Box<Fault>> {
        match self.sort(operand).filter(|sort| !sort.serves(wanted)) {
            Some(found) => Err(self.fault(head, operand, found, wanted, self.converted(operand, found, wanted))),
            None => Ok(()),
        }
    }

    fn call(&self, list: NodeId, signature: &Signature, operands: &[NodeId]) -> Result<(), Box<Fault>> {
        if operands.len() > signature.params.len() {
            return Ok(());
        }
        let sorts: Vec<Option<Sort>> = operands.iter().map(|operand| self.sort(*operand)).collect();
        let wanted: Vec<Option<Sort>> = signature.params.iter().map(|param| Sort::of(param.ty)).collect();
        let fits = |at: usize, given: Option<Sort>| match (given, wanted.get(at).copied().flatten()) {
            (Some(given), Some(wanted)) => given.serves(wanted),
            _ => true,
        };
        let Some(bad) = (0..sorts.len()).find(|at| !fits(*at, sorts.get(*at).copied().flatten())) else {
            return Ok(());
        };
        let sort = |at: usize| sorts.get(at).copied().flatten();
        let (Some(operand), Some(found), Some(want)) =
            (operands.get(bad), sort(bad), wanted.get(bad).copied().flatten())
        else {
            return Ok(());
        };
        let name = format!("{}.{}", signature.module, signature.name);
        // Two operands in each other's place: of certain sorts both, and right then.
        let fits_swapped = |other: &usize| {
            *other != bad && sort(*other).is_some() && fits(*other, sort(bad)) && fits(bad, sort(*other))
        };
        let swaps: Vec<usize> = (0..sorts.len()).filter(fits_swapped).collect();
        if let ([other], Some(partner)) = (swaps.as_slice(), swaps.first().and_then(|at| operands.get(*at)))
            && sort(*other) != Some(found)
        {
            return Err(Fault::new(
                self.tree.span(list),
                wording::operands_swapped(signature).safe(rewrite::swap(self.tree, *operand, *partner)),
            ));
        }
        // The function of that name for values of the sort that is given.
        let same = found.module().and_then(|module| self.host.get(&format!("{module}.{}", signature.name)));
        if bad == 0
            && let Some(same) = same.filter(|same| same.params.len() == signature.params.len())
            && let Some(change) = self.renamed(list, same)
        {
            let said = wording::sort_mismatch(&name, self.tree.text(*operand), found, want);
            let other = format!("{}.{}", same.module, same.name);
            return Err(Fault::new(self.tree.span(*operand), said.of_other(&other).safe(change)));
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
        rewrite::head(tree, list, format!("{name}{question}"))
    }

    /// A value as one of another sort.
    fn converted(&self, operand: NodeId, found: Sort, wanted: Sort) -> Option<Change> {
        let tree = self.tree;
        let has = |name: &str| self.host.get(name).is_some();
        match (found, wanted) {
            (Sort::Number, Sort::Text) if tree.atom(operand).is_some_and(|text| number_type(text).is_some()) => {
                Some(Change::Instead(format!("\"{}\"", tree.text(operand))))
            }
            (Sort::Number | Sort::Code, Sort::Text) if has("str.from_int") => {
                Some(Change::around("(str.from_int ", ")"))
            }
            (Sort::Text, Sort::Number) if tree.node(operand).kind != Kind::List && tree.name(operand).is_none() => {
                let text = tree.text(operand).trim_matches('"').trim();
                (number_type(text) == Some(Val::I32)).then(|| Change::Instead(text.to_owned()))
            }
            (Sort::Text, Sort::Code) => {
                let text = tree.text(operand).trim_matches('"');
                Code::from_name(text).map(|_| Change::Instead(text.to_owned()))
            }
            (Sort::Map, Sort::Array) if has("map.keys") => Some(Change::around("(map.keys ", ")")),
            (Sort::Text, Sort::Number) if has("str.to_int") => Some(Change::around("(str.to_int? ", ")")),
            _ => None,
        }
    }

    /// Says that a value is of the wrong sort; or, where two names took a value and its err in the wrong order, that.
    fn fault(&self, head: &str, operand: NodeId, found: Sort, wanted: Sort, change: Option<Change>) -> Box<Fault> {
        let tree = self.tree;
        let name = match items(tree, operand).as_slice() {
            [_, name] if tree.head(operand) == Some("local.get") => *name,
            _ => operand,
        };
        let is = |node: NodeId| tree.name(name).is_some() && tree.name(node) == tree.name(name);
        let mixed_up = |pair: &&Pair| match (found, wanted) {
            (Sort::Code, Sort::Text | Sort::Array | Sort::Map) => is(pair.err),
            (_, Sort::Code) => is(pair.value),
            _ => false,
        };
        let pair = self.pairs.iter().find(mixed_up).filter(|pair| !self.is_used_rightly(pair));
        if let Some(pair) = pair {
            let (value, err) = (tree.text(pair.value), tree.text(pair.err));
            let words = wording::names_swapped(value, err, pair.catch);
            let at = if pair.catch { pair.value } else { pair.err };
            return Fault::new(tree.span(at), words.safe(rewrite::swap(tree, pair.value, pair.err)));
        }
        let words = wording::sort_mismatch(head, tree.text(operand), found, wanted).perhaps(change);
        Fault::new(tree.span(operand), words)
    }

    /// Whether one of the names of a value and its err is used as what it holds.
    fn is_used_rightly(&self, pair: &Pair) -> bool {
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
                    Sort::Code => named(operand, pair.err),
                    wanted => named(operand, pair.value) && self.sort(operand).is_some_and(|sort| sort.serves(wanted)),
                };
                if right {
                    return true;
                }
            }
        }
        false
    }

    /// The operands of a list whose sort it fixes.
    fn wants(&self, list: NodeId) -> Vec<(NodeId, Sort)> {
        let all = items(self.tree, list);
        if let Some((signature, _, operands)) = self.called(&all) {
            let wanted = signature.params.iter().map(|param| Sort::of(param.ty));
            return operands.iter().zip(wanted).filter_map(|(node, sort)| Some((*node, sort?))).collect();
        }
        match (self.tree.head(list), all.as_slice()) {
            (Some("out" | "ret" | "resv"), [_, operand]) => vec![(*operand, Sort::Text)],
            (Some("check" | "fail"), [_, operand]) => vec![(*operand, Sort::Code)],
            (Some("fail"), [_, code, said]) => vec![(*code, Sort::Code), (*said, Sort::Text)],
            (Some("each"), [_, _, array, ..]) => vec![(*array, Sort::Array)],
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
                "" => (Sort::Text, "{i}"),
                "i" => (Sort::Number, "{}"),
                _ => continue,
            };
            let Some(found) = self.sort(*value).filter(|sort| !sort.serves(wanted)) else { continue };
            let fits = matches!((found, wanted), (Sort::Number | Sort::Code, Sort::Text) | (Sort::Text, Sort::Number));
            let change = fits.then(|| Change::Edits(vec![(span, other.to_owned())]));
            let fault = self.fault("fmt", *value, found, wanted, change);
            return Err(Fault::new(fault.span, if fits { fault.words.of_hole(other) } else { fault.words }));
        }
        Ok(())
    }
}

/// The holes of a template: the place of each, braces included, and what stands in it.
pub(super) fn holes<'s>(tree: &Tree<'s>, template: NodeId) -> Vec<(std::ops::Range<usize>, &'s str)> {
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
