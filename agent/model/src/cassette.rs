//! Recorded models: playback of turns from a cassette file, and the recorder that writes the file.
//!
//! A recording contains one JSON object per line: a header, then the turns in the order in which
//! they were requested. A request gets the turn that was recorded for the same messages, regardless
//! of the order in which requests arrive, because programs may send several requests concurrently.
//! A request that was not recorded gets the first remaining turn. In this example, two long lines
//! are wrapped:
//! ```text
//! {"wattle_cassette":1,"model":"some-model"}
//! {"request":{"digests":["5f0c…","91ab…"],"last":{"role":"user","content":"…"}},
//!  "reply":{"text":"…","usage":{…}}}
//! {"reply":"written by hand: the text is enough"}
//! {"reply":{"text":"","calls":[{"id":"1","name":"kv_get","arguments":"{\"k\":\"name\"}"}]}}
//! {"request":{"digests":["77ab…"],"last":{"role":"user","content":"a text"}},
//!  "reply":{"vector":[0.1,0.2],"usage":{…}}}
//! {"request":{…},"reply":{"text":"the key is ***"},"masked":true}
//! ```
//!
//! For each message of the request, `digests` contains the first 16 hex digits of the message's
//! BLAKE3 hash. `last` contains the last message of the request. Before messages are hashed or
//! recorded, the run's nonce is replaced with `CODE`, so that a recording can be played in any run.
//! A `vector` is the embedding of the only message in the request.
//!
//! A recording can be shared, so keys and secrets are masked in it. A turn whose reply contains a
//! mask is marked as `masked`. Such a turn is not played back, because it differs from the model's
//! actual reply.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_files::open_lines;
use wattle_machine::{AnswerPart, FunctionCall, Message, ProviderFields, Role, announced_nonce};
use wattle_rt::truncate;

use super::{
    ApiKey, Delta, EmbeddingReply, Mask, Model, ModelError, ModelReply, ModelRequest, recording,
};

/// The version of the recording format.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    wattle_cassette: u32,
    #[serde(default)]
    model: String,
}

#[derive(Serialize, Deserialize)]
struct Turn {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RecordedRequest>,
    reply: RecordedReply,
    /// If true, the reply contains a mask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    masked: bool,
}

#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
struct RecordedRequest {
    digests: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Message>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`reply` is neither a text nor an object with a `text` or a `vector`"
)]
enum RecordedReply {
    Text(String),
    Reply(ModelReply),
    Embedded(EmbeddingReply),
}

impl RecordedReply {
    /// Masks keys and secrets in the reply.
    fn masked(self, mask: &Mask) -> Self {
        let masked = |reply: ModelReply| ModelReply {
            text: mask.text(&reply.text),
            reasoning: reply.reasoning.map(|thought| mask.text(&thought)),
            calls: masked_calls(reply.calls, mask),
            provider: reply.provider.map(|own| ProviderFields {
                fields: mask.text(&own.fields).into(),
                origin: mask.text(&own.origin).into(),
            }),
            ..reply
        };
        match self {
            Self::Text(text) => Self::Text(mask.text(&text)),
            Self::Reply(reply) => Self::Reply(masked(reply)),
            Self::Embedded(embedded) => Self::Embedded(embedded),
        }
    }
}

fn masked_calls(calls: Vec<FunctionCall>, mask: &Mask) -> Vec<FunctionCall> {
    let masked = |call: FunctionCall| FunctionCall {
        id: mask.text(&call.id),
        name: mask.text(&call.name),
        arguments: match mask.json(Json::String(call.arguments.into())) {
            Json::String(text) => text.into(),
            other => other.to_string().into(),
        },
    };
    calls.into_iter().map(masked).collect()
}

/// The text that replaces a run's nonce in a recording.
const NONCE: &str = "CODE";

