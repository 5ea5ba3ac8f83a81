//! Tests that the host's own files are protected under names that the rules for paths do not cover:
//! mounts, hard links and unusual spellings. Also tests that a restored overlay or a forged record
//! cannot bypass the rules.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use wattle_files::{ErrorKind, Files, HostFiles, OVERLAY_LIMIT};

use crate::common::tree;

/// A bind mount, which is removed on drop.
struct Mount(PathBuf);

impl Mount {
    /// Mounts a folder at a new path. Returns `None` if this process may not mount anything.
    fn new(from: &Path, at: &Path) -> Option<Mount> {
        std::fs::create_dir(at).unwrap();
        let mounted = Command::new("mount").arg("--bind").args([from, at]).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Mount(at.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn runs(top: &Path, host: &HostFiles) -> [Files; 2] {
    let open = || Files::open_protected_base(top, host.clone()).unwrap();
    [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())]
}

#[test]
fn a_mount_of_a_folder_of_the_host_is_protected_like_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    for folder in ["progs", "state/sub/deep", "conf", ".git/hooks"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
    }
    std::fs::write(top.join("state/sub/deep/token"), "secret").unwrap();
    let host = HostFiles::default()
        .protect_folder(&top, &["toml"], "a folder of agents")
        .protect_folder(top.join("progs"), &["wat"], "a folder of programs")
        .hide(top.join("state"), "the folder of the token")
        .hide_database(top.join("conf/s.db"), "the store");
    let pairs = [
        ("progs", "p"),
        ("state", "s"),
        ("conf", "c"),
        (".git", "g"),
        (".git/hooks", "h"),
        (".", "all"),
    ];
    let mut mounts = Vec::new();
    for (from, at) in pairs {
        let Some(mount) = Mount::new(&top.join(from), &top.join(at)) else {
            eprintln!("skipped: this process may not mount folders");
            return;
        };
        mounts.push(mount);
    }
    for files in runs(&top, &host) {
        for path in [
            "p/new.wat",
            "p/sub/x",
            "s/new",
            "c/s.db-wal",
            "g/config",
            "h/pre-commit",
            "all/progs/new.wat",
            "all/clerk.toml",
            "all/_steps.jsonl",
        ] {
            let refused = files.write(path, b"evil").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Denied, "{path}: {refused}");
        }
        assert_eq!(files.read("s/sub/deep/token").unwrap_err().kind(), ErrorKind::Denied);
        assert!(files.list("/").unwrap().iter().all(|entry| entry.name != "s"));
        files.write("c/notes.txt", b"mine").unwrap();
        files.write("all/notes.txt", b"mine").unwrap();
    }
}

#[test]
fn a_hard_link_to_a_file_that_only_the_host_changes_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    std::fs::create_dir(top.join(".git")).unwrap();
    for (file, link) in [(".git/config", "a"), ("_steps.jsonl", "b")] {
        std::fs::write(top.join(file), "old").unwrap();
        std::fs::hard_link(top.join(file), top.join(link)).unwrap();
    }
    for files in runs(top, &HostFiles::default()) {
        for link in ["a", "b"] {
            assert_eq!(files.write(link, b"new").unwrap_err().kind(), ErrorKind::Denied, "{link}");
            assert_eq!(files.read(link).unwrap(), "old");
        }
    }
}

#[test]
fn a_name_that_some_file_system_takes_for_a_file_of_the_host_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    for files in runs(dir.path(), &HostFiles::default()) {
        for name in [
            "wattle.toml.",
            "sub/Wattle.toml ",
            "wattle\u{200b}.toml",
            "wattle.toml::$DATA",
            "_steps.jsonl ",
            "_ledger\u{2060}.jsonl",
            ".g\u{ad}it/x",
        ] {
            assert_eq!(files.write(name, b"x").unwrap_err().kind(), ErrorKind::Denied, "{name:?}");
        }
        files.write("wattle.toml.txt", b"x").unwrap();
    }
}

