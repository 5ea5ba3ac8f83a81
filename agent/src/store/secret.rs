//! Secrets of tenants, encrypted: who has the store's file and not the key beside it has nothing.

use chacha20poly1305::XNonce;
use chacha20poly1305::aead::{Aead as _, Payload};
use rusqlite::{OptionalExtension, params};
use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::secrets::{Secret, SecretHost, Secrets};
use wattle_rt::{Code, Failure};

use super::{StoreError, TenantStore};
use crate::ledger::Cipher;

/// The secrets of one tenant.
pub struct StoredSecrets {
    of: TenantStore,
    cipher: Cipher,
}

/// An entry as it lies in the file.
struct Row {
    hosts: String,
    nonce: Vec<u8>,
    sealed: Vec<u8>,
}

impl StoredSecrets {
    /// The secrets of a tenant, encrypted with that key.
    #[must_use]
    pub fn new(of: TenantStore, cipher: Cipher) -> StoredSecrets {
        StoredSecrets { of, cipher }
    }

    /// Keeps a secret, in place of one of the same name. It may go to those hosts alone.
    ///
    /// # Errors
    /// Where it is too short to be found again in what comes back, or the store cannot be written.
    pub async fn set(&self, name: &str, value: &str, hosts: Vec<SecretHost>) -> Result<(), StoreError> {
        Secret::new(name, value, hosts.clone()).map_err(|why| StoreError::new("write")(why.into()))?;
        let mut nonce = [0; 24];
        getrandom::fill(&mut nonce).map_err(|why| StoreError::new("write")(why.to_string().into()))?;
        let place = self.place(name);
        let payload = Payload { msg: value.as_bytes(), aad: &place };
        let sealed = self.cipher.0.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| StoreError::new("write")("the secret cannot be encrypted".into()))?;
        let hosts = serde_json::json!(hosts.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string();
        let (tenant, name) = (self.of.tenant.clone(), name.to_owned());
        self.of
            .store
            .with(StoreError::new("write"), move |connection| {
                connection.execute(
                    "INSERT INTO secret (tenant, name, hosts, nonce, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (tenant, name) DO UPDATE
                     SET hosts = excluded.hosts, nonce = excluded.nonce, sealed = excluded.sealed",
                    params![tenant.as_str(), name, hosts, nonce, sealed],
                )
            })
            .await
            .map(drop)
    }

    /// The names of the secrets with the hosts that they may go to, as JSON arrays.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn list(&self) -> Result<Vec<(String, String)>, StoreError> {
        let tenant = self.of.tenant.clone();
        self.of
            .store
            .with(StoreError::new("read"), move |connection| {
                let mut statement =
                    connection.prepare("SELECT name, hosts FROM secret WHERE tenant = ?1 ORDER BY name")?;
                let rows = statement.query_map(params![tenant.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            })
            .await
    }

    /// Forgets a secret, and tells whether there was one.
    ///
    /// # Errors
    /// Where the store cannot be written.
    pub async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let (tenant, name) = (self.of.tenant.clone(), name.to_owned());
        let delete = "DELETE FROM secret WHERE tenant = ?1 AND name = ?2";
        let removed = self.of.store.with(StoreError::new("write"), move |connection| {
            connection.execute(delete, params![tenant.as_str(), name])
        });
        removed.await.map(|rows| rows > 0)
    }

    /// What an entry is bound to: one that is moved to another tenant or name cannot be read.
    fn place(&self, name: &str) -> Vec<u8> {
        [self.of.tenant.as_str().as_bytes(), b"\0", name.as_bytes()].concat()
    }

    async fn row(&self, name: &str) -> Result<Option<Row>, StoreError> {
        let (tenant, name) = (self.of.tenant.clone(), name.to_owned());
        self.of
            .store
            .with(StoreError::new("read"), move |connection| {
                let query = "SELECT hosts, nonce, sealed FROM secret WHERE tenant = ?1 AND name = ?2";
                let read =
                    |row: &rusqlite::Row<'_>| Ok(Row { hosts: row.get(0)?, nonce: row.get(1)?, sealed: row.get(2)? });
                connection.query_row(query, params![tenant.as_str(), name], read).optional()
            })
            .await
    }

    /// The secret of a row; `None` where the row was changed, or is of another key.
    fn open(&self, name: &str, row: &Row) -> Option<Secret> {
        let nonce: [u8; 24] = row.nonce.as_slice().try_into().ok()?;
        let payload = Payload { msg: &row.sealed, aad: &self.place(name) };
        let value = self.cipher.0.decrypt(&XNonce::from(nonce), payload).ok()?;
        let hosts: Vec<String> = serde_json::from_str(&row.hosts).ok()?;
        let hosts = hosts.iter().map(|host| host.parse().ok()).collect::<Option<Vec<SecretHost>>>()?;
        Secret::new(name, std::str::from_utf8(&value).ok()?, hosts).ok()
    }
}

impl Secrets for StoredSecrets {
    fn find(&self, name: String) -> PortFuture<'_, Option<Secret>> {
        Box::pin(async move {
            let row = self.row(&name).await.map_err(|why| Failure::new(Code::EREMOTE, why.to_string()))?;
            let Some(row) = row else { return Ok(None) };
            let unreadable = || {
                let words = format!("the stored secret `{name}` cannot be read: it was changed, or its key was");
                Failure::new(Code::EACCESS, words)
            };
            self.open(&name, &row).ok_or_else(unreadable).map(Some)
        })
    }

    fn all(&self) -> PortFuture<'_, Vec<Secret>> {
        Box::pin(async move {
            let listed = self.list().await.map_err(|why| Failure::new(Code::EREMOTE, why.to_string()))?;
            let mut all = Vec::new();
            for (name, _) in listed {
                let row = self.row(&name).await.map_err(|why| Failure::new(Code::EREMOTE, why.to_string()))?;
                // One that cannot be read any more stands for nothing that could be looked for.
                all.extend(row.and_then(|row| self.open(&name, &row)));
            }
            Ok(all)
        })
    }
}

/// What opens a tenant's secrets, or says why they cannot be had.
type Open = Box<dyn Fn() -> Result<StoredSecrets, String> + Send + Sync>;

/// Secrets of a store that is opened when they are asked for, and for a look at all of them only if there may be any.
pub struct LazySecrets {
    may_exist: Box<dyn Fn() -> bool + Send + Sync>,
    open: Open,
    opened: OnceCell<StoredSecrets>,
}

impl LazySecrets {
    /// Secrets that `open` gives, which may block; `may_exist` says without opening anything that there are none.
    pub fn new(
        may_exist: impl Fn() -> bool + Send + Sync + 'static,
        open: impl Fn() -> Result<StoredSecrets, String> + Send + Sync + 'static,
    ) -> LazySecrets {
        LazySecrets { may_exist: Box::new(may_exist), open: Box::new(open), opened: OnceCell::new() }
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
