//! `wattle exec`: runs one program without a model.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value as Json, json};
use wattle_agent::host::UsageMeter;
use wattle_agent::host::capability::TRUSTED;
use wattle_agent::host::capability::files::Change;
use wattle_agent::host::catalog::{Entry, Origin};
use wattle_agent::host::machine;
use wattle_agent::host::rt::{
    Diagnostic, Exit as Ended, Outcome, ProgramError, RunError, Signature,
};

use super::outputs::OutputFolder;
use crate::args::ExecArgs;
use crate::changes::{self, Fate, Rules};
use crate::config::{Config, Layer, Origin as Source, Places};
use crate::confine::confine;
use crate::fault::{Exit, Fault};
use crate::output::{BAD, DIM, paint, visible};
use crate::setup::{RUN_STEPS, Setup};
use crate::walls::Needs;
use crate::{input, output, setup as parts, threads, trust, writers};

/// A program's source with its arguments and its time limit.
struct Found {
    source: String,
    /// The program's front matter, if it has any.
    entry: Option<Entry>,
    args: Vec<String>,
    time: Duration,
}

/// Runs a program and prints its results.
pub(crate) fn exec(args: ExecArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::with_trusted_content(trust::gather(flags)?)?;
    let artifacts = args.artifacts.as_deref();
    let artifacts =
        artifacts.map(|folder| OutputFolder::for_artifacts(folder, &config)).transpose()?;
    let needs = Needs {
        writes: artifacts.iter().map(|folder| folder.file("artifact")).collect(),
        reads: vec![PathBuf::from(&args.program)],
        trusted: config.exec.value,
        ..Needs::default()
    };
    confine(&config, &needs)?;
    threads::run(compile_and_run(args, config, artifacts))
}

async fn compile_and_run(
    args: ExecArgs,
    config: Config,
    artifacts: Option<OutputFolder>,
) -> Result<Exit, Fault> {
    let json = args.json;
    let setup = Setup::for_one_program(config)?.with_new_servers().await;
    writers::set_name(format!("`wattle exec {}`", args.program));
    let Found { source, entry, args, time } = find(&setup, &args.program, args.args)?;
    let is_built_in =
        entry.as_ref().is_some_and(|entry| matches!(entry.origin(), Origin::BuiltIn(_)));
    let runtime = setup.host.runtime();
    let cancel = crate::setup::interrupt();
    let prepare = async {
        match Places::of_user().cache.filter(|_| is_built_in) {
            Some(cache) => runtime.prepare_stored(&source, &cache).await,
            None => setup.host.prepare(&source).await,
        }
    };
    let prepared = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(Exit::Interrupted),
        prepared = tokio::time::timeout(time, prepare) => prepared,
    };
    let program = match prepared {
        Ok(Ok(program)) => program,
        Ok(Err(diagnostic)) if json => return print_rejected(&diagnostic),
        Ok(Err(diagnostic)) => {
            output::note(output::diagnostic(&diagnostic, &source).trim_end());
            return Ok(Exit::Failed);
        }
        Err(_) => {
            return Err(Fault::failed(format!(
                "compiling took longer than the {} ms allowed",
                time.as_millis()
            )));
        }
    };
    let program = match &entry {
        Some(entry) => entry.start(program),
        None => program,
    };
    if !json {
        program
            .warnings()
            .iter()
            .for_each(|warning| output::note(&visible(warning.to_string().trim_end())));
    }

    // Nested calls may ask a model, and so may a search by meaning.
    let searches = setup.config.embed_model.value.is_some();
    let asks = |function: &Signature| match function.module {
        "search" | "memory" => searches,
        module => matches!(module, "ai" | "par" | "workbook" | "wattle"),
    };
    let needs_model = program.imports().iter().any(asks);
    let model = if needs_model { Some(setup.model()) } else { None };
    let (model, why_not) = match model.transpose() {
        Ok(model) => (model, None),
        Err(fault) => (None, Some(fault.sentence())),
    };
    let (files, session) = (setup.files()?, setup.session().await?);
    let newest = match &session {
        Some(session) => {
            session.warn_of_hidden_changes(&files).await?;
            session.load_files(&files).await?
        }
        None => 0,
    };
    let kept_by = session.as_ref().map(|session| session.id.as_str());
    let settle = async |succeeded: bool| {
        let fate = Fate::of(&setup.config, succeeded, kept_by);
        let applying = (files.as_ref(), &Rules::of(&setup.config));
        parts::settle_program(session.as_ref(), applying, newest, &fate).await
    };
    let grants = setup.grants(setup.access(
        Arc::clone(&files),
        session.as_ref(),
        model.map(|model| (model, UsageMeter::default())),
        &setup.settings(RUN_STEPS),
    )?);
    let ran = tokio::select! {
        biased;
        () = cancel.cancelled() => {
            settle(false).await?;
            return Ok(Exit::Interrupted);
        }
        ran = runtime.run_within(&program, &grants, args, time) => ran,
    };
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(error) => {
            if let RunError::Bug(_) = error {
                settle(false).await?;
            }
            return did_not_run(error, why_not, json);
        }
    };
    // The results are printed even if the changes cannot be applied, or an artifact cannot be
    // written.
    let changes = changes::of(&files).unwrap_or_default();
    let settled = settle(outcome.success()).await;
    let written = artifacts.as_ref().map_or(Ok(()), |folder| {
        folder.write_all(outcome.artifacts.iter().map(|one| (one.name.as_str(), &one.data[..])))
    });
    if json {
        output::json(&to_json(&outcome, &changes))?
    } else {
        print_outcome(&outcome, Some(source.as_str()).filter(|_| !is_built_in))?
    }
    if setup.config.verbose.value && !json {
        output::aside(&cost(&outcome));
    }
    if let (Err(_), Err(fault)) = (&settled, &written) {
        output::fault(fault);
    }
    settled.and(written).map(|()| Exit::of(outcome.success()))
}

