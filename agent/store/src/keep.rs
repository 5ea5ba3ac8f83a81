//! The removal of old data: ended runs and their events, unused sessions, and sessions that a
//! killed process left behind.
//!
//! A root run and its descendants form a tree. A tree is removed only if all its runs have ended,
//! so that no child run loses the parent that waits for it. The age of a tree is the time since its
//! root run ended.
//!
//! Everything is removed in small transactions, so that other writers never wait for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::clock::date;
use super::db::{ToValue as _, Transaction, Value, params};
use super::objects::GRACE;
use super::{Store, TenantStore, own_session};
use crate::error::{Cause, StoreError};
use crate::tenant::Tenant;

/// Maximum number of runs or sessions that one transaction removes.
const BATCH: u64 = 200;
/// Time after which a transaction stops removing runs and events.
const SLICE: Duration = Duration::from_millis(50);
/// Pause between two transactions.
const PAUSE: Duration = Duration::from_millis(50);
/// Time without use after which a session that belongs to a single run or program is removed. No
/// program outside a run takes that long.
const ABANDONED: Duration = Duration::from_secs(3_600);
/// Interval at which a server removes old data.
const SWEEP: Duration = Duration::from_secs(600);
/// Interval at which a server writes the log of an SQLite file back to the file.
const WRITE_BACK: Duration = Duration::from_secs(30);
/// Size above which a log that was written back is reported, in bytes.
const LARGE_LOG: u64 = 256 << 20;
/// Time for which a conversation is known after its last use and after the removal of its session.
/// A client that continues it later may get a session with the same conversation of another client
/// that shares its token.
const CONVERSATIONS: Duration = Duration::from_secs(90 * 24 * 3_600);
/// The name of the lock that a process holds while it removes old data. The lock belongs to the
/// default tenant.
pub(super) const LOCK: &str = "store:sweep";

/// The retention periods for ended runs and their events. `None` means forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Time for which a run, with its turns, calls and events, is kept after its end.
    pub runs: Option<Duration>,
    /// Time for which a run's events are kept after its end. The last event is kept as long as the
    /// run.
    pub events: Option<Duration>,
}

/// Runs are kept for 30 days, together with their events.
impl Default for Retention {
    fn default() -> Retention {
        Retention { runs: Some(Duration::from_secs(30 * 24 * 3_600)), events: None }
    }
}

/// Counts of the data that was removed, or would be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Number of runs. Their turns, calls and events are removed with them.
    pub runs: u64,
    /// Number of runs from which all events but the last are removed.
    pub runs_without_events: u64,
    /// Number of sessions. Their messages, state, files and memory are removed with them.
    pub sessions: u64,
    /// Number of unreferenced objects. An object stores a large text of a run or a session outside
    /// the database.
    pub objects: u64,
}

/// The reason why the removal of old data ended early.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct PruneError {
    /// The data that was removed before the error.
    pub removed: Pruned,
    /// The cause.
    pub cause: StoreError,
}

/// The condition for the root run of a tree that ended before ?1. A run also counts as a root if an
/// older version of the program removed its root run.
const ENDED: &str = "run.status = 'ended' AND run.used < ?1 AND (run.root IS NULL OR NOT EXISTS (
         SELECT 1 FROM run AS top WHERE top.tenant = run.tenant AND top.id = run.root))
     AND NOT EXISTS (SELECT 1 FROM run AS child WHERE child.tenant = run.tenant
         AND child.root = run.id AND child.status <> 'ended')";

/// The condition for the first event of a run that has more than one event.
const FIRST: &str = "event.seq = 1 AND EXISTS (SELECT 1 FROM event AS later
         WHERE later.tenant = event.tenant AND later.run = event.run AND later.seq > 1)";

/// The condition for a session that has not been used since ?1, that no unfinished run needs, and
/// that is not the state of a recorded run, from which forks begin.
pub(super) const UNUSED: &str = "session.used < ?1 AND NOT EXISTS (
         SELECT 1 FROM run WHERE run.tenant = session.tenant AND status <> 'ended'
         AND run.session = session.id)
     AND (session.id NOT LIKE 'run/%' OR NOT EXISTS (
         SELECT 1 FROM run WHERE run.tenant = session.tenant
         AND run.id = SUBSTR(session.id, 5)))
     AND NOT EXISTS (SELECT 1 FROM queue WHERE queue.tenant = session.tenant
         AND (queue.session = session.id OR 'run/' || queue.id = session.id))";

/// The condition for a session that belongs to a single run or program and ends with it. If a
/// process is killed, such a session is left behind.
const OWN: &str = "session.id LIKE 'run/%'";

