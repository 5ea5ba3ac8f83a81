//! Tests of returning the state of a session to an earlier position.

use std::time::Duration;

use wattle_agent::Tenant;
use wattle_agent::host::capability::kv::{Backend, Kept};
use wattle_agent::host::journal::{Journal as _, RunEnd, RunRecord, RunStart, Turn};
use wattle_agent::host::machine::{Input, Usage};
use wattle_agent::host::{Rewind, TenantStore, own_session};

use crate::place::Place;

const HOUR: Duration = Duration::from_secs(3_600);

/// Sets a key, or removes it, as a call of a run's program.
async fn set(of: &TenantStore, session: &str, call: &str, key: &str, value: Option<&str>) {
    let value = value.map(|value| value.as_bytes().to_vec());
    let change = Box::new(move |_| Ok(value.clone()));
    let state = of.state(session);
    state.update_once(call.to_owned(), key.to_owned(), Kept::Nothing, change).await.unwrap();
}

async fn get(of: &TenantStore, session: &str, key: &str) -> Option<String> {
    let value = of.state(session).get(key.to_owned()).await.unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

fn opened(id: &str, session: Option<&str>, forked: Option<(&str, u32)>) -> RunRecord {
    let forked = forked.map(|(run, step)| (run.to_owned(), step));
    let start = RunStart { forked, ..RunStart::new("a message", serde_json::Value::Null) };
    RunRecord { session: session.map(str::to_owned), ..RunRecord::new(id, start) }
}

async fn turn(of: &TenantStore, run: &str) {
    let input = Input::Begin { message: "a message".to_owned() };
    let (spent, effects) = (Usage::default(), Vec::new());
    let turn = Turn { spent, input, effects, seq: 1, elapsed_ms: 0, files: None };
    of.turn(run, turn, Vec::new(), Vec::new()).await.unwrap();
}

/// Runs each test in a file and, if PostgreSQL is installed, in a database.
async fn in_both(test: impl AsyncFn(&TenantStore)) {
    for place in [Some(Place::new()), Place::in_postgres()].into_iter().flatten() {
        test(&place.open(HOUR).tenant(&Tenant::default())).await;
    }
}

#[tokio::test]
async fn a_state_returns_to_an_earlier_position_and_forward_again() {
    in_both(async |of: &TenantStore| {
        set(of, "s", "r/0.0//1", "a", Some("1")).await;
        set(of, "s", "r/0.0//2", "b", Some("1")).await;
        let first = of.state_position("s").await.unwrap();
        set(of, "s", "r/1.0//1", "a", Some("2")).await;
        set(of, "s", "r/1.0//2", "a", Some("3")).await;
        set(of, "s", "r/1.0//3", "b", None).await;
        set(of, "s", "r/1.0//4", "c", Some("1")).await;
        let second = of.state_position("s").await.unwrap();
        assert_eq!(second, first + 3, "a program's second change of a key is not recorded");
        of.variables().update("t".to_owned(), Box::new(|_| Ok(Some(vec![1])))).await.unwrap();

        assert_eq!(of.rewind_state("s", first, first).await.unwrap(), Rewind::Changed);
        assert_eq!(get(of, "s", "a").await.as_deref(), Some("3"));
        assert_eq!(of.rewind_state("s", first, second).await.unwrap(), Rewind::Done);
        assert_eq!(of.state("s").keys(String::new()).await.unwrap(), ["a", "b"]);
        assert_eq!(get(of, "s", "a").await.as_deref(), Some("1"));
        assert_eq!(of.sessions().await.unwrap()[0].bytes, 4);

        let now = of.state_position("s").await.unwrap();
        assert_eq!(of.rewind_state("s", second, now).await.unwrap(), Rewind::Done);
        assert_eq!(of.state("s").keys(String::new()).await.unwrap(), ["a", "c"]);
        assert_eq!(get(of, "s", "a").await.as_deref(), Some("3"));
        assert!(of.variables().get("t".to_owned()).await.unwrap().is_some());
    })
    .await;
}

#[tokio::test]
async fn the_record_of_earlier_values_is_bounded() {
    in_both(async |of: &TenantStore| {
        set(of, "s", "r/0.0//1", "a", Some("1")).await;
        let first = of.state_position("s").await.unwrap();
        let large = "x".repeat(7 << 20);
        for n in 0..12 {
            set(of, "s", &format!("r/{n}.1//1"), "large", Some(&format!("{n}{large}"))).await;
        }
        let now = of.state_position("s").await.unwrap();
        assert_eq!(of.rewind_state("s", first, now).await.unwrap(), Rewind::Forgotten);
        assert_eq!(of.rewind_state("s", now - 2, now).await.unwrap(), Rewind::Done);
        assert!(get(of, "s", "large").await.unwrap().starts_with("9x"));
    })
    .await;
}

#[tokio::test]
async fn a_fork_of_a_run_without_a_session_begins_with_the_state_of_its_turn() {
    in_both(async |of: &TenantStore| {
        let (own, new) = (own_session("r"), own_session("f"));
        of.open(opened("r", None, None)).await.unwrap();
        for value in ["1", "2", "3"] {
            set(of, &own, &format!("r/{value}.0//1"), "n", Some(value)).await;
            turn(of, "r").await;
        }
        of.end("r", RunEnd::default()).await.unwrap();
        assert!(of.sessions().await.unwrap().is_empty());

        of.open(opened("f", None, Some(("r", 2)))).await.unwrap();
        turn(of, "f").await;
        turn(of, "f").await;
        assert!(of.fork_state(("r", 1), "f").await.unwrap());
        assert_eq!(get(of, &new, "n").await.as_deref(), Some("2"));
        assert_eq!(get(of, &own, "n").await.as_deref(), Some("3"));

        // The fork can itself be forked, with another message, at a step that it shares.
        set(of, &new, "f/2.0//1", "n", Some("4")).await;
        of.open(opened("g", None, Some(("f", 1)))).await.unwrap();
        turn(of, "g").await;
        assert!(of.fork_state(("f", 0), "g").await.unwrap());
        assert_eq!(get(of, &own_session("g"), "n").await.as_deref(), Some("1"));
    })
    .await;
}
