//! The check of a whole store. It covers the file, the references between rows, and each record.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;
use wattle_capability::secrets::Mask;
use wattle_machine::{Envelope, Message};
use wattle_rt::tape::decode;

use super::Store;
use super::client::Integration;
use super::copy::{LIMITS, key_of, read};
use super::db::{Row, Transaction, Value, params};
use super::rows::{known_status, parse, recorded_call};
use super::seal::{RecordSeal, SEALED_PREFIX, open_bytes, open_text};
use super::secret::is_readable;
use super::tables::{TABLES, Table};
use crate::error::{Cause, DbError, FailureKind, StoreError};
use crate::journal::{RunStart, RunSummary, Turn};
use crate::ledger::{Cipher, FinalSeal, Keys};
use crate::tenant::Tenant;

/// Maximum number of findings that are kept.
const FINDINGS: usize = 1_000;

/// Maximum number of objects that are checked per query.
const OBJECTS: u32 = 100;

/// The result of checking a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// Number of rows that were checked.
    pub rows: u64,
    /// Number of encrypted records that were not read because their tenant's key is missing.
    pub locked: u64,
    /// The findings, at most 1,000.
    pub findings: Vec<Finding>,
}

impl Inspection {
    /// Adds a finding if a table could not be read because the file is damaged.
    fn add_damage(
        &mut self,
        table: &'static str,
        inspected: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Err(error) = inspected else { return Ok(()) };
        if !error.is_damage() {
            return Err(error);
        }
        let text = error.to_string();
        let what = text.lines().next().unwrap_or_default();
        let problem = format!("some of its rows cannot be read: {what}");
        self.findings.push(Finding { table, key: String::new(), problem });
        Ok(())
    }
}

/// A problem that was found in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the table, or `store` for the database itself.
    pub table: &'static str,
    /// The key of the row. Empty if the finding is not about a row.
    pub key: String,
    /// A description of the problem.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { table, key, problem } = self;
        if key.is_empty() {
            write!(f, "{table}: {problem}")
        } else {
            write!(f, "{table} {key}: {problem}")
        }
    }
}

