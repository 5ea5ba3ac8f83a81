//! Information that processes exchange through a shared store: the runs that no process drives, and
//! the runs to cancel.

use std::sync::Arc;

use super::db::{Row, ToValue as _, Value, params};
use super::rows::{QUEUED, queued_run};
use super::seal::{open_text, seal_text};
use super::{Store, TenantStore, Topic};
use crate::error::{Cause, StoreError};
use crate::journal::RunRequest;
use crate::tenant::Tenant;

/// A run that has not ended and that no process drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeRun {
    /// The tenant that owns the run.
    pub tenant: Tenant,
    /// The run's id.
    pub id: String,
}

/// A run whose cancellation has been requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedCancel {
    /// The tenant that owns the run.
    pub tenant: Tenant,
    /// The run's id.
    pub id: String,
    /// If true, a process holds the lock of the run.
    pub is_held: bool,
}

/// The criteria by which a process selects runs from the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLook<'a> {
    /// Maximum number of runs to return.
    pub limit: usize,
    /// Maximum number of runs per tenant that are driven at the same time, counted across all
    /// processes.
    pub per_tenant: usize,
    /// The only tenant whose runs are returned, or `None` for all tenants.
    pub only: Option<&'a Tenant>,
    /// The tenants whose runs are not returned.
    pub without: &'a [Tenant],
    /// The names of the requirements that this process meets.
    pub offers: &'a [String],
}

/// Counts of a tenant's queued and driven runs.
#[derive(Clone, Copy, Debug)]
pub struct TenantLoad {
    /// Number of queued runs, including runs that a process has taken but not started.
    pub queued: i64,
    /// Number of runs that processes drive or have taken.
    pub driven: i64,
}

/// The state of the queue shared by all tenants, and of the processes that serve it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Number of runs that are waiting for a process.
    pub waiting: u64,
    /// Time since the oldest waiting run was requested, in milliseconds, or 0 if no run is waiting.
    pub oldest_ms: u64,
    /// Number of runs that are driven by any process. This includes runs that a process has taken
    /// but that still wait for their session.
    pub driven: u64,
    /// Number of live processes that share the store.
    pub processes: u64,
}

impl Store {
    /// Returns the queued and open root runs that no process drives and that this process can
    /// drive.
    ///
    /// Tenants take turns: a tenant with fewer driven runs comes first. A tenant's open runs come
    /// before its queued ones, which are sorted by priority and then by age. Only the oldest run of
    /// a session is returned, and only if no process is handling another message of the session.
    ///
    /// With SQLite, the locks of an ended process count as free immediately. With PostgreSQL, they
    /// count as free once the process's lease has expired.
    pub async fn free_runs(&self, look: QueueLook<'_>) -> Result<Vec<FreeRun>, StoreError> {
        let QueueLook { limit, per_tenant, only, without, offers } = look;
        if offers.is_empty() {
            return Ok(Vec::new());
        }
        self.leases.release_dead().await.map_err(|cause| self.failed("write", cause))?;
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let (limit, per_tenant) = (number(limit), number(per_tenant));
        let offers: Vec<Value> = offers.iter().map(|offer| offer.to_value()).collect();
        let places = |first: usize, number: usize| {
            (first..first + number).map(|at| format!("?{at}")).collect::<Vec<_>>().join(", ")
        };
        let name = |tenant: &Tenant| tenant.as_str().to_value();
        let tenants: Vec<Value> = only.into_iter().chain(without).map(name).collect();
        let first = 4 + offers.len();
        let of_tenants = match (only, without.len()) {
            (None, 0) => String::new(),
            (None, number) => format!("AND tenant NOT IN ({})", places(first, number)),
            (Some(_), 0) => format!("AND tenant = ?{first}"),
            (Some(_), number) => {
                format!("AND tenant = ?{first} AND tenant NOT IN ({})", places(first + 1, number))
            }
        };
        let query = FREE
            .replace("{offers}", &places(4, offers.len()))
            .replace("{tenants}", &of_tenants)
            .replace("{pending}", PENDING);
        let found = self.read(move |transaction| {
            let now = transaction.now();
            let mut values = params![now, limit, per_tenant].to_vec();
            values.extend(offers.iter().chain(&tenants).cloned());
            let run = |row: &Row| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
            transaction.query(&query, &values, run)
        });
        let known = |(tenant, id): (String, String)| {
            Some(FreeRun { tenant: Tenant::new(&tenant).ok()?, id })
        };
        Ok(found.await?.into_iter().filter_map(known).collect())
    }

