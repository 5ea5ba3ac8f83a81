//! Tests runs with misbehaving models and endpoints. Each run continues or ends with a clear error,
//! and none hangs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::json;
use wattle_agent::Settings;
use wattle_agent::model::Timeouts;
use wattle_machine::Ending;
use wattle_tests::World;
use wattle_tests::provider::{Answer, Provider};

use super::endpoint::{calling, quick, remote};

/// A number of answers that no run reaches.
const ENDLESS: usize = 1_000;

/// The expected outcome of a run that starts with faulty answers.
enum Expected {
    /// The run ends with its answer.
    Well,
    /// The run ends with an error that contains this string.
    Error(&'static str),
}

use Expected::{Error, Well};

/// Returns a streamed call. Each piece is the JSON of an item in `tool_calls`.
fn pieces(pieces: &[serde_json::Value]) -> Answer {
    let piece = |piece: &serde_json::Value| {
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]}).to_string()
    };
    let end =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string();
    Answer::events(pieces.iter().map(piece).chain([end, "[DONE]".to_owned()]))
}

fn function(name: &str, arguments: serde_json::Value) -> serde_json::Value {
    json!({"name": name, "arguments": arguments})
}

fn whole(calls: serde_json::Value) -> Answer {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    Answer::body(json!({"choices": [{"index": 0, "message": message}]}).to_string())
}

fn delta(text: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string()
}

fn gzip(bytes: &str) -> Answer {
    Answer::body(bytes.to_owned()).header("content-encoding", "gzip")
}

fn status(status: u16, words: &str) -> Answer {
    Answer::status(status).with_body(json!({"error": {"message": words}}).to_string())
}

