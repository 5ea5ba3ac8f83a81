//! Tests processes that stop before or after any write to the journal. Another process resumes the
//! run, and no effect is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wattle_agent::Tenant;
use wattle_agent::host::TenantStore;
use wattle_agent::host::journal::{
    Journal, JournalFuture, Lock, RecordedCall, ResumeError, RunEnd, RunFilter, RunOutcome,
    RunRecord, RunRequest, SharedJournal, Status, Turn, end,
};
use wattle_agent::host::machine::Envelope;

use super::place::{ByTurn, Place, answer, done, observations, status, wat};

/// A journal that simulates the end of its process at a given write: that write never returns.
pub(crate) struct Stopping {
    store: TenantStore,
    left: AtomicUsize,
    /// If true, the write is performed before the process stops.
    written: bool,
    /// A function that is called after each write that a crash of the machine must not lose.
    after_durable: Box<dyn Fn() + Send + Sync>,
    pub(crate) stopped: tokio::sync::Notify,
}

impl Stopping {
    /// Creates the journal of a process that is stopped at the given write.
    pub(crate) fn at(store: &TenantStore, write: usize, written: bool) -> Arc<Stopping> {
        Stopping::observed(store, (write, written), Box::new(|| {}))
    }

    /// Creates a journal like [`Stopping::at`]. It calls `after_durable` after each write that a
    /// crash of the machine must not lose.
    pub(crate) fn observed(
        store: &TenantStore,
        (write, written): (usize, bool),
        after_durable: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Stopping> {
        Arc::new(Stopping {
            store: store.clone(),
            left: AtomicUsize::new(write),
            written,
            after_durable,
            stopped: tokio::sync::Notify::new(),
        })
    }

    async fn pass<T>(
        &self,
        write: JournalFuture<'_, T>,
    ) -> Result<T, wattle_agent::host::StoreError> {
        if self.left.fetch_sub(1, Ordering::SeqCst) > 1 {
            return write.await;
        }
        if self.written {
            drop(write.await);
        }
        self.stopped.notify_one();
        std::future::pending().await
    }
}

impl Stopping {
    async fn pass_durable<T: Send>(
        &self,
        write: JournalFuture<'_, T>,
    ) -> Result<T, wattle_agent::host::StoreError> {
        let written = async {
            let written = write.await;
            (self.after_durable)();
            written
        };
        self.pass(Box::pin(written)).await
    }
}

impl Journal for Stopping {
    fn tenant(&self) -> &Tenant {
        self.store.tenant()
    }
    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()> {
        Box::pin(self.pass(self.store.open(run)))
    }
    fn enqueue(&self, run: RunRequest) -> JournalFuture<'_, ()> {
        Box::pin(self.pass_durable(self.store.enqueue(run)))
    }
    fn queued(&self) -> JournalFuture<'_, Vec<RunRequest>> {
        self.store.queued()
    }
    fn pause(&self, run: &str) -> JournalFuture<'_, ()> {
        Box::pin(self.pass(self.store.pause(run)))
    }
    fn turn(
        &self,
        run: &str,
        turn: Turn,
        calls: Vec<RecordedCall>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        Box::pin(self.pass(self.store.turn(run, turn, calls, events)))
    }
    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        Box::pin(self.pass(self.store.calls(run, calls)))
    }
    fn durable_calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        Box::pin(self.pass_durable(self.store.durable_calls(run, calls)))
    }
    fn attempt(&self, run: &str) -> JournalFuture<'_, u32> {
        Box::pin(self.pass_durable(self.store.attempt(run)))
    }
    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        Box::pin(self.pass_durable(self.store.park(run, reason, events)))
    }
    fn fork_state(&self, of: (&str, u32), fork: &str) -> JournalFuture<'_, bool> {
        Box::pin(self.pass(self.store.fork_state(of, fork)))
    }
    fn release(&self, run: &str) -> JournalFuture<'_, bool> {
        Box::pin(self.pass(self.store.release(run)))
    }
    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()> {
        Box::pin(self.pass(self.store.end(run, end)))
    }
    fn run(&self, run: &str) -> JournalFuture<'_, Option<RunRecord>> {
        self.store.run(run)
    }
    fn runs(&self, filter: RunFilter) -> JournalFuture<'_, Vec<RunRecord>> {
        self.store.runs(filter)
    }
    fn events(&self, run: &str, after: u64, limit: u32) -> JournalFuture<'_, Vec<Envelope>> {
        self.store.events(run, after, limit)
    }
    fn turns(&self, run: &str) -> JournalFuture<'_, Vec<Turn>> {
        self.store.turns(run)
    }
    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>> {
        self.store.files_of_tree(run)
    }
    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>> {
        self.store.calls_of(run, turn)
    }
    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>> {
        self.store.lock(name)
    }
}

