//! Tests agents that delegate to other agents.

use serde_json::{Value as Json, json};
use wattle_agent::agents::Agents;
use wattle_agent::host::TenantStore;
use wattle_agent::host::capability::policy::Policy;
use wattle_agent::host::journal::Journal as _;
use wattle_server::{App, TenantParts};

use crate::api::wat;
use crate::world::{Question, World, store};

/// Creates a folder with agents: `boss` may delegate to `coder` and `clerk`, `coder` may delegate
/// to `clerk`, and the others may not delegate.
pub(crate) fn agents(boss: &str) -> (Agents, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let text = format!("name = \"{name}\"\nprompt = \"You are the {name}.\"\n{text}");
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    };
    write(
        "boss",
        &format!(
            "delegates = [{{ id = \"coder\", rule = \"for programs\" }}, {{ id = \"clerk\" }}]\n\
             {boss}"
        ),
    );
    write("coder", "delegates = [{ id = \"clerk\" }]\n");
    write("clerk", "description = \"Keeps the files\"\n");
    write("stranger", "");
    (Agents::open(&[folder.path().to_owned()]), folder)
}

pub(crate) struct Office {
    pub(crate) world: World,
    pub(crate) store: TenantStore,
    _folder: tempfile::TempDir,
}

pub(crate) async fn office(boss: &str, policy: Policy) -> Office {
    let (agents, folder) = agents(boss);
    let store = store();
    let parts = TenantParts::new(store.clone());
    let change = |app: App| app.with_agents(agents).with_policy(policy);
    Office { world: World::of(parts, change, |_| {}).await, store, _folder: folder }
}

