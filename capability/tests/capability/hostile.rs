//! Tests of hostile programs: each program ends with a clear error within its limits, and does not
//! affect the next run.

use std::time::Duration;

use wattle_capability::ALL;
use wattle_rt::{AccountLimits, Exit, Limits, MAX_REASON, Outcome, Trap, TrapKind, Ty};

use crate::world::World;

fn small() -> World {
    World::with(Limits {
        memory: 4 << 20,
        time: Duration::from_secs(1),
        instances: 4,
        ..Limits::default()
    })
}

async fn unharmed(world: &World) {
    let outcome = world.run("(resv \"fine\") (i32.const 0)", &[]).await.unwrap();
    assert_eq!(outcome.texts(), ["fine"]);
}

fn trap(outcome: &Outcome) -> &Trap {
    match &outcome.exit {
        Exit::Trapped(trap) => trap,
        other => panic!("{other:?} is no trap"),
    }
}

#[tokio::test]
async fn a_trap_reports_reason_and_position() {
    let world = small();
    for (text, kind, line) in [
        ("(i32.const 0)\ndrop\n(loop $l (br $l))\n(i32.const 0)", TrapKind::Time, 3),
        ("(func $f (call $f))\n(call $f)\n(i32.const 0)", TrapKind::Stack, 1),
        (
            "(func $f (param i32) (result i32)\n (call $g (local.get 0)))\n(func $g (param i32) \
             (result i32)\n (call $f (local.get 0)))\n(call $f (i32.const 1))",
            TrapKind::Stack,
            0,
        ),
        ("(i32.load (i32.const -4))\ndrop\n(i32.const 0)", TrapKind::Memory, 1),
        (
            "(i32.const 1)\n(drop)\n(i32.store (i32.const 0x7fffffff)\n  (i32.const \
             1))\n(i32.const 0)",
            TrapKind::Memory,
            3,
        ),
        (
            "(memory.fill (i32.const 0) (i32.const 1) (i32.const -1)) (i32.const 0)",
            TrapKind::Memory,
            1,
        ),
        ("(local $z i32)\n(i32.div_s (i32.const 1) (local.get $z))", TrapKind::Arithmetic, 2),
        ("\n(i32.div_s (i32.const -2147483648) (i32.const -1))", TrapKind::Arithmetic, 2),
        ("(i32.trunc_f64_s (f64.const nan))", TrapKind::Arithmetic, 1),
        ("(i32.const 1)\n(drop)\nunreachable", TrapKind::Unreachable, 3),
        (
            "(table 2 funcref)\n(type $t (func (result i32)))\n(call_indirect (type $t) \
             (i32.const 1))",
            TrapKind::Call,
            3,
        ),
        (
            "(table 2 funcref)\n(type $t (func (result i32)))\n(call_indirect (type $t) \
             (i32.const 9))",
            TrapKind::Memory,
            3,
        ),
        ("(call $sys.sleep\n (i32.const 60000))\n(i32.const 0)", TrapKind::Time, 1),
        (
            "(local $e i32)\n(call $http.get \"http://host/hang\") (drop) (drop) (i32.const 0)",
            TrapKind::Time,
            2,
        ),
        (
            "(loop $l\n (call $sys.resv \"again and again\")\n (br $l))\n(i32.const 0)",
            TrapKind::Host(wattle_rt::Code::ENOMEM),
            2,
        ),
        (
            "(loop $l\n (drop (call $arr.new))\n (br $l))\n(i32.const 0)",
            TrapKind::Host(wattle_rt::Code::ENOMEM),
            2,
        ),
    ] {
        let outcome = world.run(text, &[]).await.unwrap_or_else(|why| panic!("{why}\n{text}"));
        let trap = trap(&outcome);
        assert_eq!(trap.kind, kind, "{text}\n{trap}");
        assert!(!trap.message.is_empty());
        if line > 0 {
            assert_eq!(trap.position.map(|p| p.line), Some(line), "{text}\n{trap}");
        }
        unharmed(&world).await;
    }
}

