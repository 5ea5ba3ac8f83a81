//! The runs of a store: the implementation of the [`Journal`] port.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use wattle_machine::{Envelope, Event};
use wattle_rt::tape::{CallId, encode};

use super::rows::{
    exactly_one, json, keep_files, known_status, millis, parse, record, recorded_call, run_record,
    tree_files, write_events,
};
use super::seal::{open_text, seal_bytes, seal_text};
use super::session::write_turns;
use super::{TenantStore, lock, now};
use crate::error::{Cause, StoreError};
use crate::journal::{
    Journal, JournalFuture, Lock, QueuedRun, RecordedCall, RunEnd, RunFilter, RunRecord, Status,
    Turn,
};
use crate::ledger::FinalSeal;
use crate::tenant::Tenant;

/// Retention of ended runs: 30 days, in milliseconds.
const RETENTION_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// Returns the id of the session that holds a run's own state if the run has no session. Ids of
/// other sessions contain no `/`.
#[must_use]
pub fn own_session(run: &str) -> String {
    format!("run/{run}")
}

impl Journal for TenantStore {
    fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    fn enqueue(&self, run: QueuedRun) -> JournalFuture<'_, ()> {
        let seal = self.seal.clone();
        Box::pin(self.durably(move |transaction, tenant| {
            transaction.execute(
                "INSERT INTO queue (tenant, id, session, made, message, origin)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    tenant,
                    run.id,
                    run.session,
                    run.made.cast_signed(),
                    seal_text(seal.as_deref(), run.message)?,
                    record(seal.as_deref(), &run.origin)?
                ],
            )?;
            Ok(())
        }))
    }

    fn queued(&self) -> JournalFuture<'_, Vec<QueuedRun>> {
        let seal = self.seal.clone();
        Box::pin(self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare(
                "SELECT id, session, made, message, origin FROM queue WHERE tenant = ?1 ORDER BY made, id",
            )?;
            let mut rows = statement.query(params![tenant])?;
            let mut queued = Vec::new();
            while let Some(row) = rows.next()? {
                queued.push(QueuedRun {
                    id: row.get(0)?,
                    session: row.get(1)?,
                    made: row.get::<_, i64>(2)?.cast_unsigned(),
                    message: open_text(seal.as_deref(), row.get(3)?)?,
                    origin: parse(&open_text(seal.as_deref(), row.get(4)?)?)?,
                });
            }
            Ok(queued)
        }))
    }

    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()> {
        let seal = self.seal.clone();
        Box::pin(self.journal("write", move |transaction, tenant| {
            let oldest = now().saturating_sub(RETENTION_MS);
            transaction.execute(
                "DELETE FROM run WHERE tenant = ?1 AND status = 'ended' AND used < ?2",
                params![tenant, oldest],
            )?;
            transaction.execute(
                "INSERT INTO run (tenant, id, session, status, made, used, attempts, opening, parent, \
                 root)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9)",
                params![
                    tenant,
                    run.id,
                    run.session,
                    run.status.name(),
                    now(),
                    run.attempts,
                    record(seal.as_deref(), &run.start)?,
                    run.start.parent.as_ref().map(|parent| parent.run.as_str()),
                    run.start.parent.as_ref().map(|parent| parent.root.as_str())
                ],
            )?;
            transaction.execute(
                "DELETE FROM queue WHERE tenant = ?1 AND id = ?2",
                params![tenant, run.id],
            )?;
            Ok(())
        }))
    }

    fn pause(&self, run: &str) -> JournalFuture<'_, ()> {
        let run = run.to_owned();
        Box::pin(self.journal("write", move |transaction, tenant| {
            transaction.execute(
                "UPDATE run SET attempts = 0 WHERE tenant = ?1 AND id = ?2 AND status = 'open'",
                params![tenant, run],
            )?;
            Ok(())
        }))
    }

    fn attempt(&self, run: &str) -> JournalFuture<'_, u32> {
        let run = run.to_owned();
        Box::pin(self.durably(move |transaction, tenant| {
            Ok(transaction.query_row(
                "UPDATE run SET status = 'open', attempts = attempts + 1, used = ?3 WHERE tenant \
                 = ?1 AND id = ?2
                 RETURNING attempts",
                params![tenant, run, now()],
                |row| row.get(0),
            )?)
        }))
    }

    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.durably(move |transaction, tenant| {
            let reason = reason.map(|text| seal_text(seal.as_deref(), text)).transpose()?;
            exactly_one(transaction.execute(
                "UPDATE run SET status = 'parked', reason = ?3, used = ?4 WHERE tenant = ?1 AND \
                 id = ?2",
                params![tenant, run, reason, now()],
            )?)?;
            write_events(transaction, (tenant, seal.as_deref()), &run, &events)
        }))
    }

    fn release(&self, run: &str) -> JournalFuture<'_, bool> {
        let run = run.to_owned();
        Box::pin(self.journal("write", move |transaction, tenant| {
            let released = transaction.execute(
                "UPDATE run SET status = 'open', reason = NULL, attempts = 0, used = ?3
                 WHERE tenant = ?1 AND id = ?2 AND status = 'parked' AND reason IS NOT NULL",
                params![tenant, run, now()],
            )?;
            Ok(released > 0)
        }))
    }

    fn turn(&self, run: &str, turn: Turn, events: Vec<Envelope>) -> JournalFuture<'_, ()> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("write", move |transaction, tenant| {
            // A turn is progress, so only the current attempt counts for the next turn. The runs above
            // wait for it, so that it is their progress, too.
            transaction.execute(
                "UPDATE run SET used = ?3, attempts = MIN(attempts, 1) WHERE tenant = ?1 AND id IN (
                     WITH RECURSIVE above (id) AS (
                         SELECT ?2
                         UNION SELECT run.parent FROM run JOIN above ON run.id = above.id
                         WHERE run.tenant = ?1 AND run.parent IS NOT NULL
                     )
                     SELECT id FROM above)",
                params![tenant, run, now()],
            )?;
            transaction.execute(
                "INSERT INTO turn (tenant, run, number, body)
                 SELECT ?1, ?2, COALESCE(MAX(number) + 1, 0), ?3 FROM turn WHERE tenant = ?1 AND \
                 run = ?2",
                params![tenant, run, record(seal.as_deref(), &turn)?],
            )?;
            write_events(transaction, (tenant, seal.as_deref()), &run, &events)
        }))
    }

    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("write", move |transaction, tenant| {
            let mut statement = transaction.prepare_cached(
                "INSERT INTO call (tenant, run, turn, program, path, number, times, function, \
                 effect, digest, args, came, began, took)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
                 ON CONFLICT (tenant, run, turn, program, path, number)
                 DO UPDATE SET times = excluded.times, came = COALESCE(excluded.came, came),
                 began = COALESCE(excluded.began, began), took = COALESCE(excluded.took, took)",
            )?;
            for RecordedCall { turn, program, id, times, result, time } in calls {
                let CallId { path, number, function, effect, digest, args } = id;
                let path: Vec<String> = path.iter().map(u32::to_string).collect();
                statement.execute(params![
                    tenant,
                    run,
                    turn,
                    program,
                    path.join("."),
                    number,
                    times,
                    function,
                    effect.name(),
                    digest.as_slice(),
                    seal_text(seal.as_deref(), args)?,
                    result
                        .map(|result| seal_bytes(seal.as_deref(), encode(&result)))
                        .transpose()?,
                    time.map(|time| millis(time.began)),
                    time.and_then(|time| time.dur_ms).map(millis),
                ])?;
            }
            Ok(())
        }))
    }

    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("write", move |transaction, tenant| {
            let RunEnd { turns, sealed, summary, keeps_files } = end;
            let summary =
                summary.map(|summary| record(seal.as_deref(), &summary)).transpose()?;
            let session: Option<String> = transaction.query_row(
                "UPDATE run SET status = 'ended', reason = NULL, sealed = ?3, used = ?4, summary = ?5
                 WHERE tenant = ?1 AND id = ?2 RETURNING session",
                params![tenant, run, sealed.as_ref().map(json).transpose()?, now(), summary],
                |row| row.get(0),
            )?;
            if let Some(session) = session.as_ref().filter(|_| !turns.is_empty()) {
                write_turns(transaction, (tenant, seal.as_deref()), session, &turns)?;
            }
            if let Some(session) = session.filter(|_| keeps_files) {
                keep_files(transaction, (tenant, seal.as_deref()), &run, &session)?;
            }
            let own = own_session(&run);
            transaction.execute(
                "DELETE FROM session WHERE tenant = ?1 AND id = ?2",
                params![tenant, own],
            )?;
            // Ids of the run's calls begin with the run's id and `/`. In ASCII, `0` follows `/`.
            transaction.execute(
                "DELETE FROM changed WHERE tenant = ?1 AND call > ?2 || '/' AND call < ?2 || '0'",
                params![tenant, run],
            )?;
            Ok(())
        }))
    }

    fn run(&self, run: &str) -> JournalFuture<'_, Option<RunRecord>> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("read", move |transaction, tenant| {
            let mut statement =
                transaction.prepare("SELECT * FROM run WHERE tenant = ?1 AND id = ?2")?;
            statement
                .query_row(params![tenant, run], |row| Ok(run_record(seal.as_deref(), row)))
                .optional()?
                .transpose()
        }))
    }

    fn runs(&self, filter: RunFilter) -> JournalFuture<'_, Vec<RunRecord>> {
        let seal = self.seal.clone();
        Box::pin(self.journal("read", move |transaction, tenant| {
            let RunFilter { status, session, tree_of, before, changed_since, limit } = filter;
            // Few runs changed, and the index of changes finds them. The others are read in order.
            let order = match changed_since {
                Some(_) => "AND used >= ?7 ORDER BY +made DESC, id DESC",
                None => "AND ?7 IS NULL ORDER BY made DESC, id DESC",
            };
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT * FROM run WHERE tenant = ?1 AND (?2 IS NULL OR status = ?2)
                 AND (?3 IS NULL OR session = ?3) AND (?4 IS NULL OR id < ?4)
                 AND root IS ?6 {order} LIMIT ?5"
            ))?;
            let limit = limit.map_or(-1, i64::from);
            let mut rows = statement.query(params![
                tenant,
                status.map(Status::name),
                session,
                before,
                limit,
                tree_of,
                changed_since.map(millis)
            ])?;
            let mut runs = Vec::new();
            while let Some(row) = rows.next()? {
                match run_record(seal.as_deref(), row) {
                    Ok(run) => runs.push(run),
                    // An unreadable run must not keep the others from being listed and resumed.
                    Err(error) => tracing::error!(run = row.get::<_, String>("id").unwrap_or_default(), %error, "failed to read a run"),
                }
            }
            Ok(runs)
        }))
    }

    fn events(&self, run: &str, after: u64, limit: u32) -> JournalFuture<'_, Vec<Envelope>> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare_cached(
                "SELECT body FROM event WHERE tenant = ?1 AND run = ?2 AND seq > ?3 ORDER BY seq \
                 LIMIT ?4",
            )?;
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let rows = statement
                .query_map(params![tenant, run, after, limit], |row| row.get::<_, String>(0))?;
            rows.map(|body| parse(&open_text(seal.as_deref(), body?)?)).collect()
        }))
    }

    fn turns(&self, run: &str) -> JournalFuture<'_, Vec<Turn>> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("read", move |transaction, tenant| {
            let mut statement = transaction
                .prepare("SELECT body FROM turn WHERE tenant = ?1 AND run = ?2 ORDER BY number")?;
            let rows = statement.query_map(params![tenant, run], |row| row.get::<_, String>(0))?;
            rows.map(|body| parse(&open_text(seal.as_deref(), body?)?)).collect()
        }))
    }

    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("read", move |transaction, tenant| {
            let mut files = Vec::new();
            tree_files(transaction, (tenant, seal.as_deref()), (&run, 0), |turn, changed| {
                files.push((turn, changed));
                Ok(())
            })?;
            Ok(files)
        }))
    }

    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        Box::pin(self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare(
                "SELECT * FROM call WHERE tenant = ?1 AND run = ?2 AND turn = ?3 ORDER BY \
                 program, path, number",
            )?;
            let read = |row: &Row<'_>| Ok(recorded_call(seal.as_deref(), row));
            let rows = statement.query_map(params![tenant, run, turn], read)?;
            rows.map(|row| row?).collect()
        }))
    }

    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>> {
        Box::pin(lock::acquire(self.clone(), name.to_owned()))
    }
}

