//! The first-try errors of models, grouped by class.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::attempt::{Approach, Attempt, FirstTryError, Verdict};
use crate::table::counted;

/// Maximum number of examples for each class.
const EXAMPLES: usize = 3;

/// The classes of a model's first-try errors with one approach, most frequent first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorReport {
    /// The model that made the attempts.
    pub model: String,
    /// The approach of the attempts.
    pub approach: Approach,
    /// Number of programs that the model wrote, excluding repairs.
    pub programs: u32,
    /// The classes of errors.
    pub classes: Vec<ErrorClass>,
}

/// The errors of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorClass {
    /// The class of the errors; see [`FirstTryError::class`].
    pub class: String,
    /// Number of errors.
    pub count: usize,
    /// Number of tasks in which the errors occurred.
    pub tasks: usize,
    /// At most three errors, each with the id of its task. The errors come from different tasks if
    /// possible.
    pub examples: Vec<(String, FirstTryError)>,
}

impl ErrorReport {
    /// Groups the errors of attempts by model, approach and class. Models without errors are
    /// omitted.
    #[must_use]
    pub fn of(attempts: &[Attempt]) -> Vec<ErrorReport> {
        let mut groups: Vec<(&str, Approach, Vec<&Attempt>)> = Vec::new();
        for attempt in attempts.iter().filter(|attempt| attempt.verdict != Verdict::Error) {
            let (model, approach) = (attempt.model.as_str(), attempt.approach);
            match groups.iter_mut().find(|group| (group.0, group.1) == (model, approach)) {
                Some(group) => group.2.push(attempt),
                None => groups.push((model, approach, vec![attempt])),
            }
        }
        let report = |(model, approach, attempts): (&str, Approach, Vec<&Attempt>)| {
            let programs = attempts.iter().map(|attempt| attempt.programs).sum();
            let classes = classes(&attempts);
            ErrorReport { model: model.to_owned(), approach, programs, classes }
        };
        groups.into_iter().map(report).filter(|report| !report.classes.is_empty()).collect()
    }
}

fn classes(attempts: &[&Attempt]) -> Vec<ErrorClass> {
    let mut by_class: BTreeMap<&str, Vec<(&str, &FirstTryError)>> = BTreeMap::new();
    for attempt in attempts {
        for error in &attempt.errors {
            by_class.entry(&error.class).or_default().push((&attempt.task, error));
        }
    }
    let class = |(class, errors): (&str, Vec<(&str, &FirstTryError)>)| {
        let mut seen = BTreeSet::new();
        let (new, again): (Vec<_>, Vec<_>) =
            errors.iter().partition(|(task, _)| seen.insert(*task));
        let examples = new.into_iter().chain(again).take(EXAMPLES);
        ErrorClass {
            class: class.to_owned(),
            count: errors.len(),
            tasks: seen.len(),
            examples: examples
                .map(|(task, error)| ((*task).to_owned(), (*error).clone()))
                .collect(),
        }
    };
    let mut classes: Vec<ErrorClass> = by_class.into_iter().map(class).collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.count));
    classes
}

/// Displays one paragraph per class.
impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorReport { model, approach, programs, classes } = self;
        let programs = counted(*programs as usize, "program");
        writeln!(f, "errors at the first try: {model}, {approach}, {programs}")?;
        for ErrorClass { class, count, tasks, examples } in classes {
            writeln!(f, "  {class}: {count} in {}", counted(*tasks, "task"))?;
            for (task, error) in examples {
                let line = error.line.map_or_else(String::new, |line| format!(", line {line}"));
                let text = if error.text.is_empty() { "" } else { ": " };
                writeln!(f, "    {task}, step {}{line}{text}{}", error.step, error.text)?;
                writeln!(f, "      {}", error.message)?;
            }
        }
        Ok(())
    }
}