/// Returns the condition for a session that can be removed: one that has not been used since ?1, or
/// one that belongs to a single run or program and has not been used since ?2.
fn removable() -> String {
    format!("(({UNUSED}) OR ({OWN} AND {}))", UNUSED.replace("?1", "?2"))
}

impl Store {
    /// Sets the retention periods for ended runs and their events.
    #[must_use]
    pub fn keeping(self, retention: Retention) -> Store {
        Store { retention, ..self }
    }

    /// Removes old runs, events and sessions of all tenants, according to the retention periods.
    /// The caller confirms that the clock is right, even if it is far ahead of the last time that
    /// the store has seen.
    ///
    /// # Errors
    /// If the store or the location of its objects cannot be written. The error contains counts of
    /// the data that was removed before the failure.
    pub async fn prune(&self) -> Result<Pruned, PruneError> {
        let clock = Arc::clone(&self.clock);
        let confirmed = self.write(move |transaction| {
            clock.confirm(transaction)?;
            Ok(transaction.now())
        });
        let now = confirmed.await;
        let now = now.map_err(|cause| PruneError { removed: Pruned::default(), cause })?;
        self.prune_at(&self.cutoffs(now)).await
    }

    async fn prune_at(&self, old: &Cutoffs) -> Result<Pruned, PruneError> {
        let mut pruned = Pruned::default();
        match self.prune_into(old, &mut pruned).await {
            Ok(()) => Ok(pruned),
            Err(cause) => Err(PruneError { removed: pruned, cause }),
        }
    }

