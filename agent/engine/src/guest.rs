//! The state of an instance, and the functions that its engine calls.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use wasmtime::ResourceLimiter;
use wattle_machine::{Call, Dollars, Effect, Event, Input, Usage};
use wattle_rt::MemoryCharge;

use crate::component::RunFacts;
use crate::convert::all;
use crate::wit::{host, types};

/// Maximum number of effects in a turn.
const MAX_EFFECTS: usize = 10_000;

/// Maximum size of a turn's events, in bytes.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// Maximum number of elements in a table of an instance.
const MAX_TABLE: usize = 1_000_000;

/// Maximum number of random bytes that an engine may get at once.
const MAX_RANDOM: u64 = 1 << 20;

/// The programs that the functions of the interface `host` run.
const LIST: &str = r#"(ret (str.join (fs.list (arg 0)) "\n"))"#;
const FIND: &str = r#"(ret (str.join (fs.glob (arg 0)) "\n"))"#;
const READ: &str = "(ret (fs.read (arg 0)))";
const RUN: &str = "(ret (shell.result (arg 0)))";
const FETCH: &str = "(ret (web.fetch (arg 0) 0))";

/// The effects of a turn, the last of which is a request.
pub(crate) type Turn = Vec<Effect>;

/// The result of a turn's request.
pub(crate) struct Answer {
    /// The usage of the run's programs since the previous answer.
    pub(crate) spent: Usage,
    pub(crate) input: Input,
    /// The time of the turn, in milliseconds since 1970.
    pub(crate) time: u64,
}

/// The result of a request: the usage of programs, and the result or the reason why the run ends.
type Requested<T> = wasmtime::Result<(types::Usage, Result<T, types::Stop>)>;

/// The reason why an engine is stopped, in words for the run's owner.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(pub(crate) String);

impl Fault {
    fn error(reason: impl Into<String>) -> wasmtime::Error {
        wasmtime::Error::new(Fault(reason.into()))
    }
}

/// The state of an instance.
pub(crate) struct Guest {
    facts: Arc<RunFacts>,
    turns: UnboundedSender<Turn>,
    answers: UnboundedReceiver<Answer>,
    /// The effects of the current turn so far.
    turn: Turn,
    /// Size of the current turn's events, in bytes.
    event_bytes: usize,
    time: u64,
    /// State of the sequence of random numbers.
    random: u64,
    memory: Memory,
}

/// The memory of an instance.
pub(crate) struct Memory {
    limit: usize,
    held: MemoryCharge,
    /// The reason why the instance was denied more memory.
    refused: Option<String>,
}

impl Memory {
    pub(crate) fn new(limit: usize, held: MemoryCharge) -> Memory {
        Memory { limit, held, refused: None }
    }
}

impl ResourceLimiter for Memory {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        if self.held.used().saturating_add(more) > self.limit {
            let reason = format!("it needs more than {} MiB of memory", self.limit >> 20);
            self.refused = Some(reason);
            return Ok(false);
        }
        match self.held.grow(more) {
            Ok(()) => Ok(true),
            Err(failure) => {
                self.refused = Some(failure.reason);
                Ok(false)
            }
        }
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE)
    }
}

impl Guest {
    pub(crate) fn new(
        facts: Arc<RunFacts>,
        (turns, answers): (UnboundedSender<Turn>, UnboundedReceiver<Answer>),
        memory: Memory,
    ) -> Guest {
        // The seed must not reveal the nonce, which marks the host's own lines.
        let seed = blake3::hash(format!("{} {}", facts.setup.nonce, facts.created).as_bytes());
        let seed = seed.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let time = facts.created;
        Guest {
            facts,
            turns,
            answers,
            turn: Vec::new(),
            event_bytes: 0,
            time,
            random: seed,
            memory,
        }
    }

    pub(crate) fn limiter(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Returns the reason why the instance was denied more memory, or `None` if it was not.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.memory.refused.as_deref()
    }

    /// Removes and returns the effects of the unfinished turn.
    pub(crate) fn take_turn(&mut self) -> Turn {
        self.event_bytes = 0;
        std::mem::take(&mut self.turn)
    }

