//! A location for a test's store: an SQLite file, or a PostgreSQL schema if `WATTLE_TEST_POSTGRES`
//! is set.

use std::path::PathBuf;
use std::time::Duration;

use wattle_agent::Store;
use wattle_cases::postgres;

/// The location of a test's store. Each store that is opened at the location behaves like a
/// separate process.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    url: Option<String>,
}

impl Place {
    /// Creates an empty location.
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap(), url: postgres::url_if_switched() }
    }

    /// Returns a location in PostgreSQL, or `None` if PostgreSQL is not installed.
    pub(crate) fn in_postgres() -> Option<Place> {
        Some(Place::at(postgres::url()?))
    }

    /// Returns the location with the URL of a PostgreSQL schema.
    pub(crate) fn at(url: String) -> Place {
        Place { folder: tempfile::tempdir().unwrap(), url: Some(url) }
    }

    /// Opens the store at the location.
    pub(crate) fn open(&self, ttl: Duration) -> Store {
        match &self.url {
            Some(url) => Store::connect(url, ttl).unwrap(),
            None => Store::open(&self.file(), ttl).unwrap(),
        }
    }

    /// Returns the path of the database file. Only an SQLite location has one.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("s.db")
    }

    /// Returns the URL of the location, if it is in PostgreSQL.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }
}