/// Describes the resources that the program used.
fn cost(outcome: &Outcome) -> String {
    let calls = outcome.calls.iter().map(|call| match call.failed {
        0 => format!("{} × {}", call.calls, call.function),
        failed => format!("{} × {} ({failed} failed)", call.calls, call.function),
    });
    let (time, memory) = (outcome.duration.as_micros(), outcome.memory_bytes >> 10);
    format!("{time} µs, {memory} KiB, calls: {}", calls.collect::<Vec<_>>().join(", "))
}

/// Loads the program from stdin, a file or the catalog.
fn find(setup: &Setup, program: &str, given: Vec<String>) -> Result<Found, Fault> {
    let usual = setup.host.runtime().limits().time;
    let limit = match (&setup.config.timeout.value, &setup.config.timeout.origin) {
        (None, _) => usual,
        // A project file can lower the limit but not raise it.
        (Some(span), Source::Project(_)) => span.0.min(usual),
        (Some(span), _) => span.0,
    };
    let is_path =
        program == "-" || program.ends_with(".wat") || program.contains(std::path::is_separator);
    let catalog = setup.host.catalog();
    if let Some(entry) = catalog.get(program).filter(|_| !is_path) {
        return called(entry, &given, limit);
    }
    if is_path || Path::new(program).is_file() {
        let source = input::text(Path::new(program))?;
        // The arguments are checked if the file has front matter.
        if let Ok(entry) = Entry::parse(&source, Origin::File(program.into())) {
            return called(&entry, &given, limit);
        }
        return Ok(Found { source, entry: None, args: given, time: limit });
    }
    Err(super::no_program(&catalog, program, ", and no such file", super::LIST))
}

/// Checks the given arguments against the program's front matter. Returns the program with its
/// arguments.
fn called(entry: &Entry, given: &[String], limit: Duration) -> Result<Found, Fault> {
    let args = entry.arguments(given).map_err(|e| Fault::usage(&e).hint(e.hint()))?;
    let time = entry.meta().timeout.map_or(limit, |time| time.min(limit));
    Ok(Found { source: entry.source().to_string(), entry: Some(entry.clone()), args, time })
}

/// Prints a program's results on stdout. Prints the log and the reason for any failure on stderr, with
/// the line of `source`. A program that is not the user's, such as a built-in one, has no `source`.
pub(crate) fn print_outcome(outcome: &Outcome, source: Option<&str>) -> Result<(), Fault> {
    for line in &outcome.log {
        output::note(&format!("{} {}", paint(DIM, "log:"), visible(line)));
    }
    for result in &outcome.results {
        output::data(result)?;
        if !result.ends_with(b"\n") {
            output::data(b"\n")?;
        }
    }
    let Some(error) = outcome.error().map(Reason::of) else { return Ok(()) };
    let how = match &outcome.exit {
        Ended::Returned(code) => format!("the program exited with {code}"),
        Ended::Trapped(_) => "the program was stopped".to_owned(),
    };
    let place = error.line.zip(source).map(|(line, source)| {
        let text = source.lines().nth((line as usize).saturating_sub(1)).unwrap_or_default();
        format!("\n --> line {line}: {}", text.trim())
    });
    let function = error.function.map(|name| format!(" in `{name}`")).unwrap_or_default();
    let place = place.unwrap_or_default();
    let what = format!("{how}{function}: {}{place}", error.message);
    output::note(&format!("{} {}", paint(BAD, "error:"), visible(&what)));
    Ok(())
}

