//! A program that performs an arbitrary sequence of host calls. The sequence is encoded in the
//! program's argument, so the program is compiled only once.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use wattle_capability::ALL;
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_rt::{Exit, Function, Limits, Outcome, Program, TrapKind, ValType};

use crate::world::World;

/// Maximum memory of a program and of its files, in bytes.
const MEMORY: usize = 1 << 20;
/// Maximum number of calls in a sequence.
const CALLS: usize = 32;
/// Number of functions in each table of the program.
const GROUP: usize = 128;

/// Strings to use as operands: keys, paths, URLs, documents, patterns, programs and times.
const TEXTS: &[&str] = &[
    "",
    "a",
    "a.txt",
    "../a",
    "dir/b.txt",
    "tenant:a",
    "http://host/x",
    "http://host/refused",
    "{\"a\":[1,2.50,{\"b\":null}]}",
    "[1,\"b\",[]]",
    "a[0].b",
    "$.a",
    "/a/0",
    ".a[]",
    "^(a+)+$",
    "[",
    "upper",
    "count",
    "deeper",
    "[\"upper\",\"x\"]",
    "2024-02-29T12:00:00Z",
    "Europe/Berlin",
    "%Y-%m-%d",
    "-12",
    "1e400",
    "ä€😀",
    "YWJj",
    "%41%zz",
    "&amp;<",
    "0123456789abcdef",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^a\"}},\"\
     required\":[\"a\"]}",
    "{\"temperature\":1}",
    "{\"x-a\":\"b\"}",
    "GET",
    "range(1e9)",
    "def f: f; f",
    "cat a.txt",
    "put dir/b.txt x",
    "catalog run deeper x",
    "vars list",
    "vars set a '",
    "[components.a]\nprogram = 'upper'\nargs = ['x']\n[components.b]\nsource = '(ret (arg \
     0))'\nargs = [{ from = 'a' }]\n[exports]\nb = 'b'",
    "[components.a]\nprogram = 'a'\nneeds = ['a']\n[exports]\na = 'a'",
];

/// Numbers to use as operands, mostly edge cases.
const NUMBERS: &[i32] = &[
    0,
    1,
    -1,
    2,
    3,
    4,
    7,
    8,
    15,
    16,
    17,
    255,
    4_096,
    65_532,
    65_535,
    65_536,
    1 << 20,
    (1 << 20) - 4,
    i32::MAX,
    i32::MIN,
    -4,
    -65_536,
];

/// A test environment and the compiled program that performs call sequences.
pub(crate) struct Calls {
    world: World,
    program: Program,
    functions: Vec<&'static Function>,
}

impl Calls {
    /// Compiles a program that can call every function except those in `without`.
    pub(crate) async fn new(without: &[&str]) -> Calls {
        let limits = Limits {
            memory: MEMORY,
            time: Duration::from_millis(500),
            instances: 4,
            ..Limits::default()
        };
        let world = World::with(limits);
        let functions: Vec<&'static Function> =
            ALL.iter().flat_map(|c| c.functions).filter(|f| !without.contains(&f.name)).collect();
        let text = text(&functions);
        let program = world.runtime.prepare(&text).await.unwrap_or_else(|why| panic!("{why}"));
        Calls { world, program, functions }
    }

    /// Performs the sequence encoded in `bytes` and checks the invariants of the outcome.
    pub(crate) async fn perform(&self, bytes: &[u8]) {
        let files = Arc::new(Files::overlay(None, MEMORY as u64));
        let grants = Arc::new((*self.world.grants()).clone().with(Fs(files)));
        let script = self.script(bytes);
        let outcome = self.world.runtime.run(&self.program, &grants, vec![script]).await;
        self.check(&outcome.unwrap_or_else(|broken| panic!("{broken}")));
    }

    fn check(&self, outcome: &Outcome) {
        assert!(outcome.memory_bytes <= MEMORY as u64);
        assert!(outcome.results.iter().map(Vec::len).sum::<usize>() <= MEMORY);
        match &outcome.exit {
            Exit::Returned(code) => assert!(code.is_success(), "{code}"),
            Exit::Trapped(trap) => match trap.kind {
                TrapKind::Time => {}
                // Only a function without an error result may trap, and it must report a reason.
                TrapKind::Host(_) => {
                    let failed = outcome.failure.as_ref().unwrap();
                    let function = self
                        .functions
                        .iter()
                        .find(|f| f.name == failed.function.unwrap_or(wattle_rt::FAIL))
                        .unwrap();
                    assert!(!function.signature.fallible(), "{trap}");
                    assert!(!failed.failure.reason.is_empty());
                }
                _ => panic!("the host let a program trap: {trap}"),
            },
        }
    }

