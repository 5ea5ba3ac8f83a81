//! The module text of a program: writing in one pass, with the place in the source of every piece.
//!
//! What a node is written as follows from its head: a form's expansion (`forms`), a call of a function by its name
//! (`forms::call`), or the same instruction in WAT (`plain`).

use std::collections::HashSet;
use std::fmt::Write;

use super::diagnostic::clamp;
use super::forms;
use super::habits;
use super::literal::{self, StaticData};
use super::locals::{Local, Locals};
use super::ops::Val;
use super::out::{Flow, Out, Place};
use super::plain::Ends;
use super::program::{Func, Program};
use super::tree::{Kind, NodeId, Tree};
use super::types::Types;
use super::wording::{self, Fault};
use crate::{Signature, Signatures};

/// What writing a piece gives.
pub(super) type Emitted<T = Out> = Result<T, Box<Fault>>;

/// The deepest nesting of what is written: expansions nest deeper than the forms that they come from.
const MAX_WRITTEN_DEPTH: usize = 640;

/// The longest text of a module, in bytes: a text of the longest, with each byte of it written as an escape of three, and as much again.
const MAX_WRITTEN: usize = 4 << 20;

/// How deep lines are indented at most, in steps: a deeper line costs no more.
const MAX_INDENT: usize = 32;

/// Writes WAT for nodes of the tree.
pub(super) struct Emitter<'a, 's> {
    pub(super) tree: &'a Tree<'s>,
    pub(super) program: &'a Program<'s>,
    pub(super) host: &'a Signatures,
    pub(super) types: Types<'s>,
    pub(super) out: String,
    pub(super) data: StaticData<'s>,
    pub(super) imports: Vec<Signature>,
    pub(super) warnings: Vec<Fault>,
    /// Where each piece of `out` comes from, where that is asked for.
    pub(super) marks: Option<Vec<(u32, NodeId)>>,
    /// How deep the lines are indented.
    pub(super) depth: usize,
    /// How many flat blocks are open.
    pub(super) flat: usize,
    /// The locals of the function being written.
    pub(super) locals: Locals<'s>,
    /// The loops of forms around, innermost last.
    pub(super) loops: Vec<Loop>,
    /// What the names that expansions make begin with: no name of the source does.
    prefix: String,
    /// Locals that expansions keep values in: each name's number and type.
    hidden: Vec<(&'static str, usize, Val)>,
    /// How many names expansions have made in this function.
    names: usize,
    /// Whether an expansion keeps an error code.
    code: bool,
    /// Whether the function being written is the program.
    pub(super) run: bool,
    /// The name of the function being written, where it cannot return a code.
    no_code: Option<&'s str>,
}

/// The labels of a loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// The number of the label that leaves it.
    pub(super) leave: usize,
    /// The number of the label that goes on with the next round.
    pub(super) next: usize,
}

/// A function that was written.
pub(super) struct Written {
    /// How the body ends.
    pub(super) flow: Flow,
    /// Where in `out` more instructions may be added.
    pub(super) end: usize,
}

impl<'a, 's> Emitter<'a, 's> {
    /// A writer with nothing written; `marked` asks for marks.
    pub(super) fn new(tree: &'a Tree<'s>, program: &'a Program<'s>, host: &'a Signatures, marked: bool) -> Self {
        Emitter {
            tree,
            program,
            host,
            types: Types::read(tree, program),
            out: String::with_capacity(tree.source.len() * 3),
            data: StaticData::default(),
            imports: Vec::new(),
            warnings: Vec::new(),
            marks: marked.then(Vec::new),
            depth: 1,
            flat: 0,
            locals: Locals::default(),
            loops: Vec::new(),
            prefix: made_prefix(tree.source),
            hidden: Vec::new(),
            names: 0,
            code: false,
            run: false,
            no_code: None,
        }
    }

    /// Writes text that comes from a node.
    pub(super) fn put(&mut self, from: NodeId, text: &str) {
        if let Some(marks) = &mut self.marks {
            marks.push((clamp(self.out.len()), from));
        }
        self.out.push_str(text);
    }

    /// Puts text into the place of `removed` bytes at `at`, which are part of one piece.
    pub(super) fn splice(&mut self, at: usize, removed: usize, text: &str) {
        if self.out.get(at..at + removed).is_none() {
            return;
        }
        self.out.replace_range(at..at + removed, text);
        let moved = |start: u32| if removed == 0 { start as usize >= at } else { start as usize > at };
        for (start, _) in self.marks.iter_mut().flatten().rev().take_while(|(start, _)| moved(*start)) {
            *start = clamp((*start as usize + text.len()).saturating_sub(removed));
        }
    }

