//! `wattle run`: runs one request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;
use wattle_agent::Cancel;
use wattle_agent::host::RunRequest;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::journal::{
    self, Approval, ForkError, Journal as _, ParkedRun, RunFilter, RunLimits, RunRecord,
    SharedJournal,
};
use wattle_agent::host::machine::{Bound, Ending, Envelope, Event};
use wattle_agent::host::rt::decode_text;
use wattle_agent::host::service::{
    AnswerError, FollowError, Follower, Outcome, RunHandle, RunService, TreeCursor, TreeFollower,
};
use wattle_agent::host::{Report, TenantStore};
use wattle_agent::model::Model;
use wattle_agent::output::{OutputSchema, OutputSettings};

use super::kept;
use super::outputs::{OutputFile, OutputFolder};
use crate::args::RunArgs;
use crate::changes::{self, Fate, Rules};
use crate::config::{Config, Layer, Origin, regular_file};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::progress::{Live, Mode, counted};
use crate::setup::{self, LABEL, LocalAssembler, LocalRuns, RUN_STEPS, Setup};
use crate::walls::Needs;
use crate::{ask, bell, input, output, stdin, threads, trust, writers};

/// Runs a request or resumes a run. The answer goes to stdout or a file, and progress goes to
/// stderr.
pub(crate) fn run(args: RunArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let mut output = args.output.as_deref().map(OutputFile::open).transpose()?;
    let schema = args.output_schema.as_deref().map(output_schema).transpose()?;
    let named = args.resume.as_ref().or(args.fork.as_ref());
    let earlier = named.map(|run| threads::look_up(find(run, flags))).transpose()?;
    let config = match &earlier {
        Some((_, opened)) => kept::settings(flags, opened)?,
        None => trust::gather(flags)?,
    };
    let config = trust::with_content(config)?;
    output.as_mut().map(|file| file.protect(&config)).transpose()?;
    let artifacts = args.artifacts.as_deref();
    let artifacts =
        artifacts.map(|folder| OutputFolder::for_artifacts(folder, &config)).transpose()?;
    let written = artifacts.iter().map(|folder| folder.file("artifact"));
    let writes = output.iter().map(OutputFile::real).chain(written).collect();
    confine(&config, &Needs { writes, trusted: config.exec.value, ..Needs::default() })?;
    let control = RunControl {
        quiet: args.quiet,
        json: args.json,
        tree: args.tree,
        output,
        artifacts,
        cancel: CancellationToken::new(),
    };
    threads::run(start_or_resume(control, args, config, earlier, schema))
}

async fn start_or_resume(
    control: RunControl,
    args: RunArgs,
    config: Config,
    earlier: Option<(TenantStore, RunRecord)>,
    output: Option<OutputSettings>,
) -> Result<Exit, Fault> {
    let setup = Setup::new(config)?.with_new_servers().await;
    let mut setup = setup.with_context(args.context.clone());
    if args.park {
        setup.park();
    }
    match earlier {
        Some((store, mut opened)) => {
            if args.fork.is_some() {
                let message = args.request();
                let message =
                    message.map(|given| input::request(&given, !args.no_stdin)).transpose()?;
                record_apply(&mut opened, &setup.config);
                opened = fork(&store, &opened, args.step.unwrap_or_default(), message).await?;
            }
            resume(&control, setup, &store, &opened, &answers(&args), args.release).await
        }
        None => begin(&control, setup, &args, output).await,
    }
}

/// The output options, and the token that cancels the run.
struct RunControl {
    /// If true, no progress is shown.
    quiet: bool,
    json: bool,
    /// If true, the events of child runs are printed, too.
    tree: bool,
    output: Option<OutputFile>,
    artifacts: Option<OutputFolder>,
    cancel: CancellationToken,
}

/// Returns the user's approvals and denials of pending calls.
fn answers(args: &RunArgs) -> Vec<(String, Approval)> {
    let decided = |calls: &[String], yes: bool| {
        calls.iter().map(|call| (call.clone(), Approval::once(yes))).collect::<Vec<_>>()
    };
    [decided(&args.approve, true), decided(&args.refuse, false)].concat()
}

