//! Execution of a call: its program is resolved and run, and the result is reported to the model.

use std::num::NonZeroI32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_capability::TRUSTED;
use wattle_capability::sys::Context;
use wattle_catalog::{Catalog, Entry};
use wattle_machine::{self as machine, Call, Completion, Cost, Execution, Failure, SourceLine};
use wattle_rt::tape::Tape;
use wattle_rt::{
    Diagnostic, Exit, FixResult, Grants, Kept, Outcome, Program, RunError, Runtime, TrapKind, quote,
};

use crate::charge::with_account;
use crate::error::HostError;
use crate::kept::CallKept;
use crate::programs::{knowing, prepare_in};
use crate::refusal::{denied, unknown_call};

/// Resolves the call's program, prepares it, and runs it with `grants`. A mistake by the model is
/// reported in the returned execution.
///
/// # Errors
/// If the host itself fails.
pub async fn perform(
    runtime: &Runtime,
    catalog: &Catalog,
    grants: &Arc<Grants>,
    call: &Call,
) -> Result<Execution, HostError> {
    perform_within(runtime, catalog, grants, call, runtime.limits().time, None).await
}

/// Executes a call as [`perform`] does. A program that sets no time limit runs for at most
/// `default`. With `kept`, a program that the model wrote can read and keep values.
pub(crate) async fn perform_within(
    runtime: &Runtime,
    catalog: &Catalog,
    grants: &Arc<Grants>,
    call: &Call,
    default: Duration,
    kept: Option<&CallKept>,
) -> Result<Execution, HostError> {
    let grants = &match with_account(runtime, grants) {
        Ok(grants) => grants,
        Err(error) => return Ok(Execution::Refused { reason: error.to_string() }),
    };
    let values = kept.map(|kept| &kept.values).filter(|_| call.body().is_some());
    let (source, args, entry, grants) = match call {
        Call::Wat { body, args } => {
            let grants = match values {
                Some(values) => Arc::new(grants.as_ref().clone().with(values.clone())),
                None => Arc::clone(grants),
            };
            (body.as_str(), args.clone(), None, grants)
        }
        Call::Catalog { name, args, names } => {
            let Some(entry) = catalog.get(name) else {
                return Ok(Execution::Refused { reason: unknown_call(catalog, name) });
            };
            let missing = missing_trust(entry, grants);
            if !missing.is_empty() {
                return Ok(Execution::Refused { reason: denied(&missing) });
            }
            match entry.in_order(args, names).and_then(|args| entry.arguments(&args)) {
                Ok(args) => {
                    let grants = with_context(entry, grants);
                    (entry.source().as_ref(), args, Some(entry), grants)
                }
                Err(error) => {
                    return Ok(Execution::Refused {
                        reason: format!("{error}\nhint: {}", error.hint()),
                    });
                }
            }
        }
    };
    let prepared = prepare(runtime, catalog, call, source, values).await;
    let PreparedProgram { program, fixes } = match prepared {
        Ok(prepared) => prepared,
        Err(diagnostic) => return Ok(Execution::Rejected { diagnostic }),
    };
    let program = match entry {
        Some(entry) => entry.start(program),
        None => program,
    };
    let started = Instant::now();
    let time = entry.and_then(|entry| entry.meta().timeout);
    let time = time.unwrap_or(default).min(runtime.limits().time);
    match runtime.run_within(&program, &grants, args, time).await {
        Ok(outcome) => {
            let execution = report(call, &program, fixes, outcome, started.elapsed(), time);
            let tape = grants.tape().map(|tape| &**tape as &dyn Tape);
            Ok(match kept {
                Some(kept) => kept.of_execution(execution, grants.account(), tape),
                None => execution,
            })
        }
        Err(RunError::Denied(missing)) => Ok(Execution::Refused { reason: denied(&missing) }),
        Err(RunError::Refused(why)) => {
            Ok(Execution::Refused { reason: format!("denied before it ran: {why}") })
        }
        Err(RunError::Bug(bug)) => Err(HostError::from(bug)),
        Err(RunError::Engine(error)) => Err(HostError::from(error)),
    }
}

/// Returns `grants` with the context values that the agent declares for the program. The declared
/// values replace any context values already in `grants`.
pub(crate) fn with_context(entry: &Entry, grants: &Arc<Grants>) -> Arc<Grants> {
    if entry.context().is_empty() && grants.config::<Context>().is_none() {
        Arc::clone(grants)
    } else {
        let context = Context(Arc::clone(entry.context()));
        Arc::new(grants.as_ref().clone().with(context))
    }
}

/// Returns the trusted capabilities that the program declares but `grants` does not contain. These
/// are checked before the arguments, so that the error names the actual cause.
fn missing_trust(entry: &Entry, grants: &Grants) -> Vec<&'static str> {
    let uses = entry.meta().uses.iter().flatten().map(String::as_str).collect::<Vec<_>>();
    TRUSTED.iter().copied().filter(|name| uses.contains(name) && !grants.allows(name)).collect()
}

/// A program that is ready to run.
struct PreparedProgram {
    program: Program,
    /// Descriptions of the fixes that were applied to the source, with line numbers.
    fixes: Vec<String>,
}

/// Maximum number of findings that one diagnostic lists.
const MAX_FINDINGS: usize = 4;

/// Maximum size of a program that is auto-fixed, in bytes. Each round of fixes parses the whole
/// source again.
const MAX_FIXED_BYTES: usize = 64 << 10;

/// Maximum number of applied fixes that are listed individually.
const MAX_LISTED_FIXES: usize = 8;

