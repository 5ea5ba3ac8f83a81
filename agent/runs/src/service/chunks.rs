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

/// Maximum number of bytes of a model's output that are searched for pieces of the answer. If the
/// output is longer, the rest of the answer is sent in one piece once it is complete.
const MAX_DRAFT: usize = 1 << 20;

/// A chunk of a run's stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Chunk {
    /// A piece of the answer.
    Chunk {
        /// Number of characters of the answer before this piece. If it is 0, a new answer starts:
        /// discard all earlier pieces.
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
/// let (run_id, text) = ("r".to_owned(), "ToolCall::Response(\"\"\"\nFour".to_owned());
/// let event = Event::Delta { step: 1, text };
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
    draft: Draft,
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
        if let Event::Delta { step, text } = event {
            return self.draft.add(*step, text).into_iter().collect();
        }
        if matches!(event, Event::ToolStart { .. } | Event::Retry { .. }) {
            // The model's text is not an answer, or has been discarded.
            self.draft = Draft::default();
        }
        match event {
            Event::Thinking { step, content } => {
                vec![Chunk::Thinking { step: *step, content: content.clone() }]
            }
            Event::ToolStart { step, call, label, body, args, .. } => {
                if *call == 1 {
                    self.calls.clear();
                }
                let id = format!("{step}.{call}");
                self.calls.push((id.clone(), label.clone()));
                vec![Chunk::ToolCall {
                    call: id,
                    name: label.clone(),
                    arguments: args.clone(),
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
                self.draft.rest(text).into_iter().chain([done]).collect()
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

impl Chunk {
    /// Returns an empty chunk for use as a placeholder.
    fn nothing() -> Chunk {
        Chunk::Chunk { offset: 0, content: String::new() }
    }
}

/// The model's output that has been received so far, and the answer that it contains.
#[derive(Debug, Default)]
struct Draft {
    step: u32,
    /// Size of all output received in this step, in bytes.
    size: usize,
    /// The received output that has not been read yet.
    unread: String,
    /// The part of the output in which `unread` starts.
    part: Part,
    /// The part of the answer that has been sent.
    sent: String,
    /// Length of `sent`, in characters.
    characters: u64,
}

/// A part of a model's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// The kind of the next part is not known yet.
    #[default]
    Start,
    /// A thought that ends with this tag.
    Thought(&'static str),
    /// The arguments of `ToolCall::Response(`.
    Call,
    /// The whitespace between `"""` and the answer.
    Opened,
    /// The answer between `"""` quotation marks.
    Quoted,
    /// Output without a call so far. It is the answer if no call follows.
    Plain,
    /// Another call, or output after the answer.
    Silent,
}

/// The start of any call in the text dialect.
const CALL: &str = "ToolCall::";
/// The start of the call whose argument is the answer.
const ANSWER: &str = "ToolCall::Response(";
/// The quotation marks around the answer in a `ToolCall::Response(` call.
const QUOTES: &str = "\"\"\"";
/// The opening and closing tags of thoughts.
const THOUGHTS: [(&str, &str); 7] = [
    ("<reasoning>", "</reasoning>"),
    ("<reason>", "</reason>"),
    ("<thinking>", "</thinking>"),
    ("<think>", "</think>"),
    ("<thoughts>", "</thoughts>"),
    ("<thought>", "</thought>"),
    ("<scratchpad>", "</scratchpad>"),
];
/// Maximum size of the whitespace held back at the end of an answer, in bytes.
const MAX_SPACE: usize = 64;

/// The next part, the number of bytes that were read, and the piece of the answer that these bytes
/// contain.
type Read<'a> = (Part, usize, &'a str);

impl Draft {
    /// Adds a piece of the model's output. Returns the piece of the answer that it completes, or
    /// `None` if there is none.
    fn add(&mut self, step: u32, piece: &str) -> Option<Chunk> {
        if self.step != step {
            *self = Draft { step, ..Draft::default() };
        }
        self.size = self.size.saturating_add(piece.len());
        if self.size > MAX_DRAFT || self.part == Part::Silent {
            (self.part, self.unread) = (Part::Silent, String::new());
            return None;
        }
        self.unread.push_str(piece);
        let (mut new, mut at) = (String::new(), 0);
        while let Some((part, length, shown)) =
            self.unread.get(at..).and_then(|rest| read(self.part, rest))
        {
            if (self.part, part) == (Part::Plain, Part::Start) {
                // The text before a call is not the answer.
                (self.sent, self.characters) = (String::new(), 0);
                new.clear();
            }
            new.push_str(shown);
            (self.part, at) = (part, at + length);
        }
        self.unread.drain(..at);
        if new.is_empty() {
            return None;
        }
        let offset = self.characters;
        self.characters += new.chars().count() as u64;
        self.sent.push_str(&new);
        Some(Chunk::Chunk { offset, content: new })
    }

    /// Returns the part of the whole answer that has not been sent yet, or `None` if there is none.
    /// If the text sent so far is not the beginning of the answer, returns the whole answer.
    fn rest(self, answer: &str) -> Option<Chunk> {
        match answer.strip_prefix(&self.sent) {
            Some("") => None,
            Some(rest) => Some(Chunk::Chunk { offset: self.characters, content: rest.to_owned() }),
            None => Some(Chunk::Chunk { offset: 0, content: answer.to_owned() }),
        }
    }
}

/// Continues reading `part` from `rest`, the unread output. Returns `None` if more output must be
/// received first.
fn read(part: Part, rest: &str) -> Option<Read<'_>> {
    if matches!(part, Part::Start | Part::Call | Part::Opened) {
        let space = rest.len() - rest.trim_start().len();
        if space > 0 {
            return Some((part, space, ""));
        }
    }
    match part {
        Part::Silent => None,
        Part::Start => start(rest),
        Part::Thought(close) => match rest.find(close) {
            Some(end) => Some((Part::Start, end + close.len(), "")),
            None => Some((part, rest.len() - held(rest, close), "")).filter(|read| read.1 > 0),
        },
        Part::Call if rest.starts_with(QUOTES) => Some((Part::Opened, QUOTES.len(), "")),
        Part::Call if QUOTES.starts_with(rest) => None,
        Part::Call => Some((Part::Silent, 0, "")),
        Part::Opened => Some((Part::Quoted, 0, "")).filter(|_| !rest.is_empty()),
        Part::Quoted => match rest.find(QUOTES) {
            Some(end) => Some((Part::Silent, end, rest.get(..end)?.trim_end())),
            None => shown(part, rest, QUOTES),
        },
        Part::Plain => match rest.find(CALL) {
            Some(call) => Some((Part::Start, call, "")),
            None => shown(part, rest, CALL),
        },
    }
}

/// Reads the beginning of the output. `rest` has no leading whitespace. Returns `None` if more
/// output must be received first.
fn start(rest: &str) -> Option<Read<'_>> {
    if let Some((open, close)) = THOUGHTS.iter().find(|(open, _)| rest.starts_with(open)) {
        return Some((Part::Thought(close), open.len(), ""));
    }
    if rest.starts_with(ANSWER) {
        return Some((Part::Call, ANSWER.len(), ""));
    }
    let may_become = |whole: &str| whole.starts_with(rest);
    if may_become(ANSWER) || THOUGHTS.iter().any(|(open, _)| may_become(open)) {
        return None;
    }
    let part = if rest.starts_with(CALL) { Part::Silent } else { Part::Plain };
    Some((part, 0, ""))
}

/// Returns the piece of the answer to send, or `None` if there is nothing to send yet. Holds back
/// trailing whitespace, up to a limit, and characters that may be the beginning of `mark`.
fn shown<'a>(part: Part, rest: &'a str, mark: &str) -> Option<Read<'a>> {
    let known = rest.get(..rest.len() - held(rest, mark))?;
    let trimmed = known.trim_end();
    let piece = if known.len() - trimmed.len() > MAX_SPACE { known } else { trimmed };
    (!piece.is_empty()).then_some((part, piece.len(), piece))
}

/// Returns the length, in bytes, of the longest suffix of `text` that is a prefix of `mark`.
fn held(text: &str, mark: &str) -> usize {
    let ends = |length: &usize| mark.get(..*length).is_some_and(|begin| text.ends_with(begin));
    (1..mark.len()).rev().find(ends).unwrap_or(0)
}

#[cfg(test)]
mod tests;