    /// Waits for the first input and returns the user's message, or `None` if the run ends first.
    pub(crate) async fn begin(&mut self) -> Option<String> {
        let Answer { input, time, .. } = self.answers.recv().await?;
        self.time = time;
        match input {
            Input::Begin { message } => Some(message),
            _ => None,
        }
    }

    /// Returns the time of the turn, in milliseconds since 1970.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// Returns the next random number, which the run's nonce determines (splitmix64).
    pub(crate) fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        if count > MAX_RANDOM {
            return Err(Fault::error("it asks for more than 1 MiB of random bytes at once"));
        }
        let count = usize::try_from(count)?;
        let mut bytes = Vec::with_capacity(count + 7);
        while bytes.len() < count {
            bytes.extend(self.next_random().to_le_bytes());
        }
        bytes.truncate(count);
        Ok(bytes)
    }

    fn add(&mut self, effect: Effect) -> wasmtime::Result<()> {
        if self.turn.len() >= MAX_EFFECTS {
            return Err(Fault::error(format!(
                "it emits more than {MAX_EFFECTS} events and notes in one turn"
            )));
        }
        self.turn.push(effect);
        Ok(())
    }

    /// Ends the turn with a request. Returns the usage of the run's programs, and the result of the
    /// request: what `answered` finds in the input, or the reason why the run ends.
    async fn request<T>(
        &mut self,
        effect: Effect,
        answered: impl FnOnce(Input) -> Result<T, Box<Input>> + Send,
    ) -> Requested<T> {
        let mut turn = self.take_turn();
        turn.push(effect);
        let gone = || Fault::error("the run has ended");
        self.turns.send(turn).map_err(|_| gone())?;
        let Answer { spent, input, time } = self.answers.recv().await.ok_or_else(gone)?;
        self.time = time;
        let result = match answered(input) {
            Ok(value) => Ok(value),
            Err(input) => Err(stop(*input).ok_or_else(gone)?),
        };
        Ok((spent.into(), result))
    }

    async fn run_program(&mut self, body: &str, arg: String) -> Requested<types::Execution> {
        let calls = vec![Call::Wat { body: body.to_owned(), args: vec![arg] }];
        self.request(Effect::Execute { step: 0, calls }, |input| match input {
            Input::Executed(executions) => Ok(executions.into_iter().next().map_or_else(
                || types::Execution::Refused("the program was not run".to_owned()),
                Into::into,
            )),
            other => Err(Box::new(other)),
        })
        .await
    }
}

/// Returns the reason why a run ends, or `None` for another input.
fn stop(input: Input) -> Option<types::Stop> {
    Some(match input {
        Input::Cancel { reason } => types::Stop::Cancelled(reason),
        Input::Expired { limit_ms } => types::Stop::Expired(limit_ms),
        Input::OutOfTokens { limit, owner } => {
            types::Stop::OutOfTokens(types::TokenLimit { limit, owner })
        }
        Input::OutOfMoney { limit, owner } => {
            let limit = Dollars::nanos(limit);
            types::Stop::OutOfMoney(types::CostLimit { limit, owner })
        }
        Input::Failed(message) => types::Stop::Failed(message),
        _ => return None,
    })
}

impl types::Host for Guest {
    async fn moderate(&mut self, message: String) -> Requested<types::Verdict> {
        self.request(Effect::Moderate { message }, |input| match input {
            Input::Moderated(verdict) => Ok(verdict.into()),
            other => Err(Box::new(other)),
        })
        .await
    }

    async fn ask(&mut self, request: types::Request) -> Requested<types::Reply> {
        self.request(Effect::Ask(request.into()), |input| match input {
            Input::Answer(answer) => Ok(types::Reply::Answer(answer.into())),
            Input::WithoutFunctions(why) => Ok(types::Reply::WithoutFunctions(why)),
            Input::TooLong { error, window, sent } => {
                Ok(types::Reply::TooLong(types::Excess { error, window, sent }))
            }
            other => Err(Box::new(other)),
        })
        .await
    }

