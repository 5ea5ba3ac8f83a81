//! The conversation as a model sees it.

use serde::{Deserialize, Serialize};

/// Holds one message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// The functions that the model calls by this message, where it calls them apart from what it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<FunctionCall>,
    /// The id of the call that this message gives the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
}

/// Is one call of a function that a model was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The call's id, as the model's provider made it up.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments as the model wrote them: a JSON object, if it did well.
    pub arguments: String,
}

impl Message {
    /// Makes the message that instructs the model.
    pub fn system(content: impl Into<String>) -> Self {
        Self::of(Role::System, content.into())
    }

    /// Makes a message from the user, or an observation.
    pub fn user(content: impl Into<String>) -> Self {
        Self::of(Role::User, content.into())
    }

    /// Makes a message from the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::of(Role::Assistant, content.into())
    }

    /// Makes a message from the model that calls functions.
    pub fn calling(content: impl Into<String>, calls: Vec<FunctionCall>) -> Self {
        Self { calls, ..Self::assistant(content) }
    }

    /// Makes the message that gives the result of the call with that id.
    pub fn tool(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { answers: Some(id.into()), ..Self::of(Role::Tool, content.into()) }
    }

    fn of(role: Role, content: String) -> Self {
        Self { role, content, calls: Vec::new(), answers: None }
    }
}

/// Says who speaks; serialised as chat-completions endpoints name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The runtime instructs.
    System,
    /// The user asks, or the runtime reports what a program did.
    User,
    /// The model answers.
    Assistant,
    /// The runtime gives the result of a function that the model called.
    Tool,
}
