//! The trace: a record of a run with one [`Step`] per call, written by the host and not by the
//! model.
//!
//! Each step is written to `_steps.jsonl` in the trace's folder, and sealed in the
//! [ledger](wattle_store::ledger). When the run ends, the steps are also written to `events.org` in the
//! same folder. If a file cannot be written, the run continues. [`read`] reads the lines of a trace
//! of any size one at a time; [`Telemetry`], [`Digest`] and [`Feed`] summarize them.
//!
//! Runs can share a folder. A run's programs see the lines of their own run alone, as the file
//! `_steps.jsonl` in the workdir.

mod digest;
mod distinct;
mod events;
mod org;
mod steps;
mod telemetry;
mod written;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use wattle_capability::files::TraceView;
use wattle_catalog::Catalog;
use wattle_machine::{Call, Ending, Execution};
use wattle_model::Mask;
use wattle_store::create_folder;
use wattle_store::ledger::{FinalSeal, Recorder, Signer};
use wattle_store::now_ms;

use org::Org;
use written::WrittenLines;

pub use digest::{Digest, DigestBuilder, Feed, FeedBuilder, Ticket};
pub use events::{outline, steps_of};
pub use org::EVENTS_FILE;
pub use steps::{ReadSummary, read};
pub use telemetry::{Telemetry, TelemetryBuilder, Tool};

/// The name of the trace file.
pub const STEPS_FILE: &str = wattle_capability::files::TRACE_FILE;

/// Maximum length of an output in a line of `_steps.jsonl`, in characters.
const LINE_CHARS: usize = 200;

/// Maximum length of a line's arguments in JSON form, in characters. This limit and the next ones
/// keep a line below the maximum length that readers accept.
const ARGS_CHARS: usize = 500_000;
/// Maximum length of the error in a line, in characters.
const ERROR_CHARS: usize = 100_000;
/// Maximum length of each fix in a line, in characters.
const FIX_CHARS: usize = 1_000;
/// Maximum number of fixes in a line.
const MAX_FIXES: usize = 100;

/// Maximum time to wait for the ledger at the end of a run if another process keeps it locked.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between attempts to lock the ledger.
const LOCK_RETRY: Duration = Duration::from_millis(100);

/// A call that a run made, and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The run's id.
    pub run_id: String,
    /// The step of the run, counted from 1. Calls with the same step ran concurrently.
    pub step: u32,
    /// The session that the run belongs to. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The model that requested the call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// `wat` for an inline program, otherwise the catalog program's name.
    pub tool: String,
    /// The arguments, keyed by name. An inline program has the arguments `body` and `args`. If the
    /// program is unknown, or has fewer parameters than the call has arguments, this is an array.
    pub args: Json,
    /// The output of the program.
    pub output: String,
    /// The exit code, or null if the program did not finish.
    pub exit_code: Option<i32>,
    /// The error, if the call failed.
    pub error: Option<String>,
    /// The fixes that were applied to the program before it ran.
    #[serde(rename = "fixed", skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<String>,
    /// Duration, measured with a monotonic clock, in milliseconds.
    pub dur_ms: u64,
    /// Time when the call ended, in milliseconds since 1970.
    pub ts: u64,
}

impl Step {
    /// Returns true if the call succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && self.exit_code == Some(0)
    }
}

/// Shortens a string to at most `chars` characters: keeps its head and tail, and states the number
/// of characters omitted between them. All strings in traces are shortened this way.
#[must_use]
pub fn clip(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    // Reserves space for the note about the omitted characters.
    let room = chars.saturating_sub(30).max(chars / 2);
    let (head, tail) = (room - room / 3, room / 3);
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{begin} … {} characters … {end}", count - head - tail)
}

/// The agent and the model that make the calls of a run, and the run's session.
#[derive(Clone)]
pub(crate) struct Author<'a> {
    pub(crate) agent: &'a str,
    pub(crate) model: &'a str,
    pub(crate) session: Option<String>,
}

