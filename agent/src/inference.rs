//! The `ai` capability's port on the run's model.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wattle_capability::Answer;
use wattle_capability::ai::{Embedding, Inference, Question, Reply};
use wattle_machine::Message;
use wattle_rt::{Code, Failure};

use crate::model::{Model, ModelError, ModelRequest, Timeouts, turn_deadline};

/// How many requests of programs are under way at once.
const AT_ONCE: usize = 8;

/// A model that programs may ask, with the same deadlines as the loop's own requests.
pub struct ModelInference {
    model: Arc<dyn Model>,
    timeouts: Timeouts,
    temperature: f32,
    max_tokens: u32,
    slots: Semaphore,
}

impl ModelInference {
    /// Lets programs ask `model`, where they say nothing else with that temperature and for that many tokens.
    pub fn new(model: Arc<dyn Model>, settings: &crate::Settings) -> Self {
        let crate::Settings { timeouts, temperature, max_tokens, .. } = *settings;
        ModelInference { model, timeouts, temperature, max_tokens, slots: Semaphore::new(AT_ONCE) }
    }

    /// Waits for a place, and then for the request, as long as one may last.
    async fn within<T>(&self, request: impl Future<Output = Result<T, ModelError>>) -> Result<T, Failure> {
        let _slot = self.slots.acquire().await;
        match tokio::time::timeout(turn_deadline(&self.timeouts), request).await {
            Ok(answer) => {
                answer.map_err(|error| Failure::new(Code::EREMOTE, format!("the model could not be asked: {error}")))
            }
            Err(_) => Err(Failure::new(Code::ETIME, "the model did not answer in time")),
        }
    }
}

impl Inference for ModelInference {
    fn ask(&self, question: Question) -> Answer<'_, Reply> {
        Box::pin(async move {
            let Question { instruction, text, options, rejected } = question;
            let mut messages = vec![Message::system(instruction), Message::user(text)];
            if let Some(rejected) = rejected {
                messages.extend([Message::assistant(rejected.answer), Message::user(rejected.why)]);
            }
            let request = ModelRequest {
                messages: &messages,
                functions: &[],
                temperature: options.temperature.unwrap_or(self.temperature).clamp(0.0, 2.0),
                max_tokens: options.max_tokens.unwrap_or(self.max_tokens).min(self.max_tokens),
            };
            let reply = self.within(self.model.complete(request)).await?;
            let tokens = reply.usage.prompt.saturating_add(reply.usage.completion);
            Ok(Reply { text: reply.text, tokens })
        })
    }

    fn embed(&self, text: String) -> Answer<'_, Embedding> {
        Box::pin(async move {
            let embedded = self.within(self.model.embed(&text)).await?;
            Ok(Embedding { vector: embedded.vector, tokens: embedded.usage.prompt })
        })
    }
}
