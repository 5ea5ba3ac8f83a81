//! Pages of runs and of the queue, limited by their number and by their total size.

use super::TenantStore;
use super::db::{ToValue as _, Transaction, Value, params};
use super::rows::{QUEUED, RUN, millis, queued_run};
use crate::error::{Cause, StoreError};
use crate::journal::{RunFilter, RunRequest};

/// A query for the newest rows of a table, with the query's parameters. The first parameter is the
/// tenant.
struct Selection {
    table: &'static str,
    columns: &'static str,
    /// The column by which the rows are sorted. Rows with equal values are sorted by their ids.
    order: &'static str,
    /// The SQL expression for the size of a row, in bytes. Its value is never 0.
    size: &'static str,
    /// The SQL conditions, each preceded by `AND`.
    conditions: String,
    params: Vec<Value>,
}

impl Selection {
    /// Adds an SQL condition that consists of `condition`, which must end with an operator, and a
    /// parameter for `value`.
    fn and(&mut self, condition: &str, value: Value) {
        self.params.push(value);
        self.conditions += &format!(" AND {condition} ?{}", self.params.len());
    }

    /// Adds the condition that a row comes after the row with the id `id` and the value `place` in
    /// the sort column.
    fn after(&mut self, place: i64, id: &str) {
        self.params.extend([place.to_value(), id.to_value()]);
        let (order, at, id) = (self.order, self.params.len() - 1, self.params.len());
        self.conditions += &format!(" AND {order} <= ?{at} AND ({order} < ?{at} OR id < ?{id})");
    }

    /// Returns the query and its parameters. `sort` is the expression by which the rows are sorted.
    /// If `bytes` is given, the query returns only the first rows whose total size is at most
    /// `bytes`, and always the first row. The database then neither reads nor sorts the contents of
    /// other large rows.
    fn query(
        mut self,
        sort: &str,
        limit: Option<u32>,
        bytes: Option<usize>,
    ) -> (String, Vec<Value>) {
        let most = limit.map(|limit| {
            self.params.push(limit.to_value());
            format!(" LIMIT ?{}", self.params.len())
        });
        let Selection { table, columns, order, size, conditions, mut params } = self;
        let rest = format!(
            "FROM {table} WHERE tenant = ?1{conditions} ORDER BY {sort} DESC, id DESC{}",
            most.unwrap_or_default()
        );
        let Some(bytes) = bytes else { return (format!("SELECT {columns} {rest}"), params) };
        params.push(i64::try_from(bytes).unwrap_or(i64::MAX).to_value());
        // The planner of SQLite does not change the order of a `CROSS JOIN`.
        let query = format!(
            "SELECT {columns} FROM (
                 SELECT chosen, size, SUM(size) OVER (
                     ORDER BY place DESC, chosen DESC ROWS UNBOUNDED PRECEDING) AS total
                 FROM (SELECT id AS chosen, {order} AS place, {size} AS size {rest}) AS newest
             ) AS page CROSS JOIN {table}
             WHERE {table}.tenant = ?1 AND {table}.id = page.chosen
             AND (page.total = page.size OR page.total <= ?{})
             ORDER BY {table}.{order} DESC, {table}.id DESC",
            params.len()
        );
        (query, params)
    }
}

/// Returns the time at which a run began, or `None` if there is no such run.
pub(super) fn made_of(
    transaction: &mut Transaction<'_>,
    tenant: &str,
    run: &str,
) -> Result<Option<i64>, Cause> {
    let query = "SELECT created FROM run WHERE tenant = ?1 AND id = ?2";
    transaction.first(query, params![tenant, run])?.map(|row| row.get(0)).transpose()
}

