//! Functions that read and write the table rows of runs, calls and events.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use wattle_machine::Envelope;
use wattle_rt::CallEffect;
use wattle_rt::tape::{CallId, decode};

use super::Owner;
use super::db::{Row, Transaction, params};
use super::files::add_delta;
use super::objects::StoredText;
use super::seal::{RecordSeal, open_bytes, open_text, seal_text};
use crate::error::Cause;
use crate::journal::{
    CallTime, Priority, RecordedCall, RunRecord, RunRequest, Status, Turn, own_session,
};

pub(super) fn run_record(seal: Option<&RecordSeal>, row: &Row) -> Result<RunRecord, Cause> {
    let status: String = row.get("status")?;
    let start = open_text(seal, row.get("opening")?)?;
    let reason: Option<String> = row.get("reason")?;
    let summary: Option<String> = row.get("summary")?;
    Ok(RunRecord {
        id: row.get("id")?,
        session: row.get("session")?,
        status: known_status(&status)?,
        created: row.get::<i64>("created")?.cast_unsigned(),
        used: row.get::<i64>("used")?.cast_unsigned(),
        attempts: row.get("attempts")?,
        reason: reason.map(|text| open_text(seal, text)).transpose()?,
        summary: summary.map(|text| parse(&open_text(seal, text)?)).transpose()?,
        start: parse(&start)?,
    })
}

pub(super) fn known_status(name: &str) -> Result<Status, Cause> {
    let all = [Status::Open, Status::Parked, Status::Ended];
    Ok(all.into_iter().find(|known| known.name() == name).ok_or("a run has an unknown status")?)
}

/// The columns that a query for runs selects.
pub(super) const RUN: &str = "id, session, status, created, used, attempts, reason, summary, (
         SELECT body FROM opening
         WHERE opening.tenant = run.tenant AND opening.run = run.id) AS opening";

/// Maximum number of events that one statement adds.
const EVENTS: usize = 16;

/// The columns that a query for queued runs selects.
pub(super) const QUEUED: &str = "id, session, created, message, origin, priority, needs, client";

pub(super) fn queued_run(seal: Option<&RecordSeal>, row: &Row) -> Result<RunRequest, Cause> {
    let priority = Priority::of_number(row.get("priority")?);
    Ok(RunRequest {
        id: row.get("id")?,
        session: row.get("session")?,
        created: row.get::<i64>("created")?.cast_unsigned(),
        message: open_text(seal, row.get("message")?)?,
        origin: parse(&open_text(seal, row.get("origin")?)?)?,
        priority: priority.ok_or("a queued run has an unknown priority")?,
        needs: row.get("needs")?,
        needs_client: row.get::<Option<String>>("client")?.is_some(),
    })
}

/// The query for the ids of a root run and its child runs. ?1 is the tenant, and ?2 is the root
/// run. With an `OR` instead of the two queries, no engine would use an index.
pub(super) const TREE: &str = "SELECT id FROM run WHERE tenant = ?1 AND root = ?2
    UNION ALL SELECT id FROM run WHERE tenant = ?1 AND id = ?2";

/// The columns that a query for calls selects.
pub(super) const CALL: &str =
    "turn, program, path, number, times, function, effect, digest, args, \
     began, took, COALESCE(outcome, (
         SELECT body FROM call_value WHERE call_value.tenant = call.tenant
         AND call_value.run = call.run AND call_value.digest = call.shared)) AS outcome";

/// A range of positions reserved for new records of a run tree. The records of a tree are read in
/// the order of their positions.
pub(super) struct Places {
    /// The root run of the tree.
    root: String,
    /// The next free position.
    next: i64,
}

