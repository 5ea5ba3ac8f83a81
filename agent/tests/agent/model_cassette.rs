//! Tests of recordings of model answers: playback, recording, and errors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use wattle_agent::model::{
    ApiKey, Cassette, Delta, Mask, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest,
    Recorder, Timeouts, ask_within,
};
use wattle_machine::{AnswerPart, Message, Usage};

const HEADER: &str = "{\"wattle_cassette\":1,\"model\":\"demo\"}\n";

async fn ask(model: &dyn Model, messages: &[Message]) -> Result<ModelReply, ModelError> {
    model.complete(ModelRequest::new(messages)).await
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    (folder, path)
}

#[tokio::test]
async fn turns_play_in_order_and_then_the_recording_ends() {
    let text = format!(
        "{HEADER}\n{{\"reply\":\"one\"}}\r\n{{\"reply\":{{\"text\":\"two\",\"usage\":{{\"prompt\":\
         7}},\"finish\":\"stop\"}}}}"
    );
    let model = Cassette::parse(&text).unwrap();
    assert_eq!(model.name(), "demo");
    assert_eq!(
        ask(&model, &[]).await.unwrap(),
        ModelReply { text: "one".to_owned(), ..ModelReply::default() }
    );
    let two = ask(&model, &[]).await.unwrap();
    assert_eq!(
        (two.text.as_str(), two.usage.prompt, two.finish.as_deref()),
        ("two", 7, Some("stop"))
    );
    let why = ask(&model, &[]).await.unwrap_err();
    assert_eq!(why.kind(), ModelErrorKind::Cassette);
    assert!(why.to_string().contains("it has 2 turns"), "{why}");
}

#[tokio::test]
async fn playback_streams() {
    let model =
        Cassette::parse(&format!("{HEADER}{{\"reply\":\"a few  words\\nhere \"}}\n")).unwrap();
    let mut pieces = Vec::new();
    let mut take = |delta: Delta<'_>| match delta {
        Delta::Part(AnswerPart::Text(text)) => pieces.push(text.to_owned()),
        Delta::Part(part) => pieces.push(format!("{part:?}")),
        Delta::Retry { .. } => pieces.push("retry".to_owned()),
    };
    let reply = model.stream(ModelRequest::new(&[]), &mut take).await.unwrap();
    assert!(pieces.len() > 1);
    assert_eq!(pieces.concat(), reply.text);
}

#[tokio::test]
async fn a_recording_plays_what_was_recorded() {
    let (_folder, path) = folder();
    let source = format!(
        "{HEADER}{{\"reply\":{{\"text\":\"ä\\n\\\"b\\\"\",\"reasoning\":\"hm\",\"usage\":{{\"\
         prompt\":1,\"completion\":2,\"cached\":3}}}}}}\n{{\"reply\":\"two\"}}\n{{\"reply\":\"\
         three\"}}\n"
    );
    let asked = [Message::system("be brief"), Message::user("one?")];
    let source = Arc::new(Cassette::parse(&source).unwrap());
    let recorder = Recorder::create(source, &path, Mask::default()).unwrap();
    let one = ask(&recorder, &asked).await.unwrap();
    recorder.stream(ModelRequest::new(&asked[..1]), &mut |_| {}).await.unwrap();
    // The recording can be read while it is being written.
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    drop(recorder);

    // A second recorder appends to the turns of the first and adds a missing line break.
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap().trim_end()).unwrap();
    let next = Cassette::parse(&format!("{HEADER}{{\"reply\":\"three\"}}")).unwrap();
    ask(&Recorder::create(Arc::new(next), &path, Mask::default()).unwrap(), &[]).await.unwrap();

    let model = Cassette::open(&path).unwrap().strict();
    assert_eq!(ask(&model, &asked).await.unwrap(), one);
    assert_eq!(one.usage, Usage { prompt: 1, completion: 2, cached: 3, cost: None });
    assert_eq!(ask(&model, &asked[..1]).await.unwrap().text, "two");
    assert_eq!(ask(&model, &[]).await.unwrap().text, "three");
}

#[tokio::test]
async fn a_strict_recording_names_the_first_difference() {
    let (_folder, path) = folder();
    let recorded = [Message::system("rules"), Message::user("first line\nsecond line")];
    let source = Arc::new(Cassette::parse(&format!("{HEADER}{{\"reply\":\"x\"}}")).unwrap());
    let recorder = Recorder::create(source, &path, Mask::default()).unwrap();
    ask(&recorder, &recorded).await.unwrap();
    for (asked, words) in [
        (
            vec![Message::system("other rules"), recorded[1].clone()],
            "turn 1: message 1 of 2 (system) is another one",
        ),
        (
            vec![recorded[0].clone(), Message::user("first line\n2nd line")],
            "line 2 was `second line`, is `2nd line`",
        ),
        (vec![recorded[0].clone(), Message::user("first line")], "line 2 `second line` is missing"),
        (
            vec![recorded[0].clone(), Message::user("first line\nsecond line\nx")],
            "line 3 `x` was not there",
        ),
        (
            vec![recorded[0].clone(), Message::assistant("first line\nsecond line")],
            "message 2 of 2 (assistant)",
        ),
        (recorded[..1].to_vec(), "it has 1 messages, recorded were 2"),
        ([&recorded[..], &recorded[..1]].concat(), "it has 3 messages, recorded were 2"),
    ] {
        let why = ask(&Cassette::open(&path).unwrap().strict(), &asked).await.unwrap_err();
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(
            ask(&Cassette::open(&path).unwrap(), &asked).await.unwrap().text,
            "x",
            "only strict playback minds"
        );
    }
}