    /// Puts text that comes from a node in at `at`.
    pub(super) fn insert(&mut self, from: NodeId, at: usize, text: &str) {
        self.splice(at, 0, text);
        if let Some(marks) = &mut self.marks {
            let nth = marks.partition_point(|(start, _)| (*start as usize) < at);
            marks.insert(nth, (clamp(at), from));
        }
    }

    /// Puts what was written since `at` into a form that `open` begins.
    pub(super) fn wrap(&mut self, from: NodeId, at: usize, open: &str) {
        self.insert(from, at, open);
        self.put(from, ")");
    }

    /// A name that no name of the source is, for a local or a label of an expansion.
    pub(super) fn made(&self, name: &str, number: usize) -> String {
        format!("{}{name}{number}", self.prefix)
    }

    /// A number that no other made name of this function has.
    pub(super) fn number(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Declares a local for an expansion and gives its name.
    pub(super) fn hide(&mut self, name: &'static str, number: usize, ty: Val) -> String {
        self.hidden.push((name, number, ty));
        self.made(name, number)
    }

    /// The name of the local that expansions keep an error code in.
    fn code_name(&mut self) -> String {
        self.code = true;
        format!("{}err", self.prefix)
    }

    /// Writes that the function returns the code on top of the stack where it is not 0.
    pub(super) fn leave_on_error(&mut self, form: NodeId) -> Emitted<()> {
        self.returns_code(form)?;
        let code = self.code_name();
        self.put(form, &format!("(if (local.tee {code}) (then (return (local.get {code}))))"));
        Ok(())
    }

    /// Checks that the function around a form can return a code, as the form does.
    pub(super) fn returns_code(&self, form: NodeId) -> Emitted<()> {
        let Some(func) = self.no_code else { return Ok(()) };
        let name = self.tree.head(form).unwrap_or("");
        Err(Fault::new(self.tree.span(form), wording::no_code_result(name, func)))
    }

    /// Declares a local that a form sets; one that there is must have the type.
    pub(super) fn declare(&mut self, name: &'s str, ty: Val, node: NodeId) -> Emitted<()> {
        if self.locals.get(name).is_some_and(|known| known.param && known.ty == ty.name()) {
            return Ok(());
        }
        self.locals.declare(self.tree, Local { name: Some(name), ty: ty.name(), node, param: false })
    }

    /// The type of a local of the function being written.
    pub(super) fn local(&self, name: &str) -> Option<Val> {
        self.locals.get(name).map(|local| Val::from_wat(local.ty).unwrap_or(Val::Any))
    }

    /// Writes `(call $host.function`, without the parenthesis that closes it.
    pub(super) fn open_call(&mut self, from: NodeId, full_name: &str) -> Emitted<()> {
        let host = self.host;
        let Some(signature) = host.get(full_name) else {
            return Err(Fault::new(self.tree.span(from), wording::unknown_function(full_name, "", host, None)));
        };
        self.import(signature);
        self.put(from, "(call $");
        self.out.push_str(full_name);
        Ok(())
    }

    pub(super) fn import(&mut self, signature: &Signature) {
        let same = |known: &Signature| known.name == signature.name && known.module == signature.module;
        if !self.imports.iter().any(same) {
            self.imports.push(*signature);
        }
    }

    /// Writes a node: a list, a literal's address, or a name's or number's value. What is none of these is written
    /// as it stands, for the reader of WAT to refuse.
    pub(super) fn node(&mut self, node: NodeId, place: Place) -> Emitted {
        match self.tree.node(node).kind {
            Kind::List => self.list(node, place),
            Kind::Text | Kind::Block => {
                self.literal(node)?;
                Ok(Out::one(Val::I32))
            }
            Kind::Atom => match self.bare(node, place.want())? {
                Some(out) => Ok(out),
                None => {
                    self.put(node, self.tree.text(node));
                    Ok(Out::UNKNOWN)
                }
            },
        }
    }

    /// Writes a list.
    pub(super) fn list(&mut self, list: NodeId, place: Place) -> Emitted {
        if self.out.len() > MAX_WRITTEN {
            return Err(Fault::new(self.tree.span(list), wording::module_too_long(MAX_WRITTEN)));
        }
        let Some(head) = self.tree.head(list) else {
            return match habits::foreign(self.tree, list, self.host) {
                Some(fault) => Err(fault),
                None => self.raw(list),
            };
        };
        if let Some(form) = forms::form(head) {
            return (form.expand)(self, list, place);
        }
        if let Some(called) = forms::call::called(self, head) {
            return forms::call::expand(self, list, &called);
        }
        self.plain(list, head, place)
    }

    /// Writes the address of a literal.
    pub(super) fn literal(&mut self, node: NodeId) -> Emitted<()> {
        let value = self.text_value(node)?;
        let address = self.data.address(value);
        self.put(node, &format!("(i32.const {address})"));
        Ok(())
    }

    /// The value of a literal.
    pub(super) fn text_value(&mut self, node: NodeId) -> Emitted<std::borrow::Cow<'s, [u8]>> {
        let block = self.tree.node(node).kind == Kind::Block;
        let quotes = if block { 3 } else { 1 };
        let text = self.tree.text(node);
        let inner = text.get(quotes..text.len().saturating_sub(quotes)).unwrap_or("");
        let value = literal::decode(inner, self.tree.span(node).start + quotes, block)?;
        if std::str::from_utf8(&value).is_err() {
            self.warnings.push(*Fault::new(self.tree.span(node), wording::not_utf8()));
        }
        Ok(value)
    }