/// The reason why a program did not succeed.
#[derive(Serialize)]
struct Reason<'a> {
    code: String,
    message: String,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&'a str>,
}

impl<'a> Reason<'a> {
    fn of(error: ProgramError<'a>) -> Reason<'a> {
        let ProgramError { code, reason, position, function } = error;
        let (line, column) = (position.map(|at| at.line), position.map(|at| at.column));
        Reason { code, message: reason.to_owned(), line, column, function }
    }
}

fn to_json(outcome: &Outcome, changes: &[Change]) -> Json {
    let (exit_code, code) = match &outcome.exit {
        Ended::Returned(code) => (json!(code.number()), *code),
        Ended::Trapped(trap) => (Json::Null, trap.kind.code()),
    };
    let calls = outcome.calls.iter();
    let artifacts = outcome.artifacts.iter();
    let artifacts =
        artifacts.map(|one| machine::Artifact { name: one.name.clone(), data: one.data.clone() });
    json!({
        "exit_code": exit_code,
        "code": code.name().map_or_else(|| code.number().to_string(), str::to_owned),
        "results": outcome.texts(),
        "error": outcome.error().map(Reason::of),
        "fuel": outcome.fuel,
        "memory_bytes": outcome.memory_bytes,
        "dur_us": u64::try_from(outcome.duration.as_micros()).unwrap_or(u64::MAX),
        "host_calls": calls.map(|c| json!({
            "function": c.function, "calls": c.calls, "failed": c.failed,
        })).collect::<Vec<_>>(),
        "changes": changes::to_json(changes),
        "artifacts": artifacts.collect::<Vec<_>>(),
    })
}

/// Prints the JSON outcome of a program that did not run.
fn print_unrun(code: Option<&str>, error: &Reason<'_>) -> Result<(), Fault> {
    output::json(&json!({
        "exit_code": null, "code": code, "results": [], "error": error,
        "fuel": null, "memory_bytes": 0, "dur_us": 0,
        "host_calls": [], "changes": [], "artifacts": [],
    }))
}

/// Prints the JSON outcome of a program that does not compile.
fn print_rejected(diagnostic: &Diagnostic) -> Result<Exit, Fault> {
    let message = match &diagnostic.hint {
        Some(hint) => format!("{}; hint: {hint}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let error = Reason {
        code: diagnostic.code.to_owned(),
        message,
        line: Some(diagnostic.position.line),
        column: Some(diagnostic.position.column),
        function: None,
    };
    print_unrun(None, &error).map(|()| Exit::Failed)
}

/// Reports why a program did not run. `why_not` is the reason why it has no model.
pub(crate) fn did_not_run(
    error: RunError,
    why_not: Option<String>,
    json: bool,
) -> Result<Exit, Fault> {
    let missing = match error {
        RunError::Denied(missing) => missing,
        RunError::Refused(why) => {
            return not_permitted(format!("denied before it ran: {why}"), None, json);
        }
        RunError::Bug(bug) => return Err(Fault::failed(bug)),
        RunError::Engine(error) => return Err(Fault::failed(error)),
    };
    let message = if missing.iter().any(|name| TRUSTED.contains(name)) {
        wattle_agent::host::denied(&missing)
    } else {
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let names = names.join(", ");
        format!("denied before it ran: the program needs {names}, which is not granted")
    };
    not_permitted(message, why_not, json)
}

fn not_permitted(message: String, hint: Option<String>, json: bool) -> Result<Exit, Fault> {
    if !json {
        let fault = Fault::new(Exit::Denied, visible(&message));
        return Err(hint.into_iter().fold(fault, Fault::hint));
    }
    let hint = hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
    let error = Reason {
        code: "EACCESS".to_owned(),
        message: message + &hint,
        line: None,
        column: None,
        function: None,
    };
    print_unrun(Some("EACCESS"), &error).map(|()| Exit::Denied)
}
