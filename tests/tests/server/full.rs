//! Tests a store that keeps as many bytes as it may.

use serde_json::json;
use wattle_agent::host::StoreLimits;

use crate::world::{World, message, post, store};

const MIB: u64 = 1 << 20;

/// Starts a server whose store has the given limits.
async fn limited(limits: StoreLimits) -> World {
    let store = store();
    let of = store.tenant().clone();
    World::on(store.file().clone().limited(limits).tenant(&of), |_| {}).await
}

#[tokio::test]
async fn a_run_that_reads_more_than_its_record_may_have_ends_with_the_reason() {
    let mut world = limited(StoreLimits { run: MIB, ..StoreLimits::default() }).await;
    let run = world.start(&json!({"prompt": "read"})).await;
    let program = r#"(for $i 0 40
  (fs.write "a.txt" (fmt "{} {}" $i (str.repeat "x" 100000)))
  (out (len (fs.read "a.txt"))))"#;
    world.question().await.say(&format!("ToolCall::Wat(```wat\n{program}\n```)"));
    // The program is stopped, and the model reads why.
    let question = world.question().await;
    assert!(question.last().contains("limits.run_store_mb"), "{}", question.last());
    let text = "y".repeat(200_000);
    question.say(&format!("ToolCall::Wat(```wat\n(out \"{text}\")\n```)"));
    // The turn with this answer does not fit into the record, so the run ends.
    let view = world.until(&run, "failed").await.to_string();
    assert!(view.contains("limits.run_store_mb"), "{view}");
    // The server goes on.
    let next = world.start(&json!({"prompt": "next"})).await;
    world.question().await.respond("fine");
    world.until(&next, "done").await;
}

#[tokio::test]
async fn a_tenant_that_is_full_gets_no_new_runs_until_it_deletes() {
    let mut world = limited(StoreLimits { tenant: MIB, ..StoreLimits::default() }).await;
    let mut runs = Vec::new();
    let refused = loop {
        let prompt = format!("{} {}", runs.len(), "m".repeat(60_000));
        let body = json!({"prompt": prompt}).to_string();
        let answer = world.api("POST /api/run", &body).await;
        if answer.head.status != 202 {
            break answer;
        }
        let run = answer.json()["id"].as_str().unwrap().to_owned();
        world.question().await.respond("fine");
        world.until(&run, "done").await;
        runs.push(run);
        assert!(runs.len() < 40);
    };
    let body = refused.json();
    refused.refused(507, "store_full");
    assert!(body.to_string().contains("limits.tenant_store_mb"), "{body}");
    assert!(body["error"]["hint"].as_str().unwrap().contains("wattle prune"), "{body}");
    let chat = world.ask(post(&message(&"m".repeat(60_000), "s"))).await;
    assert!(chat.body.contains("limits.tenant_store_mb"), "{}", chat.body);
}
