//! Tests of commands that write to the workdir directly: several in one folder, and a full disk.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place, json};

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

/// A program that ignores that a file cannot be written.
const FILLS: &str = "(drop (call $fs.write \"small.txt\" \"fits\"))\n(drop (call $fs.write \
                     \"big.txt\" (str.repeat \"0123456789\" 30000)))\n(ret \"done\")\n";

/// Runs a shell line in a workdir on a disk of 64 KiB, which has the file `old` with the text
/// `before`. Returns `None`, and says so, if no disk can be mounted.
fn on_small_disk(place: &Place, line: &str) -> Option<Done> {
    let mount = |line: &str| {
        let disk = "mount -t tmpfs -o size=64k tmpfs .";
        // The disk belongs to the process alone, and ends with it.
        place.shell(&format!("exec unshare -rm /bin/sh -euc '{disk}; cd \"$PWD\"; {line}'")).run()
    };
    let tried = mount("true");
    if tried.code != 0 {
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped: no disk can be mounted: {}", tried.stderr);
        }
        return None;
    }
    Some(mount(&format!(
        "printf before >big.txt; code=0; {line} || code=$?; cat small.txt big.txt; exit $code"
    )))
}

#[test]
fn a_full_disk_fails_the_command_and_what_was_not_written_is_named() {
    let place = Place::new();
    let outside = |name: &str, text: String| -> PathBuf {
        let path = place.home().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let program = outside("fill.wat", FILLS.to_owned());
    let replies = [format!("ToolCall::Wat(```wat\n{FILLS}```)"), "Done.".to_owned()];
    let replies = replies.iter().map(|reply| serde_json::json!({"reply": reply}));
    let head = serde_json::json!({"wattle_cassette": 1, "model": "m"});
    let lines = std::iter::once(head).chain(replies).map(|line| format!("{line}\n"));
    let cassette = outside("run.jsonl", lines.collect());
    let (program, cassette) = (program.display(), cassette.display());
    for (line, output) in [
        (format!("wattle exec {program} --write"), "done\n"),
        (format!("wattle exec {program} --exec"), "done\n"),
        (format!("wattle run x --cassette {cassette} --write"), "Done.\n"),
    ] {
        let Some(done) = on_small_disk(&place, &line) else { return };
        let named = "1 change could not be written to the workdir:\n  big.txt\nhint: free space";
        let done = done.code(1).reports(&[named]);
        // The file has its text of before, and not a part of the new one.
        assert_eq!(done.stdout, format!("{output}fitsbefore"), "{line}");
    }
}
