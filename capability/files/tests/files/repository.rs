//! Tests that a run can neither write to a repository nor create one, regardless of the
//! repository's name and the order in which its parts are created.

use wattle_files::{ENTRY_LIMIT, ErrorKind, Files, OVERLAY_LIMIT};

use crate::common::{base, tree};

fn runs(dir: &tempfile::TempDir) -> [Files; 3] {
    [
        Files::overlay(None, OVERLAY_LIMIT),
        Files::overlay(Some(base(dir)), OVERLAY_LIMIT),
        Files::write_through(base(dir)),
    ]
}

/// Creates one part of a repository's layout. `way` selects the operation that creates the part.
/// Returns true if the operation is allowed.
fn make(files: &Files, folder: &str, part: &str, way: usize) -> bool {
    let at = format!("{folder}{part}");
    let spare = format!("spare-{}", at.replace('/', "-"));
    let made = match (part, way) {
        ("HEAD" | "commondir", 0) => files.write(&at, b"ref: refs/heads/main\n"),
        ("HEAD" | "commondir", 1) => {
            files.write(&spare, b"x").and_then(|()| files.rename(&spare, &at))
        }
        ("HEAD" | "commondir", 2) => files.symlink("refs/heads/main", &at),
        ("HEAD" | "commondir", _) => files.create_new(&at),
        (_, 0) => files.mkdir(&at),
        (_, 1) => files.mkdir(&spare).and_then(|()| files.rename(&spare, &at)),
        (_, 2) => files.symlink("/elsewhere", &at),
        (_, _) => files.write(&format!("{at}/deep/file"), b"x"),
    };
    made.is_ok()
}

#[test]
fn the_last_part_of_a_repository_is_refused_in_every_order_and_by_every_way() {
    let orders: &[&[&str]] = &[
        &["HEAD", "objects", "refs"],
        &["HEAD", "refs", "objects"],
        &["objects", "HEAD", "refs"],
        &["objects", "refs", "HEAD"],
        &["refs", "HEAD", "objects"],
        &["refs", "objects", "HEAD"],
        &["HEAD", "commondir"],
        &["commondir", "HEAD"],
    ];
    for folder in ["", "evil/", "a/b/c/"] {
        for order in orders {
            for way in 0..4 {
                let dir = tempfile::tempdir().unwrap();
                for files in runs(&dir) {
                    for name in ["HEAD", "objects", "refs", "commondir"] {
                        let _ = files.remove_all(&format!("/{folder}{name}"));
                    }
                    if !folder.is_empty() {
                        files.mkdir(folder).unwrap();
                    }
                    let made: Vec<bool> =
                        order.iter().map(|part| make(&files, folder, part, way)).collect();
                    let (last, first) = made.split_last().unwrap();
                    assert!(
                        first.iter().all(|made| *made),
                        "{folder} {order:?} {way}: parts alone are nothing"
                    );
                    assert!(!last, "{folder} {order:?} {way}");
                    let refused = files
                        .write(&format!("{folder}HEAD"), b"x")
                        .err()
                        .map(|error| error.to_string());
                    assert!(refused.is_none_or(|words| words.contains("belongs to a repository")));
                    let has = |part: &&&str| files.stat_link(&format!("/{folder}{part}")).is_ok();
                    assert!(order.iter().filter(has).count() < order.len());
                }
            }
        }
    }
}

