//! The fingerprints of the tenants' keys. A store remembers which keys its data needs, so that a lost
//! folder of keys, or another one on a second replica, is noticed before anything is written with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::db::params;
use super::{Store, Tenant};
use crate::error::{Cause, StoreError};
use crate::ledger::{KeyKind, Keys};

/// A key that the store knows and that is not in the folder of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingKey {
    /// The tenant that has the key.
    pub tenant: String,
    /// The kind of the key.
    pub kind: KeyKind,
    /// If true, another key is in its place.
    pub is_replaced: bool,
}

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            KeyKind::Signing => "the key that signs the traces",
            KeyKind::Encryption => "the key of the secrets and encrypted records",
        };
        let state = if self.is_replaced { "is another one" } else { "is missing" };
        write!(f, "{what} of tenant `{}` {state}", self.tenant)
    }
}

/// The fingerprint of each key.
type Prints = BTreeMap<(String, KeyKind), String>;

impl Store {
    /// Compares the keys in a folder with those that the store knows, and remembers keys that it does
    /// not know yet. Compares the keys of all tenants, or of one tenant. Returns the keys that are
    /// missing. Must be called before new keys are created in the folder.
    ///
    /// # Errors
    /// If the store cannot be used, or a key cannot be read.
    pub async fn check_keys(
        &self,
        keys: &Keys,
        tenant: Option<&Tenant>,
    ) -> Result<Vec<MissingKey>, StoreError> {
        let (known, mut tenants) = self.known_keys(tenant).await?;
        tenants.extend(tenant.map(ToString::to_string));
        tenants.extend(known.keys().map(|(tenant, _)| tenant.clone()));
        let mut found = Prints::new();
        for tenant in tenants {
            for kind in KeyKind::ALL {
                let print = keys.fingerprint(&tenant, kind);
                let print = print.map_err(|why| StoreError::new("check")(Cause::from(why)))?;
                found.extend(print.map(|print| ((tenant.clone(), kind), print)));
            }
        }
        let mut added = found.clone();
        added.retain(|key, _| !known.contains_key(key));
        let known = if added.is_empty() {
            known
        } else {
            self.add_keys(added).await?;
            // Another process may have been first.
            self.known_keys(tenant).await?.0
        };
        let missing = known.into_iter().filter_map(|(key, print)| {
            let other = found.get(&key);
            let is_replaced = other.is_some();
            let ((tenant, kind), is_same) = (key, other == Some(&print));
            (!is_same).then_some(MissingKey { tenant, kind, is_replaced })
        });
        Ok(missing.collect())
    }

    /// Makes the store forget the keys that are not in the folder, and remember those that are there
    /// in their place. Returns the forgotten keys.
    ///
    /// # Errors
    /// The same as for [`Store::check_keys`].
    pub async fn accept_keys(&self, keys: &Keys) -> Result<Vec<MissingKey>, StoreError> {
        let missing = self.check_keys(keys, None).await?;
        let forgotten: Vec<_> =
            missing.iter().map(|key| (key.tenant.clone(), key.kind.name())).collect();
        self.write(move |transaction| {
            for (tenant, kind) in &forgotten {
                let delete = "DELETE FROM tenant_key WHERE tenant = ?1 AND kind = ?2";
                transaction.execute(delete, params![tenant.clone(), *kind])?;
            }
            Ok(())
        })
        .await?;
        self.check_keys(keys, None).await?;
        Ok(missing)
    }

    /// Returns the fingerprints that the store knows, and the tenants that have data.
    async fn known_keys(
        &self,
        tenant: Option<&Tenant>,
    ) -> Result<(Prints, BTreeSet<String>), StoreError> {
        let tenant = tenant.map(ToString::to_string);
        self.read(move |transaction| {
            let query = "SELECT tenant, kind, fingerprint FROM tenant_key";
            let rows = transaction.query(query, &[], |row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<String>(2)?))
            })?;
            let mut prints = Prints::new();
            for (of, kind, print) in rows {
                if let Some(kind) = KeyKind::of_name(&kind)
                    && tenant.as_ref().is_none_or(|tenant| *tenant == of)
                {
                    prints.insert((of, kind), print);
                }
            }
            let tenants = match tenant {
                Some(_) => Vec::new(),
                None => transaction
                    .query("SELECT DISTINCT tenant FROM usage", &[], |row| row.get::<String>(0))?,
            };
            Ok((prints, tenants.into_iter().collect()))
        })
        .await
    }

    async fn add_keys(&self, added: Prints) -> Result<(), StoreError> {
        self.write(move |transaction| {
            for ((tenant, kind), print) in &added {
                transaction.execute(
                    "INSERT INTO tenant_key (tenant, kind, fingerprint) VALUES (?1, ?2, ?3)
                     ON CONFLICT (tenant, kind) DO NOTHING",
                    params![tenant.clone(), kind.name(), print.clone()],
                )?;
            }
            Ok(())
        })
        .await
    }
}
