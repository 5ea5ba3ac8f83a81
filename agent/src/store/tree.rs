//! The events of a tree of runs, in the order in which they were recorded.
//!
//! The order is that of the rows. A row is never changed or moved before another one, and a reader
//! that sees a row sees all rows before it. So the place of an event in the order is the same for
//! every reader, also after a restart, and the event itself can name it.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use wattle_machine::Envelope;

use super::TenantStore;
use super::rows::{known_status, parse};
use super::seal::open_text;
use crate::error::StoreError;
use crate::journal::Status;

/// The state of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeStatus {
    /// The run at the top of the tree, if this is a child run.
    pub(crate) above: Option<String>,
    /// The status of the run at the top.
    pub(crate) top: Status,
    /// If true, all child runs have ended.
    pub(crate) children_ended: bool,
}

impl TenantStore {
    /// Returns at most `limit` events of the tree of a run at the top, in their order: those after
    /// the event of this run with this number, or the first ones.
    pub(crate) async fn tree_events(
        &self,
        top: &str,
        after: Option<(String, u64)>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreError> {
        let (top, seal) = (top.to_owned(), self.seal.clone());
        self.journal("read", move |transaction, tenant| {
            let (run, seq) = position(after);
            let mut statement = transaction.prepare_cached(
                "SELECT body FROM event WHERE tenant = ?1 AND root = ?2 AND rowid > COALESCE(
                     (SELECT rowid FROM event WHERE tenant = ?1 AND run = ?3 AND seq = ?4), 0)
                 ORDER BY rowid LIMIT ?5",
            )?;
            let rows = statement
                .query_map(params![tenant, top, run, seq, limit], |row| row.get::<_, String>(0))?;
            rows.map(|body| parse(&open_text(seal.as_deref(), body?)?)).collect()
        })
        .await
    }

    /// Returns the number of the newest event of each run of a tree, up to an event. Returns `None`
    /// if the tree has no such event.
    pub(crate) async fn tree_position(
        &self,
        top: &str,
        (run, seq): (String, u64),
    ) -> Result<Option<BTreeMap<String, u64>>, StoreError> {
        let top = top.to_owned();
        self.journal("read", move |transaction, tenant| {
            let (run, seq) = position(Some((run, seq)));
            let row: Option<i64> = transaction
                .query_row(
                    "SELECT rowid FROM event WHERE tenant = ?1 AND root = ?2 AND run = ?3 AND seq \
                     = ?4",
                    params![tenant, top, run, seq],
                    |row| row.get(0),
                )
                .optional()?;
            let Some(row) = row else { return Ok(None) };
            let mut statement = transaction.prepare_cached(
                "SELECT run, MAX(seq) FROM event WHERE tenant = ?1 AND root = ?2 AND rowid <= ?3
                 GROUP BY run",
            )?;
            let rows = statement.query_map(params![tenant, top, row], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
            })?;
            Ok(Some(rows.collect::<Result<_, _>>()?))
        })
        .await
    }

    /// Returns the state of the tree of a run at the top, or `None` if no run with this id has
    /// begun.
    pub(crate) async fn tree_status(&self, top: &str) -> Result<Option<TreeStatus>, StoreError> {
        let top = top.to_owned();
        self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare_cached(
                "SELECT status, root, NOT EXISTS (
                     SELECT 1 FROM run AS child
                     WHERE child.tenant = ?1 AND child.root = ?2 AND child.status != 'ended')
                 FROM run WHERE tenant = ?1 AND id = ?2",
            )?;
            let status = statement
                .query_row(params![tenant, top], |row| {
                    Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
                })
                .optional()?;
            let Some((top, above, children_ended)) = status else { return Ok(None) };
            Ok(Some(TreeStatus { above, top: known_status(&top)?, children_ended }))
        })
        .await
    }

    /// Returns the runs at the top of a tree that have ended although child runs of theirs have not.
    pub(crate) async fn ended_above_open(&self) -> Result<Vec<String>, StoreError> {
        self.journal("read", move |transaction, tenant| {
            let mut statement = transaction.prepare(
                "SELECT DISTINCT top.id FROM run AS child
                 JOIN run AS top ON top.tenant = child.tenant AND top.id = child.root
                 WHERE child.tenant = ?1 AND child.status != 'ended' AND top.status = 'ended'",
            )?;
            let tops = statement.query_map(params![tenant], |row| row.get(0))?;
            Ok(tops.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Returns an event as the parameters of a query.
fn position(event: Option<(String, u64)>) -> (Option<String>, i64) {
    let (run, seq) = event.map_or((None, 0), |(run, seq)| (Some(run), seq));
    (run, i64::try_from(seq).unwrap_or(i64::MAX))
}
