//! The budgets of a resumed run.

use std::collections::HashMap;

use wattle_capability::ai::AiUse;
use wattle_capability::fs::Fs;
use wattle_capability::image::ImageUse;
use wattle_machine::{Input, Usage};
use wattle_rt::{Failure, Grants};
use wattle_store::StoreError;

use super::tape::first_change_key;
use super::{RecordedCall, RecordedEffect, RunFilter, RunRecord, SharedJournal, Status, Turn};
use crate::tree::{MAX_DEPTH, RecordedRun, RecordedUse, RunTree, child_id};

/// The function that starts child runs.
const DELEGATE: &str = "agent.delegate";

/// Charges the recorded usage of a resumed run to its tree, so that the budgets include the usage
/// from before the run was stopped. For the root run, also charges the usage of all its
/// descendants. `is_ending` is true if the run is resumed only so that it can end. In this case,
/// only the usage of the run and its child runs is charged, because the run's summary reports it.
pub(crate) async fn restore(
    journal: &SharedJournal,
    run: &str,
    tree: &RunTree,
    grants: &Grants,
    is_ending: bool,
) -> Result<(), StoreError> {
    let is_overlay = grants.config::<Fs>().is_none_or(|fs| fs.0.is_overlay());
    let records = Records { journal, is_overlay, is_ending };
    let is_whole = tree.is_top() && !is_ending;
    let root = tree.root(run);
    let below = if is_whole { runs_below(journal, root).await? } else { Vec::new() };
    let mut recorded: Vec<(&RunRecord, Recorded)> = Vec::new();
    let mut above = vec![run];
    for _ in 0..MAX_DEPTH {
        let level: Vec<&RunRecord> =
            below.iter().filter(|child| above.contains(&parent_of(child))).collect();
        for child in level.iter().copied() {
            recorded.push((child, records.of(&child.id, &[]).await?));
        }
        above = level.iter().map(|child| child.id.as_str()).collect();
    }
    let sources = if tree.is_top() { sources(journal, run).await? } else { Vec::new() };
    let own = records.of(run, &sources).await?;

    // The ended runs are read after the calls, so that they include each child run whose answer is
    // recorded.
    let mut ended = HashMap::new();
    let all = || recorded.iter().map(|(_, recorded)| recorded).chain([&own]);
    if all().any(|recorded| !recorded.asked.is_empty()) {
        ended.extend(ended_below(journal, root).await?);
    }
    if own.asked.iter().any(|asked| asked.is_copied) {
        for source in &sources {
            ended.extend(ended_below(journal, &source.root).await?);
        }
    }
    for (child, recorded) in recorded {
        let (used, _) = recorded.settle(&ended);
        let (id, parent) = (child.id.as_str(), parent_of(child));
        let (agent, settings) = (child.start.agent.as_str(), child.start.setup.settings);
        tree.restore_below(run, &RecordedRun { id, parent, agent, settings, used });
    }
    let (used, answered) = own.settle(&ended);
    tree.restore(&used, &answered);
    Ok(())
}

/// Returns the id of the run that started a run, or an empty string if there is none.
fn parent_of(run: &RunRecord) -> &str {
    run.start.parent.as_ref().map_or("", |parent| parent.run.as_str())
}

/// Returns all descendants of a root run.
async fn runs_below(journal: &SharedJournal, root: &str) -> Result<Vec<RunRecord>, StoreError> {
    journal.runs(RunFilter { tree_of: Some(root.to_owned()), ..RunFilter::default() }).await
}

/// Returns the ids of a root run's descendants that have ended. Each id is paired with the total
/// usage of that run, which includes the usage of its own descendants.
async fn ended_below(
    journal: &SharedJournal,
    root: &str,
) -> Result<impl Iterator<Item = (String, Usage)>, StoreError> {
    let runs = runs_below(journal, root).await?.into_iter();
    let ended = runs.filter(|run| run.status == Status::Ended);
    Ok(ended.filter_map(|run| Some((run.id, run.summary?.usage))))
}

