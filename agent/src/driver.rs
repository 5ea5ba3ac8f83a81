//! The driver: performs what the machine wants done, and tells it what came of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;
use wattle_capability::history::RunHistoryGrant;
use wattle_catalog::{Catalog, Entry};
use wattle_machine::{
    Ask, Call, Dialect, Effect, Ending, Event, Execution, FunctionTool, Input, Message, ModelAnswer, Nonce, Role,
    Setup, State, Usage, Verdict, function_tools, step,
};
use wattle_rt::Grants;
use wattle_rt::tape::Tape as _;

use crate::bug::{BUG, Bug, caught};
use crate::dialect::{DialectSetting, functions};
use crate::history::JournalHistory;
use crate::host::{Host, HostError, Settings};
use crate::journal::{self, PendingApproval, RunTape, Track};
use crate::ledger::{Sealed, Signer};
use crate::meter::Meter;
use crate::model::{Delta, Model, ModelErrorKind, ModelReply, ModelRequest, ask_within};
use crate::otel::RunSpans;
use crate::sink::{Sink, Stamp};
use crate::store::Tenant;
use crate::trace::{Left, Trace};

/// What one run is to do, with what.
pub struct Job {
    /// The user's message.
    pub message: String,
    /// The earlier turns of the session, oldest first.
    pub history: Vec<Message>,
    /// The tenant that the run belongs to.
    pub tenant: Tenant,
    /// The tenant's session that the run belongs to.
    pub session_id: Option<String>,
    /// What the run's programs may use.
    pub grants: Arc<Grants>,
    /// Where the trace is written.
    pub workdir: Option<PathBuf>,
    /// The key that the trace is sealed with; without one it is not sealed.
    pub signer: Option<Arc<Signer>>,
    /// Ends the run when it is cancelled.
    pub cancel: CancellationToken,
    /// Counts what the run's programs take of the model; the one that their port was made with.
    pub meter: Meter,
}

