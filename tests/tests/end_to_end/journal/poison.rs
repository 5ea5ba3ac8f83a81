//! Tests that a run that crashes its process is not resumed indefinitely, and that a panic in a run
//! ends only that run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wattle_agent::host::journal::{
    Journal as _, ResumeError, RunFilter, RunOutcome, RunRequest, Status, end,
};
use wattle_agent::host::machine::{Ending, Envelope};
use wattle_agent::model::{Delta, Model, ModelError, ModelReply, ModelRequest};

use super::place::{ByTurn, Place, answer, done, status, wat};

/// A model that simulates a crash: instead of returning one of its answers, it notifies `crashed`
/// and waits forever.
#[derive(Clone)]
struct Crashing {
    script: ByTurn,
    /// The number of the answer at which the process crashes.
    at: usize,
    crashed: Arc<tokio::sync::Notify>,
    requests: Arc<AtomicUsize>,
}

impl Crashing {
    fn at(at: usize) -> Crashing {
        let script = ByTurn(vec![
            wat(r#"(resv (http.get? "https://a.example/page"))"#),
            wat(r#"(resv (str.from_int (kv.incr? "n" 1)))"#),
            done(),
        ]);
        Crashing { script, at, crashed: Arc::default(), requests: Arc::default() }
    }
}

impl Model for Crashing {
    fn name(&self) -> &str {
        "crashing"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let answered = request
            .messages
            .iter()
            .filter(|message| message.role == wattle_agent::host::machine::Role::Assistant)
            .count();
        if answered == self.at {
            self.crashed.notify_one();
            return Box::pin(std::future::pending());
        }
        self.script.complete(request)
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        self.complete(request)
    }
}

/// Drives the run until the model crashes, and then drops the run, as if its process had ended.
async fn crash(place: &Place, model: &Crashing, is_first: bool) {
    let journal = place.journal();
    let drive = async {
        match is_first {
            true => drop(place.run(&journal, model, "r").await),
            false => drop(place.resume(model, "r", &[]).await),
        }
    };
    tokio::select! {
        () = drive => panic!("the run ended"),
        () = model.crashed.notified() => {}
    }
    // The process's lock on the run is released when its task ends.
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn a_run_that_ended_its_process_twice_is_parked_and_can_be_released() {
    let place = Place::new();
    let model = Crashing::at(1);
    crash(&place, &model, true).await;
    assert_eq!(place.opened("r").await.attempts, 1);
    crash(&place, &model, false).await;
    assert_eq!(place.opened("r").await.attempts, 2);

    let requests = model.requests.load(Ordering::SeqCst);
    let Err(ResumeError::Parked { run, reason }) = place.resume(&model, "r", &[]).await.0 else {
        panic!()
    };
    assert_eq!(run, "r");
    assert_eq!(
        reason,
        "this run ended its process 2 times; it is parked; last known: step 2: the model was asked"
    );
    let parked = place.opened("r").await;
    assert_eq!((parked.status, parked.reason.as_deref()), (Status::Parked, Some(reason.as_str())));
    assert!(matches!(place.resume(&model, "r", &[]).await.0, Err(ResumeError::Parked { .. })));
    assert!(matches!(
        place.resume(&model, "r", &[("2.1", true)]).await.0,
        Err(ResumeError::Parked { .. })
    ));
    assert_eq!(model.requests.load(Ordering::SeqCst), requests, "the parked run was not driven");
    assert_eq!(
        place.store.runs(RunFilter::status(Status::Open)).await.unwrap(),
        [],
        "a parked run is not listed as open"
    );

    // After its release, a run may be attempted two more times.
    assert!(place.store.release("r").await.unwrap());
    crash(&place, &model, false).await;
    crash(&place, &model, false).await;
    assert!(matches!(place.resume(&model, "r", &[]).await.0, Err(ResumeError::Parked { .. })));
    place.store.release("r").await.unwrap();
    let ended = place.resume(&Crashing::at(usize::MAX), "r", &[]).await.0.unwrap();
    assert_eq!(answer(&ended), "done");
    assert_eq!(place.value("n").await.as_deref(), Some("1"));
    let RunOutcome::Done(report) = ended else { panic!() };
    end(&place.journal(), &report, false).await.unwrap();
    assert_eq!(status(&place, "r").await, Status::Ended);
    assert_eq!(place.replay("r").await.difference, None);
}

#[tokio::test]
async fn a_run_that_makes_progress_is_never_parked() {
    let place = Place::new();
    crash(&place, &Crashing::at(0), true).await;
    for turn in 1..3 {
        crash(&place, &Crashing::at(turn), false).await;
        assert_eq!(place.opened("r").await.attempts, 1, "a turn is progress");
    }
    assert_eq!(answer(&place.resume(&Crashing::at(usize::MAX), "r", &[]).await.0.unwrap()), "done");
}

#[tokio::test]
async fn a_parked_run_names_its_unfinished_call() {
    let place = Place::new();
    let script =
        || ByTurn(vec![wat(r#"(resv (http.post? "https://a.example/form" "x" ""))"#), done()]);
    let model = script();
    let journal = place.journal();
    let hangs = Arc::clone(&place.network);
    hangs.hang();
    // The process ends during the program's call.
    tokio::select! {
        _ = place.run(&journal, &model, "r") => panic!("the run ended"),
        () = hangs.hung() => {}
    }
    tokio::task::yield_now().await;
    // Another process resumes the run and ends before the run makes progress.
    place.store.attempt("r").await.unwrap();
    let Err(ResumeError::Parked { reason, .. }) = place.resume(&script(), "r", &[]).await.0 else {
        panic!()
    };
    assert!(
        reason.contains("step 1: wat ran, call http.post(\"https://a.example/form\""),
        "{reason}"
    );
    assert!(reason.ends_with("(under way)"), "{reason}");
}

/// A model that panics.
#[derive(Clone)]
struct Panics;

impl Model for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn complete<'a>(
        &'a self,
        _: ModelRequest<'a>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        Box::pin(async { panic!("the model's client has a bug: a secret") })
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>> {
        self.complete(request)
    }
}

#[tokio::test]
async fn a_panic_in_a_run_ends_only_that_run() {
    let place = Place::new();
    let journal = place.journal();
    let good = ByTurn(vec![wat(r#"(resv (str.from_int (kv.incr? "n" 1)))"#), done()]);
    let (panicked, went_on) =
        tokio::join!(place.run(&journal, &Panics, "r"), place.run(&journal, &good, "other"));
    let RunOutcome::Done(report) = panicked.0 else { panic!() };
    let Ending::Failed { message } = &report.ending else { panic!("{report:?}") };
    assert!(
        message.contains("a bug in the host ended the run") && !message.contains("secret"),
        "{message}"
    );
    assert!(panicked.1.iter().any(|envelope| matches!(
        envelope.event,
        wattle_agent::host::machine::Event::Error { .. }
    )));
    end(&journal, &report, false).await.unwrap();
    assert_eq!(status(&place, "r").await, Status::Ended);
    assert_eq!(answer(&went_on.0), "done");
    assert_eq!(place.replay("r").await.difference, None, "the journal is intact");
}

#[tokio::test]
async fn a_sink_that_panics_ends_its_run_and_no_other() {
    let place = Place::new();
    let journal = place.journal();
    let model = ByTurn(vec![wat(r#"(fs.write? "a.txt" "kept")"#), done()]);
    let (files, job) = place.job();
    let sink = |envelope: &Envelope| assert!(envelope.seq < 3, "the sink has a bug");
    let settings = wattle_agent::Settings::default();
    let (parts, request) = job.on(&place.host, &model, &settings);
    let request = RunRequest { id: "r".to_owned(), ..request };
    let ended = wattle_agent::host::journal::run(parts, &request, &sink, &journal).await.unwrap();
    let RunOutcome::Done(report) = ended else { panic!() };
    assert!(matches!(
        &report.ending,
        Ending::Failed { message } if message.contains("a bug in the host")
    ));
    assert_eq!(&*files.read("a.txt").unwrap(), b"kept", "the overlay still has the file");
    end(&journal, &report, false).await.unwrap();
    assert!(matches!(place.resume(&model, "r", &[]).await.0, Err(ResumeError::Ended(_))));
    let (_, job) = place.job();
    let (parts, request) = job.on(&place.host, &model, &settings);
    let report = wattle_agent::host::run(parts, &request, &|_: &Envelope| panic!("a bug")).await;
    assert!(matches!(report.ending, Ending::Failed { .. }));
    assert_eq!(answer(&place.run(&journal, &model, "next").await.0), "done");
}

#[tokio::test]
async fn two_processes_count_one_attempt_for_one_run() {
    let place = Place::new();
    let model = Crashing::at(0);
    crash(&place, &model, true).await;
    let (one, other) = (Crashing::at(usize::MAX), Crashing::at(usize::MAX));
    let (first, second) =
        tokio::join!(place.resume(&one, "r", &[]), place.resume(&other, "r", &[]));
    let refused = [&first.0, &second.0]
        .iter()
        .filter(|ended| matches!(ended, Err(ResumeError::Held(_))))
        .count();
    assert_eq!(refused, 1, "only one process drives the run");
    assert!(place.opened("r").await.attempts <= 2);
}
