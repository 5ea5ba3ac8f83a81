//! Tests that no function of a store can access the data of another tenant, because every key
//! contains the tenant.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wattle_agent::Tenant;
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::kv::{Backend as _, Kept};
use wattle_agent::host::capability::memory::{self, Memory as _, MemoryText, NewItem};
use wattle_agent::host::capability::search::Query;
use wattle_agent::host::capability::secrets::Secrets as _;
use wattle_agent::host::journal::{
    Journal as _, RecordedCall, RunEnd, RunFilter, RunRecord, RunRequest, RunStart, Turn,
};
use wattle_agent::host::ledger::{FinalSeal, Keys};
use wattle_agent::host::machine::{Envelope, Event, Input, Message, Usage};
use wattle_agent::host::rt::CallEffect;
use wattle_agent::host::rt::tape::{CallId, RecordedValue as Recorded};
use wattle_agent::host::{
    ExportedSession, Integration, NextDelta, Rewind, SameConversation, Scope, SessionDeltas,
    SessionFiles, Stored, StoredSecrets, TenantStore,
};
use wattle_agent::model::{ApiKey, Mask};

use crate::place::Place;

const HOUR: Duration = Duration::from_secs(3_600);

fn opened(id: &str) -> RunRecord {
    let start = RunStart::new("alice's message", serde_json::Value::Null);
    RunRecord { session: Some("s".to_owned()), ..RunRecord::new(id, start) }
}

fn integration() -> Integration {
    Integration { name: "shop".to_owned(), system_prompt: None, agent: None, session_id: None }
}

fn queued() -> RunRequest {
    let queued = RunRequest { id: "queued".to_owned(), ..RunRequest::new("alice's request") };
    RunRequest { session: Some("s".to_owned()), ..queued }
}

fn event() -> Envelope {
    let event = Event::Error { message: "alice's event".to_owned() };
    let run_id = "r".to_owned();
    Envelope { root_run_id: run_id.clone(), run_id, seq: 1, ts: 0, event }
}

fn turn() -> Turn {
    let input = Input::Begin { message: "alice's message".to_owned() };
    Turn { spent: Usage::default(), input, effects: Vec::new(), seq: 1, elapsed_ms: 0, files: None }
}

fn call() -> RecordedCall {
    let id = CallId {
        path: Arc::from([]),
        number: 1,
        function: Cow::Borrowed("kv.set"),
        effect: CallEffect::Changes,
        digest: [1; 16],
        args: "alice".to_owned(),
    };
    let result = Some(Ok(Recorded::Unit));
    RecordedCall { turn: 0, program: 0, id, times: 1, result, time: None }
}

fn sealed(run: &str) -> FinalSeal {
    FinalSeal { run: run.to_owned(), folder: "/work".into(), lines: 1, head: "00".repeat(32) }
}

fn secrets(of: &TenantStore, keys: &Path) -> StoredSecrets {
    StoredSecrets::new(of.clone(), Keys::new(keys).cipher(of.tenant().as_str()).unwrap())
}

async fn value(of: &TenantStore, key: &str) -> Option<Vec<u8>> {
    of.state("s").get(key.to_owned()).await.unwrap()
}

