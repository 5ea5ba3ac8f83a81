//! Tests of run streams.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use wattle_agent::prelude::*;

use super::{Log, Silent, agent, call, name, say};

#[tokio::test]
async fn a_stream_has_the_events_and_the_pieces_of_the_answers_in_order() {
    let log = Log::default();
    let (first, last) = (call("file_list", &[]), say("ok"));
    let agent = agent(&[&first, &last]).on(log.handler("")).build().unwrap();
    let mut stream = agent.stream("go");
    let run = stream.run_id().to_owned();
    let mut items = Vec::new();
    while let Some(item) = stream.next().await {
        items.push(match item {
            StreamItem::Delta { delta } => delta,
            StreamItem::Event(event) => name(&event),
            item => format!("{item:?}"),
        });
    }
    let expected = [
        "run_started",
        "model_call_started",
        &first,
        "model_call_ended",
        "call_started",
        "call_ended",
        "model_call_started",
        &last,
        "Answer { answer: \"ok\" }",
        "model_call_ended",
        "run_ended",
    ];
    assert_eq!(items, expected);
    let report = stream.result().await.unwrap();
    assert_eq!((report.data.as_str(), &report.run_id), ("ok", &run));
    // Handlers do not receive the parts of an answer that arrive while the model is writing it.
    let is_event = |it: &&str| *it != first && *it != last && !it.starts_with("Answer");
    let events: Vec<&str> = expected.into_iter().filter(is_event).collect();
    assert_eq!(log.take(), events);
}

#[tokio::test]
async fn the_result_can_be_awaited_without_reading_the_stream() {
    let agent = agent(&[&call("file_list", &[]), &say("ok")]).build().unwrap();
    assert_eq!(agent.stream("go").result().await.unwrap().data, "ok");
}

#[tokio::test]
async fn an_item_is_json() {
    let agent = agent(&[&say("ok")]).build().unwrap();
    let items: Vec<StreamItem> = agent.stream("go").collect().await;
    let json: Vec<serde_json::Value> =
        items.iter().map(|item| serde_json::to_value(item).unwrap()).collect();
    assert_eq!(json[0]["type"], "run_started");
    assert_eq!(json[2], serde_json::json!({ "delta": say("ok") }));
    let back: Vec<StreamItem> =
        json.into_iter().map(|item| serde_json::from_value(item).unwrap()).collect();
    assert_eq!(back, items);
}

#[tokio::test]
async fn dropping_the_stream_cancels_the_run() {
    let (model, ended) = (Silent::default(), Arc::new(tokio::sync::Notify::new()));
    let (own, log) = (Arc::clone(&ended), Log::default());
    let lines = log.clone();
    let end = move |event: &RunEvent| {
        if let RunEventKind::RunEnded { status, text } = &event.kind {
            lines.add(format!("{status:?}: {text}"));
            own.notify_one();
        }
    };
    let agent = Agent::builder(model.clone()).host(super::HOST.clone()).on(end).build().unwrap();
    let stream = agent.stream("go");
    model.0.notified().await;
    drop(stream);
    tokio::time::timeout(Duration::from_secs(60), ended.notified()).await.unwrap();
    let expected = "Cancelled: stopped: cancelled (nobody waits for the run any more)";
    assert_eq!(log.take(), [expected]);
}
