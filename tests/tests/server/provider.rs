//! Tests servers whose model's provider fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use wattle_agent::Settings;
use wattle_agent::model::{EndpointSettings, RemoteModel, Timeouts, resolve};
use wattle_capability::egress::{Egress, Policy};
use wattle_tests::provider::{Answer, Provider};

use crate::world::{World, bare};

const RUNS: usize = 50;

async fn world(provider: &Provider) -> World {
    let timeouts = Timeouts {
        retry_for: Duration::from_secs(60),
        backoff: Duration::from_millis(20),
        max_delay: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let base = provider.base_url();
    let endpoint =
        EndpointSettings { base_url: Some(&base), model: Some("m"), ..EndpointSettings::default() };
    let endpoint = resolve(&endpoint, |_| None).unwrap();
    let model = RemoteModel::new(endpoint, &Egress::new(Policy::default()), timeouts).unwrap();
    World::asking(Arc::new(model), Settings { timeouts, ..Settings::default() }).await
}

/// Returns the state of the model that the server's readiness reports.
async fn model_state(world: &World) -> String {
    let answer = world.ask(bare("GET /readyz?verbose", &["Host: localhost"])).await;
    assert_eq!(answer.head.status, 200, "{}", answer.body);
    answer.json()["model"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_the_provider_ends_no_run() {
    let is_over = Arc::new(AtomicBool::new(false));
    let provider = Provider::answering({
        let is_over = Arc::clone(&is_over);
        move |_| match is_over.load(Ordering::Relaxed) {
            true => Answer::text("ToolCall::Response(\"fine\")"),
            false => Answer::status(503),
        }
    });
    let world = world(&provider).await;
    assert_eq!(model_state(&world).await, "ok");
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(world.start(&json!({"prompt": "hello"})).await);
    }
    // The last run waits, so all others do, too.
    let last = format!("GET /api/run/{}", runs[RUNS - 1]);
    let failure = loop {
        let view = world.api(&last, "").await.json();
        assert_ne!(view["status"], "failed", "{view}");
        if let Some(failure) = view["provider_failure"].as_str() {
            break failure.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(failure.contains("overloaded (503)"), "{failure}");
    assert_eq!(model_state(&world).await, "unavailable");
    let metrics = world.api("GET /metrics", "").await.body;
    let labels = format!("{{endpoint=\"{}\",model=\"m\"}} 1", provider.base_url());
    assert!(metrics.contains(&format!("wattle_provider_waits{labels}")), "{metrics}");
    assert!(metrics.contains("model=\"m\",kind=\"unavailable\"}"), "{metrics}");
    is_over.store(true, Ordering::Relaxed);
    for run in &runs {
        world.until(run, "done").await;
    }
    let requests = provider.requests().len();
    assert!(requests < 3 * RUNS, "{requests} requests");
    assert_eq!(model_state(&world).await, "ok");
    let metrics = world.api("GET /metrics", "").await.body;
    assert!(metrics.contains("wattle_runs_ended_total{status=\"done\"} 50"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_fails_each_run_at_once() {
    let provider = Provider::answering(|_| Answer::status(401));
    let world = world(&provider).await;
    for _ in 0..3 {
        let run = world.start(&json!({"prompt": "hello"})).await;
        world.until(&run, "failed").await;
    }
    assert_eq!(provider.requests().len(), 3);
    assert_eq!(model_state(&world).await, "key_rejected");
    let metrics = world.api("GET /metrics", "").await.body;
    assert!(metrics.contains("model=\"m\",kind=\"key\"} 3"), "{metrics}");
    assert!(metrics.contains("wattle_runs_ended_total{status=\"failed\"} 3"), "{metrics}");
}

/// Returns a provider whose model has a context window of 40,000 bytes.
fn narrow() -> Provider {
    Provider::answering(|request| {
        let bytes: usize = request.messages().iter().map(String::len).sum();
        let last = request.messages().pop().unwrap_or_default();
        if bytes > 40_000 {
            let words = format!("prompt is too long: {bytes} tokens > 40000 maximum");
            Answer::status(400).with_body(json!({"error": {"message": words}}).to_string())
        } else if last.contains("assistant: ") {
            Answer::text("They spoke.")
        } else {
            Answer::text("ToolCall::Response(\"fine\")")
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_beyond_the_models_window_goes_on_and_is_compacted() {
    let provider = narrow();
    let world = world(&provider).await;
    let prompt = format!("hello {}", "x".repeat(9_000));
    let mut left_out = 0;
    for _ in 0..9 {
        let run = world.start(&json!({"prompt": prompt, "session_id": "s"})).await;
        world.until(&run, "done").await;
        let events = world.api(&format!("GET /api/run/{run}/events"), "").await.json();
        let events = events["events"].as_array().unwrap().clone();
        left_out += events.iter().filter(|event| event["type"] == "left_out").count();
    }
    assert!(left_out >= 3, "{left_out}");
    let session = world.api("GET /api/sessions/s", "").await.json();
    assert_eq!(session["messages"].as_array().unwrap().len(), 18, "nothing is lost");
    let compacted = world.api("POST /api/sessions/s/compact", "").await;
    assert_eq!(compacted.head.status, 200, "{}", compacted.body);
    assert_eq!(compacted.json()["summary"], "They spoke.");
    assert_eq!(compacted.json()["replaced"], 16);
    let session = world.api("GET /api/sessions/s", "").await.json();
    assert_eq!(session["messages"].as_array().unwrap().len(), 4, "{session}");
    let again = world.api("POST /api/sessions/s/compact", "").await.json();
    assert_eq!(again["replaced"], 2, "{again}");
    world.api("POST /api/sessions/none/compact", "").await.refused(404, "not_found");
}
