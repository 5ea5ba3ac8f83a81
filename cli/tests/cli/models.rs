//! The settings of the model: the dialect, budgets, prices, and the content guard.

use serde_json::{Value as Json, json};
use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

fn user_file(place: &Place, content: &str) {
    let folder = place.home().join(".config/wattle");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wattle.toml"), content).unwrap();
}

fn run(place: &Place, provider: &Provider, args: &[&str]) -> Done {
    let all = ["run", "--base-url", &provider.base_url(), "--model", "test-model", "count them"];
    place.wattle(all.iter().chain(args)).env("WATTLE_API_KEY", "sk-test-0123456789").run()
}

const CALL: &str = "ToolCall::Catalog(\"text_count\", \"a b\")";
const ANSWER: &str = "ToolCall::Response(\"two\")";

fn calling(name: &str, arguments: &Json) -> Answer {
    let call = json!({"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    Answer::body(
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
            .to_string(),
    )
}

#[test]
fn the_native_dialect_offers_functions() {
    let place = Place::new();
    let provider = Provider::start([
        calling("text_count", &json!({"text": "a b"})),
        calling("done", &json!({"result": "two words"})),
    ]);
    let done = run(&place, &provider, &["--dialect", "native"])
        .code(0)
        .reports(&["text_count", "answered after 1 step"]);
    assert_eq!(done.stdout, "two words\n");
    let requests = provider.requests();
    let tools = requests[0].json()["tools"].as_array().unwrap().len();
    assert!(tools > 50, "{tools} functions");
    assert_eq!(requests[1].json()["messages"].as_array().unwrap().last().unwrap()["role"], "tool");

    let provider = Provider::start([
        Answer::status(400).with_body("{\"error\":\"this model does not support tools\"}")
    ]);
    run(&place, &provider, &["--dialect", "native"])
        .code(4)
        .reports(&["does not support tools", "set `dialect = \"text\"`"]);
    run(&place, &provider, &["--dialect", "spoken"])
        .code(2)
        .reports(&["expected `text`, `native` or `auto`"]);
}

#[test]
fn budgets_end_a_run_with_their_own_exit_code() {
    let place = Place::new();
    let provider = Provider::start([Answer::text(CALL), Answer::text(ANSWER)]);
    let done = run(&place, &provider, &["--max-tokens-total", "5"])
        .code(5)
        .reports(&["stopped by its bound on tokens"]);
    assert_eq!(done.stdout, "stopped: reached max_tokens_total (5)\n");

    user_file(
        &place,
        "max_cost = 0.001\n[prices]\ntest-model = { prompt = 1000.0, completion = 1000.0 }\n",
    );
    let provider = Provider::start([Answer::text(CALL), Answer::text(ANSWER)]);
    let done = run(&place, &provider, &[])
        .code(5)
        .reports(&["stopped by its bound on cost", "tokens · $"]);
    assert_eq!(done.stdout, "stopped: reached max_cost ($0.001)\n");
    let provider = Provider::start([Answer::text(CALL), Answer::text(ANSWER)]);
    let events = run(&place, &provider, &["--max-cost", "1000", "--json"]).code(0).json_lines();
    assert!(events.last().unwrap()["usage"]["cost"].as_f64().unwrap() > 0.001, "{events:?}");
    run(&place, &provider, &["--max-cost", "free"])
        .code(2)
        .reports(&["expected an amount of dollars"]);
}

#[test]
fn a_message_that_the_guard_blocks_is_denied() {
    let place = Place::new();
    let guard = "[guard]\nenabled = true\ndeny = [{ pattern = \"count\", category = \"sums\" \
                 }]\n[guard.messages]\nsums = \"No sums here.\"\n";
    user_file(&place, guard);
    let provider = Provider::start([Answer::text(ANSWER)]);
    let done = run(&place, &provider, &[]).code(6).reports(&["blocked: sums"]);
    assert_eq!(done.stdout, "No sums here.\n");
    assert_eq!(provider.unused_answers(), 1, "the model was not asked");
    run(&place, &provider, &[]).code(6);
    user_file(
        &place,
        "[guard]\nenabled = true\ndeny = [{ pattern = \"(\", category = \"sums\" }]\n",
    );
    run(&place, &provider, &[])
        .code(3)
        .reports(&["the key `guard`", "`(` is not a valid regular expression"]);
    user_file(&place, "guard = true\n");
    let provider = Provider::start([
        Answer::text("blocked violence"),
        Answer::text("allowed"),
        Answer::text(ANSWER),
    ]);
    run(&place, &provider, &[]).code(6);
    run(&place, &provider, &[]).code(0);
}

#[test]
fn the_manuals_settings_are_accepted() {
    let place = Place::new();
    let manual = include_str!("../../../docs/models.md");
    let blocks = manual.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap());
    user_file(&place, &blocks.collect::<String>());
    let done = place.wattle(["config", "show", "--json"]).run().code(0);
    let settings: Json = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(settings["guard"]["enabled"], true);
    assert_eq!(settings["prices"]["my-model"]["completion"], 4.0);
}

#[test]
fn a_session_reports_its_usage() {
    let place = Place::new();
    let provider = Provider::start([Answer::text(ANSWER), Answer::text(ANSWER)]);
    let args = ["repl", "--base-url", &provider.base_url(), "--model", "test-model"];
    let done = place.wattle(args).stdin("/cost\ncount\nagain\n/cost\n").run().code(0);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].starts_with("0 messages: no tokens were counted"), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.starts_with("2 messages: ") && line.ends_with(" tokens")),
        "{lines:?}"
    );
}
