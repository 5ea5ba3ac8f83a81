//! Requests to an endpoint's `/embeddings` path.

use std::sync::PoisonError;

use serde_json::{Value, json};

use super::error::{ModelError, RequestContext};
use super::protocol::read_usage;
use super::provider_error::reported_error;
use super::remote::{FailedAttempt, RemoteModel, Retry, network_failure};
use super::retries::Retries;
use super::{Delta, EmbeddingReply};

/// Maximum number of dimensions of an embedding. An embedding is stored with each text and compared
/// with each query. Models return at most a few thousand dimensions.
const MAX_DIMENSIONS: usize = 16_384;

/// Maximum size of a response, in bytes. It is large enough for an embedding of [`MAX_DIMENSIONS`]
/// numbers in any notation.
const MAX_BODY: usize = 1 << 20;

impl RemoteModel {
    /// Requests the embedding of a string, with retries.
    pub(super) async fn embedding(&self, text: &str) -> Result<EmbeddingReply, ModelError> {
        let mut retries = Retries::new(&self.breaker, self.timeouts);
        let on_wait = &mut |_: Delta<'_>| {};
        loop {
            let permit = retries.admit(on_wait).await?;
            let failure = match self.try_embedding(text).await {
                Ok(embedded) => {
                    permit.succeeded();
                    return Ok(embedded);
                }
                Err(failure) => FailedAttempt {
                    error: failure.error.scrubbed(self.endpoint.key.as_ref()),
                    ..failure
                },
            };
            match failure.retry {
                Retry::Again(asked) => {
                    retries.wait(permit, failure.error, asked, on_wait).await?;
                }
                _ => return Err(retries.give_up(permit, failure.error)),
            }
        }
    }

    async fn try_embedding(&self, text: &str) -> Result<EmbeddingReply, FailedAttempt> {
        let (url, model) = (self.embeddings_url.as_str(), self.endpoint.embed_model.as_str());
        let body = json!({"model": model, "input": text}).to_string();
        let request = self.http(url, body.into_bytes());
        let mut response =
            self.client.start(request).await.map_err(|why| network_failure(&why, self.timeouts))?;
        if !response.status.is_success() {
            let fields = *self.fields.lock().unwrap_or_else(PoisonError::into_inner);
            return Err(self
                .rejected(&mut response, RequestContext { url, model, ..self.context() }, fields)
                .await);
        }
        let mut body = Vec::new();
        while let Some(piece) =
            response.chunk().await.map_err(|why| network_failure(&why, self.timeouts))?
        {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY {
                let why = format!("it is larger than the limit of {MAX_BODY} bytes");
                return Err(FailedAttempt::final_(ModelError::no_embedding(url, &why)));
            }
        }
        let nothing = || FailedAttempt::again(ModelError::no_embedding(url, &self.message(&body)));
        let answer: Value = serde_json::from_slice(&body).map_err(|_| nothing())?;
        if let Some(fault) = reported_error(&answer) {
            return Err(self.invalid_reply(fault, &body));
        }
        let vector =
            answer.pointer("/data/0/embedding").and_then(Value::as_array).ok_or_else(nothing)?;
        if vector.len() > MAX_DIMENSIONS {
            let why = format!("it has {} dimensions, more than {MAX_DIMENSIONS}", vector.len());
            return Err(FailedAttempt::final_(ModelError::no_embedding(url, &why)));
        }
        let vector: Vec<f64> =
            vector.iter().map(Value::as_f64).collect::<Option<_>>().ok_or_else(nothing)?;
        Ok(EmbeddingReply {
            vector,
            usage: answer.get("usage").map(read_usage).unwrap_or_default(),
        })
    }
}
