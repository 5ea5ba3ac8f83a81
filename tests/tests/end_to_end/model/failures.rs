//! Tests of model failures: temporary ones are retried, permanent ones are reported, and no error
//! message contains the API key.

use std::time::Duration;

use wattle_agent::model::{ModelErrorKind as Kind, ModelRequest, Timeouts, ask_within};
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, client, client_with, complete, delta, question, quick, stream};

/// Returns temporary failures, each with its kind and a substring of its message.
fn temporary_failures() -> Vec<(&'static str, Answer, Kind, &'static str)> {
    let truncated = Answer::events([delta("half")]).then_break_off();
    vec![
        ("408", Answer::status(408), Kind::Unavailable, "408"),
        ("409", Answer::status(409), Kind::Unavailable, "409"),
        ("425", Answer::status(425), Kind::Unavailable, "425"),
        (
            "429",
            Answer::status(429).with_body(r#"{"error":{"message":"slow down"}}"#),
            Kind::Unavailable,
            "rate of requests (429): slow down",
        ),
        ("500", Answer::status(500).with_body("<html>\n oops"), Kind::Unavailable, "<html> oops"),
        ("502", Answer::status(502), Kind::Unavailable, "502"),
        ("503", Answer::status(503), Kind::Unavailable, "overloaded"),
        ("529", Answer::status(529), Kind::Unavailable, "overloaded"),
        ("closed", Answer::close(), Kind::Network, "broke"),
        ("no HTTP", Answer::raw("hello\r\n\r\n"), Kind::Network, "broke"),
        ("broken off", truncated, Kind::Network, "broke"),
        ("JSON broken off", Answer::plain("x").then_break_off(), Kind::Network, "broke"),
        ("a stream without its end", Answer::events([delta("half")]), Kind::Network, "broke off"),
        (
            "a stream that ends in a comment",
            Answer::body(format!("data: {}\n\n: [DONE]\n\n", delta("half"))),
            Kind::Network,
            "broke off",
        ),
        (
            "a call without its end",
            Answer::events([
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}"#,
            ]),
            Kind::Network,
            "broke off",
        ),
        (
            "an end that is an error",
            Answer::events([
                &delta("half"),
                r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
                "[DONE]",
            ]),
            Kind::Unavailable,
            "ended the answer with an error",
        ),
        ("silent", Answer::hang(), Kind::Timeout, "within 300 ms"),
        (
            "silent within",
            Answer::events([delta("half")]).then_hang(),
            Kind::Timeout,
            "within 300 ms",
        ),
        (
            "dripping",
            Answer::plain("x".repeat(4000)).pieces(1).pause(Duration::from_millis(5)),
            Kind::Timeout,
            "within 300 ms",
        ),
        ("empty", Answer::body(""), Kind::Malformed, "the response is empty"),
        ("no choices", Answer::body(r#"{"choices":[]}"#), Kind::Malformed, "no message"),
        (
            "another object",
            Answer::body(r#"{"object":"list","data":[]}"#),
            Kind::Malformed,
            "no message",
        ),
        ("a page", Answer::body("<html><body>Sign in</body></html>"), Kind::Malformed, "Sign in"),
        (
            "broken JSON",
            Answer::body(r#"{"choices":[{"message":{"content":"x"}]}"#),
            Kind::Malformed,
            "expected",
        ),
        (
            "a broken event",
            Answer::events([r#"{"choices":[{"delta":{"content":"x"#]),
            Kind::Malformed,
            "EOF",
        ),
        ("deep JSON", Answer::body("[".repeat(100_000)), Kind::Malformed, "recursion"),
        (
            "a passing error in status 200",
            Answer::body(r#"{"error":{"code":502,"message":"upstream"}}"#),
            Kind::Unavailable,
            "(502): upstream",
        ),
        (
            "a passing error in a stream",
            Answer::events([
                &delta("half"),
                r#"{"error":{"type":"server_error","message":"oops"}}"#,
            ]),
            Kind::Unavailable,
            "oops",
        ),
        (
            "an error in a choice",
            Answer::events([
                r#"{"choices":[{"error":{"code":"429","message":"slow"},"finish_reason":"error"}]}"#,
            ]),
            Kind::Unavailable,
            "slow",
        ),
    ]
}

/// A request that fails temporarily is retried for a while. If all attempts fail, the last failure
/// is reported.
#[tokio::test]
async fn temporary_failures_are_retried() {
    for (what, answer, kind, words) in temporary_failures() {
        let slow = kind == Kind::Timeout;
        let provider = if slow {
            Provider::start([answer, Answer::text("well")])
        } else {
            Provider::answering(move |_| answer.clone())
        };
        let mut timeouts = quick();
        if slow {
            let request = Duration::from_millis(300);
            timeouts = Timeouts { request, retry_for: Duration::ZERO, ..timeouts };
        }
        let why = complete(&client_with(&provider, timeouts, Some(KEY))).await.expect_err(what);
        assert_eq!(why.kind(), kind, "{what}: {why}");
        assert!(why.to_string().contains(words), "{what}: {why}");
        let asked = provider.requests().len();
        let suffix = format!(" (asked {asked} times)");
        assert_eq!(why.to_string().ends_with(&suffix), !slow, "{what}: {why}");
        assert_eq!(asked == 1, slow, "{what}: {asked}");
        if slow {
            // The endpoint has recovered.
            assert_eq!(complete(&client(&provider)).await.unwrap().text, "well", "{what}");
        }
    }
}

#[tokio::test]
async fn a_recovered_endpoint_answers_and_the_streamed_text_is_discarded() {
    let half = [delta("hal"), delta("f")];
    for (what, answers, shown) in [
        (
            "429, 500",
            vec![Answer::status(429).header("retry-after", "0"), Answer::status(500)],
            "whole",
        ),
        ("broken off", vec![Answer::events(&half).then_break_off()], "half⟲whole"),
        (
            "broken twice",
            vec![Answer::events(&half).then_break_off(), Answer::events(&half).then_break_off()],
            "half⟲half⟲whole",
        ),
        ("silent within", vec![Answer::events(&half).then_hang()], "half⟲whole"),
        ("without its end", vec![Answer::events(&half)], "half⟲whole"),
        (
            "an error within",
            vec![Answer::events([&half[0], r#"{"error":{"message":"Overloaded"}}"#])],
            "hal⟲whole",
        ),
        ("never connected", vec![Answer::close()], "whole"),
    ] {
        let provider = Provider::start(answers);
        provider.push(Answer::text("whole"));
        let timeouts = Timeouts { request: Duration::from_millis(1500), ..quick() };
        let (reply, seen) = stream(&client_with(&provider, timeouts, Some(KEY))).await;
        assert_eq!(reply.unwrap_or_else(|why| panic!("{what}: {why}")).text, "whole", "{what}");
        assert_eq!(seen, shown, "{what}");
        assert_eq!(provider.unused_answers(), 0, "{what}");
    }
}

#[tokio::test]
async fn the_servers_retry_delay_is_limited() {
    let provider = Provider::start([
        Answer::status(429).header("retry-after", "86400"),
        Answer::status(503).header("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        Answer::text("hello"),
    ]);
    let model = client(&provider);
    let reply = tokio::time::timeout(Duration::from_secs(20), complete(&model))
        .await
        .expect("no wait of a day");
    assert_eq!(reply.unwrap().text, "hello");
}

#[tokio::test]
async fn a_turn_narrows_the_limits_of_its_requests() {
    let provider = Provider::start(vec![Answer::hang(); 3]);
    let patient = Timeouts {
        request: Duration::from_secs(60),
        retry_for: Duration::from_secs(60),
        ..quick()
    };
    // The client's own limits are higher than those of the turn.
    let model = client_with(&provider, patient, Some(KEY));
    let turn = Timeouts {
        request: Duration::from_millis(20),
        retry_for: Duration::from_millis(15),
        ..patient
    };
    let messages = question();
    let why =
        ask_within(&model, &turn, ModelRequest::new(&messages), &mut |_| {}).await.unwrap_err();
    let expected = "the model did not complete its answer within 20 ms (asked 2 times)";
    assert_eq!(why.to_string(), expected);
}

#[tokio::test]
async fn permanent_failures_are_reported_at_once() {
    let json = |status: u16, body: &str| Answer::status(status).with_body(body);
    for (what, answer, kind, words) in [
        (
            "401",
            json(401, r#"{"error":{"message":"bad key"}}"#),
            Kind::Key,
            "rejected the key (401): check `WATTLE_API_KEY`: bad key",
        ),
        ("403", json(403, r#"{"error":"not yours"}"#), Kind::Key, "`WATTLE_API_KEY`: not yours"),
        (
            "402",
            json(402, r#"{"error":{"message":"top up"}}"#),
            Kind::Credit,
            "no credit left: top up",
        ),
        (
            "404",
            json(404, r#"{"detail":"Not Found"}"#),
            Kind::NotFound,
            "/v1/chat/completions has no model `test-model` (404): check the base URL and the \
             model: Not Found",
        ),
        ("400", json(400, r#"{"message":"bad role"}"#), Kind::Request, "(400): bad role"),
        (
            "422",
            json(422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#),
            Kind::Request,
            "field required",
        ),
        (
            "400 of length",
            json(
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            ),
            Kind::TooLong,
            "exceeds the context window of model `test-model` (400): This model's",
        ),
        ("413", json(413, ""), Kind::TooLong, "exceeds the context window"),
        (
            "a relayed error",
            json(
                400,
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{no tools}"}}}"#,
            ),
            Kind::Request,
            "Provider returned error: {no tools}",
        ),
        (
            "308",
            Answer::status(308).header("location", "https://api.example/v2"),
            Kind::NotFound,
            "`https://api.example/v2`",
        ),
        ("304", Answer::status(304), Kind::NotFound, "redirects (304)"),
        (
            "an error in status 200",
            Answer::body(r#"{"error":{"code":400,"message":"no such role"}}"#),
            Kind::Request,
            "no such role",
        ),
        (
            "an error text in status 200",
            Answer::body(r#"{"error":"model is not loaded"}"#),
            Kind::Request,
            "model is not loaded",
        ),
        (
            "an error object",
            Answer::body(r#"{"object":"error","message":"bad","code":400}"#),
            Kind::Request,
            "bad",
        ),
        (
            "an error in a stream",
            Answer::events([&delta("x"), r#"{"error":{"message":"content filtered"}}"#]),
            Kind::Request,
            "content filtered",
        ),
        (
            "too large",
            Answer::plain("x".repeat(17 << 20)),
            Kind::Malformed,
            "larger than the limit",
        ),
    ] {
        let provider = Provider::start([answer]);
        let why = complete(&client(&provider)).await.expect_err(what);
        assert_eq!(why.kind(), kind, "{what}: {why}");
        assert!(why.to_string().contains(words), "{what}: {why}");
        assert_eq!(provider.requests().len(), 1, "{what}");
    }
}

#[tokio::test]
async fn a_missing_key_is_named() {
    let provider = Provider::start([Answer::status(401)]);
    let why = complete(&client_with(&provider, quick(), None)).await.unwrap_err();
    assert_eq!(why.to_string(), "the provider requires a key (401): set `WATTLE_API_KEY`");
    assert!(why.is_configuration());
}

#[tokio::test]
async fn a_refused_connection_is_reported_with_the_address() {
    let provider = Provider::start([]);
    let base = provider.base_url();
    let model = client(&provider);
    drop(provider);
    // The port is closed once the listening thread has ended. Until then, new connections are
    // closed immediately.
    let why = complete(&model).await.unwrap_err();
    assert_eq!(why.kind(), Kind::Network);
    assert!(why.to_string().contains(base.trim_end_matches("/v1")), "{why}");
}

#[tokio::test]
async fn quoted_bodies_are_truncated_to_one_line() {
    let long = format!("line\n{}", "wörd ".repeat(1000));
    let provider = Provider::start([Answer::status(400).with_body(long)]);
    let text = complete(&client(&provider)).await.unwrap_err().to_string();
    assert!(text.chars().count() < 360 && text.ends_with('…') && !text.contains('\n'), "{text}");
}

#[tokio::test]
async fn an_endless_error_body_ends() {
    let provider =
        Provider::start([Answer::status(400).with_body("x".repeat(1 << 20)).then_hang()]);
    assert_eq!(complete(&client(&provider)).await.unwrap_err().kind(), Kind::Request);
}

/// No error message contains the key, even if an endpoint returns the key in any part of its
/// response.
#[tokio::test]
async fn no_message_contains_the_key() {
    let echo = format!("you sent Bearer {KEY}.");
    let in_json = serde_json::json!({"error": {"message": echo}}).to_string();
    for answer in [
        Answer::status(401).with_body(echo.clone()),
        Answer::status(400).with_body(in_json.clone()),
        Answer::status(400).with_body(format!("{}{echo}", "y".repeat(270))),
        Answer::body(in_json.clone()),
        Answer::events([in_json]),
        Answer::body(format!("<html>{echo}")),
        Answer::body(format!("{{{echo}")),
        Answer::status(302).header("location", &format!("/?key={KEY}")),
    ] {
        let provider = Provider::start(vec![answer; 3]);
        let why = complete(&client(&provider)).await.unwrap_err();
        let shown = format!("{why} {why:?}");
        assert!(!shown.contains("very-secret"), "{shown}");
    }
    assert!(!format!("{:?}", client(&Provider::start([]))).contains("very-secret"));
}

/// The model's answer is never masked, whatever the key is. It is parsed and shown unchanged.
#[tokio::test]
async fn the_models_own_words_are_never_masked() {
    for key in [KEY, "k", "ToolCall", "Response"] {
        let answer = format!("I took the key {key}.\nToolCall::Response(\"k, ok: {key}\")");
        let provider = Provider::start([
            Answer::text(answer.clone()),
            Answer::streamed(answer.clone()).pieces(3),
            Answer::events(
                answer.chars().map(|c| delta(&c.to_string())).chain(["[DONE]".to_owned()]),
            ),
        ]);
        let model = client_with(&provider, quick(), Some(key));
        assert_eq!(complete(&model).await.unwrap().text, answer);
        for _ in 0..2 {
            let (reply, shown) = stream(&model).await;
            assert_eq!((reply.unwrap().text, shown), (answer.clone(), answer.clone()));
        }
    }
}

/// A very short key is not masked, because it also occurs in ordinary words.
#[tokio::test]
async fn a_short_key_is_never_masked() {
    let provider =
        Provider::start([Answer::status(400).with_body(r#"{"message":"bad token kk"}"#)]);
    let why = complete(&client_with(&provider, quick(), Some("k"))).await.unwrap_err();
    assert!(why.to_string().ends_with("bad token kk"), "{why}");
}
