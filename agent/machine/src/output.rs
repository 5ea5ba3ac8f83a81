//! The output contract of a run: its answer must be a JSON value that matches a schema.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    ending::Bound,
    mark::{Nonce, escape_marks},
    message::Message,
};

/// The output contract of a run. The driver validates each answer. If an answer does not match the
/// contract, the machine asks the model for a correction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputContract {
    /// The schema's name.
    pub name: String,
    /// The JSON Schema of the answer.
    pub schema: Json,
    /// Maximum number of requests for a corrected answer.
    pub max_attempts: u32,
    /// If true, the model's provider constrains the answer to the schema in requests that allow
    /// only an answer.
    pub native: bool,
}

impl OutputContract {
    /// Returns the section of the system prompt that describes the contract.
    pub fn section(&self) -> String {
        format!(
            "\n# Form of the final answer\nThe final answer must be one JSON value that matches \
             this JSON Schema, named `{}`, and nothing else: no other text, no code fence.\n{}\n",
            self.name, self.schema
        )
    }
}

/// An answer that does not match the contract and awaits correction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RejectedAnswer {
    pub(crate) text: String,
    /// The schema violations, at most [`MAX_ERRORS`].
    pub(crate) errors: Vec<String>,
    /// Number of requests for a correction so far.
    pub(crate) attempts: u32,
    /// The limit that the run reached, or `None` if it reached none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bound: Option<Bound>,
}

/// Maximum number of violations in a report.
const MAX_ERRORS: usize = 8;

/// Maximum length of a violation, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Maximum length of a rejected answer in a request, in characters.
const MAX_TEXT_CHARS: usize = 20_000;

/// Limits the number of violations and truncates each violation to the maximum length.
pub(crate) fn bounded(errors: Vec<String>) -> Vec<String> {
    errors.into_iter().take(MAX_ERRORS).map(|error| clipped(error, MAX_ERROR_CHARS)).collect()
}

/// Truncates a string to a maximum length in characters.
fn clipped(text: String, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the rejected answer, followed by the request to correct it.
pub(crate) fn amend(
    nonce: &Nonce,
    contract: &OutputContract,
    rejected: &RejectedAnswer,
) -> [Message; 2] {
    let text = clipped(rejected.text.clone(), MAX_TEXT_CHARS);
    let errors: Vec<String> = rejected.errors.iter().map(|error| format!("- {error}")).collect();
    let request = format!(
        "{}\n{}\n{}",
        nonce.note("Your answer was not accepted:"),
        escape_marks(&errors.join("\n"), Some(nonce)),
        nonce.note(&format!(
            "Answer with the whole corrected value: one JSON value that matches the JSON Schema \
             `{}` of your instructions. Write nothing else: no call, no other text.",
            contract.name
        ))
    );
    [Message::assistant(text), Message::user(request)]
}

/// Returns the request for the final answer of a run that has used up its steps.
pub(crate) fn conclude(contract: &OutputContract, max_steps: u32) -> String {
    format!(
        "The limit of {max_steps} steps is reached and nothing more can be run. Answer now with \
         one JSON value that matches the JSON Schema `{}` of your instructions, and with nothing \
         else: no call, no other text.",
        contract.name
    )
}
