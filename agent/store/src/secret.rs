//! The encrypted secrets of tenants. They cannot be read from the store's file without the key,
//! which is stored next to the file.

use tokio::sync::OnceCell;
use wattle_capability::PortFuture;
use wattle_capability::secrets::{Secret, SecretHost, Secrets};
use wattle_rt::{Code, Failure};

use super::TenantStore;
use super::db::{self, Access, params};
use crate::error::{Cause, StoreError};
use crate::ledger::{Cipher, NONCE};

/// The secrets of one tenant.
pub struct StoredSecrets {
    of: TenantStore,
    cipher: Cipher,
}

/// An encrypted secret, as stored.
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

    /// Stores a secret, replacing any secret with the same name. The secret may be sent to `hosts`
    /// only.
    ///
    /// # Errors
    /// If the value is too short to be recognized in responses, or the store cannot be written.
    pub async fn set(
        &self,
        name: &str,
        value: &str,
        hosts: Vec<SecretHost>,
    ) -> Result<(), StoreError> {
        Secret::new(name, value, hosts.clone())
            .map_err(|why| StoreError::new("write")(why.into()))?;
        let context = context(self.of.tenant.as_str(), name);
        let sealed = self.cipher.seal(&context, value.as_bytes());
        let mut nonce = sealed.map_err(|why| StoreError::new("write")(why.into()))?;
        let sealed = nonce.split_off(NONCE);
        let hosts = serde_json::json!(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())
            .to_string();
        let name = name.to_owned();
        self.of
            .grow(Access::Write, move |transaction, (tenant, _)| {
                transaction.execute(
                    "INSERT INTO secret (tenant, name, hosts, nonce, sealed)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (tenant, name) DO UPDATE
                     SET hosts = excluded.hosts, nonce = excluded.nonce, sealed = excluded.sealed",
                    params![tenant, name, hosts, nonce, sealed],
                )?;
                Ok(())
            })
            .await
    }

    /// Returns the name of each secret, paired with its hosts as a JSON array.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn list(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.of
            .read(|transaction, (tenant, _)| {
                let query = "SELECT name, hosts FROM secret WHERE tenant = ?1 ORDER BY name";
                transaction.query(query, params![tenant], |row| Ok((row.get(0)?, row.get(1)?)))
            })
            .await
    }

    /// Removes a secret. Returns false if there is no such secret.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let name = name.to_owned();
        self.of
            .write(move |transaction, (tenant, _)| {
                let delete = "DELETE FROM secret WHERE tenant = ?1 AND name = ?2";
                Ok(transaction.execute(delete, params![tenant, name])? > 0)
            })
            .await
    }

    async fn row(&self, name: &str) -> Result<Option<Row>, StoreError> {
        let name = name.to_owned();
        self.of
            .read(move |transaction, (tenant, _)| {
                let query =
                    "SELECT hosts, nonce, sealed FROM secret WHERE tenant = ?1 AND name = ?2";
                let found = transaction.first(query, params![tenant, name])?;
                found.as_ref().map(Row::read).transpose()
            })
            .await
    }

    /// Decrypts a row. Returns `None` if the row was changed, or was encrypted with another key.
    fn open(&self, name: &str, row: &Row) -> Option<Secret> {
        row.open(&self.cipher, self.of.tenant.as_str(), name)
    }
}

/// Returns the associated data that is authenticated with the ciphertext. It binds the ciphertext
/// to the tenant and the name of the secret.
fn context(tenant: &str, name: &str) -> Vec<u8> {
    [tenant.as_bytes(), b"\0", name.as_bytes()].concat()
}

impl Row {
    /// Reads a row with the columns `hosts`, `nonce` and `sealed`.
    fn read(row: &db::Row) -> Result<Row, Cause> {
        Ok(Row { hosts: row.get("hosts")?, nonce: row.get("nonce")?, sealed: row.get("sealed")? })
    }

    fn open(&self, cipher: &Cipher, tenant: &str, name: &str) -> Option<Secret> {
        let sealed = [self.nonce.as_slice(), &self.sealed].concat();
        let value = cipher.open(&context(tenant, name), &sealed)?;
        let hosts: Vec<String> = serde_json::from_str(&self.hosts).ok()?;
        let hosts =
            hosts.iter().map(|host| host.parse().ok()).collect::<Option<Vec<SecretHost>>>()?;
        Secret::new(name, std::str::from_utf8(&value).ok()?, hosts).ok()
    }
}

/// Returns true if a row of the table `secret` can be decrypted with `cipher`.
pub(super) fn is_readable(cipher: &Cipher, row: &db::Row) -> Result<bool, Cause> {
    let (tenant, name): (String, String) = (row.get("tenant")?, row.get("name")?);
    Ok(Row::read(row)?.open(cipher, &tenant, &name).is_some())
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

/// The secrets of a tenant. Their store is opened on first use. Listing the secrets opens the store
/// only if it may contain any.
pub struct LazySecrets {
    may_exist: Box<dyn Fn() -> bool + Send + Sync>,
    open: Open,
    opened: OnceCell<StoredSecrets>,
}

impl LazySecrets {
    /// Creates the secrets without opening the store. `open` may block. `may_exist` must not open
    /// the store, and must return false only if there are certainly no secrets.
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
            if (self.may_exist)() { self.opened().await?.all().await } else { Ok(Vec::new()) }
        })
    }
}