impl TenantStore {
    /// Returns the final seals of the tenant's runs whose trace is in `folder`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn sealed(&self, folder: &Path) -> Result<Vec<FinalSeal>, StoreError> {
        let folder = folder.to_owned();
        self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare(
                "SELECT sealed FROM run WHERE tenant = ?1 AND status = 'ended' AND sealed IS NOT \
                 NULL ORDER BY made, id",
            )?;
            let rows = statement.query_map(params![tenant], |row| row.get::<_, String>(0))?;
            let sealed =
                rows.map(|text| parse::<FinalSeal>(&text?)).filter(|sealed| match sealed {
                    Ok(sealed) => sealed.folder == folder,
                    Err(_) => true,
                });
            sealed.collect()
        })
        .await
    }

    /// Returns the status of a run, or `None` if no run with this id has begun.
    pub(crate) async fn status(&self, run: &str) -> Result<Option<Status>, StoreError> {
        let run = run.to_owned();
        self.journal("read", move |transaction, tenant| {
            let mut statement = transaction
                .prepare_cached("SELECT status FROM run WHERE tenant = ?1 AND id = ?2")?;
            let status = statement
                .query_row(params![tenant, run], |row| row.get::<_, String>(0))
                .optional()?;
            status.map(|status| known_status(&status)).transpose()
        })
        .await
    }

    /// Returns the number of the newest step of a run that is not over, by its events, or 0.
    pub(crate) async fn steps(&self, run: &str) -> Result<u32, StoreError> {
        let (run, seal) = (run.to_owned(), self.seal.clone());
        self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare_cached(
                "SELECT body FROM event WHERE tenant = ?1 AND run = ?2 ORDER BY seq DESC",
            )?;
            let mut rows = statement.query(params![tenant, run])?;
            while let Some(row) = rows.next()? {
                let event: Envelope = parse(&open_text(seal.as_deref(), row.get(0)?)?)?;
                if let Event::ToolResult { step, .. } = event.event {
                    return Ok(step);
                }
            }
            Ok(0)
        })
        .await
    }

    /// Returns the number of the newest event of a run, or 0.
    pub(crate) async fn last_event(&self, run: &str) -> Result<u64, StoreError> {
        let run = run.to_owned();
        self.journal("read", move |transaction, tenant| {
            let newest: Option<i64> = transaction.query_row(
                "SELECT MAX(seq) FROM event WHERE tenant = ?1 AND run = ?2",
                params![tenant, run],
                |row| row.get(0),
            )?;
            Ok(newest.unwrap_or(0).cast_unsigned())
        })
        .await
    }

    /// Runs `work` in one transaction of the tenant.
    pub(super) async fn journal<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Transaction<'_>, &str) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        let tenant = self.tenant.clone();
        let behavior = if what == "read" {
            TransactionBehavior::Deferred
        } else {
            TransactionBehavior::Immediate
        };
        let task = self.store.with(StoreError::new(what), move |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(behavior)?;
            Ok(match work(&transaction, tenant.as_str()) {
                Ok(done) => transaction.commit().map(|()| Ok(done))?,
                Err(cause) => Err(cause),
            })
        });
        task.await?.map_err(StoreError::new(what))
    }

    /// Runs `work` like [`journal`](TenantStore::journal), and syncs to disk before it returns, so
    /// that the change survives a crash of the machine.
    async fn durably<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>, &str) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        let tenant = self.tenant.clone();
        let task = self.store.with(StoreError::new("write"), move |connection: &mut Connection| {
            connection.pragma_update(None, "synchronous", "FULL")?;
            let done = (|| {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = work(&transaction, tenant.as_str())?;
                transaction.commit()?;
                Ok(done)
            })();
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            Ok(done)
        });
        task.await?.map_err(StoreError::new("write"))
    }
}
