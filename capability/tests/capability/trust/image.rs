//! Tests of images from an endpoint: accepted images, rejected images, and the budget.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use wattle_capability::egress::{Egress, Policy, Url};
use wattle_capability::image::{Endpoint, Image};
use wattle_capability::secrets::ApiKey;
use wattle_rt::Grants;

use super::site::{Server, serve};
use crate::world::World;

const PNG: &[u8] = include_bytes!("../../../../agent/src/scene.png");
const KEY: &str = "sk-image-0123456789";

fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Done\r\ncontent-type: application/json\r\ncontent-length: \
         {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn picture(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    answer(200, &json!({"data": [{"b64_json": encoded}]}).to_string())
}

fn grants(world: &World, server: &Server) -> Arc<Grants> {
    let key = ApiKey::new(KEY).unwrap();
    let base = Url::parse(&server.url("/v1/")).unwrap();
    let endpoint = Endpoint::new(
        &Egress::new(Policy::default()),
        &base,
        Some("painter".to_owned()),
        Some(key),
    )
    .unwrap();
    Arc::new((*world.grants()).clone().with(Image::new(Some(Arc::new(endpoint)))))
}

async fn make(
    world: &World,
    grants: &Arc<Grants>,
    prompt: &str,
    path: &str,
) -> Result<String, String> {
    let outcome = world
        .run_granted("(ret (image.make? (arg 0) (arg 1)))", &[prompt, path], grants)
        .await
        .unwrap();
    match outcome.failure {
        None => Ok(outcome.texts().concat()),
        Some(failure) => Err(failure.failure.to_string()),
    }
}

#[tokio::test]
async fn an_image_is_requested_and_written() {
    let world = World::new();
    let server = serve(&[picture(PNG)]).await;
    let grants = grants(&world, &server);
    assert_eq!(
        make(&world, &grants, " a lighthouse ", "art/a.png").await.unwrap(),
        "wrote art/a.png (67 bytes, PNG)"
    );
    assert_eq!(world.files.read("art/a.png").unwrap(), PNG);
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /v1/images/generations HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {KEY}\r\n")), "{request}");
    let body: Json = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body, json!({"model": "painter", "prompt": "a lighthouse", "n": 1}));
}

#[tokio::test]
async fn an_image_at_another_host_is_fetched_through_the_guard_and_without_the_key() {
    let world = World::new();
    let listed = |url: &str| answer(200, &json!({"data": [{"url": url}]}).to_string());
    let other = serve(&[]).await;
    let server = serve(&[listed(&other.url("/a.png"))]).await;
    let why = make(&world, &grants(&world, &server), "x", "a.png").await.unwrap_err();
    assert!(why.contains("refused: 127.0.0.1 is a loopback address"), "{why}");
    assert!(other.requests().is_empty());
    let server = serve(&[listed("file:///etc/passwd")]).await;
    let why = make(&world, &grants(&world, &server), "x", "a.png").await.unwrap_err();
    assert!(why.contains("the scheme `file` is not"), "{why}");
}

#[tokio::test]
async fn two_attempts_are_the_maximum_even_if_they_fail() {
    let world = World::new();
    let server = serve(&[answer(500, "{}"), picture(PNG), picture(PNG)]).await;
    let grants = grants(&world, &server);
    // A call without a request is not counted.
    for (prompt, path, words) in [
        ("", "a.png", "the prompt is empty"),
        ("x", "../a.png", "../a.png is outside the run's folder; only files in it can be written"),
        ("x", "a.html", "an image's file name must end with"),
        ("x", ".git/a.png", "belongs to a repository"),
    ] {
        let why = make(&world, &grants, prompt, path).await.unwrap_err();
        assert!(why.contains(words), "{path}: {why}");
    }
    assert!(make(&world, &grants, "x", "a.png").await.unwrap_err().contains("status 500"));
    assert!(make(&world, &grants, "x", "a.png").await.is_ok());
    for _ in 0..2 {
        let why = make(&world, &grants, "x", "a.png").await.unwrap_err();
        assert!(
            why.ends_with(
                ": image budget exhausted (2 per run); plan images before you generate them"
            ),
            "{why}"
        );
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn other_formats_are_not_written() {
    let world = World::new();
    for (given, words) in [
        (picture(b"<script>alert(1)</script>"), "other than PNG, JPEG, WebP or GIF"),
        (picture(b""), "other than PNG, JPEG, WebP or GIF"),
        (answer(200, "<html>"), "returned no image"),
        (answer(200, r#"{"data":[]}"#), "returned no image"),
        (answer(200, r#"{"data":[{"b64_json":"!!"}]}"#), "returned no image"),
        (answer(200, r#"{"data":[{"b64_json":5}]}"#), "returned no image"),
        (
            answer(401, &format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#)),
            "status 401: bad key ***",
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://evil.example/\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
            "redirects to",
        ),
    ] {
        let server = serve(&[given]).await;
        let why = make(&world, &grants(&world, &server), "x", "never.png").await.unwrap_err();
        assert!(why.contains(words) && !why.contains(KEY), "{words}: {why}");
        assert!(world.files.read("never.png").is_err());
    }
}

#[tokio::test]
async fn without_an_endpoint_the_failure_names_the_setting() {
    let world = World::new();
    let grants = Arc::new((*world.grants()).clone().with(Image::new(None)));
    let why = make(&world, &grants, "x", "a.png").await.unwrap_err();
    assert!(why.starts_with("EACCESS") && why.contains("`image.base_url`"), "{why}");
}
