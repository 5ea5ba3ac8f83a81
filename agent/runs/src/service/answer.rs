//! Answers to the pending approvals of runs, and the resumption and release of parked runs.

use std::time::Duration;

use wattle_store::{StoreError, TenantStore, Topic};

use super::error::{AnswerError, StartError};
use super::{RunHandle, RunService, child};
use crate::cancel::Cancel;
use crate::journal::{self, Approval, Journal as _, Lock, RunRecord, Status};

/// Maximum number of attempts to lock a run that no process drives. Another request may hold the
/// lock for a moment, for example to record another answer.
const LOCK_ATTEMPTS: u32 = 20;
/// Delay between two attempts to lock a run.
const LOCK_DELAY: Duration = Duration::from_millis(50);

impl RunService {
    /// Answers a pending approval. The run is resumed once all of its pending approvals are
    /// answered. If it cannot be resumed now, for example because all slots are in use, a process
    /// that [looks after](RunService::look_after) the store resumes it later.
    ///
    /// # Errors
    /// If the run is unknown or is not waiting for this approval, or the store cannot be read or
    /// written.
    pub async fn answer(
        &self,
        store: &TenantStore,
        run: &str,
        call: &str,
        approval: Approval,
    ) -> Result<(), AnswerError> {
        let record = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        // The root run is resumed, and it resumes its child runs.
        let parent = record.start.parent.as_ref();
        let (run, call) = match parent {
            Some(parent) => (parent.root.as_str(), format!("{run}/{call}")),
            None => (run, call.to_owned()),
        };
        let answers = [(call, approval)];
        if parent.is_some() {
            child::unanswered(store, run, &answers).await?;
        }
        let is_waiting = |run: &RunRecord| match (run.status, &run.reason) {
            (Status::Parked, None) => Ok(()),
            (Status::Parked, Some(reason)) => Err(AnswerError::Parked(reason.clone())),
            // A child run is parked, and can be answered, before the runs above it are parked.
            (Status::Open, _) if parent.is_some() => Err(AnswerError::Held),
            (Status::Open | Status::Ended, _) => Err(AnswerError::NotAsked),
        };
        let idle = lock_idle(store, run, is_waiting).await?;
        match self.resume_idle(store, idle, &answers, false, &Cancel::new()).await {
            // The other approvals are answered later.
            Err(AnswerError::Pending(_)) => Ok(()),
            resumed => started(resumed),
        }
    }

    /// Records answers to the pending approvals of a stopped or parked run, and resumes the run in
    /// the background. If `release` is true, also releases the run and its child runs if they were
    /// parked because they repeatedly crashed their process. Cancelling `cancel` also cancels the
    /// run.
    ///
    /// # Errors
    /// If the run cannot be resumed. The error states the reason. The given answers are recorded
    /// even if other answers are missing, or if the run cannot be started now.
    pub async fn resume(
        &self,
        store: &TenantStore,
        run: &str,
        answers: &[(String, Approval)],
        release: bool,
        cancel: &Cancel,
    ) -> Result<RunHandle, AnswerError> {
        let is_stopped = |run: &RunRecord| match (run.status, &run.reason) {
            (Status::Ended, _) => Err(AnswerError::Ended),
            (Status::Parked, Some(reason)) if !release => Err(AnswerError::Parked(reason.clone())),
            _ => Ok(()),
        };
        let idle = lock_idle(store, run, is_stopped).await?;
        self.resume_idle(store, idle, answers, release, cancel).await
    }

    /// Releases and resumes a run that was parked because it or one of its child runs repeatedly
    /// crashed its process.
    ///
    /// # Errors
    /// If there is no such run, if neither the run nor a child run is waiting to be released, or if
    /// the store cannot be read or written.
    pub async fn release(&self, store: &TenantStore, run: &str) -> Result<(), AnswerError> {
        let is_parked = |run: &RunRecord| match run.status {
            Status::Parked => Ok(()),
            Status::Open | Status::Ended => Err(AnswerError::NotAsked),
        };
        let (lock, record) = lock_idle(store, run, is_parked).await?;
        if record.reason.is_none() && child::pending(store, run).await?.reason.is_none() {
            return Err(AnswerError::NotAsked);
        }
        started(self.resume_open_run(store, record, true, lock, &Cancel::new()).await)
    }

