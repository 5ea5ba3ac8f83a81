//! The limits of one run, and the usage of the run and its descendants.

use std::fmt;

use wattle_machine::{Dollars, Input, Usage};

/// The limits and the usage of one run.
#[derive(Default)]
pub(super) struct Budget {
    /// The name of the run's agent.
    pub(super) agent: String,
    /// Maximum number of tokens that the run and its descendants may use.
    pub(super) max_tokens: Option<u64>,
    /// Maximum cost of the run and its descendants.
    pub(super) max_cost: Option<Dollars>,
    /// The usage of the run without its descendants.
    pub(super) own: Usage,
    /// The usage of the run and its descendants.
    pub(super) used: Usage,
    /// If true, the `ai` requests and the images of the run's programs have been counted.
    pub(super) is_counted: bool,
    /// If true, the parent's usage includes the usage of this run.
    pub(super) is_reported: bool,
    /// Number of model requests by the run and its descendants that are in flight.
    in_flight: u64,
    /// The largest usage of a single request by a descendant, or `None` if no such request has
    /// ended.
    largest: Option<Usage>,
}

impl Budget {
    /// Returns a limit that is used up, or `None` if there is none. `pending` is usage that has not
    /// been charged yet.
    pub(super) fn reached(&self, pending: Usage) -> Option<Limit> {
        let mut used = self.used;
        used += pending;
        let tokens = self.max_tokens.filter(|max| used.total() >= *max).map(Limit::Tokens);
        let is_spent = |max: &Dollars| used.cost.is_some_and(|cost| cost >= *max);
        tokens.or_else(|| self.max_cost.filter(is_spent).map(Limit::Cost))
    }

    /// Returns true if another request may begin while the current ones are in flight.
    pub(super) fn has_room(&self) -> bool {
        let is_unlimited = self.max_tokens.is_none() && self.max_cost.is_none();
        if self.in_flight == 0 || is_unlimited {
            return true;
        }
        let Some(largest) = self.largest else { return false };
        let fits = |max: u64, used: u64, each: u64| {
            self.in_flight.saturating_add(1).saturating_mul(each) <= max.saturating_sub(used)
        };
        let tokens =
            self.max_tokens.is_none_or(|max| fits(max, self.used.total(), largest.total()));
        let (used, each) = (nanos(self.used), nanos(largest));
        tokens && self.max_cost.is_none_or(|max| fits(max.nanos(), used, each))
    }

    /// Counts a request that begins.
    pub(super) fn begin(&mut self) {
        self.in_flight = self.in_flight.saturating_add(1);
    }

    /// Counts a request that has ended.
    pub(super) fn finish(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Records the usage of a request by a descendant.
    pub(super) fn learn(&mut self, usage: Usage) {
        let known = self.largest.unwrap_or_default();
        self.largest = Some(Usage {
            prompt: known.prompt.max(usage.prompt),
            completion: known.completion.max(usage.completion),
            cached: 0,
            cost: known.cost.max(usage.cost),
        });
    }
}

/// Returns the cost in billionths of a dollar. An unknown cost counts as 0.
fn nanos(usage: Usage) -> u64 {
    usage.cost.map_or(0, Dollars::nanos)
}

/// A limit of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The limit `max_tokens_total`.
    Tokens(u64),
    /// The limit `max_cost`.
    Cost(Dollars),
}

/// A limit that is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget {
    pub(super) limit: Limit,
    /// The agent of the ancestor that the limit belongs to, or `None` if it is the run's own limit.
    pub(super) owner: Option<String>,
}

impl OverBudget {
    /// Returns the input that ends a run whose budget is used up.
    pub(crate) fn into_input(self) -> Input {
        let OverBudget { limit, owner } = self;
        match limit {
            Limit::Tokens(limit) => Input::OutOfTokens { limit, owner },
            Limit::Cost(limit) => Input::OutOfMoney { limit, owner },
        }
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Tokens(limit) => write!(f, "reached max_tokens_total ({limit})")?,
            Limit::Cost(limit) => write!(f, "reached max_cost ({limit})")?,
        }
        match &self.owner {
            Some(agent) => write!(f, " of the agent `{agent}` above it"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(nanos: u64) -> Usage {
        Usage { cost: Some(Dollars::from_nanos(nanos)), ..Usage::default() }
    }

    #[test]
    fn requests_run_side_by_side_as_far_as_the_budget_allows() {
        let max_cost = Some(Dollars::from_nanos(100));
        let mut budget = Budget { max_cost, used: cost(1), ..Budget::default() };
        assert!(budget.has_room());
        budget.begin();
        assert!(!budget.has_room(), "nothing is known about a request yet");
        budget.learn(cost(30));
        assert!(budget.has_room(), "two requests fit");
        budget.begin();
        assert!(budget.has_room(), "three requests fit");
        budget.begin();
        assert!(!budget.has_room(), "four requests do not fit");
        budget.finish();
        assert!(budget.has_room());
        let mut unlimited = Budget::default();
        unlimited.begin();
        assert!(unlimited.has_room());
    }

    #[test]
    fn a_free_request_leaves_room_and_tokens_count_beside_the_cost() {
        let (max_tokens, max_cost) = (Some(100), Some(Dollars::from_nanos(1)));
        let mut budget = Budget { max_tokens, max_cost, ..Budget::default() };
        budget.begin();
        budget.learn(Usage { prompt: 40, ..Usage::default() });
        assert!(budget.has_room());
        budget.used.prompt = 40;
        assert!(!budget.has_room());
        budget.used.completion = 60;
        assert_eq!(budget.reached(Usage::default()), Some(Limit::Tokens(100)));
    }

    #[test]
    fn only_the_unknown_part_of_a_usage_is_left() {
        let usage = |prompt, completion| Usage { prompt, completion, ..Usage::default() };
        assert_eq!(usage(5, 3).beyond(usage(2, 4)), usage(3, 0));
        assert_eq!(cost(5).beyond(cost(2)), cost(3));
        assert_eq!(cost(5).beyond(Usage::default()), cost(5));
    }
}