impl Store {
    /// Checks the database and its references, and reads each record. Encrypted records are
    /// decrypted if `keys` contains the key of their tenant.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn inspect(&self, keys: Option<Keys>) -> Result<Inspection, StoreError> {
        let mut inspection = Inspection::default();
        if !self.is_shared() {
            inspection.findings = self.read(inspect_file).await?;
        }
        let seals = Arc::new(Seals::new(keys));
        for table in TABLES {
            let inspected = self.inspect_table(table, &seals, &mut inspection).await;
            inspection.add_damage(table.name, inspected)?;
        }
        let inspected = self.inspect_runs(&mut inspection).await;
        inspection.add_damage("run", inspected)?;
        let inspected = self.inspect_objects(&mut inspection).await;
        inspection.add_damage("blob", inspected)?;
        Ok(inspection)
    }

    /// Checks the structure of an SQLite file, but not its content, so that it is fast. Reads the
    /// whole file. If the file has more than `limit` bytes, or the store is in PostgreSQL, nothing
    /// is checked.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub async fn check_structure(&self, limit: u64) -> Result<(), StoreError> {
        if self.is_shared() || self.stored_bytes().await? > limit {
            return Ok(());
        }
        self.read(|transaction| {
            let found = transaction.one("PRAGMA quick_check(1)", &[])?.get::<String>(0)?;
            if found == "ok" {
                Ok(())
            } else {
                Err(DbError::new(FailureKind::Damaged, found.replace('\n', ": ")).into())
            }
        })
        .await
    }

    /// Checks that each run has a row in the table `opening`.
    async fn inspect_runs(&self, into: &mut Inspection) -> Result<(), StoreError> {
        let lost = self.read(|transaction| {
            let key = |row: &Row| Ok(describe(row.values()));
            transaction.query(
                LOST_STARTS,
                params![u32::try_from(FINDINGS).unwrap_or(u32::MAX)],
                key,
            )
        });
        for key in lost.await? {
            if into.findings.len() < FINDINGS {
                let problem = "its start is missing from the table `opening`".to_owned();
                into.findings.push(Finding { table: "run", key, problem });
            }
        }
        Ok(())
    }

    /// Reads the objects outside the database and checks that no row refers to a missing object.
    async fn inspect_objects(&self, into: &mut Inspection) -> Result<(), StoreError> {
        let mut add = |key: String, problem: String| {
            if into.findings.len() < FINDINGS {
                into.findings.push(Finding { table: "blob", key, problem });
            }
        };
        let missing = self.read(|transaction| {
            transaction.query(MISSING_OBJECTS, &[], |row| row.get::<String>(0))
        });
        for object in missing.await? {
            add(object, "rows refer to the object, but it is not in the table".to_owned());
        }
        let mut after = String::new();
        loop {
            let checked = self.check_objects(&after, OBJECTS).await?;
            let Some((last, _)) = checked.last() else { return Ok(()) };
            after.clone_from(last);
            for (object, problem) in checked {
                problem.into_iter().for_each(|problem| add(object.clone(), problem));
            }
        }
    }

    async fn inspect_table(
        &self,
        table: &'static Table,
        seals: &Arc<Seals>,
        into: &mut Inspection,
    ) -> Result<(), StoreError> {
        let mut after: Option<Vec<Value>> = None;
        loop {
            let (key, seals) = (after.clone(), Arc::clone(seals));
            let batch = self.read(move |transaction| {
                let rows = read(transaction, table, key.as_deref(), LIMITS)?;
                let names: Arc<[String]> =
                    table.columns.iter().map(|column| column.name.to_owned()).collect();
                let mut checked = Inspection::default();
                for values in &rows {
                    let row = Row::new(Arc::clone(&names), values.clone());
                    seals.check(transaction, table, (&row, values), &mut checked)?;
                }
                Ok((rows.last().map(|last| key_of(table, last)), checked))
            });
            let (last, checked) = batch.await?;
            into.rows += checked.rows;
            into.locked += checked.locked;
            let free = FINDINGS.saturating_sub(into.findings.len());
            into.findings.extend(checked.findings.into_iter().take(free));
            match last {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }
}

/// Checks the structure of an SQLite file, and that each reference points to an existing row.
fn inspect_file(transaction: &mut Transaction<'_>) -> Result<Vec<Finding>, Cause> {
    let finding = |problem| Finding { table: "store", key: String::new(), problem };
    let found = transaction.query("PRAGMA integrity_check", &[], |row| row.get::<String>(0))?;
    let mut findings: Vec<Finding> =
        found.into_iter().filter(|line| line != "ok").map(finding).collect();
    let broken = transaction.query("PRAGMA foreign_key_check", &[], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(finding(format!("a row of `{table}` refers to a missing row of `{parent}`")))
    })?;
    findings.extend(broken);
    findings.truncate(FINDINGS);
    Ok(findings)
}

/// The keys of the tenants. Each key is loaded on first use.
struct Seals {
    keys: Option<Keys>,
    opened: std::sync::Mutex<HashMap<String, Option<Arc<Opened>>>>,
}

/// The key of one tenant. `seal` decrypts records with the key, and `cipher` decrypts secrets.
struct Opened {
    seal: RecordSeal,
    cipher: Cipher,
}

impl Seals {
    fn new(keys: Option<Keys>) -> Seals {
        Seals { keys, opened: std::sync::Mutex::default() }
    }

    /// Returns the key of a tenant, or `None` if there is none. Never creates a key.
    fn of(&self, tenant: &str) -> Result<Option<Arc<Opened>>, Cause> {
        let mut opened = self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = opened.get(tenant) {
            return Ok(known.clone());
        }
        let open = |keys: &Keys| -> Result<Arc<Opened>, Cause> {
            let seal = RecordSeal::new(Mask::default(), keys.clone(), Tenant::new(tenant)?);
            Ok(Arc::new(Opened { seal, cipher: keys.cipher(tenant)? }))
        };
        let keys = self.keys.as_ref().filter(|keys| keys.has_cipher(tenant));
        let key = keys.map(open).transpose()?;
        opened.insert(tenant.to_owned(), key.clone());
        Ok(key)
    }

    /// Checks a row and adds any findings to `into`.
    fn check(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        (row, values): (&Row, &[Value]),
        into: &mut Inspection,
    ) -> Result<(), Cause> {
        into.rows += 1;
        let tenant: String = row.get("tenant").unwrap_or_default();
        let key = self.of(&tenant)?;
        let is_locked = table.name == "secret" || values.iter().any(is_sealed);
        if is_locked && key.is_none() {
            into.locked += 1;
            return Ok(());
        }
        let checked = check_record(table.name, row, key.as_deref());
        let wrong = match checked {
            Ok(()) => sum(transaction, table.name, row)?.err(),
            Err(cause) => Some(cause.to_string()),
        };
        if let Some(problem) = wrong {
            let key = describe(&key_of(table, values));
            into.findings.push(Finding { table: table.name, key, problem });
        }
        Ok(())
    }
}

