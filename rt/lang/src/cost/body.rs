//! The cost of one function.

use wasmparser::{BlockType, FunctionBody, Operator};

use super::{Count, Measure, operator};

/// The number of values that each function may hold before they count towards [`Measure::Held`].
const HELD_FREE: u64 = 64;

/// The state of the walk that computes the cost of one function.
pub(super) struct Body<'c> {
    count: &'c mut Count,
    frames: Vec<Frame>,
    /// The uses of each local, by the local's index.
    locals: Vec<Local>,
    /// The locals used so far in the outermost enclosing loop. The next iteration may use them
    /// again.
    in_loop: Vec<u32>,
    loops: usize,
    /// The number of the first instruction in the outermost enclosing loop. Instructions are
    /// numbered from 1.
    loop_start: usize,
    branches: u64,
    /// The number of values on the operand stack.
    height: u64,
    /// The maximum height of the operand stack so far, at least [`HELD_FREE`].
    peak: u64,
    number: usize,
    offset: usize,
}

impl<'c> Body<'c> {
    pub(super) fn new(count: &'c mut Count, params: u64, results: u64) -> Self {
        // Parameters are set before the first instruction.
        let param = Local { first_set: 1, ..Local::default() };
        let locals = (0..params).map(|_| param).collect();
        let mut body = Body {
            count,
            frames: Vec::new(),
            locals,
            in_loop: Vec::new(),
            loops: 0,
            loop_start: 0,
            branches: 0,
            height: 0,
            peak: HELD_FREE,
            number: 1,
            offset: 0,
        };
        body.open(BlockKind::Block, 0, results);
        body
    }

    /// Adds the function's cost to the module's cost. Returns `None` if the function cannot be
    /// parsed.
    pub(super) fn walk(mut self, body: &FunctionBody<'_>) -> Option<()> {
        let mut declared = 0_u64;
        for group in body.get_locals_reader().ok()? {
            declared += u64::from(group.ok()?.0);
        }
        self.offset = body.range().start;
        self.add(Measure::Locals, declared);
        let mut operators = body.get_operators_reader().ok()?;
        while !operators.eof() {
            self.offset = operators.original_position();
            let operator = operators.read().ok()?;
            self.number += 1;
            self.add(Measure::Instructions, operator::weight(&operator));
            self.step(&operator)?;
        }
        self.add(Measure::Held, live(&self.locals).saturating_sub(HELD_FREE));
        let crossed = self.locals.iter().map(|local| local.crossed).fold(0, u64::saturating_add);
        self.add(Measure::Crossed, crossed);
        Some(())
    }

    fn add(&mut self, measure: Measure, count: u64) {
        let offset = Some(self.offset);
        self.count.add(measure, count, offset);
    }

    fn step(&mut self, operator: &Operator<'_>) -> Option<()> {
        use Operator as O;
        match operator {
            O::Block { blockty } => self.begin(BlockKind::Block, *blockty)?,
            O::Loop { blockty } => self.begin(BlockKind::Loop, *blockty)?,
            O::If { blockty } => self.begin(BlockKind::If, *blockty)?,
            O::Else => self.begin_else(),
            O::End => self.close()?,
            O::Br { relative_depth } => {
                let carried = self.branch(*relative_depth)?;
                self.add(Measure::Carried, carried);
                self.leave();
            }
            O::BrIf { relative_depth } => {
                self.pop(1);
                let carried = self.branch(*relative_depth)?;
                self.add(Measure::Carried, carried);
            }
            O::BrTable { targets } => {
                self.pop(1);
                let labels = u64::from(targets.len()) + 1;
                let mut carried = self.branch(targets.default())?;
                for target in targets.targets() {
                    carried = self.branch(target.ok()?)?;
                }
                self.add(Measure::Labels, labels);
                let ways = labels.min(self.frames.len() as u64);
                self.add(Measure::Carried, carried.saturating_mul(ways));
                self.leave();
            }
            O::Return => {
                self.add(Measure::Carried, self.frames.first()?.results);
                self.leave();
            }
            O::Unreachable | O::Throw { .. } | O::ThrowRef => self.leave(),
            O::Call { function_index } => self.call_function(*function_index)?,
            O::ReturnCall { function_index } => {
                self.call_function(*function_index)?;
                self.leave();
            }
            O::CallRef { type_index } => self.call_pointer(*type_index)?,
            O::ReturnCallRef { type_index } => {
                self.call_pointer(*type_index)?;
                self.leave();
            }
            O::CallIndirect { type_index, .. } => {
                self.call_pointer(*type_index)?;
                self.table_use();
            }
            O::ReturnCallIndirect { type_index, .. } => {
                self.call_pointer(*type_index)?;
                self.table_use();
                self.leave();
            }
            O::TableGet { .. }
            | O::TableSet { .. }
            | O::TableGrow { .. }
            | O::TableSize { .. }
            | O::TableFill { .. }
            | O::TableCopy { .. }
            | O::TableInit { .. }
            | O::ElemDrop { .. } => {
                self.apply(operator);
                self.table_use();
            }
            O::LocalGet { local_index } => {
                self.apply(operator);
                self.local(*local_index, false);
            }
            O::LocalSet { local_index } | O::LocalTee { local_index } => {
                self.apply(operator);
                self.local(*local_index, true);
            }
            _ => self.apply(operator),
        }
        Some(())
    }

