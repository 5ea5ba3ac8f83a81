//! The spans of one run as they end.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value as Json, json};
use wattle_machine::{Call, Ending};

use super::Collector;
use super::encode::{Sample, Span, metrics, traces};
use crate::model::{Mask, ModelReply};
use crate::trace::{Left, clip};

/// The most spans of one run; further ones are left out, and the root says how many.
const SPANS: usize = 2_000;
/// The most characters of a content that is sent.
const CONTENT: usize = 8_000;

/// Gathers the spans of one run and sends them when it ends.
pub(crate) struct RunSpans {
    collector: Collector,
    run_id: String,
    root: u64,
    from: SystemTime,
    agent: String,
    model: String,
    session: Option<String>,
    mask: Mask,
    gathered: Mutex<Gathered>,
}

#[derive(Default)]
struct Gathered {
    spans: Vec<Span>,
    samples: Vec<Sample>,
    left_out: u64,
}

impl RunSpans {
    pub(crate) fn new(
        collector: &Collector,
        run_id: &str,
        (agent, model): (&str, &str),
        session: Option<&str>,
        mask: Mask,
    ) -> Self {
        RunSpans {
            collector: collector.clone(),
            run_id: run_id.to_owned(),
            root: id(),
            from: SystemTime::now(),
            agent: agent.to_owned(),
            model: model.to_owned(),
            session: session.map(str::to_owned),
            mask,
            gathered: Mutex::default(),
        }
    }

    /// A request to the model has ended; an error is why it gave nothing.
    pub(crate) fn chat(&self, from: SystemTime, reply: Result<&ModelReply, String>) {
        let to = SystemTime::now();
        let mut attributes =
            vec![("gen_ai.operation.name", json!("chat")), ("gen_ai.request.model", json!(self.model))];
        let mut sample = Sample { input: 0, output: 0, seconds: seconds(from, to), error: reply.is_err() };
        let error = match reply {
            Ok(reply) => {
                (sample.input, sample.output) = (reply.usage.prompt, reply.usage.completion);
                attributes.push(("gen_ai.usage.input_tokens", json!(sample.input)));
                attributes.push(("gen_ai.usage.output_tokens", json!(sample.output)));
                attributes.extend(
                    reply.finish.as_ref().map(|why| ("gen_ai.response.finish_reasons", json!([self.mask.text(why)]))),
                );
                if self.collector.0.content {
                    attributes.push(("gen_ai.output.messages", json!(self.content(&reply.text))));
                }
                None
            }
            Err(why) => {
                attributes.push(("error.type", json!("_OTHER")));
                Some(why)
            }
        };
        let name = format!("chat {}", self.model);
        let parent = Some(self.root);
        self.add(Span { id: id(), parent, name, is_client: true, from, to, attributes, error });
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner).samples.push(sample);
    }

    /// A call has ended.
    pub(crate) fn tool(&self, from: SystemTime, (step, number): (u32, usize), call: &Call, left: &Left<'_>) {
        let mut attributes: Vec<(&'static str, Json)> = vec![
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!(self.mask.text(call.label()))),
            ("gen_ai.tool.type", json!("function")),
            ("gen_ai.tool.call.id", json!(format!("{}.{step}.{number}", self.run_id))),
        ];
        attributes.extend(left.exit_code.map(|code| ("wattle.exit_code", json!(code))));
        if left.error.is_some() {
            attributes.push(("error.type", json!("_OTHER")));
        }
        if self.collector.0.content {
            let args = self.mask.json(json!({"body": call.body(), "args": call.args()})).to_string();
            attributes.push(("gen_ai.tool.call.arguments", json!(clip(&args, CONTENT))));
            attributes.push(("gen_ai.tool.call.result", json!(self.content(&left.output))));
        }
        // What a failure says may quote what programs worked on.
        let error = left.error.as_ref();
        let error = error.map(|why| if self.collector.0.content { self.content(why) } else { "failed".to_owned() });
        let (name, to) = (format!("execute_tool {}", self.mask.text(call.label())), SystemTime::now());
        self.add(Span { id: id(), parent: Some(self.root), name, is_client: false, from, to, attributes, error });
    }

    /// The run has ended: what was gathered is sent.
    pub(crate) fn end(&self, ending: &Ending) {
        let mut gathered = std::mem::take(&mut *self.gathered.lock().unwrap_or_else(PoisonError::into_inner));
        let mut attributes = vec![
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.agent.name", json!(self.agent)),
            ("gen_ai.request.model", json!(self.model)),
            ("wattle.run_id", json!(self.run_id)),
        ];
        attributes.extend(self.session.as_ref().map(|session| ("gen_ai.conversation.id", json!(session))));
        if gathered.left_out > 0 {
            attributes.push(("wattle.spans_left_out", json!(gathered.left_out)));
        }
        if self.collector.0.content {
            attributes.push(("gen_ai.output.messages", json!(self.content(ending.text()))));
        }
        let error = match ending {
            Ending::Failed { message } => Some(self.mask.text(message)),
            _ => None,
        };
        let (from, to, name) = (self.from, SystemTime::now(), format!("invoke_agent {}", self.agent));
        gathered.spans.push(Span { id: self.root, parent: None, name, is_client: false, from, to, attributes, error });
        // A run that is taken up again goes on in the same trace.
        let trace = ulid::Ulid::from_string(&self.run_id).map_or_else(|_| u128::from(id()), u128::from);
        let service = &self.collector.0.service;
        self.collector.send([
            ("/v1/traces", traces(service, trace, &gathered.spans)),
            ("/v1/metrics", metrics(service, &self.model, (from, to), &gathered.samples)),
        ]);
    }

    /// A content as it is sent: without the model's key, and cut.
    fn content(&self, text: &str) -> String {
        clip(&self.mask.text(text), CONTENT)
    }

    fn add(&self, span: Span) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        match gathered.spans.len() < SPANS {
            true => gathered.spans.push(span),
            false => gathered.left_out += 1,
        }
    }
}

/// An id that is not zero, which would be none.
fn id() -> u64 {
    fastrand::u64(1..)
}

fn seconds(from: SystemTime, to: SystemTime) -> f64 {
    to.duration_since(from).unwrap_or_default().as_secs_f64()
}
