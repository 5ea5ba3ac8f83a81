//! Tests of the Rust examples in docs/agents.md, each in its own function.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use wattle_agent::agents::Agents;
use wattle_agent::model::{Model, OneModel};
use wattle_agent::prelude::*;

use super::{HOST, Script, agent, call, say};

type Done = Result<(), Box<dyn std::error::Error>>;

fn weather() -> Tool {
    let schema = serde_json::json!({"type": "object"});
    Tool::with_schema("weather", "Returns the weather", schema, |_, _| async { Ok("rain") })
}

#[tokio::test]
async fn an_agent_with_a_tool() -> Done {
    let (model, weather) = (Script::new(&[&call("weather", &[]), &say("It rains.")]), weather());
    let agent = Agent::builder(model).prompt("You know the weather.").tool(weather).build()?;
    let report = agent.execute("How is the weather in Oslo?").await?;
    println!("{}", report.data);
    assert_eq!(report.data, "It rains.");
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_cancelled() -> Done {
    let agent = Agent::builder(Script::new(&[&say("sorted")])).host(HOST.clone()).build()?;
    let cancel = Cancel::new();
    let run = agent.execute("Sort the notes.").session_id("s1").cancel(cancel.clone());
    // Elsewhere, at any time:
    cancel.cancel("the user left");
    let stopped = run.await.unwrap_err();
    assert_eq!(stopped.reason(), "the user left");
    Ok(())
}

#[tokio::test]
async fn a_conversation() -> Done {
    let model: Arc<dyn Model> =
        Arc::new(Script::new(&[&say("a, b"), &call("weather", &[]), &say("b, a")]));
    let models = Arc::new(OneModel::new(Arc::clone(&model)));
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("coder.toml"), "name = \"coder\"")?;
    let (agents, weather) = (Agents::open(&[folder.path().to_owned()]), weather());
    let mut conversation = Agent::builder(model).agents(agents).models(models).conversation()?;
    conversation.execute("Which files are there?").await?;
    conversation.switch_to_agent("coder").await?;
    conversation.switch_to_model("class:strong")?;
    conversation.add_tool(weather)?;
    conversation.execute("Sort them.").await?;
    assert_eq!(conversation.messages().len(), 6);
    Ok(())
}

async fn add(user: AddUser, _: &serde_json::Value) -> Result<String, std::fmt::Error> {
    Ok(format!("{} ({})", user.name, user.age.unwrap_or_default()))
}

#[derive(Deserialize, JsonSchema)]
struct AddUser {
    /// The full name.
    name: String,
    age: Option<u8>,
}

#[tokio::test]
async fn a_tool() -> Done {
    let tool =
        Tool::new("add_user", "Adds a user", |user: AddUser, context: ToolContext| async move {
            Ok(add(user, context.run().context()).await?)
        });
    let agent = agent(&[&call("add_user", &["Ada", "36"]), &say("done")]).tool(tool).build()?;
    assert!(agent.execute("Add Ada.").await?.model_calls[0].calls[0].success);
    Ok(())
}

#[tokio::test]
async fn a_run_step_by_step() -> Done {
    let agent = agent(&[&call("file_list", &[]), &say("done")]).build()?;
    let mut runner = agent.runner("Sort the notes.");
    let reply = runner.step(StepOptions::new().execute(false)).await?;
    for call in &reply.calls {
        println!("{} {} {}", call.id, call.name, call.arguments);
    }
    runner.submit(vec![CallResult::success("done elsewhere")])?;
    assert_eq!(runner.step(StepOptions::new()).await?.text, "done");
    Ok(())
}

#[test]
fn each_example_of_the_manual_is_one_of_these() {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let (manual, own) =
        (include_str!("../../../../docs/agents.md"), plain(include_str!("manual.rs")));
    let blocks: Vec<&str> =
        manual.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 5);
    for block in blocks {
        // In this file, imports are at the top, and items are next to the functions.
        let parts = block.split("\n\n").filter(|part| !part.starts_with("use "));
        for part in parts {
            assert!(
                own.contains(&plain(part)),
                "docs/agents.md has an example that no test runs:\n{part}"
            );
        }
    }
}
