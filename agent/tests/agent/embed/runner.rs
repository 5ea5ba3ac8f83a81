//! Tests of runs that an application drives step by step.

use std::sync::{Arc, Mutex};

use serde_json::json;
use wattle_agent::StepError;
use wattle_agent::prelude::*;

use super::{HOST, Script, agent, call, say};

#[tokio::test]
async fn a_step_is_one_request_with_its_calls() {
    let answers = [&call("file_write", &["a.txt", "hello"])[..], &call("nothing", &[]), &say("ok")];
    let agent = agent(&answers).name("writer").build().unwrap();
    let mut runner = agent.runner("Write.");
    let first = runner.step(StepOptions::new()).await.unwrap();
    assert!(!first.is_done() && first.calls.is_empty());
    assert_eq!((first.usage.prompt, first.finish.as_deref()), (10, Some("stop")));
    assert_eq!(first.executed[0].name, "file_write");
    assert!(first.executed[0].success);
    let second = runner.step(StepOptions::new()).await.unwrap();
    assert!(!second.executed[0].success && !second.is_done());
    assert_eq!(runner.stats().total_tokens, 30);
    let third = runner.step(StepOptions::new()).await.unwrap();
    let report = third.report.unwrap();
    assert_eq!(
        (third.text.as_str(), report.data.as_str(), report.model_calls.len()),
        ("ok", "ok", 3)
    );
    let stats = runner.stats();
    assert_eq!((stats.name.as_str(), stats.total_tokens), ("writer", 45));
    assert_eq!(stats.id, report.run_id);
    let ended = runner.step(StepOptions::new()).await.unwrap_err();
    assert!(matches!(ended, StepError::Ended), "{ended}");
}

#[tokio::test]
async fn calls_are_returned_and_run_with_the_next_step() {
    let agent = agent(&[&call("file_write", &["a.txt", "hello"]), &say("ok")]).build().unwrap();
    let mut runner = agent.runner("Write.");
    let first = runner.step(StepOptions::new().execute(false)).await.unwrap();
    assert!(first.executed.is_empty());
    let [called] = &first.calls[..] else { panic!("{:?}", first.calls) };
    assert_eq!((called.id.as_str(), called.name.as_str()), ("1.1", "file_write"));
    assert_eq!(called.arguments, json!({"path": "a.txt", "content": "hello"}));
    assert_eq!(called.registry_id.as_deref(), Some("built-in file_write.wat"));
    assert!(!called.is_delegate);
    let second = runner.step(StepOptions::new()).await.unwrap();
    assert_eq!(second.executed.len(), 1);
    assert!(second.executed[0].success && second.is_done());
    assert_eq!(runner.stats().total_tokens, 30, "no model_call is counted twice");
}

#[tokio::test]
async fn an_application_gives_the_results_itself() {
    let script = Script::new(&[&call("file_read", &["a.txt"]), &call("nothing", &[]), &say("ok")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).build().unwrap();
    let mut runner = agent.runner("Read.");
    let none = runner.submit(vec![CallResult::success("early")]).unwrap_err();
    assert!(matches!(none, StepError::Results { given: 1, pending: 0 }), "{none}");
    runner.step(StepOptions::new().execute(false)).await.unwrap();
    runner.submit(vec![CallResult::success("from elsewhere")]).unwrap();
    let second = runner.step(StepOptions::new().execute(false)).await.unwrap();
    assert_eq!(second.calls[0].registry_id, None, "the program is unknown");
    assert!(script.requests()[1].contains("from elsewhere"), "{:?}", script.requests());
    runner.submit(vec![CallResult::failure("not today")]).unwrap();
    let third = runner.step(StepOptions::new()).await.unwrap();
    assert!(third.is_done() && script.requests()[2].contains("not today"));
}

#[tokio::test]
async fn a_note_is_for_one_request_and_deltas_reach_the_step() {
    let script = Script::new(&[&call("file_list", &[]), &say("ok")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).build().unwrap();
    let mut runner = agent.runner("List.");
    let pieces = Arc::new(Mutex::new(String::new()));
    let received = Arc::clone(&pieces);
    let options = StepOptions::new()
        .note("Only today.")
        .on_delta(move |text| received.lock().unwrap().push_str(text));
    runner.step(options).await.unwrap();
    assert!(pieces.lock().unwrap().contains("file_list"), "{pieces:?}");
    runner.step(StepOptions::new()).await.unwrap();
    let requests = script.requests();
    assert!(requests[0].contains("Only today."), "{requests:?}");
    assert!(!requests[1].contains("Only today."), "{requests:?}");
    assert!(!pieces.lock().unwrap().contains("ok"), "the second step has no receiver");
}

#[tokio::test]
async fn a_runner_that_is_dropped_cancels_its_run() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let (seen, ended) = (Arc::clone(&events), Arc::new(tokio::sync::Notify::new()));
    let end = Arc::clone(&ended);
    let agent = agent(&[&call("file_list", &[]), &say("ok")])
        .on(move |event: &RunEvent| {
            if let RunEventKind::RunEnded { status, .. } = &event.kind {
                seen.lock().unwrap().push(*status);
                end.notify_one();
            }
        })
        .build()
        .unwrap();
    let mut runner = agent.runner("List.");
    runner.step(StepOptions::new()).await.unwrap();
    drop(runner);
    ended.notified().await;
    assert_eq!(*events.lock().unwrap(), [ReportStatus::Cancelled]);
}

#[tokio::test]
async fn a_failure_ends_the_runner() {
    let agent = agent(&[&say("ok")]).build().unwrap();
    let cancel = Cancel::new();
    let mut runner = agent.execute("List.").cancel(cancel.clone()).runner();
    cancel.cancel("the user left");
    let error = runner.step(StepOptions::new()).await.unwrap_err();
    assert!(error.to_string().contains("the user left"), "{error}");
    let ended = runner.step(StepOptions::new()).await.unwrap_err();
    assert!(matches!(ended, StepError::Ended), "{ended}");
}