impl Job {
    /// A job of the tenant `default` without a past, a session or a workdir.
    #[must_use]
    pub fn new(message: impl Into<String>, grants: Grants) -> Self {
        Job {
            message: message.into(),
            history: Vec::new(),
            tenant: Tenant::default(),
            session_id: None,
            grants: Arc::new(grants),
            workdir: None,
            signer: None,
            cancel: CancellationToken::new(),
            meter: Meter::default(),
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// The run's id: sortable by time, unguessable.
    pub run_id: String,
    /// How it ended; its text is the result.
    pub ending: Ending,
    /// What a session keeps of the run, beginning with the user's message and ending with an answer: all that was said in a run that
    /// came to its end, what was said of one that was cut short, closed by how it ended. Nothing of one that failed, so that the
    /// same message can be sent again, or whose message was not let through, so that no later one brings it to the model.
    pub turns: Vec<Message>,
    /// How many steps acted.
    pub steps: u32,
    /// Tokens used.
    pub usage: Usage,
    /// What the last seal of its trace says; `None` if it is not sealed.
    pub sealed: Option<Sealed>,
}

impl Report {
    /// The report of a run that ended before it could tell more.
    pub(crate) fn failed(run_id: String, message: String) -> Report {
        Report {
            run_id,
            ending: Ending::Failed { message: format!("error: {message}") },
            turns: Vec::new(),
            steps: 0,
            usage: Usage::default(),
            sealed: None,
        }
    }
}

/// Runs a job to its end: think, read, act, observe, until the answer or a bound. There is always a report; nothing that goes wrong
/// inside the run throws it off the rails.
pub async fn run(host: &Host, model: &dyn Model, settings: &Settings, job: Job, sink: &dyn Sink) -> Report {
    let run_id = ulid::Ulid::generate().to_string();
    let driven = caught(&run_id, async {
        let setup = setup(host, model, settings, &job);
        drive(host, model, settings, (job, setup), sink, (&run_id, None)).await
    });
    match driven.await {
        Ok(Ok(report)) => report,
        Ok(Err(parked)) => parked.given_up(),
        Err(Bug) => Report::failed(run_id.clone(), BUG.to_owned()),
    }
}

/// Drives a job to its end, or to where it waits for the answer of a person; written down where there is a track.
pub(crate) async fn drive(
    host: &Host,
    model: &dyn Model,
    settings: &Settings,
    (job, setup): (Job, Setup),
    sink: &dyn Sink,
    (run_id, track): (&str, Option<&Track>),
) -> Result<Report, Suspended> {
    let past = track.and_then(Track::past);
    let mut performer = Performer::new(host, model, settings, &job, run_id, sink, track);
    performer.functions = function_tools(&setup.programs);
    let (known, begin) = (setup.history.len() + 1, Input::Begin { message: job.message });
    let started = Instant::now();
    let before = past.map_or(Duration::ZERO, |past| past.elapsed);
    let (mut state, mut effects) = match past {
        Some(past) => (past.state.clone(), past.effects.clone()),
        None => performer.advance(State::new(setup), Usage::default(), begin, before).await,
    };
    loop {
        let mut task = Task::Nothing;
        for effect in effects {
            match effect {
                Effect::Emit(event) => performer.stamp.emit(event),
                Effect::Moderate { message } => task = Task::Moderate { message },
                Effect::Ask(ask) => task = Task::Ask(ask),
                Effect::Execute { step, calls } => task = Task::Execute { step, calls },
                Effect::Finish(ending) => {
                    let sealed = performer.trace.end(&ending);
                    if let Some(spans) = &performer.spans {
                        spans.end(&ending);
                    }
                    let turns = kept(&ending, state.conversation().get(known..).unwrap_or_default());
                    let (run_id, steps, usage) = (run_id.to_owned(), state.steps(), state.usage());
                    return Ok(Report { run_id, ending, turns, steps, usage, sealed });
                }
            }
        }
        let input = tokio::select! {
            biased;
            () = job.cancel.cancelled() => Input::Cancel { reason: String::new() },
            limit_ms = expired(started, before, settings.timeout) => Input::Expired { limit_ms },
            input = caught(run_id, performer.perform(&task)) => match input {
                Ok(Ok(input)) => input,
                Ok(Err(waiting)) => return Err(performer.stay(waiting, &state)),
                Err(Bug) => Input::Failed(BUG.to_owned()),
            },
        };
        performer.abort_pending_calls(&task, &input);
        (state, effects) = performer.advance(state, job.meter.take(), input, before + started.elapsed()).await;
    }
}

/// A run that cannot go on before a person has said something.
pub(crate) struct Suspended {
    pub(crate) run_id: String,
    pub(crate) waiting: Vec<PendingApproval>,
    /// The number of the next event.
    pub(crate) seq: u64,
    steps: u32,
    usage: Usage,
}

impl Suspended {
    /// The report of a run that nobody can answer, because it is kept nowhere.
    fn given_up(self) -> Report {
        let Suspended { run_id, waiting, steps, usage, .. } = self;
        let questions: Vec<&str> = waiting.iter().map(|waiting| waiting.question.as_str()).collect();
        let failed = Report::failed(run_id, format!("nobody could be asked: {}", questions.join("; ")));
        Report { steps, usage, ..failed }
    }
}

/// What the state machine of a job starts from.
pub(crate) fn setup(host: &Host, model: &dyn Model, settings: &Settings, job: &Job) -> Setup {
    let said = job.history.iter().find(|message| message.role == Role::User).map(|message| message.content.as_str());
    let listing =
        host.listing(job.session_id.as_deref().map(|session| (&job.tenant, session)), said.unwrap_or(&job.message));
    let catalog = host.catalog();
    let dialect = settings.dialect.choose(model);
    let prompt = |dialect| host.prompt(settings, &job.grants, &listing, dialect);
    let may_fall_back = settings.dialect == DialectSetting::Auto && dialect == Dialect::Native;
    let described = |entry: &Arc<Entry>| (entry.name().to_string(), entry.meta().description.clone());
    Setup {
        settings: settings.machine,
        system: prompt(dialect),
        history: job.history.clone(),
        nonce: nonce(),
        session_id: job.session_id.clone(),
        descriptions: catalog.iter().map(described).collect(),
        dialect,
        fallback: may_fall_back.then(|| prompt(Dialect::Text)),
        programs: functions(&catalog, &listing, &job.grants),
        is_moderated: settings.moderation.is_some(),
    }
}

/// Makes the nonce of a run of bits that nobody can foresee.
pub(crate) fn nonce() -> Nonce {
    let mut bits = [0; 8];
    // Without the system's randomness there is still one that differs from run to run.
    Nonce::new(getrandom::fill(&mut bits).map_or_else(|_| fastrand::u64(..), |()| u64::from_le_bytes(bits)))
}

/// What a session keeps of what a run that ended so has said.
fn kept(ending: &Ending, said: &[Message]) -> Vec<Message> {
    if matches!(ending, Ending::Failed { .. } | Ending::Blocked { .. }) {
        return Vec::new();
    }
    let open = said.last().is_none_or(|last| last.role != Role::Assistant);
    let close = open.then(|| Message::assistant(ending.text()));
    said.iter().cloned().chain(close).collect()
}

/// Comes back when the run's time is up, with its bound; never where it has none.
async fn expired(started: Instant, before: Duration, timeout: Option<Duration>) -> u64 {
    match timeout {
        Some(timeout) => {
            tokio::time::sleep(timeout.saturating_sub(before + started.elapsed())).await;
            u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
        }
        None => std::future::pending().await,
    }
}

/// The one thing that the machine waits for.
enum Task {
    Moderate { message: String },
    Ask(Ask),
    Execute { step: u32, calls: Vec<Call> },
    Nothing,
}

/// Performs tasks for one run.
struct Performer<'a> {
    host: &'a Host,
    /// The catalog as the run found it.
    catalog: Catalog,
    model: &'a dyn Model,
    settings: &'a Settings,
    grants: Arc<Grants>,
    /// What a model is offered that calls functions.
    functions: Vec<FunctionTool>,
    meter: Meter,
    stamp: Stamp<'a>,
    trace: Trace<'a>,
    track: Option<&'a Track>,
    spans: Option<RunSpans>,
    teller: Arc<JournalHistory>,
}

impl<'a> Performer<'a> {
    fn new(
        host: &'a Host,
        model: &'a dyn Model,
        settings: &'a Settings,
        job: &Job,
        run_id: &'a str,
        sink: &'a dyn Sink,
        track: Option<&'a Track>,
    ) -> Self {
        let past = track.and_then(Track::past);
        let author = (settings.agent.as_str(), model.name());
        let place = (job.workdir.as_deref(), model.mask());
        let trace = Trace::open(run_id, author, place, job.signer.clone(), past.is_some());
        let teller = Arc::new(JournalHistory::new(run_id));
        let account = job.grants.account().cloned().unwrap_or_else(|| host.runtime().open_account());
        let grants = job
            .grants
            .as_ref()
            .clone()
            .charged_to(account)
            .with(RunHistoryGrant(Arc::<JournalHistory>::clone(&teller)));
        let grants = Arc::new(grants);
        let stamp = Stamp::from(run_id, sink, past.map_or(1, |past| past.seq));
        let (functions, meter) = (Vec::new(), job.meter.clone());
        let catalog = host.catalog();
        let session = job.session_id.as_deref();
        let spans = host.collector().map(|collector| RunSpans::new(collector, run_id, author, session, model.mask()));
        Performer { host, catalog, model, settings, grants, functions, meter, stamp, trace, track, spans, teller }
    }

