//! Tests of `wattle trace`, `telemetry`, `ledger` and `vars`: reading and verifying the records of
//! runs.

use serde_json::{Value as Json, json};

use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

/// A recorded run of three calls, one of which fails.
const RECORDING: &[&str] = &[
    "ToolCall::Catalog(\"text_count\", \"one two\")",
    "ToolCall::Catalog(\"file_read\", \"missing.txt\")",
    "ToolCall::Wat(```wat\n(ret \"* no headline\\n:END:\")\n```)",
    "ToolCall::Response(\"* done\\n#+title: no\")",
];

/// Writes the recorded run to the workdir.
fn recorded(place: &Place) {
    let head = json!({"wattle_cassette": 1, "model": "recorded"});
    let replies = RECORDING.iter().map(|reply| json!({"reply": reply}));
    let lines: String =
        std::iter::once(head).chain(replies).map(|line| format!("{line}\n")).collect();
    place.write("run.jsonl", lines);
}

/// Creates a test's folders and replays the recorded run in them.
fn ran() -> Place {
    let place = Place::new();
    recorded(&place);
    wattle(&place, &["run", "count", "--cassette", "run.jsonl"]).code(0);
    place
}

fn wattle(place: &Place, args: &[&str]) -> Done {
    place.wattle(args).run()
}

/// Returns stdout, with the run's id replaced by `RUN`.
fn scrubbed(place: &Place, done: &Done) -> String {
    let first = place.read_trace("_steps.jsonl").lines().next().unwrap().to_owned();
    let run: Json = serde_json::from_str(&first).unwrap();
    done.stdout.replace(run["run_id"].as_str().unwrap(), "RUN")
}

#[test]
fn a_run_writes_a_trace_an_outline_and_seals() {
    let place = ran();
    let lines: Vec<Json> = place
        .read_trace("_steps.jsonl")
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["tool"], &lines[0]["model"], &lines[0]["step"]),
        (&json!("text_count"), &json!("recorded"), &json!(1))
    );
    assert!(lines[1]["error"].as_str().unwrap().starts_with("ENOENT"), "{}", lines[1]);
    assert_eq!(place.read_trace("_ledger.jsonl").lines().count(), 4);

    let org = place.read_trace("events.org");
    let headlines: Vec<&str> = org.lines().filter(|line| line.starts_with('*')).collect();
    let expected = [
        "* Agent run :session:",
        "** step 1: text_count :tool_call:",
        "** step 2: file_read :tool_call:",
        "** step 3: wat :tool_call:",
        "* Result",
    ];
    assert_eq!(headlines, expected);
    assert!(
        org.contains(":ARGS: {\"text\":\"one two\"}\n")
            && org.contains(": * no headline\n: :END:\n"),
        "{org}"
    );
    assert!(org.ends_with("* Result\n: * done\n: #+title: no\n"), "{org}");
}

#[test]
fn programs_cannot_change_the_hosts_files() {
    let place = ran();
    for file in ["_steps.jsonl", "_ledger.jsonl", "events.org", "_issues.jsonl"] {
        let before = std::fs::read(place.work().join(file)).unwrap_or_default();
        wattle(&place, &["exec", "file_write", file, "forged", "--write"])
            .code(1)
            .reports(&["which only the host writes"]);
        assert_eq!(std::fs::read(place.work().join(file)).unwrap_or_default(), before);
    }
}

