//! Tests the server's limits with clients that send too much or too slowly.

use std::time::Duration;

use crate::client::{Client, NEVER};
use crate::world::{TOKEN, World, api, bare, message, post};

#[tokio::test]
async fn bodies_are_limited() {
    let mut world = World::new().await;
    let fits = message(&"x".repeat((1 << 20) - 100), "s");
    let mut client = world.client().await;
    client.send(post(&fits)).await;
    assert_eq!(client.head().await.status, 200);
    drop(world.question().await);

    let words =
        world.ask(post(&message(&"x".repeat(1 << 20), "s"))).await.refused(413, "body_too_large");
    assert!(words.contains("1048576 bytes"), "{words}");
    // A body with an excessive `Content-Length` is refused as soon as the head has been read.
    let announced = post("").replace("Content-Length: 0", "Content-Length: 99999999999");
    world.ask(announced).await.refused(413, "body_too_large");
    // A body without a declared length is refused as soon as it exceeds the limit.
    let mut chunked = post("").replace("Content-Length: 0", "Transfer-Encoding: chunked");
    (0..20).for_each(|_| chunked.push_str(&format!("10000\r\n{}\r\n", "x".repeat(0x10000))));
    world.ask(chunked).await.refused(413, "body_too_large");
}

#[tokio::test]
async fn heads_are_limited() {
    let world = World::new().await;
    let long = format!("X-Long: {}", "x".repeat(40 << 10));
    world
        .ask(bare("GET /healthz", &["Host: localhost", &long]))
        .await
        .refused(431, "headers_too_large");
    let many = vec!["X-Many: x"; 200];
    world.ask(bare("GET /healthz", &many)).await.refused(431, "headers_too_large");
    let path = format!("GET /{}", "x".repeat(70 << 10));
    world.ask(bare(&path, &["Host: localhost"])).await.refused(431, "headers_too_large");
}

#[tokio::test]
async fn a_request_that_is_not_http_gets_an_error() {
    let world = World::new().await;
    for bytes in [
        &b"hello\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    ] {
        world.ask(bytes).await.refused(400, "bad_request");
    }
}

#[tokio::test]
async fn slow_requests_are_ended() {
    let mut world = World::with(|settings| {
        settings.limits.head_time = Duration::from_millis(50);
        settings.limits.body_time = Duration::from_millis(50);
    })
    .await;
    // The head never ends, although data keeps arriving.
    let mut client = world.client().await;
    client.send("GET /healthz HTTP/1.1\r\n").await;
    let drip = async {
        loop {
            client.send_in_vain("X-Drip: x\r\n").await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_millis(200), drip).await.unwrap_err();
    let words = client.answer().await.refused(408, "request_timeout");
    assert!(words.contains("head"), "{words}");
    client.closed().await;

    let mut client = world.client().await;
    client.send(post("{}").replace("Content-Length: 2", "Content-Length: 3")).await;
    let words = client.answer().await.refused(408, "request_timeout");
    assert!(words.contains("body"), "{words}");
    client.closed().await;
    world.no_question();
}

#[tokio::test]
async fn a_connection_that_idles_is_closed() {
    let world = World::with(|settings| settings.limits.head_time = Duration::from_millis(50)).await;
    let mut client = world.client().await;
    client.send(bare("GET /healthz", &["Host: localhost"])).await;
    assert_eq!(client.answer().await.head.status, 200);
    client.closed().await;
}

#[tokio::test]
async fn concurrent_runs_are_limited() {
    let mut world = World::with(|settings| settings.limits.runs = 2).await;
    let mut first = world.chat(&message("one", "s")).await;
    let question = world.question().await;
    let _second = world.chat(&message("two", "s")).await;
    let answer = world.ask(post(&message("three", "t"))).await;
    assert!(answer.refused(503, "overloaded").contains("2 runs"));
    question.respond("one");
    first.events().await;
    // The slot of a finished run is free again.
    world.chat(&message("four", "t")).await;
}

#[tokio::test]
async fn waiting_messages_of_a_session_are_limited() {
    let mut world = World::with(|settings| settings.limits.waiting = 1).await;
    let _first = world.chat(&message("one", "s")).await;
    let _question = world.question().await;
    let _second = world.chat(&message("two", "s")).await;
    world.ask(post(&message("three", "s"))).await.refused(429, "session_busy");
    world.chat(&message("four", "t")).await;
}

#[tokio::test]
async fn connections_are_limited() {
    let world = World::with(|settings| {
        settings.limits.connections = 2;
        settings.allowed_origins = vec!["https://app.example".parse().unwrap()];
    })
    .await;
    let [page, health] = ["GET /", "GET /healthz"].map(|line| bare(line, &["Host: localhost"]));
    let (mut first, mut second) = (world.client().await, world.client().await);
    first.send(api(TOKEN, "POST /api/tokens", r#"{"name":"n","scope":"admin"}"#)).await;
    let token = first.answer().await.json()["token"].as_str().unwrap().to_owned();
    second.send(&health).await;
    assert_eq!(second.answer().await.head.status, 200);
    world.ask(&page).await.refused(503, "overloaded");
    // A page of a listed origin can read the error.
    let origin = "Origin: https://app.example";
    let listed = world.ask(bare("GET /", &["Host: localhost", origin])).await;
    listed.refused(503, "overloaded");
    let allowed = listed.head.get("access-control-allow-origin");
    assert_eq!(allowed, Some("https://app.example"));
    world.ask(api(&token, "GET /api/runs", "")).await.refused(503, "overloaded");
    // Some connections are reserved for the server's state and for the server's own token.
    for path in ["/healthz", "/readyz"] {
        let answer = world.ask(bare(&format!("GET {path}"), &["Host: localhost"])).await;
        assert_eq!(answer.head.status, 200);
        assert_eq!(answer.head.get("connection"), Some("close"));
    }
    assert_eq!(world.ask(api(&token, "GET /metrics", "")).await.head.status, 200);
    assert_eq!(world.api("GET /api/runs", "").await.head.status, 200);
    drop(first);
    // The slot of a closed connection is free again.
    while world.ask(&page).await.head.status != 200 {}
}

#[tokio::test]
async fn a_client_that_expects_100_continue_is_refused_before_it_sends() {
    let world = World::new().await;
    let head = format!(
        "POST /chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nExpect: \
         100-continue\r\nContent-Length: 2000000\r\n\r\n"
    );
    world.ask(head).await.refused(413, "body_too_large");
}

#[tokio::test]
async fn a_client_that_falls_behind_gets_the_pieces_joined() {
    let mut world = World::new().await;
    let mut client = world.chat(&message("talk", "s")).await;
    world.question().await.say(&"x|".repeat(20_000));
    let events = client.events().await;
    let text: String = events
        .iter()
        .filter(|event| event["type"] == "delta")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "x|".repeat(20_000));
    assert_eq!(events.last().unwrap()["type"], "response");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let mut world = World::with(|settings| {
        settings.limits.write_time = Duration::from_millis(50);
        settings.limits.connections = 1;
    })
    .await;
    let mut client = Client::connect_with_small_buffer(world.address).await;
    client.send(post(&message("talk", "s"))).await;
    assert_eq!(client.head().await.status, 200);
    // The answer is larger than the operating system's buffers for a connection.
    world.question().await.say(&format!("{}|", "x".repeat(4_000)).repeat(1_000));
    let page = bare("GET /", &["Host: localhost"]);
    let freed = async { while world.ask(&page).await.head.status != 200 {} };
    tokio::time::timeout(NEVER, freed).await.expect("the connection stays open");
    assert!(!client.rest().await.ends_with(b"0\r\n\r\n"));
}
