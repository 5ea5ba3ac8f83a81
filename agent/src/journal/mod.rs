//! The journal of runs: everything that came to a run from outside, written down before anything is done about it.
//!
//! A run is its [`Opening`], the [`Turn`]s of its state machine (what it took in, and what it wanted done about that), and the [`Call`]s that
//! its programs made outside themselves. From these it can be [taken up](resume) by another process where one was stopped, [played
//! back](replay) with no model and no network, and [forked](fork) at any step.
//!
//! [`Journal`] is the port that a store implements.

mod durable;
mod fork;
mod replay;
mod tape;
mod track;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_machine::{Effect, Input, Message, Setup, State, Usage, step};
use wattle_rt::tape::{CallId, CallResult};

pub use durable::{
    Ended, Parked, PendingApproval, ResumeError, Resumed, conversation, end, hold_session, new_id, resume, run, waiting,
};
pub use fork::{ForkError, fork};
pub use replay::{Replayed, replay};
pub use tape::Difference;
pub(crate) use tape::RunTape;
pub(crate) use track::Track;
pub use turn::{Asked, Done};

use crate::StoreError;
use crate::ledger::Sealed;
use crate::store::Tenant;

/// What a journal will have done.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Keeps runs. Everything that one call writes is there as a whole or not at all, also where the process is killed in the middle of it.
/// A journal is one tenant's: a run of another tenant is not there.
pub trait Journal: Send + Sync {
    /// The tenant whose runs these are.
    fn tenant(&self) -> &Tenant;

    /// Begins a run, which the caller holds from then on.
    fn open(&self, run: Opened) -> Answer<'_, ()>;

    /// Counts an attempt to drive a run that is about to be resumed, and marks it open. Returns how many there are since its last turn. When
    /// it returns, the count is on the disk: a run that takes the process or the machine down with it has been counted.
    fn attempt(&self, run: &str) -> Answer<'_, u32>;

    /// Parks a run: until its questions are answered, or, with a reason, until an operator releases it.
    fn park(&self, run: &str, reason: Option<String>) -> Answer<'_, ()>;

    /// Opens a run that was parked with a reason, as if it had never been tried. Returns false if there is no such run.
    fn release(&self, run: &str) -> Answer<'_, bool>;

    /// Adds the next turn of a run. Attempts before it no longer count.
    fn turn(&self, run: &str, turn: Turn) -> Answer<'_, ()>;

    /// Adds calls, or what came of calls that were added before.
    fn calls(&self, run: &str, calls: Vec<Call>) -> Answer<'_, ()>;

    /// Ends a run. In the same step its `turns` are added to its session, and what programs kept for the run alone is dropped. `sealed` is
    /// what the last seal of its trace says.
    fn end(&self, run: &str, turns: Vec<Message>, sealed: Option<Sealed>) -> Answer<'_, ()>;

    /// One run, where there is such a one.
    fn run(&self, run: &str) -> Answer<'_, Option<Opened>>;

    /// The runs, the newest first; only those of that status if one is given. One that cannot be read is left out and logged.
    fn runs(&self, status: Option<Status>) -> Answer<'_, Vec<Opened>>;

    /// The turns of a run, in their order.
    fn turns(&self, run: &str) -> Answer<'_, Vec<Turn>>;

    /// The calls of the programs that one turn had run.
    fn calls_of(&self, run: &str, turn: u32) -> Answer<'_, Vec<Call>>;

    /// Takes hold of something that only one may work on at a time, such as a run or a session; `None` where somebody else does. The hold
    /// ends when it is dropped, and when the process is gone.
    fn hold(&self, name: &str) -> Answer<'_, Option<Hold>>;
}

/// Something that nobody else works on as long as this lives.
pub struct Hold(
    #[expect(dead_code, reason = "what counts is when it is dropped")] Box<dyn std::any::Any + Send + Sync>,
);

impl Hold {
    /// A hold that ends when `held` is dropped.
    pub fn new(held: impl std::any::Any + Send + Sync) -> Hold {
        Hold(Box::new(held))
    }
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hold")
    }
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is under way, or was when its process was stopped.
    Open,
    /// It waits for what a person has to say: answers to its questions, or, after it ended its process twice, its release.
    Parked,
    /// It came to its end.
    Ended,
}

impl Status {
    /// The name that stores and people use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Parked => "parked",
            Status::Ended => "ended",
        }
    }
}

/// A run as it stands in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// Its id: sortable by time, unguessable.
    pub id: String,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// How it stands.
    pub status: Status,
    /// When it began, in milliseconds since 1970.
    pub made: u64,
    /// When something was written last.
    pub used: u64,
    /// How many times a process has begun to drive the run since its last turn.
    pub attempts: u32,
    /// Why an operator has to look at it, if that is why it is parked.
    pub reason: Option<String>,
    /// What it began with.
    pub opening: Opening,
}

/// What a run began with: all that its state machine and its programs are a function of, beside what came later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// What the state machine started from: bounds, prompt, history.
    pub setup: Setup,
    /// The user's message.
    pub message: String,
    /// The agent's name in the trace.
    pub agent: String,
    /// The model's name.
    pub model: String,
    /// The bound on its time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the model was asked with.
    pub temperature: f32,
    /// The most tokens of one answer.
    pub max_tokens: u32,
    /// What the deployment added to the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preamble: Option<String>,
    /// The capabilities that its programs were granted, in that order.
    pub granted: Vec<String>,
    /// The versions of all capabilities.
    pub capabilities: BTreeMap<String, u32>,
    /// Where its trace is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<PathBuf>,
    /// The run that it was forked from, and at which step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<(String, u32)>,
    /// What whoever started it needs to grant the same to it once more; the journal does not look into it.
    #[serde(default)]
    pub origin: Json,
}

/// One turn of a run: what its state machine took in, and what it wanted done about that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What programs of the run had used of the model since the turn before.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: Usage,
    /// What happened.
    pub input: Input,
    /// What was to be done.
    pub done: Vec<Done>,
    /// The number of the next event.
    pub seq: u64,
    /// How long the run had taken, in milliseconds.
    pub elapsed_ms: u64,
    /// What changed in the overlay of files since the turn before; see [`Files::changed`](wattle_capability::files::Files::changed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<String>,
}

impl Turn {
    /// Takes the turn's step of the state machine.
    pub(crate) fn step(&self, state: State) -> (State, Vec<Effect>) {
        advance(state, self.spent, self.input.clone())
    }
}

/// One step of the state machine, after what programs had spent is taken into account.
pub(crate) fn advance(state: State, spent: Usage, input: Input) -> (State, Vec<Effect>) {
    let state = if is_nothing(&spent) { state } else { step(state, Input::Spent(spent)).0 };
    step(state, input)
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// A call that a program made outside itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The turn whose effect the program is, counted from 0.
    pub turn: u32,
    /// The program among those of the turn, counted from 0.
    pub program: u32,
    /// Which call of the program, and of those that it started.
    pub mark: CallId,
    /// How many calls in a row it stands for, which asked the same and got the same.
    pub times: u32,
    /// What came of it; `None` as long as it is under way.
    pub came: Option<CallResult>,
}

/// A journal that several runs share.
pub type SharedJournal = Arc<dyn Journal>;
