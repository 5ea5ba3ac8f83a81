//! The loop of a run: the state machine of this process, or an engine that is a component.

use std::time::Duration;

use wattle_engine::{Instance, RunFacts};
use wattle_machine::{
    Artifact, Dialect, Effect, Input, KeptValue, Message, ProgramFunction, Setup, State, Tally,
    Usage,
};
use wattle_store::journal::{
    EffectRecorder, EngineStart, RecordedEffect, RunStart, Turn, advance, describe_difference,
};
use wattle_store::now_ms;

use crate::host::Host;
use crate::journal::Played;

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
                let (state, effects) = advance(*state, spent, input);
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

    /// Gives the loop of a run the recorded inputs. An engine must return the recorded effects.
    /// Otherwise it is stopped, and the loop only ends the run.
    pub(crate) async fn play(self, setup: &Setup, turns: &[Turn]) -> (RunLoop, Played) {
        let (mut run_loop, mut effects) = (self, Vec::new());
        let mut recorder = EffectRecorder::default();
        for turn in turns {
            let elapsed = Duration::from_millis(turn.elapsed_ms);
            let input = turn.input.clone();
            (run_loop, effects) = run_loop.advance(turn.spent, input, elapsed).await;
            let is = recorder.record(&effects);
            if matches!(run_loop, RunLoop::Engine(_)) && is != turn.effects {
                let played = RunLoop::stopped(setup, turns);
                let (effects, broken) = broken(turn, &is, turns);
                let kept = played.kept().to_vec();
                return (played, Played { effects, broken, recorder, kept });
            }
        }
        let kept = run_loop.kept().to_vec();
        (run_loop, Played { effects, broken: None, recorder, kept })
    }

    /// Returns the loop of a run whose engine did not do what these turns record.
    fn stopped(setup: &Setup, turns: &[Turn]) -> RunLoop {
        let message = turns.iter().find_map(|turn| match &turn.input {
            Input::Begin { message } => Some(Message::user(message.as_str())),
            _ => None,
        });
        let tally = Box::new(tally(setup, turns));
        RunLoop::Stopped { tally, turns: message.into_iter().collect() }
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
        turn.count(&mut tally);
    }
    tally
}

/// Returns the effects to perform and the reason why the run must end, if an engine returned
/// `effects` for the input of `turn`. A run whose end is recorded ends as recorded.
fn broken(
    turn: &Turn,
    effects: &[RecordedEffect],
    turns: &[Turn],
) -> (Vec<Effect>, Option<String>) {
    let last = turns.last().map(|last| last.effects.as_slice()).unwrap_or_default();
    if let Some(RecordedEffect::Finish(ending)) = last.last() {
        return (vec![Effect::Finish(ending.clone())], None);
    }
    let (was, is) = describe_difference(&turn.effects, &effects);
    let reason = format!("the engine is not deterministic: it did {is}, and was recorded as {was}");
    (Vec::new(), Some(reason))
}

/// Returns the first digits of a hash.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
