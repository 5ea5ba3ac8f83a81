//! Tests that programs too costly to compile are refused with a message that names the limit, and
//! that programs just within the limits compile.
//!
//! Each of the program shapes below was once compiled manually, and the kernel reported the memory
//! and CPU time used. Within the limits, none took more than 1.2 s or more than 130 MB in addition
//! to the engine's own memory, although the compiler itself was built with little optimization.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_rt::{Code, Diagnostic, Failure, Limits, Run, Runtime};

wattle_rt::capability! {
    /// A namespace for the test.
    const SYS: "sys" 1;
    /// Returns a number
    #[example = "(drop (call $sys.argc)) (i32.const 0)"]
    fn argc() -> n: int = argc;
}

fn argc(_run: &mut Run) -> Result<i32, Failure> {
    Ok(0)
}

fn runtime() -> Runtime {
    let limits = Limits { instances: 1, compile: Duration::from_secs(120), ..Limits::default() };
    Runtime::new(&[SYS], limits).unwrap()
}

fn prepare(source: &str) -> Result<(), Arc<Diagnostic>> {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tokio.block_on(runtime().prepare(source)).map(drop)
}

/// Returns a function that is never called, with the given index and body.
fn func(at: usize, body: &str) -> String {
    format!("(func $f{at} {body})\n")
}

fn locals(count: usize) -> String {
    (0..count).map(|at| format!("(local $x{at} i32)")).collect()
}

fn gets(count: usize) -> String {
    (0..count).map(|at| format!("(drop (local.get $x{at}))")).collect()
}

fn sets(count: usize) -> String {
    (0..count).map(|at| format!("(local.set $x{at} (i32.load (i32.const {at})))")).collect()
}

const IF: &str = "(if (i32.load (i32.const 0)) (then nop))\n";
const AGAIN: &str = "(br_if 0 (i32.load (i32.const 0)))";