#[tokio::test]
async fn memory_is_limited_and_exhaustion_is_reported() {
    let world = small();
    // If the program itself fails to grow its memory, `memory.grow` returns -1. If the host fails
    // to do so, the call fails with ENOMEM.
    let grow = "(resv (call $str.from_int (memory.grow (i32.const 1000)))) (i32.const 0)";
    assert_eq!(world.run(grow, &[]).await.unwrap().texts(), ["-1"]);
    let hunger = r#"
        (local $s i32) (local $e i32)
        (local.set $s "0123456789")
        (loop $again
          (call $str.cat (local.get $s) (local.get $s))
          (local.set $e) (local.set $s)
          (check $e)
          (br $again))
        (i32.const 0)"#;
    let outcome = world.run(hunger, &[]).await.unwrap();
    assert_eq!(outcome.exit, Exit::Returned(wattle_rt::Code::ENOMEM));
    assert!(outcome.memory_bytes <= 4 << 20);
    let alloc = "(drop (call $sys.alloc (i32.const 0x7fffffff))) (i32.const 0)";
    assert_eq!(
        trap(&world.run(alloc, &[]).await.unwrap()).kind,
        TrapKind::Host(wattle_rt::Code::ENOMEM)
    );
    unharmed(&world).await;
}

#[tokio::test]
async fn reasons_and_log_lines_are_limited() {
    let world = small();
    let long = "(let $s (str.repeat \"{a}\" 100000))";
    for call in
        ["(sys.trap $s (i64.const -9223372036854775807) (i64.const 0))", "(sys.fail EBOUND $s)"]
    {
        let outcome = world.run(&format!("{long}\n{call}"), &[]).await.unwrap();
        let reason = match &outcome.exit {
            Exit::Trapped(trap) => &trap.message,
            Exit::Returned(_) => &outcome.failure.as_ref().unwrap().failure.reason,
        };
        let bytes = reason.len();
        assert!((MAX_REASON..2 * MAX_REASON).contains(&bytes), "{call}: {bytes} bytes");
    }
    let log = format!("{long}\n(for $i 0 900 (dbg.log $s))\n(out \"logged\")");
    let outcome = world.run(&log, &[]).await.unwrap();
    assert_eq!(outcome.texts(), ["logged"]);
    let bytes: usize = outcome.log.iter().map(String::len).sum();
    assert!((512 << 10..=1 << 20).contains(&bytes), "{bytes} bytes");
    unharmed(&world).await;
}

/// Operands for all types: hostile values, and a few ordinary ones.
const NUMBERS: [i32; 12] =
    [0, 1, -1, 2, 15, 16, 65_532, 65_536, i32::MAX, i32::MIN, -65_536, 0x1000_0000];

#[tokio::test]
async fn no_operand_of_any_function_is_harmful() {
    // The guests are compiled first, because compilation takes longer than the deadline in `small`.
    let guests = "(out (json.query? \"1\" \".\")) (ret (html.text? \"a\"))";
    World::new().run(guests, &[]).await.unwrap();
    let world = small();
    for function in ALL.iter().flat_map(|c| c.functions) {
        let signature = &function.signature;
        let results: Vec<&str> = signature.pushes().map(|_| "(drop)").collect();
        for n in NUMBERS {
            for honest in 0..=signature.params.len() {
                // Either all operands are hostile, or all string operands except one are ordinary.
                let operands: Vec<String> = signature
                    .params
                    .iter()
                    .enumerate()
                    .map(|(i, p)| match p.ty {
                        Ty::Long => format!("(i64.const {n})"),
                        Ty::Float => format!("(f64.const {n})"),
                        Ty::Str | Ty::OptStr | Ty::Bytes
                            if i != honest && honest < signature.params.len() =>
                        {
                            "\"a.txt\"".to_owned()
                        }
                        _ => format!("(i32.const {n})"),
                    })
                    .collect();
                let name = format!("{}.{}", signature.module, signature.name);
                // Long sleeps are harmless, but they slow the test down.
                if name == "sys.sleep" && n > 16 {
                    continue;
                }
                let text = format!(
                    "(call ${name} {}) {} (i32.const 0)",
                    operands.join(" "),
                    results.join(" ")
                );
                let outcome =
                    world.run(&text, &[]).await.unwrap_or_else(|why| panic!("{why}\n{text}"));
                match outcome.exit {
                    Exit::Returned(code) => assert!(code.is_success()),
                    Exit::Trapped(trap) => {
                        assert!(
                            matches!(trap.kind, TrapKind::Host(_)) && !signature.fallible(),
                            "{text}\n{trap}"
                        )
                    }
                }
            }
        }
    }
    unharmed(&world).await;
}

