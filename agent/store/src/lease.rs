//! Named locks, for example on runs and sessions. They are leases with fencing numbers.
//!
//! ```text
//! replica(id, expires) ◄── hold(tenant, name, holder, fence)
//! ```
//!
//! Each open [`Store`] that holds a lock has a row in `replica`, which its heartbeats renew
//! according to the database's clock. Therefore all its locks expire at the same time. A lock is a
//! row in `hold` that names its holder. The lock is free if the row does not exist, or if the
//! holder's lease has expired. With SQLite, all processes are on one machine, and the operating
//! system reports whether the holder's process is running. Therefore the locks of an ended process
//! are free immediately, and a paused process keeps its locks.
//!
//! Each time a lock is acquired, it gets a *fencing number* that is higher than all earlier ones
//! for the same name. Each write to the journal of a locked run also updates the lock's row,
//! selected by its fencing number, in the same transaction. Therefore a process that was paused
//! until its lease expired cannot write to a run that another process has taken over: the row has a
//! different fencing number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::crash::judge;
use super::db::{Access, Database, Transaction, params};
use super::process::Holder;
use super::{Store, TenantStore};
use crate::error::{Cause, StoreError};
use crate::journal::Lock;

/// Time from a process's last heartbeat to the expiry of its locks, in milliseconds.
const LEASE_MS: i64 = 15_000;
/// Interval between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Interval at which the leases of other processes are checked.
const LOOK: Duration = Duration::from_millis(500);
/// Time from the expiry of a process's locks to the removal of its rows, in milliseconds: one day.
const RETENTION_MS: i64 = 24 * 3_600 * 1_000;

/// The error for a write under a lock that another process has taken over.
#[derive(Debug, thiserror::Error)]
#[error("this process lost its lease of `{0}`, and another one has taken it over")]
pub(super) struct LostLease(String);

/// The key of a lock: a tenant, and a name within the tenant.
type Key = (String, String);

/// A lock that this store holds or is acquiring.
#[derive(Clone)]
struct Held {
    /// The fencing number, or `None` while the lock is being acquired.
    fence: Option<i64>,
    /// A token that is cancelled when another process has taken over the lock.
    lost: CancellationToken,
}

/// The locks that an open [`Store`] holds, and the heartbeats that keep them.
pub(super) struct Leases {
    db: Database,
    /// The identity of the process, followed by an id for this store.
    holder: String,
    held: Mutex<HashMap<Key, Held>>,
    heartbeats: Mutex<Option<JoinHandle<()>>>,
    /// The locks that are being released in the background.
    releases: TaskTracker,
}

impl Leases {
    pub(super) fn new(db: Database) -> Arc<Leases> {
        let holder = format!("{} {}", Holder::me().text(), ulid::Ulid::generate());
        Arc::new(Leases {
            db,
            holder,
            held: Mutex::default(),
            heartbeats: Mutex::default(),
            releases: TaskTracker::new(),
        })
    }

    /// Returns the name of this store's row in `replica`.
    pub(super) fn holder(&self) -> &str {
        &self.holder
    }

    /// Returns true if this store is the holder, or if the holder is alive. `expires` is the time
    /// when the holder's lease expires, or `None` if it has no row in `replica`.
    pub(super) fn serves(&self, holder: &str, expires: Option<i64>, now: i64) -> bool {
        let has_expired = expires.is_none_or(|expires| expires <= now);
        holder == self.holder || is_alive(holder, self.db.sqlite().is_some(), has_expired)
    }

    /// Returns the fencing number of a lock, or `None` if this store does not hold the lock.
    pub(super) fn fence(&self, tenant: &str, name: &str) -> Option<i64> {
        self.held().get(&(tenant.to_owned(), name.to_owned())).and_then(|held| held.fence)
    }

