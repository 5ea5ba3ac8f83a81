//! The replay of a run without a model or a network. Each effect is compared with the recorded one.

use std::sync::Arc;
use std::time::Duration;

use wattle_capability::par::Par;
use wattle_catalog::Catalog;
use wattle_machine::{Call, Completion, Cost, Execution, Input, OutputContract, result_name};
use wattle_rt::Grants;
use wattle_store::StoreError;

use crate::act::perform_within;
use crate::driver::{limited, run_catalog};
use crate::host::Host;
use crate::journal::{
    Difference, EffectRecorder, Mode, RecordedEffect, RunRecord, RunStart, RunTape, SharedJournal,
    Turn, describe_difference, excerpts, is_changed,
};
use crate::kept::{CallKept, RunKept};
use crate::run_loop::RunLoop;
use crate::settings::Settings;

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayReport {
    /// Number of turns that were replayed.
    pub turns: usize,
    /// Number of programs that ran again.
    pub programs: usize,
    /// The first difference from the record, with the number of its step, or `None` if there is no
    /// difference. Steps are counted from 1; 0 stands for the start of the run.
    pub difference: Option<(u32, Difference)>,
}

/// Replays a run and compares it with the record, up to the first difference. Programs in the steps
/// before `from` are not run again.
///
/// # Errors
/// If the journal cannot be read, or the host fails.
pub async fn replay(
    host: &Host,
    journal: &SharedJournal,
    run: &RunRecord,
    from: u32,
) -> Result<ReplayReport, StoreError> {
    let turns = journal.turns(&run.id).await?;
    let mut played = ReplayReport { turns: 0, programs: 0, difference: None };
    if let Some(differs) = compare_start(host, run) {
        return Ok(ReplayReport { difference: Some((0, differs)), ..played });
    }
    let account = host.runtime().open_account();
    let grants = grants(host, &run.start).charged_to(account.clone());
    let kept = RunKept::new(run.start.setup.settings.observation_limit);
    let mut run_loop = RunLoop::of_host(host, &run.start);
    let mut recorder = EffectRecorder::default();
    let mut before: Option<&Turn> = None;
    for (at, turn) in (0..).zip(&turns) {
        let number = run_loop.steps().saturating_add(1);
        let executions: Vec<&Execution> = match &turn.input {
            Input::Executed(executions) => executions.iter().collect(),
            Input::Recalled(execution) => vec![execution],
            Input::Contributed(all) => all.iter().map(|one| &one.execution).collect(),
            _ => Vec::new(),
        };
        if let Some(before) = before.filter(|_| !executions.is_empty() && number >= from) {
            let calls = before.effects.iter().find_map(|effect| match effect {
                RecordedEffect::Execute { calls, .. } => Some((calls.as_slice(), false)),
                RecordedEffect::Contribute { calls, .. } => Some((calls.as_slice(), true)),
                RecordedEffect::Recall { call, .. } => Some((std::slice::from_ref(call), true)),
                _ => None,
            });
            let (calls, is_internal) = calls.unwrap_or_default();
            let catalog =
                if is_internal { host.internal_programs() } else { run_catalog(host, &run_loop) };
            let tapes = journal.calls_of(&run.id, at - 1).await?;
            for (program, (call, recorded)) in (0..).zip(calls.iter().zip(executions)) {
                // A program that the host itself calls is denied if it needs approval, so its tape
                // contains no answer. A replay runs no middleware, so it uses the recorded outcome
                // of a call that middleware changed.
                let is_refused = is_internal && matches!(recorded, Execution::Refused { .. });
                if is_refused || is_changed(&tapes, program) {
                    continue;
                }
                let past = tapes.iter().filter(|call| call.program == program).cloned();
                let tape = RunTape::new(
                    Arc::clone(journal),
                    &run.id,
                    (at - 1, program),
                    Mode::Replay,
                    past,
                );
                played.programs += 1;
                let result = result_name(program as usize, calls.len());
                let kept = (!is_internal).then(|| kept.for_call(result));
                let with = (&grants, kept.as_ref());
                if let Some(differs) =
                    compare_execution((host, &catalog), with, call, recorded, tape).await?
                {
                    return Ok(ReplayReport { difference: Some((number, differs)), ..played });
                }
            }
        }
        if let Input::Executed(executions) = &turn.input
            && executions.iter().any(|execution| !execution.kept().is_empty())
        {
            let calls = journal.calls_of(&run.id, at - 1).await?;
            let values = executions.iter().flat_map(Execution::kept);
            kept.restore(&account, values, &calls).map_err(StoreError::unreadable)?;
        }
        let effects;
        let elapsed = Duration::from_millis(turn.elapsed_ms);
        (run_loop, effects) = run_loop.advance(turn.spent, turn.input.clone(), elapsed).await;
        kept.settle(run_loop.kept());
        if let Some(differs) = compare_effects(&turn.effects, &recorder.record(&effects)) {
            return Ok(ReplayReport { difference: Some((number, differs)), ..played });
        }
        played.turns += 1;
        before = Some(turn);
    }
    Ok(played)
}

