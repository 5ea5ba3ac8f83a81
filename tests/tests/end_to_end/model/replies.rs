//! Tests the client's requests, and the replies that it understands.

use wattle_agent::model::{EndpointSettings, ModelErrorKind as Kind, RemoteModel, resolve};
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::Usage;
use wattle_tests::provider::{Answer, Provider};

use super::client::{KEY, client, complete, delta, quick, stream};

#[tokio::test]
async fn a_request_is_sent_and_its_reply_is_read() {
    let provider = Provider::start([Answer::text("hello there"), Answer::text("hello there")]);
    let model = client(&provider);
    let plain = complete(&model).await.unwrap();
    let (streamed, shown) = stream(&model).await;
    assert_eq!(plain, streamed.unwrap());
    assert_eq!(
        (plain.text.as_str(), shown.as_str(), plain.finish.as_deref()),
        ("hello there", "hello there", Some("stop"))
    );
    assert_eq!(plain.usage, Usage { prompt: 4, completion: 2, ..Usage::default() });

    let requests = provider.requests();
    for request in &requests {
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("POST", "/v1/chat/completions")
        );
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.messages(), ["be brief", "say hello"]);
        assert!(
            request.body.contains(r#""temperature":0.3,"max_tokens":4096"#),
            "{}",
            request.body
        );
        assert!(!request.body.contains(KEY));
    }
    assert_eq!(requests[0].json()["stream"], false);
    assert_eq!(requests[0].json()["stream_options"], serde_json::Value::Null);
    assert_eq!(requests[1].json()["stream"], true);
    assert_eq!(requests[1].json()["stream_options"]["include_usage"], true);
}

#[tokio::test]
async fn the_path_is_appended_once() {
    for (base, path) in [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/openai?api-version=1", "/openai/chat/completions?api-version=1"),
    ] {
        let provider = Provider::start([Answer::text("x")]);
        let base = provider.base_url().replace("/v1", base);
        let settings =
            EndpointSettings { base_url: Some(&base), model: Some("m"), ..Default::default() };
        let endpoint = resolve(&settings, |_| None).unwrap();
        let model = RemoteModel::new(endpoint, &Egress::new(Policy::default()), quick()).unwrap();
        complete(&model).await.unwrap();
        assert_eq!(provider.requests()[0].path, path);
        assert_eq!(provider.requests()[0].header("authorization"), None);
    }
}

#[tokio::test]
async fn fields_that_an_endpoint_does_not_know_are_left_out() {
    let refuses = |words: &str| {
        Answer::status(400).with_body(serde_json::json!({"error": {"message": words}}).to_string())
    };
    let provider = Provider::start([
        refuses(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        ),
        refuses("Unsupported value: 'temperature' does not support 0.3 with this model."),
        refuses("Unknown field: stream_options"),
        Answer::text("hello"),
        Answer::text("hello"),
    ]);
    let model = client(&provider);
    for _ in 0..2 {
        assert_eq!(stream(&model).await.0.unwrap().text, "hello");
    }
    let requests = provider.requests();
    assert_eq!(requests.len(), 5, "later requests omit the rejected fields");
    for request in &requests[3..] {
        let body = request.json();
        assert_eq!(body["max_completion_tokens"], 4096);
        for left_out in ["max_tokens", "temperature", "stream_options"] {
            assert!(body.get(left_out).is_none(), "{left_out}");
        }
    }
    // If the endpoint's errors contradict each other, the client stops retrying.
    let flip = [
        refuses("unsupported max_tokens, use max_completion_tokens"),
        refuses("unknown field max_completion_tokens"),
    ];
    let provider = Provider::start(flip.iter().cycle().take(20).cloned());
    assert_eq!(complete(&client(&provider)).await.unwrap_err().kind(), Kind::Request);
    assert!(provider.requests().len() < 10);
}

