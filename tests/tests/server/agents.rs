//! Tests declared agents over HTTP.

use serde_json::{Value as Json, json};
use wattle_agent::agents::Agents;
use wattle_agent::host::catalog::Catalog;
use wattle_server::{App, TenantParts};

use crate::world::{TOKEN, World, api, store};

async fn world() -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let clerk = "name = \"clerk\"\ntitle = \"The clerk\"\nprompt = \"You are a clerk.\"\nmax_steps \
                 = 60\n";
    std::fs::write(folder.path().join("clerk.toml"), clerk).unwrap();
    let broken = "name = \"broken\"\ntools = [\"nothing\"]\n";
    std::fs::write(folder.path().join("broken.toml"), broken).unwrap();
    let agents = Agents::open(&[folder.path().to_owned()]);
    let parts = TenantParts::new(store());
    (World::of(parts, |app| app.with_agents(agents), |_| {}).await, folder)
}

#[tokio::test]
async fn a_run_is_one_of_the_agent_that_it_names() {
    let (mut world, _folder) = world().await;
    let body = json!({"prompt": "sort", "agent": "clerk"});
    let run = world.start(&body).await;
    let question = world.question().await;
    let prompt = &question.messages[0].content;
    assert!(prompt.starts_with("You are a clerk.") && prompt.contains("At most 60 calls"));
    question.respond("sorted");
    let run = world.until(&run, "done").await;
    assert_eq!((&run["agent"], &run["result"]), (&json!("clerk"), &json!("sorted")));
}

#[tokio::test]
async fn the_agents_are_listed_and_are_models_for_other_clients() {
    let (mut world, _folder) = world().await;
    let mut client = world.client().await;
    client.send(api(TOKEN, "GET /api/agents", "")).await;
    let listed = client.answer().await.json();
    let names: Vec<&Json> =
        listed["agents"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["broken", "clerk", "default"]);
    client.send(api(TOKEN, "GET /v1/models", "")).await;
    let models = client.answer().await.json();
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "clerk"));
    let body = json!({"model": "clerk", "messages": [{"role": "user", "content": "go"}]});
    client.send(api(TOKEN, "POST /v1/chat/completions", &body.to_string())).await;
    let question = world.question().await;
    assert!(question.messages[0].content.starts_with("You are a clerk."));
    question.respond("yes");
    assert_eq!(client.answer().await.json()["choices"][0]["message"]["content"], "yes");
}

#[tokio::test]
async fn an_agent_that_cannot_be_used_is_refused_before_a_run_starts() {
    let (world, _folder) = world().await;
    for (agent, why) in [
        ("clark", "there is no agent `clark`"),
        ("broken", "no program"),
        ("", "there is no agent"),
    ] {
        for (route, body) in [
            ("POST /api/run", json!({"prompt": "go", "agent": agent})),
            ("POST /chat", json!({"message": "go", "agent": agent})),
            ("POST /api/integrations", json!({"name": "shop", "agent": agent})),
        ] {
            let mut client = world.client().await;
            client.send(api(TOKEN, route, &body.to_string())).await;
            let answer = client.answer().await;
            assert_eq!(answer.head.status, 422, "{route} {agent}");
            let message = answer.json()["error"]["message"].to_string();
            assert!(message.contains(why), "{message}");
        }
    }
}

#[tokio::test]
async fn the_policy_of_a_replaced_default_agent_binds_programs_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let default = "name = \"default\"\n[policy]\ndeny = [\"write:*\", \"kv\"]\n";
    std::fs::write(folder.path().join("default.toml"), default).unwrap();
    let agents = Agents::open(&[folder.path().to_owned()]);
    let (parts, programs) = (TenantParts::new(store()), Catalog::built_in().into());
    let with_agents = |app: App| app.with_agents(agents);
    let world = World::with_programs(programs, parts, with_agents, |_| {}).await;
    for (route, body) in [
        ("POST /api/exec", json!({"body": "(fs.write \"a.txt\" \"x\")"})),
        ("POST /api/exec", json!({"body": "(kv.set \"n\" \"7\")"})),
        ("POST /api/catalog/file_write/run", json!({"args": ["a.txt", "x"]})),
    ] {
        let done = world.api(route, &body.to_string()).await.json();
        let error = done["error"].as_str().unwrap_or_default();
        assert!(error.contains("denied by the rule"), "{route}: {done}");
    }
    let allowed = world.api("POST /api/exec", "{\"body\": \"(ret (str.upper \\\"a\\\"))\"}");
    assert_eq!(allowed.await.json()["success"], true);
}