/// A run whose first turns were copied into a fork.
struct Source {
    run: String,
    /// The id of the root run of this run's tree.
    root: String,
    /// The last step that this run and the fork share.
    step: u32,
}

/// Returns the run from which the turns of a fork were copied, then the run from which that run's
/// turns were copied, and so on. A fork that began with its own message contains no copied turns.
async fn sources(journal: &SharedJournal, run: &str) -> Result<Vec<Source>, StoreError> {
    let mut sources = Vec::new();
    let mut copy = journal.run(run).await?;
    while let Some((of, step)) = copy.as_ref().and_then(|copy| copy.start.forked.clone()) {
        let original = journal.run(&of).await?;
        let nonce = |run: &Option<RunRecord>| run.as_ref().map(|run| run.start.setup.nonce.clone());
        if nonce(&original) != nonce(&copy) {
            break;
        }
        let parent = original.as_ref().and_then(|run| run.start.parent.as_ref());
        let root = parent.map_or_else(|| of.clone(), |parent| parent.root.clone());
        sources.push(Source { run: of, root, step });
        copy = original;
    }
    Ok(sources)
}

/// Returns the id of the run that made the calls of the turn at index `at`: `run` itself, or one of
/// the `sources` if the turn was copied. `turns` are the turns of `run`.
fn maker<'a>(run: &'a str, sources: &'a [Source], turns: &[Turn], at: usize) -> &'a str {
    let has = |turn: &Turn, source: &Source| {
        let next = source.step.saturating_add(1);
        turn.effects.iter().any(|effect| match effect {
            RecordedEffect::Ask(asked) => asked.step == next,
            _ => false,
        })
    };
    // The turn that asks the model for the next step is the last one that was copied.
    let copied = |source: &&Source| {
        let mut before = turns.iter().take(at);
        !before.any(|turn| has(turn, source))
    };
    sources.iter().take_while(copied).last().map_or(run, |source| source.run.as_str())
}

/// The records of the runs of one tree.
struct Records<'a> {
    journal: &'a SharedJournal,
    /// If true, the runs' files are in memory, and the programs of the last turn must repeat their
    /// changes to them.
    is_overlay: bool,
    /// If true, no program runs again.
    is_ending: bool,
}

/// The recorded usage of one run.
struct Recorded {
    /// The usage, except that of the run's programs.
    used: RecordedUse,
    /// The usage of the run's programs, including that of the child runs that they started.
    of_programs: Usage,
    asked: Vec<Asked>,
}

/// A child run that a program started.
struct Asked {
    id: String,
    /// If true, the child run's answer is not yet part of a turn.
    is_last: bool,
    /// If true, the call that started the child run was copied from another run, which is the child
    /// run's parent.
    is_copied: bool,
}

impl Records<'_> {
    /// Reads the usage of a run. `sources` contains the runs from which its turns were copied.
    async fn of(&self, run: &str, sources: &[Source]) -> Result<Recorded, StoreError> {
        let turns = self.journal.turns(run).await?;
        let mut used = RecordedUse::default();
        let (mut of_programs, mut asked) = (Usage::default(), Vec::new());
        for (at, turn) in turns.iter().enumerate() {
            of_programs += turn.spent;
            used.usage += usage_of_request(turn);
            let is_last = at.saturating_add(1) == turns.len();
            if !starts_programs(turn) || (self.is_ending && !is_last) {
                continue;
            }
            let maker = maker(run, sources, &turns, at);
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            for call in self.journal.calls_of(run, number).await? {
                let function = &*call.id.function;
                if function == DELEGATE && (call.result.is_some() || self.is_ending) {
                    let id = child_id(maker, &first_change_key(maker, &call));
                    asked.push(Asked { id, is_last, is_copied: maker != run });
                } else if function.starts_with("ai.") {
                    // A pending request is sent again.
                    if is_counted(&call, AiUse::counts).unwrap_or(false) {
                        used.ai_calls = used.ai_calls.saturating_add(call.times);
                    }
                } else if function.starts_with("image.") {
                    let is_repeated = is_last && self.is_overlay;
                    let images =
                        if is_repeated { &mut used.repeated_images } else { &mut used.images };
                    if is_counted(&call, ImageUse::counts).unwrap_or(!is_repeated) {
                        *images = images.saturating_add(call.times);
                    }
                }
            }
        }
        Ok(Recorded { used, of_programs, asked })
    }
}

