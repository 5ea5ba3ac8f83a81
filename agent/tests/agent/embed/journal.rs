//! Tests of runs that are recorded in a store, replayed and resumed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::host::TenantStore;
use wattle_agent::host::capability::policy::{NoApprover, Policy};
use wattle_agent::host::journal::{Approval, Journal as _, SharedJournal, Status, replay};
use wattle_agent::host::ledger::{Keys, Pins, verify};
use wattle_agent::host::machine::{Call, Execution};
use wattle_agent::prelude::*;
use wattle_agent::{Store, Tenant};

use super::{Log, agent, call, say};

fn store() -> TenantStore {
    let hour = Duration::from_secs(3_600);
    let store = match wattle_cases::postgres::url_if_switched() {
        Some(url) => Store::connect(&url, hour),
        None => Store::in_memory(hour),
    };
    store.unwrap().tenant(&Tenant::default())
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

fn add(log: &Log) -> Tool {
    let log = log.clone();
    Tool::new("add", "Adds a name", move |named: Named, _: ToolContext| {
        let log = log.clone();
        async move {
            log.add(named.name.as_str());
            Ok(format!("added {}", named.name))
        }
    })
}

/// Replays a run and returns the first difference, if there is one.
async fn replayed<T>(agent: &Agent<T>, store: &TenantStore, run: &str) -> Option<String> {
    let journal: SharedJournal = Arc::new(store.clone());
    let record = store.run(run).await.unwrap().unwrap();
    let played = replay(agent.host(), &journal, &record, 1).await.unwrap();
    assert!(played.turns > 0);
    played.difference.map(|(step, difference)| format!("{step}: {difference:?}"))
}

#[tokio::test]
async fn a_replay_takes_the_results_of_tools_from_the_tape() {
    let (log, store) = (Log::default(), store());
    let agent = agent(&[&call("add", &["Ada"]), &say("ok")]).tool(add(&log)).store(store.clone());
    let agent = agent.build().unwrap();
    let report = agent.execute("Add Ada.").await.unwrap();
    assert_eq!(log.take(), ["Ada"]);
    assert_eq!(store.run(&report.run_id).await.unwrap().unwrap().status, Status::Ended);
    assert_eq!(replayed(&agent, &store, &report.run_id).await, None);
    assert!(log.take().is_empty());
}

#[tokio::test]
async fn what_middleware_changed_is_what_a_replay_has() {
    struct Changes;
    impl Middleware for Changes {
        fn call<'a>(
            &'a self,
            _: &'a RunState,
            call: Call,
            next: NextCall<'a>,
        ) -> BoxFuture<'a, Execution> {
            async move {
                match call.args().first().map(String::as_str) {
                    Some("Eve") => Execution::Refused { reason: "not Eve".to_owned() },
                    Some("Bob") => {
                        let args = vec!["Robert".to_owned()];
                        next.run(Call::catalog("add", args)).await
                    }
                    _ => next.run(call).await,
                }
            }
            .boxed()
        }
    }
    let (log, store) = (Log::default(), store());
    let answers = ["Ada", "Eve", "Bob"].map(|name| call("add", &[name]));
    let agent = agent(&[&answers[0], &answers[1], &answers[2], &say("ok")])
        .tool(add(&log))
        .middleware(Changes)
        .store(store.clone())
        .build()
        .unwrap();
    let report = agent.execute("Add all.").await.unwrap();
    assert_eq!(log.take(), ["Ada", "Robert"]);
    assert_eq!(replayed(&agent, &store, &report.run_id).await, None);
    assert!(log.take().is_empty());
}

#[tokio::test]
async fn a_run_waits_for_the_approval_that_its_delegate_needs() {
    let (log, store) = (Log::default(), store());
    let policy = Policy::new(Vec::new(), vec!["tool:add".parse().unwrap()], Vec::new());
    let clerk = agent(&[&call("add", &["Ada"]), &say("done")]).tool(add(&log)).build().unwrap();
    let boss = agent(&[&call("ask_clerk", &["Add Ada."]), &say("ok")])
        .delegate("clerk", clerk)
        .policy(policy)
        .approver(Arc::new(NoApprover))
        .store(store.clone())
        .build()
        .unwrap();
    let failure = boss.execute("go").await.unwrap_err();
    let (run, child) = (failure.report().run_id.clone(), &failure.report().children[0]);
    assert_eq!(child.status, ReportStatus::Parked);
    let [pending] = failure.pending() else { panic!("{failure:?}") };
    assert!(pending.call.starts_with(&format!("{}/", child.run_id)), "{pending:?}");
    let resumed = boss.resume(run).answer(&pending.call, Approval::once(true)).await.unwrap();
    assert_eq!((resumed.data.as_str(), log.take()), ("ok", vec!["Ada".to_owned()]));
    assert_eq!(resumed.children[0].text, "done");
}

