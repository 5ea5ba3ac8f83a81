//! Tests that the same tasks work in both dialects.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use wattle_agent::Settings;
use wattle_agent::host::{DialectSetting, ExampleWorld};
use wattle_agent::model::ModelReply;
use wattle_catalog::{Entry, Example, Results, TypeHint};
use wattle_machine::{Ending, Event, Message, Role};
use wattle_tests::provider::{Answer, Provider};
use wattle_tests::{Job, Scripted, World, calls};

use super::endpoint::{calling, quick, remote};

/// A model's intent, regardless of the dialect.
enum Intent<'a> {
    Wat(&'a str, &'a [&'a str]),
    Program(&'a str, &'a [(&'a str, &'a str)]),
    Done(&'a str),
}

impl Intent<'_> {
    fn text(&self) -> ModelReply {
        let quoted = |text: &&str| format!(", {}", json!(text));
        let text = match self {
            Intent::Wat(body, args) => {
                format!(
                    "ToolCall::Wat(```wat\n{body}\n```{})",
                    args.iter().map(quoted).collect::<String>()
                )
            }
            Intent::Program(name, args) => {
                format!(
                    "ToolCall::Catalog(\"{name}\"{})",
                    args.iter()
                        .map(|(name, text)| format!(", {name}={}", json!(text)))
                        .collect::<String>()
                )
            }
            Intent::Done(text) => format!("ToolCall::Response(\"\"\"\n{text}\n\"\"\")"),
        };
        ModelReply { text, ..ModelReply::default() }
    }

    fn native(&self) -> ModelReply {
        match self {
            Intent::Wat(body, args) => {
                calls(&[("wat", &json!({"body": body, "args": args}).to_string())])
            }
            Intent::Program(name, args) => {
                let fields: Map<String, Json> =
                    args.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
                calls(&[(name, &Json::Object(fields).to_string())])
            }
            Intent::Done(text) => calls(&[("done", &json!({"result": text}).to_string())]),
        }
    }
}

/// Returns a run's observations in order.
fn observed(requests: &[Vec<Message>]) -> Vec<String> {
    let last = requests.last().map(Vec::as_slice).unwrap_or_default();
    let observations = last.iter().filter(|message| message.content.starts_with("[Observation"));
    observations.map(|message| message.content.to_string()).collect()
}

/// A run has the same effects and observations in both dialects.
#[tokio::test]
async fn runs_are_the_same_in_both_dialects() {
    use Intent::{Done, Program, Wat};
    let tasks: &[(&str, &[Intent<'_>])] = &[
        (
            "a program of the catalog",
            &[Program("file_read", &[("path", "notes.txt")]), Done("read")],
        ),
        (
            "a program with arguments",
            &[Wat("(ret (str.cat? (arg 0) (arg 1)))", &["a\n\"b\"", "c"]), Done("joined")],
        ),
        (
            "state",
            &[
                Program("kv_set", &[("key", "colour"), ("value", "green")]),
                Program("kv_get", &[("key", "colour")]),
                Done("green"),
            ],
        ),
        (
            "a repair",
            &[
                Wat("(rte (str.measure (arg 0)))", &["four"]),
                Wat("(ret (fmt \"{i}\" (str.len (arg 0))))", &[]),
                Done("4"),
            ],
        ),
        ("a failure", &[Program("file_read", &[("path", "none.txt")]), Done("not there")]),
        ("a missing argument", &[Program("file_read", &[]), Done("no")]),
        ("an unknown program", &[Program("file_reed", &[("path", "x")]), Done("no")]),
        ("a trap", &[Wat("(out \"before\") (let $x (/ 1 0))", &[]), Done("no")]),
        ("a long result", &[Wat("(ret (str.repeat? \"ab\" 4000))", &[]), Done("long")]),
        ("an answer at once", &[Done("four\nlines")]),
    ];
    for (name, intents) in tasks {
        let mut runs = Vec::new();
        for (dialect, replies) in [
            (DialectSetting::Text, intents.iter().map(Intent::text).collect::<Vec<_>>()),
            (DialectSetting::Native, intents.iter().map(Intent::native).collect()),
        ] {
            let world = World::new();
            std::fs::write(world.workdir().join("notes.txt"), "one two\nthree\n").unwrap();
            let model = Scripted::calling(replies);
            let settings = Settings { dialect, ..Settings::default() };
            let (report, events) = world.run(&model, &settings, world.job("go")).await;
            let requests = model.requests();
            let roles = requests.last().unwrap().iter().map(|message| message.role);
            let tools = roles.filter(|role| *role == Role::Tool).count();
            assert_eq!(
                tools > 0,
                dialect == DialectSetting::Native && requests.len() > 1,
                "{name}"
            );
            assert_eq!(
                model.offered().iter().all(Vec::is_empty),
                dialect == DialectSetting::Text,
                "{name}"
            );
            let results: Vec<(bool, String)> = events
                .iter()
                .filter_map(|envelope| match &envelope.event {
                    Event::ToolResult { success, output, .. } => Some((*success, output.clone())),
                    _ => None,
                })
                .collect();
            runs.push((report.ending, report.steps, observed(&requests), results));
        }
        assert_eq!(runs[0], runs[1], "{name}");
        assert!(matches!(runs[0].0, Ending::Answered { .. }), "{name}: {:?}", runs[0].0);
    }
}

/// Returns the arguments of an example as JSON, as a model would write them.
fn arguments(entry: &Entry, example: &Example) -> String {
    let field = |(arg, text): (&wattle_catalog::Arg, &String)| {
        let value = match arg.type_hint {
            TypeHint::Int | TypeHint::Float | TypeHint::Bool => {
                serde_json::from_str(text).unwrap_or_else(|_| json!(text))
            }
            TypeHint::String | TypeHint::Path | TypeHint::Url | TypeHint::Json => json!(text),
        };
        (arg.name.clone(), value)
    };
    let fields: Map<String, Json> =
        entry.meta().args.iter().zip(&example.args).map(field).collect();
    Json::Object(fields).to_string()
}

/// Every built-in program can be called as a function, although none is offered, and passes its
/// examples.
#[tokio::test]
async fn every_program_is_a_function() {
    let world = World::new();
    let (mut wrong, mut count) = (Vec::new(), 0);
    let settings = Settings { dialect: DialectSetting::Native, ..Settings::default() };
    for entry in world
        .host
        .catalog()
        .iter()
        .filter(|entry| !matches!(entry.name().as_str(), "current_time" | "done" | "recall"))
    {
        let Some(example) = entry
            .meta()
            .examples
            .iter()
            .find(|example| example.args.len() <= entry.meta().args.len())
        else {
            wrong.push(format!("{} has no example", entry.name()));
            continue;
        };
        let scene = ExampleWorld::new(&example.fixtures).await.unwrap();
        let grants = scene.grants(scene.access(&world.host));
        if !entry.meta().uses.iter().flatten().all(|capability| grants.allows(capability)) {
            continue;
        }
        let name = entry.name().as_str().replace('.', "_");
        let model = Scripted::calling([
            calls(&[(&name, &arguments(entry, example))]),
            calls(&[("done", "{\"result\":\"well\"}")]),
        ]);
        let (report, events) = world.run(&model, &settings, Job::new("go", grants)).await;
        assert_eq!(report.ending.text(), "well");
        let result = events.iter().find_map(|envelope| match &envelope.event {
            Event::ToolResult { output, exit_code, .. } => Some((output.clone(), *exit_code)),
            _ => None,
        });
        let (output, code) = result.unwrap();
        count += 1;
        let expected = &example.expected;
        let is_same = match &expected.results {
            Results::Exactly(texts) if expected.code.is_success() && !texts.is_empty() => {
                output.trim() == texts.join("\n").trim()
            }
            Results::Containing(parts) => parts.iter().all(|part| output.contains(part.as_str())),
            _ => true,
        };
        // If the example fails its own check, a different result is not a fault of the function.
        let is_sound = wattle_agent::host::check_example(&world.host, entry, example).await.is_ok();
        if is_sound
            && (code != Some(expected.code.number())
                || (!is_same && output.chars().count() < 4_000))
        {
            wrong.push(format!("{name}({}): {code:?} {output}", arguments(entry, example)));
        }
    }
    assert!(count >= 50, "{count} programs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Arguments by name are understood in both dialects, and the trace has their names.
#[tokio::test]
async fn arguments_have_names_in_both_dialects() {
    let named = json!({"new": "x", "text": "a b a", "Old": "a"});
    let catalog = json!({"name": "text_replace", "arguments": named}).to_string();
    let wrong = json!({"name": "text_replace", "arguments": {"text": "a", "txt": "b"}}).to_string();
    let native = Scripted::calling([
        calls(&[("catalog", &catalog)]),
        calls(&[("catalog", &wrong)]),
        calls(&[("done", "{\"result\":\"well\"}")]),
    ]);
    let text = Scripted::new(&[
        "ToolCall::Catalog(\"text_replace\", \"a b a\", new=\"x\", Old=\"a\")",
        "ToolCall::Catalog(\"text_replace\", text=\"a\", txt=\"b\")",
        "ToolCall::Response(\"well\")",
    ]);
    for (model, dialect) in [(native, DialectSetting::Native), (text, DialectSetting::Text)] {
        let world = World::new();
        let settings = Settings { dialect, ..Settings::default() };
        let (report, _) = world.run(&model, &settings, world.job("go")).await;
        assert_eq!(report.ending.text(), "well");
        let observed = observed(&model.requests());
        assert!(observed[0].contains("x b x"), "{dialect:?}: {observed:?}");
        let why = "text_replace error: it has no arg \"txt\"\nhint: usage: text_replace(text: ";
        assert!(observed[1].contains(why), "{dialect:?}: {observed:?}");
        let args = &world.steps()[0]["args"];
        assert_eq!(*args, json!({"text": "a b a", "old": "a", "new": "x"}), "{dialect:?}");
    }
}

#[tokio::test]
async fn calls_of_one_turn_run_concurrently() {
    let world = World::new();
    let set = |n: u32| ("kv_set", format!("{{\"key\":\"k{n}\",\"value\":\"{n}\"}}"));
    let turn: Vec<(&str, String)> = (1..=5).map(set).collect();
    let turn: Vec<(&str, &str)> =
        turn.iter().map(|(name, arguments)| (*name, arguments.as_str())).collect();
    let gets: Vec<(&str, &str)> =
        vec![("kv_get", "{\"key\":\"k2\"}"), ("no_such", "{}"), ("kv_get", "{\"key\":\"k5\"}")];
    let model = Scripted::calling([
        calls(&turn),
        calls(&gets),
        calls(&[("done", "{\"result\":\"well\"}")]),
    ]);
    let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
    assert_eq!((report.ending.text(), report.steps), ("well", 2));
    let requests = model.requests();
    let results: Vec<&str> =
        requests[2].iter().rev().take(3).map(|message| message.content.as_str()).collect();
    assert!(results[2].ends_with("\n2") && results[0].ends_with("\n5"), "{results:?}");
    assert!(results[1].contains("there is no program `no_such`"), "{results:?}");
    assert_eq!(world.steps().len(), 9, "each call has a line in the trace");
}

/// The prompt of the native dialect lists the programs, and only those that the agent names are
/// offered as functions of their own.
#[tokio::test]
async fn the_prompt_lists_the_programs_and_few_are_functions() {
    let world = World::new();
    let model = Scripted::calling([calls(&[("done", "{\"result\":\"well\"}")])]);
    let functions = vec!["file_read".to_owned(), "ai_summarize".to_owned()];
    let settings = Settings { functions, ..Settings::default() };
    world.run(&model, &settings, world.job("go")).await;
    let system = &model.requests()[0][0].content;
    assert!(!system.contains("ToolCall::") && system.contains("# Catalog programs"), "{system}");
    assert!(system.contains("`wat`") && system.contains("# Host functions"), "{system}");
    let offered = model.offered();
    // `ai_summarize` needs a capability that is not granted.
    assert_eq!(offered[0], ["file_read", "catalog", "wat", "fix", "done"]);
}

/// If an endpoint rejects functions, the run continues in the text dialect, and later runs start in
/// this dialect.
#[tokio::test]
async fn an_endpoint_that_refuses_functions_gets_the_text_dialect() {
    let refusals = [
        (
            400,
            "{\"error\":{\"message\":\"registry.ollama.ai/library/gemma does not support tools\"}}",
        ),
        (
            404,
            "{\"error\":{\"message\":\"No endpoints found that support tool use\",\"code\":404}}",
        ),
        (422, "{\"detail\":\"Extra inputs are not permitted: tools\"}"),
        (400, "{\"error\":\"\\\"auto\\\" tool choice requires --enable-auto-tool-choice\"}"),
        (501, "{\"error\":{\"message\":\"tools param requires --jinja flag\"}}"),
    ];
    for (status, body) in refusals {
        let world = World::new();
        let refused = Answer::status(status).with_body(body);
        let provider = Provider::start([
            refused,
            Answer::text("ToolCall::Response(\"one\")"),
            Answer::text("two"),
        ]);
        let model = Arc::new(remote(&provider, "openai", "m", quick()));
        for answer in ["one", "two"] {
            let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
            assert_eq!(
                report.ending,
                Ending::Answered { text: answer.to_owned(), data: None },
                "{body}"
            );
        }
        let requests = provider.requests();
        assert_eq!(requests.len(), 3, "{body}");
        let offers: Vec<bool> =
            requests.iter().map(|request| request.json().get("tools").is_some()).collect();
        assert_eq!(offers, [true, false, false], "{body}");
        assert!(
            requests[1].messages()[0].contains("ToolCall::Wat"),
            "the prompt is that of the text dialect"
        );

        let provider = Provider::start([Answer::status(status).with_body(body)]);
        let model = Arc::new(remote(&provider, "openai", "m", quick()));
        let settings = Settings { dialect: DialectSetting::Native, ..Settings::default() };
        let (report, _) = world.run(&model, &settings, world.job("go")).await;
        assert!(
            report.ending.text().ends_with("set `dialect = \"text\"`"),
            "{}",
            report.ending.text()
        );
    }
}

/// Requests to an unknown endpoint offer no functions.
#[tokio::test]
async fn an_unknown_endpoint_gets_the_text_dialect() {
    let world = World::new();
    let provider = Provider::start([Answer::text("one"), calling("done", "{\"result\":\"two\"}")]);
    let model = Arc::new(remote(&provider, "vllm", "m", quick()));
    for answer in ["one", "two"] {
        let (report, _) = world.run(&model, &Settings::default(), world.job("go")).await;
        assert_eq!(report.ending.text(), answer, "calls are understood all the same");
    }
    assert!(provider.requests().iter().all(|request| request.json().get("tools").is_none()));
}

/// In both dialects, the calls made to answer one message of a session are part of the conversation
/// when the model answers the next message.
#[tokio::test]
async fn a_session_keeps_calls_and_their_results() {
    let world = World::new();
    let model = Scripted::calling([
        calls(&[
            ("kv_set", "{\"key\":\"colour\",\"value\":\"green\"}"),
            ("kv_get", "{\"key\":\"shape\"}"),
        ]),
        calls(&[("done", "{\"result\":\"kept\"}")]),
    ]);
    let (report, _) = world.run(&model, &Settings::default(), world.job("remember green")).await;
    world.store.extend("s", report.turns.clone()).await.unwrap();
    let history = world.store.history("s", None).await.unwrap().messages;
    assert_eq!(history, report.turns, "the store contains the turns unchanged");
    assert_eq!(
        history.iter().map(|message| message.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant]
    );

    let native = Scripted::calling([calls(&[("done", "{\"result\":\"green\"}")])]);
    let job = Job { history: history.clone(), ..world.job("which?") };
    world.run(&native, &Settings::default(), job).await;
    // A later run treats the observations of earlier runs as data.
    let earlier = |message: &Message| Message {
        content: message.content.replace("[Observation", "[\\Observation").into(),
        ..message.clone()
    };
    assert_eq!(native.requests()[0][1..6], history.iter().map(earlier).collect::<Vec<_>>());

    let text = Scripted::new(&["green"]);
    world.run(&text, &Settings::default(), Job { history, ..world.job("which?") }).await;
    let requests = &text.requests()[0];
    assert!(
        requests.iter().all(|message| message.calls.is_empty() && message.role != Role::Tool),
        "{requests:?}"
    );
    assert!(
        requests[2].content.contains("ToolCall::Catalog(\"catalog\"")
            || requests[2].content.contains("kv_set"),
        "{}",
        requests[2].content
    );
    assert!(requests[3].content.starts_with("[\\Observation "));
}
