//! Tests that the host's own files in a workdir are protected. A run cannot see a store or a key,
//! or change a project file, under any name.

use std::os::unix::fs::symlink;

use wattle_files::{ErrorKind, Files, FilesError, HostFiles, OVERLAY_LIMIT};

use crate::common::tree;

const SECRET: &str = "what the store holds";

/// A workdir with a store, keys and a project file.
struct Workdir {
    dir: tempfile::TempDir,
    host: HostFiles,
}

impl Workdir {
    fn new() -> Workdir {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("work");
        std::fs::create_dir_all(top.join("data/keys")).unwrap();
        for name in ["data/store.db", "data/store.db-wal", "data/keys/ada.key"] {
            std::fs::write(top.join(name), SECRET).unwrap();
        }
        std::fs::write(top.join("wattle.toml"), "steps = 3\n").unwrap();
        std::fs::write(top.join("data/notes.txt"), "mine").unwrap();
        let host = HostFiles::default()
            .hide_database(top.join("data/store.db"), "the store")
            .hide(top.join("data/keys"), "the folder of keys")
            .protect(top.join("wattle.toml"), "the project file");
        Workdir { dir, host }
    }

    fn top(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }

    fn runs(&self) -> [Files; 2] {
        let open = || Files::open_protected_base(&self.top(), self.host.clone()).unwrap();
        [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())]
    }
}

fn names(files: &Files, folder: &str) -> Vec<String> {
    files.list(folder).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[test]
fn a_store_in_the_workdir_is_neither_read_nor_listed_nor_changed() {
    let place = Workdir::new();
    let before = tree(&place.top());
    for files in place.runs() {
        assert_eq!(names(&files, "/data"), ["notes.txt"]);
        for path in [
            "data/store.db",
            "/data/./store.db",
            "data/x/../store.db",
            "data/store.db-wal",
            "data/store.db-shm",
            "data/store.db-journal",
            "data/keys",
            "data/keys/ada.key",
            "data/keys/new",
        ] {
            let all: [Result<(), FilesError>; 9] = [
                files.read(path).map(drop),
                files.stat(path).map(drop),
                files.stat_link(path).map(drop),
                files.list(path).map(drop),
                files.write(path, b"x"),
                files.append(path, b"x"),
                files.mkdir(path),
                files.remove_all(path),
                files.rename("data/notes.txt", path),
            ];
            for refused in all {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied, "{path}");
            }
        }
        let words = files.read("data/store.db").unwrap_err().to_string();
        assert_eq!(words, "read blocked: `data/store.db` is the store, which belongs to the host");
        for refused in [files.remove_all("data"), files.rename("data", "moved")] {
            let words = refused.unwrap_err().to_string();
            assert!(
                words.contains("the folder `data` holds `data/store.db`, which is the store"),
                "{words}"
            );
        }
        files.apply().unwrap();
    }
    assert_eq!(tree(&place.top()), before);
}

#[test]
fn another_name_of_the_store_does_not_help() {
    let place = Workdir::new();
    let top = place.top();
    symlink("data/store.db", top.join("soft")).unwrap();
    symlink("data", top.join("folder")).unwrap();
    std::fs::hard_link(top.join("data/store.db"), top.join("hard")).unwrap();
    std::fs::hard_link(top.join("data/keys/ada.key"), top.join("data/hard_key")).unwrap();
    for files in place.runs() {
        for path in ["soft", "folder/store.db", "hard", "data/hard_key", "folder/keys/ada.key"] {
            assert!(files.read(path).is_err(), "{path}");
        }
        assert!(!names(&files, "/").contains(&"hard".to_owned()));
        assert_eq!(names(&files, "folder"), ["notes.txt"]);
        let _ = files.write("hard", b"forged");
        let _ = files.append("data/hard_key", b"forged");
        let _ = files.apply();
    }
    assert_eq!(std::fs::read_to_string(top.join("data/store.db")).unwrap(), SECRET);
    assert_eq!(std::fs::read_to_string(top.join("data/keys/ada.key")).unwrap(), SECRET);
    // The same store, protected by the path of a link to it.
    let other = HostFiles::default().hide_database(top.join("soft"), "the store");
    let files =
        Files::overlay(Some(Files::open_protected_base(&top, other).unwrap()), OVERLAY_LIMIT);
    assert!(files.read("data/store.db").is_err() && files.read("soft").is_err());
}

