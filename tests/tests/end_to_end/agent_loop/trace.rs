//! Tests that the trace contains exactly one line for each call that a model makes.

use std::time::Duration;

use serde_json::Value as Json;
use wattle_agent::Settings;
use wattle_agent::host::{DialectSetting, STEPS_FILE};
use wattle_tests::{Job, Scripted, World, calls};

#[tokio::test]
async fn a_call_that_is_not_run_has_a_line_with_the_reason() {
    let world = World::new();
    let settings = Settings { dialect: DialectSetting::Native, ..Settings::default() };
    let first = calls(&[
        ("text_count", "{\"text\": \"a b\"}"),
        ("text_count", "not JSON"),
        ("no_program", "{}"),
    ]);
    let model = Scripted::calling([first, calls(&[("done", "{\"result\": \"two\"}")])]);
    let (report, _) = world.run(&model, &settings, world.job("count")).await;
    assert_eq!(report.ending.text(), "two");
    let steps = world.steps();
    let failed = |step: &Json| !step["error"].is_null();
    let mut lines: Vec<(&str, bool)> =
        steps.iter().map(|step| (step["tool"].as_str().unwrap(), failed(step))).collect();
    lines.sort_unstable();
    let expected =
        [("done", false), ("no_program", true), ("text_count", false), ("text_count", true)];
    assert_eq!(lines, expected);
    let refused = steps.iter().find(|step| step["tool"] == "text_count" && failed(step));
    let error = refused.unwrap()["error"].as_str().unwrap();
    assert!(error.contains("are not JSON"), "{error}");
}

#[tokio::test]
async fn a_call_that_is_cut_off_has_its_duration() {
    let world = World::new();
    let program = "ToolCall::Wat(```wat\n(sys.sleep 60000)\n```)";
    let model = Scripted::new(&[program]);
    let timeout = Some(Duration::from_millis(50));
    let settings = Settings { timeout, ..Settings::default() };
    world.run(&model, &settings, world.job("sleep")).await;
    let steps = world.steps();
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(steps[0]["dur_ms"].as_u64() > Some(0) && !steps[0]["error"].is_null(), "{steps:?}");
}

#[tokio::test]
async fn a_cancelled_step_repeats_no_line_of_a_call_that_has_ended() {
    let world = World::new();
    let job = world.job("both");
    let cancel = job.cancel.clone();
    let settings = Settings { dialect: DialectSetting::Native, ..Settings::default() };
    let model = Scripted::calling([calls(&[
        ("text_count", "{\"text\": \"a b\"}"),
        ("wat", "{\"body\": \"(sys.sleep 60000)\"}"),
    ])]);
    let ended = async {
        while std::fs::read(world.workdir().join(STEPS_FILE)).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel("");
    };
    tokio::join!(world.run(&model, &settings, job), ended);
    let steps = world.steps();
    let tools: Vec<&str> = steps.iter().map(|step| step["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["text_count", "wat"]);
}

#[tokio::test]
async fn a_line_has_the_session_and_the_arguments_by_name() {
    let world = World::new();
    let model = Scripted::new(&[
        "ToolCall::Catalog(\"text_replace\", \"a b\", \"a\", \"c\")",
        "ToolCall::Catalog(\"no_program\", \"x\")",
        "ToolCall::Catalog(\"date_now\", \"UTC\", \"%Y\", \"too many\")",
        "ToolCall::Response(\"done\")",
    ]);
    let job = Job { session_id: Some("s".to_owned()), ..world.job("go") };
    world.run(&model, &Settings::default(), job).await;
    let steps = world.steps();
    assert!(steps.iter().all(|step| step["session_id"] == "s"), "{steps:?}");
    let names: Vec<&String> = steps[0]["args"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 3, "{}", steps[0]);
    assert_eq!(steps[0]["args"]["text"], "a b", "{}", steps[0]);
    assert_eq!(steps[1]["args"], serde_json::json!(["x"]));
    assert_eq!(steps[2]["args"], serde_json::json!(["UTC", "%Y", "too many"]));
}

#[tokio::test]
async fn a_program_reads_the_trace_of_its_own_run_alone() {
    let world = World::new();
    let marked = |mark: &str| {
        let first = format!("ToolCall::Catalog(\"text_count\", \"{mark}\")");
        let read = "(let $trace (fs.read \"_steps.jsonl\")) \
                    (out (str.contains $trace \"first-mark\") (str.contains $trace \"second-mark\")) \
                    (out (shell.run \"grep -c mark x/../_steps.jsonl; ls | wc -l\")) \
                    (catch $e $why (fs.write \"_steps.jsonl\" \"forged\")) (out $why)";
        Scripted::new(&[
            &first,
            &format!("ToolCall::Wat(```wat\n{read}\n```)"),
            "ToolCall::Response(\"done\")",
        ])
    };
    for mark in ["first-mark", "second-mark"] {
        let (report, _) = world.run(&marked(mark), &Settings::default(), world.job("go")).await;
        assert_eq!(report.ending.text(), "done");
    }
    let steps = world.steps();
    assert_eq!(steps.len(), 4, "the runs share a trace");
    let seen = steps[3]["output"].as_str().unwrap();
    assert!(seen.starts_with("0 1\n1\n0\n") && seen.contains("only the host writes"), "{seen}");
}
