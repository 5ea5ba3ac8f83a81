//! Tests the baseline approach, which offers host functions as JSON tools.

use wattle_agent::host::rt::Function;
use wattle_eval::{Approach, Scorecard, Verdict};

use super::place::{Place, recorded};

const TASK: &str = r#"
prompt = "join"
files = { "a.txt" = "1.5" }
kv = { n = "41" }
expect.answer.equals = "done"
expect.kv.n.equals = "42"
"#;

/// Returns a reply that calls tools.
fn calls(calls: &[(&str, &str)]) -> String {
    let call = |(at, (name, arguments)): (usize, &(&str, &str))| {
        serde_json::json!({
            "id": format!("c{at}"), "name": name, "arguments": arguments,
        })
    };
    serde_json::json!({"text": "", "calls": calls.iter().enumerate().map(call).collect::<Vec<_>>()})
        .to_string()
}

/// Runs the task with a model that makes the given calls. Returns the attempt and the result of
/// each call.
async fn called(tools: &[(&str, &str)]) -> (wattle_eval::Attempt, Vec<String>) {
    let place = Place::new(&[("a.toml", TASK)]);
    let provider = wattle_tests::provider::Provider::start([]);
    let message = |(at, (name, arguments)): (usize, &(&str, &str))| {
        serde_json::json!({
            "id": format!("c{at}"), "type": "function",
            "function": {"name": name, "arguments": arguments},
        })
    };
    let list: Vec<_> = tools.iter().enumerate().map(message).collect();
    let reply = serde_json::json!({"choices": [{
        "message": {"content": null, "tool_calls": list}, "finish_reason": "tool_calls",
    }]});
    provider.push(wattle_tests::provider::Answer::body(reply.to_string()));
    provider.push(wattle_tests::provider::Answer::text("done"));
    let client = super::attempts::client(&provider);
    let contender =
        wattle_eval::Contender { approach: Approach::Tools, ..super::place::live(client) };
    let attempt = place.evaluate(&[contender], None).await.attempts.remove(0);
    assert_eq!(provider.requests().len(), 2, "{:?}", attempt.problems);
    let messages = provider.requests()[1].json()["messages"].as_array().unwrap().clone();
    let results = messages
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].as_str().unwrap().to_owned());
    (attempt, results.collect())
}

