//! The model's client against an endpoint that misbehaves.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

use std::time::Duration;

use wattle_agent::model::{
    ChatCompletions, Delta, EndpointSettings, Model, ModelError, ModelErrorKind as Kind, ModelReply, ModelRequest,
    Timeouts, ask_within, resolve,
};
use wattle_capability::egress::{Egress, Policy};
use wattle_machine::{Message, Usage};
use wattle_tests::provider::{Answer, Provider};

const KEY: &str = "sk-very-secret-0123456789";

fn quick() -> Timeouts {
    let ms = Duration::from_millis;
    Timeouts { request: ms(10_000), retries: 2, slack: ms(100), backoff: ms(1), longest_wait: ms(20) }
}

fn client_with(provider: &Provider, timeouts: Timeouts, key: Option<&str>) -> ChatCompletions {
    let base = provider.base_url();
    let settings = EndpointSettings { base_url: Some(&base), model: Some("test-model"), ..Default::default() };
    let endpoint = resolve(&settings, |name| key.filter(|_| name == "WATTLE_API_KEY").map(str::to_owned)).unwrap();
    ChatCompletions::new(endpoint, &Egress::new(Policy::default()), timeouts).unwrap()
}

fn client(provider: &Provider) -> ChatCompletions {
    client_with(provider, quick(), Some(KEY))
}

fn question() -> Vec<Message> {
    vec![Message::system("be brief"), Message::user("say hello")]
}

async fn complete(model: &dyn Model) -> Result<ModelReply, ModelError> {
    model.complete(ModelRequest::new(&question())).await
}

/// Streams, and gives what was shown too; a restart shows as `⟲`.
async fn stream(model: &dyn Model) -> (Result<ModelReply, ModelError>, String) {
    let mut shown = String::new();
    let mut take = |delta: Delta<'_>| match delta {
        Delta::Text(text) => shown.push_str(text),
        Delta::Restart => shown.push('⟲'),
    };
    let reply = model.stream(ModelRequest::new(&question()), &mut take).await;
    (reply, shown)
}

fn delta(text: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string()
}

#[tokio::test]
async fn a_question_goes_out_and_a_reply_comes_back() {
    let provider = Provider::start([Answer::text("hello there"), Answer::text("hello there")]);
    let model = client(&provider);
    let plain = complete(&model).await.unwrap();
    let (streamed, shown) = stream(&model).await;
    assert_eq!(plain, streamed.unwrap());
    assert_eq!(
        (plain.text.as_str(), shown.as_str(), plain.finish.as_deref()),
        ("hello there", "hello there", Some("stop"))
    );
    assert_eq!(plain.usage, Usage { prompt: 4, completion: 2, cached: 0 });

    let requests = provider.requests();
    for request in &requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.messages(), ["be brief", "say hello"]);
        assert!(request.body.contains(r#""temperature":0.3,"max_tokens":4096"#), "{}", request.body);
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
        let settings = EndpointSettings { base_url: Some(&base), model: Some("m"), ..Default::default() };
        let endpoint = resolve(&settings, |_| None).unwrap();
        let model = ChatCompletions::new(endpoint, &Egress::new(Policy::default()), quick()).unwrap();
        complete(&model).await.unwrap();
        assert_eq!(provider.requests()[0].path, path);
        assert_eq!(provider.requests()[0].header("authorization"), None);
    }
}

