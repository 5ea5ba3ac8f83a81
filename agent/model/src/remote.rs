//! A model behind an endpoint, with retries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_egress::{
    Egress, EgressErrorKind, EndpointClient, HeaderName, HeaderValue, Limits, Request,
    StreamedResponse, header,
};

use wattle_machine::AnswerPart;

use super::breaker::Breaker;
use super::endpoint::Endpoint;
use super::error::{EndpointError, ModelError, RequestContext};
use super::protocol::{OptionalFields, Protocol, ReplyFault, rejects_schema};
use super::provider_error::{error_message, is_retryable};
use super::reply::{BadReply, ReplyReader};
use super::retries::{Retries, Timeouts, retry_after};
use super::{
    ApiKey, Delta, EmbeddingReply, Model, ModelErrorKind, ModelReply, ModelRequest, ThinkingEffort,
    chat, messages,
};

/// Maximum size of a response, in bytes.
const ANSWER_LIMIT: usize = 16 << 20;

/// Maximum number of bytes read from an error response's body.
const ERROR_LIMIT: usize = 64 << 10;

/// Maximum number of owners whose breakers are kept while they make no requests.
const MAX_OWNERS: usize = 1_000;

/// Maximum number of times that a request is repeated without a field that the endpoint rejected.
const MAX_ADAPTIONS: u32 = 5;

/// A client of an endpoint that implements the chat-completions protocol, in any of its variants,
/// or the messages protocol.
#[derive(Clone, Debug)]
pub struct RemoteModel {
    pub(super) endpoint: Endpoint,
    url: String,
    pub(super) embeddings_url: String,
    pub(super) client: EndpointClient,
    pub(super) timeouts: Timeouts,
    /// The circuit breaker that all requests of an owner to this model share.
    pub(super) breaker: Arc<Breaker>,
    /// The breakers of owners, so that what their requests found is known between them.
    breakers: Arc<Mutex<HashMap<String, Arc<Breaker>>>>,
    /// The optional fields that the endpoint has not rejected so far.
    pub(super) fields: Arc<Mutex<OptionalFields>>,
    /// If true, the endpoint has rejected a request because of its functions.
    functions_refused: Arc<AtomicBool>,
    /// The default reasoning effort for requests.
    thinking_effort: Option<ThinkingEffort>,
}

impl RemoteModel {
    /// Creates a client for `endpoint` that sends its requests through `egress`.
    ///
    /// # Errors
    /// If the endpoint's URL is invalid or not allowed.
    pub fn new(
        endpoint: Endpoint,
        egress: &Egress,
        timeouts: Timeouts,
    ) -> Result<Self, EndpointError> {
        let own = endpoint.quirks.protocol.path();
        let (url, embeddings_url) = (endpoint.below(own), endpoint.below("embeddings"));
        let client = egress
            .endpoint(&url)
            .map_err(|why| EndpointError::unreachable(endpoint.base_url.as_str(), &why))?;
        let quirks = &endpoint.quirks;
        let fields = OptionalFields {
            length: quirks.length_field,
            temperature: true,
            stream_options: quirks.stream_usage,
            cache_marks: quirks.marks_cache_of(&endpoint.model),
            thinking: quirks.thinking,
            function_choice: true,
            json_schema: quirks.json_schema,
            provider_fields: true,
        };
        let client = client.with_limits(limits(timeouts));
        let (url, embeddings_url) = (url.into(), embeddings_url.into());
        Ok(Self {
            client,
            url,
            embeddings_url,
            timeouts,
            breaker: Breaker::of(endpoint.base_url.as_str(), &endpoint.model, ""),
            breakers: Arc::default(),
            fields: Arc::new(Mutex::new(fields)),
            functions_refused: Arc::default(),
            thinking_effort: None,
            endpoint,
        })
    }

