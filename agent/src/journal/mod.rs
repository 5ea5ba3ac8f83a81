//! The journal of runs. It records everything that reaches a run from outside, before the run acts
//! on it.
//!
//! A run consists of its [`RunStart`], the [`Turn`]s of its state machine (inputs and effects), and
//! the [`RecordedCall`]s that its programs made to host functions. From these records, another
//! process can [resume] a stopped run, [replay] a run without a model or a network, and [fork] it
//! at any step.
//!
//! Events are recorded with the turn that emits them, so that a client can follow a run across
//! processes without missing any events.
//!
//! [`Journal`] is the port that a store implements.

mod approval;
mod budget;
mod calls;
mod durable;
mod fork;
mod locks;
mod recorder;
mod replay;
mod tape;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;
use wattle_machine::{Effect, Ending, Envelope, Input, Message, Setup, State, Usage, step};
use wattle_rt::tape::{CallId, CallResult};

pub(crate) use approval::record_answers;
pub use approval::{Approval, PendingApproval, waiting};
pub use calls::{CallView, calls};
pub use durable::{
    ParkedRun, ResumeError, ResumeOptions, RunOutcome, artifacts, conversation, end, new_id,
    resume, run,
};
pub(crate) use durable::{refuse, resume_locked};
pub use fork::{ForkError, fork};
pub use locks::lock_session;
pub(crate) use locks::{lock_name, lock_run};
pub(crate) use recorder::{ResumePoint, TurnRecorder};
pub use replay::{ReplayReport, replay};
pub use tape::Difference;
pub(crate) use tape::RunTape;
pub use turn::{RecordedAsk, RecordedEffect};

use crate::error::StoreError;
use crate::ledger::FinalSeal;
use crate::model::{FunctionChoice, ThinkingEffort};
use crate::settings::Settings;
use crate::tenant::Tenant;

/// The future of a journal operation.
pub type JournalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A journal of runs. Each operation is atomic, even if the process is killed during it. A journal
/// belongs to one tenant and contains no runs of other tenants.
pub trait Journal: Send + Sync {
    /// Returns the tenant that owns the runs.
    fn tenant(&self) -> &Tenant;

    /// Adds a run to the queue. The run is stored durably when this returns.
    fn enqueue(&self, run: QueuedRun) -> JournalFuture<'_, ()>;

    /// Returns the queued runs, in the order in which they were added.
    fn queued(&self) -> JournalFuture<'_, Vec<QueuedRun>>;

    /// Adds a new run, and removes it from the queue. The caller must hold the run's lock.
    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()>;

    /// Resets a run's number of attempts because its process deliberately stops driving it. The run
    /// stays open.
    fn pause(&self, run: &str) -> JournalFuture<'_, ()>;

    /// Counts an attempt to drive a run that is about to be resumed, and marks the run as open.
    /// Returns the number of attempts since the run's last turn. The count is durable when this
    /// returns, so that an attempt that crashes the process or the machine is counted.
    fn attempt(&self, run: &str) -> JournalFuture<'_, u32>;

    /// Parks a run, and adds `events`. With a reason, an operator has to release it; without one,
    /// it waits for approvals.
    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()>;

    /// Reopens a run that was parked with a reason, and resets its attempts. Returns false if there
    /// is no such run.
    fn release(&self, run: &str) -> JournalFuture<'_, bool>;

    /// Adds the next turn of a run and the events that the turn emits. Resets the run's number of
    /// attempts.
    fn turn(&self, run: &str, turn: Turn, events: Vec<Envelope>) -> JournalFuture<'_, ()>;

    /// Records calls, or the results of calls that were recorded before.
    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()>;

    /// Ends a run. In the same transaction, adds the messages of `end` and, if requested, the run's
    /// files to its session, and removes the state that its programs stored for this run only.
    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()>;

    /// Returns a run, or `None` if there is no such run.
    fn run(&self, run: &str) -> JournalFuture<'_, Option<RunRecord>>;

    /// Returns the runs that match the filter, newest first. Unreadable runs are logged and
    /// omitted.
    fn runs(&self, filter: RunFilter) -> JournalFuture<'_, Vec<RunRecord>>;

    /// Returns at most `limit` events of a run with numbers above `after`, in order.
    fn events(&self, run: &str, after: u64, limit: u32) -> JournalFuture<'_, Vec<Envelope>>;

    /// Returns the turns of a run, in order. Large file changes may be missing from them;
    /// [`files_of_tree`](Journal::files_of_tree) returns all file changes.
    fn turns(&self, run: &str) -> JournalFuture<'_, Vec<Turn>>;

    /// Returns the file changes recorded in the turns of a run and its descendants, in the order of
    /// recording. Each change is paired with the number of a turn of this run. For a change by a
    /// child run, this is the turn that receives the child's result.
    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>>;

