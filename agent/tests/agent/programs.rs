//! Tests of programs that start catalog programs, and of the model answers that are recorded for
//! them.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use wattle_agent::host::capability::egress::Egress;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::kv::InMemory;
use wattle_agent::host::capability::policy::{Policy, Preflight, Rule};
use wattle_agent::host::catalog::{Catalog, ToolRef};
use wattle_agent::host::machine::Call;
use wattle_agent::host::rt::{Code, Exit, Limits, Outcome};
use wattle_agent::host::{AgentPrograms, ModelInference, perform};
use wattle_agent::model::{
    Cassette, Delta, EmbeddingReply, Mask, Model, ModelError, ModelReply, ModelRequest, Recorder,
};
use wattle_agent::{Host, Resources, Settings};

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

fn access(host: &Host, model: Option<Arc<dyn Model>>) -> Resources {
    let access = Resources::new(host, Arc::new(Files::overlay(None, 1 << 20)));
    match model {
        Some(model) => {
            let inference = Arc::new(ModelInference::new(model, &Settings::default()));
            Resources { inference: Some(inference), ..access }
        }
        None => access,
    }
}

async fn run(host: &Host, access: Resources, text: &str, args: &[&str]) -> Outcome {
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
    let access = Resources { state, ..access(&host, None) };
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

/// A host whose agent calls the shell `sh`, and a program of a folder with the shell's code `copy`.
fn renaming_host(folder: &std::path::Path) -> Host {
    let shell = Catalog::built_in().get("shell").unwrap().body().to_owned();
    let front = ";;; name = \"copy\"\n;;; description = \"A copy\"\n;;; returns = \"text\"\n;;; \
                 uses = [\"shell\", \"json\", \"str\"]\n;;; [[args]]\n;;; name = \"line\"\n;;; \
                 type_hint = \"string\"\n;;; description = \"The line\"\n";
    std::fs::write(folder.join("copy.wat"), format!("{front}\n;; a copy\n{shell}")).unwrap();
    let catalog = Catalog::load(&[folder]);
    assert!(catalog.problems().is_empty(), "{:?}", catalog.problems());
    let host = Host::new(Limits::default(), catalog, Egress::new(Default::default())).unwrap();
    let sh = ToolRef { alias: Some("sh".to_owned()), ..ToolRef::new("shell") };
    // An alias that is the name of another program does not become that program.
    let read = ToolRef { alias: Some("file_read".to_owned()), ..ToolRef::new("shell") };
    let names = ["shell", "copy", "wattle", "text_sort"].map(ToolRef::new);
    let tools: Vec<ToolRef> = names.into_iter().chain([sh, read]).collect();
    let offered = host.catalog().select(&tools).unwrap();
    host.for_agent(AgentPrograms { name: "ada".into(), offered, ..AgentPrograms::default() })
}

#[tokio::test]
async fn rules_on_programs_hold_for_what_runs_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let host = renaming_host(folder.path());
    let rules =
        |list: &[&str]| -> Vec<Rule> { list.iter().map(|rule| rule.parse().unwrap()).collect() };
    let named = |name: &str, arg: &str| Call::catalog(name, vec![arg.to_owned()]);
    let wat = |body: String| Call::Wat { body, args: vec!["echo hi".to_owned()] };
    let shell = Catalog::built_in().get("shell").unwrap().body().to_owned();
    let workbook = |part: &str| {
        wat(format!(
            "(ret (workbook.run \"\"\"\n[components.a]\n{part}\nargs = [\"echo \
             hi\"]\n[exports]\na = \"a\"\n\"\"\"))"
        ))
    };
    let runs_shell = [
        named("shell", "echo hi"),
        named("sh", "echo hi"),
        named("file_read", "echo hi"),
        named("copy", "echo hi"),
        named("wattle", "catalog run sh 'echo hi'"),
        wat("(ret (call \"shell\" (arg 0)))".to_owned()),
        wat("(ret (call \"sh\" (arg 0)))".to_owned()),
        wat("(ret (call \"copy\" (arg 0)))".to_owned()),
        wat("(ret (str.join (par.map \"sh\" (str.split (arg 0) \",\")) \"\"))".to_owned()),
        wat("(each $r (par.run (arr.from_json \"\"\"[[\"sh\", \"echo hi\"]]\"\"\")) (out $r))"
            .to_owned()),
        wat("(ret (wattle.run \"catalog run sh 'echo hi'\"))".to_owned()),
        workbook("program = \"sh\""),
        workbook(&format!("source = '''\n;; another comment\n{shell}'''")),
        wat(format!(";; with a comment\n{shell}")),
    ];
    let outcome = async |deny: &[&str], allow: &[&str], call: &Call| {
        let policy = Policy::new(rules(allow), Vec::new(), rules(deny));
        let grants = access(&host, None).grants().guarded(Arc::new(Preflight::new(policy, None)));
        let done = perform(host.runtime(), &host.catalog(), &Arc::new(grants), call).await.unwrap();
        format!("{done:?}")
    };
    for call in &runs_shell {
        let open = outcome(&["program:text_count"], &[], call).await;
        assert!(open.contains("Ran") && open.contains("hi\\"), "{call:?}: {open}");
        let denied = outcome(&["program:shell"], &[], call).await;
        assert!(denied.contains("rule `program:shell`"), "{call:?}: {denied}");
        assert!(!denied.contains("hi\\n") && !denied.contains("hi\\\\n"), "{call:?}: {denied}");
        let others = outcome(&["program:*"], &["program:file_read"], call).await;
        assert!(others.contains("rule `program:*`"), "{call:?}: {others}");
    }
    let sort = named("text_sort", "b\na");
    assert!(outcome(&["program:shell"], &[], &sort).await.contains("a\\nb"));
    // A rule on an alias covers the program behind it, but permits nothing by that name.
    for call in [named("shell", "echo hi"), named("sh", "echo hi")] {
        assert!(outcome(&["program:sh"], &[], &call).await.contains("rule `program:sh`"));
        let allowed = outcome(&["program:*"], &["program:sh"], &call).await;
        assert!(allowed.contains("rule `program:*`"), "{allowed}");
        let allowed = outcome(&["program:*"], &["program:shell"], &call).await;
        assert!(allowed.contains("hi\\n"), "{allowed}");
    }
    let nested = named("wattle", "catalog run sh 'echo hi'");
    let allowed = outcome(&["program:*"], &["program:wattle", "program:shell"], &nested).await;
    assert!(allowed.contains("hi\\n"), "{allowed}");
}
