//! Telemetry: statistics about traces.

use std::collections::BTreeMap;

use serde::Serialize;

use super::distinct::DistinctCounter;
use super::{Step, clip};

/// Maximum number of tools that are counted separately. The same limit applies to agents and to
/// models. The other names of each kind are counted together, so that memory use stays bounded for
/// a trace of any size.
const MAX_NAMES: usize = 2_000;
/// Maximum length of the name of a tool, agent or model, in characters.
const NAME_CHARS: usize = 200;
const OTHERS: &str = "(others)";

/// Number of significant bits of a counted duration. The lower bits are set to zero, which changes
/// a duration by less than 2%.
const DURATION_BITS: u32 = 7;

/// Statistics about traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Telemetry {
    /// Number of runs. The number is exact up to 1,000,000 runs. Beyond that, it is exact if the
    /// lines of each run are adjacent.
    pub runs: usize,
    /// Number of steps. Exact under the same condition as the number of runs. Concurrent calls
    /// count as one step.
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
    /// Median duration, in milliseconds. From 128 ms on, durations are rounded down, by less than
    /// 2%.
    pub p50_ms: u64,
    /// 95th percentile of the durations, in milliseconds. Rounded like the median.
    pub p95_ms: u64,
}

/// A builder for the statistics. Trace steps are added one at a time.
#[derive(Default)]
pub struct TelemetryBuilder {
    all: Telemetry,
    tools: BTreeMap<String, Calls>,
    runs: DistinctCounter,
    steps: DistinctCounter,
}

/// The calls of a tool.
#[derive(Default)]
struct Calls {
    count: usize,
    failures: usize,
    /// Number of calls by duration, in milliseconds. The durations are rounded, so that there are
    /// few of them.
    durations: BTreeMap<u32, usize>,
}

impl Calls {
    fn add(&mut self, step: &Step) {
        self.count += 1;
        self.failures += usize::from(!step.succeeded());
        let duration = u32::try_from(step.dur_ms).unwrap_or(u32::MAX);
        let insignificant = (u32::BITS - duration.leading_zeros()).saturating_sub(DURATION_BITS);
        *self.durations.entry(duration >> insignificant << insignificant).or_default() += 1;
    }

    /// Returns the smallest duration that the given percentage of calls did not exceed.
    fn percentile(&self, percent: usize) -> u64 {
        let rank = self.count.saturating_mul(percent).div_ceil(100).max(1);
        let mut passed = 0;
        let found = self.durations.iter().find(|(_, calls)| {
            passed += **calls;
            passed >= rank
        });
        found.map_or(0, |(duration, _)| u64::from(*duration))
    }
}

impl TelemetryBuilder {
    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        self.runs.add(&step.run_id);
        self.steps.add((&step.run_id, step.step));
        self.tools.entry(name(&self.tools, &step.tool)).or_default().add(step);
        self.all.calls += 1;
        self.all.failures += usize::from(!step.succeeded());
        *self.all.agents.entry(name(&self.all.agents, &step.agent)).or_default() += 1;
        if !step.model.is_empty() {
            *self.all.models.entry(name(&self.all.models, &step.model)).or_default() += 1;
        }
    }

    /// Returns the statistics. `broken` is the number of unreadable lines.
    #[must_use]
    pub fn finish(self, broken: usize) -> Telemetry {
        let mut all =
            Telemetry { broken, runs: self.runs.count(), steps: self.steps.count(), ..self.all };
        let tool = |(tool, calls): (String, Calls)| Tool {
            tool,
            calls: calls.count,
            failures: calls.failures,
            p50_ms: calls.percentile(50),
            p95_ms: calls.percentile(95),
        };
        all.tools = self.tools.into_iter().map(tool).collect();
        all.tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        all
    }
}

/// Returns the name under which a tool, agent or model is counted.
fn name<T>(known: &BTreeMap<String, T>, name: &str) -> String {
    let name = clip(name, NAME_CHARS);
    if known.len() < MAX_NAMES || known.contains_key(&name) { name } else { OTHERS.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_for_short_durations_and_nearly_exact_for_long_ones() {
        let mut builder = TelemetryBuilder::default();
        for dur_ms in 1..=100 {
            for (tool, factor) in [("short", 1), ("long", 1_000)] {
                let tool = tool.to_owned();
                builder.add(&Step { tool, dur_ms: dur_ms * factor, ..Step::default() });
            }
        }
        let tools = builder.finish(0).tools;
        let [long, short] = tools.as_slice() else { panic!("{tools:?}") };
        assert_eq!((short.calls, short.p50_ms, short.p95_ms), (100, 50, 95));
        assert!((49_500..=50_000).contains(&long.p50_ms), "{long:?}");
        assert!((94_050..=95_000).contains(&long.p95_ms), "{long:?}");
    }

    #[test]
    fn the_number_of_durations_that_are_kept_is_limited() {
        let mut calls = Calls::default();
        for bit in 0..64 {
            for low in 0..200 {
                calls.add(&Step { dur_ms: (1_u64 << bit) | (low << bit >> 8), ..Step::default() });
            }
        }
        assert!(calls.durations.len() < 2_000, "{}", calls.durations.len());
        assert_eq!(calls.durations.values().sum::<usize>(), calls.count);
    }
}
