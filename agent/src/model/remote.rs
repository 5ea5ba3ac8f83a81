//! A model behind an endpoint: one question, asked again where that may help.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::egress::{
    Egress, EgressErrorKind, EndpointClient, HeaderName, HeaderValue, Limits, Request, Streamed, header,
};

use super::deadline::{Timeouts, retry_after};
use super::endpoint::Endpoint;
use super::error::{Asked, EndpointError, ModelError};
use super::key::Mask;
use super::reply::{BadReply, ReplyReader};
use super::wire::{self, Fields, Protocol, Wrong};
use super::{Delta, Embedded, Model, ModelErrorKind, ModelReply, ModelRequest, anthropic};

/// Greatest length of a response in bytes.
const ANSWER_LIMIT: usize = 16 << 20;

/// As much of an error's body as is read, in bytes.
const ERROR_LIMIT: usize = 64 << 10;

/// How often one question is asked anew because the endpoint does not know one of its fields.
const ADAPTIONS: u32 = 3;

/// Asks an endpoint that speaks the chat-completions protocol, in whichever of its dialects, or the messages protocol.
#[derive(Debug)]
pub struct RemoteModel {
    pub(super) endpoint: Endpoint,
    url: String,
    pub(super) embeddings_url: String,
    pub(super) client: EndpointClient,
    pub(super) timeouts: Timeouts,
    /// What the endpoint has been found to take.
    pub(super) fields: Mutex<Fields>,
    /// Whether the endpoint was found to take no functions.
    functions_refused: AtomicBool,
}

