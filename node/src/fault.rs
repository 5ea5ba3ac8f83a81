//! Errors on their way to JavaScript.

use wattle_bindings::Error;

/// The `code` of exceptions whose message is an [`Error`] in JSON.
const CODE: &str = "WATTLE";

/// The exception that JavaScript turns into a `WattleError`.
pub(crate) type Thrown = napi::Error<&'static str>;

/// Returns the error as JSON, with its message.
pub(crate) fn json(error: &Error) -> String {
    let mut json = error.to_json();
    if let Some(fields) = json.as_object_mut() {
        fields.insert("message".to_owned(), error.to_string().into());
    }
    json.to_string()
}

/// Converts an error to an exception.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(crate) fn thrown(error: Error) -> Thrown {
    napi::Error::new(CODE, json(&error))
}

/// Parses the JSON text of an option.
///
/// # Errors
/// If an option is unknown or has the wrong type.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(Error::settings)
}
