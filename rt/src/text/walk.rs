//! A walk over the author's instructions that keeps the types on the stack, to say what is wrong with them and where.
//!
//! It accepts what the engine accepts. An instruction that it does not know ends it without a finding.

use super::forms;
use super::ops::{self, Immediate, Val};
use super::program::{Func, Program};
use super::stack::{After, Effect, Entry, Frame, FrameKind};
use super::tree::{Kind, NodeId, Nodes, Tree};
use super::types::{FuncType, Types};
use super::wording::{self, Fault, Words};
use crate::{Code, Signature, Signatures};

/// Why a walk ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Fault(Box<Fault>),
    /// At an instruction that the walk does not know.
    Unknown,
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Stop {
        Stop::Fault(fault)
    }
}

pub(super) type Walked<T> = Result<T, Stop>;

/// How a function ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With its results.
    Complete,
    /// The program with nothing on the stack: its code is missing.
    LacksCode,
}

/// Walks over one function of a program.
pub(super) fn func<'s>(
    tree: &Tree<'s>,
    program: &Program<'s>,
    types: &Types<'s>,
    host: &Signatures,
    at: usize,
) -> Walked<End> {
    let (Some(func), Some(Some(ty))) = (program.funcs.get(at), types.funcs.get(at)) else {
        return Err(Stop::Unknown);
    };
    let run = at + 1 == program.funcs.len();
    let frame = Frame {
        kind: FrameKind::Func,
        label: None,
        params: Vec::new(),
        results: ty.results.clone(),
        height: 0,
        unreachable: false,
        node: func.node.unwrap_or(NodeId(0)),
    };
    let mut walk = Walk { tree, program, types, host, func, run, stack: Vec::new(), frames: vec![frame], floor: 1 };
    let mut body = func.body;
    walk.inside(&mut body)?;
    let reachable = walk.frames.last().is_some_and(|frame| !frame.unreachable);
    if run && reachable && walk.stack.is_empty() {
        return Ok(End::LacksCode);
    }
    walk.close(func.node.unwrap_or(NodeId(0)))?;
    Ok(End::Complete)
}

/// The state of a walk.
pub(super) struct Walk<'a, 's> {
    pub(super) tree: &'a Tree<'s>,
    program: &'a Program<'s>,
    types: &'a Types<'s>,
    host: &'a Signatures,
    func: &'a Func<'s>,
    run: bool,
    stack: Vec<Entry>,
    frames: Vec<Frame<'s>>,
    /// How many frames the list around has opened or found: a flat `end` closes none of them.
    floor: usize,
}

