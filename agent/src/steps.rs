//! `_steps.jsonl`: the raw trace that every run leaves in its workdir, one line per call, written by the host.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::{Value as Json, json};
use wattle_machine::{Call, Execution};

use crate::sink::now_ms;

/// The file's name in the workdir.
pub const STEPS_FILE: &str = wattle_capability::files::TRACE_FILE;

/// The most characters of an output that a line carries.
const OUTPUT_CHARS: usize = 200;

/// One line of the trace.
#[derive(Serialize)]
struct Line<'a> {
    run_id: &'a str,
    step: u32,
    agent: &'a str,
    tool: &'a str,
    args: Json,
    output: String,
    exit_code: Option<i32>,
    error: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    mended: &'a [String],
    dur_ms: u64,
    ts: u64,
}

/// Appends the trace of one run.
pub(crate) struct Steps<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) agent: &'a str,
    /// The file; `None` for a run without a workdir.
    pub(crate) path: Option<PathBuf>,
    /// The lines that the run left before it was taken up, in other words than times: none is written twice.
    there: Mutex<Vec<Json>>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(run_id: &'a str, agent: &'a str, workdir: Option<&Path>) -> Self {
        Steps { run_id, agent, path: workdir.map(|dir| dir.join(STEPS_FILE)), there: Mutex::default() }
    }

    /// The trace of a run that another process began: it may have been stopped in the middle of a line, which is taken out, and between a line
    /// and the next thing that it did.
    pub(crate) fn taken_up(self) -> Self {
        let Some(path) = &self.path else { return self };
        match lines_of(path, self.run_id) {
            Ok(there) => Steps { there: Mutex::new(there), ..self },
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "failed to read the trace");
                self
            }
        }
    }

    /// Writes the line of a call that is done. A failing write is logged and never disturbs the run.
    pub(crate) fn write(&self, step: u32, call: &Call, execution: &Execution, dur_ms: u64) {
        let Some(path) = &self.path else { return };
        let (exit_code, output, error) = outcome(execution);
        let args = match call {
            Call::Wat { body, args } => json!({"body": body, "args": args}),
            Call::Catalog { args, .. } => json!(args),
        };
        let said = json!([step, call.label(), args]);
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = there.iter().position(|line| *line == said) {
            there.remove(at);
            return;
        }
        drop(there);
        let output = cut(&output);
        let (run_id, agent) = (self.run_id, self.agent);
        let line = Line {
            run_id,
            step,
            agent,
            tool: call.label(),
            args,
            output,
            exit_code,
            error,
            mended: execution.mended(),
            dur_ms,
            ts: now_ms(),
        };
        if let Err(error) = append(path, &line) {
            tracing::warn!(path = %path.display(), %error, "failed to write the trace");
        }
    }
}

/// One write of one whole line, so that runs which share the file do not tear each other's lines.
fn append(path: &Path, line: &Line<'_>) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    OpenOptions::new().create(true).append(true).open(path)?.write_all(&bytes)
}

/// What the whole lines of a run say: step, tool and arguments of each. A last line that breaks off is taken out of the file.
fn lines_of(path: &Path, run_id: &str) -> std::io::Result<Vec<Json>> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() {
        OpenOptions::new().write(true).open(path)?.set_len(whole as u64)?;
    }
    let lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
    let of_run =
        lines.filter_map(|line| serde_json::from_slice::<Json>(line).ok()).filter(|line| line["run_id"] == run_id);
    Ok(of_run.map(|line| json!([line["step"], line["tool"], line["args"]])).collect())
}

/// What a call left: its exit code where it came to its end, its output, its error.
pub(crate) fn outcome(execution: &Execution) -> (Option<i32>, String, Option<String>) {
    match execution {
        Execution::Ran(ran) => {
            let error = ran.failure.as_ref().map(|failure| {
                let name = failure.name.clone().unwrap_or_else(|| failure.exit_code.to_string());
                match &failure.reason {
                    Some(reason) => format!("{name}: {reason}"),
                    None => name,
                }
            });
            (Some(ran.exit_code()), ran.results.join("\n"), error)
        }
        Execution::Rejected { diagnostic } => (None, String::new(), Some(diagnostic.clone())),
        Execution::Refused { reason } => (None, String::new(), Some(reason.clone())),
        Execution::Stopped { reason, results, .. } => (None, results.join("\n"), Some(reason.clone())),
    }
}

/// Keeps the head and the tail, and says how much is missing between them.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= OUTPUT_CHARS {
        return text.to_owned();
    }
    let (head, tail) = (120, 50);
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{begin} … {} characters … {end}", count - head - tail)
}
