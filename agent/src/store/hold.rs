//! What only one process may work on at a time.
//!
//! A row names the holder. It is free where the row is gone, and where the holder is known to be: the same start of the machine without that
//! process. Where that cannot be known, on systems that tell of no processes, it is free once the holder has not been heard of for a minute.

use std::time::Duration;

use rusqlite::{OptionalExtension, TransactionBehavior, params};
use tokio::task::JoinHandle;

use super::{StoreError, TenantStore, now};
use crate::journal::Hold;

/// How often a holder is heard of, and how long it may not be.
const BEAT: Duration = Duration::from_secs(10);
const SILENT: i64 = 60_000;

/// Takes a name of the tenant, if nobody holds it. It goes on where the caller no longer waits: a hold that nobody takes is released.
pub(super) async fn take(of: TenantStore, name: String) -> Result<Option<Hold>, StoreError> {
    match tokio::spawn(taken(of, name)).await {
        Ok(taken) => taken,
        Err(stopped) => Err(StoreError::new("write")(stopped.into())),
    }
}

async fn taken(of: TenantStore, name: String) -> Result<Option<Hold>, StoreError> {
    let me = Holder::me();
    let held = Held { holder: format!("{} {}", me.text(), ulid::Ulid::generate()), of, name };
    let (tenant, name, holder) = held.key();
    let taken = held.of.store.with(StoreError::new("write"), move |connection| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let held: Option<(String, i64)> = transaction
            .query_row("SELECT holder, beat FROM hold WHERE tenant = ?1 AND name = ?2", params![tenant, name], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if held.is_some_and(|(holder, beat)| Holder::of(&holder).is_alive(&me, now().saturating_sub(beat))) {
            return Ok(false);
        }
        transaction.execute(
            "INSERT INTO hold (tenant, name, holder, beat) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (tenant, name) DO UPDATE SET holder = excluded.holder, beat = excluded.beat",
            params![tenant, name, holder, now()],
        )?;
        transaction.commit()?;
        Ok(true)
    });
    if !taken.await? {
        return Ok(None);
    }
    let beats = tokio::spawn(beat(held.clone()));
    Ok(Some(Hold::new(Beating { held, beats })))
}

/// Notes now and then that the holder is alive.
async fn beat(held: Held) {
    loop {
        tokio::time::sleep(BEAT).await;
        let (tenant, name, holder) = held.key();
        let update = "UPDATE hold SET beat = ?4 WHERE tenant = ?1 AND name = ?2 AND holder = ?3";
        let beat = held.of.store.with(StoreError::new("write"), move |connection| {
            connection.execute(update, params![tenant, name, holder, now()])
        });
        if let Err(error) = beat.await {
            tracing::warn!(%error, "failed to note that this process is alive");
        }
    }
}

/// A name that this process holds.
#[derive(Clone)]
struct Held {
    of: TenantStore,
    name: String,
    holder: String,
}

impl Held {
    fn key(&self) -> (String, String, String) {
        (self.of.tenant.to_string(), self.name.clone(), self.holder.clone())
    }
}

/// A name that is held until this is dropped.
struct Beating {
    held: Held,
    beats: JoinHandle<()>,
}

impl Drop for Beating {
    fn drop(&mut self) {
        self.beats.abort();
        let (tenant, name, holder) = self.held.key();
        let connection = self.held.of.store.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let delete = "DELETE FROM hold WHERE tenant = ?1 AND name = ?2 AND holder = ?3";
        if let Err(error) = connection.execute(delete, params![tenant, name, holder]) {
            tracing::warn!(%error, "failed to release what this process held; it is free when the process has ended");
        }
    }
}

/// A process: the start of the machine, its number, and when it began. Empty where the system does not tell.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    boot: String,
    pid: String,
    began: String,
}

impl Holder {
    fn me() -> Holder {
        let pid = std::process::id().to_string();
        let began = if let Process::Began(began) = Process::of(&pid) { began } else { String::new() };
        Holder { boot: boot(), began, pid }
    }

    fn of(text: &str) -> Holder {
        let mut parts = text.split(' ').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Holder { boot: next(), pid: next(), began: next() }
    }

    fn text(&self) -> String {
        format!("{} {} {}", self.boot, self.pid, self.began)
    }

    /// Whether the process is there, as far as `me` can know; `silent` is how long it has not been heard of, in milliseconds.
    fn is_alive(&self, me: &Holder, silent: i64) -> bool {
        if me.boot.is_empty() || me.began.is_empty() {
            return silent < SILENT;
        }
        self.boot == me.boot
            && match Process::of(&self.pid) {
                Process::Began(began) => began == self.began,
                Process::Hidden => silent < SILENT,
                Process::Ended => false,
            }
    }
}

/// The start of the machine.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// What the system says of a process.
#[derive(Debug, PartialEq, Eq)]
enum Process {
    /// It runs, and began then, in ticks since the start of the machine.
    Began(String),
    /// It runs, and more is not shown: this process is confined.
    Hidden,
    /// It has ended.
    Ended,
}

impl Process {
    fn of(pid: &str) -> Process {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => Process::began(&stat).map_or(Process::Ended, Process::Began),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Process::Hidden,
            Err(_) => Process::Ended,
        }
    }

    /// Reads when a process began: the twentieth field behind the name, which ends with the last `)`.
    /// A process that has ended and was not waited for yet does nothing any more.
    fn began(stat: &str) -> Option<String> {
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
    fn a_process_that_is_gone_holds_nothing() {
        let me = Holder::me();
        let other = |boot: &str, pid: &str, began: &str| Holder {
            boot: boot.to_owned(),
            pid: pid.to_owned(),
            began: began.to_owned(),
        };
        assert_eq!(Holder::of(&format!("{} x", me.text())), me);
        assert!(me.is_alive(&me, i64::MAX));
        if !me.boot.is_empty() {
            assert!(!other(&me.boot, &me.pid, "1").is_alive(&me, 0), "another process had that number");
            assert!(!other("another-boot", &me.pid, &me.began).is_alive(&me, 0));
            assert!(!other(&me.boot, "999999999", &me.began).is_alive(&me, 0));
        }
        let blind = other("", "1", "");
        assert!(me.is_alive(&blind, SILENT - 1));
        assert!(!me.is_alive(&blind, SILENT));
    }
}
