//! Tests of the objects outside the database, with both engines.

use std::sync::Arc;

use wattle_machine::{Input, Usage};

use super::*;
use crate::NextDelta;
use crate::db::Access;
use crate::journal::{Journal as _, KeptFiles, RunEnd, RunRecord, RunStart};
use crate::tenant::Tenant;

const HOUR: Duration = Duration::from_secs(3_600);

/// A store whose large files are objects in a folder.
struct Fixture {
    store: Store,
    of: TenantStore,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new(store: Store) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let store = store.with_blobs(BlobStore::folder(&folder.path().join("blobs")).unwrap());
        Fixture { of: store.tenant(&Tenant::default()), store, folder }
    }

    /// Returns a fixture for each engine that is installed.
    fn each() -> Vec<Fixture> {
        let sqlite = Store::in_memory(HOUR).unwrap();
        let postgres = wattle_cases::postgres::url().map(|url| Store::connect(&url, HOUR).unwrap());
        [Some(sqlite), postgres].into_iter().flatten().map(Fixture::new).collect()
    }

    /// Returns the paths of all objects.
    fn objects(&self) -> Vec<std::path::PathBuf> {
        let folders = std::fs::read_dir(self.folder.path().join("blobs")).unwrap();
        // The object that marks the location is not in a folder.
        let folders = folders.map(|folder| folder.unwrap().path()).filter(|path| path.is_dir());
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Adds a run with two turns, the second of which changed these files.
    async fn run(&self, id: &str, files: &str) {
        let start = RunStart::new("hello", serde_json::Value::Null);
        let run = RunRecord { session: Some("s".to_owned()), ..RunRecord::new(id, start) };
        self.of.open(run).await.unwrap();
        let first = Turn {
            spent: Usage::default(),
            input: Input::Begin { message: "hello".to_owned() },
            effects: Vec::new(),
            seq: 1,
            elapsed_ms: 0,
            files: Some("[]".to_owned()),
        };
        let second = Turn { files: Some(files.to_owned()), ..first.clone() };
        self.of.turn(id, first, Vec::new(), Vec::new()).await.unwrap();
        self.of.turn(id, second, Vec::new(), Vec::new()).await.unwrap();
    }

    /// Executes a statement that changes rows.
    async fn execute(&self, statement: &'static str) {
        let work =
            move |transaction: &mut Transaction<'_>| Ok(transaction.execute(statement, &[])?);
        self.store.db.run(Access::Write, work).await.unwrap();
    }

    /// Marks or removes the unreferenced objects, regardless of their age. Returns the number of
    /// removed objects.
    async fn sweep(&self) -> u64 {
        let mut removed = 0;
        self.store.remove_unused_objects(i64::MAX, &mut removed).await.unwrap();
        removed
    }

    async fn problems(&self) -> Vec<String> {
        let found = self.store.inspect(None).await.unwrap().findings;
        found.iter().map(ToString::to_string).collect()
    }
}

/// Returns a large text that is a JSON string.
fn large(letter: char) -> String {
    format!("\"{}\"", letter.to_string().repeat(INLINE))
}

#[tokio::test]
async fn large_files_are_objects_and_small_ones_are_not() {
    for fixture in Fixture::each() {
        let of = &fixture.of;
        of.add_session_files("s", "[\"small\"]".to_owned()).await.unwrap();
        assert_eq!(fixture.objects().len(), 0);
        of.add_session_files("s", large('a')).await.unwrap();
        of.add_session_files("other", large('a')).await.unwrap();
        assert_eq!(fixture.objects().len(), 1, "equal texts share an object");
        let files = of.session_files("s").await.unwrap();
        assert_eq!(files.deltas, ["[\"small\"]".to_owned(), large('a')]);
        of.replace_session_files("s", files.newest(), Some(large('b'))).await.unwrap();
        assert_eq!(of.session_files("s").await.unwrap().deltas, [large('b')]);
        assert_eq!(of.session_files("other").await.unwrap().deltas, [large('a')]);
        assert_eq!(fixture.problems().await, [""; 0]);
    }
}

#[tokio::test]
async fn deltas_are_loaded_one_at_a_time_and_their_sizes_are_known_before() {
    for fixture in Fixture::each() {
        let of = &fixture.of;
        assert_eq!(of.session_deltas("s").await.unwrap().count(), 0);
        for text in ["\"small\"".to_owned(), large('a'), large('b')] {
            of.add_session_files("s", text).await.unwrap();
        }
        let mut deltas = of.session_deltas("s").await.unwrap();
        assert_eq!(deltas.count(), 3);
        assert!(deltas.largest() >= INLINE as u64, "{deltas:?}");
        assert!(deltas.total() > 2 * INLINE as u64, "{deltas:?}");
        for text in ["\"small\"".to_owned(), large('a'), large('b')] {
            let next = of.next_session_delta("s", &mut deltas).await.unwrap();
            assert_eq!(next, NextDelta::Delta(text));
            // Later deltas do not belong to the list.
            of.add_session_files("s", large('l')).await.unwrap();
        }
        assert_eq!(of.next_session_delta("s", &mut deltas).await.unwrap(), NextDelta::End);
    }
}

