//! PostgreSQL, and servers that speak its protocol.
//!
//! The driver is tokio-postgres and not sqlx, for two reasons. First, sqlx and rusqlite both link
//! libsqlite3, and only one crate in a build may link it. Second, the store's statements are
//! strings that both engines execute, and compile-time checks would cover only one engine.
//!
//! **Retries.** A transaction has no effect if it conflicts with another transaction (40001,
//! 40P01), or if its connection is lost before its commit is sent. It is then repeated with an
//! increasing delay. If the connection is lost after the commit was sent, the outcome of the
//! transaction is unknown. The store then looks up the transaction's status by its ID, and repeats
//! the transaction only if it was rolled back. If a server does not assign transaction IDs, the
//! transaction is not repeated, and the caller gets an error.
//!
//! **Poolers.** A pooler by session is like the server itself. A pooler by transaction is named in the
//! URL, since it changes how this module works ([`Pooled`]); the first connection finds out if one is
//! not named.
//!
//! **Sessions** have time limits for statements, for locks and for idle transactions. Therefore a
//! process that is paused during a transaction holds its locks only for a limited time.

mod failure;
mod notices;
mod schema;
mod statements;
mod tls;
mod url;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, SimpleQueryMessage};

use self::failure::{describe, of_pool};
use self::notices::Notices;
use self::statements::{Open, ParameterTypes, within};
use self::tls::Tls;
use self::url::Location;
pub(crate) use self::url::{certificates, shown};
use super::{Access, Opening, Transaction, Work};
use crate::error::Cause;
use crate::error::{DbError, FailureKind, kind_of};

/// Maximum number of connections per process.
const CONNECTIONS: usize = 16;
/// Timeout for connecting to the server.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum time that a transaction waits for a free connection.
const WAIT: Duration = Duration::from_secs(10);
/// Maximum time to wait for a response from the server. The server's own timeouts are shorter.
const ANSWER: Duration = Duration::from_secs(20);
/// Maximum number of attempts at a transaction.
const ATTEMPTS: u32 = 8;
/// Time after which a failed transaction is no longer retried.
const PATIENCE: Duration = Duration::from_secs(10);
/// The delay before the first retry of a transaction. It doubles with each retry.
const FIRST_DELAY: Duration = Duration::from_millis(10);

/// Returns the statements that make the settings of each session: the schema, and the timeouts for
/// statements, for waiting for locks, and for idle transactions, in milliseconds. `set` is `SET`, or
/// `SET LOCAL` for the settings of a transaction.
fn settings(set: &str, schema: &str) -> String {
    format!(
        "{set} search_path TO \"{schema}\"; {set} statement_timeout = 10000; \
         {set} lock_timeout = 8000; {set} idle_in_transaction_session_timeout = 10000;"
    )
}

/// The hint for a pooler that the URL does not name.
const POOLED: &str = "a pooler gives the transactions of a connection different sessions of the \
                      server\nhint: add `pooler=transaction` to the parameters of the store's URL, \
                      or let the pooler keep a session for each connection";

/// A database on a PostgreSQL server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Postgres(Arc<Inner>);

struct Inner {
    pool: Pool,
    /// The settings for the connection that receives notifications.
    connection: (Config, Tls),
    /// The state for a pooler by transaction, if the URL names one.
    pooled: Option<Pooled>,
    /// The handle for notifications, created on first use.
    notices: OnceLock<Notices>,
    schema: String,
    shown: String,
    opening: Opening,
    /// Returns the statements that create the tables.
    tables: fn() -> String,
    /// The server's properties, set once the schema has been migrated.
    server: OnceCell<Server>,
}

/// The state for connections through a pooler that gives each transaction another session of the
/// server. Nothing may then outlive a transaction: its settings are made anew, its statements have no
/// names, and the process does not listen.
struct Pooled {
    /// The statements that make the settings of a transaction.
    settings: String,
    types: ParameterTypes,
}

