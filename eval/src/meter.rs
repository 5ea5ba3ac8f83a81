//! The meter between an attempt and its model: counts tokens, keeps to the budget, remembers why the model could not be had.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use wattle_agent::model::{Delta, Embedded, Mask, Model, ModelError, ModelReply, ModelRequest};

use crate::attempt::Tokens;

/// Bytes that are taken for a token where the provider does not count.
const BYTES_PER_TOKEN: usize = 4;

/// A model whose use is counted.
pub(crate) struct Metered {
    model: Arc<dyn Model>,
    budget: Option<u64>,
    /// Cancelled once the budget is passed.
    over: CancellationToken,
    read: Mutex<Reading>,
}

/// What a meter has counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) tokens: Tokens,
    /// Why the last request got no answer.
    pub(crate) error: Option<ModelError>,
}

impl Metered {
    /// Counts what `model` is used for, and cancels `over` once that is more tokens than the budget has.
    pub(crate) fn new(model: Arc<dyn Model>, budget: Option<u64>, over: CancellationToken) -> Metered {
        Metered { model, budget, over, read: Mutex::default() }
    }

    pub(crate) fn reading(&self) -> Reading {
        self.lock().clone()
    }

    /// If true, more tokens went than the budget has.
    pub(crate) fn is_over(&self) -> bool {
        self.budget.is_some_and(|budget| self.lock().tokens.total() > budget)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Reading> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, request: &ModelRequest<'_>, reply: &Result<ModelReply, ModelError>) {
        {
            let mut read = self.lock();
            read.error = reply.as_ref().err().cloned();
            if let Ok(reply) = reply {
                read.tokens += tokens(request, reply);
            }
        }
        self.stop_if_over();
    }

    fn count_text(&self, text: &str, embedded: &Result<Embedded, ModelError>) {
        {
            let mut read = self.lock();
            read.error = embedded.as_ref().err().cloned();
            if let Ok(embedded) = embedded {
                let counted = embedded.usage.prompt;
                let input = if counted > 0 { counted } else { text.len().div_ceil(BYTES_PER_TOKEN) as u64 };
                read.tokens += Tokens { input, output: 0, estimated: counted == 0 };
            }
        }
        self.stop_if_over();
    }

    fn stop_if_over(&self) {
        if self.is_over() {
            self.over.cancel();
        }
    }
}

/// The tokens of one exchange.
fn tokens(request: &ModelRequest<'_>, reply: &ModelReply) -> Tokens {
    if reply.usage.prompt > 0 || reply.usage.completion > 0 {
        return Tokens { input: reply.usage.prompt, output: reply.usage.completion, estimated: false };
    }
    let calls = |calls: &[wattle_agent::machine::FunctionCall]| {
        calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
    };
    let sent = request.messages.iter().map(|message| message.content.len() + calls(&message.calls)).sum::<usize>()
        + request.functions.iter().map(|f| serde_json::to_string(f).unwrap_or_default().len()).sum::<usize>();
    let said = reply.text.len() + reply.reasoning.as_ref().map_or(0, String::len) + calls(&reply.calls);
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
    Tokens { input: tokens(sent), output: tokens(said), estimated: true }
}

impl Model for Metered {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn takes_functions(&self) -> bool {
        self.model.takes_functions()
    }

    fn mask(&self) -> Mask {
        self.model.mask()
    }

    fn complete<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let reply = self.model.complete(request).await;
            self.count(&request, &reply);
            reply
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let reply = self.model.stream(request, on_delta).await;
            self.count(&request, &reply);
            reply
        }
        .boxed()
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        async move {
            let embedded = self.model.embed(text).await;
            self.count_text(text, &embedded);
            embedded
        }
        .boxed()
    }
}