#[test]
fn a_repository_that_is_there_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["bare.git/objects", "bare.git/refs", "bare.git/hooks"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    std::fs::write(dir.path().join("bare.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(dir.path().join("bare.git/config"), "[core]\n").unwrap();
    std::os::unix::fs::symlink("bare.git", dir.path().join("alias")).unwrap();
    for files in &runs(&dir)[1..] {
        for path in [
            "bare.git/config",
            "alias/config",
            "bare.git/hooks/pre-commit",
            "bare.git/info/attributes",
            "bare.git/HEAD",
        ] {
            assert!(files.write(path, b"[core]\n\tpager = evil\n").is_err(), "{path}");
            assert!(
                files.append(path, b"x").is_err() && files.symlink("/x", path).is_err(),
                "{path}"
            );
        }
        assert_eq!(files.read("bare.git/config").unwrap(), "[core]\n");
        assert!(files.changes().unwrap().is_empty());
    }
}

#[test]
fn parts_that_others_made_meanwhile_are_not_completed_when_changes_are_carried_out() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.write("evil/HEAD", b"ref: refs/heads/main\n").unwrap();
    files.write("evil/readme", b"x").unwrap();
    for part in ["evil/objects", "evil/refs"] {
        std::fs::create_dir_all(dir.path().join(part)).unwrap();
    }
    let error = files.apply().unwrap_err();
    assert_eq!(error.failed.len(), 1, "{error}");
    assert!(error.to_string().contains("belongs to a repository"), "{error}");
    assert!(!dir.path().join("evil/HEAD").exists() && dir.path().join("evil/readme").exists());
}

#[test]
fn folders_with_some_of_these_names_are_ordinary() {
    let dir = tempfile::tempdir().unwrap();
    for files in runs(&dir) {
        for path in [
            "src/config/mod.rs",
            "docs/refs/a.md",
            "objects/cube.obj",
            "HEAD",
            "hooks/use.js",
            "info/x",
            ".github/config",
        ] {
            files.write(path, b"x").unwrap();
        }
        files.rename("objects", "models").unwrap();
        files.remove_all("models").unwrap();
    }
}

/// Creates a workdir with folders that contain a repository or a project file, and returns each of
/// them with the reason why it cannot be moved or removed.
fn with_kept_folders(dir: &std::path::Path) -> [(&'static str, &'static str); 6] {
    for (path, text) in [
        ("good/.git/HEAD", "ref: refs/heads/main\n"),
        ("good/a.txt", "a"),
        ("deep/a/b/.GIT/config", "[core]\n"),
        ("module/.git", "gitdir: ../elsewhere\n"),
        ("bare/HEAD", "ref: refs/heads/main\n"),
        ("bare/objects/x", "x"),
        ("bare/refs/x", "x"),
        ("ex/wattle.toml", "max_steps = 3\n"),
        ("ex/a.txt", "a"),
    ] {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir_all(dir.join("around")).unwrap();
    std::fs::rename(dir.join("bare"), dir.join("around/bare")).unwrap();
    [
        ("good", "holds `good/.git`, which is a repository"),
        ("deep", "holds `deep/a/b/.GIT`, which is a repository"),
        ("module", "holds `module/.git`, which is a repository"),
        ("around", "holds `around/bare`, which is a repository"),
        ("around/bare", "`around/bare` belongs to a repository"),
        ("ex", "holds `ex/wattle.toml`, which is a project file"),
    ]
}

#[test]
fn a_folder_with_a_repository_or_a_project_file_is_neither_moved_nor_removed() {
    let dir = tempfile::tempdir().unwrap();
    let folders = with_kept_folders(dir.path());
    let before = tree(dir.path());
    for files in &runs(&dir)[1..] {
        for (folder, words) in folders {
            for refused in [
                files.rename(folder, "moved"),
                files.rename(folder, "new/moved"),
                files.remove_all(folder),
            ] {
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Denied, "{folder}");
                assert!(error.to_string().contains(words), "{folder}: {error}");
            }
        }
        // The folder that would take the place cannot be moved there, either.
        files.mkdir("vacant").unwrap();
        assert_eq!(files.rename("good", "vacant").unwrap_err().kind(), ErrorKind::Denied);
        files.remove("vacant").unwrap();
        assert!(files.changes().unwrap().is_empty());
        files.apply().unwrap();
    }
    assert_eq!(tree(dir.path()), before);
}

#[test]
fn folders_without_repositories_are_moved_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    for files in runs(&dir) {
        for path in
            ["a/.gitignore", "a/.github/x.yml", "a/b/HEAD", "a/b/refs/x", "a/git/c", "a/w.toml"]
        {
            files.write(path, b"x").unwrap();
        }
        files.symlink("/elsewhere", "a/b/link").unwrap();
        files.rename("a", "c/a").unwrap();
        files.mkdir("empty").unwrap();
        files.rename("c", "empty").unwrap();
        assert_eq!(files.read("empty/a/b/refs/x").unwrap(), "x");
        files.remove_all("empty").unwrap();
        assert!(files.changes().unwrap().is_empty());
    }
}

#[test]
fn a_moved_folder_completes_no_repository_with_what_the_base_still_has() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("e/objects/x")).unwrap();
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.write("parts/HEAD", b"ref: refs/heads/main\n").unwrap();
    files.write("parts/refs/heads/main", b"x").unwrap();
    files.rename("e", "away").unwrap();
    let error = files.rename("parts", "e").unwrap_err().to_string();
    assert!(error.contains("`e` belongs to a repository"), "{error}");
    files.rename("parts", "other").unwrap();
    files.apply().unwrap();
    assert!(!dir.path().join("e").exists() && dir.path().join("other/HEAD").exists());
}

#[test]
fn a_restored_overlay_changes_neither_a_repository_nor_a_file_of_the_host() {
    use std::os::unix::fs::MetadataExt as _;
    for name in [".git", "wattle.toml", "_steps.jsonl"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, "before").unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let modified = format!("[{},{}]", meta.mtime(), meta.mtime_nsec());
        let changed = format!("[{},{}]", meta.ctime(), meta.ctime_nsec());
        let stamp = format!(
            r#"{{"device":{},"inode":{},"size":{},"modified":{modified},"changed":{changed}}}"#,
            meta.dev(),
            meta.ino(),
            meta.size()
        );
        let time = r#"{"secs_since_epoch":1,"nanos_since_epoch":0}"#;
        let node = format!(r#"{{"seen":{{"File":{stamp}}},"body":"Gone","modified":{time}}}"#);
        let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
        files.restore(&format!(r#"[["{name}",{node}]]"#)).unwrap();
        let error = files.apply().unwrap_err();
        assert_eq!(error.failed[0].1.kind(), ErrorKind::Denied, "{name}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before", "{name}");
    }
}

#[test]
fn a_removed_folder_that_became_a_repository_meanwhile_stays() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("a")).unwrap();
    std::fs::write(dir.path().join("a/x"), "x").unwrap();
    let files = Files::overlay(Some(base(&dir)), OVERLAY_LIMIT);
    files.remove_all("a").unwrap();
    std::fs::create_dir(dir.path().join("a/.git")).unwrap();
    let error = files.apply().unwrap_err().to_string();
    assert!(error.contains("holds `a/.git`, which is a repository"), "{error}");
    assert!(dir.path().join("a/x").exists());
}

#[test]
fn a_folder_with_too_many_entries_is_neither_moved_nor_removed() {
    let files = Files::overlay(None, OVERLAY_LIMIT);
    for number in 0..=ENTRY_LIMIT {
        files.mkdir(&format!("many/{}/{number}", number % 2)).unwrap();
    }
    for refused in [files.remove_all("many"), files.rename("many", "moved")] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains("more than 100000 entries"), "{error}");
    }
}