/// Every way in which a sloppy endpoint may say `hellö`, whether a stream was asked for or not.
#[tokio::test]
async fn sloppy_answers_are_understood() {
    let (he, llo) = (delta("he"), delta("llö"));
    let message = |content: &str| format!(r#"{{"choices":[{{"message":{{"content":{content}}}}}]}}"#);
    let plain = |content: &str| Answer::body(message(content));
    let stream = |text: String| Answer::body(text);
    let cases: Vec<(&str, Answer)> = vec![
        ("JSON although a stream was asked", Answer::plain("hellö")),
        ("a stream although JSON was asked", Answer::streamed("hellö")),
        ("a byte at a time", Answer::streamed("hellö").pieces(1)),
        ("JSON a byte at a time", Answer::plain("hellö").pieces(1)),
        (
            "wrong content type",
            Answer::events([&he, &llo, "[DONE]"]).header("content-type", "text/html; charset=latin1"),
        ),
        ("JSON of a wrong content type", plain(r#""hellö""#).header("content-type", "text/event-stream")),
        ("CRLF", stream(format!("data: {he}\r\n\r\ndata: {llo}\r\n\r\ndata: [DONE]\r\n\r\n"))),
        ("CR", stream(format!("data: {he}\r\rdata: {llo}\r\rdata: [DONE]\r\r"))),
        ("no blank after the colon", stream(format!("data:{he}\n\ndata:{llo}\n\ndata:[DONE]\n\n"))),
        (
            "comments and other fields",
            stream(format!(": ping\n\nid: 1\nevent: message\nretry: 3\ndata: {he}\n\n:\n\ndata: {llo}\n\n")),
        ),
        ("words between the events", Answer::events(["ping", &he, "", "null", &llo, "[DONE]"])),
        ("no [DONE]", Answer::events([&he, &llo])),
        ("no empty line at the end", stream(format!("data: {he}\n\ndata: {llo}"))),
        ("no empty line between the events", stream(format!("data: {he}\ndata: {llo}\ndata: [DONE]\n\n"))),
        (
            "data over several lines",
            stream(
                "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\n data: x\ndata: \"hellö\"}}]}\n\n".to_owned(),
            ),
        ),
        ("a byte order mark", stream(format!("\u{feff}data: {he}\n\ndata: {llo}\n\n"))),
        ("JSON with a byte order mark", Answer::body(format!("\u{feff}\r\n {}", message(r#""hellö""#)))),
        ("blanks before", stream(format!("\n\n  \n\ndata: {he}\n\ndata: {llo}\n\n"))),
        ("blanks after the JSON", Answer::body(format!("{}\n\n \n", message(r#""hellö""#)))),
        ("more after [DONE]", Answer::events([&he, &llo, "[DONE]", &delta("!"), "{broken"])),
        ("silence after [DONE]", Answer::events([&he, &llo, "[DONE]"]).then_hang()),
        ("a break after [DONE]", Answer::events([&he, &llo, "[DONE]"]).then_break_off()),
        (
            "a break after the finish reason",
            Answer::events([&he, &llo, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#]).then_break_off(),
        ),
        (
            "null and empty deltas",
            Answer::events([
                r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#,
                r#"{"choices":[{"delta":null}]}"#,
                r#"{"choices":[]}"#,
                &he,
                &llo,
            ]),
        ),
        ("a whole message in an event", Answer::events([message(r#""hellö""#)])),
        ("the whole message repeated at the end", Answer::events([&he, &llo, &message(r#""hellö""#)])),
        ("several choices", Answer::events([&he, r#"{"choices":[{"index":1,"delta":{"content":"no"}}]}"#, &llo])),
        ("an array of parts", plain(r#"[{"type":"text","text":"he"},{"type":"image_url"},"l",{"text":"lö"}]"#)),
        ("the legacy field", Answer::body(r#"{"choices":[{"text":"hellö"}]}"#)),
        (
            "a refusal in place of the content",
            Answer::body(r#"{"choices":[{"message":{"content":null,"refusal":"hellö"}}]}"#),
        ),
        ("an error of null", Answer::body(r#"{"error":null,"choices":[{"error":{},"message":{"content":"hellö"}}]}"#)),
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
        assert_eq!(reply.unwrap_or_else(|why| panic!("{what}, streamed: {why}")).text, "hellö", "{what}, streamed");
        assert_eq!(shown, "hellö", "{what}, as shown");
        assert_eq!(provider.requests().len(), 2, "{what}");
    }
}

#[tokio::test]
async fn reasoning_finish_and_usage_are_told_apart_from_the_text() {
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
async fn an_empty_message_is_a_reply_where_it_has_an_end() {
    let provider =
        Provider::start([Answer::body(r#"{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}"#)]);
    assert_eq!(complete(&client(&provider)).await.unwrap().text, "");
}

/// What may pass is asked again, twice; then the last failure is told.
#[tokio::test]
async fn what_may_pass_is_asked_again() {
    let cut = Answer::events([delta("half")]).then_break_off();
    let cases: Vec<(&str, Answer, Kind, &str)> = vec![
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
        ("broken off", cut, Kind::Network, "broke"),
        ("JSON broken off", Answer::plain("x").then_break_off(), Kind::Network, "broke"),
        ("silent", Answer::hang(), Kind::Timeout, "within 300 ms"),
        ("silent within", Answer::events([delta("half")]).then_hang(), Kind::Timeout, "within 300 ms"),
        (
            "dripping",
            Answer::plain("x".repeat(4000)).pieces(1).pause(Duration::from_millis(5)),
            Kind::Timeout,
            "within 300 ms",
        ),
        ("empty", Answer::body(""), Kind::Malformed, "the response is empty"),
        ("no choices", Answer::body(r#"{"choices":[]}"#), Kind::Malformed, "no message"),
        ("another object", Answer::body(r#"{"object":"list","data":[]}"#), Kind::Malformed, "no message"),
        ("a page", Answer::body("<html><body>Sign in</body></html>"), Kind::Malformed, "Sign in"),
        ("broken JSON", Answer::body(r#"{"choices":[{"message":{"content":"x"}]}"#), Kind::Malformed, "expected"),
        ("a broken event", Answer::events([r#"{"choices":[{"delta":{"content":"x"#]), Kind::Malformed, "EOF"),
        ("deep JSON", Answer::body("[".repeat(100_000)), Kind::Malformed, "recursion"),
        (
            "a passing error in status 200",
            Answer::body(r#"{"error":{"code":502,"message":"upstream"}}"#),
            Kind::Unavailable,
            "(502): upstream",
        ),
        (
            "a passing error in a stream",
            Answer::events([&delta("half"), r#"{"error":{"type":"server_error","message":"oops"}}"#]),
            Kind::Unavailable,
            "oops",
        ),
        (
            "an error in a choice",
            Answer::events([r#"{"choices":[{"error":{"code":"429","message":"slow"},"finish_reason":"error"}]}"#]),
            Kind::Unavailable,
            "slow",
        ),
    ];
    for (what, answer, kind, words) in cases {
        let slow = kind == Kind::Timeout;
        let answers = if slow { vec![answer, Answer::text("well")] } else { vec![answer; 3] };
        let provider = Provider::start(answers);
        let mut timeouts = quick();
        if slow {
            timeouts = Timeouts { request: Duration::from_millis(300), retries: 0, ..timeouts };
        }
        let why = complete(&client_with(&provider, timeouts, Some(KEY))).await.expect_err(what);
        assert_eq!(why.kind(), kind, "{what}: {why}");
        assert!(why.to_string().contains(words), "{what}: {why}");
        assert_eq!(why.to_string().ends_with(" (asked 3 times)"), !slow, "{what}: {why}");
        assert_eq!(provider.requests().len(), if slow { 1 } else { 3 }, "{what}");
        if slow {
            // The endpoint has recovered.
            assert_eq!(complete(&client(&provider)).await.unwrap().text, "well", "{what}");
        }
    }
}

#[tokio::test]
async fn a_recovered_endpoint_answers_and_what_was_shown_is_void() {
    let half = [delta("hal"), delta("f")];
    for (what, answers, shown) in [
        ("429, 500", vec![Answer::status(429).header("retry-after", "0"), Answer::status(500)], "whole"),
        ("broken off", vec![Answer::events(&half).then_break_off()], "half⟲whole"),
        (
            "broken twice",
            vec![Answer::events(&half).then_break_off(), Answer::events(&half).then_break_off()],
            "half⟲half⟲whole",
        ),
        ("silent within", vec![Answer::events(&half).then_hang()], "half⟲whole"),
        ("an error within", vec![Answer::events([&half[0], r#"{"error":{"message":"Overloaded"}}"#])], "hal⟲whole"),
        ("never connected", vec![Answer::close()], "whole"),
    ] {
        let provider = Provider::start(answers);
        provider.push(Answer::text("whole"));
        let timeouts = Timeouts { request: Duration::from_millis(1500), ..quick() };
        let (reply, seen) = stream(&client_with(&provider, timeouts, Some(KEY))).await;
        assert_eq!(reply.unwrap_or_else(|why| panic!("{what}: {why}")).text, "whole", "{what}");
        assert_eq!(seen, shown, "{what}");
        assert_eq!(provider.left(), 0, "{what}");
    }
}

#[tokio::test]
async fn what_cannot_pass_is_told_at_once() {
    let json = |status: u16, body: &str| Answer::status(status).with_body(body);
    for (what, answer, kind, words) in [
        (
            "401",
            json(401, r#"{"error":{"message":"bad key"}}"#),
            Kind::Key,
            "refused the key (401): check `WATTLE_API_KEY`: bad key",
        ),
        ("403", json(403, r#"{"error":"not yours"}"#), Kind::Key, "`WATTLE_API_KEY`: not yours"),
        ("402", json(402, r#"{"error":{"message":"top up"}}"#), Kind::Credit, "no credit left: top up"),
        (
            "404",
            json(404, r#"{"detail":"Not Found"}"#),
            Kind::NotFound,
            "/v1/chat/completions for model `test-model` (404): check the base URL and the model: Not Found",
        ),
        ("400", json(400, r#"{"message":"bad role"}"#), Kind::Request, "(400): bad role"),
        ("422", json(422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#), Kind::Request, "field required"),
        (
            "400 of length",
            json(
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            ),
            Kind::TooLong,
            "longer than model `test-model` reads (400): This model's",
        ),
        ("413", json(413, ""), Kind::TooLong, "longer than model"),
        (
            "a relayed error",
            json(400, r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{no tools}"}}}"#),
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
        ("an error object", Answer::body(r#"{"object":"error","message":"bad","code":400}"#), Kind::Request, "bad"),
        (
            "an error in a stream",
            Answer::events([&delta("x"), r#"{"error":{"message":"content filtered"}}"#]),
            Kind::Request,
            "content filtered",
        ),
        ("too large", Answer::plain("x".repeat(17 << 20)), Kind::Malformed, "larger than the limit"),
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
    assert_eq!(why.to_string(), "the provider wants a key (401): set `WATTLE_API_KEY`");
    assert!(why.is_configuration());
}

#[tokio::test]
async fn nobody_listening_is_told_with_the_address() {
    let provider = Provider::start([]);
    let base = provider.base_url();
    let model = client(&provider);
    drop(provider);
    // The port is free once the thread that listened has ended; until then the connection is closed at once.
    let why = complete(&model).await.unwrap_err();
    assert_eq!(why.kind(), Kind::Network);
    assert!(why.to_string().contains(base.trim_end_matches("/v1")), "{why}");
}

#[tokio::test]
async fn quotations_are_bounded_and_on_one_line() {
    let long = format!("line\n{}", "wörd ".repeat(1000));
    let provider = Provider::start([Answer::status(400).with_body(long)]);
    let text = complete(&client(&provider)).await.unwrap_err().to_string();
    assert!(text.chars().count() < 360 && text.ends_with('…') && !text.contains('\n'), "{text}");
}

#[tokio::test]
async fn an_endless_error_body_ends() {
    let provider = Provider::start([Answer::status(400).with_body("x".repeat(1 << 20)).then_hang()]);
    assert_eq!(complete(&client(&provider)).await.unwrap_err().kind(), Kind::Request);
}

/// An endpoint that gives the key back, in whichever place, does not bring it into any text.
#[tokio::test]
async fn the_key_is_nowhere_to_be_seen() {
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
    let provider = Provider::start([
        Answer::text(echo.clone()),
        Answer::streamed(echo.clone()).pieces(3),
        Answer::events(echo.chars().map(|char| delta(&char.to_string()))),
    ]);
    let model = client(&provider);
    assert_eq!(complete(&model).await.unwrap().text, "you sent Bearer ***.");
    for _ in 0..2 {
        let (reply, shown) = stream(&model).await;
        assert_eq!((reply.unwrap().text.as_str(), shown.as_str()), ("you sent Bearer ***.", "you sent Bearer ***."));
    }
    assert!(!format!("{model:?}").contains("very-secret"));
}

#[tokio::test]
async fn fields_that_an_endpoint_does_not_know_are_left_out() {
    let refuses =
        |words: &str| Answer::status(400).with_body(serde_json::json!({"error": {"message": words}}).to_string());
    let provider = Provider::start([
        refuses(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
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
    assert_eq!(requests.len(), 5, "what was learnt is kept");
    for request in &requests[3..] {
        let body = request.json();
        assert_eq!(body["max_completion_tokens"], 4096);
        for left_out in ["max_tokens", "temperature", "stream_options"] {
            assert!(body.get(left_out).is_none(), "{left_out}");
        }
    }
    // Contradictory complaints end.
    let flip =
        [refuses("unsupported max_tokens, use max_completion_tokens"), refuses("unknown field max_completion_tokens")];
    let provider = Provider::start(flip.iter().cycle().take(20).cloned());
    assert_eq!(complete(&client(&provider)).await.unwrap_err().kind(), Kind::Request);
    assert!(provider.requests().len() < 10);
}

#[tokio::test]
async fn a_wait_that_the_server_asks_for_is_capped() {
    let provider = Provider::start([
        Answer::status(429).header("retry-after", "86400"),
        Answer::status(503).header("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        Answer::text("hello"),
    ]);
    let model = client(&provider);
    let reply = tokio::time::timeout(Duration::from_secs(20), complete(&model)).await.expect("no wait of a day");
    assert_eq!(reply.unwrap().text, "hello");
}

#[tokio::test]
async fn a_turn_ends_at_its_hard_deadline_whatever_the_requests_do() {
    let provider = Provider::start(vec![Answer::hang(); 3]);
    let patient = Timeouts { request: Duration::from_secs(60), ..quick() };
    // The client's own bounds are wider than those that the turn is held to.
    let model = client_with(&provider, patient, Some(KEY));
    let turn = Timeouts { request: Duration::from_millis(20), retries: 1, ..quick() };
    let messages = question();
    let why = ask_within(&model, &turn, ModelRequest::new(&messages), &mut |_| {}).await.unwrap_err();
    assert_eq!(why.to_string(), "llm hard timeout");
}

#[tokio::test]
async fn a_megabyte_comes_through_in_small_events() {
    let text = "wörd ".repeat(40_000);
    let provider = Provider::start([Answer::streamed(text.clone())]);
    let (reply, shown) = stream(&client(&provider)).await;
    assert!(reply.unwrap().text == text && shown == text);
}