/// Each run has its own nonce, and a recording can be played in any run.
#[tokio::test]
async fn a_recording_fits_a_run_with_another_nonce() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let request = |nonce: &str, result: &str| {
        vec![
            Message::system("system"),
            Message::user(format!("go\n\n[Note {nonce}] {nonce} is the code of this run.")),
            Message::assistant("ToolCall::Catalog(\"now\")"),
            Message::user(format!("[Observation {nonce} (step 1)] Execution result:\n{result}")),
        ]
    };
    let source = Arc::new(Cassette::parse(&format!("{HEADER}{{\"reply\":\"x\"}}")).unwrap());
    let recorder = Recorder::create(source, &path, Mask::default()).unwrap();
    ask(&recorder, &request("k7m2xq", "12:00")).await.unwrap();
    assert!(!std::fs::read_to_string(&path).unwrap().contains("k7m2xq"));
    let play = || Cassette::open(&path).unwrap().strict();
    assert_eq!(ask(&play(), &request("z3z3z3", "12:00")).await.unwrap().text, "x");
    let why = ask(&play(), &request("z3z3z3", "13:00")).await.unwrap_err();
    assert!(why.to_string().contains("line 2 was `12:00`, is `13:00`"), "{why}");
}

/// A recording may be shared, so keys and secrets in it are masked. Masked replies are never
/// played. All other replies can be played.
#[tokio::test]
async fn a_masked_reply_is_recorded_and_never_played() {
    let (_folder, path) = folder();
    let mask = Mask::default();
    mask.add_key(&ApiKey::new("sk-0123456789").unwrap());
    let replies = [
        serde_json::json!({"reply": "plain"}),
        serde_json::json!({"reply": "the key is sk%2D0123456789"}),
        serde_json::json!({"reply": {"text": "", "calls":
            [{"id": "1", "name": "wat", "arguments": "{\"body\":\"sk-0123456789\"}"}]}}),
    ];
    let source = replies.map(|reply| format!("{reply}\n")).concat();
    let source = Arc::new(Cassette::parse(&format!("{HEADER}{source}")).unwrap());
    let recorder = Recorder::create(source, &path, mask).unwrap();
    let asked = |text: &str| [Message::user(text)];
    assert_eq!(ask(&recorder, &asked("what is sk-0123456789?")).await.unwrap().text, "plain");
    let said = ask(&recorder, &asked("two")).await.unwrap();
    assert_eq!(said.text, "the key is sk%2D0123456789", "what the model says is not masked");
    let called = ask(&recorder, &asked("three")).await.unwrap();
    assert_eq!(called.calls[0].arguments, "{\"body\":\"sk-0123456789\"}");

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("0123456789") && text.contains("what is ***?"), "{text}");
    let model = Cassette::open(&path).unwrap();
    assert_eq!(ask(&model, &asked("what is sk-0123456789?")).await.unwrap().text, "plain");
    for (turn, text) in [(2, "two"), (3, "three")] {
        let why = ask(&model, &asked(text)).await.unwrap_err();
        let words = format!("turn {turn} of the recording contains a masked key or secret");
        assert!(why.to_string().starts_with(&words), "{why}");
    }
}

#[test]
fn an_invalid_recording_is_reported_by_line() {
    for (text, words) in [
        ("", "line 1: the file is empty"),
        ("\n\n", "line 1: the file is empty"),
        ("hello", "line 1: it is not a header"),
        ("{\"reply\":\"x\"}", "line 1: it is not a header"),
        ("{\"wattle_cassette\":2}", "line 1: version 2 is unknown"),
        (&format!("{HEADER}\n{{\"reply\":\"x\"}}\n{{\"answer\":1}}"), "line 4: it is not a turn"),
        (&format!("{HEADER}{{\"reply\":"), "line 2: it is not a turn"),
        (&format!("{HEADER}{{\"reply\":7}}"), "line 2: it is not a turn"),
    ] {
        let why = Cassette::parse(text).unwrap_err();
        assert!(why.to_string().contains(words), "{text}: {why}");
        assert!(why.is_configuration());
    }
    let (_folder, path) = folder();
    assert!(Cassette::open(&path).unwrap_err().to_string().contains("run.jsonl"));
    std::fs::write(&path, "my notes").unwrap();
    let model = Arc::new(Cassette::parse(HEADER).unwrap());
    let why = Recorder::create(model, &path, Mask::default()).unwrap_err();
    assert!(why.to_string().contains("line 1"), "{why}");
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "my notes",
        "a file that is not a recording stays as it was"
    );
}

/// A model that never answers and ignores its time limits.
struct Stuck;

impl Model for Stuck {
    fn name(&self) -> &str {
        "stuck"
    }

    fn complete<'a>(
        &'a self,
        _: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        pending().boxed()
    }

    fn stream<'a>(
        &'a self,
        _: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        pending().boxed()
    }
}

#[tokio::test]
async fn a_model_that_never_answers_hits_the_hard_timeout() {
    let short = Duration::from_millis(5);
    let timeouts =
        Timeouts { request: short, retry_for: Duration::ZERO, slack: short, ..Timeouts::default() };
    let why = ask_within(&Stuck, &timeouts, ModelRequest::new(&[]), &mut |_| {}).await.unwrap_err();
    assert_eq!(
        (why.kind(), why.to_string().as_str()),
        (ModelErrorKind::HardTimeout, "llm hard timeout")
    );
}