    /// Registers this process as a user of the store, until it closes the store or ends.
    pub(super) async fn join(self: &Arc<Self>) -> Result<(), Cause> {
        let (holder, by_system) = (self.holder.clone(), self.db.sqlite().is_some());
        let join = move |transaction: &mut Transaction<'_>| {
            let now = transaction.now();
            renew(transaction, &holder, by_system, now)
        };
        self.db.run(Access::Write, join).await?;
        self.start_heartbeats();
        Ok(())
    }

    /// Returns true if `self` and `other` use the same database. [`join`](Leases::join) must have
    /// been called on `other`.
    pub(super) async fn knows(&self, other: &Leases) -> Result<bool, Cause> {
        let holder = other.holder.clone();
        let find = move |transaction: &mut Transaction<'_>| {
            let query = "SELECT 1 FROM replica WHERE id = ?1";
            Ok(transaction.first(query, params![holder])?.is_some())
        };
        self.db.run(Access::Read, find).await
    }

    /// Returns the other live users of the store, each with the time when its lease expires. A user
    /// is live if its process is running (SQLite) or its lease has not expired (PostgreSQL).
    pub(super) async fn others(&self) -> Result<HashMap<String, i64>, Cause> {
        let (own, by_system) = (self.holder.clone(), self.db.sqlite().is_some());
        let find = move |transaction: &mut Transaction<'_>| {
            let now = transaction.now();
            let query = "SELECT id, expires FROM replica WHERE id <> ?1";
            let all = transaction.query(query, params![own], |row| {
                Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
            })?;
            let is_alive = |(id, expires): &(String, i64)| is_alive(id, by_system, *expires <= now);
            Ok(all.into_iter().filter(is_alive).collect())
        };
        self.db.run(Access::Read, find).await
    }

    /// Stops the heartbeats and releases all locks. Waits for the locks that are being released in
    /// the background.
    pub(super) async fn close(&self) -> Result<(), Cause> {
        self.releases.close();
        self.releases.wait().await;
        // Without heartbeats, this process never held a lock.
        if !self.stop_heartbeats() {
            return Ok(());
        }
        self.held().clear();
        let holder = self.holder.clone();
        self.db.run(Access::Write, move |transaction| forget(transaction, &holder)).await
    }

    /// Removes the locks of ended processes if the database is SQLite. Does nothing in PostgreSQL,
    /// where locks expire instead.
    pub(super) async fn release_dead(&self) -> Result<(), Cause> {
        if self.db.sqlite().is_none() {
            return Ok(());
        }
        let own = self.holder.clone();
        let others = move |transaction: &mut Transaction<'_>| {
            let (now, query) =
                (transaction.now(), "SELECT id, expires FROM replica WHERE id <> ?1");
            transaction.query(query, params![own], |row| {
                Ok((row.get::<String>(0)?, row.get::<i64>(1)? <= now))
            })
        };
        let mut others = self.db.run(Access::Read, others).await?;
        let me = Holder::me();
        others.retain(|(id, has_expired)| !Holder::of(id).is_alive(&me, *has_expired));
        if others.is_empty() {
            return Ok(());
        }
        let release = move |transaction: &mut Transaction<'_>| {
            for (id, _) in &others {
                judge(transaction, id, true)?;
                forget(transaction, id)?;
            }
            Ok(())
        };
        self.db.run(Access::Write, release).await
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Key, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires a lock that this store does not hold. Returns the lock's fencing number, or `None`
    /// if another process holds the lock.
    async fn acquire(&self, key: &Key) -> Result<Option<i64>, Cause> {
        let (holder, (tenant, name)) = (self.holder.clone(), key.clone());
        let by_system = self.db.sqlite().is_some();
        let beats = self.beats();
        let work = move |transaction: &mut Transaction<'_>| {
            let now = transaction.now();
            if !beats {
                renew(transaction, &holder, by_system, now)?;
            }
            let found = transaction.first(
                "SELECT hold.holder, hold.fence, replica.expires FROM hold LEFT JOIN replica
                 ON replica.id = hold.holder WHERE hold.tenant = ?1 AND hold.name = ?2",
                params![tenant, name],
            )?;
            let mut seen: i64 = -1;
            if let Some(row) = found {
                let (by, expires): (String, Option<i64>) = (row.get(0)?, row.get(2)?);
                seen = row.get(1)?;
                let has_expired = expires.is_none_or(|expires| expires <= now);
                // If this store is the holder, the lock is about to be released.
                if by != holder && is_alive(&by, by_system, has_expired) {
                    return Ok(None);
                }
                if by != holder {
                    judge(transaction, &by, by_system)?;
                }
            }
            let fence = now.max(seen.saturating_add(1));
            let acquired = transaction.execute(
                "INSERT INTO hold (tenant, name, holder, fence) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (tenant, name) DO UPDATE SET holder = excluded.holder,
                 fence = excluded.fence WHERE hold.fence = ?5",
                params![tenant, name, holder, fence, seen],
            )?;
            Ok((acquired > 0).then_some(fence))
        };
        self.db.run(Access::Write, work).await
    }

    /// Returns true if heartbeats are being sent.
    fn beats(&self) -> bool {
        let heartbeats = self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
        heartbeats.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Starts sending heartbeats, unless they are already being sent. They stop when the store is
    /// dropped.
    fn start_heartbeats(self: &Arc<Self>) {
        let mut heartbeats = self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
        if heartbeats.as_ref().is_none_or(JoinHandle::is_finished) {
            *heartbeats = Some(tokio::spawn(send_heartbeats(Arc::downgrade(self))));
        }
    }

    /// Stops the heartbeats. Returns true if they had been started.
    fn stop_heartbeats(&self) -> bool {
        let mut heartbeats = self.heartbeats.lock().unwrap_or_else(PoisonError::into_inner);
        heartbeats.take().inspect(JoinHandle::abort).is_some()
    }

    /// Renews the lease. Marks a lock as lost if another process has taken it over.
    async fn beat(&self) -> Result<(), Cause> {
        let (holder, by_system) = (self.holder.clone(), self.db.sqlite().is_some());
        let (before, db) = (self.held().clone(), self.db.clone());
        let work = move |transaction: &mut Transaction<'_>| {
            db.check_id(transaction)?;
            let now = transaction.now();
            renew(transaction, &holder, by_system, now)?;
            let own = "SELECT tenant, name, fence FROM hold WHERE holder = ?1";
            transaction.query(own, params![holder], |row| {
                Ok(((row.get(0)?, row.get(1)?), row.get::<i64>(2)?))
            })
        };
        let own: HashMap<Key, i64> = self.db.run(Access::Write, work).await?.into_iter().collect();
        for (key, held) in &before {
            if held.fence.is_some() && held.fence != own.get(key).copied() {
                held.lost.cancel();
            }
        }
        self.release_left(own).await
    }

    /// Releases locks that this store no longer holds but that the database still assigns to it,
    /// because an earlier release failed while the database was unavailable.
    async fn release_left(&self, mut own: HashMap<Key, i64>) -> Result<(), Cause> {
        // `held` also contains locks that are being acquired.
        own.retain(|key, _| !self.held().contains_key(key));
        if own.is_empty() {
            return Ok(());
        }
        let release = move |transaction: &mut Transaction<'_>| {
            own.iter().try_for_each(|(key, fence)| delete(transaction, key, *fence))
        };
        self.db.run(Access::Write, release).await
    }

    /// Releases a lock in the background, since the database may be unavailable. If that fails, a
    /// later heartbeat releases the lock.
    fn release(self: &Arc<Self>, key: &Key, runtime: &Handle) {
        let Some(fence) = self.held().remove(key).and_then(|held| held.fence) else { return };
        let (key, db) = (key.clone(), self.db.clone());
        let work = move |transaction: &mut Transaction<'_>| delete(transaction, &key, fence);
        let released = async move { report(db.run(Access::Write, work).await) };
        self.releases.spawn_on(released, runtime);
    }
}