/// Returns sequences of faulty answers, each with a description and the expected outcome of the
/// run.
fn faults() -> Vec<(&'static str, Vec<Answer>, Expected)> {
    let count = "{\"text\":\"a b\"}";
    vec![
        (
            "arguments in fragments",
            vec![pieces(&[
                json!({
                    "index": 0, "id": "c1", "type": "function",
                    "function": function("text_count", json!("")),
                }),
                json!({"index": 0, "function": {"arguments": "{\"te"}}),
                json!({"index": 0, "function": {"arguments": "xt\":\"a"}}),
                json!({"index": 0, "function": {"arguments": " b\"}"}}),
            ])],
            Well,
        ),
        (
            "arguments as an object",
            vec![whole(json!([
                {"id": "c1", "function": function("text_count", json!({"text": "a b"}))},
            ]))],
            Well,
        ),
        ("no id", vec![whole(json!([{"function": function("text_count", json!(count))}]))], Well),
        (
            "the same id twice",
            vec![whole(json!([
                {"id": "c", "function": function("text_count", json!(count))},
                {"id": "c", "function": function("now", json!("{}"))},
            ]))],
            Well,
        ),
        (
            "the same index for two calls",
            vec![pieces(&[
                json!({"index": 0, "id": "c1", "function": function("text_count", json!(count))}),
                json!({
                    "index": 0, "id": "c2",
                    "function": function("text_count", json!("{\"text\":\"c\"}")),
                }),
            ])],
            Well,
        ),
        ("arguments that are not JSON", vec![calling("text_count", "{text: a b")], Well),
        (
            "arguments with a comma too many",
            vec![calling("text_count", "{\"text\":\"a b\",}")],
            Well,
        ),
        ("no arguments at all", vec![calling("text_count", "")], Well),
        ("a function that there is not", vec![calling("count_words", "{}")], Well),
        ("a function without a name", vec![calling("", "{}")], Well),
        (
            "a call in the text",
            vec![Answer::text(
                "<tool_call>{\"name\":\"text_count\",\"arguments\":{\"text\":\"a b\"}}</tool_call>",
            )],
            Well,
        ),
        (
            "an empty message",
            vec![Answer::body(
                "{\"choices\":[{\"message\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}",
            )],
            Well,
        ),
        (
            "only thoughts",
            vec![Answer::body(
                "{\"choices\":[{\"message\":{\"content\":null,\"reasoning\":\"hm\"},\
                 \"finish_reason\":\"stop\"}]}",
            )],
            Well,
        ),
        (
            "an answer that is cut off",
            vec![Answer::body(
                json!({"choices": [{
                    "message": {"content": "ToolCall::Wat(```wat\n(resv"},
                    "finish_reason": "length",
                }]})
                .to_string(),
            )],
            Well,
        ),
        (
            "a call that is cut off",
            vec![{
                let call = json!({
                    "id": "c1", "function": function("wat", json!("{\"body\":\"(resv ")),
                });
                Answer::body(
                    json!({"choices": [{
                        "message": {"content": null, "tool_calls": [call]},
                        "finish_reason": "length",
                    }]})
                    .to_string(),
                )
            }],
            Well,
        ),
        (
            "an error inside of a stream",
            vec![Answer::events([
                delta("ha"),
                json!({"error": {"message": "Overloaded", "code": 529}}).to_string(),
            ])],
            Well,
        ),
        (
            "an error that stays",
            vec![Answer::body("{\"error\":{\"message\":\"no such role\",\"code\":400}}")],
            Error("no such role"),
        ),
        (
            "half a character a piece",
            vec![
                Answer::events([
                    delta("ToolCall::Catalog(\"text_count\", \"ä € 😀\")"),
                    "[DONE]".to_owned(),
                ])
                .pieces(1),
            ],
            Well,
        ),
        (
            "another content type",
            vec![calling("text_count", count).header("content-type", "text/html")],
            Well,
        ),
        (
            "429 with seconds",
            vec![
                status(429, "slow").header("retry-after", "0"),
                status(429, "slow").header("retry-after", "0.01"),
            ],
            Well,
        ),
        (
            "429 with a date",
            vec![status(429, "slow").header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")],
            Well,
        ),
        ("429 without a word", vec![status(429, "slow")], Well),
        (
            "429 forever",
            vec![status(429, "slow"); ENDLESS],
            Error("limits the rate of requests (429): slow (asked "),
        ),
        ("402", vec![status(402, "top up")], Error("no credit left: top up")),
        ("401", vec![status(401, "who?")], Error("rejected the key (401): check `WATTLE_API_KEY`")),
        ("529", vec![status(529, "Overloaded")], Well),
        ("a reset within", vec![Answer::events([delta("hal")]).then_break_off()], Well),
        ("a reset before the headers", vec![Answer::close()], Well),
        ("resets for ever", vec![Answer::close(); ENDLESS], Error("broke")),
        ("an empty body", vec![Answer::body("")], Well),
        ("no choices", vec![Answer::body("{\"choices\":[]}")], Well),
        (
            "no finish reason",
            vec![Answer::events([delta("ToolCall::Catalog(\"text_count\", \"a b\")")])],
            Well,
        ),
        (
            "comments between",
            vec![Answer::body(format!(
                ": a\n\n: b\n\ndata: {}\n\n: c\n\ndata: [DONE]\n\n",
                delta("ToolCall::Catalog(\"now\")")
            ))],
            Well,
        ),
        (
            "CRLF",
            vec![Answer::body(format!(
                "data: {}\r\n\r\ndata: [DONE]\r\n\r\n",
                delta("ToolCall::Catalog(\"now\")")
            ))],
            Well,
        ),
        (
            "CR",
            vec![Answer::body(format!(
                "data: {}\r\rdata: [DONE]\r\r",
                delta("ToolCall::Catalog(\"now\")")
            ))],
            Well,
        ),
        (
            "no [DONE], and silence",
            vec![
                Answer::events([
                    delta("ToolCall::Catalog(\"now\")"),
                    json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}).to_string(),
                ])
                .then_break_off(),
            ],
            Well,
        ),
        (
            "alive and nothing else",
            vec![Answer::body(": ping\n\n".repeat(400)).pieces(8).pause(Duration::from_millis(10))],
            Well,
        ),
        (
            "a huge frame",
            vec![Answer::text(format!(
                "ToolCall::Catalog(\"text_count\", \"{}\")",
                "a ".repeat(500_000)
            ))],
            Well,
        ),
        ("rubbish for gzip", vec![gzip("this is not gzip")], Well),
        (
            "a redirect",
            vec![Answer::status(307).header("location", "https://elsewhere.example/v1")],
            Error("redirects to `https://elsewhere.example/v1`"),
        ),
        ("204", vec![Answer::status(204)], Well),
        ("a page of HTML", vec![Answer::body("<html><body>Bad gateway</body></html>")], Well),
        (
            "HTML for ever",
            vec![Answer::body("<html><body>Bad gateway</body></html>"); ENDLESS],
            Error("Bad gateway"),
        ),
        (
            "usage of texts",
            vec![Answer::body(
                json!({
                    "choices": [{"message": {"content": "ToolCall::Catalog(\"now\")"}}],
                    "usage": {"prompt_tokens": "9", "completion_tokens": null},
                })
                .to_string(),
            )],
            Well,
        ),
        ("JSON for a stream", vec![Answer::plain("ToolCall::Catalog(\"now\")")], Well),
        ("a stream for JSON", vec![Answer::streamed("ToolCall::Catalog(\"now\")")], Well),
        ("no HTTP at all", vec![Answer::raw("220 mail.example ESMTP\r\n")], Well),
        (
            "a drip",
            vec![Answer::streamed("word ".repeat(300)).pieces(2).pause(Duration::from_millis(10))],
            Well,
        ),
        (
            "headers, then nothing",
            vec![Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").then_hang()],
            Well,
        ),
        (
            "400 of length",
            vec![status(400, "maximum context length is 4096 tokens")],
            Error("exceeds the context window"),
        ),
    ]
}

