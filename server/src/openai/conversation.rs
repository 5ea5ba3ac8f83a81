//! The mapping of clients' conversations to sessions. Clients send all messages with each request.
//!
//! The store keeps a digest of each session's conversation as the client sees it. A request whose
//! earlier messages have this digest continues the session. Any other request, such as one to
//! regenerate an earlier answer, begins a new session with the client's messages.

use serde::Deserialize;
use wattle_agent::machine::Message;

use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::{MessageText, SessionId};

/// A message in a client's conversation.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct ClientMessage {
    /// `system`, `developer`, `user` or `assistant`.
    pub(super) role: String,
    /// The text, or a list of text parts.
    #[serde(default)]
    pub(super) content: Option<Content>,
}

/// The content of a message.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub(super) enum Content {
    /// A string.
    Text(String),
    /// A list of parts.
    Parts(Vec<Part>),
}

/// A part of a message.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct Part {
    /// The type: `text`, `input_text` or `output_text`.
    #[serde(rename = "type")]
    kind: String,
    /// The text.
    text: Option<String>,
}

impl ClientMessage {
    /// Creates a user's message.
    pub(super) fn user(text: String) -> ClientMessage {
        ClientMessage { role: "user".to_owned(), content: Some(Content::Text(text)) }
    }
}

impl Content {
    fn text(&self) -> Result<String, ApiError> {
        match self {
            Content::Text(text) => Ok(text.clone()),
            Content::Parts(parts) => parts
                .iter()
                .map(|part| match (&part.text, part.kind.as_str()) {
                    (Some(text), "text" | "input_text" | "output_text") => Ok(text.as_str()),
                    (_, other) => Err(ApiError::invalid_field(format!(
                        "`messages`: content of the type `{}` is not supported; send text",
                        wattle_agent::rt::truncate(other, 40)
                    ))),
                })
                .collect(),
        }
    }
}

/// A client's conversation, split into instructions, earlier messages and the last message.
pub(super) struct Conversation {
    /// The content of the system messages, joined.
    pub(super) system: Option<String>,
    /// The messages before the last one.
    pub(super) earlier: Vec<Message>,
    /// The last message, which must be from the user.
    pub(super) message: MessageText,
}

impl Conversation {
    /// Splits the client's messages into the parts of a conversation.
    pub(super) fn read(messages: &[ClientMessage]) -> Result<Conversation, ApiError> {
        let (mut system, mut earlier) = (Vec::new(), Vec::new());
        for message in messages {
            let text = message.content.as_ref().map(Content::text).transpose()?.unwrap_or_default();
            match message.role.as_str() {
                "system" | "developer" => system.push(text),
                "user" => earlier.push(Message::user(text)),
                "assistant" => earlier.push(Message::assistant(text)),
                other => {
                    let other = wattle_agent::rt::truncate(other, 40);
                    return Err(ApiError::invalid_field(format!(
                        "`messages`: the role `{other}` is not supported; send `system`, `user` \
                         and `assistant`"
                    )));
                }
            }
        }
        let last = earlier.pop_if(|last| last.role == wattle_agent::machine::Role::User);
        match last.map(|last| last.content) {
            Some(text) if !text.trim().is_empty() => Ok(Conversation {
                system: (!system.is_empty()).then(|| system.join("\n\n")),
                earlier,
                message: MessageText(text.into()),
            }),
            _ => Err(ApiError::invalid_field(
                "`messages`: the last message must be the user's, with a text",
            )),
        }
    }

    /// Returns the session that the conversation continues. If there is none, creates a session
    /// with the earlier messages.
    pub(super) async fn session(&self, caller: &Caller) -> Result<SessionId, ApiError> {
        if !self.earlier.is_empty()
            && let Some(found) = caller.store.session_of(&digest(&self.earlier)).await?
            && let Some(session) = SessionId::new(found)
        {
            return Ok(session);
        }
        let session = SessionId::generate();
        if !self.earlier.is_empty() {
            caller.store.extend(&session.0, self.earlier.clone()).await?;
        }
        Ok(session)
    }

    /// Records the conversation and this answer as the session's conversation.
    pub(super) async fn remember(
        mut self,
        caller: &Caller,
        session: &str,
        answer: &str,
    ) -> Result<(), ApiError> {
        self.earlier.push(Message::user(self.message.0));
        self.earlier.push(Message::assistant(answer));
        Ok(caller.store.set_conversation(session, digest(&self.earlier)).await?)
    }
}

/// Returns a digest of the messages' roles and texts. Surrounding whitespace is ignored.
fn digest(messages: &[Message]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for message in messages {
        let role = match message.role {
            wattle_agent::machine::Role::User => b"u",
            _ => b"a",
        };
        let text = message.content.trim();
        hasher.update(role).update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    *hasher.finalize().as_bytes()
}