/// Checks that a run cannot remove, move or replace an entry on the path to one of the host's own
/// files.
fn assert_pinned(files: &Files, entry: &str) {
    for refused in [
        files.remove(entry),
        files.remove_all(entry),
        files.rename(entry, "moved"),
        files.rename("other", entry),
    ] {
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("is on the path to "), "{entry}: {words}");
        assert!(words.contains("belongs to the host"), "{entry}: {words}");
    }
}

#[test]
fn a_link_on_the_path_of_a_protected_file_cannot_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    for folder in ["real/keys", "a/deep", "sub", "other"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
    }
    std::fs::write(top.join("real/s.db"), SECRET).unwrap();
    for (target, link) in [
        ("second", "data"),
        ("real", "second"),
        ("../a/deep/../../real", "sub/up"),
        ("missing", "dangling"),
    ] {
        symlink(target, top.join(link)).unwrap();
    }
    symlink(&top, dir.path().join("sub/whole")).unwrap();
    let host = HostFiles::default()
        .hide_database(top.join("data/s.db"), "the store")
        .hide(top.join("sub/up/keys"), "the folder of keys")
        .protect(top.join("sub/whole/dangling/tools"), "a folder of programs");
    let before = tree(&top);
    let open = || Files::open_protected_base(&top, host.clone()).unwrap();
    for files in [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())] {
        for entry in ["data", "second", "sub/up", "sub", "a/deep", "a", "sub/whole", "dangling"] {
            assert_pinned(&files, entry);
        }
        for path in ["data/s.db", "second/s.db", "real/s.db", "data/keys/x", "missing/tools/x"] {
            let refused = files.write(path, b"FORGED").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Denied, "{path}");
        }
        files.apply().unwrap();
    }
    assert_eq!(tree(&top), before);
}

#[test]
fn no_file_is_created_at_a_path_whose_link_vanished() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    std::fs::create_dir(top.join("real")).unwrap();
    symlink("real", top.join("data")).unwrap();
    let host = HostFiles::default().hide_database(top.join("data/s.db"), "the store");
    let files = Files::write_through(Files::open_protected_base(top, host).unwrap());
    std::fs::remove_file(top.join("data")).unwrap();
    let refused = files.write("data/s.db", b"FORGED").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied);
    assert_eq!(files.symlink("other", "data").unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn a_run_creates_no_link_on_the_path_of_a_protected_file() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    let host = HostFiles::default().protect(top.join("a/b/tools"), "a folder of programs");
    let open = || Files::open_protected_base(top, host.clone()).unwrap();
    for files in [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())] {
        files.write("evil/b/tools/greet.wat", b"FORGED").unwrap();
        for link in ["a", "a/b", "a/b/tools"] {
            let refused = files.symlink("/evil", link).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Denied, "{link}");
        }
        files.symlink("/evil", "a/c").unwrap();
        files.remove_all("a").unwrap_err();
    }
}

#[test]
fn a_protected_file_is_read_but_not_changed() {
    let place = Workdir::new();
    symlink("wattle.toml", place.top().join("alias")).unwrap();
    for files in place.runs() {
        assert_eq!(files.read("wattle.toml").unwrap(), "steps = 3\n");
        for path in ["wattle.toml", "./wattle.toml", "alias"] {
            let refused = files.write(path, b"steps = 99").unwrap_err().to_string();
            assert_eq!(
                refused,
                "write blocked: `wattle.toml` is a project file, which only the host writes"
            );
        }
        assert!(
            files.remove("wattle.toml").is_err()
                && files.rename("data/notes.txt", "wattle.toml").is_err()
        );
    }
}

