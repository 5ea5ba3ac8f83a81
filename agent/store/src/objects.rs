//! Objects that are stored outside the database. They contain the texts of files that are too large
//! for the database's rows.
//!
//! ```text
//! text ─► upload ─► row of `blob`: uploading ─► object ─► ready ◄─► unused ─► removing ─► gone
//!                                                          ▲
//!                     rows of `turn` and `session_file` ───┘ refer to an object by its name
//! ```
//!
//! An object is written before a row refers to it, and its name contains the hash of its content.
//! Identical texts that belong to the same tenant share one object. The removal of old data removes
//! an object only if no row refers to it, and only in two steps that are an hour apart, so that no
//! object disappears while a slow writer or reader still needs it.

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]
mod tests;

use std::time::Duration;

use super::{Owner, Store, TenantStore};
use crate::blob::{BlobStore, INLINE, MAX_OBJECT, off_the_runtime};
use crate::db::{Access, Row, Transaction, params};
use crate::error::{Cause, StoreError};
use crate::journal::Turn;
use crate::seal::{open_text, seal_text};

/// Time for which an unreferenced object is kept.
pub(super) const GRACE: Duration = Duration::from_secs(3_600);

/// Maximum number of objects that one transaction examines when unused objects are removed.
const PAGE: i64 = 500;

/// A text that is stored inline in a row, or in an object. The text may be encrypted.
#[derive(Clone, Debug)]
pub(super) enum StoredText {
    /// The text as it is stored in the row.
    Inline(String),
    /// The name of an object.
    Object(String),
}

impl StoredText {
    /// Returns the text that a row stores. `text` and `object` are the names of the columns for an
    /// inline text and for an object's name.
    pub(super) fn of_row(row: &Row, text: &str, object: &str) -> Result<StoredText, Cause> {
        Ok(match row.get(object)? {
            Some(object) => StoredText::Object(object),
            None => StoredText::Inline(row.get(text)?),
        })
    }

    /// Returns the inline text, or an empty string if the text is stored in an object.
    pub(super) fn inline(&self) -> &str {
        match self {
            StoredText::Inline(text) => text,
            StoredText::Object(_) => "",
        }
    }

    /// Returns the name of the object, or `None` if the text is stored inline.
    pub(super) fn object(&self) -> Option<&str> {
        match self {
            StoredText::Inline(_) => None,
            StoredText::Object(object) => Some(object),
        }
    }

    /// Updates the time of the object's last use, so that the object is not removed. Must be called
    /// within the transaction that adds a row with this text.
    ///
    /// # Errors
    /// If the object was removed because the writer took too long.
    pub(super) fn keep(&self, transaction: &mut Transaction<'_>) -> Result<(), Cause> {
        let Some(object) = self.object() else { return Ok(()) };
        let keep = "UPDATE blob SET status = 'ready', used = ?2
                    WHERE object = ?1 AND status IN ('ready', 'unused')";
        match transaction.execute(keep, params![object, transaction.now()])? {
            0 => Err(format!("the object `{object}` was removed before it was used").into()),
            _ => Ok(()),
        }
    }
}

impl Store {
    /// Stores texts of more than 256 KiB as objects in `blobs`. By default, they are stored in the
    /// database.
    #[must_use]
    pub fn with_blobs(self, blobs: BlobStore) -> Store {
        Store { blobs: Some(blobs), ..self }
    }

    fn blobs(&self) -> Result<&BlobStore, Cause> {
        Ok(self.blobs.as_ref().ok_or(
            "a file is an object outside the database\nhint: name the location of the objects \
             with `--blobs`, as when the file was written",
        )?)
    }