/// Fills the store with alice's data.
async fn fill(alice: &TenantStore, keys: &Path) {
    alice
        .extend("s", vec![Message::user("alice's question"), Message::assistant("alice's answer")])
        .await
        .unwrap();
    for state in [alice.state("s"), alice.variables()] {
        state.update("k".to_owned(), Box::new(|_| Ok(Some(b"alice's".to_vec())))).await.unwrap();
        state
            .update_once(
                "r/0.0//1".to_owned(),
                "once".to_owned(),
                Kept::Nothing,
                Box::new(|_| Ok(Some(b"1".to_vec()))),
            )
            .await
            .unwrap();
    }
    secrets(alice, keys)
        .set("token", "alice's secret", vec!["a.example".parse().unwrap()])
        .await
        .unwrap();
    for run in ["r", "ended", "stuck"] {
        alice.open(opened(run)).await.unwrap();
    }
    alice.turn("r", turn(), Vec::new(), vec![event()]).await.unwrap();
    alice.calls("r", vec![call()]).await.unwrap();
    let end = RunEnd { sealed: Some(sealed("ended")), ..RunEnd::default() };
    alice.end("ended", end).await.unwrap();
    alice.park("stuck", Some("alice's reason".to_owned()), Vec::new()).await.unwrap();
    alice.enqueue(queued()).await.unwrap();
    alice.add_session_files("s", "[]".to_owned()).await.unwrap();
    alice.set_conversation("s", [7; 32], SameConversation::Newest).await.unwrap();
    assert!(alice.add_integration(&integration()).await.unwrap());
    alice.add_token("laptop", Scope::Run, "alice's token").await.unwrap();
    for scope in [memory::Scope::Tenant, memory::Scope::Session] {
        let text = MemoryText::new("alice's memory").unwrap();
        alice.memory(Some("s")).add(None, NewItem { text, scope }).await.unwrap();
    }
    let vectors = vec![(1, vec![0; 4])];
    alice.memory(None).add_vectors("m".to_owned(), vectors).await.unwrap();
}

/// Returns all of alice's data as a string.
async fn dump(alice: &TenantStore, keys: &Path) -> String {
    let session = serde_json::to_string(&alice.export("s").await.unwrap()).unwrap();
    let variables = alice.variables().keys(String::new()).await.unwrap();
    let mut runs = alice.runs(RunFilter::default()).await.unwrap();
    runs.iter_mut().for_each(|run| run.used = 0);
    let turns = alice.turns("r").await.unwrap();
    let calls = alice.calls_of("r", 0).await.unwrap();
    let secrets = secrets(alice, keys).list().await.unwrap();
    let sealed = alice.file().sealed("/work".as_ref()).await.unwrap();
    let events = alice.events("r", 0, 10).await.unwrap();
    let queued = alice.queued().await.unwrap();
    let files = alice.session_files("s").await.unwrap();
    let tokens = alice.tokens().await.unwrap();
    let conversation = alice.take_conversation([7; 32]).await.unwrap();
    alice.return_conversation("s", [7; 32]).await.unwrap();
    let integrations = alice.integrations().await.unwrap();
    let memory = alice.memory(Some("s"));
    // The scores depend on the words of all tenants.
    let found = memory.by_words(Query::read("memory").unwrap()).await.unwrap();
    let found: Vec<i32> = found.into_iter().map(|(id, _)| id).collect();
    let without = memory.without_vector("m".to_owned(), Vec::new(), 9).await.unwrap();
    let memory = memory.list(9).await.unwrap();
    format!(
        "{session} {variables:?} {runs:?} {turns:?} {calls:?} {secrets:?} {sealed:?} {events:?} \
         {queued:?} {files:?} {tokens:?} {conversation:?} {integrations:?} {memory:?} {found:?} \
         {without:?}"
    )
}

