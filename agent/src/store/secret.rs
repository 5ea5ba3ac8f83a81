//! The encrypted secrets of tenants. Without the key beside it, the store's file reveals none of
//! them.

use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead as _, Payload};
use rusqlite::{OptionalExtension, params};
use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::secrets::{Secret, SecretHost, Secrets};
use wattle_rt::{Code, Failure};

use super::TenantStore;
use crate::error::StoreError;
use crate::ledger::Cipher;

/// The secrets of one tenant.
pub struct StoredSecrets {
    of: TenantStore,
    cipher: Cipher,
}

/// An encrypted secret in the file.
struct Row {
    hosts: String,
    nonce: Vec<u8>,
    sealed: Vec<u8>,
}

impl StoredSecrets {
    /// Opens the secrets of a tenant, which are encrypted with `cipher`.
    #[must_use]
    pub fn new(of: TenantStore, cipher: Cipher) -> StoredSecrets {
        StoredSecrets { of, cipher }
    }

    /// Stores a secret, and replaces one with the same name. It may be sent to `hosts` only.
    ///
    /// # Errors
    /// The value is too short to be recognized in responses, or the store cannot be written.
    pub async fn set(
        &self,
        name: &str,
        value: &str,
        hosts: Vec<SecretHost>,
    ) -> Result<(), StoreError> {
        Secret::new(name, value, hosts.clone())
            .map_err(|why| StoreError::new("write")(why.into()))?;
        let mut nonce = [0; 24];
        getrandom::fill(&mut nonce)
            .map_err(|why| StoreError::new("write")(why.to_string().into()))?;
        let context = self.context(name);
        let payload = Payload { msg: value.as_bytes(), aad: &context };
        let sealed = self.cipher.0.encrypt(&XNonce::from(nonce), payload);
        let sealed =
            sealed.map_err(|_| StoreError::new("write")("the encryption failed".into()))?;
        let hosts = serde_json::json!(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())
            .to_string();
        let (tenant, name) = (self.of.tenant.clone(), name.to_owned());
        self.of
            .store
            .with(StoreError::new("write"), move |connection| {
                connection.execute(
                    "INSERT INTO secret (tenant, name, hosts, nonce, sealed) VALUES (?1, ?2, ?3, \
                     ?4, ?5)
                     ON CONFLICT (tenant, name) DO UPDATE
                     SET hosts = excluded.hosts, nonce = excluded.nonce, sealed = excluded.sealed",
                    params![tenant.as_str(), name, hosts, nonce, sealed],
                )
            })
            .await
            .map(drop)
    }

    /// Returns the names of the secrets, each with its hosts as a JSON array.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<(String, String)>, StoreError> {
        let tenant = self.of.tenant.clone();
        self.of
            .store
            .with(StoreError::new("read"), move |connection| {
                let mut statement = connection
                    .prepare("SELECT name, hosts FROM secret WHERE tenant = ?1 ORDER BY name")?;
                let rows = statement
                    .query_map(params![tenant.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            })
            .await
    }

    /// Removes a secret. Returns false if there is no such secret.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let (tenant, name) = (self.of.tenant.clone(), name.to_owned());
        let delete = "DELETE FROM secret WHERE tenant = ?1 AND name = ?2";
        let removed = self.of.store.with(StoreError::new("write"), move |connection| {
            connection.execute(delete, params![tenant.as_str(), name])
        });
        removed.await.map(|rows| rows > 0)
    }

    /// Returns the context that is authenticated with the ciphertext. It binds the ciphertext to
    /// its tenant and name.
    fn context(&self, name: &str) -> Vec<u8> {
        [self.of.tenant.as_str().as_bytes(), b"\0", name.as_bytes()].concat()
    }

