//! The journal of runs that this process hands over when it stops.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wattle_machine::Envelope;
use wattle_store::{Tenant, TenantStore};

use super::isolation::Pass;
use crate::journal::{
    Journal, JournalFuture, Lock, RecordedCall, RunEnd, RunFilter, RunRecord, RunRequest,
    SharedJournal, Turn,
};

/// A journal that stops its run at the next turn once the service starts to hand over its runs. A
/// turn is recorded before its effects are performed, so the process that takes over the run
/// performs each effect once.
///
/// At each turn, the run also takes a new pass, so that a suspected run can be isolated.
struct Handover {
    store: TenantStore,
    pass: Arc<Pass>,
    /// A token that is cancelled when the service starts to hand over its runs.
    begins: CancellationToken,
    /// A token that is cancelled once the run has reached its next turn.
    reached: CancellationToken,
}

/// Returns the journal of a run that is handed over once `begins` is cancelled. At the run's next
/// turn, the journal cancels `reached`, and the call that records the turn never returns.
pub(super) fn journal(
    store: &TenantStore,
    pass: &Arc<Pass>,
    begins: &CancellationToken,
    reached: &CancellationToken,
) -> SharedJournal {
    let (store, begins, reached) = (store.clone(), begins.clone(), reached.clone());
    Arc::new(Handover { store, pass: Arc::clone(pass), begins, reached })
}

impl Journal for Handover {
    fn tenant(&self) -> &Tenant {
        self.store.tenant()
    }

    fn turn(
        &self,
        run: &str,
        turn: Turn,
        calls: Vec<RecordedCall>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        let recorded = self.store.turn(run, turn, calls, events);
        Box::pin(async {
            recorded.await?;
            if self.begins.is_cancelled() {
                self.reached.cancel();
                std::future::pending::<()>().await;
            }
            self.pass.share().await;
            Ok(())
        })
    }

    fn enqueue(&self, run: RunRequest) -> JournalFuture<'_, ()> {
        self.store.enqueue(run)
    }

    fn queued(&self) -> JournalFuture<'_, Vec<RunRequest>> {
        self.store.queued()
    }

    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()> {
        self.store.open(run)
    }

    fn pause(&self, run: &str) -> JournalFuture<'_, ()> {
        self.store.pause(run)
    }

    fn attempt(&self, run: &str) -> JournalFuture<'_, u32> {
        self.store.attempt(run)
    }

    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        self.store.park(run, reason, events)
    }

    fn release(&self, run: &str) -> JournalFuture<'_, bool> {
        self.store.release(run)
    }

    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        self.store.calls(run, calls)
    }

    fn durable_calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        self.store.durable_calls(run, calls)
    }

    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()> {
        self.store.end(run, end)
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

    fn last_turn(&self, run: &str) -> JournalFuture<'_, Option<(u32, Turn)>> {
        self.store.last_turn(run)
    }

    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>> {
        self.store.files_of_tree(run)
    }

    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>> {
        self.store.calls_of(run, turn)
    }

    fn fork_state(&self, of: (&str, u32), fork: &str) -> JournalFuture<'_, bool> {
        self.store.fork_state(of, fork)
    }

    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>> {
        self.store.lock(name)
    }
}
