//! The instance of an engine that runs the loop of one run.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wasmtime::{Store, Trap, UpdateDeadline};
use wattle_machine::{Ask, Effect, Ending, Input, Message, Role, Tally, Usage};
use wattle_rt::{Account, timed};

use crate::component::{Component, RunFacts};
use crate::guest::{Answer, Fault, Guest, Memory, Turn, answers};
use crate::{convert, wit};

/// Maximum number of requests to the model within a step.
const MAX_ASKS: u32 = 1_000;

/// Maximum number of calls that an engine may run at the same time.
const MAX_CALLS: usize = 256;

/// The loop of one run in its own sandbox. It takes inputs and returns effects like
/// [`wattle_machine::step`].
///
/// The engine is suspended between two inputs. Dropping the instance stops it.
pub struct Instance {
    component: Component,
    facts: Arc<RunFacts>,
    account: Account,
    tally: Tally,
    /// The user's message. Empty before the run has begun.
    message: String,
    phase: Phase,
    /// The usage of programs that was charged with an input which the engine did not wait for.
    unreported: Usage,
    /// Number of requests to the model in the current step.
    asks: u32,
    /// If true, the engine must have the message moderated before it requests anything else.
    must_moderate: bool,
    /// The last answer that matches the run's output contract, and its value.
    validated: Option<(String, Json)>,
    /// The messages that the session keeps.
    turns: Vec<Message>,
}

enum Phase {
    /// The run has not begun.
    Ready,
    /// The engine waits for the result of this request.
    Waiting(Box<Running>, Effect),
    /// The run has ended.
    Ended,
}

/// An engine that was started.
struct Running {
    work: Pin<Box<dyn Future<Output = Ended> + Send>>,
    turns: UnboundedReceiver<Turn>,
    answers: UnboundedSender<Answer>,
    /// Processor time of the current turn, in nanoseconds.
    cpu: Arc<AtomicU64>,
}

/// The end of an engine: the effects of its last turn, and its report or the reason why it failed.
struct Ended {
    turn: Turn,
    report: Result<wit::Report, String>,
}

/// What an engine did with an answer.
enum Next {
    Request(Turn),
    Ended(Ended),
}

impl Instance {
    pub(crate) fn new(component: Component, facts: RunFacts, account: Account) -> Instance {
        Instance {
            component,
            account,
            tally: Tally::new(&facts.setup),
            message: String::new(),
            phase: Phase::Ready,
            unreported: Usage::default(),
            asks: 0,
            must_moderate: facts.setup.is_moderated,
            validated: None,
            turns: Vec::new(),
            facts: Arc::new(facts),
        }
    }

    /// Applies an input to the run, and the usage of the run's programs since the previous one.
    /// `elapsed_ms` is the duration of the run so far, in milliseconds. Returns the instance and the
    /// effects to perform.
    ///
    /// A result that the engine does not wait for has no effect. If the engine fails, the effects end
    /// the run.
    pub async fn advance(
        mut self,
        spent: Usage,
        input: Input,
        elapsed_ms: u64,
    ) -> (Instance, Vec<Effect>) {
        let phase = std::mem::replace(&mut self.phase, Phase::Ended);
        let is_expected = match (&phase, &input) {
            (Phase::Ended, _) => return (self, Vec::new()),
            (Phase::Ready, input) => matches!(input, Input::Begin { .. }),
            (Phase::Waiting(_, request), input) => answers(request, input),
        };
        if !is_expected && !is_stop(&input) {
            let more = if let Input::Spent(usage) = input { spent + usage } else { spent };
            self.tally.input(Usage::default(), &Input::Spent(more));
            (self.unreported, self.phase) = (self.unreported + more, phase);
            return (self, Vec::new());
        }
        self.tally.input(spent, &input);
        if matches!(input, Input::Moderated(_)) {
            self.must_moderate = false;
        }
        let mut running = match phase {
            Phase::Waiting(running, request) => {
                if let (Effect::Validate { text }, Input::Validated(Ok(value))) = (request, &input)
                {
                    self.validated = Some((text, value.clone()));
                }
                running
            }
            Phase::Ready | Phase::Ended => match &input {
                Input::Begin { message } => {
                    self.message.clone_from(message);
                    self.turns.push(Message::user(message.as_str()));
                    Box::new(self.start())
                }
                _ => return self.end(Vec::new(), None),
            },
        };
        let mut spent = std::mem::take(&mut self.unreported) + spent;
        if matches!(input, Input::Begin { .. }) {
            // The engine learns of it with its first answer.
            self.unreported = std::mem::take(&mut spent);
        }
        let time = self.facts.created.saturating_add(elapsed_ms);
        let next = running.answer(Answer { spent, input, time }, &self.account).await;
        match next {
            Next::Request(turn) => self.requested(running, turn),
            Next::Ended(Ended { turn, report }) => {
                let (ending, turns) = match report {
                    Ok(wit::Report { ending, turns }) => (ending.into(), Some(turns)),
                    Err(why) => (Ending::failed(&why), None),
                };
                if let Some(turns) = turns.filter(|turns| !turns.is_empty()) {
                    self.turns = convert::all(turns);
                    self.turns.retain(|message| message.role != Role::System);
                }
                let effects = self.count(turn);
                self.tally.end_turn();
                let ending = self.checked(ending);
                self.end(effects, Some(ending))
            }
        }
    }