impl Office {
    /// Creates a fixture for a server whose agents are already configured.
    pub(crate) fn of(world: World, store: TenantStore) -> Office {
        Office { world, store, _folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn open() -> Office {
        office("", Policy::default()).await
    }

    pub(crate) async fn boss(&self) -> String {
        self.world.start(&json!({"prompt": "go", "agent": "boss", "session_id": "s"})).await
    }

    /// Returns the next request to the model, which must come from `agent`.
    pub(crate) async fn asked(&mut self, agent: &str) -> Question {
        let question = self.world.question().await;
        let prompt = &question.messages[0].content;
        assert!(prompt.starts_with(&format!("You are the {agent}.")), "{prompt}");
        question
    }

    pub(crate) async fn children(&self, run: &str) -> Vec<Json> {
        let listed = self.world.api(&format!("GET /api/runs?tree_of={run}"), "").await.json();
        listed["runs"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn an_agent_gets_the_answer_of_another_one() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    let question = office.asked("boss").await;
    let prompt = &question.messages[0].content;
    assert!(prompt.contains("ask_coder(message)"), "{prompt}");
    assert!(prompt.contains("Ask the agent coder: for programs"), "{prompt}");
    assert!(prompt.contains("Ask the agent clerk: Keeps the files"), "{prompt}");
    question.say("ToolCall::Catalog(\"ask_coder\", \"Reverse a list.\")");
    let question = office.asked("coder").await;
    assert!(question.last().starts_with("Reverse a list."), "{}", question.last());
    question.say(&wat("(fs.write \"a.wat\" \"(ret 1)\")"));
    office.asked("coder").await.respond("It is in a.wat.");
    let question = office.asked("boss").await;
    assert!(question.last().contains("It is in a.wat."), "{}", question.last());
    question.say(&wat("(out (fs.read \"a.wat\"))"));
    let question = office.asked("boss").await;
    assert!(question.last().contains("(ret 1)"), "the files are shared: {}", question.last());
    question.respond("done");
    let view = office.world.until(&run, "done").await;
    assert_eq!((&view["steps"], &view["parent"]), (&json!(2), &Json::Null));
    let file = office.world.api("GET /api/sessions/s/files/a.wat", "").await;
    assert_eq!(file.head.status, 200);

    let children = office.children(&run).await;
    assert_eq!(children.len(), 1);
    assert_eq!((&children[0]["agent"], &children[0]["parent"]), (&json!("coder"), &json!(run)));
    assert_eq!(children[0]["result"], "It is in a.wat.");
    let child = children[0]["id"].as_str().unwrap();
    let events = office.world.api(&format!("GET /api/run/{child}/events"), "").await.json();
    for event in events["events"].as_array().unwrap() {
        assert_eq!((&event["run_id"], &event["root_run_id"]), (&json!(child), &json!(run)));
    }
    let listed = office.world.api("GET /api/runs", "").await.json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "child runs are not listed");
    let history = office.store.history("s", None).await.unwrap().messages;
    assert!(history.iter().all(|message| !message.content.contains("Reverse a list")
        || message.content.contains("ask_coder")));
}

#[tokio::test]
async fn a_fork_has_the_files_of_the_agents_that_were_asked() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    office.asked("boss").await.say(&wat("(fs.write \"b.txt\" \"of the boss\")"));
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_clerk\", \"Write.\")");
    office.asked("clerk").await.say(&wat("(fs.write \"a.txt\" \"of the clerk\")"));
    office.asked("clerk").await.respond("written");
    office.asked("boss").await.respond("done");
    office.world.until(&run, "done").await;
    for file in ["a.txt", "b.txt"] {
        let line = format!("DELETE /api/sessions/s/files/{file}");
        assert_eq!(office.world.api(&line, "").await.head.status, 204);
    }
    for (step, message, has_both) in
        [(2, Some("And now?"), true), (2, None, true), (1, None, false), (1, Some("Now?"), false)]
    {
        let body = json!({"step": step, "message": message}).to_string();
        let forked = office.world.api(&format!("POST /api/run/{run}/fork"), &body).await.json();
        let read = "(each $file (fs.glob \"*.txt\") (out (fs.read $file)))";
        office.asked("boss").await.say(&wat(read));
        let question = office.asked("boss").await;
        let seen = question.last();
        assert!(seen.contains("of the boss"), "{step} {message:?}: {seen}");
        assert_eq!(seen.contains("of the clerk"), has_both, "{step} {message:?}: {seen}");
        question.respond("done");
        office.world.until(forked["id"].as_str().unwrap(), "done").await;
        for file in ["a.txt", "b.txt"] {
            let line = format!("DELETE /api/sessions/s/files/{file}");
            office.world.api(&line, "").await;
        }
    }
}

#[tokio::test]
async fn agents_are_asked_concurrently() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    let program = "(ret (str.join (par.map \"ask_clerk\" (str.split \"a,b,c\" \",\")) \"+\"))";
    office.asked("boss").await.say(&wat(program));
    let mut questions = Vec::new();
    for _ in 0..3 {
        questions.push(office.asked("clerk").await);
    }
    for question in questions {
        let answer = question.last().chars().next().unwrap().to_uppercase().to_string();
        question.respond(&answer);
    }
    let question = office.asked("boss").await;
    assert!(question.last().contains("A+B+C"), "{}", question.last());
    question.respond("done");
    office.world.until(&run, "done").await;
    assert_eq!(office.children(&run).await.len(), 3);
}

#[tokio::test]
async fn only_declared_agents_can_be_asked_and_not_too_deep() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    office.asked("boss").await.say(&wat("(ret (agent.delegate \"stranger\" \"hello\"))"));
    let question = office.asked("boss").await;
    let refusal = "this run may not ask the agent `stranger`; it may ask `coder`, `clerk`";
    assert!(question.last().contains(refusal), "{}", question.last());
    question.say(&wat("(ret (agent.delegate \"coder\" \" \"))"));
    let question = office.asked("boss").await;
    assert!(question.last().contains("the message is empty"), "{}", question.last());
    question.say(&wat("(ret (agent.delegate \"coder\" \"one\"))"));
    office.asked("coder").await.say(&wat("(ret (agent.delegate \"clerk\" \"two\"))"));
    // The clerk may not delegate to other agents.
    office.asked("clerk").await.say(&wat("(ret (agent.delegate \"coder\" \"three\"))"));
    let question = office.asked("clerk").await;
    assert!(question.last().contains("`agent` is not granted"), "{}", question.last());
    question.respond("no");
    office.asked("coder").await.respond("no");
    office.asked("boss").await.respond("no");
    office.world.until(&run, "done").await;
}

