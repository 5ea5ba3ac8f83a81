//! Generates programs of any size from constructs that are slow to compile. An accepted program
//! must compile within the limits on time and memory, and a rejected program must get a diagnostic.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use wattle_rt::{Limits, Runtime};

/// Number of allocated bytes.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Peak number of allocated bytes.
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator.
#[expect(unsafe_code, reason = "an allocator that counts calls the one of the system")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(USED.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum memory for compiling an accepted program, in bytes.
const MEMORY: usize = 256 << 20;
/// Maximum time for compiling an accepted program. A build with sanitizers takes many times as long
/// as a release build.
const TIME: Duration = Duration::from_secs(20);

static TOKIO: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let limits = Limits {
        instances: 1,
        cache: 1 << 20,
        compile: Duration::from_secs(300),
        ..Limits::default()
    };
    Runtime::new(wattle_capability::ALL, limits).unwrap()
});

/// Maximum size of a program, in bytes.
const LONGEST: usize = 1 << 20;

/// A source of choices that are read from the fuzzer's input.
struct Choices<'b>(std::slice::Iter<'b, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> usize {
        self.0.next().copied().map_or(0, usize::from)
    }

    /// Returns a number from 1 to `most`. Small numbers are more frequent.
    fn count(&mut self, most: usize) -> usize {
        let (scale, within) = (self.byte() % 4, self.byte() + 1);
        (within * most / 256 / [1, 8, 64, 512][scale]).max(1)
    }
}

/// Writes instructions that leave the stack unchanged, nested at most `depth` deep.
fn body(choices: &mut Choices<'_>, out: &mut String, locals: usize, depth: usize) {
    for _ in 0..choices.byte() % 6 + 1 {
        if out.len() > LONGEST || choices.0.len() == 0 {
            return;
        }
        let count = choices.count(4_000);
        let many = |text: &str| text.repeat(count.min(LONGEST / text.len().max(1)));
        match choices.byte() % 20 {
            0 => out.push_str(&many("(drop (i32.add (i32.load (i32.const 8)) (i32.const 7)))\n")),
            1 => out.push_str(&many(
                "(f64.store (i32.const 8) (f64.div (f64.load (i32.const 0)) (f64.const 3)))\n",
            )),
            2 => out.push_str(&many("(if (i32.load (i32.const 0)) (then nop))\n")),
            3 => out.push_str(&many("(call_indirect (i32.load (i32.const 0)))\n")),
            4 => out.push_str(&many("(drop (table.get 0 (i32.const 0)))\n")),
            5 => out.push_str(&many("call $g\n")),
            6 => out.push_str(&many("loop (br_if 0 (i32.load (i32.const 0))) end\n")),
            7 => out.push_str(&many("(i32.load (i32.const 0)) call $wide drop\n")),
            8 => (0..count.min(locals))
                .for_each(|at| _ = write!(out, "(local.set {at} (i32.load (i32.const {at})))")),
            9 => (0..count.min(locals)).for_each(|at| _ = write!(out, "(drop (local.get {at}))")),
            10 => {
                _ = write!(
                    out,
                    "block (br_table {} (i32.load (i32.const 0))) end ",
                    "0 ".repeat(count)
                )
            }
            11 if depth > 0 => {
                let count = count % 900;
                out.push_str(&"loop ".repeat(count));
                body(choices, out, locals, depth - 1);
                out.push_str(&"(br_if 0 (i32.load (i32.const 0))) end ".repeat(count));
            }
            12 if depth > 0 => {
                let count = count % 900;
                out.push_str(&"block ".repeat(count));
                body(choices, out, locals, depth - 1);
                _ = write!(out, "(br_if {} (i32.load (i32.const 0)))", count.saturating_sub(1));
                out.push_str(&"end ".repeat(count));
            }
            13 if depth > 0 => {
                out.push_str(&"i32.const 0 ".repeat(20));
                out.push_str(&"block (type $t) ".repeat(count % 900));
                out.push_str(&"end ".repeat(count % 900));
                out.push_str(&"drop ".repeat(20));
            }
            14 => {
                out.push_str(&"i32.const 0 ".repeat(20));
                out.push_str(&many("i32.const 1 if (type $t) else end "));
                out.push_str(&"drop ".repeat(20));
            }
            15 => {
                out.push_str(&"(i32.load (i32.const 4)) ".repeat(count));
                body(choices, out, locals, depth.saturating_sub(1));
                out.push_str(&"drop ".repeat(count));
            }
            16 => out.push_str(&many("(drop (ref.func $g))")),
            17 => out.push_str(&many("(i32.const 0) (if (then return_call $g))")),
            18 => out.push_str(&many("(drop (i8x16.shl (v128.load (i32.const 4)) (i32.const 3)))")),
            _ => out.push_str(&many("(drop (memory.grow (i32.const 0)))")),
        }
    }
}

fn program(choices: &mut Choices<'_>) -> String {
    let wide = "i32 ".repeat(20);
    let mut text = format!(
        "(type $t (func (param {wide}) (result {wide}))) (table {} funcref) (elem declare func \
         $g) (func $g)\n(func $wide (param i32) (result i32) (local.get 0))\n",
        choices.count(9_000)
    );
    for at in 0..choices.count(2_000) {
        if choices.0.len() == 0 || text.len() > LONGEST {
            break;
        }
        let locals = choices.count(2_000);
        _ = write!(text, "(func $f{at} {}", "(local i32)".repeat(locals));
        body(choices, &mut text, locals, 3);
        text.push_str(")\n");
    }
    _ = write!(text, "(elem func {})\n(i32.const 0)", "$g ".repeat(choices.count(4_000)));
    text
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = program(&mut Choices(bytes.iter()));
    let runtime = &*RUNTIME;
    PEAK.store(USED.load(Relaxed), Relaxed);
    let (before, started) = (USED.load(Relaxed), Instant::now());
    let prepared = TOKIO.block_on(runtime.prepare(&text));
    let (peak, took) = (PEAK.load(Relaxed).saturating_sub(before), started.elapsed());
    match prepared {
        Ok(_) => assert!(
            peak <= MEMORY && took <= TIME,
            "{} MB and {took:?} for {} bytes",
            peak >> 20,
            text.len()
        ),
        Err(why) => {
            assert!(
                !matches!(
                    why.code,
                    "compile-time" | "compiler-bug" | "host-busy" | "refused-module"
                ),
                "{why}"
            );
            assert!(took <= TIME, "{took:?} to refuse {} bytes: {}", text.len(), why.message);
        }
    }
});
