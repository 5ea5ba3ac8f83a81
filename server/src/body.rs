//! Reads request bodies, with limits on size, time and memory.

use axum::extract::Request;
use axum::http::header;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use wattle_agent::host::rt::without_bom;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::memory::FREE;
use crate::settings::Limits;

/// Parses a JSON body into a type. An error for an unknown field, a wrong type or an invalid value
/// names the field.
pub(crate) async fn read_json<T: DeserializeOwned>(
    request: Request,
    limits: &Limits,
) -> Result<T, ApiError> {
    if let Some(value) = request.headers().get(header::CONTENT_TYPE) {
        let declared = String::from_utf8_lossy(value.as_bytes());
        if !is_json(&declared) {
            return Err(ApiError::not_json_type(&declared));
        }
    }
    parse(&read_bytes(request, limits.body_bytes, limits).await?)
}

/// Reads a body of at most `limit` bytes. Fails if the body is larger, the client is too slow, the
/// caller's token was revoked before the body was complete, or the caller's tenant has too little
/// memory left. The request holds the memory for the body until the request is over.
pub(crate) async fn read_bytes(
    request: Request,
    limit: usize,
    limits: &Limits,
) -> Result<Bytes, ApiError> {
    // A body whose declared length exceeds the limit is rejected before it is read.
    let announced = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(ApiError::body_too_large(limit));
    }
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    let caller = request.extensions().get::<Caller>().cloned();
    let reading = collect(request, limit, announced);
    let body = match tokio::time::timeout(limits.body_time, reading).await {
        Ok(read) => read?,
        Err(_) => return Err(ApiError::slow("body", limits.body_time)),
    };
    if let Some(caller) = caller {
        caller.require_token().await?;
    }
    Ok(body)
}

async fn collect(
    request: Request,
    limit: usize,
    announced: Option<usize>,
) -> Result<Bytes, ApiError> {
    let memory = request.extensions().get::<Caller>().map(|caller| caller.memory.clone());
    let hold = |size| memory.as_ref().map_or(Ok(()), |memory| memory.hold(size));
    // The memory is held before any of the body is read. A body without a declared length may turn
    // out to be as large as the limit.
    hold(announced.unwrap_or(0))?;
    let mut is_held = announced.is_some();
    let mut body = request.into_body();
    let mut bytes = BytesMut::with_capacity(announced.unwrap_or(0));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| ApiError::broken_body())?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(ApiError::body_too_large(limit));
        }
        if !is_held && bytes.len() + data.len() > FREE {
            hold(limit)?;
            is_held = true;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Err(ApiError::not_json("the body is empty"));
    }
    let text = std::str::from_utf8(body).map_err(|cause| {
        ApiError::not_json(format!("the body is not UTF-8 at byte {}", cause.valid_up_to()))
    })?;
    // The syntax is checked first, so that errors about fields imply a valid document.
    let document: serde_json::Value = serde_json::from_str(without_bom(text))
        .map_err(|cause| ApiError::not_json(format!("the body is not JSON: {cause}")))?;
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path = error.path().to_string();
        let cause = error.into_inner().to_string();
        ApiError::invalid_field(match path.as_str() {
            "." => cause,
            path => format!("`{path}`: {cause}"),
        })
    })
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are tested")]
    struct Body {
        message: String,
        steps: Option<u32>,
    }

    #[test]
    fn an_error_names_the_fault() {
        let deep = "[".repeat(100_000);
        let marked = "\u{feff}{\"message\":\"m\"}";
        assert_eq!(parse::<Body>(marked.as_bytes()).unwrap().message, "m");
        for (body, words) in [
            (&b""[..], "the body is empty"),
            (b" \n", "the body is empty"),
            (b"{", "not JSON: EOF while parsing an object at line 1 column 1"),
            (b"{\"message\": \"\xff\"}", "not UTF-8 at byte 13"),
            (b"{}", "missing field `message`"),
            (br#"{"message":5}"#, "`message`: invalid type: integer `5`, expected a string"),
            (br#"{"message":"m","steps":-1}"#, "`steps`: invalid value: integer `-1`"),
            (br#"{"message":"m","step":1}"#, "`step`: unknown field `step`"),
            (br#"{"message":"m"} x"#, "trailing characters"),
            (deep.as_bytes(), "recursion limit"),
        ] {
            let error = format!("{:?}", parse::<Body>(body).unwrap_err());
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