#[tokio::test]
async fn the_built_in_agent_is_asked_as_itself() {
    let folder = tempfile::tempdir().unwrap();
    let boss =
        "name = \"boss\"\nprompt = \"You are the boss.\"\ndelegates = [{ id = \"default\" }]\n";
    std::fs::write(folder.path().join("boss.toml"), boss).unwrap();
    let (agents, store) = (Agents::open(&[folder.path().to_owned()]), store());
    let parts = TenantParts::new(store.clone());
    let world = World::of(parts, |app| app.with_agents(agents), |_| {}).await;
    let mut office = Office::of(world, store);
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_default\", \"Count.\")");
    let question = office.world.question().await;
    let prompt = &question.messages[0].content;
    assert!(!prompt.contains("You are the boss.") && !prompt.contains("ask_default"), "{prompt}");
    question.respond("3");
    office.asked("boss").await.respond("done");
    office.world.until(&run, "done").await;
    let children = office.children(&run).await;
    assert_eq!((children.len(), &children[0]["agent"]), (1, &json!("default")));
}

#[tokio::test]
async fn the_rules_of_an_agent_hold_for_those_that_it_asks() {
    let mut office = office("[policy]\ndeny = [\"write:*\"]\n", Policy::default()).await;
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"write\")");
    office.asked("coder").await.say(&wat("(ret (agent.delegate \"clerk\" \"write\"))"));
    office.asked("clerk").await.say(&wat("(fs.write \"a.txt\" \"x\")"));
    let question = office.asked("clerk").await;
    assert!(question.last().contains("denied before it ran"), "{}", question.last());
    question.respond("no");
    office.asked("coder").await.respond("no");
    office.asked("boss").await.respond("no");
    office.world.until(&run, "done").await;
}

#[tokio::test]
async fn cancelling_a_run_cancels_the_runs_below_it() {
    let mut office = Office::open().await;
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    office.asked("coder").await.say("ToolCall::Catalog(\"ask_clerk\", \"two\")");
    let question = office.asked("clerk").await;
    office.world.api(&format!("DELETE /api/run/{run}"), "").await;
    question.abandoned().await;
    office.world.until(&run, "cancelled").await;
    for child in office.children(&run).await {
        let view = office.world.until(child["id"].as_str().unwrap(), "cancelled").await;
        assert_eq!(view["result"], "stopped: cancelled (requested over HTTP)");
    }
}

