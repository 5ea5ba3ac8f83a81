//! The cost of compiling a module, computed from its binary before the compiler runs.
//!
//! The compiler's time and memory are not linear in a module's size. For example, they grow with
//! the square of the number of values that differ where control-flow paths meet, and with the
//! number of locals times the number of branches. Each such quantity is a [`Measure`] and has a
//! limit. Compiling a module within all limits takes at most 2 s and 256 MB. A module over a limit
//! is rejected with a message that names the limit.
//!
//! Counting is linear in the size of the binary. The limits were determined by measurements with
//! the runtime's engine settings (see `rt/tests/rt/cost.rs`).

mod body;
mod operator;

use wasmparser::{CompositeInnerType, ElementItems, Parser, Payload, TypeRef};

use self::body::Body;

/// A quantity that contributes to the time or memory that compiling takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Instructions in all functions. An instruction that the compiler translates into many machine
    /// instructions counts as several.
    Instructions,
    /// Functions that the module defines.
    Functions,
    /// Function types, including those of blocks.
    Types,
    /// Locals that functions declare.
    Locals,
    /// Globals that the module defines.
    Globals,
    /// Element segments and their entries.
    Elements,
    /// Instructions that use a table.
    TableUses,
    /// Labels in all `br_table` instructions.
    Labels,
    /// Parameters and results of function types, functions and blocks, and values that calls and
    /// branches pass.
    Carried,
    /// Values that may differ where control-flow paths meet: loop parameters, block results, and
    /// each local that a block or loop sets.
    Joined,
    /// The number of branches before the last use of each local, summed over all locals, and the
    /// number of values on the operand stack at each branch and call.
    Crossed,
    /// The maximum number of values on a function's operand stack and the maximum number of its
    /// live locals. Only the excess of each over 64 counts, summed over all functions. The
    /// compiler's time grows with the square of the number of values that are live at the same
    /// time.
    Held,
}

/// A measure, its maximum in any module, and its maximum in a module that is compiled on the
/// calling thread.
struct Row {
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it with the row's place"))]
    measure: Measure,
    limit: u64,
    quick: u64,
}

const fn row(measure: Measure, limit: u64, quick: u64) -> Row {
    Row { measure, limit, quick }
}

/// The limits of all measures, in the order of [`Measure`]'s variants.
const ROWS: [Row; 12] = [
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
    row(Measure::Held, 2_000, 100),
];

impl Measure {
    /// Returns the maximum value of this measure for one module.
    pub const fn limit(self) -> u64 {
        #[expect(
            clippy::indexing_slicing,
            reason = "there is a row for each measure, in the same order, as a test checks"
        )]
        let row = &ROWS[self as usize];
        row.limit
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
    /// The measure that is over its limit.
    pub measure: Measure,
    /// The value of the measure for the module.
    pub found: u64,
    /// Byte offset, in the binary, of the instruction that exceeds the limit. `None` if no single
    /// instruction does.
    pub offset: Option<usize>,
}

/// The cost of compiling a module that is within all limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost([u64; ROWS.len()]);

impl Cost {
    /// Returns true if compiling takes at most a few milliseconds and may therefore run on a shared
    /// thread.
    pub fn is_quick(&self) -> bool {
        self.0.iter().zip(&ROWS).all(|(found, row)| *found <= row.quick)
    }
}

/// Computes the cost of compiling a module.
///
/// # Errors
/// If a measure is over its limit, or if the module cannot be parsed.
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
    /// The first measure that exceeded its limit, with the offset of the instruction that exceeded
    /// it.
    over: Option<(Measure, Option<usize>)>,
    /// The numbers of parameters and results of each function type.
    types: Vec<(u64, u64)>,
    /// The type of each function, imported functions first.
    functions: Vec<u32>,
    bodies: usize,
    imported: usize,
}

impl Count {
    fn add(&mut self, measure: Measure, count: u64, offset: Option<usize>) {
        if let Some(found) = self.cost.0.get_mut(measure as usize) {
            *found = found.saturating_add(count);
            if *found > measure.limit() && self.over.is_none() {
                self.over = Some((measure, offset));
            }
        }
    }

