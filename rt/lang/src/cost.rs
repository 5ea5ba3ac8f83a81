//! The cost of compiling a module, computed from its binary before the compiler runs.
//!
//! The compiler's time and memory are not linear in a module's size. For example, they grow with
//! the square of the number of values that differ where paths meet, and with the number of locals
//! times the number of branches. Each such [`Measure`] has a limit. Compiling a module within all
//! limits takes at most 2 s and 256 MB. A module that exceeds a limit is rejected, and the message
//! names the measure.
//!
//! Counting is linear in the size of the binary. The limits were measured with the engine's
//! settings of the runtime, see `rt/tests/cost.rs`.

use wasmparser::{
    BlockType, CompositeInnerType, ElementItems, FunctionBody, Operator, Parser, Payload, TypeRef,
};

/// A quantity that costs the compiler time or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Instructions of all functions.
    Instructions,
    /// Functions that the module defines.
    Functions,
    /// Function types, including those of blocks.
    Types,
    /// Locals that functions declare.
    Locals,
    /// Globals.
    Globals,
    /// Element segments and their entries.
    Elements,
    /// Instructions that use a table.
    TableUses,
    /// Labels of all `br_table` instructions.
    Labels,
    /// Parameters and results of types, functions and blocks, and values that calls and branches
    /// pass.
    Carried,
    /// Values that may differ between the control-flow paths that meet at one point: loop
    /// parameters, block results, and each local that a block or loop sets.
    Joined,
    /// For each local, the number of branches before its last use.
    Crossed,
}

/// A measure, its maximum in any module, and its maximum in a module that is compiled on the
/// calling thread.
struct Row {
    measure: Measure,
    limit: u64,
    quick: u64,
}

const fn row(measure: Measure, limit: u64, quick: u64) -> Row {
    Row { measure, limit, quick }
}

/// The rows, in the order of [`Measure`].
const ROWS: [Row; 11] = [
    row(Measure::Instructions, 60_000, 2_000),
    row(Measure::Functions, 1_000, 32),
    row(Measure::Types, 300, 48),
    row(Measure::Locals, 100_000, 2_000),
    row(Measure::Globals, 2_000, 100),
    row(Measure::Elements, 2_000, 32),
    row(Measure::TableUses, 1_500, 32),
    row(Measure::Labels, 10_000, 256),
    row(Measure::Carried, 30_000, 1_500),
    row(Measure::Joined, 3_000, 200),
    row(Measure::Crossed, 300_000, 20_000),
];

impl Measure {
    /// Returns the maximum in a module.
    pub const fn limit(self) -> u64 {
        let mut at = 0;
        while at < ROWS.len() {
            #[expect(
                clippy::indexing_slicing,
                reason = "the loop's condition bounds it, and a const function has no iterators"
            )]
            let row = &ROWS[at];
            if row.measure as u8 == self as u8 {
                return row.limit;
            }
            at += 1;
        }
        0
    }
}

/// The reason why a module is not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A measure is over its limit.
    Excess(Excess),
    /// The module cannot be parsed.
    Unreadable,
}

/// A measure that is over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The measure.
    pub measure: Measure,
    /// The amount found.
    pub found: u64,
    /// Offset in the binary of the instruction that exceeds the limit. `None` if no single
    /// instruction does.
    pub offset: Option<u64>,
}

/// The cost of compiling a module that is within all limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost([u64; ROWS.len()]);

impl Cost {
    /// Returns true if compiling takes at most a few milliseconds, so that it may run on a shared
    /// thread.
    pub fn is_quick(&self) -> bool {
        self.0.iter().zip(&ROWS).all(|(found, row)| *found <= row.quick)
    }
}

/// Counts the cost of compiling a module.
///
/// # Errors
/// Fails if a measure is over its limit, or if the module cannot be parsed.
pub fn of(binary: &[u8]) -> Result<Cost, Refusal> {
    let mut count = Count::default();
    for payload in Parser::new(0).parse_all(binary) {
        payload.ok().and_then(|payload| count.take(payload)).ok_or(Refusal::Unreadable)?;
    }
    match count.over {
        Some((measure, offset)) => {
            let found = count.cost.0.get(measure as usize).copied().unwrap_or(u64::MAX);
            Err(Refusal::Excess(Excess { measure, found, offset }))
        }
        None => Ok(count.cost),
    }
}