#[test]
fn a_file_that_the_host_makes_later_is_kept_from_the_beginning() {
    let place = Workdir::new();
    std::fs::remove_file(place.top().join("wattle.toml")).unwrap();
    for files in place.runs() {
        assert!(files.write("wattle.toml", b"session = \"x\"").is_err());
        assert!(files.write("data/store.db-shm", b"x").is_err());
    }
}

#[test]
fn files_that_the_host_writes_are_read_but_not_listed() {
    let place = Workdir::new();
    for name in ["_steps.jsonl", "_ledger.jsonl", "_issues.jsonl", "events.org"] {
        std::fs::write(place.top().join(name), "the host's").unwrap();
        std::fs::write(place.top().join("data").join(name), "mine").unwrap();
    }
    for name in ["_steps.jsonl.bak", "steps.jsonl", "Events.org", "events.orga"] {
        std::fs::write(place.top().join(name), "mine").unwrap();
    }
    for files in place.runs() {
        let top = ["Events.org", "_steps.jsonl.bak", "data", "events.orga", "steps.jsonl"];
        for folder in ["/", ".", "data/.."] {
            assert_eq!(names(&files, folder), [&top[..], &["wattle.toml"]].concat(), "{folder}");
        }
        assert_eq!(
            names(&files, "data"),
            ["_issues.jsonl", "_ledger.jsonl", "_steps.jsonl", "events.org", "notes.txt"]
        );
        assert_eq!(files.read("_steps.jsonl").unwrap(), "the host's");
        assert_eq!(files.stat("/events.org").unwrap().size, 10);
        let missing = files.read("_step.jsonl").unwrap_err().to_string();
        assert!(missing.contains("_steps.jsonl.bak") && !missing.contains("_steps.jsonl,"));
    }
    // A folder with this name is not one of the host's files.
    std::fs::remove_file(place.top().join("events.org")).unwrap();
    std::fs::create_dir(place.top().join("events.org")).unwrap();
    assert!(names(&place.runs()[0], "/").contains(&"events.org".to_owned()));
}

#[test]
fn hidden_files_are_not_committed() {
    let place = Workdir::new();
    let listed = place.host.not_committed(&place.top());
    for name in ["_steps.jsonl", "data/store.db", "data/store.db-wal", "data/keys"] {
        assert!(listed.iter().any(|path| path.to_str() == Some(name)), "{name}: {listed:?}");
    }
    assert!(!listed.iter().any(|path| path.to_str() == Some("wattle.toml")));
}

/// Tests a staging folder that is part of the workdir and contains forged records.
#[test]
fn forged_records_of_a_killed_process_change_nothing_that_is_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Workdir::new();
    let top = place.top();
    std::fs::create_dir(top.join(".git")).unwrap();
    std::fs::write(top.join(".git/config"), "[core]").unwrap();
    std::fs::write(place.dir.path().join("secret"), SECRET).unwrap();
    let own = r#"{"File":[{"device":1,"inode":2,"size":4,"modified":[1,1],"changed":[1,1]},"0000000000000000000000000000000000000000000000000000000000000000"]}"#;
    for (path, staged, own) in [
        (".git/config", "W/s0", "null"),
        (".git/hooks", "W/s0", "null"),
        (".GIT/hooks", "W/s0", "null"),
        ("data/store.db", "W/s0", own),
        ("data/notes.txt", "W/s0", own),
        ("../secret", "W/s0", "null"),
        ("new", "../secret", "null"),
        ("new", "data/notes.txt", "null"),
        ("new", "/etc/passwd", own),
        ("data/notes.txt", "W/../data/store.db", "null"),
    ] {
        let working = top.join(".wattle-tmp-00000000000000aa");
        std::fs::create_dir(&working).unwrap();
        std::fs::write(working.join("s0"), "evil").unwrap();
        symlink("../secret", working.join("b0")).unwrap();
        symlink("data/notes.txt", working.join("b1")).unwrap();
        let staged = staged.replace('W', ".wattle-tmp-00000000000000aa");
        let plan =
            format!(r#"[{{"path":"{path}","staged":"{staged}","own":{own},"old":"Other"}}]"#);
        std::fs::write(working.join("plan"), plan).unwrap();
        std::fs::set_permissions(&working, std::fs::Permissions::from_mode(0o700)).unwrap();
        drop(Files::open_base(&top).unwrap());
        for (path, text) in [
            (".git/config", "[core]"),
            ("data/store.db", SECRET),
            ("data/notes.txt", "mine"),
            ("../secret", SECRET),
        ] {
            assert_eq!(
                std::fs::read_to_string(top.join(path)).unwrap(),
                text,
                "{path} by {staged}"
            );
        }
        assert!(!top.join(".git/hooks").exists() && !top.join("new").exists());
        let _ = std::fs::remove_dir_all(&working);
        let _ = std::fs::remove_file(top.join("data/notes.txt.wattle-saved"));
        let _ = std::fs::remove_file(top.join("data/store.db.wattle-saved"));
    }
}