#[tokio::test]
async fn a_question_of_an_agent_parks_the_runs_above_it() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("", policy).await;
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    office.asked("coder").await.say("ToolCall::Catalog(\"ask_clerk\", \"two\")");
    office.asked("clerk").await.say(&wat("(fs.write \"a.txt\" \"x\")"));
    let view = office.world.until(&run, "parked").await;
    let waiting = view["waiting"][0].clone();
    let events = office.world.api(&format!("GET /api/run/{run}/events"), "").await.json();
    let event = events["events"].as_array().unwrap().last().unwrap().clone();
    let of_event = (&event["type"], &event["call"], &event["question"]);
    assert_eq!(of_event, (&json!("parked"), &waiting["call"], &waiting["question"]), "{event}");
    let (child, call) = waiting["call"].as_str().unwrap().split_once('/').unwrap();
    assert_eq!(call, "1.1");
    assert!(waiting["question"].as_str().unwrap().contains("write a.txt"), "{waiting}");
    assert_eq!(view["waiting"].as_array().unwrap().len(), 1, "{view}");
    let answer = format!("POST /api/run/{child}/approvals/1.1");
    assert_eq!(office.world.api(&answer, r#"{"approve":true}"#).await.head.status, 200);
    let question = office.asked("clerk").await;
    assert!(!question.last().contains("denied"), "{}", question.last());
    question.respond("written");
    office.asked("coder").await.respond("ok");
    let question = office.asked("boss").await;
    assert!(question.last().contains("ok"), "{}", question.last());
    question.respond("done");
    office.world.until(&run, "done").await;
    assert_eq!(office.children(&run).await.len(), 2, "no agent was asked twice");
}

#[tokio::test]
async fn an_agent_that_goes_on_while_its_caller_is_parked_shares_its_budget() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("[budget]\nmax_tokens_total = 200\n", policy).await;
    let run = office.boss().await;
    let program = "(ret (str.join (par.map \"ask_clerk\" (str.split \"write,wait\" \",\")) \"+\"))";
    office.asked("boss").await.say_using(10, &wat(program));
    let (mut kept, mut has_written) = (None, false);
    while kept.is_none() || !has_written {
        let question = office.asked("clerk").await;
        if question.last().starts_with("write") {
            has_written = true;
            question.say_using(10, &wat("(fs.write \"a.txt\" \"x\")"));
        } else if has_written {
            kept = Some(question);
        } else {
            // Until a request has ended, the budget has no room for another one.
            question.say_using(10, &wat("(ret 1)"));
        }
    }
    let view = office.world.until(&run, "parked").await;
    let (child, call) = view["waiting"][0]["call"].as_str().unwrap().split_once('/').unwrap();
    let answer = format!("POST /api/run/{child}/approvals/{call}");
    assert_eq!(office.world.api(&answer, r#"{"approve":true}"#).await.head.status, 200);
    let done = "<reasoning>done</reasoning>\nToolCall::Response(\"\"\"\nwritten\n\"\"\")";
    office.asked("clerk").await.say_using(200, done);
    office.world.until(child, "done").await;
    // The other clerk may not ask its model again, and neither may the boss.
    kept.unwrap().say_using(1, &wat("(ret 2)"));
    office.world.until(&run, "stopped").await;
    office.world.no_question();
    let children = office.children(&run).await;
    let of_kept = children.iter().find(|one| one["id"] != child).unwrap();
    let refused = "stopped: reached max_tokens_total (200) of the agent `boss` above it";
    assert_eq!(of_kept["result"], refused, "{of_kept}");
}

#[tokio::test]
async fn a_parked_run_that_is_cancelled_reports_what_its_ended_delegates_used() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("", policy).await;
    let run = office.boss().await;
    let program = "(out (agent.delegate \"clerk\" \"a\"))\n(out (agent.delegate \"coder\" \"b\"))";
    office.asked("boss").await.say_using(10, &wat(program));
    let done = "<reasoning>done</reasoning>\nToolCall::Response(\"\"\"\nyes\n\"\"\")";
    office.asked("clerk").await.say_using(30, done);
    office.asked("coder").await.say_using(0, &wat("(fs.write \"a.txt\" \"x\")"));
    office.world.until(&run, "parked").await;
    office.world.api(&format!("DELETE /api/run/{run}"), "").await;
    let view = office.world.until(&run, "cancelled").await;
    assert_eq!(view["usage"]["prompt"], 40, "{view}");
}

#[tokio::test]
async fn a_tree_goes_on_in_the_next_process_where_it_stopped() {
    let (agents, _folder) = agents("");
    let store = store();
    let open = async |store: TenantStore| {
        let agents = agents.clone();
        World::of(TenantParts::new(store), move |app| app.with_agents(agents), |_| {}).await
    };
    let world = open(store.clone()).await;
    let mut office = Office::of(world, store.clone());
    let run = office.boss().await;
    let program = "(fs.write \"boss.txt\" (agent.delegate \"coder\" \"one\"))\n(ret \
                   (agent.delegate \"clerk\" \"two\"))";
    office.asked("boss").await.say(&wat(program));
    office.asked("coder").await.say(&wat("(fs.write \"coder.txt\" \"mine\")"));
    office.asked("coder").await.respond("first");
    office.asked("clerk").await.say(&wat("(fs.write \"clerk.txt\" \"mine\")"));
    let question = office.asked("clerk").await;
    office.world.shutdown.cancel();
    question.abandoned().await;
    let Office { world, .. } = office;
    world.ended().await;

    let mut office = Office::of(open(store.clone()).await, store);
    let question = office.asked("clerk").await;
    assert!(question.messages.len() > 2, "it goes on after its first step");
    question.say(&wat("(out (str.join (fs.list \"\") \",\"))"));
    let question = office.asked("clerk").await;
    for file in ["boss.txt", "clerk.txt", "coder.txt"] {
        assert!(question.last().contains(file), "{file}: {}", question.last());
    }
    question.respond("second");
    let question = office.asked("boss").await;
    assert!(question.last().contains("second"), "{}", question.last());
    question.respond("done");
    let view = office.world.until(&run, "done").await;
    assert_eq!(view["steps"], 1);
    assert_eq!(office.children(&run).await.len(), 2, "nothing was done twice");
    for file in ["boss.txt", "clerk.txt", "coder.txt"] {
        let answer = office.world.api(&format!("GET /api/sessions/s/files/{file}"), "").await;
        assert_eq!(answer.head.status, 200, "{file}");
    }
    let replayed = office.world.api(&format!("POST /api/run/{run}/replay"), "").await.json();
    assert_eq!(replayed["difference"], Json::Null, "{replayed}");
}

#[tokio::test]
async fn an_agent_that_cannot_go_on_at_once_is_no_failure_for_the_one_that_asked_it() {
    let (agents, _folder) = agents("");
    let store = store();
    let open = async |store: TenantStore| {
        let agents = agents.clone();
        World::of(TenantParts::new(store), move |app| app.with_agents(agents), |_| {}).await
    };
    let mut office = Office::of(open(store.clone()).await, store.clone());
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_coder\", \"one\")");
    let question = office.asked("coder").await;
    let child = office.children(&run).await[0]["id"].as_str().unwrap().to_owned();
    office.world.shutdown.cancel();
    question.abandoned().await;
    let Office { world, .. } = office;
    world.ended().await;

    // The next process finds the child run locked.
    let lock = store.lock(&format!("run:{child}")).await.unwrap().unwrap();
    let mut office = Office::of(open(store.clone()).await, store);
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    drop(lock);
    office.asked("coder").await.respond("first");
    let question = office.asked("boss").await;
    assert!(question.last().contains("first"), "{}", question.last());
    question.respond("done");
    office.world.until(&run, "done").await;
    assert_eq!(office.children(&run).await.len(), 1, "no agent was asked twice");
}