    /// Takes a step of the state machine, and writes it down before anything is done about it. A run whose journal fails ends; where it has
    /// ended anyway, its result is worth more.
    async fn advance(&self, state: State, spent: Usage, input: Input, elapsed: Duration) -> (State, Vec<Effect>) {
        let (state, effects) = journal::advance(state, spent, input.clone());
        let Some(track) = self.track else { return (state, effects) };
        match track.note((spent, &input), &effects, self.stamp.next(), elapsed).await {
            Ok(()) => (state, effects),
            Err(error) if state.has_ended() => {
                tracing::error!(%error, "failed to write the end of a run down");
                (state, effects)
            }
            Err(error) => step(state, Input::Failed(error.to_string())),
        }
    }

    fn stay(&self, waiting: Vec<PendingApproval>, state: &State) -> Suspended {
        let run_id = self.trace.run_id().to_owned();
        Suspended { run_id, waiting, seq: self.stamp.next(), steps: state.steps(), usage: state.usage() }
    }

    /// Performs a task; an error is what the run waits for.
    async fn perform(&self, task: &Task) -> Result<Input, Vec<PendingApproval>> {
        Ok(match task {
            Task::Moderate { message } => Input::Moderated(match &self.settings.moderation {
                Some(moderation) => moderation.judge(message, &self.meter).await,
                None => Verdict::Allowed,
            }),
            Task::Ask(ask) => self.ask(ask).await,
            Task::Execute { step, calls } => {
                let calls = calls.iter().enumerate().map(|(at, call)| self.call(*step, at, call));
                let (mut executions, mut waiting) = (Vec::new(), Vec::new());
                for called in join_all(calls).await {
                    match called {
                        Ok(Called::Done(execution)) => executions.push(*execution),
                        Ok(Called::Pending(questions)) => waiting.extend(questions),
                        Err(broken) => return Ok(Input::Failed(broken)),
                    }
                }
                if !waiting.is_empty() {
                    return Err(waiting);
                }
                Input::Executed(executions)
            }
            Task::Nothing => Input::Failed("the run came to a state that waits for nothing; this is a bug".to_owned()),
        })
    }