/// Returns the messages with the run's nonce replaced by a constant, so that they are the same in
/// every run.
fn canonical(messages: &[Message]) -> Cow<'_, [Message]> {
    let Some(nonce) = announced_nonce(messages) else { return Cow::Borrowed(messages) };
    let mut canonical = messages.to_vec();
    for message in &mut canonical {
        message.content = message.content.replace(nonce, NONCE).into();
    }
    Cow::Owned(canonical)
}

impl RecordedRequest {
    fn of(messages: &[Message]) -> Self {
        Self { digests: messages.iter().map(digest).collect(), last: messages.last().cloned() }
    }

    /// Returns a description of the first difference between `messages` and the recorded request,
    /// or `None` if there is no difference.
    fn difference(&self, messages: &[Message]) -> Option<String> {
        let (recorded, asked) = (self.digests.len(), messages.len());
        for (at, message) in messages.iter().enumerate().take(recorded) {
            if self.digests.get(at) == Some(&digest(message)) {
                continue;
            }
            let what =
                format!("message {} of {asked} ({}) is another one", at + 1, role(message.role));
            let was = self.last.as_ref().filter(|_| at + 1 == recorded);
            return Some(match was {
                Some(was) => {
                    format!("{what}: {}", first_difference(&was.content, &message.content))
                }
                None => what,
            });
        }
        (recorded != asked).then(|| format!("it has {asked} messages, recorded were {recorded}"))
    }
}

fn digest(message: &Message) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(role(message.role).as_bytes()).update(&[0]).update(message.content.as_bytes());
    for call in &message.calls {
        hasher
            .update(&[0])
            .update(call.name.as_bytes())
            .update(&[0])
            .update(call.arguments.as_bytes());
    }
    let mut hex = hasher.finalize().to_hex().to_string();
    hex.truncate(16);
    hex
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn first_difference(was: &str, is: &str) -> String {
    let mut was_lines = was.lines();
    let mut line = 1;
    for is_line in is.lines() {
        match was_lines.next() {
            Some(was_line) if was_line == is_line => line += 1,
            Some(was_line) => {
                return format!(
                    "line {line} was `{}`, is `{}`",
                    truncate(was_line, QUOTED),
                    truncate(is_line, QUOTED)
                );
            }
            None => return format!("line {line} `{}` was not there", truncate(is_line, QUOTED)),
        }
    }
    match was_lines.next() {
        Some(was_line) => format!("line {line} `{}` is missing", truncate(was_line, QUOTED)),
        None => "it differs in its role or line ends".to_owned(),
    }
}

/// Maximum length of a line that a description of a difference quotes, in characters.
const QUOTED: usize = 80;

/// A model that answers from a recording. A request gets the turn that was recorded for it, or else
/// the first remaining turn.
#[derive(Debug)]
pub struct Cassette {
    model: String,
    replies: Turns<ModelReply>,
    embedded: Turns<EmbeddingReply>,
    strict: bool,
}

/// The recorded turns of one kind (replies or embeddings), in the order of recording.
#[derive(Debug)]
struct Turns<T> {
    turns: Vec<RecordedTurn<T>>,
    /// The indices of the turns that were recorded for each request, in the order of recording. The
    /// key of a request is the digests of its messages.
    by_request: HashMap<Vec<String>, Vec<usize>>,
    /// A flag for each turn: true if the turn was played.
    played: Mutex<Vec<bool>>,
}

#[derive(Debug)]
struct RecordedTurn<T> {
    asked: Option<RecordedRequest>,
    reply: T,
    masked: bool,
}

impl<T: Clone> Turns<T> {
    fn new(turns: Vec<RecordedTurn<T>>) -> Self {
        let mut by_request: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        for (at, turn) in turns.iter().enumerate() {
            if let Some(asked) = &turn.asked {
                by_request.entry(asked.digests.clone()).or_default().push(at);
            }
        }
        let played = Mutex::new(vec![false; turns.len()]);
        Self { turns, by_request, played }
    }

