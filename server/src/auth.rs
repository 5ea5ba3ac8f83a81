//! Authorization of requests by their bearer tokens.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use wattle_agent::Scope;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::quota;
use crate::state::Shared;

/// Rejects requests whose token lacks the scope, and requests that exceed the token's rate limit.
/// Adds the [`Caller`] to all other requests.
pub(crate) async fn require(
    State((shared, scope)): State<(Arc<Shared>, Scope)>,
    mut request: Request,
    next: Next,
) -> Response {
    match authorize(&shared, scope, request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

async fn authorize(shared: &Shared, scope: Scope, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let shown = bearer(headers).ok_or_else(|| ApiError::unauthorized(false))?;
    let caller = caller(shared, shown).await?;
    shared.quotas.check(quota::key(shown))?;
    caller.require(scope)?;
    Ok(caller)
}

/// Returns the caller with this token. Fails if the token is neither the server's own nor listed in
/// the store.
async fn caller(shared: &Shared, shown: &[u8]) -> Result<Caller, ApiError> {
    let own = shared.app.own();
    if shared.token.admits(shown) {
        return Ok(Caller { store: own.store.clone(), scope: Scope::Admin, limited: None });
    }
    let found = own.store.file().token(shown).await?;
    let (tenant, scope) = found.ok_or_else(|| ApiError::unauthorized(true))?;
    let parts = shared.app.tenant(&tenant).map_err(|why| {
        tracing::error!(%tenant, why, "failed to open a tenant");
        ApiError::unavailable()
    })?;
    Ok(Caller { store: parts.store, scope, limited: Some(quota::key(shown)) })
}

/// Returns the request's bearer token, or `None` if the request has none.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
