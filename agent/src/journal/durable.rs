//! Runs that outlive their process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use wattle_capability::files::Files;
use wattle_capability::fs::Fs;
use wattle_machine::{Event, Message, Setup};
use wattle_rt::Grants;
use wattle_rt::tape::{PROGRAM, QUESTION, RecordedValue};

use super::tape::shown;
use super::{Call, Done, Hold, Opened, Opening, SharedJournal, Status, Track};
use crate::StoreError;
use crate::bug::{BUG, Bug, caught};
use crate::driver::{self, Job, Report, Suspended};
use crate::host::Host;
use crate::ledger::Signer;
use crate::meter::Meter;
use crate::model::Model;
use crate::settings::Settings;
use crate::sink::{Sink, Stamp};
use crate::trace::clip;

/// What became of a run that is kept in a journal.
#[derive(Debug)]
pub enum Ended {
    /// It came to its end; the journal is to be [told](end) when all that follows from it is done.
    Done(Report),
    /// It waits for what a person has to say.
    Parked(Parked),
}

/// A run that waits for what a person has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The run.
    pub run_id: String,
    /// What it waits for.
    pub waiting: Vec<PendingApproval>,
}

/// A question that a run waits for the answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingApproval {
    /// The call that it is about: the step and the call within it, such as `2.1`.
    pub call: String,
    /// What the program would do.
    pub question: String,
}

/// Why a run cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// It has come to its end.
    #[error("the run `{0}` has ended")]
    Ended(String),
    /// Another process works on it, or this one.
    #[error("the run `{0}` is under way in another process")]
    Held(String),
    /// It waits for an answer, and was given none to what it waits for.
    #[error("the run waits for an answer: call {}: {}", .0.call, .0.question)]
    Pending(PendingApproval),
    /// It ended its process several times, and waits for an operator to release it.
    #[error("the run `{run}` is parked: {reason}")]
    Parked {
        /// The run.
        run: String,
        /// What is known of it.
        reason: String,
    },
    /// No question is open about that call.
    #[error("the run does not wait for an answer about the call `{0}`")]
    NotAsked(String),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many attempts to drive a run may fail to reach its next turn, because its process ended, before it is parked.
const ATTEMPTS: u32 = 2;

/// Maximum number of characters of a call in the reason that a run is parked for.
const SHOWN: usize = 200;

/// How long to wait before it is tried again to hold what somebody else holds.
const BUSY: Duration = Duration::from_millis(50);

/// Makes the id of a run: sortable by time, unguessable.
#[must_use]
pub fn new_id() -> String {
    ulid::Ulid::generate().to_string()
}

/// The name that a run is held by.
fn hold_of(run: &str) -> String {
    format!("run:{run}")
}

/// Drives a job as [`crate::run`] does, and writes down all that comes to it, under that id. `origin` is kept for whoever takes it up.
///
/// # Errors
/// Where the journal cannot be written; then nothing was done.
pub async fn run(
    host: &Host,
    model: &dyn Model,
    settings: &Settings,
    job: Job,
    sink: &dyn Sink,
    (journal, id, origin): (&SharedJournal, String, Json),
) -> Result<Ended, StoreError> {
    let job = Job { tenant: journal.tenant().clone(), ..job };
    let setup = driver::setup(host, model, settings, &job);
    let now = crate::now_ms();
    let opened = Opened {
        id: id.clone(),
        session: job.session_id.clone(),
        status: Status::Open,
        made: now,
        used: now,
        attempts: 1,
        reason: None,
        opening: opening(host, model, settings, &job, setup.clone(), origin),
    };
    let hold = journal.hold(&hold_of(&id)).await?;
    journal.open(opened).await?;
    let track = Track::new(Arc::clone(journal), id, files(&job.grants));
    let ended = drive(host, model, settings, (job, setup), sink, (journal, &track)).await;
    drop(hold);
    Ok(ended)
}

/// What a run is resumed with: all that a journal does not keep.
pub struct Resumed {
    /// What its programs may use: the same as when it began.
    pub grants: Arc<Grants>,
    /// Seals its trace; `None` leaves it unsealed.
    pub signer: Option<Arc<Signer>>,
    /// Ends the run when it is cancelled.
    pub cancel: tokio_util::sync::CancellationToken,
    /// What is not the run's own affair: deadlines, prices, what looks at messages. The journal keeps the rest.
    pub settings: Settings,
    /// Counts what its programs use of the model.
    pub meter: Meter,
    /// Calls that are approved (true) or denied.
    pub answers: Vec<(String, bool)>,
    /// If true, a run that ended its process several times is tried again.
    pub release: bool,
}