    /// Writes a function.
    pub(super) fn func(&mut self, func: &Func<'s>, at: usize, run: bool) -> Emitted<Written> {
        let origin = func.node.unwrap_or(NodeId(0));
        self.line();
        self.put(origin, "(func");
        if let Some(name) = func.name.or(run.then_some("$run")) {
            self.out.push(' ');
            self.out.push_str(name);
        }
        if run {
            self.out.push_str(" (export \"run\") (result i32)");
        }
        for node in &func.header {
            self.out.push(' ');
            self.raw(*node)?;
        }
        let head_end = self.out.len();
        self.locals = func.locals.clone();
        (self.hidden, self.names, self.code) = (Vec::new(), 0, false);
        let results = self.types.funcs.get(at).cloned().flatten().map(|ty| ty.results);
        let has_code = results.as_ref().is_none_or(|results| results == &[Val::I32]);
        (self.run, self.no_code) = (run, (!has_code).then_some(func.name.unwrap_or("(func …)")));
        self.depth += 1;
        self.line();
        let mut body = func.body;
        let ends = match results.as_deref() {
            _ if run => Ends::Bare,
            Some([one]) => Ends::Value(Some(*one)),
            _ => Ends::Bare,
        };
        let flow = self.sequence(&mut body, ends)?.flow;
        self.depth -= 1;
        let declarations = self.declarations();
        self.splice(head_end, 0, &declarations);
        let end = self.out.len();
        self.out.push_str(")\n");
        Ok(Written { flow, end })
    }

    /// The declarations of the function's locals, a line each.
    fn declarations(&self) -> String {
        let mut text = String::new();
        for local in self.locals.list.iter().filter(|local| !local.param) {
            let _ = match local.name {
                Some(name) => write!(text, "\n    (local {name} {})", local.ty),
                None => write!(text, "\n    (local {})", local.ty),
            };
        }
        if self.code {
            let _ = write!(text, "\n    (local {}err i32)", self.prefix);
        }
        for (name, number, ty) in &self.hidden {
            let _ = write!(text, "\n    (local {} {})", self.made(name, *number), ty.name());
        }
        text
    }

    /// Begins something that nests in what is written.
    pub(super) fn enter(&mut self, at: NodeId) -> Emitted<()> {
        self.depth += 1;
        if self.depth > MAX_WRITTEN_DEPTH {
            return Err(Fault::new(self.tree.span(at), wording::too_deep(MAX_WRITTEN_DEPTH)));
        }
        Ok(())
    }

    /// Begins a line.
    pub(super) fn line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        for _ in 0..self.depth.min(MAX_INDENT) {
            self.out.push_str("  ");
        }
    }

    /// Separates a node from what stands before it: as a line where the author began one.
    pub(super) fn gap(&mut self, node: NodeId) {
        if self.tree.node(node).fresh {
            self.line();
        } else {
            self.blank();
        }
    }

    /// Separates what comes from what stands before it.
    pub(super) fn blank(&mut self) {
        if !self.out.ends_with(['(', ' ', '\n']) {
            self.out.push(' ');
        }
    }
}

/// What no name of the source begins with that an expansion makes: `$.`, and a number where names of the source begin so.
fn made_prefix(source: &str) -> String {
    let digits = |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = |rest: &str| rest.get(..digits(rest)).and_then(|digits| digits.parse::<u32>().ok());
    let taken: HashSet<Option<u32>> =
        source.match_indices("$.").map(|(at, dot)| after(source.get(at + dot.len()..).unwrap_or(""))).collect();
    if taken.is_empty() {
        return "$.".to_owned();
    }
    // One of so many numbers is free, and the dot behind it ends it.
    let free = (0..).find(|number| !taken.contains(&Some(*number))).unwrap_or_default();
    format!("$.{free}.")
}
