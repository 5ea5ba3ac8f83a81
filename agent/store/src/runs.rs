//! The runs of a store: the implementation of the [`Journal`] port.

use std::ops::ControlFlow;
use std::sync::Arc;

use wattle_machine::Envelope;
use wattle_rt::CallEffect;
use wattle_rt::tape::{CallId, QUESTION, encode};

use super::db::{Access, Transaction, params};
use super::files::replace_deltas;
use super::keep::{cutoff, prune_runs};
use super::lease::check_fence;
use super::objects::StoredText;
use super::rewind::fork_state;
use super::rows::{
    CALL, Places, QUEUED, RUN, exactly_one, json, keep_files, millis, parse, queued_run, record,
    recorded_call, run_record, tree_files, write_events,
};
use super::seal::{SEALED_PREFIX, open_text, seal_bytes, seal_text};
use super::selection::{made_of, selected_runs};
use super::session::write_turns;
use super::{Owner, TenantStore, Topic, lease};
use crate::error::{Cause, StoreError};
use crate::journal::{
    Journal, JournalFuture, KeptFiles, Lock, RecordedCall, RecordedEffect, RunEnd, RunFilter,
    RunRecord, RunRequest, Turn, lock_name, own_session,
};
use crate::tenant::Tenant;

/// Maximum number of old runs that are removed when a run is opened. Servers remove the rest in the
/// background.
const PRUNED: u64 = 20;

/// Size in bytes from which equal results of a run's calls are stored once.
const SHARED: usize = 1_024;

impl TenantStore {
    /// Runs `work` in a transaction that writes to a run. If this process has lost the run's lock,
    /// fails and changes nothing.
    async fn write_run<T: Send + 'static>(
        &self,
        access: Access,
        run: &str,
        work: impl FnMut(&mut Transaction<'_>, Owner<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.write_limited(access, run, false, work).await
    }

    /// Runs `work` like [`write_run`](TenantStore::write_run). If `is_limited` is true, also fails if
    /// the run, the tenant or the store would keep more bytes than its limit.
    async fn write_limited<T: Send + 'static>(
        &self,
        access: Access,
        run: &str,
        is_limited: bool,
        mut work: impl FnMut(&mut Transaction<'_>, Owner<'_>) -> Result<T, Cause> + Send + 'static,
    ) -> Result<T, StoreError> {
        let lock = lock_name(run);
        let fence = self.store.leases.fence(self.tenant.as_str(), &lock);
        let (usage, run) = (self.store.usage.clone(), run.to_owned());
        let work = move |transaction: &mut Transaction<'_>, of: Owner<'_>| {
            check_fence(transaction, (of.0, &lock), fence)?;
            if !is_limited {
                return work(transaction, of);
            }
            let before = transaction.written();
            let done = usage.grow(transaction, of.0, |transaction| work(transaction, of))?;
            let written = transaction.written().saturating_sub(before);
            usage.check_run(transaction, (of.0, &run), written)?;
            Ok(done)
        };
        self.run(access, work).await.map_err(|cause| self.store.failed("write", cause))
    }

    async fn write_calls(
        &self,
        access: Access,
        run: String,
        calls: Vec<RecordedCall>,
    ) -> Result<(), StoreError> {
        // The results of calls that were made and must not be repeated, and the answers of people, are
        // never lost.
        let is_kept = |call: &RecordedCall| {
            call.result.is_some()
                && (matches!(call.id.effect, CallEffect::Once | CallEffect::Changes)
                    || call.id.function == QUESTION)
        };
        let is_limited = access == Access::Write || !calls.iter().any(is_kept);
        let of = run.clone();
        self.write_limited(access, &of, is_limited, move |transaction, of| {
            calls.iter().try_for_each(|call| write_call(transaction, of, &run, call))
        })
        .await
    }

    /// Notifies the followers of a run and of its tree about new events.
    fn wake_followers(&self, run: &str, root: Option<&str>) {
        self.store.wake(Topic::Run(run));
        if let Some(root) = root.filter(|root| *root != run) {
            self.store.wake(Topic::Run(root));
        }
    }
}

