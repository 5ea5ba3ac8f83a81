//! Messages of a conversation, as a model sees them.

use serde::{Deserialize, Serialize};

use crate::SharedText;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The author's role.
    pub role: Role,
    /// The text.
    pub content: SharedText,
    /// The model's function calls in this message, in addition to its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// The id of the call whose result this message contains, or `None` if it contains no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Number of bytes at the start of a system message that are the same in all sessions of an
    /// agent. Providers can cache this part.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stable: usize,
    /// If true, the host added the message, which contains items recalled from memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
    /// If true, the host added the message, which contains text from an agent's trait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contributed: bool,
    /// The provider's own fields of a message from the model, such as signed reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderFields>,
}

/// The fields of a model's message that only its provider understands, such as signed reasoning.
/// Some providers require them in the next request. The machine keeps them with the message and does
/// not interpret them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderFields {
    /// The model and the endpoint that the fields belong to. No other model receives them.
    pub origin: SharedText,
    /// The fields, as a JSON object.
    pub fields: SharedText,
}

/// Returns true if a field has its default value and can be left out of JSON.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A model's call to one of the functions offered to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The call's id, assigned by the model's provider.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments as the model wrote them. They should be a JSON object, but may be invalid.
    pub arguments: SharedText,
}

impl Message {
    /// Creates a message with the model's instructions.
    pub fn system(content: impl Into<SharedText>) -> Self {
        Self::of(Role::System, content.into())
    }

    /// Creates a user message, which may be an observation.
    pub fn user(content: impl Into<SharedText>) -> Self {
        Self::of(Role::User, content.into())
    }

    /// Creates a message from the model.
    pub fn assistant(content: impl Into<SharedText>) -> Self {
        Self::of(Role::Assistant, content.into())
    }

    /// Creates a message from the model that contains function calls.
    pub fn calling(content: impl Into<SharedText>, calls: Vec<FunctionCall>) -> Self {
        Self { calls, ..Self::assistant(content) }
    }

    /// Creates a message that contains the result of the call `id`.
    pub fn tool(id: impl Into<String>, content: impl Into<SharedText>) -> Self {
        Self { answers: Some(id.into()), ..Self::of(Role::Tool, content.into()) }
    }

    fn of(role: Role, content: SharedText) -> Self {
        Self {
            role,
            content,
            calls: Vec::new(),
            answers: None,
            stable: 0,
            recalled: false,
            contributed: false,
            provider: None,
        }
    }

    /// Returns true if a person wrote the message, so that an exchange begins with it.
    pub fn begins_exchange(&self) -> bool {
        // In a later run, the mark of an observation is escaped.
        let is_observation =
            ["[Observation", "[\\Observation"].iter().any(|mark| self.content.starts_with(mark));
        self.role == Role::User && !self.is_added() && !is_observation
    }

    /// Returns the size of the message's texts, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        (self.content.len() + calls.sum::<usize>()) as u64
    }

    /// Returns true if the host added the message before a request to the model. Such a message
    /// contains recalled items or text from a trait.
    pub fn is_added(&self) -> bool {
        self.recalled || self.contributed
    }
}

/// The author of a message, serialized as in the chat-completions API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The runtime, which sends instructions.
    System,
    /// The user, or the runtime when it sends an observation.
    User,
    /// The model.
    Assistant,
    /// The runtime, which sends the result of a function call.
    Tool,
}