    async fn execute(&mut self, calls: Vec<types::Call>) -> Requested<Vec<types::Execution>> {
        self.request(Effect::Execute { step: 0, calls: all(calls) }, |input| match input {
            Input::Executed(executions) => Ok(all(executions)),
            other => Err(Box::new(other)),
        })
        .await
    }

    async fn recall(&mut self, call: types::Call) -> Requested<types::Execution> {
        self.request(Effect::Recall { step: 0, call: call.into() }, |input| match input {
            Input::Recalled(execution) => Ok(execution.into()),
            other => Err(Box::new(other)),
        })
        .await
    }

    async fn contribute(&mut self, calls: Vec<types::Call>) -> Requested<Vec<types::Contribution>> {
        self.request(Effect::Contribute { step: 0, calls: all(calls) }, |input| match input {
            Input::Contributed(contributions) => Ok(all(contributions)),
            other => Err(Box::new(other)),
        })
        .await
    }

    async fn validate(&mut self, text: String) -> Requested<Result<String, Vec<String>>> {
        self.request(Effect::Validate { text }, |input| match input {
            Input::Validated(validated) => Ok(validated.map(|value| value.to_string())),
            other => Err(Box::new(other)),
        })
        .await
    }

    fn emit(&mut self, event: String) -> wasmtime::Result<()> {
        self.event_bytes = self.event_bytes.saturating_add(event.len());
        if self.event_bytes > MAX_EVENT_BYTES {
            let limit = MAX_EVENT_BYTES >> 20;
            return Err(Fault::error(format!("it emits more than {limit} MiB in one turn")));
        }
        let event = serde_json::from_str::<Event>(&event)
            .map_err(|why| Fault::error(format!("it emits an invalid event: {why}")))?;
        match &event {
            Event::Response { .. } | Event::Error { .. } | Event::Parked { .. } => {
                Err(Fault::error("it emits an event that only the host writes"))
            }
            event if event.is_part() => Err(Fault::error("it emits a part of an answer")),
            _ => self.add(Effect::Emit(event)),
        }
    }

    fn note(&mut self, notice: types::Notice) -> wasmtime::Result<()> {
        self.add(match notice {
            types::Notice::Refused(types::Refusal { call, reason }) => {
                Effect::Refuse { step: 0, call: call.into(), reason }
            }
            types::Notice::Done(call) => Effect::Done { step: 0, call: call.into() },
        })
    }
}

impl host::Host for Guest {
    fn session_info(&mut self) -> wasmtime::Result<host::Session> {
        Ok(host::Session {
            id: self.facts.setup.session_id.clone(),
            agent: self.facts.agent.clone(),
            model: self.facts.model.clone(),
            granted: self.facts.granted.clone(),
        })
    }

    async fn vfs_query(&mut self, query: host::Query) -> Requested<types::Execution> {
        let (body, arg) = match query {
            host::Query::Folder(path) => (LIST, path),
            host::Query::Paths(pattern) => (FIND, pattern),
            host::Query::Text(path) => (READ, path),
        };
        self.run_program(body, arg).await
    }

    async fn run_command(&mut self, command: String) -> Requested<types::Execution> {
        self.run_program(RUN, command).await
    }

    async fn browse_fetch(&mut self, url: String) -> Requested<types::Execution> {
        self.run_program(FETCH, url).await
    }

    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.time)
    }

    fn random(&mut self) -> wasmtime::Result<u64> {
        Ok(self.next_random())
    }
}

/// Returns true if an input is the result of a request.
pub(crate) fn answers(request: &Effect, input: &Input) -> bool {
    match request {
        Effect::Moderate { .. } => matches!(input, Input::Moderated(_)),
        Effect::Ask(_) => {
            matches!(input, Input::Answer(_) | Input::WithoutFunctions(_) | Input::TooLong { .. })
        }
        Effect::Execute { .. } => matches!(input, Input::Executed(_)),
        Effect::Recall { .. } => matches!(input, Input::Recalled(_)),
        Effect::Contribute { .. } => matches!(input, Input::Contributed(_)),
        Effect::Validate { .. } => matches!(input, Input::Validated(_)),
        Effect::Refuse { .. } | Effect::Done { .. } | Effect::Emit(_) | Effect::Finish(_) => false,
    }
}
