//! The catalog in use: read from its folders, looked at again as time goes by, exchanged as a whole.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wattle_catalog::{Catalog, Entry, Folders, Name, Problem};
use wattle_rt::Runtime;

/// How long a look at the folders holds.
const HOLDS: Duration = Duration::from_secs(1);

/// How many programs of the catalog are compiled at once.
const AT_ONCE: usize = 8;

/// What became of the catalog since it was last told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CatalogDiff {
    /// The programs that are new or have a new text, by name.
    pub changed: Vec<Name>,
    /// The programs that are gone.
    pub gone: Vec<Name>,
    /// What is wrong with files, and was not before.
    pub problems: Vec<Problem>,
}

impl CatalogDiff {
    /// Whether nothing became of it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == CatalogDiff::default()
    }

    fn between(before: &Catalog, after: &Catalog) -> CatalogDiff {
        let known =
            |entry: &&Arc<Entry>| before.get(entry.name().as_str()).is_some_and(|e| e.source() == entry.source());
        let there = |entry: &&Arc<Entry>| after.get(entry.name().as_str()).is_some();
        CatalogDiff {
            changed: after.iter().filter(|entry| !known(entry)).map(|entry| entry.name().clone()).collect(),
            gone: before.iter().filter(|entry| !there(entry)).map(|entry| entry.name().clone()).collect(),
            problems: after.problems().iter().filter(|p| !before.problems().contains(p)).cloned().collect(),
        }
    }
}

/// The catalog of a host. Whoever takes it keeps what it took, whatever becomes of the folders.
pub(crate) struct CatalogReloader {
    folders: RwLock<Folders>,
    looked: tokio::sync::Mutex<Looked>,
}

struct Looked {
    at: Instant,
    /// The catalog that its users know of.
    told: Catalog,
}

impl CatalogReloader {
    pub(crate) fn new(folders: Folders) -> CatalogReloader {
        let told = folders.catalog().clone();
        CatalogReloader { folders: RwLock::new(folders), looked: Looked { at: Instant::now(), told }.into() }
    }

    fn folders(&self) -> Folders {
        self.folders.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, folders: Folders) {
        *self.folders.write().unwrap_or_else(PoisonError::into_inner) = folders;
    }

    /// The catalog as it is now.
    pub(crate) fn catalog(&self) -> Catalog {
        self.folders().catalog().clone()
    }

    /// Looks at the folders, where the last look is a second old, and compiles what changed; a program that does not compile
    /// keeps its version before. Tells what became of the catalog since the last time. One look at a time: who comes
    /// meanwhile goes on with the catalog as it is.
    pub(crate) async fn refresh(&self, runtime: &Runtime) -> CatalogDiff {
        let Ok(mut looked) = self.looked.try_lock() else { return CatalogDiff::default() };
        if looked.at.elapsed() >= HOLDS {
            let (folders, runtime) = (self.folders(), runtime.clone());
            let host = tokio::runtime::Handle::current();
            let look = move || folders.rescan(&|entry| host.block_on(check(&runtime, entry)));
            if let Ok(Some(folders)) = tokio::task::spawn_blocking(look).await {
                self.put(folders);
            }
            looked.at = Instant::now();
        }
        let now = self.catalog();
        if now.is(&looked.told) {
            return CatalogDiff::default();
        }
        let news = CatalogDiff::between(&looked.told, &now);
        looked.told = now;
        news
    }

    /// Compiles all programs, some at a time, so that other texts find a place among those that wait; those of folders that do not compile are left out, and
    /// the next [`refresh`](Shelf::refresh) tells of them.
    pub(crate) async fn warm(&self, runtime: &Runtime) {
        let (mut tasks, places) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
        for entry in self.catalog().iter() {
            let (runtime, entry, places) = (runtime.clone(), Arc::clone(entry), Arc::clone(&places));
            tasks.spawn(async move {
                // It is never closed.
                let _place = places.acquire().await;
                check(&runtime, &entry).await
            });
        }
        let refused: Vec<Problem> = tasks.join_all().await.into_iter().filter_map(Result::err).collect();
        if !refused.is_empty() {
            // No look may come between what is read here and what is put.
            let _looking = self.looked.lock().await;
            self.put(self.folders().refuse(&refused));
        }
    }
}

/// Whether a program compiles and has the capabilities that it says.
pub(crate) async fn check(runtime: &Runtime, entry: &Entry) -> Result<(), Problem> {
    let program = runtime.prepare(entry.source()).await.map_err(|diagnostic| entry.refused(&diagnostic))?;
    entry.check_uses(program.imports())
}
