//! Tests of data retention on both database engines: which data is removed over time, and which is
//! kept.

use std::time::Duration;

use crate::place::Place;
use wattle_agent::host::journal::{
    Journal as _, ParentRun, RunEnd, RunFilter, RunRecord, RunRequest, RunStart, Turn,
};
use wattle_agent::host::machine::{Envelope, Event, Input, Message, Usage};
use wattle_agent::host::{Pruned, Retention, TenantStore};
use wattle_agent::{Store, Tenant};

const HOUR: Duration = Duration::from_secs(3_600);
const NOTHING: Retention = Retention { runs: Some(Duration::ZERO), events: None };

/// Returns the store locations of a test: SQLite, and PostgreSQL if it is installed.
fn places() -> Vec<Place> {
    [Some(Place::new()), Place::in_postgres()].into_iter().flatten().collect()
}

fn of(store: &Store) -> TenantStore {
    store.tenant(&Tenant::default())
}

fn record(id: &str, session: Option<&str>, parent: Option<ParentRun>) -> RunRecord {
    let start = RunStart { parent, ..RunStart::new("go", serde_json::Value::Null) };
    RunRecord { session: session.map(str::to_owned), ..RunRecord::new(id, start) }
}

fn turn() -> Turn {
    let input = Input::Begin { message: "go".to_owned() };
    Turn { spent: Usage::default(), input, effects: Vec::new(), seq: 1, elapsed_ms: 0, files: None }
}

/// Opens a run and records a turn with three events.
async fn open(store: &TenantStore, run: RunRecord) {
    let event = |seq| Envelope {
        root_run_id: run.id.clone(),
        run_id: run.id.clone(),
        seq,
        ts: 0,
        event: Event::Error { message: "x".to_owned() },
    };
    let events = (1..4).map(event).collect();
    let id = run.id.clone();
    store.open(run).await.unwrap();
    store.turn(&id, turn(), Vec::new(), events).await.unwrap();
}

async fn end(store: &TenantStore, run: &str) {
    store.end(run, RunEnd::default()).await.unwrap();
}

/// Returns the ids of all root runs and of all descendants of the root runs `tops`.
async fn runs(store: &TenantStore, tops: &[&str]) -> Vec<String> {
    let mut filters = vec![RunFilter::default()];
    filters.extend(
        tops.iter()
            .map(|top| RunFilter { tree_of: Some((*top).to_owned()), ..RunFilter::default() }),
    );
    let mut found = Vec::new();
    for filter in filters {
        found.extend(store.runs(filter).await.unwrap().into_iter().map(|run| run.id));
    }
    found.sort();
    found
}

/// Waits until all data written so far is at least a few milliseconds old.
async fn pass() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test]
async fn ended_runs_are_removed_and_others_stay() {
    for place in places() {
        let store = place.open(HOUR).keeping(NOTHING);
        let of = of(&store);
        for id in ["ended", "open", "parked", "child-open", "child-ended"] {
            open(&of, record(id, None, None)).await;
        }
        for top in ["child-open", "child-ended"] {
            let parent = ParentRun { run: top.to_owned(), root: top.to_owned() };
            open(&of, record(&format!("{top}/1"), None, Some(parent))).await;
        }
        of.park("parked", None, Vec::new()).await.unwrap();
        for id in ["ended", "child-open", "child-ended", "child-ended/1"] {
            end(&of, id).await;
        }
        of.enqueue(RunRequest { id: "queued".to_owned(), ..RunRequest::new("go") }).await.unwrap();
        pass().await;
        let all = runs(&of, &["child-open", "child-ended"]).await;
        assert_eq!(all.len(), 7);
        let expected = Pruned { runs: 3, ..Pruned::default() };
        assert_eq!(store.prunable().await.unwrap(), expected);
        assert_eq!(runs(&of, &["child-open", "child-ended"]).await, all, "nothing is removed yet");
        assert_eq!(store.prune().await.unwrap(), expected);
        let left = ["child-open", "child-open/1", "open", "parked"];
        assert_eq!(runs(&of, &["child-open", "child-ended"]).await, left);
        assert_eq!(of.queued().await.unwrap().len(), 1);
        assert!(of.turns("ended").await.unwrap().is_empty());
        assert_eq!(of.turns("open").await.unwrap().len(), 1);
        // The last child run of a tree ends.
        end(&of, "child-open/1").await;
        pass().await;
        assert_eq!(store.prune().await.unwrap().runs, 2);
        let forever = place.open(HOUR).keeping(Retention { runs: None, events: None });
        end(&of, "open").await;
        pass().await;
        assert_eq!(forever.prune().await.unwrap(), Pruned::default());
    }
}

#[tokio::test]
async fn events_are_removed_except_for_the_last_one() {
    for place in places() {
        let kept = Retention { runs: Some(HOUR), events: Some(Duration::ZERO) };
        let store = place.open(HOUR).keeping(kept);
        let of = of(&store);
        for id in ["a", "b"] {
            open(&of, record(id, None, None)).await;
        }
        end(&of, "a").await;
        pass().await;
        let expected = Pruned { runs_without_events: 1, ..Pruned::default() };
        assert_eq!(store.prunable().await.unwrap(), expected);
        assert_eq!(of.events("a", 0, 9).await.unwrap().len(), 3);
        assert_eq!(store.prune().await.unwrap(), expected);
        let left: Vec<u64> = of.events("a", 0, 9).await.unwrap().iter().map(|e| e.seq).collect();
        assert_eq!(left, [3], "the last event has the end of the run");
        assert_eq!(of.events("b", 0, 9).await.unwrap().len(), 3, "the run is open");
        assert_eq!(of.turns("a").await.unwrap().len(), 1, "the run can be replayed");
        assert_eq!(store.prune().await.unwrap(), Pruned::default());
    }
}

#[tokio::test]
async fn unused_sessions_are_removed_unless_a_run_needs_them() {
    for place in places() {
        let store = place.open(Duration::ZERO);
        let of = of(&store);
        for session in ["unused", "open", "queued"] {
            of.extend(session, vec![Message::user("hello")]).await.unwrap();
        }
        open(&of, record("r", Some("open"), None)).await;
        let queued = RunRequest { id: "q".to_owned(), ..RunRequest::new("go") };
        of.enqueue(RunRequest { session: Some("queued".to_owned()), ..queued }).await.unwrap();
        pass().await;
        let expected = Pruned { sessions: 1, ..Pruned::default() };
        assert_eq!(store.prunable().await.unwrap(), expected);
        assert_eq!(of.sessions().await.unwrap().len(), 3);
        assert_eq!(store.prune().await.unwrap(), expected);
        let mut left: Vec<String> =
            of.sessions().await.unwrap().into_iter().map(|session| session.id).collect();
        left.sort();
        assert_eq!(left, ["open", "queued"]);
    }
}

#[tokio::test]
async fn opening_a_run_removes_a_few_old_ones() {
    for place in places() {
        let of = of(&place.open(HOUR).keeping(NOTHING));
        for number in 0..30 {
            let keeping = self::of(&place.open(HOUR));
            let id = format!("r{number}");
            open(&keeping, record(&id, None, None)).await;
            end(&keeping, &id).await;
        }
        pass().await;
        open(&of, record("new", None, None)).await;
        let left = runs(&of, &[]).await.len();
        // Opening a run removes 20 old runs, or fewer if the removal takes too long.
        assert!((11..31).contains(&left), "{left} are left; the others are for a server");
    }
}