impl Places {
    /// Reserves the next `count` positions in a run's tree. Until the transaction ends, no other
    /// transaction can reserve positions in this tree.
    ///
    /// # Errors
    /// If there is no such run.
    pub(super) fn take(
        transaction: &mut Transaction<'_>,
        tenant: &str,
        run: &str,
        count: usize,
    ) -> Result<Places, Cause> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let row = transaction.first(
            "UPDATE run SET places = places + ?3 WHERE tenant = ?1 AND id = (
                 SELECT COALESCE(root, id) FROM run WHERE tenant = ?1 AND id = ?2)
             RETURNING id, places",
            params![tenant, run, count],
        )?;
        let row = row.ok_or("there is no such run")?;
        let taken: i64 = row.get(1)?;
        Ok(Places { root: row.get(0)?, next: taken - count + 1 })
    }

    /// Reserves `count` positions for a turn and its events. A turn is progress, so this also
    /// resets the number of attempts to drive the run and each ancestor that waits for it, and the
    /// suspicion against them.
    ///
    /// # Errors
    /// If there is no such run.
    pub(super) fn of_turn(
        transaction: &mut Transaction<'_>,
        tenant: &str,
        run: &str,
        count: usize,
    ) -> Result<Places, Cause> {
        let taken = i64::try_from(count).unwrap_or(i64::MAX);
        // Most runs are root runs. For those, one statement is enough.
        let row = transaction.first(
            "UPDATE run SET places = places + ?3, used = ?4,
             attempts = CASE WHEN attempts > 1 THEN 1 ELSE attempts END, suspected = 0
             WHERE tenant = ?1 AND id = ?2 AND root IS NULL RETURNING places",
            params![tenant, run, taken, transaction.now()],
        )?;
        if let Some(row) = row {
            return Ok(Places { root: run.to_owned(), next: row.get::<i64>(0)? - taken + 1 });
        }
        let places = Places::take(transaction, tenant, run, count)?;
        transaction.execute(
            "WITH RECURSIVE above (id, parent) AS (
                 SELECT id, parent FROM run WHERE tenant = ?1 AND id = ?2
                 UNION SELECT run.id, run.parent FROM run JOIN above
                 ON run.id = above.parent WHERE run.tenant = ?1
             )
             UPDATE run SET used = ?3, suspected = 0,
             attempts = CASE WHEN attempts > 1 THEN 1 ELSE attempts END
             WHERE tenant = ?1 AND id IN (SELECT id FROM above)",
            params![tenant, run, transaction.now()],
        )?;
        Ok(places)
    }

    /// Returns the next reserved position and removes it from the range.
    pub(super) fn next(&mut self) -> i64 {
        let place = self.next;
        self.next += 1;
        place
    }
}

/// Adds events of a run at the positions in `places`. Events that are already recorded are not
/// changed.
pub(super) fn write_events(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    run: &str,
    events: &[Envelope],
    places: &mut Places,
) -> Result<(), Cause> {
    // Each statement takes a round trip to a PostgreSQL server, so it adds several events.
    for events in events.chunks(EVENTS) {
        let (mut rows, mut values) = (Vec::new(), params![tenant, run, places.root].to_vec());
        for event in events {
            let at = values.len();
            rows.push(format!("(?1, ?2, ?{}, ?3, ?{}, ?{})", at + 1, at + 2, at + 3));
            let seq = i64::try_from(event.seq).unwrap_or(i64::MAX);
            values.extend_from_slice(params![seq, places.next(), record(seal, event)?]);
        }
        let rows = rows.join(", ");
        let insert = format!(
            "INSERT INTO event (tenant, run, seq, root, place, body) VALUES {rows}
             ON CONFLICT DO NOTHING"
        );
        transaction.execute(&insert, &values)?;
    }
    Ok(())
}

/// Adds a run's file changes to the files of its session, or to those of the run itself if it belongs
/// to no session. The first turn of the run records the files that the run began with: a session has
/// them already.
pub(super) fn keep_files(
    transaction: &mut Transaction<'_>,
    of: Owner<'_>,
    run: &str,
    session: Option<&str>,
) -> Result<(), Cause> {
    let own = own_session(run);
    for (_, delta) in tree_files(transaction, of, (run, u32::from(session.is_some())))? {
        add_delta(transaction, of, session.unwrap_or(&own), &delta)?;
    }
    Ok(())
}

