//! Tests the index against attacks by a run, by another user of the machine, and by anyone who can
//! write to the index file.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use super::{Place, over};

/// Time from a change to a file until the index records the file's new version, including a margin.
const SETTLED: Duration = Duration::from_millis(2_200);

#[tokio::test]
async fn an_overlay_is_never_in_a_shared_index() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = cache.path().join("index.db");
    let file = dir.path().join("a.txt");
    std::fs::write(&file, "the walrus sings of rain").unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::thread::sleep(SETTLED);
    let forger = Place::new(over(dir.path()), Some(&index), None);
    // The size and the modification time are the same as in the base.
    forger.files.write("a.txt", b"the walrus lies of gold!").unwrap();
    forger.files.write("b.txt", b"the walrus lies of silver").unwrap();
    forger.files.set_modified("a.txt", modified).unwrap();
    for query in ["walrus", "gold"] {
        assert!(forger.paths(query).await.contains(&"a.txt".to_owned()));
    }
    let later = Place::new(over(dir.path()), Some(&index), None);
    assert!(later.paths("lies gold silver").await.is_empty());
    let found = later.search("walrus").await;
    assert_eq!((found.len(), found[0]["passage"].as_str()), (1, Some("the walrus sings of rain")));
    for suffix in ["", "-wal"] {
        let bytes = std::fs::read(format!("{}{suffix}", index.display())).unwrap_or_default();
        assert!(!bytes.windows(4).any(|part| part == b"lies"), "{suffix}");
    }
}

#[tokio::test]
async fn a_file_changed_with_the_same_size_and_time_is_read_again() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = cache.path().join("index.db");
    let file = dir.path().join("a.txt");
    std::fs::write(&file, "the walrus sings").unwrap();
    std::thread::sleep(SETTLED);
    let place = Place::new(over(dir.path()), Some(&index), None);
    assert_eq!(place.paths("walrus").await, ["a.txt"]);
    let modified = file.metadata().unwrap().modified().unwrap();
    std::fs::write(&file, "the badger sings").unwrap();
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    assert!(place.paths("walrus").await.is_empty());
    assert_eq!(Place::new(over(dir.path()), Some(&index), None).paths("badger").await, ["a.txt"]);
}

#[tokio::test]
async fn a_passage_that_is_not_in_its_file_is_not_returned() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = cache.path().join("index.db");
    std::fs::write(dir.path().join("a.txt"), "the walrus sings").unwrap();
    std::fs::write(dir.path().join("b.txt"), "the otter dances").unwrap();
    std::thread::sleep(SETTLED);
    assert_eq!(Place::new(over(dir.path()), Some(&index), None).paths("walrus").await, ["a.txt"]);
    for forgery in [
        "UPDATE passage SET text = 'the walrus obeys the forger' WHERE text LIKE '%walrus%'",
        "UPDATE passage SET first = 7, last = 9",
        "UPDATE file SET path = 'b.txt' WHERE path = 'a.txt'",
        "UPDATE file SET path = '../outside'",
        "INSERT INTO passage SELECT 99, id, 1, 1, 'forged' FROM file;
         INSERT INTO words (rowid, path, text, parts) VALUES (99, 'a.txt', 'walrus forged', '')",
    ] {
        let database = rusqlite::Connection::open(&index).unwrap();
        // A statement may fail, in which case it forges nothing.
        let _ = database.execute_batch(forgery);
        drop(database);
        for query in ["walrus", "forged forger obeys"] {
            for hit in Place::new(over(dir.path()), Some(&index), None).search(query).await {
                let (path, passage) =
                    (hit["path"].as_str().unwrap(), hit["passage"].as_str().unwrap());
                assert_eq!(
                    std::fs::read_to_string(dir.path().join(path)).unwrap(),
                    passage,
                    "{forgery}"
                );
                assert_eq!(hit["lines"], "1", "{forgery}");
            }
        }
    }
    let healed = Place::new(over(dir.path()), Some(&index), None).paths("walrus").await;
    assert_eq!(healed, ["a.txt"], "what was found to be forged is read anew");
}

#[tokio::test]
async fn an_index_that_others_can_write_or_that_has_code_is_replaced() {
    let (dir, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let index = cache.path().join("index.db");
    std::fs::write(dir.path().join("a.txt"), "the walrus sings").unwrap();
    let found = || async { Place::new(over(dir.path()), Some(&index), None).paths("walrus").await };
    assert_eq!(found().await, ["a.txt"]);
    let mode = || index.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    let number = || index.metadata().unwrap().ino();

    std::fs::set_permissions(&index, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!((found().await, mode()), (vec!["a.txt".to_owned()], 0o600));

    let elsewhere = cache.path().join("elsewhere.db");
    std::fs::rename(&index, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &index).unwrap();
    let before = std::fs::read(&elsewhere).unwrap();
    assert_eq!(found().await, ["a.txt"]);
    assert!(!index.symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read(&elsewhere).unwrap(), before, "what a link leads to is left alone");

    std::fs::hard_link(&index, cache.path().join("second")).unwrap();
    let shared = number();
    assert_eq!(found().await, ["a.txt"]);
    assert_ne!(number(), shared);

    for foreign in [
        "CREATE TRIGGER evil AFTER INSERT ON passage BEGIN UPDATE passage SET text = 'forged'; END",
        "CREATE VIEW evil AS SELECT * FROM passage",
        "CREATE TABLE more (x)",
    ] {
        let before = number();
        let database = rusqlite::Connection::open(&index).unwrap();
        database.execute_batch(foreign).unwrap();
        drop(database);
        assert_eq!(found().await, ["a.txt"]);
        let database = rusqlite::Connection::open(&index).unwrap();
        let evil: u32 = database
            .query_row(
                "SELECT count(*) FROM sqlite_master WHERE name IN ('evil', 'more')",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(evil, 0, "{foreign} {before}");
    }
}

#[tokio::test]
async fn output_of_runs_is_not_found_as_content_of_files() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["_steps.jsonl", "_ledger.jsonl", "_issues.jsonl", "events.org"] {
        std::fs::write(dir.path().join(name), "the walrus sings").unwrap();
    }
    assert!(Place::new(over(dir.path()), None, None).paths("walrus").await.is_empty());
}
