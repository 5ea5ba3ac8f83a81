//! The HTTP server's data about its clients: the conversation that each session represents, and
//! integrations.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::session::touch;
use super::{TenantStore, now};
use crate::error::StoreError;

/// A named address at which a client sends messages to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integration {
    /// The name, unique in the store.
    pub name: String,
    /// Text that is added to the prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// The agent, by its name. Without it, the default one.
    #[serde(default)]
    pub agent: Option<String>,
    /// The session of all its messages. Without it, each message has its own.
    #[serde(default)]
    pub session_id: Option<String>,
}

impl TenantStore {
    /// Returns the session whose conversation has this digest.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn session_of(&self, digest: &[u8; 32]) -> Result<Option<String>, StoreError> {
        let (tenant, digest) = (self.tenant.clone(), *digest);
        let found = self.store.with(StoreError::new("read"), move |connection| {
            let query = "SELECT session FROM conversation WHERE tenant = ?1 AND digest = ?2
                         ORDER BY session DESC LIMIT 1";
            connection
                .query_row(query, params![tenant.as_str(), digest], |row| row.get(0))
                .optional()
        });
        found.await
    }

    /// Sets the digest of a session's conversation.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn set_conversation(
        &self,
        session: &str,
        digest: [u8; 32],
    ) -> Result<(), StoreError> {
        let (tenant, session) = (self.tenant.clone(), session.to_owned());
        let set = self.store.with(StoreError::new("write"), move |connection| {
            touch(connection, tenant.as_str(), &session)?;
            connection.execute(
                "INSERT INTO conversation (tenant, session, digest) VALUES (?1, ?2, ?3)
                 ON CONFLICT (tenant, session) DO UPDATE SET digest = excluded.digest",
                params![tenant.as_str(), session, digest],
            )
        });
        set.await.map(drop)
    }

    /// Adds an integration. Returns false without a change if the name is in use.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn add_integration(&self, integration: &Integration) -> Result<bool, StoreError> {
        let (tenant, name) = (self.tenant.clone(), integration.name.clone());
        let body = serde_json::to_string(integration).map_err(StoreError::unreadable)?;
        let added = self.store.with(StoreError::new("write"), move |connection| {
            connection.execute(
                "INSERT INTO integration (tenant, name, made, body) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
                params![tenant.as_str(), name, now(), body],
            )
        });
        added.await.map(|rows| rows > 0)
    }

    /// Returns the tenant's integrations, by name.
    ///
    /// # Errors
    /// The file cannot be read, or an integration is invalid.
    pub async fn integrations(&self) -> Result<Vec<Integration>, StoreError> {
        let tenant = self.tenant.clone();
        let bodies = self.store.with(StoreError::new("read"), move |connection| {
            let mut statement = connection
                .prepare("SELECT body FROM integration WHERE tenant = ?1 ORDER BY name")?;
            let rows = statement.query_map([tenant.as_str()], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        });
        let parse = |body: &String| serde_json::from_str(body).map_err(StoreError::unreadable);
        bodies.await?.iter().map(parse).collect()
    }

    /// Removes an integration. Returns false if the tenant has none with this name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn remove_integration(&self, name: &str) -> Result<bool, StoreError> {
        let (tenant, name) = (self.tenant.clone(), name.to_owned());
        let removed = self.store.with(StoreError::new("write"), move |connection| {
            connection.execute(
                "DELETE FROM integration WHERE tenant = ?1 AND name = ?2",
                params![tenant.as_str(), name],
            )
        });
        removed.await.map(|rows| rows > 0)
    }
}