/// The trace of one run.
pub(crate) struct Trace<'a> {
    run_id: &'a str,
    author: Author<'a>,
    mask: Mask,
    files: Option<Mutex<Files>>,
    view: Option<TraceView>,
    /// The lines that were written before the run was resumed, so that none of them is written
    /// twice.
    written: Mutex<WrittenLines>,
}

/// The files of the trace.
struct Files {
    recorder: Recorder,
    org: Org,
}

impl<'a> Trace<'a> {
    /// Opens the trace of a run in a folder, which is created if it is absent. Keys and secrets are
    /// masked in the trace. Without a folder, nothing is written. If `resumed` is true, the existing
    /// trace of the run is continued.
    pub(crate) fn open(
        run_id: &'a str,
        author: Author<'a>,
        (folder, mask): (Option<&Path>, Mask),
        signer: Option<Arc<Signer>>,
        resumed: bool,
    ) -> Self {
        let mut written = WrittenLines::default();
        let files = folder.and_then(|folder| {
            log_failure(folder, create_folder(folder))?;
            let recorder = if resumed {
                let recorder =
                    Recorder::resume(folder, run_id, signer, &mut |line| written.add(line));
                log_failure(&folder.join(STEPS_FILE), recorder)?
            } else {
                Recorder::begin(folder, run_id, signer)
            };
            Some(Mutex::new(Files { recorder, org: Org::new(folder, run_id, author.agent) }))
        });
        let view =
            folder.filter(|_| files.is_some()).map(|folder| own_lines(folder, run_id, resumed));
        Trace { run_id, author, mask, files, view, written: Mutex::new(written) }
    }

    /// Returns a function that reads the lines of this run, or `None` if nothing is written.
    pub(crate) fn view(&self) -> Option<TraceView> {
        self.view.clone()
    }

    /// Returns the run's id.
    pub(crate) fn run_id(&self) -> &'a str {
        self.run_id
    }

    /// Writes a finished call to the trace. `catalog` contains the called program.
    pub(crate) fn write(
        &self,
        (step, call, catalog): (u32, &Call, &Catalog),
        outcome: &CallOutcome<'_>,
        dur_ms: u64,
    ) {
        let Some(files) = &self.files else { return };
        let mask = &self.mask;
        let args = arguments(catalog, call);
        let output = mask.text(&outcome.output);
        let step = Step {
            run_id: self.run_id.to_owned(),
            step,
            session_id: self.author.session.clone(),
            agent: self.author.agent.to_owned(),
            model: self.author.model.to_owned(),
            tool: mask.text(call.label()),
            args: bounded(mask.json(args)),
            output: clip(&output, LINE_CHARS),
            exit_code: outcome.exit_code,
            error: outcome.error.as_deref().map(|error| clip(&mask.text(error), ERROR_CHARS)),
            fixes: outcome
                .fixes
                .iter()
                .take(MAX_FIXES)
                .map(|text| clip(&mask.text(text), FIX_CHARS))
                .collect(),
            dur_ms,
            ts: now_ms(),
        };
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.written.lock().unwrap_or_else(PoisonError::into_inner).take(&step) {
            let result = files.recorder.line(&step);
            log_failure(Path::new(STEPS_FILE), result);
        }
        files.org.add(&step, &output);
    }

    /// Writes the end of the run. Returns the final seal, or `None` if the trace is not sealed. If
    /// another process keeps the ledger locked, for example because that process is paused, this
    /// function waits for at most 60 s.
    pub(crate) async fn end(&self, ending: &Ending) -> Option<FinalSeal> {
        let files = self.files.as_ref()?;
        let files = || files.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let sealed = loop {
            let sealed = files().recorder.end();
            match sealed {
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline =>
                {
                    tokio::time::sleep(LOCK_RETRY).await;
                }
                sealed => break sealed,
            }
        };
        log_failure(Path::new(EVENTS_FILE), files().org.end(&self.mask.text(ending.text())));
        log_failure(Path::new(wattle_store::ledger::LEDGER_FILE), sealed).flatten()
    }
}

