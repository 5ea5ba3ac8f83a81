//! The journal of runs: it records everything that reaches a run from outside, before the run acts
//! on it.
//!
//! A run consists of its [`RunStart`], the [`Turn`]s of its state machine (inputs and effects), and
//! the [`RecordedCall`]s that its programs made to the outside. From these records, another process
//! can [resume] a stopped run, [replay] a run without model and network, and
//! [fork] it at any step.
//!
//! Events are recorded with the turn that emits them, so that a client can follow a run across
//! processes without missing one.
//!
//! [`Journal`] is the port that a store implements.

mod approval;
mod budget;
mod calls;
mod durable;
mod fork;
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
use wattle_machine::{Effect, Ending, Envelope, Input, Message, Setup, State, Usage, step};
use wattle_rt::tape::{CallId, CallResult};

pub(crate) use approval::record_answers;
pub use approval::{Approval, PendingApproval, waiting};
pub use calls::{CallView, calls};
pub use durable::{
    ParkedRun, ResumeError, ResumeOptions, RunOutcome, artifacts, conversation, end, lock_session,
    new_id, resume, run,
};
pub(crate) use durable::{lock_run, refuse};
pub use fork::{ForkError, fork};
pub(crate) use recorder::{ResumePoint, TurnRecorder};
pub use replay::{ReplayReport, replay};
pub use tape::Difference;
pub(crate) use tape::RunTape;
pub use turn::{RecordedAsk, RecordedEffect};

use crate::error::StoreError;
use crate::ledger::FinalSeal;
use crate::model::{FunctionChoice, ThinkingEffort};
use crate::tenant::Tenant;

/// The future of a journal operation.
pub type JournalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A journal of runs. Each operation is atomic, even if the process is killed during it. A journal
/// belongs to one tenant and contains no runs of other tenants.
pub trait Journal: Send + Sync {
    /// Returns the tenant that owns the runs.
    fn tenant(&self) -> &Tenant;

    /// Adds a run to the queue. It is durable when this returns.
    fn enqueue(&self, run: QueuedRun) -> JournalFuture<'_, ()>;

    /// Returns the queued runs, oldest first.
    fn queued(&self) -> JournalFuture<'_, Vec<QueuedRun>>;

    /// Adds a new run, and removes it from the queue. The caller holds the run's lock.
    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()>;

    /// Resets the attempts of a run that its process stops driving in good order. The run stays
    /// open.
    fn pause(&self, run: &str) -> JournalFuture<'_, ()>;

    /// Counts an attempt to drive a run that is about to be resumed, and marks the run as open.
    /// Returns the number of attempts since its last turn. The count is durable when this returns,
    /// so that an attempt that crashes the process or the machine is counted.
    fn attempt(&self, run: &str) -> JournalFuture<'_, u32>;

    /// Parks a run, and adds `events`. With a reason, an operator has to release it; without one,
    /// it waits for approvals.
    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()>;

    /// Opens a run that was parked with a reason, and resets its attempts. Returns false if there
    /// is no such run.
    fn release(&self, run: &str) -> JournalFuture<'_, bool>;

    /// Adds the next turn of a run with the events that it emits, and resets its attempts.
    fn turn(&self, run: &str, turn: Turn, events: Vec<Envelope>) -> JournalFuture<'_, ()>;

    /// Adds calls, or the results of calls that were added before.
    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()>;

    /// Ends a run. In the same transaction, the turns and the files of `end` are added to its
    /// session, and the state that its programs stored for the run alone is dropped.
    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()>;

    /// Returns a run, or `None` if there is no such run.
    fn run(&self, run: &str) -> JournalFuture<'_, Option<RunRecord>>;

    /// Returns the runs that match the filter, newest first. An unreadable run is logged and left
    /// out.
    fn runs(&self, filter: RunFilter) -> JournalFuture<'_, Vec<RunRecord>>;

    /// Returns at most `limit` events of a run with numbers above `after`, in order.
    fn events(&self, run: &str, after: u64, limit: u32) -> JournalFuture<'_, Vec<Envelope>>;

    /// Returns the turns of a run, in order.
    fn turns(&self, run: &str) -> JournalFuture<'_, Vec<Turn>>;

    /// Returns the changes to the files that the turns of a run and of the child runs in its tree
    /// have, in the order in which they were recorded. Each has the number of a turn of the run: its
    /// own, or for a child run the next one, whose input is the result of what the child run did.
    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>>;

