//! Tests access to the server: tokens, `Host`, `Origin`, routes, and malformed requests.

use crate::world::{TOKEN, World, bare, message, post};

#[tokio::test]
async fn only_the_token_opens_the_server() {
    let mut world = World::new().await;
    for (authorization, words) in [
        (None, "has no bearer token"),
        (Some("Basic dDBrZW4="), "has no bearer token"),
        (Some(TOKEN), "has no bearer token"),
        (Some("Bearer "), "has no bearer token"),
        (Some("Bearer t0ken-of-the-test"), "is wrong"),
        (Some("Bearer t0ken-of-the-testsX"), "is wrong"),
        (Some("Bearer T0ken-of-the-tests"), "is wrong"),
    ] {
        let request = post(&message("hello", "s"));
        let with =
            authorization.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
        let answer =
            world.ask(request.replace(&format!("Authorization: Bearer {TOKEN}\r\n"), &with)).await;
        assert!(
            answer.refused(401, "unauthorized").contains(words),
            "{authorization:?}: {answer:?}"
        );
        assert_eq!(answer.head.get("www-authenticate"), Some("Bearer"));
    }
    world.no_question();
    let mut client = world.client().await;
    client
        .send(
            post(&message("hello", "s")).replace("Authorization: Bearer", "authorization: bearer"),
        )
        .await;
    assert_eq!(client.head().await.status, 200);
}

#[tokio::test]
async fn a_loopback_server_answers_to_its_own_names_only() {
    let world =
        World::with(|settings| settings.allowed_hosts = vec!["wattle.internal".parse().unwrap()])
            .await;
    for host in [
        "localhost",
        "LOCALHOST:8787",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]:8787",
        "wattle.internal",
        "wattle.internal.:80",
    ] {
        let answer = world.ask(bare("GET /", &[&format!("Host: {host}")])).await;
        assert_eq!(answer.head.status, 200, "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:8787",
        "localhost.evil.example",
        "10.0.0.1",
        "127.0.0.2",
        "[::2]",
    ] {
        let answer = world.ask(bare("GET /", &[&format!("Host: {host}")])).await;
        let message = answer.refused(403, "host_not_allowed");
        assert!(message.contains(host.split(":8787").next().unwrap()), "{message}");
    }
    for hosts in [
        &[][..],
        &["Host: "],
        &["Host: localhost@evil.example"],
        &["Host: localhost:99999"],
        &["Host: a b"],
        &["Host: localhost", "Host: localhost"],
    ] {
        world.ask(bare("GET /healthz", hosts)).await.refused(400, "bad_request");
    }
    // The host in the request line takes precedence over the `Host` header.
    let answer = world.ask(bare("GET http://evil.example/", &["Host: localhost"])).await;
    answer.refused(403, "host_not_allowed");
}

