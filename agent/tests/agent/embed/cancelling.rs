//! Tests of cancellation between and during model calls (exchanges with the model).

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use wattle_agent::prelude::*;

use super::{HOST, Log, Silent, agent, call, say};

#[tokio::test]
async fn a_cancelled_run_does_not_begin_a_model_call() {
    let cancel = Cancel::new();
    cancel.cancel("too late");
    let agent = agent(&[&say("ok")]).build().unwrap();
    let failure = agent.execute("go").cancel(cancel).await.unwrap_err();
    assert!(failure.is_cancelled());
    assert_eq!(failure.to_string(), "the run was cancelled: too late");
    let report = failure.report();
    assert_eq!((report.status, report.model_calls.len()), (ReportStatus::Cancelled, 0));
    assert_eq!(report.text, "stopped: cancelled (too late)");
}

#[tokio::test]
async fn a_run_is_cancelled_between_model_calls() {
    let cancel = Cancel::new();
    let own = cancel.clone();
    let stop = move |event: &RunEvent| {
        if matches!(event.kind, RunEventKind::CallEnded { .. }) {
            own.cancel("enough");
        }
    };
    let agent = agent(&[&call("file_list", &[])]).build().unwrap();
    let failure = agent.execute("go").cancel(cancel).on(stop).await.unwrap_err();
    assert_eq!((failure.reason(), failure.report().model_calls.len()), ("enough", 1));
    assert!(failure.report().model_calls[0].calls[0].success);
}

#[tokio::test]
async fn a_run_is_cancelled_while_the_model_is_asked() {
    let (model, cancel) = (Silent::default(), Cancel::new());
    let agent = Agent::builder(model.clone()).host(HOST.clone()).build().unwrap();
    let (failure, ()) =
        tokio::join!(agent.execute("go").cancel(cancel.clone()).into_future(), async {
            model.0.notified().await;
            cancel.cancel("the user left");
        });
    let failure = failure.unwrap_err();
    assert_eq!(failure.reason(), "the user left");
    let model_call = &failure.report().model_calls[0];
    assert_eq!(model_call.error.as_deref(), Some("the run ended before the model answered"));
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_tool_that_is_under_way_is_dropped_and_can_observe_the_cancellation() {
    struct Note(Log);
    impl Drop for Note {
        fn drop(&mut self) {
            self.0.add("dropped");
        }
    }
    let (log, token) = (Log::default(), CancellationToken::new());
    let (own, trigger) = (log.clone(), token.clone());
    let tool = Tool::new("wait", "Waits", move |_: Nothing, context: ToolContext| {
        let (note, trigger) = (Note(own.clone()), trigger.clone());
        async move {
            let _note = note;
            trigger.cancel();
            context.run().cancel().cancelled().await;
            std::future::pending::<Result<String, ToolError>>().await
        }
    });
    let agent = agent(&[&call("wait", &[]), &say("ok")]).tool(tool).build().unwrap();
    let failure = agent.execute("go").cancel(token).await.unwrap_err();
    assert_eq!(failure.to_string(), "the run was cancelled");
    assert!(!failure.report().model_calls[0].calls[0].success);
    let dropped = async {
        while log.take().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), dropped).await.unwrap();
}

#[tokio::test]
async fn dropping_what_awaits_a_run_cancels_it_and_not_its_callers_token() {
    let (model, cancel, log) = (Silent::default(), Cancel::new(), Log::default());
    let ended = std::sync::Arc::new(tokio::sync::Notify::new());
    let (own, lines) = (std::sync::Arc::clone(&ended), log.clone());
    let end = move |event: &RunEvent| {
        if let RunEventKind::RunEnded { text, .. } = &event.kind {
            lines.add(text.as_str());
            own.notify_one();
        }
    };
    let agent = Agent::builder(model.clone()).host(HOST.clone()).on(end).build().unwrap();
    let run = agent.execute("go").cancel(cancel.clone()).into_future();
    tokio::select! {
        _ = run => panic!("the model does not answer"),
        () = model.0.notified() => {}
    }
    tokio::time::timeout(Duration::from_secs(60), ended.notified()).await.unwrap();
    assert_eq!(log.take(), ["stopped: cancelled (nobody waits for the run any more)"]);
    assert!(!cancel.is_cancelled());
}
