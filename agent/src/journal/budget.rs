//! The budgets of a resumed run.

use wattle_capability::ai::Ai;
use wattle_rt::Grants;

use super::{RunFilter, SharedJournal};
use crate::error::StoreError;

/// Charges the recorded model requests of a run's programs to the run's budget, so that the budget
/// covers the whole run, including the part before it was resumed.
pub(super) async fn charge_ai(
    journal: &SharedJournal,
    (run, root): (&str, &str),
    grants: &Grants,
) -> Result<(), StoreError> {
    let Some(ai) = grants.config::<Ai>() else { return Ok(()) };
    let turns = journal.turns(run).await?;
    let mut calls: u32 = 0;
    for at in 0..turns.len() {
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for call in journal.calls_of(run, at).await? {
            if call.result.is_some() && call.id.function.starts_with("ai.") {
                calls = calls.saturating_add(call.times);
            }
        }
    }
    let spent: u64 = turns.iter().map(|turn| turn.spent.total()).sum();
    // The usage of child runs is not part of this budget.
    let filter = RunFilter { tree_of: Some(root.to_owned()), ..RunFilter::default() };
    let children = journal.runs(filter).await?;
    let own = children
        .iter()
        .filter(|child| child.start.parent.as_ref().is_some_and(|parent| parent.run == run));
    let theirs: u64 = own.filter_map(|child| Some(child.summary.as_ref()?.usage.total())).sum();
    ai.charge(calls, spent.saturating_sub(theirs));
    Ok(())
}
