//! The body of `POST /chat`, parsed into types.

use std::fmt;

use serde_json::{Map, Value as Json};
use wattle_agent::rt::truncate;
use wattle_agent::{SESSION_ID, is_session_id};

use crate::error::ApiError;

/// A client's chat request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChatRequest {
    pub(crate) message: String,
    pub(crate) session: SessionId,
    /// If true, the client asks for a trusted run.
    pub(crate) exec: bool,
}

/// A session id that is safe in a header, a URL and a file name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(String);

const FORM: &str = "send {\"message\": \"…\"} or {\"message\": \"…\", \"session_id\": \"…\"}";

impl SessionId {
    /// Generates an id that sorts by time and cannot be guessed.
    pub(crate) fn generate() -> Self {
        SessionId(ulid::Ulid::generate().to_string())
    }

    pub(crate) fn new(text: String) -> Option<Self> {
        is_session_id(&text).then_some(SessionId(text))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Parses the body of a request. Generates a session id if the body contains none.
pub(crate) fn read(body: &[u8]) -> Result<ChatRequest, ApiError> {
    let mut fields = object(body)?;
    let message = match fields.remove("message") {
        Some(Json::String(text)) if text.trim().is_empty() => {
            return Err(wrong("`message` is empty"));
        }
        Some(Json::String(text)) => text,
        Some(other) => {
            return Err(wrong(format!("`message` must be a string, found {}", kind(&other))));
        }
        None => return Err(wrong("`message` is missing")),
    };
    let session = match fields.remove("session_id") {
        None | Some(Json::Null) => SessionId::generate(),
        Some(Json::String(text)) => SessionId::new(text)
            .ok_or_else(|| wrong(format!("`session_id` must be {SESSION_ID}")))?,
        Some(other) => {
            return Err(wrong(format!("`session_id` must be a string, found {}", kind(&other))));
        }
    };
    let exec = match fields.remove("exec") {
        None | Some(Json::Null) => false,
        Some(Json::Bool(exec)) => exec,
        Some(other) => {
            return Err(wrong(format!("`exec` must be true or false, found {}", kind(&other))));
        }
    };
    match fields.keys().next() {
        Some(unknown) => Err(wrong(format!("unknown field `{}`", truncate(unknown, 40)))),
        None => Ok(ChatRequest { message, session, exec }),
    }
}

fn object(body: &[u8]) -> Result<Map<String, Json>, ApiError> {
    if body.trim_ascii().is_empty() {
        return Err(wrong("the body is empty"));
    }
    let text = std::str::from_utf8(body)
        .map_err(|cause| wrong(format!("the body is not UTF-8 at byte {}", cause.valid_up_to())))?;
    match serde_json::from_str(text) {
        Ok(Json::Object(fields)) => Ok(fields),
        Ok(other) => Err(wrong(format!("the body must be an object, found {}", kind(&other)))),
        Err(cause) => Err(wrong(format!("the body is not JSON: {cause}"))),
    }
}

fn wrong(message: impl Into<String>) -> ApiError {
    ApiError::bad_request(message, FORM)
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_parsed() {
        let read = read(br#"{"session_id": "01J.a_b:c-d", "message": " hello "}"#).unwrap();
        assert_eq!(
            read,
            ChatRequest {
                message: " hello ".to_owned(),
                session: SessionId("01J.a_b:c-d".to_owned()),
                exec: false
            }
        );
        for (body, exec) in [
            (&br#"{"message":"m","exec":true}"#[..], true),
            (br#"{"message":"m","exec":false}"#, false),
            (br#"{"message":"m","exec":null}"#, false),
        ] {
            assert_eq!(super::read(body).unwrap().exec, exec);
        }
    }

    #[test]
    fn a_request_without_a_session_has_a_new_one() {
        for body in [&br#"{"message":"m"}"#[..], br#"{"message":"m","session_id":null}"#] {
            let (one, other) = (read(body).unwrap().session, read(body).unwrap().session);
            assert_eq!(one.as_str().len(), 26);
            assert_ne!(one, other);
        }
    }

    #[test]
    fn an_error_names_the_fault() {
        let long = format!(r#"{{"message":"m","session_id":"{}"}}"#, "x".repeat(129));
        let deep = "[".repeat(100_000);
        for (body, words) in [
            (&b""[..], "the body is empty"),
            (b" \n", "the body is empty"),
            (b"{", "not JSON: EOF while parsing an object at line 1 column 1"),
            (b"{\"message\": \"\xff\"}", "not UTF-8 at byte 13"),
            (b"[]", "must be an object, found an array"),
            (b"{}", "`message` is missing"),
            (br#"{"message":5}"#, "`message` must be a string, found a number"),
            (br#"{"message":null}"#, "`message` must be a string, found null"),
            (br#"{"message":" "}"#, "`message` is empty"),
            (br#"{"message":"m","session_id":5}"#, "`session_id` must be a string, found a number"),
            (br#"{"message":"m","session_id":""}"#, "`session_id` must be 1 to 128"),
            (br#"{"message":"m","session_id":"a b"}"#, "`session_id` must be 1 to 128"),
            (long.as_bytes(), "`session_id` must be 1 to 128"),
            (br#"{"message":"m","exec":"true"}"#, "`exec` must be true or false, found a string"),
            (br#"{"message":"m","exec":1}"#, "`exec` must be true or false, found a number"),
            (br#"{"message":"m","sesion_id":"a"}"#, "unknown field `sesion_id`"),
            (br#"{"message":"m"} x"#, "trailing characters"),
            (deep.as_bytes(), "recursion limit"),
        ] {
            let error = format!("{:?}", read(body).unwrap_err());
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