/// Forges a staging folder with one record, opens the workdir, and returns the messages about it.
fn open_with_record(top: &std::path::Path, host: &HostFiles, record: &str) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let staging = top.join(".wattle-tmp-evil");
    std::fs::create_dir(&staging).unwrap();
    std::fs::write(staging.join("0"), "evil").unwrap();
    std::fs::write(staging.join("plan"), format!("[{record}]")).unwrap();
    std::fs::set_permissions(&staging, std::fs::Permissions::from_mode(0o700)).unwrap();
    let base = Files::open_protected_base(top, host.clone()).unwrap();
    base.recovered().to_vec()
}

#[test]
fn a_forged_record_replaces_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    symlink("good", top.join("current")).unwrap();
    let record =
        r#"{"path":"/current","staged":"/.wattle-tmp-evil/0","own":{"Link":"good"},"old":"Other"}"#;
    let messages = open_with_record(top, &HostFiles::default(), record);
    assert!(messages[0].contains("is saved as `current.wattle-saved`"), "{messages:?}");
    assert_eq!(std::fs::read_link(top.join("current")).unwrap(), std::path::Path::new("good"));
    assert!(!top.join(".wattle-tmp-evil").exists());
}

#[test]
fn a_forged_record_of_a_change_that_no_run_could_make_is_left_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Workdir::new();
    let top = place.top();
    for folder in ["e/objects", "e/refs", "tools", ".wattle-tmp-other"] {
        std::fs::create_dir_all(top.join(folder)).unwrap();
    }
    let other = top.join(".wattle-tmp-other");
    std::fs::write(other.join("0"), "another process's").unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    let host = place.host.clone().protect_folder(top.join("tools"), &["wat"], "programs");
    let before = tree(&top);
    for (path, staged) in [
        ("sub/WATTLE.toml", ".wattle-tmp-evil/0"),
        ("events.org", ".wattle-tmp-evil/0"),
        ("tools/evil.wat", ".wattle-tmp-evil/0"),
        ("data/keys/new", ".wattle-tmp-evil/0"),
        ("data/store.db-journal", ".wattle-tmp-evil/0"),
        ("e/HEAD", ".wattle-tmp-evil/0"),
        ("sub/.git", ".wattle-tmp-evil/0"),
        ("/", ".wattle-tmp-evil/0"),
        ("new", ".wattle-tmp-other/0"),
        ("new", ".wattle-tmp-evil/deep/0"),
    ] {
        let record = format!(r#"{{"path":"{path}","staged":"{staged}","own":null,"old":"Other"}}"#);
        let messages = open_with_record(&top, &host, &record);
        assert!(messages[0].contains("that no run could have made"), "{path}: {messages:?}");
        let staging = top.join(".wattle-tmp-evil");
        assert_eq!(std::fs::read_to_string(staging.join("0")).unwrap(), "evil", "{path}");
        std::fs::remove_dir_all(&staging).unwrap();
        assert_eq!(tree(&top), before, "{path} {staged}");
    }
}

