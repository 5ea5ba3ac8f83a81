//! The server's errors and their messages for the client and the log.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use wattle_agent::host::capability::files::{ErrorKind, FilesError};
use wattle_agent::host::rt::{Code, Failure};
use wattle_agent::host::service::{AnswerError, FollowError, StartError};
use wattle_agent::host::{SessionFilesError, StoreError};

use crate::names::HostName;

/// The error returned if the server fails to listen on its address.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on `{listen}`: {cause}")]
pub struct ServeError {
    pub(crate) listen: SocketAddr,
    #[source]
    pub(crate) cause: std::io::Error,
}

/// An error response to a client.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// The number of seconds after which the same request may succeed, or `None` if it never will.
    retry: Option<u64>,
}

/// Number of seconds after which a client may retry if the server is full.
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

    /// Returns the message, with the hint on a line of its own.
    pub(crate) fn sentence(self) -> String {
        match self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.message),
            None => self.message,
        }
    }

    /// Creates the error for an invalid request.
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

    /// Creates the error for a repeated header. This server and a proxy might use different values
    /// of a repeated header.
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

    /// Creates the error for a path that no route has. `nearest` is the method and the path of the
    /// route that the client probably meant.
    pub(crate) fn no_route(path: &str, nearest: Option<(&str, &str)>) -> Self {
        let nearest = nearest.map(|(method, path)| format!("did you mean `{method} {path}`? "));
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("no route `{path}`"))
            .hint(nearest.unwrap_or_default() + "`GET /openapi.json` lists the routes")
    }

    /// Creates the error for an unknown id. Resources of other tenants count as unknown.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let id = wattle_agent::host::rt::truncate(id, MAX_ID);
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what} `{id}`"))
    }

    /// Creates the error for an id that is already in use.
    pub(crate) fn taken(what: &str, id: &str) -> Self {
        let message = format!("there is a {what} `{id}` already");
        ApiError::new(StatusCode::CONFLICT, "conflict", message).hint("use another name")
    }

    /// Creates the error for a session whose messages were replaced in the meantime.
    pub(crate) fn session_changed() -> Self {
        let message = "the messages of the session were replaced in the meantime";
        ApiError::new(StatusCode::CONFLICT, "conflict", message).hint("repeat the request")
    }

    /// Creates the error for a program that already exists in a different version.
    pub(crate) fn not_replaced(name: &str) -> Self {
        ApiError::taken("program", name)
            .hint("use another name, or send `\"replace\": true` to replace it")
    }

    /// Creates the error for a new program that has the name of a built-in program.
    pub(crate) fn built_in(name: &str) -> Self {
        let message = format!("`{name}` is the name of a built-in program");
        ApiError::new(StatusCode::CONFLICT, "conflict", message).hint("use another name")
    }

    /// Creates the error for a server without a folder, or a caller that may not change it, because
    /// only administrators of the server's own tenant may do so.
    pub(crate) fn no_workdir() -> Self {
        let message = "there is no folder to which this token may apply changes";
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
            .hint("start the server with `--root DIR`, and use a token of its own tenant")
    }

    /// Creates the error for a session whose files cannot be changed now.
    pub(crate) fn session_in_use(id: &str) -> Self {
        let message = format!("a run of the session `{id}` is active");
        ApiError::new(StatusCode::CONFLICT, "held", message).hint("try again when it has ended")
    }

    /// Creates the error for a caller that may not change the server's programs, because only
    /// administrators of the server's own tenant may do so.
    pub(crate) fn foreign_catalog() -> Self {
        let message = "the programs of the server belong to its own tenant";
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
            .hint("use a token of the server's own tenant")
    }

    /// Creates the error for a server without a writable program folder.
    pub(crate) fn no_folder() -> Self {
        let message = "the server has no folder of programs that it can write";
        ApiError::new(StatusCode::FORBIDDEN, "read_only", message)
            .hint("start it with `--catalog DIR`, and a folder that its user may write")
    }

    /// Creates the error for a body that is not a JSON document.
    pub(crate) fn not_json(message: impl Into<String>) -> Self {
        ApiError::bad_request(message, "send a JSON object in UTF-8")
    }

    /// Creates the error for a field that is unknown, missing or invalid.
    pub(crate) fn invalid_field(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", message)
            .hint("`GET /openapi.json` describes the fields")
    }

    pub(crate) fn bad_upgrade(message: &str) -> Self {
        ApiError::bad_request(message, "send a WebSocket handshake, or follow the run without it")
    }

    pub(crate) fn missing_scope(scope: &str) -> Self {
        let message = format!("the token does not have the scope `{scope}`");
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
            .hint("use a token that was created with this scope")
    }

    pub(crate) fn not_operator() -> Self {
        let message = "the token belongs to another tenant than the server's own";
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
            .hint("use the server's own token, or an `admin` token of its tenant")
    }

    pub(crate) fn too_many_requests(limit: u32, wait: Duration) -> Self {
        let message = format!("the token made more than {limit} requests in a minute");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            .hint("send fewer requests; a stream or a WebSocket replaces polling")
            .retry(wait.as_secs().saturating_add(1))
    }

    pub(crate) fn too_many_wrong_tokens(wait: Duration) -> Self {
        let message = "too many requests with unknown tokens came from this address";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
            .hint("try again later, with a token that the server knows")
            .retry(wait.as_secs().saturating_add(1))
    }

    /// Creates the error for a server whose resources are all in use.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
            .hint("try again soon")
            .retry(SOON)
    }

    /// Creates the error for a token or a tenant that uses all of its resources of one kind.
    pub(crate) fn too_many(code: &'static str, what: &str, owner: &str, limit: usize) -> Self {
        let message =
            format!("{limit} {what} of this {owner} are active, the maximum of a {owner}");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, message)
            .hint("wait until one of them has ended")
            .retry(SOON)
    }

    pub(crate) fn no_memory() -> Self {
        ApiError::overloaded("other requests use the memory for the bodies and files of requests")
    }

    /// Creates the error for a request that needs more memory than a request may use.
    pub(crate) fn needs_too_much(bytes: usize, limit: usize) -> Self {
        let (bytes, limit) = (bytes.div_ceil(1 << 20), limit >> 20);
        let message =
            format!("the request takes {bytes} MiB of memory; the maximum is {limit} MiB");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "memory_exceeded", message)
            .hint("use smaller files, or raise the setting `limits.process_memory_mb`")
    }

    /// Creates the error for a request that was carried out but whose response does not fit in
    /// memory. Repeating the request might repeat its effect.
    pub(crate) fn response_dropped() -> Self {
        let message = "the request was carried out, but there is no memory for its response";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "response_dropped", message)
            .hint("do not repeat the request; read its result with a `GET` request")
    }

    /// Creates the error for a run that continues although the server can no longer wait for it.
    pub(crate) fn run_goes_on(cause: impl Into<ApiError>, run: &str) -> Self {
        let hint = format!("do not send the message again; follow `GET /api/run/{run}/stream`");
        ApiError { retry: None, ..cause.into() }.hint(hint)
    }

    /// Creates the error for a run that is cancelled because the server can no longer wait for it.
    /// Its programs may have had effects.
    pub(crate) fn run_dropped(cause: impl Into<ApiError>, run: &str) -> Self {
        let hint = format!(
            "do not repeat the request: the run is cancelled, but its programs may have had \
             effects; `GET /api/run/{run}` shows them"
        );
        ApiError { retry: None, ..cause.into() }.hint(hint)
    }

    /// Creates the error for a program that ran but whose files could not be added to its session.
    /// The cause is logged but not sent to the client.
    pub(crate) fn files_not_saved(cause: &StoreError) -> Self {
        tracing::error!(%cause, "failed to save the files of a program");
        let message = "the program ran, but its changes to files could not be saved";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "files_not_saved", message)
            .hint("repeat the request only if the program's other effects may happen twice")
    }

    /// Creates the error for an internal failure. The cause is logged but not sent to the client.
    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        let message = "the server failed; its log says why";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// Creates the error for a run that ended because its model or host failed.
    pub(crate) fn model_failed(message: &str) -> Self {
        let message = message.strip_prefix("error: ").unwrap_or(message);
        ApiError::new(StatusCode::BAD_GATEWAY, "run_failed", message)
    }

    pub(crate) fn unknown_model(name: &str, known: &[String]) -> Self {
        let name = wattle_agent::host::rt::truncate(name, MAX_ID);
        let message = format!("there is no model `{name}`");
        ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message)
            .hint(format!("use one of {}", known.join(", ")))
    }

    /// Returns the error as an event in a stream of the OpenAI API.
    pub(crate) fn as_event(&self) -> serde_json::Value {
        serde_json::json!({"code": self.code, "message": self.message, "param": null})
    }

    pub(crate) fn unavailable(reason: &str) -> Self {
        let message = format!("the server cannot use its store: {reason}");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
            .hint("try again soon")
            .retry(SOON)
    }

    /// Creates the error for data that would exceed a limit of the store.
    pub(crate) fn store_full(cause: &StoreError) -> Self {
        let cause = cause.to_string();
        let (message, hint) = cause.split_once("\nhint: ").unwrap_or((&cause, ""));
        ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "store_full", message.to_owned()).hint(hint)
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
        ApiError::overloaded(format!("{limit} runs are active, the maximum of this server"))
    }

    pub(crate) fn tenant_busy(limit: usize) -> Self {
        let message = format!("{limit} runs of this tenant are active, the maximum of a tenant");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", message)
            .hint("wait until one of them has ended; `POST /api/run` queues runs")
            .retry(SOON)
    }

    pub(crate) fn queue_full(limit: usize) -> Self {
        let message = format!("{limit} runs of this tenant are queued, the maximum of a tenant");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message)
            .hint("wait until some of them have begun")
            .retry(SOON)
    }

    pub(crate) fn too_many_connections(limit: usize) -> Self {
        ApiError::overloaded(format!("{limit} connections are open, the maximum of this server"))
    }

    pub(crate) fn stopping() -> Self {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is about to stop")
            .hint("try again when it is back")
            .retry(SOON)
    }

    /// Returns the body of the error response, as JSON.
    pub(crate) fn json(&self) -> String {
        let error = ErrorDetail {
            code: self.code,
            message: self.message.clone(),
            hint: self.hint.clone(),
            retryable: self.retry.is_some(),
        };
        serde_json::to_string(&ErrorBody { error }).unwrap_or_default()
    }

    /// Returns the whole HTTP response, for a connection without a valid request.
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
        } else {
            // The clients of the OpenAI API repeat requests by their status unless this header says
            // otherwise.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The body of an error response.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct ErrorBody {
    /// The error.
    error: ErrorDetail,
}

