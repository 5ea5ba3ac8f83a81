//! Locks on names, such as those of runs and sessions. Only one process can hold a lock at a time.
//!
//! A row names the holder. The name is free if the row is gone, or if the holder is known to have
//! ended: the machine was rebooted since, or the holder's process is gone. If the holder's process
//! cannot be inspected, the name is free once the holder has not sent a heartbeat for a minute.

use std::time::Duration;

use rusqlite::{OptionalExtension, TransactionBehavior, params};
use tokio::task::JoinHandle;

use super::{TenantStore, now};
use crate::error::StoreError;
use crate::journal::Lock;

/// Interval between heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Maximum age of the last heartbeat, in milliseconds.
const MAX_SILENCE_MS: i64 = 60_000;

/// Locks a name of the tenant, if it is free. If the caller stops waiting, the work continues, and
/// the lock is released as soon as it is acquired.
pub(super) async fn acquire(of: TenantStore, name: String) -> Result<Option<Lock>, StoreError> {
    match tokio::spawn(try_acquire(of, name)).await {
        Ok(acquired) => acquired,
        Err(stopped) => Err(StoreError::new("write")(stopped.into())),
    }
}

async fn try_acquire(of: TenantStore, name: String) -> Result<Option<Lock>, StoreError> {
    let me = Holder::me();
    let key = LockKey { holder: format!("{} {}", me.text(), ulid::Ulid::generate()), of, name };
    let (tenant, name, holder) = key.columns();
    let acquired = key.of.store.with(StoreError::new("write"), move |connection| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let held: Option<(String, i64)> = transaction
            .query_row(
                "SELECT holder, beat FROM hold WHERE tenant = ?1 AND name = ?2",
                params![tenant, name],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        if held.is_some_and(|(holder, beat)| {
            Holder::of(&holder).is_alive(&me, now().saturating_sub(beat))
        }) {
            return Ok(false);
        }
        transaction.execute(
            "INSERT INTO hold (tenant, name, holder, beat) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (tenant, name) DO UPDATE SET holder = excluded.holder, beat = \
             excluded.beat",
            params![tenant, name, holder, now()],
        )?;
        transaction.commit()?;
        Ok(true)
    });
    if !acquired.await? {
        return Ok(None);
    }
    let heartbeats = tokio::spawn(send_heartbeats(key.clone()));
    Ok(Some(Lock::new(HeldLock { key, heartbeats })))
}

/// Records the holder's heartbeats.
async fn send_heartbeats(key: LockKey) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let (tenant, name, holder) = key.columns();
        let update = "UPDATE hold SET beat = ?4 WHERE tenant = ?1 AND name = ?2 AND holder = ?3";
        let beat = key.of.store.with(StoreError::new("write"), move |connection| {
            connection.execute(update, params![tenant, name, holder, now()])
        });
        if let Err(error) = beat.await {
            tracing::warn!(%error, "failed to record a heartbeat of this process");
        }
    }
}

/// The name and holder of a lock.
#[derive(Clone)]
struct LockKey {
    of: TenantStore,
    name: String,
    holder: String,
}

impl LockKey {
    fn columns(&self) -> (String, String, String) {
        (self.of.tenant.to_string(), self.name.clone(), self.holder.clone())
    }
}

/// An acquired lock, which is released when this is dropped.
struct HeldLock {
    key: LockKey,
    heartbeats: JoinHandle<()>,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.heartbeats.abort();
        let (tenant, name, holder) = self.key.columns();
        let connection =
            self.key.of.store.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let delete = "DELETE FROM hold WHERE tenant = ?1 AND name = ?2 AND holder = ?3";
        if let Err(error) = connection.execute(delete, params![tenant, name, holder]) {
            tracing::warn!(%error, "failed to release a lock; it becomes free when this process ends");
        }
    }
}

/// A process: the boot id of the machine, its process id, and its start time. Empty if the system
/// does not provide them.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    boot: String,
    pid: String,
    start_time: String,
}

impl Holder {
    fn me() -> Holder {
        let pid = std::process::id().to_string();
        let start_time = if let Process::Running(start_time) = Process::of(&pid) {
            start_time
        } else {
            String::new()
        };
        Holder { boot: boot(), start_time, pid }
    }

    fn of(text: &str) -> Holder {
        let mut parts = text.split(' ').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Holder { boot: next(), pid: next(), start_time: next() }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.boot, self.pid, self.start_time)
    }

    /// Returns true if the process is running, as far as `me` can know. `silent` is the age of its
    /// last heartbeat, in milliseconds.
    fn is_alive(&self, me: &Holder, silent: i64) -> bool {
        if me.boot.is_empty() || me.start_time.is_empty() {
            return silent < MAX_SILENCE_MS;
        }
        self.boot == me.boot
            && match Process::of(&self.pid) {
                Process::Running(start_time) => start_time == self.start_time,
                Process::Hidden => silent < MAX_SILENCE_MS,
                Process::Ended => false,
            }
    }
}

/// Returns the id of the machine's current boot.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The state of a process according to the system.
#[derive(Debug, PartialEq, Eq)]
enum Process {
    /// The process runs. Its start time is in ticks since the boot.
    Running(String),
    /// The process runs, but this process is not permitted to read its start time.
    Hidden,
    /// The process has ended.
    Ended,
}

impl Process {
    fn of(pid: &str) -> Process {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => Process::start_time(&stat).map_or(Process::Ended, Process::Running),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Process::Hidden,
            Err(_) => Process::Ended,
        }
    }

    /// Parses the start time of a process: the twentieth field after the name, which ends with the
    /// last `)`. Returns `None` for a process that has ended but was not waited for.
    fn start_time(stat: &str) -> Option<String> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        (state != "Z" && state != "X").then(|| fields.nth(18).map(str::to_owned)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locks_of_a_process_that_ended_are_free() {
        let me = Holder::me();
        let other = |boot: &str, pid: &str, start_time: &str| Holder {
            boot: boot.to_owned(),
            pid: pid.to_owned(),
            start_time: start_time.to_owned(),
        };
        assert_eq!(Holder::of(&format!("{} x", me.text())), me);
        assert!(me.is_alive(&me, i64::MAX));
        if !me.boot.is_empty() {
            assert!(
                !other(&me.boot, &me.pid, "1").is_alive(&me, 0),
                "another process had that number"
            );
            assert!(!other("another-boot", &me.pid, &me.start_time).is_alive(&me, 0));
            assert!(!other(&me.boot, "999999999", &me.start_time).is_alive(&me, 0));
        }
        let blind = other("", "1", "");
        assert!(me.is_alive(&blind, MAX_SILENCE_MS - 1));
        assert!(!me.is_alive(&blind, MAX_SILENCE_MS));
    }
}