/// Calls a function as bob, with the ids and names from alice's data, and checks that it finds none
/// of that data. The test fails if a function of the store has no match arm here.
async fn as_bob(function: &str, bob: &TenantStore, keys: &Path) {
    let set = || Box::new(|_| Ok(Some(b"bob's".to_vec())));
    match function {
        "TenantStore::tenant" => assert_eq!(bob.tenant().as_str(), "bob"),
        "TenantStore::check" => bob.check().await.unwrap(),
        "TenantStore::history" => assert_eq!(bob.history("s", None).await.unwrap().messages, []),
        "TenantStore::extend" => {
            bob.extend("s", vec![Message::user("bob's"), Message::assistant("b")]).await.unwrap();
            assert_eq!(bob.export("s").await.unwrap().unwrap().messages.len(), 2);
        }
        "TenantStore::conversation" => assert_eq!(bob.conversation("s").await.unwrap(), []),
        "TenantStore::replace_first_messages" => {
            let bobs = vec![Message::user("bob's")];
            assert!(!bob.replace_first_messages("s", bobs.clone(), bobs).await.unwrap());
        }
        "TenantStore::replace_conversation" => {
            bob.replace_conversation("s", vec![Message::user("bob's")]).await.unwrap();
            assert_eq!(bob.conversation("s").await.unwrap(), [Message::user("bob's")]);
        }
        "TenantStore::fork_session" => {
            assert!(bob.fork_session("s", "f", vec![Message::user("bob's")]).await.unwrap());
            assert_eq!(bob.state("f").keys(String::new()).await.unwrap(), Vec::<String>::new());
        }
        "TenantStore::variable_sizes" => {
            // The value of bob may be there already, depending on the order of the functions.
            let sizes = bob.variable_sizes().await.unwrap();
            assert!(sizes.iter().all(|(_, size)| *size == "bob's".len() as u64), "{sizes:?}");
        }
        "TenantStore::mask" => assert!(bob.mask().is_none()),
        "TenantStore::with_mask" => {
            let mask = Mask::default();
            mask.add_key(&ApiKey::new("sk-0123456789").unwrap());
            let bob = bob.clone().with_mask(mask);
            assert!(bob.mask().is_some_and(|mask| mask.finds(b"sk-0123456789")));
            bob.extend("s", vec![Message::user("sk-0123456789")]).await.unwrap();
        }
        "TenantStore::sealing" => {
            // Bob has another key, and each record is bound to its tenant.
            let mask = Mask::default();
            mask.add_key(&ApiKey::new("sk-0123456789").unwrap());
            let bob = bob.clone().sealing(mask, Keys::new(keys));
            bob.extend("s", vec![Message::user("sk-0123456789")]).await.unwrap();
            let said = bob.export("s").await.unwrap().unwrap().messages;
            assert_eq!(said, [Message::user("sk-0123456789")]);
        }
        "TenantStore::sessions" => assert_eq!(bob.sessions().await.unwrap(), []),
        "TenantStore::session_page" => {
            assert_eq!(bob.session_page(None, 9).await.unwrap(), []);
        }
        "TenantStore::export" => assert_eq!(bob.export("s").await.unwrap(), None),
        "TenantStore::import" => {
            let session = ExportedSession {
                wattle_session: 1,
                id: "s".to_owned(),
                messages: Vec::new(),
                state: Vec::new(),
            };
            assert!(
                bob.import("s", session).await.unwrap(),
                "an id that another tenant uses is free"
            );
        }
        "TenantStore::unended_runs" => {
            assert_eq!(bob.unended_runs("s").await.unwrap(), [""; 0]);
        }
        "TenantStore::remove" => assert!(!bob.remove("s").await.unwrap()),
        "TenantStore::state" => {
            assert_eq!(value(bob, "k").await, None);
            bob.state("s").update("k".to_owned(), set()).await.unwrap();
            bob.state("s").update("once".to_owned(), Box::new(|_| Ok(None))).await.unwrap();
            assert_eq!(bob.state("s").keys(String::new()).await.unwrap(), ["k"]);
            // The same call id in another tenant's run is a different call.
            let (call, key) = ("r/0.0//1".to_owned(), "n".to_owned());
            bob.state("s").update_once(call, key, Kept::Nothing, set()).await.unwrap();
            assert_eq!(value(bob, "n").await.as_deref(), Some(&b"bob's"[..]));
        }
        "TenantStore::variables" => {
            assert_eq!(bob.variables().keys(String::new()).await.unwrap(), Vec::<String>::new());
            bob.variables().update("k".to_owned(), set()).await.unwrap();
            bob.variables().update("once".to_owned(), Box::new(|_| Ok(None))).await.unwrap();
        }
        "TenantStore::memory" => {
            let memory = bob.memory(Some("s"));
            assert_eq!(memory.list(9).await.unwrap(), []);
            assert_eq!(memory.items(vec![1, 2]).await.unwrap(), []);
            assert!(!memory.remove(None, 1).await.unwrap());
            assert_eq!(memory.by_words(Query::read("memory").unwrap()).await.unwrap(), []);
            assert_eq!(memory.without_vector("m".to_owned(), vec![1], 9).await.unwrap(), []);
            memory.add_vectors("m".to_owned(), vec![(2, vec![0; 4])]).await.unwrap();
            let text = MemoryText::new("alice's memory").unwrap();
            let item = NewItem { text, scope: memory::Scope::Session };
            assert_eq!(memory.add(None, item).await.unwrap(), 1, "ids are the tenant's");
            let found = memory.by_words(Query::read("memory").unwrap()).await.unwrap();
            assert_eq!(found.len(), 1);
        }
        "TenantStore::has_session" => assert!(!bob.has_session("s").await.unwrap()),
        "TenantStore::session_instance" => {
            assert_eq!(bob.session_instance("r", "s").await.unwrap(), None);
        }
        "TenantStore::state_position" => {
            assert_eq!(bob.state_position("s").await.unwrap(), 0);
        }
        "TenantStore::turn_position" => {
            assert_eq!(bob.turn_position("r", 0).await.unwrap(), None);
        }
        "TenantStore::rewind_state" => {
            assert_eq!(bob.rewind_state("s", 0, 1).await.unwrap(), Rewind::Changed);
        }
        "TenantStore::fork_session_at" => {
            let messages = vec![Message::user("bob's")];
            let forked = bob.fork_session_at("s", "f", messages, ("r", 0)).await.unwrap();
            assert_ne!(forked, Some(true), "the state of bob's session is empty");
            assert_eq!(bob.state("f").keys(String::new()).await.unwrap(), Vec::<String>::new());
        }
        "TenantStore::session_files" => {
            assert_eq!(bob.session_files("s").await.unwrap(), SessionFiles::default());
        }
        "TenantStore::load_files" | "TenantStore::load_files_with" => {
            let files = Files::overlay(None, 1 << 20);
            assert_eq!(bob.load_files("s", &files).await.unwrap(), 0);
            assert!(files.changes().unwrap().is_empty());
        }
        "TenantStore::session_deltas" => {
            assert_eq!(bob.session_deltas("s").await.unwrap(), SessionDeltas::default());
        }
        "TenantStore::next_session_delta" => {
            // Deltas are numbered across all tenants, so a list can name a delta of alice's.
            bob.add_session_files("s", "[]".to_owned()).await.unwrap();
            let mut deltas = bob.session_deltas("s").await.unwrap();
            let found = bob.next_session_delta("s", &mut deltas).await.unwrap();
            assert_eq!(found, NextDelta::Delta("[]".to_owned()));
            let end = bob.next_session_delta("s", &mut deltas).await.unwrap();
            assert_eq!(end, NextDelta::End);
        }
        "TenantStore::add_session_files" => {
            bob.add_session_files("s", "[]".to_owned()).await.unwrap();
        }
        "TenantStore::replace_session_files" => {
            bob.add_session_files("s", "[]".to_owned()).await.unwrap();
            // Deltas are numbered across all tenants.
            let known = bob.session_files("s").await.unwrap();
            bob.replace_session_files("s", known.newest(), None).await.unwrap();
        }
        "TenantStore::add_token" => {
            assert!(bob.add_token("laptop", Scope::Admin, "bob's token").await.unwrap());
            assert!(
                !bob.add_token("other", Scope::Admin, "alice's token").await.unwrap(),
                "a token's tenant never changes"
            );
        }
        "TenantStore::take_conversation" => {
            assert_eq!(bob.take_conversation([7; 32]).await.unwrap(), None);
        }
        "TenantStore::return_conversation" => {
            bob.return_conversation("s", [7; 32]).await.unwrap();
        }
        "TenantStore::set_conversation" => {
            bob.set_conversation("s", [7; 32], SameConversation::Neither).await.unwrap();
        }
        "TenantStore::add_integration" => {
            assert!(
                !bob.add_integration(&integration()).await.unwrap(),
                "a name belongs to one tenant"
            );
        }
        "TenantStore::integration" => {
            assert_eq!(bob.integration("shop").await.unwrap(), None);
        }
        "TenantStore::stored_bytes" => {
            for data in [Stored::Session("s"), Stored::Record("r"), Stored::Integrations] {
                assert_eq!(bob.stored_bytes(data).await.unwrap(), 0, "{data:?}");
            }
        }
        "TenantStore::integrations" => assert_eq!(bob.integrations().await.unwrap(), []),
        "TenantStore::remove_integration" => {
            assert!(!bob.remove_integration("shop").await.unwrap());
        }
        "TenantStore::tokens" => assert_eq!(bob.tokens().await.unwrap(), []),
        "TenantStore::revoke_token" => assert!(!bob.revoke_token("laptop").await.unwrap()),
        "StoredSecrets::new" | "StoredSecrets::list" => {
            assert_eq!(secrets(bob, keys).list().await.unwrap(), [])
        }
        "StoredSecrets::set" => {
            secrets(bob, keys)
                .set("token", "bob's own secret", vec!["b.example".parse().unwrap()])
                .await
                .unwrap();
        }
        "StoredSecrets::remove" => assert!(!secrets(bob, keys).remove("token").await.unwrap()),
        "StoredSecrets::find" => {
            assert!(secrets(bob, keys).find("token".to_owned()).await.unwrap().is_none())
        }
        "Journal::tenant" => {
            assert_eq!(wattle_agent::host::journal::Journal::tenant(bob).as_str(), "bob")
        }
        "Journal::open" => bob.open(opened("r")).await.unwrap(),
        "Journal::attempt" => assert!(bob.attempt("r").await.is_err()),
        "Journal::park" => {
            assert!(bob.park("r", Some("bob's".to_owned()), vec![event()]).await.is_err())
        }
        "Journal::release" => assert!(!bob.release("stuck").await.unwrap()),
        "Journal::turn" => assert!(bob.turn("r", turn(), Vec::new(), vec![event()]).await.is_err()),
        "Journal::durable_calls" => {
            assert!(bob.durable_calls("r", vec![call()]).await.is_err());
        }
        "TenantStore::release_all" => {
            assert_eq!(bob.release_all().await.unwrap(), Vec::<String>::new());
        }
        "TenantStore::status" => assert_eq!(bob.status("r").await.unwrap(), None),
        "TenantStore::steps" => assert_eq!(bob.steps("r").await.unwrap(), 0),
        "TenantStore::last_event" => assert_eq!(bob.last_event("r").await.unwrap(), 0),
        "TenantStore::needs_of" => assert_eq!(bob.needs_of("r").await.unwrap(), None),
        "TenantStore::suspicion" => assert_eq!(bob.suspicion("r").await.unwrap(), 0),
        "TenantStore::isolate" => drop(bob.isolate("r", true).await),
        "TenantStore::acquit" => drop(bob.acquit("r").await),
        "TenantStore::reopen" => drop(bob.reopen("r").await),
        "TenantStore::rewind_session" => drop(bob.rewind_session("r", true).await),
        "TenantStore::cancel_reason" => assert_eq!(bob.cancel_reason("r").await.unwrap(), None),
        "TenantStore::forget_cancel" => bob.forget_cancel("r").await.unwrap(),
        "TenantStore::request_cancel" => drop(bob.request_cancel("r", "bob's").await),
        "TenantStore::leave_client" => bob.leave_client("r").await.unwrap(),
        "TenantStore::has_lost_client" => assert!(!bob.has_lost_client("r").await.unwrap()),
        "TenantStore::has_queued" => assert!(!bob.has_queued("s").await.unwrap()),
        "TenantStore::queued_run" => assert_eq!(bob.queued_run("queued").await.unwrap(), None),
        "TenantStore::queue_page" => {
            let page = bob.queue_page(&RunFilter::default()).await.unwrap();
            assert_eq!(page.unwrap_or_default(), []);
        }
        "TenantStore::load" => {
            let load = bob.load().await.unwrap();
            assert_eq!((load.queued, load.driven), (0, 0));
        }
        "TenantStore::ended_above_open" => {
            assert_eq!(bob.ended_above_open().await.unwrap(), Vec::<String>::new());
        }
        "TenantStore::tree_status" => assert!(bob.tree_status("r").await.unwrap().is_none()),
        "TenantStore::tree_events" => {
            assert_eq!(bob.tree_events("r", None, 10).await.unwrap(), []);
        }
        "TenantStore::tree_position" => {
            assert_eq!(bob.tree_position("r", ("r".to_owned(), 1)).await.unwrap(), None);
        }
        "TenantStore::kept_bytes" => {
            assert!(bob.kept_bytes().await.unwrap() < 10_000);
        }
        "Journal::calls" => assert!(bob.calls("r", vec![call()]).await.is_err()),
        "Journal::end" => {
            let turns = vec![Message::user("bob's")];
            assert!(bob.end("r", RunEnd { turns, ..RunEnd::default() }).await.is_err());
        }
        "Journal::enqueue" => bob.enqueue(queued()).await.unwrap(),
        "Journal::queued" => assert_eq!(bob.queued().await.unwrap(), []),
        "Journal::pause" => bob.pause("r").await.unwrap(),
        "Journal::events" => assert_eq!(bob.events("r", 0, 10).await.unwrap(), []),
        "Journal::run" => assert_eq!(bob.run("r").await.unwrap(), None),
        "Journal::runs" => assert_eq!(bob.runs(RunFilter::default()).await.unwrap(), []),
        "Journal::turns" => assert_eq!(bob.turns("r").await.unwrap(), []),
        "Journal::last_turn" => assert_eq!(bob.last_turn("r").await.unwrap(), None),
        "Journal::files_of_tree" => {
            assert!(bob.files_of_tree("r").await.unwrap().is_empty());
        }
        "Journal::fork_state" => {
            assert!(bob.fork_state(("r", 0), "bobs").await.is_err(), "bob has no such run");
        }
        "Journal::calls_of" => assert_eq!(bob.calls_of("r", 0).await.unwrap(), []),
        "Journal::lock" => {
            let lock = bob.lock("session:s").await.unwrap();
            assert!(lock.is_some(), "another tenant's lock does not count");
        }
        other => panic!(
            "the function `{other}` of the store has no row: add its behaviour for another tenant"
        ),
    }
}

