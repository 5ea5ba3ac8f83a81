//! Tests runs that wait for a person's approval.

use serde_json::json;
use wattle_agent::capability::policy::Policy;
use wattle_server::{App, TenantParts};

use crate::api::wat;
use crate::world::{World, store};

/// Starts a server whose policy requires approval for each write.
async fn asking() -> World {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    World::of(TenantParts::new(store()), |app: App| app.with_policy(policy), |_| {}).await
}

#[tokio::test]
async fn a_question_parks_the_run_until_a_client_answers() {
    let mut world = asking().await;
    for (session, approve) in [("a", true), ("b", false)] {
        let run = world.start(&json!({"prompt": "write", "session_id": session})).await;
        world.question().await.say(&wat(r#"(fs.write "a.txt" "x")"#));
        let view = world.until(&run, "parked").await;
        let waiting = &view["waiting"][0];
        assert_eq!(waiting["call"], "1.1", "{view}");
        assert!(waiting["question"].as_str().unwrap().contains("write a.txt"), "{view}");
        // A client that follows the parked run receives the question and then the later events.
        let mut client = world.follow(&run, 0).await;
        let mut seen = Vec::new();
        while seen.last() != Some(&json!("parked")) {
            seen.push(client.event().await.unwrap()["type"].clone());
        }
        let answer = format!("POST /api/run/{run}/approvals/1.2");
        world.api(&answer, r#"{"approve":true}"#).await.refused(409, "not_waiting");
        let answer = format!("POST /api/run/{run}/approvals/1.1");
        let body = json!({"approve": approve, "reason": "not on Sundays"}).to_string();
        assert_eq!(world.api(&answer, &body).await.head.status, 200);
        let question = world.question().await;
        let denied = question.last().contains("the user denied it: not on Sundays");
        assert_eq!(denied, !approve, "{}", question.last());
        question.respond("done");
        let rest = client.events().await;
        let kinds: Vec<&str> = rest.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds.last(), Some(&"response"), "{kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| **kind == "tool_start").count(), 0, "no event twice");
        world.api(&answer, &body).await.refused(409, "not_waiting");
    }
}

#[tokio::test]
async fn an_approval_for_the_session_covers_its_later_programs_only() {
    let mut world = asking().await;
    let write = wat(r#"(fs.write "a.txt" "x")"#);
    let run = world.start(&json!({"prompt": "write", "session_id": "a"})).await;
    world.question().await.say(&write);
    world.until(&run, "parked").await;
    let body = json!({"approve": true, "scope": "session"}).to_string();
    world.api(&format!("POST /api/run/{run}/approvals/1.1"), &body).await;
    world.question().await.say(&write);
    world.question().await.respond("both ran");
    world.until(&run, "done").await;

    let other = world.start(&json!({"prompt": "write", "session_id": "b"})).await;
    world.question().await.say(&write);
    world.until(&other, "parked").await;
    assert_eq!(world.api(&format!("DELETE /api/run/{other}"), "").await.head.status, 202);
    world.until(&other, "cancelled").await;
    world.no_question();
}
