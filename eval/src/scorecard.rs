//! The scorecard: attempts summed up by model, approach and kind.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::attempt::{Approach, Attempt, Tokens, Verdict};

/// What attempts came to, per model and approach: a row for each kind, then one for all. Serialises as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scorecard {
    /// The rows.
    pub rows: Vec<Row>,
    /// For each model that was let at tasks both ways: what it came to on those that it did both ways.
    pub comparisons: Vec<Comparison>,
}

/// One row of a scorecard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The model.
    pub model: String,
    /// How it was let at the tasks.
    pub approach: Approach,
    /// The kind of tasks; `None` for all.
    pub kind: Option<String>,
    /// What it came to.
    pub score: Score,
}

/// One model's two ways on the same tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The model.
    pub model: String,
    /// By programs.
    pub programs: Score,
    /// By tools, one call at a time.
    pub tools: Score,
}

/// What some attempts came to. Attempts that learnt nothing count as `errors` and in nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Attempts from which something was learnt.
    pub attempts: u32,
    /// Those that passed.
    pub passed: u32,
    /// Attempts from which nothing was learnt.
    pub errors: u32,
    /// Programs that the model wrote, repairs not counted; calls, for the baseline.
    pub programs: u32,
    /// Those that were valid as they were written.
    pub valid: u32,
    /// Calls that came to nothing.
    pub failures: u32,
    /// Model turns that went into mending.
    pub repairs: u32,
    /// Steps of all attempts.
    pub steps: u32,
    /// Tokens of all attempts.
    pub tokens: Tokens,
    /// The median of the wall clocks, in milliseconds.
    pub median_ms: u64,
    /// The share of attempts that passed, 0 to 1; `None` without any.
    pub success: Option<f64>,
    /// The share of programs that were valid as they were written, 0 to 1; `None` without any.
    pub first_try_validity: Option<f64>,
    /// Steps of an attempt, on the average; `None` without any.
    pub mean_steps: Option<f64>,
}

impl Score {
    /// Sums attempts up.
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
        // Of an even number the upper one of the middle two: a time that was measured.
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
    /// Sums attempts up; models stand in the order of their first attempt.
    #[must_use]
    pub fn of(attempts: &[Attempt]) -> Scorecard {
        let mut groups: Vec<(&str, Approach)> = Vec::new();
        for attempt in attempts {
            let group = (attempt.model.as_str(), attempt.approach);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        let mut card = Scorecard::default();
        for (model, approach) in &groups {
            let own: Vec<&Attempt> = attempts.iter().filter(|a| a.model == *model && a.approach == *approach).collect();
            let mut kinds: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
            own.iter().for_each(|attempt| kinds.entry(attempt.kind()).or_default().push(attempt));
            let row = |kind: Option<&str>, score| {
                let (model, kind) = ((*model).to_owned(), kind.map(str::to_owned));
                Row { model, approach: *approach, kind, score }
            };
            card.rows.extend(kinds.into_iter().map(|(kind, attempts)| row(Some(kind), Score::of(attempts))));
            card.rows.push(row(None, Score::of(own)));
        }
        let both = groups.iter().filter(|group| group.1 == Approach::Programs);
        card.comparisons = both.filter_map(|(model, _)| compare(model, attempts)).collect();
        card
    }
}

/// What a model came to on the tasks that it did both ways; `None` where there are none.
fn compare(model: &str, attempts: &[Attempt]) -> Option<Comparison> {
    let learnt = |approach: Approach| {
        attempts.iter().filter(move |a| a.model == model && a.approach == approach && a.verdict != Verdict::Error)
    };
    let tasks = |approach| learnt(approach).map(|a| (a.task.as_str(), a.trial)).collect::<BTreeSet<_>>();
    let common: BTreeSet<_> = tasks(Approach::Programs).intersection(&tasks(Approach::Tools)).copied().collect();
    let score = |approach| {
        Score::of(learnt(approach).filter(|attempt| common.contains(&(attempt.task.as_str(), attempt.trial))))
    };
    (!common.is_empty()).then(|| Comparison {
        model: model.to_owned(),
        programs: score(Approach::Programs),
        tools: score(Approach::Tools),
    })
}