#[tokio::test]
async fn deltas_that_are_replaced_while_they_are_loaded_are_loaded_again() {
    for fixture in Fixture::each() {
        let of = &fixture.of;
        for text in [large('a'), large('b'), large('c')] {
            of.add_session_files("s", text).await.unwrap();
        }
        let listed = of.session_deltas("s").await.unwrap();
        let (mut merged, mut removed) = (listed.clone(), listed.clone());
        for deltas in [&mut merged, &mut removed] {
            let first = of.next_session_delta("s", deltas).await.unwrap();
            assert_eq!(first, NextDelta::Delta(large('a')));
        }
        // The merged delta has the number of the last one, and misses what the last one removed.
        of.replace_session_files("s", listed.newest(), Some(large('m'))).await.unwrap();
        of.add_session_files("s", large('n')).await.unwrap();
        for _ in 0..2 {
            let next = of.next_session_delta("s", &mut merged).await.unwrap();
            assert_eq!(next, NextDelta::Restart);
        }
        // All deltas are merged, including one that the list does not contain.
        let mut old = of.session_deltas("s").await.unwrap();
        of.add_session_files("s", large('o')).await.unwrap();
        let newest = of.session_deltas("s").await.unwrap().newest();
        of.replace_session_files("s", newest, Some(large('p'))).await.unwrap();
        assert_eq!(of.next_session_delta("s", &mut old).await.unwrap(), NextDelta::Restart);
        assert!(of.remove("s").await.unwrap());
        assert_eq!(of.next_session_delta("s", &mut removed).await.unwrap(), NextDelta::Restart);
    }
}

#[tokio::test]
async fn the_files_of_a_run_and_of_its_session_share_an_object() {
    for fixture in Fixture::each() {
        let of = &fixture.of;
        fixture.run("r", &large('a')).await;
        let files: Vec<_> =
            of.turns("r").await.unwrap().into_iter().map(|turn| turn.files).collect();
        assert_eq!(files, [Some("[]".to_owned()), None]);
        let of_tree = of.files_of_tree("r").await.unwrap();
        assert_eq!(of_tree, [(0, "[]".to_owned()), (1, large('a'))]);
        let end = RunEnd { files: KeptFiles::Added, ..RunEnd::default() };
        of.end("r", end).await.unwrap();
        assert_eq!(of.session_files("s").await.unwrap().deltas, [large('a')]);
        assert_eq!(fixture.objects().len(), 1);
    }
}

#[tokio::test]
async fn an_object_is_removed_once_no_row_refers_to_it() {
    for fixture in Fixture::each() {
        let of = &fixture.of;
        fixture.run("r", &large('a')).await;
        of.add_session_files("s", large('a')).await.unwrap();
        fixture.execute("DELETE FROM run").await;
        assert_eq!((fixture.sweep().await, fixture.sweep().await), (0, 0));
        let newest = of.session_deltas("s").await.unwrap().newest();
        of.replace_session_files("s", newest, None).await.unwrap();
        assert_eq!(fixture.store.prune().await.unwrap().objects, 0, "it was used just now");
        assert_eq!((fixture.sweep().await, fixture.objects().len()), (0, 1), "the first time");
        of.add_session_files("s", large('a')).await.unwrap();
        assert_eq!((fixture.sweep().await, fixture.objects().len()), (0, 1), "it is used again");
        let newest = of.session_deltas("s").await.unwrap().newest();
        of.replace_session_files("s", newest, None).await.unwrap();
        fixture.sweep().await;
        assert_eq!(fixture.store.unused_objects(i64::MAX).await.unwrap(), 1);
        assert_eq!((fixture.sweep().await, fixture.objects().len()), (1, 0));
        assert_eq!(fixture.problems().await, [""; 0]);
    }
}

#[tokio::test]
async fn a_failed_upload_changes_nothing_and_is_cleaned_up() {
    for fixture in Fixture::each() {
        let blobs = fixture.folder.path().join("blobs");
        std::fs::remove_dir(&blobs).unwrap();
        std::fs::write(&blobs, "not a folder").unwrap();
        let error = fixture.of.add_session_files("s", large('a')).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
        assert!(error.to_string().contains("failed to write the object"), "{error}");
        assert!(error.to_string().contains("hint: check that the location"), "{error}");
        assert!(fixture.of.session_files("s").await.unwrap().deltas.is_empty());
        std::fs::remove_file(&blobs).unwrap();
        std::fs::create_dir(&blobs).unwrap();
        assert_eq!(fixture.sweep().await, 1, "the unfinished upload");
        fixture.of.add_session_files("s", large('a')).await.unwrap();
        assert_eq!(fixture.of.session_files("s").await.unwrap().deltas, [large('a')]);
    }
}

