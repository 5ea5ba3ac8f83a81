//! The token check.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;
use crate::routes::Shared;

/// Rejects requests without the server's token.
pub(crate) async fn require(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    match bearer(request.headers()) {
        Some(shown) if shared.token.admits(shown) => next.run(request).await,
        shown => ApiError::unauthorized(shown.is_some()).into_response(),
    }
}

/// Returns the bearer token of the request.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