/// Starts a new run and follows it.
async fn begin(
    control: &RunControl,
    mut setup: Setup,
    args: &RunArgs,
    output: Option<OutputSettings>,
) -> Result<Exit, Fault> {
    let model = setup.model()?;
    if !control.quiet {
        setup.note_default_model(&*model);
    }
    let is_label = args.no_session_store;
    let label = if is_label { setup.session_label().await? } else { None };
    let session = if is_label { None } else { setup.session().await? };
    writers::set_name("`wattle run`".to_owned());
    let files = setup.files()?;
    let given = args.request().unwrap_or_default();
    if args.prompt.len() > 1 && !control.quiet {
        // A shell may have changed the words.
        output::aside(&format!("the request is: {}", output::visible(&given)));
    }
    let message = input::request(&given, !args.no_stdin)?;
    setup::interrupt_to(&control.cancel);
    let store = match &session {
        Some(session) => {
            session.warn_of_hidden_changes(&files).await?;
            session.store.clone()
        }
        // Without a store, the record of the run is lost when the process ends.
        None => setup.journal().map_or_else(|| setup.memory(), Ok)?,
    };
    setup::check_keys(&setup.config, store.file(), Some(store.tenant())).await?;
    let mut origin = setup.origin(&*setup.agent().await?);
    if let (Some(label), Some(origin)) = (label, origin.as_object_mut()) {
        origin.insert(LABEL.to_owned(), label.into());
    }
    let request = RunRequest {
        session: session.map(|session| session.id),
        origin,
        ..RunRequest::new(message)
    };
    let local = Local::new(control, setup, model, files, output)?;
    let session = request.session.clone();
    let run = local.service.start(&store, request, &Cancel::new()).await;
    let run = run.map_err(Fault::failed)?;
    writers::set_name(format!("the run {}", run.id));
    let kept = setup::Session::of_run(&store, &run.id, session.as_deref());
    local.follow(control, &kept, &run, 0).await
}

/// Resumes a run with the settings that it started with, and follows it.
async fn resume(
    control: &RunControl,
    mut setup: Setup,
    store: &TenantStore,
    opened: &RunRecord,
    answers: &[(String, Approval)],
    release: bool,
) -> Result<Exit, Fault> {
    if !ask::is_terminal() {
        setup.park();
    }
    let model = setup.model()?;
    let id = opened.id.as_str();
    writers::set_name(format!("the run {id}"));
    let files = setup.files()?;
    setup::interrupt_to(&control.cancel);
    let after = last_step(store, id).await?;
    let local = Local::new(control, setup, model, files, None)?;
    let cancel = Cancel::new();
    let resumed = local.service.resume(store, id, answers, release, &cancel).await;
    let run = resumed.map_err(|error| match &error {
        AnswerError::Pending(waiting) => {
            let call = &waiting.call;
            Fault::new(Exit::Parked, error.to_string())
                .hint(format!("`wattle run --resume {id} --approve {call}`, or `--refuse {call}`"))
        }
        AnswerError::Parked(reason) => parked(id, reason),
        AnswerError::Ended => Fault::usage(format!("the run `{id}` has ended")),
        AnswerError::Held => {
            Fault::usage(format!("the run `{id}` is under way in another process"))
        }
        AnswerError::NotAsked | AnswerError::NotAskedAbout(_) => Fault::usage(error),
        _ => Fault::failed(error),
    })?;
    let kept = setup::Session::of_run(store, id, opened.session.as_deref());
    local.follow(control, &kept, &run, after).await
}

/// Returns the error for a parked run that an operator must release.
fn parked(run: &str, reason: &str) -> Fault {
    Fault::new(Exit::Parked, format!("the run `{run}` is parked: {reason}"))
        .hint(format!("`wattle run --resume {run} --release` tries it again"))
}

/// Returns the sequence number of the event just before the run's last step. A resumed run's events
/// are printed from that step on.
async fn last_step(store: &TenantStore, run: &str) -> Result<u64, Fault> {
    let events = store.events(run, 0, u32::MAX).await?;
    let step = |event: &Event| match event {
        Event::Thinking { step, .. } | Event::ToolStart { step, .. } => Some(*step),
        _ => None,
    };
    let last = events.iter().rev().find_map(|envelope| step(&envelope.event));
    let first = events.iter().find(|envelope| last.is_some() && step(&envelope.event) == last);
    Ok(first.map_or(0, |envelope| envelope.seq.saturating_sub(1)))
}

