//! The client-facing view of runs.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_machine::{Ending, Envelope, Event, Stop, Usage};
use wattle_store::{StoreError, TenantStore};

use super::RunService;
use super::child::{self, Pending};
use crate::journal::{Journal as _, PendingApproval, RunFilter, RunRecord, RunRequest, Status};

/// The status of a run as clients see it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run is queued and has not started yet.
    Queued,
    /// The run is active, or will resume when its process restarts.
    Running,
    /// The run is waiting for a person to approve or deny a call, or to release the run.
    Parked,
    /// The model gave its answer.
    Done,
    /// The model or the host failed, or the answer does not match its schema.
    Failed,
    /// The run was cancelled.
    Cancelled,
    /// Moderation blocked the message.
    Blocked,
    /// The run reached a limit.
    Stopped,
}

impl RunStatus {
    /// Returns true if the run has ended.
    #[must_use]
    pub fn has_ended(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running | RunStatus::Parked)
    }

    /// Returns the name of the status, such as `done`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Parked => "parked",
            RunStatus::Done => "done",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Blocked => "blocked",
            RunStatus::Stopped => "stopped",
        }
    }

    pub(super) fn of(ending: &Ending) -> RunStatus {
        match ending {
            Ending::Answered { .. } => RunStatus::Done,
            Ending::Exhausted { .. } => RunStatus::Stopped,
            Ending::Invalid { .. } => RunStatus::Failed,
            Ending::Blocked { .. } => RunStatus::Blocked,
            Ending::Cancelled { .. } => RunStatus::Cancelled,
            Ending::Failed { .. } => RunStatus::Failed,
        }
    }
}

/// A run as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    /// The run's id.
    pub id: String,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// The status.
    pub status: RunStatus,
    /// The user's message.
    pub prompt: String,
    /// The model's name. Empty before the run begins.
    pub model: String,
    /// The agent's name. Empty before the run begins.
    pub agent: String,
    /// Start time of the run, or request time of a queued run, in milliseconds since 1970.
    pub created: u64,
    /// Time of the latest write to the run, in milliseconds since 1970.
    pub updated: u64,
    /// Number of steps in which calls were executed.
    pub steps: u32,
    /// The answer or the error message, or `None` before the run has ended.
    pub result: Option<String>,
    /// The JSON value in the answer, or `None` if the run has no output schema or no valid answer.
    pub data: Option<Json>,
    /// The violations of the output schema. Empty if there are none.
    pub errors: Vec<String>,
    /// The reason why the run ended, or `None` if the run has failed or has not ended.
    pub stop: Option<Stop>,
    /// Model usage. Zero before the run has ended.
    pub usage: Usage,
    /// The pending approvals of a parked run.
    pub waiting: Vec<PendingApproval>,
    /// The reason why an operator must release the run, or `None` if no release is needed.
    pub reason: Option<String>,
    /// The failure because of which the run waits for the model's provider, or `None` if it does not
    /// wait for it. Only the process that drives the run knows it.
    pub provider_failure: Option<String>,
    /// The run and the step that this run was forked from, or `None` if it is not a fork.
    pub forked: Option<(String, u32)>,
    /// The run that started this run, or `None` if this is not a child run.
    pub parent: Option<String>,
}

impl RunView {
    /// Returns the approximate size of the run's texts, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let result = self.result.as_ref().map_or(0, String::len);
        // `data` is about as large as the result from which it was parsed.
        let data = if self.data.is_some() { result } else { 0 };
        self.prompt.len().saturating_add(result).saturating_add(data)
    }
}

/// A page of a list of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPage {
    /// The runs, newest first.
    pub runs: Vec<RunView>,
    /// The value of [`RunFilter::before`] for the next page, or `None` if this is the last page.
    pub next: Option<String>,
    /// Total size of the runs' texts, in bytes.
    pub bytes: usize,
}

