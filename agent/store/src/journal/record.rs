//! The records of a run: its start, turns, calls and end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_machine::{
    Effect, Ending, FunctionChoice, Input, Message, Setup, State, Tally, ThinkingEffort, Usage,
    step,
};
use wattle_rt::tape::{CallId, CallResult};

use super::turn::RecordedEffect;
use crate::ledger::FinalSeal;

/// The name of the agent that a run has unless its request names one. It changes no settings.
pub const DEFAULT_AGENT: &str = "default";

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
    pub created: u64,
    /// Time of the last write to the run, in milliseconds since 1970.
    pub used: u64,
    /// Number of attempts to drive the run since its last turn.
    pub attempts: u32,
    /// The reason why an operator must release the run, or `None` if no release is needed.
    pub reason: Option<String>,
    /// The result of the run, or `None` if the run has not ended.
    pub summary: Option<RunSummary>,
    /// The data that was recorded at the start of the run.
    pub start: RunStart,
}

/// A request for a run, which a store keeps until the run starts.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRequest {
    /// The run's id, which is unguessable and sorts by creation time.
    pub id: String,
    /// The session that the run continues or starts.
    pub session: Option<String>,
    /// Time of the request, in milliseconds since 1970.
    pub created: u64,
    /// The user's message.
    pub message: String,
    /// Data from which the parts of the run are created, at the start of the run and each time it is
    /// resumed. The journal does not interpret it.
    pub origin: Json,
    /// The run's priority among the tenant's queued runs.
    pub priority: Priority,
    /// The name of the requirement that a process must meet to drive the run. Empty if there is
    /// none. The run service sets it.
    pub needs: String,
    /// If true, the run is cancelled when the process that queued it ends, instead of being resumed
    /// by another one, because its client is connected to that process and would request the run
    /// again. The caller cancels the run when its client disconnects.
    pub needs_client: bool,
}

impl RunRequest {
    /// Creates a request with a new id and normal priority, for a run of the default agent that
    /// belongs to no session.
    #[must_use]
    pub fn new(message: impl Into<String>) -> RunRequest {
        RunRequest {
            id: new_id(),
            session: None,
            created: crate::now_ms(),
            message: message.into(),
            origin: Json::Object(serde_json::Map::new()),
            priority: Priority::default(),
            needs: String::new(),
            needs_client: false,
        }
    }

    /// Returns the request of a run that has started.
    #[must_use]
    pub fn of_run(run: &RunRecord) -> RunRequest {
        RunRequest {
            id: run.id.clone(),
            session: run.session.clone(),
            created: run.created,
            message: run.start.message.clone(),
            origin: run.start.origin.clone(),
            priority: Priority::default(),
            needs: String::new(),
            needs_client: false,
        }
    }

    /// Returns the id of the session whose state the run uses. A run that belongs to no session uses
    /// the state of a session that exists only for that run.
    #[must_use]
    pub fn state_session(&self) -> String {
        self.session.clone().unwrap_or_else(|| own_session(&self.id))
    }
}

/// Returns the id of the session that stores a run's own state if the run has no session. Ids of
/// other sessions contain no `/`.
#[must_use]
pub fn own_session(run: &str) -> String {
    format!("run/{run}")
}

/// Creates a run id, which is unguessable and sorts by creation time.
#[must_use]
pub fn new_id() -> String {
    ulid::Ulid::generate().to_string()
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

impl Priority {
    /// All priorities, lowest first.
    const ALL: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

    /// Returns the number that represents the priority in stores. A higher number means a higher
    /// priority.
    pub fn number(self) -> i32 {
        match self {
            Priority::Low => -1,
            Priority::Normal => 0,
            Priority::High => 1,
        }
    }

    /// Returns the priority that a number represents in stores, or `None` if the number is unknown.
    pub fn of_number(number: i32) -> Option<Priority> {
        Priority::ALL.into_iter().find(|priority| priority.number() == number)
    }
}

/// A filter that selects runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The status of the runs to select.
    pub status: Option<Status>,
    /// The session of the runs to select.
    pub session: Option<String>,
    /// The id of the root run whose descendants are selected. If `None`, root runs are selected.
    pub tree_of: Option<String>,
    /// The id of the last run of the previous page. Only the runs that follow that run in the list
    /// are selected. If there is no such run, the runs whose ids sort before this id are selected.
    pub before: Option<String>,
    /// Lower bound for the time of a run's last write, in milliseconds since 1970.
    pub changed_since: Option<u64>,
    /// Maximum number of runs to return.
    pub limit: Option<u32>,
    /// Maximum total size of the returned runs in the store, in bytes. Runs that would exceed it
    /// are omitted, but the first run is always returned.
    pub bytes: Option<usize>,
}

impl RunFilter {
    /// Creates a filter that selects the runs with the given status.
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
    /// The run's final seal, or `None` if its trace is not sealed.
    pub sealed: Option<FinalSeal>,
    /// The result of the run.
    pub summary: Option<RunSummary>,
    /// The changes to files that the session keeps, or the run itself if it belongs to no session.
    pub files: KeptFiles,
}