#[test]
fn a_restored_overlay_moves_nothing_on_the_path_to_a_file_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("work");
    std::fs::create_dir_all(top.join("conf/agents")).unwrap();
    let [files, _] = runs(&top, &HostFiles::default());
    files.write("evil/p/greet.wat", b"evil").unwrap();
    files.symlink("evil", "progs").unwrap();
    files.remove_all("conf").unwrap();
    let delta = files.take_delta().unwrap();
    let host = HostFiles::default()
        .protect_folder(top.join("conf/agents"), &["toml"], "a folder of agents")
        .protect_folder(top.join("progs/p"), &["wat"], "a folder of programs");
    let [later, _] = runs(&top, &host);
    later.restore(&delta).unwrap();
    let failed = later.apply().unwrap_err().failed;
    let failed: Vec<&str> = failed.iter().map(|(change, _)| change.path.as_str()).collect();
    assert_eq!(failed, ["conf", "progs"]);
    assert!(top.join("conf/agents").exists() && !top.join("progs").exists());
}

#[test]
fn a_restored_overlay_creates_no_link_that_leaves_the_workdir_but_moves_one() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("work");
    std::fs::create_dir(&top).unwrap();
    for target in ["../out", "/etc/passwd"] {
        let [files, _] = runs(&top, &HostFiles::default());
        files.symlink("inner", "link").unwrap();
        let delta = files.take_delta().unwrap().replace("inner", target);
        let [later, _] = runs(&top, &HostFiles::default());
        later.restore(&delta).unwrap();
        let error = later.apply().unwrap_err();
        assert_eq!(error.failed[0].1.kind(), ErrorKind::Escape, "{error}");
        assert!(tree(&top).is_empty());
    }
    symlink("../out", top.join("old")).unwrap();
    let [files, _] = runs(&top, &HostFiles::default());
    files.rename("old", "new").unwrap();
    files.apply().unwrap();
    assert_eq!(std::fs::read_link(top.join("new")).unwrap(), Path::new("../out"));
}

#[test]
fn a_forged_record_creates_neither_a_repository_nor_a_folder_on_the_path_to_a_file_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    let host = HostFiles::default().protect(top.join("conf/tools"), "a folder of programs");
    for (path, content, staged) in [
        ("bare", "HEAD", "0"),
        ("new", "sub/wattle.toml", "0"),
        ("new", "sub/wattle.toml", "0-old"),
        ("conf", "tools/evil.wat", "0"),
    ] {
        let staging = top.join(".wattle-tmp-evil");
        let file = staging.join(staged).join(content);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "evil").unwrap();
        for part in ["objects", "refs"] {
            std::fs::create_dir(staging.join(staged).join(part)).unwrap();
        }
        let record = format!(
            r#"[{{"path":"{path}","staged":".wattle-tmp-evil/0","own":null,"old":"Other"}}]"#
        );
        std::fs::write(staging.join("plan"), record).unwrap();
        std::fs::set_permissions(&staging, std::fs::Permissions::from_mode(0o700)).unwrap();
        let base = Files::open_protected_base(top, host.clone()).unwrap();
        let messages = base.recovered();
        assert!(messages[0].contains("that no run could have made"), "{path}: {messages:?}");
        assert!(!top.join(path).exists() && file.exists(), "{path}");
        std::fs::remove_dir_all(&staging).unwrap();
    }
}

#[test]
fn changes_that_are_not_chosen_stay_in_the_overlay() {
    let dir = tempfile::tempdir().unwrap();
    let [files, _] = runs(dir.path(), &HostFiles::default());
    files.write("d/x", b"1").unwrap();
    files.write("d/y", b"2").unwrap();
    files.apply_chosen(|change| change.path != "d/y").unwrap();
    assert!(!dir.path().join("d/y").exists());
    std::fs::write(dir.path().join("d/user"), "mine").unwrap();
    assert_eq!(files.read("d/user").unwrap(), "mine");
    assert_eq!(files.read("d/x").unwrap(), "1");
    files.write("d/x", b"again").unwrap();
    assert_eq!(files.changes().unwrap().len(), 2);
    files.apply().unwrap();
    for (name, text) in [("x", "again"), ("y", "2"), ("user", "mine")] {
        assert_eq!(std::fs::read_to_string(dir.path().join("d").join(name)).unwrap(), text);
    }
}
