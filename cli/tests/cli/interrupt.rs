//! Tests of interrupts by the user, and of a closed stdout.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

#[test]
fn an_interrupt_cancels_the_run() {
    let place = Place::new();
    let acts = "<reasoning>First this.</reasoning>\nToolCall::Wat(```wat\n(resv \
                \"here\")\n(i32.const 0)\n```)";
    let provider = Provider::start([Answer::text(acts), Answer::hang()]);
    let mut child = place
        .wattle(["run", "wait", "--json", "--base-url", &provider.base_url(), "--model", "m"])
        .start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("\"tool_result\"")));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let last = lines.map_while(Result::ok).last().unwrap();
    assert!(last.contains("\"response\"") && last.contains("\"cancelled\""), "{last}");
    assert!(last.contains("stopped: cancelled (interrupted by the user)"), "{last}");
    Done::of(child).code(130);
}

#[test]
fn an_interrupt_ends_a_program() {
    let place = Place::new();
    place.write(
        "loop.wat",
        "(drop (call $fs.write \"started\" \"\"))\n(loop $again (br $again))\n(i32.const 0)\n",
    );
    let child = place.wattle(["exec", "loop.wat", "--write"]).start();
    while !place.work().join("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    Done::of(child).code(130);
}

#[test]
fn a_closed_stdout_is_not_a_failure() {
    let place = Place::new();
    place.write(
        "much.wat",
        "(resv (call $str.from_int (i32.const 7)))\n(local $i i32)\n(loop $l (resv \"a line of \
         some length\")\n(local.set $i (i32.add (local.get $i) (i32.const 1)))\n(br_if $l \
         (i32.lt_s (local.get $i) (i32.const 100000))))\n(i32.const 0)\n",
    );
    for args in [
        &["exec", "much.wat"][..],
        &["exec", "much.wat", "--json"],
        &["completions", "zsh"],
        &["--help"],
    ] {
        let mut child = place.wattle(args).start();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let done = Done::of(child);
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{args:?}");
    }
}