fn is_sealed(value: &Value) -> bool {
    let prefix = SEALED_PREFIX.as_bytes();
    match value {
        Value::Text(text) => text.as_bytes().starts_with(prefix),
        Value::Bytes(bytes) => bytes.starts_with(prefix),
        _ => false,
    }
}

/// Checks that the records in a row can be read.
fn check_record(table: &str, row: &Row, key: Option<&Opened>) -> Result<(), Cause> {
    let seal = key.map(|key| &key.seal);
    let text = |column: &str| open_text(seal, row.get(column)?);
    match table {
        "run" => {
            known_status(&row.get::<String>("status")?)?;
            if row.get::<Option<String>>("reason")?.is_some() {
                text("reason")?;
            }
            if row.get::<Option<String>>("summary")?.is_some() {
                parse::<RunSummary>(&text("summary")?)?;
            }
            let sealed: Option<String> = row.get("sealed")?;
            sealed.map(|text| parse::<FinalSeal>(&text)).transpose()?;
        }
        "opening" => drop(parse::<RunStart>(&text("body")?)?),
        "turn" => drop(parse::<Turn>(&text("body")?)?),
        "event" => drop(parse::<Envelope>(&text("body")?)?),
        "call" => drop(recorded_call(seal, row)?),
        "call_value" => {
            let body = open_bytes(seal, row.get("body")?)?;
            drop(decode(&body).ok_or("the result of a call is invalid")?);
        }
        "queue" => {
            text("message")?;
            parse::<Json>(&text("origin")?)?;
        }
        "message" => {
            text("content")?;
            if row.get::<Option<String>>("whole")?.is_some() {
                parse::<Message>(&text("whole")?)?;
            }
        }
        "session_file" if row.get::<Option<String>>("object")?.is_none() => {
            parse::<Json>(&text("delta")?)?;
        }
        "integration" => drop(parse::<Integration>(&text("body")?)?),
        "memory" => drop(text("text")?),
        "secret" => {
            let is_readable = match key {
                Some(key) => is_readable(&key.cipher, row)?,
                None => true,
            };
            is_readable.then_some(()).ok_or("it cannot be decrypted with the tenant's key")?;
        }
        _ => {}
    }
    Ok(())
}

/// Checks the recorded size of the key-value state of a session or a tenant. `row` is a row of the
/// table `session` or `tenant`. If the size is wrong, the inner error describes the difference.
fn sum(
    transaction: &mut Transaction<'_>,
    table: &str,
    row: &Row,
) -> Result<Result<(), String>, Cause> {
    let (query, key) = match table {
        "session" => {
            (SESSION_BYTES, params![row.get::<String>(0)?, row.get::<String>(1)?].to_vec())
        }
        "tenant" => (TENANT_BYTES, params![row.get::<String>(0)?].to_vec()),
        _ => return Ok(Ok(())),
    };
    let (counted, found): (i64, i64) = (row.get("bytes")?, transaction.one(query, &key)?.get(0)?);
    Ok(if counted == found {
        Ok(())
    } else {
        Err(format!("its size is {found} bytes, but {counted} are recorded"))
    })
}

const LOST_STARTS: &str = "SELECT tenant, id FROM run WHERE NOT EXISTS (
         SELECT 1 FROM opening WHERE opening.tenant = run.tenant AND opening.run = run.id)
     ORDER BY tenant, id LIMIT ?1";

const MISSING_OBJECTS: &str = "SELECT object FROM turn WHERE object IS NOT NULL
     UNION SELECT object FROM session_file WHERE object IS NOT NULL
     EXCEPT SELECT object FROM blob WHERE status IN ('ready', 'unused')";

const SESSION_BYTES: &str =
    "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(key) + OCTET_LENGTH(value)), 0) AS BIGINT)
     FROM state WHERE tenant = ?1 AND session = ?2";
const TENANT_BYTES: &str =
    "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(key) + OCTET_LENGTH(value)), 0) AS BIGINT)
     FROM variable WHERE tenant = ?1";

/// Formats a row's key as the values of its columns, separated by `/`.
fn describe(key: &[Value]) -> String {
    let part = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Null | Value::Real(_) => String::new(),
    };
    key.iter().map(part).collect::<Vec<_>>().join("/")
}