    /// Releases all runs of a tenant that were parked because they repeatedly ended their process.
    /// They are resumed in the background. Returns their ids.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn release_all(&self, store: &TenantStore) -> Result<Vec<String>, StoreError> {
        let released = store.release_all().await?;
        if !released.is_empty() {
            self.offer(store);
            let (service, store) = (self.clone(), store.clone());
            self.0.tasks.spawn(async move { service.resume_open(&store).await });
        }
        Ok(released)
    }

    /// Records answers to the pending approvals of a run and resumes the run once all approvals are
    /// answered. The run stays locked throughout, so that only the first of several answers to the
    /// same question is accepted.
    async fn resume_idle(
        &self,
        store: &TenantStore,
        (lock, record): (Lock, RunRecord),
        answers: &[(String, Approval)],
        release: bool,
        cancel: &Cancel,
    ) -> Result<RunHandle, AnswerError> {
        self.current_agent(store, &record.start.origin).await.map_err(AnswerError::Agent)?;
        if record.status == Status::Parked || !answers.is_empty() {
            if child::unanswered(store, &record.id, answers).await?.is_empty() {
                // The run is marked as open before its last answer is recorded. If this process
                // crashes in between, another one takes the run, and parks it again if the answer
                // is missing. In the other order, no process would take the run.
                store.reopen(&record.id).await?;
            }
            let pending = child::record(store, &record.id, answers).await?;
            if let Some(first) = pending.into_iter().next() {
                return Err(AnswerError::Pending(first));
            }
        }
        self.resume_open_run(store, record, release, lock, cancel).await
    }

    /// Drives a stopped or parked run in the background. First marks the run as open, so that a
    /// process drives it later if it cannot be driven now. If `release` is true, also releases the
    /// run and its child runs.
    async fn resume_open_run(
        &self,
        store: &TenantStore,
        run: RunRecord,
        release: bool,
        lock: Lock,
        cancel: &Cancel,
    ) -> Result<RunHandle, AnswerError> {
        if release {
            store.release(&run.id).await?;
        }
        store.reopen(&run.id).await?;
        if release {
            child::release_children(store, &run.id).await?;
        }
        let place = async {
            let slot = self.slot_of(store, 1).await?;
            self.place(store, run.session.as_deref(), slot).await
        };
        let place = match place.await {
            Ok(place) => place,
            Err(full) => {
                drop(lock);
                self.offer(store);
                return Err(full.into());
            }
        };
        Ok(self.drive_resumed(store.clone(), run, release, place, cancel, Some(lock)).await?)
    }

    /// Notifies all processes that serve the store that it may contain an open run that no process
    /// drives.
    fn offer(&self, store: &TenantStore) {
        self.0.queued.notify_one();
        store.file().wake(Topic::Queue);
    }

    /// Marks a root run as open if it is parked but no longer waits for anything, for example
    /// because a child run was cancelled while its approval was pending.
    pub(super) async fn reopen_root(&self, store: &TenantStore, root: &str) {
        let reopened = async {
            let is_waiting = |run: &RunRecord| match (run.status, &run.reason) {
                (Status::Parked, None) => Ok(()),
                _ => Err(AnswerError::NotAsked),
            };
            let (lock, _) = lock_idle(store, root, is_waiting).await?;
            if child::pending(store, root).await?.is_empty() {
                store.reopen(root).await?;
                drop(lock);
                self.offer(store);
            }
            Ok::<_, AnswerError>(())
        };
        match reopened.await {
            Ok(()) => {}
            // The root run is driven, has ended, or waits for an operator.
            Err(AnswerError::NotAsked | AnswerError::Unknown | AnswerError::Held) => {}
            Err(cause) => tracing::error!(run = root, %cause, "failed to reopen a parked run"),
        }
    }
}

/// Discards the run handle. Ignores the error if the run could not be started now, because a
/// process drives the open run later. Returns all other errors, including those of the store.
fn started(resumed: Result<RunHandle, AnswerError>) -> Result<(), AnswerError> {
    match resumed {
        Err(AnswerError::Start(StartError::Store(error))) => Err(error.into()),
        Err(AnswerError::Start(_)) => Ok(()),
        resumed => resumed.map(drop),
    }
}

/// Locks a run that no process drives. Returns the lock, and the run's record as read under the
/// lock. `check` decides whether the run is in the expected state. If it returns
/// [`AnswerError::Held`], the run is expected to reach that state soon, so it is checked again
/// after a delay.
async fn lock_idle(
    store: &TenantStore,
    run: &str,
    check: impl Fn(&RunRecord) -> Result<(), AnswerError>,
) -> Result<(Lock, RunRecord), AnswerError> {
    for attempt in 0..LOCK_ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(LOCK_DELAY).await;
        }
        let record = store.run(run).await?.ok_or(AnswerError::Unknown)?;
        match check(&record) {
            Ok(()) => {}
            Err(AnswerError::Held) => continue,
            Err(other) => return Err(other),
        }
        if let Some(lock) = journal::lock_run(store, run).await? {
            let record = store.run(run).await?.ok_or(AnswerError::Unknown)?;
            check(&record)?;
            return Ok((lock, record));
        }
    }
    Err(AnswerError::Held)
}
