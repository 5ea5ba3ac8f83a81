//! Tests of shell lines: their results, and the files that they may access.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json as value;
use wattle_capability::policy::{Policy, Preflight};
use wattle_rt::{Code, Exit, Grants, Limits, TrapKind};

use super::{failure, json};
use crate::world::World;

const RUN: &str = "(ret (shell.run? (arg 0) (arg 1)))";
const RESULT: &str = "(ret (shell.result? (arg 0)))";

#[tokio::test]
async fn a_line_returns_its_output_or_the_reason_of_its_status() {
    let world = World::new();
    assert_eq!(world.run(RUN, &["tr a-z A-Z", "hello\n"]).await.unwrap().texts(), ["HELLO\n"]);
    for (line, words) in [
        ("cat none", "the line ended with status 1: cat: none: no such file"),
        ("nosuch", "the line ended with status 127: nosuch: not found"),
        ("silent", "the line ended with status 3"),
        ("", "the line ended with status 127: : not found"),
    ] {
        assert_eq!(
            failure(&world.run(RUN, &[line, ""]).await.unwrap()),
            (Code::ETRFM, words.to_owned()),
            "{line:?}"
        );
    }
}

#[tokio::test]
async fn a_result_has_both_outputs_and_the_status() {
    let world = World::new();
    world.files.write("bytes", b"a\xffb").unwrap();
    for (line, expected) in [
        ("put a.txt x", value!({"stdout": "", "stderr": "", "status": 0})),
        ("cat a.txt", value!({"stdout": "x", "stderr": "", "status": 0})),
        ("cat bytes", value!({"stdout": "a\u{fffd}b", "stderr": "", "status": 0})),
        ("silent", value!({"stdout": "", "stderr": "", "status": 3})),
        (
            "put ../a x",
            value!({
                "stdout": "",
                "stderr": "put: ../a is outside the run's folder; only files in it can be \
                           written\n",
                "status": 2,
            }),
        ),
        (
            "put _steps.jsonl x",
            value!({
                "stdout": "",
                "stderr": "put: write blocked: `_steps.jsonl` is the run's trace, which only the \
                           host writes\n",
                "status": 2,
            }),
        ),
    ] {
        assert_eq!(json(&world.run(RESULT, &[line]).await.unwrap()), expected, "{line}");
    }
}

#[tokio::test]
async fn a_line_that_hangs_ends_with_its_program() {
    let world = World::with(Limits { time: Duration::from_millis(100), ..Limits::default() });
    let outcome = world.run(RUN, &["hang", ""]).await.unwrap();
    let Exit::Trapped(trap) = outcome.exit else { panic!("{:?}", outcome.exit) };
    assert_eq!(trap.kind, TrapKind::Time);
    assert!(trap.message.ends_with("in `shell.run`"), "{}", trap.message);
}

fn restricted(world: &World, allow: &[&str], deny: &[&str]) -> Arc<Grants> {
    let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect();
    let policy = Policy::new(rules(allow), Vec::new(), rules(deny));
    Arc::new(world.grants().as_ref().clone().guarded(Arc::new(Preflight::new(policy, None))))
}

#[tokio::test]
async fn rules_on_paths_apply_to_each_access_of_a_line() {
    let world = World::new();
    world.files.write("open.txt", b"x").unwrap();
    world.files.write("secret/a", b"y").unwrap();
    let run_line = async |grants: &Arc<Grants>, line: &str| {
        let outcome = world.run_granted(RESULT, &[line], grants).await?;
        Ok::<_, String>(json(&outcome)["stderr"].as_str().unwrap().to_owned())
    };
    let grants = restricted(&world, &[], &["path:secret", "write:/"]);
    assert_eq!(run_line(&grants, "cat open.txt").await.unwrap(), "");
    for line in ["cat secret/a", "cat ./open.d/../secret/a"] {
        let words = run_line(&grants, line).await.unwrap();
        assert!(words.contains("the policy denies it (rule `path:/secret`)"), "{line}: {words}");
    }
    assert!(run_line(&grants, "put open.txt z").await.unwrap().contains("rule `write:/`"));
    assert_eq!(world.files.read("open.txt").unwrap(), "x");
    // A rule that denies file access also applies to the shell, unless another rule allows the
    // shell itself.
    for (allow, deny, runs) in [
        (&[][..], &["fs"][..], false),
        (&["shell"], &["fs"], true),
        (&[], &["shell"], false),
        (&[], &["shell.result"], false),
        (&[], &["shell.run"], true),
        (&[], &["*"], false),
        (&["path:open.txt"], &["*"], true),
        (&[], &["path:/"], false),
    ] {
        let ran = run_line(&restricted(&world, allow, deny), "cat open.txt").await;
        assert_eq!(ran.as_deref() == Ok(""), runs, "allow {allow:?} deny {deny:?}: {ran:?}");
    }
}