/// Returns a query for the runs that match a filter, newest first, and the query's parameters.
/// `made` is the time at which the filter's run `before` began, or `None` if there is no such run.
pub(super) fn selected_runs(
    tenant: &str,
    filter: &RunFilter,
    created: Option<i64>,
) -> (String, Vec<Value>) {
    let RunFilter { status, session, tree_of, before, changed_since, limit, bytes } = filter;
    let mut runs = Selection {
        table: "run",
        columns: RUN,
        order: "created",
        size: "COALESCE(OCTET_LENGTH(summary), 0) + COALESCE((
                   SELECT OCTET_LENGTH(body) FROM opening
                   WHERE opening.tenant = run.tenant AND opening.run = run.id), 1)",
        conditions: String::new(),
        params: vec![tenant.to_value()],
    };
    if let Some(status) = status {
        runs.and("status =", status.name().to_value());
    }
    if let Some(session) = session {
        runs.and("session =", session.to_value());
    }
    match tree_of {
        Some(root) => runs.and("root =", root.to_value()),
        None => runs.conditions += " AND root IS NULL",
    }
    if let Some(since) = changed_since {
        runs.and("used >=", millis(*since).to_value());
    }
    match (before, created) {
        // The list is not sorted by id: a run may begin long after it was requested, and the ids of
        // child runs have no order.
        (Some(before), Some(created)) => runs.after(created, before),
        (Some(before), None) => runs.and("id <", before.to_value()),
        (None, _) => {}
    }
    // `made + 0` makes the planner use an index for the filter instead of the index on `made`. This
    // is usually faster, because few runs match.
    let is_filtered = status.is_some() || session.is_some() || tree_of.is_some();
    let sort = if is_filtered || changed_since.is_some() { "created + 0" } else { "created" };
    runs.query(sort, *limit, *bytes)
}

impl TenantStore {
    /// Returns the queued runs that a filter selects, the newest request first. Returns `None` if
    /// the filter's run `before` is not queued. The filter's `status` and `tree_of` have no effect.
    pub async fn queue_page(
        &self,
        filter: &RunFilter,
    ) -> Result<Option<Vec<RunRequest>>, StoreError> {
        let filter = filter.clone();
        self.read(move |transaction, (tenant, seal)| {
            let RunFilter { session, before, changed_since, limit, bytes, .. } = &filter;
            let mut queue = Selection {
                table: "queue",
                columns: QUEUED,
                order: "position",
                size: "OCTET_LENGTH(message) + OCTET_LENGTH(origin)",
                conditions: String::new(),
                params: vec![tenant.to_value()],
            };
            if let Some(before) = before {
                let query = "SELECT position FROM queue WHERE tenant = ?1 AND id = ?2";
                let Some(row) = transaction.first(query, params![tenant, before])? else {
                    return Ok(None);
                };
                queue.after(row.get(0)?, before);
            }
            if let Some(session) = session {
                queue.and("session =", session.to_value());
            }
            if let Some(since) = changed_since {
                queue.and("created >=", millis(*since).to_value());
            }
            let (query, params) = queue.query("position", *limit, *bytes);
            transaction.query(&query, &params, |row| queued_run(seal, row)).map(Some)
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::time::Duration;

    use crate::Store;
    use crate::journal::{Journal as _, RunFilter, RunRecord, RunStart, Status};
    use crate::tenant::Tenant;

    #[tokio::test]
    async fn a_part_of_a_list_has_the_first_runs_that_fit() {
        let hour = Duration::from_secs(3_600);
        let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, hour).unwrap());
        for store in [Store::in_memory(hour).unwrap()].into_iter().chain(postgres) {
            let of = store.tenant(&Tenant::default());
            for id in ["r1", "r2", "r3", "r4"] {
                let start = RunStart::new("x".repeat(100_000), serde_json::json!({}));
                let session = Some("s".to_owned());
                of.open(RunRecord { session, ..RunRecord::new(id, start) }).await.unwrap();
            }
            let listed = async |filter: RunFilter| -> Vec<String> {
                of.runs(filter).await.unwrap().into_iter().map(|run| run.id).collect()
            };
            let part = |bytes| RunFilter { bytes: Some(bytes), ..RunFilter::default() };
            assert_eq!(listed(part(1)).await, ["r4"], "the first run is always returned");
            assert_eq!(listed(part(250_000)).await, ["r4", "r3"]);
            assert_eq!(listed(part(1 << 30)).await, ["r4", "r3", "r2", "r1"]);
            assert_eq!(listed(RunFilter { limit: Some(3), ..part(1 << 30) }).await.len(), 3);
            let before = Some("r3".to_owned());
            let after = RunFilter { before, ..part(250_000) };
            assert_eq!(listed(after.clone()).await, ["r2", "r1"]);
            let filtered = RunFilter {
                status: Some(Status::Open),
                session: Some("s".to_owned()),
                changed_since: Some(1),
                ..after
            };
            assert_eq!(listed(filtered).await, ["r2", "r1"]);
        }
    }
}
