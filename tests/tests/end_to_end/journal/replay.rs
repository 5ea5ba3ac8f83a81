//! Tests that a replay reports each difference from the recording: a changed program, call,
//! capability, prompt, or model's answer.

use wattle_agent::Host;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{
    Difference, Journal as _, RecordedCall, RecordedEffect, RunRecord, replay,
};
use wattle_agent::host::machine::{Input, WorkdirEntry};
use wattle_agent::host::rt::Limits;
use wattle_agent::host::rt::tape::RecordedValue;

use super::place::{ByTurn, Place, answer, done, wat};

const BODY: &str = r#"(resv (http.get? "https://a.example/page"))
(resv (str.from_int (kv.incr? "n" 1)))"#;

async fn recorded() -> Place {
    let place = Place::new();
    let turns =
        vec![wat(BODY), "ToolCall::Catalog(\"file_read\", \"base.txt\")".to_owned(), done()];
    let (ended, _) = place.run(&place.journal(), &ByTurn(turns), "r").await;
    assert_eq!(answer(&ended), "done");
    assert_eq!(place.replay("r").await.difference, None);
    place
}

/// Stores a copy of the run `r` under another id. The closures change the record, the inputs and
/// the calls of the copy.
async fn changed(
    place: &Place,
    id: &str,
    opened: impl FnOnce(&mut RunRecord),
    turn: impl Fn(usize, &mut Input),
    call: impl Fn(&mut RecordedCall),
) {
    let mut run = place.opened("r").await;
    run.id = id.to_owned();
    opened(&mut run);
    place.store.open(run).await.unwrap();
    for (at, mut one) in place.store.turns("r").await.unwrap().into_iter().enumerate() {
        turn(at, &mut one.input);
        place.store.turn(id, one, Vec::new(), Vec::new()).await.unwrap();
        let mut calls = place.store.calls_of("r", u32::try_from(at).unwrap()).await.unwrap();
        calls.iter_mut().for_each(&call);
        place.store.calls(id, calls).await.unwrap();
    }
}

#[tokio::test]
async fn each_kind_of_difference_is_named() {
    let place = recorded().await;
    let keep = |_: &mut RunRecord| {};
    let same = |_: usize, _: &mut Input| {};
    let as_is = |_: &mut RecordedCall| {};
    changed(&place, "same", keep, same, as_is).await;
    changed(
        &place,
        "version",
        |run| *run.start.capabilities.get_mut("kv").unwrap() += 1,
        same,
        as_is,
    )
    .await;
    changed(&place, "prompt", |run| run.start.setup.system.rest.push_str(" More."), same, as_is)
        .await;
    let answers = |at: usize, input: &mut Input| {
        if let (1, Input::Answer(answer)) = (at, input) {
            answer.text = answer.text.replace("\"n\" 1", "\"n\" 2");
        }
    };
    changed(&place, "answer", keep, answers, as_is).await;
    let result = |call: &mut RecordedCall| {
        if call.id.function == "http.get" {
            call.result = Some(Ok(RecordedValue::Bytes(b"another page".to_vec())));
        }
    };
    changed(&place, "result", keep, same, result).await;
    let argument = |call: &mut RecordedCall| {
        if call.id.function == "kv.incr" {
            (call.id.digest, call.id.args) = ([0; 16], "\"m\", 1".to_owned());
        }
    };
    changed(&place, "argument", keep, same, argument).await;
    let more = |call: &mut RecordedCall| {
        if call.id.function == "kv.incr" {
            call.id.number += 1;
        }
    };
    changed(&place, "other", keep, same, more).await;

    for (id, step, what, was, is) in [
        ("version", 0, "the capability `kv`", "version 3", "version 2"),
        ("prompt", 0, "the system prompt", "More.", ""),
        ("answer", 1, "event", "", ""),
        ("result", 1, "the result of `wat`", "answer 0", "another page"),
        ("argument", 1, "call 2 of the program", "kv.incr(\"m\", 1)", "kv.incr(\"n\", 1)"),
        ("other", 1, "call 2 of the program", "no call", "kv.incr(\"n\", 1)"),
    ] {
        let (in_step, Difference { what: named, was: before, is: now }) =
            place.replay(id).await.difference.unwrap_or_else(|| panic!("{id} does not differ"));
        assert_eq!(in_step, step, "{id}");
        assert!(
            named.contains(what) && before.contains(was) && now.contains(is),
            "{id}: {named}: {before} / {now}"
        );
    }
    assert_eq!(place.replay("same").await.difference, None);
}

