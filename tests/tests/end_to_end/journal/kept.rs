//! Tests values that programs keep for the later programs of their run.

use std::sync::Arc;

use serde_json::json;
use wattle_agent::host::DialectSetting;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{
    Journal as _, RecordedCall, RunLimits, RunOutcome, SharedJournal, Status, end, fork, replay,
};
use wattle_agent::host::machine::{Input, Message};
use wattle_agent::host::rt::tape::RecordedValue;
use wattle_agent::model::ModelReply;
use wattle_agent::{Host, Settings};
use wattle_rt::{KeptText, Limits};
use wattle_tests::{Scripted, World, calls};

use super::place::{ByTurn, Place, answer, done, observations, wat};
use super::stopped::Stopping;

/// A run that fetches data and keeps it, works on it in two further programs, and changes it.
fn script() -> ByTurn {
    ByTurn(vec![
        wat(r#"(let $rows (list))
(let $page (http.get "https://a.example/rows"))
(for $i 0 240 (push $rows (obj "id" $i "w" 0.5 "page" $page)))
(keep $rows)"#),
        wat(r#"(let $rows (take $rows 3))
(out (len $rows) (sum $rows by "w") $rows.0.page)
(keep $rows) (keep total (sum $rows by "w"))"#),
        wat(r#"(out (len $rows) $total)"#),
        done(),
    ])
}

const NOTES: [&str; 3] = [
    "kept: $rows list of 240 {id, w, page}",
    "kept: $rows list of 3 {id, w, page}; $total number",
    "3 1.5",
];

async fn check(place: &Place, id: &str) {
    let observations = observations(place, id).await;
    assert_eq!(observations.len(), NOTES.len());
    for (observation, note) in observations.iter().zip(NOTES) {
        assert!(observation.contains(note), "{observation}");
    }
    assert!(observations[1].contains("\n3 1.5 answer 0\n"), "{observations:?}");
    assert_eq!(place.replay(id).await.difference, None);
}

#[tokio::test]
async fn later_programs_work_on_what_an_earlier_one_fetched() {
    let place = Place::new();
    let (ended, _) = place.run(&place.journal(), &script(), "r").await;
    assert_eq!(answer(&ended), "done");
    check(&place, "r").await;
    assert_eq!(place.network.made("GET https://a.example/rows"), 1);
    let messages = observations(&place, "r").await.join("\n");
    assert!(messages.len() < 600, "no message has the data: {messages}");
    // The turns have the hash of the value, and the call that kept it has the value.
    let turns = place.store.turns("r").await.unwrap();
    let turns = serde_json::to_string(&turns).unwrap();
    assert!(!turns.contains("\\\"id\\\":7"), "{turns}");
    let kept = |call: &RecordedCall| call.id.function == "val.keep";
    let calls = place.store.calls_of("r", 1).await.unwrap();
    let calls: Vec<&RecordedCall> = calls.iter().filter(|call| kept(call)).collect();
    assert!(
        matches!(calls[..], [RecordedCall { result: Some(Ok(RecordedValue::Bytes(json))), .. }]
            if json.starts_with(b"[{\"id\":0,\"w\":0.5,"))
    );
}

#[tokio::test]
async fn a_run_that_is_stopped_between_its_programs_has_what_they_kept() {
    let first = Place::new();
    let mut moments = 0;
    for written in [false, true] {
        for write in 2.. {
            let place = first.another();
            let stopping = Stopping::at(&place.store, write, written);
            let journal: SharedJournal = Arc::<Stopping>::clone(&stopping);
            let ran = async {
                let (ended, _) = place.run(&journal, &script(), "r").await;
                if let RunOutcome::Done(report) = &ended {
                    end(&journal, report, false).await.unwrap();
                }
            };
            let is_over = tokio::select! {
                () = ran => true,
                () = stopping.stopped.notified() => false,
            };
            if is_over {
                break;
            }
            if place.opened("r").await.status == Status::Ended {
                continue;
            }
            moments += 1;
            let (ended, _) = place.resume(&script(), "r", &[]).await;
            assert_eq!(answer(&ended.unwrap()), "done", "write {write}");
            let observations = observations(&place, "r").await;
            assert!(observations[2].ends_with(NOTES[2]), "write {write}: {observations:?}");
            assert_eq!(place.replay("r").await.difference, None, "write {write}");
        }
    }
    assert!(moments > 8, "{moments}");
}

#[tokio::test]
async fn a_fork_has_what_the_shared_steps_kept() {
    let place = Place::new();
    place.run(&place.journal(), &script(), "r").await;
    let limits = RunLimits::default();
    let run = place.opened("r").await;
    fork(&place.journal(), &run, 1, None, "f".to_owned(), limits).await.unwrap();
    let (ended, _) = place.resume(&script(), "f", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    check(&place, "f").await;
    assert_eq!(place.network.made("GET https://a.example/rows"), 1);
}

/// Stores a copy of the run `r` in which its first program kept another value.
#[tokio::test]
async fn a_kept_value_is_part_of_the_program_that_reads_it() {
    let place = Place::new();
    place.run(&place.journal(), &script(), "r").await;
    let mut run = place.opened("r").await;
    run.id = "changed".to_owned();
    place.store.open(run).await.unwrap();
    let (json, hash) = ("[]".to_owned(), KeptText::hash_of("[]"));
    for (number, mut turn) in (0..).zip(place.store.turns("r").await.unwrap()) {
        let mut calls = place.store.calls_of("r", number).await.unwrap();
        if number == 1 {
            for call in calls.iter_mut().filter(|call| call.id.function == "val.keep") {
                call.result = Some(Ok(RecordedValue::Bytes(json.clone().into_bytes())));
            }
        }
        if let (2, Input::Executed(executions)) = (number, &mut turn.input) {
            let mut kept = executions[0].kept().to_vec();
            (kept[0].hash, kept[0].bytes) = (hash.clone(), 2);
            executions[0] = executions[0].clone().with_kept(kept);
        }
        place.store.turn("changed", turn, Vec::new(), Vec::new()).await.unwrap();
        place.store.calls("changed", calls).await.unwrap();
    }
    let journal = place.journal();
    let run = place.opened("changed").await;
    let replayed = replay(&place.host, &journal, &run, 2).await.unwrap();
    let (step, difference) = replayed.difference.unwrap();
    assert_eq!((step, difference.what.as_str()), (2, "the program"), "{difference:?}");
}

fn inline(body: &str) -> String {
    format!("ToolCall::Wat(```wat\n{body}\n```)")
}

/// Settings with which a call's output is cut after 300 characters.
fn short() -> Settings {
    let mut settings = Settings::default();
    settings.machine.observation_limit = 300;
    settings
}

#[tokio::test]
async fn a_result_that_is_cut_is_kept_whole() {
    let mut place = Place::new();
    place.settings = short();
    std::fs::write(place.workdir().join("long.txt"), "é".repeat(800)).unwrap();
    let script = ByTurn(vec![
        wat(r#"(for $i 0 100 (out "line {}" $i))"#),
        wat(r#"(out (len (str.lines $last)) (at (str.lines $last) 57))"#),
        "ToolCall::Catalog(\"file_read\", \"long.txt\")".to_owned(),
        wat(r#"(out (= $last (str.repeat "é" 800)))"#),
        done(),
    ]);
    let (ended, _) = place.run(&place.journal(), &script, "r").await;
    assert_eq!(answer(&ended), "done");
    let observations = observations(&place, "r").await;
    let note = "the whole result is $last, a string, in the next program";
    assert!(observations[0].contains(note) && !observations[0].contains("line 57"));
    assert!(observations[1].contains("\n100 line 57"), "{observations:?}");
    assert!(observations[2].contains(note), "{observations:?}");
    assert!(observations[3].contains("\n1"), "{observations:?}");
    assert_eq!(place.replay("r").await.difference, None);
}

#[tokio::test]
async fn a_failed_program_keeps_its_values_and_its_whole_output() {
    let mut place = Place::new();
    place.settings = short();
    let script = ByTurn(vec![
        inline("(keep n (list 1 2))\n(for $i 0 100 (out \"line {}\" $i))\n(fail EBOUND \"no\")"),
        inline("(out (sum $n) (len (str.lines $last)))\n(keep m 7)\n(out (/ 1 0))"),
        inline("(out $m)"),
        done(),
    ]);
    let (ended, _) = place.run(&place.journal(), &script, "r").await;
    assert_eq!(answer(&ended), "done");
    let observations = observations(&place, "r").await;
    assert!(observations[0].contains("the whole result is $last"), "{observations:?}");
    assert!(observations[0].contains("kept: $n list of 2 numbers"), "{observations:?}");
    assert!(observations[1].contains("\n3 100"), "{observations:?}");
    assert!(observations[1].contains("kept: $m number"), "{observations:?}");
    assert!(observations[2].ends_with("\n7"), "{observations:?}");
    assert_eq!(place.replay("r").await.difference, None);
}

#[tokio::test]
async fn calls_of_one_step_see_the_values_of_the_steps_before() {
    let world = World::new();
    let wat = |body: &str| ("wat", json!({ "body": body }).to_string());
    let step = |bodies: &[&str]| -> ModelReply {
        let all: Vec<(&str, String)> = bodies.iter().map(|body| wat(body)).collect();
        calls(&all.iter().map(|(name, args)| (*name, args.as_str())).collect::<Vec<_>>())
    };
    let long = "(for $i 0 100 (out \"line {}\" $i))";
    let model = Scripted::calling(vec![
        step(&["(keep x 1)", "(keep x 2) (keep y 5)", "(out $x)"]),
        step(&["(out $x $y)", "(keep x 3)", "(out $x)"]),
        step(&[long, &long.replace("line", "row")]),
        step(&["(out (take (str.lines $last1) 1) (take (str.lines $last2) 1) $x)"]),
        calls(&[("done", "{\"result\":\"done\"}")]),
    ]);
    let settings = Settings { dialect: DialectSetting::Native, ..short() };
    let (report, _) = world.run(&model, &settings, world.job("go")).await;
    assert_eq!(report.ending.text(), "done");
    let requests = model.requests();
    let results: Vec<String> = requests
        .last()
        .unwrap()
        .iter()
        .filter(|message: &&Message| message.answers.is_some())
        .map(|message| wattle_tests::plain(&message.content))
        .collect();
    assert!(results[2].contains("no local `$x`"), "{results:?}");
    assert!(results[2].contains("kept: $x number; $y number"), "{results:?}");
    assert!(results[3].ends_with("\n2 5") && results[5].contains("\n2"), "{results:?}");
    assert!(results[6].contains("the whole result is $last1"), "{results:?}");
    assert!(results[7].contains("the whole result is $last2"), "{results:?}");
    assert!(results[8].ends_with("[\"line 0\"] [\"row 0\"] 3"), "{results:?}");
}

#[tokio::test]
async fn programs_of_the_catalog_neither_see_nor_keep_values() {
    let dir = tempfile::tempdir().unwrap();
    let program = |name: &str, body: &str| {
        let head = format!(";;; name = \"{name}\"\n;;; description = \"Tests\"");
        let text = format!("{head}\n;;; returns = \"nothing\"\n{body}\n");
        std::fs::write(dir.path().join(format!("{name}.wat")), text).unwrap();
    };
    program("keeper", "(keep y 1)");
    program("reader", "(out (val.text (val.kept \"x\")))");
    let folders = Folders::open(&[dir.path().to_owned()], &|_, _| Ok(()));
    let host = Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap();
    let place = Place::with(host);
    let script = ByTurn(vec![
        inline("(keep x 1)"),
        "ToolCall::Catalog(\"keeper\")".to_owned(),
        "ToolCall::Catalog(\"reader\")".to_owned(),
        inline("(catch $v $e $why (call \"reader\")) (out $why)"),
        inline("(catch $v $e $why (call \"keeper\")) (out $why)"),
        done(),
    ]);
    let (ended, _) = place.run(&place.journal(), &script, "r").await;
    assert_eq!(answer(&ended), "done");
    let observations = observations(&place, "r").await;
    for (at, words) in [
        (1, "this program keeps no values"),
        (2, "no program of this run kept \"x\""),
        (3, "no program of this run kept \"x\""),
        (4, "this program keeps no values"),
    ] {
        assert!(observations[at].contains(words), "{at}: {observations:?}");
    }
    assert_eq!(place.replay("r").await.difference, None);
}
