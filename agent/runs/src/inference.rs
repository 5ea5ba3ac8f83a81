//! The `ai` capability's port, implemented with the run's model.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wattle_capability::PortFuture;
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_machine::{Message, Usage};
use wattle_model::{Model, ModelError, ModelRequest, Prices, Timeouts, UsageMeter, turn_deadline};
use wattle_rt::{Code, Failure};

use crate::settings::Settings;

/// Maximum number of concurrent model requests from programs.
const MAX_CONCURRENT: usize = 8;

/// The port through which programs send requests to a model. These requests have the same deadlines
/// as the run's own requests.
pub struct ModelInference {
    model: Arc<dyn Model>,
    timeouts: Timeouts,
    temperature: f32,
    max_tokens: u32,
    prices: Prices,
    /// Slots for concurrent requests. Copies created by `metered` share them.
    slots: Arc<Semaphore>,
    meter: UsageMeter,
}

impl ModelInference {
    /// Creates the port through which programs send requests to `model`. Requests use the
    /// temperature and the token limit of the settings. A program can set another temperature and a
    /// lower token limit.
    pub fn new(model: Arc<dyn Model>, settings: &Settings) -> Self {
        let Settings { timeouts, temperature, max_tokens, .. } = *settings;
        let (prices, slots) = (settings.prices.clone(), Arc::new(Semaphore::new(MAX_CONCURRENT)));
        ModelInference {
            model,
            timeouts,
            temperature,
            max_tokens,
            prices,
            slots,
            meter: UsageMeter::default(),
        }
    }

    /// Returns a copy for one run. `meter` counts the model usage of the run's programs.
    #[must_use]
    pub fn metered(&self, meter: UsageMeter) -> Self {
        let Self { model, slots, prices, timeouts, temperature, max_tokens, .. } = self;
        let (timeouts, temperature, max_tokens) = (*timeouts, *temperature, *max_tokens);
        ModelInference {
            model: Arc::clone(model),
            timeouts,
            temperature,
            max_tokens,
            prices: prices.clone(),
            slots: Arc::clone(slots),
            meter,
        }
    }

    fn count(&self, usage: Usage) {
        self.meter.add(self.prices.priced(self.model.name(), usage));
    }

    /// Waits for a free slot, and then for the result of `request`. Only the wait for the result
    /// has a time limit, which is [`turn_deadline`].
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, Failure> {
        let _slot = self.slots.acquire().await;
        match tokio::time::timeout(turn_deadline(&self.timeouts), request).await {
            Ok(answer) => answer.map_err(|error| {
                Failure::new(Code::EREMOTE, format!("the model request failed: {error}"))
            }),
            Err(_) => Err(Failure::new(Code::ETIME, "the model did not answer in time")),
        }
    }
}

impl Inference for ModelInference {
    fn ask(&self, question: Question) -> PortFuture<'_, Reply> {
        Box::pin(async move {
            let Question { instruction, text, options, rejected } = question;
            let mut messages = vec![Message::system(instruction), Message::user(text)];
            if let Some(rejected) = rejected {
                messages.extend([Message::assistant(rejected.answer), Message::user(rejected.why)]);
            }
            let request = ModelRequest {
                temperature: options.temperature.unwrap_or(self.temperature).clamp(0.0, 2.0),
                max_tokens: options.max_tokens.unwrap_or(self.max_tokens).min(self.max_tokens),
                timeouts: Some(self.timeouts),
                ..ModelRequest::new(&messages)
            };
            let reply = self.within(self.model.complete(request)).await?;
            self.count(reply.usage);
            let tokens = reply.usage.total();
            Ok(Reply { text: reply.text, tokens })
        })
    }

    fn embed(&self, text: String) -> PortFuture<'_, Embedding> {
        Box::pin(async move {
            let embedded = self.within(self.model.embed(&text)).await?;
            self.count(embedded.usage);
            Ok(Embedding { vector: embedded.vector, tokens: embedded.usage.prompt })
        })
    }
}