    async fn prune_into(&self, old: &Cutoffs, pruned: &mut Pruned) -> Result<(), StoreError> {
        while let Some(unused) = old.sessions {
            let count = self.write(move |transaction| prune_sessions(transaction, unused)).await?;
            pruned.sessions += count;
            if count == 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        while let Some(at) = old.conversations {
            if self.write(move |transaction| prune_conversations(transaction, at)).await? == 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        while let Some(at) = old.runs {
            let count =
                self.write(move |transaction| prune_runs(transaction, None, at, BATCH)).await?;
            pruned.runs += count;
            if count == 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        while let Some(at) = old.events {
            let count = self.write(move |transaction| prune_events(transaction, at)).await?;
            pruned.runs_without_events += count;
            if count == 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(old) = old.objects {
            self.remove_unused_objects(old, &mut pruned.objects).await?;
        }
        Ok(())
    }

    /// Returns the times before which data is too old at the database's time `now`.
    fn cutoffs(&self, now: i64) -> Cutoffs {
        Cutoffs {
            sessions: cutoff(now, Some(self.ttl)).zip(cutoff(now, Some(ABANDONED))),
            conversations: cutoff(now, Some(CONVERSATIONS)),
            runs: cutoff(now, self.retention.runs),
            events: cutoff(now, self.retention.events),
            objects: cutoff(now, Some(GRACE)),
        }
    }

    /// Counts the data that [`prune`](Store::prune) would remove. Changes nothing.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn prunable(&self) -> Result<Pruned, StoreError> {
        let now = self.read(|transaction| Ok(transaction.now())).await?;
        let Cutoffs { sessions: unused, runs, events, objects, .. } = self.cutoffs(now);
        let objects = match objects {
            Some(old) => self.unused_objects(old).await?,
            None => 0,
        };
        self.read(move |transaction| {
            let mut count = |query: &str, times: &[i64]| -> Result<u64, Cause> {
                let params: Vec<_> = times.iter().map(super::db::ToValue::to_value).collect();
                Ok(transaction.one(query, &params)?.get::<i64>(0)?.cast_unsigned())
            };
            let mut prunable = Pruned::default();
            if let Some((at, abandoned)) = unused {
                let query = format!("SELECT COUNT(*) FROM session WHERE {}", removable());
                prunable.sessions = count(&query, &[at, abandoned])?;
            }
            if let Some(at) = runs {
                prunable.runs = count(&COUNT_RUNS.replace("ENDED", ENDED), &[at])?;
            }
            if let Some(at) = events {
                // Runs that are themselves removed are not counted a second time.
                let from = runs.unwrap_or(i64::MIN);
                let query = COUNT_EVENTS.replace("ENDED", ENDED).replace("FIRST", FIRST);
                prunable.runs_without_events = count(&query, &[at, from])?;
            }
            Ok(prunable)
        })
        .await
        .map(|prunable| Pruned { objects, ..prunable })
    }

    /// Registers this process as a user of the store, so that the store cannot be copied while it
    /// is in use. Then removes old data like [`prune`](Store::prune), immediately and every 10
    /// minutes, unless the clock is far ahead of the last time that the store has seen. If several
    /// processes share a store, only one does so at a time. Also checks the structure of an SQLite
    /// file once, and writes its log back to the file every 30 seconds. Never returns.
    pub async fn keep_tidy(&self) {
        if let Err(error) = self.leases.join().await {
            tracing::warn!(%error, "failed to record this process in the store");
        }
        let sweep = async {
            loop {
                if let Err(error) = self.sweep().await {
                    tracing::warn!(%error, "failed to remove old runs and sessions");
                }
                tokio::time::sleep(SWEEP).await;
            }
        };
        let write_back = async {
            if let Err(error) = self.check_structure(u64::MAX).await {
                tracing::error!(%error, "the store failed its check");
            }
            loop {
                tokio::time::sleep(WRITE_BACK).await;
                self.write_back().await;
            }
        };
        tokio::join!(sweep, write_back);
    }

    /// Writes the log of an SQLite file back to the file. Logs a warning if the log stays large.
    async fn write_back(&self) {
        match self.db.checkpoint(false).await {
            Ok(bytes) if bytes > LARGE_LOG => tracing::warn!(
                bytes,
                "the log of the store stays large, because another process reads the store for a \
                 long time; end it, for example a `.backup` of sqlite3"
            ),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to write the log of the store back to its file");
            }
        }
    }

    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        let of: TenantStore = self.tenant(&Tenant::default());
        let Some(_lock) = super::lease::acquire(of, LOCK.to_owned()).await? else { return Ok(()) };
        let clock = Arc::clone(&self.clock);
        let now = self.write(move |transaction| {
            Ok(clock.is_trusted(transaction)?.then(|| transaction.now()))
        });
        let Some(now) = now.await? else {
            tracing::warn!(
                "nothing is removed, because the clock is ahead of the last trusted time"
            );
            return Ok(());
        };
        let old = self.cutoffs(now);
        let (pruned, result) = match self.prune_at(&old).await {
            Ok(pruned) => (pruned, Ok(())),
            Err(PruneError { removed, cause }) => (removed, Err(cause)),
        };
        let Pruned { runs, runs_without_events, sessions, objects } = pruned;
        let before = |at: Option<i64>| at.map_or("forever".to_owned(), date);
        tracing::info!(
            runs,
            runs_without_events,
            sessions,
            objects,
            runs_kept_since = before(old.runs),
            sessions_kept_since = before(old.sessions.map(|(unused, _)| unused)),
            "removed what is not kept any longer"
        );
        result
    }
}

/// The times before which data is too old, in milliseconds since 1970. `None` means that data is
/// kept forever.
struct Cutoffs {
    /// The times of the last use of sessions, and of those that belong to a single run or program.
    sessions: Option<(i64, i64)>,
    conversations: Option<i64>,
    runs: Option<i64>,
    events: Option<i64>,
    /// The time of the last use of an unreferenced object.
    objects: Option<i64>,
}

/// The query that counts the runs in trees that ended before ?1.
const COUNT_RUNS: &str = "SELECT COUNT(*) + CAST(COALESCE(SUM((SELECT COUNT(*) FROM run AS child
     WHERE child.tenant = run.tenant AND child.root = run.id)), 0) AS BIGINT) FROM run WHERE ENDED";

/// The query that counts the runs with more than one event, in trees that ended before ?1 but not
/// before ?2.
const COUNT_EVENTS: &str = "SELECT COUNT(*) FROM run
     JOIN event ON event.tenant = run.tenant AND event.root = run.id
     WHERE ENDED AND run.used >= ?2 AND FIRST";

/// Returns the time before which data is too old at the time `now`, in milliseconds since 1970, or
/// `None` if data is kept forever.
pub(super) fn cutoff(now: i64, kept: Option<Duration>) -> Option<i64> {
    let kept = i64::try_from(kept?.as_millis()).unwrap_or(i64::MAX);
    Some(now.saturating_sub(kept))
}

fn prune_sessions(
    transaction: &mut Transaction<'_>,
    (at, abandoned): (i64, i64),
) -> Result<u64, Cause> {
    let delete = format!(
        "DELETE FROM session WHERE (tenant, id) IN (
             SELECT tenant, id FROM session WHERE {} LIMIT {BATCH})",
        removable()
    );
    Ok(transaction.execute(&delete, params![at, abandoned])?)
}

