//! Tests runs that are started with `POST /api/run`.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::world::{TOKEN, World, api};

impl World {
    /// Starts a run and returns its id.
    pub(crate) async fn start(&self, body: &Json) -> String {
        let answer = self.api("POST /api/run", &body.to_string()).await;
        assert_eq!(answer.head.status, 202, "{answer:?}");
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(answer.head.get("location"), Some(format!("/api/run/{id}").as_str()));
        id
    }

    /// Waits until a run has the given status and returns the run.
    pub(crate) async fn until(&self, run: &str, status: &str) -> Json {
        for _ in 0..1_000 {
            let view = self.api(&format!("GET /api/run/{run}"), "").await.json();
            if view["status"] == status {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the run {run} is not {status}");
    }
}

/// Returns a model's answer that runs a program.
pub(crate) fn wat(program: &str) -> String {
    format!("<reasoning>do it</reasoning>\nToolCall::Wat(```wat\n{program}\n```)")
}

#[tokio::test]
async fn a_run_is_started_shown_and_listed() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "add", "session_id": "s", "max_steps": 3})).await;
    world.question().await.say(&wat("(out (+ 1 2))"));
    let question = world.question().await;
    let view = world.until(&run, "running").await;
    assert_eq!((&view["result"], &view["steps"]), (&Json::Null, &1.into()), "{view}");
    question.respond("three");
    let view = world.until(&run, "done").await;
    assert_eq!(view["result"], "three");
    assert_eq!((&view["prompt"], &view["session_id"]), (&"add".into(), &"s".into()));
    let tool = &view["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["calls"], &tool["failed"]),
        (&"wat".into(), &1.into(), &0.into())
    );
    let outline = view["events_org"].as_str().unwrap();
    assert!(
        outline.contains("** step 1: wat :tool_call:") && outline.ends_with(": three\n"),
        "{outline}"
    );
    let steps = world.api(&format!("GET /api/traces/{run}"), "").await.json();
    assert_eq!(
        (&steps["steps"][0]["output"], &steps["steps"][0]["step"]),
        (&"3".into(), &1.into())
    );

    let failed = world.start(&json!({"prompt": "fail"})).await;
    world.question().await.fail();
    world.until(&failed, "failed").await;
    let listed = async |query: &str| -> Vec<String> {
        let list = world.api(&format!("GET /api/runs{query}"), "").await.json();
        list["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(listed("").await, [failed.clone(), run.clone()]);
    assert_eq!(listed("?status=done").await, [run.as_str()]);
    assert_eq!(listed("?session_id=s").await, [run.as_str()]);
    assert_eq!(listed("?q=FAI").await, [failed.as_str()]);
    assert_eq!(listed(&format!("?before={failed}")).await, [run.as_str()]);
    let page = world.api("GET /api/runs?limit=1", "").await.json();
    assert_eq!(page["next"], failed.as_str());
    let replay = world.api(&format!("POST /api/run/{run}/replay"), "").await.json();
    assert_eq!((&replay["same"], &replay["programs"]), (&true.into(), &1.into()), "{replay}");
}

#[tokio::test]
async fn a_run_is_cancelled_forked_and_stays_as_it_ended() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "wait", "session_id": "s"})).await;
    let question = world.question().await;
    let queued = world.start(&json!({"prompt": "later", "session_id": "s"})).await;
    for (id, status) in [(&queued, 202), (&run, 202)] {
        assert_eq!(world.api(&format!("DELETE /api/run/{id}"), "").await.head.status, status);
        let view = world.until(id, "cancelled").await;
        assert_eq!(view["result"], "stopped: cancelled (requested over HTTP)");
    }
    question.abandoned().await;
    assert_eq!(world.api(&format!("DELETE /api/run/{run}"), "").await.head.status, 200);
    world.no_question();

    let body = json!({"step": 0}).to_string();
    let forked = world.api(&format!("POST /api/run/{run}/fork"), &body).await;
    assert_eq!(forked.head.status, 202, "{forked:?}");
    let forked = forked.json()["id"].as_str().unwrap().to_owned();
    world.question().await.respond("from the fork");
    let view = world.until(&forked, "done").await;
    assert_eq!((&view["result"], &view["forked"]), (&"from the fork".into(), &json!([run, 0])));
    let far = json!({"step": 9}).to_string();
    world.api(&format!("POST /api/run/{run}/fork"), &far).await.refused(422, "invalid_field");
}

