//! Pages of the queue of runs.

use std::ops::ControlFlow;

use super::TenantStore;
use super::db::{ToValue as _, params};
use super::rows::{QUEUED, millis, queued_run};
use crate::error::StoreError;
use crate::journal::{QueuedRun, RunFilter};

impl TenantStore {
    /// Returns the queued runs that a filter selects, the newest request first. Returns `None` if
    /// the filter's run `before` is not queued. The filter's `status` and `tree_of` have no effect.
    pub(crate) async fn queue_page(
        &self,
        filter: &RunFilter,
    ) -> Result<Option<Vec<QueuedRun>>, StoreError> {
        let filter = filter.clone();
        self.read(move |transaction, (tenant, seal)| {
            let (mut place, mut id) = (i64::MAX, "");
            if let Some(before) = &filter.before {
                let query = "SELECT position FROM queue WHERE tenant = ?1 AND id = ?2";
                let Some(row) = transaction.first(query, params![tenant, before])? else {
                    return Ok(None);
                };
                (place, id) = (row.get(0)?, before.as_str());
            }
            let since = millis(filter.changed_since.unwrap_or_default());
            let limit = filter.limit.map_or(i64::MAX, i64::from);
            let mut values = params![tenant, place, id, since, limit].to_vec();
            let mut query = format!(
                "SELECT {QUEUED} FROM queue WHERE tenant = ?1
                 AND (position < ?2 OR position = ?2 AND id < ?3) AND made >= ?4"
            );
            if let Some(session) = &filter.session {
                values.push(session.to_value());
                query += " AND session = ?6";
            }
            query += " ORDER BY position DESC, id DESC LIMIT ?5";
            let (mut runs, mut room) = (Vec::new(), filter.bytes.unwrap_or(usize::MAX));
            transaction.each(&query, &values, |row| {
                let size = row.size();
                if size > room && !runs.is_empty() {
                    return Ok(ControlFlow::Break(()));
                }
                room = room.saturating_sub(size);
                runs.push(queued_run(seal, &row)?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(Some(runs))
        })
        .await
    }
}
