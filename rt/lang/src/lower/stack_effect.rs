//! The stack effect of WAT instructions, derived from their names and immediates.

use super::Lowering;
use super::scope::Variable;
use crate::syntax::literal::index;
use crate::syntax::tree::{NodeId, Nodes, Tree};
use crate::types::Type;
use crate::types::Val;
use crate::types::instruction::{Immediate, Instruction, Op, instruction};
use crate::{Param, Signature};

/// The stack effect of an instruction.
pub(crate) struct StackEffect {
    pub(crate) pops: Pops,
    /// The number of values that the instruction pushes.
    pub(crate) pushes: usize,
    /// The type of the first value that the instruction pushes.
    pub(crate) ty: Type,
    /// If true, control does not continue after the instruction.
    pub(crate) never: bool,
    /// If true, the instruction is a load or store.
    pub(crate) accesses_memory: bool,
}

/// The types of the values that an instruction pops.
pub(crate) enum Pops {
    Fixed(&'static [Val]),
    One(Val),
    Host(&'static [Param]),
    List(Vec<Val>),
    /// The types are not known.
    Unknown,
}

impl Pops {
    pub(crate) fn len(&self) -> usize {
        match self {
            Pops::Fixed(types) => types.len(),
            Pops::One(_) => 1,
            Pops::Host(params) => params.len(),
            Pops::List(types) => types.len(),
            Pops::Unknown => 0,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Val> {
        let ty = match self {
            Pops::Fixed(types) => types.get(at).copied(),
            Pops::One(ty) => (at == 0).then_some(*ty),
            Pops::Host(params) => params.get(at).map(|param| Val::from(param.ty.val())),
            Pops::List(types) => types.get(at).copied(),
            Pops::Unknown => None,
        };
        ty.filter(|ty| *ty != Val::Any)
    }
}

impl StackEffect {
    fn new(pops: Pops, pushes: usize, ty: Type) -> Option<StackEffect> {
        Some(StackEffect { pops, pushes, ty, never: false, accesses_memory: false })
    }

    fn never() -> Option<StackEffect> {
        let effect = StackEffect::new(Pops::Unknown, 0, Type::Any)?;
        Some(StackEffect { never: true, ..effect })
    }

    /// Returns the effect of calling a host function.
    pub(crate) fn of_host(signature: &Signature) -> StackEffect {
        let result = signature.results.first().map(|result| Type::of_host(result.ty));
        let code = || if signature.fallible() { Type::Code } else { Type::Any };
        StackEffect {
            pops: Pops::Host(signature.params),
            pushes: signature.pushes().count(),
            ty: result.unwrap_or_else(code),
            never: false,
            accesses_memory: false,
        }
    }
}

impl Lowering<'_, '_> {
    /// Reads the immediates of the instruction with this name and returns its effect. Returns
    /// `None` for an unknown instruction.
    pub(crate) fn named_effect(&self, name: &str, nodes: &mut Nodes) -> Option<StackEffect> {
        self.effect(instruction(name)?, nodes)
    }

    /// Reads the immediates of an instruction and returns its effect. Returns `None` if the
    /// immediates do not determine the effect.
    pub(crate) fn effect(
        &self,
        instruction: &Instruction,
        nodes: &mut Nodes,
    ) -> Option<StackEffect> {
        let tree = self.tree;
        let mut atom =
            || nodes.next_if(tree, |node| tree.atom(node).is_some()).map(|node| tree.text(node));
        match instruction {
            Instruction::Op(op) => self.operation(op, nodes),
            Instruction::Call => {
                let effect = self.called(atom()?);
                effect.or_else(|| StackEffect::new(Pops::Unknown, 0, Type::Any))
            }
            Instruction::ReturnCall | Instruction::Br => atom().and(StackEffect::never()),
            Instruction::LocalGet => {
                let (_, ty) = self.local_type(atom()?);
                StackEffect::new(Pops::Fixed(&[]), 1, ty)
            }
            Instruction::LocalSet => {
                let val = self.local(atom()?).map_or(Val::Any, representation);
                StackEffect::new(Pops::One(val), 0, Type::Any)
            }
            Instruction::LocalTee => {
                let (val, ty) = self.local_type(atom()?);
                StackEffect::new(Pops::One(val), 1, ty)
            }
            Instruction::GlobalGet => {
                StackEffect::new(Pops::Fixed(&[]), 1, Type::of_wat(self.global_type(atom()?)))
            }
            Instruction::GlobalSet => {
                StackEffect::new(Pops::One(self.global_type(atom()?)), 0, Type::Any)
            }
            Instruction::BrIf => atom().and(StackEffect::new(Pops::One(Val::I32), 0, Type::Any)),
            Instruction::BrTable => {
                while next_label(tree, nodes).is_some() {}
                StackEffect::never()
            }
            Instruction::Return | Instruction::Unreachable => StackEffect::never(),
            Instruction::Select => {
                let typed = nodes.peek(tree).filter(|node| tree.head(*node) == Some("result"));
                let ty = typed.and_then(|_| self.types.signature(tree, nodes));
                let ty = ty.and_then(|ty| ty.results.first().copied());
                let pops = Pops::Fixed(&[Val::Any, Val::Any, Val::I32]);
                StackEffect::new(pops, 1, ty.map_or(Type::Any, Type::of_wat))
            }
            Instruction::CallIndirect => self.indirect_call(true, nodes),
            Instruction::ReturnCallIndirect => self.indirect_call(false, nodes),
            Instruction::RefFunc => {
                atom().and(StackEffect::new(Pops::Fixed(&[]), 1, Type::Wat(Val::Func)))
            }
            Instruction::RefNull => {
                let ty = if atom()? == "extern" { Val::Extern } else { Val::Func };
                StackEffect::new(Pops::Fixed(&[]), 1, Type::Wat(ty))
            }
            Instruction::RefIsNull => StackEffect::new(Pops::Fixed(&[Val::Any]), 1, Type::Bool),
            Instruction::Block | Instruction::Loop | Instruction::If | Instruction::Part => None,
        }
    }

    /// Returns the effect of an indirect call. If `returns` is false, the call is a tail call, and
    /// control does not return.
    fn indirect_call(&self, returns: bool, nodes: &mut Nodes) -> Option<StackEffect> {
        let tree = self.tree;
        next_label(tree, nodes);
        match self.types.signature(tree, nodes) {
            Some(ty) if returns => {
                let first = ty.results.first().copied().map_or(Type::Any, Type::of_wat);
                let mut pops = ty.params;
                pops.push(Val::I32);
                StackEffect::new(Pops::List(pops), ty.results.len(), first)
            }
            Some(_) => StackEffect::never(),
            None => StackEffect::new(Pops::Unknown, 0, Type::Any),
        }
    }

    /// Reads the immediates of an instruction whose name determines its operands and results.
    /// Returns the instruction's effect.
    fn operation(&self, op: &Op, nodes: &mut Nodes) -> Option<StackEffect> {
        match op.immediate {
            Immediate::Number(_) => _ = nodes.next(self.tree)?,
            memory => skip_memory(self.tree, memory, nodes),
        }
        let ty = match op.pushes.first() {
            Some(_) if op.compares => Type::Bool,
            first => first.copied().map_or(Type::Any, Type::of_wat),
        };
        let accesses_memory = op.immediate == Immediate::Memory;
        let effect = StackEffect::new(Pops::Fixed(op.pops), op.pushes.len(), ty)?;
        Some(StackEffect { accesses_memory, ..effect })
    }

    /// Returns the effect of calling the function `name`.
    pub(crate) fn called(&self, name: &str) -> Option<StackEffect> {
        if let Some(at) = self.program.defined.get(name) {
            let ty = self.types.funcs.get(*at)?.as_ref()?;
            let first = ty.results.first().copied().map_or(Type::Any, Type::of_wat);
            return StackEffect::new(Pops::List(ty.params.clone()), ty.results.len(), first);
        }
        let known =
            self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))?;
        Some(StackEffect::of_host(known))
    }

    /// Returns the WAT representation of a variable, and its type.
    fn local_type(&self, text: &str) -> (Val, Type) {
        let variable = self.local(text);
        (variable.map_or(Val::Any, representation), variable.map_or(Type::Any, Variable::ty))
    }

    /// Returns the variable with this name or number.
    fn local(&self, text: &str) -> Option<&Variable<'_>> {
        let scope = &self.func.scope;
        if text.starts_with('$') {
            scope.get(text)
        } else {
            index(text).and_then(|at| scope.at(at))
        }
    }

    fn global_type(&self, text: &str) -> Val {
        self.types.globals.get(text).copied().flatten().map_or(Val::Any, |global| global.ty)
    }
}

fn representation(variable: &Variable<'_>) -> Val {
    Val::from_wat(variable.wat).unwrap_or(Val::Any)
}

/// Skips the immediates of an instruction that accesses memory: memory indices, `offset=` and
/// `align=`. There is only one memory, but `memory.copy` may name it twice.
pub(crate) fn skip_memory(tree: &Tree<'_>, immediate: Immediate, nodes: &mut Nodes) {
    if !matches!(immediate, Immediate::Memory | Immediate::Memories) {
        return;
    }
    let is_index = |node| tree.atom(node).and_then(index).is_some();
    while nodes.next_if(tree, is_index).is_some() {}
    let is_part = |node| {
        let text = tree.atom(node).unwrap_or("");
        text.starts_with("offset=") || text.starts_with("align=")
    };
    if immediate == Immediate::Memory {
        while nodes.next_if(tree, is_part).is_some() {}
    }
}

/// Returns the next node and advances past it, if the node is the name or number of a label.
pub(crate) fn next_label(tree: &Tree<'_>, nodes: &mut Nodes) -> Option<NodeId> {
    let is_label = |text: &str| text.starts_with('$') || index(text).is_some();
    nodes.next_if(tree, |node| tree.atom(node).is_some_and(is_label))
}
