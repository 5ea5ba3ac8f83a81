//! OpenTelemetry: runs as spans and metrics by the GenAI conventions, sent to a collector by OTLP over HTTP, in its JSON form.
//!
//! A run is one trace: `invoke_agent`, with `chat` for each request to the model and `execute_tool` for each call below it. What is sent
//! goes through the egress guard, to the configured origin alone, and behind the run's back: a collector that is slow or gone delays
//! and disturbs nobody. What was said and put out is sent only where the operator wants it.

mod encode;
mod spans;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tokio::task::JoinSet;
use url::Url;
use wattle_capability::egress::{
    Egress, EgressError, EndpointClient, HeaderMap, HeaderName, HeaderValue, Limits, Method, Request,
};

pub(crate) use spans::RunSpans;

/// How long one export may take.
const EXPORT: Duration = Duration::from_secs(10);
/// How many exports are under way at once; further ones are dropped.
const AT_ONCE: usize = 32;

/// Where telemetry goes. A clone sends to the same place.
#[derive(Clone, Debug)]
pub struct Collector(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: EndpointClient,
    base: String,
    headers: HeaderMap,
    service: String,
    content: bool,
    under_way: Mutex<JoinSet<()>>,
}

/// The settings of a collector, as the variables `OTEL_…` give them.
#[derive(Clone, Debug, Default)]
pub struct CollectorSettings {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`: the collector's URL, to which `/v1/traces` and `/v1/metrics` are added.
    pub endpoint: String,
    /// `OTEL_EXPORTER_OTLP_HEADERS`: `name=value`, several with commas between them; values may be percent-encoded.
    pub headers: String,
    /// `OTEL_SERVICE_NAME`; `wattle` where it is empty.
    pub service: String,
    /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`: whether arguments, outputs and answers are sent, too.
    pub content: bool,
}

/// Why there can be no collector.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The endpoint is no URL that can be asked.
    #[error("the collector `{0}` cannot be asked: expected a URL such as http://127.0.0.1:4318")]
    Endpoint(String),
    /// The guard does not let it be asked.
    #[error("the collector cannot be asked: {0}")]
    Refused(EgressError),
    /// A header cannot be sent.
    #[error("a header for the collector is not `name=value`: entry {0} of `OTEL_EXPORTER_OTLP_HEADERS`")]
    Header(usize),
}

impl Collector {
    /// Makes a collector that is reached through `egress`.
    ///
    /// # Errors
    /// Where the settings make no sense.
    pub fn new(settings: &CollectorSettings, egress: &Egress) -> Result<Collector, CollectorError> {
        let wrong = || CollectorError::Endpoint(settings.endpoint.clone());
        let url = Url::parse(&settings.endpoint).map_err(|_| wrong())?;
        if url.cannot_be_a_base() || !matches!(url.scheme(), "http" | "https") {
            return Err(wrong());
        }
        let limits = Limits { body: 64 << 10, time: EXPORT, redirects: 0 };
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
            under_way: Mutex::default(),
        })))
    }

    /// Waits for what is under way, at most so long.
    pub async fn flush(&self, most: Duration) {
        let mut under_way = std::mem::take(&mut *self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = tokio::time::timeout(most, async { while under_way.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!("the collector of telemetry did not answer in time; what was not sent is lost");
        }
    }

    /// Sends documents, each to its path, and does not wait for it.
    fn send(&self, documents: [(&'static str, Json); 2]) {
        let mut under_way = self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        while under_way.try_join_next().is_some() {}
        if under_way.len() >= AT_ONCE {
            tracing::warn!("the collector of telemetry is too slow; the telemetry of a run is dropped");
            return;
        }
        let inner = Arc::clone(&self.0);
        under_way.spawn(async move {
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
        let request = Request { method: Method::POST, url, headers, body: document.to_string().into() };
        let answer = self.client.send(request).await.map_err(|error| error.to_string())?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(format!("the collector answers {}", answer.status)),
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