impl<'s> Walk<'_, 's> {
    fn fault<T>(&self, node: NodeId, words: Words) -> Walked<T> {
        Err(Stop::Fault(Fault::new(self.tree.span(node), words)))
    }

    /// Walks over the instructions of a list or function; the flat blocks in it must end in it.
    fn inside(&mut self, nodes: &mut Nodes) -> Walked<()> {
        let before = std::mem::replace(&mut self.floor, self.frames.len());
        self.sequence(nodes)?;
        if self.frames.len() > self.floor
            && let Some(frame) = self.frames.last()
        {
            return self.fault(frame.node, wording::no_end(self.tree.text(frame.node)));
        }
        self.floor = before;
        Ok(())
    }

    fn sequence(&mut self, nodes: &mut Nodes) -> Walked<()> {
        while let Some(node) = nodes.next(self.tree) {
            match self.tree.node(node).kind {
                Kind::List => self.list(node)?,
                Kind::Text | Kind::Block => self.push(&[Val::I32], node),
                Kind::Atom => self.flat(node, nodes)?,
            }
        }
        Ok(())
    }

    /// Walks over a folded instruction or a form.
    pub(super) fn list(&mut self, list: NodeId) -> Walked<()> {
        let tree = self.tree;
        let mut nodes = tree.children(list);
        let Some(first) = nodes.next(tree) else { return self.fault(list, wording::empty_form()) };
        let Some(name) = tree.atom(first) else { return self.fault(list, wording::headless_form()) };
        if let Some(form) = forms::form(name) {
            return (form.walk)(self, list);
        }
        match name {
            "local" => Ok(()),
            "block" | "loop" => {
                let (label, ty) = self.block_type(&mut nodes)?;
                self.open(list, name, label, ty)?;
                self.inside(&mut nodes)?;
                self.close(list)
            }
            "if" => self.folded_if(list, nodes),
            "then" | "else" => self.fault(list, wording::arm_outside(name)),
            "end" => self.fault(list, wording::stray_end(name)),
            _ => {
                let mut effect = self.effect(list, first, name, &mut nodes)?;
                let operands = nodes.peek(tree).is_some();
                let base = self.stack.len();
                self.inside(&mut nodes)?;
                effect.given = operands.then(|| self.stack.len().saturating_sub(base));
                self.apply(effect)
            }
        }
    }

    /// Walks over a flat instruction.
    fn flat(&mut self, node: NodeId, nodes: &mut Nodes) -> Walked<()> {
        let tree = self.tree;
        let name = tree.text(node);
        match name {
            "block" | "loop" => {
                let (label, ty) = self.block_type(nodes)?;
                self.open(node, name, label, ty)
            }
            "if" => {
                let (label, ty) = self.block_type(nodes)?;
                self.condition(node, None)?;
                self.open(node, name, label, ty)
            }
            "else" => {
                skip_name(tree, nodes);
                let open = self.frames.len() > self.floor;
                let Some(frame) = self.frames.last().filter(|f| open && f.kind == FrameKind::If).cloned() else {
                    return self.fault(node, wording::stray_end(name));
                };
                self.finish(node)?;
                self.enter(Frame { kind: FrameKind::Else, unreachable: false, ..frame });
                Ok(())
            }
            "end" => {
                skip_name(tree, nodes);
                if self.frames.len() <= self.floor {
                    return self.fault(node, wording::stray_end(name));
                }
                self.close(node)
            }
            "then" => self.fault(node, wording::arm_outside(name)),
            _ => {
                let effect = self.effect(node, node, name, nodes)?;
                self.apply(effect)
            }
        }
    }

    /// Walks over `(if COND… (then …) (else …))`.
    fn folded_if(&mut self, list: NodeId, mut nodes: Nodes) -> Walked<()> {
        let tree = self.tree;
        let (label, ty) = self.block_type(&mut nodes)?;
        let base = self.stack.len();
        let mut operands = false;
        let then = loop {
            let Some(node) = nodes.next(tree) else { return self.fault(list, wording::no_then()) };
            match tree.head(node) {
                Some("then") => break node,
                Some("else") => return self.fault(node, wording::no_then()),
                _ if tree.node(node).kind == Kind::List => self.list(node)?,
                _ if matches!(tree.node(node).kind, Kind::Text | Kind::Block) => self.push(&[Val::I32], node),
                _ => return self.bare(node),
            }
            operands = true;
        };
        let given = operands.then(|| self.stack.len().saturating_sub(base));
        self.condition(list, given)?;
        self.open(list, "if", label, ty)?;
        let mut arm = tree.children(then);
        arm.next(tree);
        self.inside(&mut arm)?;
        let Some(other) = nodes.next(tree) else { return self.close(then) };
        if tree.head(other) != Some("else") {
            return self.fault(other, wording::after_then());
        }
        if let Some(more) = nodes.next(tree) {
            return self.fault(more, wording::after_else());
        }
        if let Some(frame) = self.frames.last().cloned() {
            self.finish(then)?;
            self.enter(Frame { kind: FrameKind::Else, unreachable: false, ..frame });
        }
        let mut arm = tree.children(other);
        arm.next(tree);
        self.inside(&mut arm)?;
        self.close(other)
    }

    /// Takes the condition of an `if`.
    fn condition(&mut self, at: NodeId, given: Option<usize>) -> Walked<()> {
        let (pops, pushes) = (vec![Val::I32], Vec::new());
        self.apply(Effect { at, name: "if", argument: None, pops, pushes, after: After::Next, given })
    }

    /// Reads what follows the name of a block.
    fn block_type(&mut self, nodes: &mut Nodes) -> Walked<(Option<&'s str>, FuncType)> {
        let tree = self.tree;
        let label = nodes.peek(tree).and_then(|node| tree.name(node));
        if label.is_some() {
            nodes.next(tree);
        }
        let ty = self.types.signature(tree, nodes).ok_or(Stop::Unknown)?;
        Ok((label, ty))
    }

    /// Opens a block.
    fn open(&mut self, node: NodeId, name: &'s str, label: Option<&'s str>, ty: FuncType) -> Walked<()> {
        let (at, pops) = (node, ty.params.clone());
        self.apply(Effect { at, name, argument: None, pops, pushes: Vec::new(), after: After::Next, given: None })?;
        let kind = match name {
            "loop" => FrameKind::Loop,
            "if" => FrameKind::If,
            _ => FrameKind::Block,
        };
        let height = self.stack.len();
        let (params, results) = (ty.params, ty.results);
        self.enter(Frame { kind, label, params, results, height, unreachable: false, node });
        Ok(())
    }

    fn enter(&mut self, frame: Frame<'s>) {
        self.stack.truncate(frame.height);
        let (params, node) = (frame.params.clone(), frame.node);
        self.frames.push(frame);
        self.push(&params, node);
    }

    /// Closes the innermost frame and leaves its results.
    fn close(&mut self, end: NodeId) -> Walked<()> {
        if let Some(frame) = self.frames.last()
            && frame.kind == FrameKind::If
            && frame.params != frame.results
        {
            return self.fault(frame.node, wording::if_without_else(&list_types(&frame.results)));
        }
        let Some(frame) = self.finish(end)? else { return Ok(()) };
        self.push(&frame.results, frame.node);
        Ok(())
    }

    /// Checks that the innermost frame ends with its results, and takes them and it away.
    fn finish(&mut self, end: NodeId) -> Walked<Option<Frame<'s>>> {
        let Some(frame) = self.frames.last().cloned() else { return Ok(None) };
        let available = self.stack.len().saturating_sub(frame.height);
        let wanted = frame.results.len();
        if available < wanted && !frame.unreachable {
            let at = if frame.kind == FrameKind::Func { frame.node } else { end };
            let found: Vec<Val> = self.stack.iter().skip(frame.height).map(|entry| entry.ty).collect();
            return self.fault(at, wording::lacks_result(&self.frame_name(&frame), &frame.results, &found));
        }
        let first = self.stack.len() - wanted.min(available);
        for (result, entry) in
            frame.results.iter().skip(wanted.saturating_sub(available)).zip(self.stack.iter().skip(first))
        {
            if !entry.ty.fits(*result) {
                let hint = ops::conversion(entry.ty, *result);
                let run = self.run && frame.kind == FrameKind::Func;
                let words = wording::wrong_result(
                    &self.frame_name(&frame),
                    *result,
                    entry.ty,
                    &self.excerpt(entry.from),
                    run,
                    hint,
                );
                return self.fault(entry.from, words);
            }
        }
        if let Some(left) = self.stack.get(frame.height).filter(|_| available > wanted).cloned() {
            return self.left(&left, first);
        }
        self.stack.truncate(frame.height);
        self.frames.pop();
        Ok(Some(frame))
    }

    /// Says which instruction left a value too many. Values from `first` on are results.
    fn left<T>(&self, entry: &Entry, first: usize) -> Walked<T> {
        if let Some(surplus) = &entry.surplus {
            let (node, usage, wanted, given) = surplus.as_ref();
            let words = match self.callee(entry.from).filter(|called| called.pushes().count() > 1) {
                Some(called) => wording::results_as_operand(usage, *wanted, *given, called),
                None => wording::operand_count(usage, *wanted, *given, None),
            };
            return self.fault(*node, words);
        }
        let count = self.stack.iter().take(first).filter(|other| other.from == entry.from).count();
        let words = match self.callee(entry.from) {
            Some(signature) => wording::result_left(signature, entry.nth, count),
            None => wording::value_left(&self.excerpt(entry.from), entry.ty),
        };
        self.fault(entry.from, words)
    }

    /// The host function that an instruction calls.
    fn callee(&self, node: NodeId) -> Option<&Signature> {
        let mut nodes = match self.tree.node(node).kind {
            Kind::List => self.tree.children(node),
            _ => self.tree.after(node),
        };
        if self.tree.node(node).kind == Kind::List {
            nodes.next(self.tree);
        }
        let is_call = match self.tree.node(node).kind {
            Kind::List => self.tree.head(node) == Some("call"),
            _ => self.tree.text(node) == "call",
        };
        let name = self.tree.name(nodes.next(self.tree).filter(|_| is_call)?)?;
        self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))
    }

    fn frame_name(&self, frame: &Frame<'_>) -> String {
        match frame.kind {
            FrameKind::Func if self.run => "the program".to_owned(),
            FrameKind::Func => format!("the function `{}`", self.func.name.unwrap_or("(func")),
            FrameKind::Block => "the block".to_owned(),
            FrameKind::Loop => "the loop".to_owned(),
            FrameKind::If => "`then`".to_owned(),
            FrameKind::Else => "`else`".to_owned(),
        }
    }

    /// A node's text, shortened to its head and argument.
    fn excerpt(&self, node: NodeId) -> String {
        let text = self.tree.text(node);
        if text.chars().count() <= 32 && !text.contains('\n') {
            return text.to_owned();
        }
        if self.tree.node(node).kind != Kind::List {
            return format!("{}…", text.lines().next().unwrap_or("").chars().take(24).collect::<String>());
        }
        let mut nodes = self.tree.children(node);
        let mut words = Vec::new();
        while let Some(text) = nodes.next(self.tree).and_then(|node| self.tree.atom(node)).filter(|_| words.len() < 2) {
            words.push(text.chars().take(32).collect::<String>());
        }
        format!("({} …)", words.join(" "))
    }

    /// Puts values on the stack.
    fn push(&mut self, types: &[Val], from: NodeId) {
        self.stack.extend(types.iter().enumerate().map(|(nth, ty)| Entry { ty: *ty, from, nth, surplus: None }));
    }

    /// Lets an instruction take its operands and leave its results.
    fn apply(&mut self, mut effect: Effect<'s>) -> Walked<()> {
        let frame = self.frames.last();
        let (height, unreachable) = frame.map_or((0, false), |frame| (frame.height, frame.unreachable));
        let available = self.stack.len().saturating_sub(height);
        if effect.after == After::Select {
            let second = self.stack.len().checked_sub(2).filter(|_| available >= 2);
            let ty = second.and_then(|at| self.stack.get(at)).map_or(Val::Any, |entry| entry.ty);
            (effect.pops, effect.pushes) = (vec![ty, ty, Val::I32], vec![ty]);
        }
        let wanted = effect.pops.len();
        if self.tree.open.contains(&effect.at) && effect.given.is_some_and(|given| given != wanted) {
            return self.fault(effect.at, wording::unclosed_form(effect.name, None));
        }
        if available < wanted && !unreachable {
            let usage = self.usage(&effect);
            let words = match effect.given {
                Some(given) if given <= available => {
                    wording::operand_count(&usage, wanted, given, self.host_of(&effect))
                }
                _ => wording::value_missing(&usage, wanted, available, effect.name, effect.argument),
            };
            return self.fault(effect.at, words);
        }
        let taken = wanted.min(available);
        let first = self.stack.len() - taken;
        for (nth, ty) in effect.pops.iter().enumerate().skip(wanted - taken) {
            let Some(entry) = self.stack.get(first + nth - (wanted - taken)) else { continue };
            if !entry.ty.fits(*ty) {
                return self.mismatch(&effect, nth, *ty, entry);
            }
        }
        if let Some(given) = effect.given.filter(|given| *given > wanted) {
            let usage = self.usage(&effect);
            for entry in self.stack.iter_mut().take(first).skip((first + wanted).saturating_sub(given)) {
                let surplus = (effect.at, usage.clone(), wanted, given);
                entry.surplus.get_or_insert_with(|| Box::new(surplus));
            }
        }
        self.stack.truncate(first);
        if effect.after == After::Never
            && let Some(frame) = self.frames.last_mut()
        {
            frame.unreachable = true;
            self.stack.truncate(frame.height);
        }
        self.push(&effect.pushes, effect.at);
        Ok(())
    }

    /// Says that an operand has the wrong type.
    fn mismatch<T>(&self, effect: &Effect<'s>, nth: usize, wanted: Val, entry: &Entry) -> Walked<T> {
        let at = if effect.given.is_some() { entry.from } else { effect.at };
        let from = self.excerpt(entry.from);
        if matches!(effect.name, "local.set" | "local.tee" | "global.set") {
            let name = effect.argument.unwrap_or("");
            let over_err = self
                .callee(entry.from)
                .filter(|signature| signature.fallible() && entry.nth == signature.results.len() && entry.nth > 0);
            let words = match over_err {
                Some(signature) => wording::err_on_top(name, wanted, signature),
                None => wording::wrong_set(name, wanted, entry.ty, &from, ops::conversion(entry.ty, wanted)),
            };
            return self.fault(at, words);
        }
        let param = self.host_of(effect).and_then(|signature| signature.params.get(nth)).map(|param| param.name);
        let usage = self.usage(effect);
        let hint = ops::conversion(entry.ty, wanted);
        self.fault(at, wording::operand_type(&usage, nth, param, wanted, entry.ty, &from, hint))
    }

    fn host_of(&self, effect: &Effect<'s>) -> Option<&Signature> {
        let name = effect.argument.filter(|_| effect.name == "call")?;
        if self.program.defined.contains_key(name) {
            return None;
        }
        self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))
    }

    /// How an instruction is used, as diagnostics show it.
    fn usage(&self, effect: &Effect<'s>) -> String {
        if let Some(signature) = self.host_of(effect) {
            return format!("${signature}");
        }
        let name = match effect.argument {
            Some(name) if effect.name == "call" => name.to_owned(),
            Some(name) => format!("{} {name}", effect.name),
            None => effect.name.to_owned(),
        };
        let shows_types = effect.name == "call" || ops::op(effect.name).is_some_and(|op| !op.pops.contains(&Val::Any));
        if !shows_types {
            return name;
        }
        match effect.pushes.as_slice() {
            [] => format!("{name} ({})", list_types(&effect.pops)),
            [one] => format!("{name} ({}) → {}", list_types(&effect.pops), one.name()),
            many => format!("{name} ({}) → ({})", list_types(&effect.pops), list_types(many)),
        }
    }

    /// Reads what an instruction names and tells what it does. `first` is its name.
    fn effect(&mut self, at: NodeId, first: NodeId, name: &'s str, nodes: &mut Nodes) -> Walked<Effect<'s>> {
        let tree = self.tree;
        let mut effect =
            Effect { at, name, argument: None, pops: Vec::new(), pushes: Vec::new(), after: After::Next, given: None };
        match name {
            "call" | "return_call" => {
                let callee = self.argument(at, name, "a function's name", "(call $f …)", nodes)?;
                effect.argument = Some(tree.text(callee));
                (effect.pops, effect.pushes) = self.function_type(callee)?;
                if name == "return_call" {
                    (effect.pushes, effect.after) = (Vec::new(), After::Never);
                }
            }
            "local.get" | "local.set" | "local.tee" => {
                let node = self.argument(
                    at,
                    name,
                    "a local's name",
                    &format!("({name} $x …)").replace("get $x …", "get $x"),
                    nodes,
                )?;
                effect.argument = Some(tree.text(node));
                let ty = self.local(node)?;
                if name != "local.get" {
                    effect.pops.push(ty);
                }
                if name != "local.set" {
                    effect.pushes.push(ty);
                }
            }
            "global.get" | "global.set" => {
                let node = self.argument(
                    at,
                    name,
                    "a global's name",
                    &format!("({name} $g …)").replace("get $g …", "get $g"),
                    nodes,
                )?;
                effect.argument = Some(tree.text(node));
                let Some(global) = self.types.globals.get(tree.text(node)) else {
                    let known = self.types.globals.by_name.keys().copied();
                    let is_local = self.func.locals.get(tree.text(node)).is_some();
                    let near = super::nearest::names(tree.text(node), known);
                    return self.fault(node, wording::unknown_global(tree.text(node), &near, is_local));
                };
                let global = global.ok_or(Stop::Unknown)?;
                match name {
                    "global.get" => effect.pushes.push(global.ty),
                    _ if !global.mutable => {
                        return self.fault(node, wording::constant_global(tree.text(node), global.ty));
                    }
                    _ => effect.pops.push(global.ty),
                }
            }
            "br" | "br_if" => {
                let node = self.argument(
                    at,
                    name,
                    "a label",
                    &format!("({name} $label …)").replace("br $label …", "br $label"),
                    nodes,
                )?;
                effect.argument = Some(tree.text(node));
                effect.pops = self.label(node)?;
                match name {
                    "br" => effect.after = After::Never,
                    _ => {
                        effect.pushes = effect.pops.clone();
                        effect.pops.push(Val::I32);
                    }
                }
            }
            "br_table" => {
                let mut labels = Vec::new();
                while let Some(node) = nodes.peek(tree).filter(|node| is_label(tree.atom(*node))) {
                    labels.push(node);
                    nodes.next(tree);
                }
                let Some(last) = labels.last() else {
                    return self.fault(at, wording::missing_argument(name, "labels", "(br_table $a $b (expr))"));
                };
                effect.pops = self.label(*last)?;
                for node in &labels {
                    self.label(*node)?;
                }
                effect.pops.push(Val::I32);
                effect.after = After::Never;
            }
            "return" => {
                effect.pops = self.frames.first().map(|frame| frame.results.clone()).unwrap_or_default();
                effect.after = After::Never;
            }
            "unreachable" => effect.after = After::Never,
            "select" => match nodes.peek(tree).filter(|node| tree.head(*node) == Some("result")) {
                Some(_) => {
                    let ty = self.types.signature(tree, nodes).ok_or(Stop::Unknown)?;
                    let [one] = ty.results.as_slice() else { return Err(Stop::Unknown) };
                    (effect.pops, effect.pushes) = (vec![*one, *one, Val::I32], vec![*one]);
                }
                None => effect.after = After::Select,
            },
            "call_indirect" => {
                skip_name(tree, nodes);
                let ty = self.types.signature(tree, nodes).ok_or(Stop::Unknown)?;
                (effect.pops, effect.pushes) = (ty.params, ty.results);
                effect.pops.push(Val::I32);
            }
            "ref.func" => {
                self.argument(at, name, "a function's name", "(ref.func $f)", nodes)?;
                effect.pushes.push(Val::Func);
            }
            "ref.null" => {
                let node = self.argument(at, name, "a type", "(ref.null func)", nodes)?;
                effect.pushes.push(match tree.text(node) {
                    "func" => Val::Func,
                    "extern" => Val::Extern,
                    _ => return Err(Stop::Unknown),
                });
            }
            "ref.is_null" => (effect.pops, effect.pushes) = (vec![Val::Any], vec![Val::I32]),
            _ => {
                let Some(op) = ops::op(name) else { return self.unknown(at, first, name) };
                (effect.pops, effect.pushes) = (op.pops.to_vec(), op.pushes.to_vec());
                self.immediate(at, name, op.immediate, nodes)?;
            }
        }
        Ok(effect)
    }

    /// Reads the number or the offset of an instruction.
    fn immediate(&mut self, at: NodeId, name: &str, immediate: Immediate, nodes: &mut Nodes) -> Walked<()> {
        let tree = self.tree;
        match immediate {
            Immediate::None => {}
            Immediate::Memory => {
                let part = |text: &str| text.starts_with("offset=") || text.starts_with("align=");
                while nodes.peek(tree).and_then(|node| tree.atom(node)).is_some_and(part) {
                    nodes.next(tree);
                }
            }
            Immediate::Number(ty) => {
                let Some(node) = nodes.peek(tree) else {
                    let usage = format!("({name} 0)");
                    return self.fault(at, wording::missing_argument(name, "a number", &usage));
                };
                nodes.next(tree);
                let literal = matches!(tree.node(node).kind, Kind::Text | Kind::Block);
                if literal && ty == Val::I32 {
                    return Ok(());
                }
                if !tree.atom(node).is_some_and(|text| is_number(ty, text)) {
                    let text = self.excerpt(node);
                    let local = self.func.locals.get(&text).is_some();
                    let code = Code::from_name(&text).map(Code::number);
                    return self.fault(node, wording::bad_number(name, ty, &text, local, code));
                }
            }
        }
        Ok(())
    }

    /// The name or number that must follow an instruction's own name.
    fn argument(&self, at: NodeId, name: &str, what: &str, usage: &str, nodes: &mut Nodes) -> Walked<NodeId> {
        match nodes.peek(self.tree).filter(|node| self.tree.atom(*node).is_some()) {
            Some(node) => {
                nodes.next(self.tree);
                Ok(node)
            }
            None => self.fault(at, wording::missing_argument(name, what, usage)),
        }
    }

    fn function_type(&self, callee: NodeId) -> Walked<(Vec<Val>, Vec<Val>)> {
        let name = self.tree.text(callee);
        if let Some(at) = self.program.defined.get(name) {
            let ty = self.types.funcs.get(*at).cloned().flatten().ok_or(Stop::Unknown)?;
            return Ok((ty.params, ty.results));
        }
        let signature = self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?));
        let signature = signature.ok_or(Stop::Unknown)?;
        Ok((signature.pops().map(Val::from).collect(), signature.pushes().map(Val::from).collect()))
    }

    /// The type of a local.
    pub(super) fn local(&self, node: NodeId) -> Walked<Val> {
        let text = self.tree.text(node);
        let locals = &self.func.locals;
        let found = match text.starts_with('$') {
            true => locals.get(text),
            false => text.parse().ok().and_then(|at: usize| locals.list.get(at)),
        };
        match found {
            Some(local) => Val::from_wat(local.ty).ok_or(Stop::Unknown),
            None => {
                let near = super::nearest::names(text, locals.by_name.keys().copied());
                let global = self.types.globals.by_name.contains_key(text);
                self.fault(node, wording::unknown_local(text, &near, global))
            }
        }
    }

    /// What a branch to a label takes along.
    fn label(&self, node: NodeId) -> Walked<Vec<Val>> {
        let text = self.tree.text(node);
        let named = |frame: &&Frame<'s>| frame.label == Some(text);
        let found = match text.parse::<usize>() {
            Ok(depth) => self.frames.iter().rev().nth(depth),
            Err(_) => self.frames.iter().rev().find(named),
        };
        match found {
            Some(frame) => Ok(frame.branch().to_vec()),
            None => {
                let around: Vec<&str> = self.frames.iter().rev().filter_map(|frame| frame.label).collect();
                self.fault(node, wording::unknown_label(text, &around))
            }
        }
    }

    /// Says what is wrong with a name that is no instruction; silent about rare ones that are.
    fn unknown<T>(&self, at: NodeId, first: NodeId, name: &'s str) -> Walked<T> {
        if at == first && (name.starts_with('$') || name.starts_with(|c: char| c.is_ascii_digit() || c == '-')) {
            return self.bare(first);
        }
        if is_instruction(name) {
            return Err(Stop::Unknown);
        }
        if let Some(form) = forms::form(name) {
            return self.fault(first, wording::flat_form(name, form.usage));
        }
        let plain = name.strip_prefix('$').unwrap_or(name);
        if let Some(signature) = self.host.get(plain) {
            return self.fault(first, wording::call_missing(name, signature));
        }
        if self.program.defined.contains_key(name) {
            return self.fault(first, wording::helper_call_missing(name));
        }
        let functions = super::nearest::functions(plain, self.host, Some(self.program));
        let words = wording::unknown_instruction(name, &ops::nearest(name), functions, Code::from_name(name));
        self.fault(first, words)
    }

    /// Says how a bare name or number is written where an instruction is expected.
    fn bare<T>(&self, node: NodeId) -> Walked<T> {
        let text = self.tree.text(node);
        let words = match self.func.locals.get(text) {
            Some(_) => wording::bare_operand(text, &format!("(local.get {text})")),
            None if is_number(Val::I32, text) => wording::bare_operand(text, &format!("(i32.const {text})")),
            None if is_number(Val::F64, text) => wording::bare_operand(text, &format!("(f64.const {text})")),
            None if self.types.globals.by_name.contains_key(text) => {
                wording::bare_operand(text, &format!("(global.get {text})"))
            }
            None if self.program.defined.contains_key(text) => wording::helper_call_missing(text),
            None => match text.strip_prefix('$').and_then(|plain| self.host.get(plain)) {
                Some(signature) => wording::call_missing(text, signature),
                None if text.starts_with('$') => {
                    let near = super::nearest::names(text, self.func.locals.by_name.keys().copied());
                    wording::unknown_local(text, &near, false)
                }
                None => return self.unknown(NodeId(u32::MAX), node, text),
            },
        };
        self.fault(node, words)
    }

    /// Walks over a form's operand, an i32, and takes its value.
    pub(super) fn operand(&mut self, form: NodeId, operand: NodeId) -> Walked<()> {
        let name = self.tree.head(form).unwrap_or("");
        match self.tree.node(operand).kind {
            Kind::Text | Kind::Block => Ok(()),
            Kind::Atom if self.tree.name(operand).is_some() => match self.local(operand)? {
                Val::I32 => Ok(()),
                other => {
                    let usage = forms::form(name).map_or(name, |form| form.usage);
                    let text = self.tree.text(operand);
                    let hint = ops::conversion(other, Val::I32);
                    self.fault(operand, wording::operand_type(usage, 0, None, Val::I32, other, text, hint))
                }
            },
            Kind::Atom => Ok(()),
            Kind::List => {
                let base = self.stack.len();
                self.list(operand)?;
                let given = Some(self.stack.len().saturating_sub(base));
                let (pops, pushes) = (vec![Val::I32], Vec::new());
                self.apply(Effect { at: form, name, argument: None, pops, pushes, after: After::Next, given })
            }
        }
    }

    /// Checks that a local is an i32.
    pub(super) fn pointer(&self, form: NodeId, node: NodeId) -> Walked<()> {
        match self.local(node)? {
            Val::I32 => Ok(()),
            other => {
                let name = self.tree.head(form).unwrap_or("");
                self.fault(node, wording::form_target(name, self.tree.text(node), other))
            }
        }
    }
}

