//! Fault injection for tests: statements that fail on purpose, and a clock that is wrong.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Database, DbError, RowSink, Statements, Transaction, Value, Work};
use crate::error::{Cause, FailureKind};

/// The next failure to inject into a database, and the error of its clock. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    next: Arc<Mutex<Option<Fault>>>,
    /// Time by which the database's clock is ahead, in milliseconds.
    ahead: Arc<AtomicI64>,
}

struct Fault {
    /// Number of statements until the failure.
    after: u32,
    /// If true, the failure is a lost connection.
    cuts: bool,
}

impl Faults {
    /// Makes the `n`th statement from now on fail, counting from 1. The end of a transaction counts
    /// as a statement. If `cuts` is true, the failure is a lost connection.
    pub(crate) fn arm(&self, n: u32, cuts: bool) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Fault { after: n, cuts });
    }

    /// Removes the failure. Returns true if it has not happened yet.
    pub(crate) fn disarm(&self) -> bool {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Sets the database's clock ahead by this number of milliseconds.
    pub(crate) fn set_clock_ahead(&self, ms: i64) {
        self.ahead.store(ms, Ordering::Relaxed);
    }

    fn count(&self) -> Result<(), DbError> {
        let mut fault = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = fault.as_mut() {
            next.after -= 1;
            if next.after == 0 {
                let kind = if next.cuts { FailureKind::Lost } else { FailureKind::Other };
                *fault = None;
                return Err(DbError::new(kind, "a failure on purpose"));
            }
        }
        Ok(())
    }
}

impl Database {
    /// Makes statements fail as specified by `faults`.
    pub(crate) fn with_faults(self, faults: &Faults) -> Database {
        Database { faults: Some(faults.clone()), ..self }
    }
}

/// Wraps `work` so that its statements fail as specified.
pub(super) fn inject(faults: Option<Faults>, mut work: Work) -> Work {
    let Some(faults) = faults else { return work };
    Box::new(move |transaction| {
        let faults = &faults;
        let mut faulty = Faulty { faults, statements: &mut *transaction.statements };
        let mut inner = Transaction::new(&mut faulty);
        work(&mut inner)?;
        transaction.is_discarded = inner.is_discarded;
        Ok(faults.count()?)
    })
}

struct Faulty<'a> {
    faults: &'a Faults,
    statements: &'a mut dyn Statements,
}

impl Statements for Faulty<'_> {
    fn each(&mut self, sql: &str, params: &[Value], row: &mut RowSink<'_>) -> Result<(), Cause> {
        self.faults.count()?;
        self.statements.each(sql, params, row)
    }

    fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        self.faults.count()?;
        self.statements.execute(sql, params)
    }

    fn excludes_writers(&self) -> bool {
        self.statements.excludes_writers()
    }

    fn now(&self) -> i64 {
        self.statements.now().saturating_add(self.faults.ahead.load(Ordering::Relaxed))
    }
}
