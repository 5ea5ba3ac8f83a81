//! The spans of one run.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value as Json, json};
use wattle_machine::{Call, Ending};
use wattle_model::{Mask, ModelReply};

use super::Collector;
use super::encode::{Sample, Span, metrics, traces};
use crate::trace::{Author, CallOutcome, clip};

/// Maximum number of spans per run. The root span records the number of dropped spans.
const MAX_SPANS: usize = 2_000;
/// Maximum length of exported content, in characters.
const MAX_CONTENT_CHARS: usize = 8_000;

/// A collection of one run's spans, exported when the run ends.
pub(crate) struct RunSpans {
    collector: Collector,
    run_id: String,
    root: u64,
    from: SystemTime,
    agent: String,
    model: String,
    session: Option<String>,
    mask: Mask,
    collected: Mutex<RunTelemetry>,
}

#[derive(Default)]
struct RunTelemetry {
    spans: Vec<Span>,
    samples: Vec<Sample>,
    left_out: u64,
}

impl RunSpans {
    pub(crate) fn new(
        (collector, mask): (&Collector, Mask),
        run_id: &str,
        Author { agent, model, session }: &Author<'_>,
    ) -> Self {
        RunSpans {
            collector: collector.clone(),
            run_id: run_id.to_owned(),
            root: id(),
            from: SystemTime::now(),
            agent: (*agent).to_owned(),
            model: (*model).to_owned(),
            session: session.clone(),
            mask,
            collected: Mutex::default(),
        }
    }

    /// Records a finished request to the model, or its error.
    pub(crate) fn chat(&self, from: SystemTime, reply: Result<&ModelReply, String>) {
        let to = SystemTime::now();
        let mut attributes = vec![
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!(self.model)),
        ];
        let mut sample =
            Sample { input: 0, output: 0, seconds: seconds(from, to), error: reply.is_err() };
        let error = match reply {
            Ok(reply) => {
                (sample.input, sample.output) = (reply.usage.prompt, reply.usage.completion);
                attributes.push(("gen_ai.usage.input_tokens", json!(sample.input)));
                attributes.push(("gen_ai.usage.output_tokens", json!(sample.output)));
                attributes.extend(
                    reply.finish.as_ref().map(|why| {
                        ("gen_ai.response.finish_reasons", json!([self.mask.text(why)]))
                    }),
                );
                if self.collector.0.content {
                    attributes.push(("gen_ai.output.messages", json!(self.content(&reply.text))));
                }
                None
            }
            Err(why) => {
                attributes.push(("error.type", json!("_OTHER")));
                Some(self.mask.text(&why))
            }
        };
        let name = format!("chat {}", self.model);
        let parent = Some(self.root);
        self.add(Span { id: id(), parent, name, is_client: true, from, to, attributes, error });
        self.collected.lock().unwrap_or_else(PoisonError::into_inner).samples.push(sample);
    }

    /// Records a finished call.
    pub(crate) fn tool(
        &self,
        from: SystemTime,
        (step, number): (u32, usize),
        call: &Call,
        outcome: &CallOutcome<'_>,
    ) {
        let mut attributes: Vec<(&'static str, Json)> = vec![
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!(self.mask.text(call.label()))),
            ("gen_ai.tool.type", json!("function")),
            ("gen_ai.tool.call.id", json!(format!("{}.{step}.{number}", self.run_id))),
        ];
        attributes.extend(outcome.exit_code.map(|code| ("wattle.exit_code", json!(code))));
        if outcome.error.is_some() {
            attributes.push(("error.type", json!("_OTHER")));
        }
        if self.collector.0.content {
            let mut args = json!({"body": call.body(), "args": call.args()});
            if let Some(fields) = args.as_object_mut().filter(|_| !call.names().is_empty()) {
                fields.insert("names".to_owned(), json!(call.names()));
            }
            let args = self.mask.json(args).to_string();
            attributes.push(("gen_ai.tool.call.arguments", json!(clip(&args, MAX_CONTENT_CHARS))));
            attributes.push(("gen_ai.tool.call.result", json!(self.content(&outcome.output))));
        }
        // An error can quote data from programs, so its text counts as content.
        let error = outcome.error.as_ref();
        let error = error.map(|why| {
            if self.collector.0.content { self.content(why) } else { "failed".to_owned() }
        });
        let (name, to) =
            (format!("execute_tool {}", self.mask.text(call.label())), SystemTime::now());
        self.add(Span {
            id: id(),
            parent: Some(self.root),
            name,
            is_client: false,
            from,
            to,
            attributes,
            error,
        });
    }

    /// Records the end of the run and exports its spans.
    pub(crate) fn end(&self, ending: &Ending) {
        let mut collected =
            std::mem::take(&mut *self.collected.lock().unwrap_or_else(PoisonError::into_inner));
        let mut attributes = vec![
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.agent.name", json!(self.agent)),
            ("gen_ai.request.model", json!(self.model)),
            ("wattle.run_id", json!(self.run_id)),
        ];
        attributes.extend(
            self.session.as_ref().map(|session| ("gen_ai.conversation.id", json!(session))),
        );
        if collected.left_out > 0 {
            attributes.push(("wattle.spans_left_out", json!(collected.left_out)));
        }
        if self.collector.0.content {
            attributes.push(("gen_ai.output.messages", json!(self.content(ending.text()))));
        }
        let error = match ending {
            Ending::Failed { message } => Some(self.mask.text(message)),
            _ => None,
        };
        let (from, to, name) =
            (self.from, SystemTime::now(), format!("invoke_agent {}", self.agent));
        collected.spans.push(Span {
            id: self.root,
            parent: None,
            name,
            is_client: false,
            from,
            to,
            attributes,
            error,
        });
        // A resumed run continues the same trace.
        let trace =
            ulid::Ulid::from_string(&self.run_id).map_or_else(|_| u128::from(id()), u128::from);
        let service = &self.collector.0.service;
        self.collector.send([
            ("/v1/traces", traces(service, trace, &collected.spans)),
            ("/v1/metrics", metrics(service, &self.model, (from, to), &collected.samples)),
        ]);
    }

    /// Prepares content for export: masks keys and secrets, and truncates long content.
    fn content(&self, text: &str) -> String {
        clip(&self.mask.text(text), MAX_CONTENT_CHARS)
    }

    fn add(&self, span: Span) {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        if collected.spans.len() < MAX_SPANS {
            collected.spans.push(span)
        } else {
            collected.left_out += 1
        }
    }
}

/// Returns a random id. It is never zero, since zero means that there is no id.
fn id() -> u64 {
    fastrand::u64(1..)
}

fn seconds(from: SystemTime, to: SystemTime) -> f64 {
    to.duration_since(from).unwrap_or_default().as_secs_f64()
}
