//! Tests of `wattle store` and `wattle prune`.

use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

fn wattle(place: &Place, args: &[&str]) -> Done {
    place.wattle(args).env("WATTLE_STORE", "s.db").run()
}

/// Creates a store with a variable, a memory item and a session.
fn filled() -> Place {
    let place = Place::new();
    wattle(&place, &["vars", "set", "v", "value"]).code(0);
    wattle(&place, &["memory", "add", "Ada drinks tea"]).code(0);
    let session = r#"{"wattle_session":1,"id":"main","messages":[],"state":[["k","v"]]}"#;
    place.write("session.json", session);
    wattle(&place, &["session", "import", "session.json"]).code(0);
    place
}

#[test]
fn a_store_is_copied_and_used_at_its_new_place() {
    let place = filled();
    let url = wattle_cases::postgres::url().unwrap_or_else(|| "m.db".to_owned());
    let there = wattle(&place, &["store", "copy", "s.db", &url]).code(0);
    assert_eq!(there.stdout.lines().count(), 23, "{there:?}");
    assert!(there.stdout.contains("variable               1 rows  "), "{there:?}");
    assert!(there.stderr.contains("both stores have the same content"), "{there:?}");
    let back = wattle(&place, &["store", "copy", &url, "b.db", "--json"]).code(0);
    let tables = &back.json_lines()[0]["tables"];
    for (line, table) in there.stdout.lines().zip(tables.as_array().unwrap()) {
        let hash = table["hash"].as_str().unwrap();
        assert!(line.ends_with(&hash[..16]), "{line}");
    }
    let get = ["vars", "get", "v", "--store", "b.db"];
    assert_eq!(wattle(&place, &get).code(0).stdout, "value");
    let search = ["memory", "search", "tea", "--store", "b.db"];
    assert_eq!(wattle(&place, &search).code(0).stdout, "1 Ada drinks tea\n");
    let again = wattle(&place, &["store", "copy", "s.db", "b.db"]).code(1);
    again.reports(&["it has content", "hint: name a new or an empty store"]);
    wattle(&place, &["store", "copy", "none.db", "c.db"]).code(1).reports(&["no such file"]);
}

#[test]
fn lost_or_other_keys_are_refused_until_they_are_accepted() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"fine\")"));
    let url = provider.base_url();
    let model = ["--base-url", &url, "--model", "m"];
    let run = || place.wattle([&["run", "hello"][..], &model].concat()).run();
    let set = ["vars", "set", "api", "-", "--secret", "--host", "a.example"];
    let set = || place.wattle(set).stdin("s3cret-0123456789").run();
    set().code(0);
    run().code(0);
    let data = place.home().join(".local/share/wattle");
    let (keys, away) = (data.join("keys"), data.join("away"));
    let serve = || place.wattle([&["serve", "--listen", "127.0.0.1:0"][..], &model].concat()).run();
    std::fs::rename(&keys, &away).unwrap();
    for refused in [run(), set(), serve()] {
        refused.code(3).reports(&[
            "the key of the secrets and encrypted records of tenant `default` is missing",
            "the key that signs the traces of tenant `default` is missing",
            "hint: put the folder back",
            "`wattle store accept-keys`",
        ]);
    }
    assert!(!keys.exists() || std::fs::read_dir(&keys).unwrap().next().is_none(), "no new keys");
    std::fs::remove_dir_all(&keys).ok();
    std::fs::rename(&away, &keys).unwrap();
    run().code(0);

    std::fs::rename(&keys, &away).unwrap();
    let accepted = place.wattle(["store", "accept-keys"]).run().code(0).stdout;
    assert_eq!(accepted.lines().count(), 2, "{accepted}");
    run().code(0);
    // The new key is known now, and the old one is another.
    std::fs::remove_dir_all(&keys).unwrap();
    std::fs::rename(&away, &keys).unwrap();
    run().code(3).reports(&["the key that signs the traces of tenant `default` is another one"]);
}

