//! Runs that outlive their process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_machine::{Artifact, Event, Input, Message, Setup, State, Usage};
use wattle_model::{Meter, Model};
use wattle_rt::Grants;
use wattle_store::StoreError;
use wattle_store::ledger::Signer;

use crate::bug::{BUG, Bug, caught};
use crate::cancel::Cancel;
use crate::delegates::{ChildRuns, DelegateNames};
use crate::driver::{self, Suspended};
use crate::hooks::RunHooks;
use crate::host::Host;
use crate::job::Job;
use crate::journal::{
    Approval, HOST_NAMES, KeptFiles, PendingApproval, QueuedRun, RecordedEffect, ResumeError,
    RunEnd, RunRecord, RunStart, RunSummary, SharedJournal, Status, TurnRecorder, describe,
    lock_name, lock_run, record_answers, restore,
};
use crate::report::Report;
use crate::settings::Settings;
use crate::setup::setup;
use crate::sink::{Sink, Stamp, events_of};
use crate::trace::clip;
use crate::tree::RunTree;

/// The outcome of driving a journaled run.
#[derive(Debug)]
pub enum RunOutcome {
    /// The run has ended. The caller must call [`end`] after it has processed the report.
    Done(Report),
    /// The run is waiting for a person.
    Parked(ParkedRun),
}

/// A parked run, which is waiting for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedRun {
    /// The run's id.
    pub run_id: String,
    /// The pending approvals.
    pub waiting: Vec<PendingApproval>,
    /// The reason why an operator has to release the run, or `None` if it is waiting for approvals.
    pub reason: Option<String>,
}

/// Maximum number of consecutive failed attempts to drive a run. An attempt fails if the process
/// terminates before the run's next turn is recorded. After this many failures, the next attempt
/// parks the run instead of driving it.
const MAX_ATTEMPTS: u32 = 2;

/// Maximum length of a call's description, in characters. The description is part of the reason why
/// a run is parked.
const MAX_CALL_CHARS: usize = 200;

/// Records that a queued run has failed because it cannot start, and emits its events. The caller
/// must call [`end`] with the report.
pub(crate) async fn refuse(
    journal: &SharedJournal,
    run: QueuedRun,
    reason: String,
    sink: &dyn Sink,
) -> Result<Report, StoreError> {
    let QueuedRun { id, session, created, message, origin, .. } = run;
    let setup = Setup { session_id: session.clone(), ..Setup::default() };
    let start = RunStart { setup: setup.clone(), ..RunStart::new(message, origin) };
    let record = RunRecord { session, created, used: created, ..RunRecord::new(id.clone(), start) };
    journal.open(record).await?;
    let input = Input::Failed(reason.clone());
    let (_, effects) = wattle_machine::step(wattle_machine::State::new(setup), input.clone());
    let events = Stamp::from(&id, sink, 1).number(events_of(&effects));
    let tree = RunTree::default();
    let recorder = TurnRecorder::new(Arc::clone(journal), id.clone(), None, &tree);
    recorder.record((Usage::default(), &input), &effects, &events, (1, Duration::ZERO)).await?;
    events.iter().for_each(|event| sink.emit(event));
    Ok(Report::failed(id, reason))
}

/// Drives a job like [`crate::run`] and journals it under the given id. `origin` is stored for the
/// caller that resumes the run.
///
/// # Errors
/// If the journal cannot be written. The run then stops before the unrecorded turn, and can be
/// resumed.
pub async fn run(
    host: &Host,
    model: &dyn Model,
    settings: &Settings,
    job: Job,
    sink: &dyn Sink,
    (journal, id, origin): (&SharedJournal, String, Json),
) -> Result<RunOutcome, StoreError> {
    let job = Job { tenant: journal.tenant().clone(), ..job }.in_tree(&id, settings, model);
    job.tree.begin();
    host.mask_run(model, &job.grants).await;
    let setup = setup(host, model, settings, &job).await;
    let start = start(host, model, settings, &job, setup.clone(), origin);
    let session = job.session_id.clone();
    let opened = RunRecord { session, ..RunRecord::new(id.clone(), start) };
    // The caller may already hold the lock.
    let lock = journal.lock(&lock_name(&id)).await?;
    journal.open(opened).await?;
    let recorder = TurnRecorder::new(Arc::clone(journal), id, files(&job.grants), &job.tree);
    let ended = drive(host, model, settings, (job, setup), sink, (journal, &recorder)).await;
    drop(lock);
    ended
}

