//! Models, which the runtime asks for the next action.
//!
//! [`Model`] is the port. [`RemoteModel`] implements it for every endpoint that uses the
//! chat-completions or the messages protocol, [`Cassette`] answers from a recording, and
//! [`Recorder`] records the turns of any model.
//!
//! ```
//! use wattle_model::{Cassette, Model, ModelRequest};
//! use wattle_machine::Message;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let text = "{\"wattle_cassette\":1,\"model\":\"demo\"}\n{\"reply\":\"four\"}\n";
//! let model = Cassette::parse(text).unwrap();
//! let messages = [Message::user("two and two?")];
//! let reply = model.complete(ModelRequest::new(&messages)).await.unwrap();
//! assert_eq!(reply.text, "four");
//! # }
//! ```

mod breaker;
mod cassette;
mod chat;
mod context;
mod dialect;
mod embedding;
mod endpoint;
mod error;
mod frames;
mod listing;
mod messages;
mod meter;
mod models;
pub mod moderation;
pub mod output;
mod prices;
mod protocol;
mod provider_error;
mod provider_fields;
mod recording;
mod remote;
mod reply;
mod request;
mod retries;
mod sse;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use wattle_egress::{Egress, Policy};
use wattle_machine::{AnswerPart, FunctionCall, ModelAnswer, ProviderFields, Usage};

pub use breaker::{BreakerState, EndpointHealth, endpoints};
pub use cassette::{Cassette, Recorder};
pub use context::ContextExcess;
pub use dialect::DialectSetting;
pub use endpoint::{Endpoint, EndpointSettings, Preset, presets, resolve};
pub use error::{EndpointError, EndpointErrorKind, ModelError, ModelErrorKind};
pub use listing::list_models;
pub use meter::UsageMeter;
pub use models::{BALANCED_CLASS, CLASS_PREFIX, Models, OneModel};
pub use prices::{Price, Prices};
pub use recording::MAX_RECORDING;
pub use remote::RemoteModel;
pub use reply::{BadReply, ReplyReader};
pub use request::ModelRequest;
pub use retries::{Timeouts, ask_within, turn_deadline};
pub use wattle_egress::secrets::{ApiKey, Mask};
pub use wattle_machine::{FunctionChoice, FunctionTool, ThinkingEffort};

/// A model that answers a conversation with its next message.
pub trait Model: Send + Sync {
    /// Returns the model's name, as the endpoint or the recording spells it.
    fn name(&self) -> &str;

    /// Returns the name of the provider, or an empty string if it is unknown.
    fn provider(&self) -> &str {
        ""
    }

    /// Returns a string that tells the model's endpoint from others, such as its base URL. By
    /// default, this is the model's name.
    fn endpoint(&self) -> &str {
        self.name()
    }

    /// Returns true if the model is known to support function calling. The endpoint may still
    /// reject a request with functions.
    fn takes_functions(&self) -> bool {
        false
    }

    /// Returns true if the model's provider can constrain an answer to a JSON Schema.
    fn constrains_output(&self) -> bool {
        false
    }

    /// Returns the size of the model's context window, in tokens, if its endpoint has reported it.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Returns the model for the requests of one of several owners, such as the tenants of a server. If
    /// requests of an owner fail, those of the others do not have to wait. Returns `None` if the model
    /// does not distinguish owners.
    fn for_owner(&self, _owner: &str) -> Option<Arc<dyn Model>> {
        None
    }

    /// Returns the endpoint's key, or `None` if there is none. The key is masked in records, but
    /// not in executed programs or in text shown to the user.
    fn key(&self) -> Option<&ApiKey> {
        None
    }

    /// Asks for the next message and returns it when it is complete.
    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;

    /// Asks for the next message, passes its parts to `on_delta` as they arrive, and returns the
    /// complete message. By default, each part is passed in one piece.
    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let reply = self.complete(request);
        async move {
            reply.await.inspect(|reply| reply.parts().for_each(|part| on_delta(Delta::Part(part))))
        }
        .boxed()
    }

    /// Returns the embedding of a string, or an error if the model does not support embeddings.
    fn embed<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        ready(Err(ModelError::no_embeddings(self.name()))).boxed()
    }
}

/// A shared model is a model.
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider(&self) -> &str {
        (**self).provider()
    }

    fn endpoint(&self) -> &str {
        (**self).endpoint()
    }

    fn takes_functions(&self) -> bool {
        (**self).takes_functions()
    }

    fn constrains_output(&self) -> bool {
        (**self).constrains_output()
    }

    fn for_owner(&self, owner: &str) -> Option<Arc<dyn Model>> {
        (**self).for_owner(owner)
    }

    fn window(&self) -> Option<u64> {
        (**self).window()
    }

    fn key(&self) -> Option<&ApiKey> {
        (**self).key()
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        (**self).complete(request)
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        (**self).stream(request, on_delta)
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        (**self).embed(text)
    }
}

/// An update to a message that is being streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// The next part of the message.
    Part(AnswerPart<'a>),
    /// The request failed, or waits since others fail, and is repeated. The parts received so far
    /// must be discarded.
    Retry {
        /// Delay before the next attempt. The endpoint may have to be waited for longer.
        after: Duration,
        /// The failure.
        reason: &'a str,
    },
}

