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
    /// The function calls that the model makes in this message, apart from its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// The id of the call whose result this message contains, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Number of bytes at the start of a system message that are the same in all sessions of an
    /// agent, so that a provider can cache them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stable: usize,
    /// If true, the host wrote the message, with items recalled from memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recalled: bool,
    /// If true, the host wrote the message, with the text of an agent's trait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contributed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A model's call to a function that it was offered.
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

    /// Creates a message from the user, or an observation.
    pub fn user(content: impl Into<SharedText>) -> Self {
        Self::of(Role::User, content.into())
    }

    /// Creates a message from the model.
    pub fn assistant(content: impl Into<SharedText>) -> Self {
        Self::of(Role::Assistant, content.into())
    }

    /// Creates a message from the model with function calls.
    pub fn calling(content: impl Into<SharedText>, calls: Vec<FunctionCall>) -> Self {
        Self { calls, ..Self::assistant(content) }
    }

    /// Creates a message with the result of the call that has this id.
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
        }
    }

    /// Returns true if the message is neither the user's nor the model's nor an observation: the
    /// host added it before the model was asked.
    pub fn is_added(&self) -> bool {
        self.recalled || self.contributed
    }
}

/// The author of a message, serialized as chat-completions endpoints spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The runtime, with instructions.
    System,
    /// The user, or the runtime with an observation.
    User,
    /// The model.
    Assistant,
    /// The runtime, with the result of a function call.
    Tool,
}
