//! Tests of the commands that need no model: `exec`, `check`, `expand`, `parse`, `catalog`, `demo`.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value as Json, json};

use crate::place::Place;

const ECHO: &str = "(argv 0 $text)\n(resv $text)\n(i32.const 0)\n";

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

#[test]
fn exec_runs_files_stdin_and_names() {
    let place = Place::new();
    place.write("echo.wat", ECHO);
    place.write("plain", ECHO);
    for program in ["echo.wat", "./echo.wat", "plain"] {
        assert_eq!(place.wattle(["exec", program, "hi there"]).run().code(0).stdout, "hi there\n");
    }
    assert_eq!(place.wattle(["exec", "-", "-5"]).stdin(ECHO).run().code(0).stdout, "-5\n");
    assert_eq!(
        place.wattle(["exec", "-", "--", "--json"]).stdin(ECHO).run().code(0).stdout,
        "--json\n"
    );
    assert_eq!(place.wattle(["exec", "echo.wat", "ends\n"]).run().code(0).stdout, "ends\n");

    place.write(
        "tools/twice.wat",
        ";;; name = \"twice\"\n;;; description = \"Says it twice\"\n;;; [[args]]\n;;; name = \
         \"text\"\n;;; type_hint = \"string\"\n;;; description = \"What\"\n;;; [[args]]\n;;; name \
         = \"sep\"\n;;; type_hint = \"string\"\n;;; description = \"Between\"\n;;; default = \
         \"-\"\n(argv 0 $t)\n(argv 1 $s)\n(resv $t)\n(resv $s)\n(resv $t)\n(i32.const 0)\n",
    );
    let done = place.wattle(["exec", "twice", "a", "--catalog", "tools"]).run().code(0);
    assert_eq!(done.stdout, "a\n-\na\n");
    place
        .wattle(["exec", "twice", "--catalog", "tools"])
        .run()
        .code(2)
        .reports(&["required arg `text`", "twice(text: string"]);
    place
        .wattle(["exec", "twyce", "--catalog", "tools"])
        .run()
        .code(2)
        .reports(&["no program `twyce`", "`twice`"]);
    place.wattle(["exec", "none.wat"]).run().code(2).reports(&["none.wat"]);
    let shown =
        place.wattle(["catalog", "show", "twice", "--catalog", "tools"]).run().code(0).stdout;
    assert!(
        shown.contains("twice(text: string, sep: string") && shown.contains("(resv $s)"),
        "{shown}"
    );
}

#[test]
fn only_runs_of_a_tenant_share_its_variables() {
    let place = Place::new();
    let set = "(kv.set? \"tenant:color\" (arg 0)) (kv.set? \"color\" \"of this run\") (ret)";
    let get = "(out (default (kv.get \"tenant:color\") \"none\")) (ret (default (kv.get \
               \"color\") \"none\"))";
    place.wattle(["exec", "-", "green"]).stdin(set).run().code(0);
    place
        .wattle(["exec", "-", "red", "--tenant", "other", "--session", "s"])
        .stdin(set)
        .run()
        .code(0);
    for (flags, expected) in [
        (&[][..], "green\nnone\n"),
        (&["--session", "t"], "green\nnone\n"),
        (&["--tenant", "default"], "green\nnone\n"),
        (&["--tenant", "other"], "red\nnone\n"),
        (&["--tenant", "other", "--session", "s"], "red\nof this run\n"),
        (&["--tenant", "third"], "none\nnone\n"),
    ] {
        let call = place.wattle(["exec", "-"].iter().chain(flags)).stdin(get);
        assert_eq!(call.run().code(0).stdout, expected, "{flags:?}");
    }
    place
        .wattle(["exec", "-", "--tenant", "a\tb"])
        .stdin(get)
        .run()
        .code(3)
        .reports(&["a tenant's name"]);
}

