//! The module text of a program: writing in one pass, with the context in the source of every piece.
//!
//! What a node is written as follows from its head: a form's expansion (`forms`), a call of a function by its name
//! (`forms::call`), or the same instruction in WAT (`plain`).

pub(crate) mod flow;
pub(crate) mod instruction;
pub(crate) mod stack_effect;

use std::collections::HashSet;
use std::fmt::Write;

use crate::diagnostic::clamp;
use crate::emit::flow::{Context, Emitted, Flow};
use crate::emit::instruction::Tail;
use crate::forms;
use crate::idioms;
use crate::literal::{self, StaticData};
use crate::locals::{Local, Locals};
use crate::messages::{self, Fault};
use crate::ops::Val;
use crate::program::{Func, Program};
use crate::tree::{NodeId, NodeKind, Tree};
use crate::types::Types;
use crate::{Signature, Signatures};

/// What writing a piece gives.
pub(crate) type EmitResult<T = Emitted> = Result<T, Box<Fault>>;

/// The deepest nesting of what is written: expansions nest deeper than the forms that they come from.
const MAX_EMITTED_DEPTH: usize = 640;

/// The longest text of a module, in bytes: a text of the longest, with each byte of it written as an escape of three, and as much again.
const MAX_EMITTED: usize = 4 << 20;

/// How deep lines are indented at most, in steps: a deeper line costs no more.
const MAX_INDENT: usize = 32;

/// Writes WAT for nodes of the tree.
pub(crate) struct Emitter<'a, 's> {
    pub(crate) tree: &'a Tree<'s>,
    pub(crate) program: &'a Program<'s>,
    pub(crate) host: &'a Signatures,
    pub(crate) types: Types<'s>,
    pub(crate) out: String,
    pub(crate) data: StaticData<'s>,
    pub(crate) imports: Vec<Signature>,
    pub(crate) warnings: Vec<Fault>,
    /// Where each piece of `out` comes from, where that is asked for.
    pub(crate) marks: Option<Vec<(u32, NodeId)>>,
    /// How deep the lines are indented.
    pub(crate) depth: usize,
    /// How many flat blocks are open.
    pub(crate) flat: usize,
    /// The locals of the function being written.
    pub(crate) locals: Locals<'s>,
    /// The loops of forms around, innermost last.
    pub(crate) loops: Vec<Loop>,
    /// What the names that expansions make begin with: no name of the source does.
    prefix: String,
    /// Locals that expansions keep values in: each name's number and type.
    hidden: Vec<(&'static str, usize, Val)>,
    /// How many names expansions have made in this function.
    names: usize,
    /// Whether an expansion keeps an error code.
    code: bool,
    /// Whether the function being written is the program.
    pub(crate) run: bool,
    /// The name of the function being written, where it cannot return a code.
    codeless_func: Option<&'s str>,
}

/// The labels of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// The number of the label that leaves it.
    pub(crate) leave: usize,
    /// The number of the label that goes on with the next round.
    pub(crate) next: usize,
}

/// A function that was written.
pub(crate) struct EmittedFunc {
    /// How the body tail.
    pub(crate) flow: Flow,
    /// Where in `out` more instructions may be added.
    pub(crate) end: usize,
}