/// Returns true if a holder is alive and may still write. If `by_system` is true, asks the
/// operating system whether the holder's process is running.
fn is_alive(holder: &str, by_system: bool, has_expired: bool) -> bool {
    if by_system { Holder::of(holder).is_alive(&Holder::me(), has_expired) } else { !has_expired }
}

/// Checks that no other process uses a store. In PostgreSQL, first waits until the leases of ended
/// processes have expired.
pub(super) async fn check_unused(store: &Store) -> Result<(), Cause> {
    let mut known = store.leases.others().await?;
    while !known.is_empty() && store.is_shared() {
        tokio::time::sleep(LOOK).await;
        let now = store.leases.others().await?;
        if now.iter().any(|(id, expires)| known.get(id) != Some(expires)) {
            break;
        }
        known = now;
    }
    match known.len() {
        0 => Ok(()),
        count => Err(format!(
            "it is in use by {count} other process{}\nhint: stop the servers and commands that use \
             it",
            if count == 1 { "" } else { "es" }
        )
        .into()),
    }
}

fn report(released: Result<(), Cause>) {
    if let Err(error) = released {
        tracing::warn!(%error, "failed to release a lock; the next heartbeat tries again");
    }
}

/// Removes the row of a lock, unless the lock has been acquired again in the meantime.
fn delete(
    transaction: &mut Transaction<'_>,
    (tenant, name): &Key,
    fence: i64,
) -> Result<(), Cause> {
    let delete = "DELETE FROM hold WHERE tenant = ?1 AND name = ?2 AND fence = ?3";
    transaction.execute(delete, params![tenant, name, fence])?;
    Ok(())
}

impl Drop for Leases {
    fn drop(&mut self) {
        self.stop_heartbeats();
    }
}

