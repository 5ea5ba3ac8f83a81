//! The driver performs the effects that the state machine requests, and returns their results to
//! it.

mod call;
mod contribute;
mod results;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use wattle_capability::fs::Fs;
use wattle_capability::history::RunHistoryGrant;
use wattle_catalog::Catalog;
use wattle_machine::{
    AnswerPart, Ask, Call, Completion, Dialect, Draft, DraftPiece, Effect, Ending, Event,
    Execution, FunctionTool, Input, Message, ProgramFunction, Purpose, Role, Setup, ShownAnswer,
    Stop, TraitProgram, Usage, Verdict, result_name,
};
use wattle_model::{
    ContextExcess, Delta, FunctionChoice, ModelErrorKind, ModelRequest, ask_within,
};
use wattle_rt::Grants;

use crate::bug::{BUG, Bug, caught};
use crate::charge::charge_files;
use crate::history::StepHistory;
use crate::hooks::RequestGuard;
use crate::journal::{PendingApproval, ResumePoint, RunRequest, TurnRecorder};
use crate::kept::RunKept;
use crate::otel::RunSpans;
use crate::parts::RunParts;
use crate::report::Report;
use crate::run_loop::RunLoop;
use crate::run_output::RunOutput;
use crate::setup::{setup, start};
use crate::sink::{Sink, Stamp, events_of};
use crate::trace::{Author, CallOutcome, Trace};
use call::CallState;

pub(crate) use contribute::run_catalog;
pub(crate) use results::limited;

/// Drives a run to completion: sends requests to the model, executes the calls in its replies, and
/// returns the observations to the model, until the model gives its answer or a limit is reached.
/// Failures inside the run are recorded in the report. No journal records the run.
pub async fn run(parts: RunParts, request: &RunRequest, sink: &dyn Sink) -> Report {
    let driven = caught(&request.id, async {
        parts.fill_masks().await;
        let parts = parts.in_tree(&request.id);
        let start = start(&parts, request, setup(&parts, request).await);
        let run_loop = RunLoop::of_host(&parts.host, &start);
        // Boxed, because a run's future is large and the caller's stack may be small.
        Box::pin(drive(&parts, request, start.setup, run_loop, (sink, None))).await
    });
    match driven.await {
        Ok(Ok(report)) => report,
        Ok(Err(suspended)) => suspended.into_failure(),
        Err(Bug) => Report::failed(request.id.clone(), BUG.to_owned()),
    }
}

