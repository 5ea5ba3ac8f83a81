//! Processes that ended without releasing their locks, and the runs that may have ended them.
//!
//! Each attempt to drive a run is counted before it begins ([`Journal::attempt`]), so that a run that
//! ends its process is not tried for ever. Most processes end for another reason: the machine loses
//! power, a person stops them, or a different run exhausts the memory. The locks of an ended process
//! name all runs that it drove, so the process that finds them decides whether the last attempt
//! counts:
//!
//! | the ended process drove | the attempt counts |
//! |---|---|
//! | one run (with its child runs) | yes |
//! | several runs | for none of them; they are *suspected* |
//! | several runs, one of them isolated | for that one |
//! | any runs, and the machine was restarted (known with SQLite) | for none of them |
//!
//! A run that is suspected repeatedly is driven in isolation: its process drives no other run until
//! the run makes progress. Only then can it be told apart from the others.
//!
//! The column `suspected` has the number of ends of processes for which the run is suspected since its
//! last turn. The number is negative while the run is isolated.
//!
//! [`Journal::attempt`]: crate::journal::Journal::attempt

use std::collections::BTreeMap;

use super::db::{Transaction, params};
use super::process::Holder;
use super::{Store, TenantStore};
use crate::error::{Cause, StoreError};

/// A tree of runs: its tenant, and its root run.
type Tree = (String, String);

/// A run that an ended process drove.
struct Driven {
    tenant: String,
    id: String,
    is_isolated: bool,
}

/// Decides whether the attempts of the runs that an ended process drove count. Does nothing if that
/// was decided before. The caller must have found that `holder` is not alive.
pub(super) fn judge(
    transaction: &mut Transaction<'_>,
    holder: &str,
    by_system: bool,
) -> Result<(), Cause> {
    let (process, now) = (Holder::of(holder), transaction.now());
    let mut trees: BTreeMap<Tree, Vec<Driven>> = BTreeMap::new();
    let mut is_alive = false;
    for (holder, expires) in opened_by(transaction, &process)? {
        if !by_system && expires > now {
            is_alive = true;
            continue;
        }
        // A negative time marks a holder about which this was decided. If its process is alive after
        // all, the next heartbeat renews the time.
        let decide = "UPDATE replica SET expires = -expires WHERE id = ?1 AND expires > 0";
        if transaction.execute(decide, params![holder])? > 0 {
            driven_by(transaction, &holder, &mut trees)?;
        }
    }
    let is_restarted = is_alive || by_system && process.is_of_another_boot(&Holder::me());
    let isolated = trees.iter().find(|(_, runs)| runs.iter().any(|run| run.is_isolated));
    let guilty = match (isolated, trees.first_key_value()) {
        _ if is_restarted => None,
        (Some((tree, _)), _) => Some(tree.clone()),
        (None, Some((tree, _))) if trees.len() == 1 => Some(tree.clone()),
        _ => None,
    };
    let suspects = i64::from(guilty.is_none() && !is_restarted);
    for (tree, runs) in &trees {
        let is_guilty = guilty.as_ref() == Some(tree);
        for Driven { tenant, id, .. } in runs {
            let (counts, suspected) = if is_guilty { (0, 0) } else { (1, suspects) };
            transaction.execute(
                "UPDATE run SET suspected = ABS(suspected) + ?4,
                 attempts = CASE WHEN attempts > ?3 THEN attempts - ?3 ELSE 0 END
                 WHERE tenant = ?1 AND id = ?2 AND status = 'open'",
                params![tenant, id, counts, suspected],
            )?;
        }
    }
    Ok(())
}

/// Returns the holders that belong to a process, and the times when their leases expire. A process
/// may have opened the store several times.
fn opened_by(
    transaction: &mut Transaction<'_>,
    process: &Holder,
) -> Result<Vec<(String, i64)>, Cause> {
    let all = transaction.query("SELECT id, expires FROM replica", &[], |row| {
        Ok((row.get::<String>(0)?, row.get::<i64>(1)?))
    })?;
    Ok(all.into_iter().filter(|(id, _)| Holder::of(id) == *process).collect())
}

/// Adds the runs whose locks `holder` holds to `trees`. A queued run that has not begun is a tree of
/// its own.
fn driven_by(
    transaction: &mut Transaction<'_>,
    holder: &str,
    trees: &mut BTreeMap<Tree, Vec<Driven>>,
) -> Result<(), Cause> {
    let query =
        "SELECT hold.tenant, SUBSTR(hold.name, 5), COALESCE(run.root, SUBSTR(hold.name, 5)),
                     COALESCE(run.suspected, 0)
                 FROM hold LEFT JOIN run
                 ON run.tenant = hold.tenant AND run.id = SUBSTR(hold.name, 5)
                 WHERE hold.holder = ?1 AND hold.name LIKE 'run:%'";
    let rows = transaction.query(query, params![holder], |row| {
        let tenant: String = row.get(0)?;
        let tree = (tenant.clone(), row.get::<String>(2)?);
        Ok((tree, Driven { tenant, id: row.get(1)?, is_isolated: row.get::<i64>(3)? < 0 }))
    })?;
    rows.into_iter().for_each(|(tree, run)| trees.entry(tree).or_default().push(run));
    Ok(())
}

