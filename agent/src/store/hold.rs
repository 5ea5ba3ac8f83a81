//! What only one process may work on at a time.
//!
//! A row names the holder. It is free where the row is gone, and where the holder is known to be: the same start of the machine without that
//! process. Where that cannot be known, on systems that tell of no processes, it is free once the holder has not been heard of for a minute.

use std::time::Duration;

use rusqlite::{OptionalExtension, TransactionBehavior, params};
use tokio::task::JoinHandle;

use super::{Store, StoreError, now};
use crate::journal::Hold;

/// How often a holder is heard of, and how long it may not be.
const BEAT: Duration = Duration::from_secs(10);
const SILENT: i64 = 60_000;

/// Takes a name, where nobody holds it.
pub(super) async fn take(store: Store, name: String) -> Result<Option<Hold>, StoreError> {
    let me = Holder::me();
    let mine = format!("{} {}", me.text(), ulid::Ulid::generate());
    let (wanted, holder) = (name.clone(), mine.clone());
    let taken = store.with(StoreError::new("write"), move |connection| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let held: Option<(String, i64)> = transaction
            .query_row("SELECT holder, beat FROM hold WHERE name = ?1", params![wanted], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if held.is_some_and(|(holder, beat)| Holder::of(&holder).is_alive(&me, now().saturating_sub(beat))) {
            return Ok(false);
        }
        transaction.execute(
            "INSERT INTO hold (name, holder, beat) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, beat = excluded.beat",
            params![wanted, holder, now()],
        )?;
        transaction.commit()?;
        Ok(true)
    });
    if !taken.await? {
        return Ok(None);
    }
    let (beating, beaten, by) = (store.clone(), name.clone(), mine.clone());
    let beats = tokio::spawn(async move {
        loop {
            tokio::time::sleep(BEAT).await;
            let (name, by) = (beaten.clone(), by.clone());
            let beat = beating.with(StoreError::new("write"), move |connection| {
                connection
                    .execute("UPDATE hold SET beat = ?3 WHERE name = ?1 AND holder = ?2", params![name, by, now()])
            });
            if let Err(error) = beat.await {
                tracing::warn!(%error, "failed to tell that this process is alive");
            }
        }
    });
    Ok(Some(Hold::new(Held { store, name, holder: mine, beats })))
}

/// A name that this process holds.
struct Held {
    store: Store,
    name: String,
    holder: String,
    beats: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.beats.abort();
        let connection = self.store.connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let freed =
            connection.execute("DELETE FROM hold WHERE name = ?1 AND holder = ?2", params![self.name, self.holder]);
        if let Err(error) = freed {
            tracing::warn!(%error, "failed to free what this process held; it is free when the process has ended");
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
        Holder { boot: boot(), began: began(&pid).unwrap_or_default(), pid }
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
        self.boot == me.boot && began(&self.pid).is_some_and(|began| began == self.began)
    }
}

/// The start of the machine.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// When a process began, in ticks since the start of the machine: the twentieth field behind the name, which ends with the last `)`.
fn began(pid: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    // A process that has ended and was not waited for yet does nothing any more.
    (state != "Z" && state != "X").then(|| fields.nth(18).map(str::to_owned)).flatten()
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