#[tokio::test]
async fn every_type_of_value_is_passed_and_returned() {
    let cases = [
        ("kv_incr", r#"{"k":"n","n":1}"#, "42"),
        ("fs_read", r#"{"path":"a.txt"}"#, "1.5"),
        ("str_to_float", r#"{"s":" 2.5 "}"#, "2.5"),
        ("str_from_float", r#"{"x":1e3,"digits":"1"}"#, "1000.0"),
        ("str_contains", r#"{"s":"tea","needle":"t"}"#, "true"),
        ("str_contains", r#"{"s":"tea","needle":7}"#, "false"),
        ("str_find", r#"{"s":"a-b","needle":"c","from":0}"#, "-1"),
        ("str_split", r#"{"s":"b,a","sep":","}"#, r#"["b","a"]"#),
        ("arr_sort", r#"{"h":["b","a"]}"#, r#"["a","b"]"#),
        ("arr_push", r#"{"h":[],"item":"\"quoted\" ä"}"#, r#"["\"quoted\" ä"]"#),
        ("arr_len", r#"{"h":["b","a"]}"#, "2"),
        ("kv_set", r#"{"k":"m","v":"1"}"#, "done"),
    ];
    let (attempt, results) = called(&cases.map(|(name, arguments, _)| (name, arguments))).await;
    assert_eq!(results, cases.map(|(_, _, result)| result));
    assert_eq!(
        (attempt.verdict, attempt.steps, attempt.programs, attempt.valid),
        (Verdict::Passed, 1, 12, 12)
    );
}

#[tokio::test]
async fn the_model_reads_the_error_of_an_invalid_call() {
    let cases = [
        (
            "kv_get",
            r#"{"k":"absent"}"#,
            "error: ENOENT (4): the session's state has no key \"absent\"",
        ),
        ("kv_got", "{}", "error: unknown tool `kv_got`"),
        ("kv_get", "{", "error: the arguments are not a JSON object: "),
        ("kv_get", "", "error: argument `k` of `kv_get` missing or not a string"),
        ("kv_get", r#"{"key":"n"}"#, "error: `kv_get` has no argument `key`; it has `k`"),
        (
            "str_find",
            r#"{"s":"a","needle":"a","from":1.5}"#,
            "error: argument `from` of `str_find` missing or not an integer in range",
        ),
        ("arr_len", r#"{"h":3}"#, "error: argument `h` of `arr_len` missing or not an array"),
        (
            "http_get",
            r#"{"url":"https://a.example/"}"#,
            "error: EREMOTE (6): no fixture answers GET https://a.example/",
        ),
        ("ai_assist", r#"{"text":"a","instruction":"b"}"#, "error: unknown tool `ai_assist`"),
        ("sys_argv", r#"{"n":0}"#, "error: unknown tool `sys_argv`"),
    ];
    let (attempt, results) = called(&cases.map(|(name, arguments, _)| (name, arguments))).await;
    for (result, (name, arguments, expected)) in results.iter().zip(cases) {
        assert!(result.starts_with(expected), "{name}({arguments}): {result}");
    }
    assert_eq!((attempt.programs, attempt.valid), (10, 2), "{:?}", attempt.problems);
}

/// Returns a JSON object with an argument for every parameter of a function.
fn arguments(function: &Function) -> String {
    use wattle_agent::host::rt::Ty;
    let value = |ty: Ty| match ty {
        Ty::Int | Ty::OptInt | Ty::Long | Ty::Addr => serde_json::json!(1),
        Ty::Float => serde_json::json!(1.5),
        Ty::Bool => serde_json::json!(true),
        Ty::Arr => serde_json::json!(["a"]),
        Ty::Map | Ty::OptMap => serde_json::json!({"a": "1"}),
        _ => serde_json::json!("a"),
    };
    let params = function.signature.params.iter();
    serde_json::Value::Object(params.map(|p| (p.name.to_owned(), value(p.ty))).collect())
        .to_string()
}

#[tokio::test]
async fn every_function_is_a_tool_whose_call_compiles() {
    use wattle_agent::host::rt::Ty;
    // An attempt is a plain run, so it has no trusted capabilities.
    let functions: Vec<&Function> = wattle_capability::ALL
        .iter()
        .filter(|capability| !wattle_capability::TRUSTED.contains(&capability.name))
        .flat_map(|capability| capability.functions)
        .filter(|f| {
            !["sys.argc", "sys.argv", "sys.resv", "sys.alloc"].contains(&f.name)
                && !f.name.starts_with("ai.")
                && !f.name.starts_with("agent.")
                && !f.name.starts_with("tool.")
                && f.signature.params.iter().chain(f.signature.results).all(|p| p.ty != Ty::Val)
        })
        .collect();
    let named: Vec<(String, String)> =
        functions.iter().map(|f| (f.name.replace(['.', '/'], "_"), arguments(f))).collect();
    let tools: Vec<(&str, &str)> =
        named.iter().map(|(name, arguments)| (name.as_str(), arguments.as_str())).collect();
    let (attempt, results) = called(&tools).await;
    // A program that does not compile would have ended the attempt.
    assert_eq!(
        (results.len(), attempt.programs),
        (tools.len(), u32::try_from(tools.len()).unwrap()),
        "{:?}",
        attempt.problems
    );
    for ((name, _), result) in tools.iter().zip(results) {
        assert!(!result.contains("unknown tool"), "{name}: {result}");
    }
}

#[tokio::test]
async fn approaches_are_compared_on_their_common_tasks() {
    let place = Place::new(&[("a.toml", TASK), ("b.toml", TASK)]);
    let program = "ToolCall::Wat(```wat\n(call $kv.set \"n\" \"42\") (drop) (i32.const 0)\n```)";
    for task in ["a", "b"] {
        place
            .record(&format!("m/general/{task}.jsonl"), &[program, "ToolCall::Response(\"done\")"]);
    }
    let tools = calls(&[("kv_get", r#"{"k":"n"}"#)]);
    let set = calls(&[("kv_set", r#"{"k":"n","v":"42"}"#)]);
    place.record("m/general/a.tools.jsonl", &[&tools, &set, "done"]);
    let contenders = [recorded(Approach::Programs), recorded(Approach::Tools)];
    let done = place.evaluate(&contenders, None).await;
    assert_eq!((done.attempts.len(), done.unrecorded), (3, 1));
    let card = Scorecard::of(&done.attempts);
    let [compared] = card.comparisons.as_slice() else { panic!("{card:?}") };
    assert_eq!((compared.programs.attempts, compared.tools.attempts), (1, 1));
    assert_eq!((compared.programs.mean_steps, compared.tools.mean_steps), (Some(1.0), Some(2.0)));
    assert!(compared.tools.tokens.input > 0);
    let table = card.to_string();
    assert_eq!(table.lines().count(), 1 + 4 + 2, "{table}");
    assert!(
        table.lines().last().unwrap().starts_with("m      tools     both ways      1     100%"),
        "{table}"
    );
}

#[tokio::test]
async fn the_last_turn_must_answer() {
    let place = Place::new(&[("a.toml", &format!("{TASK}[budget]\nsteps = 1\n"))]);
    let set = calls(&[("kv_set", r#"{"k":"n","v":"42"}"#)]);
    place.record("m/general/a.tools.jsonl", &[&set, "done"]);
    let attempt = place.play(Approach::Tools).await.remove(0);
    assert_eq!((attempt.verdict, attempt.steps), (Verdict::Passed, 1), "{:?}", attempt.problems);
    assert_eq!(attempt.stop, Some(wattle_agent::host::machine::Stop::MaxSteps));
}
