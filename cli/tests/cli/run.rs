//! Tests of `wattle run` with a chat-completions endpoint.

use std::os::unix::fs::symlink;

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

const KEY: &str = "sk-test-0123456789abcdef";

const CATALOG: &str =
    "<reasoning>The page first.</reasoning>\nToolCall::Catalog(\"http_get\", \"PAGE\")";
const BROKEN: &str = "<reasoning>Now its length.</reasoning>\nToolCall::Wat(```wat\n(argv 0 \
                      $page)\n(resv (call $str.from_int (call $str.measure (local.get \
                      $page))))\n(i32.const 0)\n```, \"four\")";
const MENDED: &str = "ToolCall::Wat(```wat\n(argv 0 $page)\n(resv (call $str.from_int (call \
                      $str.len (local.get $page))))\n(i32.const 0)\n```, \"four\")";
const ANSWER: &str = "ToolCall::Response(\"\"\"\nThe page has 4 bytes.\n\"\"\")";

fn wattle(place: &Place, provider: &Provider, args: &[&str]) -> Done {
    let all = ["run", "--base-url", &provider.base_url(), "--model", "test-model"];
    place.wattle(all.iter().chain(args)).env("WATTLE_API_KEY", KEY).run()
}

fn response(text: &str) -> String {
    format!("ToolCall::Response(\"\"\"{text}\"\"\")")
}

#[test]
fn without_a_folder_for_records_or_keys_a_run_goes_on_with_one_warning() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::text(response("fine")));
    let url = provider.base_url();
    let args = ["run", "hello", "--base-url", &url, "--model", "m"];
    // Nobody can create a folder there, not even root.
    let nowhere = place.wattle(args).env("HOME", "/proc/nowhere").env("WATTLE_STORE", "").run();
    let keys = place.home().join(".local/share/wattle/keys");
    std::fs::create_dir_all(keys.parent().unwrap()).unwrap();
    std::fs::write(&keys, "a file in place of the folder of the keys").unwrap();
    let without_keys = place.wattle(args).env("WATTLE_STORE", "").run();
    for done in [nowhere, without_keys] {
        let done = done.code(0).reports(&["neither recorded nor signed", "XDG_DATA_HOME"]);
        assert_eq!(done.stdout, "fine\n");
        assert_eq!(done.stderr.matches("warning:").count(), 1, "{}", done.stderr);
    }
}

