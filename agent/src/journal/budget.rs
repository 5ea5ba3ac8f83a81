//! The budgets of a resumed run.

use std::collections::HashMap;

use wattle_capability::fs::Fs;
use wattle_machine::{Input, Usage};
use wattle_rt::Grants;

use super::tape::first_change_key;
use super::{RecordedCall, RecordedEffect, RunFilter, RunRecord, SharedJournal, Status, Turn};
use crate::delegates::child_id;
use crate::error::StoreError;
use crate::tree::{MAX_DEPTH, RecordedRun, RecordedUse, RunTree};

/// The function that starts child runs.
const DELEGATE: &str = "agent.delegate";

/// Charges the recorded usage of a run to its tree, so that its budgets cover the part before it
/// was resumed. For the root run, also charges the usage of all runs below it.
pub(super) async fn restore(
    journal: &SharedJournal,
    run: &str,
    tree: &RunTree,
    grants: &Grants,
) -> Result<(), StoreError> {
    let filter = RunFilter { tree_of: Some(tree.root(run).to_owned()), ..RunFilter::default() };
    let below = journal.runs(filter).await?;
    let is_overlay = grants.config::<Fs>().is_none_or(|fs| fs.0.is_overlay());
    let records = Records { journal, ended: ended(&below), is_overlay };
    let levels = if tree.is_top() { MAX_DEPTH } else { 0 };
    let mut above = vec![run];
    for _ in 0..levels {
        let level: Vec<&RunRecord> =
            below.iter().filter(|child| above.contains(&parent_of(child))).collect();
        for child in &level {
            let Recorded { used, .. } = records.of(&child.id).await?;
            let (id, parent) = (child.id.as_str(), parent_of(child));
            let (agent, settings) = (child.start.agent.as_str(), child.start.setup.settings);
            tree.restore_below(run, &RecordedRun { id, parent, agent, settings, used });
        }
        above = level.iter().map(|child| child.id.as_str()).collect();
    }
    let Recorded { used, answered } = records.of(run).await?;
    tree.restore(&used, &answered);
    Ok(())
}

/// Returns the id of the run that started a run, or an empty string if there is none.
fn parent_of(run: &RunRecord) -> &str {
    run.start.parent.as_ref().map_or("", |parent| parent.run.as_str())
}

/// Returns the usage of the ended runs, by run id.
fn ended(runs: &[RunRecord]) -> HashMap<&str, Usage> {
    let ended = runs.iter().filter(|run| run.status == Status::Ended);
    ended.filter_map(|run| Some((run.id.as_str(), run.summary.as_ref()?.usage))).collect()
}

/// The records of the runs of one tree.
struct Records<'a> {
    journal: &'a SharedJournal,
    /// The usage of the ended runs, including the runs below them, by run id.
    ended: HashMap<&'a str, Usage>,
    /// If true, the runs' files are in memory, and the programs of the last turn change them again.
    is_overlay: bool,
}

/// The recorded usage of one run.
struct Recorded {
    used: RecordedUse,
    /// The ended child runs whose answers are recorded, but are not yet part of a turn, each with
    /// its usage.
    answered: Vec<(String, Usage)>,
}

impl Records<'_> {
    async fn of(&self, run: &str) -> Result<Recorded, StoreError> {
        let turns = self.journal.turns(run).await?;
        let mut used = RecordedUse::default();
        let (mut of_programs, mut of_children) = (Usage::default(), Usage::default());
        let mut answered = Vec::new();
        for (at, turn) in (0_u32..).zip(&turns) {
            of_programs += turn.spent;
            used.usage += asked(turn);
            if !starts_programs(turn) {
                continue;
            }
            let is_last = usize::try_from(at).is_ok_and(|at| at.saturating_add(1) == turns.len());
            for call in self.journal.calls_of(run, at).await? {
                match &*call.id.function {
                    DELEGATE => match self.child(run, &call) {
                        Some(child) if is_last => answered.push(child),
                        Some((_, usage)) => of_children += usage,
                        None => {}
                    },
                    function if function.starts_with("ai.") && call.result.is_some() => {
                        used.ai_calls = used.ai_calls.saturating_add(call.times);
                    }
                    // The program of the last turn generates the image again.
                    function if function.starts_with("image.") && !(is_last && self.is_overlay) => {
                        used.images = used.images.saturating_add(call.times);
                    }
                    _ => {}
                }
            }
        }
        // What the child runs used is charged to them.
        let of_programs = of_programs.beyond(of_children);
        used.usage += of_programs;
        used.ai_tokens = of_programs.total();
        Ok(Recorded { used, answered })
    }

    /// Returns the child run that a call asked and its usage, if the run has ended and the call has
    /// its answer.
    fn child(&self, run: &str, call: &RecordedCall) -> Option<(String, Usage)> {
        call.result.as_ref()?;
        let id = child_id(run, &first_change_key(run, call));
        let usage = *self.ended.get(id.as_str())?;
        Some((id, usage))
    }
}

/// Returns the usage of the request to the model whose answer is the input of a turn.
fn asked(turn: &Turn) -> Usage {
    match &turn.input {
        Input::Answer(answer) => answer.usage,
        _ => Usage::default(),
    }
}

/// Returns true if the effects of a turn start programs.
fn starts_programs(turn: &Turn) -> bool {
    turn.effects.iter().any(|effect| {
        matches!(
            effect,
            RecordedEffect::Execute { .. }
                | RecordedEffect::Contribute { .. }
                | RecordedEffect::Recall { .. }
        )
    })
}