#[test]
fn a_store_is_measured_and_compacted() {
    let place = filled();
    let stats = wattle(&place, &["store", "stats"]).code(0).stdout;
    assert!(stats.contains("memory                 1 rows"), "{stats}");
    assert!(stats.contains("\nruns           none\n"), "{stats}");
    let json = wattle(&place, &["store", "stats", "s.db", "--json"]).code(0).json_lines();
    let stats = &json[0];
    assert_eq!((&stats["sessions"], &stats["replicas"]), (&1.into(), &0.into()), "{stats}");
    assert!(stats["bytes"].as_u64() > Some(10_000), "{stats}");
    let removed = "CREATE TABLE removed AS SELECT randomblob(100000) AS bytes; DROP TABLE removed";
    let file = rusqlite::Connection::open(place.work().join("s.db")).unwrap();
    file.execute_batch(removed).unwrap();
    drop(file);
    let sizes = wattle(&place, &["store", "vacuum", "--json"]).code(0).json_lines();
    assert!(sizes[0]["after"].as_u64() < sizes[0]["before"].as_u64(), "{sizes:?}");
    assert!(wattle(&place, &["store", "vacuum"]).code(0).stdout.contains(" after\n"));
    let none = wattle(&place, &["store", "stats", "none.db"]).code(2);
    none.reports(&["there is no store `none.db`"]);
    assert!(!place.work().join("none.db").exists());
    let Some(url) = wattle_cases::postgres::url() else { return };
    wattle(&place, &["store", "copy", "s.db", &url]).code(0);
    let json = wattle(&place, &["store", "stats", &url, "--json"]).code(0).json_lines();
    assert!(json[0]["bytes"].as_u64() > Some(10_000), "{json:?}");
    wattle(&place, &["store", "vacuum", &url]).code(0);
}

#[test]
fn a_check_reports_what_is_broken() {
    let place = filled();
    let done = wattle(&place, &["store", "check"]).code(0);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("rows checked, 0 findings"), "{done:?}");
    let run = "INSERT INTO run (tenant, id, status, created, used)
               VALUES ('default', 'q', 'ended', 0, 0), ('default', 'r', 'ended', 0, 0);
               INSERT INTO opening VALUES ('default', 'r', 'no json');
               UPDATE session SET bytes = 5 WHERE id = 'main'";
    rusqlite::Connection::open(place.work().join("s.db")).unwrap().execute_batch(run).unwrap();
    let done = wattle(&place, &["store", "check"]).code(1);
    let lines: Vec<&str> = done.stdout.lines().collect();
    let size = "session default/main: its size is 2 bytes, but 5 are recorded";
    assert!(lines.len() == 3 && lines[0] == size, "{done:?}");
    assert!(lines[1].starts_with("opening default/r: expected ident"), "{done:?}");
    assert_eq!(lines[2], "run default/q: its start is missing from the table `opening`");
    let json = wattle(&place, &["store", "check", "s.db", "--json"]).code(1).json_lines();
    assert_eq!(json[0]["findings"][1]["key"], "default/r");
}

#[test]
fn prune_removes_what_is_not_kept() {
    let place = filled();
    let run = "INSERT INTO run (tenant, id, status, created, used)
               VALUES ('default', 'r', 'ended', 0, 0)";
    rusqlite::Connection::open(place.work().join("s.db")).unwrap().execute_batch(run).unwrap();
    let old = place.home().join(".cache/wattle/search/tenant/index.db");
    std::fs::create_dir_all(old.parent().unwrap()).unwrap();
    let file = std::fs::File::create(&old).unwrap();
    let times = std::fs::FileTimes::new();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000);
    file.set_times(times.set_accessed(long_ago).set_modified(long_ago)).unwrap();
    let undone = |id: &str| place.home().join(".local/state/wattle/undone").join(id);
    let [past, recent] = ["01M8CX3RBEVZN463Q9S9KKKGR6", "01M8CX4RBEVZN463Q9S9KKKGR6"].map(undone);
    for folder in [&past, &recent] {
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(folder.join("sub/a.txt"), "the run's version").unwrap();
    }
    let folder = std::fs::File::open(&past).unwrap();
    folder.set_times(times.set_modified(long_ago)).unwrap();
    let prune = |args: &[&str]| wattle(&place, &[&["prune"], args].concat()).code(0);
    let dry = prune(&["--dry-run"]);
    assert!(
        dry.stdout.starts_with("store     1 run, 0 sessions, events of 0 runs, 0 large files\n"),
        "{dry:?}"
    );
    let files = "unapplied 1 file, 17 B\nsearch    1 file, 0 B\n";
    assert!(dry.stdout.ends_with(files) && past.exists(), "{dry:?}");
    assert!(dry.stderr.contains("nothing was removed") && old.exists());
    let kept = place.wattle(["prune"]).env("WATTLE_STORE", "s.db");
    let kept = kept.env("WATTLE_KEEP_RUNS", "forever").run().code(0);
    assert!(kept.stdout.starts_with("store     0 runs"), "{kept:?}");
    assert!(!old.exists() && !past.exists() && recent.join("sub/a.txt").exists());
    let done = prune(&["--json"]).json_lines();
    assert_eq!(done[0]["store"]["runs"], 1);
    assert_eq!(prune(&["--json"]).json_lines()[0]["store"]["runs"], 0);
    let wrong = place.wattle(["prune"]).env("WATTLE_KEEP_RUNS", "soon").run().code(3);
    wrong.reports(&["`WATTLE_KEEP_RUNS`", "or `forever`"]);
}
