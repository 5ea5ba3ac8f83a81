//! `wattle prune`: removes old data from the store and the caches.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::json;
use wattle_agent::host::{PruneError, Pruned};

use crate::args::PruneArgs;
use crate::config::{Layer, Places};
use crate::fault::Fault;
use crate::progress::{counted, size};
use crate::{output, setup, trust, undone};

/// Time after which an unused cache file is removed. The file is created again when needed.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Maximum age of the saved copies of files whose changes could not be applied.
const UNAPPLIED: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Files that were removed or, in a dry run, would be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Freed {
    files: usize,
    bytes: u64,
}

/// Removes old runs, events and sessions, unused cache files, and old copies of files whose changes
/// could not be applied.
pub(crate) async fn prune(args: PruneArgs, flags: &[Layer]) -> Result<(), Fault> {
    let named = Layer { store: args.store.map(Some), ..Layer::default() };
    let config = trust::gather(&[&[named], flags].concat())?;
    let (pruned, result) = match setup::store_if_there(&config)? {
        Some(store) if args.dry_run => (store.file().prunable().await?, Ok(())),
        Some(store) => match store.file().prune().await {
            Ok(pruned) => (pruned, Ok(())),
            Err(PruneError { removed, cause }) => (removed, Err(Fault::from(cause))),
        },
        None => (Pruned::default(), Ok(())),
    };
    let cache = Places::of_user().cache;
    let of = |list: fn(&Path) -> Vec<PathBuf>| {
        let files = cache.as_deref().map(list).unwrap_or_default();
        freed(&files, args.dry_run)
    };
    let (compiled, indexes, unapplied) = (of(files), of(indexes), unapplied(args.dry_run));
    if args.json {
        output::json(&json!({
            "dry_run": args.dry_run, "store": pruned, "compiled": compiled, "search": indexes,
            "unapplied": unapplied,
        }))?;
    } else {
        output::text(&as_text(pruned, [compiled, unapplied, indexes]))?;
        if args.dry_run {
            output::note("nothing was removed");
        }
    }
    result
}

fn as_text(pruned: Pruned, files: [Freed; 3]) -> String {
    let freed = |freed: Freed| format!("{}, {}", counted(freed.files, "file"), size(freed.bytes));
    let [compiled, unapplied, indexes] = files.map(freed);
    format!(
        "store     {}, {}, events of {}, {}\ncompiled  {compiled}\nunapplied {unapplied}\n\
         search    {indexes}",
        counted(pruned.runs, "run"),
        counted(pruned.sessions, "session"),
        counted(pruned.runs_without_events, "run"),
        counted(pruned.objects, "large file")
    )
}

/// Returns the files of search indexes, which are in one folder per tenant. An index's log is
/// removed together with the index, or by the next process that opens the index.
fn indexes(cache: &Path) -> Vec<PathBuf> {
    let tenants = std::fs::read_dir(cache.join("search")).into_iter().flatten().flatten();
    tenants.flat_map(|tenant| files(&tenant.path())).collect()
}

/// Returns the regular files in a folder. Those in the cache folder are compiled modules.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    plain.map(|entry| entry.path()).collect()
}

/// Removes the files that were last used more than [`UNUSED`] ago. In a dry run, only counts them.
fn freed(files: &[PathBuf], dry_run: bool) -> Freed {
    let mut freed = Freed::default();
    for path in files {
        let Ok(data) = path.symlink_metadata() else { continue };
        if is_unused(&data) && (dry_run || std::fs::remove_file(path).is_ok()) {
            freed.files += 1;
            freed.bytes += data.len();
        }
    }
    freed
}

fn is_unused(data: &Metadata) -> bool {
    is_older(data.accessed().ok().max(data.modified().ok()), UNUSED)
}

fn is_older(time: Option<SystemTime>, than: Duration) -> bool {
    time.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > than)
}

/// Removes the folders with old copies of files whose changes could not be applied. In a dry run,
/// only counts the files.
fn unapplied(dry_run: bool) -> Freed {
    let mut freed = Freed::default();
    for folder in undone::folders() {
        let modified = folder.symlink_metadata().and_then(|data| data.modified()).ok();
        if !is_older(modified, UNAPPLIED) {
            continue;
        }
        let size = size_of_folder(&folder);
        if dry_run || std::fs::remove_dir_all(&folder).is_ok() {
            freed.files += size.files;
            freed.bytes += size.bytes;
        }
    }
    freed
}

/// Returns the number and the total size of the regular files in a folder and its subfolders.
fn size_of_folder(folder: &Path) -> Freed {
    let mut size = Freed::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => folders.push(entry.path()),
                Ok(data) if data.is_file() => {
                    size.files += 1;
                    size.bytes += data.len();
                }
                _ => {}
            }
        }
    }
    size
}