/// Takes up a run that was stopped, or that waits for answers, and drives it to its end. The one effect that was under way is performed
/// again where that does no harm; of any other the model is told that its outcome is unknown.
///
/// # Errors
/// Why it cannot be taken up.
pub async fn resume(
    host: &Host,
    model: &dyn Model,
    run: &str,
    with: Resumed,
    sink: &dyn Sink,
    journal: &SharedJournal,
) -> Result<Ended, ResumeError> {
    let hold = journal.hold(&hold_of(run)).await?.ok_or_else(|| ResumeError::Held(run.to_owned()))?;
    if with.release {
        journal.release(run).await?;
    }
    // Only now is it certain that nobody else writes to it.
    let Some(Opened { session, status, reason, opening, .. }) = journal.run(run).await? else {
        return Err(ResumeError::Ended(run.to_owned()));
    };
    match (status, reason) {
        (Status::Ended, _) => return Err(ResumeError::Ended(run.to_owned())),
        (Status::Parked, Some(reason)) => return Err(ResumeError::Parked { run: run.to_owned(), reason }),
        (Status::Parked, None) => answer(journal, run, &with.answers).await?,
        // Answers come from a person, who may have given wrong ones: that is no attempt.
        (Status::Open, _) if !with.answers.is_empty() => answer(journal, run, &with.answers).await?,
        (Status::Open, _) => {}
    }
    attempt(journal, run, with.release).await?;
    if status == Status::Open
        && with.answers.is_empty()
        && let Err(open) = answer(journal, run, &[]).await
    {
        // Its process was stopped after it had asked, and before the run was parked.
        journal.park(run, None).await?;
        return Err(open);
    }
    let settings = Settings {
        agent: opening.agent.clone(),
        machine: opening.setup.settings,
        timeout: opening.timeout_ms.map(Duration::from_millis),
        temperature: opening.temperature,
        max_tokens: opening.max_tokens,
        preamble: opening.preamble.clone(),
        ..with.settings
    };
    let job = Job {
        message: opening.message.clone(),
        history: opening.setup.history.clone(),
        tenant: journal.tenant().clone(),
        session_id: session,
        grants: with.grants,
        workdir: opening.workdir.clone(),
        signer: with.signer,
        meter: with.meter,
        cancel: with.cancel,
    };
    let setup = opening.setup;
    let track = Track::taken_up(Arc::clone(journal), run.to_owned(), setup.clone(), files(&job.grants)).await?;
    let ended = drive(host, model, &settings, (job, setup), sink, (journal, &track)).await;
    drop(hold);
    Ok(ended)
}

/// Counts an attempt to drive a run, before anything else is done for it. A run whose attempts did not get further is parked, unless an
/// operator wants it tried.
async fn attempt(journal: &SharedJournal, run: &str, release: bool) -> Result<(), ResumeError> {
    if journal.attempt(run).await? <= ATTEMPTS || release {
        return Ok(());
    }
    // What is known is looked for when the run is parked already: even to read it may be what ends the process.
    let reason = format!("this run ended its process {ATTEMPTS} times; it is parked");
    journal.park(run, Some(reason.clone())).await?;
    let reason = match last_known(journal, run).await? {
        Some(known) => format!("{reason}; last known: {known}"),
        None => reason,
    };
    journal.park(run, Some(reason.clone())).await?;
    Err(ResumeError::Parked { run: run.to_owned(), reason })
}