/// The parameters for resuming a run. The journal does not store them.
pub struct ResumeOptions {
    /// The capabilities that the run's programs may use. They must be the same as when the run
    /// started.
    pub grants: Arc<Grants>,
    /// The session label that the trace contains if the run does not belong to a session. It has no
    /// other effect.
    pub label: Option<String>,
    /// The folder to which the trace is written. Without a folder, the run has no trace.
    pub trace_dir: Option<PathBuf>,
    /// The key that seals the trace. If `None`, the trace is not sealed.
    pub signer: Option<Arc<Signer>>,
    /// The handle that cancels the run.
    pub cancel: Cancel,
    /// The settings that the journal does not store, such as deadlines, prices and the content
    /// guard.
    pub settings: Settings,
    /// The meter that counts the tokens used by the run's programs.
    pub meter: Meter,
    /// The tree of runs that the run belongs to.
    pub tree: RunTree,
    /// The port through which the run starts child runs.
    pub children: Option<Arc<dyn ChildRuns>>,
    /// Answers to pending approvals, each with the id of its call.
    pub answers: Vec<(String, Approval)>,
    /// If true, a run that was parked after repeatedly crashing its process is tried again.
    pub release: bool,
    /// The hooks of the application that embeds the agent.
    pub hooks: Option<Arc<dyn RunHooks>>,
    /// If true, the granted files contain the files of the run's session, so only the changes that
    /// the run made are added to them. Otherwise, the run's files are restored as a whole.
    pub has_session_files: bool,
}

/// Resumes a run that was stopped or is waiting for approvals, and drives it until it ends or is
/// parked again. The pending effect is repeated if that is safe. Otherwise the model is told that
/// the outcome of the effect is unknown.
///
/// # Errors
/// If the run cannot be resumed. The error states the reason.
pub async fn resume(
    host: &Host,
    model: &dyn Model,
    run: &str,
    with: ResumeOptions,
    sink: &dyn Sink,
    journal: &SharedJournal,
) -> Result<RunOutcome, ResumeError> {
    let lock = lock_run(&**journal, run).await?.ok_or_else(|| ResumeError::Held(run.to_owned()))?;
    let ended = resume_locked(host, model, run, with, sink, journal).await;
    drop(lock);
    ended
}

/// Resumes a run like [`resume`]. The caller must hold the run's lock.
pub(crate) async fn resume_locked(
    host: &Host,
    model: &dyn Model,
    run: &str,
    with: ResumeOptions,
    sink: &dyn Sink,
    journal: &SharedJournal,
) -> Result<RunOutcome, ResumeError> {
    host.mask_run(model, &with.grants).await;
    if with.release {
        journal.release(run).await?;
    }
    // The run is read under the lock, so that no other process can change it.
    let Some(RunRecord { session, status, reason, start, .. }) = journal.run(run).await? else {
        return Err(ResumeError::Ended(run.to_owned()));
    };
    match (status, reason) {
        (Status::Ended, _) => return Err(ResumeError::Ended(run.to_owned())),
        (Status::Parked, Some(reason)) => {
            return Err(ResumeError::Parked { run: run.to_owned(), reason });
        }
        (Status::Parked, None) | (Status::Open, _) => {}
    }
    // A person may give an invalid answer, which must not count as an attempt. Without answers, the
    // attempt is counted first, because even reading the run may terminate the process.
    let is_answered = !with.answers.is_empty() || status == Status::Parked;
    if !is_answered {
        attempt(journal, run, with.release).await?;
    }
    if !with.cancel.is_cancelled() {
        let pending = record_answers(journal, run, &with.answers).await?;
        if let Some(pending) = pending.into_iter().next() {
            if status == Status::Open {
                // The process stopped after the run asked for approval but before the run was
                // parked.
                journal.park(run, None, Vec::new()).await?;
            }
            return Err(ResumeError::Pending(pending));
        }
    }
    if is_answered {
        attempt(journal, run, with.release).await?;
    }
    let settings = Settings {
        agent: start.agent.clone(),
        machine: start.setup.settings,
        timeout: start.timeout_ms.map(Duration::from_millis),
        temperature: start.temperature,
        max_tokens: start.max_tokens,
        thinking_effort: start.thinking_effort,
        tool_call: start.tool_call,
        preamble: start.preamble.clone(),
        ..with.settings
    };
    let job = Job {
        message: start.message.clone(),
        history: start.setup.history.clone(),
        tenant: journal.tenant().clone(),
        session_id: session,
        label: with.label,
        grants: with.grants,
        trace_dir: with.trace_dir,
        signer: with.signer,
        meter: with.meter,
        tree: with.tree,
        children: with.children,
        delegates: DelegateNames::default(),
        cancel: with.cancel,
        output: None,
        hooks: with.hooks,
    }
    .in_tree(run, &settings, model);
    let setup = start.setup;
    let recorder = TurnRecorder::resume(
        Arc::clone(journal),
        run.to_owned(),
        setup.clone(),
        (files(&job.grants), with.has_session_files),
        &job.tree,
    )
    .await?;
    let is_ending = job.cancel.is_cancelled();
    match restore(journal, run, &job.tree, &job.grants, is_ending).await {
        Err(error) if is_ending => {
            tracing::warn!(run, %error, "failed to read the usage of a run that is cancelled");
        }
        restored => restored?,
    }
    Ok(drive(host, model, &settings, (job, setup), sink, (journal, &recorder)).await?)
}