    /// Removes unreferenced objects that were last used before `old`. An object whose upload was
    /// never completed is removed at once. Any other unreferenced object is first marked as unused,
    /// and a later call removes it. Adds the number of removed objects to `removed`.
    pub(super) async fn remove_unused_objects(
        &self,
        old: i64,
        removed: &mut u64,
    ) -> Result<(), StoreError> {
        let Some(blobs) = &self.blobs else { return Ok(()) };
        let failed = |cause| self.failed("write", cause);
        // The location is checked before any object is selected for removal, so objects are removed
        // only from a location that contains the `MARKER` object.
        if self.unused_objects(old).await? > 0 {
            let is_new = self.read(has_no_objects).await?;
            blobs.enter(is_new).await.map_err(failed)?;
        }
        let mut after = String::new();
        loop {
            let page =
                move |transaction: &mut Transaction<'_>| take_unused(transaction, &after, old);
            // Once an object has been removed, no row may refer to it again, even if the machine
            // crashes.
            let (last, objects) = self.db.run(Access::Durable, page).await.map_err(failed)?;
            for object in objects {
                blobs.remove(&object).await.map_err(failed)?;
                let forget = move |transaction: &mut Transaction<'_>| {
                    let delete = "DELETE FROM blob WHERE object = ?1 AND status = 'removing'";
                    Ok(transaction.execute(delete, params![object])?)
                };
                *removed += self.write(forget).await?;
            }
            match last {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }

    /// Counts the objects that [`remove_unused_objects`](Store::remove_unused_objects) would
    /// remove.
    pub(super) async fn unused_objects(&self, old: i64) -> Result<u64, StoreError> {
        match self.blobs {
            Some(_) => self.read(move |transaction| count_unused(transaction, old)).await,
            None => Ok(0),
        }
    }

    /// Reads at most `limit` objects whose names sort after `after`. Returns their names, each with
    /// an error message if the object cannot be read.
    pub(super) async fn check_objects(
        &self,
        after: &str,
        limit: u32,
    ) -> Result<Vec<(String, Option<String>)>, StoreError> {
        let after = after.to_owned();
        let objects = self.read(move |transaction| {
            let query = "SELECT object FROM blob WHERE status IN ('ready', 'unused')
                         AND object > ?1 ORDER BY object LIMIT ?2";
            transaction.query(query, params![after, limit], |row| row.get::<String>(0))
        });
        let mut checked = Vec::new();
        for object in objects.await? {
            let problem = match self.blobs() {
                Ok(blobs) => blobs.get(&object).await.err(),
                Err(cause) => Some(cause),
            };
            checked.push((object, problem.map(|cause| cause.to_string())));
        }
        Ok(checked)
    }
}

impl TenantStore {
    /// Returns the stored form of a file's text. Uploads a large text, unless an object already
    /// contains it.
    pub(super) async fn store_text(&self, text: String) -> Result<StoredText, StoreError> {
        let failed = |cause| self.store.failed("write", cause);
        let (size, seal) = (text.len(), self.seal.clone());
        if size > MAX_OBJECT {
            return Err(failed("the changed files have more than 512 MiB".into()));
        }
        let blobs = self.store.blobs.as_ref().filter(|_| size > INLINE);
        let is_object = blobs.is_some();
        let seal = move || {
            let stored = seal_text(seal.as_deref(), text)?;
            let digest = is_object.then(|| blake3::hash(stored.as_bytes()).to_hex().to_string());
            Ok((digest, stored))
        };
        let (digest, stored) = off_the_runtime(size, seal).await.map_err(failed)?;
        let Some((blobs, digest)) = blobs.zip(digest) else {
            return Ok(StoredText::Inline(stored));
        };
        let (object, size) = (format!("{digest}-{}", ulid::Ulid::generate()), stored.len());
        let new = object.clone();
        let known = self.grow(Access::Write, move |transaction, of| {
            let known = find_content(transaction, of, &digest)?;
            let is_new = known.is_none() && has_no_objects(transaction)?;
            if known.is_none() {
                let size = i64::try_from(size).unwrap_or(i64::MAX);
                transaction.execute(
                    "INSERT INTO blob (object, tenant, digest, bytes, used, status)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'uploading')",
                    params![new, of.0, digest, size, transaction.now()],
                )?;
            }
            Ok((known, is_new))
        });
        let (known, is_new) = known.await?;
        if let Some(known) = known {
            // Writing a lost object again repairs all rows that refer to it.
            if !blobs.has(&known).await.map_err(failed)? {
                blobs.put(&known, stored.into()).await.map_err(failed)?;
            }
            return Ok(StoredText::Object(known));
        }
        blobs.enter(is_new).await.map_err(failed)?;
        blobs.put(&object, stored.into()).await.map_err(failed)?;
        let new = object.clone();
        let finished = self.write(move |transaction, _| {
            let finish = "UPDATE blob SET status = 'ready', used = ?2
                          WHERE object = ?1 AND status = 'uploading'";
            Ok(transaction.execute(finish, params![new, transaction.now()])?)
        });
        match finished.await? {
            0 => {
                blobs.remove(&object).await.map_err(failed)?;
                Err(failed("the upload of a file took more than an hour".into()))
            }
            _ => Ok(StoredText::Object(object)),
        }
    }

