//! Tests of `wattle exec`.

use std::io::{Read, Write};

use serde_json::{Value as Json, json};

use crate::place::{Place, json};

/// A program that prints its first argument.
pub(crate) const ECHO: &str = "(argv 0 $text)\n(resv $text)\n(i32.const 0)\n";

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
fn an_unknown_nested_program_is_reported_in_words_for_users() {
    let place = Place::new();
    let program = "(ret (arr.to_json? (par.map? \"zzzqqq\" (str.split? \"a b\" \" \"))))";
    let done = place.wattle(["exec", "-"]).stdin(program).run().code(1);
    let done = done.reports(&["there is no program `zzzqqq` in the catalog"]);
    assert!(!done.stderr.contains("ToolCall"), "{}", done.stderr);
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

#[test]
fn changes_of_protected_files_are_left_out_without_a_terminal() {
    let place = Place::new();
    let program = "(fs.write \"Makefile\" \"all:\") (fs.write \".github/workflows/ci.yml\" \"x\") \
                   (fs.write \"src/main.rs\" \"fn main() {}\") (out \"done\")";
    place.write("a.wat", program);
    let exec = ["exec", "a.wat", "--apply"];
    let done = place.wattle(exec).run();
    assert_eq!(done.code, 6, "{done:?}");
    for words in [
        "2 changes of protected files not applied:",
        "created Makefile (4 bytes): a build file",
        "created .github/workflows/ci.yml (1 byte): a workflow that a forge runs",
        "created src/main.rs",
        "--allow protected",
    ] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    assert!(place.work().join("src/main.rs").exists());
    assert!(!place.work().join("Makefile").exists() && !place.work().join(".github").exists());
    let done = place.wattle(exec.iter().chain(&["--allow", "write:Makefile"])).run();
    assert_eq!(done.code, 6, "{done:?}");
    assert!(place.work().join("Makefile").exists() && !place.work().join(".github").exists());
    assert_eq!(place.wattle(exec.iter().chain(&["--allow", "protected"])).run().code, 0);
    assert!(place.work().join(".github/workflows/ci.yml").exists());
}

#[test]
fn an_error_of_a_built_in_program_names_no_line_of_it() {
    let place = Place::new();
    let failed = place.wattle(["exec", "json_get", "{}", "a"]).run().code(1);
    let failed = failed.reports(&["ENOENT (4) in `json.get`"]);
    assert!(!failed.stderr.contains("-->"), "{}", failed.stderr);
    place.write("own.wat", "(ret\n  (json.get \"{}\" \"a\"))");
    place.wattle(["exec", "own.wat"]).run().code(1).reports(&["--> line 2: (json.get"]);
}
