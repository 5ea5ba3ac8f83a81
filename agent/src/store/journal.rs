//! The journal of runs in the store.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::de::DeserializeOwned;
use wattle_machine::Message;
use wattle_rt::Effect;
use wattle_rt::tape::{Mark, decode, encode};

use super::{Store, StoreError, hold, now, write_turns};
use crate::journal::{Answer, Call, Hold, Journal, Opened, Status, Turn};

/// How long a run that has ended is kept: 30 days, in milliseconds.
const KEPT: i64 = 30 * 24 * 3_600 * 1_000;

/// The session whose state is a run's own, where it belongs to none. No session that somebody names has a `/` in its id.
#[must_use]
pub fn own_session(run: &str) -> String {
    format!("run/{run}")
}

impl Journal for Store {
    fn open(&self, run: Opened) -> Answer<'_, ()> {
        Box::pin(self.journal("write", move |transaction| {
            let oldest = now().saturating_sub(KEPT);
            transaction.execute("DELETE FROM run WHERE status = 'ended' AND used < ?1", params![oldest])?;
            transaction.execute(
                "INSERT INTO run (id, session, status, made, used, opening) VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                params![run.id, run.session, run.status.name(), now(), json(&run.opening)?],
            )?;
            Ok(())
        }))
    }

    fn turn(&self, run: &str, turn: Turn) -> Answer<'_, ()> {
        let run = run.to_owned();
        Box::pin(self.journal("write", move |transaction| {
            transaction.execute("UPDATE run SET used = ?2 WHERE id = ?1", params![run, now()])?;
            transaction.execute(
                "INSERT INTO turn (run, number, body)
                 SELECT ?1, COALESCE(MAX(number) + 1, 0), ?2 FROM turn WHERE run = ?1",
                params![run, json(&turn)?],
            )?;
            Ok(())
        }))
    }

    fn calls(&self, run: &str, calls: Vec<Call>) -> Answer<'_, ()> {
        let run = run.to_owned();
        Box::pin(self.journal("write", move |transaction| {
            let mut statement = transaction.prepare_cached(
                "INSERT INTO call (run, turn, program, path, number, times, function, effect, digest, args, came)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT (run, turn, program, path, number)
                 DO UPDATE SET times = excluded.times, came = COALESCE(excluded.came, came)",
            )?;
            for Call { turn, program, mark, times, came } in calls {
                let Mark { path, number, function, effect, digest, args } = mark;
                let path: Vec<String> = path.iter().map(u32::to_string).collect();
                statement.execute(params![
                    run,
                    turn,
                    program,
                    path.join("."),
                    number,
                    times,
                    function,
                    effect.name(),
                    digest.as_slice(),
                    args,
                    came.as_ref().map(encode),
                ])?;
            }
            Ok(())
        }))
    }

    fn stand(&self, run: &str, status: Status, turns: Vec<Message>) -> Answer<'_, ()> {
        let run = run.to_owned();
        Box::pin(self.journal("write", move |transaction| {
            let session: Option<String> = transaction.query_row(
                "UPDATE run SET status = ?2, used = ?3 WHERE id = ?1 RETURNING session",
                params![run, status.name(), now()],
                |row| row.get(0),
            )?;
            if let Some(session) = session.filter(|_| !turns.is_empty()) {
                write_turns(transaction, &session, &turns)?;
            }
            if status == Status::Ended {
                transaction.execute("DELETE FROM session WHERE id = ?1", params![own_session(&run)])?;
                // `0` is what comes behind `/`.
                transaction.execute("DELETE FROM changed WHERE call > ?1 || '/' AND call < ?1 || '0'", params![run])?;
            }
            Ok(())
        }))
    }

    fn run(&self, run: &str) -> Answer<'_, Option<Opened>> {
        let run = run.to_owned();
        Box::pin(self.journal("read", move |transaction| {
            let mut statement = transaction.prepare("SELECT * FROM run WHERE id = ?1")?;
            statement.query_row(params![run], |row| Ok(opened(row))).optional()?.transpose()
        }))
    }

    fn runs(&self, status: Option<Status>) -> Answer<'_, Vec<Opened>> {
        Box::pin(self.journal("read", move |transaction| {
            let mut statement =
                transaction.prepare("SELECT * FROM run WHERE ?1 IS NULL OR status = ?1 ORDER BY made DESC, id DESC")?;
            let rows = statement.query_map(params![status.map(Status::name)], |row| Ok(opened(row)))?;
            rows.map(|row| row?).collect()
        }))
    }

    fn turns(&self, run: &str) -> Answer<'_, Vec<Turn>> {
        let run = run.to_owned();
        Box::pin(self.journal("read", move |transaction| {
            let mut statement = transaction.prepare("SELECT body FROM turn WHERE run = ?1 ORDER BY number")?;
            let rows = statement.query_map(params![run], |row| row.get::<_, String>(0))?;
            rows.map(|body| parse(&body?)).collect()
        }))
    }

    fn calls_of(&self, run: &str, turn: u32) -> Answer<'_, Vec<Call>> {
        let run = run.to_owned();
        Box::pin(self.journal("read", move |transaction| {
            let mut statement = transaction
                .prepare("SELECT * FROM call WHERE run = ?1 AND turn = ?2 ORDER BY program, path, number")?;
            let rows = statement.query_map(params![run, turn], |row| Ok(call(row)))?;
            rows.map(|row| row?).collect()
        }))
    }

    fn hold(&self, name: &str) -> Answer<'_, Option<Hold>> {
        Box::pin(hold::take(self.clone(), name.to_owned()))
    }
}