/// Drives a run until it ends or has to wait for a person's answer. With a recorder, each turn is
/// journaled. If the recorder resumes the run, `run_loop` is in the state after the last turn.
pub(crate) async fn drive(
    parts: &RunParts,
    request: &RunRequest,
    setup: Setup,
    mut run_loop: RunLoop,
    (sink, recorder): (&dyn Sink, Option<&TurnRecorder>),
) -> Result<Report, Suspended> {
    let run_id = request.id.as_str();
    let resumed = recorder.and_then(TurnRecorder::resumed);
    let mut performer =
        Performer::new(parts, request, (sink, setup.settings.observation_limit), recorder);
    performer.restore_kept(&run_loop);
    performer.offer(setup.dialect, &setup.programs);
    performer.traits.clone_from(&setup.traits);
    if resumed.is_some() {
        performer.offer_added(&run_loop);
    }
    if let Some(contract) = &setup.output {
        let known = parts.output.iter().chain(&parts.settings.output);
        performer.output = RunOutput::of(contract, known);
    }
    let begin = Input::Begin { message: request.message.clone() };
    let started = Instant::now();
    let before = resumed.map_or(Duration::ZERO, |resumed| resumed.elapsed);
    let mut effects;
    (run_loop, effects) = match resumed {
        Some(resumed) => {
            performer.emit_again(resumed);
            match &resumed.broken {
                None => (run_loop, resumed.effects.clone()),
                Some(broken) => {
                    let failed = Input::Failed(broken.clone());
                    performer.advance(run_loop, Usage::default(), failed, before).await
                }
            }
        }
        None => performer.advance(run_loop, Usage::default(), begin, before).await,
    };
    loop {
        let mut task = Task::Nothing;
        for effect in effects {
            match effect {
                // The event was already emitted when the turn was recorded.
                Effect::Emit(_) => {}
                Effect::Moderate { message } => task = Task::Moderate { message },
                Effect::Ask(ask) => task = Task::Ask(ask),
                Effect::Execute { step, calls } => task = Task::Execute { step, calls },
                Effect::Refuse { step, call, reason } => {
                    let refused = Execution::Refused { reason };
                    let called = (step, &call, &performer.catalog);
                    performer.trace.write(called, &CallOutcome::of(&refused), 0);
                }
                Effect::Done { step, call } => {
                    let done = Execution::Ran(Completion {
                        results: call.args().to_vec(),
                        ..Completion::default()
                    });
                    let called = (step, &call, &performer.catalog);
                    performer.trace.write(called, &CallOutcome::of(&done), 0);
                }
                Effect::Recall { step, call } => task = Task::Recall { step, call },
                Effect::Contribute { step, calls } => task = Task::Contribute { step, calls },
                Effect::Validate { text } => task = Task::Validate { text },
                Effect::Finish(ending) => {
                    let sealed = performer.trace.end(&ending).await;
                    if let Some(spans) = &performer.spans {
                        spans.end(&ending);
                    }
                    let turns = session_turns(&ending, run_loop.turns());
                    return Ok(Report {
                        run_id: run_id.to_owned(),
                        ending,
                        turns,
                        steps: run_loop.steps(),
                        usage: run_loop.usage(),
                        artifacts: run_loop.artifacts().to_vec(),
                        sealed,
                    });
                }
            }
        }
        lock(&performer.done).clear();
        let task_started = Instant::now();
        let input = tokio::select! {
            biased;
            () = parts.cancel.cancelled() => {
                Input::Cancel { reason: parts.cancel.reason().to_owned() }
            }
            limit_ms = expired(started, before, parts.settings.timeout) => Input::Expired { limit_ms },
            input = caught(run_id, Box::pin(performer.perform(&task))) => match input {
                Ok(Ok(input)) => input,
                Ok(Err(waiting)) => {
                    parts.tree.waiting().reset();
                    return Err(performer.suspend(waiting, &run_loop));
                }
                Err(Bug) => Input::Failed(BUG.to_owned()),
            },
        };
        parts.tree.waiting().end();
        performer.abort_pending_calls(&task, &input, task_started.elapsed());
        let spent = parts.meter.take();
        parts.tree.charge(spent);
        let spent = spent + parts.tree.child_usage().take();
        let elapsed = before + started.elapsed();
        (run_loop, effects) = performer.advance(run_loop, spent, input, elapsed).await;
        if matches!(task, Task::Contribute { .. }) {
            performer.offer_added(&run_loop);
        }
    }
}

/// A run that is suspended until a person answers its questions.
pub(crate) struct Suspended {
    pub(crate) run_id: String,
    pub(crate) waiting: Vec<PendingApproval>,
    /// The sequence number of the next event.
    pub(crate) seq: u64,
    steps: u32,
    usage: Usage,
}

impl Suspended {
    /// Reports a suspended run as failed. Without a journal, nobody can resume it.
    fn into_failure(self) -> Report {
        let Suspended { run_id, waiting, steps, usage, .. } = self;
        let questions: Vec<&str> =
            waiting.iter().map(|waiting| waiting.question.as_str()).collect();
        let failed = Report::failed(
            run_id,
            format!("no person was available to answer: {}", questions.join("; ")),
        );
        Report { steps, usage, ..failed }
    }
}

/// Returns the messages that a session keeps from a run with this ending.
fn session_turns(ending: &Ending, messages: &[Message]) -> Vec<Message> {
    if matches!(ending, Ending::Failed { .. } | Ending::Blocked { .. }) {
        return Vec::new();
    }
    let open = messages.last().is_none_or(|last| last.role != Role::Assistant);
    let close = open.then(|| Message::assistant(ending.text()));
    messages.iter().cloned().chain(close).collect()
}