/// The service that drives this command's run, and the state needed to print the run's output.
struct Local {
    service: RunService,
    assembler: Arc<LocalAssembler>,
    setup: Arc<Setup>,
    files: Arc<Files>,
    /// If true, the user is asked at the end of a successful run what happens to its changes.
    asks: bool,
    /// If true, stdout is closed. The run's changes are then not applied.
    is_gone: Arc<AtomicBool>,
}

impl Local {
    fn new(
        control: &RunControl,
        setup: Setup,
        model: Arc<dyn Model>,
        files: Arc<Files>,
        output: Option<OutputSettings>,
    ) -> Result<Local, Fault> {
        let settings = setup.run_settings(RUN_STEPS, &model)?;
        let (setup, is_gone) = (Arc::new(setup), Arc::new(AtomicBool::new(false)));
        let (config, gone) = (setup.config.clone(), Arc::clone(&is_gone));
        let asks = control.is_interactive() && !config.apply.value && files.is_overlay();
        let fate = move |report: &Report, kept_by: Option<&str>| {
            let has_succeeded = has_succeeded(report);
            let is_left_to_user = asks && has_succeeded;
            let has_fate = !gone.load(Ordering::Relaxed) && !is_left_to_user;
            has_fate.then(|| Fate::of(&config, has_succeeded, kept_by))
        };
        let (service, assembler) = LocalAssembler::service(LocalRuns {
            setup: Arc::clone(&setup),
            model,
            settings,
            output,
            files: Arc::clone(&files),
            fate: Some(Arc::new(fate)),
        });
        Ok(Local { service, assembler, setup, files, asks, is_gone })
    }

    /// Shows the changes of a run to the user, and applies them if the user wants that. Otherwise,
    /// the run or its session keeps them.
    async fn offer(&self, kept: &setup::Session) -> Result<(), Fault> {
        let config = &self.setup.config;
        if !self.assembler.has_changed_files()? {
            let fate = Fate::of(config, true, Some(kept.name()));
            changes::settle(&self.files, &Rules::of(config), &fate)?;
        } else if changes::is_wanted(&*self.setup.files()?, &self.files)? {
            let rules = Rules::of(config);
            let applied =
                kept.edit_changes(&self.files, |files| changes::apply(files, &rules, &[]));
            let applied = applied.await?;
            output::aside(&format!("applied {}", counted(applied, "change")));
        } else if !changes::of(&self.files)?.is_empty() && config.store.value.is_some() {
            let id = kept.name();
            output::aside(&format!(
                "kept; `wattle apply {id}` applies the changes, `wattle discard {id}` drops them"
            ));
        }
        Ok(())
    }