/// Properties of the server.
#[derive(Clone, Copy, Debug)]
struct Server {
    /// If true, the server assigns transaction IDs and can report the status of a transaction given
    /// its ID.
    has_statuses: bool,
}

/// The result of one attempt at a transaction.
enum Attempt {
    /// The transaction has finished.
    Done,
    /// The transaction had no effect.
    Failed(Cause),
    /// The commit was sent, but its outcome is unknown. `number` is the transaction ID, if the
    /// server assigns one.
    Unknown { number: Option<String>, cause: DbError },
}

impl Postgres {
    /// Creates the connection pool for a database. The first transaction opens a connection.
    ///
    /// # Errors
    /// If the URL is invalid, or the certificates that it names cannot be read.
    pub(crate) fn new(
        url: &str,
        opening: Opening,
        tables: fn() -> String,
    ) -> Result<Postgres, Cause> {
        let Location { mut config, schema, tls, is_pooled, shown } = Location::parse(url)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("wattle");
        }
        config.tcp_user_timeout(ANSWER).keepalives_idle(ANSWER);
        let tls = Tls::new(&tls)?;
        let recycling_method = RecyclingMethod::Fast;
        let connection = (config.clone(), tls.clone());
        let manager = Manager::from_config(config, tls, ManagerConfig { recycling_method });
        let session = if is_pooled { String::new() } else { settings("SET", &schema) };
        let prepare = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let session = session.clone();
            Box::pin(
                async move { client.batch_execute(&session).await.map_err(HookError::Backend) },
            )
        });
        let limits = Timeouts { wait: Some(WAIT), create: Some(WAIT), recycle: Some(WAIT) };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .timeouts(limits)
            .runtime(Runtime::Tokio1)
            .post_create(prepare)
            .build()?;
        Ok(Postgres(Arc::new(Inner {
            pool,
            connection,
            pooled: is_pooled.then(|| Pooled {
                settings: settings("SET LOCAL", &schema),
                types: ParameterTypes::default(),
            }),
            notices: OnceLock::new(),
            schema,
            shown,
            opening,
            tables,
            server: OnceCell::new(),
        })))
    }

    /// Returns the handle for notifications about the schema. The first call starts the tasks that
    /// send and receive them.
    pub(super) fn notices(&self) -> &Notices {
        self.0.notices.get_or_init(|| {
            let listener = self.0.pooled.is_none().then(|| self.0.connection.clone());
            Notices::start(self.0.pool.clone(), listener, &self.0.schema)
        })
    }

    /// Returns the URL with its password masked.
    pub(crate) fn shown(&self) -> &str {
        &self.0.shown
    }

    pub(super) async fn run(&self, access: Access, work: Work) -> Result<(), Cause> {
        self.attempt_up_to(ATTEMPTS, access, work).await
    }

    /// Runs `work` in a transaction to find out whether the database can be written. A second
    /// attempt is made only because a connection of the pool may be stale.
    pub(super) async fn probe(&self, work: Work) -> Result<(), Cause> {
        self.attempt_up_to(2, Access::Durable, work).await
    }

    async fn attempt_up_to(
        &self,
        attempts: u32,
        access: Access,
        mut work: Work,
    ) -> Result<(), Cause> {
        let (began, mut delay) = (Instant::now(), FIRST_DELAY);
        for attempt in 1.. {
            let ended;
            (work, ended) = self.attempt(access, work).await?;
            let cause = match ended {
                Attempt::Done => return Ok(()),
                Attempt::Failed(cause) => cause,
                Attempt::Unknown { number, cause } => {
                    if self.has_landed(number, &cause).await? {
                        return Ok(());
                    }
                    cause.into()
                }
            };
            let repeats = matches!(kind_of(&cause), FailureKind::Conflict | FailureKind::Lost);
            if !repeats || attempt >= attempts || began.elapsed() > PATIENCE {
                return Err(cause);
            }
            tokio::time::sleep(delay.mul_f64(0.5 + fastrand::f64())).await;
            delay *= 2;
        }
        Err("a transaction was tried too often".into())
    }

    /// Attempts a transaction once. Also returns `work`, so that the caller can repeat the
    /// transaction.
    async fn attempt(&self, access: Access, mut work: Work) -> Result<(Work, Attempt), Cause> {
        let connected = async {
            let server = self.server().await?;
            Ok::<_, DbError>((server, self.connection().await?))
        };
        let (server, client) = match connected.await {
            Ok(connected) => connected,
            // The server may be starting or failing over.
            Err(error) => return Ok((work, Attempt::Failed(error.into()))),
        };
        let (handle, inner) = (Handle::current(), Arc::clone(&self.0));
        let task = tokio::task::spawn_blocking(move || {
            let pooled = inner.pooled.as_ref();
            let ended = transact(&client, &handle, (access, server, pooled), &mut work);
            if !matches!(ended, Attempt::Done) {
                // The session may be in any state, so its connection is not reused.
                drop(Object::take(client));
            }
            (work, ended)
        });
        Ok(task.await?)
    }

    /// Makes the space of deleted rows usable again and collects statistics for the planner.
    pub(super) async fn vacuum(&self, tables: &[&str]) -> Result<(), DbError> {
        self.server().await?;
        // The session has no statement timeout afterwards, so its connection is removed from the
        // pool.
        let client = Object::take(self.connection().await?);
        let schema = &self.0.schema;
        let tables: Vec<_> = tables.iter().map(|table| format!("\"{schema}\".{table}")).collect();
        let vacuum = format!("VACUUM (ANALYZE) {}", tables.join(", "));
        let timeout = self.0.pooled.is_none().then_some("SET statement_timeout = 0");
        for statement in timeout.into_iter().chain([vacuum.as_str()]) {
            client.batch_execute(statement).await.map_err(|error| describe(&error))?;
        }
        Ok(())
    }

    /// Returns a connection from the pool.
    async fn connection(&self) -> Result<Object, DbError> {
        self.0.pool.get().await.map_err(of_pool)
    }

    /// Returns the server's properties. The first successful call creates the tables if they are absent.
    async fn server(&self) -> Result<Server, DbError> {
        let prepare = async || {
            // The connection does not return to the pool: if the caller stops waiting while the
            // tables are created, its transaction is still open.
            let client = Object::take(self.connection().await?);
            if self.0.pooled.is_none() && self.is_pooled(&client).await? {
                return Err(DbError::new(FailureKind::Other, POOLED));
            }
            let settings = self.0.pooled.as_ref().map(|pooled| pooled.settings.as_str());
            let tables = schema::Tables {
                schema: &self.0.schema,
                begin: format!("BEGIN; {}", settings.unwrap_or_default()),
                opening: self.0.opening,
                create: self.0.tables,
            };
            schema::prepare(&client, &tables).await?;
            let statuses = "SELECT 1 FROM pg_proc WHERE proname = 'pg_current_xact_id'";
            let found = client.query_typed_opt(statuses, &[]).await;
            Ok(Server { has_statuses: matches!(found, Ok(Some(_))) })
        };
        self.0.server.get_or_try_init(prepare).await.copied()
    }

    /// Returns true if a pooler gives the transactions of a connection different sessions of the
    /// server: a setting of the session that `first` or a second connection makes is not there when it
    /// is read.
    async fn is_pooled(&self, first: &Client) -> Result<bool, DbError> {
        // A server that has no second connection to give does not pool either.
        let Ok(second) = self.connection().await else { return Ok(false) };
        let clients: [(&str, &Client); 2] = [("first", first), ("second", &second)];
        for (name, client) in clients {
            let set = format!("SELECT set_config('wattle.connection', '{name}', false)");
            if client.simple_query(&set).await.is_err() {
                // The server has no settings of applications.
                return Ok(false);
            }
        }
        for (name, client) in clients.into_iter().rev() {
            let read = "SELECT current_setting('wattle.connection', true)";
            let found = client.simple_query(read).await.map_err(|error| describe(&error))?;
            let is_kept = found.iter().any(
                |message| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some(name)),
            );
            if !is_kept {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if a transaction whose commit was sent has been committed. Asks the server for
    /// the status of the transaction with the ID `number`.
    async fn has_landed(&self, number: Option<String>, cause: &DbError) -> Result<bool, DbError> {
        let unknown = |why: &str| {
            let message = format!("the connection was lost during a commit, and {why}: {cause}");
            DbError::new(FailureKind::Other, message)
        };
        let Some(number) = number else {
            return Err(unknown("the server does not tell whether it landed"));
        };
        let mut delay = FIRST_DELAY;
        for _ in 0..ATTEMPTS {
            tokio::time::sleep(delay).await;
            delay *= 2;
            let Ok(client) = self.connection().await else { continue };
            let query = "SELECT pg_xact_status(CAST(CAST($1 AS TEXT) AS xid8))";
            let params: [(&(dyn ToSql + Sync), Type); 1] = [(&number, Type::TEXT)];
            let Ok(row) = client.query_typed_one(query, &params).await else { continue };
            match row.try_get::<_, Option<&str>>(0) {
                Ok(Some("committed")) => return Ok(true),
                Ok(Some("aborted")) => return Ok(false),
                // The server has not yet noticed that the connection is lost.
                _ => {}
            }
        }
        Err(unknown("the server cannot be asked whether it landed"))
    }
}

/// Attempts a transaction once. Must be called on a thread where blocking is allowed.
fn transact(
    client: &Object,
    handle: &Handle,
    (access, server, pooled): (Access, Server, Option<&Pooled>),
    work: &mut Work,
) -> Attempt {
    let (level, number) = match (access, server.has_statuses) {
        (Access::Read, _) => ("REPEATABLE READ READ ONLY", "NULL"),
        (_, true) => ("READ COMMITTED", "pg_current_xact_id()"),
        (_, false) => ("READ COMMITTED", "NULL"),
    };
    // The server may be configured to confirm commits before they are on disk.
    let confirm = match access {
        Access::Durable => {
            "; SELECT set_config('synchronous_commit', 'on', true)
             WHERE current_setting('synchronous_commit') = 'off'"
        }
        _ => "",
    };
    // One request begins the transaction and asks for the server's time.
    let settings = pooled.map_or("", |pooled| pooled.settings.as_str());
    let begin = format!(
        "BEGIN ISOLATION LEVEL {level}; {settings} SELECT {number},
         CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) * 1000 AS BIGINT){confirm}"
    );
    let begun = match within(handle, client.simple_query(&begin)) {
        Ok(begun) => begun,
        Err(error) => return Attempt::Failed(error.into()),
    };
    let row = begun.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let number = row.and_then(|row| row.get(0)).map(str::to_owned);
    let Some(now) = row.and_then(|row| row.get(1)?.parse().ok()) else {
        return Attempt::Failed("the server does not report its time".into());
    };
    let types = pooled.map(|pooled| &pooled.types);
    let mut statements = Open::new(client, handle, types, now);
    let mut transaction = Transaction::new(&mut statements);
    let done = work(&mut transaction);
    let is_discarded = transaction.is_discarded;
    let failed = statements.failed();
    match (done, failed) {
        (Ok(()), false) => {}
        (Ok(()), true) => return Attempt::Failed("a failed statement was ignored".into()),
        (Err(cause), _) => return Attempt::Failed(cause),
    }
    if is_discarded {
        return match within(handle, client.batch_execute("ROLLBACK")) {
            Ok(()) => Attempt::Done,
            Err(error) => Attempt::Failed(error.into()),
        };
    }
    match within(handle, client.batch_execute("COMMIT")) {
        Ok(()) => Attempt::Done,
        Err(error) if error.kind == FailureKind::Lost && access != Access::Read => {
            Attempt::Unknown { number, cause: error }
        }
        Err(error) => Attempt::Failed(error.into()),
    }
}