/// Waits until the run's time limit expires and returns the limit in milliseconds. Waits forever if
/// there is no limit.
async fn expired(started: Instant, before: Duration, timeout: Option<Duration>) -> u64 {
    match timeout {
        Some(timeout) => {
            tokio::time::sleep(timeout.saturating_sub(before + started.elapsed())).await;
            u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
        }
        None => std::future::pending().await,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the event of a part of an unfinished answer.
fn of_draft(step: u32, piece: DraftPiece) -> Event {
    match piece {
        DraftPiece::Thought(text) => Event::ThoughtDelta { step, text },
        DraftPiece::Answer { text, is_certain } => Event::AnswerDelta { step, text, is_certain },
        DraftPiece::Void => Event::AnswerVoid { step },
    }
}

/// The task whose result the state machine is waiting for.
enum Task {
    Moderate { message: String },
    Ask(Ask),
    Execute { step: u32, calls: Vec<Call> },
    Recall { step: u32, call: Call },
    Contribute { step: u32, calls: Vec<Call> },
    Validate { text: String },
    Nothing,
}

/// The context in which one run's tasks are performed.
struct Performer<'a> {
    parts: &'a RunParts,
    /// The catalog as it was at the start of the run, plus the programs that traits have added.
    catalog: Catalog,
    /// The programs of the agent's traits.
    traits: Vec<TraitProgram>,
    grants: Arc<Grants>,
    /// The reason why the run cannot go on, if its account has no memory for its files.
    refused: Option<String>,
    /// The functions offered to the model in the native dialect.
    functions: Arc<[FunctionTool]>,
    output: RunOutput,
    stamp: Stamp<'a>,
    trace: Trace<'a>,
    recorder: Option<&'a TurnRecorder>,
    spans: Option<RunSpans>,
    history: Arc<StepHistory>,
    /// The indices of the step's calls that have ended.
    done: Mutex<BTreeSet<usize>>,
    /// The programs that the model may call.
    programs: Arc<Vec<ProgramFunction>>,
    /// The values that programs kept for later programs.
    kept: RunKept,
    /// The parts of the model's answer that were shown while it was written.
    shown: Mutex<ShownAnswer>,
}

impl<'a> Performer<'a> {
    fn new(
        parts: &'a RunParts,
        request: &'a RunRequest,
        (sink, observation_limit): (&'a dyn Sink, usize),
        recorder: Option<&'a TurnRecorder>,
    ) -> Self {
        let RunParts { host, model, settings, tree, .. } = parts;
        let run_id = request.id.as_str();
        let resumed = recorder.and_then(TurnRecorder::resumed);
        let session = request.session.clone().or_else(|| parts.label.clone());
        let author = Author { agent: &settings.agent, model: model.name(), session };
        let output = (parts.trace_dir.as_deref(), parts.mask.clone());
        let spans = host.collector();
        let spans = spans.map(|to| RunSpans::new((to, host.mask().whole()), run_id, &author));
        let trace = Trace::open(run_id, author, output, parts.signer.clone(), resumed.is_some());
        let history = Arc::new(StepHistory::new(run_id));
        let account = tree.account(host.runtime(), parts.grants.account());
        // A child run leaves the files that it shares with its parent charged to the parent.
        let charged = charge_files(&parts.grants, &account, tree.is_top());
        let grants = parts.grants.as_ref().clone().charged_to(account);
        let grants = grants.with(RunHistoryGrant(Arc::<StepHistory>::clone(&history)));
        let grants = match (trace.view(), grants.config::<Fs>()) {
            (Some(view), Some(files)) => grants.with(Fs(Arc::new(files.0.with_trace(view)))),
            _ => grants,
        };
        let stamp = Stamp::from(run_id, sink, resumed.map_or(1, |resumed| resumed.seq));
        Performer {
            parts,
            catalog: host.catalog(),
            traits: Vec::new(),
            grants: Arc::new(grants),
            refused: charged.err().map(|error| error.to_string()),
            functions: Arc::default(),
            output: RunOutput::None,
            stamp: stamp.under(tree.root(run_id)),
            trace,
            recorder,
            spans,
            history,
            done: Mutex::default(),
            programs: Arc::default(),
            kept: RunKept::new(observation_limit),
            shown: Mutex::default(),
        }
    }

    /// Restores the kept values of a resumed run.
    fn restore_kept(&self, run_loop: &RunLoop) {
        let Some(resumed) = self.recorder.and_then(TurnRecorder::resumed) else { return };
        let restored = self
            .grants
            .account()
            .map(|account| self.kept.restore(account, run_loop.kept(), &resumed.kept));
        if let Some(Err(error)) = restored {
            let run = self.trace.run_id();
            tracing::error!(run, %error, "failed to restore the kept values of a run");
        }
        self.kept.settle(run_loop.kept());
    }

    /// Offers the programs to the model, in the native dialect as functions.
    fn offer(&mut self, dialect: Dialect, programs: &Arc<Vec<ProgramFunction>>) {
        self.programs = Arc::clone(programs);
        if dialect == Dialect::Native {
            self.functions = self.parts.host.shared().tools(programs);
        }
    }

    /// Offers the model the programs and agents that traits have added.
    fn offer_added(&mut self, run_loop: &RunLoop) {
        self.catalog = run_catalog(&self.parts.host, run_loop);
        self.offer(run_loop.dialect(), run_loop.programs());
        self.parts.delegates.add(run_loop.added_delegates());
    }

    /// Advances the run's loop, journals the turn with its events, and emits the events. If the
    /// journal fails, the run fails. A run that has already ended keeps its result.
    async fn advance(
        &self,
        run_loop: RunLoop,
        spent: Usage,
        input: Input,
        elapsed: Duration,
    ) -> (RunLoop, Vec<Effect>) {
        let first = self.stamp.next();
        let (mut run_loop, mut effects) = run_loop.advance(spent, input.clone(), elapsed).await;
        let mut events = self.stamp.number(events_of(&effects));
        if let Some(recorder) = self.recorder
            && let Err(error) =
                recorder.record((spent, &input), &effects, &events, (first, elapsed)).await
        {
            if run_loop.has_ended() {
                tracing::error!(%error, "failed to journal the end of a run");
            } else {
                let failed = Input::Failed(error.to_string());
                (run_loop, effects) = run_loop.advance(Usage::default(), failed, elapsed).await;
                self.stamp.set_next(first);
                events = self.stamp.number(events_of(&effects));
            }
        }
        self.kept.settle(run_loop.kept());
        self.settle(run_loop.steps(), &effects, first.saturating_sub(1));
        self.stamp.emit(&events);
        (run_loop, effects)
    }

    /// Passes parts of the model's answer to the sink.
    fn show(&self, step: u32, pieces: Vec<DraftPiece>) {
        for piece in pieces {
            lock(&self.shown).add(&piece);
            self.stamp.live(of_draft(step, piece));
        }
    }

    /// Passes the rest of the answer to the sink, or takes back what was shown if it is no answer.
    /// `seq` is the sequence number of the previous recorded event.
    fn settle(&self, step: u32, effects: &[Effect], seq: u64) {
        let mut shown = lock(&self.shown);
        let response = events_of(effects).find_map(|event| match event {
            Event::Response { text, stop, .. } => Some((text.as_str(), *stop)),
            _ => None,
        });
        if response.is_none()
            && effects.iter().any(|effect| matches!(effect, Effect::Validate { .. }))
        {
            return;
        }
        let answer = response.filter(|(text, stop)| *stop == Stop::Answered || shown.begins(text));
        for piece in std::mem::take(&mut *shown).settle(answer.map(|(text, _)| text)) {
            self.stamp.live_after(seq, of_draft(step, piece));
        }
    }

    /// Emits the events of the turn during which the run was stopped, unless they are already
    /// recorded. New events are numbered after the recorded ones.
    fn emit_again(&self, resumed: &ResumePoint) {
        let mut events = self.stamp.number(events_of(&resumed.effects));
        events.retain(|event| event.seq > resumed.recorded);
        self.stamp.emit(&events);
        self.stamp.set_next(self.stamp.next().max(resumed.recorded.saturating_add(1)));
    }

    fn suspend(&self, waiting: Vec<PendingApproval>, run_loop: &RunLoop) -> Suspended {
        let run_id = self.trace.run_id().to_owned();
        Suspended {
            run_id,
            waiting,
            seq: self.stamp.next(),
            steps: run_loop.steps(),
            usage: run_loop.usage(),
        }
    }

    /// Performs a task and returns the result as input for the state machine. The error lists the
    /// approvals that the run is waiting for.
    async fn perform(&self, task: &Task) -> Result<Input, Vec<PendingApproval>> {
        if let Some(reason) = &self.refused {
            return Ok(Input::Failed(reason.clone()));
        }
        Ok(match task {
            Task::Moderate { message } => Input::Moderated(match &self.parts.settings.moderation {
                Some(moderation) => moderation.judge(message, &self.parts.meter).await,
                None => Verdict::Allowed,
            }),
            Task::Ask(ask) => match self.parts.tree.over_budget() {
                Some(over) => over.into_input(),
                None => self.ask(ask).await,
            },
            Task::Execute { step, calls } => {
                if let Some(hooks) = &self.parts.hooks
                    && let Some(given) = hooks.before_calls(*step, calls).await
                {
                    return Ok(self.given(*step, calls, given).await);
                }
                let time = self.parts.host.runtime().limits().time;
                let with = (&self.catalog, time);
                let result = |at| Some(result_name(at, calls.len()));
                let calls = calls
                    .iter()
                    .enumerate()
                    .map(|(at, call)| self.call((*step, at), call, with, result(at)));
                let (mut executions, mut waiting) = (Vec::new(), Vec::new());
                for called in join_all(calls).await {
                    match called {
                        Ok(CallState::Done(execution)) => executions.push(*execution),
                        Ok(CallState::Pending(questions)) => waiting.extend(questions),
                        Err(broken) => return Ok(Input::Failed(broken)),
                    }
                }
                if !waiting.is_empty() {
                    // The run is parked. No turn follows in which the calls would be recorded.
                    let recorded = match self.recorder {
                        Some(recorder) => recorder.record_calls().await,
                        None => Ok(()),
                    };
                    return recorded.map_or_else(
                        |error| Ok(Input::Failed(error.to_string())),
                        |()| Err(waiting),
                    );
                }
                match self.parts.files().map(|files| files.check_workdir()) {
                    Some(Err(gone)) => Input::Failed(gone.to_string()),
                    _ => Input::Executed(executions),
                }
            }
            Task::Recall { step, call } => {
                let programs = self.parts.host.internal_programs();
                Input::Recalled(self.internal_call((*step, 0), call, &programs).await)
            }
            Task::Contribute { step, calls } => self.contribute(*step, calls).await,
            Task::Validate { text } => self.output.validate(text).await,
            Task::Nothing => Input::Failed(
                "the run came to a state that waits for nothing; this is a bug".to_owned(),
            ),
        })
    }

    async fn ask(&self, ask: &Ask) -> Input {
        let settings = &self.parts.settings;
        if let Some(hooks) = &self.parts.hooks {
            hooks.before_ask().await;
        }
        let messages = self.parts.hooks.as_ref().and_then(|hooks| hooks.messages(&ask.messages));
        let function_choice = match ask.purpose {
            Purpose::Conclude | Purpose::Amend => FunctionChoice::None,
            Purpose::Act | Purpose::Repair => {
                let choice = self.parts.hooks.as_ref().and_then(|hooks| hooks.tool_call());
                choice.unwrap_or(settings.tool_call)
            }
        };
        let request = ModelRequest {
            messages: messages.as_deref().unwrap_or(&ask.messages),
            functions: if ask.dialect == Dialect::Native { &self.functions } else { &[] },
            function_choice,
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            thinking_effort: settings.thinking_effort,
            output: self.output.constraint(ask, function_choice),
            timeouts: None,
        };
        let (step, mut restarts) = (ask.step, 0);
        let new_draft = || Draft::new(ask.dialect, self.output.is_some(), &self.programs);
        let mut draft = new_draft();
        let mut on_delta = |delta: Delta<'_>| match delta {
            Delta::Part(part) => {
                if let AnswerPart::Text(text) = part {
                    self.stamp.live(Event::Delta { step, text: text.to_owned() });
                }
                self.show(step, draft.push(part));
            }
            Delta::Retry { after, reason } => {
                draft = new_draft();
                let shown = std::mem::take(&mut *lock(&self.shown));
                self.show(step, shown.settle(None));
                restarts += 1;
                self.stamp.live(Event::Retry {
                    step,
                    attempt: restarts,
                    error: reason.to_owned(),
                    after_ms: Some(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
                });
            }
        };
        let admission = match self.parts.tree.admit().await {
            Ok(admission) => admission,
            Err(over) => return over.into_input(),
        };
        let from = SystemTime::now();
        let guard = RequestGuard::begin(self.parts.hooks.as_ref());
        let model = &*self.parts.model;
        let timeouts = &settings.timeouts;
        let asked = match &self.parts.hooks {
            Some(hooks) => hooks.ask(model, timeouts, request, &mut on_delta).await,
            None => ask_within(model, timeouts, request, &mut on_delta).await,
        };
        if let Some(spans) = &self.spans {
            spans.chat(from, asked.as_ref().map_err(ToString::to_string));
        }
        match asked {
            Ok(reply) => {
                let usage = settings.prices.priced(self.parts.model.name(), reply.usage);
                admission.charge(usage);
                drop(admission);
                guard.end(Ok((&reply, usage)));
                Input::Answer(reply.into_answer(usage))
            }
            Err(error) => {
                guard.end(Err(&error));
                match error.kind() {
                    ModelErrorKind::Functions => Input::WithoutFunctions(error.to_string()),
                    ModelErrorKind::TooLong => {
                        let ContextExcess { window, sent } = error.excess().unwrap_or_default();
                        Input::TooLong { error: error.to_string(), window, sent }
                    }
                    _ => Input::Failed(error.to_string()),
                }
            }
        }
    }
}