/// Returns the stored file changes that a run and its child runs recorded, starting at the run's
/// turn `from`, in the order in which they were recorded. Each change is paired with the number of
/// a turn of the given run. For a change by a child run, this is the given run's next turn.
pub(super) fn tree_files(
    transaction: &mut Transaction<'_>,
    (tenant, seal): Owner<'_>,
    (run, from): (&str, u32),
) -> Result<Vec<(u32, StoredText)>, Cause> {
    let query = format!(
        "SELECT body, object, CASE WHEN run = ?2 THEN number END FROM turn
         WHERE tenant = ?1 AND run IN ({TREE}) AND (run <> ?2 OR number >= ?3) ORDER BY place"
    );
    let (mut files, mut next) = (Vec::new(), from);
    transaction.each(&query, params![tenant, run, from], |row| {
        let own: Option<u32> = row.get(2)?;
        let changed = match row.get(1)? {
            Some(object) => Some(StoredText::Object(object)),
            None => {
                let turn: Turn = parse(&open_text(seal, row.get(0)?)?)?;
                let inline = |delta: String| seal_text(seal, delta).map(StoredText::Inline);
                turn.files.map(inline).transpose()?
            }
        };
        files.extend(changed.map(|delta| (own.unwrap_or(next), delta)));
        next = own.map_or(next, |own| own.saturating_add(1));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(files)
}

pub(super) fn recorded_call(seal: Option<&RecordSeal>, row: &Row) -> Result<RecordedCall, Cause> {
    let path: String = row.get("path")?;
    let path: Result<Arc<[u32]>, _> =
        path.split('.').filter(|part| !part.is_empty()).map(str::parse).collect();
    let effect: String = row.get("effect")?;
    let digest: Vec<u8> = row.get("digest")?;
    let result: Option<Vec<u8>> = row.get("outcome")?;
    let result = result.map(|stored| open_bytes(seal, stored)).transpose()?;
    let result =
        result.map(|bytes| decode(&bytes).ok_or("the result of a call is invalid")).transpose()?;
    let id = CallId {
        path: path?,
        number: row.get("number")?,
        function: Cow::Owned(row.get("function")?),
        effect: CallEffect::from_name(&effect).ok_or("a call has an unknown effect")?,
        digest: digest.try_into().map_err(|_| "the digest of a call has an invalid length")?,
        args: open_text(seal, row.get("args")?)?,
    };
    Ok(RecordedCall {
        turn: row.get("turn")?,
        program: row.get("program")?,
        id,
        times: row.get("times")?,
        result,
        time: recorded_time(row)?,
    })
}

pub(super) fn recorded_time(row: &Row) -> Result<Option<CallTime>, Cause> {
    let number = |column: &str| -> Result<Option<u64>, Cause> {
        let value: Option<i64> = row.get(column)?;
        Ok(value.and_then(|value| u64::try_from(value).ok()))
    };
    let dur_ms = number("took")?;
    Ok(number("began")?.map(|began| CallTime { began, dur_ms }))
}

/// Converts a number of milliseconds to its stored form.
pub(super) fn millis(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Checks that exactly one run was changed.
pub(super) fn exactly_one(changed: u64) -> Result<(), Cause> {
    if changed == 1 { Ok(()) } else { Err("there is no such run".into()) }
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String, Cause> {
    Ok(serde_json::to_string(value)?)
}

/// Returns the stored form of a value, encrypted if necessary. Searches for secrets in the value's
/// strings instead of its JSON form, in which escapes could hide them.
pub(super) fn record(
    seal: Option<&RecordSeal>,
    value: &impl serde::Serialize,
) -> Result<String, Cause> {
    let text = json(value)?;
    match seal {
        Some(seal) if seal.needs_for(value)? => seal.seal_text(&text),
        _ => Ok(text),
    }
}

pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Cause> {
    Ok(serde_json::from_str(text)?)
}