#[tokio::test]
async fn invalid_lengths_in_memory_are_harmless() {
    let world = small();
    for length in [u32::MAX, 0x7fff_ffff, 0x8000_0000, 1 << 20, 130_049] {
        let text = format!(
            "(i32.store (i32.const 1024) (i32.const {})) (resv (call $str.from_int (call $str.len \
             (i32.const 1024)))) (i32.const 0)",
            length.cast_signed()
        );
        let outcome = world.run(&text, &[]).await.unwrap();
        assert_eq!(trap(&outcome).kind, TrapKind::Host(wattle_rt::Code::EBOUND), "{length}");
    }
    let not_utf8 = "(i32.store (i32.const 1024) (i32.const 2)) (i32.store8 (i32.const 1028) \
                    (i32.const 0xff)) (call $str.trim (i32.const 1024)) (return)";
    assert_eq!(
        world.run(not_utf8, &[]).await.unwrap().exit,
        Exit::Returned(wattle_rt::Code::EPARSE)
    );
}

#[tokio::test]
async fn giant_texts_run_or_fail_with_a_clear_error() {
    let world = small();
    let deep =
        format!("{}(i32.const 0){}", "(block (result i32) ".repeat(20_000), ")".repeat(20_000));
    let locals: String =
        (0..10_000).map(|n| format!("(local $l{n} i32)\n")).collect::<String>() + "(i32.const 0)";
    let too_many: String =
        (0..60_000).map(|n| format!("(local $l{n} i32)\n")).collect::<String>() + "(i32.const 0)";
    let literal = format!(
        "(resv (call $str.from_int (call $str.len \"{}\"))) (i32.const 0)",
        "x".repeat(1_000_000)
    );
    let wide = "(drop (i32.const 1))".repeat(50_000) + "(i32.const 0)";
    let huge = " ".repeat(20 << 20);
    let parens = "(".repeat(1 << 20);
    let quotes = "\"".repeat(1 << 20);
    for (name, text) in [
        ("deep", &deep),
        ("locals", &locals),
        ("too many locals", &too_many),
        ("literal", &literal),
        ("wide", &wide),
        ("huge", &huge),
        ("parens", &parens),
        ("quotes", &quotes),
    ] {
        match world.run(text, &[]).await {
            // The program with a million quotes may also fail at run time.
            Ok(outcome) => assert!(outcome.success() || name == "quotes", "{name}: {outcome:?}"),
            Err(why) => assert!(why.starts_with("error[") && why.len() < 2_000, "{name}: {why}"),
        }
        unharmed(&world).await;
    }
    // These two programs are valid.
    assert!(world.run(&locals, &[]).await.unwrap().success());
    assert_eq!(world.run(&literal, &[]).await.unwrap().texts(), ["1000000"]);
}

#[tokio::test]
async fn more_runs_than_instances_wait_for_each_other() {
    let world = std::sync::Arc::new(small());
    let runs: Vec<_> = (0..32)
        .map(|_| {
            let world = std::sync::Arc::clone(&world);
            tokio::spawn(async move {
                world.run("(call $sys.sleep (i32.const 5)) (resv \"ok\") (i32.const 0)", &[]).await
            })
        })
        .collect();
    for run in runs {
        assert_eq!(run.await.unwrap().unwrap().texts(), ["ok"]);
    }
}

#[tokio::test]
async fn a_dropped_run_stops_and_frees_its_instance() {
    let world = std::sync::Arc::new(World::with(Limits { instances: 1, ..Limits::default() }));
    let endless = {
        let world = std::sync::Arc::clone(&world);
        tokio::spawn(async move { world.run("(loop $l (br $l)) (i32.const 0)", &[]).await })
    };
    tokio::time::sleep(Duration::from_millis(30)).await;
    endless.abort();
    assert!(endless.await.unwrap_err().is_cancelled());
    unharmed(&world).await;
}

