//! Tests of `--engine`: runs whose loop is a component.

use crate::place::Place;

/// Returns a place with the component `engine.wasm` and a recorded model, or `None` if the component
/// is not built.
fn place() -> Option<Place> {
    let place = Place::new();
    place.write("engine.wasm", wattle_cases::engine::component()?);
    let replies = [
        "{\"wattle_cassette\":1,\"model\":\"recorded\"}",
        r#"{"reply":"ToolCall::Wat(```wat\n(fs.write \"a.txt\" \"hello\")\n(out (+ 1 2))\n```)"}"#,
        r#"{"reply":"ToolCall::Response(\"The sum is 3.\")"}"#,
    ];
    place.write("replies.jsonl", replies.join("\n") + "\n");
    Some(place)
}

#[test]
fn a_run_with_an_engine_is_recorded_and_replayed() {
    let Some(place) = place() else { return };
    let run = ["run", "add", "--engine", "engine.wasm", "--cassette", "replies.jsonl"];
    let done = place.wattle(run).run().code(0);
    assert_eq!(done.stdout, "The sum is 3.\n");
    let replayed = place.wattle(["replay", "last", "--engine", "engine.wasm"]).run().code(0);
    assert!(replayed.stdout.contains("matches its record"), "{}", replayed.stdout);

    // A run of Wattle's own loop is the same.
    let run = ["run", "add", "--cassette", "replies.jsonl"];
    assert_eq!(place.wattle(run).run().code(0).stdout, "The sum is 3.\n");
    let replayed = place.wattle(["replay", "last", "--engine", "engine.wasm"]).run().code(0);
    assert!(replayed.stdout.contains("matches its record"), "{}", replayed.stdout);
}

#[test]
fn a_file_that_is_no_engine_is_named() {
    let place = Place::new();
    place.write("notes.txt", "not an engine");
    for (file, why) in [("absent.wasm", "there is no such file"), ("notes.txt", "engine.wit")] {
        let run = ["run", "add", "--engine", file, "--base-url", "http://127.0.0.1:9/v1"];
        place.wattle(run).run().code(3).reports(&["failed to load the engine", file, why]);
    }
}