#[tokio::test]
async fn a_run_goes_on_if_the_delegate_that_waits_is_cancelled() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("", policy).await;
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_clerk\", \"Write it.\")");
    office.asked("clerk").await.say(&wat("(fs.write \"a\" \"x\")"));
    office.world.until(&run, "parked").await;
    let child = office.children(&run).await[0]["id"].as_str().unwrap().to_owned();
    let cancelled = office.world.api(&format!("DELETE /api/run/{child}"), "").await;
    assert_eq!(cancelled.head.status, 202, "{cancelled:?}");
    office.asked("boss").await.respond("The clerk did not write it.");
    office.world.until(&run, "done").await;
}

/// Starts a run of `boss` in which `clerk` waits for an approval. Returns the ids of both runs as
/// soon as the clerk's run is parked. At that time, the boss's run may still be active.
async fn waiting_clerk(office: &mut Office) -> (String, String) {
    let run = office.boss().await;
    office.asked("boss").await.say("ToolCall::Catalog(\"ask_clerk\", \"Write it.\")");
    office.asked("clerk").await.say(&wat("(fs.write \"a\" \"x\")"));
    loop {
        match office.children(&run).await.as_slice() {
            [child] if child["status"] == "parked" => {
                return (run, child["id"].as_str().unwrap().to_owned());
            }
            _ => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
        }
    }
}

#[tokio::test]
async fn a_delegate_can_be_answered_or_cancelled_before_the_run_above_it_is_parked() {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let mut office = office("", policy).await;
    for is_answered in [true, false].repeat(5) {
        let (run, child) = waiting_clerk(&mut office).await;
        if is_answered {
            let line = format!("POST /api/run/{child}/approvals/1.1");
            let answered = office.world.api(&line, r#"{"approve":true}"#).await;
            assert_eq!(answered.head.status, 200, "{answered:?}");
            office.world.api(&line, r#"{"approve":false}"#).await.refused(409, "not_waiting");
            office.asked("clerk").await.respond("It is in a.");
        } else {
            let cancelled = office.world.api(&format!("DELETE /api/run/{child}"), "").await;
            assert_eq!(cancelled.head.status, 202, "{cancelled:?}");
        }
        office.asked("boss").await.respond("done");
        office.world.until(&run, "done").await;
    }
}
