//! The events of a run tree, in the order in which they were recorded.
//!
//! Each event has a position in its tree's order. The row of the root run contains the number of
//! positions. A transaction that adds events locks that row until it ends, so a reader that sees an
//! event also sees all earlier events. Therefore the order is the same for every reader and after a
//! restart, and a reader can resume after any event.

use std::collections::BTreeMap;

use wattle_machine::Envelope;

use super::TenantStore;
use super::db::{Transaction, params};
use super::rows::{known_status, parse};
use super::seal::open_text;
use crate::error::{Cause, StoreError};
use crate::journal::Status;

/// The state of a run and its child runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeStatus {
    /// The root run of the tree if the run is a child run, or `None` if it is itself a root run.
    pub above: Option<String>,
    /// The run's status.
    pub top: Status,
    /// If true, all child runs have ended.
    pub children_ended: bool,
}

impl TenantStore {
    /// Returns at most `limit` events of the tree with the root run `top`, in order. Starts after
    /// the event `after`, given by its run and its sequence number, or at the first event if
    /// `after` is `None` or the tree does not contain that event.
    pub async fn tree_events(
        &self,
        top: &str,
        after: Option<(String, u64)>,
        limit: u32,
    ) -> Result<Vec<Envelope>, StoreError> {
        let top = top.to_owned();
        self.read(move |transaction, (tenant, seal)| {
            let after = match &after {
                Some(after) => place(transaction, (tenant, &top), after)?.unwrap_or(0),
                None => 0,
            };
            let query = "SELECT body FROM event WHERE tenant = ?1 AND root = ?2 AND place > ?3
                         ORDER BY place LIMIT ?4";
            transaction.query(query, params![tenant, top, after, i64::from(limit)], |row| {
                parse(&open_text(seal, row.get(0)?)?)
            })
        })
        .await
    }

    /// Returns the sequence number of the latest event of each run in a tree, considering only
    /// events up to the given one. Returns `None` if the tree does not contain that event.
    pub async fn tree_position(
        &self,
        top: &str,
        event: (String, u64),
    ) -> Result<Option<BTreeMap<String, u64>>, StoreError> {
        let top = top.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let Some(place) = place(transaction, (tenant, &top), &event)? else { return Ok(None) };
            let query = "SELECT run, MAX(seq) FROM event WHERE tenant = ?1 AND root = ?2 AND place \
                         <= ?3 GROUP BY run";
            let newest = transaction.query(query, params![tenant, top, place], |row| {
                Ok((row.get(0)?, row.get::<i64>(1)?.cast_unsigned()))
            })?;
            Ok(Some(newest.into_iter().collect()))
        })
        .await
    }

    /// Returns the state of the run `top` and its child runs, or `None` if no run with this id has
    /// begun.
    pub async fn tree_status(&self, top: &str) -> Result<Option<TreeStatus>, StoreError> {
        let top = top.to_owned();
        self.read(move |transaction, (tenant, _)| {
            let query = "SELECT status, root, NOT EXISTS (
                             SELECT 1 FROM run AS child
                             WHERE child.tenant = ?1 AND child.root = ?2 \
                                 AND child.status <> 'ended')
                         FROM run WHERE tenant = ?1 AND id = ?2";
            let Some(row) = transaction.first(query, params![tenant, top])? else {
                return Ok(None);
            };
            let top = known_status(&row.get::<String>(0)?)?;
            Ok(Some(TreeStatus { above: row.get(1)?, top, children_ended: row.get(2)? }))
        })
        .await
    }

    /// Returns the ids of the ended root runs that still have unfinished child runs.
    pub async fn ended_above_open(&self) -> Result<Vec<String>, StoreError> {
        self.read(|transaction, (tenant, _)| {
            let query = "SELECT DISTINCT top.id FROM run AS child
                         JOIN run AS top ON top.tenant = child.tenant AND top.id = child.root
                         WHERE child.tenant = ?1 AND child.status <> 'ended' \
                             AND top.status = 'ended'";
            transaction.query(query, params![tenant], |row| row.get(0))
        })
        .await
    }
}

/// Returns an event's position in its tree's order, or `None` if the tree does not contain the
/// event.
fn place(
    transaction: &mut Transaction<'_>,
    (tenant, top): (&str, &str),
    (run, seq): &(String, u64),
) -> Result<Option<i64>, Cause> {
    let seq = i64::try_from(*seq).unwrap_or(i64::MAX);
    let query = "SELECT place FROM event WHERE tenant = ?1 AND root = ?2 AND run = ?3 AND seq = ?4";
    let found = transaction.first(query, params![tenant, top, run, seq])?;
    found.map(|row| row.get(0)).transpose()
}
