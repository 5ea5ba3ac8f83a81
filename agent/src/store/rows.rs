//! Runs, their calls and their events as rows of tables.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::{Row, Transaction, params};
use serde::de::DeserializeOwned;
use wattle_machine::Envelope;
use wattle_rt::CallEffect;
use wattle_rt::tape::{CallId, decode};

use super::files::add_delta;
use super::seal::{RecordSeal, open_bytes, open_text};
use crate::error::Cause;
use crate::journal::{CallTime, RecordedCall, RunRecord, Status, Turn};

pub(super) fn run_record(seal: Option<&RecordSeal>, row: &Row<'_>) -> Result<RunRecord, Cause> {
    let status: String = row.get("status")?;
    let start = open_text(seal, row.get("opening")?)?;
    let reason: Option<String> = row.get("reason")?;
    let summary: Option<String> = row.get("summary")?;
    Ok(RunRecord {
        id: row.get("id")?,
        session: row.get("session")?,
        status: known_status(&status)?,
        made: row.get::<_, i64>("made")?.cast_unsigned(),
        used: row.get::<_, i64>("used")?.cast_unsigned(),
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

/// Adds events of a run. An event that the run has already stays as it is.
pub(super) fn write_events(
    transaction: &Transaction<'_>,
    (tenant, seal): (&str, Option<&RecordSeal>),
    run: &str,
    events: &[Envelope],
) -> Result<(), Cause> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO event (tenant, run, seq, body, root)
         SELECT ?1, ?2, ?3, ?4, COALESCE(root, id) FROM run WHERE tenant = ?1 AND id = ?2
         ON CONFLICT DO NOTHING",
    )?;
    for event in events {
        let seq = i64::try_from(event.seq).unwrap_or(i64::MAX);
        statement.execute(params![tenant, run, seq, record(seal, event)?])?;
    }
    Ok(())
}

/// Adds the files that a run changed to its session's files. The first turn of a run has the files
/// with which it began.
pub(super) fn keep_files(
    transaction: &Transaction<'_>,
    (tenant, seal): (&str, Option<&RecordSeal>),
    run: &str,
    session: &str,
) -> Result<(), Cause> {
    tree_files(transaction, (tenant, seal), (run, 1), |_, delta| {
        add_delta(transaction, (tenant, seal), session, &delta)
    })
}

/// Passes the changes to the files that a run recorded, from its turn `from` on, and those of the
/// child runs in its tree, to `each`, in the order in which they were recorded, with the number of the
/// run's turn that they belong to.
pub(super) fn tree_files(
    transaction: &Transaction<'_>,
    (tenant, seal): (&str, Option<&RecordSeal>),
    (run, from): (&str, u32),
    mut each: impl FnMut(u32, String) -> Result<(), Cause>,
) -> Result<(), Cause> {
    let mut statement = transaction.prepare(
        "SELECT body, IIF(run = ?2, number, NULL) FROM turn
         WHERE tenant = ?1 AND (run = ?2 AND number >= ?3 OR run IN (
             SELECT id FROM run WHERE tenant = ?1 AND root = ?2)) ORDER BY rowid",
    )?;
    let mut rows = statement.query(params![tenant, run, from])?;
    let mut next = from;
    while let Some(row) = rows.next()? {
        let own: Option<u32> = row.get(1)?;
        let turn: Turn = parse(&open_text(seal, row.get(0)?)?)?;
        if let Some(delta) = turn.files {
            each(own.unwrap_or(next), delta)?;
        }
        next = own.map_or(next, |own| own.saturating_add(1));
    }
    Ok(())
}

pub(super) fn recorded_call(
    seal: Option<&RecordSeal>,
    row: &Row<'_>,
) -> Result<RecordedCall, Cause> {
    let path: String = row.get("path")?;
    let path: Result<Arc<[u32]>, _> =
        path.split('.').filter(|part| !part.is_empty()).map(str::parse).collect();
    let effect: String = row.get("effect")?;
    let digest: Vec<u8> = row.get("digest")?;
    let result: Option<Vec<u8>> = row.get("came")?;
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

pub(super) fn recorded_time(row: &Row<'_>) -> Result<Option<CallTime>, Cause> {
    let number = |column: &str| -> Result<Option<u64>, Cause> {
        let value: Option<i64> = row.get(column)?;
        Ok(value.and_then(|value| u64::try_from(value).ok()))
    };
    let dur_ms = number("took")?;
    Ok(number("began")?.map(|began| CallTime { began, dur_ms }))
}

/// Returns a number of milliseconds as the file has it.
pub(super) fn millis(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Checks that exactly one run was changed.
pub(super) fn exactly_one(changed: usize) -> Result<(), Cause> {
    if changed == 1 { Ok(()) } else { Err("there is no such run".into()) }
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String, Cause> {
    Ok(serde_json::to_string(value)?)
}

/// Returns the form of a value in the file. Its texts are searched, and not their spelling as JSON.
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
