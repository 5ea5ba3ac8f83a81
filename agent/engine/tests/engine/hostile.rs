//! Engines that trap, never end, take all memory, flood the host with events, or break a rule. Each
//! ends its own run with its reason.

use std::time::Duration;

use wattle_engine::{Bounds, Component, ComponentError};
use wattle_machine::{Effect, Ending, Input, Setup, Usage};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::{account, facts};

/// The parts of a module that every engine has. `(global $used)` is the address of free memory.
const COMMON: &str = r#"
  (memory (export "memory") 1)
  (global $used (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $used) (i32.const 15)) (i32.const -16)))
    (global.set $used (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
"#;

/// Returns an engine whose module consists of the given imports, data and body of `run`.
fn engine(imports: &str, rest: &str, body: &str) -> Vec<u8> {
    let module = format!(
        r#"(module {imports} {COMMON} {rest}
             (func (export "run") (param i32 i32 i32 i32) (result i32) {body}))"#
    );
    let mut module = wat::parse_str(module).unwrap();
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path("../machine/wit").unwrap();
    let world = resolve.select_world(&[package], Some("engine")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

fn load(binary: &[u8]) -> Component {
    let bounds = Bounds { memory: 16 << 20, turn: Duration::from_secs(3) };
    Component::load(binary, None, bounds).unwrap()
}

/// Runs an engine up to its first request. Returns the text of the ending, or of the request.
async fn first(setup: &Setup, binary: &[u8]) -> String {
    let instance = load(binary).start(facts(setup), account());
    let begin = Input::Begin { message: "go".into() };
    let (instance, effects) = instance.advance(Usage::default(), begin, 0).await;
    match effects.last() {
        Some(Effect::Finish(ending)) => {
            assert!(instance.has_ended());
            let closing = instance.tally().closing(ending);
            assert_eq!(effects[effects.len() - 2], Effect::Emit(closing));
            ending.text().to_owned()
        }
        other => format!("{other:?}"),
    }
}

const EMIT: &str = r#"(import "wattle:engine/loop@0.1.0" "emit" (func $emit (param i32 i32)))"#;
const ASK: &str = r#"(import "wattle:engine/loop@0.1.0" "ask"
    (func $ask (param i32 i32 i32 i32 i32 i32)))"#;
const EXECUTE: &str = r#"(import "wattle:engine/loop@0.1.0" "execute"
    (func $execute (param i32 i32 i32)))"#;

/// Returns the data of a string at the address 16, and its length.
fn data(text: &str) -> (String, usize) {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    (format!(r#"(data (i32.const 16) "{escaped}")"#), text.len())
}

#[tokio::test]
async fn a_hostile_engine_ends_its_run_with_the_reason() {
    let setup = Setup::default();
    let cases = [
        (
            "unreachable",
            "the engine was stopped: wasm trap: wasm `unreachable` instruction executed",
        ),
        (
            "(loop $on (br $on)) (unreachable)",
            "the engine was stopped: it used more than 3s of processor time in one turn",
        ),
        (
            "(drop (memory.grow (i32.const 65535))) (unreachable)",
            "the engine was stopped: it needs more than 16 MiB of memory",
        ),
        (
            "(loop $on (br_if $on (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) \
             (unreachable)",
            "the engine was stopped: it needs more than 16 MiB of memory",
        ),
    ];
    for (body, reason) in cases {
        let ending = first(&setup, &engine("", "", body)).await;
        assert_eq!(ending, format!("error: {reason}"), "{body}");
    }
    let deep = "(func $deep (param i32) (result i32) (i32.add (i32.const 1)
                  (call $deep (i32.add (local.get 0) (i32.const 1)))))";
    let ending = first(&setup, &engine("", deep, "(call $deep (i32.const 0))")).await;
    assert_eq!(ending, "error: the engine was stopped: its calls are nested too deeply");
}

#[tokio::test]
async fn floods_and_invalid_events_end_the_run() {
    let setup = Setup::default();
    let thinking = r#"{"type":"thinking","step":1,"content":"x"}"#;
    let long = format!(r#"{{"type":"thinking","step":1,"content":"{}"}}"#, "x".repeat(4_000));
    let once = "(call $emit (i32.const 16) (i32.const LENGTH)) (unreachable)";
    let forever =
        "(loop $on (call $emit (i32.const 16) (i32.const LENGTH)) (br $on)) (unreachable)";
    let host_only = r#"{"type":"error","message":"error: x"}"#;
    let part = r#"{"type":"delta","step":1,"text":"x"}"#;
    for (event, body, reason) in [
        (thinking, forever, "it emits more than 10000 events and notes in one turn"),
        (&long, forever, "it emits more than 32 MiB in one turn"),
        ("{", once, "it emits an invalid event: EOF while parsing an object at line 1 column 1"),
        (host_only, once, "it emits an event that only the host writes"),
        (part, once, "it emits a part of an answer"),
    ] {
        let (text, length) = data(event);
        let body = body.replace("LENGTH", &length.to_string());
        let ending = first(&setup, &engine(EMIT, &text, &body)).await;
        assert_eq!(ending, format!("error: the engine was stopped: {reason}"), "{event:.60}");
    }
}

#[tokio::test]
async fn calls_in_a_wrong_order_end_the_run() {
    let ask = "(call $ask (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) \
               (i32.const 256)) (unreachable)";
    let execute =
        "(call $execute (i32.const 0) (i32.const 0) (i32.const 256)) (br $again) (unreachable)";
    let asks = engine(ASK, "", ask);
    assert!(first(&Setup::default(), &asks).await.contains("Ask"));
    let moderated = Setup { is_moderated: true, ..Setup::default() };
    assert_eq!(
        first(&moderated, &asks).await,
        "error: the engine was stopped: it did not have the user's message moderated first"
    );
    let endless = engine(EXECUTE, "", &format!("(loop $again {execute}) (unreachable)"));
    let mut setup = Setup::default();
    setup.settings.max_steps = 3;
    let mut instance = load(&endless).start(facts(&setup), account());
    let mut input = Input::Begin { message: "go".into() };
    for step in 1.. {
        let effects;
        (instance, effects) = instance.advance(Usage::default(), input, 0).await;
        match effects.last() {
            Some(Effect::Execute { step: of, .. }) => assert_eq!(*of, step),
            Some(Effect::Finish(ending)) => {
                assert_eq!(ending.text(), "stopped: reached max_steps (3)");
                break;
            }
            other => panic!("{other:?}"),
        }
        input = Input::Executed(Vec::new());
    }
    assert_eq!(instance.tally().steps(), 3);
}

#[tokio::test]
async fn an_engine_that_goes_on_after_a_stop_is_stopped() {
    let ask = "(loop $again (call $ask (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) \
               (i32.const 0) (i32.const 256)) (br $again)) (unreachable)";
    let instance = load(&engine(ASK, "", ask)).start(facts(&Setup::default()), account());
    let begin = Input::Begin { message: "go".into() };
    let (instance, _) = instance.advance(Usage::default(), begin, 0).await;
    let cancel = Input::Cancel { reason: "by the user".into() };
    let (instance, effects) = instance.advance(Usage::default(), cancel, 0).await;
    let text = "stopped: cancelled (by the user)".to_owned();
    assert_eq!(effects.last(), Some(&Effect::Finish(Ending::Cancelled { text })));
    assert!(instance.has_ended());
    assert_eq!(instance.turns().len(), 1, "the user's message is kept");
}

#[test]
fn only_components_of_the_world_within_the_limit_are_engines() {
    let wrong = |binary: &[u8]| Component::load(binary, None, Bounds::default()).err();
    assert!(matches!(wrong(&vec![0; (32 << 20) + 1]), Some(ComponentError::TooLarge(_))));
    let module = wat::parse_str("(module)").unwrap();
    assert!(matches!(wrong(&module), Some(ComponentError::Invalid(_))));
    let empty = wat::parse_str("(component)").unwrap();
    let why = wrong(&empty).unwrap().to_string();
    assert!(why.contains("`run`") && why.contains("docs/engine.md"), "{why}");
}