#[derive(Default)]
struct Count {
    cost: Cost,
    /// The first measure that exceeded its limit, with the offset.
    over: Option<(Measure, Option<u64>)>,
    /// The number of parameters and results of each type.
    types: Vec<(u64, u64)>,
    /// The type of each function, beginning with the imported ones.
    functions: Vec<u32>,
    bodies: usize,
    imported: usize,
}

impl Count {
    fn add(&mut self, measure: Measure, count: u64, offset: Option<u64>) {
        if let Some(found) = self.cost.0.get_mut(measure as usize) {
            *found = found.saturating_add(count);
            if *found > measure.limit() && self.over.is_none() {
                self.over = Some((measure, offset));
            }
        }
    }

    /// Counts a section or a function. Returns `None` if it cannot be parsed.
    fn take(&mut self, payload: Payload<'_>) -> Option<()> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    for sub in group.ok()?.into_types() {
                        // The engine supports no other types.
                        let CompositeInnerType::Func(func) = sub.composite_type.inner else {
                            return None;
                        };
                        let (params, results) =
                            (func.params().len() as u64, func.results().len() as u64);
                        self.types.push((params, results));
                        self.add(Measure::Types, 1, None);
                        self.add(Measure::Carried, params + results, None);
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if let TypeRef::Func(ty) = import.ok()?.ty {
                        self.functions.push(ty);
                        self.imported += 1;
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    let ty = ty.ok()?;
                    let (params, results) = *self.types.get(ty as usize)?;
                    self.functions.push(ty);
                    self.add(Measure::Functions, 1, None);
                    self.add(Measure::Carried, params + results, None);
                }
            }
            Payload::GlobalSection(section) => {
                self.add(Measure::Globals, u64::from(section.count()), None)
            }
            Payload::ElementSection(section) => {
                for element in section {
                    let entries = match element.ok()?.items {
                        ElementItems::Functions(functions) => functions.count(),
                        ElementItems::Expressions(_, expressions) => expressions.count(),
                    };
                    self.add(Measure::Elements, 1 + u64::from(entries), None);
                }
            }
            Payload::CodeSectionEntry(body) => {
                let ty = *self.functions.get(self.imported + self.bodies)?;
                self.bodies += 1;
                let (_, results) = *self.types.get(ty as usize)?;
                Body::new(self, results).walk(&body)?;
            }
            _ => {}
        }
        Some(())
    }
}

/// The number of different locals that a frame and the frames within it set or use.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    /// The locals among them that the enclosing frame has already counted.
    known_around: u64,
}

/// An open block.
struct Frame {
    kind: BlockKind,
    params: u64,
    results: u64,
    /// The number of its first instruction.
    start: usize,
    /// If true, a branch leads to the end of the block.
    is_target: bool,
    has_loop: bool,
    set: Tally,
    used: Tally,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Block,
    Loop,
    If,
}

/// The last uses of a local.
#[derive(Clone, Copy, Default)]
struct Local {
    /// The number of the instruction after the one that last set the local, or 0.
    set: usize,
    /// The number of the instruction after the one that last used the local, or 0.
    used: usize,
    /// The number of branches before its last use.
    crossed: u64,
}

/// The state of counting one function.
struct Body<'c> {
    count: &'c mut Count,
    frames: Vec<Frame>,
    /// The locals that are used, by index.
    locals: Vec<Local>,
    /// The locals used in the outermost enclosing loop. The next iteration may use them again.
    in_loop: Vec<u32>,
    loops: usize,
    /// The number of the first instruction of the outermost enclosing loop.
    loop_start: usize,
    branches: u64,
    number: usize,
    offset: u64,
}

impl<'c> Body<'c> {
    fn new(count: &'c mut Count, results: u64) -> Self {
        let mut body = Body {
            count,
            frames: Vec::new(),
            locals: Vec::new(),
            in_loop: Vec::new(),
            loops: 0,
            loop_start: 0,
            branches: 0,
            number: 1,
            offset: 0,
        };
        body.open(BlockKind::Block, 0, results);
        body
    }