/// Renews a holder's lease and removes the rows of holders whose leases expired long ago.
fn renew(
    transaction: &mut Transaction<'_>,
    holder: &str,
    by_system: bool,
    now: i64,
) -> Result<(), Cause> {
    let expires = now.saturating_add(LEASE_MS);
    transaction.execute(
        "INSERT INTO replica (id, expires) VALUES (?1, ?2)
         ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
        params![holder, expires],
    )?;
    // If the clock went back, the lease of an ended process would otherwise expire too late.
    transaction.execute("UPDATE replica SET expires = ?1 WHERE expires > ?1", params![expires])?;
    let oldest = now.saturating_sub(RETENTION_MS);
    let mut gone = transaction.query(
        "SELECT id FROM replica WHERE ABS(expires) < ?1",
        params![oldest],
        |row| row.get::<String>(0),
    )?;
    // If the clock went ahead, the leases of running processes seem to have expired.
    gone.retain(|id| !is_alive(id, by_system, true));
    for id in &gone {
        judge(transaction, id, by_system)?;
        forget(transaction, id)?;
    }
    Ok(())
}

/// Removes a holder and its locks.
fn forget(transaction: &mut Transaction<'_>, holder: &str) -> Result<(), Cause> {
    transaction.execute("DELETE FROM hold WHERE holder = ?1", params![holder])?;
    transaction.execute("DELETE FROM replica WHERE id = ?1", params![holder])?;
    Ok(())
}

async fn send_heartbeats(leases: Weak<Leases>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Some(leases) = leases.upgrade() else { return };
        if let Err(error) = leases.beat().await {
            tracing::warn!(%error, "failed to record a heartbeat of this process");
        }
    }
}

/// Checks, within a write transaction, that this store still holds a lock with this fencing number.
/// Until the transaction ends, no other process can take over the lock. Without a fencing number,
/// nothing is checked.
pub(super) fn check_fence(
    transaction: &mut Transaction<'_>,
    (tenant, name): (&str, &str),
    fence: Option<i64>,
) -> Result<(), Cause> {
    let Some(fence) = fence else { return Ok(()) };
    let is_held = if transaction.excludes_writers() {
        let query = "SELECT 1 FROM hold WHERE tenant = ?1 AND name = ?2 AND fence = ?3";
        transaction.first(query, params![tenant, name, fence])?.is_some()
    } else {
        let lock = "UPDATE hold SET fence = fence WHERE tenant = ?1 AND name = ?2 AND fence = ?3";
        transaction.execute(lock, params![tenant, name, fence])? > 0
    };
    if is_held { Ok(()) } else { Err(LostLease(name.to_owned()).into()) }
}

/// Locks a name within the tenant. Returns `None` if it is already locked. If the caller stops
/// waiting, the acquisition continues, and the lock is released as soon as it is acquired.
pub(super) async fn acquire(of: TenantStore, name: String) -> Result<Option<Lock>, StoreError> {
    let failed = of.clone();
    match tokio::spawn(try_acquire(of, name)).await {
        Ok(acquired) => acquired.map_err(|cause| failed.store.failed("write", cause)),
        Err(stopped) => Err(StoreError::new("write")(stopped.into())),
    }
}

async fn try_acquire(of: TenantStore, name: String) -> Result<Option<Lock>, Cause> {
    let leases = Arc::clone(&of.store.leases);
    let key = (of.tenant.to_string(), name);
    let lost = CancellationToken::new();
    {
        let mut held = leases.held();
        if held.contains_key(&key) {
            return Ok(None);
        }
        held.insert(key.clone(), Held { fence: None, lost: lost.clone() });
    }
    // If the lock is not acquired, dropping this guard removes the entry from `held`.
    let lock = HeldLock { leases: Arc::clone(&leases), key, runtime: Handle::current() };
    let Some(fence) = leases.acquire(&lock.key).await? else { return Ok(None) };
    if let Some(held) = leases.held().get_mut(&lock.key) {
        held.fence = Some(fence);
    }
    leases.start_heartbeats();
    Ok(Some(Lock::new(lock).lost_by(lost)))
}

/// A guard that releases a lock of a store when it is dropped.
struct HeldLock {
    leases: Arc<Leases>,
    key: Key,
    /// The runtime on which the lock was acquired, since a thread outside of it may drop the guard.
    runtime: Handle,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.leases.release(&self.key, &self.runtime);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;
    use crate::Tenant;

    #[tokio::test]
    async fn a_closed_store_releases_no_lock_later() {
        let store = Store::in_memory(Duration::from_secs(3_600)).unwrap();
        let of = store.tenant(&Tenant::default());
        let first = acquire(of.clone(), "run:a".to_owned()).await.unwrap().unwrap();
        let second = acquire(of, "run:b".to_owned()).await.unwrap().unwrap();
        drop((first, second));
        assert_eq!(store.leases.releases.len(), 2, "they are released in the background");
        store.close().await.unwrap();
        assert!(store.leases.releases.is_empty());
    }
}
