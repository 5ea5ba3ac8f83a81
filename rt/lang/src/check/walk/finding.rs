//! Faults in instructions: unused values, operands of the wrong type, and unknown names.

use super::stack::{Entry, Frame, FrameKind, InstructionEffect};
use super::{Stop, Walk, WalkResult};
use crate::Code;
use crate::Signature;
use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::diagnose::truncate::{excerpt, truncate};
use crate::diagnose::wording;
use crate::diagnose::wording::Message;
use crate::habits;
use crate::habits::rewrite;
use crate::lower::forms;
use crate::syntax::literal::is_number;
use crate::syntax::tree::{NodeId, NodeKind};
use crate::types::instruction;
use crate::types::{Val, conversion, list_types};

/// Maximum length, in characters, of a list that is quoted in full.
const MAX_LIST: usize = 32;

impl<'s> Walk<'_, 's> {
    /// Reports an unused value, together with the instruction that produced it. The stack values
    /// from index `first` on are the results of the frame.
    pub(crate) fn report_unused<T>(&self, entry: &Entry, first: usize) -> WalkResult<T> {
        if let Some(surplus) = &entry.surplus {
            let (node, usage, wanted, given) = surplus.as_ref();
            let message = match self.callee(entry.from).filter(|called| called.pushes().count() > 1)
            {
                Some(called) => {
                    let change = self
                        .origin(entry.from)
                        .and_then(|call| rewrite::call_by_name(self.author, call, called));
                    wording::results_as_operand(usage, *wanted, *given, called).maybe_safe(change)
                }
                None => wording::operand_count(usage, *wanted, *given, None)
                    .maybe_safe(self.as_operator(*node)),
            };
            return self.fault(*node, message);
        }
        let count = self.stack.iter().take(first).filter(|other| other.from == entry.from).count();
        let written = self.origin(entry.from).and_then(|node| self.author.head(node));
        let message = match self.callee(entry.from) {
            Some(signature)
                if signature.fallible() && written.is_some_and(|head| head != "call") =>
            {
                let change = self
                    .origin(entry.from)
                    .and_then(|call| rewrite::call_by_name(self.author, call, signature));
                wording::call_left(signature).maybe_safe(change)
            }
            Some(signature) => {
                let call = self.origin(entry.from).filter(|call| self.author.is_list(*call));
                let all = signature.pushes().count();
                let change = match call {
                    // Otherwise `err`, which nothing uses, would become the program's error code.
                    Some(call)
                        if all == 2
                            && self
                                .stack
                                .get(first)
                                .is_some_and(|code| code.from == entry.from) =>
                    {
                        rewrite::call_by_name(self.author, call, signature)
                    }
                    Some(call) if all == 2 && count == 2 => {
                        rewrite::call_by_name(self.author, call, signature)
                    }
                    Some(_) => wording::consume_result(signature),
                    None => None,
                };
                wording::result_left(signature, entry.nth, count).maybe_safe(change)
            }
            None => wording::value_left(&self.excerpt(entry.from), entry.ty),
        };
        self.fault(entry.from, message)
    }

    /// Returns the change that replaces an `add` or `mul` instruction with `+` or `*`, which take
    /// any number of operands. Returns `None` for any other instruction.
    fn as_operator(&self, node: NodeId) -> Option<Change> {
        let list = self.origin(node)?;
        let operator = match self.author.head(list)?.split_once('.')? {
            ("i32" | "i64" | "f64", "add") => "+",
            ("i32" | "i64" | "f64", "mul") => "*",
            _ => return None,
        };
        rewrite::replace_head(self.author, list, operator)
    }

    /// Adds to `message` a fix that converts a value to the expected type. The fix changes the type
    /// of a constant, or puts a conversion instruction around the expression. Returns the message
    /// unchanged if there is no such fix.
    fn propose_conversion(
        &self,
        message: Message,
        from: NodeId,
        wanted: Val,
        found: Val,
    ) -> Message {
        let constant = self.origin(from).filter(|list| {
            self.author.head(*list).is_some_and(|head| head.ends_with(".const"))
                && found == Val::I32
        });
        let change = constant.and_then(|list| {
            rewrite::replace_head(self.author, list, format!("{}.const", wanted.name()))
        });
        match (change, conversion(found, wanted)) {
            (Some(change), _) => message.safe(change),
            (None, Some(by)) => message.convert(wanted, found, by),
            (None, None) => message,
        }
    }

    /// Returns the change that swaps the names in the `local.set` instruction at `at` and in the
    /// next instruction. Returns `None` unless both are `local.set` instructions.
    fn swap_pops(&self, at: NodeId) -> Option<Change> {
        let tree = self.author;
        let first = self.origin(at)?;
        let second = rewrite::after(tree, first)?;
        let name = |list: NodeId| match (tree.head(list), tree.items(list).as_slice()) {
            (Some("local.set"), [_, name]) => Some(*name),
            _ => None,
        };
        Some(rewrite::swap(tree, name(first)?, name(second)?))
    }

    /// Returns the host function that an instruction calls, if any.
    pub(crate) fn callee(&self, node: NodeId) -> Option<&Signature> {
        let mut nodes = match self.tree.node(node).kind {
            NodeKind::List => self.tree.children(node),
            _ => self.tree.after(node),
        };
        if self.tree.is_list(node) {
            nodes.next(self.tree);
        }
        let is_call = match self.tree.node(node).kind {
            NodeKind::List => self.tree.head(node) == Some("call"),
            _ => self.tree.text(node) == "call",
        };
        let name = self.tree.name(nodes.next(self.tree).filter(|_| is_call)?)?;
        self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))
    }

    pub(crate) fn frame_name(&self, frame: &Frame<'_>) -> String {
        match frame.kind {
            FrameKind::Func if self.run => "the program".to_owned(),
            FrameKind::Func => format!("the function `{}`", self.func.name.unwrap_or("(func")),
            FrameKind::Block => "the block".to_owned(),
            FrameKind::Loop => "the loop".to_owned(),
            FrameKind::If => "`then`".to_owned(),
            FrameKind::Else => "`else`".to_owned(),
        }
    }

    /// Quotes the source of an instruction. A long list is shortened to its first words.
    pub(crate) fn excerpt(&self, node: NodeId) -> String {
        let tree = self.author;
        let Some(node) = self.origin(node) else { return String::new() };
        let text = tree.text(node);
        if !tree.is_list(node) || text.chars().count() <= MAX_LIST && !text.contains('\n') {
            return excerpt(text);
        }
        let atoms = tree.children(node).iter(tree).map_while(|node| tree.atom(node));
        let words: Vec<String> =
            atoms.take(2).map(|word| truncate(word, MAX_LIST).into_owned()).collect();
        format!("({} …)", words.join(" "))
    }

    /// Reports an operand of the wrong type.
    pub(crate) fn report_mismatch<T>(
        &self,
        effect: &InstructionEffect<'s>,
        nth: usize,
        wanted: Val,
        entry: &Entry,
    ) -> WalkResult<T> {
        let at = if effect.given.is_some() { entry.from } else { effect.at };
        let from = self.excerpt(entry.from);
        let called = self.callee(entry.from);
        let err = called.filter(|called| {
            called.fallible() && entry.nth > 0 && entry.nth == called.results.len()
        });
        if matches!(effect.name, "local.set" | "local.tee" | "global.set") {
            let name = effect.argument.unwrap_or("");
            let message = match err {
                Some(called) => {
                    wording::err_on_top(name, wanted, called).maybe_safe(self.swap_pops(effect.at))
                }
                None => {
                    let message = wording::wrong_set(
                        name,
                        wanted,
                        entry.ty,
                        &from,
                        conversion(entry.ty, wanted),
                    );
                    if effect.given.is_some() {
                        self.propose_conversion(message, entry.from, wanted, entry.ty)
                    } else {
                        message
                    }
                }
            };
            return self.fault(at, message);
        }
        if let Some(called) = err {
            return self
                .fault(at, wording::err_as_operand(&self.usage(effect), nth, wanted, called));
        }
        let param = self
            .host_of(effect)
            .and_then(|signature| signature.params.get(nth))
            .map(|param| param.name);
        let usage = self.usage(effect);
        let hint = conversion(entry.ty, wanted);
        let message = wording::operand_type(&usage, nth, param, wanted, entry.ty, &from, hint);
        let message = if effect.given.is_some() {
            self.propose_conversion(message, entry.from, wanted, entry.ty)
        } else {
            message
        };
        self.fault(at, message)
    }

    pub(crate) fn host_of(&self, effect: &InstructionEffect<'s>) -> Option<&Signature> {
        let name = effect.argument.filter(|_| effect.name == "call")?;
        if self.program.defined.contains_key(name) {
            return None;
        }
        self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))
    }

    /// Returns the usage of an instruction, as shown in diagnostics.
    pub(crate) fn usage(&self, effect: &InstructionEffect<'s>) -> String {
        if let Some(signature) = self.host_of(effect) {
            return format!("${signature}");
        }
        let name = match effect.argument {
            Some(name) if effect.name == "call" => name.to_owned(),
            Some(name) => format!("{} {name}", effect.name),
            None => effect.name.to_owned(),
        };
        let shows_types = effect.name == "call"
            || instruction::op(effect.name).is_some_and(|op| !op.pops.contains(&Val::Any));
        if !shows_types {
            return name;
        }
        match effect.pushes.as_slice() {
            [] => format!("{name} ({})", list_types(&effect.pops)),
            [one] => format!("{name} ({}) → {}", list_types(&effect.pops), one.name()),
            many => format!("{name} ({}) → ({})", list_types(&effect.pops), list_types(many)),
        }
    }

    /// Reports a name that is not an instruction. If the name is a rare instruction that the walk
    /// does not support, stops the walk instead.
    pub(crate) fn report_unknown<T>(
        &self,
        at: NodeId,
        first: NodeId,
        name: &'s str,
    ) -> WalkResult<T> {
        if at == first
            && (name.starts_with('$') || name.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        {
            return self.report_bare(first);
        }
        if is_instruction(name) {
            return Err(Stop::Unsupported);
        }
        if let Some(form) = forms::form(name) {
            let change =
                self.origin(first).and_then(|atom| habits::add_parentheses(self.author, atom));
            return self.fault(first, wording::flat_form(name, form.usage).maybe_safe(change));
        }
        let plain = name.strip_prefix('$').unwrap_or(name);
        if let Some(signature) = self.host.get(plain) {
            return self.fault(first, wording::call_missing(name, signature));
        }
        if self.program.defined.contains_key(name) {
            return self.fault(first, wording::helper_call_missing(name));
        }
        let near = nearest::instructions(name);
        let functions =
            nearest::functions(plain.trim_end_matches('?'), self.host, &self.program.names());
        let of_wat = [
            "i32.", "i64.", "f32.", "f64.", "v128.", "local.", "global.", "memory.", "table.",
            "ref.", "elem.",
        ];
        let of_host = at != first
            && plain.contains('.')
            && !of_wat.iter().any(|module| plain.starts_with(module));
        let message = if of_host && near.is_empty() {
            wording::unknown_head(name, self.host)
        } else {
            wording::unknown_instruction(name, &near, functions, Code::from_name(name))
        };
        let prose = self
            .origin(first)
            .filter(|_| at == first)
            .and_then(|atom| habits::comment_prose(self.author, atom));
        if let Some(change) = prose {
            return self.fault(first, message.safe(change));
        }
        let list =
            self.origin(first).filter(|_| at != first).and_then(|first| self.author.parent(first));
        self.fault(
            first,
            message.maybe_safe(list.and_then(|list| self.rewrite_list(list, name, &near))),
        )
    }

    /// Returns the change that rewrites a list with an unknown head, if the list has exactly one
    /// possible meaning.
    fn rewrite_list(&self, list: NodeId, name: &str, near: &[String]) -> Option<Change> {
        if let Some(change) = habits::rewrite_list(self.author, list, self.host) {
            return Some(change);
        }
        let own = format!("${name}");
        if self.program.defined.contains_key(own.as_str()) {
            return rewrite::replace_head(self.author, list, own);
        }
        let forms = forms::forms().map(|form| form.name);
        // A name with a `$` is never the name of a form or an instruction.
        let is_name = name.starts_with('$');
        if let Some(form) = nearest::certain(name, forms).filter(|_| !is_name) {
            return rewrite::replace_head(self.author, list, form);
        }
        let instruction = instruction::meant(name)
            .or_else(|| nearest::certain(name, near.iter().map(String::as_str)));
        if let Some(meant) = instruction.filter(|_| !is_name) {
            return rewrite::replace_head(self.author, list, meant);
        }
        let (plain, question) = match name.strip_suffix('?') {
            Some(plain) => (plain, "?"),
            None => (name, ""),
        };
        let function = nearest::certain_function(
            plain.trim_start_matches('$'),
            self.host,
            &self.program.names(),
        )?;
        let known = function.strip_prefix('$').filter(|known| self.host.get(known).is_some());
        rewrite::replace_head(
            self.author,
            list,
            format!("{}{question}", known.unwrap_or(&function)),
        )
    }

    /// Returns the names of the function's locals, except generated ones.
    pub(crate) fn local_names(&self) -> impl Iterator<Item = &'s str> {
        self.func.locals.by_name.keys().copied().filter(|name| !name.starts_with("$."))
    }

    /// Returns the change that replaces `name` with the name of a local, if `name` is certainly a
    /// typo of that name.
    pub(crate) fn certain_local(&self, name: &str) -> Option<Change> {
        nearest::certain(name, self.local_names()).map(|near| Change::Replace(near.to_owned()))
    }

    /// Reports a bare name or number where an instruction is expected.
    pub(crate) fn report_bare<T>(&self, node: NodeId) -> WalkResult<T> {
        let text = self.tree.text(node);
        let message = match self.func.locals.get(text) {
            Some(_) => wording::bare_operand(text, &format!("(local.get {text})")),
            None if is_number(Val::I32, text) => {
                wording::bare_operand(text, &format!("(i32.const {text})"))
            }
            None if is_number(Val::F64, text) => {
                wording::bare_operand(text, &format!("(f64.const {text})"))
            }
            None if self.types.globals.by_name.contains_key(text) => {
                wording::bare_operand(text, &format!("(global.get {text})"))
            }
            None if self.program.defined.contains_key(text) => wording::helper_call_missing(text),
            None => match text.strip_prefix('$').and_then(|plain| self.host.get(plain)) {
                Some(signature) => wording::call_missing(text, signature),
                None if text.starts_with('$') => {
                    let near = nearest::names(text, self.local_names());
                    wording::unknown_local(text, &near, false).maybe_safe(self.certain_local(text))
                }
                None => return self.report_unknown(NodeId(u32::MAX), node, text),
            },
        };
        self.fault(node, message)
    }
}

/// Returns true if the WAT parser accepts this name as an instruction.
fn is_instruction(name: &str) -> bool {
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return false;
    }
    let text = format!("(module (func {name}))");
    let read = wast::parser::ParseBuffer::new(&text)
        .and_then(|buffer| wast::parser::parse::<wast::Wat<'_>>(&buffer).map(|_| ()));
    !read.is_err_and(|e| e.message().contains("unknown operator"))
}