    /// Returns the calls of the programs that one turn started.
    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>>;

    /// Locks a name, such as that of a run or a session. Returns `None` if the name is already
    /// locked. The lock ends when it is dropped, or when the process ends.
    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>>;
}

/// An exclusive lock of a name. It is released when this is dropped.
pub struct Lock(
    #[expect(dead_code, reason = "only its drop matters")] Box<dyn std::any::Any + Send + Sync>,
);

impl Lock {
    /// Creates a lock that is released when `held` is dropped.
    pub fn new(held: impl std::any::Any + Send + Sync) -> Lock {
        Lock(Box::new(held))
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
    /// The run is being driven, or was when its process stopped.
    Open,
    /// The run waits for a person: for approvals, or, after it ended its process repeatedly, for
    /// its release.
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
    /// The run's id: sortable by time, unguessable.
    pub id: String,
    /// The session that the run belongs to.
    pub session: Option<String>,
    /// The status of the run.
    pub status: Status,
    /// Start of the run, in milliseconds since 1970.
    pub made: u64,
    /// Last write to the run, in milliseconds since 1970.
    pub used: u64,
    /// Number of attempts to drive the run since its last turn.
    pub attempts: u32,
    /// The reason why an operator has to release the run, if it is parked for that.
    pub reason: Option<String>,
    /// The result of the run, once it has ended.
    pub summary: Option<RunSummary>,
    /// The start of the run.
    pub start: RunStart,
}

/// A run that waits for its turn.
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
    /// Data from which the caller can create the run's parts. The journal does not interpret it.
    pub origin: Json,
}

/// A selection of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs with this status.
    pub status: Option<Status>,
    /// Only runs of this session.
    pub session: Option<String>,
    /// Only the child runs in the tree of this run. Without it, no child runs.
    pub tree_of: Option<String>,
    /// Only runs whose id sorts before this one: the last id of the previous page.
    pub before: Option<String>,
    /// Only runs that were written to at this time or later, in milliseconds since 1970.
    pub changed_since: Option<u64>,
    /// Maximum number of runs.
    pub limit: Option<u32>,
}

impl RunFilter {
    /// Selects the runs with one status.
    #[must_use]
    pub fn status(status: Status) -> RunFilter {
        RunFilter { status: Some(status), ..RunFilter::default() }
    }
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnd {
    /// The messages that are added to the run's session.
    pub turns: Vec<Message>,
    /// The last seal of the run's trace.
    pub sealed: Option<FinalSeal>,
    /// The result of the run.
    pub summary: Option<RunSummary>,
    /// If true, the files that the run changed are added to its session's files.
    pub keeps_files: bool,
}

/// The result of a run, for lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Number of steps that ran calls.
    pub steps: u32,
    /// Model usage of the run.
    pub usage: Usage,
    /// The ending. Its text is the result.
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
    /// Maximum number of tokens of one answer.
    pub max_tokens: u32,
    /// The effort that the model spends on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_effort: Option<ThinkingEffort>,
    /// The choice between functions and an answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_call: FunctionChoice,
    /// Text that the deployment added to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<String>,
    /// The capabilities that its programs were granted, in order.
    pub granted: Vec<String>,
    /// The versions of all capabilities.
    pub capabilities: BTreeMap<String, u32>,
    /// The folder in which the trace is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<PathBuf>,
    /// The run and the step at which this run was forked, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<(String, u32)>,
    /// The run that started this one, if it is a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// Data from which the caller can recreate the run's grants. The journal does not interpret it.
    #[serde(default)]
    pub origin: Json,
}

/// The runs above a child run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRun {
    /// The id of the run that started it.
    pub run: String,
    /// The id of the run that a person or a client started.
    pub root: String,
}

/// A turn of a run: an input of its state machine, and the resulting effects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Model usage of the run's programs since the previous turn.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: Usage,
    /// The input of the state machine.
    pub input: Input,
    /// The resulting effects.
    #[serde(rename = "done")]
    pub effects: Vec<RecordedEffect>,
    /// The number of the next event.
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

/// A recorded call that a program made to the outside.
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

/// The time of a recorded call. No replay depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// Start of the first call that the record covers, in milliseconds since 1970.
    pub began: u64,
    /// Time from there to the end of the last of them, in milliseconds; `None` while it is pending.
    pub dur_ms: Option<u64>,
}

/// A journal that several runs share.
pub type SharedJournal = Arc<dyn Journal>;