/// Functions that are not checked: those that access no data, such as functions that open a store,
/// and those that serve the operator.
const WITHOUT_DATA: &[&str] = &[
    "Store::open",
    "Store::in_memory",
    "Store::connect",
    "Store::shown_url",
    "Store::certificates_of_url",
    "Store::close",
    "Store::prepare_stop",
    "Store::limited",
    "Store::is_shared",
    "Store::observe",
    "Store::tenant",
    "Store::with_blobs",
    // These functions look up a token's tenant, or report on all tenants to the operator.
    "Store::token",
    "Store::unknown_tokens",
    "Store::tenants_with_open_runs",
    "Store::queue_state",
    // The run service calls these functions, for all tenants.
    "Store::cancellations",
    "Store::free_runs",
    "Store::has_queue",
    "Store::runs_without_client",
    // These functions are for the operator. They return numbers and problems, but no content.
    "Store::keeping",
    "Store::inspect",
    "Store::check",
    "Store::check_keys",
    "Store::accept_keys",
    "Store::check_structure",
    "Store::keep_tidy",
    "Store::prunable",
    "Store::prune",
    "Store::sealed",
    "Store::stats",
    "Store::vacuum",
    "TenantStore::file",
    "LazySecrets::new",
    "LazyMemory::new",
    "LazyState::new",
];

