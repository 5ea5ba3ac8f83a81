//! What the packages of other languages build on.
#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::FutureExt as _;
use serde_json::{Value as Json, json};
use wattle_bindings::{
    Agent, AgentRunOptions, AgentSettings, Answer, Cancel, Error, ErrorKind, Grants, Outcome,
    RunOptions, RunState, Scope, Tool, ToolContext, ToolError, answer, approver, engine,
};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    engine().unwrap().runtime().block_on(work)
}

async fn run(source: &str, args: &[&str], options: RunOptions) -> Result<Outcome, Error> {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Scope::default().prepare(source).await?.run(args, options).await
}

fn grants(settings: Json) -> Grants {
    Grants::new(serde_json::from_value(settings).unwrap()).unwrap()
}

fn with(settings: Json) -> RunOptions {
    RunOptions { grants: grants(settings), ..RunOptions::default() }
}

fn cassette(folder: &Path, replies: &[&str]) -> Json {
    let mut lines = vec![json!({"wattle_cassette": 1, "model": "demo"})];
    lines.extend(replies.iter().map(|reply| json!({"reply": reply})));
    let lines: Vec<String> = lines.iter().map(Json::to_string).collect();
    let path = folder.join("replies.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    json!({"cassette": path})
}

fn agent(settings: Json, scope: Scope) -> Agent {
    Agent::new(serde_json::from_value::<AgentSettings>(settings).unwrap(), scope).unwrap()
}

#[test]
fn a_program_fails_with_code_reason_and_position() {
    let error = block_on(run("(out 1)\n(fail ENOENT \"no cup\")", &[], RunOptions::default()));
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ProgramFailed);
    assert_eq!((error.code.as_str(), error.line), ("ENOENT", Some(2)));
    assert!(error.reason.contains("no cup"), "{error}");
    assert_eq!(error.outcome.clone().unwrap().text(), "1");
    let error = block_on(run("(out 1)\n(owt 2)", &[], RunOptions::default())).unwrap_err();
    assert_eq!((error.kind, error.line), (ErrorKind::InvalidProgram, Some(2)));
}

#[test]
fn nothing_of_the_machine_is_granted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "from the machine").unwrap();
    let read = "(out (fs.read \"a.txt\"))";
    let error = block_on(run(read, &[], RunOptions::default())).unwrap_err();
    assert_eq!(error.code, "ENOENT");
    let files = || with(json!({"files": folder.path()}));
    assert_eq!(block_on(run(read, &[], files())).unwrap().text(), "from the machine");
    let get = "(out (http.get (arg 0)))";
    let error = block_on(run(get, &["http://127.0.0.1:1/"], RunOptions::default())).unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Denied, "EACCESS"));
    // The host may be reached, and nothing listens there.
    let error =
        block_on(run(get, &["http://127.0.0.1:1/"], with(json!({"hosts": ["127.0.0.1:1"]}))));
    assert_eq!(error.unwrap_err().kind, ErrorKind::ProgramFailed);
}

#[test]
fn written_files_stay_in_memory_unless_writing_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let write = "(fs.write \"b.txt\" \"new\")";
    let path = folder.path().join("b.txt");
    let outcome = block_on(run(write, &[], with(json!({"files": folder.path()})))).unwrap();
    assert_eq!(
        outcome.changes().unwrap(),
        json!([{"path": "b.txt", "kind": "created", "size": 3}])
    );
    assert_eq!(outcome.file("b.txt").unwrap(), b"new");
    assert!(!path.exists());
    outcome.apply().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    std::fs::remove_file(&path).unwrap();
    let direct = json!({"files": {"path": folder.path(), "write": true}});
    block_on(run(write, &[], with(direct))).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn variables_and_rules_are_grants() {
    let get = "(out (kv.get \"tenant:region\"))";
    let variables = || with(json!({"variables": {"region": "eu"}}));
    assert_eq!(block_on(run(get, &[], variables())).unwrap().text(), "eu");
    let denied = with(json!({"variables": {"region": "eu"}, "deny": ["kv"]}));
    assert_eq!(block_on(run(get, &[], denied)).unwrap_err().kind, ErrorKind::Denied);
    let invalid = serde_json::from_value(json!({"ask": ["no:such"]})).unwrap();
    assert_eq!(Grants::new(invalid).unwrap_err().kind, ErrorKind::Settings);
}

