//! Tests of the folder to which `--artifacts` writes, and of the folder to which a run's changed
//! files are saved if they cannot be applied.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::place::{Done, Place};

/// A program that creates an artifact named by the program's argument.
const LEAVES: &str = "(sys.artifact? (arg 0) \"new\") (ret)";

#[test]
fn an_artifact_replaces_a_link_and_is_never_written_through_it() {
    let place = Place::new();
    let secret = place.home().join("secret");
    std::fs::write(&secret, "old").unwrap();
    place.write(".git/config", "old");
    place.write("sub/wattle.toml", "old");
    let private = place.write("out/private", "old");
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    let out = place.work().join("out");
    symlink("../.git/config", out.join("config")).unwrap();
    symlink("../sub/wattle.toml", out.join("settings")).unwrap();
    symlink(&secret, out.join("trust.json")).unwrap();
    symlink("../nothing", out.join("dangling")).unwrap();
    let names = ["config", "settings", "trust.json", "dangling", "private", "fresh"];
    for name in names {
        place.wattle(["exec", "-", name, "--artifacts", "out"]).stdin(LEAVES).run().code(0);
        assert!(out.join(name).symlink_metadata().unwrap().is_file(), "{name}");
        assert_eq!(place.read(&format!("out/{name}")), "new", "{name}");
    }
    assert_eq!(place.read(".git/config"), "old");
    assert_eq!(place.read("sub/wattle.toml"), "old");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "old");
    assert!(!place.work().join("nothing").exists());
    assert_eq!(private.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), names.len());
}

#[test]
fn artifacts_are_written_neither_to_a_linked_folder_nor_to_a_protected_file() {
    let place = Place::new();
    let keys = place.home().join(".ssh");
    std::fs::create_dir(&keys).unwrap();
    symlink(&keys, place.work().join("out")).unwrap();
    for part in [".git/hooks/a", "bare/HEAD", "bare/objects/a", "bare/refs/a", "tools/a.txt"] {
        place.write(part, "old");
    }
    let absolute = place.work().join("out").display().to_string();
    for (folder, name, code, words) in [
        ("out", "a", 2, "is a link"),
        ("./out/sub", "a", 2, "is a link"),
        (&*absolute, "a", 2, "is a link"),
        (".git/hooks", "post-commit", 2, "Git repository"),
        ("bare", "config", 2, "Git repository"),
        ("bare/refs", "a", 2, "Git repository"),
        ("tools", "a.wat", 2, "the host's own files"),
        (".", "wattle.toml", 1, "project file"),
        ("sub", "wattle.toml", 1, "project file"),
        (".", "_ledger.jsonl", 1, "only the host"),
    ] {
        let args = ["exec", "-", name, "--catalog", "tools", "--artifacts", folder];
        place.wattle(args).stdin(LEAVES).run().code(code).reports(&[words]);
        assert!(!place.work().join(folder).join(name).exists() || name == "a", "{folder}/{name}");
    }
    assert_eq!(std::fs::read_dir(&keys).unwrap().count(), 0);
    assert_eq!(place.read("bare/refs/a"), "old");
}

#[test]
fn an_artifact_neither_replaces_a_link_to_a_file_of_the_host_nor_is_loaded_later() {
    let place = Place::new();
    let store = place.home().join("elsewhere.db");
    symlink(&store, place.work().join("store.db")).unwrap();
    let args = ["exec", "-", "store.db", "--artifacts", ".", "--store", "store.db"];
    place.wattle(args).stdin(LEAVES).run().code(1).reports(&["the host's own files"]);
    assert_eq!(std::fs::read_link(place.work().join("store.db")).unwrap(), store);
    for (name, code) in [("notes.txt", 0), ("a.wat", 1), ("a.WAT", 1)] {
        let args = ["exec", "-", name, "--artifacts", ".", "--catalog", "."];
        place.wattle(args).stdin(LEAVES).run().code(code);
        assert_eq!(place.work().join(name).exists(), code == 0, "{name}");
    }
}

#[test]
fn an_artifact_that_cannot_be_written_hides_neither_the_results_nor_the_other_artifacts() {
    let program = "(sys.artifact \"a.txt\" \"1\") (sys.artifact \"wattle.toml\" \"2\")
        (sys.artifact \"z.txt\" \"3\") (out \"the result\")";
    let place = Place::new();
    let run = |args: &[&str]| {
        let call = place.wattle(["exec", "-", "--artifacts", "out"].iter().chain(args));
        call.stdin(program).run().code(1).reports(&["it is a project file"])
    };
    assert_eq!(run(&[]).stdout, "the result\n");
    assert_eq!((place.read("out/a.txt"), place.read("out/z.txt")), ("1".into(), "3".into()));
    assert!(!place.work().join("out/wattle.toml").exists());
    let document = run(&["--json"]).json_lines().remove(0);
    assert_eq!(document["results"][0], "the result");
}

#[test]
fn a_file_that_cannot_be_applied_is_saved_wherever_the_store_is() {
    let place = Place::new();
    place.write("a.txt", "before\n");
    let line = "read -r x < a.txt; echo \"$x the run\" > a.txt; echo ready
        while [[ ! -e go ]]; do sleep 0.1; done";
    let args = ["shell", "--apply", "--timeout", "60s", "--store", "s.db", "-c", line];
    let mut child = place.wattle(args).start();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    place.write("a.txt", "the user\n");
    place.write("go", "");
    Done::of(child).code(1).reports(&["a.txt", "the run's version of each file is saved below"]);
    assert_eq!(place.read("a.txt"), "the user\n");
    let undone = place.home().join(".local/state/wattle/undone");
    let folders: Vec<_> = std::fs::read_dir(undone).unwrap().collect();
    let [Ok(folder)] = folders.as_slice() else { panic!("{folders:?}") };
    let saved = std::fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert_eq!(saved, "before the run\n");
}
