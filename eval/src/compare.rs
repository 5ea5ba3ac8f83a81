//! Paired comparisons: one model attempts the same tasks twice, with two prompts or builds.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::attempt::{Approach, Attempt, Verdict};
use crate::statistics::{Interval, MIN_PAIRS, bootstrap, sign_test};
use crate::table::counted;

/// A side of a comparison: a model's attempts with one approach.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The attempts. Only the compared model's attempts with `approach` are counted.
    pub attempts: &'a [Attempt],
    /// The approach of the attempts that are counted.
    pub approach: Approach,
}

/// A task-by-task comparison of two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pairing {
    /// The model whose attempts are compared.
    pub model: String,
    /// The approach of the first side.
    pub before: Approach,
    /// The approach of the second side.
    pub after: Approach,
    /// The fingerprints of each side's prompts, sorted.
    pub prompts: [Vec<String>; 2],
    /// Number of tasks that both sides attempted.
    pub tasks: usize,
    /// Number of omitted tasks. A task is omitted if only one side attempted it, or if all attempts
    /// on one side ended with an error. A task that differs between the two sides counts as two
    /// tasks.
    pub left_out: usize,
    /// The metrics, each with its values on both sides.
    pub measures: Vec<Measure>,
}

/// A metric, with its values on both sides. Each task counts once, with the mean over its attempts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// The metric's name.
    pub name: &'static str,
    /// Number of tasks for which the metric is defined on both sides.
    pub tasks: usize,
    /// The mean of the metric over these tasks, for the first side.
    pub before: f64,
    /// The mean of the metric over these tasks, for the second side.
    pub after: f64,
    /// The mean of the differences: second side minus first side.
    pub difference: f64,
    /// The 95 % confidence interval of the difference. `None` for fewer than 10 tasks.
    pub interval: Option<Interval>,
    /// Number of tasks on which the second side does better.
    pub better: usize,
    /// Number of tasks on which the second side does worse.
    pub worse: usize,
    /// The two-sided p-value of the exact sign test on `better` and `worse`.
    pub p: f64,
}

/// A function that measures an attempt. It returns `None` if there is nothing to measure.
type Metric = fn(&Attempt) -> Option<f64>;

/// The metrics. Each has a name, the sign of an improvement (1.0 if higher values are better, -1.0
/// if lower values are), and a function that computes its value.
const METRICS: [(&str, f64, Metric); 6] = [
    ("success", 1.0, |attempt| Some(f64::from(u8::from(attempt.passed())))),
    ("valid", 1.0, |attempt| {
        (attempt.programs > 0).then(|| f64::from(attempt.valid) / f64::from(attempt.programs))
    }),
    ("repairs", -1.0, |attempt| Some(f64::from(attempt.repairs))),
    ("steps", -1.0, |attempt| Some(f64::from(attempt.steps))),
    ("tokens in", -1.0, |attempt| Some(attempt.tokens.input as f64)),
    ("tokens out", -1.0, |attempt| Some(attempt.tokens.output as f64)),
];

/// Compares a model's attempts on two sides. Includes only tasks with the same fingerprint on both
/// sides. Returns `None` if there are no such tasks.
#[must_use]
pub fn compare(model: &str, before: Side<'_>, after: Side<'_>) -> Option<Pairing> {
    let (first, second) = (by_task(model, before), by_task(model, after));
    let pairs: Vec<(&Vec<&Attempt>, &Vec<&Attempt>)> =
        first.iter().filter_map(|(task, attempts)| Some((attempts, second.get(task)?))).collect();
    if pairs.is_empty() {
        return None;
    }
    let measure = |(name, sign, metric): &(&'static str, f64, Metric)| {
        let means = pairs
            .iter()
            .filter_map(|(before, after)| Some((mean(before, *metric)?, mean(after, *metric)?)));
        Measure::of(name, *sign, &means.collect::<Vec<_>>())
    };
    let prompts = |attempts: &BTreeMap<_, Vec<&Attempt>>| {
        let mut prompts: Vec<String> =
            attempts.values().flatten().map(|attempt| attempt.prompt.clone()).collect();
        prompts.sort();
        prompts.dedup();
        prompts
    };
    Some(Pairing {
        model: model.to_owned(),
        before: before.approach,
        after: after.approach,
        prompts: [prompts(&first), prompts(&second)],
        tasks: pairs.len(),
        left_out: first.len() + second.len() - 2 * pairs.len(),
        measures: METRICS.iter().filter_map(measure).collect(),
    })
}

