//! Tests of conversations in which the agent changes.

use std::sync::Arc;

use wattle_agent::Tenant;
use wattle_agent::agents::Agents;
use wattle_agent::host::RecallContract;
use wattle_agent::host::machine::Message;
use wattle_agent::model::{Model, Models};
use wattle_agent::prelude::*;

use super::{HOST, Script, agent, call, say};

/// Two scripted models that are opened by name.
struct Two {
    fast: Arc<dyn Model>,
    strong: Arc<dyn Model>,
}

impl Models for Two {
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        match name {
            "class:fast" => Ok(Arc::clone(&self.fast)),
            "class:strong" => Ok(Arc::clone(&self.strong)),
            _ => Err(format!("there is no model `{name}`; there are `class:fast`, `class:strong`")),
        }
    }

    fn classes(&self) -> Vec<String> {
        vec!["fast".to_owned(), "strong".to_owned()]
    }
}

/// Creates agents in a temporary folder. The folder is removed when the returned `TempDir` is
/// dropped.
fn agents(files: &[(&str, &str)]) -> (Agents, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    }
    (Agents::open(&[folder.path().to_owned()]), folder)
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_agent_and_keeps_its_messages() {
    let (agents, _folder) = agents(&[
        ("pirate", "name = \"pirate\"\ntitle = \"The pirate\"\nprompt = \"You are a pirate.\""),
        ("clerk", "name = \"clerk\"\nprompt = \"You are a clerk.\"\ntools = [\"file_*\"]"),
    ]);
    let script = Script::new(&[&say("one"), &call("kv_set", &["a", "1"]), &say("two"), &say("3")]);
    let builder = Agent::builder(script.clone()).host(HOST.clone()).agents(agents);
    let mut conversation = builder.conversation().unwrap();
    assert_eq!(conversation.execute("first").await.unwrap().data, "one");
    let loaded = conversation.load_agent("the PIRATE").await.unwrap();
    assert_eq!(loaded.name, "pirate");
    assert_ne!(conversation.current_agent().name, "pirate", "loading changes nothing");
    conversation.switch_to_agent("pirate").await.unwrap();
    assert_eq!(conversation.current_agent().prompt, "You are a pirate.");
    assert_eq!(conversation.execute("second").await.unwrap().agent, "pirate");
    let unknown = conversation.switch_to_agent("pirat").await.unwrap_err().to_string();
    assert!(unknown.contains("did you mean `pirate`?"), "{unknown}");
    conversation.switch_to_agent("clerk").await.unwrap();
    assert!(conversation.agent().host().catalog().get("kv_set").is_none());
    assert_eq!(conversation.execute("third").await.unwrap().data, "3");
    let texts: Vec<&str> =
        conversation.messages().iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts[..4], ["first", say("one").as_str(), "second", &call("kv_set", &["a", "1"])]);
    assert_eq!(texts[5..], [say("two").as_str(), "third", &say("3")]);
}

#[tokio::test]
async fn a_model_is_chosen_by_name_or_class_or_the_reason_is_said() {
    let (fast, strong) = (Script::new(&[&say("quick")]), Script::new(&[&say("deep")]));
    let models = Two { fast: Arc::new(fast.clone()), strong: Arc::new(strong.clone()) };
    let mut conversation = agent(&[&say("usual")]).models(Arc::new(models)).conversation().unwrap();
    let why = conversation.switch_to_model("class:slow").unwrap_err().to_string();
    assert_eq!(why, "there is no model `class:slow`; there are `class:fast`, `class:strong`");
    assert_eq!(conversation.execute("a").await.unwrap().data, "usual", "nothing has changed");
    conversation.switch_to_model("class:fast").unwrap();
    assert_eq!(conversation.execute("b").await.unwrap().data, "quick");
    // An agent that names a model uses it; otherwise the conversation keeps the current model.
    let sage = AgentSpec::parse("name = \"sage\"\nmodel = \"class:strong\"").unwrap();
    conversation.switch_to_agent(sage.clone()).await.unwrap();
    assert_eq!(conversation.execute("c").await.unwrap().data, "deep");
    conversation.switch_to_model("class:fast").unwrap();
    assert_eq!(conversation.execute("d").await.unwrap().data, "quick");
    conversation.switch_to_agent(AgentSpec::new("plain")).await.unwrap();
    assert_eq!(conversation.execute("e").await.unwrap().data, "quick");
    let broken = AgentSpec { model: Some("class:slow".to_owned()), ..sage };
    let why = conversation.switch_to_agent(broken).await.unwrap_err().to_string();
    assert!(why.contains("the agent `sage`: `model`: there is no model"), "{why}");
    assert_eq!(conversation.current_agent().name, "plain");

    let mut alone = agent(&[&say("x")]).conversation().unwrap();
    let why = alone.switch_to_model("class:fast").unwrap_err().to_string();
    assert_eq!(why, "`class:fast` cannot be used: the agent was built without `models`");
}

