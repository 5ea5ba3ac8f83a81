//! The errors and all of their wording: one text for the client, one for the log.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::names::HostName;

/// The reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on `{listen}`: {cause}")]
pub struct ServeError {
    pub(crate) listen: SocketAddr,
    #[source]
    pub(crate) cause: std::io::Error,
}

/// An error answer to a client.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// The number of seconds after which the same request may succeed; `None` if it never will.
    retry: Option<u64>,
}

/// The number of seconds to wait if the server is full.
const SOON: u64 = 2;

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        ApiError { status, code, message: message.into(), hint: None, retry: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        ApiError { hint: Some(hint.into()), ..self }
    }

    fn retry(self, seconds: u64) -> Self {
        ApiError { retry: Some(seconds), ..self }
    }

    /// Reports a body that is not a valid request.
    pub(crate) fn bad_request(message: impl Into<String>, hint: &str) -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message).hint(hint)
    }

    pub(crate) fn not_http() -> Self {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", "the request is not valid HTTP/1.1")
            .hint("send a request line, headers and an empty line, each ended by CRLF")
    }

    pub(crate) fn bad_host() -> Self {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            "the request has no valid `Host` header",
        )
        .hint("send exactly one `Host` header with the server's name and port")
    }

    /// Reports a repeated header. This server and a proxy could each use a different one.
    pub(crate) fn repeated_header(name: &str) -> Self {
        let message = format!("the request has more than one `{name}` header");
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message)
            .hint(format!("send exactly one `{name}` header"))
    }

    pub(crate) fn broken_body() -> Self {
        ApiError::bad_request(
            "the body is incomplete or does not match its headers",
            "send the whole body",
        )
    }

    pub(crate) fn unauthorized(shown: bool) -> Self {
        let message =
            if shown { "the bearer token is wrong" } else { "the request has no bearer token" };
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message).hint(
            "send `Authorization: Bearer <token>` with the token that the server was started with",
        )
    }

    pub(crate) fn host_not_allowed(host: &HostName) -> Self {
        ApiError::new(
            StatusCode::FORBIDDEN,
            "host_not_allowed",
            format!("the server does not answer for the host `{host}`"),
        )
        .hint(
            "use `localhost` or `127.0.0.1`, or start the server with `--allow-name` and that name",
        )
    }

    pub(crate) fn origin_not_allowed(origin: &str) -> Self {
        let message = format!("pages of the origin `{origin}` may not use this server");
        ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
            .hint("start the server with `--allow-origin` and that origin to permit it")
    }

    pub(crate) fn not_found(path: &str) -> Self {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("no route `{path}`"))
            .hint("`POST /chat` starts a run, `GET /healthz` reports the server's health")
    }

    pub(crate) fn method_not_allowed(method: &str, path: &str) -> Self {
        ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            format!("`{path}` does not allow {method}"),
        )
        .hint("the header `Allow` of this answer lists the methods")
    }

    pub(crate) fn not_json_type(found: &str) -> Self {
        let message = format!("the body is declared as `{found}`, not as JSON");
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
            .hint("send `Content-Type: application/json`")
    }

    pub(crate) fn head_too_large() -> Self {
        ApiError::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "headers_too_large",
            "the request's headers are too large",
        )
        .hint("send fewer or shorter headers")
    }

    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
            .hint("send a shorter message")
    }

    pub(crate) fn slow(part: &str, limit: Duration) -> Self {
        let message =
            format!("the request's {part} did not arrive within {} s", limit.as_secs_f32());
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
            .hint("send the request at once")
            .retry(0)
    }

    pub(crate) fn session_busy(waiting: usize) -> Self {
        let message = format!("{waiting} messages of this session are waiting already");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "session_busy", message)
            .hint("wait for their answers; different sessions run in parallel")
            .retry(SOON)
    }

    pub(crate) fn too_many_runs(limit: usize) -> Self {
        let message = format!("{limit} runs are active, the maximum of this server");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
            .hint("try again soon")
            .retry(SOON)
    }

    pub(crate) fn too_many_connections(limit: usize) -> Self {
        let message = format!("{limit} connections are open, the maximum of this server");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
            .hint("try again soon")
            .retry(SOON)
    }

    pub(crate) fn stopping() -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is about to stop")
            .hint("try again when it is back")
            .retry(SOON)
    }

    fn json(&self) -> String {
        let (code, message, hint, retryable) =
            (self.code, &self.message, &self.hint, self.retry.is_some());
        json!({"error": {"code": code, "message": message, "hint": hint, "retryable": retryable}})
            .to_string()
    }

    /// Returns the whole answer in bytes, for a connection without a valid request.
    pub(crate) fn on_the_wire(&self) -> String {
        let (status, body) = (self.status, self.json());
        let retry =
            self.retry.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: \
             {length}\r\n{retry}connection: close\r\n\r\n{body}"
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.json()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Messages of `error` events for runs that did not start or ended without an event.
pub(crate) mod stream_error {
    pub(crate) const STORE: &str =
        "error: the session could not be read; the server's log says why";
    pub(crate) const BROKE_OFF: &str =
        "error: the run was aborted, which is a bug; the server's log says more";
    pub(crate) const CANCELLED: &str = "error: the server stopped before the session's turn began";
    pub(crate) const LAGGED: &str =
        "error: the client read the events too slowly, so the run was cancelled";
}
