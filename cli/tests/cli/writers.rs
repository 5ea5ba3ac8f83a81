//! Tests of commands that write to the workdir directly.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

use wattle_tests::provider::{Answer, Provider};

use crate::place::{Place, json};

/// Starts a program that writes to the workdir and does not end, and waits until it has begun.
fn endless(place: &Place) -> Child {
    place.write("loop.wat", "(drop (call $fs.write \"started\" \"\"))\n(loop $l (br $l))\n");
    let child = place.wattle(["exec", "loop.wat", "--write"]).start();
    while !place.work().join("started").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Ends a process as `kill -9` does.
fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

const WRITES: [&str; 4] = ["exec", "file_write", "a.txt", "text"];

#[test]
fn a_command_that_writes_where_another_one_writes_warns_at_its_start() {
    let place = Place::new();
    let child = endless(&place);
    let other = format!(
        "warning: process {}: `wattle exec loop.wat` writes to `.` at the same time",
        child.id()
    );
    let answer = [
        serde_json::json!({"wattle_cassette": 1, "model": "m"}),
        serde_json::json!({"reply": "Done."}),
    ];
    place.write("run.jsonl", answer.map(|line| format!("{line}\n")).concat());
    for args in [&WRITES[..], &["run", "x", "--cassette", "run.jsonl"], &["repl"], &["shell"]] {
        for flag in ["--write", "--exec"] {
            let done = place.wattle([args, &[flag]].concat()).stdin("").run();
            done.code(0).reports(&[&other, "hint: without `--write`"]);
        }
        let done = place.wattle(args).stdin("").run().code(0);
        assert!(!done.stderr.contains("at the same time"), "{}", done.stderr);
    }
    // The folder counts, not its name.
    std::os::unix::fs::symlink(place.work(), place.home().join("link")).unwrap();
    let link = place.home().join("link");
    let named = [&WRITES[..], &["--write", "--root", link.to_str().unwrap()]].concat();
    place.wattle(named).run().code(0).reports(&["`wattle exec loop.wat` writes to"]);
    let elsewhere = place.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let named = [&WRITES[..], &["--write", "--root", elsewhere.to_str().unwrap()]].concat();
    assert_eq!(place.wattle(named).run().code(0).stderr.matches("warning").count(), 0);
    kill(child);
}

#[test]
fn a_run_is_named_by_its_id_to_others() {
    let place = Place::new();
    let acts = "ToolCall::Catalog(\"text_count\", \"one\")";
    let provider = Provider::start([Answer::text(acts), Answer::hang()]);
    let url = provider.base_url();
    let run = ["run", "wait", "--json", "--write", "--base-url", &url, "--model", "m"];
    let mut child = place.wattle(run).start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("\"tool_result\"")));
    let listed = json(&place.wattle(["runs", "--json"]).run().code(0).stdout);
    let id = listed[0]["run"].as_str().unwrap();
    let other = format!("process {}: the run {id} writes to", child.id());
    place.wattle([&WRITES[..], &["--write"]].concat()).run().code(0).reports(&[&other]);
    kill(child);
}

#[test]
fn a_killed_command_leaves_no_entry() {
    let place = Place::new();
    kill(endless(&place));
    let done = place.wattle([&WRITES[..], &["--write"]].concat()).run().code(0);
    assert!(!done.stderr.contains("at the same time"), "{}", done.stderr);
    let entries = place.home().join(".local/state/wattle/writers");
    // The entry of the last command stays until the next one.
    assert_eq!(std::fs::read_dir(entries).unwrap().count(), 1);
}