    /// Starts the engine. It waits for the message.
    fn start(&self) -> Running {
        let (turns, of_engine) = unbounded_channel();
        let (to_engine, answers) = unbounded_channel();
        let bounds = self.component.bounds();
        let memory = Memory::new(bounds.memory, self.account.nothing());
        let guest = Guest::new(Arc::clone(&self.facts), (turns, answers), memory);
        let mut store = Store::new(self.component.engine(), guest);
        store.limiter(|guest| guest.limiter());
        store.set_epoch_deadline(1);
        let cpu = Arc::new(AtomicU64::new(0));
        let limit = nanos(bounds.turn);
        let (watched, account) = (Arc::clone(&cpu), self.account.clone());
        store.epoch_deadline_callback(move |_| {
            let is_over = watched.load(Relaxed) > limit || account.is_out_of_cpu();
            Ok(if is_over { UpdateDeadline::Interrupt } else { UpdateDeadline::Yield(1) })
        });
        let (component, facts) = (self.component.clone(), Arc::clone(&self.facts));
        let account = self.account.clone();
        let work = Box::pin(async move {
            let called = call(&mut store, &component, &facts).await;
            let report = match called {
                Ok(Ok(report)) => Ok(report),
                Ok(Err(why)) => Err(format!("the engine failed: {why}")),
                Err(error) => {
                    let reason = reason(&error, store.data(), &component, &account);
                    Err(format!("the engine was stopped: {reason}"))
                }
            };
            Ended { turn: store.data_mut().take_turn(), report }
        });
        Running { work, turns: of_engine, answers: to_engine, cpu }
    }

    /// Ends a turn with the engine's request, or ends the run if it may not request this.
    fn requested(mut self, running: Box<Running>, mut turn: Turn) -> (Instance, Vec<Effect>) {
        let request = turn.pop();
        let before = self.tally.steps();
        let mut effects = self.count(turn);
        self.tally.end_turn();
        if self.tally.steps() != before {
            self.asks = 0;
        }
        match request
            .ok_or_else(|| Ending::failed("the engine requested nothing"))
            .and_then(|request| self.permitted(request))
        {
            Ok(request) => {
                effects.push(request.clone());
                self.phase = Phase::Waiting(running, request);
                (self, effects)
            }
            Err(ending) => self.end(effects, Some(ending)),
        }
    }

    /// Counts the events of a turn and sets the steps of its notes.
    fn count(&mut self, turn: Turn) -> Vec<Effect> {
        turn.into_iter()
            .map(|effect| match effect {
                Effect::Emit(event) => {
                    self.tally.event(&event);
                    Effect::Emit(event)
                }
                Effect::Refuse { call, reason, .. } => {
                    Effect::Refuse { step: self.tally.step(), call, reason }
                }
                Effect::Done { call, .. } => Effect::Done { step: self.tally.step(), call },
                other => other,
            })
            .collect()
    }

    /// Returns a request with its step. The error is the ending of a run that may not make it.
    fn permitted(&mut self, request: Effect) -> Result<Effect, Ending> {
        if let Some(required) = self.tally.required() {
            return Err(required.clone());
        }
        if self.must_moderate && !matches!(request, Effect::Moderate { .. }) {
            return Err(broken("it did not have the user's message moderated first"));
        }
        let (step, setup) = (self.tally.step(), &self.facts.setup);
        match request {
            Effect::Moderate { .. } => Ok(Effect::Moderate { message: self.message.clone() }),
            Effect::Ask(ask) => {
                self.asks += 1;
                if self.asks > MAX_ASKS {
                    return Err(broken(&format!(
                        "it asked the model more than {MAX_ASKS} times in one step"
                    )));
                }
                Ok(Effect::Ask(Ask { step, ..ask }))
            }
            Effect::Execute { calls, .. } => {
                if calls.len() > MAX_CALLS {
                    return Err(broken(&format!(
                        "it ran more than {MAX_CALLS} programs at the same time"
                    )));
                }
                self.tally.exhausted().map_or(Ok(Effect::Execute { step, calls }), Err)
            }
            Effect::Recall { call, .. } => {
                let is_set = setup.recall.as_ref().is_some_and(|one| one.program == call.label());
                let refused = || broken(&format!("`{}` is not the recall program", call.label()));
                if is_set { Ok(Effect::Recall { step, call }) } else { Err(refused()) }
            }
            Effect::Contribute { calls, .. } => {
                let is_known = |name: &str| setup.traits.iter().any(|one| one.program == name);
                match calls.iter().find(|call| !is_known(call.label())) {
                    Some(call) => {
                        Err(broken(&format!("`{}` is not the program of a trait", call.label())))
                    }
                    None => Ok(Effect::Contribute { step, calls }),
                }
            }
            Effect::Validate { text } if setup.output.is_some() => Ok(Effect::Validate { text }),
            Effect::Validate { .. } => Err(broken("the run has no output contract")),
            Effect::Refuse { .. } | Effect::Done { .. } | Effect::Emit(_) | Effect::Finish(_) => {
                Err(broken("it requested nothing"))
            }
        }
    }