/// Returns the public functions of the store's types, and the functions of the port that the store
/// implements.
fn functions() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("store/src");
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(&source).unwrap() {
        let path = file.unwrap().path();
        // The engines have no notion of tenants, and these modules hold no data.
        let others = ["error.rs", "folder.rs", "lines.rs", "scope.rs", "tenant.rs", "wake.rs"];
        if path.is_dir() || others.iter().any(|other| path.ends_with(other)) {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let mut of = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("impl ") {
                of = rest.trim_end_matches(" {").rsplit(' ').next().unwrap().to_owned();
            }
            let public =
                line.strip_prefix("    pub fn ").or_else(|| line.strip_prefix("    pub async fn "));
            if let Some(rest) = public {
                found.insert(format!("{of}::{}", rest.split(['(', '<']).next().unwrap()));
            }
        }
    }
    let port = std::fs::read_to_string(source.join("journal/mod.rs")).unwrap();
    let port = port.split_once("pub trait Journal").unwrap().1.split_once("\n}").unwrap().0;
    let port = port.lines().filter_map(|line| line.strip_prefix("    fn "));
    found.extend(port.map(|rest| format!("Journal::{}", rest.split('(').next().unwrap())));
    found.insert("StoredSecrets::find".to_owned());
    let plain =
        ["SessionLine::", "SessionFiles::", "SessionDeltas::", "ExportedSession::", "StateValue::"];
    found.retain(|name| {
        !plain.iter().any(|plain| name.starts_with(plain)) && !WITHOUT_DATA.contains(&name.as_str())
    });
    found
}

