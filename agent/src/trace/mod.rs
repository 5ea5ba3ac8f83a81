//! The trace: what a run did, one [`Step`] a call, written by the host and not by the model.
//!
//! One event, several places where it goes: `_steps.jsonl` in the workdir, sealed line by line in the [ledger](crate::ledger), and
//! `events.org` beside it when the run ends. A place that cannot be written never disturbs the run. [`read`] gives the
//! lines of traces of any size one by one; [`Telemetry`], [`Digest`] and [`Feed`] sum them up.

mod digest;
mod line;
mod org;
mod steps;
mod taken;
mod telemetry;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use wattle_machine::{Call, Ending, Execution};

use crate::ledger::{Recorder, Sealed, Signer};
use crate::model::Mask;
use crate::now_ms;
use org::Org;
use taken::Lines;

pub use digest::{Digest, Digesting, Feed, Feeding, Ticket};
pub(crate) use line::append;
pub use org::EVENTS_FILE;
pub use steps::{Read, read};
pub use telemetry::{Sum, Telemetry, Tool};

/// The file's name in the workdir.
pub const STEPS_FILE: &str = wattle_capability::files::TRACE_FILE;

/// Maximum number of characters of an output that a line of `_steps.jsonl` carries.
const LINE_CHARS: usize = 200;

/// Maximum number of characters of what else a line carries: its arguments as JSON, its error, what was fixed in the program. So a line is
/// never longer than readers take.
const ARGS_CHARS: usize = 500_000;
const ERROR_CHARS: usize = 100_000;
const MENDED_CHARS: usize = 1_000;
const MENDED: usize = 100;

/// One call of a run, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The run.
    pub run_id: String,
    /// The step of the run, counted from 1; calls that share a step ran at the same time.
    pub step: u32,
    /// The agent.
    pub agent: String,
    /// The model that asked for the call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// `wat` for an inline program, else the catalog program's name.
    pub tool: String,
    /// The arguments: an array, or for an inline program an object of `body` and `args`.
    pub args: Json,
    /// What it put out.
    pub output: String,
    /// The code that it left; null where it did not come to its end.
    pub exit_code: Option<i32>,
    /// Why it failed.
    pub error: Option<String>,
    /// What was put right in the program before it ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
    /// How long it took by a clock that only goes forward, in milliseconds.
    pub dur_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ts: u64,
}

impl Step {
    /// Whether the call did what it was to do.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && self.exit_code == Some(0)
    }
}

/// Keeps the head and the tail of a text that is longer than that many characters, and says how much is missing between them: the one
/// way in which traces are cut.
#[must_use]
pub fn clip(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    // The note takes some of the room itself.
    let kept = chars.saturating_sub(30).max(chars / 2);
    let (head, tail) = (kept - kept / 3, kept / 3);
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{begin} … {} characters … {end}", count - head - tail)
}

/// Writes the trace of one run.
pub(crate) struct Trace<'a> {
    run_id: &'a str,
    agent: &'a str,
    model: &'a str,
    mask: Mask,
    places: Option<Mutex<Places>>,
    /// The lines that the run left before it was resumed: none is written twice.
    there: Mutex<Lines>,
}

/// Where the trace goes.
struct Places {
    recorder: Recorder,
    org: Org,
}

impl<'a> Trace<'a> {
    /// The trace of that run, with the model's key masked; it goes nowhere if there is no workdir. A run that is `resumed` goes on where
    /// it was.
    pub(crate) fn open(
        run_id: &'a str,
        (agent, model): (&'a str, &'a str),
        (workdir, mask): (Option<&Path>, Mask),
        signer: Option<Arc<Signer>>,
        resumed: bool,
    ) -> Self {
        let mut there = Lines::default();
        let places = workdir.and_then(|workdir| {
            let recorder = if resumed {
                let recorder = Recorder::resume(workdir, run_id, signer, &mut |line| there.add(line));
                told(&workdir.join(STEPS_FILE), recorder)?
            } else {
                Recorder::begin(workdir, run_id, signer)
            };
            Some(Mutex::new(Places { recorder, org: Org::new(workdir, run_id, agent) }))
        });
        Trace { run_id, agent, model, mask, places, there: Mutex::new(there) }
    }