/// Returns a program of the given shape and size.
fn shape(name: &str, size: usize) -> String {
    let many = |what: &str| what.repeat(size);
    let text = match name {
        "instructions" => func(0, &many("(drop (i32.const 7))")),
        "functions" => (0..size).map(|at| func(at, "")).collect(),
        "types" => (0..size)
            .map(|at| {
                format!(
                    "(type (func (param {}) (result {})))",
                    "i32 ".repeat(at % 20),
                    "f32 ".repeat(at / 20)
                )
            })
            .collect(),
        "globals" => many("(global i32 (i32.const 0))\n"),
        "elements" => format!("(func $f) (table 1 funcref) (elem func {})", many("$f ")),
        "tables" => {
            format!("(table 1 funcref) {}", func(0, &many("(call_indirect (i32.const 0))")))
        }
        "labels" => func(0, &format!("block (br_table {} (i32.const 0)) end", many("0 "))),
        "blocks of many values" => {
            let values = "i32 ".repeat(100);
            let body = format!(
                "{} {} {}",
                "i32.const 1 ".repeat(100),
                many("block (type $t) end "),
                "drop ".repeat(100)
            );
            format!("(type $t (func (param {values}) (result {values}))) {}", func(0, &body))
        }
        "nested loops of many values" => {
            let values = "i32 ".repeat(100);
            let body = format!(
                "{} {} {} {}",
                "i32.const 1 ".repeat(100),
                many("loop (type $t) "),
                many("end "),
                "drop ".repeat(100)
            );
            format!("(type $t (func (param {values}) (result {values}))) {}", func(0, &body))
        }
        "calls with many values" => {
            let values = "i32 ".repeat(50);
            let callee = format!("(func $g (param {values}) (result {values}) unreachable)");
            format!(
                "{callee} {}",
                func(
                    0,
                    &format!(
                        "{} {} {}",
                        "i32.const 1 ".repeat(50),
                        many("call $g "),
                        "drop ".repeat(50)
                    )
                )
            )
        }
        "returns of many values" => {
            let (values, constants) = ("i32 ".repeat(10), "i32.const 1 ".repeat(10));
            format!(
                "(func $g (result {values}) {} {constants})",
                many(&format!("(if (i32.const 1) (then {constants} return))"))
            )
        }
        "nested loops" => {
            let half = size / 2;
            let nested =
                format!("{} {}", "loop ".repeat(half), format!("{AGAIN} end ").repeat(half));
            func(0, &nested) + &func(1, &nested)
        }
        "loops one after the other" => func(0, &many(&format!("loop {AGAIN} end\n"))),
        "locals set in nested loops" => {
            let body = format!(
                "{} {} {} {} {}",
                locals(30),
                many("loop "),
                gets(30),
                sets(30),
                many(&format!("{AGAIN} end "))
            );
            func(0, &body)
        }
        "locals read in nested loops" => func(
            0,
            &format!(
                "{} {} {} {}",
                locals(500),
                many("loop "),
                gets(500),
                many(&format!("{AGAIN} end "))
            ),
        ),
        "locals carried over branches" => {
            func(0, &format!("{} {} {} {}", locals(500), sets(500), many(IF), gets(500)))
        }
        "locals carried over one table" => {
            let table = format!(
                "block block (br_table {} (i32.load (i32.const 0))) end {} end",
                many("0 1 "),
                sets(500)
            );
            func(0, &format!("{} {table} {}", locals(500), gets(500)))
        }
        "values on the operand stack" => {
            let sum = "i32.add ".repeat(size - 1);
            let loads = many("i32.const 0 i32.load ");
            let store = "local.set $v (i32.store (i32.const 0) (local.get $v))";
            func(0, &format!("(local $v i32) {loads} {sum} {store}"))
        }
        "live locals" => {
            let sum: String = (0..size).map(|at| format!("local.get $x{at} i32.add ")).collect();
            let store = format!("i32.const 0 i32.const 0 {sum} i32.store");
            func(0, &format!("{} {} {store}", locals(size), sets(size)))
        }
        "values kept across calls" => {
            let (loads, drops) = ("i32.const 0 i32.load ".repeat(1_000), "drop ".repeat(1_000));
            func(0, &format!("{loads} {} {drops}", many("call $f1 "))) + &func(1, "")
        }
        "rounding" => func(0, &format!("f64.const 1 {} drop", many("f64.nearest "))),
        "copies of memory" => {
            let copy = "(memory.copy (i32.const 0) (i32.const 9) (i32.load (i32.const 8)))\n";
            func(0, &many(copy))
        }
        other => panic!("{other}"),
    };
    format!("{text}\n(i32.const 0)")
}

/// Shapes of programs, each with a size that compiles, a size that is refused, and a part of the
/// expected message.
const SHAPES: &[(&str, usize, usize, &str)] = &[
    ("instructions", 29_000, 31_000, "instructions"),
    ("functions", 990, 1_001, "functions"),
    ("types", 200, 301, "function types"),
    ("globals", 1_900, 2_001, "globals"),
    ("elements", 1_900, 2_100, "element segments"),
    ("tables", 1_400, 1_501, "use a table"),
    ("labels", 9_900, 10_001, "br_table"),
    ("blocks of many values", 140, 160, "pass"),
    ("nested loops of many values", 26, 40, "may differ"),
    ("calls with many values", 290, 310, "pass"),
    ("returns of many values", 2_900, 3_100, "pass"),
    ("nested loops", 980, 1_100, "may differ"),
    ("loops one after the other", 980, 1_010, "may differ"),
    ("locals set in nested loops", 88, 100, "may differ"),
    ("locals read in nested loops", 50, 70, "kept across"),
    ("locals carried over branches", 280, 610, "kept across"),
    ("locals carried over one table", 280, 610, "kept across"),
    ("values kept across calls", 290, 310, "kept across"),
    ("values on the operand stack", 2_000, 2_070, "at the same time"),
    ("live locals", 2_000, 2_070, "at the same time"),
    ("rounding", 14_900, 15_100, "instructions"),
    ("copies of memory", 4_900, 5_100, "instructions"),
];