#[test]
fn an_answer_with_a_schema_is_printed_as_json() {
    let place = Place::new();
    place.write(
        "count.json",
        // Some editors write a byte order mark.
        "\u{feff}{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}, \
         \"required\": [\"n\"]}",
    );
    let args = ["count", "--output-schema", "count.json"];
    let provider = Provider::start(["four", "```json\n{\"n\":4}\n```"].map(Answer::text));
    let done = wattle(&place, &provider, &args).code(0).reports(&["the answer was not accepted"]);
    assert_eq!(done.stdout, "{\n  \"n\": 4\n}\n");
    let prompt = provider.requests()[0].messages().remove(0);
    assert!(prompt.contains("named `count`"), "{prompt}");

    let provider = Provider::start(["four", "five", "{\"n\": \"six\"}"].map(Answer::text));
    let done = wattle(&place, &provider, &args).code(1);
    let done = done.reports(&["does not match the schema", "at /n: ", "{\"n\": \"six\"}"]);
    assert_eq!(done.stdout, "");

    let provider = Provider::start([]);
    place.write("bad.json", r#"{"type": "strin"}"#);
    place.write("text.json", "not JSON");
    for (file, words) in
        [("bad.json", "cannot be used"), ("text.json", "line 1"), ("none.json", "no such file")]
    {
        let args = ["count", "--output-schema", file];
        wattle(&place, &provider, &args).code(2).reports(&["failed to read the schema", words]);
    }
}

/// Executes a run that calls a catalog program, then calls an inline program that the model must
/// repair, and returns an answer.
fn spine(place: &Place, args: &[&str]) -> (Provider, Done) {
    let page = Provider::start([Answer::body("four")]);
    let url = page.base_url();
    let host = page.host();
    let script = [&CATALOG.replace("PAGE", &url), BROKEN, MENDED, ANSWER];
    let provider = Provider::start(script.map(Answer::text));
    let args: Vec<&str> =
        ["how long is the page?", "--allow-host", &host].iter().chain(args).copied().collect();
    let done = wattle(place, &provider, &args);
    assert_eq!(page.requests().len(), 1, "{}", done.stderr);
    (provider, done)
}

#[test]
fn a_run_acts_repairs_and_answers() {
    let place = Place::new();
    let (provider, done) = spine(&place, &[]);
    let done =
        done.code(0).reports(&["http_get", "str.measure", "repair", "answered after 2 steps"]);
    assert_eq!(done.stdout, "The page has 4 bytes.\n");

    let requests = provider.requests();
    assert_eq!(requests.len(), 4);
    let repair = requests[2].messages().pop().unwrap();
    assert!(repair.contains("$str.measure") && repair.contains("`$str.len`"), "{repair}");
    let later = requests[3].messages();
    assert!(!later.iter().any(|message| message.contains("measure")), "{later:#?}");
    assert!(later.iter().any(|message| message.contains("$str.len ")), "{later:#?}");
    assert!(
        later.last().unwrap().starts_with("[Observation (step 2)] Execution result:"),
        "{later:#?}"
    );
    assert!(later[0].contains("csv_filter"), "the prompt lists the catalog");

    let steps: Vec<Json> = place
        .read_trace("_steps.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let tools: Vec<&str> = steps.iter().map(|line| line["tool"].as_str().unwrap()).collect();
    assert_eq!((tools.first(), tools.last()), (Some(&"http_get"), Some(&"wat")), "{steps:#?}");
    assert_eq!(steps.last().unwrap()["exit_code"], 0);
    assert_eq!(steps.last().unwrap()["output"], "4");
}

#[test]
fn runs_that_write_nothing_leave_the_folder_as_it_was() {
    let place = Place::new();
    place.write("notes.txt", "hello");
    let of_work = || -> Vec<_> {
        let work = place.work();
        place.files().into_iter().filter(|(path, _)| path.starts_with(&work)).collect()
    };
    let before = of_work();
    let read = "ToolCall::Catalog(\"file_read\", \"notes.txt\")";
    for _ in 0..3 {
        let provider = Provider::start([read, ANSWER].map(Answer::text));
        wattle(&place, &provider, &["go"]).code(0);
    }
    assert_eq!(of_work(), before);
    // The records are with the user's data.
    assert!(place.wattle(["trace", "show"]).run().code(0).stdout.contains("file_read"));
}

/// The events of an answer that is being written.
const PARTS: &[&str] = &["delta", "thought_delta", "answer_delta", "answer_void"];

#[test]
fn json_prints_the_events_in_order() {
    let (_, done) = spine(&Place::new(), &["--json"]);
    let events = done.code(0).json_lines();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .filter(|kind| !PARTS.contains(kind))
        .collect();
    assert_eq!(
        kinds.join(" "),
        "thinking tool_start tool_result thinking tool_start retry tool_start tool_result response"
    );
    // A live event repeats the number of the previous recorded event.
    let mut newest = 0;
    for event in &events {
        let is_kept = !PARTS.contains(&event["type"].as_str().unwrap());
        newest += u64::from(is_kept);
        assert_eq!(event["seq"], newest, "{event}");
    }
    let last = events.last().unwrap();
    assert_eq!(last["text"], "The page has 4 bytes.");
    assert_eq!((&last["stop"], &last["steps"]), (&"answered".into(), &2.into()));
    let retry = events.iter().find(|event| event["type"] == "retry").unwrap();
    assert!(retry["error"].as_str().unwrap().contains("`$str.measure`"), "{retry}");
}

/// A mistake with a single safe fix is fixed without asking the model. The fix is reported to the
/// user and the model, and recorded in the trace.
#[test]
fn a_mistake_is_fixed_without_a_turn() {
    let place = Place::new();
    let slip = "ToolCall::Wat(```wat\n(argv 0 $word)\n(resv (call $str.from_int (call $str.lenght \
                (local.get $word))))\n(i32.const 0)\n```, \"four\")";
    let provider = Provider::start([slip, ANSWER].map(Answer::text));
    let done = wattle(&place, &provider, &["how long?"]).code(0);
    done.reports(&["fixed", "line 2: `$str.lenght` → `$str.len`", "answered after 1 step"]);
    let messages = provider.requests()[1].messages();
    assert!(
        messages.iter().any(|message| message.contains("lenght")),
        "the model's own answer is unchanged: {messages:#?}"
    );
    let note = "[Observation (step 1)] Execution result:\n[Note] fixed before running: line 2: \
                `$str.lenght` → `$str.len`\n4";
    assert_eq!(messages.last().unwrap(), note);
    let step: Json = serde_json::from_str(place.read_trace("_steps.jsonl").trim()).unwrap();
    assert_eq!(
        (&step["output"], &step["fixed"][0]),
        (&"4".into(), &"line 2: `$str.lenght` → `$str.len`".into())
    );
}

#[test]
fn the_key_goes_to_the_endpoint_and_nowhere_else() {
    for args in [
        &["-v"][..],
        &["--json"],
        &["--record", "tape.jsonl", "--session", "s", "--store", "store.db"],
    ] {
        let place = Place::new();
        let (provider, done) = spine(&place, args);
        let done = done.code(0);
        for request in provider.requests() {
            assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
            assert!(!request.body.contains(KEY));
        }
        assert!(!done.stdout.contains(KEY) && !done.stderr.contains(KEY));
        for (path, content) in place.files() {
            let found = content.windows(KEY.len()).any(|bytes| bytes == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }
}

#[test]
fn a_key_that_the_endpoint_echoes_is_not_shown() {
    let place = Place::new();
    let echo = format!("{{\"error\":{{\"message\":\"bad key {KEY}\"}}}}");
    let provider = Provider::start([Answer::status(401).with_body(echo)]);
    let done = wattle(&place, &provider, &["hello"]).code(4).reports(&["401", "WATTLE_API_KEY"]);
    assert!(!done.stderr.contains(KEY) && !done.stdout.contains(KEY), "{}", done.stderr);
    assert_eq!(done.stdout, "");
}

/// The model's program and answer, which contain the API key, are used unchanged. The records of
/// the run do not contain the key.
#[test]
fn the_models_text_is_unchanged_and_its_records_have_no_key() {
    let place = Place::new();
    let program = format!(
        "ToolCall::Wat(```wat\n(out (str.from_int (str.len (arg 0)))) (ret (arg 0))\n```, \
         \"{KEY}\")"
    );
    let provider =
        Provider::start([program, response(&format!("your key is {KEY}"))].map(Answer::text));
    let args = ["hello", "--record", "tape.jsonl", "--session", "s"];
    let done = wattle(&place, &provider, &args).code(0);
    assert_eq!(done.stdout, format!("your key is {KEY}\n"));
    let observed = provider.requests()[1].messages().pop().unwrap();
    assert!(observed.contains(&format!("\n{}\n{KEY}", KEY.len())), "{observed}");
    let tape = place.read("tape.jsonl");
    for (file, text) in ["_steps.jsonl", "events.org"]
        .map(|file| (file, place.read_trace(file)))
        .into_iter()
        .chain([("tape.jsonl", tape)])
    {
        assert!(text.contains("***") && !text.contains(KEY), "{file}: {text}");
    }
    for (path, content) in place.files() {
        let found = content.windows(KEY.len()).any(|bytes| bytes == KEY.as_bytes());
        assert!(!found, "the key is in {}", path.display());
    }
    // The session keeps the exact text for the user and for the next run. Its export is masked, so
    // that it can be shared.
    let shown = place.wattle(["session", "show", "s"]).run().code(0);
    assert!(shown.stdout.contains(&format!("your key is {KEY}")), "{shown:?}");
    let exported = place.wattle(["session", "export", "s"]).env("WATTLE_API_KEY", KEY);
    let exported = exported.env("WATTLE_BASE_URL", provider.base_url()).env("WATTLE_MODEL", "m");
    let exported = exported.run().code(0).reports(&["masked in", "of the exported session"]);
    assert!(exported.stdout.contains("your key is ***") && !exported.stdout.contains(KEY));
}

/// A key that is too short is not masked, and the operator is warned.
#[test]
fn a_short_key_masks_nothing_and_causes_a_warning() {
    let place = Place::new();
    let program = "ToolCall::Wat(```wat\n(ret (fmt \"kiwi, {}\" (arg 0)))\n```, \"milk\")";
    let provider =
        Provider::start([program.to_owned(), response("ok, kiwi and milk")].map(Answer::text));
    let all = ["run", "hello", "--base-url", &provider.base_url(), "--model", "m"];
    let done = place.wattle(all).env("WATTLE_API_KEY", "k").run().code(0);
    assert_eq!(done.stdout, "ok, kiwi and milk\n");
    done.reports(&["warning:", "`WATTLE_API_KEY`", "fewer than 8 characters"]);
    assert!(provider.requests()[1].messages().pop().unwrap().ends_with("\nkiwi, milk"));
    assert!(place.read_trace("_steps.jsonl").contains("kiwi, milk"));
    let doctor = ["doctor", "--json", "--base-url", &provider.base_url(), "--model", "m"];
    let found = place.wattle(doctor).env("WATTLE_API_KEY", "k").run();
    assert!(found.stdout.contains("fewer than 8 characters"), "{}", found.stdout);
}

/// An answer that is truncated in every attempt is reported as truncated.
#[test]
fn an_answer_that_stays_truncated_causes_a_warning() {
    let place = Place::new();
    let message = serde_json::json!({"choices": [{
        "message": {"content": "The first"}, "finish_reason": "length",
    }]});
    let provider = Provider::start(vec![Answer::body(message.to_string()); 3]);
    let done = wattle(&place, &provider, &["hello"]).code(5);
    assert_eq!(done.stdout, "The first\n");
    done.reports(&["cut off before its end"]);
    assert_eq!(provider.requests().len(), 3);
}

#[test]
fn a_recording_replays_without_the_endpoint() {
    let place = Place::new();
    let provider = Provider::start([Answer::text(response("recorded"))]);
    wattle(&place, &provider, &["hello", "--record", "tape.jsonl"]).code(0);
    let again = place.wattle(["run", "hello", "--cassette", "tape.jsonl"]).run().code(0);
    assert_eq!(again.stdout, "recorded\n");
    place
        .wattle(["run", "hello", "--cassette", "nope.jsonl"])
        .run()
        .code(3)
        .reports(&["nope.jsonl"]);
}

#[test]
fn piped_stdin_is_added_to_the_request() {
    let place = Place::new();
    place.write("notes.txt", "one\ntwo\n");
    let provider = Provider::answering(|_| Answer::text(response("fine")));
    let run = format!("wattle run summarize --orient off --base-url {} -m m", provider.base_url());
    let last = || provider.requests().pop().unwrap().messages().pop().unwrap();
    let added = |text: &str| format!("summarize\n\n<stdin>\n{text}\n</stdin>");
    for (line, message) in [
        (format!("cat notes.txt | {run}"), added("one\ntwo")),
        (format!("{run} < notes.txt"), added("one\ntwo")),
        (format!("cat notes.txt | {run} --no-stdin"), "summarize".to_owned()),
        (format!("{run} < /dev/null"), "summarize".to_owned()),
        (format!("printf '' | {run}"), "summarize".to_owned()),
    ] {
        let done = place.shell(&line).run().code(0);
        assert!(!done.stderr.contains("--no-stdin"), "{}", done.stderr);
        assert_eq!(last(), message, "{line}");
    }
    let late = format!("(sleep 1.2; echo late) | {run}");
    place.shell(&late).run().code(0).reports(&["waiting for the end of stdin", "--no-stdin"]);
    assert_eq!(last(), added("late"));
    let large = format!("head -c 17000000 /dev/zero | {run}");
    place.shell(&large).run().code(2).reports(&["larger than 16 MiB"]);
}

#[test]
fn the_prompt_may_come_from_stdin_and_the_answer_go_to_a_file() {
    let place = Place::new();
    let provider = Provider::start([Answer::text(response("to a file"))]);
    let args = ["run", "-", "--base-url", &provider.base_url(), "--model", "m", "-o", "answer.txt"];
    let done = place.wattle(args).stdin("what?\n").run().code(0);
    assert_eq!((done.stdout.as_str(), place.read("answer.txt").as_str()), ("", "to a file\n"));
    assert_eq!(provider.requests()[0].messages().pop().unwrap(), "what?");
    place
        .wattle(["run", "-", "--base-url", &provider.base_url(), "--model", "m"])
        .run()
        .code(2)
        .reports(&["empty"]);
    let nowhere = [
        "run",
        "x",
        "--base-url",
        &provider.base_url(),
        "--model",
        "m",
        "-o",
        "no/such/folder/a.txt",
    ];
    place.wattle(nowhere).run().code(2).reports(&["no/such/folder/a.txt"]);
    assert_eq!(
        provider.requests().len(),
        1,
        "no model is asked if the answer could not be written"
    );
}

const LINKS: &str = "ToolCall::Wat(```wat\n(ret (shell.run? \"rm answer.txt && ln -s .git/config \
                     answer.txt && echo lin''ked\" \"\"))\n```)";

#[test]
fn the_answer_replaces_a_link_that_the_run_made() {
    let place = Place::new();
    place.write(".git/config", "old");
    place.write("answer.txt", "old");
    let provider = Provider::start([LINKS, &response("new")].map(Answer::text));
    wattle(&place, &provider, &["answer", "--write", "-o", "answer.txt"]).code(0);
    let observed = provider.requests()[1].messages().pop().unwrap();
    assert!(observed.contains("linked"), "{observed}");
    assert!(place.work().join("answer.txt").symlink_metadata().unwrap().is_file());
    assert_eq!(place.read("answer.txt"), "new\n");
    assert_eq!(place.read(".git/config"), "old");
}

#[test]
fn an_output_file_that_is_a_link_or_protected_is_refused_before_the_run() {
    let place = Place::new();
    place.write(".git/config", "old");
    symlink(".git/config", place.work().join("answer.txt")).unwrap();
    symlink("nothing", place.work().join("dangling")).unwrap();
    symlink(".git", place.work().join("out")).unwrap();
    let provider = Provider::start([]);
    for (file, words) in [
        ("answer.txt", "is a link"),
        ("dangling", "is a link"),
        ("out/description", "is a link"),
        (".git/config", "Git repository"),
        ("wattle.toml", "project file"),
        ("_steps.jsonl", "only the host"),
    ] {
        wattle(&place, &provider, &["answer", "-o", file]).code(2).reports(&[file, words]);
    }
    assert!(provider.requests().is_empty());
    assert_eq!(place.read(".git/config"), "old");
    assert!(place.work().join("dangling").is_symlink());
    assert!(!place.work().join("nothing").exists());
}

const WRITES: &str =
    "ToolCall::Wat(```wat\n(check (call $fs.write \"out/a.txt\" \"hello\"))\n(i32.const 0)\n```)";

#[test]
fn files_change_only_on_request() {
    for (args, there, words) in [
        (&[][..], false, "wattle apply"),
        (&["--apply"], true, "applied"),
        (&["--write"], true, "written to the workdir"),
        (&["--exec"], true, "written to the workdir"),
    ] {
        let place = Place::new();
        let provider = Provider::start([WRITES, &response("done")].map(Answer::text));
        let args: Vec<&str> = ["write it"].iter().chain(args).copied().collect();
        wattle(&place, &provider, &args).code(0).reports(&["created out/a.txt (5 bytes)", words]);
        assert_eq!(place.work().join("out/a.txt").exists(), there, "{args:?}");
    }
}

#[test]
fn changes_of_a_failed_run_are_not_applied() {
    let place = Place::new();
    let provider = Provider::start([Answer::text(WRITES), Answer::status(401)]);
    wattle(&place, &provider, &["write it", "--apply"])
        .code(4)
        .reports(&["created out/a.txt", "not applied"]);
    assert!(!place.work().join("out").exists());
}

#[test]
fn a_session_keeps_its_messages_and_its_variables() {
    let place = Place::new();
    let keeps =
        "ToolCall::Wat(```wat\n(check (call $kv.set \"name\" \"Ada\"))\n(i32.const 0)\n```)";
    let first = Provider::start([keeps, &response("kept")].map(Answer::text));
    wattle(&place, &first, &["my name is Ada", "--session", "one", "--store", "s.db"]).code(0);

    let reads = "ToolCall::Wat(```wat\n(call $kv.get \"name\") (local $e i32) (local $v \
                 i32)\n(local.set $e) (local.set $v)\n(check $e)\n(resv $v)\n(i32.const 0)\n```)";
    let second = Provider::start([reads, &response("it is Ada")].map(Answer::text));
    wattle(&place, &second, &["what is my name?", "--session", "one", "--store", "s.db"]).code(0);
    let requests = second.requests();
    let begun = requests[0].messages();
    assert!(begun.iter().any(|message| message == "my name is Ada"), "{begun:#?}");
    assert!(requests[1].messages().pop().unwrap().contains("Ada"), "{:#?}", requests[1].messages());

    let other = Provider::start([reads, &response("unknown")].map(Answer::text));
    wattle(&place, &other, &["what is my name?", "--session", "two", "--store", "s.db"]).code(0);
    let requests = other.requests();
    assert_eq!(requests[0].messages().len(), 2, "another session starts empty");
    assert!(
        requests[1].messages().pop().unwrap().contains("ENOENT"),
        "{:#?}",
        requests[1].messages()
    );
}

#[test]
fn bounds_end_a_run_with_their_own_code() {
    let place = Place::new();
    let acts = "ToolCall::Wat(```wat\n(i32.const 0)\n```)";
    let steps = Provider::start([acts, &response("that is all I have")].map(Answer::text));
    let done = wattle(&place, &steps, &["work", "--max-steps", "1"]).code(5);
    assert_eq!(done.stdout, "that is all I have\n");
    let slow = Provider::start([Answer::hang()]);
    let done = wattle(&place, &slow, &["work", "--timeout", "200ms"]).code(5);
    assert_eq!(done.stdout, "stopped: reached timeout (200 ms)\n");
}

#[test]
fn a_program_may_ask_the_model() {
    let place = Place::new();
    let asks = "ToolCall::Wat(```wat\n(call $ai.assist \"a long text\" \"Shorten.\" (i32.const \
                0))\n(local $e i32) (local $p i32)\n(local.set $e) (local.set $p) (check $e) \
                (resv $p)\n(i32.const 0)\n```)";
    let provider = Provider::start([asks, "short", &response("It says: short")].map(Answer::text));
    let done = wattle(&place, &provider, &["shorten it"]).code(0);
    assert_eq!(done.stdout, "It says: short\n");
    assert_eq!(provider.requests()[1].messages(), ["Shorten.", "a long text"]);
}

#[test]
fn without_a_model_the_error_names_the_settings() {
    let done = Place::new().wattle(["run", "hello"]).run().code(3);
    assert_eq!(done.stdout, "");
    let done = done.reports(&["OPENAI_API_KEY", "--base-url URL --model NAME", "wattle demo"]);
    assert_eq!(done.stderr.lines().count(), 3, "{}", done.stderr);
}

#[test]
fn a_models_text_cannot_control_the_terminal() {
    let place = Place::new();
    let provider = Provider::start([
        Answer::text(
            "<reasoning>\u{1b}]0;owned\u{7}</reasoning>\nToolCall::Catalog(\"\u{1b}[2J\")",
        ),
        Answer::text(response("done")),
    ]);
    let done = wattle(&place, &provider, &["hello"]).code(0);
    assert!(!done.stderr.contains(['\u{1b}', '\u{7}']), "{:?}", done.stderr);
}

#[test]
fn every_command_prints_the_warnings_of_the_libraries() {
    let place = Place::new();
    let data = place.home().join(".local/share/wattle");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("traces"), "a file where a folder should be").unwrap();
    let call = "ToolCall::Catalog(\"text_count\", \"a b\")";
    let provider =
        Provider::start([Answer::text(call), Answer::status(503), Answer::text(response("two"))]);
    let done = wattle(&place, &provider, &["count"])
        .code(0)
        .reports(&["WARN failed to write the trace", "wattle/traces"]);
    assert!(
        !done.stderr.contains("asking the model again") && !done.stderr.contains('\u{1b}'),
        "{}",
        done.stderr
    );
    assert_eq!(done.stdout, "two\n");

    for at_first in [true, false] {
        let provider = Provider::start([Answer::status(503), Answer::text(response("two"))]);
        let base = provider.base_url();
        let run = ["run", "count", "--base-url", &base, "--model", "m"];
        let args: Vec<&str> =
            if at_first { ["-v"].iter().chain(&run) } else { run.iter().chain(&["-v"]) }
                .copied()
                .collect();
        place.wattle(args).run().code(0).reports(&["DEBUG asking the model again"]);
    }
}

#[test]
fn a_session_keeps_a_run_that_was_aborted() {
    let place = Place::new();
    let slow = Provider::start([Answer::hang()]);
    wattle(&place, &slow, &["first", "--timeout", "200ms", "--session", "one", "--store", "s.db"])
        .code(5);
    let broken = Provider::start([Answer::status(401)]);
    wattle(&place, &broken, &["second", "--session", "one", "--store", "s.db"]).code(4);
    let provider = Provider::start([Answer::text(response("done"))]);
    wattle(&place, &provider, &["third", "--session", "one", "--store", "s.db"]).code(0);
    assert_eq!(
        provider.requests()[0].messages()[1..],
        ["first", "stopped: reached timeout (200 ms)", "third"]
    );
}

#[test]
fn ignore_files_hold_for_the_orientation_and_the_search() {
    let place = Place::new();
    for path in ["kept.txt", "log.txt", "build/out.txt", "src/a.txt", "src/b.txt", "src/c.txt"] {
        place.write(path, format!("the needle of {path}\n"));
    }
    place.write(".gitignore", "/log.txt\nbuild/\nb.txt\n");
    place.write("src/.wattleignore", "c.txt\n!b.txt\n");
    let provider = Provider::answering(|_| Answer::text(response("done")));
    wattle(&place, &provider, &["what is here?"]).code(0);
    let shown = provider.requests()[0].messages().join("\n");
    assert!(shown.contains("kept.txt") && shown.contains("src"), "{shown}");
    assert!(!shown.contains("log.txt") && !shown.contains("build"), "{shown}");
    // A file that the message names is shown.
    wattle(&place, &provider, &["what is in log.txt?"]).code(0);
    assert!(provider.requests()[1].messages().join("\n").contains("the needle of log.txt"));

    let found = place.wattle(["exec", "-"]).stdin("(ret (search.query? \"needle\" 10))").run();
    let found = found.code(0).stdout;
    for (path, is_found) in [
        ("kept.txt", true),
        ("src/a.txt", true),
        ("src/b.txt", true),
        ("src/c.txt", false),
        ("log.txt", false),
        ("build/out.txt", false),
    ] {
        assert_eq!(found.contains(&format!("needle of {path}")), is_found, "{path}: {found}");
    }
}

#[test]
fn a_file_begins_the_system_prompt() {
    let place = Place::new();
    place.write("rules.md", "Answer in verse.\n");
    let provider = Provider::answering(|_| Answer::text(response("done")));
    wattle(&place, &provider, &["--system", "rules.md", "hello"]).code(0);
    assert!(provider.requests()[0].messages()[0].starts_with("Answer in verse."));
    let missing = wattle(&place, &provider, &["--system", "none.md", "hello"]).code(3);
    missing.reports(&["`system`", "none.md", "there is no such file"]);
}

#[test]
fn words_without_quotes_are_one_request() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::text(response("done")));
    let done = wattle(&place, &provider, &["count", "the", "words"]).code(0);
    done.reports(&["the request is: count the words"]);
    assert!(provider.requests()[0].messages().join("\n").contains("count the words"));
    let done = wattle(&place, &provider, &["count the words"]).code(0);
    assert!(!done.stderr.contains("the request is"), "{}", done.stderr);
}

#[test]
fn a_session_is_kept_until_a_setting_ends_it() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::text(response("done")));
    let ask = |message: &str, kept: &str| {
        let args = ["run", "--base-url", &provider.base_url(), "--model", "m", "--session", "s"];
        let call = place.wattle(args.iter().chain(&[message]));
        // Only servers use it.
        let call = call.env("WATTLE_SESSION_TTL", "1ms").env("WATTLE_KEEP_SESSIONS", kept);
        call.run().code(0);
        provider.requests().pop().unwrap().messages().join("\n")
    };
    ask("my name is Ada", "");
    assert!(ask("what is my name?", "").contains("my name is Ada"));
    let pruned = place.wattle(["prune"]).env("WATTLE_SESSION_TTL", "1ms").run().code(0);
    assert!(pruned.stdout.contains("0 sessions"), "{}", pruned.stdout);
    // An expired session is gone for its own next message, too.
    assert!(!ask("and now?", "1ms").contains("my name is Ada"));
    let pruned = place.wattle(["prune"]).env("WATTLE_KEEP_SESSIONS", "1ms").run().code(0);
    assert!(pruned.stdout.contains("1 session"), "{}", pruned.stdout);
}
