//! Tests that a run can neither write to a repository nor create one, regardless of the
//! repository's name and the order in which its parts are created.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod common;

use common::base;
use wattle_files::{Files, OVERLAY_LIMIT};

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