#[test]
fn a_program_just_within_a_limit_compiles() {
    for (name, size, ..) in SHAPES {
        let started = Instant::now();
        if let Err(why) = prepare(&shape(name, *size)) {
            panic!("{name}, {size}: {}", why.message);
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{name} took {:?}", started.elapsed());
    }
}

#[test]
fn a_program_over_a_limit_is_refused_with_a_message_that_names_it() {
    for (name, _, size, expected) in SHAPES {
        let Err(why) = prepare(&shape(name, *size)) else { panic!("{name}, {size}") };
        assert_eq!(why.code, "too-large", "{name}: {}", why.message);
        assert!(why.message.contains(expected), "{name}: {}", why.message);
        assert!(why.hint.is_some(), "{name}");
    }
}

/// Covers programs that would take gigabytes of memory or most of a minute to compile if there were
/// no limits.
#[test]
fn known_hostile_texts_are_refused_at_once() {
    for (name, size) in [
        ("blocks of many values", 5_000),
        ("nested loops", 1_900),
        ("loops one after the other", 9_000),
        ("values on the operand stack", 19_000),
        ("live locals", 9_000),
        ("rounding", 58_900),
        ("copies of memory", 11_000),
    ] {
        let started = Instant::now();
        assert_eq!(prepare(&shape(name, size)).unwrap_err().code, "too-large");
        assert!(started.elapsed() < Duration::from_secs(20), "{name} took {:?}", started.elapsed());
    }
    let ty = format!("(type $t (func (param {0}) (result {0})))", "i32 ".repeat(1_000));
    let (pushes, drops) = ("i32.const 0 ".repeat(1_000), "drop ".repeat(1_000));
    let nested = format!("{} {}", "block (type $t) ".repeat(900), "end ".repeat(900));
    let text =
        format!("(module {ty} (func $run (result i32) {pushes} {nested} {drops} (i32.const 0)))");
    assert_eq!(prepare(&text).unwrap_err().code, "too-large");
}

#[test]
fn a_refusal_points_to_the_line_that_exceeds_the_limit() {
    let text = format!(
        "(func $small (drop (i32.const 1)))\n(func $large\n{})\n(i32.const 0)",
        IF.repeat(13_000)
    );
    let why = prepare(&text).unwrap_err();
    assert_eq!(why.code, "too-large");
    assert_eq!(why.message, "the program has 65006 instructions, more than the maximum of 60000");
    assert_eq!(
        why.hint.as_deref(),
        Some("move repeated code into a function or a loop, and data into files")
    );
    assert!((11_900..12_100).contains(&why.position.line), "{}", why.position);
}

#[test]
fn honest_calculations_are_far_below_the_limits() {
    let step = "(local.set $x (f64.add (f64.sqrt (f64.mul (local.get $x) (f64.const 1.5)))
        (f64.floor (f64.convert_i32_s (i32.trunc_f64_s (f64.const 7))))))\n";
    let text = format!("(local $x f64) {}\n(i32.const 0)", step.repeat(1_000));
    if let Err(why) = prepare(&text) {
        panic!("{}", why.message);
    }
}

/// Checks that programs run regardless of whether the calling thread or the pool compiles them.
#[test]
fn programs_of_every_size_run() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let runtime = runtime();
        let grants = std::sync::Arc::new(wattle_rt::Grants::without_state(["sys"]));
        for count in [1, 3_000, 20_000] {
            let text = format!(
                "(local $n i32) {} (local.get $n)",
                "(local.set $n (i32.add (local.get $n) (call $sys.argc)))\n".repeat(count / 4)
            );
            let program = runtime.prepare(&text).await.unwrap();
            let outcome = runtime.run(&program, &grants, Vec::new()).await.unwrap();
            assert_eq!(outcome.exit, wattle_rt::Exit::Returned(Code::SUCCESS));
        }
    });
}
