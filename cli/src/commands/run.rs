//! `wattle run`: runs one request.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;
use wattle_agent::capability::files::Files;
use wattle_agent::journal::{
    self, Lock, ParkedRun, ResumeError, ResumeOptions, RunOutcome, RunRecord, SharedJournal,
};
use wattle_agent::machine::{Bound, Ending, Envelope};
use wattle_agent::{Job, Meter, Report, TenantStore, own_session};

use crate::args::RunArgs;
use crate::changes::{self, Fate};
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::progress::Live;
use crate::setup::{self, RUN_STEPS, Session, Setup};
use crate::walls::{self, Needs};
use crate::{ask, input, output, threads};

/// Runs a request, or resumes a run. The answer goes to stdout or a file, progress to stderr.
pub(crate) fn run(args: RunArgs, outer: Layer) -> Result<Exit, Fault> {
    args.output.as_deref().map(writable).transpose()?;
    let flags = vec![Layer::from(args.flags.clone()), outer];
    let earlier = threads::look_up(earlier(&args, &flags))?;
    let granted = earlier.as_ref().map(|(_, opened)| granted(opened)).transpose()?;
    let config = Config::gather(&granted.into_iter().chain(flags).collect::<Vec<_>>())?;
    let writes = args.output.clone().into_iter().collect();
    walls::raise(&config, &Needs { writes, trusted: config.exec.value, ..Needs::default() })?;
    threads::run(start_or_resume(args, config, earlier))
}

/// Finds the run to resume, or creates the fork. Returns `None` for a new run.
async fn earlier(
    args: &RunArgs,
    flags: &[Layer],
) -> Result<Option<(TenantStore, RunRecord)>, Fault> {
    match (&args.resume, &args.fork) {
        (Some(run), _) => find(run, flags).await.map(Some),
        (None, Some(run)) => {
            let (store, opened) = find(run, flags).await?;
            let message = args.prompt.as_deref().map(input::prompt).transpose()?;
            let forked = fork(&store, &opened, args.step.unwrap_or_default(), message).await?;
            Ok(Some((store, forked)))
        }
        (None, None) => Ok(None),
    }
}

/// Returns the settings that the run started with.
fn granted(opened: &RunRecord) -> Result<Layer, Fault> {
    let origin = &opened.start.origin;
    if origin.get("by").is_none_or(|by| by != "run") {
        let message = format!("the run `{}` was not started by `wattle run`", opened.id);
        return Err(Fault::usage(message).hint("a server resumes its runs when it starts"));
    }
    Layer::of_granted(origin.get("granted").unwrap_or(&Json::Null))
}

async fn start_or_resume(
    args: RunArgs,
    config: Config,
    earlier: Option<(TenantStore, RunRecord)>,
) -> Result<Exit, Fault> {
    let control = RunControl::of(&args);
    let mut setup = Setup::new(config)?;
    match earlier {
        Some((store, opened)) => {
            resume(&control, setup, &store, opened, (answers(&args), args.release)).await
        }
        None => {
            if args.park {
                setup.park();
            }
            begin(&control, &setup, args.prompt.as_deref().unwrap_or_default()).await
        }
    }
}

/// The options for the output, and the token that cancels the run.
struct RunControl {
    json: bool,
    output: Option<std::path::PathBuf>,
    cancel: CancellationToken,
}

impl RunControl {
    fn of(args: &RunArgs) -> RunControl {
        RunControl {
            json: args.json,
            output: args.output.clone(),
            cancel: CancellationToken::new(),
        }
    }
}

/// Returns the user's approvals and denials of pending calls.
fn answers(args: &RunArgs) -> Vec<(String, bool)> {
    let decided = |calls: &[String], yes: bool| {
        calls.iter().map(|call| (call.clone(), yes)).collect::<Vec<_>>()
    };
    [decided(&args.approve, true), decided(&args.refuse, false)].concat()
}

fn failed(error: impl ToString) -> Fault {
    Fault::failed(error.to_string())
}