/// Removes conversations that were last used before `at` and whose sessions were removed.
fn prune_conversations(transaction: &mut Transaction<'_>, at: i64) -> Result<u64, Cause> {
    let delete = format!(
        "DELETE FROM conversation WHERE (tenant, digest) IN (
             SELECT tenant, digest FROM conversation WHERE used < ?1 AND NOT EXISTS (
                 SELECT 1 FROM session WHERE session.tenant = conversation.tenant
                 AND session.id = conversation.session)
             LIMIT {BATCH})"
    );
    Ok(transaction.execute(&delete, params![at])?)
}

/// Returns a query for at most `most` root runs of trees that ended before `at`, of one tenant or of
/// all tenants, and the query's parameters. Each new run makes the query for its tenant, which
/// therefore uses an index.
fn ended_trees(tenant: Option<&str>, at: i64, most: u64) -> (String, Vec<Value>) {
    let of_tenant = if tenant.is_some() { "AND run.tenant = ?2" } else { "" };
    let query = format!("SELECT tenant, id FROM run WHERE {ENDED} {of_tenant} LIMIT {most}");
    (query, [at.to_value()].into_iter().chain(tenant.map(|tenant| tenant.to_value())).collect())
}

/// Removes at most `most` runs whose trees ended before `at`, for one tenant or for all tenants.
/// Returns the number of removed runs.
pub(super) fn prune_runs(
    transaction: &mut Transaction<'_>,
    tenant: Option<&str>,
    at: i64,
    most: u64,
) -> Result<u64, Cause> {
    let began = Instant::now();
    let (tops, params) = ended_trees(tenant, at, most);
    let tops = transaction
        .query(&tops, &params, |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)))?;
    let mut removed = 0;
    for (tenant, top) in tops {
        if removed >= most || (removed > 0 && began.elapsed() > SLICE) {
            break;
        }
        removed += remove_tree(transaction, (&tenant, &top), at, most - removed)?;
    }
    Ok(removed)
}

/// Removes at most `most` runs of a tree that ended before `at`. The root run is removed last.
/// Returns the number of removed runs.
pub(super) fn remove_tree(
    transaction: &mut Transaction<'_>,
    (tenant, top): (&str, &str),
    at: i64,
    most: u64,
) -> Result<u64, Cause> {
    // The row of the root run is locked, so that no run of the tree records anything in the
    // meantime.
    let lock = format!("UPDATE run SET places = places WHERE tenant = ?2 AND id = ?3 AND {ENDED}");
    if transaction.execute(&lock, params![at, tenant, top])? == 0 {
        return Ok(0);
    }
    let children = "SELECT id FROM run WHERE tenant = ?1 AND root = ?2 LIMIT ?3";
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let mut runs =
        transaction.query(children, params![tenant, top, limit], |row| row.get::<String>(0))?;
    if (runs.len() as u64) < most {
        runs.push(top.to_owned());
    }
    for run in &runs {
        let delete = "DELETE FROM run WHERE tenant = ?1 AND id = ?2";
        transaction.execute(delete, params![tenant, run])?;
        let delete = "DELETE FROM session WHERE tenant = ?1 AND id = ?2";
        transaction.execute(delete, params![tenant, own_session(run)])?;
    }
    Ok(runs.len() as u64)
}

