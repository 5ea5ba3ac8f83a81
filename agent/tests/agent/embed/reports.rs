//! Tests of run reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_agent::RunReport;
use wattle_agent::host::machine::{Dollars, Message, Role, Stop};
use wattle_agent::model::{Price, Prices};
use wattle_agent::prelude::*;

use super::{HOST, Script, agent, call, say};

#[tokio::test]
async fn a_report_has_each_model_call_with_its_calls() {
    let answers = [&call("file_write", &["a.txt", "hello"])[..], &call("nothing", &[]), &say("ok")];
    let agent = agent(&answers).name("writer").build().unwrap();
    let report = agent.execute("Write.").session_id("label").await.unwrap();
    assert_eq!(report.data, "ok");
    assert_eq!((report.status, report.stop), (ReportStatus::Completed, Some(Stop::Answered)));
    assert_eq!(report.run_id, report.root_run_id);
    assert_eq!(report.session_id.as_deref(), Some("label"));
    assert_eq!(report.agent, "writer");
    let model_calls: Vec<_> = report
        .model_calls
        .iter()
        .map(|model_call| (model_call.index, model_call.calls.len()))
        .collect();
    assert_eq!(model_calls, [(1, 1), (2, 1), (3, 0)]);
    let (first, second) = (&report.model_calls[0], &report.model_calls[1]);
    assert_eq!(first.finish.as_deref(), Some("stop"));
    assert_eq!((first.usage.prompt, first.usage.completion), (10, 5));
    assert!(first.started_ms >= report.started_ms && first.error.is_none());
    let called = &first.calls[0];
    assert_eq!((called.name.as_str(), called.success), ("file_write", true));
    assert_eq!(called.args, ["a.txt", "hello"]);
    assert!(!second.calls[0].success);
    assert_eq!((report.usage.prompt, report.usage.completion), (30, 15));
    assert_eq!((report.cost, report.abort_reason.as_deref()), (None, None));
    assert!(report.children.is_empty() && report.artifacts.is_empty());
}

#[tokio::test]
async fn a_report_is_json_and_comes_back() {
    let agent = agent(&[&call("file_list", &[]), &say("ok")]).build().unwrap();
    let mut report = agent.execute("List.").await.unwrap();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&json["status"], &json["data"], &json["stop"]),
        (&json!("completed"), &json!("ok"), &json!("answered"))
    );
    assert_eq!(json["model_calls"][0]["calls"][0]["name"], "file_list");
    let roles: Vec<Role> = report.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
    report.messages.clear();
    assert_eq!(serde_json::from_value::<RunReport<String>>(json).unwrap(), report);
}

#[tokio::test]
async fn a_run_of_a_model_with_a_price_has_a_cost() {
    let price = Price { prompt: 1_000_000.0, completion: 0.0, cached: None, window: None };
    let prices = Prices::new([("script".to_owned(), price)].into()).unwrap();
    let settings = Settings { prices, ..Settings::default() };
    let agent = agent(&[&say("ok")]).settings(settings).build().unwrap();
    let report = agent.execute("go").await.unwrap();
    assert_eq!(report.cost, Dollars::new(10.0));
    assert_eq!(report.model_calls[0].usage.cost, report.cost);
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
struct City {
    name: String,
    population: u32,
}

#[tokio::test]
async fn the_answer_of_a_typed_agent_is_a_value() {
    let wrong = r#"{"name": "Oslo", "population": "many"}"#;
    let right = r#"{"name": "Oslo", "population": 724290}"#;
    let typed = agent(&[wrong, right]).output::<City>().build().unwrap();
    let report = typed.execute("The capital of Norway?").await.unwrap();
    assert_eq!(report.data, City { name: "Oslo".to_owned(), population: 724_290 });
    assert_eq!(report.model_calls.len(), 2);

    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let untyped = agent(&["[1, 2]"]).output_schema(schema).build().unwrap();
    assert_eq!(untyped.execute("Count.").await.unwrap().data, json!([1, 2]));

    let failure = agent(&[wrong]).output::<City>().build().unwrap().execute("?").await.unwrap_err();
    assert!(failure.reason().contains("the answer does not match its schema: at /population"));
    assert_eq!(failure.report().stop, Some(Stop::InvalidOutput));
}

#[tokio::test]
async fn a_failure_has_the_report_of_what_the_run_did() {
    let settings = |steps| {
        let mut settings = Settings::default();
        settings.machine.max_steps = steps;
        settings.machine.on_max_steps = wattle_agent::host::machine::OnMaxSteps::Stop;
        settings
    };
    let agent = agent(&[&call("file_list", &[])]).settings(settings(2)).build().unwrap();
    let failure = agent.execute("go").session_id("s").await.unwrap_err();
    assert_eq!(failure.to_string(), "the run failed: reached max_steps (2)");
    let report = failure.report();
    assert_eq!((report.status, report.model_calls.len()), (ReportStatus::Failed, 2));
    assert_eq!(report.session_id.as_deref(), Some("s"));
    assert!(!failure.is_cancelled() && failure.pending().is_empty());
}

#[tokio::test]
async fn an_answer_is_retried_and_a_program_that_does_not_compile_is_a_failed_call() {
    let wrong = "ToolCall::Wat(```wat\n(ret (nothing.at_all))\n```)";
    let right = "ToolCall::Wat(```wat\n(ret \"4\")\n```)";
    let agent = agent(&[wrong, right, &say("ok")]).build().unwrap();
    let report = agent.execute("go").await.unwrap();
    let calls = report.model_calls.iter().flat_map(|model_call| &model_call.calls);
    let calls: Vec<(&str, bool)> = calls.map(|call| (call.name.as_str(), call.success)).collect();
    assert_eq!(calls, [("wat", false), ("wat", true)]);
}

#[tokio::test]
async fn the_history_comes_before_the_input() {
    let script = Script::new(&[&say("four")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).build().unwrap();
    let history = vec![Message::user("two?"), Message::assistant("two")];
    let report = agent.execute("and two?").history(history).await.unwrap();
    assert_eq!((report.data.as_str(), script.requests().len()), ("four", 1));
    assert!(script.requests()[0].starts_with("and two?"));
}
