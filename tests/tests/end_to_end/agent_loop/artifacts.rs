//! Tests artifacts: data that programs leave for the application, and that no model sees.

use wattle_agent::Settings;
use wattle_machine::{Event, Message};
use wattle_tests::{Scripted, World};

const DONE: &str = "ToolCall::Response(\"done\")";

fn wat(body: &str) -> String {
    format!("ToolCall::Wat(```wat\n{body}\n```)")
}

#[tokio::test]
async fn artifacts_are_in_the_report_and_no_model_sees_them() {
    let world = World::new();
    let model = Scripted::new(&[
        &wat("(sys.artifact \"sums.csv\" \"plum,1\")\n(ret \"saved\")"),
        &wat("(sys.artifact \"other\" \"\\ff\")\n(sys.artifact \"sums.csv\" \"plum,2\")"),
        &wat("(sys.artifact \"lost\" \"plum\")\n(fail EPARSE \"no\")"),
        DONE,
    ]);
    let (report, events) = world.run(&model, &Settings::default(), world.job("go")).await;
    let found: Vec<(&str, &[u8])> =
        report.artifacts.iter().map(|one| (one.name.as_str(), &one.data[..])).collect();
    assert_eq!(found, [("other", &b"\xff"[..]), ("sums.csv", b"plum,2")]);
    let events: Vec<String> = events
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::Artifact { step, call, name, bytes } => {
                Some(format!("{step}.{call} {name} {bytes}"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(events, ["1.1 sums.csv 6", "2.1 other 1", "2.1 sums.csv 6"]);
    let seen = |messages: &Vec<Message>| {
        let observed = messages.iter().filter(|message| !message.content.contains("ToolCall::"));
        observed.skip(1).any(|message| message.content.contains("plum"))
    };
    assert!(!model.requests().iter().any(seen), "{:?}", model.requests());
}

#[tokio::test]
async fn a_run_keeps_a_bounded_amount_and_says_what_it_does_not_keep() {
    let world = World::new();
    let big = |n: usize| {
        wat(&format!("(sys.artifact \"a{n}\" (str.repeat \"x\" 4194304))\n(ret \"ok {n}\")"))
    };
    let texts: Vec<String> = (0..9).map(big).chain([DONE.to_owned()]).collect();
    let model = Scripted::new(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!(report.artifacts.len(), 8);
    let last = model.requests().last().unwrap().last().unwrap().content.to_string();
    assert!(
        last.contains("ok 8")
            && last.contains("the artifact `a8` is not kept: a run keeps at most"),
        "{last}"
    );
}
