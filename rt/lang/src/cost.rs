//! What compiling a module costs, told from its binary before the compiler sees it.
//!
//! The compiler's time and memory are not linear in a module's size: they grow with the square of the values that differ
//! where paths meet, with locals times branches, and so on. Each such [`Measure`] has a limit, so that compiling any module within
//! all of them takes at most 2 s and 256 MB; a module over one of them is refused with words that name it. Counting is linear
//! in the binary. The limits were measured with the engine's settings of this crate, see `tests/cost.rs`.

use wasmparser::{BlockType, CompositeInnerType, ElementItems, FunctionBody, Operator, Parser, Payload, TypeRef};

/// Something that compiling takes more time or memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Instructions of all functions.
    Instructions,
    /// Functions, without the imported ones.
    Functions,
    /// Function types, those of blocks among them.
    Types,
    /// Locals that functions declare.
    Locals,
    /// Globals.
    Globals,
    /// Entries of element segments, and the segments.
    Elements,
    /// Instructions that use a table.
    TableUses,
    /// Labels of all `br_table`.
    Labels,
    /// Parameters and results of types, functions and blocks, and values that calls and branches take along.
    Carried,
    /// Values that may differ where paths meet: parameters of loops, results of blocks, and each local set in one of them.
    Joined,
    /// For each local, the branches up to where it is used last.
    Crossed,
}

/// One row: what is counted, the most that is compiled, and the most that is compiled at once on the thread that asks.
struct Row {
    measure: Measure,
    limit: u64,
    quick: u64,
}

const fn row(measure: Measure, limit: u64, quick: u64) -> Row {
    Row { measure, limit, quick }
}

/// In the order of [`Measure`].
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
    /// The most of it that is compiled.
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

/// Why a module is not compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is too much of something.
    Excess(Excess),
    /// It cannot be read, so that nothing is known of it.
    Unreadable,
}

/// Too much of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The measure that is over its limit.
    pub measure: Measure,
    /// The amount found.
    pub found: u64,
    /// The byte of the binary at which there was too much; `None` where that is no instruction.
    pub offset: Option<u64>,
}

/// What compiling a module costs, within all limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost([u64; ROWS.len()]);

impl Cost {
    /// If true, compiling takes some milliseconds at most, and may be done on a thread that others share.
    pub fn is_quick(&self) -> bool {
        self.0.iter().zip(&ROWS).all(|(found, row)| *found <= row.quick)
    }
}

/// Counts what compiling a module costs.
///
/// # Errors
/// What there is too much of, or that the module cannot be read.
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
    /// The first measure that passed its limit, and where.
    over: Option<(Measure, Option<u64>)>,
    /// How many parameters and results each type has.
    types: Vec<(u64, u64)>,
    /// The type of each function, the imported ones first.
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

    /// Counts a section or a function; `None` where it cannot be read.
    fn take(&mut self, payload: Payload<'_>) -> Option<()> {
        match payload {
            Payload::TypeSection(section) => {
                for group in section {
                    for sub in group.ok()?.into_types() {
                        // The engine has no other types.
                        let CompositeInnerType::Func(func) = sub.composite_type.inner else { return None };
                        let (params, results) = (func.params().len() as u64, func.results().len() as u64);
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
            Payload::GlobalSection(section) => self.add(Measure::Globals, u64::from(section.count()), None),
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

/// How many different locals something was done to in a frame and in those within it.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    /// Those of them that the frame around has counted already.
    known_around: u64,
}

/// A block that is open.
struct Frame {
    kind: BlockKind,
    params: u64,
    results: u64,
    /// The number of its first instruction.
    start: usize,
    /// Whether a branch leads to its end.
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

/// What is known of a local.
#[derive(Clone, Copy, Default)]
struct Local {
    /// The number behind the instruction that set it last; 0 where none did.
    set: usize,
    /// The number behind the instruction that used it last; 0 where none did.
    used: usize,
    /// The branches before its last use.
    crossed: u64,
}

/// The walk over one function.
struct Body<'c> {
    count: &'c mut Count,
    frames: Vec<Frame>,
    /// By index, as far as locals are used.
    locals: Vec<Local>,
    /// The locals that are used in the outermost loop around, which may be used again from its beginning.
    in_loop: Vec<u32>,
    loops: usize,
    /// Where the outermost loop around begins.
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
            O::LocalSet { local_index } | O::LocalTee { local_index } => self.local(*local_index, true),
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

    /// Takes note of a branch; gives how many values it takes along.
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
        self.frames.push(Frame { kind, params, results, start, is_target: false, has_loop: false, set, used });
    }

    /// Closes a block: what may differ where the paths through it meet.
    fn close(&mut self) -> Option<()> {
        let frame = self.frames.pop()?;
        self.branches += 1;
        // The engine keeps a value of its own that each loop changes.
        let own = u64::from(frame.has_loop);
        let joined = match frame.kind {
            BlockKind::Loop => frame.params + frame.set.count + 3,
            BlockKind::If => frame.results + frame.set.count + own,
            BlockKind::Block if frame.is_target => frame.results + frame.set.count + own,
            BlockKind::Block => 0,
        };
        self.add(Measure::Joined, joined);
        if frame.kind == BlockKind::Loop {
            // Each local is a parameter of the loop's head at first, and most are taken out of the list one by one.
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

    /// Takes note of an instruction that uses a local.
    fn local(&mut self, index: u32, sets: bool) {
        let at = index as usize;
        // More locals than the engine has cannot be compiled.
        if at >= self.locals.len() && index < 50_000 {
            self.locals.resize(at + 1, Local::default());
        }
        let Some(local) = self.locals.get_mut(at) else { return };
        note(&mut self.frames, local.used, |frame| &mut frame.used);
        if sets {
            note(&mut self.frames, local.set, |frame| &mut frame.set);
            local.set = self.number;
        }
        local.crossed = self.branches;
        if self.loops > 0 && local.used < self.loop_start {
            self.in_loop.push(index);
        }
        local.used = self.number;
    }
}

/// Counts a local for each open frame that began after `last`, its last time.
fn note(frames: &mut [Frame], last: usize, tally: fn(&mut Frame) -> &mut Tally) {
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
    fn rows_stand_in_the_order_of_the_measures() {
        for (at, row) in ROWS.iter().enumerate() {
            assert_eq!(row.measure as usize, at);
            assert_eq!(row.measure.limit(), row.limit);
            assert!(row.quick < row.limit);
        }
    }

    #[test]
    fn locals_count_once_for_each_block_around() {
        // x is set in the loop and in the block within; y in the block only.
        let text = "(module (func (local i32 i32) local.get 0 local.set 0
            (loop (local.set 0 (i32.const 1)) (if (i32.const 1) (then
                (local.set 0 (i32.const 2)) (local.set 1 (i32.const 2)) (local.set 1 (i32.const 3)))))))";
        let buffer = wast::parser::ParseBuffer::new(text).unwrap();
        let binary = wast::parser::parse::<wast::Wat<'_>>(&buffer).unwrap().encode().unwrap();
        let cost = super::of(&binary).unwrap();
        // The `if`: x and y. The loop: x, y and 3 of the engine.
        assert_eq!(cost.0[Measure::Joined as usize], 2 + 5);
        assert!(cost.is_quick());
    }
}
