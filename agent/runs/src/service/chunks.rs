//! Chunks: a simplified view of a run's events, for clients that show an answer while the model
//! writes it.
//!
//! The view is a function of the events and of a small state, which [`Chunks`] holds. A client that
//! reconnects gets the chunks of the events that it has not seen. An event produces zero or more
//! chunks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_machine::{Envelope, Event, Stop, Usage};

/// A chunk of a run's stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Chunk {
    /// A piece of the answer.
    Chunk {
        /// Number of characters of the answer before this piece. If it is 0, a new answer starts:
        /// discard all earlier pieces. The piece may be empty.
        offset: u64,
        /// The piece.
        content: String,
    },
    /// The model gave the reason for its next action.
    Thinking {
        /// The step, counted from 1.
        step: u32,
        /// The reason that the model gave.
        content: String,
    },
    /// A program starts, or is waiting for a person's approval.
    ToolCall {
        /// The id of the call: the step and the call within the step, such as `2.1`. If a parent
        /// run asks about a call of a child run, the child run's id and `/` precede it.
        call: String,
        /// `wat` for an inline program, otherwise the catalog program's name. Empty for a question
        /// if the name is unknown.
        name: String,
        /// The arguments, as written by the model. Empty for a question.
        arguments: Vec<String>,
        /// The names of the last arguments. Absent if all arguments are given by position.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// The code of an inline program. Absent for a catalog program and for a question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
        /// The question that a person must answer to approve or deny the call. Absent if the
        /// program starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    /// The run or a recall from memory failed, or the model is asked again because its answer was
    /// unusable.
    Error {
        /// The error message.
        message: String,
        /// If true, the run has failed. Otherwise, it continues.
        fatal: bool,
    },
    /// The run has ended. This is the run's last chunk.
    Done {
        /// The result, or the error message of a failed run.
        text: String,
        /// The JSON value in the answer, if the run has an output schema and the answer matches it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Json>,
        /// The reason why the run ended. Null after a fatal error.
        stop: Option<Stop>,
        /// Number of steps that executed calls. Zero after a fatal error.
        steps: u32,
        /// The token usage of the whole run. Zero after a fatal error.
        usage: Usage,
        /// The session that the run belongs to. Null after a fatal error.
        session_id: Option<String>,
    },
}

/// A chunk with the identifiers of its event.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEvent {
    /// The run that the chunk belongs to.
    pub run_id: String,
    /// The root run of the tree.
    pub root_run_id: String,
    /// The event's sequence number in its run. In the event stream, only the last chunk of a
    /// recorded event is sent with an `id`, which identifies the event.
    pub seq: u64,
    /// The time, in milliseconds since 1970-01-01T00:00:00Z.
    pub ts: u64,
    /// The chunk.
    #[serde(flatten)]
    pub chunk: Chunk,
}

/// A converter that turns a stream of events into chunks. The stream contains the events of either
/// one run or a tree of runs.
///
/// ```
/// use wattle_machine::{Envelope, Event};
/// use wattle_runs::service::{Chunk, Chunks};
///
/// let (run_id, text) = ("r".to_owned(), "Four".to_owned());
/// let event = Event::AnswerDelta { step: 1, text, is_certain: false };
/// let event = Envelope { root_run_id: run_id.clone(), run_id, seq: 1, ts: 0, event };
/// let chunks = Chunks::default().next(&event);
/// assert_eq!(chunks[0].chunk, Chunk::Chunk { offset: 0, content: "Four".into() });
/// ```
#[derive(Debug, Default)]
pub struct Chunks {
    /// The runs that have not ended.
    runs: BTreeMap<String, RunState>,
}

/// The converter's state for one run.
#[derive(Debug, Default)]
struct RunState {
    /// The parts of the answer so far, joined.
    answer: String,
    /// The length of `answer`, in characters.
    characters: u64,
    /// The ids and names of the calls in the latest step.
    calls: Vec<(String, String)>,
}

