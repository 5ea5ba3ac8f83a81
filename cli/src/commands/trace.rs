//! `wattle trace`, `wattle telemetry`: read the traces of runs.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use wattle_agent::host::journal::Status;
use wattle_agent::host::ledger::{RotateError, Rotation};
use wattle_agent::host::trace::{
    self, DigestBuilder, FeedBuilder, ReadSummary, Step, Telemetry, TelemetryBuilder, clip,
};

use crate::args::{TraceArgs, TraceCommand};
use crate::config::Layer;
use crate::fault::Fault;
use crate::output::{self, BAD, DIM, GOOD, NAME, paint};
use crate::{setup, trust};

/// Maximum size of the document that a query reads, in bytes. The document contains all steps.
const DOCUMENT: usize = 16 << 20;

/// Maximum length, in characters, of a string within a line of output, such as a call's arguments.
const SHOWN: usize = 100;

/// Runs a `trace` command.
pub(crate) async fn trace(command: TraceCommand, flags: &[Layer]) -> Result<(), Fault> {
    match command {
        TraceCommand::Show { run, trace } => show(run.as_deref().unwrap_or_default(), trace, flags),
        TraceCommand::Query { filter, path } => query(&filter, path, flags).await,
        TraceCommand::Digest(args) => digest(args, flags),
        TraceCommand::Feed(args) => feed(args, flags),
        TraceCommand::Rotate { dir, force } => rotate(dir, force, flags).await,
    }
}

/// Moves the trace of a folder's runs, and prints the new folder.
async fn rotate(dir: PathBuf, force: bool, flags: &[Layer]) -> Result<(), Fault> {
    let config = trust::gather(flags)?;
    let dir = setup::traces_of(&config, dir);
    let failed = |error: RotateError| {
        let fault =
            Fault::failed(format!("failed to rotate the trace in `{}`: {error}", dir.display()));
        match error {
            RotateError::InProgress(_) => fault.hint(
                "wait for the end of the run, or resume it; `--force` if it was stopped for good",
            ),
            RotateError::NoTrace => fault.hint("name the folder in which the runs worked"),
            RotateError::Io(_) => fault,
        }
    };
    let rotation = Rotation::of(&dir).map_err(failed)?;
    let (unfinished, mut stopped) = (rotation.unfinished(), HashSet::new());
    let store = if unfinished.is_empty() { None } else { setup::store_if_there(&config)? };
    for run in unfinished {
        // A process may be killed between the end of a run and its seal.
        let has_ended = match &store {
            Some(store) => store.status(&run).await? == Some(Status::Ended),
            None => false,
        };
        if force || has_ended {
            stopped.insert(run);
        }
    }
    let part = rotation.finish(&stopped).map_err(failed)?;
    output::text(&output::visible(&part.display().to_string()))
}

/// Prints statistics about the runs and calls in traces.
pub(crate) fn telemetry(args: TraceArgs, flags: &[Layer]) -> Result<(), Fault> {
    let mut sum = TelemetryBuilder::default();
    let read = read(args.path, flags, |step| {
        sum.add(&step);
        Ok(())
    })?;
    let all = sum.finish(read.broken);
    if args.json {
        return output::json(&all);
    }
    let Telemetry { runs, steps, calls, failures, .. } = all;
    let mut text = format!("{runs} runs, {steps} steps, {calls} calls, {failures} failed\n");
    if !all.tools.is_empty() {
        let width =
            all.tools.iter().map(|tool| tool.tool.chars().count()).max().unwrap_or(0).max(4);
        _ = writeln!(
            text,
            "\n{:<width$}  {:>7}  {:>7}  {:>8}  {:>8}",
            "tool", "calls", "failed", "p50 ms", "p95 ms"
        );
        for tool in &all.tools {
            let (calls, failures, p50, p95) = (tool.calls, tool.failures, tool.p50_ms, tool.p95_ms);
            _ = writeln!(
                text,
                "{:<width$}  {calls:>7}  {failures:>7}  {p50:>8}  {p95:>8}",
                output::visible(&tool.tool)
            );
        }
    }
    for (what, found) in [("agent", &all.agents), ("model", &all.models)] {
        for (name, calls) in found {
            _ = writeln!(text, "{what} {}: {calls} calls", output::visible(name));
        }
    }
    output::text(&text)
}

/// The reason why reading a trace stopped.
enum Stopped {
    Read(std::io::Error),
    Fault(Fault),
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Stopped {
        Stopped::Read(error)
    }
}

