//! Tests background runs beyond the server's limit on active runs, and a draining server.

use serde_json::json;
use wattle_agent::host::machine::Message;

use crate::world::{World, bare, message, post, store};

#[tokio::test]
async fn runs_in_the_background_wait_in_the_queue_by_their_priority() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    let first = world.start(&json!({"prompt":"first"})).await;
    let question = world.question().await;
    let low = world.start(&json!({"prompt":"low","priority":"low"})).await;
    let high = world.start(&json!({"prompt":"high","priority":"high"})).await;
    for run in [&low, &high] {
        world.until(run, "queued").await;
    }
    // A client that waits for an answer is refused immediately.
    world.ask(post(&message("now", "s"))).await.refused(503, "overloaded");
    question.respond("one");
    world.until(&first, "done").await;
    for (run, prompt) in [(&high, "high"), (&low, "low")] {
        let question = world.question().await;
        assert!(question.last().contains(prompt), "{}", question.last());
        question.respond("more");
        world.until(run, "done").await;
    }
    let refused = world.api("POST /api/run", r#"{"prompt":"p","priority":"urgent"}"#).await;
    refused.refused(422, "invalid_field");
}

#[tokio::test]
async fn a_queued_run_can_be_followed_and_cancelled() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    world.start(&json!({"prompt":"first"})).await;
    let question = world.question().await;
    let kept = world.start(&json!({"prompt":"kept"})).await;
    let mut stream = world.follow(&kept, 0).await;
    question.respond("one");
    world.question().await.respond("two");
    let events = stream.events().await;
    assert!(events.iter().any(|event| event.to_string().contains("two")), "{events:?}");
    let cancelled = world.start(&json!({"prompt": "cancelled"})).await;
    let _question = world.question().await;
    let waiting = world.start(&json!({"prompt": "waiting"})).await;
    world.until(&waiting, "queued").await;
    for run in [&waiting, &cancelled] {
        let line = format!("DELETE /api/run/{run}");
        assert_eq!(world.api(&line, "").await.head.status, 202);
    }
    world.until(&waiting, "cancelled").await;
}

#[tokio::test]
async fn the_queue_is_limited() {
    let mut world = World::with(|settings| {
        settings.limits.runs = 1;
        settings.limits.queued = 1;
    })
    .await;
    world.start(&json!({"prompt":"first"})).await;
    let _question = world.question().await;
    world.start(&json!({"prompt":"second"})).await;
    let refused = world.api("POST /api/run", r#"{"prompt":"third"}"#).await;
    assert!(refused.head.get("retry-after").is_some());
    assert!(refused.refused(429, "queue_full").contains("1 runs"));
}

#[tokio::test]
async fn the_active_runs_of_a_tenant_are_limited() {
    let mut world = World::with(|settings| settings.limits.runs_per_tenant = Some(1)).await;
    world.start(&json!({"prompt":"first"})).await;
    let question = world.question().await;
    let second = world.start(&json!({"prompt":"second"})).await;
    world.until(&second, "queued").await;
    world.ask(post(&message("now", "s"))).await.refused(429, "too_many_runs");
    question.respond("one");
    world.question().await.respond("two");
    world.until(&second, "done").await;
}

#[tokio::test]
async fn messages_of_a_session_keep_their_order_in_the_queue() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    world.start(&json!({"prompt":"busy"})).await;
    let question = world.question().await;
    let mut runs = Vec::new();
    for prompt in ["one", "two", "three"] {
        runs.push(world.start(&json!({"prompt": prompt, "session_id": "s"})).await);
    }
    question.respond("done");
    for prompt in ["one", "two", "three"] {
        let question = world.question().await;
        assert!(question.last().contains(prompt), "{}", question.last());
        question.respond("next");
    }
    world.until(runs.last().unwrap(), "done").await;
}

