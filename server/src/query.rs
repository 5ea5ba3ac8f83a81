//! Parses a request's query string into a typed value.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The parsed query of a request. An error for an unknown, repeated or invalid field names the
/// field.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|query: axum::extract::Query<T>| Query(query.0))
            .map_err(|rejection| {
                ApiError::invalid_field(format!("the query: {}", rejection.body_text()))
            })
    }
}