#[tokio::test]
async fn a_changed_or_missing_object_is_an_error() {
    for fixture in Fixture::each() {
        fixture.of.add_session_files("s", large('a')).await.unwrap();
        let object = fixture.objects().remove(0);
        std::fs::write(&object, large('b')).unwrap();
        let error = fixture.of.session_files("s").await.unwrap_err().to_string();
        assert!(error.ends_with("was changed"), "{error}");
        assert!(fixture.problems().await[0].ends_with("was changed"));
        std::fs::remove_file(&object).unwrap();
        let error = fixture.of.session_files("s").await.unwrap_err().to_string();
        assert!(error.contains("failed to read the object"), "{error}");
        assert_eq!(fixture.problems().await.len(), 1);
        fixture.execute("DELETE FROM blob").await;
        assert!(fixture.problems().await[0].contains("it is not in the table"));
        let without = Store { blobs: None, ..fixture.store.clone() }.tenant(&Tenant::default());
        let error = without.session_files("s").await.unwrap_err().to_string();
        assert!(error.contains("hint: name the location of the objects with `--blobs`"), "{error}");
    }
}

#[tokio::test]
async fn a_location_without_its_marker_is_an_outage_and_no_loss() {
    for fixture in Fixture::each() {
        let blobs = fixture.folder.path().join("blobs");
        fixture.of.add_session_files("s", large('a')).await.unwrap();
        // The file system with the objects is not mounted.
        let mounted = fixture.folder.path().join("mounted");
        std::fs::rename(&blobs, &mounted).unwrap();
        std::fs::create_dir(&blobs).unwrap();
        let reading = fixture.of.session_files("s").await.unwrap_err();
        let repeating = fixture.of.add_session_files("s", large('a')).await.unwrap_err();
        let adding = fixture.of.add_session_files("s", large('b')).await.unwrap_err();
        for error in [reading, repeating, adding] {
            assert!(error.is_outage(), "{error}");
            assert!(error.to_string().contains("has no object `wattle`"), "{error}");
        }
        fixture.execute("DELETE FROM session_file").await;
        fixture.execute("UPDATE blob SET used = 0").await;
        let mut removed = 0;
        for _ in 0..2 {
            let swept = fixture.store.remove_unused_objects(i64::MAX, &mut removed).await;
            assert_eq!((swept.is_ok(), removed), (false, 0), "a failed upload is not removed");
        }
        std::fs::remove_dir(&blobs).unwrap();
        std::fs::rename(&mounted, &blobs).unwrap();
        assert_eq!(fixture.sweep().await, 1, "the failed upload; the object is marked as unused");
        assert_eq!((fixture.sweep().await, fixture.objects().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_removal_includes_what_a_crash_during_the_upload_left() {
    for fixture in Fixture::each() {
        fixture.of.add_session_files("s", large('a')).await.unwrap();
        let object = fixture.objects().remove(0);
        let name = object.file_name().unwrap().to_str().unwrap().to_owned();
        let incomplete = |at: usize| object.with_file_name(format!("{name}#{at}"));
        std::fs::write(incomplete(1), "incompl").unwrap();
        std::fs::write(incomplete(2), "").unwrap();
        fixture.execute("DELETE FROM session_file").await;
        assert_eq!((fixture.sweep().await, fixture.sweep().await), (0, 1));
        assert!(fixture.objects().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sweep_removes_an_object_that_a_row_refers_to() {
    for fixture in Fixture::each() {
        let fixture = Arc::new(fixture);
        let writers = (0..4_u8).map(|writer| {
            let fixture = Arc::clone(&fixture);
            tokio::spawn(async move {
                let session = format!("s{writer}");
                for round in 0..12_u8 {
                    let text = large(char::from(b'a' + round % 3));
                    // An object can be removed before it is used; then nothing refers to it.
                    if fixture.of.add_session_files(&session, text.clone()).await.is_err() {
                        continue;
                    }
                    let files = fixture.of.session_files(&session).await.unwrap();
                    assert_eq!(files.deltas, [text]);
                    fixture.of.replace_session_files(&session, files.newest(), None).await.unwrap();
                }
                fixture.of.add_session_files(&session, large('z')).await
            })
        });
        let writers: Vec<_> = writers.collect();
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            fixture.sweep().await;
        }
        for (writer, written) in writers.into_iter().enumerate() {
            let expected = written.await.unwrap().map(|()| large('z'));
            let files = fixture.of.session_files(&format!("s{writer}")).await.unwrap();
            assert_eq!(files.deltas, expected.into_iter().collect::<Vec<_>>());
        }
        assert_eq!(fixture.problems().await, [""; 0]);
    }
}
