//! Tokens of the HTTP server. The store has only the hash of each token's secret.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use super::{Store, TenantStore, now};
use crate::error::StoreError;
use crate::scope::Scope;
use crate::tenant::Tenant;

/// A token in a list, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenLine {
    /// The name, unique within the tenant.
    pub name: String,
    /// The scope.
    pub scope: &'static str,
    /// Creation time, in milliseconds since 1970.
    pub made: u64,
    /// Time of the last use, to the minute.
    pub used: Option<u64>,
}

/// Time between two updates of a token's last use, in milliseconds.
const USE_INTERVAL_MS: i64 = 60_000;

impl Store {
    /// Returns the tenant and the scope of the token with this secret, and records its use.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn token(&self, secret: &[u8]) -> Result<Option<(Tenant, Scope)>, StoreError> {
        let hash = *blake3::hash(secret).as_bytes();
        let found = self
            .with(StoreError::new("read"), move |connection| {
                let found = connection
                    .query_row(
                        "SELECT tenant, scopes, used FROM token WHERE hash = ?1",
                        params![hash],
                        |row| {
                            let used: Option<i64> = row.get(2)?;
                            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, used))
                        },
                    )
                    .optional()?;
                let Some((tenant, scope, used)) = found else { return Ok(None) };
                if used.is_none_or(|used| now().saturating_sub(used) > USE_INTERVAL_MS) {
                    connection.execute(
                        "UPDATE token SET used = ?2 WHERE hash = ?1",
                        params![hash, now()],
                    )?;
                }
                Ok(Some((tenant, scope)))
            })
            .await?;
        Ok(found.and_then(|(tenant, scope)| {
            Some((Tenant::new(&tenant).ok()?, Scope::from_name(&scope)?))
        }))
    }
}

impl TenantStore {
    /// Returns the file that this store is a part of.
    #[must_use]
    pub fn file(&self) -> &Store {
        &self.store
    }

    /// Adds a token with this secret. Returns false without a change if the tenant has a token with
    /// this name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn add_token(
        &self,
        name: &str,
        scope: Scope,
        secret: &str,
    ) -> Result<bool, StoreError> {
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        let (tenant, name) = (self.tenant.clone(), name.to_owned());
        let added = self.store.with(StoreError::new("write"), move |connection| {
            connection.execute(
                "INSERT INTO token (hash, tenant, name, scopes, made) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO NOTHING",
                params![hash, tenant.as_str(), name, scope.name(), now()],
            )
        });
        added.await.map(|rows| rows > 0)
    }

    /// Returns the tenant's tokens, by name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn tokens(&self) -> Result<Vec<TokenLine>, StoreError> {
        let tenant = self.tenant.clone();
        self.store
            .with(StoreError::new("read"), move |connection| {
                let mut statement = connection.prepare(
                    "SELECT name, scopes, made, used FROM token WHERE tenant = ?1 ORDER BY name",
                )?;
                let lines = statement.query_map([tenant.as_str()], |row| {
                    let scope: String = row.get(1)?;
                    Ok(TokenLine {
                        name: row.get(0)?,
                        scope: Scope::from_name(&scope).map_or("unknown", Scope::name),
                        made: row.get::<_, i64>(2)?.cast_unsigned(),
                        used: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned),
                    })
                })?;
                lines.collect()
            })
            .await
    }

    /// Removes a token. Returns false if there is no token with this name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn revoke_token(&self, name: &str) -> Result<bool, StoreError> {
        let (tenant, name) = (self.tenant.clone(), name.to_owned());
        let removed = self.store.with(StoreError::new("write"), move |connection| {
            connection.execute(
                "DELETE FROM token WHERE tenant = ?1 AND name = ?2",
                params![tenant.as_str(), name],
            )
        });
        removed.await.map(|rows| rows > 0)
    }
}