/// The client understands the reply `hellö` in the many formats that endpoints use, streamed or
/// not.
#[tokio::test]
async fn sloppy_answers_are_understood() {
    let (he, llo) = (delta("he"), delta("llö"));
    let end = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    let message =
        |content: &str| format!(r#"{{"choices":[{{"message":{{"content":{content}}}}}]}}"#);
    let plain = |content: &str| Answer::body(message(content));
    let stream = |text: String| Answer::body(text);
    let cases: Vec<(&str, Answer)> = vec![
        ("JSON although a stream was requested", Answer::plain("hellö")),
        ("a stream although JSON was requested", Answer::streamed("hellö")),
        ("a byte at a time", Answer::streamed("hellö").pieces(1)),
        ("JSON a byte at a time", Answer::plain("hellö").pieces(1)),
        (
            "wrong content type",
            Answer::events([&he, &llo, "[DONE]"])
                .header("content-type", "text/html; charset=latin1"),
        ),
        (
            "JSON of a wrong content type",
            plain(r#""hellö""#).header("content-type", "text/event-stream"),
        ),
        ("CRLF", stream(format!("data: {he}\r\n\r\ndata: {llo}\r\n\r\ndata: [DONE]\r\n\r\n"))),
        ("CR", stream(format!("data: {he}\r\rdata: {llo}\r\rdata: [DONE]\r\r"))),
        ("no blank after the colon", stream(format!("data:{he}\n\ndata:{llo}\n\ndata:[DONE]\n\n"))),
        (
            "comments and other fields",
            stream(format!(
                ": ping\n\nid: 1\nevent: message\nretry: 3\ndata: {he}\n\n:\n\ndata: \
                 {llo}\n\ndata: {end}\n\n"
            )),
        ),
        ("words between the events", Answer::events(["ping", &he, "", "null", &llo, "[DONE]"])),
        ("no [DONE]", Answer::events([&he, &llo, &end])),
        ("no empty line at the end", stream(format!("data: {he}\n\ndata: {llo}\n\ndata: {end}"))),
        (
            "no empty line between the events",
            stream(format!("data: {he}\ndata: {llo}\ndata: [DONE]\n\n")),
        ),
        (
            "data over several lines",
            stream(
                "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\n data: x\ndata: \
                 \"hellö\"}}]}\n\ndata: [DONE]\n\n"
                    .to_owned(),
            ),
        ),
        (
            "a byte order mark",
            stream(format!("\u{feff}data: {he}\n\ndata: {llo}\n\ndata: {end}\n\n")),
        ),
        (
            "JSON with a byte order mark",
            Answer::body(format!("\u{feff}\r\n {}", message(r#""hellö""#))),
        ),
        (
            "blanks before",
            stream(format!("\n\n  \n\ndata: {he}\n\ndata: {llo}\n\ndata: {end}\n\n")),
        ),
        ("blanks after the JSON", Answer::body(format!("{}\n\n \n", message(r#""hellö""#)))),
        ("more after [DONE]", Answer::events([&he, &llo, "[DONE]", &delta("!"), "{broken"])),
        ("silence after [DONE]", Answer::events([&he, &llo, "[DONE]"]).then_hang()),
        ("a break after [DONE]", Answer::events([&he, &llo, "[DONE]"]).then_break_off()),
        ("a break after the finish reason", Answer::events([&he, &llo, &end]).then_break_off()),
        (
            "null and empty deltas",
            Answer::events([
                r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#,
                r#"{"choices":[{"delta":null}]}"#,
                r#"{"choices":[]}"#,
                &he,
                &llo,
                &end,
            ]),
        ),
        ("a whole message in an event", Answer::events([&message(r#""hellö""#), &end])),
        (
            "the whole message repeated at the end",
            Answer::events([&he, &llo, &message(r#""hellö""#), &end]),
        ),
        (
            "several choices",
            Answer::events([
                &he,
                r#"{"choices":[{"index":1,"delta":{"content":"no"}}]}"#,
                &llo,
                &end,
            ]),
        ),
        (
            "an array of parts",
            plain(r#"[{"type":"text","text":"he"},{"type":"image_url"},"l",{"text":"lö"}]"#),
        ),
        ("the legacy field", Answer::body(r#"{"choices":[{"text":"hellö"}]}"#)),
        (
            "a refusal in place of the content",
            Answer::body(r#"{"choices":[{"message":{"content":null,"refusal":"hellö"}}]}"#),
        ),
        (
            "an error of null",
            Answer::body(
                r#"{"error":null,"choices":[{"error":{},"message":{"content":"hellö"}}]}"#,
            ),
        ),
        ("an escaped character", plain(r#""hell\u00f6""#)),
        ("in an array", Answer::body(format!("[{}]", message(r#""hellö""#)))),
        ("status 201", Answer::plain("hellö").with_status(201)),
    ];
    for (what, answer) in cases {
        let provider = Provider::start([answer.clone(), answer]);
        let model = client(&provider);
        let reply = complete(&model).await.unwrap_or_else(|why| panic!("{what}: {why}"));
        assert_eq!(reply.text, "hellö", "{what}");
        let (reply, shown) = self::stream(&model).await;
        assert_eq!(
            reply.unwrap_or_else(|why| panic!("{what}, streamed: {why}")).text,
            "hellö",
            "{what}, streamed"
        );
        assert_eq!(shown, "hellö", "{what}, as shown");
        assert_eq!(provider.requests().len(), 2, "{what}");
    }
}

#[tokio::test]
async fn reasoning_finish_reason_and_usage_are_separate_from_the_text() {
    for (answer, reasoning, finish, usage) in [
        (
            Answer::body(
                r#"{"choices":[{"message":{"content":"hi","reasoning":"why"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":5}}}"#,
            ),
            Some("why"),
            Some("length"),
            (9, 3, 5),
        ),
        (
            Answer::events([
                r#"{"choices":[{"delta":{"reasoning_content":"w"}}],"usage":null}"#,
                r#"{"choices":[{"delta":{"reasoning_content":"hy","content":""}}]}"#,
                r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":9.0,"completion_tokens":3,"prompt_cache_hit_tokens":5}}"#,
            ]),
            Some("why"),
            Some("stop"),
            (9, 3, 5),
        ),
        (
            Answer::body(
                r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"why"}]},{"type":"text","text":"hi"}]}}],"usage":{"prompt_tokens":-1,"completion_tokens":"many"}}"#,
            ),
            Some("why"),
            None,
            (0, 0, 0),
        ),
    ] {
        let provider = Provider::start([answer]);
        let reply = complete(&client(&provider)).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.reasoning.as_deref(), reply.finish.as_deref()),
            ("hi", reasoning, finish)
        );
        assert_eq!((reply.usage.prompt, reply.usage.completion, reply.usage.cached), usage);
    }
}

#[tokio::test]
async fn an_empty_message_is_a_reply_if_it_is_complete() {
    let provider = Provider::start([Answer::body(
        r#"{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}"#,
    )]);
    assert_eq!(complete(&client(&provider)).await.unwrap().text, "");
}

#[tokio::test]
async fn a_megabyte_is_read_from_small_events() {
    let text = "wörd ".repeat(40_000);
    let provider = Provider::start([Answer::streamed(text.clone())]);
    let (reply, shown) = stream(&client(&provider)).await;
    assert!(reply.unwrap().text == text && shown == text);
}