#[test]
fn a_trace_is_shown_queried_and_summarized() {
    let place = ran();
    let show = wattle(&place, &["trace", "show"]).code(0);
    let shown = scrubbed(&place, &show);
    assert!(
        shown.starts_with("RUN default\n    1  ok text_count {\"text\":\"one two\"}"),
        "{shown}"
    );
    assert!(shown.contains("    2  failed file_read {\"path\":\"missing.txt\"}"), "{shown}");
    assert_eq!(wattle(&place, &["trace", "show", "--json"]).code(0).json_lines().len(), 3);
    wattle(&place, &["trace", "show", "--run", "none"])
        .code(2)
        .reports(&["no run `none` in the trace"]);

    let failed =
        wattle(&place, &["trace", "query", "map(select(.exit_code != 0) | .tool)"]).code(0);
    assert_eq!(failed.stdout, "[\"file_read\"]\n");
    wattle(&place, &["trace", "query", "map("]).code(2).reports(&["is not valid jq"]);

    let telemetry = wattle(&place, &["telemetry"]).code(0).stdout;
    assert!(telemetry.starts_with("1 runs, 3 steps, 3 calls, 1 failed\n"), "{telemetry}");
    assert!(telemetry.contains("agent default: 3 calls\nmodel recorded: 3 calls\n"), "{telemetry}");
    let all: Json =
        serde_json::from_str(&wattle(&place, &["telemetry", "--json"]).code(0).stdout).unwrap();
    assert_eq!(
        (&all["runs"], &all["failures"], &all["tools"][0]["tool"]),
        (&json!(1), &json!(1), &json!("file_read"))
    );

    let digest = scrubbed(&place, &wattle(&place, &["trace", "digest"]).code(0));
    assert!(
        digest.starts_with(
            "RUN default: file_read 1×, text_count 1×, wat 1×; 1 failed\n  file_read: ENOENT"
        ),
        "{digest}"
    );
    let feed = wattle(&place, &["trace", "feed"]).code(0).stdout;
    assert_eq!(feed, "default: 1 runs, 3 calls (file_read 1×, text_count 1×, wat 1×)\n");
}

#[test]
fn invalid_lines_are_counted_and_skipped() {
    let place = ran();
    let text = place.read_trace("_steps.jsonl");
    place.write_trace("below/_steps.jsonl", format!("{{\nnoise\n\n[1]\n{text}"));
    let done =
        wattle(&place, &["telemetry"]).code(0).reports(&["3 lines are not lines of a trace"]);
    assert!(done.stdout.starts_with("1 runs, 3 steps, 6 calls"), "{}", done.stdout);
    let empty = Place::new();
    wattle(&empty, &["telemetry"]).code(2).reports(&["no run has left a trace"]);
    wattle(&empty, &["trace", "show", "absent"])
        .code(2)
        .reports(&["failed to read the trace `absent`"]);
}

#[test]
fn every_reader_skips_a_long_line() {
    let place = ran();
    let (text, long) = (place.read_trace("_steps.jsonl"), "x".repeat(5 << 20));
    let step = format!("{{\"run_id\":\"big\",\"tool\":\"wat\",\"output\":\"{long}\"}}\n");
    place.write_trace("_steps.jsonl", format!("{step}{text}"));
    let words = ["1 lines are not lines of a trace (1 are longer than 4 MiB)"];
    for args in [
        &["trace", "show"][..],
        &["trace", "digest"],
        &["trace", "feed"],
        &["telemetry"],
        &["trace", "query", "length"],
    ] {
        let done = wattle(&place, args).code(0).reports(&words);
        assert!(!done.stdout.contains("xxx") && !done.stdout.is_empty(), "{args:?}");
    }
    let verified = wattle(&place, &["ledger", "verify"]).code(1);
    assert!(
        verified.stdout.contains("_steps.jsonl line 1: longer than 4 MiB; it was not read"),
        "{}",
        verified.stdout
    );
    place.write_trace("_steps.jsonl", text.repeat(23_000));
    wattle(&place, &["trace", "query", "length"])
        .code(2)
        .reports(&["more than 16 MiB, the maximum of a query"]);
}

#[test]
fn a_device_or_a_fifo_is_not_verified() {
    let place = ran();
    for file in ["_steps.jsonl", "_ledger.jsonl"] {
        let path = place.traces().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let rejected =
            || wattle(&place, &["ledger", "verify"]).code(2).reports(&["failed to read", file]);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        rejected();
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        rejected();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, text).unwrap();
    }
}

#[test]
fn a_ledger_verifies_and_names_an_edited_line() {
    let place = ran();
    let sound = wattle(&place, &["ledger", "verify"]).code(0);
    assert_eq!(scrubbed(&place, &sound), "RUN: sound 3 lines\n");
    let key = wattle(&place, &["ledger", "key"]).code(0).stdout;
    wattle(&place, &["ledger", "verify", "--key", key.trim()]).code(0);
    let other = "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29";
    wattle(&place, &["ledger", "verify", "--key", other]).code(3);

    let text = place.read_trace("_steps.jsonl");
    place.write_trace("_steps.jsonl", text.replacen("one two", "one too", 1));
    let broken = wattle(&place, &["ledger", "verify"]).code(1);
    assert_eq!(scrubbed(&place, &broken), "RUN: BROKEN _steps.jsonl line 1: edited\n");
    let all: Json =
        serde_json::from_str(&wattle(&place, &["ledger", "verify", "--json"]).code(1).stdout)
            .unwrap();
    assert_eq!(
        (&all[0]["sound"], &all[0]["finding"]),
        (&json!(false), &json!("_steps.jsonl line 1: edited"))
    );

    wattle(&place, &["ledger", "verify", "--key", other]).code(1);
    wattle(&place, &["ledger", "verify", "--key", "xyz"])
        .code(2)
        .reports(&["64 hexadecimal digits"]);
    let folder = place.traces();
    wattle(&place, &["ledger", "verify", folder.to_str().unwrap(), "--tenant", "other"]).code(1);
    wattle(&place, &["ledger", "key", "--tenant", "nobody"])
        .code(1)
        .reports(&["`nobody` has no key yet"]);
}