#[tokio::test]
async fn a_server_that_drains_accepts_no_runs_and_still_answers() {
    let mut world = World::with(|_| {}).await;
    let run = world.start(&json!({"prompt":"first"})).await;
    let question = world.question().await;
    let drained = world.api("POST /admin/drain", "").await;
    assert_eq!((drained.head.status, &drained.json()["active"]), (202, &1.into()));
    assert_eq!(world.api("POST /admin/drain", "").await.head.status, 202);
    world.api("POST /api/run", r#"{"prompt":"p"}"#).await.refused(503, "stopping");
    world.ask(bare("GET /readyz", &["Host: localhost"])).await.refused(503, "stopping");
    assert_eq!(world.ask(bare("GET /healthz", &["Host: localhost"])).await.head.status, 200);
    if wattle_cases::postgres::is_switched() {
        // Servers that share a store hand their runs over.
        return;
    }
    question.respond("done");
    world.until(&run, "done").await;
}

#[tokio::test]
async fn the_pages_of_the_list_contain_each_run_once() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    let mut runs = Vec::new();
    for prompt in ["ended", "active"] {
        runs.push(world.start(&json!({"prompt": prompt})).await);
        if prompt == "ended" {
            world.question().await.respond("done");
            world.until(&runs[0], "done").await;
        }
    }
    let _question = world.question().await;
    for number in 0..5 {
        runs.push(world.start(&json!({"prompt": format!("queued {number}")})).await);
    }
    runs.reverse();
    for limit in 1..=8 {
        let (mut found, mut before) = (Vec::new(), String::new());
        loop {
            let line = format!("GET /api/runs?limit={limit}{before}");
            let page = world.api(&line, "").await.json();
            let page_runs = page["runs"].as_array().unwrap();
            assert!(page_runs.len() <= limit, "{page}");
            found.extend(page_runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
        assert_eq!(found, runs, "pages of {limit} runs");
    }
}

#[tokio::test]
async fn a_page_of_long_messages_has_fewer_runs() {
    let mut world = World::with(|settings| settings.limits.runs = 1).await;
    world.start(&json!({"prompt": "active"})).await;
    let _question = world.question().await;
    let long = "x".repeat(1_000_000);
    for _ in 0..8 {
        world.start(&json!({"prompt": long})).await;
    }
    let page = world.api("GET /api/runs?limit=500", "").await.json();
    assert_eq!(page["runs"].as_array().unwrap().len(), 5, "{}", page["next"]);
    let next = page["next"].as_str().unwrap();
    let rest = world.api(&format!("GET /api/runs?limit=500&before={next}"), "").await.json();
    assert_eq!(rest["runs"].as_array().unwrap().len(), 4, "{}", rest["next"]);
    assert_eq!(rest["next"], json!(null));
}

#[tokio::test]
async fn the_pages_of_sessions_contain_each_session_once() {
    let store = store();
    let long = format!("ü{}", "x".repeat(1 << 20));
    for (id, text) in [("a", "one\ntwo"), ("b", long.as_str()), ("c", " "), ("d:1", "four")] {
        store.extend(id, vec![Message::user(text), Message::assistant("ok")]).await.unwrap();
    }
    let world = World::on(store, |_| {}).await;
    for limit in 1..=4 {
        let (mut found, mut before) = (Vec::new(), String::new());
        loop {
            let line = format!("GET /api/sessions?limit={limit}{before}");
            let page = world.api(&line, "").await.json();
            let sessions = page["sessions"].as_array().unwrap();
            assert!(sessions.len() <= limit && sessions.iter().all(|one| one["messages"] == 2));
            let text =
                |one: &serde_json::Value, field: &str| one[field].as_str().unwrap().to_owned();
            found.extend(sessions.iter().map(|one| (text(one, "id"), text(one, "title"))));
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
        found.sort();
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c", "d:1"], "pages of {limit} sessions");
        assert_eq!((found[0].1.as_str(), found[2].1.as_str()), ("one", ""));
        assert!(found[1].1.starts_with("üxx"), "{}", found[1].1);
    }
    world.api("GET /api/sessions?before=x", "").await.refused(422, "invalid_field");
}
