//! The current catalog. It is read from folders and is replaced as a whole when they change.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wattle_capability::policy::Grant;
use wattle_catalog::{Catalog, Entry, Folders, Name, Problem};
use wattle_rt::{Program, Runtime};

/// Minimum time between two reloads of the folders.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of programs that are compiled concurrently.
const MAX_CONCURRENT: usize = 8;

/// The changes to the catalog since the last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogDiff {
    /// The names of new and changed programs.
    pub changed: Vec<Name>,
    /// The names of removed programs.
    pub removed: Vec<Name>,
    /// New problems in the catalog's files.
    pub problems: Vec<Problem>,
}

impl CatalogDiff {
    /// Returns true if nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == CatalogDiff::default()
    }

    fn between(before: &Catalog, after: &Catalog) -> CatalogDiff {
        let known = |entry: &&Arc<Entry>| {
            before.get(entry.name().as_str()).is_some_and(|e| e.source() == entry.source())
        };
        let remains = |entry: &&Arc<Entry>| after.get(entry.name().as_str()).is_some();
        CatalogDiff {
            changed: after
                .iter()
                .filter(|entry| !known(entry))
                .map(|entry| entry.name().clone())
                .collect(),
            removed: before
                .iter()
                .filter(|entry| !remains(entry))
                .map(|entry| entry.name().clone())
                .collect(),
            problems: after
                .problems()
                .iter()
                .filter(|p| !before.problems().contains(p))
                .cloned()
                .collect(),
        }
    }
}

/// The catalog of a host, and the folders from which it is read. A reload replaces the catalog, but
/// callers keep the version that they received.
pub(crate) struct CatalogReloader {
    folders: RwLock<Folders>,
    reported: tokio::sync::Mutex<LastReport>,
}

struct LastReport {
    checked: Instant,
    /// The catalog at the time of the last report.
    catalog: Catalog,
}

impl CatalogReloader {
    pub(crate) fn new(folders: Folders) -> CatalogReloader {
        let catalog = folders.catalog().clone();
        CatalogReloader {
            folders: RwLock::new(folders),
            reported: LastReport { checked: Instant::now(), catalog }.into(),
        }
    }

    /// Returns a reloader for the same folders and for additional programs.
    pub(crate) fn with_programs(&self, programs: Vec<Entry>) -> CatalogReloader {
        CatalogReloader::new(self.folders().adding(programs))
    }

    fn folders(&self) -> Folders {
        self.folders.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, folders: Folders) {
        *self.folders.write().unwrap_or_else(PoisonError::into_inner) = folders;
    }

    /// Returns the current catalog.
    pub(crate) fn catalog(&self) -> Catalog {
        self.folders().catalog().clone()
    }

    /// Reloads the folders, at most once a second, and compiles the changed programs. A program
    /// that does not compile keeps its previous version. Returns the changes since the last call.
    /// One caller reloads at a time; concurrent callers return immediately and use the current
    /// catalog.
    pub(crate) async fn refresh(&self, runtime: &Runtime) -> CatalogDiff {
        let Ok(mut reported) = self.reported.try_lock() else { return CatalogDiff::default() };
        if reported.checked.elapsed() >= MIN_INTERVAL {
            self.rescan(runtime, &mut reported).await;
        }
        self.diff(&mut reported)
    }

    /// Reloads the folders now. When this function returns, the catalog contains every file that
    /// was written before the call. The next [`refresh`](Self::refresh) reports the changes.
    pub(crate) async fn reload(&self, runtime: &Runtime) {
        let mut reported = self.reported.lock().await;
        self.rescan(runtime, &mut reported).await;
    }

    /// Adds programs to the catalog.
    pub(crate) async fn add(&self, programs: Vec<Entry>) {
        // No reload may happen between this read and the write.
        let _guard = self.reported.lock().await;
        self.put(self.folders().adding(programs));
    }

    async fn rescan(&self, runtime: &Runtime, reported: &mut LastReport) {
        let (folders, runtime) = (self.folders(), runtime.clone());
        let host = tokio::runtime::Handle::current();
        let reload = move || {
            folders.rescan(&|catalog, entry| host.block_on(check(&runtime, catalog, entry)))
        };
        if let Ok(Some(folders)) = tokio::task::spawn_blocking(reload).await {
            self.put(folders);
        }
        reported.checked = Instant::now();
    }

    fn diff(&self, reported: &mut LastReport) -> CatalogDiff {
        let now = self.catalog();
        if now.is(&reported.catalog) {
            return CatalogDiff::default();
        }
        let diff = CatalogDiff::between(&reported.catalog, &now);
        reported.catalog = now;
        diff
    }

    /// Compiles all programs, a few at a time, so that the compiler's queue has free slots for
    /// other programs. If a program from a folder does not compile, it is left out, and the next
    /// [`refresh`](Self::refresh) reports it.
    pub(crate) async fn warm(&self, runtime: &Runtime) {
        let (mut tasks, slots) = (JoinSet::new(), Arc::new(Semaphore::new(MAX_CONCURRENT)));
        let catalog = self.catalog();
        for entry in catalog.iter() {
            let (runtime, entry, slots) = (runtime.clone(), Arc::clone(entry), Arc::clone(&slots));
            let catalog = catalog.clone();
            tasks.spawn(async move {
                // The semaphore is never closed.
                let _slot = slots.acquire().await;
                check(&runtime, &catalog, &entry).await
            });
        }
        let refused: Vec<Problem> =
            tasks.join_all().await.into_iter().filter_map(Result::err).collect();
        if !refused.is_empty() {
            // No reload may happen between this read and the write.
            let _guard = self.reported.lock().await;
            self.put(self.folders().refuse(&refused));
        }
    }
}

/// Checks that a program compiles, that it uses the capabilities that it declares, and that it can
/// be given what it asks for.
pub(crate) async fn check(
    runtime: &Runtime,
    catalog: &Catalog,
    entry: &Entry,
) -> Result<(), Problem> {
    let prepared = crate::programs::prepare_in(runtime, catalog, entry.source(), None).await;
    let program = prepared.map_err(|diagnostic| entry.refused(&diagnostic))?;
    check_front_matter(runtime, entry, &program)
}

/// Checks the front matter of a program against its compiled body.
///
/// # Errors
/// If `uses` is wrong, or `grants` contains something that nobody can give.
pub fn check_front_matter(
    runtime: &Runtime,
    entry: &Entry,
    program: &Program,
) -> Result<(), Problem> {
    entry.check_uses(runtime, program)?;
    entry.check_grants(|grant| grant.parse::<Grant>().map(drop))
}