/// Runs a job with an endpoint that first misbehaves and then responds correctly. Returns a
/// description of the outcome if it is unexpected.
async fn unexpected_outcome(
    world: &World,
    preset: &str,
    what: &str,
    answers: &[Answer],
    expected: &Expected,
) -> Option<String> {
    let provider = Provider::start(answers.iter().cloned());
    for _ in 0..6 {
        provider.push(Answer::text("ToolCall::Response(\"fine\")"));
    }
    let (request, retry_for) = (Duration::from_millis(1_500), Duration::from_secs(1));
    let timeouts = Timeouts { request, retry_for, ..quick() };
    let model = Arc::new(remote(&provider, preset, "m", timeouts));
    let settings = Settings { timeouts, ..Settings::default() };
    let run = world.run(&model, &settings, world.job("go"));
    let Ok((report, _)) = tokio::time::timeout(Duration::from_secs(60), run).await else {
        return Some(format!("{preset}, {what}: it hangs"));
    };
    let is_right = match expected {
        Well => report.ending == Ending::Answered { text: "fine".to_owned(), data: None },
        Error(words) => {
            matches!(
                &report.ending,
                Ending::Failed { message }
                    if message.starts_with("error: ") && message.contains(words)
            )
        }
    };
    (!is_right).then(|| format!("{preset}, {what}: {:?}", report.ending))
}

#[tokio::test]
async fn every_run_ends() {
    let faults = faults();
    assert!(faults.len() >= 40, "{} faults", faults.len());
    let world = World::new();
    // Only the first preset declares support for functions.
    let runs = ["openai", "vllm"].iter().flat_map(|preset| {
        let world = &world;
        faults.iter().map(move |(what, answers, expected)| {
            unexpected_outcome(world, preset, what, answers, expected)
        })
    });
    let wrong: Vec<Option<String>> = stream::iter(runs).buffer_unordered(12).collect().await;
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
