//! The `ai` capability's port on the run's model.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wattle_capability::ai::{Inference, Options};
use wattle_machine::Message;
use wattle_rt::{Code, Failure};

use crate::model::{Model, ModelRequest, Timeouts, turn_deadline};

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
}

impl Inference for ModelInference {
    fn assist<'a>(
        &'a self,
        text: &'a str,
        instruction: &'a str,
        options: &'a Options,
    ) -> Pin<Box<dyn Future<Output = Result<String, Failure>> + Send + 'a>> {
        Box::pin(async move {
            let _slot = self.slots.acquire().await;
            let messages = [Message::system(instruction), Message::user(text)];
            let request = ModelRequest {
                messages: &messages,
                functions: &[],
                temperature: options.temperature.unwrap_or(self.temperature).clamp(0.0, 2.0),
                max_tokens: options.max_tokens.unwrap_or(self.max_tokens).min(self.max_tokens),
            };
            match tokio::time::timeout(turn_deadline(&self.timeouts), self.model.complete(request)).await {
                Ok(Ok(reply)) => Ok(reply.text),
                Ok(Err(error)) => Err(Failure::new(Code::EREMOTE, format!("the model could not be asked: {error}"))),
                Err(_) => Err(Failure::new(Code::ETIME, "the model did not answer in time")),
            }
        })
    }
}
