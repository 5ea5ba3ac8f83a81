//! Authorization of requests by their bearer tokens.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use wattle_agent::host::Scope;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::quota::{self, Kind};
use crate::route::Protection;
use crate::seat::Seat;
use crate::state::Shared;

/// Rejects a request if its token lacks the required scope or exceeds a quota. Otherwise adds the
/// [`Caller`] to the request. If the token is revoked before the request is answered, the request ends
/// as it does when its client disconnects. The response holds its memory or its stream slot until it
/// has been sent.
pub(crate) async fn require(
    State((shared, protection)): State<(Arc<Shared>, Protection)>,
    mut request: Request,
    next: Next,
) -> Response {
    let address = request.extensions().get::<Seat>().and_then(Seat::peer);
    let caller = match authorize(&shared, protection, (request.headers(), address)).await {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    let used = match caller.slot(&shared.quotas, Kind::Request) {
        Ok(slot) => slot,
        Err(error) => return error.into_response(),
    };
    let (memory, stream) = (caller.memory.clone(), caller.stream.clone());
    let is_repeatable = request.method().is_safe();
    request.extensions_mut().insert(caller);
    let response = tokio::select! {
        biased;
        response = next.run(request) => response,
        () = used.revoked().cancelled() => return ApiError::unauthorized(true).into_response(),
    };
    memory.respond(response, stream, is_repeatable)
}

async fn authorize(
    shared: &Shared,
    protection: Protection,
    (headers, address): (&HeaderMap, Option<IpAddr>),
) -> Result<Caller, ApiError> {
    let shown = bearer(headers).ok_or_else(|| ApiError::unauthorized(false))?;
    let mut caller = caller(shared, shown, address).await?;
    shared.quotas.check(quota::key(shown))?;
    caller.require(protection.scope)?;
    if protection.streams {
        caller.stream = Some(Arc::new(caller.slot(&shared.quotas, Kind::Stream)?));
    }
    Ok(caller)
}

/// Returns true if the request has the server's own token.
pub(crate) fn is_own(shared: &Shared, headers: &HeaderMap) -> bool {
    bearer(headers).is_some_and(|shown| shared.token.admits(shown))
}

/// Returns the caller with this token. Fails if the token is neither the server's own nor listed in
/// the store.
async fn caller(
    shared: &Shared,
    shown: &[u8],
    address: Option<IpAddr>,
) -> Result<Caller, ApiError> {
    let own = shared.app.own();
    if shared.token.admits(shown) {
        let (store, memory) = (own.store.clone(), shared.accounts.own());
        return Ok(Caller { store, scope: Scope::Admin, limited: None, memory, stream: None });
    }
    let key = quota::key(shown);
    let Some((tenant, scope)) = own.store.file().token(shown).await? else {
        return Err(match shared.attempts.wrong(address, key) {
            Some(wait) => ApiError::too_many_wrong_tokens(wait),
            None => ApiError::unauthorized(true),
        });
    };
    let parts = shared.app.tenant(&tenant).map_err(|why| {
        tracing::error!(%tenant, why, "failed to open a tenant");
        ApiError::unavailable("it cannot be opened for the tenant of this token")
    })?;
    let memory = shared.accounts.of_tenant(&tenant);
    Ok(Caller { store: parts.store, scope, limited: Some(key), memory, stream: None })
}

/// Returns the request's bearer token, or `None` if the request has none.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