#[tokio::test]
async fn probes_reach_the_servers_state_by_any_name_and_without_one() {
    let world = World::with(|settings| {
        settings.allowed_hosts = vec!["wattle.internal".parse().unwrap()];
    })
    .await;
    let auth = format!("Authorization: Bearer {TOKEN}");
    for path in ["/healthz", "/readyz", "/metrics"] {
        let line = format!("GET {path}");
        for host in ["wattle.internal", "10.0.0.1:8787", "[fd00::1]", "my_service:8787"] {
            let answer = world.ask(bare(&line, &[&format!("Host: {host}"), &auth])).await;
            assert_eq!(answer.head.status, 200, "{path} {host}");
        }
        let old = format!("{line} HTTP/1.0\r\n{auth}\r\n\r\n");
        assert_eq!(world.ask(&old).await.head.status, 200, "{path}");
        // Pages of other sites still may not read it.
        let page = bare(&line, &["Host: 10.0.0.1", "Origin: http://evil.example", &auth]);
        world.ask(page).await.refused(403, "origin_not_allowed");
        let page = old.replace(&auth, &format!("{auth}\r\nOrigin: http://evil.example"));
        world.ask(page).await.refused(403, "origin_not_allowed");
    }
    world.ask("GET / HTTP/1.0\r\n\r\n").await.refused(400, "bad_request");
    world.ask(bare("GET /metrics", &["Host: 10.0.0.1"])).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let world = World::with(|settings| {
        settings.allowed_origins = vec!["https://app.example".parse().unwrap()]
    })
    .await;
    let health = |origin: &str| {
        bare("GET /healthz", &["Host: localhost:8787", &format!("Origin: {origin}")])
    };
    for origin in [
        "http://evil.example",
        "http://localhost:3000",
        "https://app.example:444",
        "http://app.example",
        "null",
        "x",
    ] {
        let answer = world.ask(health(origin)).await;
        assert!(answer.refused(403, "origin_not_allowed").contains(origin));
        assert_eq!(answer.head.get("access-control-allow-origin"), None);
    }
    // The request comes from a page of the server itself.
    let answer = world.ask(health("http://localhost:8787")).await;
    assert_eq!((answer.head.status, answer.head.get("access-control-allow-origin")), (200, None));
    // Pages of a listed site may also read errors.
    let answer = world.ask(health("https://app.example")).await;
    assert_eq!(answer.head.get("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.head.get("vary"), Some("origin"));
    let request = bare("POST /chat", &["Host: localhost", "Origin: https://app.example"]);
    let answer = world.ask(request).await;
    answer.refused(401, "unauthorized");
    assert_eq!(answer.head.get("access-control-allow-origin"), Some("https://app.example"));
}

#[tokio::test]
async fn a_listed_page_may_ask_first() {
    let world = World::with(|settings| {
        settings.allowed_origins = vec!["https://app.example".parse().unwrap()]
    })
    .await;
    let ask = |origin: &str| {
        let origin = format!("Origin: {origin}");
        bare("OPTIONS /chat", &["Host: localhost", &origin, "Access-Control-Request-Method: POST"])
    };
    let answer = world.ask(ask("https://app.example")).await;
    assert_eq!(answer.head.status, 204);
    assert_eq!(answer.head.get("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.head.get("access-control-allow-headers").unwrap().contains("authorization"));
    world.ask(ask("https://evil.example")).await.refused(403, "origin_not_allowed");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_errors() {
    let world = World::new().await;
    let auth = format!("Authorization: Bearer {TOKEN}");
    for path in ["/chat/", "/chats", "/healthz/x", "/../chat", "/%00"] {
        let answer = world.ask(bare(&format!("GET {path}"), &["Host: localhost", &auth])).await;
        assert!(answer.refused(404, "not_found").contains(path), "{answer:?}");
    }
    for (line, hint) in [
        ("GET /v1/models/", "did you mean `GET /v1/models`?"),
        ("GET //v1/models", "did you mean `GET /v1/models`?"),
        ("GET /models", "did you mean `GET /v1/models`?"),
        ("POST /chat/completions", "did you mean `POST /v1/chat/completions`?"),
        ("POST /v1/response", "did you mean `POST /v1/responses`?"),
    ] {
        let answer = world.ask(bare(line, &["Host: localhost"])).await;
        answer.refused(404, "not_found");
        assert!(answer.body.contains(hint), "{line}: {answer:?}");
    }
    for (line, allow) in [
        ("GET /chat", "POST"),
        ("DELETE /chat", "POST"),
        ("OPTIONS /chat", "POST"),
        ("POST /healthz", "GET,HEAD"),
    ] {
        let answer = world.ask(bare(line, &["Host: localhost", &auth])).await;
        answer.refused(405, "method_not_allowed");
        assert_eq!(answer.head.get("allow"), Some(allow), "{line}");
    }
}

#[tokio::test]
async fn a_refusal_before_the_body_was_read_closes_the_connection_and_says_so() {
    let world = World::new().await;
    let refused = post(&message("hello", "s")).replace(TOKEN, "wrong");
    let mut client = world.client().await;
    client.send(&refused).await;
    let answer = client.answer().await;
    answer.refused(401, "unauthorized");
    assert_eq!(answer.head.get("connection"), Some("close"));
    client.closed().await;
    // Nothing of these requests is left.
    for request in [post("{}"), bare("GET /none", &["Host: localhost"])] {
        let mut client = world.client().await;
        for _ in 0..2 {
            client.send(&request).await;
            let answer = client.answer().await;
            assert!(answer.head.status > 400 && answer.head.get("connection").is_none());
        }
    }
}

#[tokio::test]
async fn an_invalid_body_is_an_error() {
    let mut world = World::new().await;
    for (body, status, code, words) in [
        ("", 400, "bad_request", "the body is empty"),
        ("hello", 400, "bad_request", "not JSON"),
        (r#"{"message":7}"#, 422, "invalid_field", "`message`: invalid type: integer `7`"),
        (r#"{"text":"hello"}"#, 422, "invalid_field", "`text`: unknown field `text`"),
        (r#"{}"#, 422, "invalid_field", "missing field `message`"),
        (
            r#"{"message":"m","session_id":"a/b"}"#,
            422,
            "invalid_field",
            "`session_id`: a session id",
        ),
    ] {
        let message = world.ask(post(body)).await.refused(status, code);
        assert!(message.contains(words), "{message}");
    }
    let mut bytes = post(r#"{"message":"????"}"#).into_bytes();
    bytes.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xff);
    let message = world.ask(bytes).await.refused(400, "bad_request");
    assert!(message.contains("not UTF-8"), "{message}");
    let form = post(&message).replace("application/json", "application/x-www-form-urlencoded");
    world.ask(form).await.refused(415, "unsupported_media_type");
    world.no_question();
}

#[tokio::test]
async fn a_server_on_another_address_answers_to_every_name_by_default() {
    let everywhere =
        |settings: &mut wattle_server::ServerSettings| settings.listen = ([0, 0, 0, 0], 0).into();
    let mut world = World::with(everywhere).await;
    world.address.set_ip([127, 0, 0, 1].into());
    let page = bare("GET /", &["Host: wattle.example"]);
    assert_eq!(world.ask(&page).await.head.status, 200);

    let mut world = World::with(|settings| {
        everywhere(settings);
        settings.allowed_hosts = vec!["other.example".parse().unwrap()];
    })
    .await;
    world.address.set_ip([127, 0, 0, 1].into());
    world.ask(&page).await.refused(403, "host_not_allowed");
}

#[tokio::test]
async fn an_ambiguous_request_is_refused_or_ends_its_connection() {
    let mut world = World::new().await;
    let auth = format!("Authorization: Bearer {TOKEN}");
    for (more, words) in [
        (auth.as_str(), "more than one `Authorization` header"),
        ("Authorization: Bearer wrong", "more than one `Authorization` header"),
        ("authorization: Basic eDp5", "more than one `Authorization` header"),
        (
            "Origin: http://localhost\r\nOrigin: http://evil.example",
            "more than one `Origin` header",
        ),
        ("Host: localhost", "no valid `Host` header"),
    ] {
        let request = post(&message("hello", "s")).replace(&auth, &format!("{auth}\r\n{more}"));
        let message = world.ask(request).await.refused(400, "bad_request");
        assert!(message.contains(words), "{more}: {message}");
    }
    let body = message("hello", "s");
    let framed = |framing: &str| {
        format!(
            "POST /chat HTTP/1.1\r\nHost: localhost\r\n{auth}\r\nContent-Type: \
             application/json\r\n{framing}\r\n\r\n{body}"
        )
    };
    let length = body.len();
    for framing in [
        format!("Content-Length: {length}\r\nContent-Length: {}", length + 1),
        format!("Content-Length: {length}, {}", length + 1),
        format!("Content-Length: +{length}"),
        format!("Content-Length : {length}"),
        "Content-Length: 1e3".to_owned(),
        "Transfer-Encoding: identity".to_owned(),
        "Transfer-Encoding: xchunked".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity".to_owned(),
        format!("Transfer-Encoding : chunked\r\nContent-Length: {length}"),
        format!("X-A: b\r\n Content-Length: {length}"),
    ] {
        let answer = world.ask(framed(&framing)).await;
        assert!(matches!(answer.head.status, 400 | 415 | 411 | 413), "{framing:?}: {answer:?}");
    }
    world.no_question();
    // If a request has both a `Content-Length` and a chunked encoding, the chunked encoding
    // applies, and data after the chunks is not read as a request.
    for framing in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
    ] {
        let smuggled = bare("GET /healthz", &["Host: localhost"]);
        let head = framed(framing).replace(&body, "");
        let mut client = world.client().await;
        client.send(format!("{head}2\r\n{{}}\r\n0\r\n\r\n{smuggled}")).await;
        assert_eq!(client.head().await.status, 422, "{framing}");
        let rest = client.rest().await;
        let rest = String::from_utf8_lossy(&rest);
        assert!(!rest.contains("HTTP/1.1"), "{framing}: {rest}");
    }
    world.no_question();
}