impl Chunks {
    /// Returns the chunks of the next event.
    pub fn next(&mut self, envelope: &Envelope) -> Vec<ChunkEvent> {
        let Envelope { run_id, root_run_id, seq, ts, event } = envelope;
        let chunks = match event {
            Event::Response { .. } | Event::Error { .. } => {
                self.runs.remove(run_id).unwrap_or_default().end(event)
            }
            _ => self.runs.entry(run_id.clone()).or_default().next(event),
        };
        let (run_id, root_run_id, seq, ts) = (run_id.clone(), root_run_id.clone(), *seq, *ts);
        let of_event = ChunkEvent { run_id, root_run_id, seq, ts, chunk: Chunk::nothing() };
        chunks.into_iter().map(|chunk| ChunkEvent { chunk, ..of_event.clone() }).collect()
    }
}

impl RunState {
    fn next(&mut self, event: &Event) -> Vec<Chunk> {
        match event {
            Event::AnswerDelta { text, .. } => {
                let offset = self.characters;
                self.characters += text.chars().count() as u64;
                self.answer.push_str(text);
                vec![Chunk::Chunk { offset, content: text.clone() }]
            }
            Event::AnswerVoid { .. } => {
                (self.answer, self.characters) = (String::new(), 0);
                vec![Chunk::nothing()]
            }
            Event::Thinking { step, content } => {
                vec![Chunk::Thinking { step: *step, content: content.clone() }]
            }
            Event::ToolStart { step, call, label, body, args, names, .. } => {
                if *call == 1 {
                    self.calls.clear();
                }
                let id = format!("{step}.{call}");
                self.calls.push((id.clone(), label.clone()));
                vec![Chunk::ToolCall {
                    call: id,
                    name: label.clone(),
                    arguments: args.clone(),
                    names: names.clone(),
                    program: body.clone(),
                    question: None,
                }]
            }
            Event::Parked { call, question } => {
                let known = self.calls.iter().find(|(id, _)| id == call);
                vec![Chunk::ToolCall {
                    call: call.clone(),
                    name: known.map(|(_, name)| name.clone()).unwrap_or_default(),
                    arguments: Vec::new(),
                    names: Vec::new(),
                    program: None,
                    question: Some(question.clone()),
                }]
            }
            Event::Retry { error, .. } | Event::Recalled { error: Some(error), .. } => {
                vec![Chunk::Error { message: error.clone(), fatal: false }]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the chunks of a run's last event.
    fn end(self, event: &Event) -> Vec<Chunk> {
        match event {
            Event::Response { text, session_id, steps, usage, stop, data } => {
                let done = Chunk::Done {
                    text: text.clone(),
                    data: data.clone(),
                    stop: Some(*stop),
                    steps: *steps,
                    usage: *usage,
                    session_id: session_id.clone(),
                };
                self.rest(text).into_iter().chain([done]).collect()
            }
            Event::Error { message } => vec![
                Chunk::Error { message: message.clone(), fatal: true },
                Chunk::Done {
                    text: message.clone(),
                    data: None,
                    stop: None,
                    steps: 0,
                    usage: Usage::default(),
                    session_id: None,
                },
            ],
            _ => Vec::new(),
        }
    }
}

impl RunState {
    /// Returns the part of the whole answer that has not been sent yet, or `None` if there is none. If
    /// the text sent so far is not the beginning of the answer, returns the whole answer.
    fn rest(&self, answer: &str) -> Option<Chunk> {
        match answer.strip_prefix(&self.answer) {
            Some("") => None,
            Some(rest) => Some(Chunk::Chunk { offset: self.characters, content: rest.to_owned() }),
            None => Some(Chunk::Chunk { offset: 0, content: answer.to_owned() }),
        }
    }
}

impl Chunk {
    /// Returns a chunk that starts a new answer.
    fn nothing() -> Chunk {
        Chunk::Chunk { offset: 0, content: String::new() }
    }
}

#[cfg(test)]
mod tests;