    fn play(&self, messages: &[Message], strict: bool) -> Result<T, ModelError> {
        let messages = &*canonical(messages);
        let digests: Vec<String> = messages.iter().map(digest).collect();
        let at = {
            let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
            let is_left = |at: &usize| played.get(*at) == Some(&false);
            let recorded =
                self.by_request.get(&digests).and_then(|turns| turns.iter().copied().find(is_left));
            let at = recorded.or_else(|| (0..played.len()).find(is_left));
            let at = at.ok_or_else(|| ModelError::recording_ended(self.turns.len()))?;
            if let Some(played) = played.get_mut(at) {
                *played = true;
            }
            at
        };
        let RecordedTurn { asked, reply, masked } =
            self.turns.get(at).ok_or_else(|| ModelError::recording_ended(self.turns.len()))?;
        if *masked {
            return Err(ModelError::recording_masked(at + 1));
        }
        let asked = asked.as_ref().filter(|_| strict);
        match asked.and_then(|asked| asked.difference(messages)) {
            Some(what) => Err(ModelError::recording_differs(at + 1, &what)),
            None => Ok(reply.clone()),
        }
    }
}

impl Cassette {
    /// Opens a recording.
    ///
    /// # Errors
    /// If the file is not a regular file of at most 64 MiB, cannot be read, or is not a valid
    /// recording. The error names the line.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let text = recording::read(path);
        Self::parse(&text.map_err(|why| ModelError::no_recording(path, &why))?)
    }

    /// Parses a recording.
    ///
    /// # Errors
    /// If the text is not a valid recording. The error names the line.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let model = read_header(lines.next())?.model;
        let (mut replies, mut embedded) = (Vec::new(), Vec::new());
        for (at, line) in lines {
            let turn: Turn = serde_json::from_str(line)
                .map_err(|why| invalid_line(at, "turn `{\"reply\":…}`", &why))?;
            let Turn { request: asked, reply, masked } = turn;
            match reply {
                RecordedReply::Text(text) => {
                    let reply = ModelReply { text, ..ModelReply::default() };
                    replies.push(RecordedTurn { asked, reply, masked });
                }
                RecordedReply::Reply(reply) => replies.push(RecordedTurn { asked, reply, masked }),
                RecordedReply::Embedded(reply) => {
                    embedded.push(RecordedTurn { asked, reply, masked })
                }
            }
        }
        Ok(Self {
            model,
            replies: Turns::new(replies),
            embedded: Turns::new(embedded),
            strict: false,
        })
    }

    /// Makes playback fail if a request differs from the recorded one. Turns that were recorded
    /// without a request match any request.
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    fn play(&self, messages: &[Message]) -> Result<ModelReply, ModelError> {
        self.replies.play(messages, self.strict)
    }
}

fn read_header(first: Option<(usize, &str)>) -> Result<Header, ModelError> {
    let (at, line) = first.ok_or_else(|| ModelError::bad_recording(1, "the file is empty"))?;
    let header: Header = serde_json::from_str(wattle_rt::without_bom(line)).map_err(|why| {
        let why = format!("it is not a header `{{\"wattle_cassette\":1,…}}`: {why}");
        ModelError::bad_recording(at, &why)
    })?;
    if header.wattle_cassette != VERSION {
        let why = format!(
            "version {} is unknown, this program reads version {VERSION}",
            header.wattle_cassette
        );
        return Err(ModelError::bad_recording(at, &why));
    }
    Ok(header)
}

/// Creates the error for an invalid line. The error omits the parser's position, which is relative
/// to the line and could be mistaken for a position in the file.
fn invalid_line(at: usize, what: &str, why: &serde_json::Error) -> ModelError {
    let why = why.to_string();
    let why = why.split(" at line ").next().unwrap_or_default();
    ModelError::bad_recording(at, &format!("it is not a {what}: {why}"))
}

impl Model for Cassette {
    fn name(&self) -> &str {
        &self.model
    }

