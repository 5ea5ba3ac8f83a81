//! OpenTelemetry: runs as spans and metrics that follow the GenAI conventions, sent to a collector
//! over OTLP/HTTP with JSON encoding.
//!
//! A run is one trace: `invoke_agent`, with a `chat` child for each request to the model and an
//! `execute_tool` child for each call. Exports run in the background, so that a slow or absent
//! collector does not delay a run. They go through the egress guard, and only to the configured
//! origin. Message content is exported only if the operator enables it.

mod encode;
mod spans;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::task::JoinSet;
use url::Url;
use wattle_capability::egress::{
    Egress, EgressError, EndpointClient, HeaderMap, HeaderName, HeaderValue, Limits, Method,
    Request,
};
use wattle_model::ApiKey;

pub(crate) use spans::RunSpans;

/// Maximum duration of an export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent exports. Additional exports are dropped.
const MAX_CONCURRENT: usize = 32;

/// A client for an OpenTelemetry collector. Clones share one connection and queue.
#[derive(Clone, Debug)]
pub struct Collector(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: EndpointClient,
    base: String,
    headers: HeaderMap,
    service: String,
    content: bool,
    pending: Mutex<JoinSet<()>>,
}

/// The settings of a collector, from the `OTEL_…` environment variables.
#[derive(Clone, Debug, Default)]
pub struct CollectorSettings {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector's base URL. `/v1/traces` and `/v1/metrics` are
    /// appended to it.
    pub endpoint: String,
    /// `OTEL_EXPORTER_OTLP_HEADERS`: `name=value` pairs, separated by commas; values may be
    /// percent-encoded.
    pub headers: String,
    /// `OTEL_SERVICE_NAME`: the name of the service. If it is empty, the name is `wattle`.
    pub service: String,
    /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`: if true, arguments, outputs and
    /// answers are exported, too.
    pub content: bool,
}

/// An invalid configuration of the collector.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The endpoint is not a valid URL.
    #[error("the collector's URL `{0}` is invalid: expected a URL such as http://127.0.0.1:4318")]
    Endpoint(String),
    /// The egress guard does not allow the endpoint.
    #[error("the collector's URL is not allowed: {0}")]
    Refused(EgressError),
    /// A header is invalid.
    #[error(
        "a header for the collector is not of the form `name=value`: entry {0} of \
         `OTEL_EXPORTER_OTLP_HEADERS`"
    )]
    Header(usize),
}

impl Collector {
    /// Creates a client that reaches the collector through `egress`.
    ///
    /// # Errors
    /// If the settings are invalid, or the egress guard does not allow the endpoint.
    pub fn new(settings: &CollectorSettings, egress: &Egress) -> Result<Collector, CollectorError> {
        let invalid = || CollectorError::Endpoint(settings.endpoint.clone());
        let url = Url::parse(&settings.endpoint).map_err(|_| invalid())?;
        if url.cannot_be_a_base() || !matches!(url.scheme(), "http" | "https") {
            return Err(invalid());
        }
        let limits = Limits { body: 64 << 10, time: EXPORT_TIMEOUT, redirects: 0 };
        let client = egress.endpoint(&url).map_err(CollectorError::Refused)?.with_limits(limits);
        let service = match settings.service.trim() {
            "" => "wattle".to_owned(),
            name => name.to_owned(),
        };
        Ok(Collector(Arc::new(Inner {
            client,
            base: url.as_str().trim_end_matches('/').to_owned(),
            headers: headers(&settings.headers)?,
            service,
            content: settings.content,
            pending: Mutex::default(),
        })))
    }

    /// Returns the API keys in the collector's headers.
    #[must_use]
    pub fn keys(&self) -> Vec<ApiKey> {
        const NAMES: [&str; 4] = ["auth", "key", "token", "secret"];
        let is_key = |name: &HeaderName| NAMES.iter().any(|part| name.as_str().contains(part));
        let headers = self.0.headers.iter().filter(|(name, _)| is_key(name));
        // A scheme such as `Bearer` may precede the key.
        let values = headers.filter_map(|(_, value)| value.to_str().ok()?.split(' ').next_back());
        values.filter_map(ApiKey::new).collect()
    }

    /// Waits for pending exports, for at most `max_time`.
    pub async fn flush(&self, max_time: Duration) {
        let mut pending =
            std::mem::take(&mut *self.0.pending.lock().unwrap_or_else(PoisonError::into_inner));
        let ended =
            tokio::time::timeout(max_time, async { while pending.join_next().await.is_some() {} })
                .await;
        if ended.is_err() {
            tracing::warn!(
                "the telemetry collector did not answer in time; unsent telemetry is lost"
            );
        }
    }

    /// Sends documents to the collector in the background, each to the path that it is paired with.
    /// Drops the documents if too many exports are pending.
    fn send(&self, documents: [(&'static str, Json); 2]) {
        let mut pending = self.0.pending.lock().unwrap_or_else(PoisonError::into_inner);
        while pending.try_join_next().is_some() {}
        if pending.len() >= MAX_CONCURRENT {
            tracing::warn!(
                "the telemetry collector is too slow; the telemetry of a run is dropped"
            );
            return;
        }
        let inner = Arc::clone(&self.0);
        pending.spawn(async move {
            for (path, document) in documents {
                if let Err(error) = inner.post(path, &document).await {
                    tracing::warn!(%error, "failed to send telemetry");
                    return;
                }
            }
        });
    }
}

impl Inner {
    async fn post(&self, path: &str, document: &Json) -> Result<(), String> {
        let mut headers = self.headers.clone();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let url = format!("{}{path}", self.base);
        let request =
            Request { method: Method::POST, url, headers, body: document.to_string().into() };
        let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(format!("the collector answered {}", answer.status))
        }
    }
}

fn headers(text: &str) -> Result<HeaderMap, CollectorError> {
    let mut headers = HeaderMap::new();
    for (at, entry) in (1..).zip(text.split(',')).filter(|(_, entry)| !entry.trim().is_empty()) {
        let read = || -> Option<(HeaderName, HeaderValue)> {
            let (name, value) = entry.split_once('=')?;
            let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((name.trim().parse().ok()?, value))
        };
        let (name, value) = read().ok_or(CollectorError::Header(at))?;
        headers.insert(name, value);
    }
    Ok(headers)
}
