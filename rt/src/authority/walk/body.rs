//! The walk over one function.

use wasmparser::{BlockType, Operator, ValType};

use super::Walk;
use crate::authority::value::Value;

/// What is known at one place: the locals, and the values that a branch carries.
#[derive(Clone, Debug)]
pub(super) struct State {
    locals: Vec<Value>,
    carried: Vec<Value>,
}

impl State {
    fn join(&mut self, other: &State) -> bool {
        let mut grew = false;
        let own = self.locals.iter_mut().chain(&mut self.carried);
        for (own, more) in own.zip(other.locals.iter().chain(&other.carried)) {
            grew |= own.join(more);
        }
        grew
    }
}

/// A block that is open.
struct Frame {
    kind: Kind,
    /// How many values lie below it on the stack.
    height: usize,
    params: usize,
    results: usize,
    /// What is known where it ends, of the branches met so far; `None` while none leads there.
    end: Option<State>,
    /// Whether its beginning can be reached.
    live: bool,
}

enum Kind {
    Block,
    /// By the place of its head.
    Loop(u64),
    /// With what is known where the condition does not hold.
    If(Option<State>),
}

struct Body<'w, 'm, 'b> {
    walk: &'w mut Walk<'m, 'b>,
    body: usize,
    locals: Vec<Value>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    /// Whether the next instruction can be reached.
    live: bool,
}

/// Walks over a function once, from what is known of its parameters.
pub(super) fn walk(walk: &mut Walk<'_, '_>, body: usize) -> Option<()> {
    let module = walk.module;
    let function = walk.functions.get(body)?;
    let (mut locals, results) = (function.params.clone(), function.results.len());
    let code = module.bodies.get(body)?;
    for group in code.get_locals_reader().ok()? {
        let (count, ty) = group.ok()?;
        let initial = if ty == ValType::I32 { Value::number(0) } else { Value::Any };
        walk.spend(count as usize)?;
        locals.extend(std::iter::repeat_n(initial, count as usize));
    }
    let frame = Frame { kind: Kind::Block, height: 0, params: 0, results, end: None, live: true };
    let mut body = Body { walk, body, locals, stack: Vec::new(), frames: vec![frame], live: true };
    let mut operators = code.get_operators_reader().ok()?;
    while !operators.eof() {
        let place = operators.original_position();
        let operator = operators.read().ok()?;
        body.walk.spend(1)?;
        if body.live {
            body.step(place, &operator)?;
        } else {
            body.skip(&operator)?;
        }
    }
    Some(())
}