impl TenantStore {
    /// Returns the number of ends of processes for which a run is suspected since its last turn.
    pub async fn suspicion(&self, run: &str) -> Result<u32, StoreError> {
        let run = run.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT ABS(suspected) FROM run WHERE tenant = ?1 AND id = ?2";
            let row = transaction.first(query, params![tenant, run])?;
            row.map_or(Ok(0), |row| row.get(0))
        })
        .await
    }

    /// Records that a suspected run is isolated, or no longer is. A turn of the run ends the
    /// suspicion.
    pub async fn isolate(&self, run: &str, is_isolated: bool) -> Result<(), StoreError> {
        let (run, sign) = (run.to_owned(), if is_isolated { -1 } else { 1 });
        self.write(move |transaction, (tenant, _)| {
            let update = "UPDATE run SET suspected = ?3 * ABS(suspected)
                          WHERE tenant = ?1 AND id = ?2";
            transaction.execute(update, params![tenant, run, sign])?;
            Ok(())
        })
        .await
    }

    /// Records that this process is alive although another one has taken over a run, so that its
    /// attempt does not count.
    pub async fn acquit(&self, run: &str) -> Result<(), StoreError> {
        let run = run.to_owned();
        self.write(move |transaction, (tenant, _)| {
            let update = "UPDATE run SET attempts = attempts - 1
                          WHERE tenant = ?1 AND id = ?2 AND status = 'open' AND attempts > 1";
            transaction.execute(update, params![tenant, run])?;
            Ok(())
        })
        .await
    }

    /// Releases all runs of the tenant that were parked because they repeatedly ended their process,
    /// and marks the runs as open that wait for them. Returns the ids of the released runs.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn release_all(&self) -> Result<Vec<String>, StoreError> {
        let released = self.write(|transaction, (tenant, _)| {
            let now = transaction.now();
            let released = transaction.query(
                "UPDATE run SET status = 'open', reason = NULL, attempts = 0, suspected = 0,
                 used = ?2
                 WHERE tenant = ?1 AND status = 'parked' AND reason IS NOT NULL
                 RETURNING id, root",
                params![tenant, now],
                |row| Ok((row.get::<String>(0)?, row.get::<Option<String>>(1)?)),
            )?;
            for root in released.iter().filter_map(|(_, root)| root.as_ref()) {
                transaction.execute(
                    "UPDATE run SET status = 'open', used = ?3
                     WHERE tenant = ?1 AND id = ?2 AND status = 'parked' AND reason IS NULL",
                    params![tenant, root, now],
                )?;
            }
            Ok(released.into_iter().map(|(id, _)| id).collect())
        });
        released.await
    }
}

impl Store {
    /// Records that this process is about to stop, so that it does not count against the runs that it
    /// drives if it is killed before they have stopped.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn prepare_stop(&self) -> Result<(), StoreError> {
        let process = Holder::of(self.leases.holder());
        self.write(move |transaction| {
            let mut trees = BTreeMap::new();
            for (holder, _) in opened_by(transaction, &process)? {
                driven_by(transaction, &holder, &mut trees)?;
            }
            for Driven { tenant, id, .. } in trees.into_values().flatten() {
                transaction.execute(
                    "UPDATE run SET attempts = 0, suspected = ABS(suspected)
                     WHERE tenant = ?1 AND id = ?2 AND status = 'open'",
                    params![tenant, id],
                )?;
            }
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::time::Duration;

    use super::super::db::Access;
    use super::*;
    use crate::journal::{Journal as _, RunRecord, RunStart, lock_run};
    use crate::tenant::Tenant;

    fn stores() -> Vec<Store> {
        let hour = Duration::from_secs(3_600);
        let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, hour).unwrap());
        [Store::in_memory(hour).unwrap()].into_iter().chain(postgres).collect()
    }

