//! Tests of the model settings: the dialect, budgets, prices, and the content guard.

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
    let call = json!({
        "id": "c1", "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()},
    });
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
    let tools = requests[0].json()["tools"].clone();
    let names = tools.as_array().unwrap().iter().map(|tool| &tool["function"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["catalog", "wat", "fix", "done"]);
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
    user_file(&place, "");
    let provider = Provider::start([Answer::text(ANSWER)]);
    run(&place, &provider, &["--max-cost", "1"]).code(3).reports(&[
        "`max_cost` cannot be kept",
        "the price of the model `test-model` is unknown",
        "`prices.\"test-model\" = {",
    ]);
    assert!(provider.requests().is_empty());
    run(&place, &provider, &["--max-cost", "free"])
        .code(2)
        .reports(&["expected an amount of dollars"]);
}

#[test]
fn requests_carry_the_settings() {
    let place = Place::new();
    user_file(
        &place,
        "temperature = 0.5\nmax_tokens = 77\nthinking_effort = 90\ntool_call = \"required\"\n",
    );
    let provider = Provider::start([calling("done", &json!({"result": "two"}))]);
    run(&place, &provider, &["--provider", "openai"]).code(0);
    let sent = provider.requests()[0].json();
    assert_eq!(sent["temperature"], 0.5);
    assert_eq!(sent["max_completion_tokens"], 77);
    assert_eq!(sent["reasoning_effort"], "high");
    assert_eq!(sent["tool_choice"], "required");

    user_file(&place, "retry_for = \"1ms\"\nhttp_timeout = \"50ms\"\n");
    let provider = Provider::start([Answer::status(500), Answer::text(ANSWER)]);
    run(&place, &provider, &[]).code(4).reports(&["the provider failed (500)"]);
    assert_eq!(provider.requests().len(), 1);
    let provider = Provider::start([Answer::hang()]);
    run(&place, &provider, &[]).code(4).reports(&["within 50 ms"]);

    for (file, words) in [
        ("temperature = 2.1", &["`temperature`", "from 0 to 2"][..]),
        ("max_tokens = 0", &["`max_tokens`", "from 1 on"]),
        ("thinking_effort = 101", &["`thinking_effort`", "0 to 100"]),
        ("tool_call = \"maybe\"", &["`tool_call`", "`required`"]),
        ("http_timeout = 5", &["`http_timeout`", "`90s`"]),
        ("retry_for = 5", &["`retry_for`", "`90s`"]),
        ("models = \"fast\"", &["`models`", "`fast = \"MODEL\"`"]),
        (
            "[models]\nfast = { model = \"m\", api_key_env = \"sk-not a name\" }",
            &["`models.fast`", "not the name of a variable"],
        ),
        (
            "[models]\nfast = { model = \"m\", base_url = \"https://me:pw@x.example\" }",
            &["`models.fast`", "a user name or password"],
        ),
    ] {
        user_file(&place, file);
        place.wattle(["config", "show"]).run().code(3).reports(words);
    }
}

#[test]
fn a_class_is_a_model_of_the_settings() {
    let place = Place::new();
    let (own, other) =
        (Provider::start([Answer::text(ANSWER)]), Provider::start([Answer::text(ANSWER)]));
    let deep = format!(
        "deep = {{ model = \"big\", base_url = \"{}\", api_key_env = \"DEEP_KEY\" }}\n",
        other.base_url()
    );
    user_file(&place, &format!("[models]\nfast = \"small\"\n{deep}"));
    let args = |class: &str| {
        let model = format!("class:{class}");
        ["run", "--base-url", &own.base_url(), "--model", &model, "count"].map(str::to_owned)
    };
    let ask = |class: &str| {
        let keys = place.wattle(args(class)).env("WATTLE_API_KEY", "sk-test-0123456789");
        keys.env("DEEP_KEY", "sk-deep-0123456789").run()
    };
    ask("fast").code(0);
    assert_eq!(own.requests()[0].json()["model"], "small");
    ask("deep").code(0);
    let sent = &other.requests()[0];
    assert_eq!(sent.json()["model"], "big");
    assert_eq!(sent.header("authorization"), Some("Bearer sk-deep-0123456789"));
    ask("slow").code(3).reports(&[
        "unknown class of models `slow`",
        "`balanced`, `deep`, `fast`",
        "set `models.slow`",
    ]);
}

#[test]
fn doctor_shows_the_classes_and_settings_without_effect() {
    let place = Place::new();
    let provider = Provider::start([]);
    user_file(
        &place,
        "thinking_effort = 30\n[models]\nfast = { model = \"small\", provider = \"openai\" }\n",
    );
    let base = provider.base_url();
    let args = ["doctor", "--json", "--base-url", &base, "--model", "m"];
    let model = |done: &Done| {
        let json: Json = serde_json::from_str(&done.stdout).unwrap();
        let checks = json["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "model").unwrap()
    };
    let found = model(&place.wattle(args).run());
    assert_eq!(found["ok"], false);
    assert!(found["found"].as_str().unwrap().contains("the class `fast`: no key"), "{found}");
    let found = model(&place.wattle(args).env("OPENAI_API_KEY", "sk-test-0123456789").run());
    let text = found["found"].as_str().unwrap();
    assert!(text.contains("`thinking_effort` has no effect"), "{text}");
    assert!(text.contains("class:fast: small at https://api.openai.com/v1"), "{text}");
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

#[test]
fn a_key_without_a_model_means_the_default_model_of_its_provider() {
    let place = Place::new();
    let provider = Provider::answering(|_| Answer::text(ANSWER));
    let run = |args: &[&str]| {
        let call = ["run", "hello", "--provider", "openai", "--base-url", &provider.base_url()];
        let call = place.wattle(call.iter().chain(args));
        call.env("OPENAI_API_KEY", "sk-test-0123456789").run().code(0)
    };
    let said = "using gpt-5-mini, the provider's default model";
    assert_eq!(run(&[]).stderr.matches(said).count(), 1);
    assert_eq!(provider.requests()[0].json()["model"], "gpt-5-mini");
    // Its price is known.
    run(&["--max-cost", "1"]).reports(&[said]);
    for args in [&["-q"][..], &["--model", "gpt-5"]] {
        assert!(!run(args).stderr.contains("default model"));
    }
}

#[test]
fn the_bounds_of_steps_and_repetitions_are_settings() {
    let place = Place::new();
    let calling = |count: usize| {
        let calls =
            (0..count).map(|n| Answer::text(format!("ToolCall::Catalog(\"text_count\", \"{n}\")")));
        Provider::start(calls.chain([Answer::text(ANSWER)]))
    };
    // More steps than the default limit of the command.
    let done = run(&place, &calling(14), &["--max-steps", "0"]).code(0);
    assert_eq!(done.stdout, "two\n");
    let done = run(&place, &calling(3), &["--max-steps", "1", "--on-max-steps", "stop"]).code(5);
    assert!(done.stdout.contains("stopped: reached max_steps (1)"), "{}", done.stdout);
    user_file(&place, "on_max_steps = \"answer\"\nmax_repetitions = 2\n");
    let done = run(&place, &Provider::answering(|_| Answer::text(CALL)), &["--max-steps", "9"]);
    assert_eq!(
        (done.code, &*done.stdout),
        (5, "stopped: the same call was repeated 2 times\n"),
        "{}",
        done.stderr
    );
}