    /// Returns the runs of all tenants that have not ended although the processes to which their
    /// clients were connected have ended.
    pub async fn runs_without_client(&self) -> Result<Vec<FreeRun>, StoreError> {
        let leases = Arc::clone(&self.leases);
        let found = self.read(move |transaction| {
            let now = transaction.now();
            let query = format!("SELECT tenant, id, client, {EXPIRES} FROM {CLIENTS}");
            let mut found = transaction.query(&query, params![], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<String>(2)?, row.get::<Option<i64>>(3)?))
            })?;
            found.retain(|(_, _, client, expires)| !leases.serves(client, *expires, now));
            Ok(found)
        });
        let known = |(tenant, id, ..): (String, String, String, Option<i64>)| {
            Some(FreeRun { tenant: Tenant::new(&tenant).ok()?, id })
        };
        Ok(found.await?.into_iter().filter_map(known).collect())
    }

    /// Returns true if any run is queued.
    pub async fn has_queue(&self) -> Result<bool, StoreError> {
        self.read(|transaction| {
            Ok(transaction.first("SELECT 1 FROM queue LIMIT 1", params![])?.is_some())
        })
        .await
    }

    /// Returns the state of the queue.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn queue_state(&self) -> Result<QueueState, StoreError> {
        let query = STATE.replace("{pending}", PENDING);
        self.read(move |transaction| {
            let now = transaction.now();
            let row = transaction.one(&query, params![now])?;
            let oldest: Option<i64> = row.get(1)?;
            let count = |number: i64| number.unsigned_abs();
            Ok(QueueState {
                waiting: count(row.get(0)?),
                oldest_ms: count(oldest.map_or(0, |oldest| now.saturating_sub(oldest).max(0))),
                driven: count(row.get(2)?),
                processes: count(row.get(3)?),
            })
        })
        .await
    }

    /// Returns the runs whose cancellation has been requested.
    pub async fn cancellations(&self) -> Result<Vec<RequestedCancel>, StoreError> {
        let found = self.read(|transaction| {
            let now = transaction.now();
            let query = "SELECT tenant, run, (
                             SELECT COUNT(*) FROM hold JOIN replica ON replica.id = hold.holder
                             WHERE replica.expires > ?1 AND hold.tenant = cancellation.tenant
                             AND hold.name = 'run:' || cancellation.run)
                         FROM cancellation";
            transaction.query(query, params![now], |row| {
                Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get::<i64>(2)? > 0))
            })
        });
        let known = |(tenant, id, is_held): (String, String, bool)| {
            Some(RequestedCancel { tenant: Tenant::new(&tenant).ok()?, id, is_held })
        };
        Ok(found.await?.into_iter().filter_map(known).collect())
    }
}

/// A subquery for the runs that must end without their clients and that have not ended.
const CLIENTS: &str = "(
    SELECT tenant, id, client FROM run WHERE client IS NOT NULL AND status <> 'ended'
    UNION ALL SELECT tenant, id, client FROM queue WHERE client IS NOT NULL) AS waiting";

/// A subquery for the time when the lease of a client's process expires.
const EXPIRES: &str = "(SELECT expires FROM replica WHERE replica.id = client)";

