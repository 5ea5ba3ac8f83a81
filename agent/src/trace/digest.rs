//! Digest and feed: what runs tried and what failed, for those who run them; who was active when, for everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wattle_capability::files::ISSUES_FILE;

use super::{Steps, clip};

/// The most failures of one run that are told, and the most characters of each.
const FAILURES: usize = 5;
const FAILURE_CHARS: usize = 160;

/// What runs tried, what failed, and which tickets they left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Digest {
    /// The runs, in the order of their first calls.
    pub runs: Vec<RunDigest>,
    /// The tickets, oldest first.
    pub tickets: Vec<Ticket>,
}

/// One run in a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunDigest {
    /// The run.
    pub run_id: String,
    /// Its agent.
    pub agent: String,
    /// When its first and its last call ended, in milliseconds since 1970.
    pub from: u64,
    /// See `from`.
    pub to: u64,
    /// How often it called each tool.
    pub tried: BTreeMap<String, usize>,
    /// The first of its failures, each with its tool.
    pub failed: Vec<String>,
    /// How many failures there were.
    pub failures: usize,
}

/// A ticket about something that was missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ticket {
    /// When it was filed, in milliseconds since 1970.
    pub ts: u64,
    /// What it is about.
    pub title: String,
    /// What is needed.
    pub need: String,
    /// What was tried.
    pub tried: String,
}

/// Who was active, without arguments and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Feed {
    /// The activity of each agent.
    pub agents: BTreeMap<String, Activity>,
}

/// The activity of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// How many runs.
    pub runs: usize,
    /// How many calls.
    pub calls: usize,
    /// How many calls of each tool; those that models wrote themselves are `wat`.
    pub tools: BTreeMap<String, usize>,
    /// When the last call ended, in milliseconds since 1970.
    pub last: u64,
}

impl Digest {
    /// Sums up traces and the tickets that stand beside them.
    #[must_use]
    pub fn of(steps: &Steps) -> Digest {
        let mut digest = Digest::default();
        for step in &steps.steps {
            let at = match digest.runs.iter().position(|run| run.run_id == step.run_id) {
                Some(at) => at,
                None => {
                    let (run_id, agent) = (step.run_id.clone(), step.agent.clone());
                    digest.runs.push(RunDigest { run_id, agent, from: step.ts, ..RunDigest::default() });
                    digest.runs.len() - 1
                }
            };
            let Some(run) = digest.runs.get_mut(at) else { continue };
            run.to = run.to.max(step.ts);
            *run.tried.entry(step.tool.clone()).or_default() += 1;
            if !step.succeeded() {
                run.failures += 1;
                if run.failed.len() < FAILURES {
                    let why = step.error.as_deref().unwrap_or("it left a code other than 0");
                    run.failed.push(format!("{}: {}", step.tool, clip(&why.replace('\n', " "), FAILURE_CHARS)));
                }
            }
        }
        let folders: BTreeSet<&Path> = steps.files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders {
            let text = std::fs::read_to_string(folder.join(ISSUES_FILE)).unwrap_or_default();
            digest.tickets.extend(text.lines().filter_map(|line| serde_json::from_str::<Ticket>(line).ok()));
        }
        digest.tickets.sort_by_key(|ticket| ticket.ts);
        digest
    }
}

impl Feed {
    /// Sums up traces, without anything that a run worked on.
    #[must_use]
    pub fn of(steps: &Steps) -> Feed {
        let mut feed = Feed::default();
        let mut runs = BTreeSet::new();
        for step in &steps.steps {
            let activity = feed.agents.entry(step.agent.clone()).or_default();
            activity.runs += usize::from(runs.insert((step.agent.as_str(), step.run_id.as_str())));
            activity.calls += 1;
            *activity.tools.entry(step.tool.clone()).or_default() += 1;
            activity.last = activity.last.max(step.ts);
        }
        feed
    }
}