/// Returns a function that reads the lines of a run from a trace that other runs may share. A new
/// run has no lines before the current end of the trace.
fn own_lines(folder: &Path, run_id: &str, resumed: bool) -> TraceView {
    let (path, run_id) = (folder.join(STEPS_FILE), run_id.to_owned());
    let end = || std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    let from = if resumed { 0 } else { end() };
    Arc::new(move |max| wattle_store::ledger::lines_of(&path, &run_id, from, max).map(Into::into))
}

/// Returns the arguments of a call as an object. If the names of a catalog program's arguments are
/// unknown, they are an array.
#[must_use]
pub fn arguments(catalog: &Catalog, call: &Call) -> Json {
    let (name, args, names) = match call {
        Call::Wat { body, args } => return json!({"body": body, "args": args}),
        Call::Catalog { name, args, names } => (name, args, names),
    };
    match catalog.get(name) {
        Some(entry) => {
            let by_position = args.len().saturating_sub(names.len());
            let params = entry.meta().args.iter().take(by_position);
            let params: Vec<String> = params.map(|param| param.name.clone()).collect();
            let real = |name: &String| entry.param(name).map_or(name, |param| &param.name).clone();
            if params.len() < by_position {
                return json!(args);
            }
            let names = params.into_iter().chain(names.iter().map(real));
            Json::Object(names.zip(args.iter().map(|arg| json!(arg))).collect())
        }
        None => written(args, names),
    }
}

/// Returns arguments as the model wrote them: an object if all of them have names, and otherwise an
/// array.
fn written(args: &[String], names: &[String]) -> Json {
    if args.is_empty() || names.len() < args.len() {
        return json!(args);
    }
    Json::Object(names.iter().cloned().zip(args.iter().map(|arg| json!(arg))).collect())
}

/// Returns the arguments. If they are too long for a line, returns an object with an excerpt of
/// them.
fn bounded(args: Json) -> Json {
    let text = args.to_string();
    if text.len() <= ARGS_CHARS { args } else { json!({"clipped": clip(&text, ARGS_CHARS)}) }
}

/// Logs a failure to write the trace, which does not affect the run.
fn log_failure<T>(path: &Path, result: std::io::Result<T>) -> Option<T> {
    result
        .map_err(
            |error| tracing::warn!(path = %path.display(), %error, "failed to write the trace"),
        )
        .ok()
}

/// The outcome of a call, as a step of a trace records it.
pub(crate) struct CallOutcome<'a> {
    /// The exit code, if the program finished.
    pub(crate) exit_code: Option<i32>,
    /// The complete output.
    pub(crate) output: String,
    /// The error, if the call failed.
    pub(crate) error: Option<String>,
    /// The fixes that were applied to the program before it ran.
    pub(crate) fixes: &'a [String],
}

impl<'a> CallOutcome<'a> {
    pub(crate) fn of(execution: &'a Execution) -> Self {
        let (output, error) = (execution.results().join("\n"), execution.error());
        CallOutcome { exit_code: execution.exit_code(), output, error, fixes: execution.fixes() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clipped_text_keeps_both_ends_and_counts_what_is_missing() {
        let text: String = (0..300u32).map(|n| char::from_digit(n % 10, 10).unwrap()).collect();
        let cut = clip(&text, 200);
        assert!(
            cut.starts_with("0123456789")
                && cut.ends_with("6789")
                && cut.contains(" characters … "),
            "{cut}"
        );
        assert!(cut.chars().count() <= 200, "{}", cut.chars().count());
        assert_eq!(clip("short", 200), "short");
        assert_eq!(clip("äöü", 3), "äöü");
    }
}
