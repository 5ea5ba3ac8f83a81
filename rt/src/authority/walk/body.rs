//! The walk over one function.

use wasmparser::{BlockType, Operator, ValType};

use super::{Effort, Walk};
use crate::authority::value::Value;

/// The known values at one point in a function: the locals and the values that a branch carries.
#[derive(Clone, Debug)]
pub(super) struct State {
    locals: Vec<Value>,
    carried: Vec<Value>,
}

impl State {
    /// Joins another state into this one. Returns true if this one grew, or `None` if there is not
    /// enough effort left.
    fn join(&mut self, other: &State, effort: &mut Effort) -> Option<bool> {
        let mut grew = false;
        let own = self.locals.iter_mut().chain(&mut self.carried);
        for (own, more) in own.zip(other.locals.iter().chain(&other.carried)) {
            grew |= own.join(more, effort)?;
        }
        Some(grew)
    }

    /// Copies the state and spends effort in proportion to its size.
    fn copy(&self, effort: &mut Effort) -> Option<State> {
        effort.spend(1 + self.locals.len() + self.carried.len())?;
        Some(self.clone())
    }
}

/// An open block.
struct Frame {
    kind: Kind,
    /// Number of values below the block on the stack.
    height: usize,
    params: usize,
    results: usize,
    /// The state at the end of the block: the join of all branches to it so far, or `None` if there
    /// are none yet.
    end: Option<State>,
    /// If true, the start of the block is reachable.
    live: bool,
}

enum Kind {
    Block,
    /// A loop, with the offset of its head in the binary.
    Loop(usize),
    /// An `if`, with the state at the start of its `else`. `None` once the `else` has begun.
    If(Option<State>),
}

struct Body<'w, 'm, 'b> {
    walk: &'w mut Walk<'m, 'b>,
    /// The index of the function's body.
    body: usize,
    locals: Vec<Value>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    /// If true, the next instruction is reachable.
    live: bool,
}

/// Walks over a function once, starting from the known values of its parameters.
pub(super) fn walk(walk: &mut Walk<'_, '_>, body: usize) -> Option<()> {
    let module = walk.module;
    let function = walk.functions.get(body)?;
    walk.effort.spend(function.params.len())?;
    let mut locals = function.params.clone();
    let results = function.results.len();
    let code = module.bodies.get(body)?;
    for group in code.get_locals_reader().ok()? {
        let (count, ty) = group.ok()?;
        let initial = if ty == ValType::I32 { Value::number(0) } else { Value::Any };
        walk.effort.spend(count as usize)?;
        locals.extend(std::iter::repeat_n(initial, count as usize));
    }
    let frame = Frame { kind: Kind::Block, height: 0, params: 0, results, end: None, live: true };
    let mut body = Body { walk, body, locals, stack: Vec::new(), frames: vec![frame], live: true };
    let mut operators = code.get_operators_reader().ok()?;
    while !operators.eof() {
        let offset = operators.original_position();
        let operator = operators.read().ok()?;
        body.walk.effort.spend(1)?;
        if body.live {
            body.step(offset, &operator)?;
        } else {
            body.skip(&operator)?;
        }
    }
    Some(())
}

/// Expands to `true` for a WebAssembly proposal whose operators the walk supports.
macro_rules! is_supported_proposal {
    (mvp) => {
        true
    };
    (sign_extension) => {
        true
    };
    (saturating_float_to_int) => {
        true
    };
    (reference_types) => {
        true
    };
    (bulk_memory) => {
        true
    };
    ($other:ident) => {
        false
    };
}

macro_rules! define_is_supported {
    ($(
        @$proposal:ident $op:ident $({ $($arg:ident: $ty:ty),* })?
            => $visit:ident ($($arity:tt)*)
    )*) => {
        /// Returns true if the walk supports the operator.
        fn is_supported(operator: &Operator<'_>) -> bool {
            match operator {
                $(Operator::$op { .. } => is_supported_proposal!($proposal),)*
                _ => false,
            }
        }
    };
}
wasmparser::for_each_operator!(define_is_supported);

