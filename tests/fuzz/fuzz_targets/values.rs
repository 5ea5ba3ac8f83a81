//! Parses arbitrary text as a value, and works on its parts. The parser must accept what another
//! parser of JSON accepts, with the same result; no program may fail in another way than by an error
//! of its last host call.
#![no_main]

#[path = "../../../capability/tests/capability/world.rs"]
mod world;

use std::sync::LazyLock;

use serde_json::Value as Json;
use tokio::runtime::{Builder, Runtime};
use wattle_rt::{Code, Exit, Outcome, TrapKind};
use world::World;

static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
});
static WORLD: LazyLock<World> = LazyLock::new(World::new);

/// Programs that get a text and a second text. Each returns the text of a value.
const PROGRAMS: &[&str] = &[
    "(ret (val.text (val.part (val.parse (arg 0)) (val.of_str (arg 1)))))",
    "(ret (val.text (val.part (val.nth (val.parse (arg 0)) 0) (val.nth_key (val.parse (arg 1)) 0))))",
    "(ret (val.text (val.add (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (val.text (val.mul (val.num (val.of_str (arg 0))) (val.num (val.of_str (arg 1))))))",
    "(ret (val.text (val.div (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (val.text (val.rem (val.big (val.of_str (arg 0))) (val.parse (arg 1)))))",
    "(ret (val.text (val.pow (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (fmt \"{i}\" (val.int (val.parse (arg 0)) \"fmt\")))",
    "(ret (str.from_float (val.float (val.parse (arg 0)) \"fmt\")))",
    "(ret (val.str (val.parse (arg 0)) \"fmt\"))",
    "(ret (val.text (val.sort (val.parse (arg 0)) (i32.const 0) (i32.const 1))))",
    "(ret (val.text (val.sum (val.flat (val.parse (arg 0))))))",
    "(ret (val.text (val.group (val.parse (arg 0)) (val.parse (arg 0)))))",
    "(ret (val.text (val.uniq (val.parse (arg 0)) (i32.const 0))))",
    "(ret (val.text (val.merge (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (val.format (val.parse (arg 0)) (arg 1)))",
    "(ret (val.text (val.csv (arg 0) (arg 1) (i32.const 1))))",
    "(ret (val.csv_text (val.parse (arg 0))))",
    "(ret (val.text (val.yaml (arg 0))))",
    "(ret (val.text (val.toml (arg 0))))",
    "(ret (val.text (val.xml (arg 0))))",
    "(ret (val.text (val.html_table (arg 0) 0)))",
];

fn run(program: &str, args: &[&str]) -> Outcome {
    TOKIO.block_on(WORLD.run(program, args)).unwrap_or_else(|why| panic!("{program}: {why}"))
}

/// Returns a program's result, or `None` if a host call failed.
fn result(program: &str, args: &[&str]) -> Option<String> {
    let outcome = run(program, args);
    match &outcome.exit {
        Exit::Returned(Code::SUCCESS) => Some(outcome.texts().concat()),
        Exit::Returned(_) => {
            assert!(outcome.failure.is_some(), "{program}: {:?}", outcome.exit);
            None
        }
        Exit::Trapped(trap) => {
            assert!(matches!(trap.kind, TrapKind::Host(_)), "{program}: {trap}");
            None
        }
    }
}

libfuzzer_sys::fuzz_target!(|input: (&str, &str, u8)| {
    let (text, other, which) = input;
    // Arguments of a program cannot contain the character 0.
    if text.contains('\0') || other.contains('\0') {
        return;
    }
    let parsed = result("(ret (val.text (val.parse (arg 0))))", &[text]);
    let repeats = || {
        let outcome = run("(ret (val.text (val.parse (arg 0))))", &[text]);
        outcome.failure.is_some_and(|failed| {
            let reason = &failed.failure.reason;
            reason.contains("is repeated") || reason.contains("nested deeper")
        })
    };
    match (serde_json::from_str::<Json>(text), &parsed) {
        (Ok(Json::String(text)), Some(parsed)) => assert_eq!(&text, parsed),
        (Ok(json), Some(parsed)) => {
            assert_eq!(serde_json::from_str::<Json>(parsed).unwrap(), json);
        }
        (Ok(_), None) => assert!(repeats(), "{text}"),
        (Err(_), _) => {}
    }
    // The JSON of a value is the JSON of the value that is parsed from it.
    if let Some(json) = result("(ret (val.json (val.parse (arg 0))))", &[text]) {
        assert_eq!(result("(ret (val.json (val.parse (arg 0))))", &[&json]), Some(json));
    }
    result(PROGRAMS[usize::from(which) % PROGRAMS.len()], &[text, other]);
});
