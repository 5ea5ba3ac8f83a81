//! The client of the endpoint's `/embeddings`, beside its chat completions.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::Embedded;
use super::error::{Asked, ModelError};
use super::remote::{Failure, RemoteModel, Then};
use super::wire::{FRAME_LIMIT, read_usage, reported};

impl RemoteModel {
    /// Asks for the embedding of a text, again where that may help.
    pub(super) async fn embedding(&self, text: &str) -> Result<Embedded, ModelError> {
        let mut attempt = 0;
        loop {
            let failure = match self.try_embedding(text).await {
                Ok(embedded) => return Ok(embedded),
                Err(failure) => Failure { error: failure.error.scrubbed(self.endpoint.key.as_ref()), ..failure },
            };
            match failure.then {
                Then::Again(asked) if attempt < self.timeouts.retries => {
                    tokio::time::sleep(self.timeouts.wait(attempt, asked)).await;
                    attempt += 1;
                }
                _ => return Err(failure.error.after(attempt + 1)),
            }
        }
    }

    async fn try_embedding(&self, text: &str) -> Result<Embedded, Failure> {
        let (url, model) = (self.embeddings_url.as_str(), self.endpoint.embed_model.as_str());
        let body = json!({"model": model, "input": text}).to_string();
        let request = self.http(url, body.into_bytes());
        let mut response = self.client.start(request).await.map_err(|why| self.broken(&why))?;
        if !response.status.is_success() {
            let fields = *self.fields.lock().unwrap_or_else(PoisonError::into_inner);
            return Err(self.refused(&mut response, Asked { url, model, ..self.asked() }, fields).await);
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|why| self.broken(&why))? {
            body.extend_from_slice(&piece);
            if body.len() > FRAME_LIMIT {
                let why = format!("it is larger than the limit of {FRAME_LIMIT} bytes");
                return Err(Failure::final_(ModelError::malformed(url, &why, "")));
            }
        }
        let nothing = || Failure::again(ModelError::no_embedding(url, &self.said(&body)));
        let answer: Value = serde_json::from_slice(&body).map_err(|_| nothing())?;
        if let Some(wrong) = reported(&answer) {
            return Err(self.wrong(wrong, &body));
        }
        let vector = answer.pointer("/data/0/embedding").and_then(Value::as_array).ok_or_else(nothing)?;
        let vector: Vec<f64> = vector.iter().map(Value::as_f64).collect::<Option<_>>().ok_or_else(nothing)?;
        Ok(Embedded { vector, usage: answer.get("usage").map(read_usage).unwrap_or_default() })
    }
}