    fn takes_functions(&self) -> bool {
        self.replies.turns.iter().any(|turn| !turn.reply.calls.is_empty())
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        ready(self.play(request.messages)).boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let reply = self.play(request.messages);
        for part in reply.iter().flat_map(ModelReply::parts) {
            let (AnswerPart::Text(text)
            | AnswerPart::Reasoning(text)
            | AnswerPart::Call { arguments: text, .. }) = part;
            for word in text.split_inclusive(char::is_whitespace) {
                on_delta(Delta::Part(match part {
                    AnswerPart::Text(_) => AnswerPart::Text(word),
                    AnswerPart::Reasoning(_) => AnswerPart::Reasoning(word),
                    AnswerPart::Call { index, name, .. } => {
                        AnswerPart::Call { index, name, arguments: word }
                    }
                }));
            }
        }
        ready(reply).boxed()
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        ready(self.embedded.play(&[Message::user(text)], self.strict)).boxed()
    }
}

/// A wrapper that records the turns of a model. Failed turns are not recorded.
pub struct Recorder {
    model: Arc<dyn Model>,
    file: Mutex<File>,
    mask: Mask,
}

impl Recorder {
    /// Creates a recorder that writes the turns of `model` to a file. The values in `mask` and the
    /// model's key are masked. If the file already contains a recording, turns are appended to it.
    ///
    /// # Errors
    /// If the file cannot be written, or is not a recording.
    pub fn create(model: Arc<dyn Model>, path: &Path, mask: Mask) -> Result<Self, ModelError> {
        model.key().inspect(|key| mask.add_key(key));
        let cannot_open = |why| ModelError::no_recording(path, &why);
        // Links are not followed: a link in the workdir could point to a file that no run may
        // write.
        let mut file = open_lines(path).map_err(cannot_open)?;
        let text = recording::read_open(&file).map_err(cannot_open)?;
        if text.trim().is_empty() {
            let header = Header { wattle_cassette: VERSION, model: model.name().to_owned() };
            write_line(&mut file, &header)?;
        } else {
            Cassette::parse(&text)?;
            if !text.ends_with('\n') {
                file.write_all(b"\n").map_err(|why| ModelError::unwritable_recording(&why))?;
            }
        }
        Ok(Self { model, file: Mutex::new(file), mask })
    }

    fn record(&self, messages: &[Message], reply: RecordedReply) -> Result<(), ModelError> {
        let mut asked = RecordedRequest::of(&canonical(messages));
        if let Some(last) = &mut asked.last {
            last.content = self.mask.text(&last.content).into();
            last.calls = masked_calls(std::mem::take(&mut last.calls), &self.mask);
            last.provider = None;
        }
        let clean = reply.clone().masked(&self.mask);
        let turn = Turn { request: Some(asked), masked: clean != reply, reply: clean };
        write_line(&mut self.file.lock().unwrap_or_else(PoisonError::into_inner), &turn)
    }
}

/// Writes a line in one system call, so that concurrent processes do not interleave their lines.
fn write_line(file: &mut File, line: &impl Serialize) -> Result<(), ModelError> {
    let written = serde_json::to_vec(line).map_err(std::io::Error::from).and_then(|mut line| {
        line.push(b'\n');
        file.write_all(&line)?;
        file.flush()
    });
    written.map_err(|why| ModelError::unwritable_recording(&why))
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn takes_functions(&self) -> bool {
        self.model.takes_functions()
    }

    fn constrains_output(&self) -> bool {
        self.model.constrains_output()
    }

    fn endpoint(&self) -> &str {
        self.model.endpoint()
    }

    fn key(&self) -> Option<&ApiKey> {
        self.model.key()
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let reply = self.model.complete(request).await?;
            self.record(request.messages, RecordedReply::Reply(reply.clone()))?;
            Ok(reply)
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let reply = self.model.stream(request, on_delta).await?;
            self.record(request.messages, RecordedReply::Reply(reply.clone()))?;
            Ok(reply)
        }
        .boxed()
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        async move {
            let embedded = self.model.embed(text).await?;
            self.record(&[Message::user(text)], RecordedReply::Embedded(embedded.clone()))?;
            Ok(embedded)
        }
        .boxed()
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("model", &self.model.name()).finish_non_exhaustive()
    }
}