impl Body<'_, '_, '_> {
    /// Passes over an instruction that cannot be reached.
    fn skip(&mut self, operator: &Operator<'_>) -> Option<()> {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                let height = self.stack.len();
                self.frames.push(Frame { kind: Kind::Block, height, params: 0, results: 0, end: None, live: false });
            }
            Operator::Else => self.begin_else()?,
            Operator::End => self.end()?,
            _ => {}
        }
        Some(())
    }

    fn step(&mut self, place: u64, operator: &Operator<'_>) -> Option<()> {
        use Operator as O;
        match operator {
            O::Nop => {}
            O::Unreachable => self.live = false,
            O::Block { blockty } => self.begin(Kind::Block, *blockty)?,
            O::Loop { blockty } => self.begin(Kind::Loop(place), *blockty)?,
            O::If { blockty } => {
                self.pop()?;
                self.begin(Kind::If(None), *blockty)?;
            }
            O::Else => self.begin_else()?,
            O::End => self.end()?,
            O::Br { relative_depth } => {
                self.branch(*relative_depth)?;
                self.live = false;
            }
            O::BrIf { relative_depth } => {
                self.pop()?;
                self.branch(*relative_depth)?;
            }
            O::BrTable { targets } => {
                self.pop()?;
                for target in targets.targets() {
                    self.branch(target.ok()?)?;
                }
                self.branch(targets.default())?;
                self.live = false;
            }
            O::Return => {
                self.branch(u32::try_from(self.frames.len().checked_sub(1)?).ok()?)?;
                self.live = false;
            }
            O::Call { function_index } => self.call(place, *function_index)?,
            O::ReturnCall { function_index } => {
                self.call(place, *function_index)?;
                self.branch(u32::try_from(self.frames.len().checked_sub(1)?).ok()?)?;
                self.live = false;
            }
            O::CallIndirect { type_index, .. } => {
                let ty = self.walk.module.ty(*type_index)?;
                self.replace(ty.params.len() + 1, ty.results.len())?;
            }
            O::RefFunc { function_index } => {
                self.walk.call_unknown(*function_index)?;
                self.stack.push(Value::Any);
            }
            O::Drop => drop(self.pop()?),
            O::Select | O::TypedSelect { .. } => {
                self.pop()?;
                let (other, mut one) = (self.pop()?, self.pop()?);
                one.join(&other);
                self.stack.push(one);
            }
            O::LocalGet { local_index } => self.stack.push(self.locals.get(*local_index as usize)?.clone()),
            O::LocalSet { local_index } => *self.locals.get_mut(*local_index as usize)? = self.pop()?,
            O::LocalTee { local_index } => {
                *self.locals.get_mut(*local_index as usize)? = self.stack.last()?.clone();
            }
            O::GlobalGet { global_index } => {
                let value = self.walk.globals.get(*global_index as usize)?.clone();
                self.stack.push(value);
            }
            O::GlobalSet { global_index } => {
                let value = self.pop()?;
                self.walk.grew |= self.walk.globals.get_mut(*global_index as usize)?.join(&value);
            }
            O::I32Const { value } => self.stack.push(Value::number(*value)),
            O::I32Add => self.both(Value::plus)?,
            O::I32Sub => self.both(Value::minus)?,
            O::I32Store8 { memarg } | O::I64Store8 { memarg } => self.store(memarg.offset, 1)?,
            O::I32Store16 { memarg } | O::I64Store16 { memarg } => self.store(memarg.offset, 2)?,
            O::I32Store { memarg } | O::F32Store { memarg } | O::I64Store32 { memarg } => {
                self.store(memarg.offset, 4)?;
            }
            O::I64Store { memarg } | O::F64Store { memarg } => self.store(memarg.offset, 8)?,
            O::MemoryCopy { .. } | O::MemoryFill { .. } | O::MemoryInit { .. } => {
                self.replace(3, 0)?;
                self.walk.writes_anywhere = true;
            }
            O::TableSet { .. } => self.replace(2, 0)?,
            O::TableCopy { .. } | O::TableInit { .. } | O::TableFill { .. } => self.replace(3, 0)?,
            O::TableGrow { .. } => self.replace(2, 1)?,
            O::TableGet { .. } | O::RefIsNull => self.replace(1, 1)?,
            O::TableSize { .. } | O::RefNull { .. } => self.replace(0, 1)?,
            O::DataDrop { .. } | O::ElemDrop { .. } => {}
            _ => {
                let (pops, pushes) = self.plain(place)?;
                self.replace(pops, pushes)?;
            }
        }
        Some(())
    }

    /// How many values an instruction takes and gives that touches nothing but the stack, or only reads the memory.
    fn plain(&self, place: u64) -> Option<(usize, usize)> {
        let code = self.walk.module.binary.get(usize::try_from(place).ok()?..)?;
        Some(match code {
            // Constants, and the memory's size.
            [0x3f | 0x42..=0x44, ..] => (0, 1),
            // Loads, and growing the memory.
            [0x28..=0x35 | 0x40, ..] => (1, 1),
            // Tests against zero, counts of bits, signs and roundings, conversions.
            [0x45 | 0x50 | 0x67..=0x69 | 0x79..=0x7b | 0x8b..=0x91 | 0x99..=0x9f | 0xa7..=0xc4, ..] => (1, 1),
            [0xfc, 0x00..=0x07, ..] => (1, 1),
            // Comparisons and arithmetic of two.
            [0x46..=0xa6, ..] => (2, 1),
            _ => return None,
        })
    }

    fn pop(&mut self) -> Option<Value> {
        self.stack.pop()
    }

    fn take(&mut self, count: usize) -> Option<Vec<Value>> {
        Some(self.stack.split_off(self.stack.len().checked_sub(count)?))
    }

    /// Takes values from the stack, and gives others of which nothing is known.
    fn replace(&mut self, pops: usize, pushes: usize) -> Option<()> {
        self.take(pops)?;
        self.stack.extend(std::iter::repeat_n(Value::Any, pushes));
        Some(())
    }

    fn both(&mut self, operate: fn(&Value, &Value) -> Value) -> Option<()> {
        let (right, left) = (self.pop()?, self.pop()?);
        self.stack.push(operate(&left, &right));
        Some(())
    }

    fn store(&mut self, offset: u64, width: u64) -> Option<()> {
        self.pop()?;
        let address = self.pop()?;
        self.walk.write(&address, offset, width);
        Some(())
    }

    fn call(&mut self, place: u64, function: u32) -> Option<()> {
        let params = self.walk.module.function(function)?.params.len();
        let arguments = self.take(params)?;
        let results = self.walk.call(Some(place), function, arguments)?;
        self.stack.extend(results);
        Some(())
    }

    fn begin(&mut self, kind: Kind, ty: BlockType) -> Option<()> {
        let (params, results) = match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(index) => {
                let ty = self.walk.module.ty(index)?;
                (ty.params.len(), ty.results.len())
            }
        };
        let height = self.stack.len().checked_sub(params)?;
        let here = self.state(params)?;
        let kind = match kind {
            Kind::Loop(place) => {
                let head = self.walk.loops.entry(place).or_insert_with(|| here.clone());
                head.join(&here);
                let head = head.clone();
                self.go_on(height, head);
                Kind::Loop(place)
            }
            Kind::If(_) => Kind::If(Some(here)),
            Kind::Block => Kind::Block,
        };
        self.frames.push(Frame { kind, height, params, results, end: None, live: true });
        Some(())
    }

    fn begin_else(&mut self) -> Option<()> {
        if self.live {
            self.branch(0)?;
        }
        let frame = self.frames.last_mut()?;
        let height = frame.height;
        match &mut frame.kind {
            Kind::If(otherwise) if frame.live => {
                let otherwise = otherwise.take()?;
                self.go_on(height, otherwise);
            }
            _ => self.live = false,
        }
        Some(())
    }

    /// Closes a block: what is known behind it is what is known of all the ways that lead there.
    fn end(&mut self) -> Option<()> {
        if self.live {
            self.fall_through()?;
        }
        let mut frame = self.frames.pop()?;
        if let Kind::If(Some(otherwise)) = frame.kind {
            // There was no `else`.
            merge(&mut frame.end, otherwise);
        }
        if self.frames.is_empty() {
            if let Some(state) = frame.end {
                let results = &mut self.walk.functions.get_mut(self.body)?.results;
                for (result, value) in results.iter_mut().zip(&state.carried) {
                    self.walk.grew |= result.join(value);
                }
            }
            self.live = false;
            return Some(());
        }
        match frame.end {
            Some(state) => self.go_on(frame.height, state),
            None => {
                self.stack.truncate(frame.height);
                self.live = false;
            }
        }
        Some(())
    }

    /// Goes on from a place with what is known there.
    fn go_on(&mut self, height: usize, state: State) {
        self.locals = state.locals;
        self.stack.truncate(height);
        self.stack.extend(state.carried);
        self.live = true;
    }

    /// What is known here, with the topmost values.
    fn state(&mut self, carried: usize) -> Option<State> {
        self.walk.spend(self.locals.len() + carried)?;
        let from = self.stack.len().checked_sub(carried)?;
        Some(State { locals: self.locals.clone(), carried: self.stack.get(from..)?.to_vec() })
    }

    /// Takes note of a branch to the label at that depth; the values that it carries stay where they are.
    fn branch(&mut self, depth: u32) -> Option<()> {
        let at = self.frames.len().checked_sub(1 + depth as usize)?;
        let frame = self.frames.get(at)?;
        match frame.kind {
            Kind::Loop(place) => {
                let state = self.state(frame.params)?;
                self.walk.grew |= self.walk.loops.get_mut(&place)?.join(&state);
            }
            _ => {
                let state = self.state(frame.results)?;
                merge(&mut self.frames.get_mut(at)?.end, state);
            }
        }
        Some(())
    }

    /// Takes note of the way out at a block's end, which is the end even of a loop.
    fn fall_through(&mut self) -> Option<()> {
        let state = self.state(self.frames.last()?.results)?;
        merge(&mut self.frames.last_mut()?.end, state);
        Some(())
    }
}

fn merge(end: &mut Option<State>, state: State) {
    match end {
        Some(end) => drop(end.join(&state)),
        None => *end = Some(state),
    }
}
