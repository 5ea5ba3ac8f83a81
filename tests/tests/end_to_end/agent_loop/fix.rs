//! Tests fixes in both dialects. In a fix, the model changes the last program that failed. The
//! trace, the events and the conversation contain the complete resulting program.

use wattle_agent::Settings;
use wattle_agent::host::DialectSetting;
use wattle_machine::{Event, Message, Role};
use wattle_tests::{Scripted, World, calls};

const BROKEN: &str = "(out \"a\")\n(out (str.measure (arg 0)))";
const FIXED: &str = "(out \"a\")\n(out (str.upper? (arg 0)))";

fn text(message: &Message) -> String {
    let calls = message.calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
    [message.content.to_string()].into_iter().chain(calls).collect()
}

#[tokio::test]
async fn a_fix_runs_the_program_that_it_results_in() {
    let program = serde_json::json!({"body": BROKEN, "args": ["four"]}).to_string();
    let fix = r#"{"changes":[{"old":"str.measure","new":"str.upper?"}]}"#;
    let native = || {
        Scripted::calling([
            calls(&[("wat", &program)]),
            calls(&[("fix", fix)]),
            calls(&[("done", "{\"result\":\"well\"}")]),
        ])
    };
    let in_text = || {
        Scripted::new(&[
            &format!("ToolCall::Wat(```wat\n{BROKEN}\n```, \"four\")"),
            "<reasoning>A wrong name.</reasoning>\nToolCall::Fix(\"str.measure\", \"str.upper?\")",
            "ToolCall::Response(\"well\")",
        ])
    };
    for (model, dialect) in [(native(), DialectSetting::Native), (in_text(), DialectSetting::Text)]
    {
        let world = World::new();
        let settings = Settings { dialect, ..Settings::default() };
        let (report, events) = world.run(&model, &settings, world.job("go")).await;
        assert_eq!((report.ending.text(), report.steps), ("well", 1), "{dialect}");
        let requests = model.requests();

        // The repair request contains the program once.
        let (last, before) = requests[1].split_last().unwrap();
        let (repair, before) = (text(last), before.iter().map(text).collect::<String>());
        assert!(!before.contains("str.measure"), "{before}");
        assert_eq!(repair.matches("(out \"a\")").count(), 1, "{repair}");
        assert!(repair.contains("\n2 | (out (str.measure (arg 0)))\n"), "{repair}");
        assert!(repair.contains("ToolCall::Fix(") || repair.contains("the function `fix`"));

        // Later requests contain the program as if the model had written it.
        let later: String = requests[2].iter().skip(1).map(text).collect();
        assert!(later.contains("str.upper? (arg 0)") && !later.contains("measure"), "{later}");
        let last = requests[2].last().unwrap();
        assert!(matches!(last.role, Role::User | Role::Tool));
        assert!(last.content.ends_with("Execution result:\na\nFOUR"), "{}", last.content);

        let steps = world.steps();
        let fixed = steps.iter().rfind(|step| step["tool"] == "wat").unwrap();
        assert_eq!(fixed["args"]["body"], FIXED);
        assert_eq!(fixed["args"]["args"], serde_json::json!(["four"]));
        let started = events.iter().filter_map(|envelope| match &envelope.event {
            Event::ToolStart { body, .. } => body.as_deref(),
            _ => None,
        });
        assert_eq!(started.collect::<Vec<_>>(), [BROKEN, FIXED], "{dialect}");
    }
}

#[tokio::test]
async fn a_program_that_failed_when_it_ran_can_be_fixed() {
    let world = World::new();
    std::fs::write(world.workdir().join("b.txt"), "bee").unwrap();
    let model = Scripted::new(&[
        "ToolCall::Wat(```wat\n(ret (fs.read? \"a.txt\"))\n```)",
        "ToolCall::Fix(\"a.txt\", \"b.txt\")",
        "ToolCall::Fix(\"b.txt\", \"c.txt\")",
        "ToolCall::Response(\"well\")",
    ]);
    let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!((report.ending.text(), report.steps), ("well", 3));
    let last = |at: usize| model.requests()[at].last().unwrap().content.to_string();
    assert!(last(2).ends_with("Execution result:\nbee"), "{}", last(2));
    assert!(
        last(3).contains(
            "Execution FAILED:\nthere is no failed program to fix, so nothing was run\nhint: \
             write the whole program with ToolCall::Wat(…)"
        ),
        "{}",
        last(3)
    );
}
