//! The marker of a store in a file: a small file beside it, named like the store with the suffix
//! `-id`, that contains the store's id. The id is also in the table `store`.
//!
//! If the store's file is lost or emptied, the marker tells that a store was here, so that no new
//! one takes its place unnoticed.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::Connection;

use super::db::sqlite::beside;
use crate::error::Cause;

/// The suffix of the marker's name.
pub(super) const SUFFIX: &str = "-id";

/// Maximum size of a marker that is read, in bytes.
const LONGEST: usize = 256;

/// Checks, before a file is opened as a store, that no store was lost here: if the file is missing
/// or empty, there must be neither a marker nor a log with changes.
///
/// # Errors
/// If a store was here.
pub(super) fn check_not_lost(path: &Path) -> Result<(), Cause> {
    // The order matters: another process that creates a store writes the file before the others.
    let marker = beside(path, SUFFIX);
    let (is_marked, has_log) = (marker.exists(), size(&beside(path, "-wal"))? > 0);
    if size(path)? > 0 || !(is_marked || has_log) {
        return Ok(());
    }
    let state = if path.exists() { "empty" } else { "missing" };
    let (what, trace) =
        if is_marked { ("", marker) } else { ("the newest changes of ", beside(path, "-wal")) };
    Err(format!(
        "the file is {state}, but `{}` shows that {what}a store was here\nhint: restore the file \
         from a back-up; to begin with a new store, remove `{}` first",
        trace.display(),
        trace.display()
    )
    .into())
}

/// Compares the id of an open store with the marker beside it. Writes the marker if there is none.
/// Returns the id.
///
/// # Errors
/// If the marker names another store, or the store cannot be read.
pub(super) fn verify(path: &Path, connection: &Connection) -> Result<String, Cause> {
    let id: String = connection.query_row("SELECT id FROM store", [], |row| row.get(0))?;
    let marker = beside(path, SUFFIX);
    let found = match read(&marker) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(format!("failed to read `{}`: {error}", marker.display()).into()),
    };
    match found.trim() {
        known if known == id => {}
        // A marker that could not be written completely is empty.
        "" => {
            // The marker must not outlive the content that it stands for.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            if let Err(error) = write(&marker, &id) {
                tracing::warn!(
                    path = %marker.display(),
                    %error,
                    "failed to write the file that would show a loss of the store"
                );
            }
        }
        known => {
            return Err(format!(
                "it is another store than the one that was here: its id is {id}, and `{}` names \
                 {known}\nhint: put the right file back; if this one is to take its place, remove \
                 `{}`",
                marker.display(),
                marker.display()
            )
            .into());
        }
    }
    Ok(id)
}

fn size(path: &Path) -> io::Result<u64> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(meta.len()),
        // Other kinds of files are rejected later.
        Ok(_) => Ok(0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn read(marker: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = options().read(true).open(marker)?;
    io::Read::read_to_string(&mut io::Read::take(file, LONGEST as u64), &mut text)?;
    Ok(text)
}

fn write(marker: &Path, id: &str) -> io::Result<()> {
    let mut file = options().write(true).create(true).truncate(true).open(marker)?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.sync_all()
}

/// Returns options that do not follow links, wait for no writer of a FIFO, and create private files.
fn options() -> OpenOptions {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}
