//! The stack effect of WAT instructions, derived from their names and immediates.

use super::Lowering;
use crate::Signature;
use crate::syntax::literal::index;
use crate::syntax::tree::{NodeKind, Nodes};
use crate::types::Type;
use crate::types::ops::{self, Immediate, Val};

/// The stack effect of an instruction.
pub(crate) struct StackEffect {
    pub(crate) pops: Pops,
    /// The number of values that it pushes.
    pub(crate) pushes: usize,
    /// The type of the first value that it pushes.
    pub(crate) ty: Type,
    /// If true, control does not continue after the instruction.
    pub(crate) never: bool,
}

/// The types of the values that an instruction pops.
pub(crate) enum Pops {
    Fixed(&'static [Val]),
    One(Val),
    Host(Signature),
    List(Vec<Val>),
    /// The types are not known.
    Unknown,
}

impl Pops {
    pub(crate) fn len(&self) -> usize {
        match self {
            Pops::Fixed(types) => types.len(),
            Pops::One(_) => 1,
            Pops::Host(signature) => signature.params.len(),
            Pops::List(types) => types.len(),
            Pops::Unknown => 0,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Val> {
        let ty = match self {
            Pops::Fixed(types) => types.get(at).copied(),
            Pops::One(ty) => (at == 0).then_some(*ty),
            Pops::Host(signature) => {
                signature.params.get(at).map(|param| Val::from(param.ty.val()))
            }
            Pops::List(types) => types.get(at).copied(),
            Pops::Unknown => None,
        };
        ty.filter(|ty| *ty != Val::Any)
    }
}

impl StackEffect {
    fn new(pops: Pops, pushes: usize, ty: Type) -> Option<StackEffect> {
        Some(StackEffect { pops, pushes, ty, never: false })
    }

    fn never() -> Option<StackEffect> {
        Some(StackEffect { pops: Pops::Unknown, pushes: 0, ty: Type::Any, never: true })
    }

    /// Returns the effect of calling a host function.
    pub(crate) fn of_host(signature: &Signature) -> StackEffect {
        let result = signature.results.first().map(|result| Type::of_host(result.ty));
        let code = || if signature.fallible() { Type::Code } else { Type::Any };
        StackEffect {
            pops: Pops::Host(*signature),
            pushes: signature.pushes().count(),
            ty: result.unwrap_or_else(code),
            never: false,
        }
    }
}

impl Lowering<'_, '_> {
    /// Reads the immediates of an instruction and returns its effect. Returns `None` for an unknown
    /// instruction.
    pub(crate) fn effect(&self, name: &str, nodes: &mut Nodes) -> Option<StackEffect> {
        let tree = self.tree;
        let mut atom = || {
            let node = nodes.peek(tree).filter(|node| tree.node(*node).kind == NodeKind::Atom)?;
            nodes.next(tree);
            Some(tree.text(node))
        };
        match name {
            "call" | "return_call" => {
                let called = atom()?;
                let effect = self.called(called);
                match name {
                    "call" => effect.or_else(|| StackEffect::new(Pops::Unknown, 0, Type::Any)),
                    _ => StackEffect::never(),
                }
            }
            "local.get" => {
                let (_, ty) = self.local_type(atom()?);
                StackEffect::new(Pops::Fixed(&[]), 1, ty)
            }
            "local.set" => {
                let (val, _) = self.local_type(atom()?);
                StackEffect::new(Pops::One(val), 0, Type::Any)
            }
            "local.tee" => {
                let (val, ty) = self.local_type(atom()?);
                StackEffect::new(Pops::One(val), 1, ty)
            }
            "global.get" => {
                StackEffect::new(Pops::Fixed(&[]), 1, Type::of_wat(self.global_type(atom()?)))
            }
            "global.set" => StackEffect::new(Pops::One(self.global_type(atom()?)), 0, Type::Any),
            "br" => atom().and(StackEffect::never()),
            "br_if" => atom().and(StackEffect::new(Pops::One(Val::I32), 0, Type::Any)),
            "br_table" => {
                while nodes.peek(tree).and_then(|node| tree.atom(node)).is_some_and(is_label) {
                    nodes.next(tree);
                }
                StackEffect::never()
            }
            "return" | "unreachable" => StackEffect::never(),
            "select" => match nodes.peek(tree).filter(|node| tree.head(*node) == Some("result")) {
                Some(_) => {
                    let ty = self
                        .types
                        .signature(tree, nodes)
                        .and_then(|ty| ty.results.first().copied());
                    StackEffect::new(
                        Pops::Fixed(&[Val::Any, Val::Any, Val::I32]),
                        1,
                        ty.map_or(Type::Any, Type::of_wat),
                    )
                }
                None => {
                    StackEffect::new(Pops::Fixed(&[Val::Any, Val::Any, Val::I32]), 1, Type::Any)
                }
            },
            "call_indirect" | "return_call_indirect" => self.indirect_call(name, nodes),
            "ref.func" => atom().and(StackEffect::new(Pops::Fixed(&[]), 1, Type::Wat(Val::Func))),
            "ref.null" => {
                let ty = if atom()? == "extern" { Val::Extern } else { Val::Func };
                StackEffect::new(Pops::Fixed(&[]), 1, Type::Wat(ty))
            }
            "ref.is_null" => StackEffect::new(Pops::Fixed(&[Val::Any]), 1, Type::Bool),
            _ => self.operation(name, nodes),
        }
    }

    fn indirect_call(&self, name: &str, nodes: &mut Nodes) -> Option<StackEffect> {
        let tree = self.tree;
        if nodes.peek(tree).and_then(|node| tree.atom(node)).is_some_and(is_label) {
            nodes.next(tree);
        }
        match self.types.signature(tree, nodes) {
            Some(ty) if name == "call_indirect" => {
                let first = ty.results.first().copied().map_or(Type::Any, Type::of_wat);
                let mut pops = ty.params;
                pops.push(Val::I32);
                StackEffect::new(Pops::List(pops), ty.results.len(), first)
            }
            Some(_) => StackEffect::never(),
            None => StackEffect::new(Pops::Unknown, 0, Type::Any),
        }
    }

    /// Reads an instruction whose effect follows from its name.
    fn operation(&self, name: &str, nodes: &mut Nodes) -> Option<StackEffect> {
        let tree = self.tree;
        let op = ops::op(name)?;
        match op.immediate {
            Immediate::None if name.starts_with("memory.") => self.memory_numbers(nodes),
            Immediate::None => {}
            Immediate::Memory => {
                self.memory_numbers(nodes);
                let part = |text: &str| text.starts_with("offset=") || text.starts_with("align=");
                while nodes.peek(tree).and_then(|node| tree.atom(node)).is_some_and(part) {
                    nodes.next(tree);
                }
            }
            Immediate::Number(_) => {
                nodes.next(tree)?;
            }
        }
        let ty = match op.pushes.first() {
            Some(_) if ops::compares(name) => Type::Bool,
            first => first.copied().map_or(Type::Any, Type::of_wat),
        };
        StackEffect::new(Pops::Fixed(op.pops), op.pushes.len(), ty)
    }

    /// Skips memory indices. There is only one memory, and `memory.copy` may name it twice.
    fn memory_numbers(&self, nodes: &mut Nodes) {
        while nodes.peek(self.tree).and_then(|node| self.tree.atom(node)).and_then(index).is_some()
        {
            nodes.next(self.tree);
        }
    }

    /// Returns the effect of calling the function `name`.
    pub(crate) fn called(&self, name: &str) -> Option<StackEffect> {
        if let Some(at) = self.program.defined.get(name) {
            let ty = self.types.funcs.get(*at).cloned().flatten()?;
            let first = ty.results.first().copied().map_or(Type::Any, Type::of_wat);
            return StackEffect::new(Pops::List(ty.params), ty.results.len(), first);
        }
        let known =
            self.program.aliases.get(name).or_else(|| self.host.get(name.strip_prefix('$')?))?;
        Some(StackEffect::of_host(known))
    }

    /// Returns how WAT represents a variable, and its type.
    fn local_type(&self, text: &str) -> (Val, Type) {
        let scope = &self.func.scope;
        let variable = match text.starts_with('$') {
            true => scope.get(text),
            false => index(text).and_then(|at| scope.at(at)),
        };
        let val = variable.and_then(|variable| Val::from_wat(variable.wat)).unwrap_or(Val::Any);
        (val, variable.map_or(Type::Any, |variable| variable.ty))
    }

    fn global_type(&self, text: &str) -> Val {
        self.types.globals.get(text).copied().flatten().map_or(Val::Any, |global| global.ty)
    }
}

fn is_label(text: &str) -> bool {
    text.starts_with('$') || index(text).is_some()
}
