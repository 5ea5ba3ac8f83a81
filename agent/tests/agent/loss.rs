//! Tests of a store whose files are locked by another process, lost, replaced or damaged.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use wattle_agent::host::TenantStore;
use wattle_agent::host::journal::Journal as _;
use wattle_agent::host::machine::Message;
use wattle_agent::{Store, Tenant};

const HOUR: Duration = Duration::from_secs(3_600);
/// Maximum time until a check has failed, with some time for a busy machine.
const SOON: Duration = Duration::from_secs(3);

/// A store in a folder of its own.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        Place { _folder: folder, path }
    }

    fn open(&self) -> Result<Store, String> {
        Store::open(&self.path, HOUR).map_err(|error| error.to_string())
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.path.with_file_name(format!("s.db{suffix}"))
    }

    /// Creates a store with a session, and closes it.
    async fn filled() -> Place {
        let place = Place::new();
        let store = place.open().unwrap();
        extend(&of(&store)).await.unwrap();
        store.close().await.unwrap();
        place
    }
}

fn of(store: &Store) -> TenantStore {
    store.tenant(&Tenant::default())
}

async fn extend(of: &TenantStore) -> Result<(), String> {
    of.extend("s", vec![Message::user("hello")]).await.map_err(|error| error.to_string())
}

async fn why_not_ready(store: &Store) -> String {
    let began = Instant::now();
    let error = store.check().await.unwrap_err();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    format!("{}: {error}", error.reason())
}

#[tokio::test]
async fn a_closed_store_is_complete_without_its_log() {
    let place = Place::filled().await;
    assert_eq!(std::fs::metadata(place.beside("-wal")).map_or(0, |meta| meta.len()), 0);
    let other = Place::new();
    std::fs::copy(&place.path, &other.path).unwrap();
    let messages = of(&other.open().unwrap()).export("s").await.unwrap().unwrap().messages;
    assert_eq!(messages.len(), 1);
}