/// The changes to files that a session keeps when one of its runs ends. A run that belongs to no
/// session keeps them in its [own session](own_session).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeptFiles {
    /// The session's files stay as they are.
    #[default]
    Nothing,
    /// The changes that the run made are added to the session's files.
    Added,
    /// The session's files up to the number `newest` are replaced, because some of the changes were
    /// applied to the workdir. See
    /// [`TenantStore::replace_session_files`](crate::TenantStore::replace_session_files).
    Replaced {
        /// The number of the newest delta that the run began with.
        newest: i64,
        /// The remaining changes, relative to an empty overlay, or `None` if there are none.
        delta: Option<String>,
    },
}

/// A summary of an ended run, for lists of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Number of steps in which calls were executed.
    pub steps: u32,
    /// The run's model usage.
    pub usage: Usage,
    /// The ending of the run. The text of the ending is the result.
    pub ending: Ending,
}

/// The data that is recorded at the start of a run. Together with later inputs, it determines
/// everything that the state machine and the programs do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// The initial state of the state machine: limits, prompt and history.
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
    /// The model's reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_effort: Option<ThinkingEffort>,
    /// The setting that allows, requires or forbids function calls in the model's answers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_call: FunctionChoice,
    /// Text that the deployment and the agent added to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<String>,
    /// The capabilities granted to the run's programs, in the order in which they were granted.
    pub granted: Vec<String>,
    /// The versions of all capabilities of the host, keyed by capability name.
    pub capabilities: BTreeMap<String, u32>,
    /// The id of the original run and the last step that both runs share, if this run is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<(String, u32)>,
    /// The run that started this run, if this is a child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentRun>,
    /// The engine that is the run's loop, or `None` if the loop is that of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineStart>,
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
            agent: DEFAULT_AGENT.to_owned(),
            model: String::new(),
            timeout_ms: None,
            temperature: 0.0,
            max_tokens: 0,
            thinking_effort: None,
            tool_call: FunctionChoice::default(),
            preamble: None,
            granted: Vec::new(),
            capabilities: BTreeMap::new(),
            forked: None,
            parent: None,
            engine: None,
            origin,
        }
    }
}

impl RunRecord {
    /// Creates the record of an open run that starts now, with one attempt and no session.
    #[must_use]
    pub fn new(id: impl Into<String>, start: RunStart) -> RunRecord {
        let now = crate::now_ms();
        RunRecord {
            id: id.into(),
            session: None,
            status: Status::Open,
            created: now,
            used: now,
            attempts: 1,
            reason: None,
            summary: None,
            start,
        }
    }
}

/// The engine of a run, and the start of its clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStart {
    /// The hash of the engine's binary.
    pub hash: String,
    /// The start time of the run's clock, in milliseconds since 1970.
    pub created: u64,
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
    pub effects: Vec<RecordedEffect>,
    /// The sequence number of the turn's first event. If the turn emits no events, this is the
    /// number of the next event.
    pub seq: u64,
    /// Duration of the run so far, in milliseconds.
    pub elapsed_ms: u64,
    /// Changes to the file overlay since the previous turn; see
    /// [`Files::take_delta`](wattle_capability::files::Files::take_delta).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
}

impl Turn {
    /// Applies the turn to a state. Returns the new state and the resulting effects.
    pub fn step(&self, state: State) -> (State, Vec<Effect>) {
        advance(state, self.spent, self.input.clone())
    }

    /// Adds the turn to the figures of a run whose loop is an engine.
    pub fn count(&self, tally: &mut Tally) {
        tally.input(self.spent, &self.input);
        for effect in &self.effects {
            if let RecordedEffect::Emit(event) = effect {
                tally.event(event);
            }
        }
        tally.end_turn();
    }
}

/// Charges the model usage by programs (`spent`) and then advances the state machine by one step.
pub fn advance(state: State, spent: Usage, input: Input) -> (State, Vec<Effect>) {
    let state = if is_nothing(&spent) { state } else { step(state, Input::Spent(spent)).0 };
    step(state, input)
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

fn is_default(choice: &FunctionChoice) -> bool {
    *choice == FunctionChoice::default()
}

/// A recorded call that a program made to a host function.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The turn that started the program, counted from 0.
    pub turn: u32,
    /// The index of the program among those that the turn started, counted from 0.
    pub program: u32,
    /// The identity of the call: its position within the program and its nested programs, its
    /// function and its arguments.
    pub id: CallId,
    /// Number of consecutive calls with the same arguments and result that this record covers.
    pub times: u32,
    /// The result; `None` while the call is pending.
    pub result: Option<CallResult>,
    /// The time of the call; `None` if the call was recorded by a version of Wattle that did not
    /// record times.
    pub time: Option<CallTime>,
}

/// The time of a recorded call. Replays do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTime {
    /// Start time of the first call that the record covers, in milliseconds since 1970.
    pub began: u64,
    /// Time from `began` to the end of the last call that the record covers, in milliseconds;
    /// `None` while that call is pending.
    pub dur_ms: Option<u64>,
}
