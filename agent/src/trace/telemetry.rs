//! Telemetry: statistics about traces.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasher as _;

use serde::Serialize;

use super::{Step, clip};

/// Maximum number of tools that are counted separately. The same limit applies to agents and to
/// models. The other names of each kind are counted together, so that memory use stays bounded for
/// a trace of any size.
const MAX_NAMES: usize = 2_000;
/// Maximum length of the name of a tool, agent or model, in characters.
const NAME_CHARS: usize = 200;
const OTHERS: &str = "(others)";

/// Statistics about traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Telemetry {
    /// Number of runs.
    pub runs: usize,
    /// Number of steps. Concurrent calls count as one step.
    pub steps: usize,
    /// Number of calls.
    pub calls: usize,
    /// Number of failed calls.
    pub failures: usize,
    /// The tools, most frequently called first.
    pub tools: Vec<Tool>,
    /// Number of calls by agent.
    pub agents: BTreeMap<String, usize>,
    /// Number of calls by model. Calls without a model are omitted.
    pub models: BTreeMap<String, usize>,
    /// Number of lines that could not be read.
    pub broken: usize,
}

/// The statistics of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tool {
    /// The tool's name.
    pub tool: String,
    /// Number of calls.
    pub calls: usize,
    /// Number of failed calls.
    pub failures: usize,
    /// Median duration, in milliseconds.
    pub p50_ms: u64,
    /// 95th percentile of the durations, in milliseconds.
    pub p95_ms: u64,
}

/// A builder for the statistics. Trace steps are added one at a time.
#[derive(Default)]
pub struct TelemetryBuilder {
    all: Telemetry,
    tools: BTreeMap<String, (usize, Vec<u32>)>,
    /// Hashes of the run ids.
    runs: HashSet<u64>,
    /// Hashes that identify the steps of the runs.
    steps: HashSet<u64>,
    hashes: RandomState,
}

impl TelemetryBuilder {
    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        self.runs.insert(self.hashes.hash_one(&step.run_id));
        self.steps.insert(self.hashes.hash_one((&step.run_id, step.step)));
        let (failures, times) = self.tools.entry(name(&self.tools, &step.tool)).or_default();
        times.push(u32::try_from(step.dur_ms).unwrap_or(u32::MAX));
        self.all.calls += 1;
        if !step.succeeded() {
            *failures += 1;
            self.all.failures += 1;
        }
        *self.all.agents.entry(name(&self.all.agents, &step.agent)).or_default() += 1;
        if !step.model.is_empty() {
            *self.all.models.entry(name(&self.all.models, &step.model)).or_default() += 1;
        }
    }

    /// Returns the statistics. `broken` is the number of unreadable lines.
    #[must_use]
    pub fn finish(self, broken: usize) -> Telemetry {
        let mut all =
            Telemetry { broken, runs: self.runs.len(), steps: self.steps.len(), ..self.all };
        all.tools = self
            .tools
            .into_iter()
            .map(|(tool, (failures, times))| Tool::of(&tool, failures, times))
            .collect();
        all.tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        all
    }
}

/// Returns the name under which a tool, agent or model is counted.
fn name<T>(known: &BTreeMap<String, T>, name: &str) -> String {
    let name = clip(name, NAME_CHARS);
    if known.len() < MAX_NAMES || known.contains_key(&name) { name } else { OTHERS.to_owned() }
}

impl Tool {
    fn of(tool: &str, failures: usize, mut times: Vec<u32>) -> Tool {
        times.sort_unstable();
        // The smallest duration that the given percentage of calls did not exceed.
        let at = |percent: usize| {
            times
                .get((times.len() * percent).div_ceil(100).saturating_sub(1))
                .copied()
                .map(u64::from)
        };
        let (p50_ms, p95_ms) = (at(50).unwrap_or(0), at(95).unwrap_or(0));
        Tool { tool: tool.to_owned(), calls: times.len(), failures, p50_ms, p95_ms }
    }
}
