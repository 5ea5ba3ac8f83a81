//! Tests redirects: their targets, and the headers that are sent to them.

use wattle_egress::{
    Egress, EgressErrorKind as Kind, HeaderValue, Limits, Method, Policy, Request, header,
};

use super::site::{Open, allowing, limited, moved, ok, serve};

#[tokio::test]
async fn redirects_to_what_is_not_public_are_refused() {
    for to in [
        "http://127.0.0.1:1/",
        "http://2130706433:1/",
        "//0x7f.1:1/",
        "http://[::1]:1/",
        "http://169.254.169.254/latest/",
        "http://localhost:1/",
        "http://metadata.google.internal/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "http://user:pass@example.com/",
    ] {
        let server = serve(&[moved(302, to)]).await;
        let why = Open::new(allowing(&[server.rule()]))
            .send(Request::get(server.url("/")))
            .await
            .unwrap_err();
        assert!(why.is_refusal(), "{to}: {why}");
    }
}

#[tokio::test]
async fn a_redirect_out_of_the_domain_list_is_refused() {
    let server = serve(&[moved(301, "https://elsewhere.example/")]).await;
    let only = Some(vec!["example.com".parse().unwrap()]);
    let egress = Open::new(Policy { only, ..allowing(&[server.rule()]) });
    let why = egress.send(Request::get(server.url("/"))).await.unwrap_err();
    assert!(
        why.to_string().starts_with("refused: elsewhere.example is not one of the allowed domains"),
        "{why}"
    );
}

#[tokio::test]
async fn redirects_are_followed_within_their_bound() {
    let chain: Vec<String> =
        (1..=6).map(|i| moved(302, &format!("/{i}"))).chain([ok("end")]).collect();
    for (limit, reaches) in [(5, false), (6, true)] {
        let server = serve(&chain).await;
        let egress = limited(&server, Limits { redirects: limit, ..Limits::default() });
        match egress.start(Request::get(server.url("/0"))).await {
            Ok(response) => {
                assert!(reaches);
                assert_eq!(response.url.as_str(), server.url("/6"));
            }
            Err(why) => {
                assert!(!reaches && why.kind() == Kind::Redirect, "{why}");
                assert_eq!(server.requests().len(), limit + 1);
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_changes_the_method_as_browsers_do() {
    for (status, method, expected) in [
        (301, Method::POST, "GET"),
        (302, Method::POST, "GET"),
        (303, Method::PUT, "GET"),
        (303, Method::HEAD, "HEAD"),
        (307, Method::POST, "POST"),
        (308, Method::PUT, "PUT"),
    ] {
        let server = serve(&[moved(status, "/next"), ok("")]).await;
        let mut request = Request::post(server.url("/"), "data");
        request.method = method;
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        request.headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer k"));
        Open::new(allowing(&[server.rule()])).send(request).await.unwrap();
        let second = &server.requests()[1];
        assert!(second.starts_with(&format!("{expected} /next ")), "{status}: {second}");
        let keeps_body = matches!(expected, "POST" | "PUT");
        assert_eq!(
            second.ends_with("data") && second.contains("content-type"),
            keeps_body || expected == "HEAD",
            "{second}"
        );
        assert!(
            second.contains("authorization: Bearer k"),
            "same origin keeps its credentials: {second}"
        );
    }
}

#[tokio::test]
async fn another_origin_gets_no_header_that_may_hold_a_secret() {
    let other = serve(&[ok("there")]).await;
    let server = serve(&[moved(307, &other.url("/x"))]).await;
    let mut request = Request::post(server.url("/"), "data");
    for (name, value) in [
        ("authorization", "Bearer top"),
        ("cookie", "s=top"),
        ("x-api-key", "top"),
        ("x-custom", "top"),
        ("accept", "text/html"),
        ("content-type", "text/plain"),
    ] {
        request.headers.insert(name, HeaderValue::from_static(value));
    }
    let mut secret = HeaderValue::from_static("top");
    secret.set_sensitive(true);
    request.headers.insert("accept-language", secret);
    let egress = Open::new(allowing(&[server.rule(), other.rule()]));
    assert_eq!(&egress.send(request).await.unwrap().body[..], b"there");
    assert!(server.requests()[0].contains("authorization: Bearer top"));
    let second = &other.requests()[0];
    assert!(
        second.ends_with("data")
            && second.contains("accept: text/html")
            && second.contains("content-type: text/plain")
    );
    assert!(!second.contains("top"), "{second}");
}

#[tokio::test]
async fn an_endpoint_that_redirects_is_reported() {
    let server = serve(&[moved(308, "https://new.example/v1/x")]).await;
    let endpoint =
        Egress::new(Policy::default()).endpoint(&server.url("/").parse().unwrap()).unwrap();
    let why = endpoint.send(Request::get(server.url("/x"))).await.unwrap_err();
    assert_eq!(why.kind(), Kind::Redirect);
    assert!(why.to_string().contains("redirects to `https://new.example/v1/x`"), "{why}");
}
