//! Streamable HTTP over the egress: rmcp's port for HTTP clients, with the operator's endpoint
//! client and its limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::{Sse, SseStream};
use wattle_agent::host::capability::egress::{
    EgressError, EndpointClient, Limits, Request, StreamedResponse,
};

use crate::oauth::{Access, Challenge};

/// Maximum time of a request, including the stream of its response.
const TIME: Duration = Duration::from_secs(3_600);

/// Maximum size of all events of one response, in bytes.
const MAX_STREAM: usize = 64 << 20;

/// Maximum size of an error's body, in bytes.
const MAX_ERROR: usize = 64 << 10;

/// The header that names the session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The header that names the last event.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The media types of the response to a message.
const POSTED: &str = "text/event-stream, application/json";

/// A client that sends each request through the egress.
#[derive(Clone)]
pub(crate) struct EgressHttp {
    client: EndpointClient,
    headers: HeaderMap,
    access: Option<Arc<Access>>,
}

type Failed = StreamableHttpError<EgressError>;

impl EgressHttp {
    /// Creates a client that adds `headers` and the token of `access` to each request.
    pub(crate) fn new(
        client: EndpointClient,
        headers: HeaderMap,
        access: Option<Access>,
    ) -> EgressHttp {
        let limits = Limits { body: MAX_STREAM, time: TIME, ..Limits::default() };
        EgressHttp { client: client.with_limits(limits), headers, access: access.map(Arc::new) }
    }

    /// Returns the tokens of the user's sign-in, or `None` if there can be none.
    pub(crate) fn access(&self) -> Option<&Access> {
        self.access.as_deref()
    }

    /// Returns how the server responds to a request without a token.
    pub(crate) async fn challenge(&self, url: &str) -> Result<Challenge, EgressError> {
        let mut headers = self.headers.clone();
        headers.insert(http::header::ACCEPT, HeaderValue::from_static(POSTED));
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#);
        let request = Request { method: Method::POST, url: url.to_owned(), headers, body };
        let limits = Limits { body: MAX_ERROR, ..Limits::default() };
        let response = self.client.with_limits(limits).start(request).await?;
        let header = Challenge::header(&response.headers).unwrap_or_default();
        Ok(Challenge::parse(&header))
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        accept: &'static str,
        body: Option<Bytes>,
        named: (Option<Arc<str>>, Option<String>),
        given: (Option<String>, HashMap<HeaderName, HeaderValue>),
    ) -> Result<StreamedResponse, Failed> {
        let ((session, last_event), (token, custom)) = (named, given);
        let mut headers = self.headers.clone();
        headers.extend(custom.into_iter().map(|(name, value)| (Some(name), value)));
        headers.insert(http::header::ACCEPT, HeaderValue::from_static(accept));
        if body.is_some() {
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        }
        let mut put = |name: HeaderName, text: &str| {
            let value = HeaderValue::from_str(text).map_err(|_| {
                StreamableHttpError::UnexpectedServerResponse(
                    format!("`{name}` of the server is no value of a header").into(),
                )
            });
            value.map(|value| headers.insert(name, value)).map(drop)
        };
        session.map_or(Ok(()), |session| put(SESSION, &session))?;
        last_event.map_or(Ok(()), |event| put(LAST_EVENT, &event))?;
        if let Some(token) = token {
            put(http::header::AUTHORIZATION, &format!("Bearer {token}"))?;
        }
        let body = body.unwrap_or_default();
        let response = self.start(Request { method, url: url.to_owned(), headers, body }).await?;
        match (response.status, Challenge::header(&response.headers)) {
            (StatusCode::UNAUTHORIZED, challenge) => Err(StreamableHttpError::AuthRequired(
                AuthRequiredError::new(challenge.unwrap_or_default()),
            )),
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(
                    challenge, None,
                )))
            }
            _ => Ok(response),
        }
    }

    /// Sends a request with the token of the user's sign-in. If the server rejects the token, the
    /// request is sent once more with another one.
    async fn start(&self, mut request: Request) -> Result<StreamedResponse, Failed> {
        let start = |request| async {
            self.client.start(request).await.map_err(StreamableHttpError::Client)
        };
        let failed = |why: String| StreamableHttpError::Io(std::io::Error::other(why));
        let Some(access) = &self.access else { return start(request).await };
        let Some(token) = access.token().await.map_err(failed)? else {
            return start(request).await;
        };
        request.headers.insert(http::header::AUTHORIZATION, bearer(&token).map_err(failed)?);
        let response = start(request.clone()).await?;
        if response.status != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let Some(token) = access.another(&token).await.map_err(failed)? else {
            return Ok(response);
        };
        request.headers.insert(http::header::AUTHORIZATION, bearer(&token).map_err(failed)?);
        start(request).await
    }
}

