//! Tests that records with a key or a secret are read back unchanged, and that the store's files do
//! not reveal the key or the secret.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wattle_agent::host::TenantStore;
use wattle_agent::host::capability::secrets::Secret;
use wattle_agent::host::journal::{
    Journal as _, RecordedCall, RunFilter, RunRecord, RunStart, Turn,
};
use wattle_agent::host::ledger::Keys;
use wattle_agent::host::machine::{Input, Message, Usage};
use wattle_agent::host::rt::CallEffect;
use wattle_agent::host::rt::tape::{CallId, RecordedValue};
use wattle_agent::model::{ApiKey, Mask};
use wattle_agent::{Store, Tenant};

const KEY: &str = "sk-0123456789";

fn mask() -> Mask {
    let mask = Mask::default();
    mask.add_key(&ApiKey::new(KEY).unwrap());
    mask.add_secrets([&Secret::new("api", "s3cr3t \"value\"", Vec::new()).unwrap()]);
    mask
}

fn open(folder: &Path) -> TenantStore {
    let store = Store::open(&folder.join("s.db"), Duration::from_secs(3_600)).unwrap();
    store.tenant(&Tenant::default())
}

fn keys(folder: &Path) -> Keys {
    Keys::new(folder.join("keys"))
}

fn run(text: &str) -> RunRecord {
    let start = RunStart::new(format!("look at {text}"), serde_json::Value::Null);
    RunRecord { session: Some("s".to_owned()), ..RunRecord::new("r", start) }
}

fn turn(text: &str) -> Turn {
    Turn {
        spent: Usage::default(),
        input: Input::Begin { message: text.to_owned() },
        effects: Vec::new(),
        seq: 1,
        elapsed_ms: 0,
        files: None,
    }
}

fn call(text: &str) -> RecordedCall {
    let id = CallId {
        path: Arc::from([]),
        number: 1,
        function: Cow::Borrowed("fs.read"),
        effect: CallEffect::Reads,
        digest: [1; 16],
        args: format!("\"{text}\""),
    };
    let bytes = [&[0, 255], text.as_bytes()].concat();
    RecordedCall {
        turn: 0,
        program: 0,
        id,
        times: 1,
        result: Some(Ok(RecordedValue::Bytes(bytes))),
        time: None,
    }
}

/// Writes records of several kinds, each of which contains `text`.
async fn write(store: &TenantStore, text: &str) {
    store.open(run(text)).await.unwrap();
    store.turn("r", turn(text), Vec::new(), Vec::new()).await.unwrap();
    store.calls("r", vec![call(text)]).await.unwrap();
    store.park("r", Some(format!("it did {text}")), Vec::new()).await.unwrap();
    let said = vec![Message::user(format!("why {text}?")), Message::assistant(text)];
    store.extend("s", said).await.unwrap();
}

/// Checks that the records written by `write` are read back unchanged.
async fn check(store: &TenantStore, text: &str) {
    let opened = store.run("r").await.unwrap().unwrap();
    assert_eq!(opened.start, run(text).start);
    assert_eq!(opened.reason.unwrap(), format!("it did {text}"));
    assert_eq!(store.runs(RunFilter::default()).await.unwrap().len(), 1);
    assert_eq!(store.turns("r").await.unwrap(), [turn(text)]);
    assert_eq!(store.calls_of("r", 0).await.unwrap(), [call(text)]);
    let history = store.history("s", None).await.unwrap().messages;
    assert_eq!(history, [Message::user(format!("why {text}?")), Message::assistant(text)]);
    assert_eq!(store.export("s").await.unwrap().unwrap().messages, history);
}

/// Returns true if a file of the store contains `text`.
fn is_in_a_file(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn a_record_with_a_key_or_secret_is_exact_and_unreadable_in_the_file() {
    let spelled = serde_json::to_string("s3cr3t \"value\"").unwrap();
    for text in [KEY, "s3cr3t \"value\"", "a%73k-0123456789", "c2stMDEyMzQ1Njc4OQ==", &spelled] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("begin {text} end");
        let store = open(folder.path()).sealing(mask(), keys(folder.path()));
        write(&store, &text).await;
        check(&store, &text).await;
        assert!(!is_in_a_file(folder.path(), "begin"), "{text}");
        // Another process reads the records without knowing the key and the secret.
        let other = open(folder.path()).sealing(Mask::default(), keys(folder.path()));
        check(&other, &text).await;
    }
}

#[tokio::test]
async fn a_record_without_them_is_plain() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).sealing(mask(), keys(folder.path()));
    write(&store, "begin 0123456789 end").await;
    check(&open(folder.path()), "begin 0123456789 end").await;
    assert!(is_in_a_file(folder.path(), "begin 0123456789 end"));
    assert!(!folder.path().join("keys").exists(), "no key is created that nothing needs");
}

#[tokio::test]
async fn a_copy_of_an_encrypted_record_is_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).sealing(mask(), keys(folder.path()));
    store.extend("s", vec![Message::user(format!("begin {KEY}"))]).await.unwrap();
    let other = open(folder.path()).sealing(Mask::default(), keys(folder.path()));
    let session = other.export("s").await.unwrap().unwrap();
    assert!(other.import("copy", session.clone()).await.unwrap());
    assert!(!is_in_a_file(folder.path(), "begin"));
    assert_eq!(other.export("copy").await.unwrap().unwrap().messages, session.messages);
}

#[tokio::test]
async fn an_encrypted_record_without_its_key_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).sealing(mask(), keys(folder.path()));
    store.extend("s", vec![Message::user(KEY)]).await.unwrap();
    let fails = async |store: TenantStore, words: &str| {
        let why = store.history("s", None).await.unwrap_err().to_string();
        assert!(why.contains(words) && !why.contains(KEY), "{why}");
    };
    fails(open(folder.path()), "the store was opened without keys").await;
    let sealing = |keys: Keys| open(folder.path()).sealing(mask(), keys);
    fails(sealing(Keys::new(folder.path().join("none"))), "the key of an encrypted record").await;
    let other = Keys::new(folder.path().join("other"));
    other.cipher("default").unwrap();
    fails(sealing(other), "an encrypted record or its key was changed").await;
    // A string that looks like an encrypted record is not treated as one.
    let text = "\u{1}wattle:sealed:AAAA";
    let why = open(folder.path()).extend("t", vec![Message::user(text)]).await.unwrap_err();
    assert!(why.to_string().contains("starts like an encrypted one"), "{why}");
    store.extend("t", vec![Message::user(text)]).await.unwrap();
    assert_eq!(store.history("t", None).await.unwrap().messages, [Message::user(text)]);
}