impl<'a, 's> Emitter<'a, 's> {
    /// A writer with nothing written; `marked` asks for marks.
    pub(crate) fn new(tree: &'a Tree<'s>, program: &'a Program<'s>, host: &'a Signatures, marked: bool) -> Self {
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
            prefix: generated_prefix(tree.source),
            hidden: Vec::new(),
            names: 0,
            code: false,
            run: false,
            codeless_func: None,
        }
    }

    /// Writes text that comes from a node.
    pub(crate) fn put(&mut self, from: NodeId, text: &str) {
        if let Some(marks) = &mut self.marks {
            marks.push((clamp(self.out.len()), from));
        }
        self.out.push_str(text);
    }

    /// Puts text into the context of `removed` bytes at `at`, which are part of one piece.
    pub(crate) fn splice(&mut self, at: usize, removed: usize, text: &str) {
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
    pub(crate) fn insert(&mut self, from: NodeId, at: usize, text: &str) {
        self.splice(at, 0, text);
        if let Some(marks) = &mut self.marks {
            let nth = marks.partition_point(|(start, _)| (*start as usize) < at);
            marks.insert(nth, (clamp(at), from));
        }
    }

    /// Puts what was written since `at` into a form that `open` begins.
    pub(crate) fn wrap(&mut self, from: NodeId, at: usize, open: &str) {
        self.insert(from, at, open);
        self.put(from, ")");
    }

    /// A name that no name of the source is, for a local or a label of an expansion.
    pub(crate) fn generated_name(&self, name: &str, number: usize) -> String {
        format!("{}{name}{number}", self.prefix)
    }

    /// A number that no other made name of this function has.
    pub(crate) fn next_number(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Declares a local for an expansion and gives its name.
    pub(crate) fn declare_hidden(&mut self, name: &'static str, number: usize, ty: Val) -> String {
        self.hidden.push((name, number, ty));
        self.generated_name(name, number)
    }

    /// The name of the local that expansions keep an error code in.
    fn code_name(&mut self) -> String {
        self.code = true;
        format!("{}err", self.prefix)
    }

    /// Writes that the function returns the code on top of the stack where it is not 0.
    pub(crate) fn return_on_error(&mut self, form: NodeId) -> EmitResult<()> {
        self.require_code_result(form)?;
        let code = self.code_name();
        self.put(form, &format!("(if (local.tee {code}) (then (return (local.get {code}))))"));
        Ok(())
    }

    /// Checks that the function around a form can return a code, as the form does.
    pub(crate) fn require_code_result(&self, form: NodeId) -> EmitResult<()> {
        let Some(func) = self.codeless_func else { return Ok(()) };
        let name = self.tree.head(form).unwrap_or("");
        Err(Fault::new(self.tree.span(form), messages::cannot_return_code(name, func)))
    }

    /// Declares a local that a form sets; one that there is must have the type.
    pub(crate) fn declare(&mut self, name: &'s str, ty: Val, node: NodeId) -> EmitResult<()> {
        if self.locals.get(name).is_some_and(|known| known.param && known.ty == ty.name()) {
            return Ok(());
        }
        self.locals.declare(self.tree, Local { name: Some(name), ty: ty.name(), node, param: false })
    }

    /// The type of a local of the function being written.
    pub(crate) fn local(&self, name: &str) -> Option<Val> {
        self.locals.get(name).map(|local| Val::from_wat(local.ty).unwrap_or(Val::Any))
    }

    /// Writes `(call $host.function`, without the parenthesis that closes it.
    pub(crate) fn open_call(&mut self, from: NodeId, full_name: &str) -> EmitResult<()> {
        let host = self.host;
        let Some(signature) = host.get(full_name) else {
            return Err(Fault::new(self.tree.span(from), messages::unknown_function(full_name, "", host, None)));
        };
        self.import(signature);
        self.put(from, "(call $");
        self.out.push_str(full_name);
        Ok(())
    }

    pub(crate) fn import(&mut self, signature: &Signature) {
        let same = |known: &Signature| known.name == signature.name && known.module == signature.module;
        if !self.imports.iter().any(same) {
            self.imports.push(*signature);
        }
    }

    /// Writes a node: a list, a literal's address, or a name's or number's value. What is none of these is written
    /// as it stands, for the reader of WAT to refuse.
    pub(crate) fn node(&mut self, node: NodeId, context: Context) -> EmitResult {
        match self.tree.node(node).kind {
            NodeKind::List => self.list(node, context),
            NodeKind::Text | NodeKind::Block => {
                self.literal(node)?;
                Ok(Emitted::one(Val::I32))
            }
            NodeKind::Atom => match self.bare(node, context.want())? {
                Some(out) => Ok(out),
                None => {
                    self.put(node, self.tree.text(node));
                    Ok(Emitted::UNKNOWN)
                }
            },
        }
    }

    /// Writes a list.
    pub(crate) fn list(&mut self, list: NodeId, context: Context) -> EmitResult {
        if self.out.len() > MAX_EMITTED {
            return Err(Fault::new(self.tree.span(list), messages::module_too_long(MAX_EMITTED)));
        }
        let Some(head) = self.tree.head(list) else {
            return match idioms::foreign(self.tree, list, self.host) {
                Some(fault) => Err(fault),
                None => self.raw(list),
            };
        };
        if let Some(form) = forms::form(head) {
            return (form.expand)(self, list, context);
        }
        if let Some(called) = forms::call::called(self, head) {
            return forms::call::expand(self, list, &called);
        }
        self.plain(list, head, context)
    }

    /// Writes the address of a literal.
    pub(crate) fn literal(&mut self, node: NodeId) -> EmitResult<()> {
        let value = self.text_value(node)?;
        let address = self.data.address(value);
        self.put(node, &format!("(i32.const {address})"));
        Ok(())
    }

    /// The value of a literal.
    pub(crate) fn text_value(&mut self, node: NodeId) -> EmitResult<std::borrow::Cow<'s, [u8]>> {
        let block = self.tree.node(node).kind == NodeKind::Block;
        let quotes = if block { 3 } else { 1 };
        let text = self.tree.text(node);
        let inner = text.get(quotes..text.len().saturating_sub(quotes)).unwrap_or("");
        let value = literal::decode(inner, self.tree.span(node).start + quotes, block)?;
        if std::str::from_utf8(&value).is_err() {
            self.warnings.push(*Fault::new(self.tree.span(node), messages::not_utf8()));
        }
        Ok(value)
    }

    /// Writes a function.
    pub(crate) fn func(&mut self, func: &Func<'s>, at: usize, run: bool) -> EmitResult<EmittedFunc> {
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
        (self.run, self.codeless_func) = (run, (!has_code).then_some(func.name.unwrap_or("(func …)")));
        self.depth += 1;
        self.line();
        let mut body = func.body;
        let tail = match results.as_deref() {
            _ if run => Tail::Discarded,
            Some([one]) => Tail::Value(Some(*one)),
            _ => Tail::Discarded,
        };
        let flow = self.sequence(&mut body, tail)?.flow;
        self.depth -= 1;
        let declarations = self.declarations();
        self.splice(head_end, 0, &declarations);
        let end = self.out.len();
        self.out.push_str(")\n");
        Ok(EmittedFunc { flow, end })
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
            let _ = write!(text, "\n    (local {} {})", self.generated_name(name, *number), ty.name());
        }
        text
    }

    /// Begins something that nests in what is written.
    pub(crate) fn enter(&mut self, at: NodeId) -> EmitResult<()> {
        self.depth += 1;
        if self.depth > MAX_EMITTED_DEPTH {
            return Err(Fault::new(self.tree.span(at), messages::too_deep(MAX_EMITTED_DEPTH)));
        }
        Ok(())
    }

    /// Begins a line.
    pub(crate) fn line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        for _ in 0..self.depth.min(MAX_INDENT) {
            self.out.push_str("  ");
        }
    }

    /// Separates a node from what stands before it: as a line where the author began one.
    pub(crate) fn separate(&mut self, node: NodeId) {
        if self.tree.node(node).starts_line {
            self.line();
        } else {
            self.space();
        }
    }

    /// Separates what comes from what stands before it.
    pub(crate) fn space(&mut self) {
        if !self.out.ends_with(['(', ' ', '\n']) {
            self.out.push(' ');
        }
    }
}

/// What no name of the source begins with that an expansion makes: `$.`, and a number where names of the source begin so.
fn generated_prefix(source: &str) -> String {
    let digits = |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = |rest: &str| rest.get(..digits(rest)).and_then(|digits| digits.parse::<u32>().ok());
    let taken: HashSet<Option<u32>> =
        source.match_indices("$.").map(|(at, dot)| after(source.get(at + dot.len()..).unwrap_or(""))).collect();
    if taken.is_empty() {
        return "$.".to_owned();
    }
    // One of so many numbers is free, and the dot behind it tail it.
    let free = (0..).find(|number| !taken.contains(&Some(*number))).unwrap_or_default();
    format!("$.{free}.")
}
