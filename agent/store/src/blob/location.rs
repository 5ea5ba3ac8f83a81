//! The location of the objects, a folder or an S3 bucket, and the operations that write, read and
//! remove objects there.

use std::fmt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutPayload};
use wattle_capability::egress::Egress;

use super::{S3Bucket, off_the_runtime, s3};
use crate::error::{Cause, DbError, FailureKind, StoreError};

const READ: &str = "read";

/// The name of the marker, an empty object that is written to a location before the store's first
/// object. Without the marker, a missing bucket or a file system that is not mounted would look
/// like a location without objects.
const MARKER: &str = "wattle";

/// Maximum number of incomplete files that are removed together with an object.
const MAX_INCOMPLETE: usize = 16;

/// A folder or a bucket for file texts that are too large for the database's rows. Cheap to clone.
///
/// All processes that share a store must use the same location, and no other store may use it.
#[derive(Clone)]
pub struct BlobStore {
    objects: Arc<dyn ObjectStore>,
    prefix: ObjectPath,
    /// The folder, or `None` for a bucket.
    folder: Option<Arc<Path>>,
    shown: Arc<str>,
}

impl BlobStore {
    /// Opens a folder. A missing folder is created, with access for its owner only.
    ///
    /// # Errors
    /// If the folder cannot be created or opened.
    pub fn folder(folder: &Path) -> Result<BlobStore, StoreError> {
        let shown: Arc<str> = folder.display().to_string().into();
        let open = || -> Result<LocalFileSystem, Cause> {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            Ok(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true))
        };
        let opened = open().map_err(|cause| StoreError::at("open", Some(shown.to_string()), cause));
        let (objects, prefix) = (Arc::new(opened?), ObjectPath::default());
        Ok(BlobStore { objects, prefix, folder: Some(folder.into()), shown })
    }

    /// Opens an S3 bucket. Nothing is sent until an object is read or written.
    ///
    /// # Errors
    /// If the endpoint or the prefix is invalid.
    pub fn bucket(bucket: &S3Bucket, egress: &Egress) -> Result<BlobStore, StoreError> {
        let shown: Arc<str> = bucket.to_string().into();
        let opened = s3::open(bucket, egress);
        let opened = opened.map_err(|cause| StoreError::at("open", Some(shown.to_string()), cause));
        let (objects, prefix) = opened?;
        Ok(BlobStore { objects: Arc::new(objects), prefix, folder: None, shown })
    }

    fn path(&self, object: &str) -> ObjectPath {
        // A folder for each pair of leading characters, so that no folder becomes too large.
        let folder = object.get(..2).unwrap_or_default();
        self.prefix.clone().join(folder).join(object)
    }

    fn failed(&self, what: &str, object: &str, error: &Error) -> Cause {
        let at = &self.shown;
        let message = format!("failed to {what} the object `{object}` in `{at}`: {error}");
        match (what, error) {
            // A missing object is lost, but the location itself works.
            (READ, Error::NotFound { .. }) => message.into(),
            _ => DbError::new(FailureKind::Objects, message).into(),
        }
    }

    pub(crate) async fn put(&self, object: &str, content: Bytes) -> Result<(), Cause> {
        let done = self.objects.put(&self.path(object), content.into()).await;
        done.map(drop).map_err(|error| self.failed("write", object, &error))
    }

    /// Reads an object and checks its content against the hash in its name.
    pub(crate) async fn get(&self, object: &str) -> Result<Bytes, Cause> {
        let failed = |error| self.failed(READ, object, &error);
        let found = match self.objects.get(&self.path(object)).await {
            Err(error @ Error::NotFound { .. }) => {
                self.check_marker().await?;
                return Err(failed(error));
            }
            found => found.map_err(failed)?,
        };
        let content = found.bytes().await.map_err(failed)?;
        let hashed = content.clone();
        let hash = move || Ok(blake3::hash(&hashed).to_hex());
        let digest = off_the_runtime(content.len(), hash).await?;
        if object.starts_with(digest.as_str()) {
            Ok(content)
        } else {
            Err(format!("the object `{object}` in `{}` was changed", self.shown).into())
        }
    }

    /// Returns true if the object exists.
    pub(crate) async fn has(&self, object: &str) -> Result<bool, Cause> {
        match self.objects.head(&self.path(object)).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => self.check_marker().await.map(|()| false),
            Err(error) => Err(self.failed(READ, object, &error)),
        }
    }

    /// Prepares the location for a change. If `is_new` is true, writes the [`MARKER`] object.
    /// Otherwise, checks that the [`MARKER`] object exists.
    pub(crate) async fn enter(&self, is_new: bool) -> Result<(), Cause> {
        if !is_new {
            return self.check_marker().await;
        }
        let written = self.objects.put(&self.prefix.clone().join(MARKER), PutPayload::new()).await;
        written.map(drop).map_err(|error| self.failed("write", MARKER, &error))
    }

    /// Checks that the location contains the [`MARKER`] object.
    async fn check_marker(&self) -> Result<(), Cause> {
        match self.objects.head(&self.prefix.clone().join(MARKER)).await {
            Ok(_) => Ok(()),
            Err(Error::NotFound { .. }) => {
                let message = format!(
                    "`{}` has no object `{MARKER}`, which marks the location of the objects\nhint: \
                     check that the location is the right one, that a folder is mounted, and that \
                     a bucket exists",
                    self.shown
                );
                Err(DbError::new(FailureKind::Objects, message).into())
            }
            Err(error) => Err(self.failed(READ, MARKER, &error)),
        }
    }

    /// Removes an object. A missing object is not an error.
    pub(crate) async fn remove(&self, object: &str) -> Result<(), Cause> {
        match self.objects.delete(&self.path(object)).await {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(self.failed("remove", object, &error)),
        }
        if let Some(folder) = &self.folder {
            let path = folder.join(self.path(object).as_ref());
            // A process that crashed during a write may have left an incomplete file.
            for at in 1..=MAX_INCOMPLETE {
                if tokio::fs::remove_file(format!("{}#{at}", path.display())).await.is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for BlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobStore({})", self.shown)
    }
}
