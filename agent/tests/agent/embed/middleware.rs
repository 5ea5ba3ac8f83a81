//! Tests of middleware.

use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_agent::host::machine::{Call, Execution, Message};
use wattle_agent::model::{ModelError, ModelReply};
use wattle_agent::prelude::*;

use super::{HOST, Log, Script, agent, call, say};

/// A middleware that logs the start and the end of each model call and call. Each line for the end
/// of a model call contains the number of ends logged so far by all middleware of the run.
struct Noting(Log, &'static str);

impl Middleware for Noting {
    fn model_call<'a>(
        &'a self,
        state: &'a RunState,
        request: ModelCallRequest,
        next: NextModelCall<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let Noting(log, name) = self;
            log.add(format!("{name} asks"));
            let reply = next.run(request).await;
            *state.of::<Mutex<u32>>().lock().unwrap() += 1;
            log.add(format!("{name} is answered {}", *state.of::<Mutex<u32>>().lock().unwrap()));
            reply
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        _: &'a RunState,
        call: Call,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Execution> {
        async move {
            let Noting(log, name) = self;
            log.add(format!("{name} calls {}", call.label()));
            let execution = next.run(call).await;
            log.add(format!("{name} is done"));
            execution
        }
        .boxed()
    }
}

#[tokio::test]
async fn the_first_middleware_is_the_outermost_and_each_run_has_its_own_state() {
    let log = Log::default();
    let agent = agent(&[&call("file_list", &[]), &say("ok")])
        .middleware(Noting(log.clone(), "a"))
        .middleware(Noting(log.clone(), "b"))
        .build()
        .unwrap();
    agent.execute("go").await.unwrap();
    let first = ["a asks", "b asks", "b is answered 1", "a is answered 2"];
    let called = ["a calls file_list", "b calls file_list", "b is done", "a is done"];
    let second = ["a asks", "b asks", "b is answered 3", "a is answered 4"];
    assert_eq!(log.take(), [first, called, second].concat());
    agent.execute("go").await.unwrap();
    assert_eq!(log.take()[..4], ["a asks", "b asks", "b is answered 1", "a is answered 2"]);
}

/// A middleware that consists of two functions.
struct Both<T, C>(T, C);

impl<T, C> Middleware for Both<T, C>
where
    T: for<'a> Fn(
            ModelCallRequest,
            NextModelCall<'a>,
        ) -> BoxFuture<'a, Result<ModelReply, ModelError>>
        + Send
        + Sync,
    C: for<'a> Fn(Call, NextCall<'a>) -> BoxFuture<'a, Execution> + Send + Sync,
{
    fn model_call<'a>(
        &'a self,
        _: &'a RunState,
        request: ModelCallRequest,
        next: NextModelCall<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        (self.0)(request, next)
    }

    fn call<'a>(
        &'a self,
        _: &'a RunState,
        call: Call,
        next: NextCall<'a>,
    ) -> BoxFuture<'a, Execution> {
        (self.1)(call, next)
    }
}

fn ask(
    request: ModelCallRequest,
    next: NextModelCall<'_>,
) -> BoxFuture<'_, Result<ModelReply, ModelError>> {
    next.run(request)
}

fn perform(call: Call, next: NextCall<'_>) -> BoxFuture<'_, Execution> {
    next.run(call)
}

#[tokio::test]
async fn middleware_changes_requests_and_answers() {
    fn change(
        mut request: ModelCallRequest,
        next: NextModelCall<'_>,
    ) -> BoxFuture<'_, Result<ModelReply, ModelError>> {
        request.messages.push(Message::user("Be brief."));
        async move {
            let reply = next.run(request).await?;
            Ok(ModelReply { text: reply.text.replace("four", "4"), ..reply })
        }
        .boxed()
    }
    let script = Script::new(&[&say("four")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).middleware(Both(change, perform));
    let report = agent.build().unwrap().execute("two and two?").await.unwrap();
    assert_eq!((report.data.as_str(), script.requests()), ("4", vec!["Be brief.".to_owned()]));
}

#[tokio::test]
async fn middleware_asks_again_and_the_stream_begins_the_answer_anew() {
    use futures_util::StreamExt;
    fn twice(
        request: ModelCallRequest,
        next: NextModelCall<'_>,
    ) -> BoxFuture<'_, Result<ModelReply, ModelError>> {
        async move {
            _ = next.run(request.clone()).await?;
            next.run(request).await
        }
        .boxed()
    }
    let agent = agent(&[&say("no"), &say("yes")]).middleware(Both(twice, perform)).build().unwrap();
    let mut stream = agent.stream("go");
    let mut items = Vec::new();
    while let Some(item) = stream.next().await {
        items.push(match item {
            StreamItem::Delta { delta } => delta,
            StreamItem::Event(event) => super::name(&event),
            _ => continue,
        });
    }
    let report = stream.result().await.unwrap();
    assert_eq!((report.data.as_str(), report.model_calls.len()), ("yes", 1));
    let (no, yes) = (say("no"), say("yes"));
    let answers = ["model_call_started", &no, "retry", &yes, "model_call_ended"];
    assert_eq!(items[1..6], answers);
}

