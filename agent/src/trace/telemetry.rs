//! Telemetry: traces in figures.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasher as _;

use serde::Serialize;

use super::{Step, clip};

/// Maximum number of different tools, agents or models that are told apart, and of characters of their names. All further ones are
/// counted as one, so that a trace of any size takes a bounded memory.
const NAMES: usize = 2_000;
const NAME_CHARS: usize = 200;
const OTHERS: &str = "(others)";

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

/// Sums traces up, step by step.
#[derive(Default)]
pub struct Sum {
    all: Telemetry,
    tools: BTreeMap<String, (usize, Vec<u32>)>,
    /// The runs, and the steps of runs, by their hashes.
    runs: HashSet<u64>,
    steps: HashSet<u64>,
    hashes: RandomState,
}

impl Sum {
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

    /// The figures, with that many lines that could not be read.
    #[must_use]
    pub fn done(self, broken: usize) -> Telemetry {
        let mut all = Telemetry { broken, runs: self.runs.len(), steps: self.steps.len(), ..self.all };
        all.tools = self.tools.into_iter().map(|(tool, (failures, times))| Tool::of(&tool, failures, times)).collect();
        all.tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        all
    }
}

/// A name as it is counted.
fn name<T>(known: &BTreeMap<String, T>, name: &str) -> String {
    let name = clip(name, NAME_CHARS);
    if known.len() < NAMES || known.contains_key(&name) { name } else { OTHERS.to_owned() }
}

impl Tool {
    fn of(tool: &str, failures: usize, mut times: Vec<u32>) -> Tool {
        times.sort_unstable();
        // The smallest time that so many of a hundred calls did not pass.
        let at =
            |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied().map(u64::from);
        let (p50_ms, p95_ms) = (at(50).unwrap_or(0), at(95).unwrap_or(0));
        Tool { tool: tool.to_owned(), calls: times.len(), failures, p50_ms, p95_ms }
    }
}