fn skip_name(tree: &Tree<'_>, nodes: &mut Nodes) {
    if nodes.peek(tree).is_some_and(|node| tree.name(node).is_some()) {
        nodes.next(tree);
    }
}

fn is_label(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.starts_with('$') || text.bytes().all(|b| b.is_ascii_digit()))
}

/// Types as diagnostics list them.
pub(super) fn list_types(types: &[Val]) -> String {
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(", ")
}

/// Whether a text is a number of that type. Unusual ways to write floats are left to the engine's reader.
fn is_number(ty: Val, text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let number = digits.starts_with(|c: char| c.is_ascii_digit());
    match ty {
        Val::I32 => forms::is_i32(text),
        Val::I64 => forms::is_integer(text, 64),
        _ if digits.starts_with("0x") || digits.starts_with("nan") || digits == "inf" => true,
        _ => number && digits.replace('_', "").parse::<f64>().is_ok(),
    }
}

/// Whether WAT has an instruction of that name, by the engine's own reader.
fn is_instruction(name: &str) -> bool {
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return false;
    }
    let text = format!("(module (func {name}))");
    let read = wast::parser::ParseBuffer::new(&text)
        .and_then(|buffer| wast::parser::parse::<wast::Wat<'_>>(&buffer).map(|_| ()));
    !read.is_err_and(|e| e.message().contains("unknown operator"))
}
