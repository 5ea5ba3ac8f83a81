//! Runs that outlive their process.

use std::sync::Arc;
use std::time::Duration;

use wattle_machine::{Artifact, Event, Input, Message, Setup, State, Usage};
use wattle_store::StoreError;

use crate::bug::{BUG, Bug, caught};
use crate::driver::{self, Suspended};
use crate::journal::{
    Approval, HOST_NAMES, KeptFiles, PendingApproval, RecordedEffect, ResumeError, RunEnd,
    RunRecord, RunRequest, RunStart, RunSummary, SharedJournal, Status, Turn, TurnRecorder,
    describe, lock_name, lock_run, record_answers, restore,
};
use crate::parts::RunParts;
use crate::report::Report;
use crate::run_loop::{RunLoop, tally};
use crate::settings::Settings;
use crate::setup::{setup, start};
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
    request: &RunRequest,
    reason: String,
    sink: &dyn Sink,
) -> Result<Report, StoreError> {
    let RunRequest { id, session, created, message, origin, .. } = request;
    let setup = Setup { session_id: session.clone(), ..Setup::default() };
    let start =
        RunStart { setup: setup.clone(), ..RunStart::new(message.as_str(), origin.clone()) };
    let record = RunRecord {
        session: session.clone(),
        created: *created,
        used: *created,
        ..RunRecord::new(id.as_str(), start)
    };
    journal.open(record).await?;
    let input = Input::Failed(reason.clone());
    let (_, effects) = wattle_machine::step(wattle_machine::State::new(setup), input.clone());
    let events = Stamp::from(id, sink, 1).number(events_of(&effects));
    let tree = RunTree::default();
    let recorder = TurnRecorder::new(Arc::clone(journal), id.clone(), None, &tree);
    recorder.record((Usage::default(), &input), &effects, &events, (1, Duration::ZERO)).await?;
    events.iter().for_each(|event| sink.emit(event));
    Ok(Report::failed(id.clone(), reason))
}

/// Drives a run like [`crate::run`] and journals it.
///
/// # Errors
/// If the journal cannot be written. The run then stops before the unrecorded turn, and can be
/// resumed.
pub async fn run(
    parts: RunParts,
    request: &RunRequest,
    sink: &dyn Sink,
    journal: &SharedJournal,
) -> Result<RunOutcome, StoreError> {
    let parts = RunParts { tenant: journal.tenant().clone(), ..parts }.in_tree(&request.id);
    parts.tree.begin();
    parts.fill_masks().await;
    let setup = setup(&parts, request).await;
    let start = start(&parts, request, setup.clone());
    let run_loop = RunLoop::of_host(&parts.host, &start);
    let id = request.id.clone();
    let opened =
        RunRecord { session: request.session.clone(), ..RunRecord::new(id.as_str(), start) };
    // The caller may already hold the lock.
    let lock = journal.lock(&lock_name(&id)).await?;
    journal.open(opened).await?;
    let recorder = TurnRecorder::new(Arc::clone(journal), id, parts.files(), &parts.tree);
    let ended = drive(&parts, request, (setup, run_loop), sink, (journal, &recorder)).await;
    drop(lock);
    ended
}

/// Resumes a run that was stopped or is waiting for approvals, and drives it until it ends or is
/// parked again. `answers` are answers to pending approvals, each with the id of its call. If
/// `release` is true, a run that was parked after repeatedly crashing its process is tried again.
/// The pending effect is repeated if that is safe. Otherwise the model is told that the outcome of
/// the effect is unknown.
///
/// # Errors
/// If the run cannot be resumed. The error states the reason.
pub async fn resume(
    parts: RunParts,
    run: &str,
    answers: &[(String, Approval)],
    release: bool,
    sink: &dyn Sink,
    journal: &SharedJournal,
) -> Result<RunOutcome, ResumeError> {
    let lock = lock_run(&**journal, run).await?.ok_or_else(|| ResumeError::Held(run.to_owned()))?;
    let ended = resume_locked(parts, run, answers, release, sink, journal).await;
    drop(lock);
    ended
}