impl Journal for TenantStore {
    fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    fn enqueue(&self, run: RunRequest) -> JournalFuture<'_, ()> {
        let client = run.needs_client.then(|| self.store.leases.holder().to_owned());
        Box::pin(self.grow(Access::Durable, move |transaction, (tenant, seal)| {
            transaction.execute(
                // `position` records the order of the requests, even within the same millisecond.
                "INSERT INTO queue (tenant, id, session, created, message, origin, priority, needs, \
                 client, position) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, (
                     SELECT COALESCE(MAX(position), 0) + 1 FROM queue WHERE tenant = ?1))",
                params![
                    tenant,
                    run.id,
                    run.session,
                    run.created.cast_signed(),
                    seal_text(seal, &run.message)?,
                    record(seal, &run.origin)?,
                    run.priority.number(),
                    run.needs,
                    client
                ],
            )?;
            Ok(())
        }))
    }

    fn queued(&self) -> JournalFuture<'_, Vec<RunRequest>> {
        Box::pin(self.read(|transaction, (tenant, seal)| {
            let query = format!(
                "SELECT {QUEUED} FROM queue WHERE tenant = ?1
                 ORDER BY position, created, id"
            );
            transaction.query(&query, params![tenant], |row| queued_run(seal, row))
        }))
    }

    fn open(&self, run: RunRecord) -> JournalFuture<'_, ()> {
        let (id, kept) = (run.id.clone(), self.store.retention.runs);
        let clock = Arc::clone(&self.store.clock);
        let opened = move |transaction: &mut Transaction<'_>, (tenant, seal): Owner<'_>| {
            if let Some(oldest) = cutoff(transaction.now(), kept)
                && clock.is_trusted(transaction)?
            {
                prune_runs(transaction, Some(tenant), oldest, PRUNED)?;
            }
            let parent = run.start.parent.as_ref();
            transaction.execute(
                // A fork repeats the answers that were given in the session of the forked run.
                "INSERT INTO run (tenant, id, session, status, created, used, attempts, parent, root, \
                 needs, instance, client) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, COALESCE(
                     (SELECT needs FROM queue WHERE tenant = ?1 AND id = ?2),
                     (SELECT needs FROM run WHERE tenant = ?1 AND id = ?9), ''), COALESCE(
                     (SELECT instance FROM run WHERE tenant = ?1 AND id = ?9),
                     (SELECT instance FROM session WHERE tenant = ?1 AND id = ?3), ''),
                     (SELECT client FROM queue WHERE tenant = ?1 AND id = ?2))",
                params![
                    tenant,
                    run.id,
                    run.session,
                    run.status.name(),
                    transaction.now(),
                    run.attempts,
                    parent.map(|parent| parent.run.as_str()),
                    parent.map(|parent| parent.root.as_str()),
                    run.start.forked.as_ref().map(|(run, _)| run.as_str())
                ],
            )?;
            transaction.execute(
                "INSERT INTO opening (tenant, run, body) VALUES (?1, ?2, ?3)",
                params![tenant, run.id, record(seal, &run.start)?],
            )?;
            let dequeue = "DELETE FROM queue WHERE tenant = ?1 AND id = ?2";
            transaction.execute(dequeue, params![tenant, run.id])?;
            Ok(())
        };
        Box::pin(async move { self.write_run(Access::Write, &id, opened).await })
    }

    fn pause(&self, run: &str) -> JournalFuture<'_, ()> {
        let run = run.to_owned();
        Box::pin(async move {
            let of = run.clone();
            let pause = "UPDATE run SET attempts = 0, suspected = 0 WHERE tenant = ?1 AND id = ?2 AND status = \
                         'open'";
            self.write_run(Access::Write, &of, move |transaction, (tenant, _)| {
                transaction.execute(pause, params![tenant, run])?;
                Ok(())
            })
            .await
        })
    }

    fn attempt(&self, run: &str) -> JournalFuture<'_, u32> {
        let run = run.to_owned();
        Box::pin(async move {
            let of = run.clone();
            self.write_run(Access::Durable, &of, move |transaction, (tenant, _)| {
                let row = transaction.one(
                    "UPDATE run SET status = 'open', attempts = attempts + 1, used = ?3
                     WHERE tenant = ?1 AND id = ?2 RETURNING attempts",
                    params![tenant, run, transaction.now()],
                )?;
                row.get(0)
            })
            .await
        })
    }

    fn park(
        &self,
        run: &str,
        reason: Option<String>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        let run = run.to_owned();
        Box::pin(async move {
            let (of, root) = (run.clone(), root_of(&events));
            self.write_run(Access::Durable, &of, move |transaction, (tenant, seal)| {
                let mut places = Places::take(transaction, tenant, &run, events.len())?;
                let reason = reason.as_ref().map(|text| seal_text(seal, text)).transpose()?;
                let attempts = if reason.is_none() { ", attempts = 0, suspected = 0" } else { "" };
                let update = format!(
                    "UPDATE run SET status = 'parked', reason = ?3, used = ?4{attempts}
                     WHERE tenant = ?1 AND id = ?2"
                );
                let params = params![tenant, run, reason, transaction.now()];
                exactly_one(transaction.execute(&update, params)?)?;
                write_events(transaction, (tenant, seal), &run, &events, &mut places)
            })
            .await?;
            self.wake_followers(&of, root.as_deref());
            Ok(())
        })
    }

    fn release(&self, run: &str) -> JournalFuture<'_, bool> {
        let run = run.to_owned();
        Box::pin(self.write(move |transaction, (tenant, _)| {
            let released = transaction.execute(
                "UPDATE run SET status = 'open', reason = NULL, attempts = 0, suspected = 0,
                 used = ?3
                 WHERE tenant = ?1 AND id = ?2 AND status = 'parked' AND reason IS NOT NULL",
                params![tenant, run, transaction.now()],
            )?;
            Ok(released > 0)
        }))
    }

    fn turn(
        &self,
        run: &str,
        mut turn: Turn,
        calls: Vec<RecordedCall>,
        events: Vec<Envelope>,
    ) -> JournalFuture<'_, ()> {
        let run = run.to_owned();
        Box::pin(async move {
            let (of, root) = (run.clone(), root_of(&events));
            // A run must be able to end, however much is kept.
            let is_last =
                turn.effects.iter().any(|effect| matches!(effect, RecordedEffect::Finish(_)));
            let files = self.store_files(&mut turn).await?;
            self.write_limited(Access::Write, &of, !is_last, move |transaction, (tenant, seal)| {
                let mut places = Places::of_turn(transaction, tenant, &run, events.len() + 1)?;
                calls
                    .iter()
                    .try_for_each(|call| write_call(transaction, (tenant, seal), &run, call))?;
                files.iter().try_for_each(|files| files.keep(transaction))?;
                let object = files.as_ref().and_then(StoredText::object);
                transaction.execute(
                    "INSERT INTO turn (tenant, run, number, place, body, object, changes)
                     VALUES (?1, ?2, (
                         SELECT COALESCE(MAX(number) + 1, 0) FROM turn
                         WHERE tenant = ?1 AND run = ?2), ?3, ?4, ?5, COALESCE((
                         SELECT session.changes FROM run
                         JOIN session ON session.tenant = run.tenant
                             AND session.id = COALESCE(run.session, 'run/' || run.id)
                         WHERE run.tenant = ?1 AND run.id = ?2), 0))",
                    params![tenant, run, places.next(), record(seal, &turn)?, object],
                )?;
                write_events(transaction, (tenant, seal), &run, &events, &mut places)
            })
            .await?;
            self.wake_followers(&of, root.as_deref());
            Ok(())
        })
    }

    fn calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        Box::pin(self.write_calls(Access::Write, run.to_owned(), calls))
    }

    fn durable_calls(&self, run: &str, calls: Vec<RecordedCall>) -> JournalFuture<'_, ()> {
        Box::pin(self.write_calls(Access::Durable, run.to_owned(), calls))
    }

    fn end(&self, run: &str, end: RunEnd) -> JournalFuture<'_, ()> {
        let run = run.to_owned();
        Box::pin(async move {
            let of = run.clone();
            let left = match &end.files {
                KeptFiles::Replaced { delta: Some(delta), .. } => {
                    Some(self.store_text(delta.clone()).await?)
                }
                _ => None,
            };
            self.write_run(Access::Write, &of, move |transaction, of| {
                write_end(transaction, of, &run, (&end, left.as_ref()))
            })
            .await?;
            self.store.usage.forget_run((self.tenant.as_str(), &of));
            self.wake_followers(&of, None);
            Ok(())
        })
    }

    fn run(&self, run: &str) -> JournalFuture<'_, Option<RunRecord>> {
        let run = run.to_owned();
        Box::pin(self.read(move |transaction, (tenant, seal)| {
            let query = format!("SELECT {RUN} FROM run WHERE tenant = ?1 AND id = ?2");
            let found = transaction.first(&query, params![tenant, run])?;
            found.map(|row| run_record(seal, &row)).transpose()
        }))
    }

    fn runs(&self, filter: RunFilter) -> JournalFuture<'_, Vec<RunRecord>> {
        Box::pin(self.read(move |transaction, (tenant, seal)| {
            let created = match &filter.before {
                Some(before) => made_of(transaction, tenant, before)?,
                None => None,
            };
            let (query, params) = selected_runs(tenant, &filter, created);
            let mut runs = Vec::new();
            transaction.each(&query, &params, |row| {
                match run_record(seal, &row) {
                    Ok(run) => runs.push(run),
                    // An unreadable run must not prevent other runs from being listed and resumed.
                    Err(error) => {
                        let run: String = row.get("id").unwrap_or_default();
                        tracing::error!(run, %error, "failed to read a run");
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(runs)
        }))
    }

    fn events(&self, run: &str, after: u64, limit: u32) -> JournalFuture<'_, Vec<Envelope>> {
        let run = run.to_owned();
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        Box::pin(self.read(move |transaction, (tenant, seal)| {
            let query = "SELECT body FROM event WHERE tenant = ?1 AND run = ?2 AND seq > ?3
                         ORDER BY seq LIMIT ?4";
            transaction.query(query, params![tenant, run, after, limit], |row| {
                parse(&open_text(seal, row.get(0)?)?)
            })
        }))
    }

    fn turns(&self, run: &str) -> JournalFuture<'_, Vec<Turn>> {
        let run = run.to_owned();
        Box::pin(self.read(move |transaction, (tenant, seal)| {
            let query = "SELECT body FROM turn WHERE tenant = ?1 AND run = ?2 ORDER BY number";
            transaction
                .query(query, params![tenant, run], |row| parse(&open_text(seal, row.get(0)?)?))
        }))
    }

    fn last_turn(&self, run: &str) -> JournalFuture<'_, Option<(u32, Turn)>> {
        let run = run.to_owned();
        Box::pin(self.read(move |transaction, (tenant, seal)| {
            let query = "SELECT number, body FROM turn WHERE tenant = ?1 AND run = ?2
                         ORDER BY number DESC LIMIT 1";
            let Some(row) = transaction.first(query, params![tenant, run])? else {
                return Ok(None);
            };
            Ok(Some((row.get(0)?, parse(&open_text(seal, row.get(1)?)?)?)))
        }))
    }

    fn files_of_tree(&self, run: &str) -> JournalFuture<'_, Vec<(u32, String)>> {
        let run = run.to_owned();
        let stored = self.read(move |transaction, of| tree_files(transaction, of, (&run, 0)));
        Box::pin(async move {
            let mut files = Vec::new();
            for (turn, delta) in stored.await? {
                files.push((turn, self.load_text(delta).await?));
            }
            Ok(files)
        })
    }

    fn calls_of(&self, run: &str, turn: u32) -> JournalFuture<'_, Vec<RecordedCall>> {
        let run = run.to_owned();
        Box::pin(self.read(move |transaction, (tenant, seal)| {
            let query = format!(
                "SELECT {CALL} FROM call WHERE tenant = ?1 AND run = ?2 AND turn = ?3
                 ORDER BY program, path, number"
            );
            transaction.query(&query, params![tenant, run, turn], |row| recorded_call(seal, row))
        }))
    }

    fn fork_state(&self, of: (&str, u32), fork: &str) -> JournalFuture<'_, bool> {
        let (of, turn, fork) = (of.0.to_owned(), of.1, fork.to_owned());
        Box::pin(async move {
            let run = fork.clone();
            self.write_run(Access::Write, &run, move |transaction, owner| {
                fork_state(transaction, owner, (&of, turn), &fork)
            })
            .await
        })
    }

    fn lock(&self, name: &str) -> JournalFuture<'_, Option<Lock>> {
        Box::pin(lease::acquire(self.clone(), name.to_owned()))
    }
}

