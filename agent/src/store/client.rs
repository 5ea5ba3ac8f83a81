//! The HTTP server's data about its clients: integrations, and the digest of each session's
//! conversation.

use serde::{Deserialize, Serialize};

use super::TenantStore;
use super::db::params;
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

impl TenantStore {
    /// Returns the session whose conversation has this digest, or `None` if there is none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn session_of(&self, digest: &[u8; 32]) -> Result<Option<String>, StoreError> {
        let digest = *digest;
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT session FROM conversation WHERE tenant = ?1 AND digest = ?2
                         ORDER BY session DESC LIMIT 1";
            let found = transaction.first(query, params![tenant, digest])?;
            found.map(|row| row.get(0)).transpose()
        })
        .await
    }

    /// Sets the digest of a session's conversation.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn set_conversation(
        &self,
        session: &str,
        digest: [u8; 32],
    ) -> Result<(), StoreError> {
        let session = session.to_owned();
        self.write(move |transaction, (tenant, _)| {
            touch(transaction, tenant, &session)?;
            transaction.execute(
                "INSERT INTO conversation (tenant, session, digest) VALUES (?1, ?2, ?3)
                 ON CONFLICT (tenant, session) DO UPDATE SET digest = excluded.digest",
                params![tenant, session, digest],
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
        self.write(move |transaction, (tenant, _)| {
            let added = transaction.execute(
                "INSERT INTO integration (tenant, name, made, body) VALUES (?1, ?2, ?3, ?4)
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