    /// Prints the events of a run until it ends or is parked, and then its answer.
    async fn follow(
        self,
        control: &RunControl,
        kept: &setup::Session,
        run: &RunHandle,
        after: u64,
    ) -> Result<Exit, Fault> {
        // Files and pipes receive the text of the whole answer.
        let shows_answer = !control.json && control.output.is_none() && output::is_screen();
        let mode = if shows_answer { Mode::Answer } else { Mode::Command };
        let verbose = self.setup.config.verbose.value;
        let live = (!control.quiet).then(|| Live::new(mode, verbose));
        let show = |event: &Envelope| {
            if control.json {
                return output::json(event);
            }
            if let Some(live) = &live {
                live.show(&event.event);
            }
            Ok(())
        };
        bell::begin(&self.setup.config);
        let mut follower = if control.tree {
            let cursor = (after > 0).then(|| format!("{}:{after}", run.id).parse::<TreeCursor>());
            let cursor = cursor.transpose().map_err(Fault::failed)?;
            Followed::Tree(self.service.follow_tree(&kept.store, &run.id, cursor).until_parked())
        } else {
            Followed::Run(self.service.follow(&kept.store, &run.id, after).until_parked())
        };
        let (mut is_cancelled, mut gone) = (false, None);
        loop {
            let next = tokio::select! {
                biased;
                () = control.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    run.cancel().cancel(setup::INTERRUPTED);
                    continue;
                }
                next = follower.next() => next,
            };
            match next {
                Ok(Some(event)) if gone.is_none() => {
                    if let Err(fault) = show(&event) {
                        gone = Some(fault);
                        self.is_gone.store(true, Ordering::Relaxed);
                        run.cancel().cancel("the reader of the output has left");
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return Err(Fault::failed(error)),
            }
        }
        let outcome = run.outcome().await;
        bell::end();
        let report = match outcome {
            Outcome::Ended(report) => report,
            Outcome::Parked(ParkedRun { run_id, reason: Some(reason), .. }) => {
                return Err(parked(&run_id, &reason));
            }
            Outcome::Parked(parked) => {
                // The record of a resumed run does not have the flag.
                let applies = self.setup.config.apply.origin == Origin::Flag;
                return Ok(print_pending(&parked, if applies { " --apply" } else { "" }));
            }
            Outcome::Suspended(reason) => return Err(Fault::failed(reason)),
        };
        if let Some(fault) = gone {
            return Err(fault);
        }
        if matches!(report.ending, Ending::Exhausted { bound: Bound::Length, .. }) {
            output::warn("the answer was cut off before its end in every attempt");
        }
        let exit = setup::exit_of(&report.ending);
        let (has_answer, shown) = live.map_or((false, Ok(())), |live| {
            let (view, printed) = live.finish();
            (view.has_answer, printed)
        });
        let is_shown = control.json || has_answer;
        let printed = print_answer(&report, exit, is_shown, control.output.as_ref());
        self.setup.flush().await;
        shown.and(printed)?;
        if let Some(folder) = &control.artifacts {
            let each = report.artifacts.iter();
            folder.write_all(each.map(|one| (one.name.as_str(), &one.data[..])))?;
        }
        if self.asks && has_succeeded(&report) {
            self.offer(kept).await?;
        }
        self.assembler.failure().map_or(Ok(exit), Err)
    }
}

impl RunControl {
    /// Returns true if the user watches the run at a terminal and can be asked at its end.
    fn is_interactive(&self) -> bool {
        !self.quiet && !self.json && stdin::is_interactive() && ask::is_terminal()
    }
}

/// Returns true if the changes of a run may be applied.
fn has_succeeded(report: &Report) -> bool {
    matches!(setup::exit_of(&report.ending), Exit::Done | Exit::Bound)
}

/// The events of a run, or of a run and its child runs.
enum Followed {
    Run(Follower),
    Tree(TreeFollower),
}

impl Followed {
    /// Returns the next event, or `None` after the last one.
    async fn next(&mut self) -> Result<Option<Arc<Envelope>>, FollowError> {
        match self {
            Followed::Run(follower) => follower.next().await,
            Followed::Tree(follower) => Ok(follower.next().await?.map(|next| next.event)),
        }
    }
}

/// Makes a fork of the run apply its changes, also when it is resumed later, if the settings ask
/// for it.
fn record_apply(opened: &mut RunRecord, config: &Config) {
    if config.apply.value
        && let Some(granted) = opened.start.origin.get_mut("granted").and_then(Json::as_object_mut)
    {
        granted.insert("apply".to_owned(), true.into());
    }
}

async fn fork(
    store: &TenantStore,
    of: &RunRecord,
    step: u32,
    message: Option<String>,
) -> Result<RunRecord, Fault> {
    let is_of_session = of.session.is_some();
    let journal: SharedJournal = Arc::new(store.clone());
    // The user of the command is the operator, so the new run keeps the limits of the other one.
    let (id, limits) = (journal::new_id(), RunLimits::default());
    let forked = journal::fork(&journal, of, step, message, id, limits).await;
    let forked = forked.map_err(|error| match error {
        ForkError::TooFar { .. }
        | ForkError::OverLimit { .. }
        | ForkError::OverBudget
        | ForkError::Engine => Fault::usage(error),
        ForkError::Store(_) => Fault::failed(error),
    })?;
    let whose = if is_of_session { "the session's" } else { "its" };
    output::note(&if forked.is_state_restored {
        format!(
            "the run {} begins with {whose} files and variables as they were after step {step}; \
             the tenant's variables and memory stay as they are",
            forked.run.id
        )
    } else {
        format!(
            "the run {} begins with {whose} files as they were after step {step}; all variables \
             and the memory stay as they are, because their values at that step are no longer \
             recorded",
            forked.run.id
        )
    });
    Ok(forked.run)
}

/// Finds a run in the store by its id, or the newest run if `run` is `last`.
///
/// # Errors
/// If the run or the store does not exist.
pub(crate) async fn find(run: &str, flags: &[Layer]) -> Result<(TenantStore, RunRecord), Fault> {
    let setup = trust::gather(flags)?;
    let store = setup::store(&setup)?;
    let journal: SharedJournal = Arc::new(store.clone());
    let opened = match run {
        setup::LAST => {
            let newest = RunFilter { limit: Some(1), ..RunFilter::default() };
            journal.runs(newest).await?.into_iter().next()
        }
        id => journal.run(id).await?,
    };
    match opened {
        Some(opened) => Ok((store, opened)),
        None => Err(Fault::usage(format!("no run `{run}` in the store"))
            .hint("`wattle runs` lists the runs, `--store FILE` names another store")),
    }
}

/// Prints the pending calls of a parked run, and the commands that resume it, which end with
/// `flags`.
fn print_pending(parked: &ParkedRun, flags: &str) -> Exit {
    let run = &parked.run_id;
    output::note(&format!(
        "the run {run} is parked, and waits for an answer; resume it with one of"
    ));
    for waiting in &parked.waiting {
        let call = &waiting.call;
        output::note(&format!(
            "  wattle run --resume {run} --approve {call}{flags}\n  wattle run --resume {run} --refuse \
             {call}{flags}"
        ));
    }
    Exit::Parked
}

/// Prints a run's answer or writes it to `file`. If `is_shown` is true and there is no file, prints
/// nothing, because stdout has the answer.
///
/// # Errors
/// If the run has no valid answer, or the answer cannot be written.
fn print_answer(
    report: &Report,
    exit: Exit,
    is_shown: bool,
    file: Option<&OutputFile>,
) -> Result<(), Fault> {
    let data = report.data().map(|data| format!("{data:#}"));
    let text = match &report.ending {
        Ending::Invalid { text, errors } => {
            let message = format!(
                "the answer does not match the schema:\n{}\nit was: {text}",
                errors.join("\n")
            );
            return Err(Fault::new(exit, message));
        }
        Ending::Failed { message } => {
            return Err(Fault::new(exit, message.strip_prefix("error: ").unwrap_or(message)));
        }
        ending if exit == Exit::Failed => {
            return Err(Fault::failed(format!(
                "the model returned an empty answer: {:?}",
                ending.text()
            )));
        }
        ending => data.as_deref().unwrap_or_else(|| ending.text()),
    };
    match file {
        Some(file) => {
            file.write(&format!("{}\n", text.trim_end_matches('\n'))).map_err(|error| {
                // The answer is printed so that it is not lost.
                let _ = output::text(text);
                Fault::failed(format!("failed to write `{}`: {error}", file.path().display()))
                    .hint("the answer is on stdout")
            })
        }
        None if is_shown => Ok(()),
        None if output::is_screen() && data.is_none() => output::markdown::print(text),
        None => output::text(text),
    }
}

/// Reads the schema of the answer from a file and names it after the file.
fn output_schema(path: &Path) -> Result<OutputSettings, Fault> {
    let wrong =
        |why: &str| Fault::usage(format!("failed to read the schema `{}`: {why}", path.display()));
    let bytes = regular_file::of_user(path, regular_file::LARGEST).map_err(|why| wrong(&why))?;
    let bytes = bytes.ok_or_else(|| wrong("there is no such file"))?;
    let text = decode_text(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let schema: Json = serde_json::from_str(&text).map_err(|why| wrong(&why.to_string()))?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("answer");
    let name = stem.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let schema = OutputSchema::new(name, schema).map_err(|why| wrong(&why.to_string()))?;
    Ok(OutputSettings::new(schema))
}