#[test]
fn an_approver_decides_about_a_tool() {
    let tool = Tool::with_schema("pay", "Pays", json!({"type": "object"}), |_, _| async {
        Ok::<_, ToolError>("paid")
    });
    let run = |reply: Json| {
        let tool = tool.clone();
        async move {
            let asked = approver(move |request| {
                assert_eq!(request.questions.first().unwrap().function, "tool.call");
                let reply = answer(&reply).unwrap();
                async move { reply }.boxed()
            });
            let grants = grants(json!({"ask": ["tool:pay"]}));
            let options = RunOptions { grants, approver: Some(asked), ..RunOptions::default() };
            let program = Scope::new(&[], &[tool]).unwrap().prepare("(out (pay))").await?;
            program.run(Vec::new(), options).await
        }
    };
    assert_eq!(block_on(run(json!(true))).unwrap().text(), "paid");
    let error = block_on(run(json!("too dear"))).unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::ProgramFailed, "EACCESS"));
    assert!(error.reason.contains("too dear"), "{error}");
}

#[test]
fn a_tool_reads_the_state_of_its_run_and_fails_as_a_remote() {
    #[derive(Default)]
    struct Count(AtomicU32);
    let schema = json!({"type": "object", "properties": {"by": {"type": "integer"}}});
    let tool =
        Tool::with_schema("add", "Adds", schema, |arguments: Json, run: ToolContext| async move {
            let Some(by) = arguments.get("by").and_then(Json::as_u64) else {
                return Err(ToolError::new("nothing to add"));
            };
            let by = u32::try_from(by).unwrap();
            Ok(run.run().of::<Count>().0.fetch_add(by, Ordering::Relaxed) + by)
        });
    let scope = Scope::new(&[], &[tool]).unwrap();
    let count = Arc::new(Count::default());
    let state = Arc::new(RunState::of_program("one", Cancel::new()));
    state.set(Arc::clone(&count));
    let program = block_on(scope.prepare("(out (add 3)) (out (add 4)) (add)")).unwrap();
    let options = RunOptions { state: Some(state), ..RunOptions::default() };
    let error = block_on(program.run(Vec::new(), options)).unwrap_err();
    assert_eq!(error.code, "EREMOTE");
    assert!(error.reason.contains("nothing to add"), "{error}");
    assert_eq!(error.outcome.clone().unwrap().text(), "3\n7");
    assert_eq!(count.0.load(Ordering::Relaxed), 7);
}

#[test]
fn a_cancelled_program_ends() {
    let cancel = Cancel::new();
    let state = Arc::new(RunState::of_program("one", cancel.clone()));
    let options = RunOptions { state: Some(state), ..RunOptions::default() };
    let error = block_on(async {
        let endless = run("(while 1 (let $x 1))", &[], options);
        let (error, ()) = tokio::join!(endless, async { cancel.cancel("enough") });
        error.unwrap_err()
    });
    assert_eq!((error.kind, error.reason.as_str()), (ErrorKind::Cancelled, "enough"));
}

#[test]
fn a_check_lists_diagnostics_and_what_the_program_touches() {
    let check = |source: &str| block_on(Scope::default().check(source)).unwrap();
    let checked = check("(out (http.get \"https://example.com/\"))");
    assert_eq!(checked["ok"], true);
    assert_eq!(checked["touches"]["urls"], json!(["https://example.com/"]));
    let checked = check("(out (str.lenn \"a\"))");
    assert_eq!((&checked["ok"], &checked["touches"]), (&json!(false), &Json::Null));
    let first = &checked["diagnostics"][0];
    assert_eq!((&first["code"], &first["line"]), (&json!("unknown-function"), &json!(1)));
}

