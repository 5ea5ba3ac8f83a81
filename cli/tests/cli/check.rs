//! Tests of the commands that read a program or a model's answer without running it: `check`,
//! `expand` and `parse`.

use serde_json::json;

use crate::exec::ECHO;
use crate::place::{Place, json};

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