/// Resumes a run like [`resume`]. The caller must hold the run's lock.
pub(crate) async fn resume_locked(
    parts: RunParts,
    run: &str,
    answers: &[(String, Approval)],
    release: bool,
    sink: &dyn Sink,
    journal: &SharedJournal,
) -> Result<RunOutcome, ResumeError> {
    parts.fill_masks().await;
    if release {
        journal.release(run).await?;
    }
    // The run is read under the lock, so that no other process can change it.
    let Some(record) = journal.run(run).await? else {
        return Err(ResumeError::Ended(run.to_owned()));
    };
    let request = RunRequest::of_run(&record);
    let RunRecord { status, reason, start, .. } = record;
    let run_loop = RunLoop::of_start(&parts.host, &start).map_err(ResumeError::Engine);
    match (status, reason) {
        (Status::Ended, _) => return Err(ResumeError::Ended(run.to_owned())),
        (Status::Parked, Some(reason)) => {
            return Err(ResumeError::Parked { run: run.to_owned(), reason });
        }
        (Status::Parked, None) | (Status::Open, _) => {}
    }
    let run_loop = run_loop?;
    // A person may give an invalid answer, which must not count as an attempt. Without answers, the
    // attempt is counted first, because even reading the run may terminate the process.
    let is_answered = !answers.is_empty() || status == Status::Parked;
    if !is_answered {
        attempt(journal, run, release).await?;
    }
    if !parts.cancel.is_cancelled() {
        let pending = record_answers(journal, run, answers).await?;
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
        attempt(journal, run, release).await?;
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
        ..parts.settings
    };
    let parts = RunParts { settings, ..parts }.in_tree(run);
    let setup = start.setup;
    let turns = journal.turns(run).await?;
    let (run_loop, played) = run_loop.play(&setup, &turns).await;
    let recorder = TurnRecorder::resume(
        Arc::clone(journal),
        run.to_owned(),
        (&turns, played),
        (parts.files(), parts.keeps_files),
        &parts.tree,
    )
    .await?;
    let is_ending = parts.cancel.is_cancelled();
    match restore(journal, run, &parts.tree, &parts.grants, is_ending).await {
        Err(error) if is_ending => {
            tracing::warn!(run, %error, "failed to read the usage of a run that is cancelled");
        }
        restored => restored?,
    }
    Ok(drive(&parts, &request, (setup, run_loop), sink, (journal, &recorder)).await?)
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
    parts: &RunParts,
    request: &RunRequest,
    (setup, run_loop): (Setup, RunLoop),
    sink: &dyn Sink,
    (journal, recorder): (&SharedJournal, &TurnRecorder),
) -> Result<RunOutcome, StoreError> {
    // Boxed, because the future of a run is large and the caller's stack may be small.
    let driven = Box::pin(driver::drive(parts, request, setup, run_loop, (sink, Some(recorder))));
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

/// Returns the conversation of a run so far. That of a run whose loop is an engine consists of the
/// messages of the last request to the model.
///
/// # Errors
/// If the journal cannot be read.
pub async fn conversation(
    journal: &SharedJournal,
    run: &RunRecord,
) -> Result<Vec<Message>, StoreError> {
    let turns = journal.turns(&run.id).await?;
    if run.start.engine.is_none() {
        return Ok(state(run, turns).conversation().to_vec());
    }
    let effects = turns.into_iter().flat_map(|turn| turn.effects);
    Ok(effects.fold(Vec::new(), |mut messages, effect| {
        if let RecordedEffect::Ask(ask) = effect {
            messages.truncate(ask.same);
            messages.extend(ask.messages);
        }
        messages
    }))
}

/// Returns the artifacts that the programs of a run have produced for the application so far.
///
/// # Errors
/// If the journal cannot be read.
pub async fn artifacts(
    journal: &SharedJournal,
    run: &RunRecord,
) -> Result<Vec<Artifact>, StoreError> {
    let turns = journal.turns(&run.id).await?;
    Ok(match run.start.engine {
        None => state(run, turns).artifacts().to_vec(),
        Some(_) => tally(&run.start.setup, &turns).artifacts().to_vec(),
    })
}

/// Returns the state of a run after its last turn.
fn state(run: &RunRecord, turns: Vec<Turn>) -> State {
    let fresh = State::new(run.start.setup.clone());
    turns.into_iter().fold(fresh, |state, turn| wattle_machine::step(state, turn.input).0)
}
