//! Forks: new runs that share the history of another run up to a given step.

use std::ops::RangeInclusive;
use std::time::Duration;

use wattle_machine::{
    Dollars, Effect, Envelope, Input, Message, Role, Setup, State, Tally, Usage, step,
};
use wattle_store::StoreError;
use wattle_store::journal::{EffectRecorder, lock_run};

use super::{RecordedCall, RecordedEffect, RunEnd, RunRecord, RunStart, SharedJournal, Turn};
use crate::sink::Stamp;

/// The limits of the operator and of the agent's current declaration. They apply to every new run,
/// regardless of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunLimits {
    /// Maximum number of steps. `None` and 0 mean no limit.
    pub max_steps: Option<u32>,
    /// Maximum duration. `None` means no limit.
    pub timeout: Option<Duration>,
    /// Maximum number of tokens. `None` means no limit.
    pub max_tokens_total: Option<u64>,
    /// Maximum cost. `None` means no limit.
    pub max_cost: Option<Dollars>,
}

impl RunLimits {
    /// Returns the start of a fork. The fork's timeout is at most the operator's timeout.
    ///
    /// # Errors
    /// If the recorded run may have more steps, tokens or costs than are allowed now. Its limits cannot
    /// be lowered, because the recorded prompt and the recorded turns depend on them.
    fn apply(self, recorded: &RunStart) -> Result<RunStart, ForkError> {
        let mut start = recorded.clone();
        let steps = start.setup.settings.max_steps;
        if let Some(limit) = self.max_steps.filter(|limit| *limit > 0)
            && (steps == 0 || steps > limit)
        {
            return Err(ForkError::OverLimit { limit });
        }
        let settings = &start.setup.settings;
        if exceeds(settings.max_tokens_total, self.max_tokens_total)
            || exceeds(settings.max_cost, self.max_cost)
        {
            return Err(ForkError::OverBudget);
        }
        if let Some(limit) = self.timeout {
            let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            start.timeout_ms = Some(start.timeout_ms.map_or(limit, |own| own.min(limit)));
        }
        Ok(start)
    }
}

/// Returns true if a recorded limit allows more than the current one.
fn exceeds<T: PartialOrd>(recorded: Option<T>, now: Option<T>) -> bool {
    now.is_some_and(|now| recorded.is_none_or(|recorded| recorded > now))
}

/// The reason why a run cannot be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The run has fewer steps than requested.
    #[error("the run has {has} steps, and cannot be forked at step {asked}")]
    TooFar {
        /// The requested step.
        asked: u32,
        /// Number of steps in the run.
        has: u32,
    },
    /// The run may have more steps than are allowed now.
    #[error("the run may have more steps than the {limit} that are allowed now; start a new run")]
    OverLimit {
        /// The maximum number of steps.
        limit: u32,
    },
    /// The run may use more tokens or money than are allowed now.
    #[error("the run may use more tokens or money than are allowed now; start a new run")]
    OverBudget,
    /// The run's loop is an engine, so its conversation is not known to the host.
    #[error(
        "the loop of the run is an engine of its own, which cannot be forked with a new message; \
         fork it without one"
    )]
    Engine,
    /// The journal cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A new fork of a run.
#[derive(Clone, Debug)]
pub struct ForkedRun {
    /// The new run.
    pub run: RunRecord,
    /// If true, the state of the new run's session is what it was at the step. Otherwise the
    /// earlier state is not known any more, and the run begins with the current one.
    pub is_state_restored: bool,
}

/// Returns the number of the turn with which a step of a run ends, and the state after it.
///
/// # Errors
/// If the run has fewer steps.
fn end_of_step(setup: &Setup, turns: &[Turn], at: u32) -> Result<(usize, State), ForkError> {
    let mut state = State::new(setup.clone());
    for (number, turn) in turns.iter().enumerate() {
        let effects;
        (state, effects) = turn.step(state);
        if state.steps() == at && effects.iter().any(|effect| matches!(effect, Effect::Ask(_))) {
            return Ok((number, state));
        }
    }
    Err(ForkError::TooFar { asked: at, has: state.steps() })
}

/// Returns the number of the turn with which a step ends in a run whose loop is an engine.
///
/// # Errors
/// If the run has fewer steps.
fn end_of_engine_step(setup: &Setup, turns: &[Turn], at: u32) -> Result<usize, ForkError> {
    let mut tally = Tally::new(setup);
    for (number, turn) in turns.iter().enumerate() {
        turn.count(&mut tally);
        let asks = turn.effects.iter().any(|effect| matches!(effect, RecordedEffect::Ask(_)));
        if tally.steps() == at && asks {
            return Ok(number);
        }
    }
    Err(ForkError::TooFar { asked: at, has: tally.steps() })
}