#[tokio::test]
async fn what_is_added_at_run_time_stays_with_the_conversation() {
    let script = Script::new(&[
        &call("greet", &[]),
        &call("house_rules", &[]),
        &call("ask_helper", &["help"]),
        &say("done"),
    ]);
    let builder = Agent::builder(script.clone()).host(HOST.clone());
    let narrow =
        AgentSpec::parse("name = \"narrow\"\nprompt = \"Hi.\"\ntools = [\"file_read\"]").unwrap();
    let mut conversation = builder.spec(narrow.clone()).conversation().unwrap();
    let greet =
        Tool::with_schema("greet", "Greets", serde_json::json!({"type": "object"}), |_, _| async {
            Ok("good day")
        });
    conversation.add_tool(greet.clone()).unwrap();
    let why = conversation.add_tool(greet).unwrap_err().to_string();
    assert!(why.contains("another program or delegate `greet`"), "{why}");
    let rules = serde_json::json!({
        "id": "file_read", "alias": "house_rules", "context": {"path": "${file}"},
    });
    let why = conversation.add_program(serde_json::from_value(rules.clone()).unwrap()).unwrap_err();
    assert!(why.to_string().contains("file"), "the value is missing: {why}");
    conversation.update_context([("file".to_owned(), "rules.md".to_owned())].into()).unwrap();
    conversation.add_program(serde_json::from_value(rules).unwrap()).unwrap();
    conversation
        .add_delegate("helper", agent(&[&say("at your service")]).build().unwrap())
        .unwrap();
    conversation.add_memory("The house is blue.").unwrap();
    let recalls = |program: &str| RecallContract {
        program: program.to_owned(),
        max_length: 8,
        ..RecallContract::default()
    };
    let why = conversation.set_memory_contract(recalls("no_such_program")).unwrap_err();
    assert!(why.to_string().contains("no_such_program"), "{why}");
    // The program gets the conversation, here as a key, and the maximum number of items.
    conversation.set_memory_contract(recalls("kv_incr")).unwrap();
    conversation.switch_to_agent(AgentSpec { name: "other".to_owned(), ..narrow }).await.unwrap();
    let files = Arc::new(wattle_agent::host::capability::files::Files::overlay(None, 1 << 20));
    files.write("rules.md", b"Be kind.").unwrap();
    let report = conversation.prepare("go").files(files).await.unwrap();
    assert_eq!(report.children[0].text, "at your service");
    let requests = script.requests();
    assert!(requests[1].contains("good day") && requests[2].contains("Be kind."), "{requests:?}");
    assert!(
        report.model_calls.iter().flat_map(|model_call| &model_call.calls).all(|call| call.success)
    );
    assert!(conversation.messages().is_empty(), "a prepared run is added by the application");
    conversation.add(&report);
    assert_eq!(conversation.messages().first().unwrap().content, "go");
    let recalled = conversation.messages().iter().find(|message| message.recalled);
    assert!(recalled.unwrap().content.ends_with("\n- 5"), "{recalled:?}");
}

#[tokio::test]
async fn declared_delegates_are_found_with_their_models_rules_and_values() {
    let (agents, _folder) = agents(&[
        (
            "boss",
            "name = \"boss\"\ndelegates = [{ id = \"clerk\" }]\n[context]\nhouse = \"elm\"\n\
             [policy]\ndeny = [\"write:*\"]",
        ),
        (
            "clerk",
            "name = \"clerk\"\ntitle = \"The clerk\"\nmodel = \"class:fast\"\n\
             delegates = [{ id = \"boss\" }]\n\
             tools = [\"file_write\", { id = \"file_read\", alias = \"rules\", \
             context = { path = \"${house}.md\" } }]",
        ),
    ]);
    let fast = Script::new(&[&call("file_write", &["a", "b"]), &call("rules", &[]), &say("no")]);
    let models = Two { fast: Arc::new(fast.clone()), strong: Arc::new(fast.clone()) };
    let boss = agent(&[&call("ask_clerk", &["Write."]), &say("ok")])
        .spec(agents.load(&Tenant::default(), "boss").await.unwrap().as_ref().clone())
        .agents(agents.clone())
        .models(Arc::new(models))
        .build()
        .unwrap();
    let usage = boss.host().catalog().get("ask_clerk").unwrap().meta().description.clone();
    assert_eq!(usage, "Ask the agent The clerk");
    let files = Arc::new(wattle_agent::host::capability::files::Files::overlay(None, 1 << 20));
    files.write("elm.md", b"Be kind.").unwrap();
    let report = boss.execute("go").files(files).await.unwrap();
    let clerk = &report.children[0];
    let [write, rules] = [&clerk.model_calls[0].calls[0], &clerk.model_calls[1].calls[0]];
    assert!(!write.success && rules.success, "{clerk:?}");
    assert!(fast.requests()[2].contains("Be kind."));

    // A missing delegate is reported when the agent is built.
    let missing = AgentSpec::parse("name = \"x\"\ndelegates = [{ id = \"clark\" }]").unwrap();
    let why = agent(&["x"]).spec(missing).agents(agents).build().unwrap_err().to_string();
    assert!(why.contains("did you mean `clerk`?"), "{why}");
}

#[tokio::test]
async fn runs_that_fail_or_wait_leave_the_messages_as_they_are() {
    let mut conversation = agent(&[""]).conversation().unwrap();
    let failure = conversation.execute("go").await.unwrap_err();
    assert_eq!(failure.report().status, ReportStatus::Failed);
    assert!(conversation.messages().is_empty());
    let mut conversation = conversation.with_messages(vec![Message::user("before")]);
    conversation.execute("go").await.unwrap_err();
    assert_eq!(conversation.messages().len(), 1);
}