    /// The run's id.
    pub(crate) fn run_id(&self) -> &'a str {
        self.run_id
    }

    /// Writes down a call that is done.
    pub(crate) fn write(&self, step: u32, call: &Call, left: &Left<'_>, dur_ms: u64) {
        let Some(places) = &self.places else { return };
        let mask = &self.mask;
        let args = match call {
            Call::Wat { body, args } => json!({"body": body, "args": args}),
            Call::Catalog { args, .. } => json!(args),
        };
        let output = mask.text(&left.output);
        let step = Step {
            run_id: self.run_id.to_owned(),
            step,
            agent: self.agent.to_owned(),
            model: self.model.to_owned(),
            tool: mask.text(call.label()),
            args: bounded(mask.json(args)),
            output: clip(&output, LINE_CHARS),
            exit_code: left.exit_code,
            error: left.error.as_deref().map(|error| clip(&mask.text(error), ERROR_CHARS)),
            mended: left.mended.iter().take(MENDED).map(|text| clip(&mask.text(text), MENDED_CHARS)).collect(),
            dur_ms,
            ts: now_ms(),
        };
        let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.there.lock().unwrap_or_else(PoisonError::into_inner).has(&step) {
            let written = places.recorder.line(&step);
            told(Path::new(STEPS_FILE), written);
        }
        places.org.add(&step, &output);
    }

    /// Writes down how the run ended. Returns what the last seal says, if the trace is sealed.
    pub(crate) fn end(&self, ending: &Ending) -> Option<Sealed> {
        let mut places = self.places.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let sealed = places.recorder.end();
        told(Path::new(EVENTS_FILE), places.org.end(&self.mask.text(ending.text())));
        told(Path::new(crate::ledger::LEDGER_FILE), sealed).flatten()
    }
}

/// Arguments as they are, or, if they are too long for a line, their beginning and end as text.
fn bounded(args: Json) -> Json {
    let text = args.to_string();
    if text.len() <= ARGS_CHARS { args } else { json!({"clipped": clip(&text, ARGS_CHARS)}) }
}

/// A trace that cannot be written is told to the operator, and disturbs nobody else.
fn told<T>(path: &Path, done: std::io::Result<T>) -> Option<T> {
    done.map_err(|error| tracing::warn!(path = %path.display(), %error, "failed to write the trace")).ok()
}

/// What a call left, in the words of a trace.
pub(crate) struct Left<'a> {
    /// The code where the program came to its end.
    pub(crate) exit_code: Option<i32>,
    /// All that it put out.
    pub(crate) output: String,
    /// Why it failed.
    pub(crate) error: Option<String>,
    /// What was put right in it before it ran.
    pub(crate) mended: &'a [String],
}

impl<'a> Left<'a> {
    pub(crate) fn by(execution: &'a Execution) -> Self {
        let (output, error) = match execution {
            Execution::Ran(ran) => {
                let error = ran.failure.as_ref().map(|failure| {
                    let name = failure.name.clone().unwrap_or_else(|| failure.exit_code.to_string());
                    match &failure.reason {
                        Some(reason) => format!("{name}: {reason}"),
                        None => name,
                    }
                });
                (ran.results.join("\n"), error)
            }
            Execution::Rejected { diagnostic } => (String::new(), Some(diagnostic.clone())),
            Execution::Refused { reason } => (String::new(), Some(reason.clone())),
            Execution::Stopped { reason, results, .. } => (results.join("\n"), Some(reason.clone())),
        };
        Left { exit_code: execution.exit_code(), output, error, mended: execution.fixes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_keeps_both_ends_and_says_what_is_missing() {
        let text: String = (0..300u32).map(|n| char::from_digit(n % 10, 10).unwrap()).collect();
        let cut = clip(&text, 200);
        assert!(cut.starts_with("0123456789") && cut.ends_with("6789") && cut.contains(" characters … "), "{cut}");
        assert!(cut.chars().count() <= 200, "{}", cut.chars().count());
        assert_eq!(clip("short", 200), "short");
        assert_eq!(clip("äöü", 3), "äöü");
    }
}
