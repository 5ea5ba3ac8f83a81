//! Reconstruction of a run's trace from the run's events.

use std::path::Path;

use serde_json::json;
use wattle_machine::{Envelope, Event};

use super::org::Org;
use super::{LINE_CHARS, Step, clip, written};

/// Converts the events of a run to the steps that its trace records. The second argument contains
/// the names of the agent and the model.
#[must_use]
pub fn steps_of(run: &str, (agent, model): (&str, &str), events: &[Envelope]) -> Vec<Step> {
    let mut started: Vec<(u32, u32, Step)> = Vec::new();
    let mut steps = Vec::new();
    for envelope in events {
        match &envelope.event {
            Event::ToolStart { step, call, label, body, args, names, .. } => {
                let args = match body {
                    Some(body) => json!({"body": body, "args": args}),
                    None => written(args, names),
                };
                let start = Step {
                    run_id: run.to_owned(),
                    step: *step,
                    agent: agent.to_owned(),
                    model: model.to_owned(),
                    tool: label.clone(),
                    args,
                    ..Step::default()
                };
                started.push((*step, *call, start));
            }
            Event::ToolResult { step, call, success, output, exit_code, dur_ms, fixes, .. } => {
                let found = started.iter().rposition(|(s, c, _)| (s, c) == (step, call));
                let Some((_, _, start)) = found.map(|at| started.remove(at)) else { continue };
                let text = clip(output, LINE_CHARS);
                let (output, error) =
                    if *success { (text, None) } else { (String::new(), Some(text)) };
                steps.push(Step {
                    output,
                    error,
                    exit_code: *exit_code,
                    fixes: fixes.clone(),
                    dur_ms: *dur_ms,
                    ts: envelope.ts,
                    ..start
                });
            }
            _ => {}
        }
    }
    steps
}

/// Converts the events of a run to an outline in Org format, as in `events.org`.
#[must_use]
pub fn outline(run: &str, agent: &str, events: &[Envelope]) -> String {
    let mut org = Org::new(Path::new(""), run, agent);
    for step in steps_of(run, (agent, ""), events) {
        let output = step.output.clone();
        org.add(&step, &output);
    }
    match events.last().map(|envelope| &envelope.event) {
        Some(Event::Response { text, .. }) => org.result(text),
        Some(Event::Error { message }) => org.result(message),
        _ => {}
    }
    org.into_text()
}
