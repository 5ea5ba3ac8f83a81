//! Tests of the commands that help new users: `catalog` lists the programs, `doctor` checks the
//! setup, and `demo` plays recorded runs.

use serde_json::json;

use crate::place::{Place, json};

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
    assert_eq!((&found["ok"], broken), (&json!(false), vec!["model"]), "one cause, named once");
    let fixes = place.wattle(["doctor"]).run().code(1).stdout;
    assert!(fixes.contains("fix: `wattle init` sets one up"), "{fixes}");
    let found = place.wattle(["doctor"]).env("OPENAI_API_KEY", "sk-0123456789");
    let found = found.env("HTTPS_PROXY", "http://127.0.0.1:1").run().code(1).stdout;
    assert!(found.contains("gpt-5-mini (the provider's default) at https://api.openai"), "{found}");

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