/// Prepares a program. If a model wrote it and it does not compile, safe fixes are applied. A safe
/// fix corrects text that is invalid and can have only one meaning. If the program still does not
/// compile, the error lists the findings for the model's original text.
async fn prepare(
    runtime: &Runtime,
    catalog: &Catalog,
    call: &Call,
    source: &str,
    values: Option<&Kept>,
) -> Result<PreparedProgram, String> {
    let first = match prepare_in(runtime, catalog, source, values).await {
        Ok(program) => return Ok(PreparedProgram { program, fixes: Vec::new() }),
        Err(diagnostic) => diagnostic,
    };
    if let Call::Catalog { name, .. } = call {
        return Err(format!(
            "the program `{name}` of the catalog does not compile: {}\nhint: use another program, \
             or write one",
            first.message
        ));
    }
    let runtime = knowing(runtime, catalog, values);
    if source.len() <= MAX_FIXED_BYTES {
        let FixResult { source, applied, rest } = runtime.fix(source).await;
        if rest.is_none()
            && let Ok(program) = runtime.prepare(&source).await
        {
            return Ok(PreparedProgram { program, fixes: describe_fixes(&applied) });
        }
    }
    let findings = if source.len() <= MAX_FIXED_BYTES { MAX_FINDINGS } else { 0 };
    let faults = runtime.check(source, findings).await;
    let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Err(if all.is_empty() { first.to_string() } else { all.join("\n") })
}

fn describe_fixes(applied: &[Diagnostic]) -> Vec<String> {
    let line = |fault: &Diagnostic| {
        let change = fault.fix.as_ref().map_or("", |fix| &fix.description);
        format!("line {}: {change}", fault.position.line)
    };
    let more = applied.len().saturating_sub(MAX_LISTED_FIXES);
    let listed = applied.iter().take(MAX_LISTED_FIXES).map(line);
    listed.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// Converts the outcome of a program into the result that the model reads. The result contains
/// source positions only for programs that the model wrote, because the model has never seen the
/// source of a catalog program.
fn report(
    call: &Call,
    program: &Program,
    fixes: Vec<String>,
    outcome: Outcome,
    elapsed: Duration,
    limit: Duration,
) -> Execution {
    let cost =
        Cost { dur_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX), fuel: outcome.fuel };
    let results = outcome.texts();
    let artifacts = outcome.artifacts.into_iter();
    let artifacts = artifacts
        .map(|wattle_rt::Artifact { name, data }| machine::Artifact { name, data })
        .collect();
    // The model has not seen the source of a catalog program, so line numbers would be meaningless.
    let written = matches!(call, Call::Wat { .. });
    match outcome.exit {
        Exit::Trapped(trap)
            if trap.kind == TrapKind::Time && outcome.fuel.is_none_or(|_| elapsed >= limit) =>
        {
            let position = trap.position.filter(|_| written);
            let location = position.map(|p| format!(" at line {}", p.line)).unwrap_or_default();
            let reason = format!(
                "tool error: {} timed out after {} (killed){location}",
                if written { call.label().to_owned() } else { shown(call) },
                seconds(limit)
            );
            Execution::Stopped { reason, results, cost, fixes, kept: Vec::new() }
        }
        Exit::Trapped(trap) if trap.kind == TrapKind::Halted => {
            Execution::Stopped { reason: trap.message, results, cost, fixes, kept: Vec::new() }
        }
        Exit::Trapped(trap) => {
            let reason = if written {
                format!("program error: {trap}")
            } else {
                format!("program error in {}: {}", shown(call), trap.message)
            };
            Execution::Stopped { reason, results, cost, fixes, kept: Vec::new() }
        }
        Exit::Returned(code) => {
            let failure = NonZeroI32::new(code.number()).map(|exit_code| {
                let failed = outcome.failure;
                let position = failed.as_ref().and_then(|c| c.position).filter(|_| written);
                Failure {
                    exit_code,
                    name: code.name().map(str::to_owned),
                    meaning: Some(code.meaning().to_owned()),
                    function: failed.as_ref().and_then(|c| c.function).map(str::to_owned),
                    line: position.map(|p| SourceLine {
                        number: p.line,
                        text: line(program.source(), p.line),
                    }),
                    call: (!written).then(|| shown(call)),
                    reason: failed.map(|c| c.failure.reason),
                }
            });
            let warnings = program
                .warnings()
                .iter()
                .filter(|_| written)
                .map(|w| format!("{} ({})", w.message, w.position))
                .collect();
            Execution::Ran(Completion {
                results,
                failure,
                answer: outcome.answer,
                artifacts,
                kept: Vec::new(),
                cost,
                warnings,
                fixes,
            })
        }
    }
}

/// Maximum number of call arguments that a message shows.
const MAX_SHOWN_ARGS: usize = 8;
/// Maximum length of a call argument in a message, in characters.
const MAX_ARG_CHARS: usize = 100;

/// Formats a call for a message, for example as `file_read("notes.txt")`.
fn shown(call: &Call) -> String {
    let quoted = call.named_args().take(MAX_SHOWN_ARGS).map(|(name, arg)| {
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        name + &quote(arg, MAX_ARG_CHARS)
    });
    let more = (call.args().len() > MAX_SHOWN_ARGS).then(|| "…".to_owned());
    format!("{}({})", call.label(), quoted.chain(more).collect::<Vec<_>>().join(", "))
}

fn line(source: &str, number: u32) -> String {
    let index = (number as usize).saturating_sub(1);
    source.lines().nth(index).unwrap_or_default().trim().to_owned()
}

/// Formats a time limit for a message.
fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{}s", time.as_secs())
    } else {
        format!("{}ms", time.as_millis())
    }
}
