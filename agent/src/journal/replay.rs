//! Playing a run back: with no model and no network, each effect compared with what was recorded.

use std::sync::Arc;

use wattle_capability::par::Par;
use wattle_machine::{Call, Cost, Execution, Input, Ran, State};
use wattle_rt::Grants;

use super::tape::{Mode, RunTape};
use super::turn::{Shortener, apart, difference};
use super::{Difference, Done, Opened, Opening, SharedJournal, Turn};
use crate::StoreError;
use crate::host::Host;
use crate::settings::Settings;

/// What became of playing a run back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many turns were played.
    pub turns: usize,
    /// How many programs were run again.
    pub programs: usize,
    /// The first difference, and the step that it is in, counted from 1; 0 stands for what the run began with.
    pub difference: Option<(u32, Difference)>,
}

/// Plays a run back and compares all that it does with what was recorded, up to the first difference. Programs of the steps before `from` are
/// not run again.
///
/// # Errors
/// Where the journal cannot be read, or the host is broken.
pub async fn replay(host: &Host, journal: &SharedJournal, run: &Opened, from: u32) -> Result<Replayed, StoreError> {
    let turns = journal.turns(&run.id).await?;
    let mut played = Replayed { turns: 0, programs: 0, difference: None };
    if let Some(differs) = began(host, run) {
        return Ok(Replayed { difference: Some((0, differs)), ..played });
    }
    let grants = grants(host, &run.opening);
    let mut state = State::new(run.opening.setup.clone());
    let mut shortener = Shortener::default();
    let mut before: Option<&Turn> = None;
    for (at, turn) in (0..).zip(&turns) {
        let number = state.steps().saturating_add(1);
        if let (Input::Executed(executions), Some(before)) = (&turn.input, before)
            && number >= from
        {
            let calls = before.done.iter().find_map(|done| match done {
                Done::Execute { calls, .. } => Some(calls.as_slice()),
                _ => None,
            });
            let tapes = journal.calls_of(&run.id, at - 1).await?;
            for (program, (call, recorded)) in (0..).zip(calls.unwrap_or_default().iter().zip(executions)) {
                let past = tapes.iter().filter(|call| call.program == program).cloned();
                let tape = RunTape::new(Arc::clone(journal), &run.id, (at - 1, program), Mode::Replay, past);
                played.programs += 1;
                if let Some(differs) = executed(host, &grants, call, recorded, tape).await? {
                    return Ok(Replayed { difference: Some((number, differs)), ..played });
                }
            }
        }
        let effects;
        (state, effects) = turn.step(state);
        if let Some(differs) = done(&turn.done, &shortener.shorten(&effects)) {
            return Ok(Replayed { difference: Some((number, differs)), ..played });
        }
        played.turns += 1;
        before = Some(turn);
    }
    Ok(played)
}

/// Compares what the run began with: the capabilities, and the prompt that is made of what there is.
fn began(host: &Host, run: &Opened) -> Option<Difference> {
    let opening = &run.opening;
    for capability in host.runtime().capabilities() {
        let was = opening.capabilities.get(capability.name).copied();
        let used = opening.granted.iter().any(|name| name == capability.name);
        if let Some(was) = was.filter(|was| used && *was != capability.version) {
            let version = |number: u32| format!("version {number}");
            let what = format!("the capability `{}`", capability.name);
            return Some(Difference { what, was: version(was), is: version(capability.version) });
        }
    }
    let settings =
        Settings { machine: opening.setup.settings, preamble: opening.preamble.clone(), ..Settings::default() };
    let said = opening.setup.history.iter().find(|message| message.role == wattle_machine::Role::User);
    let said = said.map_or(opening.message.as_str(), |message| &message.content);
    let prompt = host.prompt(&settings, &grants(host, opening), &host.listing(None, said), opening.setup.dialect);
    if prompt == opening.setup.system {
        return None;
    }
    let (was, is) = apart(&opening.setup.system, &prompt);
    Some(Difference { what: "the system prompt".to_owned(), was, is })
}

/// The same capabilities, with nothing behind them: what comes from outside comes from the tapes.
fn grants(host: &Host, opening: &Opening) -> Grants {
    let known = host.runtime().capabilities().iter().map(|capability| capability.name);
    let granted = known.filter(|name| opening.granted.iter().any(|granted| granted == name));
    let grants = granted.fold(Grants::new(), Grants::allow);
    if grants.allows("par") { grants.with(Par::new(host.programs())) } else { grants }
}

/// Runs a program again, on its tape, and compares what becomes of it.
async fn executed(
    host: &Host,
    grants: &Grants,
    call: &Call,
    recorded: &Execution,
    tape: RunTape,
) -> Result<Option<Difference>, StoreError> {
    let tape = Arc::new(tape);
    let grants = Arc::new(grants.clone().taped(Arc::<RunTape>::clone(&tape)));
    let catalog = host.catalog();
    let again = crate::act::perform(host.runtime(), &catalog, &grants, call).await;
    let again = again.map_err(StoreError::unreadable)?;
    if let Some(differs) = tape.difference(recorded) {
        return Ok(Some(differs));
    }
    // What was stopped by the clock, or by a recording that breaks off, is not stopped in the same place again.
    let stopped = matches!(recorded, Execution::Stopped { .. }) && tape.is_over();
    let (was, is) = (timeless(recorded), timeless(&again));
    if stopped || was == is {
        return Ok(None);
    }
    let (was, is) = difference(&was, &is);
    Ok(Some(Difference { what: format!("what became of `{}`", call.label()), was, is }))
}

/// An execution without what depends on the clock.
fn timeless(execution: &Execution) -> Execution {
    let timeless = |cost: &Cost| Cost { dur_ms: 0, ..*cost };
    match execution {
        Execution::Ran(ran) => Execution::Ran(Ran { cost: timeless(&ran.cost), ..ran.clone() }),
        Execution::Stopped { reason, results, cost, fixes } => Execution::Stopped {
            reason: reason.clone(),
            results: results.clone(),
            cost: timeless(cost),
            fixes: fixes.clone(),
        },
        other => other.clone(),
    }
}

/// The first effect that is another one.
fn done(was: &[Done], is: &[Done]) -> Option<Difference> {
    let longest = was.len().max(is.len());
    (0..longest).find_map(|at| match (was.get(at), is.get(at)) {
        (was, is) if was == is => None,
        (Some(was), Some(is)) => {
            let (from, to) = difference(was, is);
            Some(Difference { what: what(was).to_owned(), was: from, is: to })
        }
        (Some(was), None) => {
            Some(Difference { what: what(was).to_owned(), was: "there".to_owned(), is: "not done any more".to_owned() })
        }
        (None, Some(is)) => {
            Some(Difference { what: what(is).to_owned(), was: "not there".to_owned(), is: "done now".to_owned() })
        }
        (None, None) => None,
    })
}

fn what(done: &Done) -> &'static str {
    match done {
        Done::Moderate { .. } => "what is looked at before the run",
        Done::Ask(_) => "what the model is asked",
        Done::Execute { .. } => "the programs that are run",
        Done::Emit(_) => "an event",
        Done::Finish(_) => "the end of the run",
    }
}
