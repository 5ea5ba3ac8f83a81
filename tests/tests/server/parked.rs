//! Tests runs that wait for a person's approval.

use std::time::Duration;

use futures_util::future::join;
use serde_json::json;
use wattle_agent::agents::Agents;
use wattle_agent::host::capability::policy::Policy;
use wattle_server::{App, ServerSettings, TenantParts};

use crate::api::wat;
use crate::client::Client;
use crate::world::{TOKEN, World, api, store};

/// Starts a server whose policy requires approval for each write.
async fn asking() -> World {
    asking_with(|_| {}).await
}

/// Starts a server whose policy requires approval for each write. `change` modifies its settings.
async fn asking_with(change: impl FnOnce(&mut ServerSettings)) -> World {
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    World::of(TenantParts::new(store()), |app: App| app.with_policy(policy), change).await
}

/// Returns a model's answer with a program that needs approval.
fn write() -> String {
    wat(r#"(fs.write "a.txt" "x")"#)
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
async fn a_completion_that_needs_an_approval_ends_with_the_page_where_it_is_answered() {
    let mut world = asking().await;
    let chat = json!({"model": "wattle", "messages": [{"role": "user", "content": "write"}]});
    let chat = api(TOKEN, "POST /v1/chat/completions", &chat.to_string());
    let address = world.address;
    for (proxy, page) in [("", "http://localhost/#/run/"), ("https", "https://localhost/#/run/")] {
        let header = format!("Host: localhost\r\nX-Forwarded-Proto: {proxy}\r\n");
        let request = chat.replacen("Host: localhost\r\n", &header, 1);
        assert!(proxy.is_empty() || request.contains("X-Forwarded-Proto: https"));
        let asked = tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            client.send(request).await;
            client.answer().await
        });
        world.question().await.say(&write());
        let answer = asked.await.unwrap();
        assert_eq!(answer.head.status, 200, "{answer:?}");
        let text = answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        assert!(text.starts_with("This run waits for a person:") && text.contains("write a.txt"));
        let (_, rest) = text.split_once(page).unwrap_or_else(|| panic!("{text}"));
        let run = rest.split('\n').next().unwrap();
        let approval = format!("POST /api/run/{run}/approvals/1.1");
        assert_eq!(world.api(&approval, r#"{"approve":true}"#).await.head.status, 200);
        world.question().await.respond("written");
        assert_eq!(world.until(run, "done").await["result"], "written");
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

#[tokio::test]
async fn an_answer_is_recorded_and_the_run_goes_on_once_a_slot_is_free() {
    let mut world = asking_with(|settings| settings.limits.runs = 1).await;
    let run = world.start(&json!({"prompt": "write"})).await;
    world.question().await.say(&write());
    world.until(&run, "parked").await;
    let busy = world.start(&json!({"prompt": "busy"})).await;
    let question = world.question().await;
    let answer = format!("POST /api/run/{run}/approvals/1.1");
    let answered = world.api(&answer, r#"{"approve":true}"#).await;
    assert_eq!((answered.head.status, &answered.json()["status"]), (200, &json!("running")));
    world.api(&answer, r#"{"approve":false}"#).await.refused(409, "not_waiting");
    world.no_question();
    question.respond("done");
    world.until(&busy, "done").await;
    world.question().await.respond("written");
    assert_eq!(world.until(&run, "done").await["result"], "written");
}

#[tokio::test]
async fn only_one_of_two_answers_to_a_question_is_accepted() {
    let mut world = asking().await;
    for _ in 0..20 {
        let run = world.start(&json!({"prompt": "write"})).await;
        world.question().await.say(&write());
        world.until(&run, "parked").await;
        let answer = format!("POST /api/run/{run}/approvals/1.1");
        let (approved, denied) = join(
            world.api(&answer, r#"{"approve":true}"#),
            world.api(&answer, r#"{"approve":false}"#),
        )
        .await;
        let is_approved = approved.head.status == 200;
        let refused = if is_approved { denied } else { approved };
        refused.refused(409, "not_waiting");
        let question = world.question().await;
        assert_eq!(question.last().contains("denied"), !is_approved, "{}", question.last());
        question.respond("done");
        world.until(&run, "done").await;
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_when_it_is_about_to_be_parked_ends() {
    let mut world = asking().await;
    for round in 0..40 {
        let run = world.start(&json!({"prompt": "write"})).await;
        world.question().await.say(&write());
        tokio::time::sleep(Duration::from_micros(250 * round)).await;
        let cancelled = world.api(&format!("DELETE /api/run/{run}"), "").await;
        assert_eq!(cancelled.head.status, 202, "{cancelled:?}");
        world.until(&run, "cancelled").await;
    }
}

/// Starts a run that writes a file in the session `a`, which the policy asks about.
async fn start_writing(world: &mut World, agent: &str) -> String {
    let body = json!({"prompt": "write", "session_id": "a", "agent": agent});
    let run = world.start(&body).await;
    world.question().await.say(&write());
    run
}

/// Approves a run's first call for the rest of the session.
async fn approve_session(world: &World, run: &str) {
    world.until(run, "parked").await;
    let body = json!({"approve": true, "scope": "session"}).to_string();
    let answer = world.api(&format!("POST /api/run/{run}/approvals/1.1"), &body).await;
    assert_eq!(answer.head.status, 200);
}

#[tokio::test]
async fn an_approval_for_the_session_ends_with_the_session() {
    let mut world = asking().await;
    let first = start_writing(&mut world, "default").await;
    approve_session(&world, &first).await;
    // The first run is parked again, now for a file that the approval does not cover.
    world.question().await.say(&wat(r#"(fs.write "b.txt" "x")"#));
    world.until(&first, "parked").await;
    assert_eq!(world.api("DELETE /api/sessions/a", "").await.head.status, 204);

    // Another session with the same id is asked, and the runs of the first one are gone.
    let second = start_writing(&mut world, "default").await;
    world.until(&second, "parked").await;
    for rest in ["approvals/2.1", "fork"] {
        let body = if rest == "fork" { json!({"step": 2}) } else { json!({"approve": true}) };
        let line = format!("POST /api/run/{first}/{rest}");
        world.api(&line, &body.to_string()).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn an_approval_for_the_session_does_not_answer_for_another_agent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other.toml"), "name = \"other\"\n").unwrap();
    let agents = Agents::open(&[folder.path().to_owned()]);
    let policy = Policy::new(Vec::new(), vec!["write:*".parse().unwrap()], Vec::new());
    let make = |app: App| app.with_policy(policy).with_agents(agents);
    let mut world = World::of(TenantParts::new(store()), make, |_| {}).await;
    let run = start_writing(&mut world, "default").await;
    approve_session(&world, &run).await;
    world.question().await.respond("done");
    world.until(&run, "done").await;
    let run = start_writing(&mut world, "other").await;
    world.until(&run, "parked").await;
}

#[tokio::test]
async fn a_completion_that_waits_for_a_person_ends_with_a_link_and_its_run_goes_on() {
    let mut world = asking().await;
    for (route, field) in [("chat/completions", "messages"), ("responses", "input")] {
        for stream in [false, true] {
            let message = json!([{"role": "user", "content": format!("write {route} {stream}")}]);
            let body = json!({"model": "wattle", field: message, "stream": stream});
            let mut client = world.client().await;
            client
                .send(crate::world::api(
                    crate::world::TOKEN,
                    &format!("POST /v1/{route}"),
                    &body.to_string(),
                ))
                .await;
            world.question().await.say(&write());
            let text = if stream {
                assert_eq!(client.head().await.status, 200);
                let mut text = String::new();
                while let Some(data) = client.data().await {
                    text += &data;
                }
                text
            } else {
                client.answer().await.body
            };
            let run = world.runs().await.swap_remove(0);
            assert!(
                text.contains("write a.txt") && text.contains(&format!("/#/run/{run}")),
                "{text}"
            );
            world.until(&run, "parked").await;
            let answer = format!("POST /api/run/{run}/approvals/1.1");
            assert_eq!(world.api(&answer, r#"{"approve":true}"#).await.head.status, 200);
            world.question().await.respond("done");
            assert_eq!(world.until(&run, "done").await["result"], "done");
        }
    }
}

/// Creates a token of the server's own tenant.
async fn token(world: &World) -> String {
    let created = world.api("POST /api/tokens", r#"{"name":"n","scope":"run"}"#).await.json();
    created["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_parked_run_of_a_revoked_token_waits_for_an_operator() {
    let mut world = asking().await;
    let token = token(&world).await;
    let started = world.ask(api(&token, "POST /api/run", r#"{"prompt":"write"}"#)).await.json();
    let run = started["id"].as_str().unwrap().to_owned();
    world.question().await.say(&write());
    world.until(&run, "parked").await;
    assert_eq!(world.api("DELETE /api/tokens/n", "").await.head.status, 204);
    let line = format!("POST /api/run/{run}/approvals/1.1");
    assert_eq!(world.api(&line, r#"{"approve":true}"#).await.head.status, 200);
    loop {
        let view = world.until(&run, "parked").await;
        if view["reason"].as_str().is_some_and(|reason| reason.contains("revoked")) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.no_question();
    let released = world.api(&format!("POST /api/run/{run}/release"), "").await;
    assert_eq!(released.head.status, 202, "{}", released.body);
    world.question().await.respond("written");
    world.until(&run, "done").await;
}

#[tokio::test]
async fn a_fork_belongs_to_the_token_that_asked_for_it() {
    let mut world = asking().await;
    let token = token(&world).await;
    let started = world.ask(api(&token, "POST /api/run", r#"{"prompt":"m"}"#)).await.json();
    let run = started["id"].as_str().unwrap().to_owned();
    world.question().await.respond("done");
    world.until(&run, "done").await;
    assert_eq!(world.api("DELETE /api/tokens/n", "").await.head.status, 204);
    let forked = world.api(&format!("POST /api/run/{run}/fork"), r#"{"step":0}"#).await.json();
    world.question().await.respond("again");
    world.until(forked["id"].as_str().unwrap(), "done").await;
}

#[tokio::test]
async fn a_queued_run_of_a_revoked_token_does_not_begin() {
    let mut world = asking_with(|settings| settings.limits.runs = 1).await;
    let token = token(&world).await;
    let first = world.start(&json!({"prompt": "first"})).await;
    let question = world.question().await;
    let started = world.ask(api(&token, "POST /api/run", r#"{"prompt":"second"}"#)).await.json();
    let second = started["id"].as_str().unwrap().to_owned();
    world.until(&second, "queued").await;
    assert_eq!(world.api("DELETE /api/tokens/n", "").await.head.status, 204);
    question.respond("done");
    world.until(&first, "done").await;
    let ended = world.until(&second, "failed").await;
    assert!(ended["result"].as_str().unwrap().contains("revoked"), "{ended}");
    world.no_question();
}
