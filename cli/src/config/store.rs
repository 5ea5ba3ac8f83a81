//! The settings that name the store, the location of its large files, and the folder of traces.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::{Value as Json, json};
use wattle_agent::Store;
use wattle_agent::host::capability::egress::Url;

use super::places::Places;
use super::value::Value;

/// The URL schemes of a PostgreSQL database.
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
    /// Returns the folder that contains the tenants' keys: the folder of the store's file or, for a
    /// database, the folder of the default store. Returns `None` for a database if the user has no
    /// home directory.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            StoreLocation::File(path) => path.parent().map(Path::to_owned),
            StoreLocation::Database(_) => {
                Places::of_user().store.as_deref().and_then(Path::parent).map(Path::to_owned)
            }
        }
    }

    /// Returns the file of trusted certificates that the URL of a database names.
    pub(crate) fn certificates(&self) -> Option<PathBuf> {
        match self {
            StoreLocation::File(_) => None,
            StoreLocation::Database(url) => Store::certificates_of_url(url),
        }
    }

    /// Returns true if the URL of a database names a pooler by transaction.
    pub(crate) fn is_pooled(&self) -> bool {
        let StoreLocation::Database(url) = self else { return false };
        Url::parse(url).is_ok_and(|url| url.query_pairs().any(|(key, _)| key == "pooler"))
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

/// The location of the files that are too large for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlobLocation {
    /// A folder.
    Folder(PathBuf),
    /// An S3 bucket, and the prefix of the object names in it.
    Bucket { bucket: String, prefix: String },
}

impl BlobLocation {
    /// Returns the folder, or `None` for a bucket.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            BlobLocation::Folder(folder) => Some(folder),
            BlobLocation::Bucket { .. } => None,
        }
    }
}

impl fmt::Display for BlobLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlobLocation::Folder(folder) => write!(f, "file://{}", folder.display()),
            BlobLocation::Bucket { bucket, prefix } if prefix.is_empty() => {
                write!(f, "s3://{bucket}")
            }
            BlobLocation::Bucket { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

impl FromStr for BlobLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<BlobLocation, String> {
        const FORMS: &str = "a location of large files is a folder `file:///…` or a bucket \
                             `s3://BUCKET/PREFIX`";
        let url = Url::parse(text).map_err(|_| FORMS.to_owned())?;
        let is_plain = url.query().is_none()
            && url.fragment().is_none()
            && url.port().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        match (url.scheme(), url.host_str()) {
            ("file", None) if is_plain && text.starts_with("file:///") => {
                url.to_file_path().map(BlobLocation::Folder).map_err(|()| FORMS.to_owned())
            }
            ("s3", Some(bucket)) if is_plain => Ok(BlobLocation::Bucket {
                bucket: bucket.to_owned(),
                prefix: url.path().trim_matches('/').to_owned(),
            }),
            _ => Err(FORMS.to_owned()),
        }
    }
}

/// The location of the traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TraceLocation {
    /// The workdir of each run.
    Workdir,
    /// A folder outside the workdirs, which contains the traces of all workdirs.
    Folder(PathBuf),
}

/// The string form of [`TraceLocation::Workdir`].
const WORKDIR: &str = "workdir";

impl TraceLocation {
    /// Returns the folder outside the workdirs, if that is the location.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            TraceLocation::Workdir => None,
            TraceLocation::Folder(folder) => Some(folder),
        }
    }
}

impl Value for TraceLocation {
    fn from_text(text: &str) -> Result<Self, String> {
        match text {
            WORKDIR => Ok(TraceLocation::Workdir),
            folder => PathBuf::from_text(folder).map(TraceLocation::Folder),
        }
    }

    fn from_toml(value: &toml::Value, folder: &Path) -> Result<Self, String> {
        match value.as_str() {
            Some(WORKDIR) => Ok(TraceLocation::Workdir),
            _ => PathBuf::from_toml(value, folder).map(TraceLocation::Folder),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            TraceLocation::Workdir => json!(WORKDIR),
            TraceLocation::Folder(folder) => folder.to_json(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_of_large_files_is_a_folder_or_a_bucket() {
        let folder = |path: &str| Ok(BlobLocation::Folder(PathBuf::from(path)));
        let bucket = |bucket: &str, prefix: &str| {
            Ok(BlobLocation::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        for (text, location) in [
            ("file:///srv/blobs", folder("/srv/blobs")),
            ("file:///srv/a%20b", folder("/srv/a b")),
            ("s3://files", bucket("files", "")),
            ("s3://files/wattle/one/", bucket("files", "wattle/one")),
        ] {
            assert_eq!(text.parse::<BlobLocation>(), location, "{text}");
        }
        for text in [
            "",
            "blobs",
            "/srv/blobs",
            "file:blobs",
            "file://host/srv",
            "s3://",
            "s3:///x",
            "https://x/y",
            "s3://key:secret@files",
            "s3://files?region=x",
            "s3://files:80/x",
        ] {
            let error = text.parse::<BlobLocation>().unwrap_err();
            assert!(error.contains("`s3://BUCKET/PREFIX`"), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