/// Total size of a page's texts, in bytes, at which no more runs are added to the page.
const PAGE_BYTES: usize = 4 << 20;
/// Maximum size of the records that are loaded at once for a page, in bytes. A larger record is
/// loaded alone.
const PART_BYTES: usize = 1 << 20;

impl RunPage {
    fn add(&mut self, run: RunView) {
        self.bytes = self.bytes.saturating_add(run.bytes());
        self.runs.push(run);
    }

    fn is_full(&self, limit: usize) -> bool {
        self.runs.len() > limit || self.bytes >= PAGE_BYTES
    }

    /// Returns the number of runs that may still be added to the page. It includes one run beyond
    /// `limit`, which shows that there is another page. Returns `None` if the number is not
    /// limited.
    fn missing(&self, limit: usize) -> Option<u32> {
        let missing = limit.saturating_sub(self.runs.len()).saturating_add(1);
        if limit == usize::MAX { None } else { u32::try_from(missing).ok() }
    }

    /// Truncates a full page to `limit` runs and sets its `next`.
    fn cut(mut self, limit: usize) -> RunPage {
        self.runs.truncate(limit);
        self.next = self.runs.last().map(|run| run.id.clone());
        self
    }
}

/// A program that a run used.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolUse {
    /// `wat` for inline programs, otherwise the catalog program's name.
    pub name: String,
    /// Number of calls to the program.
    pub calls: u32,
    /// Number of calls that failed.
    pub failed: u32,
    /// Total duration of the calls, in milliseconds.
    pub dur_ms: u64,
}

impl ToolUse {
    /// Returns the programs that a run used, as recorded in its events. They are ordered by the
    /// time at which their first call ended.
    #[must_use]
    pub fn of(events: &[Envelope]) -> Vec<ToolUse> {
        let (mut uses, mut started): (Vec<ToolUse>, Vec<(u32, u32, String)>) = Default::default();
        for envelope in events {
            match &envelope.event {
                Event::ToolStart { step, call, label, .. } => {
                    started.push((*step, *call, label.clone()));
                }
                Event::ToolResult { step, call, success, dur_ms, .. } => {
                    let name = started.iter().rev().find(|(s, c, _)| (s, c) == (step, call));
                    let name = name.map(|(.., name)| name.as_str()).unwrap_or_default();
                    let at = uses.iter().position(|used| used.name == name).unwrap_or_else(|| {
                        uses.push(ToolUse { name: name.to_owned(), ..ToolUse::default() });
                        uses.len() - 1
                    });
                    let Some(used) = uses.get_mut(at) else { continue };
                    used.calls = used.calls.saturating_add(1);
                    used.failed = used.failed.saturating_add(u32::from(!success));
                    used.dur_ms = used.dur_ms.saturating_add(*dur_ms);
                }
                _ => {}
            }
        }
        uses
    }
}

/// An artifact of a run, without its data.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArtifactLine {
    /// The name.
    pub name: String,
    /// The size of the data, in bytes.
    pub bytes: u64,
}

impl ArtifactLine {
    /// Returns the artifacts that a run's events record, in the order of their last changes.
    #[must_use]
    pub fn of(events: &[Envelope]) -> Vec<ArtifactLine> {
        let mut lines: Vec<ArtifactLine> = Vec::new();
        for envelope in events {
            if let Event::Artifact { name, bytes, .. } = &envelope.event {
                lines.retain(|line| line.name != *name);
                lines.push(ArtifactLine { name: name.clone(), bytes: *bytes });
            }
        }
        lines
    }
}

/// Returns a run, or `None` if there is no such run.
pub(super) async fn get(
    service: &RunService,
    store: &TenantStore,
    run: &str,
) -> Result<Option<RunView>, StoreError> {
    // A run leaves the queue when it begins, so the queue is read first.
    let queued = store.queued_run(run).await?;
    match (store.run(run).await?, queued) {
        (Some(record), _) => of_record(service, store, record).await.map(Some),
        (None, queued) => Ok(queued.map(of_queued)),
    }
}