    /// Sets the reasoning effort for requests that do not specify one.
    #[must_use]
    pub fn with_thinking_effort(self, thinking_effort: Option<ThinkingEffort>) -> Self {
        Self { thinking_effort, ..self }
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        stream: bool,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<ModelReply, ModelError> {
        let thinking_effort = request.thinking_effort.or(self.thinking_effort);
        let asked = request.timeouts.unwrap_or(self.timeouts);
        let timeouts = self.timeouts.at_most(Some(asked.request), Some(asked.retry_for));
        let mut request = ModelRequest { thinking_effort, timeouts: Some(timeouts), ..request };
        let mut retries = Retries::new(&self.breaker, timeouts);
        let mut adapted = 0;
        loop {
            let permit = retries.admit(on_delta).await?;
            let fields = *self.fields.lock().unwrap_or_else(PoisonError::into_inner);
            let mut show = |part: AnswerPart<'_>| on_delta(Delta::Part(part));
            let failure = match self.attempt(&request, fields, stream, &mut show).await {
                Ok(reply) => {
                    permit.succeeded();
                    return Ok(reply);
                }
                Err(failure) => FailedAttempt {
                    error: failure.error.scrubbed(self.endpoint.key.as_ref()),
                    ..failure
                },
            };
            match failure.retry {
                // The endpoint did not fail.
                Retry::Without(fields) if adapted < MAX_ADAPTIONS => {
                    adapted += 1;
                    *self.fields.lock().unwrap_or_else(PoisonError::into_inner) = fields;
                    permit.succeeded();
                }
                Retry::WithoutSchema => {
                    request.output = None;
                    permit.succeeded();
                }
                Retry::Again(asked) => {
                    retries.wait(permit, failure.error, asked, on_delta).await?;
                }
                Retry::Without(_) | Retry::GiveUp => {
                    return Err(retries.give_up(permit, failure.error));
                }
            }
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest<'_>,
        fields: OptionalFields,
        stream: bool,
        show: &mut (dyn FnMut(AnswerPart<'_>) + Send),
    ) -> Result<ModelReply, FailedAttempt> {
        let Endpoint { model, quirks, .. } = &self.endpoint;
        let timeouts = request.timeouts.unwrap_or(self.timeouts);
        let origin = self.origin();
        let body = match quirks.protocol {
            Protocol::Chat => chat::body(model, &origin, request, fields, stream),
            Protocol::Messages => messages::body(model, &origin, request, fields, stream),
        };
        let body =
            body.map_err(|why| FailedAttempt::final_(ModelError::unwritable_request(&why)))?;
        let mut response = self
            .client
            .with_limits(limits(timeouts))
            .start(self.http(&self.url, body))
            .await
            .map_err(|why| network_failure(&why, timeouts))?;
        if !response.status.is_success() {
            let failure = self.rejected(&mut response, self.context(), fields).await;
            let failure = match failure.retry {
                Retry::GiveUp if request.output.is_some() && failure.rejects_schema => {
                    FailedAttempt { retry: Retry::WithoutSchema, ..failure }
                }
                _ => failure,
            };
            let is_adaptable = matches!(failure.retry, Retry::Without(_) | Retry::WithoutSchema);
            return Err(if request.functions.is_empty() || is_adaptable {
                failure
            } else {
                self.without_functions(failure)
            });
        }
        let mut reader = ReplyReader::of(quirks);
        let mut head = Vec::new();
        let mut show = |part: AnswerPart<'_>| {
            if stream {
                show(part);
            }
        };
        while !reader.is_done() {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(_) if reader.is_whole() => break,
                Err(why) => return Err(network_failure(&why, timeouts)),
            };
            let room = ERROR_LIMIT.saturating_sub(head.len());
            head.extend(piece.iter().take(room));
            reader
                .push(&piece, &mut show)
                .map_err(|BadReply(fault)| self.invalid_reply(fault, &head))?;
        }
        // The model's text is executed unchanged, so nothing in it is masked, not even the key.
        let mut reply =
            reader.finish(&mut show).map_err(|BadReply(fault)| self.invalid_reply(fault, &head))?;
        if let Some(provider) = &mut reply.provider {
            provider.origin = origin.into();
        }
        Ok(reply)
    }

    /// Returns the string that tells this model at this endpoint from all others.
    fn origin(&self) -> String {
        format!("{} {}", self.url, self.endpoint.model)
    }

    pub(super) fn http(&self, url: &str, body: Vec<u8>) -> Request {
        let mut request = Request::post(url, body);
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        self.identified(request)
    }

    /// Adds the headers with which the endpoint knows the user: the key, and those of its preset.
    pub(super) fn identified(&self, mut request: Request) -> Request {
        for (name, value) in &self.endpoint.quirks.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                request.headers.insert(name, value);
            }
        }
        if let Some(key) = &self.endpoint.key {
            match self.endpoint.quirks.protocol {
                Protocol::Chat => {
                    request.headers.insert(header::AUTHORIZATION, key.bearer());
                }
                Protocol::Messages => {
                    request.headers.insert("x-api-key", key.bare());
                }
            }
        }
        request
    }

    /// Checks whether the error means that the endpoint does not support functions. If so, records
    /// this and returns a failure that is not retried. Otherwise, returns the failure unchanged.
    fn without_functions(&self, failure: FailedAttempt) -> FailedAttempt {
        if failure.error.kind() == ModelErrorKind::Request && failure.error.is_about_functions() {
            self.functions_refused.store(true, Ordering::Relaxed);
            return FailedAttempt::final_(failure.error.of_functions());
        }
        failure
    }

    /// Converts a response with a failure status into a failed attempt.
    pub(super) async fn rejected(
        &self,
        response: &mut StreamedResponse,
        context: RequestContext<'_>,
        fields: OptionalFields,
    ) -> FailedAttempt {
        let mut body = Vec::new();
        // The body is optional: if it is truncated, the status still counts.
        while let Ok(Some(piece)) = response.chunk().await {
            let room = ERROR_LIMIT - body.len();
            body.extend(piece.iter().take(room));
            if body.len() == ERROR_LIMIT {
                break;
            }
        }
        let status = response.status.as_u16();
        let message = self.message(&body);
        let error = ModelError::of_status(context, status, &message);
        let retry = match status {
            400 | 422 => fields.without_rejected(&message).map_or(Retry::GiveUp, Retry::Without),
            status if is_retryable(status) => {
                let asked =
                    response.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                Retry::Again(asked.and_then(|text| retry_after(text, SystemTime::now())))
            }
            _ => Retry::GiveUp,
        };
        FailedAttempt { error, retry, rejects_schema: rejects_schema(&message) }
    }

