//! Tests of tools that are closures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wattle_agent::host::capability::policy::Policy;
use wattle_agent::host::machine::FunctionCall;
use wattle_agent::model::ModelReply;
use wattle_agent::prelude::*;

use super::{HOST, Log, Script, agent, call, say};

#[derive(Deserialize, JsonSchema)]
struct AddUser {
    /// The full name.
    name: String,
    /// The age in years.
    age: Option<u8>,
    /// The score.
    #[serde(default)]
    score: f64,
    role: Role,
    #[serde(default)]
    tags: Vec<String>,
    nickname: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Reader,
    Writer,
}

/// Returns a tool that writes its input to the log.
fn add_user(log: &Log) -> Tool {
    let log = log.clone();
    Tool::new("add_user", "Adds a user", move |user: AddUser, _: ToolContext| {
        let log = log.clone();
        async move {
            let AddUser { name, age, score, role, tags, nickname } = user;
            log.add(format!("{name} {age:?} {score} {role:?} {tags:?} {nickname:?}"));
            Ok(json!({ "added": name }))
        }
    })
}

#[tokio::test]
async fn a_model_calls_a_closure_as_a_program_with_typed_arguments() {
    let log = Log::default();
    for (args, expected) in [
        (&["Ada \"A\" L\\", "writer"][..], r#"Ada "A" L\ None 0 Writer [] None"#),
        (
            &["Ada", "reader", "36", "1.5", "[\"a\",\"b\"]", "lady"],
            r#"Ada Some(36) 1.5 Reader ["a", "b"] Some("lady")"#,
        ),
        (&["", "reader", "", "", "", ""], " None 0 Reader [] None"),
    ] {
        let script = Script::new(&[&call("add_user", args), &say("done")]);
        let agent = Agent::builder(script.clone()).host(HOST.clone()).tool(add_user(&log));
        let report = agent.build().unwrap().execute("Add Ada.").await.unwrap();
        assert_eq!(log.take(), [expected], "{:?}", script.requests());
        let request = &script.requests()[1];
        assert!(request.contains("{\"added\":"), "{request}");
        let called = &report.model_calls[0].calls[0];
        assert_eq!((called.name.as_str(), called.success), ("add_user", true));
        assert_eq!(called.args, args);
    }
}

#[tokio::test]
async fn a_model_with_function_calling_calls_a_closure() {
    let log = Log::default();
    let arguments = r#"{"name": "Ada", "role": "writer", "tags": ["x"]}"#;
    let script = Script::native(&[("add_user", arguments), ("", "done")]);
    let agent = Agent::builder(script).host(HOST.clone()).tool(add_user(&log)).build().unwrap();
    let report = agent.execute("Add Ada.").await.unwrap();
    assert_eq!(log.take(), [r#"Ada None 0 Writer ["x"] None"#]);
    assert_eq!(report.data, "done");
}

#[tokio::test]
async fn a_program_calls_a_closure() {
    let log = Log::default();
    let program =
        r#"(ret (tool.call "add_user" "{\"name\":\"Eve\",\"role\":\"reader\",\"age\":7}"))"#;
    let answer = format!("ToolCall::Wat(```wat\n{program}\n```)");
    let agent = agent(&[&answer, &say("done")]).tool(add_user(&log)).build().unwrap();
    let report = agent.execute("Add Eve.").await.unwrap();
    assert_eq!(log.take(), ["Eve Some(7) 0 Reader [] None"]);
    assert!(report.model_calls[0].calls[0].success);
}

/// Runs an agent whose model answers with a program, and returns the observation that the model
/// reads next.
async fn observed(tool: Tool, program: &str) -> String {
    let answer = format!("ToolCall::Wat(```wat\n{program}\n```)");
    let script = Script::new(&[&answer, &say("done")]);
    let agent = Agent::builder(script.clone()).host(HOST.clone()).tool(tool).build().unwrap();
    agent.execute("go").await.unwrap();
    script.requests()[1].clone()
}

#[tokio::test]
async fn arguments_that_break_the_schema_do_not_reach_the_closure_and_each_violation_is_named() {
    let log = Log::default();
    for (arguments, words) in [
        (r#"{}"#, &["\"name\" is a required property", "\"role\" is a required property"][..]),
        (
            r#"{\"name\":3,\"role\":\"king\",\"age\":300}"#,
            &["at /name", "at /role", "at /age", "EBOUND"],
        ),
        (r#"{\"name\":null,\"role\":\"reader\"}"#, &["at /name: null is not of type"]),
        ("[1]", &["is not a JSON object", "EPARSE"]),
        ("no", &["is not a JSON object", "EPARSE"]),
    ] {
        let program = format!("(ret (tool.call \"add_user\" \"{arguments}\"))");
        let read = observed(add_user(&log), &program).await;
        for word in words {
            assert!(read.contains(word), "{word}: {read}");
        }
        assert!(log.take().is_empty());
    }
    let read = observed(add_user(&log), "(ret (tool.call \"remove_user\" \"{}\"))").await;
    assert!(read.contains("there is no tool `remove_user`; there is `add_user`"), "{read}");
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn failing(kind: u32) -> Tool {
    Tool::new("fails", "Fails", move |_: Nothing, _: ToolContext| async move {
        match kind {
            0 => Err(ToolError::new("the database is read-only")),
            1 => Ok(u32::from("x".parse::<u8>()?).to_string()),
            2 => panic!("secret of the application"),
            3 => std::future::pending().await,
            _ => Ok("fine".to_owned()),
        }
    })
    .timeout(Duration::from_millis(20))
}

#[tokio::test]
async fn a_closure_that_fails_panics_or_hangs_fails_its_call_alone() {
    for (kind, words) in [
        (0, "the tool `fails` failed: the database is read-only"),
        (1, "the tool `fails` failed: invalid digit found in string"),
        (2, "the tool `fails` failed; the application's log has the reason"),
        (3, "the tool `fails` did not return within 20 ms"),
        (4, "fine"),
    ] {
        let read = observed(failing(kind), "(ret (tool.call \"fails\" \"{}\"))").await;
        assert!(read.contains(words), "{words}: {read}");
        assert!(!read.contains("secret of the application"), "{read}");
    }
}

#[tokio::test]
async fn a_closure_knows_its_run() {
    let log = Log::default();
    let own = log.clone();
    let tool = Tool::new("whoami", "Returns the user", move |_: Nothing, context: ToolContext| {
        let log = own.clone();
        async move {
            let run = context.run();
            let count = run.of::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
            log.add(format!("{:?} {} {count}", run.session_id(), run.context()["user"]));
            Ok(run.run_id().to_owned())
        }
    });
    let answers = [&call("whoami", &[])[..], &call("whoami", &[]), &say("done")];
    let agent = agent(&answers).tool(tool).build().unwrap();
    let run = || agent.execute("Who am I?").session_id("s1").context(json!({"user": 7}));
    run().await.unwrap();
    assert_eq!(log.take(), [r#"Some("s1") 7 0"#, r#"Some("s1") 7 1"#]);
}

#[tokio::test]
async fn the_policy_decides_about_tools() {
    let log = Log::default();
    for (rule, allowed) in
        [("tool", false), ("tool:add_user", false), ("tool:other", true), ("agent", true)]
    {
        let policy = Policy::new(Vec::new(), Vec::new(), vec![rule.parse().unwrap()]);
        let script = Script::new(&[&call("add_user", &["Ada", "reader"]), &say("done")]);
        let agent = Agent::builder(script.clone()).host(HOST.clone()).policy(policy);
        let agent = agent.tool(add_user(&log)).build().unwrap();
        agent.execute("Add Ada.").await.unwrap();
        assert_eq!(log.take().len(), usize::from(allowed), "{rule}: {:?}", script.requests());
    }
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_refused() {
    let of =
        |name: &str, schema| Tool::with_schema(name, "A tool", schema, |_, _| async { Ok("") });
    let object = || json!({"type": "object"});
    let many: BTreeMap<String, bool> = (0..33).map(|at| (format!("p{at}"), true)).collect();
    for (tool, words) in [
        (of("Add", object()), "lowercase letter"),
        (of("", object()), "lowercase letter"),
        (of("each", object()), "a word of the language"),
        (of("fs.index", object()), "begins like host functions"),
        (of("add", json!({"type": "string"})), "must be a JSON object"),
        (of("add", json!(true)), "must be a JSON object"),
        (of("add", json!({"type": "object", "properties": {"a b": true}})), "\"a b\""),
        (of("add", json!({"type": "object", "properties": {"": true}})), "1 to 64"),
        (of("add", json!({"type": "object", "properties": many})), "more than 32 properties"),
        (of("add", json!({"type": "object", "pattern": "("})), "cannot be used"),
        (of("add", json!({"$ref": "#", "type": "object"})), "refers to itself"),
        (of("file_read", object()), "there is another program or delegate `file_read`"),
    ] {
        let error = agent(&["x"]).tool(tool).build().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let twice = agent(&["x"]).tool(of("add", object())).tool(of("add", object())).build();
    assert!(twice.unwrap_err().to_string().contains("another program or delegate `add`"));
}

#[tokio::test]
async fn a_silent_tool_ends_a_run_that_calls_nothing_else() {
    let log = Log::default();
    let arguments = "{\"name\": \"Ada\", \"role\": \"reader\", \"age\": 7}";
    for (tool, requests) in [(add_user(&log), 2), (add_user(&log).silent(), 1)] {
        let script = Script::native(&[("add_user", arguments), ("", "done")]);
        let agent = Agent::builder(script.clone()).host(HOST.clone()).tool(tool).build().unwrap();
        agent.execute("Add Ada.").await.unwrap();
        assert_eq!((log.take().len(), script.requests().len()), (1, requests));
    }
}

#[tokio::test]
async fn an_exclusive_tool_runs_alone() {
    let log = Log::default();
    let add = |name: &str| {
        let arguments = format!("{{\"name\": \"{name}\", \"role\": \"reader\", \"age\": 7}}");
        FunctionCall {
            id: name.to_owned(),
            name: "add_user".to_owned(),
            arguments: arguments.into(),
        }
    };
    for (tool, added) in [(add_user(&log), 2), (add_user(&log).exclusive(), 1)] {
        let both = ModelReply { calls: vec![add("Ada"), add("Bob")], ..ModelReply::default() };
        let done = ModelReply { text: "done".to_owned(), ..ModelReply::default() };
        let script = Script::of(vec![both, done], true);
        let agent = Agent::builder(script).host(HOST.clone()).tool(tool).build().unwrap();
        agent.execute("Add both.").await.unwrap();
        assert_eq!(log.take().len(), added);
    }
}

#[tokio::test]
async fn the_calls_of_one_answer_share_nothing_but_the_tool() {
    let log = Log::default();
    let tool = add_user(&log);
    let names = ["a", "b", "c"];
    let program = "(par.map \"add_user\" (str.split \"a b c\" \" \"))";
    let tool_of_one = Tool::new("note", "Notes a name", {
        let log = log.clone();
        move |one: One, _: ToolContext| {
            let log = log.clone();
            async move {
                log.add(one.name);
                Ok("")
            }
        }
    });
    let program = program.replace("add_user", "note");
    let answer = format!("ToolCall::Wat(```wat\n(ret (str.join {program} \",\"))\n```)");
    let agent = agent(&[&answer, &say("done")]).tool(tool).tool(tool_of_one).build().unwrap();
    agent.execute("go").await.unwrap();
    let mut noted = log.take();
    noted.sort();
    assert_eq!(noted, names);
}

#[derive(Deserialize, JsonSchema)]
struct One {
    name: String,
}

#[test]
fn a_tool_has_the_schema_of_its_input() {
    let tool = add_user(&Log::default());
    assert_eq!(tool.schema()["required"], json!(["name", "role"]));
    assert_eq!(tool.schema()["properties"]["age"]["maximum"], 255);
    let shared = Arc::new(tool.clone());
    assert_eq!((shared.name(), shared.description()), ("add_user", "Adds a user"));
}