#[tokio::test]
async fn an_invalid_request_names_the_field() {
    let mut world = World::new().await;
    for (line, body, words) in [
        ("POST /api/run", r#"{}"#, "missing field `prompt`"),
        ("POST /api/run", r#"{"prompt":"  "}"#, "`prompt`: the text is empty"),
        ("POST /api/run", r#"{"prompt":"m","max_steps":0}"#, "`max_steps` is 1 to"),
        ("POST /api/run", r#"{"prompt":"m","max_steps":"3"}"#, "`max_steps`: invalid type: string"),
        (
            "POST /api/run",
            r#"{"prompt":"m","model":"other"}"#,
            "`model`: unknown; this server has `puppet`",
        ),
        ("POST /api/run", r#"{"prompt":"m","session_id":"a b"}"#, "`session_id`: a session id is"),
        ("POST /api/run", r#"{"prompt":"m","session_id":"."}"#, "except `.` and `..`"),
        ("POST /api/integrations", r#"{"name":".."}"#, "`name`: a session id is"),
        ("POST /api/tokens", r#"{"name":"..","scope":"read"}"#, "`name`: a session id is"),
        ("POST /api/sessions/none/fork", r#"{"id":".."}"#, "`id`: a session id is"),
        ("POST /api/run", r#"{"prompt":"m","step":1}"#, "`step`: unknown field"),
        // Only the operator gives privileges to programs.
        ("POST /api/run", r#"{"prompt":"m","programs":{}}"#, "`programs`: unknown field"),
        ("POST /api/run", r#"{"prompt":"m","files":{"../x":"y"}}"#, "outside the run's folder"),
        ("GET /api/runs?limit=0", "", "`limit` is 1 to 500"),
        ("GET /api/runs?limit=x", "", "the query"),
        ("GET /api/runs?colour=red", "", "unknown field `colour`"),
        ("POST /api/tokens", r#"{"name":"n","scope":"root"}"#, "`scope`: unknown variant `root`"),
    ] {
        let message = world.api(line, body).await.refused(422, "invalid_field");
        assert!(message.contains(words), "{line} {body}: {message}");
    }
    world.api("POST /api/run", "{").await.refused(400, "bad_request");
    world.api("POST /api/run", "\u{0}").await.refused(400, "bad_request");
    for line in [
        "GET /api/run/none",
        "GET /api/run/none/stream",
        "DELETE /api/run/none",
        "GET /api/sessions/none",
        "GET /api/sessions/none/files",
        "GET /api/sessions/%00/files/a",
        "GET /api/catalog/none",
        "GET /api/vars/none",
        "DELETE /api/tokens/none",
        "GET /v1/responses/none",
        "GET /i/none",
    ] {
        world.api(line, "").await.refused(404, "not_found");
    }
    world.no_question();
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_an_error_on_every_route() {
    let world = World::new().await;
    let document: Json = serde_json::from_str(wattle_server::document()).unwrap();
    let mut lines = vec!["GET /page/%ff".to_owned()];
    for (path, operations) in document["paths"].as_object().unwrap() {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "%ff" } else { part });
        let parts: Vec<&str> = parts.collect();
        if parts.contains(&"%ff") {
            let methods = operations.as_object().unwrap().keys();
            lines.extend(
                methods.map(|method| format!("{} {}", method.to_uppercase(), parts.join("/"))),
            );
        }
    }
    assert!(lines.len() > 30, "{lines:?}");
    for line in lines {
        let message = world.api(&line, "").await.refused(400, "bad_request");
        assert!(message.ends_with("in the path is not UTF-8"), "{line}: {message}");
    }
}

#[tokio::test]
async fn the_rate_of_a_token_is_limited() {
    let world = World::with(|settings| settings.limits.requests_per_minute = 3).await;
    for _ in 0..3 {
        assert_eq!(world.api("GET /api/settings", "").await.head.status, 200);
    }
    let answer = world.ask(api(TOKEN, "GET /api/settings", "")).await;
    answer.refused(429, "rate_limited");
}

#[tokio::test]
async fn readiness_and_metrics_report_the_server() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "hello"})).await;
    world.question().await.respond("hi");
    world.until(&run, "done").await;
    assert_eq!(
        world.ask(crate::world::bare("GET /readyz", &["Host: localhost"])).await.head.status,
        200
    );
    // A run that has ended is released a moment later.
    let mut metrics = String::new();
    for _ in 0..1_000 {
        metrics = world.api("GET /metrics", "").await.body;
        if metrics.contains("wattle_runs_active 0") && metrics.contains("runs_driven 0") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for line in [
        "wattle_runs_started_total 1",
        "wattle_http_requests_total{route=\"/api/run\",method=\"POST\",status=\"202\"} 1",
        "wattle_runs_active 0",
        "wattle_queue_runs 0",
        "wattle_store_runs_driven 0",
        "wattle_store_transaction_duration_seconds_count{access=\"write\"}",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn programs_are_checked_and_run_without_a_model() {
    let world = World::new().await;
    let check = async |body: &str| {
        world.api("POST /api/check", &json!({"body": body}).to_string()).await.json()
    };
    let good = check(r#"(out (fs.read "a.txt")) (fs.write (arg 0) "x")"#).await;
    assert_eq!((&good["ok"], &good["authority"]["reads"]), (&true.into(), &json!(["a.txt"])));
    assert_eq!(good["authority"]["unknown"], json!([]), "{good}");
    let bad = check("(out (fs.red \"a.txt\"))").await;
    assert_eq!(bad["ok"], false);
    let first = &bad["diagnostics"][0];
    assert_eq!((&first["line"], &first["severity"]), (&1.into(), &"error".into()), "{bad}");
    let exec = async |body: Json| world.api("POST /api/exec", &body.to_string()).await.json();
    let ran = exec(json!({"body": "(out (str.upper (arg 0)))", "args": ["a"]})).await;
    assert_eq!((&ran["success"], &ran["output"]), (&true.into(), &"A".into()), "{ran}");
    exec(json!({"body": "(fs.write \"n.txt\" \"kept\")", "session_id": "s"})).await;
    let read = exec(json!({"body": "(out (fs.read \"n.txt\"))", "session_id": "s"})).await;
    assert_eq!(read["output"], "kept", "{read}");
    let other = exec(json!({"body": "(out (fs.read \"n.txt\"))"})).await;
    assert_eq!((&other["success"], other["error"].is_string()), (&false.into(), true), "{other}");
}

#[tokio::test]
async fn the_requests_of_a_run_have_their_messages_their_answers_and_their_tokens() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "add one"})).await;
    world.question().await.say(&wat("(out (+ 1 1))"));
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let requests = world.api(&format!("GET /api/run/{run}/requests"), "").await.json();
    let requests = requests["requests"].as_array().unwrap().clone();
    let [first, second] = &requests[..] else { panic!("{requests:#?}") };
    let roles = |request: &Json| -> Vec<String> {
        let messages = request["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (&first["step"], &first["same"], roles(first)[0].as_str()),
        (&1.into(), &0.into(), "system")
    );
    assert!(first["messages"].to_string().contains("add one"), "{first}");
    assert!(first["answer"]["text"].as_str().unwrap().contains("(out (+ 1 1))"), "{first}");
    assert!(first["answer"]["usage"]["prompt"].is_u64(), "{first}");
    // The second request repeats no message of the first one.
    assert_eq!(second["same"], roles(first).len());
    assert_eq!(
        (&second["step"], roles(second)),
        (&2.into(), vec!["assistant".to_owned(), "user".to_owned()])
    );
    assert!(second["answer"]["text"].as_str().unwrap().contains("done"), "{second}");
    world.api("GET /api/run/none/requests", "").await.refused(404, "not_found");
}

#[tokio::test]
async fn the_calls_of_a_run_have_their_times() {
    let mut world = World::new().await;
    let run = world.start(&json!({"prompt": "m"})).await;
    world.question().await.say(&wat("(kv.set \"a\" \"1\") (out (kv.get \"a\"))"));
    world.question().await.respond("done");
    let view = world.until(&run, "done").await;
    let calls = world.api(&format!("GET /api/run/{run}/calls"), "").await.json();
    let calls = calls["calls"].as_array().unwrap().clone();
    let functions: Vec<&Json> = calls.iter().map(|call| &call["function"]).collect();
    assert_eq!(functions, ["kv.set", "kv.get"]);
    for call in &calls {
        let (began, took) = (call["ts"].as_u64().unwrap(), call["dur_ms"].as_u64().unwrap());
        let (created, ended) = (view["created"].as_u64(), view["updated"].as_u64());
        assert!(began >= created.unwrap() && began + took <= ended.unwrap() + 1, "{call} {view}");
    }
    assert!(calls[0]["ts"].as_u64() <= calls[1]["ts"].as_u64());
}
