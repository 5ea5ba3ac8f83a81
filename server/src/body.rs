//! Reading a request's body within its limits.

use axum::extract::Request;
use axum::http::header;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::settings::Limits;

/// Reads a body whose type, if declared, is JSON.
pub(crate) async fn read_json(request: Request, limits: &Limits) -> Result<Bytes, ApiError> {
    let headers = request.headers();
    if let Some(value) = headers.get(header::CONTENT_TYPE) {
        let declared = String::from_utf8_lossy(value.as_bytes());
        if !is_json(&declared) {
            return Err(ApiError::not_json_type(&declared));
        }
    }
    // A body that declares its length is rejected before it is read.
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.body_bytes as u64) {
        return Err(ApiError::body_too_large(limits.body_bytes));
    }
    match tokio::time::timeout(limits.body_time, collect(request, limits.body_bytes)).await {
        Ok(read) => read,
        Err(_) => Err(ApiError::slow("body", limits.body_time)),
    }
}

async fn collect(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let (mut body, mut bytes) = (request.into_body(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ApiError::broken_body())?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(ApiError::body_too_large(limit));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
}
