//! The caller of a request, and the caller's permissions.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use wattle_agent::host::{Scope, Stored, TenantStore};

use crate::error::ApiError;
use crate::memory::RequestMemory;
use crate::quota::{Kind, Quotas, Slot, TokenKey};

/// The memory needed to load stored data and convert it into a response, as a multiple of the
/// data's size in the store. Data with many characters that JSON escapes needs more.
const LOAD_COST: u64 = 4;

/// The sender of an authorized request.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The part of the store that belongs to the caller's tenant.
    pub(crate) store: TenantStore,
    /// The most powerful scope of the caller's token.
    pub(crate) scope: Scope,
    /// The hash of the caller's token, or `None` for the server's own token, which has no quotas.
    pub(crate) limited: Option<TokenKey>,
    /// The memory that the request holds.
    pub(crate) memory: RequestMemory,
    /// The request's slot for a stream, if its route can respond with one.
    pub(crate) stream: Option<Arc<Slot>>,
}

impl Caller {
    /// Checks that the caller's token has this scope or a more powerful one.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), ApiError> {
        if self.scope >= scope { Ok(()) } else { Err(ApiError::missing_scope(scope.name())) }
    }

    /// Checks that the caller's token was not revoked since the request began.
    pub(crate) async fn require_token(&self) -> Result<(), ApiError> {
        let Some(token) = self.limited else { return Ok(()) };
        let unknown = self.store.file().unknown_tokens(vec![token]).await?;
        if unknown.is_empty() { Ok(()) } else { Err(ApiError::unauthorized(true)) }
    }

    /// Acquires a slot of the server. Fails if all slots of the caller's token, of its tenant or of
    /// the server are in use.
    pub(crate) fn slot(&self, quotas: &Quotas, kind: Kind) -> Result<Slot, ApiError> {
        quotas.acquire(kind, self.limited, self.store.tenant())
    }

    /// Reserves the memory that loading this data takes. Must be called before the data is loaded.
    /// The request holds the memory until the request is over.
    pub(crate) async fn reserve(&self, data: Stored<'_>) -> Result<(), ApiError> {
        let bytes = self.store.stored_bytes(data).await?.saturating_mul(LOAD_COST);
        self.memory.hold(usize::try_from(bytes).unwrap_or(usize::MAX))
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        // The token check, which precedes every protected route, adds the caller.
        parts.extensions.get::<Caller>().cloned().ok_or_else(|| ApiError::unauthorized(false))
    }
}
