//! Parsing of provider error reports in all known layouts.

use serde_json::Value;

use super::protocol::ReplyFault;

/// Extracts the message from an error body in any of the known layouts. Returns `None` if the text
/// is not JSON or has no message.
pub(super) fn error_message(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(wattle_rt::without_bom(body).trim()).ok()?;
    let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
    ["error", "message", "detail", "errors", "msg"]
        .iter()
        .find_map(|name| message(value.get(name)?))
}

fn message(error: &Value) -> Option<String> {
    match error {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Array(list) => list.first().and_then(message),
        Value::Object(fields) => {
            let own = ["message", "msg", "detail", "error"]
                .iter()
                .find_map(|name| message(fields.get(*name)?));
            // A relay puts its provider's message into this field.
            let behind = fields.get("metadata").and_then(|data| data.get("raw")).and_then(message);
            let code = ["code", "type"].iter().find_map(|name| message(fields.get(*name)?));
            let all: Vec<String> = [own, behind].into_iter().flatten().collect();
            if all.is_empty() { code } else { Some(all.join(": ")) }
        }
        _ => None,
    }
}

/// Returns the failure that a provider reports inside a response with a success status, or `None`
/// if the response reports no failure.
pub(super) fn reported_error(value: &Value) -> Option<ReplyFault> {
    let flat = value.get("object").and_then(Value::as_str) == Some("error");
    let error = if flat { value } else { value.get("error").filter(|error| is_set(error))? };
    let field = |name: &str| error.get(name).unwrap_or(&Value::Null);
    let status = [field("code"), field("status"), field("status_code")].iter().find_map(|code| {
        code.as_u64()
            .or_else(|| code.as_str()?.parse().ok())
            .and_then(|code| u16::try_from(code).ok())
    });
    let status = status.filter(|status| (400..600).contains(status));
    let message = message(error).unwrap_or_else(|| error.to_string());
    let signs = format!("{} {} {message}", field("code"), field("type")).to_ascii_lowercase();
    const TRANSIENT: &[&str] = &[
        "server_error",
        "overloaded",
        "rate_limit",
        "rate limit",
        "timeout",
        "timed out",
        "unavailable",
        "internal",
    ];
    let unavailable = match status {
        Some(status) => is_retryable(status),
        None => TRANSIENT.iter().any(|sign| signs.contains(sign)),
    };
    Some(ReplyFault::Reported { unavailable, status, message })
}

/// Returns false for `"error": null`, `false`, `""` and `{}`, which mean that there is no error.
fn is_set(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// Returns true if a request that failed with this status may succeed when it is repeated.
pub(super) fn is_retryable(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}
