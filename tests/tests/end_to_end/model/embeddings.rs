//! Tests requests for embeddings.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use wattle_agent::model::{EndpointSettings, Model, ModelErrorKind, RemoteModel, resolve};
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::Usage;
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, client, quick};

fn answer(vector: &[f64]) -> Answer {
    let body = json!({
        "data": [{"index": 0, "embedding": vector}],
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    });
    Answer::body(body.to_string())
}

#[tokio::test]
async fn a_text_is_embedded_by_the_embedding_model() {
    let provider = Provider::start([answer(&[0.25, -1.5, 3e-9])]);
    let base = provider.base_url();
    let settings = EndpointSettings {
        base_url: Some(&base),
        model: Some("m"),
        embed_model: Some("small-embedder"),
        ..Default::default()
    };
    let endpoint = resolve(&settings, |_| None).unwrap();
    let model = RemoteModel::new(endpoint, &Egress::new(Policy::default()), quick()).unwrap();
    let embedded = model.embed("a text").await.unwrap();
    assert_eq!(
        (embedded.vector, embedded.usage),
        (vec![0.25, -1.5, 3e-9], Usage { prompt: 7, ..Usage::default() })
    );
    let request = &provider.requests()[0];
    assert!(request.path.ends_with("/embeddings"), "{}", request.path);
    assert_eq!(request.json(), json!({"model": "small-embedder", "input": "a text"}));
}

#[tokio::test]
async fn temporary_failures_are_retried_and_permanent_ones_are_reported() {
    let provider = Provider::start([Answer::status(503), answer(&[1.0])]);
    assert_eq!(client(&provider).embed("x").await.unwrap().vector, [1.0]);
    assert_eq!(provider.requests().len(), 2);
    for (answers, kind, words) in [
        (
            vec![Answer::status(404)],
            ModelErrorKind::NotFound,
            "/embeddings has no model `test-model` (404)",
        ),
        (
            vec![Answer::body(json!({"error": {"message": "no such input"}}).to_string())],
            ModelErrorKind::Request,
            "no such input",
        ),
        (
            vec![Answer::body("{}"), Answer::body("[]"), Answer::body("no JSON")],
            ModelErrorKind::Malformed,
            "returned no embedding",
        ),
        (
            vec![Answer::body(json!({"data": [{"embedding": ["a"]}]}).to_string()); 3],
            ModelErrorKind::Malformed,
            "returned no embedding",
        ),
        (
            vec![Answer::status(401).with_body(format!("bad key {KEY}"))],
            ModelErrorKind::Key,
            "rejected the key",
        ),
        (
            vec![answer(&vec![1.0; 16_385])],
            ModelErrorKind::Malformed,
            "returned no embedding: it has 16385 dimensions, more than 16384",
        ),
        (
            vec![answer(&vec![1.0; 300_000])],
            ModelErrorKind::Malformed,
            "returned no embedding: it is larger than the limit of 1048576 bytes",
        ),
    ] {
        let next = AtomicUsize::new(0);
        let provider = Provider::answering(move |_| {
            answers[next.fetch_add(1, Ordering::Relaxed) % answers.len()].clone()
        });
        let why = client(&provider).embed("x").await.unwrap_err();
        assert_eq!(why.kind(), kind, "{why}");
        assert!(why.to_string().contains(words) && !why.to_string().contains(KEY), "{why}");
    }
}