    /// Moves a turn's file changes to an object if they are large. Returns their stored form.
    /// Returns `None` if the file changes stay in the turn.
    pub(super) async fn store_files(
        &self,
        turn: &mut Turn,
    ) -> Result<Option<StoredText>, StoreError> {
        let is_large = |files: &String| files.len() > INLINE && self.store.blobs.is_some();
        match turn.files.take_if(|files| is_large(files)) {
            Some(files) => self.store_text(files).await.map(Some),
            None => Ok(None),
        }
    }

    /// Loads a file's text from its stored form.
    pub(super) async fn load_text(&self, stored: StoredText) -> Result<String, StoreError> {
        let load = async {
            let stored = match stored {
                StoredText::Inline(text) => text.into(),
                StoredText::Object(object) => self.store.blobs()?.get(&object).await?,
            };
            let (size, seal) = (stored.len(), self.seal.clone());
            let open = move || open_text(seal.as_deref(), String::from_utf8(stored.into())?);
            off_the_runtime(size, open).await
        };
        load.await.map_err(|cause| self.store.failed("read", cause))
    }
}

/// Returns the name of the object whose content has this digest. Updates the time of the object's
/// last use. Returns `None` if there is no such object.
fn find_content(
    transaction: &mut Transaction<'_>,
    (tenant, _): Owner<'_>,
    digest: &str,
) -> Result<Option<String>, Cause> {
    let query = "UPDATE blob SET status = 'ready', used = ?3 WHERE object = (
                     SELECT object FROM blob WHERE tenant = ?1 AND digest = ?2
                     AND status IN ('ready', 'unused') LIMIT 1)
                 AND status IN ('ready', 'unused') RETURNING object";
    let found = transaction.first(query, params![tenant, digest, transaction.now()])?;
    found.map(|row| row.get(0)).transpose()
}

/// Returns true if the store contains no objects except those that are still being uploaded. In
/// that case, the location of the objects may be new and may not contain the `MARKER` object yet.
fn has_no_objects(transaction: &mut Transaction<'_>) -> Result<bool, Cause> {
    let query = "SELECT 1 FROM blob WHERE status <> 'uploading' LIMIT 1";
    Ok(transaction.first(query, params![])?.is_none())
}

/// The SQL condition for unreferenced objects that were last used before ?1.
const UNREFERENCED: &str = "used < ?1
     AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.object = blob.object)
     AND NOT EXISTS (SELECT 1 FROM session_file WHERE session_file.object = blob.object)";

/// Returns the number of objects that [`take_unused`] would return.
fn count_unused(transaction: &mut Transaction<'_>, old: i64) -> Result<u64, Cause> {
    let query = format!(
        "SELECT COUNT(*) FROM blob WHERE status = 'removing'
         OR status IN ('unused', 'uploading') AND {UNREFERENCED}"
    );
    Ok(transaction.one(&query, params![old])?.get::<i64>(0)?.cast_unsigned())
}

/// Updates the status of unreferenced objects that were last used before `old`, in the page of
/// objects whose names sort after `after`. Ready objects are marked as unused. Objects that are
/// already unused, or were never uploaded completely, are marked for removal. Returns two values:
/// the last name in the page, or `None` if the page is empty; and the names of the objects that are
/// marked for removal.
fn take_unused(
    transaction: &mut Transaction<'_>,
    after: &str,
    old: i64,
) -> Result<(Option<String>, Vec<String>), Cause> {
    let page = "SELECT object FROM blob WHERE object > ?1 ORDER BY object LIMIT ?2";
    let page: Vec<String> = transaction.query(page, params![after, PAGE], |row| row.get(0))?;
    let Some(last) = page.last() else { return Ok((None, Vec::new())) };
    let removing = format!(
        "UPDATE blob SET status = 'removing' WHERE object > ?2 AND object <= ?3
         AND status IN ('unused', 'uploading') AND {UNREFERENCED}"
    );
    transaction.execute(&removing, params![old, after, last])?;
    let unused = format!(
        "UPDATE blob SET status = 'unused', used = ?4 WHERE object > ?2 AND object <= ?3
         AND status = 'ready' AND {UNREFERENCED}"
    );
    transaction.execute(&unused, params![old, after, last, transaction.now()])?;
    let removing = "SELECT object FROM blob WHERE object > ?1 AND object <= ?2
                    AND status = 'removing'";
    let removing = transaction.query(removing, params![after, last], |row| row.get(0))?;
    Ok((Some(last.clone()), removing))
}