    pub(super) fn invalid_reply(&self, fault: ReplyFault, head: &[u8]) -> FailedAttempt {
        match fault {
            ReplyFault::Reported { unavailable, status, message } => {
                let message = self.scrub(message);
                let error = match status {
                    Some(status) => ModelError::of_status(self.context(), status, &message),
                    None => ModelError::in_answer(unavailable, &message),
                };
                if unavailable { FailedAttempt::again(error) } else { FailedAttempt::final_(error) }
            }
            ReplyFault::NotJson(why) => {
                FailedAttempt::again(ModelError::malformed(&self.url, &why, &self.message(head)))
            }
            ReplyFault::Excessive(what) => {
                FailedAttempt::final_(ModelError::malformed(&self.url, &what, ""))
            }
            ReplyFault::BrokeOff => FailedAttempt::again(ModelError::broke_off(&self.url)),
            ReplyFault::Nothing => {
                let why = if head.is_empty() {
                    "the response is empty"
                } else {
                    "it contains no message"
                };
                FailedAttempt::again(ModelError::malformed(&self.url, why, &self.message(head)))
            }
        }
    }

    pub(super) fn message(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        self.scrub(error_message(&text).unwrap_or_else(|| text.into_owned()))
    }

    fn scrub(&self, text: String) -> String {
        match &self.endpoint.key {
            Some(key) => key.scrub(&text),
            None => text,
        }
    }

    pub(super) fn context(&self) -> RequestContext<'_> {
        let Endpoint { model, key_variable, key, .. } = &self.endpoint;
        RequestContext { url: &self.url, model, key_variable, with_key: key.is_some() }
    }
}

/// Returns the limits for a request with these timeouts.
fn limits(timeouts: Timeouts) -> Limits {
    Limits { body: ANSWER_LIMIT, time: timeouts.request, redirects: 0 }
}

/// Creates the failed attempt for a request that received no complete response. `timeouts` are the
/// time limits of the request.
pub(super) fn network_failure(
    why: &wattle_egress::EgressError,
    timeouts: Timeouts,
) -> FailedAttempt {
    let error = ModelError::of_egress(why, timeouts.request);
    let certain = why.kind() == EgressErrorKind::Connect && why.to_string().contains("certificate");
    if why.is_transient() && !certain {
        FailedAttempt::again(error)
    } else {
        FailedAttempt::final_(error)
    }
}

impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn provider(&self) -> &str {
        self.endpoint.base_url.host_str().unwrap_or_default()
    }

    fn endpoint(&self) -> &str {
        self.endpoint.base_url.as_str()
    }

    fn takes_functions(&self) -> bool {
        self.endpoint.quirks.functions && !self.functions_refused.load(Ordering::Relaxed)
    }

    fn constrains_output(&self) -> bool {
        self.endpoint.quirks.json_schema
    }

    fn for_owner(&self, owner: &str) -> Option<Arc<dyn Model>> {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        if breakers.len() >= MAX_OWNERS && !breakers.contains_key(owner) {
            // The others are in use by requests.
            breakers.retain(|_, breaker| Arc::strong_count(breaker) > 1);
        }
        let new = || Breaker::of(self.endpoint.base_url.as_str(), &self.endpoint.model, owner);
        let breaker = Arc::clone(breakers.entry(owner.to_owned()).or_insert_with(new));
        drop(breakers);
        Some(Arc::new(RemoteModel { breaker, ..self.clone() }))
    }

    fn window(&self) -> Option<u64> {
        self.breaker.window()
    }

    fn key(&self) -> Option<&ApiKey> {
        self.endpoint.key.as_ref()
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move { self.ask(request, false, &mut |_| {}).await }.boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.ask(request, true, on_delta).boxed()
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        match self.endpoint.quirks.protocol {
            Protocol::Chat => self.embedding(text).boxed(),
            Protocol::Messages => {
                std::future::ready(Err(ModelError::no_embeddings(self.name()))).boxed()
            }
        }
    }
}

/// A failed attempt, with the action to take next.
pub(super) struct FailedAttempt {
    pub(super) error: ModelError,
    pub(super) retry: Retry,
    /// If true, the endpoint rejected a schema.
    pub(super) rejects_schema: bool,
}

pub(super) enum Retry {
    GiveUp,
    /// The request is repeated after a delay, at least the one that the server requested.
    Again(Option<Duration>),
    /// The request is repeated immediately with these fields.
    Without(OptionalFields),
    /// The request is repeated immediately without the schema for the answer.
    WithoutSchema,
}

impl FailedAttempt {
    pub(super) fn again(error: ModelError) -> Self {
        Self { error, retry: Retry::Again(None), rejects_schema: false }
    }

    pub(super) fn final_(error: ModelError) -> Self {
        Self { error, retry: Retry::GiveUp, rejects_schema: false }
    }
}
