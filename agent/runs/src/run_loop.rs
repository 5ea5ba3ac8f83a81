//! The loop of a run: the state machine of this process, or an engine that is a component.

use std::time::Duration;

use wattle_engine::{Instance, RunFacts};
use wattle_machine::{
    Artifact, Dialect, Effect, Input, KeptValue, Message, ProgramFunction, Setup, State, Tally,
    Usage,
};
use wattle_store::now_ms;

use crate::host::Host;
use crate::journal::{self, EngineStart, RecordedEffect, RunStart, Turn};

/// The loop of a run. It takes inputs and returns effects.
pub(crate) enum RunLoop {
    /// The state machine of this process.
    Machine {
        state: Box<State>,
        /// Number of messages in the conversation when the run begins.
        known: usize,
    },
    /// The instance of an engine.
    Engine(Box<Instance>),
    /// An engine that was stopped, because it did not do what was recorded. It only ends the run.
    Stopped { tally: Box<Tally>, turns: Vec<Message> },
}

impl RunLoop {
    /// Creates the loop of a run that has not begun, as its start requires.
    ///
    /// # Errors
    /// If the run belongs to an engine that the host does not have. The error names both.
    pub(crate) fn of_start(host: &Host, start: &RunStart) -> Result<RunLoop, String> {
        match &start.engine {
            None => Ok(RunLoop::machine(host, start.setup.clone())),
            Some(engine) => match host.engine() {
                Some(own) if own.hash() == engine.hash => Ok(RunLoop::engine(host, start, engine)),
                own => Err(format!(
                    "the run began with the engine {}, and {}\nhint: pass the file of that engine \
                     with `--engine`",
                    short(&engine.hash),
                    own.map_or_else(
                        || "no engine is set".to_owned(),
                        |own| format!("the engine is {} now", short(own.hash()))
                    )
                )),
            },
        }
    }

    /// Creates the loop with which the host would run this run, whatever its record says.
    pub(crate) fn of_host(host: &Host, start: &RunStart) -> RunLoop {
        match host.engine() {
            Some(own) => {
                let made = || EngineStart { hash: own.hash().to_owned(), created: 0 };
                RunLoop::engine(host, start, &start.engine.clone().unwrap_or_else(made))
            }
            None => RunLoop::machine(host, start.setup.clone()),
        }
    }

    fn machine(host: &Host, setup: Setup) -> RunLoop {
        let known = setup.history.len() + 1;
        let mut state = State::new(setup);
        state.share_prompt(|prompt| host.shared().prompt(prompt));
        RunLoop::Machine { state: Box::new(state), known }
    }

    fn engine(host: &Host, start: &RunStart, engine: &EngineStart) -> RunLoop {
        let facts = RunFacts {
            setup: start.setup.clone(),
            agent: start.agent.clone(),
            model: start.model.clone(),
            granted: start.granted.clone(),
            created: engine.created,
        };
        match host.engine() {
            Some(own) => RunLoop::Engine(Box::new(own.start(facts, host.runtime().open_account()))),
            None => RunLoop::machine(host, facts.setup),
        }
    }

    /// Returns the engine that the start of a run records, or `None` if the host has none.
    pub(crate) fn recorded(host: &Host) -> Option<EngineStart> {
        let hash = host.engine()?.hash().to_owned();
        Some(EngineStart { hash, created: now_ms() })
    }

    /// Charges the model usage by programs (`spent`) and applies an input. `elapsed` is the duration
    /// of the run so far. Returns the loop and the effects to perform.
    pub(crate) async fn advance(
        self,
        spent: Usage,
        input: Input,
        elapsed: Duration,
    ) -> (RunLoop, Vec<Effect>) {
        match self {
            RunLoop::Machine { state, known } => {
                let (state, effects) = journal::advance(*state, spent, input);
                (RunLoop::Machine { state: Box::new(state), known }, effects)
            }
            RunLoop::Engine(instance) => {
                let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                let (instance, effects) = instance.advance(spent, input, elapsed).await;
                (RunLoop::Engine(Box::new(instance)), effects)
            }
            RunLoop::Stopped { mut tally, turns } => {
                tally.input(spent, &input);
                let effects = tally.required().cloned().into_iter().flat_map(|ending| {
                    [Effect::Emit(tally.closing(&ending)), Effect::Finish(ending)]
                });
                let effects = effects.collect();
                (RunLoop::Stopped { tally, turns }, effects)
            }
        }
    }

    /// Returns the loop of a run whose engine did not do what these turns record.
    pub(crate) fn stopped(setup: &Setup, turns: &[Turn]) -> RunLoop {
        let message = turns.iter().find_map(|turn| match &turn.input {
            Input::Begin { message } => Some(Message::user(message.as_str())),
            _ => None,
        });
        let tally = Box::new(tally(setup, turns));
        RunLoop::Stopped { tally, turns: message.into_iter().collect() }
    }

    /// Returns true if the loop is a component.
    pub(crate) fn is_engine(&self) -> bool {
        !matches!(self, RunLoop::Machine { .. })
    }

    /// Returns the messages of the run that its session keeps.
    pub(crate) fn turns(&self) -> &[Message] {
        match self {
            RunLoop::Machine { state, known } => {
                state.conversation().get(*known..).unwrap_or_default()
            }
            RunLoop::Engine(instance) => instance.turns(),
            RunLoop::Stopped { turns, .. } => turns,
        }
    }

    /// Returns true if the run has ended.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            RunLoop::Machine { state, .. } => state.has_ended(),
            RunLoop::Engine(instance) => instance.has_ended(),
            RunLoop::Stopped { tally, .. } => tally.required().is_some(),
        }
    }
}

/// Declares functions that the state machine and the host's own figures both have.
macro_rules! figures {
    ($($(#[doc = $doc:literal])+ $name:ident: $ty:ty;)*) => {
        impl RunLoop {
            $($(#[doc = $doc])+
            pub(crate) fn $name(&self) -> $ty {
                match self {
                    RunLoop::Machine { state, .. } => state.$name(),
                    RunLoop::Engine(instance) => instance.tally().$name(),
                    RunLoop::Stopped { tally, .. } => tally.$name(),
                }
            })*
        }
    };
}

figures! {
    /// Returns the number of completed steps.
    steps: u32;
    /// Returns the token usage so far, including the cost.
    usage: Usage;
    /// Returns the current dialect.
    dialect: Dialect;
    /// Returns the programs that the model may call.
    programs: &std::sync::Arc<Vec<ProgramFunction>>;
    /// Returns the names of the catalog programs that traits added to the run.
    added_tools: &[String];
    /// Returns the names of the agents that traits added to the run.
    added_delegates: &[String];
    /// Returns the artifacts that programs saved for the application.
    artifacts: &[Artifact];
    /// Returns the values that programs kept for later programs.
    kept: &[KeptValue];
}

/// Returns what the host counts in the recorded turns of a run whose loop is an engine.
pub(crate) fn tally(setup: &Setup, turns: &[Turn]) -> Tally {
    let mut tally = Tally::new(setup);
    for turn in turns {
        count(&mut tally, turn);
    }
    tally
}

/// Counts a recorded turn.
pub(crate) fn count(tally: &mut Tally, turn: &Turn) {
    tally.input(turn.spent, &turn.input);
    for effect in &turn.effects {
        if let RecordedEffect::Emit(event) = effect {
            tally.event(event);
        }
    }
    tally.end_turn();
}

/// Returns the first digits of a hash.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