#[tokio::test]
async fn a_refused_call_is_not_run_and_the_model_reads_the_reason() {
    fn refuse(call: Call, next: NextCall<'_>) -> BoxFuture<'_, Execution> {
        match call.label() {
            "file_write" => {
                async { Execution::Refused { reason: "not on Sundays".to_owned() } }.boxed()
            }
            _ => next.run(call),
        }
    }
    let script =
        Script::new(&[&call("file_write", &["a", "b"]), &call("file_list", &[]), &say("ok")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).middleware(Both(ask, refuse));
    let report = agent.build().unwrap().execute("go").await.unwrap();
    assert!(script.requests()[1].contains("not on Sundays"));
    assert!(!script.requests()[2].contains("a\n"));
    let calls: Vec<bool> = report
        .model_calls
        .iter()
        .flat_map(|model_call| &model_call.calls)
        .map(|call| call.success)
        .collect();
    assert_eq!(calls, [false, true]);
}

#[tokio::test]
async fn middleware_changes_calls_and_their_outcomes() {
    fn rewrite(call: Call, next: NextCall<'_>) -> BoxFuture<'_, Execution> {
        let Call::Catalog { name, .. } = call else { return next.run(call) };
        async move {
            let args = vec!["A b c d".to_owned()];
            match next.run(Call::catalog(name, args)).await {
                Execution::Ran(mut ran) => {
                    ran.results.push("and counted twice".to_owned());
                    Execution::Ran(ran)
                }
                other => other,
            }
        }
        .boxed()
    }
    let script = Script::new(&[&call("text_count", &["a"]), &say("ok")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).middleware(Both(ask, rewrite));
    agent.build().unwrap().execute("go").await.unwrap();
    let read = &script.requests()[1];
    assert!(read.contains("and counted twice") && read.contains('4'), "{read}");
}

#[tokio::test]
async fn a_refused_model_call_ends_the_run_with_the_reason() {
    fn refuse(
        _: ModelCallRequest,
        _: NextModelCall<'_>,
    ) -> BoxFuture<'_, Result<ModelReply, ModelError>> {
        async { Err(ModelError::application("the budget of the month is used up")) }.boxed()
    }
    let agent = agent(&[&say("ok")]).middleware(Both(refuse, perform)).build().unwrap();
    let failure = agent.execute("go").await.unwrap_err();
    assert_eq!(failure.reason(), "the budget of the month is used up");
    let model_call = &failure.report().model_calls[0];
    assert_eq!(model_call.error.as_deref(), Some("the budget of the month is used up"));
}

#[tokio::test]
async fn middleware_that_panics_fails_its_model_call_or_refuses_its_call() {
    fn bad_model_call(
        _: ModelCallRequest,
        _: NextModelCall<'_>,
    ) -> BoxFuture<'_, Result<ModelReply, ModelError>> {
        panic!("secret of the application")
    }
    fn bad_call(call: Call, next: NextCall<'_>) -> BoxFuture<'_, Execution> {
        async move {
            _ = next.run(call).await;
            panic!("secret of the application")
        }
        .boxed()
    }
    let failing = agent(&[&say("ok")]).middleware(Both(bad_model_call, perform)).build().unwrap();
    let failure = failing.execute("go").await.unwrap_err();
    assert_eq!(failure.reason(), "the application failed; its log has the reason");

    let script = Script::new(&[&call("file_list", &[]), &say("ok")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).middleware(Both(ask, bad_call));
    let report = agent.build().unwrap().execute("go").await.unwrap();
    assert_eq!((report.data.as_str(), report.model_calls[0].calls[0].success), ("ok", false));
    let read = &script.requests()[1];
    assert!(read.contains("the application failed") && !read.contains("secret"), "{read}");
}