    /// Records that a process drove the given runs when it ended.
    async fn ended(store: &Store, holder: &str, runs: &[&str]) {
        let (holder, runs) = (holder.to_owned(), runs.join(" "));
        let end = move |transaction: &mut Transaction<'_>| {
            let insert = "INSERT INTO replica (id, expires) VALUES (?1, 1)";
            transaction.execute(insert, params![holder])?;
            for run in runs.split(' ') {
                transaction
                    .execute("DELETE FROM hold WHERE name = ?1", params![format!("run:{run}")])?;
                transaction.execute(
                    "INSERT INTO hold (tenant, name, holder, fence) VALUES ('default', ?1, ?2, 1)",
                    params![format!("run:{run}"), holder],
                )?;
            }
            Ok(())
        };
        store.db.run(Access::Write, end).await.unwrap();
    }

    /// Resumes runs in another process, and returns their numbers of attempts.
    async fn resumed(store: &Store, runs: &[&str]) -> Vec<u32> {
        let of = store.tenant(&Tenant::default());
        store.leases.release_dead().await.unwrap();
        let mut attempts = Vec::new();
        for run in runs {
            let lock = lock_run(&of, run).await.unwrap();
            assert!(lock.is_some(), "{run}");
            attempts.push(of.attempt(run).await.unwrap());
        }
        attempts
    }

    /// Returns a store with open runs that were attempted once.
    async fn with_runs(store: &Store, runs: &[&str]) -> TenantStore {
        let of = store.tenant(&Tenant::default());
        for run in runs {
            of.open(RunRecord::new(*run, RunStart::new("go", serde_json::json!({}))))
                .await
                .unwrap();
        }
        of
    }

    fn process(number: u32, me: bool) -> String {
        let me = if me { Holder::me().text() } else { "another-boot 1 1".to_owned() };
        let boot = me.split(' ').next().unwrap().to_owned();
        format!("{boot} {} 1 store", 900_000_000 + number)
    }

    #[tokio::test]
    async fn only_the_end_of_a_process_that_drove_one_run_counts() {
        for store in stores() {
            let of = with_runs(&store, &["a", "b", "c"]).await;
            for number in 0..3 {
                ended(&store, &process(number, true), &["a", "b", "c"]).await;
                assert_eq!(resumed(&store, &["a", "b", "c"]).await, [1, 1, 1], "end {number}");
                assert_eq!(of.suspicion("a").await.unwrap(), number + 1);
            }
            ended(&store, &process(3, true), &["a"]).await;
            assert_eq!(resumed(&store, &["a"]).await, [2], "it was the only one");
            ended(&store, &process(4, true), &["a"]).await;
            assert_eq!(resumed(&store, &["a"]).await, [3]);
            of.pause("b").await.unwrap();
            assert_eq!(of.suspicion("b").await.unwrap(), 0, "a run that stops is not suspected");
        }
    }

    #[tokio::test]
    async fn the_isolated_run_of_an_ended_process_is_the_one_that_counts() {
        for store in stores() {
            let of = with_runs(&store, &["a", "b"]).await;
            ended(&store, &process(0, true), &["a", "b"]).await;
            assert_eq!(resumed(&store, &["a", "b"]).await, [1, 1]);
            of.isolate("b", true).await.unwrap();
            ended(&store, &process(1, true), &["a", "b"]).await;
            assert_eq!(resumed(&store, &["a", "b"]).await, [1, 2]);
            assert_eq!(of.suspicion("a").await.unwrap(), 1, "the other run is not suspected again");
        }
    }

    #[tokio::test]
    async fn a_restart_of_the_machine_counts_for_no_run() {
        let hour = Duration::from_secs(3_600);
        let store = Store::in_memory(hour).unwrap();
        let of = with_runs(&store, &["a"]).await;
        for number in 0..3 {
            ended(&store, &process(number, false), &["a"]).await;
            assert_eq!(resumed(&store, &["a"]).await, [1]);
        }
        assert_eq!(of.suspicion("a").await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_process_that_was_asked_to_stop_counts_for_no_run() {
        for store in stores() {
            let of = with_runs(&store, &["a"]).await;
            assert_eq!(of.attempt("a").await.unwrap(), 2);
            let lock = lock_run(&of, "a").await.unwrap();
            store.prepare_stop().await.unwrap();
            drop(lock);
            assert_eq!(of.attempt("a").await.unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn all_parked_runs_are_released_at_once() {
        for store in stores() {
            let of = with_runs(&store, &["a", "b", "c"]).await;
            of.park("a", Some("ended its process".to_owned()), Vec::new()).await.unwrap();
            of.park("b", Some("ended its process".to_owned()), Vec::new()).await.unwrap();
            of.park("c", None, Vec::new()).await.unwrap();
            let mut released = of.release_all().await.unwrap();
            released.sort();
            assert_eq!(released, ["a", "b"]);
            assert_eq!(of.attempt("a").await.unwrap(), 1);
            assert!(of.release_all().await.unwrap().is_empty(), "`c` waits for an approval");
        }
    }
}