/// The details of an error.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct ErrorDetail {
    /// The machine-readable code.
    code: &'static str,
    /// The message.
    message: String,
    /// A suggested correction.
    hint: Option<String>,
    /// If true, the same request may succeed after the time in the `Retry-After` header.
    retryable: bool,
}

/// Maximum length of an id in an error message, in characters.
const MAX_ID: usize = 80;

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        if error.is_outage() {
            tracing::error!(%error, "the store cannot be used");
            return ApiError::unavailable(error.reason());
        }
        if error.is_full() {
            return ApiError::store_full(&error);
        }
        ApiError::internal(error)
    }
}

impl From<FollowError> for ApiError {
    fn from(error: FollowError) -> ApiError {
        match error {
            FollowError::Unknown => ApiError::internal("the run is gone"),
            FollowError::Below(_) | FollowError::UnknownEvent(_) => ApiError::internal(error),
            FollowError::Suspended(_) => ApiError::stopping(),
            FollowError::Store(error) => error.into(),
        }
    }
}

impl From<SessionFilesError> for ApiError {
    fn from(fault: SessionFilesError) -> ApiError {
        match fault {
            SessionFilesError::Store(error) => error.into(),
            SessionFilesError::Files(error) => error.into(),
            SessionFilesError::Replaced => ApiError::overloaded(fault.to_string()),
        }
    }
}