    /// Pops and pushes the values of an operator that does not change the control flow.
    fn apply(&mut self, operator: &Operator<'_>) {
        let (pops, pushes) = operator::arity(operator).unwrap_or_default();
        self.pop(pops);
        self.push(pushes);
    }

    /// Pops values, but none that were on the stack before the innermost block began.
    fn pop(&mut self, count: u64) {
        let floor = self.frames.last().map_or(0, |frame| frame.height);
        self.height = self.height.saturating_sub(count).max(floor);
    }

    /// Pushes values, and counts those that exceed the peak so far.
    fn push(&mut self, count: u64) {
        self.height += count;
        let above = self.height.saturating_sub(self.peak);
        self.peak += above;
        self.add(Measure::Held, above);
    }

    /// Pops all values of the innermost block, because the next instruction is not reachable.
    fn leave(&mut self) {
        self.pop(u64::MAX);
    }

    /// Counts branches. The values on the operand stack are kept across them.
    fn cross(&mut self, branches: u64) {
        self.branches += branches;
        self.add(Measure::Crossed, self.height.saturating_mul(branches));
    }

    fn call_function(&mut self, function: u32) -> Option<()> {
        let ty = *self.count.functions.get(function as usize)?;
        self.call(ty)
    }

    /// Counts a call to a function whose index or reference is on the stack.
    fn call_pointer(&mut self, ty: u32) -> Option<()> {
        self.pop(1);
        self.call(ty)
    }

    fn call(&mut self, ty: u32) -> Option<()> {
        let (params, results) = *self.count.types.get(ty as usize)?;
        self.add(Measure::Carried, params + results);
        self.pop(params);
        // The values below the arguments are kept across the call.
        self.add(Measure::Crossed, self.height);
        self.push(results);
        Some(())
    }

    fn table_use(&mut self) {
        self.cross(2);
        self.add(Measure::TableUses, 1);
    }

    /// Counts a branch. Returns the number of values that the branch passes.
    fn branch(&mut self, depth: u32) -> Option<u64> {
        let at = self.frames.len().checked_sub(1 + depth as usize)?;
        let frame = self.frames.get_mut(at)?;
        frame.is_target = true;
        let passed = if frame.kind == BlockKind::Loop { frame.params } else { frame.results };
        self.cross(1);
        Some(passed)
    }

