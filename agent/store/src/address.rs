//! The address of a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::db::Opening;
use super::db::postgres::{self, Postgres};
use super::db::sqlite::Sqlite;
use super::{Store, marker, private, schema};
use crate::error::{Cause, StoreError};

/// The address of a store. Its string form contains no password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// An SQLite file.
    File(PathBuf),
    /// The URL of a PostgreSQL database; see [`Store::connect`].
    Database(String),
}

impl StoreAddress {
    /// Returns a name for the store that does not depend on the spelling of its path.
    pub(super) fn name(&self) -> String {
        let StoreAddress::File(path) = self else { return self.to_string() };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        match (folder, path.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name).display().to_string(),
            _ => self.to_string(),
        }
    }

    /// Opens the store as the source or the target of a copy. A source must already exist. Existing
    /// tables are not migrated, and nothing in the store expires.
    pub(super) fn open(&self, opening: Opening) -> Result<Store, StoreError> {
        let opened = match self {
            StoreAddress::File(path) => open_file(path, opening).map(Into::into),
            StoreAddress::Database(url) => {
                Postgres::new(url, opening, schema::postgres).map(Into::into)
            }
        };
        let opened = opened.map(|db| Store::of(db, Duration::MAX));
        opened.map_err(|cause| StoreError::at("open", Some(self.to_string()), cause))
    }
}

/// Opens the store in a file. A missing file is created, unless it is the source of a copy.
pub(super) fn open_file(path: &Path, opening: Opening) -> Result<Sqlite, Cause> {
    marker::check_not_lost(path)?;
    if opening == Opening::Source && !path.exists() {
        return Err("there is no such file\nhint: name the file of the store".into());
    }
    let path = private::prepare(path)?;
    Sqlite::open(path, |path, connection| {
        schema::prepare(connection, opening)?;
        marker::verify(path, connection)
    })
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::File(path) => write!(f, "{}", path.display()),
            StoreAddress::Database(url) => f.write_str(&postgres::shown(url)),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreAddress({self})")
    }
}
