//! Tokens for the HTTP server. The store contains only the hash of each token's secret.

use serde::Serialize;

use super::db::{Access, params};
use super::{Store, TenantStore};
use crate::error::StoreError;
use crate::scope::Scope;
use crate::tenant::Tenant;

/// A token in a list, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenLine {
    /// The name, unique within the tenant.
    pub name: String,
    /// The name of the token's scope.
    pub scope: &'static str,
    /// Creation time, in milliseconds since 1970.
    pub created: u64,
    /// Time of the last use, in milliseconds since 1970, accurate to a minute. `None` if the token
    /// has not been used.
    pub used: Option<u64>,
}

/// Minimum time between two updates of a token's last use, in milliseconds.
const USE_INTERVAL_MS: i64 = 60_000;

impl Store {
    /// Returns the tenant and the scope of the token with this secret, or `None` if there is no
    /// such token. Records the use of the token.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn token(&self, secret: &[u8]) -> Result<Option<(Tenant, Scope)>, StoreError> {
        let hash = *blake3::hash(secret).as_bytes();
        let found = self
            .read(move |transaction| {
                let query = "SELECT tenant, scopes, used FROM token WHERE hash = ?1";
                let row = transaction.first(query, params![hash])?;
                let Some(row) = row else { return Ok(None) };
                let used: Option<i64> = row.get(2)?;
                let age = used.map(|used| transaction.now().saturating_sub(used));
                Ok(Some((row.get::<String>(0)?, row.get::<String>(1)?, age)))
            })
            .await?;
        let Some((tenant, scope, age)) = found else { return Ok(None) };
        if age.is_none_or(|age| age > USE_INTERVAL_MS) {
            self.write(move |transaction| {
                let update = "UPDATE token SET used = ?2 WHERE hash = ?1";
                transaction.execute(update, params![hash, transaction.now()])?;
                Ok(())
            })
            .await?;
        }
        Ok(Tenant::new(&tenant).ok().zip(Scope::from_name(&scope)))
    }
}

impl Store {
    /// Returns those of the given tokens that are not in the store, or no longer. Each is the BLAKE3
    /// hash of a token's secret.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn unknown_tokens(&self, hashes: Vec<[u8; 32]>) -> Result<Vec<[u8; 32]>, StoreError> {
        self.read(move |transaction| {
            let mut unknown = Vec::new();
            for hash in &hashes {
                let query = "SELECT 1 FROM token WHERE hash = ?1";
                if transaction.first(query, params![*hash])?.is_none() {
                    unknown.push(*hash);
                }
            }
            Ok(unknown)
        })
        .await
    }
}

impl TenantStore {
    /// Returns the store that this `TenantStore` is a part of.
    #[must_use]
    pub fn file(&self) -> &Store {
        &self.store
    }

    /// Adds a token with this secret. If the tenant already has a token with this name, changes
    /// nothing and returns false.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn add_token(
        &self,
        name: &str,
        scope: Scope,
        secret: &str,
    ) -> Result<bool, StoreError> {
        let hash = *blake3::hash(secret.as_bytes()).as_bytes();
        let name = name.to_owned();
        self.grow(Access::Write, move |transaction, (tenant, _)| {
            let added = transaction.execute(
                "INSERT INTO token (hash, tenant, name, scopes, created) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO NOTHING",
                params![hash, tenant, name, scope.name(), transaction.now()],
            )?;
            Ok(added > 0)
        })
        .await
    }

    /// Returns the tenant's tokens, sorted by name.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn tokens(&self) -> Result<Vec<TokenLine>, StoreError> {
        self.read(|transaction, (tenant, _)| {
            let query =
                "SELECT name, scopes, created, used FROM token WHERE tenant = ?1 ORDER BY name";
            transaction.query(query, params![tenant], |row| {
                let scope: String = row.get(1)?;
                Ok(TokenLine {
                    name: row.get(0)?,
                    scope: Scope::from_name(&scope).map_or("unknown", Scope::name),
                    created: row.get::<i64>(2)?.cast_unsigned(),
                    used: row.get::<Option<i64>>(3)?.map(i64::cast_unsigned),
                })
            })
        })
        .await
    }

    /// Removes a token. Returns false if there is no token with this name.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn revoke_token(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.write(move |transaction, (tenant, _)| {
            let delete = "DELETE FROM token WHERE tenant = ?1 AND name = ?2";
            Ok(transaction.execute(delete, params![tenant, name])? > 0)
        })
        .await
    }
}