impl From<FilesError> for ApiError {
    fn from(error: FilesError) -> ApiError {
        if error.kind() == ErrorKind::NotFound {
            ApiError::new(StatusCode::NOT_FOUND, "not_found", error.to_string())
        } else {
            ApiError::invalid_field(error.to_string())
        }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> ApiError {
        match failure.code {
            Code::EBUDGET => ApiError::invalid_field(failure.reason),
            _ => ApiError::internal(failure.reason),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> ApiError {
        match error {
            StartError::Stopping => ApiError::stopping(),
            StartError::TooManyRuns(limit) => ApiError::too_many_runs(limit),
            StartError::TenantBusy(limit) => ApiError::tenant_busy(limit),
            StartError::QueueFull(limit) => ApiError::queue_full(limit),
            StartError::SessionBusy(waiting) => ApiError::session_busy(waiting),
            StartError::Store(error) => error.into(),
        }
    }
}

impl From<AnswerError> for ApiError {
    fn from(error: AnswerError) -> ApiError {
        let conflict = |code, hint: &str| {
            ApiError::new(StatusCode::CONFLICT, code, error.to_string()).hint(hint)
        };
        match error {
            AnswerError::Unknown => {
                ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is no such run")
            }
            AnswerError::Ended => conflict("ended", "start another run"),
            AnswerError::NotAsked
            | AnswerError::NotAskedAbout(_)
            | AnswerError::Pending(_)
            | AnswerError::Parked(_) => {
                conflict("not_waiting", "`GET /api/run/{id}` lists what the run waits for")
            }
            AnswerError::Agent(_) => {
                conflict("no_agent", "declare the agent, or start another run")
            }
            AnswerError::Held => conflict("held", "try again when the other process has ended"),
            AnswerError::TooFar { .. }
            | AnswerError::OverLimit { .. }
            | AnswerError::OverBudget(_)
            | AnswerError::Engine(_) => ApiError::invalid_field(error.to_string()),
            AnswerError::Start(error) => error.into(),
            AnswerError::Store(error) => error.into(),
        }
    }
}