/// Starts a new run.
async fn begin(control: &RunControl, setup: &Setup, prompt: &str) -> Result<Exit, Fault> {
    let model = setup.model()?;
    let session = setup.session()?;
    let files = setup.files()?;
    let message = input::prompt(prompt)?;
    setup::interrupt_to(&control.cancel);

    let meter = Meter::default();
    let settings = setup.run_settings(RUN_STEPS, &model)?;
    let id = journal::new_id();
    let store = session.as_ref().map(|session| session.store.clone()).or_else(|| setup.journal());
    let _turn = lock(session.as_ref()).await?;
    let own = store.clone().map(|store| Session { id: own_session(&id), store });
    let access = setup.access(
        Arc::clone(&files),
        session.as_ref().or(own.as_ref()),
        Some((Arc::clone(&model), meter.clone())),
    )?;
    let history = match &session {
        Some(session) => session.store.history(&session.id).await.map_err(failed)?,
        None => Vec::new(),
    };
    let job = Job {
        message,
        history,
        tenant: setup.tenant()?,
        session_id: session.as_ref().map(|session| session.id.clone()),
        grants: setup.grants(access),
        workdir: Some(setup.config.root.value.clone()),
        signer: setup.signer()?,
        meter,
        cancel: control.cancel.clone(),
    };
    let printer = EventPrinter::new(control, setup);
    let (host, sink) = (&setup.host, |envelope: &Envelope| printer.show(envelope));
    let journal = store.map(|store| Arc::new(store) as SharedJournal);
    let ended = match &journal {
        None => {
            RunOutcome::Done(wattle_agent::run(host, model.as_ref(), &settings, job, &sink).await)
        }
        Some(journal) => {
            let kept = (journal, id, setup.origin());
            journal::run(host, model.as_ref(), &settings, job, &sink, kept).await.map_err(failed)?
        }
    };
    finish(control, setup, &printer, ended, journal.as_ref(), &files).await
}

/// Resumes a run with the settings that it started with.
async fn resume(
    control: &RunControl,
    mut setup: Setup,
    store: &TenantStore,
    opened: RunRecord,
    (answers, release): (Vec<(String, bool)>, bool),
) -> Result<Exit, Fault> {
    if !ask::is_terminal() {
        setup.park();
    }
    let model = setup.model()?;
    let files = setup.files()?;
    setup::interrupt_to(&control.cancel);

    let id = opened.session.clone();
    let session = id.map(|id| Session { id, store: store.clone() });
    let _turn = lock(session.as_ref()).await?;
    let state =
        session.unwrap_or_else(|| Session { id: own_session(&opened.id), store: store.clone() });
    let meter = Meter::default();
    let settings = setup.run_settings(RUN_STEPS, &model)?;
    let access = setup.access(
        Arc::clone(&files),
        Some(&state),
        Some((Arc::clone(&model), meter.clone())),
    )?;
    let with = ResumeOptions {
        grants: setup.grants(access),
        signer: setup.signer()?,
        cancel: control.cancel.clone(),
        settings,
        meter,
        answers,
        release,
    };
    let printer = EventPrinter::new(control, &setup);
    let sink = |envelope: &Envelope| printer.show(envelope);
    let journal: SharedJournal = Arc::new(store.clone());
    let ended =
        journal::resume(&setup.host, model.as_ref(), &opened.id, with, &sink, &journal).await;
    let ended = ended.map_err(|error| match &error {
        ResumeError::Pending(waiting) => {
            let (run, call) = (&opened.id, &waiting.call);
            Fault::new(Exit::Parked, error.to_string())
                .hint(format!("`wattle run --resume {run} --approve {call}`, or `--refuse {call}`"))
        }
        ResumeError::Parked { run, .. } => Fault::new(Exit::Parked, error.to_string())
            .hint(format!("`wattle run --resume {run} --release` tries it again")),
        ResumeError::Store(_) => failed(error),
        _ => Fault::usage(error.to_string()),
    })?;
    finish(control, &setup, &printer, ended, Some(&journal), &files).await
}

async fn lock(session: Option<&Session>) -> Result<Option<Lock>, Fault> {
    let Some(Session { id, store }) = session else { return Ok(None) };
    let journal: SharedJournal = Arc::new(store.clone());
    journal::lock_session(&journal, id).await.map(Some).map_err(failed)
}

async fn fork(
    store: &TenantStore,
    of: &RunRecord,
    step: u32,
    message: Option<String>,
) -> Result<RunRecord, Fault> {
    let journal: SharedJournal = Arc::new(store.clone());
    let id = journal::new_id();
    journal::fork(&journal, of, step, message, id.clone()).await.map_err(|error| match error {
        journal::ForkError::TooFar { .. } => Fault::usage(error.to_string()),
        journal::ForkError::Store(_) => failed(error),
    })?;
    journal.run(&id).await.map_err(failed)?.ok_or_else(|| failed("the new run was removed"))
}