    fn begin(&mut self, kind: BlockKind, ty: BlockType) -> Option<()> {
        let (params, results) = match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(index) => *self.count.types.get(index as usize)?,
        };
        self.add(Measure::Carried, params + results);
        if kind == BlockKind::Loop {
            if self.loops == 0 {
                self.loop_start = self.number;
            }
            self.loops += 1;
        }
        self.pop(params + u64::from(kind == BlockKind::If));
        self.cross(1);
        self.open(kind, params, results);
        self.push(params);
        Some(())
    }

    /// Replaces the results of the first branch of an `if` with the parameters of the second.
    fn begin_else(&mut self) {
        self.leave();
        self.push(self.frames.last().map_or(0, |frame| frame.params));
    }

    fn open(&mut self, kind: BlockKind, params: u64, results: u64) {
        let height = self.height;
        let start = self.number;
        let frame = Frame { kind, height, params, results, start, ..Frame::default() };
        self.frames.push(frame);
    }

    /// Closes the innermost block, and adds the block's contribution to [`Measure::Joined`] and
    /// [`Measure::Crossed`].
    fn close(&mut self) -> Option<()> {
        let frame = self.frames.pop()?;
        self.height = frame.height;
        self.cross(1);
        self.push(frame.results);
        // The engine adds one hidden value, which every loop changes.
        let own = u64::from(frame.has_loop);
        let joined = match frame.kind {
            BlockKind::Loop => frame.params + frame.set.count + 3,
            BlockKind::If => frame.results + frame.set.count + own,
            BlockKind::Block if frame.is_target => frame.results + frame.set.count + own,
            BlockKind::Block => 0,
        };
        self.add(Measure::Joined, joined);
        if frame.kind == BlockKind::Loop {
            // The compiler first makes each local a parameter of the loop's head, and then removes
            // most of them one by one.
            self.add(Measure::Crossed, frame.used.count.saturating_mul(frame.used.count) / 64);
            self.loops -= 1;
            if self.loops == 0 {
                for index in self.in_loop.drain(..) {
                    if let Some(local) = self.locals.get_mut(index as usize) {
                        local.crossed = self.branches;
                        local.live_in_loop(self.loop_start, self.number);
                    }
                }
            }
        }
        if let Some(around) = self.frames.last_mut() {
            around.has_loop |= frame.has_loop || frame.kind == BlockKind::Loop;
            around.set.count += frame.set.count - frame.set.known_around;
            around.used.count += frame.used.count - frame.used.known_around;
        }
        Some(())
    }

    /// Counts an instruction that reads or sets a local.
    fn local(&mut self, index: u32, sets: bool) {
        let at = index as usize;
        // The engine rejects functions with more than 50,000 locals.
        if at >= self.locals.len() && index < 50_000 {
            self.locals.resize(at + 1, Local::default());
        }
        let Some(local) = self.locals.get_mut(at) else { return };
        count_use(&mut self.frames, local.used, |frame| &mut frame.used);
        if sets {
            count_use(&mut self.frames, local.set, |frame| &mut frame.set);
            local.set = self.number;
            if local.first_set == 0 {
                local.first_set = self.number;
            }
        } else {
            local.last_get = self.number;
        }
        local.crossed = self.branches;
        if self.loops > 0 && local.used < self.loop_start {
            self.in_loop.push(index);
        }
        local.used = self.number;
    }
}

/// The number of distinct locals that a frame and its inner frames set or use.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    /// The number of locals included in `count` that the enclosing frame has already counted.
    known_around: u64,
}

/// An open block.
#[derive(Default)]
struct Frame {
    kind: BlockKind,
    /// The number of values on the operand stack below the block.
    height: u64,
    params: u64,
    results: u64,
    /// The number of the block's first instruction. Instructions are numbered from 1.
    start: usize,
    /// If true, a branch targets the block.
    is_target: bool,
    has_loop: bool,
    set: Tally,
    used: Tally,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum BlockKind {
    #[default]
    Block,
    Loop,
    If,
}

/// The uses of a local.
#[derive(Clone, Copy, Default)]
struct Local {
    /// The number, counted from 1, of the instruction after the local's last assignment, or 0 if
    /// the local has not been assigned.
    set: usize,
    /// The number, counted from 1, of the instruction after the local's last use, or 0 if the local
    /// has not been used.
    used: usize,
    /// The number, counted from 1, of the instruction after the local's first assignment, or 0 if
    /// the local has not been assigned.
    first_set: usize,
    /// The number, counted from 1, of the instruction after the last read of the local, or 0 if the
    /// local has not been read.
    last_get: usize,
    /// The number of branches before the local's last use.
    crossed: u64,
}

impl Local {
    /// If a loop reads the local, extends the local's live range to the whole loop, because the
    /// next iteration may read it.
    fn live_in_loop(&mut self, start: usize, end: usize) {
        if self.last_get < start || self.first_set == 0 {
            return;
        }
        self.first_set = self.first_set.min(start);
        self.last_get = end;
    }
}

/// Returns the maximum number of locals that are live at the same time. A local is live from the
/// first instruction that sets it to the last one that reads it.
fn live(locals: &[Local]) -> u64 {
    let is_read = |local: &&Local| local.first_set > 0 && local.first_set < local.last_get;
    let read = || locals.iter().filter(is_read);
    let mut starts: Vec<usize> = read().map(|local| local.first_set).collect();
    let mut ends: Vec<usize> = read().map(|local| local.last_get).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut ended = ends.iter().peekable();
    let mut now = 0_u64;
    let mut most = 0_u64;
    for start in starts {
        now += 1;
        while ended.next_if(|end| **end <= start).is_some() {
            now -= 1;
        }
        most = most.max(now);
    }
    most
}

/// Counts a local for each open frame that began after `last`, the last use of the local.
fn count_use(frames: &mut [Frame], last: usize, tally: fn(&mut Frame) -> &mut Tally) {
    let first = frames.partition_point(|frame| frame.start <= last);
    let Some(outermost) = frames.get_mut(first) else { return };
    tally(outermost).known_around += u64::from(first > 0);
    if let Some(innermost) = frames.last_mut() {
        tally(innermost).count += 1;
    }
}