/// What a run was about to do at its last turn, and the last call of its programs.
async fn last_known(journal: &SharedJournal, run: &str) -> Result<Option<String>, StoreError> {
    let turns = journal.turns(run).await?;
    let Some((turn, at)) = turns.last().zip(u32::try_from(turns.len()).ok()) else { return Ok(None) };
    let doing = turn.done.iter().find_map(|done| match done {
        Done::Ask(asked) => Some(format!("step {}: the model was asked", asked.step)),
        Done::Execute { step, calls } => {
            let programs: Vec<&str> = calls.iter().map(|call| call.label()).collect();
            Some(format!("step {step}: {} ran", programs.join(", ")))
        }
        Done::Moderate { .. } => Some("the message was looked at".to_owned()),
        Done::Emit(_) | Done::Finish(_) => None,
    });
    let calls = journal.calls_of(run, at.saturating_sub(1)).await?;
    let real = || calls.iter().filter(|call| call.mark.function != PROGRAM && call.mark.function != QUESTION);
    let last = real().find(|call| call.came.is_none()).or_else(|| real().next_back());
    let call = last.map(|call| {
        let state = if call.came.is_none() { "under way" } else { "done" };
        format!("call {} ({state})", clip(&shown(&call.mark), SHOWN))
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
    (journal, track): (&SharedJournal, &Track),
) -> Ended {
    let driven = driver::drive(host, model, settings, (job, setup), sink, (&track.run, Some(track)));
    match caught(&track.run, driven).await {
        Ok(Ok(report)) => Ended::Done(report),
        Err(Bug) => Ended::Done(Report::failed(track.run.clone(), BUG.to_owned())),
        Ok(Err(Suspended { run_id, waiting, seq, .. })) => {
            if let Err(error) = journal.park(&track.run, None).await {
                tracing::error!(run = run_id, %error, "failed to note that a run waits for an answer");
            }
            let stamp = Stamp::from(&run_id, sink, seq);
            for PendingApproval { call, question } in &waiting {
                stamp.emit(Event::Parked { call: call.clone(), question: question.clone() });
            }
            Ended::Parked(Parked { run_id: run_id.clone(), waiting })
        }
    }
}

/// Notes that a run has ended, and adds what it said to its session. Until then it would be resumed once more.
///
/// # Errors
/// If the journal cannot be written.
pub async fn end(journal: &SharedJournal, report: &Report) -> Result<(), StoreError> {
    journal.end(&report.run_id, report.turns.clone(), report.sealed.clone()).await
}

/// Holds a session, so that no other message of it is handled as long; waits until nobody else does.
///
/// # Errors
/// Where the journal cannot be written.
pub async fn hold_session(journal: &SharedJournal, session: &str) -> Result<Hold, StoreError> {
    let name = format!("session:{session}");
    loop {
        if let Some(hold) = journal.hold(&name).await? {
            return Ok(hold);
        }
        tokio::time::sleep(BUSY).await;
    }
}

fn files(grants: &Grants) -> Option<Arc<Files>> {
    grants.config::<Fs>().map(|fs| Arc::clone(&fs.0))
}

fn opening(host: &Host, model: &dyn Model, settings: &Settings, job: &Job, setup: Setup, origin: Json) -> Opening {
    let capabilities = host.runtime().capabilities().iter();
    Opening {
        setup,
        message: job.message.clone(),
        agent: settings.agent.clone(),
        model: model.name().to_owned(),
        timeout_ms: settings.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        temperature: settings.temperature,
        max_tokens: settings.max_tokens,
        preamble: settings.preamble.clone(),
        granted: job.grants.names().map(str::to_owned).collect(),
        capabilities: capabilities.map(|capability| (capability.name.to_owned(), capability.version)).collect(),
        workdir: job.workdir.clone(),
        forked: None,
        origin,
    }
}

/// The questions of a run that nobody has answered.
///
/// # Errors
/// Where the journal cannot be read.
pub async fn waiting(journal: &SharedJournal, run: &str) -> Result<Vec<PendingApproval>, StoreError> {
    Ok(open_questions(journal, run).await?.into_iter().map(|(waiting, _)| waiting).collect())
}

async fn open_questions(journal: &SharedJournal, run: &str) -> Result<Vec<(PendingApproval, Call)>, StoreError> {
    let turns = journal.turns(run).await?;
    let Some((last, at)) = turns.last().zip(u32::try_from(turns.len()).ok().and_then(|count| count.checked_sub(1)))
    else {
        return Ok(Vec::new());
    };
    let step = last.done.iter().find_map(|done| if let Done::Execute { step, .. } = done { Some(*step) } else { None });
    let Some(step) = step else { return Ok(Vec::new()) };
    let calls = journal.calls_of(run, at).await?.into_iter();
    let open = calls.filter(|call| call.mark.function == QUESTION && call.came.is_none());
    let waiting = |call: &Call| PendingApproval {
        call: format!("{step}.{}", call.program.saturating_add(1)),
        question: call.mark.args.clone(),
    };
    Ok(open.map(|call| (waiting(&call), call)).collect())
}

/// Writes answers down, and makes sure that no question is left open.
async fn answer(journal: &SharedJournal, run: &str, answers: &[(String, bool)]) -> Result<(), ResumeError> {
    let open = open_questions(journal, run).await?;
    if let Some((call, _)) = answers.iter().find(|(call, _)| !open.iter().any(|(waiting, _)| waiting.call == *call)) {
        return Err(ResumeError::NotAsked(call.clone()));
    }
    let mut given = Vec::new();
    for (waiting, call) in open {
        let Some((_, yes)) = answers.iter().find(|(asked, _)| *asked == waiting.call) else {
            return Err(ResumeError::Pending(waiting));
        };
        let said = if *yes { "yes" } else { "no" };
        given.push(Call { came: Some(Ok(RecordedValue::Bytes(said.as_bytes().to_vec()))), ..call });
    }
    Ok(journal.calls(run, given).await?)
}

/// The conversation of a run as it stands.
///
/// # Errors
/// Where the journal cannot be read.
pub async fn conversation(journal: &SharedJournal, run: &Opened) -> Result<Vec<Message>, StoreError> {
    let turns = journal.turns(&run.id).await?;
    let state = turns.into_iter().fold(wattle_machine::State::new(run.opening.setup.clone()), |state, turn| {
        wattle_machine::step(state, turn.input).0
    });
    Ok(state.conversation().to_vec())
}