#[test]
fn nested_calls_count_against_the_runs_budget() {
    let place = Place::new();
    place.write(
        "model.jsonl",
        "{\"wattle_cassette\":1}\n{\"reply\":\"one\"}\n{\"reply\":\"two\"}\n",
    );
    let program = "(ret (arr.to_json? (par.map? \"ai_summarize\" (str.split? \"a b\" \" \"))))";
    let exec = ["exec", "-", "--cassette", "model.jsonl"];
    let done = place.wattle(exec.iter().chain(&["--json"])).stdin(program).run().code(0);
    let outcome = json(&done.stdout);
    let calls = |name: &str| {
        outcome["host_calls"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["function"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!((&calls("par.map")["calls"], &calls("ai.assist")["calls"]), (&json!(1), &json!(2)));
    let bounded =
        place.wattle(exec.iter().chain(&["--ai-calls", "1"])).stdin(program).run().code(1);
    bounded
        .reports(&["EBUDGET", "the run's 1 calls of `ai` are used up; `--ai-calls N` allows more"]);
}

#[test]
fn exec_prints_the_whole_outcome_as_json() {
    let place = Place::new();
    let source = "(check (call $fs.write \"a.txt\" \"hello\"))\n(resv \"one\")\n(resv \
                  \"two\")\n(call $kv.get \"none\")\n(local $e i32)\n(local.set $e) \
                  (drop)\n(local.get $e)\n";
    let done = place.wattle(["exec", "-", "--json"]).stdin(source).run().code(1);
    let mut outcome = json(&done.stdout);
    let keys: Vec<&String> = outcome.as_object().unwrap().keys().collect();
    let expected = [
        "exit_code",
        "code",
        "results",
        "error",
        "fuel",
        "memory_bytes",
        "dur_us",
        "host_calls",
        "changes",
        "artifacts",
    ];
    assert_eq!(keys, expected);
    for measured in ["memory_bytes", "dur_us"] {
        assert!(outcome[measured].as_u64().unwrap() > 0);
        outcome[measured] = Json::Null;
    }
    let (message, column) = (outcome["error"]["message"].take(), outcome["error"]["column"].take());
    assert!(column.as_u64().is_some_and(|column| column > 0), "{column}");
    assert!(message.as_str().unwrap().contains("none"), "{message}");
    let expected = json!({
        "exit_code": 4, "code": "ENOENT", "results": ["one", "two"],
        "error": {
            "code": "ENOENT", "message": null, "line": 4, "column": null, "function": "kv.get",
        },
        "fuel": null, "memory_bytes": null, "dur_us": null,
        "host_calls": [
            {"function": "fs.write", "calls": 1, "failed": 0},
            {"function": "sys.resv", "calls": 2, "failed": 0},
            {"function": "kv.get", "calls": 1, "failed": 1},
        ],
        "changes": [{"path": "a.txt", "kind": "created", "size": 5}],
        "artifacts": [],
    });
    assert_eq!(outcome, expected);
    assert!(!place.work().join("a.txt").exists());
}

#[test]
fn exec_prints_the_results_even_if_its_changes_fail() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let theirs = place.work().join("a");
    // Another process writes the same file while the program runs.
    let other = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = client.read(&mut [0; 4096]).unwrap();
        std::fs::write(theirs, "theirs").unwrap();
        client
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
            .unwrap();
    });
    let source = "(argv 0 $url)\n(check (call $fs.write \"a\" \"mine\"))\n(call $http.get \
                  (local.get $url))\n(local $p i32) (local $e i32)\n(local.set $e) (local.set \
                  $p)\n(check $e)\n(resv $p)\n(i32.const 0)\n";
    let args = ["exec", "-", &url, "--json", "--apply", "--allow-host", "127.0.0.1"];
    let done = place.wattle(args).stdin(source).run().code(1).reports(&["failed to apply", "a"]);
    other.join().unwrap();
    let outcome = json(&done.stdout);
    assert_eq!((&outcome["exit_code"], &outcome["results"]), (&json!(0), &json!(["ok"])));
    assert_eq!(outcome["changes"][0]["path"], "a");
    assert_eq!(place.read("a"), "theirs");
}