/// A model's complete message, as the provider sent it and as recordings store it. The state
/// machine receives a [`ModelAnswer`], which contains only the parts that its decisions depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text of the message.
    pub text: String,
    /// The function calls, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// The model's reasoning, if the provider separates it from the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The token counts that the provider reported. Zero if it reported none.
    #[serde(default)]
    pub usage: Usage,
    /// The finish reason in the provider's spelling: `stop`, `length`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The provider's own fields, such as signed reasoning, which the next requests to the same
    /// model must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderFields>,
}

impl ModelReply {
    /// Returns the parts of the message: its reasoning, its text and its function calls.
    pub fn parts(&self) -> impl Iterator<Item = AnswerPart<'_>> {
        let texts = [
            AnswerPart::Reasoning(self.reasoning.as_deref().unwrap_or_default()),
            AnswerPart::Text(&self.text),
        ];
        let is_filled = |part: &AnswerPart<'_>| match part {
            AnswerPart::Reasoning(text) | AnswerPart::Text(text) => !text.is_empty(),
            AnswerPart::Call { .. } => true,
        };
        let calls = self.calls.iter().enumerate().map(|(index, call)| AnswerPart::Call {
            index,
            name: &call.name,
            arguments: &call.arguments,
        });
        texts.into_iter().filter(is_filled).chain(calls)
    }

    /// Converts the reply to the machine's input. `usage` is the priced usage of the request.
    #[must_use]
    pub fn into_answer(self, usage: Usage) -> ModelAnswer {
        let is_truncated = self.is_truncated();
        let filtered = self.filter_reason().map(str::to_owned);
        let ModelReply { text, calls, reasoning, provider, .. } = self;
        ModelAnswer { text, calls, is_truncated, reasoning, filtered, provider, usage }
    }

    /// Returns the finish reason if it means that the provider withheld the message or the rest of
    /// it, such as `content_filter`, and `None` otherwise.
    pub fn filter_reason(&self) -> Option<&str> {
        const WORDS: &[&str] = &[
            "content_filter",
            "content_filtered",
            "refusal",
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "image_safety",
            "language",
            "sensitive",
            "guardrail_intervened",
            "guardrails",
            "moderation",
            "model_armor",
            "blocked",
        ];
        let is_filter = |finish: &&str| WORDS.iter().any(|word| finish.eq_ignore_ascii_case(word));
        self.finish.as_deref().filter(is_filter)
    }

    /// Returns true if the message is incomplete: it reached its maximum length, or the provider
    /// withheld the rest.
    pub fn is_truncated(&self) -> bool {
        const WORDS: &[&str] = &[
            "length",
            "max_tokens",
            "model_length",
            "max_output_tokens",
            "model_context_window_exceeded",
        ];
        self.filter_reason().is_some()
            || self
                .finish
                .as_deref()
                .is_some_and(|finish| WORDS.iter().any(|word| finish.eq_ignore_ascii_case(word)))
    }
}

/// The embedding of a string: a vector that is close to the vectors of strings with a similar
/// meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingReply {
    /// The coordinates of the vector.
    pub vector: Vec<f64>,
    /// The token counts that the provider reported. Zero if it reported none.
    #[serde(default)]
    pub usage: Usage,
}

/// A type that can be converted to an agent's model: a model, or the name of one.
pub trait IntoModel {
    /// Returns the shared model.
    ///
    /// # Errors
    /// If the model cannot be used. The error names what is missing.
    fn into_model(self) -> Result<Arc<dyn Model>, EndpointError>;
}

impl<M: Model + 'static> IntoModel for M {
    fn into_model(self) -> Result<Arc<dyn Model>, EndpointError> {
        Ok(Arc::new(self))
    }
}

/// The name of a model, such as `openai:gpt-5`. See [`resolve`] for its preset, its endpoint and
/// its key.
impl IntoModel for &str {
    fn into_model(self) -> Result<Arc<dyn Model>, EndpointError> {
        let settings = EndpointSettings { model: Some(self), ..EndpointSettings::default() };
        let endpoint = resolve(&settings, |name| std::env::var(name).ok())?;
        let egress = Egress::new(Policy::default());
        Ok(Arc::new(RemoteModel::new(endpoint, &egress, Timeouts::default())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filtered_reply_says_so() {
        let reply =
            |finish: &str| ModelReply { finish: Some(finish.to_owned()), ..ModelReply::default() };
        for finish in ["content_filter", "SAFETY", "refusal", "RECITATION", "PROHIBITED_CONTENT"] {
            let answer = reply(finish).into_answer(Usage::default());
            assert_eq!((answer.filtered.as_deref(), answer.is_truncated), (Some(finish), true));
        }
        for (finish, is_truncated) in [("stop", false), ("length", true), ("MAX_TOKENS", true)] {
            let answer = reply(finish).into_answer(Usage::default());
            assert_eq!((answer.filtered, answer.is_truncated), (None, is_truncated));
        }
    }
}
