//! Requests to an endpoint's `/models` path.

use std::time::Duration;

use serde_json::Value;
use wattle_egress::{Egress, Request};

use super::endpoint::Endpoint;
use super::error::{EndpointError, ModelError, RequestContext};
use super::protocol::Protocol;
use super::remote::{FailedAttempt, RemoteModel, network_failure};
use super::retries::Timeouts;

/// Maximum size of a response, in bytes.
const MAX_BODY: usize = 16 << 20;

/// Maximum number of models in a list.
const MAX_MODELS: usize = 2_000;

/// Requests the names of the models that an endpoint offers, in the order of the endpoint. The
/// request has the endpoint's key, takes at most `time`, and is not repeated.
///
/// # Errors
/// If the endpoint cannot be reached, rejects the request, or does not return a list of models.
pub async fn list_models(
    endpoint: &Endpoint,
    egress: &Egress,
    time: Duration,
) -> Result<Vec<String>, ModelError> {
    let timeouts = Timeouts { request: time, ..Timeouts::default() };
    let client = RemoteModel::new(endpoint.clone(), egress, timeouts)
        .map_err(|why: EndpointError| ModelError::application(why.to_string()))?;
    let listed = client.models().await;
    listed.map_err(|failed| failed.error.scrubbed(endpoint.key.as_ref()))
}

impl RemoteModel {
    async fn models(&self) -> Result<Vec<String>, FailedAttempt> {
        let below = self.embeddings_url.trim_end_matches("embeddings");
        // The messages protocol divides a list into pages.
        let query = match self.endpoint.quirks.protocol {
            Protocol::Chat => "",
            Protocol::Messages => "?limit=1000",
        };
        let url = format!("{below}models{query}");
        let headers = self.http(&url, Vec::new()).headers;
        let request = Request { headers, ..Request::get(url.as_str()) };
        let mut response =
            self.client.start(request).await.map_err(|why| network_failure(&why, self.timeouts))?;
        if !response.status.is_success() {
            let fields = *self.fields.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let context = RequestContext { url: &url, ..self.context() };
            return Err(self.rejected(&mut response, context, fields).await);
        }
        let wrong = |why: &str| FailedAttempt::final_(ModelError::no_models(&url, why));
        let mut body = Vec::new();
        while let Some(piece) =
            response.chunk().await.map_err(|why| network_failure(&why, self.timeouts))?
        {
            body.extend_from_slice(&piece);
            if body.len() > MAX_BODY {
                return Err(wrong(&format!("it is larger than the limit of {MAX_BODY} bytes")));
            }
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|_| wrong("it is not JSON"))?;
        let data = answer.get("data").and_then(Value::as_array);
        let data = data.ok_or_else(|| wrong("it has no list `data`"))?;
        let names = data.iter().filter_map(|model| model.get("id").and_then(Value::as_str));
        Ok(names.take(MAX_MODELS).map(str::to_owned).collect())
    }
}
