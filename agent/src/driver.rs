//! The driver: performs what the machine wants done, and tells it what came of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio_util::sync::CancellationToken;
use wattle_capability::story::Told;
use wattle_catalog::{Catalog, Entry};
use wattle_machine::{
    Ask, Call, Dialect, Effect, Ending, Event, Execution, FunctionTool, Input, Message, ModelAnswer, Role, Setup,
    State, Usage, Verdict, function_tools, step,
};
use wattle_rt::Grants;

use crate::dialect::{DialectSetting, functions};
use crate::host::{Broken, Host, Settings};
use crate::ledger::Signer;
use crate::meter::Meter;
use crate::model::{Delta, Model, ModelErrorKind, ModelReply, ModelRequest, ask_within};
use crate::sink::{Sink, Stamp};
use crate::story::Teller;
use crate::trace::Trace;

/// What one run is to do, with what.
pub struct Job {
    /// The user's message.
    pub message: String,
    /// The earlier turns of the session, oldest first.
    pub history: Vec<Message>,
    /// The session that the run belongs to.
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
    /// A job without a past, a session or a workdir.
    #[must_use]
    pub fn new(message: impl Into<String>, grants: Grants) -> Self {
        Job {
            message: message.into(),
            history: Vec::new(),
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
}

/// Runs a job to its end: think, read, act, observe, until the answer or a bound. There is always a report; nothing that goes wrong
/// inside the run throws it off the rails.
pub async fn run(host: &Host, model: &dyn Model, settings: &Settings, job: Job, sink: &dyn Sink) -> Report {
    let run_id = ulid::Ulid::generate().to_string();
    let mut performer = Performer::new(host, model, settings, &job, &run_id, sink);
    let setup = setup(&performer, settings, &job);
    performer.functions = function_tools(&setup.programs);
    let (known, begin) = (job.history.len() + 1, Input::Begin { message: job.message });
    let (mut state, mut effects) = step(State::new(setup), begin);
    let started = Instant::now();
    loop {
        let mut task = Task::Nothing;
        for effect in effects {
            match effect {
                Effect::Emit(event) => performer.stamp.emit(event),
                Effect::Moderate { message } => task = Task::Moderate { message },
                Effect::Ask(ask) => task = Task::Ask(ask),
                Effect::Execute { step, calls } => task = Task::Execute { step, calls },
                Effect::Finish(ending) => {
                    performer.trace.end(&ending);
                    let turns = kept(&ending, state.conversation().get(known..).unwrap_or_default());
                    return Report { run_id, ending, turns, steps: state.steps(), usage: state.usage() };
                }
            }
        }
        let input = tokio::select! {
            biased;
            () = job.cancel.cancelled() => Input::Cancel { reason: String::new() },
            limit_ms = expired(started, settings.timeout) => Input::Expired { limit_ms },
            input = performer.perform(&task) => input,
        };
        performer.cut_short(&task, &input);
        let spent = job.meter.take();
        if spent != Usage::default() {
            (state, _) = step(state, Input::Spent(spent));
        }
        (state, effects) = step(state, input);
    }
}

fn setup(performer: &Performer<'_>, settings: &Settings, job: &Job) -> Setup {
    let said = job.history.iter().find(|message| message.role == Role::User).map(|message| message.content.as_str());
    let listing = performer.host.listing(job.session_id.as_deref(), said.unwrap_or(&job.message));
    let dialect = settings.dialect.choose(performer.model);
    let prompt = |dialect| performer.host.prompt(settings, &job.grants, &listing, dialect);
    let may_fall_back = settings.dialect == DialectSetting::Auto && dialect == Dialect::Native;
    let described = |entry: &Arc<Entry>| (entry.name().to_string(), entry.meta().description.clone());
    Setup {
        settings: settings.machine,
        system: prompt(dialect),
        history: job.history.clone(),
        session_id: job.session_id.clone(),
        descriptions: performer.catalog.iter().map(described).collect(),
        dialect,
        fallback: may_fall_back.then(|| prompt(Dialect::Text)),
        programs: functions(&performer.catalog, &listing, &job.grants),
        is_moderated: settings.moderation.is_some(),
    }
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
async fn expired(started: Instant, timeout: Option<Duration>) -> u64 {
    match timeout {
        Some(timeout) => {
            tokio::time::sleep(timeout.saturating_sub(started.elapsed())).await;
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
    teller: Arc<Teller>,
}

impl<'a> Performer<'a> {
    fn new(
        host: &'a Host,
        model: &'a dyn Model,
        settings: &'a Settings,
        job: &Job,
        run_id: &'a str,
        sink: &'a dyn Sink,
    ) -> Self {
        let author = (settings.agent.as_str(), model.name());
        let trace = Trace::open(run_id, author, job.workdir.as_deref(), job.signer.clone());
        let teller = Arc::new(Teller::new(run_id));
        let grants = Arc::new(job.grants.as_ref().clone().with(Told(Arc::<Teller>::clone(&teller))));
        let (functions, meter) = (Vec::new(), job.meter.clone());
        let stamp = Stamp::root(run_id, sink);
        Performer { host, catalog: host.catalog(), model, settings, grants, functions, meter, stamp, trace, teller }
    }

    async fn perform(&self, task: &Task) -> Input {
        match task {
            Task::Moderate { message } => Input::Moderated(match &self.settings.moderation {
                Some(moderation) => moderation.judge(message, &self.meter).await,
                None => Verdict::Allowed,
            }),
            Task::Ask(ask) => self.ask(ask).await,
            Task::Execute { step, calls } => {
                match try_join_all(calls.iter().map(|call| self.call(*step, call))).await {
                    Ok(executions) => Input::Executed(executions),
                    Err(broken) => Input::Failed(broken.to_string()),
                }
            }
            Task::Nothing => Input::Failed("the run came to a state that waits for nothing; this is a bug".to_owned()),
        }
    }

    /// Leaves a line in the trace for each call that began and was given up before its end.
    fn cut_short(&self, task: &Task, input: &Input) {
        let reason = match input {
            Input::Cancel { .. } => "cancelled",
            Input::Expired { .. } => "the run's time was up",
            Input::Failed(message) => message,
            _ => return,
        };
        if let Task::Execute { step, calls } = task {
            let execution = Execution::Refused { reason: format!("stopped: {reason}") };
            calls.iter().for_each(|call| self.trace.write(*step, call, &execution, 0));
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
        match ask_within(self.model, &settings.timeouts, request, &mut on_delta).await {
            Ok(reply) => {
                let (is_cut, usage) = (reply.is_cut(), settings.prices.priced(self.model.name(), reply.usage));
                let ModelReply { text, calls, reasoning, .. } = reply;
                Input::Answer(ModelAnswer { text, calls, is_cut, reasoning, usage })
            }
            Err(error) if error.kind() == ModelErrorKind::Functions => Input::WithoutFunctions(error.to_string()),
            Err(error) => Input::Failed(error.to_string()),
        }
    }

    async fn call(&self, step: u32, call: &Call) -> Result<Execution, Broken> {
        let started = Instant::now();
        let execution = crate::act::perform(self.host.runtime(), &self.catalog, &self.grants, call).await?;
        let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.trace.write(step, call, &execution, took);
        self.teller.add(step, call, &execution, took);
        Ok(execution)
    }
}