#[test]
fn a_run_of_another_store_is_neither_sound_nor_broken() {
    let place = Place::new();
    recorded(&place);
    // With this setting, the stores share a folder of traces.
    let of_own = |args: &[&str]| place.wattle(args).env("WATTLE_TRACE_DIR", "workdir").run();
    of_own(&["run", "count", "--cassette", "run.jsonl"]).code(0);
    let store = place.home().join("other/store.db");
    let of_other = |args: &[&str]| {
        let store = ["--store", store.to_str().unwrap()];
        of_own(&[args, &store].concat())
    };
    of_other(&["run", "count", "--cassette", "run.jsonl"]).code(0);
    let hint = "`wattle ledger verify --store FILE`";
    for verified in [of_own(&["ledger", "verify"]), of_other(&["ledger", "verify"])] {
        let verified = verified.code(3).reports(&["1 run not verified", hint]);
        let lines = &verified.stdout;
        assert_eq!(lines.lines().count(), 2, "{lines}");
        assert_eq!(lines.matches(": sound 3 lines\n").count(), 1, "{lines}");
        assert_eq!(lines.matches(": not verified, sealed by another store's key (").count(), 1);
    }
    let all = of_own(&["ledger", "verify", "--json"]).code(3);
    let all: Json = serde_json::from_str(&all.stdout).unwrap();
    let results = [&all[0]["result"], &all[1]["result"], &all[1]["sound"], &all[1]["sealed"]];
    assert_eq!(results, [&json!("sound"), &json!("not verified"), &json!(false), &json!(0)]);
    let own = all[0]["run"].as_str().unwrap();
    of_own(&["ledger", "verify", "--run", own]).code(0);

    // A run that the store has is broken if another key sealed it, and so is an edited one.
    let ledger = place.read("_ledger.jsonl");
    let keys: Vec<Json> = ledger
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap()["key"].take())
        .collect();
    let forged = ledger.replace(keys[0].as_str().unwrap(), keys[4].as_str().unwrap());
    place.write("_ledger.jsonl", forged);
    let broken = of_own(&["ledger", "verify", "--run", own]).code(1);
    assert!(broken.stdout.contains("BROKEN _ledger.jsonl line 1: sealed with another key"));
    place.write("_ledger.jsonl", ledger);
    let steps = place.read("_steps.jsonl");
    let second = steps.rfind("one two").unwrap();
    place.write("_steps.jsonl", [&steps[..second], "one too", &steps[second + 7..]].concat());
    let broken = of_own(&["ledger", "verify"]).code(1);
    assert!(broken.stdout.contains("BROKEN _steps.jsonl line 4: edited"), "{}", broken.stdout);
}

#[test]
fn variables_belong_to_the_tenant() {
    let place = Place::new();
    wattle(&place, &["vars", "set", "city", "Ghent"]).code(0);
    place.wattle(["vars", "set", "note", "-"]).stdin("two\nlines").run().code(0);
    assert_eq!(wattle(&place, &["vars", "get", "note"]).code(0).stdout, "two\nlines");
    assert_eq!(wattle(&place, &["vars", "list"]).code(0).stdout, "city\nnote\n");
    assert_eq!(
        wattle(&place, &["vars", "list", "c", "--json"]).code(0).stdout,
        "{\"city\":\"Ghent\"}\n"
    );
    place.write("city.wat", "(ret (kv.get? \"tenant:city\"))");
    assert_eq!(wattle(&place, &["exec", "city.wat"]).code(0).stdout, "Ghent\n");
    wattle(&place, &["vars", "get", "city", "--tenant", "other"])
        .code(1)
        .reports(&["there is no variable `city`"]);
    wattle(&place, &["vars", "rm", "city"]).code(0);
    wattle(&place, &["vars", "rm", "city"]).code(1).reports(&["there is no variable `city`"]);
}