fn script() -> Vec<String> {
    vec![
        wat(r#"(kv.set? "k" "v")
(fs.append? "log.txt" "one\n")
(resv (str.from_int (kv.incr? "n" 1)))
(resv (http.post? "https://a.example/form" "a" ""))
(fs.append? "log.txt" "two\n")"#),
        wat(r#"(fs.append? "log.txt" "three\n")
(each $r (par.run? (arr.from_json? """[["file_write","p.txt","p"],["file_read","log.txt"]]""")) (out $r))
(resv (str.from_int (kv.incr? "m" 1)))"#),
        wat(r#"(resv (fs.read? "log.txt"))
(resv (http.get? "https://a.example/page"))"#),
        done(),
    ]
}

#[tokio::test]
#[allow(clippy::print_stdout, reason = "how many moments there are is what the test is worth")]
async fn a_run_that_is_stopped_at_any_write_is_resumed() {
    let first = Place::new();
    let model = ByTurn(script());
    let (mut unknown, mut moments) = (0, 0);
    for written in [false, true] {
        for write in 1.. {
            let place = first.another();
            let stopping = Stopping::at(&place.store, write, written);
            let journal: SharedJournal = Arc::<Stopping>::clone(&stopping);
            let ran = async {
                let (ended, _) = place.run(&journal, &model, "r").await;
                if let RunOutcome::Done(report) = &ended {
                    end(&journal, report, false).await.unwrap();
                }
            };
            let over = tokio::select! {
                () = ran => true,
                () = stopping.stopped.notified() => false,
            };
            if over {
                break;
            }
            moments += 1;
            let Some(run) = place.store.run("r").await.unwrap() else {
                assert_eq!(
                    (write, written),
                    (1, false),
                    "only before the first write nothing is there"
                );
                continue;
            };
            if run.status == Status::Ended {
                continue;
            }
            let (ended, files) = place.resume(&model, "r", &[]).await;
            let ended = ended.unwrap();
            assert_eq!(answer(&ended), "done", "write {write}");
            let RunOutcome::Done(report) = ended else { panic!() };
            end(&place.journal(), &report, false).await.unwrap();

            let observations = observations(&place, "r").await;
            let lost =
                observations.iter().filter(|text| text.contains("outcome unknown: ")).count();
            unknown += lost;
            for what in ["n", "m"] {
                assert_eq!(
                    place.value(what).await.as_deref(),
                    Some("1"),
                    "{what} at write {write}"
                );
            }
            assert!(
                place.network.made("POST https://a.example/form") <= 1,
                "posted twice at write {write}"
            );
            let log = String::from_utf8(files.read("log.txt").unwrap().to_vec()).unwrap();
            if lost == 0 {
                assert_eq!(log, "one\ntwo\nthree\n", "write {write}, written {written}");
                assert_eq!(observations[2].lines().nth(1), Some("one"), "{observations:?}");
            }
            assert!(
                ["one", "two", "three"].iter().all(|line| log.matches(line).count() <= 1),
                "{log}"
            );
            let steps: Vec<u64> =
                place.steps().iter().map(|line| line["step"].as_u64().unwrap()).collect();
            assert_eq!(steps, [1, 2, 3], "each step is in the trace once, write {write}");
            assert_eq!(place.replay("r").await.difference, None, "write {write}");
            assert_eq!(status(&place, "r").await, Status::Ended);
            assert!(matches!(place.resume(&model, "r", &[]).await.0, Err(ResumeError::Ended(_))));
            assert_eq!(
                place.store.history("s", None).await.unwrap().messages.len(),
                8,
                "the session has the run once"
            );
        }
    }
    assert!(moments > 20, "{moments}");
    println!(
        "stopped at {moments} moments; {unknown} effects were under way, and the model was \
         informed"
    );
}

#[tokio::test]
async fn two_processes_never_work_on_one_run() {
    let place = Place::new();
    let journal = place.journal();
    let hold = journal.lock("run:r").await.unwrap().unwrap();
    assert!(journal.lock("run:r").await.unwrap().is_none());
    assert!(journal.lock("run:other").await.unwrap().is_some());
    assert!(matches!(
        place.resume(&ByTurn(Vec::new()), "r", &[]).await.0,
        Err(ResumeError::Held(_))
    ));
    drop(hold);
    assert!(journal.lock("run:r").await.unwrap().is_some());
}
