//! Telemetry: traces in figures.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Steps;

/// What traces come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Telemetry {
    /// How many runs.
    pub runs: usize,
    /// How many steps; calls that ran at the same time are one.
    pub steps: usize,
    /// How many calls.
    pub calls: usize,
    /// How many of them failed.
    pub failures: usize,
    /// The tools, the most called first.
    pub tools: Vec<Tool>,
    /// How many calls each agent made.
    pub agents: BTreeMap<String, usize>,
    /// How many calls each model asked for; lines that name none are left out.
    pub models: BTreeMap<String, usize>,
    /// How many lines could not be read.
    pub broken: usize,
}

/// The calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// Its name.
    pub tool: String,
    /// How often it was called.
    pub calls: usize,
    /// How often it failed.
    pub failures: usize,
    /// Half of the calls took at most so long, in milliseconds.
    pub p50_ms: u64,
    /// 95 of 100 calls took at most so long, in milliseconds.
    pub p95_ms: u64,
}

impl Telemetry {
    /// Sums up traces.
    #[must_use]
    pub fn of(steps: &Steps) -> Telemetry {
        let (mut runs, mut of_runs) = (BTreeSet::new(), BTreeSet::new());
        let mut tools: BTreeMap<&str, (usize, Vec<u64>)> = BTreeMap::new();
        let mut all = Telemetry { broken: steps.broken, calls: steps.steps.len(), ..Telemetry::default() };
        for step in &steps.steps {
            runs.insert(step.run_id.as_str());
            of_runs.insert((step.run_id.as_str(), step.step));
            let (failures, times) = tools.entry(&step.tool).or_default();
            times.push(step.dur_ms);
            if !step.succeeded() {
                *failures += 1;
                all.failures += 1;
            }
            *all.agents.entry(step.agent.clone()).or_default() += 1;
            if !step.model.is_empty() {
                *all.models.entry(step.model.clone()).or_default() += 1;
            }
        }
        (all.runs, all.steps) = (runs.len(), of_runs.len());
        all.tools = tools.into_iter().map(|(tool, (failures, times))| Tool::of(tool, failures, times)).collect();
        all.tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        all
    }
}

impl Tool {
    fn of(tool: &str, failures: usize, mut times: Vec<u64>) -> Tool {
        times.sort_unstable();
        // The smallest time that so many of a hundred calls did not pass.
        let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        let (p50_ms, p95_ms) = (at(50).unwrap_or(0), at(95).unwrap_or(0));
        Tool { tool: tool.to_owned(), calls: times.len(), failures, p50_ms, p95_ms }
    }
}