/// Reads the selected traces, passes each recorded step to `step`, and warns about invalid lines.
fn read(
    path: PathBuf,
    flags: &[Layer],
    mut step: impl FnMut(Step) -> Result<(), Fault>,
) -> Result<ReadSummary, Fault> {
    let path = setup::traces_of(&trust::gather(flags)?, path);
    let read =
        trace::read(&path, |found| step(found).map_err(Stopped::Fault)).map_err(|stopped| {
            match stopped {
                Stopped::Read(error) => {
                    Fault::usage(format!("failed to read the trace `{}`: {error}", path.display()))
                }
                Stopped::Fault(fault) => fault,
            }
        })?;
    if read.files.is_empty() {
        let message = format!("no run has left a trace in `{}` nor below it", path.display());
        return Err(Fault::usage(message)
            .hint("name the folder in which the runs worked; `trace.dir` says where traces are"));
    }
    if read.broken > 0 {
        let long = match read.long {
            0 => String::new(),
            long => format!(" ({long} are longer than 4 MiB)"),
        };
        output::warn(&format!(
            "{} lines are not lines of a trace{long}, and are skipped",
            read.broken
        ));
    }
    Ok(read)
}

fn show(run: &str, args: TraceArgs, flags: &[Layer]) -> Result<(), Fault> {
    let (mut last, mut found) = (String::new(), false);
    read(args.path, flags, |step| {
        if !step.run_id.starts_with(run) {
            return Ok(());
        }
        found = true;
        if args.json {
            return output::json(&step);
        }
        if step.run_id != last {
            last.clone_from(&step.run_id);
            let id = output::visible(&clip(&step.run_id, SHOWN));
            output::styled(&format!(
                "{} {}",
                paint(NAME, &id),
                paint(DIM, &output::visible(&clip(&step.agent, SHOWN)))
            ))?;
        }
        show_step(&step)
    })?;
    if found || run.is_empty() {
        Ok(())
    } else {
        Err(Fault::usage(format!("no run `{run}` in the trace"))
            .hint("`wattle trace show` shows all"))
    }
}

fn show_step(step: &Step) -> Result<(), Fault> {
    let (style, mark) = if step.succeeded() { (GOOD, "ok") } else { (BAD, "failed") };
    let tool = output::visible(&clip(&step.tool, SHOWN));
    let args = output::visible(&clip(&step.args.to_string(), SHOWN));
    let head = format!(
        "  {:>3}  {} {tool} {args} {}",
        step.step,
        paint(style, mark),
        paint(DIM, &format!("{} ms", step.dur_ms))
    );
    output::styled(&head)?;
    let text = step.error.as_deref().unwrap_or(&step.output);
    if text.is_empty() {
        return Ok(());
    }
    output::styled(&format!("       {}", output::visible(&clip(&text.replace('\n', " ⏎ "), SHOWN))))
}

async fn query(filter: &str, path: PathBuf, flags: &[Layer]) -> Result<(), Fault> {
    let mut document = b"[".to_vec();
    read(path, flags, |step| {
        if document.len() > 1 {
            document.push(b',');
        }
        serde_json::to_writer(&mut document, &step).map_err(Fault::failed)?;
        if document.len() > DOCUMENT {
            Err(Fault::usage(format!(
                "the traces have more than {} MiB, the maximum of a query",
                DOCUMENT >> 20
            ))
            .hint("name one of them, or process the lines of `wattle trace show --run ID --json`"))
        } else {
            Ok(())
        }
    })?;
    document.push(b']');
    super::query(filter, &document).await
}

fn digest(args: TraceArgs, flags: &[Layer]) -> Result<(), Fault> {
    let mut digest = DigestBuilder::default();
    let read = read(args.path, flags, |step| {
        digest.add(&step);
        Ok(())
    })?;
    let digest = digest.finish(&read);
    if args.json {
        return output::json(&digest);
    }
    let mut text = String::new();
    for run in &digest.runs {
        let tried: Vec<String> =
            run.tried.iter().map(|(tool, calls)| format!("{tool} {calls}×")).collect();
        _ = writeln!(
            text,
            "{} {}: {}; {} failed",
            run.run_id,
            run.agent,
            tried.join(", "),
            run.failures
        );
        run.failed.iter().for_each(|failed| _ = writeln!(text, "  {failed}"));
    }
    if digest.more > 0 {
        _ = writeln!(text, "and {} calls of other runs", digest.more);
    }
    if !digest.tickets.is_empty() {
        _ = writeln!(text, "open tickets:");
        for ticket in &digest.tickets {
            _ = writeln!(
                text,
                "  {}: {}",
                ticket.title,
                clip(&ticket.need.replace('\n', " "), SHOWN)
            );
        }
    }
    output::text(&output::visible(&text))
}

fn feed(args: TraceArgs, flags: &[Layer]) -> Result<(), Fault> {
    let mut feed = FeedBuilder::default();
    read(args.path, flags, |step| {
        feed.add(&step);
        Ok(())
    })?;
    let feed = feed.finish();
    if args.json {
        return output::json(&feed);
    }
    let mut text = String::new();
    for (agent, activity) in &feed.agents {
        let tools: Vec<String> =
            activity.tools.iter().map(|(tool, calls)| format!("{tool} {calls}×")).collect();
        _ = writeln!(
            text,
            "{agent}: {} runs, {} calls ({})",
            activity.runs,
            activity.calls,
            tools.join(", ")
        );
    }
    output::text(&output::visible(&text))
}
