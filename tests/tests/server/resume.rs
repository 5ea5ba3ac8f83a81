//! A server that was killed leaves runs open; the next one takes them up.

use std::time::Duration;

use wattle_agent::Store;
use wattle_agent::journal::{Journal as _, Opened, Opening, Status, Turn};
use wattle_agent::machine::{Effect, Input, Setup, State, Usage, step};

use crate::world::World;

/// A run as a server leaves it that is killed while it asks the model.
async fn left_open(store: &Store, id: &str, session: &str, by: &str) {
    let setup = Setup { system: "prompt".to_owned(), session_id: Some(session.to_owned()), ..Setup::default() };
    let opening = Opening {
        setup: setup.clone(),
        message: "hello".to_owned(),
        agent: "wattle".to_owned(),
        model: "m".to_owned(),
        timeout_ms: None,
        temperature: 0.3,
        max_tokens: 100,
        preamble: None,
        granted: Vec::new(),
        capabilities: [].into(),
        workdir: None,
        forked: None,
        origin: serde_json::json!({"by": by}),
    };
    let run = Opened {
        id: id.to_owned(),
        session: Some(session.to_owned()),
        status: Status::Open,
        made: 0,
        used: 0,
        opening,
    };
    store.open(run).await.unwrap();
    let input = Input::Begin { message: "hello".to_owned() };
    let (_, effects) = step(State::new(setup), input.clone());
    assert!(matches!(effects.as_slice(), [Effect::Ask(_)]));
    store
        .turn(id, Turn { spent: Usage::default(), input, done: Vec::new(), seq: 1, elapsed_ms: 0, files: None })
        .await
        .unwrap();
}

#[tokio::test]
async fn open_runs_are_taken_up_once() {
    let store = Store::in_memory(Duration::from_secs(3600)).unwrap();
    for (id, session, by) in [("r1", "a", "serve"), ("r2", "a", "serve"), ("r3", "b", "serve"), ("r4", "c", "run")] {
        left_open(&store, id, session, by).await;
    }
    let held = store.hold("run:r3").await.unwrap().unwrap();
    let mut world = World::on(store.clone(), |_| {}).await;
    world.question().await.respond("one");
    world.question().await.respond("two");
    let done = async |id: &str| store.run(id).await.unwrap().unwrap().status == Status::Ended;
    tokio::time::timeout(Duration::from_secs(4), async {
        while !(done("r1").await && done("r2").await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
    let said: Vec<String> = store.history("a").await.unwrap().into_iter().map(|message| message.content).collect();
    assert_eq!(said.len(), 4, "{said:?}");
    world.no_question();
    assert!(!done("r3").await, "another process works on it");
    assert!(!done("r4").await, "it is not a server's");
    drop(held);
}