    async fn row(&self, name: &str) -> Result<Option<Row>, StoreError> {
        let (tenant, name) = (self.of.tenant.clone(), name.to_owned());
        self.of
            .store
            .with(StoreError::new("read"), move |connection| {
                let query =
                    "SELECT hosts, nonce, sealed FROM secret WHERE tenant = ?1 AND name = ?2";
                let read = |row: &rusqlite::Row<'_>| {
                    Ok(Row { hosts: row.get(0)?, nonce: row.get(1)?, sealed: row.get(2)? })
                };
                connection.query_row(query, params![tenant.as_str(), name], read).optional()
            })
            .await
    }

    /// Decrypts a row. Returns `None` if the row was changed, or was encrypted with another key.
    fn open(&self, name: &str, row: &Row) -> Option<Secret> {
        let nonce: [u8; 24] = row.nonce.as_slice().try_into().ok()?;
        let payload = Payload { msg: &row.sealed, aad: &self.context(name) };
        let value = self.cipher.0.decrypt(&XNonce::from(nonce), payload).ok()?;
        let hosts: Vec<String> = serde_json::from_str(&row.hosts).ok()?;
        let hosts =
            hosts.iter().map(|host| host.parse().ok()).collect::<Option<Vec<SecretHost>>>()?;
        Secret::new(name, std::str::from_utf8(&value).ok()?, hosts).ok()
    }
}

impl Secrets for StoredSecrets {
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>> {
        Box::pin(async move {
            let row = self
                .row(&name)
                .await
                .map_err(|why| Failure::new(Code::EREMOTE, why.to_string()))?;
            let Some(row) = row else { return Ok(None) };
            let unreadable = || {
                let reason = format!(
                    "failed to decrypt the stored secret `{name}`: it or its key was changed"
                );
                Failure::new(Code::EACCESS, reason)
            };
            self.open(&name, &row).ok_or_else(unreadable).map(Some)
        })
    }

    fn all(&self) -> PortFuture<'_, Vec<Secret>> {
        Box::pin(async move {
            let listed =
                self.list().await.map_err(|why| Failure::new(Code::EREMOTE, why.to_string()))?;
            let mut all = Vec::new();
            for (name, _) in listed {
                let row = self
                    .row(&name)
                    .await
                    .map_err(|why| Failure::new(Code::EREMOTE, why.to_string()))?;
                // A secret that can no longer be read cannot occur in a response either.
                all.extend(row.and_then(|row| self.open(&name, &row)));
            }
            Ok(all)
        })
    }
}

/// A function that opens a tenant's secrets.
type Open = Box<dyn Fn() -> Result<StoredSecrets, String> + Send + Sync>;

/// Secrets of a store that is opened at their first use. Listing all secrets opens the store only
/// if it can contain any.
pub struct LazySecrets {
    may_exist: Box<dyn Fn() -> bool + Send + Sync>,
    open: Open,
    opened: OnceCell<StoredSecrets>,
}

impl LazySecrets {
    /// Creates lazy secrets. `open` may block. `may_exist` returns false, without opening the
    /// store, if there are no secrets.
    pub fn new(
        may_exist: impl Fn() -> bool + Send + Sync + 'static,
        open: impl Fn() -> Result<StoredSecrets, String> + Send + Sync + 'static,
    ) -> LazySecrets {
        LazySecrets {
            may_exist: Box::new(may_exist),
            open: Box::new(open),
            opened: OnceCell::new(),
        }
    }

    async fn opened(&self) -> Result<&StoredSecrets, Failure> {
        let open = async || (self.open)().map_err(|why| Failure::new(Code::EREMOTE, why));
        self.opened.get_or_try_init(open).await
    }
}

impl Secrets for LazySecrets {
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>> {
        Box::pin(async move { self.opened().await?.find(name).await })
    }

    fn all(&self) -> PortFuture<'_, Vec<Secret>> {
        Box::pin(async move {
            match (self.may_exist)() {
                true => self.opened().await?.all().await,
                false => Ok(Vec::new()),
            }
        })
    }
}