    /// Leaves a line in the trace for each call that began and was given up before its end.
    fn abort_pending_calls(&self, task: &Task, input: &Input) {
        let reason = match input {
            Input::Cancel { .. } => "cancelled",
            Input::Expired { .. } => "the run's time was up",
            Input::Failed(message) => message,
            _ => return,
        };
        if let Task::Execute { step, calls } = task {
            let execution = Execution::Refused { reason: format!("stopped: {reason}") };
            let left = Left::by(&execution);
            calls.iter().for_each(|call| self.trace.write(*step, call, &left, 0));
        }
    }

    async fn ask(&self, ask: &Ask) -> Input {
        let settings = &self.settings;
        let request = ModelRequest {
            messages: &ask.messages,
            functions: if ask.dialect == Dialect::Native { &self.functions } else { &[] },
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
        };
        let (step, mut restarts) = (ask.step, 0);
        let mut on_delta = |delta: Delta<'_>| match delta {
            Delta::Text(text) => self.stamp.emit(Event::Delta { step, text: text.to_owned() }),
            Delta::Restart => {
                restarts += 1;
                let error = "the model's answer broke off; it is asked again from the beginning".to_owned();
                self.stamp.emit(Event::Retry { step, attempt: restarts, error });
            }
        };
        let from = SystemTime::now();
        let asked = ask_within(self.model, &settings.timeouts, request, &mut on_delta).await;
        if let Some(spans) = &self.spans {
            spans.chat(from, asked.as_ref().map_err(ToString::to_string));
        }
        match asked {
            Ok(reply) => {
                let (is_truncated, usage) =
                    (reply.is_truncated(), settings.prices.priced(self.model.name(), reply.usage));
                let ModelReply { text, calls, reasoning, .. } = reply;
                Input::Answer(ModelAnswer { text, calls, is_truncated, reasoning, usage })
            }
            Err(error) if error.kind() == ModelErrorKind::Functions => Input::WithoutFunctions(error.to_string()),
            Err(error) => Input::Failed(error.to_string()),
        }
    }

    async fn call(&self, step: u32, at: usize, call: &Call) -> Result<Called, String> {
        let (started, from) = (Instant::now(), SystemTime::now());
        let tape = self.track.map(|track| track.tape(at));
        let grants = match &tape {
            Some(tape) => Arc::new(self.grants.as_ref().clone().taped(Arc::<RunTape>::clone(tape))),
            None => Arc::clone(&self.grants),
        };
        let performed = crate::act::perform(self.host.runtime(), &self.catalog, &grants, call).await;
        let execution = performed.map_err(|broken| {
            if let HostError::Bug(bug) = &broken {
                let (run, function) = (self.trace.run_id(), bug.function);
                tracing::error!(run, function, panic = %bug.message, "a host function panicked, which is a bug");
            }
            broken.to_string()
        })?;
        if let Some(tape) = tape {
            tape.flush().await.map_err(|halt| halt.to_string())?;
            let asked = tape.waiting();
            if !asked.is_empty() {
                let call = format!("{step}.{}", at + 1);
                let waiting = |question| PendingApproval { call: call.clone(), question };
                return Ok(Called::Pending(asked.into_iter().map(waiting).collect()));
            }
        }
        let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left = Left::by(&execution);
        self.trace.write(step, call, &left, took);
        if let Some(spans) = &self.spans {
            spans.tool(from, (step, at + 1), call, &left);
        }
        self.teller.add(step, call, &left, took);
        Ok(Called::Done(Box::new(execution)))
    }
}

/// What became of a call.
enum Called {
    Done(Box<Execution>),
    /// It waits for the answers to these.
    Pending(Vec<PendingApproval>),
}