#[test]
fn programs_of_the_catalog_are_listed_and_run_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let own = ";;; name = \"greet\"\n;;; description = \"Greets\"\n;;; [[args]]\n;;; name = \"who\"\n\
               ;;; description = \"A name\"\n\
               (out \"hello {}\" (arg 0))\n";
    std::fs::write(folder.path().join("greet.wat"), own).unwrap();
    let scope = Scope::new(&[folder.path().to_owned()], &[]).unwrap();
    let greet = scope.program("greet").unwrap().unwrap();
    assert_eq!(greet["description"], "Greets");
    assert!(scope.programs(None).unwrap().len() > 50);
    let program = block_on(scope.named("greet")).unwrap();
    let outcome = block_on(program.run(vec!["Ada".to_owned()], RunOptions::default())).unwrap();
    assert_eq!(outcome.text(), "hello Ada");
    let error = block_on(program.run(Vec::new(), RunOptions::default())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Settings);
    assert!(block_on(scope.named("greeet")).err().unwrap().reason.contains("`greet`"));
}

#[test]
fn an_agent_calls_a_tool_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let replies =
        ["ToolCall::Catalog(\"double\", \"21\")", "ToolCall::Response(\"{\\\"n\\\": 42}\")"];
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let double =
        Tool::with_schema("double", "Doubles", schema.clone(), |arguments: Json, _| async move {
            Ok::<_, ToolError>(arguments.get("n").and_then(Json::as_i64).unwrap_or(0) * 2)
        });
    let settings = json!({"model": cassette(folder.path(), &replies), "output": schema});
    let agent = agent(settings, Scope::new(&[], &[double]).unwrap());
    let (events, report) = block_on(async {
        let mut run = agent.start("6 x 7?", AgentRunOptions::default(), Arc::new(())).unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        (events, run.result().await.unwrap())
    });
    assert_eq!(report["data"], json!({"n": 42}));
    assert!(report["messages"].as_array().unwrap().len() > 2);
    let ended = events.iter().find(|event| event["type"] == "call_ended").unwrap();
    assert_eq!((&ended["name"], &ended["output"]), (&json!("double"), &json!("42")));
}

#[test]
fn a_run_in_a_store_is_parked_and_resumed_with_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let replies = ["ToolCall::Catalog(\"pay\")", "ToolCall::Response(\"done\")"];
    let pay = Tool::with_schema("pay", "Pays", json!({"type": "object"}), |_, _| async {
        Ok::<_, ToolError>("paid")
    });
    let settings = json!({
        "name": "payer", "model": cassette(folder.path(), &replies),
        "store": folder.path().join("runs"), "grants": {"ask": ["tool:pay"]},
    });
    let scope = Scope::new(&[], &[pay]).unwrap();
    let agent = agent(settings, scope);
    let later = approver(|_| async { Answer::Later }.boxed());
    let options = AgentRunOptions { approver: Some(later), ..AgentRunOptions::default() };
    block_on(async {
        let run = agent.start("pay", options.clone(), Arc::new(())).unwrap();
        let id = run.id().to_owned();
        let error = run.result().await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Parked, "parked"));
        let call = error.report.clone().unwrap()["pending"][0]["call"].as_str().unwrap().to_owned();
        let answers = vec![(call, Answer::Yes)];
        let run = agent.resume(&id, answers, options, Arc::new(())).unwrap();
        assert_eq!(run.result().await.unwrap()["text"], "done");
        agent.close().await.unwrap();
    });
}

#[test]
fn invalid_settings_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = cassette(folder.path(), &[]);
    for (settings, part) in [
        (json!({"model": model, "name": "No"}), "No"),
        (json!({"model": model, "temperature": 9.0}), "temperature"),
        (json!({"model": model, "grants": {"files": "/no/such/folder"}}), "/no/such/folder"),
        (json!({"model": {"name": "openai:x", "cassette": "y"}}), "not both"),
    ] {
        let settings = serde_json::from_value(settings).unwrap();
        let error = Agent::new(settings, Scope::default()).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Settings);
        assert!(error.reason.contains(part), "{error}");
    }
    let tool = Tool::with_schema("file_read", "Reads", json!({"type": "object"}), |_, _| async {
        Ok::<_, ToolError>("")
    });
    assert!(Scope::new(&[], &[tool]).err().unwrap().reason.contains("is taken"));
}

#[test]
fn the_description_of_the_language_names_nothing_that_is_not_there() {
    let text = wattle_bindings::language();
    assert!(text.contains("(out ") && text.contains("(each "));
    assert!(!text.contains("wattle://") && !text.contains("search_tools"), "{text}");
}
