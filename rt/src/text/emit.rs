//! The module text of a program.

use std::fmt::Write;

use super::diagnostic::clamp;
use super::forms;
use super::literal::{self, StaticData};
use super::program::{Func, Program};
use super::tree::{Kind, NodeId, Nodes, Tree};
use super::wording::{self, Fault};
use crate::{Signature, Signatures};

/// The most blocks without parentheses that may nest, beside [`tree::MAX_DEPTH`] for those with.
///
/// [`tree::MAX_DEPTH`]: super::tree::MAX_DEPTH
const MAX_FLAT: usize = 1_000;

/// Writes WAT for nodes of the tree.
pub(super) struct Emitter<'a, 's> {
    pub(super) tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    host: &'a Signatures,
    pub(super) out: String,
    pub(super) data: StaticData<'s>,
    pub(super) imports: Vec<Signature>,
    pub(super) warnings: Vec<Fault>,
    /// Where each piece of `out` comes from, where that is asked for.
    pub(super) marks: Option<Vec<(u32, NodeId)>>,
    depth: usize,
    /// How many flat blocks are open.
    flat: usize,
    code: String,
    /// How many locals the author gave the function being written.
    locals: usize,
    /// The name of the function being written, where it cannot return a code.
    no_code: Option<&'s str>,
}