#[tokio::test]
async fn a_store_that_another_process_locks_is_not_ready_and_a_dropped_lock_does_not_wait_for_it() {
    let place = Place::filled().await;
    let store = place.open().unwrap();
    store.check().await.unwrap();
    let lock = of(&store).lock("run:r").await.unwrap().unwrap();
    let other = Connection::open(&place.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let why = why_not_ready(&store).await;
    assert!(why.contains("another process has held the lock for"), "{why}");
    assert!(why.contains("another process holds the lock of the store: "), "{why}");
    let began = Instant::now();
    drop(lock);
    tokio::task::yield_now().await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    other.execute_batch("ROLLBACK").unwrap();
    // The writes that waited for the lock end first.
    for _ in 0..100 {
        if store.check().await.is_ok() {
            return;
        }
    }
    panic!("the store does not become ready again");
}

#[tokio::test]
async fn checks_of_a_store_share_a_write() {
    let place = Place::filled().await;
    let store = place.open().unwrap();
    let count = || -> i64 {
        let reader = Connection::open(&place.path).unwrap();
        reader.query_row("SELECT checks FROM store", [], |row| row.get(0)).unwrap()
    };
    store.check().await.unwrap();
    let before = count();
    let checks = (0..20).map(|_| store.check());
    assert!(futures_util::future::join_all(checks).await.iter().all(Result::is_ok));
    assert_eq!(count(), before + 1);
}

/// Another process finds the log in use as long as one connection to the store is open.
#[tokio::test]
async fn a_store_that_is_opened_again_keeps_its_locks() {
    let place = Place::filled().await;
    let store = place.open().unwrap();
    extend(&of(&store)).await.unwrap();
    drop(place.open().unwrap());
    // Closing the last connection to a store removes its log.
    const OTHER: &str = "import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
other.execute('SELECT * FROM store').fetchall()
other.close()";
    let mut python = std::process::Command::new("python3");
    let other = python.arg("-c").arg(OTHER).arg(&place.path).status();
    if other.is_ok_and(|status| status.success()) {
        extend(&of(&store)).await.unwrap();
        store.check().await.unwrap();
    }
}

#[tokio::test]
async fn a_store_without_space_for_more_is_not_ready() {
    let place = Place::filled().await;
    let store = place.open().unwrap();
    // No file can be written there.
    std::fs::create_dir(place.beside("-check")).unwrap();
    let why = why_not_ready(&store).await;
    assert!(why.contains("failed to write a file beside the store"), "{why}");
    std::fs::remove_dir(place.beside("-check")).unwrap();
    store.check().await.unwrap();
    assert!(!place.beside("-check").exists());
}

#[tokio::test]
async fn files_that_are_removed_or_replaced_in_use_end_all_changes() {
    for suffix in ["", "-wal", "-shm"] {
        let place = Place::filled().await;
        let store = place.open().unwrap();
        let (file, away) = (place.beside(suffix), place.beside("-away"));
        std::fs::rename(&file, &away).unwrap();
        for state in ["was removed", "was replaced"] {
            let why = extend(&of(&store)).await.unwrap_err();
            assert!(why.contains(state) && why.contains("hint: stop what uses"), "{why}");
            assert!(why_not_ready(&store).await.contains("were removed or replaced"));
            assert!(of(&store).export("s").await.is_err());
            std::fs::copy(&away, &file).unwrap();
        }
        std::fs::rename(&away, &file).unwrap();
        extend(&of(&store)).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_contains_another_store_now_is_noticed() {
    let (place, other) = (Place::filled().await, Place::filled().await);
    let store = place.open().unwrap();
    // The file keeps its inode.
    Connection::open(&place.path)
        .unwrap()
        .execute_batch(&format!(
            "ATTACH '{}' AS other; UPDATE store SET id = (SELECT id FROM other.store)",
            other.path.display()
        ))
        .unwrap();
    let why = why_not_ready(&store).await;
    assert!(why.contains("contains another store now"), "{why}");
    let why = extend(&of(&store)).await.unwrap_err();
    assert!(why.contains("contains another store now"), "{why}");
    let why = place.open().err().unwrap();
    assert!(why.contains("it is another store than the one that was here"), "{why}");
    assert!(why.contains("hint: put the right file back"), "{why}");
}

#[tokio::test]
async fn no_new_store_takes_the_place_of_a_lost_one() {
    let place = Place::filled().await;
    let whole = std::fs::read(&place.path).unwrap();
    std::fs::write(&place.path, "").unwrap();
    let why = place.open().err().unwrap();
    assert!(why.contains("the file is empty, but") && why.contains("s.db-id"), "{why}");
    assert!(why.contains("hint: restore the file from a back-up"), "{why}");
    std::fs::remove_file(&place.path).unwrap();
    assert!(place.open().err().unwrap().contains("the file is missing, but"));
    assert!(!place.path.exists(), "nothing is created");
    // A back-up has the same id.
    std::fs::write(&place.path, whole).unwrap();
    extend(&of(&place.open().unwrap())).await.unwrap();
    for suffix in ["", "-wal", "-shm", "-id"] {
        drop(std::fs::remove_file(place.beside(suffix)));
    }
    extend(&of(&place.open().unwrap())).await.unwrap();
    // A log whose file is lost has changes that opening the file would remove.
    let other = Place::new();
    std::fs::write(other.beside("-wal"), "changes").unwrap();
    let why = other.open().err().unwrap();
    assert!(why.contains("the newest changes of a store"), "{why}");
}

/// Overwrites all pages of a file except the first two.
fn damage(path: &Path) {
    let size = std::fs::metadata(path).unwrap().len();
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(2 * 4_096)).unwrap();
    file.write_all(&vec![0xA5; usize::try_from(size).unwrap() - 2 * 4_096]).unwrap();
}

#[tokio::test]
async fn a_damaged_store_reports_what_to_do() {
    let place = Place::filled().await;
    place.open().unwrap().check_structure(u64::MAX).await.unwrap();
    damage(&place.path);
    let error = match Store::open(&place.path, HOUR) {
        Ok(store) => store.check_structure(u64::MAX).await.unwrap_err(),
        Err(error) => error,
    };
    let why = error.to_string();
    assert!(why.contains("restore a back-up; `wattle store check`"), "{why}");
    assert!(!why.contains("SELECT") && !error.is_outage(), "{why}");
    std::fs::write(&place.path, [0x5A; 8_192]).unwrap();
    let why = place.open().err().unwrap();
    assert!(why.contains("restore a back-up"), "{why}");
}