/// Returns the number of the turn with which a step of a run ends.
///
/// # Errors
/// If the run has fewer steps, or the journal cannot be read.
pub async fn step_end(journal: &SharedJournal, of: &RunRecord, at: u32) -> Result<u32, ForkError> {
    let turns = journal.turns(&of.id).await?;
    let setup = &of.start.setup;
    let number = match of.start.engine {
        None => end_of_step(setup, &turns, at)?.0,
        Some(_) => end_of_engine_step(setup, &turns, at)?,
    };
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Creates an open run that shares the history of another run, including its files, up to the end
/// of step `at`. Step 0 is the start of the run. If the other run belongs to a session, the
/// session's files and its state return to what they were at that step, when the new run is first
/// driven. The tenant's variables and memory do not. With a message, the new run starts another
/// exchange after the shared conversation. Without a message, it asks the model for the next step
/// again. Returns the new run.
///
/// The new run has the limits of the other run, except that its timeout is at most that of
/// `limits`.
///
/// # Errors
/// If the other run has fewer steps, if it may have more steps than `limits` allow, or if the
/// journal cannot be read or written.
pub async fn fork(
    journal: &SharedJournal,
    of: &RunRecord,
    at: u32,
    message: Option<String>,
    id: String,
    limits: RunLimits,
) -> Result<ForkedRun, ForkError> {
    let start = limits.apply(&of.start)?;
    let mut prefix = journal.turns(&of.id).await?;
    let setup = &of.start.setup;
    let (last, restarted) = match (&of.start.engine, message) {
        (None, message) => {
            let (last, state) = end_of_step(setup, &prefix, at)?;
            (last, message.map(|message| restart(&start, state.conversation(), message)))
        }
        (Some(_), None) => (end_of_engine_step(setup, &prefix, at)?, None),
        (Some(_), Some(_)) => return Err(ForkError::Engine),
    };
    prefix.truncate(last + 1);
    let last = u32::try_from(last).unwrap_or(u32::MAX);
    // Includes the files of child runs, because the turns contain the results of these runs.
    let files = journal.files_of_tree(&of.id).await?;
    let files = |turns: RangeInclusive<u32>| {
        join(files.iter().filter(|(turn, _)| turns.contains(turn)).map(|(_, changed)| changed))
    };
    let forked = Some((of.id.clone(), at));
    // No other process may drive the new run before its turns are copied.
    let _lock = lock_run(&**journal, &id).await?;
    let written = async {
        let open = |start: RunStart| RunRecord {
            session: of.session.clone(),
            attempts: 0,
            ..RunRecord::new(id.clone(), start)
        };
        let Some(start) = restarted else {
            let run = open(RunStart { forked, parent: None, ..start });
            journal.open(run.clone()).await?;
            for (number, turn) in (0..).zip(prefix) {
                let calls: Vec<RecordedCall> = journal.calls_of(&of.id, number).await?;
                journal.calls(&id, calls).await?;
                let events = events(&id, &turn);
                let turn = Turn { files: files(number..=number), ..turn };
                journal.turn(&id, turn, Vec::new(), events).await?;
            }
            let is_state_restored = journal.fork_state((&of.id, last), &id).await?;
            return Ok(ForkedRun { run, is_state_restored });
        };
        let (_, effects) =
            step(State::new(start.setup.clone()), Input::Begin { message: start.message.clone() });
        let first = Turn {
            spent: Usage::default(),
            input: Input::Begin { message: start.message.clone() },
            effects: EffectRecorder::default().record(&effects),
            seq: 1,
            elapsed_ms: 0,
            files: files(0..=last),
        };
        let run = open(RunStart { forked, parent: None, ..start });
        journal.open(run.clone()).await?;
        let events = events(&id, &first);
        journal.turn(&id, first, Vec::new(), events).await?;
        let is_state_restored = journal.fork_state((&of.id, last), &id).await?;
        Ok(ForkedRun { run, is_state_restored })
    }
    .await;
    if written.is_err() {
        // No process may drive an incomplete copy, so the new run is ended.
        drop(journal.end(&id, RunEnd::default()).await);
    }
    written
}

/// Returns copies of a turn's events, with the id of the new run.
fn events(run: &str, turn: &Turn) -> Vec<Envelope> {
    let emitted = turn.effects.iter().filter_map(|effect| match effect {
        RecordedEffect::Emit(event) => Some(event),
        _ => None,
    });
    Stamp::from(run, &|_: &Envelope| {}, turn.seq).number(emitted)
}

/// Creates the start of a run whose history is `conversation`. If the last message of the
/// conversation is a user message, the new message is appended to it.
fn restart(of: &RunStart, conversation: &[Message], message: String) -> RunStart {
    let mut history: Vec<Message> =
        conversation.iter().filter(|message| message.role != Role::System).cloned().collect();
    // The new run recalls memory items itself, and its traits contribute again.
    while history.pop_if(|last| last.is_added()).is_some() {}
    let message = match history.pop_if(|last| last.role == Role::User) {
        Some(last) => format!("{}\n\n{message}", last.content),
        None => message,
    };
    let mut start = RunStart { message, ..of.clone() };
    start.setup.history = history;
    // The files may have changed since the start of the other run.
    start.setup.orientation = None;
    start.setup.nonce = crate::nonce::nonce();
    start
}

/// Concatenates file changes, which are JSON arrays. Returns `None` if all of them are empty.
fn join<'a>(changes: impl Iterator<Item = &'a String>) -> Option<String> {
    let inner: Vec<&str> = changes
        .filter_map(|one| one.strip_prefix('[')?.strip_suffix(']'))
        .filter(|inner| !inner.is_empty())
        .collect();
    (!inner.is_empty()).then(|| format!("[{}]", inner.join(",")))
}
