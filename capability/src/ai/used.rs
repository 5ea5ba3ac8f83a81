//! Tracks how much of its budget for `ai` a run has used.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use wattle_rt::{Code, Failure};

use super::Budget;

/// The codes of failures that occur before a request is sent.
const BEFORE_REQUEST: &[Code] = &[Code::EACCESS, Code::EBOUND, Code::EBUDGET, Code::EPARSE];

/// The requests and tokens that the programs of one run used. Clones share the counter. The usage
/// of a child run is also counted for all of its ancestors, so that the budget of a run covers its
/// descendants.
#[derive(Clone, Default)]
pub struct AiUse(Arc<Counter>);

#[derive(Default)]
struct Counter {
    /// The run's limit. Until it is set, only the limits of the ancestor runs apply.
    budget: OnceLock<Budget>,
    calls: AtomicU32,
    tokens: AtomicU64,
    /// The counter of the parent run, if this is a child run.
    above: Option<AiUse>,
}

impl AiUse {
    /// Creates the counter of a run with a budget.
    pub(super) fn of(budget: Budget) -> AiUse {
        let used = AiUse::default();
        used.limit_to(budget);
        used
    }

    /// Creates the counter of a child run.
    #[must_use]
    pub fn child(&self) -> AiUse {
        AiUse(Arc::new(Counter { above: Some(self.clone()), ..Counter::default() }))
    }

    /// Sets the limit of the run, unless it is already set.
    pub(super) fn limit_to(&self, budget: Budget) {
        _ = self.0.budget.set(budget);
    }

    /// Returns this counter and then the counters of the ancestor runs, parent first.
    fn runs(&self) -> impl Iterator<Item = &AiUse> {
        std::iter::successors(Some(self), |used| used.0.above.as_ref())
    }

    /// Returns true if a call sent a request. `failure` is `None` if the call succeeded.
    #[must_use]
    pub fn counts(failure: Option<&Failure>) -> bool {
        let is_before = |failure: &Failure| BEFORE_REQUEST.contains(&failure.code);
        !failure.is_some_and(is_before)
    }

    /// Counts requests and tokens that the run used before it was resumed.
    pub fn charge(&self, calls: u32, tokens: u64) {
        for used in self.runs() {
            let add = |count: u32| Some(count.saturating_add(calls));
            // The closure always returns a value, so the update cannot fail.
            let _ = used.0.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
        self.count_tokens(tokens);
    }

    /// Counts one request.
    ///
    /// # Errors
    /// `EBUDGET` if the budget of the run or of an ancestor run is used up. In that case, nothing
    /// is counted.
    pub(super) fn count_call(&self) -> Result<(), Failure> {
        let runs = || self.runs().enumerate();
        for (level, used) in runs() {
            let tokens = used.0.tokens.load(Ordering::Relaxed);
            let limit = used.0.budget.get().map_or(u64::MAX, |budget| budget.tokens);
            if tokens >= limit {
                let (the, of) = owner(level);
                let reason = format!(
                    "{the} {limit} tokens for `ai`{of} are used up ({tokens}); `--ai-tokens N` \
                     allows more"
                );
                return Err(Failure::new(Code::EBUDGET, reason));
            }
        }
        for (level, used) in runs() {
            let limit = used.0.budget.get().map_or(u32::MAX, |budget| budget.calls);
            let next = |calls: u32| (calls < limit).then_some(calls.saturating_add(1));
            if used.0.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_err() {
                // The runs below this one have already counted the request.
                self.runs().take(level).for_each(|counted| {
                    counted.0.calls.fetch_sub(1, Ordering::Relaxed);
                });
                let (the, of) = owner(level);
                let reason = format!(
                    "{the} {limit} calls of `ai`{of} are used up; `--ai-calls N` allows more"
                );
                return Err(Failure::new(Code::EBUDGET, reason));
            }
        }
        Ok(())
    }

    /// Counts the tokens of a request.
    pub(super) fn count_tokens(&self, tokens: u64) {
        for used in self.runs() {
            let add = |count: u64| Some(count.saturating_add(tokens));
            // The closure always returns a value, so the update cannot fail.
            let _ = used.0.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }
}

/// Returns the words that a message puts before and after a budget to name its run, which is
/// `level` levels above the current run.
fn owner(level: usize) -> (&'static str, &'static str) {
    if level == 0 { ("the run's", "") } else { ("the", " of the run above") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_run_uses_the_budget_of_the_runs_above_it() {
        let top = AiUse::of(Budget { calls: 2, tokens: 100 });
        let (one, other) = (top.child(), top.child().child());
        one.limit_to(Budget { calls: 1, tokens: 100 });
        one.count_call().unwrap();
        let failure = one.count_call().unwrap_err();
        assert!(failure.reason.starts_with("the run's 1 calls of `ai`"), "{failure}");
        other.count_call().unwrap();
        let failure = other.count_call().unwrap_err();
        assert_eq!(failure.code, Code::EBUDGET);
        assert!(failure.reason.starts_with("the 2 calls of `ai` of the run above"), "{failure}");
        // A refused request counts nowhere.
        assert_eq!(other.0.calls.load(Ordering::Relaxed), 1);
        let top = AiUse::of(Budget { calls: 9, tokens: 100 });
        let below = top.child();
        below.charge(3, 40);
        top.child().count_tokens(60);
        let failure = below.count_call().unwrap_err();
        assert!(failure.reason.contains("100 tokens for `ai`"), "{failure}");
        assert_eq!(top.0.calls.load(Ordering::Relaxed), 3);
    }
}