#[tokio::test]
async fn endless_filters_and_patterns_end_at_the_deadline() {
    // The guest is compiled first, so that its compilation does not count towards the deadline.
    World::new().run("(ret (json.query? \"1\" \".\"))", &[]).await.unwrap();
    let world = small();
    for filter in [
        "def f: f; f",
        "[repeat(1)] | length",
        "last(range(1e18))",
        "reduce range(1e18) as $x (0; .)",
        "range(1e18) | empty",
        "first(range(1e18) | select(. < 0))",
        "[limit(1e12; repeat(0))] | length",
        "until(false; .)",
    ] {
        let text = format!(
            "(out \"before\")\n(catch $v $e (json.query \"null\" \"{filter}\"))\n(fail $e)"
        );
        let outcome = world.run(&text, &[]).await.unwrap();
        let ended = match &outcome.exit {
            Exit::Trapped(trap) => trap.kind == TrapKind::Time,
            Exit::Returned(code) => {
                [wattle_rt::Code::ETIME, wattle_rt::Code::ENOMEM].contains(code)
            }
        };
        assert!(ended, "{filter}: {:?}", outcome.exit);
        unharmed(&world).await;
    }
    // Each match is found in linear time, but all matches together take quadratic time.
    let square = "(let $s (str.repeat? \"A\" 1000000))\n(catch $v $e (str.find_all $s \
                  \".*[^A-Z]|[A-Z]\"))\n(fail $e)";
    let outcome = world.run(square, &[]).await.unwrap();
    assert!(!outcome.success(), "{:?}", outcome.exit);
    unharmed(&world).await;
}

#[tokio::test]
async fn a_search_for_matches_ends_when_the_run_has_no_processor_time_left() {
    let cpu = Duration::from_millis(300);
    let run = AccountLimits { cpu, ..AccountLimits::default() };
    let world = World::with(Limits { run, ..Limits::default() });
    for search in [
        "(let $a (str.find_all? (str.repeat? \"a\" 1000000) \"a*b|a\"))",
        "(let $a (str.replace_re? (str.repeat? \"a\" 1000000) \"a*b|a\" \"\"))",
    ] {
        let started = std::time::Instant::now();
        let outcome = world.run(&format!("{search} (ret \"done\")"), &[]).await.unwrap();
        assert!(!outcome.success(), "{search}: {:?}", outcome.exit);
        assert!(started.elapsed() < Duration::from_secs(15), "{search}: {:?}", started.elapsed());
    }
    unharmed(&world).await;
}

#[tokio::test]
async fn pieces_that_overlap_take_linear_time_or_are_refused() {
    let world = World::new();
    let text = "(let $a (str.chunk_overlap? (str.repeat? \"a\" 400000) 100000 99999)) (ret \"x\")";
    let outcome = world.run(text, &[]).await.unwrap();
    assert_eq!(outcome.exit, Exit::Returned(wattle_rt::Code::ENOMEM));
    let text = "(let $a (str.chunk_overlap? (str.repeat? \"a\" 200000) 20000 18000)) (ret \
                (str.from_int (arr.len $a)))";
    let outcome = world.run(text, &[]).await.unwrap();
    assert_eq!(outcome.texts(), ["91"]);
}

#[tokio::test]
async fn an_expensive_pattern_is_refused_or_quick() {
    let world = World::new();
    for pattern in [
        "(?:[01]*1[01]{200})+x",
        "(x+x+)+y",
        "(?:a?){90}a{90}b",
        r"\\b\\w{1,50}\\b(?:.|\\n){0,100}$",
        r"(?i)\\pL{1,60}\\d",
    ] {
        let text = format!(
            "(let $s (str.repeat? \"0110100110010110 xxaä\" 20000))\n(catch $v $e (str.match $s \
             \"{pattern}\"))\n(ret (str.from_int $e))"
        );
        let outcome = world.run(&text, &[]).await.unwrap();
        assert!(
            ["0", "1", "7"].contains(&outcome.texts().join(" ").as_str()),
            "{pattern}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_loop_over_a_large_text_takes_the_time_of_its_pieces() {
    // If each of the 20,000 calls read the whole text of 4 MB, they would read 80 GB in total.
    let world = World::new();
    let text = "
        (let $s (str.repeat? \"\
         0123456789abcdefghij0123456789abcdefghij0123456789abcdefghij0123456789abcdefghij\
         0123456789abcdefghij0123456789abcdefghij0123456789abcdefghij0123456789abcdefghij\
         0123456789abcdefghij0123456789abcdefghi\\n\" 20000))
        (let $from 0)
        (let $lines 0)
        (let $end (str.find $s \"\\n\" 0))
        (while (>= $end 0)
          (when (str.ends (str.slice? $s $from $end) \"ghi\") (set $lines (+ $lines 1)))
          (set $from (+ $end 1))
          (set $end (str.find $s \"\\n\" $from)))
        (ret (str.from_int $lines))";
    let started = std::time::Instant::now();
    let outcome = world.run(text, &[]).await.unwrap();
    assert_eq!(outcome.texts(), ["20000"], "{:?}", outcome.exit);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