/// The subqueries for the root runs that have not ended. `driven` is true if a process drives the
/// run, and `busy` is true if a process handles a message of the run's session. ?1 is the current
/// time.
const PENDING: &str = "
    pending AS (
        SELECT tenant, id, session, created, priority, position, needs, 1 AS waits FROM queue
        UNION ALL
        SELECT tenant, id, session, created, 0, 0, needs, 0 FROM run
        WHERE status = 'open' AND root IS NULL),
    live AS (
        SELECT hold.tenant, hold.name FROM hold JOIN replica ON replica.id = hold.holder
        WHERE replica.expires > ?1),
    marked AS (
        SELECT tenant, id, session, created, priority, position, needs, waits,
            EXISTS (SELECT 1 FROM live WHERE live.tenant = pending.tenant
                    AND live.name = 'run:' || pending.id) AS driven,
            EXISTS (SELECT 1 FROM live WHERE live.tenant = pending.tenant
                    AND live.name = 'session:' || pending.session) AS busy
        FROM pending)";

/// The query for the runs that this process can take, in the order in which it should take them. ?2
/// is the maximum number of runs, and ?3 is the maximum number of driven runs per tenant.
const FREE: &str = "
    WITH {pending},
    ordered AS (
        SELECT tenant, id, created, priority, position, waits, driven,
            NOT driven AND NOT busy AND needs IN ({offers}) AND ROW_NUMBER() OVER (
                PARTITION BY tenant, session, CASE WHEN session IS NULL THEN id END
                ORDER BY waits, position, created, id) = 1 AS free
        FROM marked),
    ranked AS (
        SELECT tenant, id, created, free,
            COUNT(CASE WHEN driven THEN 1 END) OVER (PARTITION BY tenant) + ROW_NUMBER() OVER (
                PARTITION BY tenant, free
                ORDER BY waits, priority DESC, position, created, id) AS place
        FROM ordered)
    SELECT tenant, id FROM ranked WHERE free AND place <= ?3 {tenants} ORDER BY place, created, id LIMIT ?2";

/// The query that counts a tenant's queued runs and its driven runs. ?2 is the tenant.
const LOAD: &str = "
    WITH {pending}
    SELECT COUNT(CASE WHEN waits = 1 THEN 1 END), COUNT(CASE WHEN driven THEN 1 END)
    FROM marked WHERE tenant = ?2";

/// The query that counts the waiting runs, the driven runs and the live processes, and that selects
/// the creation time of the oldest waiting run.
const STATE: &str = "
    WITH {pending}
    SELECT COUNT(CASE WHEN NOT driven THEN 1 END), MIN(CASE WHEN NOT driven THEN created END),
        COUNT(CASE WHEN driven THEN 1 END),
        (SELECT COUNT(*) FROM replica WHERE expires > ?1)
    FROM marked";

