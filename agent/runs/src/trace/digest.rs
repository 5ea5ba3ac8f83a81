//! Digest and feed: a summary of attempts and failures for operators, and a public summary of
//! agents' activity.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::Path;

use serde::{Deserialize, Serialize};
use wattle_capability::files::{ISSUES_FILE, open_lines_to_read};
use wattle_store::lines::{Line, LineReader};

use super::distinct::DistinctCounter;
use super::{ReadSummary, Step, clip};

/// Maximum number of failures that are listed for one run.
const FAILURES: usize = 5;
/// Maximum length of a listed failure, in characters.
const FAILURE_CHARS: usize = 160;

/// Maximum number of runs in a digest.
const RUNS: usize = 10_000;
/// Maximum number of tools that are counted separately for one run or one agent.
const TOOLS: usize = 200;
/// Maximum number of agents in a feed.
const AGENTS: usize = 2_000;
/// Maximum number of tickets. The latest tickets are kept.
const TICKETS: usize = 1_000;
/// Maximum length of each text of a ticket, in characters.
const TICKET_CHARS: usize = 4_000;

/// Maximum length of the id of a run, or of the name of a tool or agent, in characters.
const NAME_CHARS: usize = 200;
const OTHERS: &str = "(others)";

/// A digest of runs: the tools that they tried, their failures, and tickets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Digest {
    /// The runs, in the order of their first calls; at most 10,000.
    pub runs: Vec<RunDigest>,
    /// Number of calls made by runs that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The tickets, oldest first; at most the latest 1,000.
    pub tickets: Vec<Ticket>,
}

/// A run in a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunDigest {
    /// The run's id.
    pub run_id: String,
    /// The run's agent.
    pub agent: String,
    /// End time of the run's first call, in milliseconds since 1970.
    pub from: u64,
    /// End time of the run's last call, in milliseconds since 1970.
    pub to: u64,
    /// Number of calls to each tool.
    pub tried: BTreeMap<String, usize>,
    /// The first 5 failures, each with its tool.
    pub failed: Vec<String>,
    /// Number of failures.
    pub failures: usize,
}

/// A ticket about a missing feature.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ticket {
    /// Time when the ticket was filed, in milliseconds since 1970.
    pub ts: u64,
    /// The missing feature, in a few words.
    pub title: String,
    /// A description of the need, and the reason for it.
    pub need: String,
    /// A description of the attempts so far.
    pub tried: String,
}

/// The activity of agents, without arguments and outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Feed {
    /// The activity of each agent, keyed by the agent's name.
    pub agents: BTreeMap<String, Activity>,
}

/// The activity of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Number of runs. The number is exact if all agents together have at most 1,000,000 runs.
    /// Beyond that, it is exact if the lines of each run are adjacent.
    pub runs: usize,
    /// Number of calls.
    pub calls: usize,
    /// Number of calls to each tool; inline programs count as `wat`.
    pub tools: BTreeMap<String, usize>,
    /// Time when the last call ended, in milliseconds since 1970.
    pub last: u64,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A builder for a digest. Trace steps are added one at a time.
#[derive(Default)]
pub struct DigestBuilder {
    digest: Digest,
    /// The index of each run in the digest, keyed by the run's shortened id.
    index: HashMap<String, usize>,
}

impl DigestBuilder {
    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        let run_id = clip(&step.run_id, NAME_CHARS);
        let at = match self.index.get(&run_id) {
            Some(at) => *at,
            None if self.digest.runs.len() >= RUNS => {
                self.digest.more += 1;
                return;
            }
            None => {
                let agent = clip(&step.agent, NAME_CHARS);
                self.index.insert(run_id.clone(), self.digest.runs.len());
                self.digest.runs.push(RunDigest {
                    run_id,
                    agent,
                    from: step.ts,
                    ..RunDigest::default()
                });
                self.digest.runs.len() - 1
            }
        };
        let Some(run) = self.digest.runs.get_mut(at) else { return };
        run.to = run.to.max(step.ts);
        *run.tried.entry(name(&run.tried, &step.tool, TOOLS)).or_default() += 1;
        if !step.succeeded() {
            run.failures += 1;
            if run.failed.len() < FAILURES {
                let why = step.error.as_deref().unwrap_or("it returned a nonzero code");
                let why = clip(&why.replace('\n', " "), FAILURE_CHARS);
                run.failed.push(format!("{}: {why}", clip(&step.tool, NAME_CHARS)));
            }
        }
    }

    /// Returns the digest, including the tickets in the trace folders.
    #[must_use]
    pub fn finish(self, read: &ReadSummary) -> Digest {
        let mut digest = self.digest;
        let folders: BTreeSet<&Path> = read.files.iter().filter_map(|file| file.parent()).collect();
        for folder in folders {
            digest.tickets.extend(tickets(&folder.join(ISSUES_FILE)));
            digest.tickets.sort_by_key(|ticket| ticket.ts);
            digest.tickets.drain(..digest.tickets.len().saturating_sub(TICKETS));
        }
        digest
    }
}

/// Returns the latest tickets in a file, at most 1,000. Returns none if the path is not a regular
/// file.
fn tickets(path: &Path) -> VecDeque<Ticket> {
    let mut tickets = VecDeque::new();
    let Ok(Some(file)) = open_lines_to_read(path) else { return tickets };
    let mut lines = LineReader::of(file);
    while let Ok(Some((_, line))) = lines.next_line() {
        let Line::Whole(line) = line else { continue };
        let Ok(ticket) = serde_json::from_slice::<Ticket>(line) else { continue };
        let Ticket { ts, title, need, tried } = ticket;
        let [title, need, tried] = [title, need, tried].map(|text| clip(&text, TICKET_CHARS));
        let ticket = Ticket { ts, title, need, tried };
        if tickets.len() == TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }
    tickets
}

/// A builder for a feed. Trace steps are added one at a time. The builder does not store the
/// content of runs.
#[derive(Default)]
pub struct FeedBuilder {
    feed: Feed,
    /// Counter of the distinct pairs of a run and its agent.
    runs: DistinctCounter,
}

impl FeedBuilder {
    /// Adds a step.
    pub fn add(&mut self, step: &Step) {
        let agent = name(&self.feed.agents, &step.agent, AGENTS);
        let is_new = self.runs.add((&agent, &step.run_id));
        let activity = self.feed.agents.entry(agent).or_default();
        activity.runs += usize::from(is_new);
        activity.calls += 1;
        *activity.tools.entry(name(&activity.tools, &step.tool, TOOLS)).or_default() += 1;
        activity.last = activity.last.max(step.ts);
    }

    /// Returns the feed.
    #[must_use]
    pub fn finish(self) -> Feed {
        self.feed
    }
}

/// Returns the name under which a call is counted. Names beyond the first `max` are counted
/// together.
fn name<T>(known: &BTreeMap<String, T>, name: &str, max: usize) -> String {
    let name = clip(name, NAME_CHARS);
    if known.len() < max || known.contains_key(&name) { name } else { OTHERS.to_owned() }
}
