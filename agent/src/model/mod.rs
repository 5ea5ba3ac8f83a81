//! Models: what the runtime asks for the next action.
//!
//! [`Model`] is the port. [`RemoteModel`] stands behind it for every endpoint that speaks the chat-completions or the messages
//! protocol, [`Cassette`] answers from a recording, and [`Recorder`] makes one from any model.
//!
//! ```
//! use wattle_agent::model::{Cassette, Model, ModelRequest};
//! use wattle_machine::Message;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let model = Cassette::parse("{\"wattle_cassette\":1,\"model\":\"demo\"}\n{\"reply\":\"four\"}\n").unwrap();
//! let messages = [Message::user("two and two?")];
//! let reply = model.complete(ModelRequest::new(&messages)).await.unwrap();
//! assert_eq!(reply.text, "four");
//! # }
//! ```

mod anthropic;
mod cassette;
mod deadline;
mod embedding;
mod endpoint;
mod error;
mod key;
mod prices;
mod remote;
mod reply;
mod sse;
mod wire;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use wattle_machine::{FunctionCall, Message, Usage};

pub use cassette::{Cassette, Recorder};
pub use deadline::{Timeouts, ask_within, turn_deadline};
pub use endpoint::{Endpoint, EndpointSettings, Preset, presets, resolve};
pub use error::{EndpointError, EndpointErrorKind, ModelError, ModelErrorKind};
pub use key::{ApiKey, Mask};
pub use prices::{Price, Prices};
pub use remote::RemoteModel;
pub use reply::{BadReply, ReplyReader};
pub use wattle_machine::FunctionTool;

/// Answers a conversation with its next message.
pub trait Model: Send + Sync {
    /// Names the model, as an endpoint or a recording does.
    fn name(&self) -> &str;

    /// Whether the model is known to take functions, as far as anything has shown yet.
    fn takes_functions(&self) -> bool {
        false
    }

    /// Returns what masks the model's key in what is recorded of its words: traces, telemetry, recordings. What runs, and what the user
    /// reads, is what the model said.
    fn mask(&self) -> Mask {
        Mask::default()
    }

    /// Asks for the next message and gives it when it is whole.
    fn complete<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>>;

    /// Asks for the next message and hands its text to `on_delta` as it comes; gives the whole of it in the end.
    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;

    /// Gives the embedding of a text. Models without one say so.
    fn embed<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        ready(Err(ModelError::embeds_nothing(self.name()))).boxed()
    }
}

/// Is one question to a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The functions that the model may call in place of an answer; most often none.
    pub functions: &'a [FunctionTool],
    /// How freely the model chooses its words, from 0 to 2.
    pub temperature: f32,
    /// Greatest length of the answer in tokens.
    pub max_tokens: u32,
}

impl<'a> ModelRequest<'a> {
    /// Asks with temperature 0.3 for at most 4,096 tokens.
    pub fn new(messages: &'a [Message]) -> Self {
        Self { messages, functions: &[], temperature: 0.3, max_tokens: 4096 }
    }
}

/// Is a part of a message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// The next piece of the text.
    Text(&'a str),
    /// The connection broke and the question is asked again: the text shown so far is void.
    Restart,
}

/// Is a model's whole message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReply {
    /// What the model says.
    pub text: String,
    /// The functions that it calls, in the order in which it named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// What it thought before, where the provider tells that apart from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tokens, as the provider counts them; zeros where it does not.
    #[serde(default)]
    pub usage: Usage,
    /// Why the message ended, in the provider's words: `stop`, `length`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
}

impl ModelReply {
    /// If true, the message is not all that the model would have said: it reached its maximum length, or the provider withheld the
    /// rest.
    pub fn is_truncated(&self) -> bool {
        const WORDS: &[&str] = &[
            "length",
            "max_tokens",
            "model_length",
            "max_output_tokens",
            "model_context_window_exceeded",
            "content_filter",
            "refusal",
        ];
        self.finish.as_deref().is_some_and(|finish| WORDS.iter().any(|word| finish.eq_ignore_ascii_case(word)))
    }
}

/// Is a text as a model places it among others: texts of like meaning are near each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Embedded {
    /// The coordinates.
    pub vector: Vec<f64>,
    /// The tokens, as the provider counts them; zeros where it does not.
    #[serde(default)]
    pub usage: Usage,
}