    /// Adds the cost of one section or function of the binary to the total. Returns `None` if the
    /// section or function cannot be parsed.
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
                let (params, results) = *self.types.get(ty as usize)?;
                Body::new(self, params, results).walk(&body)?;
            }
            _ => {}
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Measure, ROWS};

    /// Returns the cost of a module that has the given text and is within all limits.
    fn cost(text: &str) -> Cost {
        let buffer = wast::parser::ParseBuffer::new(text).unwrap();
        let binary = wast::parser::parse::<wast::Wat<'_>>(&buffer).unwrap().encode().unwrap();
        super::of(&binary).unwrap()
    }

    /// Returns the value of a measure for a function with the given body.
    fn measure(measure: Measure, body: &str) -> u64 {
        cost(&format!("(module (memory 1) (func $f {body}))")).0[measure as usize]
    }

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
        // Local 0 is set in the loop and in the inner block; local 1 is set only in the inner
        // block.
        let text = "(module (func (local i32 i32) local.get 0 local.set 0
            (loop (local.set 0 (i32.const 1)) (if (i32.const 1) (then
                (local.set 0 (i32.const 2)) (local.set 1 (i32.const 2)) (local.set 1 (i32.const \
                    3)))))))";
        let cost = cost(text);
        // The `if` sets 2 locals. The loop sets 2, and the engine adds 3.
        assert_eq!(cost.0[Measure::Joined as usize], 2 + 5);
        assert!(cost.is_quick());
    }

    #[test]
    fn instructions_that_become_many_count_as_several() {
        for (body, expected) in [
            ("(drop (i32.add (i32.const 1) (i32.const 2)))", 4),
            ("(drop (f64.nearest (f64.const 1)))", 2 + 4),
            ("(drop (f32.ceil (f32.const 1)))", 2 + 4),
            ("(drop (f64.sqrt (f64.const 1)))", 2 + 4),
            ("(drop (f64.add (f64.const 1) (f64.const 2)))", 3 + 2),
            ("(drop (i32.trunc_f64_s (f64.const 1)))", 2 + 2),
            ("(drop (i64.trunc_sat_f32_u (f32.const 1)))", 2 + 2),
            ("(memory.copy (i32.const 0) (i32.const 9) (i32.const 8))", 3 + 8),
            ("(memory.fill (i32.const 0) (i32.const 9) (i32.const 8))", 3 + 8),
            ("(drop (memory.grow (i32.const 1)))", 2 + 8),
            ("(drop (f64x2.nearest (v128.const i64x2 1 2)))", 1 + 4 + 4),
        ] {
            // The function's `end` counts too.
            assert_eq!(measure(Measure::Instructions, body), expected + 1, "{body}");
        }
    }

    #[test]
    fn values_that_are_live_at_the_same_time_count_above_64() {
        let stack = |size: usize| {
            format!("{} {}", "(i32.load (i32.const 0)) ".repeat(size), "drop ".repeat(size))
        };
        let each = |size: usize, what: &dyn Fn(usize) -> String| -> String {
            (0..size).map(what).collect()
        };
        let locals = |size: usize| each(size, &|at| format!("(local $x{at} i32)"));
        let set = |at: usize| format!("(local.set $x{at} (i32.load (i32.const 0)))");
        let get = |at: usize| format!("(drop (local.get $x{at}))");
        let overlapping = format!("{} {} {}", locals(100), each(100, &set), each(100, &get));
        let successive = format!("{} {}", locals(100), each(100, &|at| set(at) + &get(at)));
        let in_loop = format!("{} (loop {})", locals(100), each(100, &|at| set(at) + &get(at)));
        for (body, expected) in [
            (stack(64), 0),
            (stack(100), 36),
            (stack(50) + &stack(50), 0),
            (format!("(if (i32.const 1) (then {0}) (else {0}))", stack(40)), 0),
            (
                format!(
                    "{} (block {}) {}",
                    "i32.const 1 ".repeat(40),
                    stack(40),
                    "drop ".repeat(40)
                ),
                16,
            ),
            (overlapping, 36),
            (successive, 0),
            (in_loop, 36),
        ] {
            assert_eq!(measure(Measure::Held, &body), expected, "{body}");
        }
        let params =
            format!("(param {}) {}", "i32 ".repeat(100), "(drop (local.get 99))".repeat(2));
        assert_eq!(measure(Measure::Held, &params), 0);
        let gets: String = (0..100).map(|at| format!("(drop (local.get {at}))")).collect();
        let params = format!("(param {}) {gets}", "i32 ".repeat(100));
        assert_eq!(measure(Measure::Held, &params), 36);
    }

    #[test]
    fn values_on_the_operand_stack_are_kept_across_branches_and_calls() {
        let kept = |inner: &str| format!("i32.const 1 i32.const 2 {inner} drop drop");
        for (inner, expected) in [
            ("nop", 0),
            ("(call $f)", 2),
            ("(block (nop))", 4),
            ("(block (br_if 0 (i32.const 1)))", 6),
            ("(if (i32.const 1) (then (call $f)))", 6),
        ] {
            assert_eq!(measure(Measure::Crossed, &kept(inner)), expected, "{inner}");
        }
    }
}