/// Counts an attempt to drive a run. If too many attempts have made no progress, parks the run and
/// returns an error, unless `release` is true.
async fn attempt(journal: &SharedJournal, run: &str, release: bool) -> Result<(), ResumeError> {
    if journal.attempt(run).await? <= MAX_ATTEMPTS || release {
        return Ok(());
    }
    // The details are read after the run is parked, because even reading them may terminate the
    // process.
    let reason = format!("this run ended its process {MAX_ATTEMPTS} times; it is parked");
    journal.park(run, Some(reason.clone()), Vec::new()).await?;
    let reason = match last_known(journal, run).await? {
        Some(known) => format!("{reason}; last known: {known}"),
        None => reason,
    };
    journal.park(run, Some(reason.clone()), Vec::new()).await?;
    Err(ResumeError::Parked { run: run.to_owned(), reason })
}

/// Returns a description of a run's last turn and of the last call that its programs made, or
/// `None` if neither is recorded.
async fn last_known(journal: &SharedJournal, run: &str) -> Result<Option<String>, StoreError> {
    let turns = journal.turns(run).await?;
    let Some((turn, at)) = turns.last().zip(u32::try_from(turns.len()).ok()) else {
        return Ok(None);
    };
    let doing = turn.effects.iter().find_map(|effect| match effect {
        RecordedEffect::Ask(asked) => Some(format!("step {}: the model was asked", asked.step)),
        RecordedEffect::Execute { step, calls } | RecordedEffect::Contribute { step, calls } => {
            let programs: Vec<&str> = calls.iter().map(|call| call.label()).collect();
            Some(format!("step {step}: {} ran", programs.join(", ")))
        }
        RecordedEffect::Recall { step, call } => Some(format!("step {step}: {} ran", call.label())),
        RecordedEffect::Moderate { .. } => Some("the message was moderated".to_owned()),
        RecordedEffect::Validate { .. } => Some("the answer was validated".to_owned()),
        RecordedEffect::Emit(_)
        | RecordedEffect::Refuse { .. }
        | RecordedEffect::Done { .. }
        | RecordedEffect::Finish(_) => None,
    });
    let calls = journal.calls_of(run, at.saturating_sub(1)).await?;
    let external = || calls.iter().filter(|call| !HOST_NAMES.contains(&&*call.id.function));
    let last = external().find(|call| call.result.is_none()).or_else(|| external().next_back());
    let call = last.map(|call| {
        let state = if call.result.is_none() { "under way" } else { "done" };
        format!("call {} ({state})", clip(&describe(&call.id), MAX_CALL_CHARS))
    });
    let known: Vec<String> = doing.into_iter().chain(call).collect();
    Ok((!known.is_empty()).then(|| known.join(", ")))
}