fn write_call(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    run: &str,
    call: &RecordedCall,
) -> Result<(), Cause> {
    let RecordedCall { turn, program, id, times, result, time } = call;
    let CallId { path, number, function, effect, digest, args } = id;
    let path: Vec<String> = path.iter().map(u32::to_string).collect();
    let result = result.as_ref().map(|result| seal_bytes(seal, encode(result))).transpose()?;
    let (result, shared) = match result {
        // Each encryption of a value is different.
        Some(value) if value.len() >= SHARED && !value.starts_with(SEALED_PREFIX.as_bytes()) => {
            let digest = *blake3::hash(&value).as_bytes();
            let insert = "INSERT INTO call_value (tenant, run, digest, body)
                          VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
            transaction.execute(insert, params![tenant, run, digest, value])?;
            (None, Some(digest))
        }
        result => (result, None),
    };
    transaction.execute(
        "INSERT INTO call (tenant, run, turn, program, path, number, times, function, effect, \
         digest, args, outcome, began, took, shared)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
         ON CONFLICT (tenant, run, turn, program, path, number)
         DO UPDATE SET times = excluded.times, outcome = COALESCE(excluded.outcome, call.outcome),
         shared = COALESCE(excluded.shared, call.shared),
         began = COALESCE(excluded.began, call.began), took = COALESCE(excluded.took, call.took)",
        params![
            tenant,
            run,
            turn,
            program,
            path.join("."),
            number,
            times,
            function.as_ref(),
            effect.name(),
            digest,
            seal_text(seal, args)?,
            result,
            time.map(|time| millis(time.began)),
            time.and_then(|time| time.dur_ms).map(millis),
            shared,
        ],
    )?;
    Ok(())
}

