//! Tests that the tape of a run records the calls of the program that recalls items: a stopped run
//! is resumed without repeating these calls, and a replay recalls the same items.

use wattle_agent::host::RecallContract;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::memory::{Memory as _, MemoryText, NewItem, Scope};
use wattle_agent::host::capability::policy;
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{self, RecordedEffect, RunOutcome, SharedJournal, Status, end};
use wattle_agent::host::rt::Limits;
use wattle_agent::{Host, Settings};

use super::place::{ByTurn, Place, answer, done, wat};
use super::stopped::Stopping;

/// A program that recalls items and counts its runs.
const COUNTING: &str = r#";;; name = "counting"
;;; description = "Recalls items and counts the recalls"
;;; returns = "the items"
;;; uses = ["kv", "memory", "str"]
;;; [[args]]
;;; name = "conversation"
;;; type_hint = "string"
;;; description = "The messages"
;;; [[args]]
;;; name = "max"
;;; type_hint = "int"
;;; description = "The maximum"

(kv.incr "n" 1)
(ret (memory.search (arg 0) (str.to_int (arg 1))))
"#;

fn place(folder: &std::path::Path) -> Place {
    std::fs::write(folder.join("counting.wat"), COUNTING).unwrap();
    let folders = Folders::open(&[folder.to_owned()], &|_, _| Ok(()));
    let host = Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap();
    let recall = RecallContract { program: "counting".to_owned(), ..RecallContract::default() };
    let settings = Settings { recall: Some(recall), ..Settings::default() };
    Place { settings, ..Place::with(host) }
}

async fn remember(place: &Place, text: &str) {
    let item = NewItem { text: MemoryText::new(text).unwrap(), scope: Scope::Tenant };
    place.store.memory(None).add(None, item).await.unwrap();
}

fn script() -> ByTurn {
    ByTurn(vec![wat(r#"(resv "one")"#), wat(r#"(resv "two")"#), done()])
}

/// Returns the messages with recalled items.
async fn recalled(place: &Place) -> Vec<String> {
    let run = place.opened("r").await;
    let messages = journal::conversation(&place.journal(), &run).await.unwrap();
    let own = messages.into_iter().filter(|message| message.recalled);
    own.map(|message| message.content.split_once('\n').unwrap().1.to_owned()).collect()
}

#[tokio::test]
async fn a_run_that_is_stopped_while_it_recalls_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let first = place(folder.path());
    let mut moments = 0;
    for written in [false, true] {
        for write in 1.. {
            let place = first.another();
            remember(&place, "go by train").await;
            let stopping = Stopping::at(&place.store, write, written);
            let journal: SharedJournal = std::sync::Arc::<Stopping>::clone(&stopping);
            let model = script();
            let ran = async {
                let (ended, _) = place.run(&journal, &model, "r").await;
                if let RunOutcome::Done(report) = &ended {
                    end(&journal, report, false).await.unwrap();
                }
            };
            tokio::select! {
                () = ran => break,
                () = stopping.stopped.notified() => moments += 1,
            }
            let open = place.journal().run("r").await.unwrap();
            if open.is_none_or(|run| run.status == Status::Ended) {
                continue;
            }
            // Items added after the recall are not recalled.
            remember(&place, "go by bicycle").await;
            let ended = place.resume(&script(), "r", &[]).await.0.unwrap();
            assert_eq!(answer(&ended), "done", "write {write}");
            let recalled = recalled(&place).await;
            assert!(!recalled.is_empty(), "write {write}");
            let all = recalled.join("\n");
            assert!(all.matches("by train").count() <= 1, "write {write}: {all}");
            // The program ran twice: before steps 1 and 3.
            assert_eq!(place.value("n").await.as_deref(), Some("2"), "write {write}");
            let tools: Vec<String> = place
                .steps()
                .iter()
                .map(|line| format!("{}{}", line["step"], line["tool"].as_str().unwrap()))
                .collect();
            assert_eq!(tools, ["1counting", "1wat", "2wat", "3counting"], "write {write}");
            assert_eq!(place.replay("r").await.difference, None, "write {write}");
        }
    }
    assert!(moments > 12, "{moments}");
}

#[tokio::test]
async fn a_changed_memory_does_not_change_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place {
        settings: settings_with_items(place(folder.path()).settings),
        ..place(folder.path())
    };
    remember(&place, "go by train").await;
    let (ended, _) = place.run(&place.journal(), &script(), "r").await;
    assert_eq!(answer(&ended), "done");
    assert_eq!(recalled(&place).await, ["- go by train"]);
    remember(&place, "go by bicycle").await;
    assert_eq!(place.replay("r").await.difference, None);
    let played = place.replay("r").await;
    assert_eq!(played.programs, 4, "the recalling programs are run again");
    let calls = journal::calls(&place.journal(), "r").await.unwrap();
    let functions: Vec<String> =
        calls.iter().map(|call| format!("{} {}", call.step, call.function)).collect();
    assert_eq!(functions, ["1 kv.incr", "1 memory.search", "3 kv.incr", "3 memory.search"]);
}

fn settings_with_items(settings: Settings) -> Settings {
    Settings { memory: vec!["Ada likes short answers".to_owned()], ..settings }
}

/// A recall that needs approval is denied. It never parks the run.
#[tokio::test]
async fn a_recall_that_needs_approval_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rules = vec!["kv".parse().unwrap()];
    let place = Place {
        policy: policy::Policy::new(Vec::new(), rules, Vec::new()),
        ..place(folder.path())
    };
    remember(&place, "go by train").await;
    let (ended, _) = place.run(&place.journal(), &script(), "r").await;
    assert_eq!(answer(&ended), "done");
    let turns = place.journal().turns("r").await.unwrap();
    let events = turns.iter().flat_map(|turn| &turn.effects).filter_map(|effect| {
        let RecordedEffect::Emit(event) = effect else { return None };
        serde_json::to_string(event).ok()
    });
    let failed: Vec<String> = events.filter(|event| event.contains("recalled")).collect();
    assert!(
        failed[0].contains("needs an approval, for which the host does not wait here"),
        "{failed:?}"
    );
    let line = &place.steps()[0];
    assert!(line["error"].as_str().unwrap().contains("needs an approval"), "{line}");
    assert_eq!(place.value("n").await, None);
    assert_eq!(place.replay("r").await.difference, None);
}
