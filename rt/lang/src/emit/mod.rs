//! Emits the module text of a program in one pass, and records the source of every piece.
//!
//! A list's head decides how it is emitted: as a form's expansion (`forms`), as a call of a
//! function by its name (`forms::call`), or as an instruction of WAT (`instruction`).

mod block;
pub(crate) mod flow;
pub(crate) mod instruction;
pub(crate) mod stack_effect;

use std::collections::HashSet;
use std::fmt::Write;

use crate::diagnostic::clamp;
use crate::emit::flow::{Context, EmittedCode, Flow};
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

/// The result of emitting a piece of code, or the first fault.
pub(crate) type EmitResult<T = EmittedCode> = Result<T, Box<Fault>>;

/// Maximum nesting of the emitted text. Expansions nest deeper than the forms themselves.
const MAX_EMITTED_DEPTH: usize = 640;

/// Maximum length of a module's text, in bytes. A program of the maximum length fits even if each
/// of its bytes is emitted as a three-byte escape, and leaves a quarter of the length free.
const MAX_EMITTED: usize = 4 << 20;

/// Maximum number of indentation steps, so that deep nesting does not make lines long.
const MAX_INDENT: usize = 32;

/// Emits WAT for nodes of the tree.
pub(crate) struct Emitter<'a, 's> {
    pub(crate) tree: &'a Tree<'s>,
    pub(crate) program: &'a Program<'s>,
    pub(crate) host: &'a Signatures,
    pub(crate) types: Types<'s>,
    pub(crate) out: String,
    pub(crate) data: StaticData<'s>,
    pub(crate) imports: Vec<Signature>,
    pub(crate) warnings: Vec<Fault>,
    /// The source node of each piece of `out`, if requested.
    pub(crate) marks: Option<Vec<(u32, NodeId)>>,
    /// The current indentation, in steps.
    pub(crate) depth: usize,
    /// The number of open flat blocks.
    pub(crate) flat: usize,
    /// The locals of the current function.
    pub(crate) locals: Locals<'s>,
    /// The enclosing loops of forms, innermost last.
    pub(crate) loops: Vec<Loop>,
    /// The prefix of generated names. No name in the source begins with it.
    prefix: String,
    /// The locals that expansions declare: name, number and type.
    hidden: Vec<(&'static str, usize, Val)>,
    /// The number of names that expansions have generated in the current function.
    names: usize,
    /// If true, an expansion in the current function uses the local for error codes.
    code: bool,
    /// If true, the current function is the program.
    pub(crate) run: bool,
    /// The name of the current function, if it cannot return an error code.
    codeless_func: Option<&'s str>,
}

/// The labels of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    /// The number of the label that leaves the loop.
    pub(crate) leave: usize,
    /// The number of the label that continues with the next iteration.
    pub(crate) next: usize,
}

/// A function that was emitted.
pub(crate) struct EmittedFunc {
    /// The flow at the end of its body.
    pub(crate) flow: Flow,
    /// The position in `out` at which more instructions can be added to the body.
    pub(crate) end: usize,
}

