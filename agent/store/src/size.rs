//! Sizes of stored data. A caller with little memory reads the size of data before it loads the
//! data.

use super::TenantStore;
use super::db::{ToValue as _, Value, params};
use super::rows::TREE;
use crate::error::StoreError;

/// Stored data whose size can be queried before the data is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// The conversation and the state of a session.
    Session(&'a str),
    /// Events of a run.
    Events {
        /// The run's id.
        run: &'a str,
        /// The sequence number before the first event.
        after: u64,
        /// Maximum number of events.
        limit: u32,
    },
    /// The turns of a run and the calls of its programs. File changes that are stored as objects,
    /// outside the database, are not included.
    Record(&'a str),
    /// Everything that a fork of a run copies: its turns and calls, and all file changes of the run
    /// and its child runs.
    Fork(&'a str),
    /// The integrations of the tenant.
    Integrations,
    /// The keys of the tenant's variables, without the values.
    Variables,
}

const SESSION: &str = "
    SELECT CAST(COALESCE((SELECT bytes FROM session WHERE tenant = ?1 AND id = ?2), 0) + COALESCE((
        SELECT SUM(OCTET_LENGTH(content) + COALESCE(OCTET_LENGTH(whole), 0)) FROM message
        WHERE tenant = ?1 AND session = ?2), 0) AS BIGINT)";

const EVENTS: &str = "
    SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM (
        SELECT OCTET_LENGTH(body) AS size FROM event WHERE tenant = ?1 AND run = ?2 AND seq > ?3
        ORDER BY seq LIMIT ?4) AS part";

const RECORD: &str = "
    SELECT CAST(COALESCE((
        SELECT SUM(OCTET_LENGTH(body)) FROM turn WHERE tenant = ?1 AND run = ?2), 0) + COALESCE((
        {calls}), 0) AS BIGINT)";

/// The query for the size of what a fork copies: the turns of a run and its child runs, including
/// the objects of their file changes, and the run's calls.
const FORK: &str = "
    SELECT CAST(COALESCE((
        SELECT SUM(OCTET_LENGTH(turn.body) + COALESCE(blob.bytes, 0))
        FROM turn LEFT JOIN blob ON blob.object = turn.object
        WHERE turn.tenant = ?1 AND turn.run IN ({tree})), 0) + COALESCE((
        {calls}), 0) AS BIGINT)";

/// The query for the size of a run's calls. Equal results are stored once, but loaded several times.
const CALLS: &str = "SELECT SUM(OCTET_LENGTH(args) + COALESCE(OCTET_LENGTH(outcome), (
            SELECT OCTET_LENGTH(body) FROM call_value WHERE call_value.tenant = call.tenant
            AND call_value.run = call.run AND call_value.digest = call.shared), 0))
        FROM call WHERE tenant = ?1 AND run = ?2";

const INTEGRATIONS: &str = "
    SELECT CAST(COALESCE(SUM(OCTET_LENGTH(body)), 0) AS BIGINT) FROM integration
    WHERE tenant = ?1";

/// The query for the size of the keys of variables, each with what an entry of a list needs besides.
const VARIABLES: &str = "
    SELECT CAST(COALESCE(SUM(OCTET_LENGTH(key) + 64), 0) AS BIGINT) FROM variable
    WHERE tenant = ?1";

impl TenantStore {
    /// Returns the size of data in the store, in bytes, or 0 if there is no such data.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn stored_bytes(&self, data: Stored<'_>) -> Result<u64, StoreError> {
        let (query, rest): (&str, Vec<Value>) = match data {
            Stored::Session(session) => (SESSION, params![session].to_vec()),
            Stored::Events { run, after, limit } => {
                let after = i64::try_from(after).unwrap_or(i64::MAX);
                (EVENTS, params![run, after, limit].to_vec())
            }
            Stored::Record(run) => (RECORD, params![run].to_vec()),
            Stored::Fork(run) => (FORK, params![run].to_vec()),
            Stored::Integrations => (INTEGRATIONS, Vec::new()),
            Stored::Variables => (VARIABLES, Vec::new()),
        };
        let query = query.replace("{tree}", TREE).replace("{calls}", CALLS);
        self.read(move |transaction, (tenant, _)| {
            let values = [tenant.to_value()].into_iter().chain(rest.iter().cloned());
            let values: Vec<Value> = values.collect();
            let bytes: i64 = transaction.one(&query, &values)?.get(0)?;
            Ok(bytes.max(0).cast_unsigned())
        })
        .await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::time::Duration;

    use wattle_capability::kv::Backend as _;
    use wattle_machine::Message;

    use super::*;
    use crate::tenant::Tenant;
    use crate::{Integration, Store};

    #[tokio::test]
    async fn the_size_of_stored_data_is_known_before_it_is_loaded() {
        let hour = Duration::from_secs(3_600);
        let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, hour).unwrap());
        let stores = [Store::in_memory(hour).unwrap()].into_iter().chain(postgres);
        for store in stores {
            let [alice, bob] =
                ["alice", "bob"].map(|name| store.tenant(&Tenant::new(name).unwrap()));
            let of = Stored::Session("s");
            assert_eq!(alice.stored_bytes(of).await.unwrap(), 0);
            alice.extend("s", vec![Message::user("12345")]).await.unwrap();
            let state = alice.state("s");
            let value = || Some(vec![b'x'; 100]);
            state.update("key".to_owned(), Box::new(move |_| Ok(value()))).await.unwrap();
            assert_eq!(alice.stored_bytes(of).await.unwrap(), 108);
            let integration = Integration {
                name: "shop".to_owned(),
                system_prompt: Some("p".repeat(1_000)),
                agent: None,
                session_id: None,
            };
            assert!(alice.add_integration(&integration).await.unwrap());
            assert!(alice.stored_bytes(Stored::Integrations).await.unwrap() > 1_000);
            assert_eq!(alice.integration("shop").await.unwrap(), Some(integration));
            let events = Stored::Events { run: "none", after: u64::MAX, limit: u32::MAX };
            let runs = [Stored::Record("none"), Stored::Fork("none")];
            for data in [of, events, Stored::Integrations].into_iter().chain(runs) {
                assert_eq!(bob.stored_bytes(data).await.unwrap(), 0, "{data:?}");
            }
            assert_eq!(bob.integration("shop").await.unwrap(), None);
        }
    }
}
