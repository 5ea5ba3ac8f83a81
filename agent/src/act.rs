//! Acting: from a call to what became of it.

use std::num::NonZeroI32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_capability::TRUSTED;
use wattle_catalog::{Catalog, Entry};
use wattle_machine::{Call, Cost, Execution, Failure, Ran, SourceLine};
use wattle_rt::{Diagnostic, Exit, Fixed, Grants, Outcome, Program, RunError, Runtime, TrapKind};

use crate::host::HostError;

/// Looks the call's program up, prepares it, runs it with those grants, and reports. What the model got wrong is in the report;
/// an error is the host's.
pub(crate) async fn perform(
    runtime: &Runtime,
    catalog: &Catalog,
    grants: &Arc<Grants>,
    call: &Call,
) -> Result<Execution, HostError> {
    let (source, args, time) = match call {
        Call::Wat { body, args } => (body.as_str(), args.clone(), None),
        Call::Catalog { name, args } => {
            let Some(entry) = catalog.get(name) else {
                return Ok(Execution::Refused { reason: unknown(catalog, name) });
            };
            let untrusted = untrusted(entry, grants);
            if !untrusted.is_empty() {
                return Ok(Execution::Refused { reason: crate::wiring::denied(&untrusted) });
            }
            match entry.arguments(args) {
                Ok(args) => (entry.source().as_ref(), args, entry.meta().timeout),
                Err(error) => return Ok(Execution::Refused { reason: format!("{error}\nhint: {}", error.hint()) }),
            }
        }
    };
    let Ready { program, mended } = match ready(runtime, call, source).await {
        Ok(ready) => ready,
        Err(diagnostic) => return Ok(Execution::Rejected { diagnostic }),
    };
    let started = Instant::now();
    let time = time.unwrap_or(runtime.limits().time).min(runtime.limits().time);
    match runtime.run_within(&program, grants, args, time).await {
        Ok(outcome) => Ok(report(call.label(), &program, mended, outcome, started.elapsed(), time)),
        Err(RunError::Denied(missing)) => Ok(Execution::Refused { reason: crate::wiring::denied(&missing) }),
        Err(RunError::Refused(why)) => Ok(Execution::Refused { reason: format!("denied before it ran: {why}") }),
        Err(RunError::Bug(bug)) => Err(HostError::from(bug)),
        Err(RunError::Engine(error)) => Err(HostError::from(error)),
    }
}

/// What of a trusted run a program says that it uses, and these grants have not: told before its arguments are looked at.
fn untrusted(entry: &Entry, grants: &Grants) -> Vec<&'static str> {
    let uses = entry.meta().uses.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    TRUSTED.iter().copied().filter(|name| uses.contains(name) && !grants.allows(name)).collect()
}

/// A program that can run.
struct Ready {
    program: Program,
    /// What was put right in its text for that, each with its line.
    mended: Vec<String>,
}

/// The most findings about one program that its author is told at once.
const FINDINGS: usize = 4;

/// The longest text that is mended, in bytes: each round reads it anew.
const LARGEST: usize = 64 << 10;

/// The most mended places that are told one by one.
const MENDED: usize = 8;

/// Prepares a program. One that a model wrote is mended where that is certain and makes it a program: its text had no meaning, and
/// each fix is the only reading of it. An error is all that is wrong with the text as it was written.
async fn ready(runtime: &Runtime, call: &Call, source: &str) -> Result<Ready, String> {
    let first = match runtime.prepare(source).await {
        Ok(program) => return Ok(Ready { program, mended: Vec::new() }),
        Err(diagnostic) => diagnostic,
    };
    if matches!(call, Call::Wat { .. }) && source.len() <= LARGEST {
        let Fixed { source, applied, rest } = runtime.fix(source).await;
        if rest.is_none()
            && let Ok(program) = runtime.prepare(&source).await
        {
            return Ok(Ready { program, mended: told(&applied) });
        }
    }
    let findings = if source.len() <= LARGEST { FINDINGS } else { 0 };
    let faults = runtime.check(source, findings).await;
    let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Err(if all.is_empty() { first.to_string() } else { all.join("\n") })
}

fn told(applied: &[Diagnostic]) -> Vec<String> {
    let line = |fault: &Diagnostic| {
        let change = fault.fix.as_ref().map_or("", |fix| &fix.description);
        format!("line {}: {change}", fault.position.line)
    };
    let more = applied.len().saturating_sub(MENDED);
    let told = applied.iter().take(MENDED).map(line);
    told.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// There is no such program, and the nearest ones there are.
pub(crate) fn unknown(catalog: &Catalog, name: &str) -> String {
    let nearest: Vec<String> = catalog.nearest(name).iter().map(|name| format!("`{name}`")).collect();
    match nearest.as_slice() {
        [] => format!(
            "there is no program `{name}` in the catalog; write it as ToolCall::Wat, or use one that the prompt lists"
        ),
        names => format!("there is no program `{name}` in the catalog; the nearest: {}", names.join(", ")),
    }
}

/// Puts an outcome into the words that the model reads.
fn report(
    label: &str,
    program: &Program,
    mended: Vec<String>,
    outcome: Outcome,
    took: Duration,
    bound: Duration,
) -> Execution {
    let cost = Cost { dur_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX), fuel: outcome.fuel };
    let results = outcome.texts();
    match outcome.exit {
        Exit::Trapped(trap) if trap.kind == TrapKind::Time && outcome.fuel.is_none_or(|_| took >= bound) => {
            let place = trap.position.map(|p| format!(" at line {}", p.line)).unwrap_or_default();
            let reason = format!("tool error: {label} timed out after {} (killed){place}", seconds(bound));
            Execution::Stopped { reason, results, cost, mended }
        }
        Exit::Trapped(trap) if trap.kind == TrapKind::Halted => {
            Execution::Stopped { reason: trap.message, results, cost, mended }
        }
        Exit::Trapped(trap) => Execution::Stopped { reason: format!("program error: {trap}"), results, cost, mended },
        Exit::Returned(code) => {
            let failure = NonZeroI32::new(code.number()).map(|exit_code| {
                let call = outcome.failure;
                let position = call.as_ref().and_then(|c| c.position);
                Failure {
                    exit_code,
                    name: code.name().map(str::to_owned),
                    meaning: Some(code.meaning().to_owned()),
                    function: call.as_ref().map(|c| c.function.to_owned()),
                    line: position.map(|p| SourceLine { number: p.line, text: line(program.source(), p.line) }),
                    reason: call.map(|c| c.failure.reason),
                }
            });
            let warnings = program.warnings().iter().map(|w| format!("{} ({})", w.message, w.position)).collect();
            Execution::Ran(Ran { results, failure, answer: outcome.answer, cost, warnings, mended })
        }
    }
}

fn line(source: &str, number: u32) -> String {
    let index = (number as usize).saturating_sub(1);
    source.lines().nth(index).unwrap_or_default().trim().to_owned()
}

/// A time as the bound's text says it.
fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}
