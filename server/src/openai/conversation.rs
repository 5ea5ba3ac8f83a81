//! The mapping of clients' conversations to sessions. Clients send all messages with each request.
//!
//! The store keeps a digest of each session's conversation as the client sees it, which also
//! contains the client's token, the person that the request names, the instructions and the model.
//! A request whose earlier messages have this digest continues the session, once. Any other
//! request, such as one to regenerate an earlier answer, begins a new session with the client's
//! messages.
//!
//! People who share a token, and whom the client does not name, can have the same conversation. The
//! server cannot distinguish them, so once two sessions have had a conversation, no request
//! continues either of them by that conversation.

use serde::Deserialize;
use wattle_agent::host::machine::Message;
use wattle_agent::host::{SameConversation, TenantStore};

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
                        wattle_agent::host::rt::truncate(other, 40)
                    ))),
                })
                .collect(),
        }
    }
}

/// The parts of a request, besides its messages, by which its conversation is known.
pub(super) struct Sender {
    /// The model's name in the request, which also selects the agent.
    pub(super) model: String,
    /// The id of the person on whose behalf the client sends the request.
    pub(super) user: Option<String>,
    /// Instructions for the model that are not part of the messages.
    pub(super) instructions: Option<String>,
}

impl Sender {
    /// Returns the person, or `None` if the client does not name one.
    fn person(&self) -> Option<&str> {
        self.user.as_deref().filter(|user| !user.trim().is_empty())
    }
}

/// A client's conversation, split into instructions, earlier messages and the last message.
pub(super) struct Conversation {
    /// The instructions and the content of the system messages, joined.
    pub(super) system: Option<String>,
    /// The messages before the last one.
    pub(super) earlier: Vec<Message>,
    /// The last message, which must be from the user.
    pub(super) message: MessageText,
    sender: Sender,
    /// The conversation that was taken from the store for this request.
    taken: Option<Taken>,
}

/// A conversation that a request continues. When dropped, its session continues it again, so that
/// the client can repeat a request that failed.
struct Taken {
    store: TenantStore,
    session: String,
    digest: [u8; 32],
    /// If true, the conversation has been continued.
    is_over: bool,
}

impl Taken {
    /// Lets the next request continue the conversation, unless it has been continued.
    fn give_back(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let is_over = std::mem::replace(&mut self.is_over, true);
        let (store, session, digest) = (self.store.clone(), self.session.clone(), self.digest);
        async move {
            if !is_over && let Err(error) = store.return_conversation(&session, digest).await {
                tracing::warn!(session, %error, "failed to return a conversation");
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.is_over {
            tokio::spawn(self.give_back());
        }
    }
}

impl Conversation {
    /// Splits the client's messages into the parts of a conversation.
    pub(super) fn read(
        messages: &[ClientMessage],
        sender: Sender,
    ) -> Result<Conversation, ApiError> {
        let mut system: Vec<String> = sender.instructions.iter().cloned().collect();
        let mut earlier = Vec::new();
        for message in messages {
            let text = message.content.as_ref().map(Content::text).transpose()?.unwrap_or_default();
            match message.role.as_str() {
                "system" | "developer" => system.push(text),
                "user" => earlier.push(Message::user(text)),
                "assistant" => earlier.push(Message::assistant(text)),
                other => {
                    let other = wattle_agent::host::rt::truncate(other, 40);
                    return Err(ApiError::invalid_field(format!(
                        "`messages`: the role `{other}` is not supported; send `system`, `user` \
                         and `assistant`"
                    )));
                }
            }
        }
        let last = earlier.pop_if(|last| last.role == wattle_agent::host::machine::Role::User);
        match last.map(|last| last.content) {
            Some(text) if !text.trim().is_empty() => Ok(Conversation {
                system: (!system.is_empty()).then(|| system.join("\n\n")),
                earlier,
                message: MessageText(text.into()),
                sender,
                taken: None,
            }),
            _ => Err(ApiError::invalid_field(
                "`messages`: the last message must be the user's, with a text",
            )),
        }
    }

    /// Returns the session that the conversation continues, which no other request continues until
    /// this conversation is dropped. If there is none, creates a session with the earlier messages.
    pub(super) async fn session(&mut self, caller: &Caller) -> Result<SessionId, ApiError> {
        let new = SessionId::generate();
        if self.earlier.is_empty() {
            return Ok(new);
        }
        let digest = self.digest(caller);
        let found = caller.store.take_conversation(digest).await?;
        if let Some(session) = found.and_then(SessionId::new) {
            let store = caller.store.clone();
            self.taken = Some(Taken { store, session: session.0.clone(), digest, is_over: false });
            return Ok(session);
        }
        caller.store.extend(&new.0, self.earlier.clone()).await?;
        Ok(new)
    }

    /// Lets the client repeat its request in the same session. Must be called before the client
    /// receives an error. If the client disconnects, dropping the conversation has the same effect.
    pub(super) async fn give_back(&mut self) {
        if let Some(taken) = &mut self.taken {
            taken.give_back().await;
        }
    }

    /// Records the conversation and this answer as the session's conversation. A failure is not
    /// reported to the client, because the client would repeat its request. Instead, the client's
    /// next request begins a new session with its messages.
    pub(super) async fn remember(mut self, caller: &Caller, session: &str, answer: &str) {
        if let Some(taken) = &mut self.taken {
            taken.is_over = true;
        }
        let message = std::mem::take(&mut self.message.0);
        self.earlier.extend([Message::user(message), Message::assistant(answer)]);
        let same = match self.sender.person() {
            Some(_) => SameConversation::Newest,
            None => SameConversation::Neither,
        };
        let digest = self.digest(caller);
        if let Err(error) = caller.store.set_conversation(session, digest, same).await {
            tracing::warn!(session, %error, "failed to remember a conversation");
        }
    }

    /// Returns a digest of the earlier messages' roles and texts and of everything else that must
    /// be the same in the next request: the caller's token, the person, the model with its agent,
    /// and the instructions. Whitespace around texts is ignored.
    fn digest(&self, caller: &Caller) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut add = |kind: &[u8; 1], text: &[u8]| {
            hasher.update(kind).update(&(text.len() as u64).to_le_bytes()).update(text);
        };
        // The server's own token has no key.
        add(b"t", caller.limited.as_ref().map_or(&[], |key| key.as_slice()));
        add(b"m", self.sender.model.as_bytes());
        if let Some(user) = self.sender.person() {
            add(b"p", user.as_bytes());
        }
        if let Some(system) = &self.system {
            add(b"s", system.trim().as_bytes());
        }
        for message in &self.earlier {
            let kind = match message.role {
                wattle_agent::host::machine::Role::User => b"u",
                _ => b"a",
            };
            add(kind, message.content.trim().as_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}