/// Removes the events of runs in trees that ended before `at`, except each run's last event, which
/// reports how the run ended. Returns the number of runs whose events were removed.
fn prune_events(transaction: &mut Transaction<'_>, at: i64) -> Result<u64, Cause> {
    let began = Instant::now();
    let runs = format!(
        "SELECT event.tenant, event.run FROM run
         JOIN event ON event.tenant = run.tenant AND event.root = run.id
         WHERE {ENDED} AND {FIRST} LIMIT {BATCH}"
    );
    let runs = transaction
        .query(&runs, params![at], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)))?;
    let mut done = 0;
    for (tenant, run) in runs {
        if done > 0 && began.elapsed() > SLICE {
            break;
        }
        let delete = "DELETE FROM event WHERE tenant = ?1 AND run = ?2 AND seq < (
                          SELECT MAX(seq) FROM event WHERE tenant = ?1 AND run = ?2)";
        transaction.execute(delete, params![tenant, run])?;
        done += 1;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::super::db::Access;
    use super::*;

    /// Adds `runs` runs to a store. All of them ended at time 0.
    async fn fill(store: &Store, runs: i64) {
        let fill = move |transaction: &mut Transaction<'_>| {
            for number in 0..runs {
                let root = (number % 3 != 0).then(|| format!("r{}", number - number % 3));
                transaction.execute(
                    "INSERT INTO run (tenant, id, status, created, used, root)
                     VALUES ('t', ?1, 'ended', 0, 0, ?2)",
                    params![format!("r{number}"), root],
                )?;
            }
            Ok(())
        };
        store.db.run(Access::Write, fill).await.unwrap();
    }

    async fn removes_left_over_sessions(store: Store) {
        let fill = |transaction: &mut Transaction<'_>| {
            let (recent, old) = (transaction.now(), transaction.now() - 2 * 3_600_000);
            for (id, used) in [
                ("run/gone", old),
                ("run/recent", recent),
                ("run/open", old),
                ("run/ended", old),
                ("run/queued", old),
                ("named", old),
            ] {
                transaction.execute(
                    "INSERT INTO session (tenant, id, created, used) VALUES ('t', ?1, ?2, ?2)",
                    params![id, used],
                )?;
            }
            for (id, status) in [("open", "open"), ("ended", "ended")] {
                transaction.execute(
                    "INSERT INTO run (tenant, id, status, created, used)
                     VALUES ('t', ?1, ?2, ?3, ?3)",
                    params![id, status, recent],
                )?;
            }
            transaction.execute(
                "INSERT INTO queue (tenant, id, created, message, origin)
                 VALUES ('t', 'queued', ?1, '', '{}')",
                params![recent],
            )?;
            Ok(())
        };
        store.db.run(Access::Write, fill).await.unwrap();
        let expected = Pruned { sessions: 1, ..Pruned::default() };
        assert_eq!(store.prunable().await.unwrap(), expected);
        assert_eq!(store.prune().await.unwrap(), expected);
        let left = |transaction: &mut Transaction<'_>| {
            let query = "SELECT id FROM session WHERE tenant = ?1 ORDER BY id";
            transaction.query(query, params!["t"], |row| row.get::<String>(0))
        };
        let left = store.db.run(Access::Read, left).await.unwrap();
        assert_eq!(left, ["named", "run/ended", "run/open", "run/queued", "run/recent"]);
    }

    #[tokio::test]
    async fn the_session_of_a_run_that_does_not_exist_is_removed() {
        let day = Duration::from_secs(24 * 3_600);
        removes_left_over_sessions(Store::in_memory(day).unwrap()).await;
        if let Some(url) = wattle_cases::postgres::url() {
            removes_left_over_sessions(Store::connect(&url, day).unwrap()).await;
        }
    }

    async fn is_bounded(store: Store) {
        fill(&store, 450).await;
        let prune = |transaction: &mut Transaction<'_>| prune_runs(transaction, None, 1, BATCH);
        let (began, first) = (Instant::now(), store.db.run(Access::Write, prune).await.unwrap());
        assert!((1..=BATCH).contains(&first), "{first} runs in one transaction");
        assert!(began.elapsed() < Duration::from_secs(5));
        let before = store.prunable().await.unwrap();
        assert_eq!(before, Pruned { runs: 450 - first, ..Pruned::default() });
        assert_eq!(store.prunable().await.unwrap(), before, "counting changes nothing");
        assert_eq!(store.prune().await.unwrap(), before);
        assert_eq!(store.prunable().await.unwrap(), Pruned::default());
    }

    /// Each run and each message of a session makes such a query first. Without an index, their times
    /// would grow with the number of runs and sessions.
    #[tokio::test]
    async fn what_is_too_old_is_found_with_an_index() {
        let store = Store::in_memory(Duration::from_secs(3_600)).unwrap();
        let plan = async |query: String, params: Vec<Value>| -> Vec<String> {
            let explain = move |transaction: &mut Transaction<'_>| {
                transaction.query(&format!("EXPLAIN QUERY PLAN {query}"), &params, |row| row.get(3))
            };
            store.db.run(Access::Read, explain).await.unwrap()
        };
        let (runs, params) = ended_trees(Some("t"), 1, 8);
        let runs = plan(runs, params).await;
        assert!(runs[0].starts_with("SEARCH run USING INDEX run_of_"), "{runs:?}");
        let sessions = format!("DELETE FROM session WHERE tenant = ?2 AND {UNUSED}");
        let sessions = plan(sessions, params![1_i64, "t"].to_vec()).await;
        assert!(
            sessions[0].starts_with("SEARCH session USING INDEX session_of_use"),
            "{sessions:?}"
        );
    }

    #[tokio::test]
    async fn a_transaction_removes_a_bounded_number_of_runs() {
        let hour = Duration::from_secs(3_600);
        is_bounded(Store::in_memory(hour).unwrap()).await;
        if let Some(url) = wattle_cases::postgres::url() {
            is_bounded(Store::connect(&url, hour).unwrap()).await;
        }
    }
}