async fn drive(
    host: &Host,
    model: &dyn Model,
    settings: &Settings,
    (job, setup): (Job, Setup),
    sink: &dyn Sink,
    (journal, recorder): (&SharedJournal, &TurnRecorder),
) -> Result<RunOutcome, StoreError> {
    let record = (recorder.run.as_str(), Some(recorder));
    // Boxed, because the future of a run is large and the caller's stack may be small.
    let driven = Box::pin(driver::drive(host, model, settings, (job, setup), sink, record));
    let driven = caught(&recorder.run, driven).await;
    if let Some(failure) = recorder.take_failure() {
        return Err(failure);
    }
    Ok(match driven {
        Ok(Ok(report)) => RunOutcome::Done(report),
        Err(Bug) => RunOutcome::Done(Report::failed(recorder.run.clone(), BUG.to_owned())),
        Ok(Err(Suspended { run_id, waiting, seq, .. })) => {
            let stamp = Stamp::from(&run_id, sink, seq).under(recorder.root());
            let parked = |waiting: &PendingApproval| Event::Parked {
                call: waiting.call.clone(),
                question: waiting.question.clone(),
            };
            let events = stamp.number(&waiting.iter().map(parked).collect::<Vec<_>>());
            if let Err(error) = journal.park(&recorder.run, None, events.clone()).await {
                tracing::error!(
                    run = run_id,
                    %error,
                    "failed to park a run that waits for an approval"
                );
            }
            stamp.emit(&events);
            RunOutcome::Parked(ParkedRun { run_id: run_id.clone(), waiting, reason: None })
        }
    })
}

/// Ends a run in the journal and adds its messages to its session. If `keeps_files` is true, also
/// adds the files that the run changed. A run that is not ended this way can still be resumed.
///
/// # Errors
/// If the journal cannot be written.
pub async fn end(
    journal: &SharedJournal,
    report: &Report,
    keeps_files: bool,
) -> Result<(), StoreError> {
    let files = if keeps_files { KeptFiles::Added } else { KeptFiles::Nothing };
    end_keeping(journal, report, files).await
}

/// Ends a run like [`end`]. Its session keeps `files`.
///
/// # Errors
/// If the journal cannot be written.
pub(crate) async fn end_keeping(
    journal: &SharedJournal,
    report: &Report,
    files: KeptFiles,
) -> Result<(), StoreError> {
    let Report { turns, sealed, steps, usage, ending, .. } = report;
    let summary = Some(RunSummary { steps: *steps, usage: *usage, ending: ending.clone() });
    let end = RunEnd { turns: turns.clone(), sealed: sealed.clone(), summary, files };
    journal.end(&report.run_id, end).await
}

fn files(grants: &Grants) -> Option<Arc<Files>> {
    grants.config::<Fs>().map(|fs| Arc::clone(&fs.0))
}

fn start(
    host: &Host,
    model: &dyn Model,
    settings: &Settings,
    job: &Job,
    setup: Setup,
    origin: Json,
) -> RunStart {
    let capabilities = host.runtime().capabilities().iter();
    RunStart {
        setup,
        message: job.message.clone(),
        agent: settings.agent.clone(),
        model: model.name().to_owned(),
        timeout_ms: settings
            .timeout
            .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        temperature: settings.temperature,
        max_tokens: settings.max_tokens,
        thinking_effort: settings.thinking_effort,
        tool_call: settings.tool_call,
        preamble: settings.preamble.clone(),
        granted: job.grants.names().map(str::to_owned).collect(),
        capabilities: capabilities
            .map(|capability| (capability.name.to_owned(), capability.version))
            .collect(),
        forked: None,
        parent: job.tree.parent(),
        origin,
    }
}

/// Returns the conversation of a run so far.
///
/// # Errors
/// If the journal cannot be read.
pub async fn conversation(
    journal: &SharedJournal,
    run: &RunRecord,
) -> Result<Vec<Message>, StoreError> {
    Ok(state(journal, run).await?.conversation().to_vec())
}

/// Returns the artifacts that the programs of a run have produced for the application so far.
///
/// # Errors
/// If the journal cannot be read.
pub async fn artifacts(
    journal: &SharedJournal,
    run: &RunRecord,
) -> Result<Vec<Artifact>, StoreError> {
    Ok(state(journal, run).await?.artifacts().to_vec())
}

/// Returns the state of a run after its last turn.
async fn state(journal: &SharedJournal, run: &RunRecord) -> Result<State, StoreError> {
    let turns = journal.turns(&run.id).await?;
    let fresh = State::new(run.start.setup.clone());
    Ok(turns.into_iter().fold(fresh, |state, turn| wattle_machine::step(state, turn.input).0))
}
