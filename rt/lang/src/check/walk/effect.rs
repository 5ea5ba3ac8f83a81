//! The operands and results of each instruction, determined from its name and immediates.

use super::stack::{Continuation, Frame, InstructionEffect};
use super::{Stop, Walk, WalkResult};
use crate::Code;
use crate::diagnose::fix::Change;
use crate::diagnose::nearest;
use crate::diagnose::wording;
use crate::habits::rewrite;
use crate::lower::stack_effect::{next_label, skip_memory};
use crate::syntax::literal::{index, is_number};
use crate::syntax::tree::{NodeId, NodeKind, Nodes};
use crate::types::Val;
use crate::types::instruction::{self, Immediate};

impl<'s> Walk<'_, 's> {
    /// Reads the immediates of an instruction and returns its effect. `first` is the node that
    /// contains the instruction's name.
    pub(crate) fn effect(
        &mut self,
        at: NodeId,
        first: NodeId,
        name: &'s str,
        nodes: &mut Nodes,
    ) -> WalkResult<InstructionEffect<'s>> {
        let tree = self.tree;
        let mut effect = InstructionEffect::new(at, name);
        match name {
            "call" | "return_call" => {
                let callee = self.argument(&mut effect, "a function's name", "$f …", nodes)?;
                (effect.pops, effect.pushes) = self.function_type(callee)?;
                if name == "return_call" {
                    (effect.pushes, effect.after) = (Vec::new(), Continuation::Never);
                }
            }
            "local.get" | "local.set" | "local.tee" => {
                let usage = if name == "local.get" { "$x" } else { "$x …" };
                let node = self.argument(&mut effect, "a local's name", usage, nodes)?;
                let ty = self.local(at, name, node)?;
                effect.pops.extend((name != "local.get").then_some(ty));
                effect.pushes.extend((name != "local.set").then_some(ty));
            }
            "global.get" | "global.set" => self.global_effect(&mut effect, nodes)?,
            "br" => {
                let node = self.argument(&mut effect, "a label", "$label", nodes)?;
                effect.pops = self.label(node)?;
                effect.after = Continuation::Never;
            }
            "br_if" => {
                let node = self.argument(&mut effect, "a label", "$label …", nodes)?;
                effect.pushes = self.label(node)?;
                effect.pops = effect.pushes.clone();
                effect.pops.push(Val::I32);
            }
            "br_table" => self.branch_table_effect(&mut effect, nodes)?,
            "return" => {
                effect.pops =
                    self.frames.first().map(|frame| frame.results.clone()).unwrap_or_default();
                effect.after = Continuation::Never;
            }
            "unreachable" => effect.after = Continuation::Never,
            "select" => match nodes.peek(tree).filter(|node| tree.head(*node) == Some("result")) {
                Some(_) => {
                    let ty = self.types.signature(tree, nodes).ok_or(Stop::Unsupported)?;
                    let [one] = ty.results.as_slice() else { return Err(Stop::Unsupported) };
                    (effect.pops, effect.pushes) = (vec![*one, *one, Val::I32], vec![*one]);
                }
                None => effect.after = Continuation::Select,
            },
            "call_indirect" => {
                next_label(tree, nodes);
                let ty = self.types.signature(tree, nodes).ok_or(Stop::Unsupported)?;
                (effect.pops, effect.pushes) = (ty.params, ty.results);
                effect.pops.push(Val::I32);
            }
            "ref.func" => {
                self.argument(&mut effect, "a function's name", "$f", nodes)?;
                effect.pushes.push(Val::Func);
            }
            "ref.null" => {
                let node = self.argument(&mut effect, "a type", "func", nodes)?;
                effect.pushes.push(match tree.text(node) {
                    "func" => Val::Func,
                    "extern" => Val::Extern,
                    _ => return Err(Stop::Unsupported),
                });
            }
            "ref.is_null" => (effect.pops, effect.pushes) = (vec![Val::Any], vec![Val::I32]),
            _ => {
                let Some(op) = instruction::op(name) else {
                    return self.report_unknown(at, first, name);
                };
                (effect.pops, effect.pushes) = (op.pops.to_vec(), op.pushes.to_vec());
                self.immediate(at, name, op.immediate, nodes)?;
            }
        }
        Ok(effect)
    }

    fn global_effect(
        &self,
        effect: &mut InstructionEffect<'s>,
        nodes: &mut Nodes,
    ) -> WalkResult<()> {
        let name = effect.name;
        let usage = if name == "global.get" { "$g" } else { "$g …" };
        let node = self.argument(effect, "a global's name", usage, nodes)?;
        let text = self.tree.text(node);
        let Some(global) = self.types.globals.get(text) else {
            let is_local = self.func.locals.get(text).is_some();
            let near = nearest::names(text, self.types.globals.by_name.keys().copied());
            let change = match near.as_slice() {
                _ if is_local => {
                    self.rename_instruction(effect.at, name, &name.replace("global", "local"))
                }
                near => nearest::certain(text, near.iter().copied())
                    .map(|near| Change::Replace(near.to_owned())),
            };
            return self
                .fault(node, wording::unknown_global(text, &near, is_local).maybe_safe(change));
        };
        let global = global.ok_or(Stop::Unsupported)?;
        match name {
            "global.get" => effect.pushes.push(global.ty),
            _ if !global.mutable => {
                let message = wording::constant_global(text, global.ty);
                return self.fault(node, message.maybe_safe(self.make_mutable(text)));
            }
            _ => effect.pops.push(global.ty),
        }
        Ok(())
    }

    fn branch_table_effect(
        &self,
        effect: &mut InstructionEffect<'s>,
        nodes: &mut Nodes,
    ) -> WalkResult<()> {
        let labels: Vec<NodeId> = std::iter::from_fn(|| next_label(self.tree, nodes)).collect();
        let Some(last) = labels.last() else {
            let usage = "(br_table $a $b (expr))";
            return self.fault(effect.at, wording::missing_argument(effect.name, "labels", usage));
        };
        effect.pops = self.label(*last)?;
        for node in &labels {
            self.label(*node)?;
        }
        effect.pops.push(Val::I32);
        effect.after = Continuation::Never;
        Ok(())
    }

    /// Reads the numeric or memory immediate of an instruction.
    pub(crate) fn immediate(
        &mut self,
        at: NodeId,
        name: &str,
        immediate: Immediate,
        nodes: &mut Nodes,
    ) -> WalkResult<()> {
        let tree = self.tree;
        skip_memory(tree, immediate, nodes);
        let Immediate::Number(ty) = immediate else { return Ok(()) };
        let Some(node) = nodes.next(tree) else {
            let usage = format!("({name} 0)");
            return self.fault(at, wording::missing_argument(name, "a number", &usage));
        };
        if tree.is_text(node) && ty == Val::I32
            || tree.atom(node).is_some_and(|text| is_number(ty, text))
        {
            return Ok(());
        }
        let text = self.excerpt(node);
        let local = self.func.locals.get(&text).is_some();
        let code = Code::from_name(&text).map(Code::number);
        let change = self.constant_of(node, &text, local, code);
        let message = wording::bad_number(name, ty, &text, local, code);
        self.fault(node, message.maybe_safe(change))
    }

    /// Returns the change that corrects a constant instruction whose operand is not a number, or
    /// `None` if the intended value is unclear.
    fn constant_of(
        &self,
        node: NodeId,
        text: &str,
        local: bool,
        code: Option<i32>,
    ) -> Option<Change> {
        let tree = self.author;
        let inner = self.origin(node)?;
        let list = tree
            .parent(inner)
            .filter(|list| tree.head(*list).is_some_and(|h| h.ends_with(".const")))?;
        match text {
            _ if code.is_some() => code.map(|code| Change::Replace(code.to_string())),
            _ if local => {
                Some(Change::Edits(vec![(tree.span(list), format!("(local.get {text})"))]))
            }
            "true" => Some(Change::Replace("1".to_owned())),
            "false" | "null" | "nil" => Some(Change::Replace("0".to_owned())),
            _ if tree.is_list(inner) => Some(rewrite::replace_with_child(tree, list, inner)),
            _ => None,
        }
    }

    /// Returns the change that replaces the name of the instruction at `at` with `other`. Returns
    /// `None` if the instruction is not called `name` in the source.
    fn rename_instruction(&self, at: NodeId, name: &str, other: &str) -> Option<Change> {
        let tree = self.author;
        let node = self.origin(at)?;
        match tree.node(node).kind {
            NodeKind::List => {
                rewrite::replace_head(tree, node, other).filter(|_| tree.head(node) == Some(name))
            }
            _ => Some(Change::Edits(vec![(tree.span(node), other.to_owned())]))
                .filter(|_| tree.text(node) == name),
        }
    }

    /// Returns the change that makes a global mutable.
    fn make_mutable(&self, name: &str) -> Option<Change> {
        let tree = self.author;
        let mut lists =
            (0..tree.len()).map(NodeId).filter(|node| tree.head(*node) == Some("global"));
        let global = lists
            .find(|list| tree.items(*list).get(1).and_then(|n| tree.name(*n)) == Some(name))?;
        let ty = *tree.items(global).get(2).filter(|ty| tree.atom(**ty).is_some())?;
        Some(Change::Edits(rewrite::around(tree, ty, "(mut ", ")")))
    }

    /// Returns the change that declares a local before the instruction that sets it.
    fn declare_local(&self, at: NodeId, name: &str) -> Option<Change> {
        let start = self.author.span(self.origin(at)?).start;
        Some(Change::Edits(vec![(start..start, format!("(local {name} i32) "))]))
    }

    /// Reads the name or number that must follow an instruction's name. `usage` is an example of
    /// what follows the name.
    fn argument(
        &self,
        effect: &mut InstructionEffect<'s>,
        what: &str,
        usage: &str,
        nodes: &mut Nodes,
    ) -> WalkResult<NodeId> {
        if let Some(node) = nodes.next_if(self.tree, |node| self.tree.atom(node).is_some()) {
            effect.argument = Some(self.tree.text(node));
            return Ok(node);
        }
        let (at, name) = (effect.at, effect.name);
        let change = self.origin(at).and_then(|list| {
            let items = self.author.items(list);
            let [_, value, target] = items.as_slice() else { return None };
            self.author.name(*target).map(|_| rewrite::swap(self.author, *value, *target))
        });
        let swappable = matches!(name, "local.set" | "local.tee" | "global.set");
        let message = wording::missing_argument(name, what, &format!("({name} {usage})"));
        self.fault(at, message.maybe_safe(change.filter(|_| swappable)))
    }

    pub(crate) fn function_type(&self, callee: NodeId) -> WalkResult<(Vec<Val>, Vec<Val>)> {
        let name = self.tree.text(callee);
        if let Some(at) = self.program.defined.get(name) {
            let ty = self.types.funcs.get(*at).cloned().flatten().ok_or(Stop::Unsupported)?;
            return Ok((ty.params, ty.results));
        }
        let signature =
            self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?));
        let signature = signature.ok_or(Stop::Unsupported)?;
        Ok((signature.pops().map(Val::from).collect(), signature.pushes().map(Val::from).collect()))
    }

    /// Returns the type of the local that an instruction names.
    pub(crate) fn local(&self, at: NodeId, name: &str, node: NodeId) -> WalkResult<Val> {
        let text = self.tree.text(node);
        let locals = &self.func.locals;
        let found = if text.starts_with('$') {
            locals.get(text)
        } else {
            index(text).and_then(|at| locals.list.get(at))
        };
        match found {
            Some(local) => Val::from_wat(local.ty).ok_or(Stop::Unsupported),
            None => {
                let near = nearest::names(text, self.local_names());
                let global = self.types.globals.by_name.contains_key(text);
                let change = match near.as_slice() {
                    _ if global => {
                        self.rename_instruction(at, name, &name.replace("local", "global"))
                    }
                    // The local is set but not declared, so the fix declares it.
                    [] if name != "local.get" && text.starts_with('$') => {
                        self.declare_local(at, text)
                    }
                    _ => self.certain_local(text),
                };
                self.fault(node, wording::unknown_local(text, &near, global).maybe_safe(change))
            }
        }
    }

    /// Returns the types of the values that a branch to a label passes.
    pub(crate) fn label(&self, node: NodeId) -> WalkResult<Vec<Val>> {
        let text = self.tree.text(node);
        let named = |frame: &&Frame<'s>| frame.label == Some(text);
        let found = match index(text) {
            Some(depth) => self.frames.iter().rev().nth(depth),
            None => self.frames.iter().rev().find(named),
        };
        match found {
            Some(frame) => Ok(frame.branch().to_vec()),
            None => {
                let own = |label: &&str| !label.starts_with("$.");
                let around: Vec<&str> =
                    self.frames.iter().rev().filter_map(|frame| frame.label).filter(own).collect();
                let change = nearest::certain(text, around.iter().copied())
                    .map(|near| Change::Replace(near.to_owned()));
                self.fault(node, wording::unknown_label(text, &around).maybe_safe(change))
            }
        }
    }
}
