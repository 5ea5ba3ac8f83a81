//! `wattle trace`, `wattle telemetry`: what runs did, read from the traces that they left.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use wattle_agent::capability::json::jq;
use wattle_agent::now_ms;
use wattle_agent::trace::{Digest, Feed, Step, Steps, Telemetry, clip};

use crate::args::{TraceArgs, TraceCommand};
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, DIM, GOOD, NAME, paint};

/// How long a query may take.
const QUERY: Duration = Duration::from_secs(60);

/// The most characters of arguments and of an output that a line shows.
const SHOWN: usize = 100;

/// Looks into traces.
pub(crate) async fn trace(command: TraceCommand) -> Result<Exit, Fault> {
    match command {
        TraceCommand::Show { run, trace } => show(run.as_deref().unwrap_or_default(), &trace),
        TraceCommand::Query { filter, path } => query(&filter, &path).await,
        TraceCommand::Digest(args) => digest(&args),
        TraceCommand::Feed(args) => feed(&args),
    }
}

/// Sums traces up in figures.
pub(crate) fn telemetry(args: &TraceArgs) -> Result<Exit, Fault> {
    let all = Telemetry::of(&read(&args.path)?);
    if args.json {
        output::json(&json!(all))?;
        return Ok(Exit::Done);
    }
    let Telemetry { runs, steps, calls, failures, .. } = all;
    let mut text = format!("{runs} runs, {steps} steps, {calls} calls, {failures} failed\n");
    if !all.tools.is_empty() {
        let width = all.tools.iter().map(|tool| tool.tool.chars().count()).max().unwrap_or(0).max(4);
        _ = writeln!(text, "\n{:<width$}  {:>7}  {:>7}  {:>8}  {:>8}", "tool", "calls", "failed", "p50 ms", "p95 ms");
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
    output::text(&text)?;
    Ok(Exit::Done)
}

/// Reads traces, and says what of them could not be read.
fn read(path: &Path) -> Result<Steps, Fault> {
    let steps = Steps::read(path)
        .map_err(|error| Fault::usage(format!("failed to read the trace `{}`: {error}", path.display())))?;
    if steps.files.is_empty() {
        let message = format!("there is no `_steps.jsonl` in `{}` nor below it", path.display());
        return Err(Fault::usage(message).hint("runs leave one in the folder that they work in"));
    }
    if steps.broken > 0 {
        output::warn(&format!("{} lines are no lines of a trace; they are left out", steps.broken));
    }
    Ok(steps)
}

fn show(run: &str, args: &TraceArgs) -> Result<Exit, Fault> {
    let steps = read(&args.path)?;
    let found: Vec<&Step> = steps.of_run(run).collect();
    if found.is_empty() && !run.is_empty() {
        return Err(Fault::usage(format!("no run `{run}` in the trace")).hint("`wattle trace show` shows all"));
    }
    if args.json {
        found.iter().try_for_each(|step| output::json(&json!(step)))?;
        return Ok(Exit::Done);
    }
    let mut last = "";
    for step in found {
        if step.run_id != last {
            last = &step.run_id;
            output::styled(&format!("{} {}", paint(NAME, last), paint(DIM, &output::visible(&step.agent))))?;
        }
        let (style, mark) = if step.succeeded() { (GOOD, "ok") } else { (BAD, "failed") };
        let tool = output::visible(&step.tool);
        let args = clip(&step.args.to_string(), SHOWN);
        let head = format!(
            "  {:>3}  {} {tool} {args} {}",
            step.step,
            paint(style, mark),
            paint(DIM, &format!("{} ms", step.dur_ms))
        );
        output::styled(&head)?;
        let said = step.error.as_deref().unwrap_or(&step.output);
        if !said.is_empty() {
            output::styled(&format!("       {}", output::visible(&clip(&said.replace('\n', " ⏎ "), SHOWN))))?;
        }
    }
    Ok(Exit::Done)
}

async fn query(filter: &str, path: &Path) -> Result<Exit, Fault> {
    let steps = read(path)?;
    let document = serde_json::to_vec(&steps.steps).map_err(|error| Fault::failed(error.to_string()))?;
    let found = jq(filter, &document, now_ms() as f64 / 1_000.0, Instant::now() + QUERY).await;
    let found = found.map_err(|failure| Fault::usage(failure.reason))?;
    output::text(&String::from_utf8_lossy(&found))?;
    Ok(Exit::Done)
}

fn digest(args: &TraceArgs) -> Result<Exit, Fault> {
    let digest = Digest::of(&read(&args.path)?);
    if args.json {
        output::json(&json!(digest))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for run in &digest.runs {
        let tried: Vec<String> = run.tried.iter().map(|(tool, calls)| format!("{tool} {calls}×")).collect();
        _ = writeln!(text, "{} {}: {}; {} failed", run.run_id, run.agent, tried.join(", "), run.failures);
        run.failed.iter().for_each(|failed| _ = writeln!(text, "  {failed}"));
    }
    if !digest.tickets.is_empty() {
        _ = writeln!(text, "open tickets:");
        for ticket in &digest.tickets {
            _ = writeln!(text, "  {}: {}", ticket.title, clip(&ticket.need.replace('\n', " "), SHOWN));
        }
    }
    output::text(&output::visible(&text))?;
    Ok(Exit::Done)
}

fn feed(args: &TraceArgs) -> Result<Exit, Fault> {
    let feed = Feed::of(&read(&args.path)?);
    if args.json {
        output::json(&json!(feed))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for (agent, activity) in &feed.agents {
        let tools: Vec<String> = activity.tools.iter().map(|(tool, calls)| format!("{tool} {calls}×")).collect();
        _ = writeln!(text, "{agent}: {} runs, {} calls ({})", activity.runs, activity.calls, tools.join(", "));
    }
    output::text(&output::visible(&text))?;
    Ok(Exit::Done)
}