/// Calls each function as bob on a new store and checks that alice's data does not change. `make`
/// creates the location of a store.
async fn check_all(make: impl Fn() -> Place) {
    let functions = functions();
    assert!(functions.len() >= 28, "{functions:?}");
    for function in functions {
        let folder = tempfile::tempdir().unwrap();
        let (keys, place) = (folder.path().join("keys"), make());
        // Idle sessions expire immediately, but bob's calls must not remove any of alice's
        // sessions.
        let store = place.open(Duration::ZERO);
        let tenant = |name: &str| store.tenant(&Tenant::new(name).unwrap());
        let (alice, bob) = (tenant("alice"), tenant("bob"));
        fill(&alice, &keys).await;
        let _lock = alice.lock("session:s").await.unwrap().unwrap();
        let before = dump(&alice, &keys).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        as_bob(&function, &bob, &keys).await;
        assert_eq!(dump(&alice, &keys).await, before, "{function}");
    }
}

#[tokio::test]
async fn no_function_of_the_store_reaches_another_tenants_data() {
    check_all(Place::new).await;
}

#[tokio::test]
async fn no_function_of_a_store_in_postgres_reaches_another_tenants_data() {
    if Place::in_postgres().is_some() {
        check_all(|| Place::in_postgres().unwrap()).await;
    }
}

#[tokio::test]
async fn names_that_look_alike_are_different_tenants() {
    let place = Place::new();
    let store = place.open(HOUR);
    store.tenant(&Tenant::new("bob").unwrap()).extend("s", vec![Message::user("q")]).await.unwrap();
    for name in ["Bob", "BOB", "bob.", "bob-", "0bob", "bo"] {
        let other = store.tenant(&Tenant::new(name).unwrap());
        assert_eq!(other.sessions().await.unwrap(), [], "{name}");
        assert_eq!(other.export("s").await.unwrap(), None, "{name}");
    }
}

#[tokio::test]
async fn keys_with_separators_are_not_confused() {
    let place = Place::new();
    let store = place.open(HOUR);
    let of = |name: &str| store.tenant(&Tenant::new(name).unwrap());
    of("a")
        .state("b/c")
        .update("k".to_owned(), Box::new(|_| Ok(Some(b"1".to_vec()))))
        .await
        .unwrap();
    for (tenant, session, key) in
        [("a", "b", "/ck"), ("a", "b/", "ck"), ("a", "b/ck", ""), ("ab", "/c", "k")]
    {
        assert_eq!(of(tenant).state(session).get(key.to_owned()).await.unwrap(), None);
    }
}