/// Finds a run in the store.
///
/// # Errors
/// If the run or the store does not exist.
pub(crate) async fn find(run: &str, flags: &[Layer]) -> Result<(TenantStore, RunRecord), Fault> {
    let setup = Config::gather(flags)?;
    let store = setup::store(&setup)?;
    let journal: SharedJournal = Arc::new(store.clone());
    let opened = match run {
        "last" => journal.runs(None).await.map_err(failed)?.into_iter().next(),
        id => journal.run(id).await.map_err(failed)?,
    };
    match opened {
        Some(opened) => Ok((store, opened)),
        None => Err(Fault::usage(format!("no run `{run}` in the store"))
            .hint("`wattle session runs` lists the runs, `--store FILE` names another store")),
    }
}

/// Prints the events of a run.
struct EventPrinter<'a> {
    control: &'a RunControl,
    live: Live,
    /// The error of stdout. After it, no more events are printed.
    gone: Mutex<Option<Fault>>,
}

impl<'a> EventPrinter<'a> {
    fn new(control: &'a RunControl, setup: &Setup) -> Self {
        EventPrinter {
            control,
            live: Live::new(setup.config.verbose.value),
            gone: Mutex::new(None),
        }
    }

    fn show(&self, envelope: &Envelope) {
        if !self.control.json {
            return self.live.show(&envelope.event);
        }
        let line = serde_json::to_value(envelope).unwrap_or_default();
        if let Err(fault) = output::json(&line) {
            self.gone.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
            self.control.cancel.cancel();
        }
    }
}

/// Applies or only lists the file changes of a finished run, prints its answer, and records its end
/// in the journal.
async fn finish(
    control: &RunControl,
    setup: &Setup,
    printer: &EventPrinter<'_>,
    ended: RunOutcome,
    journal: Option<&SharedJournal>,
    files: &Files,
) -> Result<Exit, Fault> {
    let report = match ended {
        RunOutcome::Done(report) => report,
        RunOutcome::Parked(parked) => return Ok(print_pending(&parked)),
    };
    let gone = printer.gone.lock().unwrap_or_else(PoisonError::into_inner).take();
    let exit = setup::exit_of(&report.ending);
    let fate = Fate::of(&setup.config, matches!(exit, Exit::Done | Exit::Bound));
    let settled = if gone.is_none() { changes::settle(files, fate) } else { Ok(()) };
    if let Some(journal) = journal {
        let recorded = journal::end(journal, &report).await;
        recorded.unwrap_or_else(|error| output::warn(&error.to_string()));
    }
    if let Some(fault) = gone {
        return Err(fault);
    }
    if matches!(report.ending, Ending::Exhausted { bound: Bound::Length, .. }) {
        output::warn("the answer was cut off before its end in every attempt");
    }
    let printed = print_answer(&report, exit, control.json, control.output.as_deref());
    setup.flush().await;
    printed?;
    settled.map(|()| exit)
}

/// Prints the pending calls of a parked run, and the commands that resume it.
fn print_pending(parked: &ParkedRun) -> Exit {
    let run = &parked.run_id;
    output::note(&format!(
        "the run {run} is parked, and waits for an answer; resume it with one of"
    ));
    for waiting in &parked.waiting {
        let call = &waiting.call;
        output::note(&format!(
            "  wattle run --resume {run} --approve {call}\n  wattle run --resume {run} --refuse \
             {call}"
        ));
    }
    Exit::Parked
}

/// Prints the answer, or writes it to the file.
fn print_answer(report: &Report, exit: Exit, json: bool, file: Option<&Path>) -> Result<(), Fault> {
    let text = match &report.ending {
        Ending::Failed { message } => {
            return Err(Fault::new(exit, message.strip_prefix("error: ").unwrap_or(message)));
        }
        ending if exit == Exit::Failed => {
            return Err(Fault::failed(format!(
                "the model returned an empty answer: {:?}",
                ending.text()
            )));
        }
        ending => ending.text(),
    };
    match file {
        Some(path) => {
            std::fs::write(path, format!("{}\n", text.trim_end_matches('\n'))).map_err(|error| {
                // The answer is printed, so that it is not lost with the file.
                let _ = output::text(text);
                Fault::failed(format!("failed to write `{}`: {error}", path.display()))
                    .hint("the answer is on stdout")
            })
        }
        None if json => Ok(()),
        None => output::text(text),
    }
}

/// Checks before the run that the answer's file can be written.
fn writable(path: &Path) -> Result<(), Fault> {
    let was_there = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened
        .map_err(|error| Fault::usage(format!("failed to write `{}`: {error}", path.display())))?;
    if !was_there {
        // The file is created with the answer; a run without an answer leaves no file.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