    fn walk(mut self, body: &FunctionBody<'_>) -> Option<()> {
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
            self.add(Measure::Instructions, 1);
            self.step(&operator)?;
        }
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
            O::End => self.close()?,
            O::Br { relative_depth } | O::BrIf { relative_depth } => {
                let carried = self.branch(*relative_depth)?;
                self.add(Measure::Carried, carried);
            }
            O::BrTable { targets } => {
                let labels = u64::from(targets.len()) + 1;
                let mut carried = self.branch(targets.default())?;
                for target in targets.targets() {
                    carried = self.branch(target.ok()?)?;
                }
                self.add(Measure::Labels, labels);
                let ways = labels.min(self.frames.len() as u64);
                self.add(Measure::Carried, carried.saturating_mul(ways));
            }
            O::Return => self.add(Measure::Carried, self.frames.first()?.results),
            O::Call { function_index } | O::ReturnCall { function_index } => {
                let ty = *self.count.functions.get(*function_index as usize)?;
                self.call(ty)?;
            }
            O::CallIndirect { type_index, .. } | O::ReturnCallIndirect { type_index, .. } => {
                self.call(*type_index)?;
                self.table_use();
            }
            O::TableGet { .. }
            | O::TableSet { .. }
            | O::TableGrow { .. }
            | O::TableSize { .. }
            | O::TableFill { .. }
            | O::TableCopy { .. }
            | O::TableInit { .. }
            | O::ElemDrop { .. } => self.table_use(),
            O::LocalGet { local_index } => self.local(*local_index, false),
            O::LocalSet { local_index } | O::LocalTee { local_index } => {
                self.local(*local_index, true)
            }
            _ => {}
        }
        Some(())
    }

    fn call(&mut self, ty: u32) -> Option<()> {
        let (params, results) = *self.count.types.get(ty as usize)?;
        self.add(Measure::Carried, params + results);
        Some(())
    }

    fn table_use(&mut self) {
        self.branches += 2;
        self.add(Measure::TableUses, 1);
    }

    /// Counts a branch. Returns the number of values that it passes.
    fn branch(&mut self, depth: u32) -> Option<u64> {
        let at = self.frames.len().checked_sub(1 + depth as usize)?;
        let frame = self.frames.get_mut(at)?;
        frame.is_target = true;
        self.branches += 1;
        Some(if frame.kind == BlockKind::Loop { frame.params } else { frame.results })
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
        self.branches += 1;
        self.open(kind, params, results);
        Some(())
    }

    fn open(&mut self, kind: BlockKind, params: u64, results: u64) {
        let (set, used) = (Tally::default(), Tally::default());
        let start = self.number;
        self.frames.push(Frame {
            kind,
            params,
            results,
            start,
            is_target: false,
            has_loop: false,
            set,
            used,
        });
    }

    /// Closes the innermost block and counts its part of [`Measure::Joined`] and
    /// [`Measure::Crossed`].
    fn close(&mut self) -> Option<()> {
        let frame = self.frames.pop()?;
        self.branches += 1;
        // The engine keeps one value that each loop changes.
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

    /// Counts an instruction that uses a local.
    fn local(&mut self, index: u32, sets: bool) {
        let at = index as usize;
        // The engine does not compile functions with more locals.
        if at >= self.locals.len() && index < 50_000 {
            self.locals.resize(at + 1, Local::default());
        }
        let Some(local) = self.locals.get_mut(at) else { return };
        count_use(&mut self.frames, local.used, |frame| &mut frame.used);
        if sets {
            count_use(&mut self.frames, local.set, |frame| &mut frame.set);
            local.set = self.number;
        }
        local.crossed = self.branches;
        if self.loops > 0 && local.used < self.loop_start {
            self.in_loop.push(index);
        }
        local.used = self.number;
    }
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

#[cfg(test)]
mod tests {
    use super::{Measure, ROWS};

    #[test]
    fn rows_are_in_the_order_of_the_measures() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.measure as usize, at);
            assert_eq!(row.measure.limit(), row.limit);
            assert!(row.quick < row.limit);
        }
    }

    #[test]
    fn locals_count_once_for_each_block_around() {
        // Local 0 is set in the loop and in the inner block, and local 1 only in the inner block.
        let text = "(module (func (local i32 i32) local.get 0 local.set 0
            (loop (local.set 0 (i32.const 1)) (if (i32.const 1) (then
                (local.set 0 (i32.const 2)) (local.set 1 (i32.const 2)) (local.set 1 (i32.const \
                    3)))))))";
        let buffer = wast::parser::ParseBuffer::new(text).unwrap();
        let binary = wast::parser::parse::<wast::Wat<'_>>(&buffer).unwrap().encode().unwrap();
        let cost = super::of(&binary).unwrap();
        // The `if` sets 2 locals. The loop sets 2, and the engine adds 3.
        assert_eq!(cost.0[Measure::Joined as usize], 2 + 5);
        assert!(cost.is_quick());
    }
}