impl<'a, 's> Emitter<'a, 's> {
    /// Creates an emitter. If `marked` is true, it records the source of each piece.
    pub(crate) fn new(
        tree: &'a Tree<'s>,
        program: &'a Program<'s>,
        host: &'a Signatures,
        marked: bool,
    ) -> Self {
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

    /// Replaces `removed` bytes at `at`, which must be part of one piece.
    pub(crate) fn splice(&mut self, at: usize, removed: usize, text: &str) {
        if self.out.get(at..at + removed).is_none() {
            return;
        }
        self.out.replace_range(at..at + removed, text);
        let moved =
            |start: u32| if removed == 0 { start as usize >= at } else { start as usize > at };
        for (start, _) in
            self.marks.iter_mut().flatten().rev().take_while(|(start, _)| moved(*start))
        {
            *start = clamp((*start as usize + text.len()).saturating_sub(removed));
        }
    }

    /// Inserts text that comes from a node at `at`.
    pub(crate) fn insert(&mut self, from: NodeId, at: usize, text: &str) {
        self.splice(at, 0, text);
        if let Some(marks) = &mut self.marks {
            let nth = marks.partition_point(|(start, _)| (*start as usize) < at);
            marks.insert(nth, (clamp(at), from));
        }
    }

    /// Wraps the text written since `at` into a list that begins with `open`.
    pub(crate) fn wrap(&mut self, from: NodeId, at: usize, open: &str) {
        self.insert(from, at, open);
        self.put(from, ")");
    }

    /// Returns the name of a local or label of an expansion. No name in the source is equal to it.
    pub(crate) fn generated_name(&self, name: &str, number: usize) -> String {
        format!("{}{name}{number}", self.prefix)
    }

    /// Returns a number for a generated name, unique in the current function.
    pub(crate) fn next_number(&mut self) -> usize {
        self.names += 1;
        self.names
    }

    /// Declares a local for an expansion, and returns its name.
    pub(crate) fn declare_hidden(&mut self, name: &'static str, number: usize, ty: Val) -> String {
        self.hidden.push((name, number, ty));
        self.generated_name(name, number)
    }

    /// Returns the name of the local for error codes.
    fn code_name(&mut self) -> String {
        self.code = true;
        format!("{}err", self.prefix)
    }

    /// Writes code that pops an error code, and returns it from the function if it is not 0.
    pub(crate) fn return_on_error(&mut self, form: NodeId) -> EmitResult<()> {
        self.require_code_result(form)?;
        let code = self.code_name();
        self.put(form, &format!("(if (local.tee {code}) (then (return (local.get {code}))))"));
        Ok(())
    }

    /// Checks that the current function can return an error code, as `form` does.
    pub(crate) fn require_code_result(&self, form: NodeId) -> EmitResult<()> {
        let Some(func) = self.codeless_func else { return Ok(()) };
        let name = self.tree.head(form).unwrap_or("");
        Err(Fault::new(self.tree.span(form), messages::cannot_return_code(name, func)))
    }

    /// Declares a local that a form sets. A local that is already declared must have the same type.
    pub(crate) fn declare(&mut self, name: &'s str, ty: Val, node: NodeId) -> EmitResult<()> {
        if self.locals.get(name).is_some_and(|known| known.param && known.ty == ty.name()) {
            return Ok(());
        }
        self.locals
            .declare(self.tree, Local { name: Some(name), ty: ty.name(), node, param: false })
    }

    /// Returns the type of a local of the current function.
    pub(crate) fn local(&self, name: &str) -> Option<Val> {
        self.locals.get(name).map(|local| Val::from_wat(local.ty).unwrap_or(Val::Any))
    }

    /// Writes `(call $host.function` without the closing parenthesis.
    pub(crate) fn open_call(&mut self, from: NodeId, full_name: &str) -> EmitResult<()> {
        let host = self.host;
        let Some(signature) = host.get(full_name) else {
            return Err(Fault::new(
                self.tree.span(from),
                messages::unknown_function(full_name, "", host, None),
            ));
        };
        self.import(signature);
        self.put(from, "(call $");
        self.out.push_str(full_name);
        Ok(())
    }

    pub(crate) fn import(&mut self, signature: &Signature) {
        let same =
            |known: &Signature| known.name == signature.name && known.module == signature.module;
        if !self.imports.iter().any(same) {
            self.imports.push(*signature);
        }
    }

    /// Emits a node: a list, the address of a literal, or the value of a name or number. Any other
    /// node is emitted unchanged, and the WAT parser rejects it.
    pub(crate) fn node(&mut self, node: NodeId, context: Context) -> EmitResult {
        match self.tree.node(node).kind {
            NodeKind::List => self.list(node, context),
            NodeKind::Text | NodeKind::Block => {
                self.literal(node)?;
                Ok(EmittedCode::one(Val::I32))
            }
            NodeKind::Atom => match self.bare(node, context.want())? {
                Some(out) => Ok(out),
                None => {
                    self.put(node, self.tree.text(node));
                    Ok(EmittedCode::UNKNOWN)
                }
            },
        }
    }

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

    /// Emits the address of a literal.
    pub(crate) fn literal(&mut self, node: NodeId) -> EmitResult<()> {
        let value = self.text_value(node)?;
        let address = self.data.address(value);
        self.put(node, &format!("(i32.const {address})"));
        Ok(())
    }

    /// Returns the bytes of a literal.
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

    /// Emits a function.
    pub(crate) fn func(
        &mut self,
        func: &Func<'s>,
        at: usize,
        run: bool,
    ) -> EmitResult<EmittedFunc> {
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
        (self.run, self.codeless_func) =
            (run, (!has_code).then_some(func.name.unwrap_or("(func …)")));
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

    /// Returns the declarations of the function's locals, one on each line.
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
            let _ =
                write!(text, "\n    (local {} {})", self.generated_name(name, *number), ty.name());
        }
        text
    }

    /// Enters a nested list of the emitted text.
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

    /// Separates a node from the text before it: with a line break if the source has one, and
    /// otherwise with a space.
    pub(crate) fn separate(&mut self, node: NodeId) {
        if self.tree.node(node).starts_line {
            self.line();
        } else {
            self.space();
        }
    }

    /// Writes a space, if the text before needs one.
    pub(crate) fn space(&mut self) {
        if !self.out.ends_with(['(', ' ', '\n']) {
            self.out.push(' ');
        }
    }
}

/// Returns a prefix for generated names: `$.`, or `$.N.` if names in the source begin with `$.`.
fn generated_prefix(source: &str) -> String {
    let digits =
        |rest: &str| rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let after = |rest: &str| rest.get(..digits(rest)).and_then(|digits| digits.parse::<u32>().ok());
    let taken: HashSet<Option<u32>> = source
        .match_indices("$.")
        .map(|(at, dot)| after(source.get(at + dot.len()..).unwrap_or("")))
        .collect();
    if taken.is_empty() {
        return "$.".to_owned();
    }
    // A number of this size is always free, and the dot after it keeps `$.1` apart from `$.10`.
    let free = (0..).find(|number| !taken.contains(&Some(*number))).unwrap_or_default();
    format!("$.{free}.")
}