/// Returns the id of the root run of the tree that the events belong to, or `None` if there are no
/// events.
fn root_of(events: &[Envelope]) -> Option<String> {
    events.first().map(|event| event.root_run_id.clone())
}

fn write_end(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    run: &str,
    (end, left): (&RunEnd, Option<&StoredText>),
) -> Result<(), Cause> {
    let RunEnd { turns, sealed, summary, files } = end;
    let summary = summary.as_ref().map(|summary| record(seal, summary)).transpose()?;
    let sealed = sealed.as_ref().map(json).transpose()?;
    let row = transaction.one(
        "UPDATE run SET status = 'ended', reason = NULL, sealed = ?3, used = ?4, summary = ?5
         WHERE tenant = ?1 AND id = ?2 RETURNING session",
        params![tenant, run, sealed, transaction.now(), summary],
    )?;
    let session: Option<String> = row.get(0)?;
    if let Some(session) = session.as_ref().filter(|_| !turns.is_empty()) {
        write_turns(transaction, (tenant, seal), session, turns)?;
    }
    match files {
        KeptFiles::Added => keep_files(transaction, (tenant, seal), run, session.as_deref())?,
        KeptFiles::Replaced { newest, .. } => {
            let session = session.unwrap_or_else(|| own_session(run));
            replace_deltas(transaction, (tenant, seal), &session, *newest, left)?;
        }
        KeptFiles::Nothing => {}
    }
    let cancelled = "DELETE FROM cancellation WHERE tenant = ?1 AND run = ?2";
    transaction.execute(cancelled, params![tenant, run])?;
    // Ids of the run's calls begin with the run's id and `/`. In ASCII, `0` follows `/`.
    transaction.execute(
        "DELETE FROM changed WHERE tenant = ?1 AND call > ?2 AND call < ?3",
        params![tenant, format!("{run}/"), format!("{run}0")],
    )?;
    Ok(())
}
