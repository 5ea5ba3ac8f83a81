//! Tests that only the owner can access the store's files.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use wattle_agent::host::ledger::Keys;
use wattle_agent::host::machine::Message;
use wattle_agent::host::{Privacy, privacy};
use wattle_agent::{Store, Tenant};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn open(path: &Path) -> Result<Store, String> {
    Store::open(path, Duration::from_secs(60)).map_err(|error| error.to_string())
}

async fn write(store: &Store) {
    store.tenant(&Tenant::default()).extend("s", vec![Message::user("hello")]).await.unwrap();
}

/// Returns the paths of all entries in a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn new_files_and_folders_of_a_store_are_private() {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o755);
    let made = folder.path().join("a/b");
    let path = made.join("s.db");
    let store = open(&path).unwrap();
    write(&store).await;
    assert_eq!((mode(&made), mode(made.parent().unwrap())), (0o700, 0o700));
    assert_eq!(files(&made).len(), 4, "the database, its id, its log and the log's index");
    assert!(files(&made).iter().all(|file| mode(file) == 0o600), "{:?}", files(&made));
    Keys::new(made.join("keys")).signer("t").unwrap();
    assert_eq!(mode(&made.join("keys")), 0o700);
    assert_eq!(privacy(&path), Privacy { open_folder: None, open_files: Vec::new() });
    assert_eq!(mode(folder.path()), 0o755, "a folder that was there stays as it is");
}

#[tokio::test]
async fn a_store_that_others_could_read_becomes_private() {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o700);
    let path = folder.path().join("s.db");
    let first = open(&path).unwrap();
    write(&first).await;
    Keys::new(folder.path().join("keys")).signer("t").unwrap();
    files(folder.path())
        .iter()
        .filter(|file| file.is_file())
        .for_each(|file| set_mode(file, 0o644));
    set_mode(&folder.path().join("keys"), 0o755);
    let Privacy { open_folder, open_files } = privacy(&path);
    assert_eq!((open_folder, open_files.len()), (None, 5));
    set_mode(folder.path(), 0o755);
    assert_eq!(privacy(&path).open_folder, Some((folder.path().to_owned(), 0o755)));
    write(&open(&path).unwrap()).await;
    assert!(
        files(folder.path()).iter().filter(|file| file.is_file()).all(|file| mode(file) == 0o600)
    );
    Keys::new(folder.path().join("keys")).signer("t").unwrap();
    assert_eq!(privacy(&path).open_files, []);
}

#[test]
fn a_store_in_a_folder_that_others_can_write_is_refused() {
    for (loose, refused) in
        [(0o777, true), (0o1777, true), (0o707, true), (0o755, false), (0o700, false)]
    {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), loose);
        let opened = open(&folder.path().join("s.db"));
        assert_eq!(opened.is_err(), refused, "{loose:o}");
        if let Err(error) = opened {
            assert!(
                error.contains("others can write to its folder")
                    && error.contains("hint: `chmod go-w`"),
                "{error}"
            );
            assert_eq!(files(folder.path()).len(), 0, "nothing is left there");
        }
    }
}

#[test]
fn a_store_is_not_opened_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["s.db", "t.db-wal", "t.db-shm", "t.db-journal"] {
        symlink(elsewhere.join("x"), folder.path().join(name)).unwrap();
        let path = folder.path().join(name.split_once('-').map_or(name, |(name, _)| name));
        let error = open(&path).err().unwrap();
        assert!(error.contains("is a link") && error.contains(name), "{error}");
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    assert_eq!(files(&elsewhere).len(), 0, "nothing was made behind a link");
    std::fs::create_dir(folder.path().join("d.db")).unwrap();
    assert!(open(&folder.path().join("d.db")).is_err());
    // A folder in the path may be a link, because the user controls it.
    symlink(&elsewhere, folder.path().join("link")).unwrap();
    open(&folder.path().join("link/s.db")).unwrap();
    assert!(elsewhere.join("s.db").is_file());
}

#[test]
fn a_key_is_not_read_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let keys = Keys::new(folder.path().join("keys"));
    keys.signer("t").unwrap();
    let key = files(&folder.path().join("keys"))
        .into_iter()
        .find(|file| file.extension().unwrap() == "key")
        .unwrap();
    std::fs::rename(&key, folder.path().join("moved")).unwrap();
    symlink(folder.path().join("moved"), &key).unwrap();
    assert!(keys.signer("t").unwrap_err().to_string().contains("it is a link"));
}