    /// Returns the ending of a run whose engine reported `ending`. Its answer must be the validated
    /// one, if the run has an output contract.
    fn checked(&mut self, ending: Ending) -> Ending {
        if let Some(required) = self.tally.required() {
            return required.clone();
        }
        if self.must_moderate && !matches!(ending, Ending::Failed { .. }) {
            return broken("it did not have the user's message moderated");
        }
        let valid = self.validated.take().filter(|(text, _)| text == ending.text());
        let value = valid.map(|(_, value)| Box::new(value));
        match ending {
            Ending::Answered { .. } if value.is_none() && self.facts.setup.output.is_some() => {
                broken("its answer was not validated")
            }
            Ending::Answered { text, .. } => Ending::Answered { text, data: value },
            Ending::Exhausted { text, bound, .. } => Ending::Exhausted { text, bound, data: value },
            other => other,
        }
    }

    /// Ends the run. Without an ending, that of the last input is used.
    fn end(mut self, mut effects: Vec<Effect>, ending: Option<Ending>) -> (Instance, Vec<Effect>) {
        let required = self.tally.required().cloned();
        if let Some(ending) = ending.or(required) {
            effects.push(Effect::Emit(self.tally.closing(&ending)));
            effects.push(Effect::Finish(ending));
        }
        self.phase = Phase::Ended;
        (self, effects)
    }

    /// Returns what the host has counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the messages of the run that its session keeps.
    pub fn turns(&self) -> &[Message] {
        &self.turns
    }

    /// Returns true if the run has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }
}

/// Returns true if an input ends the run.
fn is_stop(input: &Input) -> bool {
    matches!(
        input,
        Input::Cancel { .. }
            | Input::Expired { .. }
            | Input::OutOfTokens { .. }
            | Input::OutOfMoney { .. }
            | Input::Failed(_)
    )
}

fn broken(rule: &str) -> Ending {
    Ending::failed(&format!("the engine was stopped: {rule}"))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Running {
    /// Passes an answer to the engine, and runs the engine until it requests something or ends.
    async fn answer(&mut self, answer: Answer, account: &Account) -> Next {
        self.cpu.store(0, Relaxed);
        // If the engine has ended, its end is returned below.
        _ = self.answers.send(answer);
        let Running { work, turns, cpu, .. } = self;
        let next = async {
            tokio::select! {
                biased;
                Some(turn) = turns.recv() => Next::Request(turn),
                ended = work => Next::Ended(ended),
            }
        };
        let spend = |time: Duration| _ = cpu.fetch_add(nanos(time), Relaxed);
        account.metered(timed(next, spend)).await
    }
}

/// Calls the engine's `run` in a new instance.
async fn call(
    store: &mut Store<Guest>,
    component: &Component,
    facts: &RunFacts,
) -> wasmtime::Result<Result<wit::Report, String>> {
    let Some(message) = store.data_mut().begin().await else {
        return Ok(Err("the run has ended".to_owned()));
    };
    let setup = serde_json::to_string(&facts.setup).map_err(|why| Fault(why.to_string()))?;
    let engine = component.linked().instantiate_async(&mut *store).await?;
    engine.call_run(store, &message, &setup).await
}

/// Describes the error that stopped an engine.
fn reason(
    error: &wasmtime::Error,
    guest: &Guest,
    component: &Component,
    account: &Account,
) -> String {
    if let Some(Fault(reason)) = error.downcast_ref::<Fault>() {
        return reason.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) if account.is_out_of_cpu() => account.out_of_cpu(),
        Some(Trap::Interrupt) => {
            format!("it used more than {:?} of processor time in one turn", component.bounds().turn)
        }
        Some(Trap::StackOverflow) => "its calls are nested too deeply".to_owned(),
        trap => match (guest.refused(), trap) {
            (Some(refused), _) => refused.to_owned(),
            (None, Some(trap)) => trap.to_string(),
            (None, None) => format!("{}", error.root_cause()),
        },
    }
}