/// Why a row cannot be read or written.
type Bad = super::Cause;

fn opened(row: &Row<'_>) -> Result<Opened, Bad> {
    let status: String = row.get("status")?;
    let opening: String = row.get("opening")?;
    Ok(Opened {
        id: row.get("id")?,
        session: row.get("session")?,
        status: [Status::Open, Status::Parked, Status::Ended]
            .into_iter()
            .find(|known| known.name() == status)
            .ok_or("a run has an unknown status")?,
        made: row.get::<_, i64>("made")?.cast_unsigned(),
        used: row.get::<_, i64>("used")?.cast_unsigned(),
        opening: parse(&opening)?,
    })
}

fn call(row: &Row<'_>) -> Result<Call, Bad> {
    let path: String = row.get("path")?;
    let path: Result<Arc<[u32]>, _> = path.split('.').filter(|part| !part.is_empty()).map(str::parse).collect();
    let effect: String = row.get("effect")?;
    let digest: Vec<u8> = row.get("digest")?;
    let came: Option<Vec<u8>> = row.get("came")?;
    let came = came.map(|bytes| decode(&bytes).ok_or("what came of a call cannot be read")).transpose()?;
    let mark = Mark {
        path: path?,
        number: row.get("number")?,
        function: Cow::Owned(row.get("function")?),
        effect: Effect::from_name(&effect).ok_or("a call has an unknown effect")?,
        digest: digest.try_into().map_err(|_| "the digest of a call has another length")?,
        args: row.get("args")?,
    };
    Ok(Call { turn: row.get("turn")?, program: row.get("program")?, mark, times: row.get("times")?, came })
}

fn json(value: &impl serde::Serialize) -> Result<String, Bad> {
    Ok(serde_json::to_string(value)?)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Bad> {
    Ok(serde_json::from_str(text)?)
}

impl Store {
    /// Does something in one transaction.
    async fn journal<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Bad> + Send + 'static,
    ) -> Result<T, StoreError> {
        let behavior = if what == "read" { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
        let worked = self.with(StoreError::new(what), move |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(behavior)?;
            Ok(match work(&transaction) {
                Ok(done) => transaction.commit().map(|()| Ok(done))?,
                Err(bad) => Err(bad),
            })
        });
        worked.await?.map_err(StoreError::new(what))
    }
}
