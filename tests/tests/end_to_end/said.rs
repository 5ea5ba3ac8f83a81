//! Tests masking with arbitrary keys and secrets. The model's answers reach the program and the
//! user unchanged, records are masked, and a request that contains a secret is denied.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;
use wattle_agent::host::journal::{self, RunOutcome, RunRequest, SharedJournal};
use wattle_agent::host::ledger::Keys;
use wattle_agent::host::otel::{Collector, CollectorSettings};
use wattle_agent::host::{DialectSetting, RunParts};
use wattle_agent::model::{EndpointSettings, Recorder, RemoteModel, Timeouts, resolve};
use wattle_agent::{Host, Resources, Settings, Store, Tenant};
use wattle_capability::egress::{Egress, Policy};
use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_capability::kv::{Backend as _, InMemory};
use wattle_capability::secrets::{Secret, SecretList};
use wattle_catalog::Catalog;
use wattle_machine::{Ending, Envelope, Event, Message};
use wattle_rt::Limits;
use wattle_tests::provider::{Answer, Provider};

/// Quotes a string as an argument of a model's call.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => write!(out, "\\u{{{:x}}}", u32::from(c)).unwrap(),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Quotes a string as a literal in a program.
fn literal(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' | '`' => write!(out, "\\{:02x}", u32::from(c)).unwrap(),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes);
                bytes[..c.len_utf8()].iter().for_each(|b| write!(out, "\\{b:02x}").unwrap());
            }
            c => out.push(c),
        }
    }
    out + "\""
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Returns the arguments for a request (URL, headers, body) that contains a value. `way` selects
/// the value's location and encoding.
fn request(base: &str, value: &str, way: usize) -> [String; 3] {
    let url = base.to_owned();
    let none = String::new;
    let encoded = STANDARD.encode(format!("user:{value}"));
    let digits = hex(value.as_bytes());
    let (head, tail) = digits.split_at(digits.len() / 2);
    let split = |text: &str| text.chars().flat_map(|c| [c, '\n']).collect::<String>();
    match way {
        0 => [url, none(), format!("a {value} b")],
        1 => [format!("{url}/?k={}", percent(value)), none(), none()],
        2 => [format!("{url}/{digits}/"), none(), none()],
        // URL parsers remove line breaks.
        3 => [format!("{url}/?k={}", split(&percent(value))), none(), none()],
        4 => [url, json!({"authorization": format!("Basic {encoded}")}).to_string(), none()],
        5 => [url, json!({"x-a": head, "x-b": tail}).to_string(), none()],
        6 => [url, json!({"x-a": head}).to_string(), tail.to_owned()],
        7 => [url, json!({ format!("x-{digits}"): "1" }).to_string(), none()],
        8 => [url, none(), json!({"k": value}).to_string()],
        _ => [url, none(), split(&encoded)],
    }
}

const WAYS: usize = 10;

/// Returns all files in a folder and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn endpoint(provider: &Provider) -> String {
    provider.base_url().trim_end_matches("/v1").to_owned()
}

/// Creates a client for a scripted endpoint, with an API key.
fn remote(provider: &Provider, key: &str) -> RemoteModel {
    let base = provider.base_url();
    let settings =
        EndpointSettings { base_url: Some(&base), model: Some("m"), ..Default::default() };
    let found = |name: &str| (name == "WATTLE_API_KEY").then(|| key.to_owned());
    let resolved = resolve(&settings, found).unwrap();
    RemoteModel::new(resolved, &Egress::new(Policy::default()), Timeouts::default()).unwrap()
}

/// A model's answer: a program with its arguments, or the result.
enum Said {
    Program(String, Vec<String>),
    Result(String),
}

impl Said {
    /// Returns the answer in the text dialect.
    fn text(&self) -> String {
        match self {
            Said::Program(body, args) => {
                let args: String = args.iter().map(|arg| format!(", {}", quoted(arg))).collect();
                format!("It is in the program.\nToolCall::Wat(```wat\n{body}\n```{args})")
            }
            Said::Result(text) => format!("ToolCall::Response({})", quoted(text)),
        }
    }

    /// Returns the answer in the native dialect: the function that the model calls, and its
    /// arguments.
    fn call(&self) -> (&'static str, String) {
        match self {
            Said::Program(body, args) => ("wat", json!({"body": body, "args": args}).to_string()),
            Said::Result(text) => ("done", json!({ "result": text }).to_string()),
        }
    }

    fn answer(&self, dialect: DialectSetting) -> Answer {
        if dialect == DialectSetting::Text {
            return Answer::streamed(self.text()).pieces(97);
        }
        let (name, arguments) = self.call();
        let function = json!({"name": name, "arguments": arguments});
        let message = json!({"role": "assistant", "content": null,
            "tool_calls": [{"id": "c", "type": "function", "function": function}]});
        let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
        Answer::body(json!({ "choices": [choice] }).to_string())
    }
}

/// Performs a run whose model writes a key and a secret in its program, in the program's arguments
/// and in its answer, and tries to send the secret. Checks what reaches the program, the user, the
/// network and the records.
async fn check(key: &str, secret: &str, way: usize, dialect: DialectSetting) {
    let folder = tempfile::tempdir().unwrap();
    let [work, kept] = ["work", "kept"].map(|name| folder.path().join(name));
    std::fs::create_dir(&work).unwrap();
    let site = Provider::answering(|_| Answer::body("ok"));
    let both = format!("({key}) and ({secret}) end");
    let store_both = format!(
        "(kv.set? \"argument\" (arg 0))\n(kv.set? \"text\" {})\n(ret (arg 0))",
        literal(&both)
    );
    let send = "(ret (http.request? \"POST\" (arg 0) (arg 1) (arg 2)))".to_owned();
    let said = [
        Said::Program(store_both, vec![both.clone()]),
        Said::Program(send, request(&endpoint(&site), secret, way).to_vec()),
        Said::Result(both.clone()),
    ];
    let provider = Provider::start(said.iter().map(|said| said.answer(dialect)));
    let receiver = Provider::answering(|_| Answer::body("{}"));

    let allow = vec![site.host().parse().unwrap()];
    let egress = Egress::new(Policy { allow, ..Policy::default() });
    let settings =
        CollectorSettings { endpoint: endpoint(&receiver), content: true, ..Default::default() };
    let collector = Collector::new(&settings, &egress).unwrap();
    let host = Host::new(Limits::default(), Catalog::built_in(), egress)
        .unwrap()
        .with_collector(collector.clone());
    let keys = Keys::new(kept.join("keys"));
    let store = Store::open(&kept.join("s.db"), Duration::from_secs(3_600)).unwrap();
    let store = store.tenant(&Tenant::default()).sealing(host.mask().clone(), keys.clone());
    let recording = work.join("recording.jsonl");
    let model = Arc::new(remote(&provider, key));
    let model = Recorder::create(model, &recording, host.mask().clone()).unwrap();
    let value = Secret::new("api", secret, vec!["127.0.0.1".parse().unwrap()]).unwrap();
    let state = Arc::new(InMemory::default());
    let access = Resources {
        state: Arc::<InMemory>::clone(&state),
        secrets: Some(Arc::new(SecretList::new([("api".to_owned(), Ok(value))]))),
        ..Resources::new(&host, Arc::new(Files::overlay(None, OVERLAY_LIMIT)))
    };
    let parts = RunParts {
        settings: Settings { dialect, ..Settings::default() },
        trace_dir: Some(work.clone()),
        signer: Some(Arc::new(keys.signer(Tenant::default().as_str()).unwrap())),
        ..RunParts::new(host.clone(), Arc::new(model), access.grants())
    };
    let session = Some("s".to_owned());
    let request = RunRequest { id: "r".to_owned(), session, ..RunRequest::new("go") };
    let journal: SharedJournal = Arc::new(store);
    let events = Mutex::new(Vec::new());
    let sink = |event: &Envelope| events.lock().unwrap().push(event.event.clone());
    let ended = journal::run(parts, &request, &sink, &journal).await.unwrap();
    let RunOutcome::Done(report) = ended else { panic!("the run waits") };

    // The model's output reaches the program and the user unchanged.
    assert_eq!(report.ending, Ending::Answered { text: both.clone(), data: None });
    for name in ["argument", "text"] {
        let value = state.get(name.to_owned()).await.unwrap().unwrap();
        assert_eq!(String::from_utf8(value).unwrap(), both, "{name}");
    }
    let (mut deltas, mut bodies, mut results) = (String::new(), Vec::new(), Vec::new());
    for event in events.into_inner().unwrap() {
        match event {
            Event::Delta { text, .. } => deltas.push_str(&text),
            Event::ToolStart { body, args, .. } => bodies.push((body.unwrap(), args)),
            Event::ToolResult { output, success, .. } => results.push((output, success)),
            _ => {}
        }
    }
    if dialect == DialectSetting::Text {
        assert_eq!(deltas, said.iter().map(Said::text).collect::<String>());
    }
    assert!(bodies[0].0.contains(&literal(&both)) && bodies[0].1 == [both.clone()], "{bodies:?}");
    assert_eq!(results[0], (both.clone(), true));

    // The request is denied. The error contains the name of the secret.
    let (why, success) = &results[1];
    assert!(!success && why.contains("EACCESS") && why.contains("the secret `api`"), "{why}");
    assert!(!why.contains(secret), "{why}");
    assert_eq!(site.requests(), []);

    // The journal returns the exact values, so that a resumed run behaves identically and a replay
    // matches.
    journal::end(&journal, &report, false).await.unwrap();
    let opened = journal.run("r").await.unwrap().unwrap();
    let spoken = journal::conversation(&journal, &opened).await.unwrap();
    let exact = |message: &Message| match dialect {
        DialectSetting::Text => message.content == said[0].text(),
        _ => message.calls.iter().any(|call| call.arguments == said[0].call().1),
    };
    assert!(spoken.iter().any(exact), "{spoken:?}");
    let replayed = journal::replay(&host, &journal, &opened, 1).await.unwrap();
    assert_eq!(replayed.difference, None);

    // The records do not contain either value in any encoding.
    let recorded = files(folder.path());
    for path in &recorded {
        let bytes = std::fs::read(path).unwrap();
        let found = host.mask().finds(&bytes);
        assert!(!found, "{} has a value: {}", path.display(), String::from_utf8_lossy(&bytes));
    }
    let text = |name: &str| std::fs::read_to_string(work.join(name)).unwrap();
    for name in ["_steps.jsonl", "events.org", "recording.jsonl"] {
        let text = text(name);
        assert!(text.contains("(***) and (${secret:api}) end"), "{name}: {text}");
    }
    collector.flush(Duration::from_secs(10)).await;
    let exported: Vec<String> = receiver.requests().into_iter().map(|sent| sent.body).collect();
    let exported = exported.concat();
    assert!(exported.contains("(***) and (${secret:api}) end"), "{exported}");
    assert!(!host.mask().finds(exported.as_bytes()), "{exported}");
}

/// Converts arbitrary bytes to a valid secret or returns `None` if there are too few characters.
fn as_secret(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).replace('\0', "");
    Some(text.trim().to_owned()).filter(|text| text.chars().count() >= 8)
}

fn secret() -> impl Strategy<Value = String> {
    let bytes = prop::collection::vec(any::<u8>(), 8..64);
    let ascii = prop::collection::vec(0x20_u8..0x7f, 8..64);
    let wide = prop::collection::vec(any::<char>(), 8..24)
        .prop_map(|chars| chars.into_iter().collect::<String>().into_bytes());
    prop_oneof![bytes, ascii, wide].prop_filter_map("too short", |bytes| as_secret(&bytes))
}

fn key() -> impl Strategy<Value = String> {
    prop::collection::vec(0x21_u8..0x7f, 8..48).prop_map(|bytes| String::from_utf8(bytes).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        max_shrink_iters: 32,
        failure_persistence: None,
        ..Default::default() })]

    #[test]
    fn what_the_model_said_runs_and_what_is_recorded_is_masked(
        key in key(),
        secret in secret(),
        way in 0..WAYS,
        native in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let dialect = if native { DialectSetting::Native } else { DialectSetting::Text };
        runtime.block_on(check(&key, &secret, way, dialect));
    }
}