fn bearer(token: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| "its token is no value of a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns true if the response has this media type, whatever its parameters.
fn is_type(headers: &HeaderMap, kind: &str) -> bool {
    let value = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(kind)
}

/// Reads a body of at most `limit` bytes. Returns `None` if it is larger.
async fn body(response: &mut StreamedResponse, limit: usize) -> Result<Option<Vec<u8>>, Failed> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(StreamableHttpError::Client)? {
        if body.len() + piece.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// Returns the events of a response. An event of more than `limit` bytes ends the stream with an
/// error.
fn events(response: StreamedResponse, limit: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let pieces = futures_util::stream::try_unfold(
        (response, 0_usize),
        move |(mut response, size)| async move {
            let Some(piece) = response.chunk().await.map_err(std::io::Error::other)? else {
                return Ok::<_, std::io::Error>(None);
            };
            // Events end with an empty line.
            let end = piece
                .windows(2)
                .rposition(|two| two == b"\n\n" || two == b"\n\r" || two == b"\r\r");
            let size = end.map_or(size + piece.len(), |at| piece.len() - at);
            if size > limit {
                let why = format!("an event has more than {} MiB", limit >> 20);
                return Err(std::io::Error::other(why));
            }
            Ok(Some((piece, (response, size))))
        },
    );
    SseStream::from_bytes_stream(pieces.boxed()).boxed()
}

impl StreamableHttpClient for EgressHttp {
    type Error = EgressError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, token, custom, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let in_session = session.is_some();
        let text = serde_json::to_vec(&message).map_err(StreamableHttpError::Deserialize)?;
        let (named, given) = ((session, None), (token, custom));
        let mut response =
            self.send(Method::POST, &uri, POSTED, Some(text.into()), named, given).await?;
        let status = response.status;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers.get(SESSION).and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        if status.is_success() && is_type(&response.headers, EVENTS) {
            let events = events(response, limits.max_sse_event_size);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let limit = if status.is_success() { limits.max_json_response_size } else { MAX_ERROR };
        let Some(text) = body(&mut response, limit).await? else {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: limit });
        };
        let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&text);
        if status.is_success() {
            let wants_none = !matches!(message, JsonRpcMessage::Request(_));
            return match parsed {
                _ if wants_none => Ok(StreamableHttpPostResponse::Accepted),
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(error) => {
                    let kind = response.headers.get(http::header::CONTENT_TYPE);
                    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()));
                    let kind = kind.unwrap_or_else(|| "no type".into());
                    let why = format!("a body of {kind} that is not a message: {error}");
                    Err(StreamableHttpError::UnexpectedServerResponse(why.into()))
                }
            };
        }
        let shown = String::from_utf8_lossy(text.get(..text.len().min(500)).unwrap_or_default());
        match (parsed, &message) {
            // A server that does not know discovery rejects it as a whole, sometimes with another
            // id, so the rejection is given the id of the request.
            (parsed, JsonRpcMessage::Request(request))
                if status.is_client_error()
                    && !in_session
                    && matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
            {
                let error = match parsed {
                    Ok(JsonRpcMessage::Error(error)) => error.error,
                    _ => ErrorData::invalid_request(format!("HTTP {status}: {shown}"), None),
                };
                let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(message, None))
            }
            (Ok(message @ JsonRpcMessage::Error(_)), _) => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ => Err(StreamableHttpError::UnexpectedServerResponse(
                format!("HTTP {status}: {shown}").into(),
            )),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let (named, given) = ((Some(session), None), (token, custom));
        self.send(Method::DELETE, &uri, JSON, None, named, given).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, custom, limit)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
        limit: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let (named, given) = ((session, last_event), (token, custom));
        let response = self.send(Method::GET, &uri, EVENTS, None, named, given).await?;
        match response.status {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => {
                Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()))
            }
            _ if !is_type(&response.headers, EVENTS) => {
                Err(StreamableHttpError::UnexpectedContentType(None))
            }
            _ => Ok(events(response, limit)),
        }
    }
}