/// Returns a model's attempts that did not end with an error, grouped by task and fingerprint. If
/// the same attempt occurs twice, the later result counts.
fn by_task<'a>(model: &str, side: Side<'a>) -> BTreeMap<(&'a str, &'a str), Vec<&'a Attempt>> {
    let mut last: BTreeMap<_, BTreeMap<u32, &Attempt>> = BTreeMap::new();
    for attempt in side.attempts {
        if attempt.model == model
            && attempt.approach == side.approach
            && attempt.verdict != Verdict::Error
        {
            let task = (attempt.task.as_str(), attempt.fingerprint.as_str());
            last.entry(task).or_default().insert(attempt.trial, attempt);
        }
    }
    last.into_iter().map(|(task, trials)| (task, trials.into_values().collect())).collect()
}

/// Returns the mean of a metric over the attempts for which it is defined, or `None` if there are
/// no such attempts.
fn mean(attempts: &[&Attempt], metric: Metric) -> Option<f64> {
    let values: Vec<f64> = attempts.iter().filter_map(|attempt| metric(attempt)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Measure {
    /// Summarizes a metric over pairs of task means. Returns `None` if there are no pairs.
    fn of(name: &'static str, sign: f64, pairs: &[(f64, f64)]) -> Option<Measure> {
        let count = pairs.len() as f64;
        if pairs.is_empty() {
            return None;
        }
        let differences: Vec<f64> = pairs.iter().map(|(before, after)| after - before).collect();
        // Differences below a billionth are rounding errors of the means.
        let of_sign = |wanted: f64| differences.iter().filter(|d| **d * wanted > 1e-9).count();
        let (better, worse) = (of_sign(sign), of_sign(-sign));
        Some(Measure {
            name,
            tasks: pairs.len(),
            before: pairs.iter().map(|(before, _)| before).sum::<f64>() / count,
            after: pairs.iter().map(|(_, after)| after).sum::<f64>() / count,
            difference: differences.iter().sum::<f64>() / count,
            interval: bootstrap(&differences),
            better,
            worse,
            p: sign_test(better, worse),
        })
    }

    /// Formats a value in the unit of the metric.
    fn show(&self, value: f64, signed: bool) -> String {
        let (value, digits, unit) = match self.name {
            "success" | "valid" => (value * 100.0, 1, "%"),
            "repairs" | "steps" => (value, 2, ""),
            _ => (value, 0, ""),
        };
        // Negative zero is shown as zero.
        let value = if value.abs() < 0.5 / 10_f64.powi(digits) { 0.0 } else { value };
        let digits = usize::try_from(digits).unwrap_or(0);
        if signed { format!("{value:+.digits$}{unit}") } else { format!("{value:.digits$}{unit}") }
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = if self.before == self.after {
            self.after.to_string()
        } else {
            format!("{} after {}", self.after, self.before)
        };
        let [before, after] = &self.prompts;
        let prompt = if before == after { "the same prompt" } else { "another prompt" };
        let tasks = counted(self.tasks, "task");
        writeln!(
            f,
            "{}, {sides}: {tasks} on both sides, {} left out, {prompt}",
            self.model, self.left_out
        )?;
        let head = [
            "measure",
            "tasks",
            "before",
            "after",
            "difference",
            "95% interval",
            "better",
            "worse",
            "p",
        ];
        let mut lines = vec![head.map(str::to_owned)];
        for measure in &self.measures {
            let interval = match measure.interval {
                Some(Interval { low, high }) => {
                    format!("{} to {}", measure.show(low, true), measure.show(high, true))
                }
                None => format!("needs {MIN_PAIRS} tasks"),
            };
            lines.push([
                measure.name.to_owned(),
                measure.tasks.to_string(),
                measure.show(measure.before, false),
                measure.show(measure.after, false),
                measure.show(measure.difference, true),
                interval,
                measure.better.to_string(),
                measure.worse.to_string(),
                format!("{:.3}", measure.p),
            ]);
        }
        crate::table::write(f, &lines, 1)
    }
}