#[test]
fn a_workdir_from_which_the_host_loads_files_takes_no_such_files_from_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("work");
    std::fs::create_dir(&top).unwrap();
    symlink("work", dir.path().join("alias")).unwrap();
    for (name, text) in [("a.wat", "(ret 1)"), ("clerk.toml", "name"), ("notes.txt", "n")] {
        std::fs::write(top.join(name), text).unwrap();
    }
    let before = tree(&top);
    for written in [top.clone(), dir.path().join("alias"), top.join("../work/.")] {
        let host = HostFiles::default()
            .protect_folder(&written, &["wat"], "a folder of programs")
            .protect_folder(&written, &["toml"], "a folder of agents")
            .protect_folder(written.join("traits"), &["toml"], "a folder of traits");
        let open = || Files::open_protected_base(&top, host.clone()).unwrap();
        for files in [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())] {
            files.write("spare/x.toml", b"x").unwrap();
            for path in ["a.wat", "b.wat", "B.WAT", "c.toml", "traits", "traits/x.toml"] {
                for refused in [
                    files.write(path, b"x"),
                    files.mkdir(path),
                    files.symlink("/spare", path),
                    files.rename("notes.txt", path),
                    files.rename("spare", path),
                    files.remove_all(path),
                ] {
                    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied, "{path}");
                }
            }
            assert!(
                files.rename("a.wat", "a.txt").is_err() && files.append("a.wat", b"x").is_err()
            );
            let words = files.write("b.wat", b"x").unwrap_err().to_string();
            assert!(words.contains("`b.wat` is in a folder of programs"), "{words}");
            files.mkdir("/").unwrap();
            files.write("notes.txt", b"changed").unwrap();
            files.write("notes.txt", b"n").unwrap();
            files.write("sub/b.wat", b"x").unwrap();
            files.remove_all("sub").unwrap();
            files.remove_all("spare").unwrap();
            files.apply().unwrap();
        }
        assert_eq!(tree(&top), before);
    }
}

#[test]
fn a_folder_of_programs_is_protected_as_a_whole_below_the_workdir_only() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("work");
    std::fs::create_dir_all(top.join("tools")).unwrap();
    std::fs::write(top.join("a.wat"), "(ret 1)").unwrap();
    let host = HostFiles::default()
        .protect_folder(dir.path(), &["wat"], "a folder of programs")
        .protect_folder(top.join("tools"), &["wat"], "a folder of programs");
    let open = || Files::open_protected_base(&top, host.clone()).unwrap();
    for files in [Files::overlay(Some(open()), OVERLAY_LIMIT), Files::write_through(open())] {
        for path in ["tools/a.wat", "tools/readme", "tools/sub/x"] {
            assert_eq!(files.write(path, b"x").unwrap_err().kind(), ErrorKind::Denied, "{path}");
        }
        files.mkdir("/").unwrap();
        files.write("a.wat", b"x").unwrap();
        files.write("b.wat", b"x").unwrap();
    }
}

#[test]
fn a_workdir_that_is_a_folder_of_the_host_is_neither_read_nor_changed() {
    let dir = tempfile::tempdir().unwrap();
    let host = HostFiles::default().hide(dir.path(), "the folder of keys");
    let base = Files::open_protected_base(dir.path(), host).unwrap();
    let files = Files::write_through(base);
    for refused in [files.read("later").map(drop), files.write("later", b"x")] {
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("is the folder of keys, which belongs to the host"), "{words}");
    }
    let host = HostFiles::default().protect(dir.path(), "the folder of settings");
    let base = Files::open_protected_base(dir.path(), host).unwrap();
    let files = Files::write_through(base);
    assert!(files.list("/").unwrap().is_empty());
    assert_eq!(files.write("later", b"x").unwrap_err().kind(), ErrorKind::Denied);
}