impl<'a, 's> Emitter<'a, 's> {
    /// A writer with nothing written; `marked` asks for marks.
    pub(super) fn new(tree: &'a Tree<'s>, program: &'a Program<'s>, host: &'a Signatures, marked: bool) -> Self {
        Emitter {
            tree,
            program,
            host,
            out: String::with_capacity(tree.source.len() * 2),
            data: StaticData::default(),
            imports: Vec::new(),
            warnings: Vec::new(),
            marks: marked.then(Vec::new),
            depth: 1,
            flat: 0,
            code: code_local(tree.source),
            locals: 0,
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

    /// Writes the name of the local that expansions keep an error code in.
    pub(super) fn code_name(&mut self) {
        self.out.push_str(&self.code);
    }

    /// Checks that the function around a form can return a code, as the form does.
    pub(super) fn returns_code(&self, form: NodeId) -> Result<(), Box<Fault>> {
        let Some(func) = self.no_code else { return Ok(()) };
        let name = self.tree.head(form).unwrap_or("");
        Err(Fault::new(self.tree.span(form), wording::no_code_result(name, func)))
    }

    /// Writes the name of a host function that a form calls, and imports it.
    pub(super) fn host_call(&mut self, full_name: &str, form: NodeId) -> Result<(), Box<Fault>> {
        let host = self.host;
        let Some(signature) = host.get(full_name) else {
            return Err(Fault::new(self.tree.span(form), wording::unknown_function(full_name, "", host, None)));
        };
        self.import(signature);
        self.put(form, "$");
        self.out.push_str(full_name);
        Ok(())
    }

    /// Writes a list: a form's expansion, or the same list in WAT.
    pub(super) fn list(&mut self, list: NodeId) -> Result<(), Box<Fault>> {
        let mut nodes = self.tree.children(list);
        if let Some(head) = self.tree.head(list) {
            if let Some(form) = forms::form(head) {
                return (form.expand)(self, list);
            }
            if head == "i32.const"
                && let Ok([operand]) = forms::operands::<1>(self.tree, list)
                && matches!(self.tree.node(operand).kind, Kind::Text | Kind::Block)
            {
                return self.literal(operand);
            }
            if head == "elem" {
                return self.elem(list);
            }
        }
        self.put(list, "(");
        self.depth += 1;
        let flat = self.flat;
        self.sequence(&mut nodes)?;
        self.flat = flat;
        self.depth -= 1;
        self.out.push(')');
        Ok(())
    }

    /// Writes the address of a literal.
    pub(super) fn literal(&mut self, node: NodeId) -> Result<(), Box<Fault>> {
        self.put(node, "(i32.const ");
        self.address(node)?;
        self.out.push(')');
        Ok(())
    }

    fn address(&mut self, node: NodeId) -> Result<(), Box<Fault>> {
        let block = self.tree.node(node).kind == Kind::Block;
        let quotes = if block { 3 } else { 1 };
        let text = self.tree.text(node);
        let inner = text.get(quotes..text.len().saturating_sub(quotes)).unwrap_or("");
        let value = literal::decode(inner, self.tree.span(node).start + quotes, block)?;
        if std::str::from_utf8(&value).is_err() {
            self.warnings.push(*Fault::new(self.tree.span(node), wording::not_utf8()));
        }
        let address = self.data.address(value);
        let _ = write!(self.out, "{address}");
        Ok(())
    }

    /// Writes siblings, each list as [`Emitter::list`] does.
    fn sequence(&mut self, nodes: &mut Nodes) -> Result<(), Box<Fault>> {
        let tree = self.tree;
        while let Some(node) = nodes.next(tree) {
            match tree.node(node).kind {
                Kind::List => {
                    self.gap(node);
                    self.list(node)?;
                }
                Kind::Text | Kind::Block => {
                    self.gap(node);
                    self.literal(node)?;
                }
                Kind::Atom => {
                    self.gap(node);
                    let text = tree.text(node);
                    match text {
                        "call" | "return_call" | "ref.func" => {
                            self.put(node, text);
                            if let Some(callee) = nodes.peek(tree).filter(|node| tree.atom(*node).is_some()) {
                                nodes.next(tree);
                                self.out.push(' ');
                                self.function(callee)?;
                            }
                        }
                        "local.get" | "local.set" | "local.tee" => {
                            self.put(node, text);
                            self.local_number(nodes.peek(tree))?;
                        }
                        "block" | "loop" | "if" | "end" => {
                            self.flat = if text == "end" { self.flat.saturating_sub(1) } else { self.flat + 1 };
                            if self.flat > MAX_FLAT {
                                return Err(Fault::new(tree.span(node), wording::too_deep_blocks(MAX_FLAT)));
                            }
                            self.put(node, text);
                        }
                        "i32.const" => match nodes.peek(tree).map(|next| (next, tree.node(next).kind)) {
                            Some((next, Kind::Text | Kind::Block)) => {
                                nodes.next(tree);
                                self.put(node, "i32.const ");
                                self.address(next)?;
                            }
                            _ => self.put(node, text),
                        },
                        _ => self.put(node, text),
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that a local's number is that of one the author declared.
    fn local_number(&self, node: Option<NodeId>) -> Result<(), Box<Fault>> {
        let Some((node, text)) = node.and_then(|node| Some((node, self.tree.atom(node)?))) else { return Ok(()) };
        if forms::index(text).is_some_and(|at| at >= self.locals) {
            return Err(Fault::new(self.tree.span(node), wording::local_number(text, self.locals)));
        }
        Ok(())
    }

    /// Writes an element segment: every name in it but its own and its table's is a function's.
    fn elem(&mut self, list: NodeId) -> Result<(), Box<Fault>> {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        self.put(list, "(elem");
        nodes.next(tree);
        // One within a table has no name of its own.
        let own = nodes.peek(tree).filter(|_| self.depth == 1).and_then(|node| Some((node, tree.name(node)?)));
        if let Some((node, name)) = own {
            nodes.next(tree);
            self.put(node, " ");
            self.out.push_str(name);
        }
        while let Some(node) = nodes.next(tree) {
            self.out.push(' ');
            match tree.node(node).kind {
                Kind::Atom if tree.name(node).is_some() => self.function(node)?,
                Kind::Atom => self.put(node, tree.text(node)),
                Kind::List => self.list(node)?,
                Kind::Text | Kind::Block => self.literal(node)?,
            }
        }
        self.out.push(')');
        Ok(())
    }

    /// Writes a reference to a function, and imports it where it is the host's.
    fn function(&mut self, node: NodeId) -> Result<(), Box<Fault>> {
        let (tree, host, text) = (self.tree, self.host, self.tree.text(node));
        if self.program.defined.contains_key(text) {
            self.put(node, text);
            return Ok(());
        }
        if let Some(signature) = self.program.aliases.get(text) {
            let signature = *signature;
            self.import(&signature);
            self.put(node, "$");
            let _ = write!(self.out, "{}.{}", signature.module, signature.name);
            return Ok(());
        }
        match text.strip_prefix('$').and_then(|plain| host.get(plain)) {
            Some(signature) => {
                self.import(signature);
                self.put(node, text);
                Ok(())
            }
            None if forms::index(text).is_some() => Err(Fault::new(tree.span(node), wording::function_number(text))),
            None => {
                let words = wording::unknown_function(text.trim_start_matches('$'), text, host, Some(self.program));
                Err(Fault::new(tree.span(node), words))
            }
        }
    }

    fn import(&mut self, signature: &Signature) {
        let same = |known: &Signature| known.name == signature.name && known.module == signature.module;
        if !self.imports.iter().any(same) {
            self.imports.push(*signature);
        }
    }

    /// Writes a function; `ending` is written after its body.
    pub(super) fn func(&mut self, func: &Func<'s>, run: bool, ending: &str) -> Result<(), Box<Fault>> {
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
            self.list(*node)?;
        }
        self.depth += 1;
        for local in func.locals.list.iter().filter(|local| !local.param) {
            self.line();
            self.put(local.node, "(local ");
            if let Some(name) = local.name {
                self.out.push_str(name);
                self.out.push(' ');
            }
            self.out.push_str(local.ty);
            self.out.push(')');
        }
        if func.locals.code {
            self.line();
            let _ = write!(self.out, "(local {} i32)", self.code);
        }
        let mut body = func.body;
        self.locals = func.locals.list.len();
        self.no_code = (!run && !has_code(self.tree, func)).then_some(func.name.unwrap_or("(func …)"));
        self.line();
        self.sequence(&mut body)?;
        if !ending.is_empty() {
            self.line();
            self.put(origin, ending);
        }
        self.depth -= 1;
        self.out.push_str(")\n");
        Ok(())
    }

    /// Begins a line.
    pub(super) fn line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    /// Separates a node from what stands before it: as a line where the author began one.
    fn gap(&mut self, node: NodeId) {
        if self.tree.node(node).fresh {
            self.line();
        } else if !self.out.ends_with(['(', ' ', '\n']) {
            self.out.push(' ');
        }
    }
}

/// Whether a helper function's one result is an i32; also where a named type says what it is.
fn has_code(tree: &Tree<'_>, func: &Func<'_>) -> bool {
    let mut results = Vec::new();
    for node in &func.header {
        let mut nodes = tree.children(*node);
        match nodes.next(tree).and_then(|head| tree.atom(head)) {
            Some("type") => return true,
            Some("result") => {
                while let Some(ty) = nodes.next(tree) {
                    results.push(tree.text(ty));
                }
            }
            _ => {}
        }
    }
    results == ["i32"]
}

/// A local's name that the source has nowhere: `$.err`, with more dots than any name in the source begins with.
fn code_local(source: &str) -> String {
    let (mut longest, mut run) = (0, None);
    for byte in source.bytes() {
        run = match (byte, run) {
            (b'$', _) => Some(0),
            (b'.', Some(dots)) => Some(dots + 1),
            _ => None,
        };
        longest = longest.max(run.unwrap_or(0));
    }
    format!("${}err", ".".repeat(longest + 1))
}
