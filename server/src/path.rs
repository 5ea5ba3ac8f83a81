//! Parses the parameters in a request's path.

use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The decoded parameters of a request's path. An error for an invalid parameter names the
/// parameter.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        axum::extract::Path::<T>::from_request_parts(parts, state)
            .await
            .map(|path| Path(path.0))
            .map_err(refused)
    }
}

fn refused(rejection: PathRejection) -> ApiError {
    let why = match rejection {
        PathRejection::FailedToDeserializePathParams(why) => why.into_kind(),
        // The route has no parameters.
        other => return ApiError::internal(other),
    };
    let message = match &why {
        ErrorKind::InvalidUtf8InPathParam { key } => format!("`{key}` in the path is not UTF-8"),
        other => format!("the path: {other}"),
    };
    ApiError::bad_request(message, "percent-encode the UTF-8 bytes of the text")
}
