//! The setting that names the store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Value as Json, json};
use wattle_agent::Store;

use super::places::Places;
use super::value::Value;

/// The schemes of a database's URL.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The location of the store. Its string forms contain no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// An SQLite file.
    File(PathBuf),
    /// The URL of a PostgreSQL database.
    Database(String),
}

impl StoreLocation {
    /// Returns the folder with the keys of the tenants: that of the store's file or, for a
    /// database, that of the default store.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            StoreLocation::File(path) => path.parent().map(Path::to_owned),
            StoreLocation::Database(_) => {
                Places::of_user().store.as_deref().and_then(Path::parent).map(Path::to_owned)
            }
        }
    }

    /// Returns the path of the file, or `None` for a database.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            StoreLocation::File(path) => Some(path),
            StoreLocation::Database(_) => None,
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::File(path) => write!(f, "{}", path.display()),
            StoreLocation::Database(url) => f.write_str(&Store::shown_url(url)),
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreLocation({self})")
    }
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<StoreLocation, String> {
        if SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
            return Ok(StoreLocation::Database(text.to_owned()));
        }
        match text.split_once("://") {
            Some((scheme, _)) => Err(format!(
                "a store is a file or a database `postgres://…`, not a URL `{scheme}://…`"
            )),
            None => Ok(StoreLocation::File(PathBuf::from(text))),
        }
    }
}

impl Value for StoreLocation {
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        match String::from_toml(value, folder)?.parse()? {
            StoreLocation::File(_) => PathBuf::from_toml(value, folder).map(StoreLocation::File),
            database => Ok(database),
        }
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }
}
