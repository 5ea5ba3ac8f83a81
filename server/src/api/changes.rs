//! `GET /api/runs/stream`: reports changes in the tenant's runs as they happen.
//!
//! A client cannot resume a stream where it stopped. Each stream first sends `ready`, and then
//! every run that changes. A client therefore reads the list of runs after each `ready`. Each
//! stream reads the store at most five times a second, regardless of the number of changes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::response::sse::Event as Frame;
use axum::routing::get;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use wattle_agent::host::journal::RunFilter;
use wattle_agent::host::rt::MemoryCharge;
use wattle_agent::host::service::{RunStatus, RunView};
use wattle_agent::host::{Scope, StoreError, now_ms};

use super::runs::RunLine;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::route::Route;
use crate::state::Shared;
use crate::stream::frames;

/// Minimum interval between two reads of the store.
const PAUSE: Duration = Duration::from_millis(200);
/// Maximum interval between two reads of the store. A run that starts or ends on this server causes
/// an earlier read. New steps and changes by other processes are found only by the next regular
/// read.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of runs in one read.
const MAX_RUNS: u32 = 200;
/// Overlap of consecutive reads, in milliseconds: each read starts this long before the latest
/// known change. The overlap is needed because a change may be recorded some time after its
/// timestamp.
const OVERLAP_MS: u64 = 2_000;
/// Maximum duration of a stream. The client then reconnects, and its token is checked again.
const MAX_AGE: Duration = Duration::from_secs(600);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            "GET",
            "/api/runs/stream",
            Scope::Read,
            get(follow),
            "Follows the runs: sends each run that changes.",
        )
        .events::<RunChange, RunChange>(
            "The changes, from now on. The stream ends after 10 minutes.",
        ),
    ]
}

/// A message of the stream.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RunChange {
    /// The stream includes every later change, so a client that now reads the list of runs misses
    /// nothing. This message is also sent if too many runs changed to report each of them.
    Ready,
    /// A run is new or has changed.
    Run {
        /// The current state of the run.
        run: Box<RunLine>,
    },
}

/// The state of a stream.
struct Changes {
    shared: Arc<Shared>,
    caller: Caller,
    /// A receiver that is notified when a run begins or ends in this process.
    notices: watch::Receiver<()>,
    /// The time of the latest change, in milliseconds since 1970.
    newest: u64,
    /// The states of the runs that the last read returned.
    sent: HashMap<String, Sent>,
    ready: VecDeque<RunChange>,
    /// The memory charged for the changes in `ready`.
    held: Option<MemoryCharge>,
    looked: Instant,
    ends: Instant,
}

/// The part of a run's state that is compared to detect changes: its status, the time of its latest
/// change, and its number of steps.
type Sent = (RunStatus, u64, u32);

async fn follow(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Response, ApiError> {
    let mut notices = shared.service.changes();
    notices.mark_unchanged();
    let now = Instant::now();
    let mut changes = Changes {
        notices,
        newest: now_ms(),
        sent: HashMap::new(),
        ready: VecDeque::from([RunChange::Ready]),
        held: None,
        looked: now,
        ends: now + MAX_AGE,
        caller,
        shared: Arc::clone(&shared),
    };
    // The list that the client reads contains earlier changes, so they are not sent.
    changes.look().await?;
    changes.ready.truncate(1);
    let changes = stream::unfold(changes, |mut changes| async {
        let change = changes.next().await?;
        let text = serde_json::to_string(&change).unwrap_or_default();
        Some((Frame::default().data(text), changes))
    });
    Ok(frames(changes, shared.limits.heartbeat))
}

impl Changes {
    /// Returns the next change, or `None` at the end of the stream.
    async fn next(&mut self) -> Option<RunChange> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Some(change);
            }
            let stopping = self.shared.stopping.clone();
            tokio::select! {
                () = stopping.cancelled() => return None,
                () = sleep_until(self.ends) => return None,
                noticed = self.notices.changed() => noticed.ok()?,
                () = sleep_until(self.looked + PATIENCE) => {}
            }
            sleep_until(self.looked + PAUSE).await;
            self.notices.mark_unchanged();
            self.looked = Instant::now();
            if let Err(cause) = self.look().await {
                // The client reconnects.
                tracing::error!(%cause, "failed to look for changed runs");
                return None;
            }
        }
    }

    /// Reads the runs that changed since the last read and adds the changes to `ready`.
    async fn look(&mut self) -> Result<(), StoreError> {
        let filter = RunFilter {
            changed_since: Some(self.newest.saturating_sub(OVERLAP_MS)),
            limit: Some(MAX_RUNS),
            ..RunFilter::default()
        };
        let page = self.shared.service.page(&self.caller.store, filter).await?;
        let held = self.caller.memory.charge(page.bytes);
        // If there is no memory for the changes, the client must read the list of runs instead.
        let is_truncated = page.next.is_some() || held.is_err();
        self.held = held.ok();
        let found = page.runs;
        let newest = found.iter().map(|run| run.updated).fold(self.newest, u64::max);
        // If the clock was set back, later changes have earlier times.
        self.newest = newest.min(now_ms());
        let before = std::mem::take(&mut self.sent);
        for run in found.into_iter().rev() {
            let (id, state) = (run.id.clone(), state(&run));
            if before.get(&id) != Some(&state) && !is_truncated {
                self.ready.push_back(RunChange::Run { run: Box::new(RunLine::from(run)) });
            }
            self.sent.insert(id, state);
        }
        if is_truncated {
            self.ready.push_back(RunChange::Ready);
        }
        Ok(())
    }
}

fn state(run: &RunView) -> Sent {
    (run.status, run.updated, run.steps)
}