#[tokio::test]
async fn a_parked_run_goes_on_where_it_was() {
    for (yes, expected) in [(true, &["Ada"][..]), (false, &[])] {
        let (log, store) = (Log::default(), store());
        let policy = Policy::new(Vec::new(), vec!["tool:add".parse().unwrap()], Vec::new());
        let agent = agent(&[&call("add", &["Ada"]), &say("ok")])
            .tool(add(&log))
            .policy(policy)
            .approver(Arc::new(NoApprover))
            .store(store.clone())
            .build()
            .unwrap();
        let failure = agent.execute("Add Ada.").await.unwrap_err();
        assert_eq!(failure.report().status, ReportStatus::Parked);
        let [pending] = failure.pending() else { panic!("{failure:?}") };
        assert!(pending.question.contains("call the tool add"), "{}", pending.question);
        let run = failure.report().run_id.clone();
        // Without an answer, the run remains parked.
        let again = agent.resume(run.as_str()).await.unwrap_err();
        assert_eq!(again.pending(), failure.pending());
        let resumed = agent.resume(run.as_str()).answer(&pending.call, Approval::once(yes));
        let report = resumed.await.unwrap();
        assert_eq!((report.data.as_str(), &report.run_id), ("ok", &run));
        assert_eq!(log.take(), expected);
        let over = agent.resume(run.as_str()).await.unwrap_err();
        assert!(over.reason().contains("has ended"), "{over}");
    }
}

#[tokio::test]
async fn what_cannot_be_resumed_is_a_failure() {
    let without = agent(&[&say("ok")]).build().unwrap();
    let failure = without.resume("01").await.unwrap_err();
    assert_eq!(failure.reason(), "the agent has no store, so it has no run to resume");
    let with = agent(&[&say("ok")]).store(store()).build().unwrap();
    let failure = with.resume("01").await.unwrap_err();
    assert_eq!(failure.reason(), "the store has no such run");
    let store = store();
    let run = |name: &str| agent(&[&say("ok")]).name(name).store(store.clone()).build().unwrap();
    let report = run("one").execute("go").await.unwrap();
    let failure = run("other").resume(report.run_id).await.unwrap_err();
    assert_eq!(failure.reason(), "the run is one of the agent `one`; resume it with that agent");
}

#[tokio::test]
async fn a_delegate_is_recorded_with_its_caller() {
    let store = store();
    let clerk = agent(&[&say("3")]).name("clerk").build().unwrap();
    let boss = agent(&[&call("ask_clerk", &["How many?"]), &say("ok")])
        .delegate("clerk", clerk)
        .store(store.clone())
        .build()
        .unwrap();
    let report = boss.execute("go").await.unwrap();
    let child = store.run(&report.children[0].run_id).await.unwrap().unwrap();
    assert_eq!((child.status, child.start.agent.as_str()), (Status::Ended, "clerk"));
    assert_eq!(child.start.parent.unwrap().run, report.run_id);
    assert_eq!(replayed(&boss, &store, &report.run_id).await, None);
}

#[tokio::test]
async fn the_trace_of_each_run_is_written_and_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let keys = Keys::new(folder.path().join("keys"));
    let signer = Arc::new(keys.signer("default").unwrap());
    let clerk = || {
        let clerk = agent(&[&call("file_list", &[]), &say("3")]).name("clerk");
        clerk.trace(folder.path().join("traces"), Some(Arc::clone(&signer))).build().unwrap()
    };
    let boss = agent(&[&call("ask_clerk", &["count"]), &say("ok")])
        .trace(folder.path().join("traces"), Some(Arc::clone(&signer)))
        .delegate("clerk", clerk())
        .build()
        .unwrap();
    let report = boss.execute("go").await.unwrap();
    let runs = [(&report.run_id, "ask_clerk"), (&report.children[0].run_id, "file_list")];
    for (run, tool) in runs {
        let folder = folder.path().join("traces").join(run);
        let steps = std::fs::read_to_string(folder.join(wattle_agent::host::STEPS_FILE)).unwrap();
        let first: serde_json::Value = serde_json::from_str(steps.lines().next().unwrap()).unwrap();
        assert_eq!(
            (first["tool"].as_str(), first["run_id"].as_str()),
            (Some(tool), Some(run.as_str()))
        );
        let verified = verify(&folder, &Pins::One(signer.public()), &[]).unwrap();
        let [verdict] = verified.runs.as_slice() else { panic!("{verified:?}") };
        assert!(verdict.ended && verdict.finding.is_none(), "{verdict:?}");
    }
    // If the trace folder cannot be created, the run continues without a trace.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let agent = agent(&[&say("ok")]).trace(&file, None).build().unwrap();
    assert_eq!(agent.execute("go").await.unwrap().data, "ok");
}
