//! Tests that a run is parked in the journal if a call needs approval, and that another process
//! resumes the run after a person has answered.

use wattle_agent::host::capability::policy::Policy;
use wattle_agent::host::journal::{
    ParkedRun, PendingApproval, ResumeError, RunOutcome, Status, end,
};
use wattle_agent::host::machine::Event;

use super::place::{ByTurn, Place, answer, done, observations, status, wat};

fn asking(rules: &[&str]) -> Place {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    Place { policy: Policy::new(Vec::new(), rules, Vec::new()), ..Place::new() }
}

fn script() -> ByTurn {
    ByTurn(vec![
        wat(r#"(resv (str.from_int (kv.incr? "n" 1)))"#),
        wat("(resv (str.from_int (kv.incr? \"n\" 1)))\n\
             (resv (http.post? \"https://a.example/form\" \"x\" \"\"))"),
        done(),
    ])
}

async fn parked(place: &Place) -> Vec<PendingApproval> {
    let (ended, events) = place.run(&place.journal(), &script(), "r").await;
    let RunOutcome::Parked(ParkedRun { run_id, waiting, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(run_id, "r");
    let emitted: Vec<&Event> = events.iter().map(|envelope| &envelope.event).collect();
    let Some(Event::Parked { call, question }) = emitted.last() else { panic!("{emitted:?}") };
    assert_eq!((call, question), (&waiting[0].call, &waiting[0].question));
    assert!(
        !emitted.iter().any(|event| matches!(event, Event::Response { .. } | Event::Error { .. }))
    );
    assert_eq!(status(place, "r").await, Status::Parked);
    waiting
}

#[tokio::test]
async fn an_approved_run_is_resumed() {
    let place = asking(&["host:a.example"]);
    let waiting = parked(&place).await;
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].call, "2.1");
    assert!(
        waiting[0].question.contains("a.example") && waiting[0].question.contains("line 2"),
        "{waiting:?}"
    );
    assert_eq!(place.network.made("POST https://a.example/form"), 0);
    assert_eq!(place.value("n").await.as_deref(), Some("1"), "nothing of the program was run");

    assert!(matches!(
        place.resume(&script(), "r", &[]).await.0,
        Err(ResumeError::Pending(open)) if open == waiting[0]
    ));
    assert!(matches!(
        place.resume(&script(), "r", &[("1.1", true)]).await.0,
        Err(ResumeError::NotAsked(call)) if call == "1.1"
    ));
    assert_eq!(status(&place, "r").await, Status::Parked);

    let ended = place.resume(&script(), "r", &[("2.1", true)]).await.0.unwrap();
    assert_eq!(answer(&ended), "done");
    assert_eq!(place.network.made("POST https://a.example/form"), 1);
    assert_eq!(place.value("n").await.as_deref(), Some("2"));
    assert_eq!(place.steps().len(), 2);
    let RunOutcome::Done(report) = ended else { panic!() };
    end(&place.journal(), &report, false).await.unwrap();
    assert_eq!(place.replay("r").await.difference, None, "the answer is part of the recording");
}

#[tokio::test]
async fn a_denied_run_continues_without_the_call() {
    let place = asking(&["http"]);
    parked(&place).await;
    let ended = place.resume(&script(), "r", &[("2.1", false)]).await.0.unwrap();
    assert_eq!(answer(&ended), "done");
    assert_eq!(place.network.made("POST https://a.example/form"), 0);
    let observations = observations(&place, "r").await;
    assert!(observations[1].contains("the user denied it"), "{observations:?}");
    assert_eq!(place.replay("r").await.difference, None);
}

/// A nested call requires a separate approval, and completed calls are not repeated.
#[tokio::test]
async fn a_nested_call_asks_too() {
    let place = asking(&["fs.write", "vfs.write"]);
    let script = ByTurn(vec![
        wat(r#"(resv (str.from_int (kv.incr? "n" 1)))
(each $r (par.run? (arr.from_json? """[["file_write","p.txt","p"]]""")) (out $r))"#),
        done(),
    ]);
    let (ended, _) = place.run(&place.journal(), &script, "r").await;
    let RunOutcome::Parked(ParkedRun { waiting, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(waiting[0].call, "1.1");
    let (ended, files) = place.resume(&script, "r", &[("1.1", true)]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    assert_eq!(place.value("n").await.as_deref(), Some("1"));
    assert_eq!(&*files.read("p.txt").unwrap(), b"p");
}

/// A process that stops to wait for a person's answer is not counted as crashed, however many
/// questions are asked before the next turn.
#[tokio::test]
async fn a_run_that_asks_several_times_in_one_program_is_not_parked_as_crashed() {
    let place = asking(&["kv.set"]);
    let keys = ["a", "b", "c", "d"];
    let calls: Vec<String> =
        keys.iter().map(|key| format!("(drop (call \"kv_set\" \"{key}\" \"1\"))")).collect();
    let script = ByTurn(vec![wat(&calls.join("\n")), done()]);
    let (mut ended, _) = place.run(&place.journal(), &script, "r").await;
    for key in keys {
        let RunOutcome::Parked(ParkedRun { waiting, .. }) = ended else { panic!("{ended:?}") };
        assert!(waiting[0].question.contains(&format!("\"{key}\"")), "{waiting:?}");
        assert_eq!(place.opened("r").await.attempts, 0);
        ended = place.resume(&script, "r", &[(waiting[0].call.as_str(), true)]).await.0.unwrap();
    }
    assert_eq!(answer(&ended), "done");
    for key in keys {
        assert_eq!(place.value(key).await.as_deref(), Some("1"));
    }
}
