//! A conformance test for implementations of the journal.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a journal that does not conform fails the test"
)]

use std::borrow::Cow;
use std::sync::Arc;

use wattle_agent::host::journal::{
    CallTime, EngineStart, Priority, RecordedCall, RunEnd, RunFilter, RunRecord, RunRequest,
    RunStart, RunSummary, SharedJournal, Status, Turn,
};
use wattle_machine::{Ending, Envelope, Event, Input, Setup, Usage};
use wattle_rt::tape::{CallId, RecordedValue};
use wattle_rt::{CallEffect, Code, Failure};

/// Checks that a journal implementation behaves as runs require. `make` must create an empty
/// journal at each call.
///
/// # Panics
/// Panics if a journal does not conform.
pub async fn conformance(make: &dyn Fn() -> SharedJournal) {
    runs(&make()).await;
    turns_and_calls(&make()).await;
    locks(&make()).await;
    attempts(&make()).await;
    queue(&make()).await;
    events(&make()).await;
}

async fn queue(journal: &SharedJournal) {
    let queued = |id: &str, created| RunRequest {
        session: Some("s".to_owned()),
        created,
        priority: Priority::High,
        needs: "a thing".to_owned(),
        id: id.to_owned(),
        origin: serde_json::json!({"by": "test"}),
        ..RunRequest::new("go \u{0} ü")
    };
    for id in ["b", "a", "c"] {
        journal.enqueue(queued(id, 1)).await.unwrap();
    }
    assert!(journal.enqueue(queued("a", 1)).await.is_err(), "a run is queued once");
    let all = [queued("b", 1), queued("a", 1), queued("c", 1)];
    assert_eq!(journal.queued().await.unwrap(), all, "in the order of the requests");
    journal.open(opened("b", 1)).await.unwrap();
    assert_eq!(journal.queued().await.unwrap(), [queued("a", 1), queued("c", 1)]);
}

async fn events(journal: &SharedJournal) {
    journal.open(opened("a", 0)).await.unwrap();
    let event = |seq| Envelope {
        run_id: "a".to_owned(),
        root_run_id: "a".to_owned(),
        seq,
        ts: 7,
        event: Event::Thinking { step: 1, content: format!("event {seq} \u{0} ü") },
    };
    journal.turn("a", begun(), Vec::new(), vec![event(1), event(2)]).await.unwrap();
    journal.park("a", None, vec![event(3)]).await.unwrap();
    let other = Envelope { ts: 8, ..event(3) };
    journal.turn("a", begun(), Vec::new(), vec![other, event(4)]).await.unwrap();
    let after = async |after, limit| journal.events("a", after, limit).await.unwrap();
    assert_eq!(after(0, 10).await, [event(1), event(2), event(3), event(4)], "an event is final");
    assert_eq!(after(2, 1).await, [event(3)]);
    assert_eq!(after(4, 10).await, []);
    assert_eq!(after(u64::MAX, u32::MAX).await, []);
    assert_eq!(journal.events("none", 0, 10).await.unwrap(), []);
    assert!(journal.turn("none", begun(), Vec::new(), vec![event(1)]).await.is_err());

    journal.pause("a").await.unwrap();
    let summary = RunSummary {
        steps: 3,
        usage: Usage { prompt: 5, ..Usage::default() },
        ending: Ending::Answered { text: "done".to_owned(), data: None },
    };
    let end = RunEnd { summary: Some(summary.clone()), ..RunEnd::default() };
    journal.end("a", end).await.unwrap();
    assert_eq!(journal.run("a").await.unwrap().unwrap().summary, Some(summary));
    let page = RunFilter { before: Some("a".to_owned()), ..RunFilter::default() };
    assert_eq!(journal.runs(page).await.unwrap(), []);
    let changed = |since| RunFilter { changed_since: Some(since), ..RunFilter::default() };
    assert_eq!(journal.runs(changed(0)).await.unwrap().len(), 1);
    assert_eq!(journal.runs(changed(u64::MAX)).await.unwrap(), []);
    let other = RunFilter { session: Some("other".to_owned()), ..RunFilter::default() };
    assert_eq!(journal.runs(other).await.unwrap(), []);
}

