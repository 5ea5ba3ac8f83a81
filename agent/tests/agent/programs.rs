//! Tests of programs that start catalog programs, and of the model answers that are recorded for
//! them.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use wattle_agent::capability::egress::Egress;
use wattle_agent::capability::files::Files;
use wattle_agent::capability::kv::InMemory;
use wattle_agent::catalog::Catalog;
use wattle_agent::model::{
    Cassette, Delta, EmbeddingReply, Mask, Model, ModelError, ModelReply, ModelRequest, Recorder,
};
use wattle_agent::rt::{Code, Exit, Limits, Outcome};
use wattle_agent::{Access, Host, ModelInference, Settings};

/// A model that echoes each question. It answers longer questions sooner.
struct Echo;

impl Model for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            let question = request.messages.last().unwrap().content.to_string();
            tokio::time::sleep(std::time::Duration::from_millis(
                20_u64.saturating_sub(question.len() as u64),
            ))
            .await;
            Ok(ModelReply { text: format!("in short: {question}"), ..ModelReply::default() })
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.complete(request)
    }

    fn embed<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<EmbeddingReply, ModelError>> {
        let vector = vec![text.len() as f64, 0.5];
        async move { Ok(EmbeddingReply { vector, ..EmbeddingReply::default() }) }.boxed()
    }
}

fn host() -> Host {
    Host::new(Limits::default(), Catalog::built_in(), Egress::new(Default::default())).unwrap()
}

fn access(host: &Host, model: Option<Arc<dyn Model>>) -> Access {
    let access = Access::new(host, Arc::new(Files::overlay(None, 1 << 20)));
    match model {
        Some(model) => {
            let inference = Arc::new(ModelInference::new(model, &Settings::default()));
            Access { inference: Some(inference), ..access }
        }
        None => access,
    }
}

async fn run(host: &Host, access: Access, text: &str, args: &[&str]) -> Outcome {
    let program = host.runtime().prepare(text).await.unwrap_or_else(|why| panic!("{why}"));
    let args = args.iter().map(ToString::to_string).collect();
    host.runtime().run(&program, &Arc::new(access.grants()), args).await.unwrap()
}

const MAP: &str = r#"(ret (arr.to_json? (par.map? (arg 0) (arr.from_json? (arg 1)))))"#;

#[tokio::test]
async fn the_reason_why_a_program_cannot_run_is_reported() {
    let host = host();
    for (program, items, code, words) in [
        ("text_cuont", "[\"a\"]", Code::ENOENT, "the nearest: `text_count`"),
        ("json_get", "[\"{}\"]", Code::EPARSE, "required arg"),
        ("ai_summarize", "[\"a\"]", Code::EACCESS, "`ai` is not granted (no model is configured"),
        (
            "file_read",
            "[\"none.txt\"]",
            Code::ENOENT,
            "item 0 (\"none.txt\"): the program returned ENOENT (4): `fs.read`:",
        ),
    ] {
        let outcome = run(&host, access(&host, None), MAP, &[program, items]).await;
        assert_eq!(outcome.exit, Exit::Returned(code), "{program}");
        let why = outcome.failure.unwrap().failure.reason;
        assert!(why.contains(words), "{why}");
    }
}

#[tokio::test]
async fn a_run_leaves_no_resources_behind() {
    let host = host();
    let state = Arc::new(InMemory::default());
    let still = Arc::downgrade(&state);
    let access = Access { state, ..access(&host, None) };
    let items = json!(["tenant:a", "b"]).to_string();
    let text = r#"(kv.set? "b" "1") (par.run? (arr.from_json? (arg 0))) (ret)"#;
    let calls = json!([["kv_get", "b"], ["kv_set", "b", "2"]]).to_string();
    assert!(run(&host, access, text, &[&calls]).await.success(), "{items}");
    assert!(still.upgrade().is_none());
}

#[tokio::test]
async fn each_program_gets_its_recorded_answer_in_any_order() {
    let host = host();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let texts = ["one", "two, which is longer", "three", "one"];
    let (items, expected) = (
        json!(texts).to_string(),
        json!(texts.map(|text| format!("in short: {text}"))).to_string(),
    );
    let recorder: Arc<dyn Model> =
        Arc::new(Recorder::create(Arc::new(Echo), &path, Mask::default()).unwrap());
    let outcome = run(&host, access(&host, Some(recorder)), MAP, &["ai_summarize", &items]).await;
    assert_eq!(outcome.texts(), std::slice::from_ref(&expected), "{:?}", outcome.failure);

    // Neither the order of the recorded turns nor the order of the requests matters.
    let recorded = std::fs::read_to_string(&path).unwrap();
    let (header, turns) = recorded.split_once('\n').unwrap();
    let backwards: Vec<&str> = turns.lines().rev().collect();
    for turns in [turns.to_owned(), backwards.join("\n")] {
        let cassette = Cassette::parse(&format!("{header}\n{turns}\n")).unwrap().strict();
        let outcome =
            run(&host, access(&host, Some(Arc::new(cassette))), MAP, &["ai_summarize", &items])
                .await;
        assert_eq!(outcome.texts(), std::slice::from_ref(&expected), "{:?}", outcome.failure);
    }
}

#[tokio::test]
async fn embeddings_are_recorded_beside_answers() {
    let host = host();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let text = r#"(out (ai.embed? "abc")) (out (ai.assist? "x" "y" 0)) (ret (ai.embed? "a"))"#;
    let expected = ["[3.0,0.5]", "in short: x", "[1.0,0.5]"];
    let recorder: Arc<dyn Model> =
        Arc::new(Recorder::create(Arc::new(Echo), &path, Mask::default()).unwrap());
    assert_eq!(run(&host, access(&host, Some(recorder)), text, &[]).await.texts(), expected);
    let cassette: Arc<dyn Model> = Arc::new(Cassette::open(&path).unwrap().strict());
    assert_eq!(
        run(&host, access(&host, Some(Arc::clone(&cassette))), text, &[]).await.texts(),
        expected
    );
    let ended = run(&host, access(&host, Some(cassette)), text, &[]).await;
    assert!(
        ended.failure.unwrap().failure.reason.contains("the recording has ended: it has 2 turns")
    );
    // A hand-written recording can contain vectors, too.
    let by_hand = Cassette::parse(
        "{\"wattle_cassette\":1}\n{\"reply\":{\"vector\":[1]}}\n{\"reply\":\"hi\"}\n",
    )
    .unwrap();
    assert_eq!(
        run(&host, access(&host, Some(Arc::new(by_hand))), "(ret (ai.embed? \"?\"))", &[])
            .await
            .texts(),
        ["[1.0]"]
    );
}
