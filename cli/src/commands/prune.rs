//! `wattle prune`: removes old data from the store and the caches.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use wattle_agent::{PruneError, Pruned, StoreError};

use crate::args::PruneArgs;
use crate::config::{Config, Layer, Places};
use crate::fault::{Exit, Fault};
use crate::output;
use crate::progress::{counted, size};
use crate::setup;

/// Time after which an unused cache file is removed. The file is created again when needed.
const UNUSED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Cache files that were removed or, in a dry run, would be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Freed {
    files: usize,
    bytes: u64,
}

/// Removes old runs, events and sessions, and unused cache files.
pub(crate) async fn prune(args: PruneArgs, outer: Layer) -> Result<Exit, Fault> {
    let named = Layer { store: args.store.map(Some), ..Layer::default() };
    let config = Config::gather(&[named, outer])?;
    let failed = |cause: StoreError| Fault::failed(cause.to_string());
    let (pruned, result) = match setup::store_if_there(&config)? {
        Some(store) if args.dry_run => (store.file().prunable().await.map_err(failed)?, Ok(())),
        Some(store) => match store.file().prune().await {
            Ok(pruned) => (pruned, Ok(())),
            Err(PruneError { removed, cause }) => (removed, Err(failed(cause))),
        },
        None => (Pruned::default(), Ok(())),
    };
    let cache = Places::of_user().cache;
    let of = |list: fn(&Path) -> Vec<PathBuf>| {
        let files = cache.as_deref().map(list).unwrap_or_default();
        freed(&files, args.dry_run)
    };
    let (compiled, indexes) = (of(compiled), of(indexes));
    if args.json {
        let freed = |freed: Freed| json!({"files": freed.files, "bytes": freed.bytes});
        let done = json!({
            "dry_run": args.dry_run,
            "store": pruned,
            "compiled": freed(compiled),
            "search": freed(indexes),
        });
        output::json(&done)?;
    } else {
        output::text(&as_text(pruned, compiled, indexes))?;
        if args.dry_run {
            output::note("nothing was removed");
        }
    }
    result.map(|()| Exit::Done)
}

fn as_text(pruned: Pruned, compiled: Freed, indexes: Freed) -> String {
    let count = |count: u64, noun| counted(usize::try_from(count).unwrap_or(usize::MAX), noun);
    let freed = |freed: Freed| format!("{}, {}", counted(freed.files, "file"), size(freed.bytes));
    format!(
        "store     {}, {}, events of {}, {}\ncompiled  {}\nsearch    {}",
        count(pruned.runs, "run"),
        count(pruned.sessions, "session"),
        count(pruned.runs_without_events, "run"),
        count(pruned.objects, "large file"),
        freed(compiled),
        freed(indexes)
    )
}

/// Returns the files of compiled modules, which are directly in the cache folder.
fn compiled(cache: &Path) -> Vec<PathBuf> {
    files(cache)
}

/// Returns the files of search indexes, which are in one folder per tenant. An index's log is
/// removed together with the index, or by the next process that opens the index.
fn indexes(cache: &Path) -> Vec<PathBuf> {
    let tenants = std::fs::read_dir(cache.join("search")).into_iter().flatten().flatten();
    tenants.flat_map(|tenant| files(&tenant.path())).collect()
}

/// Returns the regular files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    plain.map(|entry| entry.path()).collect()
}

/// Removes the files that have not been used for a long time. In a dry run, only counts them.
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
    let used = data.accessed().ok().max(data.modified().ok());
    used.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > UNUSED)
}
