//! A meter between an attempt and its model. It counts tokens, enforces the budget, and stores the
//! last conversation and the error of the last request.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wattle_agent::model::{
    ApiKey, Delta, EmbeddingReply, Model, ModelError, ModelReply, ModelRequest,
};

use crate::attempt::Tokens;
use crate::transcript::Conversation;

/// Estimated number of bytes per token, for providers that do not report token counts.
const BYTES_PER_TOKEN: usize = 4;

/// A model whose token usage is counted and limited.
pub(crate) struct MeteredModel {
    model: Arc<dyn Model>,
    budget: Option<u64>,
    /// The cancellation token of the attempt. The meter cancels it when the budget is exceeded.
    cancel: CancellationToken,
    reading: Mutex<MeterReading>,
}

/// The current values of a meter.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeterReading {
    pub(crate) tokens: Tokens,
    /// The error of the last request, if it failed.
    pub(crate) error: Option<ModelError>,
    /// The messages of the last request and the reply to it.
    pub(crate) conversation: Conversation,
}

impl MeteredModel {
    /// Creates a meter for `model`. The meter cancels `cancel` if more tokens are used than the
    /// budget allows.
    pub(crate) fn new(
        model: Arc<dyn Model>,
        budget: Option<u64>,
        cancel: CancellationToken,
    ) -> MeteredModel {
        MeteredModel { model, budget, cancel, reading: Mutex::default() }
    }

    pub(crate) fn reading(&self) -> MeterReading {
        self.reading.lock().clone()
    }

    /// Returns true if more tokens were used than the budget allows.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.budget.is_some_and(|budget| self.reading.lock().tokens.total() > budget)
    }

    /// Stores the messages of a request that has no reply yet.
    fn begin(&self, request: &ModelRequest<'_>) {
        let messages = request.messages.to_vec();
        self.reading.lock().conversation = Conversation { messages, reply: None };
    }

    /// Counts the reply to a request.
    fn end(
        &self,
        request: &ModelRequest<'_>,
        reply: Result<ModelReply, ModelError>,
    ) -> Result<ModelReply, ModelError> {
        self.reading.lock().conversation.reply =
            Some(reply.clone().map_err(|error| error.to_string()));
        self.count(reply, |reply| tokens(request, reply))
    }

    /// Stores the error of a result, or counts its tokens.
    fn count<T>(
        &self,
        result: Result<T, ModelError>,
        tokens: impl FnOnce(&T) -> Tokens,
    ) -> Result<T, ModelError> {
        let mut reading = self.reading.lock();
        reading.error = result.as_ref().err().cloned();
        if let Ok(reply) = &result {
            reading.tokens += tokens(reply);
        }
        drop(reading);
        if self.is_exceeded() {
            self.cancel.cancel();
        }
        result
    }
}

/// Returns the token counts of a request and its reply.
fn tokens(request: &ModelRequest<'_>, reply: &ModelReply) -> Tokens {
    if reply.usage.prompt > 0 || reply.usage.completion > 0 {
        return Tokens {
            input: reply.usage.prompt,
            output: reply.usage.completion,
            estimated: false,
        };
    }
    let calls = |calls: &[wattle_agent::host::machine::FunctionCall]| {
        calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
    };
    let sent = request
        .messages
        .iter()
        .map(|message| message.content.len() + calls(&message.calls))
        .sum::<usize>()
        + request
            .functions
            .iter()
            .map(|f| serde_json::to_string(f).unwrap_or_default().len())
            .sum::<usize>();
    let received =
        reply.text.len() + reply.reasoning.as_ref().map_or(0, String::len) + calls(&reply.calls);
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
    Tokens { input: tokens(sent), output: tokens(received), estimated: true }
}

impl Model for MeteredModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn endpoint(&self) -> &str {
        self.model.endpoint()
    }

    fn takes_functions(&self) -> bool {
        self.model.takes_functions()
    }

    fn constrains_output(&self) -> bool {
        self.model.constrains_output()
    }

    fn key(&self) -> Option<&ApiKey> {
        self.model.key()
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            self.begin(&request);
            let reply = self.model.complete(request).await;
            self.end(&request, reply)
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            self.begin(&request);
            let reply = self.model.stream(request, on_delta).await;
            self.end(&request, reply)
        }
        .boxed()
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        async move {
            let estimate = text.len().div_ceil(BYTES_PER_TOKEN) as u64;
            let tokens = |embedded: &EmbeddingReply| match embedded.usage.prompt {
                0 => Tokens { input: estimate, output: 0, estimated: true },
                input => Tokens { input, output: 0, estimated: false },
            };
            self.count(self.model.embed(text).await, tokens)
        }
        .boxed()
    }
}
