//! The HTTP server's data about its clients: integrations, and the digests of conversations.
//!
//! ```text
//! set_conversation ─► digest ─► session ─ take_conversation ─► taken ─ return_conversation ─┐
//!                                  ▲                                                        │
//!                                  └────────────────────────────────────────────────────────┘
//! ```
//!
//! A digest outlives its session for [90 days](super::keep), so that a client that continues the
//! conversation of a removed session does not get a later session with the same conversation.

use serde::{Deserialize, Serialize};

use super::TenantStore;
use super::db::{Access, params};
use super::session::touch;
use crate::error::StoreError;

/// A named address to which a client sends messages for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// The name, which is unique across all tenants of the store.
    pub name: String,
    /// Text to add to the prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// The agent's name, or `None` for the default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The session that all messages belong to. If `None`, each message gets its own session.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// The consequence of two sessions that have had the same conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameConversation {
    /// The newest session continues the conversation, because both belong to one person.
    Newest,
    /// Neither session continues the conversation, because they may belong to different people.
    Neither,
}

impl TenantStore {
    /// Returns the session that continues the conversation with this digest, and takes the
    /// conversation: no later call with the digest returns a session, unless the conversation is
    /// [returned](TenantStore::return_conversation). If no session continues the conversation,
    /// records that it is continued in a session of its own, and returns `None`.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn take_conversation(&self, digest: [u8; 32]) -> Result<Option<String>, StoreError> {
        self.write(move |transaction, (tenant, _)| {
            let taken = transaction.first(
                "UPDATE conversation SET taken = 1, used = ?3
                 WHERE tenant = ?1 AND digest = ?2 AND taken = 0 AND EXISTS (
                     SELECT 1 FROM session
                     WHERE session.tenant = ?1 AND session.id = conversation.session)
                 RETURNING session",
                params![tenant, digest, transaction.now()],
            )?;
            if let Some(row) = taken {
                return Ok(Some(row.get(0)?));
            }
            transaction.execute(
                "INSERT INTO conversation (tenant, digest, session, taken, used)
                 VALUES (?1, ?2, NULL, 1, ?3)
                 ON CONFLICT (tenant, digest) DO UPDATE SET session = NULL, used = excluded.used",
                params![tenant, digest, transaction.now()],
            )?;
            Ok(None)
        })
        .await
    }

    /// Makes a session continue a conversation again that was
    /// [taken](TenantStore::take_conversation) for it. Does nothing if another session has had the
    /// same conversation since then.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn return_conversation(
        &self,
        session: &str,
        digest: [u8; 32],
    ) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, _)| {
            transaction.execute(
                "UPDATE conversation SET taken = 0
                 WHERE tenant = ?1 AND digest = ?2 AND session = ?3",
                params![tenant, digest, session],
            )?;
            Ok(())
        })
        .await
    }

    /// Records that the conversation of a session has this digest. `same` tells what follows if
    /// another session had the same conversation, even if that session was removed since then.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn set_conversation(
        &self,
        session: &str,
        digest: [u8; 32],
        same: SameConversation,
    ) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, _)| {
            touch(transaction, tenant, &session)?;
            let keep_newest = i64::from(same == SameConversation::Newest);
            transaction.execute(
                "INSERT INTO conversation (tenant, digest, session, taken, used)
                 VALUES (?1, ?2, ?3, 0, ?4)
                 ON CONFLICT (tenant, digest) DO UPDATE SET taken = 0, used = excluded.used,
                 session = CASE WHEN CAST(?5 AS BIGINT) = 1 OR conversation.session = excluded.session
                     THEN excluded.session END",
                params![tenant, digest, session, transaction.now(), keep_newest],
            )?;
            Ok(())
        })
        .await
    }

    /// Adds an integration. If the name is already in use, changes nothing and returns false.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn add_integration(&self, integration: &Integration) -> Result<bool, StoreError> {
        let name = integration.name.clone();
        let body = serde_json::to_string(integration).map_err(StoreError::unreadable)?;
        self.grow(Access::Write, move |transaction, (tenant, _)| {
            let added = transaction.execute(
                "INSERT INTO integration (tenant, name, created, body) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
                params![tenant, name, transaction.now(), body],
            )?;
            Ok(added > 0)
        })
        .await
    }

    /// Returns the integration with this name, or `None` if the tenant has none.
    ///
    /// # Errors
    /// If the store cannot be read, or the integration is invalid.
    pub async fn integration(&self, name: &str) -> Result<Option<Integration>, StoreError> {
        let name = name.to_owned();
        let body = self.read(move |transaction, (tenant, _)| {
            let query = "SELECT body FROM integration WHERE tenant = ?1 AND name = ?2";
            let row = transaction.first(query, params![tenant, name])?;
            row.map(|row| row.get::<String>(0)).transpose()
        });
        let parse = |body: String| serde_json::from_str(&body).map_err(StoreError::unreadable);
        body.await?.map(parse).transpose()
    }

    /// Returns the tenant's integrations, sorted by name.
    ///
    /// # Errors
    /// If the store cannot be read, or an integration is invalid.
    pub async fn integrations(&self) -> Result<Vec<Integration>, StoreError> {
        let bodies = self.read(|transaction, (tenant, _)| {
            let query = "SELECT body FROM integration WHERE tenant = ?1 ORDER BY name";
            transaction.query(query, params![tenant], |row| row.get::<String>(0))
        });
        let parse = |body: &String| serde_json::from_str(body).map_err(StoreError::unreadable);
        bodies.await?.iter().map(parse).collect()
    }

    /// Removes an integration. Returns false if the tenant has none with this name.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn remove_integration(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.write(move |transaction, (tenant, _)| {
            let delete = "DELETE FROM integration WHERE tenant = ?1 AND name = ?2";
            Ok(transaction.execute(delete, params![tenant, name])? > 0)
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Store;
    use crate::Tenant;

    #[tokio::test]
    async fn a_conversation_is_taken_once_and_belongs_to_one_session() {
        let hour = Duration::from_secs(3_600);
        let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, hour).unwrap());
        for store in [Store::in_memory(hour).unwrap()].into_iter().chain(postgres) {
            let of = store.tenant(&Tenant::default());
            let set = async |session: &str, number: u8, same| {
                of.set_conversation(session, [number; 32], same).await.unwrap();
            };
            let take = async |number: u8| of.take_conversation([number; 32]).await.unwrap();
            let give_back = async |session: &str, number: u8| {
                of.return_conversation(session, [number; 32]).await.unwrap();
            };
            let (one, other) = (Some("one".to_owned()), Some("other".to_owned()));

            set("one", 1, SameConversation::Neither).await;
            assert_eq!(take(1).await, one);
            give_back("other", 1).await;
            give_back("one", 1).await;
            assert_eq!(take(1).await, one);
            assert_eq!(take(1).await, None);
            give_back("one", 1).await;
            assert_eq!(take(1).await, None, "another session has had the conversation");

            set("one", 2, SameConversation::Neither).await;
            set("other", 2, SameConversation::Neither).await;
            assert_eq!(take(2).await, None);

            set("one", 3, SameConversation::Newest).await;
            assert_eq!(take(3).await, one);
            set("other", 3, SameConversation::Newest).await;
            assert_eq!(take(3).await, other);

            set("one", 4, SameConversation::Neither).await;
            assert!(of.remove("one").await.unwrap());
            set("other", 4, SameConversation::Neither).await;
            assert_eq!(take(4).await, None, "the removed session had the conversation, too");
        }
    }
}