    /// Returns the calls made by the programs that one turn started.
    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>>;

    /// Takes the lock with this name, such as the lock on a run or a session. Returns `None` if the
    /// lock is already taken. The lock is released when it is dropped, or when the process ends.
    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>>;
}

/// An exclusive lock on a name. It is released when this value is dropped.
pub struct Lock {
    #[expect(dead_code, reason = "only its drop matters")]
    held: Box<dyn std::any::Any + Send + Sync>,
    lost: CancellationToken,
}

impl QueuedRun {
    /// Creates a run of normal priority without a session or requirements.
    #[must_use]
    pub fn new(id: impl Into<String>, message: impl Into<String>, origin: Json) -> QueuedRun {
        QueuedRun {
            id: id.into(),
            session: None,
            made: crate::now_ms(),
            message: message.into(),
            origin,
            priority: Priority::default(),
            needs: String::new(),
        }
    }
}

impl Priority {
    /// All priorities, lowest first.
    const ALL: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

    /// Returns the number that represents the priority in stores. A higher number means a higher
    /// priority.
    pub(crate) fn number(self) -> i32 {
        match self {
            Priority::Low => -1,
            Priority::Normal => 0,
            Priority::High => 1,
        }
    }

    /// Returns the priority with this number.
    pub(crate) fn of_number(number: i32) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| priority.number() == number)
    }
}

impl Lock {
    /// Creates a lock that is released when `held` is dropped.
    pub fn new(held: impl std::any::Any + Send + Sync) -> Lock {
        Lock { held: Box::new(held), lost: CancellationToken::new() }
    }

    /// Makes the lock count as lost once the token is cancelled.
    pub(crate) fn lost_by(self, lost: CancellationToken) -> Lock {
        Lock { lost, ..self }
    }

    /// Waits until another process has taken over the lock, which can happen if this process was
    /// paused for too long. Never returns if no other process takes over the lock.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lock")
    }
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The run is being driven, or was being driven when its process stopped.
    Open,
    /// The run is waiting for a person to answer a pending approval, or to release the run after it
    /// repeatedly crashed its process.
    Parked,
    /// The run has ended.
    Ended,
}

impl Status {
    /// Returns the name of the status in stores and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Parked => "parked",
            Status::Ended => "ended",
        }
    }
}

/// A run in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The run's id, which is unguessable and sorts by creation time.
    pub id: String,
    /// The session that the run belongs to.
    pub session: Option<String>,
    /// The status of the run.
    pub status: Status,
    /// Start time of the run, in milliseconds since 1970.
    pub made: u64,
    /// Time of the last write to the run, in milliseconds since 1970.
    pub used: u64,
    /// Number of attempts to drive the run since its last turn.
    pub attempts: u32,
    /// The reason why an operator has to release the run, or `None` if it waits for approvals.
    pub reason: Option<String>,
    /// The result of the run, once it has ended.
    pub summary: Option<RunSummary>,
    /// The start of the run.
    pub start: RunStart,
}

/// A queued run, which has not started yet.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedRun {
    /// The run's id.
    pub id: String,
    /// The session that the run belongs to.
    pub session: Option<String>,
    /// Time of the request, in milliseconds since 1970.
    pub made: u64,
    /// The user's message.
    pub message: String,
    /// The caller's data for starting the run. The journal does not interpret it.
    pub origin: Json,
    /// The priority among the queued runs of the tenant.
    pub priority: Priority,
    /// The name of the requirement that a process must meet to drive the run. Empty if there is
    /// none.
    pub needs: String,
}

/// The priority of a queued run among the queued runs of its tenant. It does not affect other
/// tenants.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The run starts after all queued runs of a higher priority.
    Low,
    /// The default priority.
    #[default]
    Normal,
    /// The run starts before all queued runs of a lower priority.
    High,
}

/// A filter that selects runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The status of the runs.
    pub status: Option<Status>,
    /// The session that the runs belong to.
    pub session: Option<String>,
    /// The root run whose child runs are selected. If `None`, root runs are selected.
    pub tree_of: Option<String>,
    /// The last id of the previous page. The ids of the selected runs sort before it.
    pub before: Option<String>,
    /// Lower bound for the time of a run's last write, in milliseconds since 1970.
    pub changed_since: Option<u64>,
    /// Maximum number of runs to return.
    pub limit: Option<u32>,
}

impl RunFilter {
    /// Selects the runs with one status.
    #[must_use]
    pub fn status(status: Status) -> RunFilter {
        RunFilter { status: Some(status), ..RunFilter::default() }
    }
}

/// The data that is recorded at the end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnd {
    /// The messages to add to the run's session.
    pub turns: Vec<Message>,
    /// The last seal of the run's trace.
    pub sealed: Option<FinalSeal>,
    /// The result of the run.
    pub summary: Option<RunSummary>,
    /// If true, the files that the run changed are added to the session's files.
    pub keeps_files: bool,
}

