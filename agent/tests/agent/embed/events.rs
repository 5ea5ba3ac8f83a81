//! Tests of lifecycle events and their handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wattle_agent::prelude::*;

use super::{Log, agent, call, say};

#[tokio::test]
async fn the_events_of_a_run_come_in_order() {
    let log = Log::default();
    let agent = agent(&[&call("file_list", &[]), &say("ok")]).on(log.handler("")).build().unwrap();
    agent.execute("go").await.unwrap();
    let expected = [
        "run_started",
        "model_call_started",
        "model_call_ended",
        "call_started",
        "call_ended",
        "model_call_started",
        "model_call_ended",
        "run_ended",
    ];
    assert_eq!(log.take(), expected);
}

#[tokio::test]
async fn handlers_are_called_at_three_levels_and_each_in_the_order_in_which_it_was_added() {
    let log = Log::default();
    let agent = agent(&[&say("ok")]).on(log.handler("a ")).on(log.handler("b ")).build().unwrap();
    let clone = agent.clone();
    let first = clone.subscribe(log.handler("c "));
    let _second = agent.subscribe(log.handler("d "));
    let run = || agent.execute("go").on(log.handler("e ")).on(log.handler("f "));
    run().await.unwrap();
    let started: Vec<String> =
        log.take().into_iter().filter(|line| line.ends_with("run_started")).collect();
    let of = |names: &str| -> Vec<String> {
        names.split(' ').map(|name| format!("{name} run_started")).collect()
    };
    assert_eq!(started, of("a b c d e f"));
    first.unsubscribe();
    run().await.unwrap();
    let started: Vec<String> =
        log.take().into_iter().filter(|line| line.ends_with("run_started")).collect();
    assert_eq!(started, of("a b d e f"));
}

#[tokio::test]
async fn a_handler_that_is_removed_during_a_run_receives_no_more() {
    let log = Log::default();
    let agent = agent(&[&call("file_list", &[]), &say("ok")]).build().unwrap();
    let removed = Arc::new(std::sync::Mutex::new(Some(agent.subscribe(log.handler("")))));
    let own = Arc::clone(&removed);
    let remove = move |event: &RunEvent| {
        if matches!(event.kind, RunEventKind::CallStarted { .. }) {
            own.lock().unwrap().take();
        }
    };
    agent.execute("go").on(remove).await.unwrap();
    assert_eq!(
        log.take(),
        ["run_started", "model_call_started", "model_call_ended", "call_started"]
    );
}

#[tokio::test]
async fn a_handler_that_panics_does_not_end_the_run_or_keep_events_from_others() {
    let log = Log::default();
    let agent = agent(&[&say("ok")])
        .on(|_: &RunEvent| panic!("a bug of the application"))
        .on(log.handler(""))
        .build()
        .unwrap();
    assert_eq!(agent.execute("go").await.unwrap().data, "ok");
    assert_eq!(log.take(), ["run_started", "model_call_started", "model_call_ended", "run_ended"]);
}

#[tokio::test]
async fn a_handler_may_use_the_agent() {
    let agent = agent(&[&say("ok")]).build().unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let (own, counter) = (agent.clone(), Arc::clone(&count));
    let nested = move |_: &RunEvent| {
        let counter = Arc::clone(&counter);
        let added = own.subscribe(move |_: &RunEvent| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        drop(added);
    };
    agent.execute("go").on(nested).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_event_is_json_with_the_ids_of_its_run() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let agent = agent(&["", &say("ok")]).name("clerk").build().unwrap();
    let keep = move |event: &RunEvent| own.lock().unwrap().push(event.clone());
    let report = agent.execute("go").session_id("s").on(keep).await.unwrap();
    let seen = seen.lock().unwrap();
    for event in seen.iter() {
        assert_eq!((&event.run_id, &event.root_run_id), (&report.run_id, &report.run_id));
        assert_eq!((event.session_id.as_deref(), event.agent.as_str()), (Some("s"), "clerk"));
        let json = serde_json::to_string(event).unwrap();
        assert_eq!(serde_json::from_str::<RunEvent>(&json).unwrap(), *event);
    }
    // After an empty answer, the model is asked again.
    assert!(seen.iter().any(|event| matches!(&event.kind, RunEventKind::Retry { .. })));
    assert!(matches!(
        &seen.last().unwrap().kind,
        RunEventKind::RunEnded { status: ReportStatus::Completed, text } if text == "ok"
    ));
}