impl RemoteModel {
    /// Makes a client for `endpoint` that goes through `egress`.
    ///
    /// # Errors
    /// Where the endpoint's URL cannot be asked.
    pub fn new(endpoint: Endpoint, egress: &Egress, timeouts: Timeouts) -> Result<Self, EndpointError> {
        let own = endpoint.quirks.protocol.path();
        let below = |path: &str| {
            let mut url = endpoint.base_url.clone();
            let base = url.path().trim_end_matches('/');
            let base = base.strip_suffix(own).and_then(|base| base.strip_suffix('/')).unwrap_or(base);
            url.set_path(&format!("{base}/{path}"));
            url
        };
        let (url, embeddings_url) = (below(own), below("embeddings"));
        let limits = Limits { body: ANSWER_LIMIT, time: timeouts.request, redirects: 0 };
        let client =
            egress.endpoint(&url).map_err(|why| EndpointError::unreachable(endpoint.base_url.as_str(), &why))?;
        let quirks = &endpoint.quirks;
        let fields = Fields { length: quirks.length_field, temperature: true, stream_options: quirks.stream_usage };
        let client = client.with_limits(limits);
        let (url, embeddings_url) = (url.into(), embeddings_url.into());
        Ok(Self {
            client,
            url,
            embeddings_url,
            timeouts,
            fields: Mutex::new(fields),
            functions_refused: AtomicBool::new(false),
            endpoint,
        })
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        stream: bool,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<ModelReply, ModelError> {
        let mut attempt = 0;
        let mut adapted = 0;
        loop {
            let fields = *self.fields.lock().unwrap_or_else(PoisonError::into_inner);
            let mut shown = false;
            let mut show = |text: &str| {
                shown = true;
                on_delta(Delta::Text(text));
            };
            let failure = match self.attempt(&request, fields, stream, &mut show).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => Failure { error: failure.error.scrubbed(self.endpoint.key.as_ref()), ..failure },
            };
            let wait = match failure.then {
                // Not a failure of the endpoint's, so it counts apart from the repetitions.
                Then::Without(fields) if adapted < ADAPTIONS => {
                    adapted += 1;
                    *self.fields.lock().unwrap_or_else(PoisonError::into_inner) = fields;
                    Duration::ZERO
                }
                Then::Again(asked) if attempt < self.timeouts.retries => {
                    attempt += 1;
                    self.timeouts.wait(attempt - 1, asked)
                }
                Then::Again(_) | Then::Without(_) | Then::GiveUp => return Err(failure.error.after(attempt + 1)),
            };
            tracing::debug!(error = %failure.error, wait_ms = wait.as_millis(), "asking the model again");
            if shown {
                on_delta(Delta::Restart);
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest<'_>,
        fields: Fields,
        stream: bool,
        show: &mut (dyn FnMut(&str) + Send),
    ) -> Result<ModelReply, Failure> {
        let Endpoint { model, quirks, .. } = &self.endpoint;
        let body = match quirks.protocol {
            Protocol::Chat => wire::body(model, request, fields, stream),
            Protocol::Messages => anthropic::body(model, request, fields, stream),
        };
        let body = body.map_err(|why| Failure::final_(ModelError::unwritable_request(&why)))?;
        let mut response = self.client.start(self.http(&self.url, body)).await.map_err(|why| self.broken(&why))?;
        if !response.status.is_success() {
            let failure = self.refused(&mut response, self.asked(), fields).await;
            return Err(if request.functions.is_empty() { failure } else { self.without_functions(failure) });
        }
        let mut reader = ReplyReader::of(quirks);
        let mut head = Vec::new();
        let mut show = |text: &str| {
            if stream {
                show(text);
            }
        };
        while !reader.is_done() {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(_) if reader.is_whole() => break,
                Err(why) => return Err(self.broken(&why)),
            };
            let room = ERROR_LIMIT.saturating_sub(head.len());
            head.extend(piece.iter().take(room));
            reader.push(&piece, &mut show).map_err(|BadReply(wrong)| self.wrong(wrong, &head))?;
        }
        // What the model said is what runs: no word of it is changed, not even one that is the key.
        reader.finish(&mut show).map_err(|BadReply(wrong)| self.wrong(wrong, &head))
    }

    pub(super) fn http(&self, url: &str, body: Vec<u8>) -> Request {
        let mut request = Request::post(url, body);
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in &self.endpoint.quirks.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                request.headers.insert(name, value);
            }
        }
        if let Some(key) = &self.endpoint.key {
            match self.endpoint.quirks.protocol {
                Protocol::Chat => {
                    request.headers.insert(header::AUTHORIZATION, key.header());
                }
                Protocol::Messages => {
                    key.bare_header().into_iter().for_each(|key| drop(request.headers.insert("x-api-key", key)));
                }
            }
        }
        request
    }

    /// Takes an endpoint's word that it takes no functions, and remembers it.
    fn without_functions(&self, failure: Failure) -> Failure {
        if failure.error.kind() == ModelErrorKind::Request && failure.error.speaks_of_functions() {
            self.functions_refused.store(true, Ordering::Relaxed);
            return Failure { error: failure.error.of_functions(), then: Then::GiveUp };
        }
        failure
    }

    /// Reads what a response with a failure status says.
    pub(super) async fn refused(&self, response: &mut Streamed, asked: Asked<'_>, fields: Fields) -> Failure {
        let mut body = Vec::new();
        // What the body says is a courtesy: where it breaks off, the status still counts.
        while let Ok(Some(piece)) = response.chunk().await {
            let room = ERROR_LIMIT - body.len();
            body.extend(piece.iter().take(room));
            if body.len() == ERROR_LIMIT {
                break;
            }
        }
        let status = response.status.as_u16();
        let said = self.said(&body);
        let error = ModelError::of_status(asked, status, &said);
        let then = match status {
            400 | 422 => fields.without_refused(&said).map_or(Then::GiveUp, Then::Without),
            status if wire::passes(status) => {
                let asked = response.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                Then::Again(asked.and_then(|text| retry_after(text, SystemTime::now())))
            }
            _ => Then::GiveUp,
        };
        Failure { error, then }
    }

    pub(super) fn wrong(&self, wrong: Wrong, head: &[u8]) -> Failure {
        match wrong {
            Wrong::Reported { unavailable, status, said } => {
                let said = self.scrub(said);
                let error = match status {
                    Some(status) => ModelError::of_status(self.asked(), status, &said),
                    None => ModelError::in_answer(unavailable, &said),
                };
                Failure { error, then: if unavailable { Then::Again(None) } else { Then::GiveUp } }
            }
            Wrong::NotJson(why) => Failure::again(ModelError::malformed(&self.url, &why, &self.said(head))),
            Wrong::Excessive(what) => Failure::final_(ModelError::malformed(&self.url, &what, "")),
            Wrong::BrokeOff => Failure::again(ModelError::broke_off(&self.url)),
            Wrong::Nothing => {
                let why = if head.is_empty() { "the response is empty" } else { "it holds no message" };
                Failure::again(ModelError::malformed(&self.url, why, &self.said(head)))
            }
        }
    }

    pub(super) fn broken(&self, why: &wattle_capability::egress::EgressError) -> Failure {
        let error = ModelError::of_egress(why, self.timeouts.request);
        let certain = why.kind() == EgressErrorKind::Connect && why.to_string().contains("certificate");
        if why.is_transient() && !certain { Failure::again(error) } else { Failure::final_(error) }
    }

    pub(super) fn said(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        self.scrub(wire::words_of_error(&text).unwrap_or_else(|| text.into_owned()))
    }

    fn scrub(&self, text: String) -> String {
        match &self.endpoint.key {
            Some(key) => key.scrub(&text),
            None => text,
        }
    }

    pub(super) fn asked(&self) -> Asked<'_> {
        let Endpoint { model, key_variable, key, .. } = &self.endpoint;
        Asked { url: &self.url, model, key_variable, with_key: key.is_some() }
    }
}

impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn takes_functions(&self) -> bool {
        self.endpoint.quirks.functions && !self.functions_refused.load(Ordering::Relaxed)
    }

    fn mask(&self) -> Mask {
        Mask::of(self.endpoint.key.clone())
    }

    fn complete<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move { self.ask(request, false, &mut |_| {}).await }.boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.ask(request, true, on_delta).boxed()
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<Embedded, ModelError>> {
        match self.endpoint.quirks.protocol {
            Protocol::Chat => self.embedding(text).boxed(),
            Protocol::Messages => std::future::ready(Err(ModelError::embeds_nothing(self.name()))).boxed(),
        }
    }
}

/// Is a failed attempt, and what to do about it.
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) then: Then,
}

pub(super) enum Then {
    GiveUp,
    /// Ask again, after the time that the server named.
    Again(Option<Duration>),
    /// Ask again at once, with these fields.
    Without(Fields),
}

impl Failure {
    pub(super) fn again(error: ModelError) -> Self {
        Self { error, then: Then::Again(None) }
    }

    pub(super) fn final_(error: ModelError) -> Self {
        Self { error, then: Then::GiveUp }
    }
}