async fn attempts(journal: &SharedJournal) {
    journal.open(opened("a", 0)).await.unwrap();
    let now = async || journal.run("a").await.unwrap().unwrap();
    assert_eq!((journal.attempt("a").await.unwrap(), journal.attempt("a").await.unwrap()), (2, 3));
    journal.turn("a", begun(), Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(now().await.attempts, 1, "a turn is progress");
    assert!(!journal.release("a").await.unwrap(), "it is not parked");
    journal.park("a", None, Vec::new()).await.unwrap();
    assert!(!journal.release("a").await.unwrap(), "it is waiting for an answer, not for a release");
    assert_eq!(now().await.attempts, 0, "a run that waits for a person did not end its process");
    assert_eq!(journal.attempt("a").await.unwrap(), 1);
    journal.park("a", Some("it ended its process".to_owned()), Vec::new()).await.unwrap();
    assert_eq!(
        (now().await.status, now().await.reason.as_deref()),
        (Status::Parked, Some("it ended its process"))
    );
    assert_eq!(now().await.attempts, 1, "an operator has to release it");
    assert!(journal.release("a").await.unwrap());
    assert_eq!(
        (now().await.status, now().await.reason, now().await.attempts),
        (Status::Open, None, 0)
    );
    journal.turn("a", begun(), Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(now().await.attempts, 0, "a run that no process drives has no attempts");
    assert!(!journal.release("none").await.unwrap());
}

fn begun() -> Turn {
    Turn {
        spent: Usage::default(),
        input: Input::Begin { message: "go".to_owned() },
        effects: Vec::new(),
        seq: 1,
        elapsed_ms: 0,
        files: None,
    }
}

fn opened(id: &str, created: u64) -> RunRecord {
    let start = RunStart {
        setup: Setup { system: "prompt".into(), ..Setup::default() },
        message: "go".to_owned(),
        agent: "a".to_owned(),
        model: "m".to_owned(),
        timeout_ms: Some(5),
        temperature: 0.25,
        max_tokens: 7,
        thinking_effort: None,
        tool_call: Default::default(),
        preamble: None,
        granted: vec!["kv".to_owned()],
        capabilities: [("kv".to_owned(), 2)].into(),
        forked: Some(("x".to_owned(), 1)),
        parent: None,
        engine: Some(EngineStart { hash: "0123".to_owned(), created }),
        origin: serde_json::json!({"by": "test", "n": [1, null]}),
    };
    RunRecord {
        id: id.to_owned(),
        session: Some("s".to_owned()),
        status: Status::Open,
        created,
        used: created,
        attempts: 1,
        reason: None,
        summary: None,
        start,
    }
}

async fn runs(journal: &SharedJournal) {
    assert_eq!(journal.runs(RunFilter::default()).await.unwrap(), []);
    assert_eq!(journal.run("a").await.unwrap(), None);
    for id in ["a", "b", "c"] {
        journal.open(opened(id, 0)).await.unwrap();
    }
    assert!(journal.open(opened("a", 0)).await.is_err(), "a run's id is unique");
    let a = journal.run("a").await.unwrap().unwrap();
    assert_eq!(
        (&a.start, a.status, a.session.as_deref()),
        (&opened("a", 0).start, Status::Open, Some("s"))
    );
    journal.park("b", None, Vec::new()).await.unwrap();
    journal.end("c", RunEnd::default()).await.unwrap();
    let ids = async |status| -> Vec<String> {
        let filter = RunFilter { status, ..RunFilter::default() };
        journal.runs(filter).await.unwrap().into_iter().map(|run| run.id).collect()
    };
    assert_eq!(ids(None).await, ["c", "b", "a"], "the newest first");
    assert_eq!(ids(Some(Status::Open)).await, ["a"]);
    assert_eq!(ids(Some(Status::Parked)).await, ["b"]);
    assert_eq!(ids(Some(Status::Ended)).await, ["c"]);
    assert!(journal.end("none", RunEnd::default()).await.is_err());
    assert!(journal.park("none", None, Vec::new()).await.is_err());
    assert!(journal.attempt("none").await.is_err());
}

async fn turns_and_calls(journal: &SharedJournal) {
    journal.open(opened("a", 0)).await.unwrap();
    let turn = |text: &str, files: Option<&str>| Turn {
        spent: Usage::default(),
        input: Input::Begin { message: text.to_owned() },
        effects: Vec::new(),
        seq: u64::from(u32::MAX) + 5,
        elapsed_ms: 9,
        files: files.map(str::to_owned),
    };
    let turns = [turn("one \u{0} ü", None), turn("two", Some("[]")), turn("three", None)];
    for turn in turns.clone() {
        journal.turn("a", turn, Vec::new(), Vec::new()).await.unwrap();
    }
    assert_eq!(journal.turns("a").await.unwrap(), turns);
    let [.., last] = turns;
    assert_eq!(journal.last_turn("a").await.unwrap(), Some((2, last)));
    assert_eq!(journal.last_turn("none").await.unwrap(), None);
    assert!(
        journal.turn("none", turn("x", None), Vec::new(), Vec::new()).await.is_err(),
        "a turn belongs to a run"
    );

    let call = |path: &[u32], number, result| RecordedCall {
        turn: 1,
        program: 0,
        id: CallId {
            path: Arc::from(path),
            number,
            function: Cow::Borrowed("http.post"),
            effect: CallEffect::Once,
            digest: [7; 16],
            args: "\"x\"".to_owned(),
        },
        times: 3,
        result,
        time: Some(CallTime { began: 1_700_000_000_000, dur_ms: Some(u64::from(number)) }),
    };
    let all = [
        call(&[], 2, None),
        call(&[], 10, Some(Err(Failure::new(Code::EREMOTE, "away")))),
        call(&[2, 0, 1], 2, Some(Ok(RecordedValue::Items(vec![vec![0, 255], Vec::new()])))),
    ];
    journal.calls("a", all.to_vec()).await.unwrap();
    let elsewhere = RecordedCall { turn: 2, ..call(&[], 2, None) };
    // A turn is recorded together with calls of earlier turns.
    journal.turn("a", turn("four", None), vec![elsewhere.clone()], Vec::new()).await.unwrap();
    assert_eq!(journal.calls_of("a", 1).await.unwrap(), all);
    assert_eq!(journal.calls_of("a", 2).await.unwrap(), [elsewhere]);
    assert_eq!(journal.calls_of("a", 0).await.unwrap(), []);

    let ended = RecordedCall { result: Some(Ok(RecordedValue::Unit)), ..all[0].clone() };
    journal.calls("a", vec![ended.clone()]).await.unwrap();
    journal.calls("a", vec![all[0].clone()]).await.unwrap();
    assert_eq!(journal.calls_of("a", 1).await.unwrap()[0], ended, "the result of a call is final");
    assert!(journal.calls("none", vec![ended]).await.is_err(), "a call belongs to a run");
}

async fn locks(journal: &SharedJournal) {
    let lock = journal.lock("x").await.unwrap().unwrap();
    assert!(journal.lock("x").await.unwrap().is_none());
    let other = journal.lock("y").await.unwrap();
    assert!(other.is_some());
    drop(lock);
    assert!(journal.lock("x").await.unwrap().is_some());
    assert!(journal.lock("y").await.unwrap().is_none(), "another name is still locked");
}