/// Returns a page of the runs that match the filter, as clients see them.
pub(super) async fn page(
    service: &RunService,
    store: &TenantStore,
    filter: RunFilter,
) -> Result<RunPage, StoreError> {
    let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
    let mut page = RunPage::default();
    // One more run than requested shows that there is another page.
    let mut rest = RunFilter {
        limit: filter.limit.map(|limit| limit.saturating_add(1)),
        bytes: Some(PART_BYTES),
        ..filter
    };
    if rest.status.is_none() && rest.tree_of.is_none() {
        while let Some(queued) = store.queue_page(&rest).await? {
            let Some(last) = queued.last() else {
                rest.before = None;
                break;
            };
            rest.before = Some(last.id.clone());
            queued.into_iter().for_each(|run| page.add(of_queued(run)));
            if page.is_full(limit) {
                return Ok(page.cut(limit));
            }
            rest.limit = page.missing(limit);
        }
        // All queued runs precede all other runs.
        if !page.runs.is_empty() {
            rest.before = None;
        }
    }
    loop {
        let records = store.runs(rest.clone()).await?;
        let Some(last) = records.last() else { return Ok(page) };
        rest.before = Some(last.id.clone());
        for record in records {
            // The run may have left the queue in the meantime.
            page.runs.retain(|view| view.id != record.id);
            page.add(of_record(service, store, record).await?);
        }
        if page.is_full(limit) {
            return Ok(page.cut(limit));
        }
        rest.limit = page.missing(limit);
    }
}

fn of_queued(run: RunRequest) -> RunView {
    RunView {
        id: run.id,
        session_id: run.session,
        status: RunStatus::Queued,
        prompt: run.message,
        model: String::new(),
        agent: String::new(),
        created: run.created,
        updated: run.created,
        steps: 0,
        result: None,
        data: None,
        errors: Vec::new(),
        stop: None,
        usage: Usage::default(),
        waiting: Vec::new(),
        reason: None,
        provider_failure: None,
        forked: None,
        parent: None,
    }
}

async fn of_record(
    service: &RunService,
    store: &TenantStore,
    run: RunRecord,
) -> Result<RunView, StoreError> {
    let ending = run.summary.as_ref().map(|summary| &summary.ending);
    let live = service.live(store.tenant(), &run.id);
    let is_live = live.is_some();
    let status = match (run.status, ending) {
        (Status::Ended, Some(ending)) => RunStatus::of(ending),
        // The run was recorded by an older version.
        (Status::Ended, None) => RunStatus::Done,
        (Status::Parked, _) if !is_live => RunStatus::Parked,
        (Status::Open | Status::Parked, _) => RunStatus::Running,
    };
    let (waiting, reason) = if status == RunStatus::Parked && run.reason.is_none() {
        let Pending { approvals, reason } = child::pending(store, &run.id).await?;
        (approvals, reason)
    } else {
        (Vec::new(), run.reason)
    };
    let steps = match &run.summary {
        Some(summary) => summary.steps,
        None => store.steps(&run.id).await?,
    };
    Ok(RunView {
        result: ending.map(|ending| ending.text().to_owned()),
        data: ending.and_then(Ending::data).cloned(),
        errors: match ending {
            Some(Ending::Invalid { errors, .. }) => errors.clone(),
            _ => Vec::new(),
        },
        stop: ending.and_then(Ending::stop),
        usage: run.summary.as_ref().map(|summary| summary.usage).unwrap_or_default(),
        steps,
        id: run.id,
        session_id: run.session,
        status,
        prompt: run.start.message,
        model: run.start.model,
        agent: run.start.agent,
        created: run.created,
        updated: run.used,
        waiting,
        reason,
        provider_failure: live.and_then(|live| live.provider_failure()),
        forked: run.start.forked,
        parent: run.start.parent.map(|parent| parent.run),
    })
}