/// Replays the recorded run and sends its telemetry to a collector.
fn ran_with(collector: &Provider, variables: &[(&str, &str)]) -> Done {
    let place = ran();
    let url = collector.base_url().trim_end_matches("/v1").to_owned();
    let call = place
        .wattle(["run", "count", "--cassette", "run.jsonl"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", url);
    variables.iter().fold(call, |call, (name, value)| call.env(name, value)).run()
}

#[test]
fn a_run_is_sent_to_a_collector_as_spans_and_metrics() {
    let collector = Provider::start([Answer::body("{}"), Answer::body("{}")]);
    ran_with(&collector, &[("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b")]).code(0);
    let requests = collector.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/v1/traces", "/v1/metrics"]);
    assert_eq!(requests[0].header("x-key"), Some("a b"));
    let spans = requests[0].json()["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
        .clone();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let chat = "chat recorded";
    let tools = ["execute_tool text_count", "execute_tool file_read", "execute_tool wat"];
    assert_eq!(
        names,
        [chat, tools[0], chat, tools[1], chat, tools[2], chat, "invoke_agent default"]
    );
    let root = spans.last().unwrap();
    assert!(
        root["parentSpanId"].is_null() && root["traceId"].as_str().unwrap().len() == 32,
        "{root}"
    );
    for span in &spans[..7] {
        assert_eq!((&span["parentSpanId"], &span["traceId"]), (&root["spanId"], &root["traceId"]));
        let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert_eq!((&spans[3]["status"]["code"], &spans[1]["status"]), (&json!(2), &json!({})));
    assert!(
        !requests[0].body.contains("one two") && !requests[0].body.contains("done"),
        "{}",
        requests[0].body
    );
    let metrics = &requests[1].json()["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(metrics[0]["name"], "gen_ai.client.token.usage");
    assert_eq!(metrics[1]["histogram"]["dataPoints"][0]["count"], "4");
}

#[test]
fn content_is_exported_if_the_operator_enables_it() {
    let collector = Provider::start([Answer::body("{}"), Answer::body("{}")]);
    ran_with(&collector, &[("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")]).code(0);
    assert!(collector.requests()[0].body.contains("one two"), "{}", collector.requests()[0].body);
}

#[test]
fn an_unreachable_collector_does_not_disturb_a_run() {
    for answer in [Answer::hang(), Answer::close(), Answer::status(500)] {
        let collector = Provider::start([answer]);
        let done = ran_with(&collector, &[]).code(0).reports(&["telemetry"]);
        assert_eq!(done.stdout, "* done\n#+title: no\n");
    }
    let place = ran();
    for (endpoint, words) in [("nonsense", "expected a URL"), ("ftp://a.example", "expected a URL")]
    {
        let run = ["run", "count", "--cassette", "run.jsonl"];
        place
            .wattle(run)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .run()
            .code(3)
            .reports(&[words]);
    }
}

#[test]
fn a_session_without_a_store_is_a_label() {
    let place = Place::new();
    let script = ["one", "two"].map(|text| Answer::text(format!("ToolCall::Response(\"{text}\")")));
    let first = Answer::text("ToolCall::Catalog(\"kv_set\", \"a\", \"1\")");
    let provider = Provider::start([first].into_iter().chain(script));
    let url = provider.base_url();
    let run = |prompt: &str| {
        let all = ["run", prompt, "--session", "s1", "--no-session-store", "--base-url", &url];
        wattle(&place, &[&all[..], &["--model", "m"]].concat())
    };
    assert_eq!(run("zebra").stdout, "one\n");
    let line: Json =
        serde_json::from_str(place.read_trace("_steps.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!((&line["tool"], &line["session_id"]), (&json!("kv_set"), &json!("s1")));
    assert_eq!(run("second").stdout, "two\n");
    let messages = provider.requests().pop().unwrap().messages();
    assert!(messages.iter().all(|message| !message.contains("zebra")), "{messages:?}");
    assert_eq!(wattle(&place, &["session", "list"]).stdout, "");
    let invalid = ["run", "x", "--session", "a b", "--no-session-store", "--base-url", &url];
    let invalid = wattle(&place, &[&invalid[..], &["--model", "m"]].concat());
    assert!(invalid.code == 3 && invalid.stderr.contains("a session id is"), "{}", invalid.stderr);
}
