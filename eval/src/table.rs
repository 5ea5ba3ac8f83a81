//! Tables for human readers: aligned columns, and the scorecard.

use std::fmt;

use crate::attempt::Approach;
use crate::scorecard::{Comparison, Score, Scorecard};

const HEAD: [&str; 12] = [
    "model",
    "approach",
    "kind",
    "tasks",
    "success",
    "valid",
    "repairs",
    "failures",
    "steps",
    "tokens in",
    "out",
    "time",
];

/// Number of text columns, which are left-aligned. Numbers are right-aligned.
const TEXT_COLUMNS: usize = 3;

/// The heading of the agent column. The table has this column only if an agent worked on a task.
const AGENT: &str = "agent";

/// Index of the agent column.
const AGENT_COLUMN: usize = 2;

impl fmt::Display for Scorecard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
        let mut agents = vec![AGENT];
        for row in &self.rows {
            let kind = row.kind.as_deref().unwrap_or("all");
            lines.push(line(&row.model, row.approach, kind, &row.score).to_vec());
            agents.push(&row.agent);
        }
        for Comparison { model, programs, tools } in &self.comparisons {
            lines.push(line(model, Approach::Programs, "both ways", programs).to_vec());
            lines.push(line(model, Approach::Tools, "both ways", tools).to_vec());
            agents.extend(["", ""]);
        }
        if agents.iter().skip(1).all(|agent| agent.is_empty()) {
            return write(f, &lines, TEXT_COLUMNS);
        }
        for (line, agent) in lines.iter_mut().zip(agents) {
            let shown = if agent.is_empty() { "-" } else { agent };
            line.insert(AGENT_COLUMN, shown.to_owned());
        }
        write(f, &lines, TEXT_COLUMNS + 1)
    }
}

/// Formats a count with its noun: `1 task`, `2 tasks`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Writes lines with aligned columns. The first `text_columns` columns contain text and are
/// left-aligned.
pub(crate) fn write(
    f: &mut fmt::Formatter<'_>,
    lines: &[impl AsRef<[String]>],
    text_columns: usize,
) -> fmt::Result {
    let mut widths = vec![0; lines.first().map_or(0, |line| line.as_ref().len())];
    for line in lines {
        let cells = widths.iter_mut().zip(line.as_ref());
        cells.for_each(|(width, cell)| *width = cell.chars().count().max(*width));
    }
    for line in lines {
        let cells = line.as_ref().iter().zip(widths.iter().copied()).enumerate();
        let padded = cells.map(|(at, (cell, width))| {
            if at < text_columns { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(f, "{}", padded.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn line(model: &str, approach: Approach, kind: &str, score: &Score) -> [String; HEAD.len()] {
    let percent = |share: Option<f64>| {
        share.map_or("-".to_owned(), |share| format!("{:.0}%", floor(share * 100.0)))
    };
    let about = if score.tokens.estimated { "~" } else { "" };
    let tasks = match score.errors {
        0 => score.attempts.to_string(),
        errors => format!("{} (+{errors} errors)", score.attempts),
    };
    [
        model.to_owned(),
        approach.to_string(),
        kind.to_owned(),
        tasks,
        percent(score.success),
        percent(score.first_try_validity),
        score.repairs.to_string(),
        score.failures.to_string(),
        score.mean_steps.map_or("-".to_owned(), |steps| format!("{steps:.1}")),
        format!("{about}{}", score.tokens.input),
        format!("{about}{}", score.tokens.output),
        time(score.median_ms),
    ]
}

/// Rounds down to a whole percentage, so that only a share of 100 % is shown as 100.
fn floor(percent: f64) -> f64 {
    (percent + 1e-9).floor()
}

fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        ms => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
    }
}