    /// Converts `bytes` to the program's argument: for each call, the function's index counted from
    /// 1, and a tag and a value for each operand.
    fn script(&self, bytes: &[u8]) -> String {
        let mut bytes = bytes.iter().copied();
        let mut script = String::new();
        let mut put = |number: u32| {
            // Each character encodes seven bits, lowest bits first.
            (0..5).for_each(|at| script.push(char::from((number >> (7 * at) & 0x7f) as u8)));
        };
        for _ in 0..CALLS {
            let (Some(low), Some(high)) = (bytes.next(), bytes.next()) else { break };
            let which = usize::from(u16::from_le_bytes([low, high])) % self.functions.len();
            put(which as u32 + 1);
            for _ in self.functions[which].signature.params {
                let (kind, value) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
                let (tag, value) = match kind % 8 {
                    // The operand is a result of an earlier call.
                    0..=2 => (1, u32::from(value) % 8),
                    // The operand is a string.
                    3..=5 => (2, u32::from(value) % TEXTS.len() as u32),
                    6 => (0, NUMBERS[usize::from(value) % NUMBERS.len()].cast_unsigned()),
                    _ => {
                        let rest = [bytes.next(), bytes.next(), bytes.next()]
                            .map(Option::unwrap_or_default);
                        (0, u32::from_le_bytes([value, rest[0], rest[1], rest[2]]))
                    }
                };
                put(tag);
                put(value);
            }
        }
        put(0);
        script
    }
}

/// Returns the source of the program, which decodes its argument, makes the calls, and stores the
/// last eight results.
fn text(functions: &[&'static Function]) -> String {
    let mut text = String::from(
        "(global $at (mut i32) (i32.const 0)) (global $results (mut i32) (i32.const 0)) (global \
         $next (mut i32) (i32.const 0))
         (func $number (result i32) (local $n i32) (local $i i32)
           (loop $more
             (local.set $n (i32.or (local.get $n)
               (i32.shl (i32.load8_u (global.get $at)) (i32.mul (local.get $i) (i32.const 7)))))
             (global.set $at (i32.add (global.get $at) (i32.const 1)))
             (local.set $i (i32.add (local.get $i) (i32.const 1)))
             (br_if $more (i32.lt_u (local.get $i) (i32.const 5))))
           (local.get $n))
         (func $keep (param $value i32)
           (i32.store (i32.add (global.get $results) (i32.shl (global.get $next) (i32.const 2))) \
         (local.get $value))
           (global.set $next (i32.and (i32.add (global.get $next) (i32.const 1)) (i32.const 7))))
         (func $text (param $which i32) (result i32)\n",
    );
    let literal = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    for (at, content) in TEXTS.iter().enumerate() {
        let _ = writeln!(
            text,
            "(if (i32.eq (local.get $which) (i32.const {at})) (then (return \"{}\")))",
            literal(content)
        );
    }
    text.push_str(
        "(i32.const 0))
         (func $operand (result i32) (local $tag i32) (local $n i32)
           (local.set $tag (call $number)) (local.set $n (call $number))
           (if (i32.eq (local.get $tag) (i32.const 1))
             (then (return (i32.load (i32.add (global.get $results) (i32.shl (local.get $n) \
         (i32.const 2)))))))
           (if (i32.eq (local.get $tag) (i32.const 2)) (then (return (call $text (local.get $n)))))
           (local.get $n))\n",
    );
    for (at, function) in functions.iter().enumerate() {
        let operands: String = function
            .signature
            .pops()
            .map(|ty| match ty {
                ValType::I64 => "(i64.extend_i32_s (call $operand))",
                // The number becomes the upper half of the float's bits, so that any kind of float
                // can result.
                ValType::F64 => {
                    "(f64.reinterpret_i64 (i64.shl (i64.extend_i32_s (call $operand)) (i64.const \
                     32)))"
                }
                ValType::I32 => "(call $operand)",
            })
            .collect();
        let mut keeps: Vec<&str> = function
            .signature
            .pushes()
            .map(|ty| if ty == ValType::I32 { "(call $keep)" } else { "(drop)" })
            .collect();
        if function.signature.fallible() {
            keeps.pop();
            keeps.push("(drop)");
        }
        keeps.reverse();
        let _ = writeln!(
            text,
            "(func $call{at} (call ${} {operands}) {})",
            function.name,
            keeps.concat()
        );
    }
    // Parentheses are nested at most 256 deep, so that one table cannot hold all functions.
    let names: Vec<usize> = (0..functions.len()).collect();
    for (group, calls) in names.chunks(GROUP).enumerate() {
        let labels: String = calls.iter().map(|at| format!("$b{at} ")).collect();
        let _ = write!(text, "(func $dispatch{group} (param $which i32) ");
        calls.iter().rev().for_each(|at| {
            let _ = write!(text, "(block $b{at} ");
        });
        let _ = write!(text, "(br_table {labels} $b{} (local.get $which))", calls[0]);
        for at in calls {
            let _ = writeln!(text, ") (call $call{at}) (return)");
        }
        text.push_str(")\n");
    }
    text.push_str("(func $dispatch (param $which i32)\n");
    for group in 0..functions.len().div_ceil(GROUP) {
        let _ = writeln!(
            text,
            "(if (i32.lt_u (local.get $which) (i32.const {})) (then (call $dispatch{group} \
             (i32.sub (local.get $which) (i32.const {}))) (return)))",
            (group + 1) * GROUP,
            group * GROUP
        );
    }
    text.push_str(
        ")
         (local $which i32)
         (argv 0 $script)
         (global.set $at (i32.add (local.get $script) (i32.const 4)))
         (global.set $results (call $sys.alloc (i32.const 32)))
         (block $done (loop $more
           (local.set $which (call $number))
           (br_if $done (i32.eqz (local.get $which)))
           (call $dispatch (i32.sub (local.get $which) (i32.const 1)))
           (br $more)))
         (i32.const 0)",
    );
    text
}