/// A summary of an ended run, for lists of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Number of steps that ran calls.
    pub steps: u32,
    /// The run's model usage.
    pub usage: Usage,
    /// The ending of the run. Its text is the result.
    pub ending: Ending,
}

/// The start of a run: together with later inputs, it determines everything that the state machine
/// and the programs do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// The initial state of the state machine: limits, prompt, history.
    pub setup: Setup,
    /// The user's message.
    pub message: String,
    /// The agent's name in the trace.
    pub agent: String,
    /// The model's name.
    pub model: String,
    /// Maximum duration of the run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The sampling temperature.
    pub temperature: f32,
    /// Maximum number of tokens per answer.
    pub max_tokens: u32,
    /// The effort that the model spends on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_effort: Option<ThinkingEffort>,
    /// A setting that lets the model choose between calling functions and answering, or forces one
    /// of them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_call: FunctionChoice,
    /// Text that the deployment added to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<String>,
    /// The capabilities granted to the run's programs, in order.
    pub granted: Vec<String>,
    /// The versions of all capabilities.
    pub capabilities: BTreeMap<String, u32>,
    /// The folder to which the trace is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<PathBuf>,
    /// The run and the step that this run was forked from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<(String, u32)>,
    /// The run that started this run, if this is a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// The caller's data for recreating the run's grants. The journal does not interpret it.
    #[serde(default)]
    pub origin: Json,
}

impl RunStart {
    /// Creates the start of a run with default settings, without a model and without capabilities.
    #[must_use]
    pub fn new(message: impl Into<String>, origin: Json) -> RunStart {
        RunStart {
            setup: Setup::default(),
            message: message.into(),
            agent: Settings::default().agent,
            model: String::new(),
            timeout_ms: None,
            temperature: 0.0,
            max_tokens: 0,
            thinking_effort: None,
            tool_call: FunctionChoice::default(),
            preamble: None,
            granted: Vec::new(),
            capabilities: BTreeMap::new(),
            workdir: None,
            forked: None,
            parent: None,
            origin,
        }
    }
}

impl RunRecord {
    /// Creates an open run that starts now, at its first attempt, without a session.
    #[must_use]
    pub fn new(id: impl Into<String>, start: RunStart) -> RunRecord {
        let now = crate::now_ms();
        RunRecord {
            id: id.into(),
            session: None,
            status: Status::Open,
            made: now,
            used: now,
            attempts: 1,
            reason: None,
            summary: None,
            start,
        }
    }
}

/// The parent of a child run, and the root run of its tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRun {
    /// The id of the run that started the child run.
    pub run: String,
    /// The id of the root run, which a person or a client started.
    pub root: String,
}

/// A turn of a run: an input of its state machine, and the resulting effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Model usage by the run's programs since the previous turn.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: Usage,
    /// The input of the state machine.
    pub input: Input,
    /// The resulting effects.
    #[serde(rename = "done")]
    pub effects: Vec<RecordedEffect>,
    /// The sequence number of the next event.
    pub seq: u64,
    /// Duration of the run so far, in milliseconds.
    pub elapsed_ms: u64,
    /// Changes to the file overlay since the previous turn; see
    /// [`Files::take_delta`](wattle_capability::files::Files::take_delta).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
}

impl Turn {
    /// Applies the turn to a state.
    pub(crate) fn step(&self, state: State) -> (State, Vec<Effect>) {
        advance(state, self.spent, self.input.clone())
    }
}

/// Charges the usage of programs, then advances the state machine by one step.
pub(crate) fn advance(state: State, spent: Usage, input: Input) -> (State, Vec<Effect>) {
    let state = if is_nothing(&spent) { state } else { step(state, Input::Spent(spent)).0 };
    step(state, input)
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

fn is_default(choice: &FunctionChoice) -> bool {
    *choice == FunctionChoice::default()
}

/// A recorded call from a program to its host.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The turn that started the program, counted from 0.
    pub turn: u32,
    /// The index of the program among those that the turn started, counted from 0.
    pub program: u32,
    /// The call's position within the program and its nested programs.
    pub id: CallId,
    /// Number of consecutive calls with the same arguments and result that this record covers.
    pub times: u32,
    /// The result; `None` while the call is pending.
    pub result: Option<CallResult>,
    /// The time of the call; `None` if it was recorded by a version without times.
    pub time: Option<CallTime>,
}

/// The time of a recorded call. Replays do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// Start time of the first call that the record covers, in milliseconds since 1970.
    pub began: u64,
    /// Time from `began` to the end of the last call that the record covers, in milliseconds;
    /// `None` while it is pending.
    pub dur_ms: Option<u64>,
}

/// A journal shared by several runs.
pub type SharedJournal = Arc<dyn Journal>;