impl Body<'_, '_, '_> {
    /// Skips an unreachable instruction.
    fn skip(&mut self, operator: &Operator<'_>) -> Option<()> {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                let height = self.stack.len();
                self.frames.push(Frame {
                    kind: Kind::Block,
                    height,
                    params: 0,
                    results: 0,
                    end: None,
                    live: false,
                });
            }
            Operator::Else => self.begin_else()?,
            Operator::End => self.end()?,
            _ => {}
        }
        Some(())
    }

    /// Interprets a reachable instruction.
    fn step(&mut self, offset: usize, operator: &Operator<'_>) -> Option<()> {
        use Operator as O;
        if let Some((offset, width)) = written(operator) {
            return self.store(offset, width);
        }
        match operator {
            O::Nop => {}
            O::Unreachable => self.live = false,
            O::Block { blockty } => self.begin(Kind::Block, *blockty)?,
            O::Loop { blockty } => self.begin(Kind::Loop(offset), *blockty)?,
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
            O::Call { function_index } => self.call(offset, *function_index)?,
            O::ReturnCall { function_index } => {
                self.call(offset, *function_index)?;
                self.branch(u32::try_from(self.frames.len().checked_sub(1)?).ok()?)?;
                self.live = false;
            }
            O::RefFunc { function_index } => {
                self.walk.call_unknown(*function_index)?;
                self.stack.push(Value::Any);
            }
            O::Drop => drop(self.pop()?),
            O::Select | O::TypedSelect { .. } => {
                self.pop()?;
                let (right, mut left) = (self.pop()?, self.pop()?);
                left.join(&right, &mut self.walk.effort)?;
                self.stack.push(left);
            }
            O::LocalGet { .. }
            | O::LocalSet { .. }
            | O::LocalTee { .. }
            | O::GlobalGet { .. }
            | O::GlobalSet { .. } => self.variable(operator)?,
            O::I32Const { value } => self.stack.push(Value::number(*value)),
            O::I32Add => self.calculate(Value::plus)?,
            O::I32Sub => self.calculate(Value::minus)?,
            O::MemoryCopy { .. } | O::MemoryFill { .. } | O::MemoryInit { .. } => {
                self.replace(3, 0)?;
                self.walk.writes.add_everything();
            }
            // All other operators only change the stack or a table, or read the memory.
            _ if is_supported(operator) => {
                let (pops, pushes) = operator.operator_arity(self.walk.module)?;
                self.replace(pops as usize, pushes as usize)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Interprets an instruction that reads or sets a local or a global.
    fn variable(&mut self, operator: &Operator<'_>) -> Option<()> {
        use Operator as O;
        match operator {
            O::LocalGet { local_index } => {
                self.stack.push(self.locals.get(*local_index as usize)?.clone())
            }
            O::LocalSet { local_index } => {
                *self.locals.get_mut(*local_index as usize)? = self.pop()?
            }
            O::LocalTee { local_index } => {
                *self.locals.get_mut(*local_index as usize)? = self.stack.last()?.clone();
            }
            O::GlobalGet { global_index } => {
                let value = self.walk.globals.get(*global_index as usize)?.clone();
                self.stack.push(value);
            }
            O::GlobalSet { global_index } => {
                let value = self.pop()?;
                let global = self.walk.globals.get_mut(*global_index as usize)?;
                self.walk.grew |= global.join(&value, &mut self.walk.effort)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn pop(&mut self) -> Option<Value> {
        self.stack.pop()
    }

    fn take(&mut self, count: usize) -> Option<Vec<Value>> {
        Some(self.stack.split_off(self.stack.len().checked_sub(count)?))
    }

    /// Pops `pops` values from the stack and pushes `pushes` unknown values.
    fn replace(&mut self, pops: usize, pushes: usize) -> Option<()> {
        self.take(pops)?;
        self.walk.effort.spend(pushes)?;
        self.stack.extend(std::iter::repeat_n(Value::Any, pushes));
        Some(())
    }

    /// Pops two numbers and pushes the result of an operation on them.
    fn calculate(&mut self, operate: fn(&Value, &Value) -> Value) -> Option<()> {
        let (right, left) = (self.pop()?, self.pop()?);
        self.walk.effort.spend(left.weight().saturating_add(right.weight()))?;
        self.stack.push(operate(&left, &right));
        Some(())
    }

    /// Records a write to memory.
    fn store(&mut self, offset: u64, width: u64) -> Option<()> {
        self.pop()?;
        let address = self.pop()?;
        self.walk.write(&address, offset, width);
        Some(())
    }

    fn call(&mut self, offset: usize, function: u32) -> Option<()> {
        let params = self.walk.module.function(function)?.params().len();
        let arguments = self.take(params)?;
        let results = self.walk.call(Some(offset), function, arguments)?;
        self.stack.extend(results);
        Some(())
    }

    /// Opens a block.
    fn begin(&mut self, kind: Kind, ty: BlockType) -> Option<()> {
        let (params, results) = match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(index) => {
                let ty = self.walk.module.ty(index)?;
                (ty.params().len(), ty.results().len())
            }
        };
        let height = self.stack.len().checked_sub(params)?;
        let here = self.state(params)?;
        let kind = match kind {
            Kind::Loop(offset) => {
                let head = self.walk.loops.entry(offset).or_insert_with(|| here.clone());
                head.join(&here, &mut self.walk.effort)?;
                let head = head.copy(&mut self.walk.effort)?;
                self.resume(height, head);
                Kind::Loop(offset)
            }
            Kind::If(_) => Kind::If(Some(here)),
            Kind::Block => Kind::Block,
        };
        self.frames.push(Frame { kind, height, params, results, end: None, live: true });
        Some(())
    }

    /// Switches from the first to the second branch of an `if`.
    fn begin_else(&mut self) -> Option<()> {
        if self.live {
            self.branch(0)?;
        }
        let frame = self.frames.last_mut()?;
        let height = frame.height;
        match &mut frame.kind {
            Kind::If(otherwise) if frame.live => {
                let otherwise = otherwise.take()?;
                self.resume(height, otherwise);
            }
            _ => self.live = false,
        }
        Some(())
    }

    /// Closes a block. The state after it is the join of the states of all branches to its end.
    fn end(&mut self) -> Option<()> {
        if self.live {
            self.fall_through()?;
        }
        let mut frame = self.frames.pop()?;
        if let Kind::If(Some(otherwise)) = frame.kind {
            // There was no `else`.
            merge(&mut frame.end, otherwise, &mut self.walk.effort)?;
        }
        if self.frames.is_empty() {
            if let Some(state) = frame.end {
                let results = &mut self.walk.functions.get_mut(self.body)?.results;
                for (result, value) in results.iter_mut().zip(&state.carried) {
                    self.walk.grew |= result.join(value, &mut self.walk.effort)?;
                }
            }
            self.live = false;
            return Some(());
        }
        match frame.end {
            Some(state) => self.resume(frame.height, state),
            None => {
                self.stack.truncate(frame.height);
                self.live = false;
            }
        }
        Some(())
    }

    /// Makes `state` the current state: replaces the locals, truncates the stack to `height`, and
    /// pushes the carried values.
    fn resume(&mut self, height: usize, state: State) {
        self.locals = state.locals;
        self.stack.truncate(height);
        self.stack.extend(state.carried);
        self.live = true;
    }

    /// Returns the current state for a branch that carries the given number of values from the top
    /// of the stack.
    fn state(&mut self, carried: usize) -> Option<State> {
        self.walk.effort.spend(1 + self.locals.len() + carried)?;
        let from = self.stack.len().checked_sub(carried)?;
        Some(State { locals: self.locals.clone(), carried: self.stack.get(from..)?.to_vec() })
    }

    /// Records a branch to the label at the given depth. The values that it carries stay on the
    /// stack.
    fn branch(&mut self, depth: u32) -> Option<()> {
        let at = self.frames.len().checked_sub(1 + depth as usize)?;
        let frame = self.frames.get(at)?;
        match frame.kind {
            Kind::Loop(offset) => {
                let state = self.state(frame.params)?;
                let head = self.walk.loops.get_mut(&offset)?;
                self.walk.grew |= head.join(&state, &mut self.walk.effort)?;
            }
            _ => {
                let state = self.state(frame.results)?;
                merge(&mut self.frames.get_mut(at)?.end, state, &mut self.walk.effort)?;
            }
        }
        Some(())
    }

    /// Records that execution reaches the end of a block and continues after it. This also applies
    /// to a loop, because only a branch to its start repeats it.
    fn fall_through(&mut self) -> Option<()> {
        let state = self.state(self.frames.last()?.results)?;
        merge(&mut self.frames.last_mut()?.end, state, &mut self.walk.effort)
    }
}

/// Returns the offset and the width of a store, or `None` for any other operator.
fn written(operator: &Operator<'_>) -> Option<(u64, u64)> {
    use Operator as O;
    Some(match operator {
        O::I32Store8 { memarg } | O::I64Store8 { memarg } => (memarg.offset, 1),
        O::I32Store16 { memarg } | O::I64Store16 { memarg } => (memarg.offset, 2),
        O::I32Store { memarg } | O::F32Store { memarg } | O::I64Store32 { memarg } => {
            (memarg.offset, 4)
        }
        O::I64Store { memarg } | O::F64Store { memarg } => (memarg.offset, 8),
        _ => return None,
    })
}

fn merge(end: &mut Option<State>, state: State, effort: &mut Effort) -> Option<()> {
    match end {
        Some(end) => drop(end.join(&state, effort)?),
        None => *end = Some(state),
    }
    Some(())
}