/// Compares the capability versions and the system prompt recorded at a run's start with those of
/// the host. Returns the first difference, if there is one.
fn compare_start(host: &Host, run: &RunRecord) -> Option<Difference> {
    let start = &run.start;
    if let (Some(engine), None) = (&start.engine, host.engine()) {
        let (was, is) = (engine.hash.clone(), "none; pass its file with `--engine`".to_owned());
        return Some(Difference { what: "the engine".to_owned(), was, is });
    }
    for capability in host.runtime().capabilities() {
        let was = start.capabilities.get(capability.name).copied();
        let used = start.granted.iter().any(|name| name == capability.name);
        if let Some(was) = was.filter(|was| used && *was != capability.version) {
            let version = |number: u32| format!("version {number}");
            let what = format!("the capability `{}`", capability.name);
            return Some(Difference { what, was: version(was), is: version(capability.version) });
        }
    }
    let settings = Settings {
        machine: start.setup.settings,
        preamble: start.preamble.clone(),
        memory: start.setup.memory.clone(),
        ..Settings::default()
    };
    let first =
        start.setup.history.iter().find(|message| message.role == wattle_machine::Role::User);
    let first = first.map_or(start.message.as_str(), |message| &message.content);
    let prompt = host.prompt(
        &settings,
        &grants(host, start),
        &host.listing(None, first),
        start.setup.dialect,
    );
    // The section about the output may belong to the stable part of the prompt or to the rest, but
    // it is always between the two.
    let section = start.setup.output.as_ref().map(OutputContract::section).unwrap_or_default();
    let (was, is) =
        (start.setup.system.to_string(), format!("{}{section}{}", prompt.stable, prompt.rest));
    if was == is {
        return None;
    }
    let (was, is) = excerpts(&was, &is);
    Some(Difference { what: "the system prompt".to_owned(), was, is })
}

/// Returns the capabilities granted at the run's start. Only `par` has a backend, because all other
/// results come from the tapes.
fn grants(host: &Host, start: &RunStart) -> Grants {
    let known = host.runtime().capabilities().iter().map(|capability| capability.name);
    let granted = known.filter(|name| start.granted.iter().any(|granted| granted == name));
    let grants = Grants::without_state(granted);
    if grants.allows("par") { grants.with(Par::new(host.programs())) } else { grants }
}

/// Runs a program again with its tape. Returns the first difference from the record, or `None` if
/// there is none.
async fn compare_execution(
    (host, catalog): (&Host, &Catalog),
    (grants, kept): (&Grants, Option<&CallKept>),
    call: &Call,
    recorded: &Execution,
    tape: RunTape,
) -> Result<Option<Difference>, StoreError> {
    let tape = Arc::new(tape);
    let grants = Arc::new(grants.clone().taped(Arc::<RunTape>::clone(&tape)));
    let time = host.runtime().limits().time;
    let again = perform_within(host.runtime(), catalog, &grants, call, time, kept).await;
    let again = limited(again.map_err(StoreError::unreadable)?);
    if let Some(differs) = tape.difference(recorded) {
        return Ok(Some(differs));
    }
    // A program that reached its time limit, or whose recording is incomplete, stops at a different
    // point in the replay.
    let stopped = matches!(recorded, Execution::Stopped { .. }) && tape.is_exhausted();
    let (was, is) = (timeless(&limited(recorded.clone())), timeless(&again));
    if stopped || was == is {
        return Ok(None);
    }
    let (was, is) = describe_difference(&was, &is);
    Ok(Some(Difference { what: format!("the result of `{}`", call.label()), was, is }))
}

/// Returns a copy of an execution with all durations set to 0.
fn timeless(execution: &Execution) -> Execution {
    let timeless = |cost: &Cost| Cost { dur_ms: 0, ..*cost };
    match execution {
        Execution::Ran(ran) => {
            Execution::Ran(Completion { cost: timeless(&ran.cost), ..ran.clone() })
        }
        Execution::Stopped { reason, results, cost, fixes, kept } => Execution::Stopped {
            reason: reason.clone(),
            results: results.clone(),
            cost: timeless(cost),
            fixes: fixes.clone(),
            kept: kept.clone(),
        },
        other => other.clone(),
    }
}

/// Returns the first difference between the recorded effects and those of the replay, or `None` if
/// there is none.
fn compare_effects(was: &[RecordedEffect], is: &[RecordedEffect]) -> Option<Difference> {
    let longest = was.len().max(is.len());
    (0..longest).find_map(|at| match (was.get(at), is.get(at)) {
        (was, is) if was == is => None,
        (Some(was), Some(is)) => {
            let (from, to) = describe_difference(was, is);
            Some(Difference { what: name(was).to_owned(), was: from, is: to })
        }
        (Some(was), None) => Some(Difference {
            what: name(was).to_owned(),
            was: "there".to_owned(),
            is: "not done any more".to_owned(),
        }),
        (None, Some(is)) => Some(Difference {
            what: name(is).to_owned(),
            was: "not there".to_owned(),
            is: "done now".to_owned(),
        }),
        (None, None) => None,
    })
}

fn name(effect: &RecordedEffect) -> &'static str {
    match effect {
        RecordedEffect::Moderate { .. } => "the moderated message",
        RecordedEffect::Ask(_) => "the request to the model",
        RecordedEffect::Execute { .. } => "the programs to run",
        RecordedEffect::Refuse { .. } => "a call that is not run",
        RecordedEffect::Recall { .. } => "the program that recalls",
        RecordedEffect::Done { .. } => "the call that ends the run",
        RecordedEffect::Contribute { .. } => "the programs of traits",
        RecordedEffect::Validate { .. } => "the answer to validate",
        RecordedEffect::Emit(_) => "an event",
        RecordedEffect::Finish(_) => "the end of the run",
    }
}