/// Checks whether a call counts toward its limit, as decided by `counts`. Returns `None` if the
/// call has no result.
fn is_counted(call: &RecordedCall, counts: fn(Option<&Failure>) -> bool) -> Option<bool> {
    call.result.as_ref().map(|result| counts(result.as_ref().err()))
}

impl Recorded {
    /// Returns the usage of the run without its child runs, and the child runs that have ended and
    /// whose answers are not yet part of a turn. `ended` contains the usage of all child runs that
    /// have ended.
    fn settle(self, ended: &HashMap<String, Usage>) -> (RecordedUse, Vec<(String, Usage)>) {
        let Recorded { mut used, of_programs, asked } = self;
        let (mut of_children, mut of_copied) = (Usage::default(), Usage::default());
        let mut answered = Vec::new();
        for Asked { id, is_last, is_copied } in asked {
            match ended.get(&id) {
                Some(usage) if is_last => answered.push((id, *usage)),
                Some(usage) if is_copied => of_copied += *usage,
                Some(usage) => of_children += *usage,
                None => {}
            }
        }
        // What the child runs used is charged to them. Those of another run are not in the tree.
        let of_programs = of_programs.beyond(of_children);
        used.usage += of_programs;
        used.ai_tokens = of_programs.beyond(of_copied).total();
        (used, answered)
    }
}

/// Returns the usage of the model request whose answer is the turn's input, or no usage if the
/// input is not an answer.
fn usage_of_request(turn: &Turn) -> Usage {
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

#[cfg(test)]
mod tests {
    use wattle_machine::{Dialect, Purpose};

    use super::super::RecordedAsk;
    use super::*;

    fn usage(prompt: u64) -> Usage {
        Usage { prompt, ..Usage::default() }
    }

    /// Creates a turn that asks the model for a step.
    fn asks(step: u32) -> Turn {
        let ask = RecordedAsk {
            step,
            attempt: 0,
            purpose: Purpose::Act,
            dialect: Dialect::Text,
            same: 0,
            messages: Vec::new(),
        };
        Turn {
            spent: Usage::default(),
            input: Input::Failed("a test".to_owned()),
            effects: vec![RecordedEffect::Ask(ask)],
            seq: 1,
            elapsed_ms: 0,
            files: None,
        }
    }

    #[test]
    fn the_calls_of_a_copied_turn_are_those_of_the_run_that_made_them() {
        let turns: Vec<Turn> = [1, 1, 2, 3].map(asks).into();
        let source = |run: &str, step| Source { run: run.to_owned(), root: run.to_owned(), step };
        // `copy` has all turns up to step 1 of `middle`, which has the first one of `first`.
        let sources = [source("middle", 1), source("first", 0)];
        let makers: Vec<&str> = (0..4).map(|at| maker("copy", &sources, &turns, at)).collect();
        assert_eq!(makers, ["first", "middle", "middle", "copy"]);
        assert_eq!(maker("run", &[], &turns, 0), "run");
    }

    #[test]
    fn the_usage_of_child_runs_is_no_usage_of_the_run() {
        let asked = |id: &str, is_last, is_copied| Asked { id: id.to_owned(), is_last, is_copied };
        let recorded = Recorded {
            used: RecordedUse { usage: usage(1), ..RecordedUse::default() },
            of_programs: usage(100),
            asked: vec![
                asked("ended", false, false),
                asked("of another tree", false, true),
                asked("answered", true, false),
                asked("open", false, false),
            ],
        };
        let ended = [("ended", 10), ("of another tree", 20), ("answered", 40)];
        let ended = ended.map(|(id, prompt)| (id.to_owned(), usage(prompt))).into();
        let (used, answered) = recorded.settle(&ended);
        assert_eq!((used.usage, used.ai_tokens), (usage(91), 70));
        assert_eq!(answered, [("answered".to_owned(), usage(40))]);
    }
}