#[test]
fn programs_of_a_session_share_its_state() {
    let place = Place::new();
    let exec = |args: &[&str], session: &str| {
        place
            .wattle(["exec"].iter().chain(args).chain(&["--session", session, "--store", "s.db"]))
            .run()
    };
    exec(&["kv_set", "name", "Ada"], "one").code(0);
    assert_eq!(exec(&["kv_get", "name"], "one").code(0).stdout, "Ada\n");
    exec(&["kv_get", "name"], "two").code(1).reports(&["ENOENT"]);
    exec(&["kv_get", "name"], "a\nb").code(3).reports(&["session id"]);
    place.write(
        "no.db",
        "this is no database, and long enough to be told from one that is empty, which would be \
         fine",
    );
    let done = place.wattle(["exec", "kv_get", "name", "--session", "x", "--store", "no.db"]).run();
    done.code(3).reports(&["no.db", "--store FILE"]);
    let done =
        place.wattle(["exec", "kv_get", "name", "--session", "x", "--store", "mysql://h/db"]).run();
    done.code(2).reports(&["`postgres://…`", "`mysql://…`"]);
    let url = "postgres://u:hunter2@127.0.0.1:1/db";
    let done = place.wattle(["exec", "kv_get", "name", "--session", "x", "--store", url]).run();
    let done = done.code(1).reports(&["database server runs"]);
    assert!(!done.stderr.contains("hunter2"), "{done:?}");
    let shown = place.wattle(["config", "show", "--store", url]).run().code(0).stdout;
    assert!(shown.contains("u:***@127.0.0.1:1/db") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn only_terminals_get_colours() {
    let place = Place::new();
    let call = || place.wattle(["exec", "-"]).stdin("(i32.const 1)");
    assert!(!call().run().stderr.contains('\u{1b}'));
    assert!(call().env("CLICOLOR_FORCE", "1").run().stderr.contains('\u{1b}'));
    assert!(
        !call().env("CLICOLOR_FORCE", "0").env("NO_COLOR", "1").run().stderr.contains('\u{1b}')
    );
}

#[test]
fn exec_prints_failures_on_stderr() {
    let place = Place::new();
    let exec = |source: &str, args: &[&str]| {
        place.wattle(["exec", "-"].iter().chain(args)).stdin(source).run()
    };
    let done = exec("(resv \"before\")\n(argv 3 $x)\n(i32.const 0)", &["only"])
        .code(1)
        .reports(&["EBOUND (5)", "line 2"]);
    assert_eq!(done.stdout, "before\n");
    exec("(i32.const 77)", &[]).code(1).reports(&["77"]);
    let swapped = "(check (call $kv.set \"k\" \"v\"))\n(call $kv.get \"k\")\n(local $p i32) \
                   (local $e i32)\n(local.set $p) (local.set $e)\n(check $e)\n(resv \
                   $p)\n(i32.const 0)";
    exec(swapped, &[]).code(1).reports(&[
        "value-type",
        "takes an error code",
        "the code is on top of the value",
    ]);
    exec("(resv \"x\")\n(resv \"y\")\n(i32.const 0)", &["-v"])
        .code(0)
        .reports(&["2 × sys.resv", "KiB"]);
    exec("(call $nope.get)\n(i32.const 0)", &[])
        .code(1)
        .reports(&["unknown-function", "line 1, column 7"]);
    exec("(loop $l (br $l))\n(i32.const 0)", &["--timeout", "200ms"]).code(1).reports(&["200 ms"]);
    exec("(resv (i32.load (i32.const -1)))\n(i32.const 0)", &[]).code(1).reports(&["line 1"]);
    let asks = "(call $ai.assist \"a\" \"b\" (i32.const 0))\n(drop) (drop)\n(i32.const 0)";
    exec(asks, &[]).code(6).reports(&["`ai`", "--base-url"]);
    let outcome = json(&exec(asks, &["--json"]).code(6).stdout);
    assert_eq!(
        (&outcome["exit_code"], &outcome["error"]["code"]),
        (&Json::Null, &json!("EACCESS"))
    );
    assert!(
        outcome["error"]["message"].as_str().unwrap().contains("hint: no model is set up"),
        "{outcome}"
    );
}

#[test]
fn exec_confines_programs_to_the_root() {
    let place = Place::new();
    std::fs::write(place.home().join("secret"), "s").unwrap();
    let read = "(argv 0 $p)\n(call $fs.read (local.get $p))\n(local $e i32) (local $v \
                i32)\n(local.set $e) (local.set $v)\n(check $e)\n(resv $v)\n(i32.const 0)";
    for path in ["../home/secret", "/../home/secret", "a/../../home/secret"] {
        let done = place.wattle(["exec", "-", path]).stdin(read).run().code(1);
        let outside = format!("{path} is outside the run's folder; only files in it can be read");
        done.reports(&["EACCESS", &outside]);
    }
    let done = place.wattle(["exec", "-", "secret", "--root", "../home"]).stdin(read).run().code(0);
    assert_eq!(done.stdout, "s\n");
    place
        .wattle(["exec", "-", "x", "--root", "nowhere"])
        .stdin(read)
        .run()
        .code(3)
        .reports(&["nowhere", "--root"]);
}

/// A program that leaves an artifact whose name is the program's argument.
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
fn check_reports_each_file() {
    let place = Place::new();
    place.write("good.wat", ECHO);
    place.write("bad.wat", "(call $str.lenght \"x\")\n");
    place.write("entry.wat", ";;; name = \"entry\"\n;;; descripton = \"x\"\n(i32.const 0)\n");
    place.write("latin.wat", b"(resv \"\xe9\")\n(i32.const 0)\n");
    place.wattle(["check", "good.wat"]).run().code(0);
    let files = ["check", "good.wat", "bad.wat", "entry.wat", "latin.wat", "none.wat"];
    let done = place.wattle(files).run().code(1);
    done.reports(&[
        "good.wat: ok",
        "unknown-function",
        "`descripton`",
        "latin.wat",
        "not UTF-8",
        "none.wat",
    ]);
    let done = place.wattle(files.iter().chain(&["--json"])).run().code(1);
    let found = json(&done.stdout);
    let flags: Vec<bool> =
        found.as_array().unwrap().iter().map(|file| file["ok"].as_bool().unwrap()).collect();
    assert_eq!(flags, [true, false, false, false, false]);
    assert_eq!(found[1]["diagnostics"][0]["line"], 1);
    assert_eq!(found[2]["diagnostics"][0]["code"], "front-matter");
    assert_eq!(found[2]["diagnostics"][0]["line"], 2);
    assert_eq!(done.stderr, "");
}

#[test]
fn check_reports_all_errors_and_applies_safe_fixes() {
    let place = Place::new();
    let broken = "(argv 0 $u)\r\n(call $dbg.lgo “x”) // note\r\n(call $telegram.send $u)\n(resv \
                  (i32.frob $u))\n";
    place.write("broken.wat", broken);
    let done = place.wattle(["check", "broken.wat"]).run().code(1);
    done.reports(&[
        "`“x”` → `\"x\"`",
        "`$dbg.lgo`",
        "`$telegram.send`",
        "`i32.frob`",
        "3 can be fixed with `wattle check --fix`",
    ]);
    assert_eq!(place.read("broken.wat"), broken, "nothing is written without `--fix`");
    let done = place.wattle(["check", "--fix", "broken.wat"]).run().code(1);
    done.reports(&["broken.wat: fixed line 2, column 16: `“x”` → `\"x\"`", "`$telegram.send`"]);
    let fixed = "(argv 0 $u)\r\n(call $dbg.log \"x\") ;; note\r\n(call $telegram.send $u)\n(resv \
                 (i32.frob $u))\n";
    assert_eq!(place.read("broken.wat"), fixed);

    let stdin =
        |args: &[&str]| place.wattle(["check", "-"].iter().chain(args)).stdin("(resv “x”)").run();
    assert_eq!(stdin(&["--fix"]).code(0).stdout, "(resv \"x\")");
    let found = json(&stdin(&["--fix", "--json"]).code(0).stdout);
    assert_eq!((&found[0]["ok"], &found[0]["source"]), (&true.into(), &"(resv \"x\")".into()));
    assert_eq!(found[0]["fixed"][0]["fix"]["certainty"], "safe");
    let found = json(&stdin(&["--json"]).code(1).stdout);
    assert_eq!(
        found[0]["diagnostics"][0]["span"],
        json!({"start": 6, "end": 9, "line": 1, "column": 7, "end_line": 1, "end_column": 8})
    );
    assert!(
        place.files().iter().all(|(path, _)| path.ends_with("broken.wat")),
        "no other file is left"
    );
}

#[test]
fn expand_prints_a_module_with_only_the_imports_that_are_used() {
    let place = Place::new();
    let module = place.wattle(["expand", "-"]).stdin(ECHO).run().code(0).stdout;
    assert!(module.starts_with("(module") && module.matches("(import ").count() == 2, "{module}");
    place.wattle(["expand", "-"]).stdin("(resv \"open").run().code(1).reports(&["line 1"]);
}

#[test]
fn parse_accepts_any_answer() {
    let place = Place::new();
    let parse = |answer: &[u8]| json(&place.wattle(["parse"]).stdin(answer).run().code(0).stdout);
    let wat = b"<reasoning>why</reasoning>\nToolCall::Wat(```wat\n(i32.const 0)\n```, \"a\", 2)";
    assert_eq!(
        parse(wat),
        json!({"action": "wat", "thought": "why", "body": "(i32.const 0)", "args": ["a", "2"]})
    );
    let catalog = b"ToolCall::Catalog(\"http_get\", \"u\")";
    assert_eq!(
        parse(catalog),
        json!({"action": "catalog", "thought": null, "name": "http_get", "args": ["u"]})
    );
    assert_eq!(
        parse(b"just words"),
        json!({"action": "response", "thought": null, "text": "just words"})
    );
    assert_eq!(parse(b"")["action"], "response");
    assert_eq!(parse(b"\xff words")["text"], "\u{fffd} words");
    let raw = place.wattle(["parse"]).stdin(&catalog[..]).run().stdout;
    assert_eq!(
        raw,
        "{\"action\":\"catalog\",\"thought\":null,\"name\":\"http_get\",\"args\":[\"u\"]}\n"
    );
}

#[test]
fn catalog_lists_the_programs() {
    let place = Place::new();
    let list = place.wattle(["catalog", "list"]).run().code(0).stdout;
    assert!(list.lines().any(|line| line.starts_with("http_get ")), "{list}");
    let documents = json(&place.wattle(["catalog", "list", "--json"]).run().code(0).stdout);
    assert_eq!(documents.as_array().unwrap().len(), list.lines().count());
    let one = json(&place.wattle(["catalog", "show", "http_get", "--json"]).run().code(0).stdout);
    assert_eq!(
        (&one["usage"], &one["args"][0]["type_hint"]),
        (&json!("http_get(url: url)"), &json!("url"))
    );
    place.wattle(["catalog", "show", "htp_get"]).run().code(2).reports(&["`http_get`"]);
    place.write("tools/broken.wat", "no front matter");
    place
        .wattle(["catalog", "list", "--catalog", "tools"])
        .run()
        .code(0)
        .reports(&["warning:", "broken.wat"]);
}

#[test]
fn doctor_reports_what_is_missing() {
    let place = Place::new();
    let found = json(&place.wattle(["doctor", "--json"]).run().code(1).stdout);
    let broken: Vec<&str> = found["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["ok"] == false)
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!((&found["ok"], broken), (&json!(false), vec!["model", "endpoint"]));

    let provider =
        wattle_tests::provider::Provider::start([wattle_tests::provider::Answer::status(401)]);
    let args = ["doctor", "--base-url", &provider.base_url(), "--model", "m"];
    let secret = "sk-doctor-0123456789";
    let done = place.wattle(args).env("WATTLE_API_KEY", secret).run().code(0);
    assert!(
        done.stdout.contains("key from `WATTLE_API_KEY`") && !done.stdout.contains(secret),
        "{}",
        done.stdout
    );
    let requests = provider.requests();
    assert_eq!(
        (requests[0].path.as_str(), requests[0].header("authorization")),
        ("/v1/models", None)
    );

    let closed = ["doctor", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"];
    let done = place.wattle(closed).run().code(1);
    assert!(done.stdout.contains("--base-url"), "{}", done.stdout);
    place.write("a-file", "");
    let done =
        place.wattle(["doctor", "--store", "a-file/x.db", "--root", "nowhere"]).run().code(1);
    assert!(
        done.stdout.contains("--store FILE") && done.stdout.contains("--root DIR"),
        "{}",
        done.stdout
    );
}

#[test]
fn the_demo_plays_every_run_as_recorded() {
    let place = Place::new();
    let names: Vec<String> = place
        .wattle(["demo", "--list"])
        .run()
        .code(0)
        .stdout
        .lines()
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    assert!(names.len() >= 3, "{names:?}");
    let done = place.wattle(["demo"]).run().code(0);
    let done = done.reports(&[
        "demo 1 of 3",
        "repair",
        "takes 2 arguments, found 1",
        "created report/summary.md",
        "_steps.jsonl",
        "wattle run",
    ]);
    for answer in ["Tuesday to Sunday", "7 of the 12 errors", "North leads"] {
        assert!(done.stdout.contains(answer), "{}", done.stdout);
    }
    assert_eq!(place.files().len(), 0, "the demo leaves nothing behind: {:?}", place.files());
    for name in names {
        place.wattle(["demo", &name]).run().code(0).reports(&["demo 1 of 1"]);
    }
    place.wattle(["demo", "nope"]).run().code(2).reports(&["fetch, logs, report"]);
}
