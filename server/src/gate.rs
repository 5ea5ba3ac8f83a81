//! The first check on every request: its `Host` and `Origin` headers must be accepted.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::names::{HostName, Origin};
use crate::settings::ServerSettings;

/// The routes for the server's state, which probes and monitoring request. Every client may use them
/// over a reserved connection and under any host name.
const STATE_ROUTES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Returns true if the request is for the server's state.
pub(crate) fn is_for_state(request: &Request) -> bool {
    STATE_ROUTES.contains(&request.uri().path())
}

/// The accepted host names and origins.
pub(crate) struct Gate {
    /// The accepted host names, or `None` if every name is accepted.
    hosts: Option<Vec<HostName>>,
    origins: Vec<Origin>,
}

/// The sender of a request.
enum Caller {
    /// A client that is not a web page, or a page of the server itself.
    Own,
    /// A page of a listed origin, with the value of its `Origin` header.
    Listed(HeaderValue),
}

impl Gate {
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        let address = settings.listen.ip();
        let mut hosts = settings.allowed_hosts.clone();
        let open = hosts.is_empty() && !address.is_loopback();
        hosts.push(address.into());
        hosts.extend(
            ["localhost", "127.0.0.1", "[::1]"].iter().filter_map(|name| name.parse().ok()),
        );
        Gate { hosts: (!open).then_some(hosts), origins: settings.allowed_origins.clone() }
    }

    /// Returns the authority of the request. Fails if its host name is not accepted. Requests for
    /// the server's state may have any name, because probes use the address, and none if they use
    /// HTTP/1.0.
    fn authority(&self, request: &Request) -> Result<Option<Authority>, ApiError> {
        let mut given = request.headers().get_all(header::HOST).iter();
        let (host, more) = (given.next(), given.next());
        if more.is_some() {
            return Err(ApiError::bad_host());
        }
        let is_for_state = is_for_state(request);
        // A request target in absolute form overrides the header `Host`. An HTTP/1.0 request may
        // omit the header.
        let authority = match (request.uri().authority(), host) {
            (Some(authority), _) => authority.clone(),
            (None, Some(host)) => {
                Authority::try_from(host.as_bytes()).map_err(|_| ApiError::bad_host())?
            }
            (None, None) if is_for_state && request.version() == Version::HTTP_10 => {
                return Ok(None);
            }
            (None, None) => return Err(ApiError::bad_host()),
        };
        let name = HostName::of(&authority).ok_or_else(ApiError::bad_host)?;
        match &self.hosts {
            Some(hosts) if !is_for_state && !hosts.contains(&name) => {
                Err(ApiError::host_not_allowed(&name))
            }
            _ => Ok(Some(authority)),
        }
    }

    /// Checks that no header that affects access is repeated.
    fn unambiguous(headers: &HeaderMap) -> Result<(), ApiError> {
        for (header, name) in [(header::AUTHORIZATION, "Authorization"), (header::ORIGIN, "Origin")]
        {
            if headers.get_all(header).iter().nth(1).is_some() {
                return Err(ApiError::repeated_header(name));
            }
        }
        Ok(())
    }

    fn caller(
        &self,
        headers: &HeaderMap,
        authority: Option<&Authority>,
    ) -> Result<Caller, ApiError> {
        let Some(value) = headers.get(header::ORIGIN) else { return Ok(Caller::Own) };
        let text = String::from_utf8_lossy(value.as_bytes());
        let refused = || ApiError::origin_not_allowed(&text);
        let origin: Origin = text.parse().map_err(|_| refused())?;
        if self.origins.contains(&origin) {
            Ok(Caller::Listed(value.clone()))
        } else if authority.is_some_and(|authority| origin.is_of(authority)) {
            Ok(Caller::Own)
        } else {
            Err(refused())
        }
    }
}

/// Rejects requests that fail the checks, responds to preflight requests, and adds the CORS headers
/// for pages of listed origins.
pub(crate) async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let checked = gate.authority(&request).and_then(|authority| {
        Gate::unambiguous(request.headers())?;
        gate.caller(request.headers(), authority.as_ref())
    });
    let caller = match checked {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    let Caller::Listed(origin) = caller else { return next.run(request).await };
    let mut response = if is_preflight(&request) { preflight() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("x-session-id, x-run-id, location, retry-after, x-should-retry"),
    );
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    response
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight() -> Response {
    let headers: [(HeaderName, &'static str); 3] = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, last-event-id"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}