/// A changed catalog program is reported even if its results are the same.
#[tokio::test]
async fn a_changed_program_of_the_catalog_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("greet.wat");
    let text = ";;; name = \"greet\"\n;;; description = \"Greets\"\n;;; returns = \"a \
                greeting\"\n(resv \"hello\")\n(i32.const 0)\n";
    std::fs::write(&file, text).unwrap();
    let host = || {
        let folders = Folders::open(&[dir.path().to_owned()], &|_, _| Ok(()));
        Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap()
    };
    let place = Place::with(host());
    let turns = vec!["ToolCall::Catalog(\"greet\")".to_owned(), done()];
    let (ended, _) = place.run(&place.journal(), &ByTurn(turns), "r").await;
    assert_eq!(answer(&ended), "done");
    std::fs::write(&file, text.replace("(resv", ";; politely\n(resv")).unwrap();
    let later = replay(&host(), &place.journal(), &place.opened("r").await, 1).await.unwrap();
    let (step, difference) = later.difference.unwrap();
    assert_eq!((step, difference.what.as_str()), (1, "the program"), "{difference:?}");
    let from_two = replay(&host(), &place.journal(), &place.opened("r").await, 2).await.unwrap();
    assert_eq!(from_two.difference, None, "the programs of earlier steps are not run again");
}

/// The recording contains the program that resulted from a fix, and the files at the start of the
/// run.
#[tokio::test]
async fn a_fix_and_the_first_request_are_replayed() {
    let place = Place::new();
    let turns = vec![
        wat("(resv (str.measure \"four\"))"),
        "ToolCall::Fix(\"str.measure\", \"str.upper?\")".to_owned(),
        done(),
    ];
    let (ended, _) = place.run(&place.journal(), &ByTurn(turns), "r").await;
    assert_eq!(answer(&ended), "done");
    let start = place.opened("r").await.start;
    let names = |entry: &WorkdirEntry| entry.name.clone();
    let orientation = start.setup.orientation.unwrap();
    assert_eq!(orientation.entries.iter().map(names).collect::<Vec<_>>(), ["base.txt"]);
    let turns = place.store.turns("r").await.unwrap();
    let bodies = turns.iter().flat_map(|turn| &turn.effects).filter_map(|effect| match effect {
        RecordedEffect::Execute { calls, .. } => calls[0].body().map(str::to_owned),
        _ => None,
    });
    let bodies: Vec<String> = bodies.collect();
    assert_eq!(bodies.len(), 2, "{bodies:?}");
    assert!(bodies[1].contains("str.upper?") && !bodies[1].contains("str.measure"), "{bodies:?}");
    std::fs::write(place.dir.path().join("new.txt"), "later").unwrap();
    std::fs::remove_file(place.dir.path().join("base.txt")).unwrap();
    assert_eq!(place.replay("r").await.difference, None);
}

/// The clock of a jq filter is an input of the run, so a replay uses the recorded time.
#[tokio::test]
async fn the_clock_of_a_filter_is_recorded() {
    let place = Place::new();
    let filters = r#"(resv (json.query? "1" "now"))
(resv (json.query? "[1]" ".[0], (now | todate)"))
(resv (json.query? "[2]" ".[0]"))"#;
    let (ended, _) = place.run(&place.journal(), &ByTurn(vec![wat(filters), done()]), "r").await;
    assert_eq!(answer(&ended), "done");
    let mut clocks = 0;
    for turn in 0..3 {
        let calls = place.store.calls_of("r", turn).await.unwrap();
        let of_clock = calls.iter().filter(|call| call.id.function == "sys.time");
        clocks += of_clock.map(|call| call.times.max(1)).sum::<u32>();
    }
    assert_eq!(clocks, 2, "a filter without `now` leaves no record");
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert_eq!(place.replay("r").await.difference, None);
}