impl TenantStore {
    /// Returns a run from the queue, or `None` if the run is not queued.
    pub async fn queued_run(&self, run: &str) -> Result<Option<RunRequest>, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, seal)| {
            let query = format!("SELECT {QUEUED} FROM queue WHERE tenant = ?1 AND id = ?2");
            let row = transaction.first(&query, params![tenant, run])?;
            row.map(|row| queued_run(seal, &row)).transpose()
        })
        .await
    }

    /// Returns counts of the tenant's queued and driven runs.
    pub async fn load(&self) -> Result<TenantLoad, StoreError> {
        let query = LOAD.replace("{pending}", PENDING);
        self.read(move |transaction, (tenant, _)| {
            let now = transaction.now();
            let row = transaction.one(&query, params![now, tenant])?;
            Ok(TenantLoad { queued: row.get(0)?, driven: row.get(1)? })
        })
        .await
    }

    /// Returns the name of the requirement that a process must meet to drive a run, or `None` if
    /// there is no such run.
    pub async fn needs_of(&self, run: &str) -> Result<Option<String>, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT needs FROM run WHERE tenant = ?1 AND id = ?2
                         UNION ALL SELECT needs FROM queue WHERE tenant = ?1 AND id = ?2";
            let row = transaction.first(query, params![tenant, run])?;
            row.map(|row| row.get(0)).transpose()
        })
        .await
    }

    /// Returns true if a run must end without its client, and the process to which its client was
    /// connected has ended.
    pub async fn has_lost_client(&self, run: &str) -> Result<bool, StoreError> {
        let (run, leases) = (run.to_owned(), Arc::clone(&self.store.leases));
        self.read(move |transaction, (tenant, _)| {
            let now = transaction.now();
            let query =
                format!("SELECT client, {EXPIRES} FROM {CLIENTS} WHERE tenant = ?1 AND id = ?2");
            let found = transaction.first(&query, params![tenant, run])?;
            let is_lost = |row: Row| -> Result<bool, Cause> {
                Ok(!leases.serves(&row.get::<String>(0)?, row.get(1)?, now))
            };
            found.map_or(Ok(false), is_lost)
        })
        .await
    }

    /// Lets a run end without its client, although the run was started for one.
    pub async fn leave_client(&self, run: &str) -> Result<(), StoreError> {
        let run = run.to_owned();
        self.write(move |transaction, (tenant, _)| {
            let update = "UPDATE run SET client = NULL WHERE tenant = ?1 AND id = ?2";
            transaction.execute(update, params![tenant, run])?;
            Ok(())
        })
        .await
    }

    /// Returns true if a run of the session is queued.
    pub async fn has_queued(&self, session: &str) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT 1 FROM queue WHERE tenant = ?1 AND session = ?2 LIMIT 1";
            Ok(transaction.first(query, params![tenant, session])?.is_some())
        })
        .await
    }

    /// Asks the process that drives a run to cancel that run. If a cancellation has already been
    /// requested, the first reason is kept.
    pub async fn request_cancel(&self, run: &str, reason: &str) -> Result<(), StoreError> {
        let (run, reason) = (run.to_owned(), reason.to_owned());
        self.write(move |transaction, (tenant, seal)| {
            transaction.execute(
                "INSERT INTO cancellation (tenant, run, reason) VALUES (?1, ?2, ?3)
                 ON CONFLICT (tenant, run) DO NOTHING",
                params![tenant, run, seal_text(seal, &reason)?],
            )?;
            Ok(())
        })
        .await?;
        self.store.wake(Topic::Cancellations);
        Ok(())
    }

    /// Removes the request to cancel a run.
    pub async fn forget_cancel(&self, run: &str) -> Result<(), StoreError> {
        let run = run.to_owned();
        self.write(move |transaction, (tenant, _)| {
            let delete = "DELETE FROM cancellation WHERE tenant = ?1 AND run = ?2";
            transaction.execute(delete, params![tenant, run])?;
            Ok(())
        })
        .await
    }

    /// Marks a run that was parked for approvals as open, so that a process drives it. Does nothing
    /// if the run is not parked, or if it waits for an operator.
    pub async fn reopen(&self, run: &str) -> Result<(), StoreError> {
        let run = run.to_owned();
        self.write(move |transaction, (tenant, _)| {
            transaction.execute(
                "UPDATE run SET status = 'open', used = ?3
                 WHERE tenant = ?1 AND id = ?2 AND status = 'parked' AND reason IS NULL",
                params![tenant, run, transaction.now()],
            )?;
            Ok(())
        })
        .await
    }

    /// Returns the reason given in the request to cancel a run, or `None` if there is no such
    /// request.
    pub async fn cancel_reason(&self, run: &str) -> Result<Option<String>, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, seal)| {
            let query = "SELECT reason FROM cancellation WHERE tenant = ?1 AND run = ?2";
            let reason = transaction.first(query, params![tenant, run])?;
            reason.map(|row| open_text(seal, row.get(0)?)).transpose()
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::journal::{self, Journal as _, Priority, RunFilter, RunRequest};
    use crate::ledger::Keys;
    use wattle_capability::secrets::{ApiKey, Mask};

    const LOOK: QueueLook<'_> =
        QueueLook { limit: 100, per_tenant: usize::MAX, only: None, without: &[], offers: &[] };

    /// Returns an empty store for each installed engine.
    fn stores() -> Vec<Store> {
        let hour = Duration::from_secs(3_600);
        let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, hour).unwrap());
        [Store::in_memory(hour).unwrap()].into_iter().chain(postgres).collect()
    }

    fn tenant(store: &Store, name: &str) -> TenantStore {
        store.tenant(&Tenant::new(name).unwrap())
    }

    fn queued(id: &str, created: u64) -> RunRequest {
        RunRequest { created, id: id.to_owned(), ..RunRequest::new("go") }
    }

    async fn free(store: &Store, look: QueueLook<'_>) -> Vec<String> {
        let offers = [String::new()];
        let look = QueueLook { offers: &offers, ..look };
        store.free_runs(look).await.unwrap().into_iter().map(|run| run.id).collect()
    }

    #[tokio::test]
    async fn tenants_take_turns() {
        for store in stores() {
            let (alice, bob) = (tenant(&store, "alice"), tenant(&store, "bob"));
            for created in 1..=4 {
                alice.enqueue(queued(&format!("a{created}"), created)).await.unwrap();
            }
            bob.enqueue(queued("b5", 5)).await.unwrap();
            bob.enqueue(queued("b6", 6)).await.unwrap();
            assert_eq!(free(&store, LOOK).await, ["a1", "b5", "a2", "b6", "a3", "a4"]);
            // Alice has two runs in progress, so both of Bob's come first.
            let _one = journal::lock_run(&alice, "a1").await.unwrap().unwrap();
            let _two = journal::lock_run(&alice, "a2").await.unwrap().unwrap();
            assert_eq!(free(&store, LOOK).await, ["b5", "b6", "a3", "a4"]);
            assert_eq!(free(&store, QueueLook { limit: 1, ..LOOK }).await, ["b5"]);
            let limited = QueueLook { per_tenant: 3, ..LOOK };
            assert_eq!(free(&store, limited).await, ["b5", "b6", "a3"]);
            let (one, all) = (alice.tenant().clone(), [alice.tenant().clone()]);
            assert_eq!(free(&store, QueueLook { only: Some(&one), ..LOOK }).await, ["a3", "a4"]);
            assert_eq!(free(&store, QueueLook { without: &all, ..LOOK }).await, ["b5", "b6"]);
            let none = QueueLook { only: Some(&one), without: &all, ..LOOK };
            assert_eq!(free(&store, none).await, [""; 0]);
            let state = store.queue_state().await.unwrap();
            assert_eq!((state.waiting, state.driven, state.processes), (4, 2, 1));
            assert!(state.oldest_ms > 0);
            let load = alice.load().await.unwrap();
            assert_eq!((load.queued, load.driven), (4, 2));
        }
    }

    #[tokio::test]
    async fn the_reason_of_a_cancellation_is_read_as_it_was_requested() {
        let folder = tempfile::tempdir().unwrap();
        let secret = "sk-0123456789";
        let mask = Mask::default();
        mask.add_key(&ApiKey::new(secret).unwrap());
        for store in stores() {
            let of = tenant(&store, "a").sealing(mask.clone(), Keys::new(folder.path()));
            of.enqueue(queued("r", 1)).await.unwrap();
            assert_eq!(of.cancel_reason("r").await.unwrap(), None);
            let reason = format!("it may leak {secret}");
            of.request_cancel("r", &reason).await.unwrap();
            of.request_cancel("r", "another reason").await.unwrap();
            assert_eq!(of.cancel_reason("r").await.unwrap(), Some(reason));
            assert_eq!(tenant(&store, "b").cancel_reason("r").await.unwrap(), None);
            let requested = |is_held| {
                [RequestedCancel { tenant: of.tenant().clone(), id: "r".to_owned(), is_held }]
            };
            assert_eq!(store.cancellations().await.unwrap(), requested(false));
            let lock = journal::lock_run(&of, "r").await.unwrap().unwrap();
            assert_eq!(store.cancellations().await.unwrap(), requested(true));
            drop(lock);
            of.forget_cancel("r").await.unwrap();
            assert_eq!(store.cancellations().await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn pages_of_the_queue_contain_each_run_once() {
        for store in stores() {
            let alice = tenant(&store, "alice");
            for created in 1..=5 {
                alice.enqueue(queued(&format!("a{created}"), created)).await.unwrap();
            }
            let page = async |filter: RunFilter| -> Option<Vec<String>> {
                let runs = alice.queue_page(&filter).await.unwrap()?;
                Some(runs.into_iter().map(|run| run.id).collect())
            };
            let after = |before: &str| RunFilter {
                before: Some(before.to_owned()),
                limit: Some(2),
                ..RunFilter::default()
            };
            assert_eq!(page(RunFilter { before: None, ..after("") }).await.unwrap(), ["a5", "a4"]);
            assert_eq!(page(after("a4")).await.unwrap(), ["a3", "a2"]);
            assert_eq!(page(after("a2")).await.unwrap(), ["a1"]);
            assert_eq!(page(after("a1")).await.unwrap(), [""; 0]);
            assert_eq!(page(after("unknown")).await, None);
            let small = RunFilter { bytes: Some(1), ..RunFilter::default() };
            assert_eq!(page(small).await.unwrap(), ["a5"], "the first run is always returned");
            let new = RunFilter { changed_since: Some(4), ..RunFilter::default() };
            assert_eq!(page(new).await.unwrap(), ["a5", "a4"]);
            let other = RunFilter { session: Some("s".to_owned()), ..RunFilter::default() };
            assert_eq!(page(other).await.unwrap(), [""; 0]);
        }
    }

    #[tokio::test]
    async fn a_higher_priority_comes_first_within_a_tenant_only() {
        for store in stores() {
            let (alice, bob) = (tenant(&store, "alice"), tenant(&store, "bob"));
            let of = |id: &str, created, priority| RunRequest { priority, ..queued(id, created) };
            alice.enqueue(of("low", 1, Priority::Low)).await.unwrap();
            alice.enqueue(of("normal", 2, Priority::Normal)).await.unwrap();
            alice.enqueue(of("high", 3, Priority::High)).await.unwrap();
            bob.enqueue(of("bobs", 2, Priority::Low)).await.unwrap();
            assert_eq!(free(&store, LOOK).await, ["bobs", "high", "normal", "low"]);
        }
    }

    #[tokio::test]
    async fn the_runs_of_a_session_come_one_after_another() {
        for store in stores() {
            let alice = tenant(&store, "alice");
            let of = |id: &str, created, priority| RunRequest {
                session: Some("s".to_owned()),
                priority,
                ..queued(id, created)
            };
            alice.enqueue(of("first", 1, Priority::Low)).await.unwrap();
            alice.enqueue(of("second", 2, Priority::High)).await.unwrap();
            alice.enqueue(queued("other", 3)).await.unwrap();
            assert_eq!(free(&store, LOOK).await, ["other", "first"]);
            let lock = alice.lock("session:s").await.unwrap().unwrap();
            assert_eq!(free(&store, LOOK).await, ["other"]);
            drop(lock);
            assert!(alice.has_queued("s").await.unwrap());
            assert!(!alice.has_queued("t").await.unwrap());
            assert!(!tenant(&store, "bob").has_queued("s").await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_process_takes_only_runs_whose_needs_it_has() {
        for store in stores() {
            let alice = tenant(&store, "alice");
            alice.enqueue(RunRequest { needs: "exec".into(), ..queued("r", 1) }).await.unwrap();
            assert_eq!(free(&store, LOOK).await, Vec::<String>::new());
            let offers = ["serve".to_owned(), "exec".to_owned()];
            let found = store.free_runs(QueueLook { offers: &offers, ..LOOK }).await.unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(alice.needs_of("r").await.unwrap().as_deref(), Some("exec"));
            assert!(store.free_runs(LOOK).await.unwrap().is_empty());
        }
    }
}
