//! Digest and feed: what runs tried and what failed, for those who run them; who was active when, for everybody.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wattle_capability::files::ISSUES_FILE;

use super::{Read, Step, clip};
use crate::lines::{Line, LineReader};

/// Maximum number of failures of one run that are told, and of characters of each.
const FAILURES: usize = 5;
const FAILURE_CHARS: usize = 160;

/// Maximum number of runs, of tools of one run, of agents, and of tickets that are told; of tickets the newest.
const RUNS: usize = 10_000;
const TOOLS: usize = 200;
const AGENTS: usize = 2_000;
const TICKETS: usize = 1_000;

/// Maximum number of characters of a name.
const NAME_CHARS: usize = 200;
const OTHERS: &str = "(others)";

/// What runs tried, what failed, and which tickets they left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Digest {
    /// The runs, in the order of their first calls; at most 10,000.
    pub runs: Vec<RunDigest>,
    /// How many calls of further runs there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The tickets, oldest first; at most the newest 1,000 of each folder.
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

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Sums up what runs did, step by step.
#[derive(Default)]
pub struct Digesting {
    digest: Digest,
    /// Where each run is.
    at: HashMap<String, usize>,
}

impl Digesting {
    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        let at = match self.at.get(&step.run_id) {
            Some(at) => *at,
            None if self.digest.runs.len() >= RUNS => {
                self.digest.more += 1;
                return;
            }
            None => {
                let (run_id, agent) = (step.run_id.clone(), clip(&step.agent, NAME_CHARS));
                self.at.insert(run_id.clone(), self.digest.runs.len());
                self.digest.runs.push(RunDigest { run_id, agent, from: step.ts, ..RunDigest::default() });
                self.digest.runs.len() - 1
            }
        };
        let Some(run) = self.digest.runs.get_mut(at) else { return };
        run.to = run.to.max(step.ts);
        *run.tried.entry(name(&run.tried, &step.tool, TOOLS)).or_default() += 1;
        if !step.succeeded() {
            run.failures += 1;
            if run.failed.len() < FAILURES {
                let why = step.error.as_deref().unwrap_or("it left a code other than 0");
                let why = clip(&why.replace('\n', " "), FAILURE_CHARS);
                run.failed.push(format!("{}: {why}", clip(&step.tool, NAME_CHARS)));
            }
        }
    }

    /// The digest, with the tickets beside the traces that were read.
    #[must_use]
    pub fn done(self, read: &Read) -> Digest {
        let mut digest = self.digest;
        let folders: BTreeSet<&Path> = read.files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders {
            digest.tickets.extend(tickets(&folder.join(ISSUES_FILE)));
        }
        digest.tickets.sort_by_key(|ticket| ticket.ts);
        digest
    }
}

/// The newest tickets of a file.
fn tickets(path: &Path) -> VecDeque<Ticket> {
    let mut tickets = VecDeque::new();
    let Ok(file) = std::fs::File::open(path) else { return tickets };
    let mut lines = LineReader::of(file);
    while let Ok(Some((_, line))) = lines.next() {
        let Line::Whole(line) = line else { continue };
        let Ok(ticket) = serde_json::from_slice::<Ticket>(line) else { continue };
        if tickets.len() == TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }
    tickets
}

/// Sums up who was active, step by step, without anything that a run worked on.
#[derive(Default)]
pub struct Feeding {
    feed: Feed,
    runs: HashSet<(String, String)>,
}

impl Feeding {
    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        let agent = name(&self.feed.agents, &step.agent, AGENTS);
        let is_new = self.runs.len() < RUNS * 100 && self.runs.insert((agent.clone(), step.run_id.clone()));
        let activity = self.feed.agents.entry(agent).or_default();
        activity.runs += usize::from(is_new);
        activity.calls += 1;
        *activity.tools.entry(name(&activity.tools, &step.tool, TOOLS)).or_default() += 1;
        activity.last = activity.last.max(step.ts);
    }

    /// The feed.
    #[must_use]
    pub fn done(self) -> Feed {
        self.feed
    }
}

/// A name as it is counted: as one of others, if there are too many.
fn name<T>(known: &BTreeMap<String, T>, name: &str, most: usize) -> String {
    let name = clip(name, NAME_CHARS);
    if known.len() < most || known.contains_key(&name) { name } else { OTHERS.to_owned() }
}
