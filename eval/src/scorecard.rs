//! The scorecard: totals over attempts, by model, approach and kind of task.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::attempt::{Approach, Attempt, Tokens, Verdict};

/// The results of each model, approach and agent: one row per kind of task, followed by a row for
/// all tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scorecard {
    /// The rows, grouped by model, approach and agent.
    pub rows: Vec<Row>,
    /// Comparisons of programs and tools, one for each model that worked on the same tasks with
    /// both.
    pub comparisons: Vec<Comparison>,
}

/// A row of a scorecard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The model's name.
    pub model: String,
    /// The model's approach to the tasks.
    pub approach: Approach,
    /// The agent that worked on the tasks, or an empty string if the model worked without an agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The kind of tasks, or `None` for all tasks.
    pub kind: Option<String>,
    /// The totals over these tasks.
    pub score: Score,
}

/// The results of one model with programs and with tools, on the same tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The model's name.
    pub model: String,
    /// The results with programs.
    pub programs: Score,
    /// The results with tools, one call at a time.
    pub tools: Score,
}

/// Totals over several attempts. An attempt with the verdict `error` counts only in `errors`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Number of attempts without an error.
    pub attempts: u32,
    /// Number of attempts that passed.
    pub passed: u32,
    /// Number of attempts that ended with an error.
    pub errors: u32,
    /// Number of programs, excluding repairs. For the baseline, the number of calls.
    pub programs: u32,
    /// Number of programs that were valid as written.
    pub valid: u32,
    /// Number of failed calls.
    pub failures: u32,
    /// Number of model turns that repaired a program.
    pub repairs: u32,
    /// Total number of steps.
    pub steps: u32,
    /// Total number of tokens.
    pub tokens: Tokens,
    /// Median wall-clock time of an attempt, in milliseconds.
    pub median_ms: u64,
    /// Share of attempts that passed, from 0 to 1. `None` if there are no attempts.
    pub success: Option<f64>,
    /// Share of programs that were valid as written, from 0 to 1. `None` if there are no programs.
    pub first_try_validity: Option<f64>,
    /// Mean number of steps per attempt. `None` if there are no attempts.
    pub mean_steps: Option<f64>,
}

impl Score {
    /// Computes totals over attempts.
    #[must_use]
    pub fn of<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Score {
        let mut score = Score::default();
        let mut times = Vec::new();
        for attempt in attempts {
            if attempt.verdict == Verdict::Error {
                score.errors += 1;
                continue;
            }
            score.attempts += 1;
            score.passed += u32::from(attempt.passed());
            score.programs += attempt.programs;
            score.valid += attempt.valid;
            score.failures += attempt.failures;
            score.repairs += attempt.repairs;
            score.steps += attempt.steps;
            score.tokens += attempt.tokens;
            times.push(attempt.dur_ms);
        }
        times.sort_unstable();
        // For an even number of attempts, the median is the higher of the two middle times, not
        // their mean.
        score.median_ms = times.get(times.len() / 2).copied().unwrap_or(0);
        score.success = share(score.passed, score.attempts);
        score.first_try_validity = share(score.valid, score.programs);
        score.mean_steps = share(score.steps, score.attempts);
        score
    }
}

fn share(part: u32, of: u32) -> Option<f64> {
    (of > 0).then(|| f64::from(part) / f64::from(of))
}

impl Scorecard {
    /// Computes a scorecard from attempts. Models are ordered by their first attempts.
    #[must_use]
    pub fn of(attempts: &[Attempt]) -> Scorecard {
        let mut groups: Vec<(&str, Approach, &str)> = Vec::new();
        for attempt in attempts {
            let group = (attempt.model.as_str(), attempt.approach, attempt.agent.as_str());
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let mut card = Scorecard::default();
        for (model, approach, agent) in &groups {
            let is_own =
                |a: &&Attempt| a.model == *model && a.approach == *approach && a.agent == *agent;
            let own: Vec<&Attempt> = attempts.iter().filter(is_own).collect();
            let mut kinds: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
            own.iter().for_each(|attempt| kinds.entry(attempt.kind()).or_default().push(attempt));
            let row = |kind: Option<&str>, score| {
                let (model, agent) = ((*model).to_owned(), (*agent).to_owned());
                Row { model, approach: *approach, agent, kind: kind.map(str::to_owned), score }
            };
            card.rows.extend(
                kinds.into_iter().map(|(kind, attempts)| row(Some(kind), Score::of(attempts))),
            );
            card.rows.push(row(None, Score::of(own)));
        }
        let is_alone =
            |group: &&(&str, Approach, &str)| group.1 == Approach::Programs && group.2.is_empty();
        let both = groups.iter().filter(is_alone);
        card.comparisons = both.filter_map(|(model, ..)| compare(model, attempts)).collect();
        card
    }
}

/// Compares a model's results with programs and with tools, on the tasks that it attempted with
/// both. Returns `None` if there are no such tasks.
fn compare(model: &str, attempts: &[Attempt]) -> Option<Comparison> {
    let attempts_of = |approach: Approach| {
        attempts.iter().filter(move |a| {
            let is_own = a.model == model && a.approach == approach && a.agent.is_empty();
            is_own && a.verdict != Verdict::Error
        })
    };
    let tasks = |approach| {
        attempts_of(approach).map(|a| (a.task.as_str(), a.trial)).collect::<BTreeSet<_>>()
    };
    let common: BTreeSet<_> =
        tasks(Approach::Programs).intersection(&tasks(Approach::Tools)).copied().collect();
    let score = |approach| {
        Score::of(
            attempts_of(approach)
                .filter(|attempt| common.contains(&(attempt.task.as_str(), attempt.trial))),
        )
    };
    (!common.is_empty()).then(|| Comparison {
        model: model.to_owned(),
        programs: score(Approach::Programs),
        tools: score(Approach::Tools),
    })
}
