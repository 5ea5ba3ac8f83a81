//! Tests runs whose loop is the machine as a component: their turns and events are those of the
//! machine, byte for byte, live and resumed. CI runs the other tests of this folder with the component,
//! too.

use wattle_agent::host::engine::{Bounds, Component};
use wattle_agent::host::journal::{
    self, EffectRecorder, ResumeError, RunOutcome, RunRecord, Status,
};
use wattle_agent::host::machine::{Effect, Ending, Input, State};
use wattle_tests::engine;

use super::generated::turns;
use super::place::{ByTurn, Place, answer, done, status, wat};
use super::stopped::Stopping;

/// Returns an environment whose runs use the component, or `None` if it is not built.
fn with_engine() -> Option<Place> {
    let place = Place::new();
    Some(Place { host: place.host.clone().with_engine(Some(engine()?)), ..place })
}

/// Compares each recorded turn of a run, and its events, with what the machine does for the recorded
/// inputs. Returns the number of turns.
async fn compare_with_the_machine(place: &Place, id: &str) -> usize {
    let run = place.opened(id).await;
    assert!(run.start.engine.is_some(), "the engine is recorded");
    let mut state = State::new(run.start.setup.clone());
    let mut recorder = EffectRecorder::default();
    let mut events = Vec::new();
    let turns = place.journal().turns(id).await.unwrap();
    for (at, turn) in turns.iter().enumerate() {
        let effects;
        (state, effects) = turn.step(state);
        let json = |effects| serde_json::to_string_pretty(effects).unwrap();
        let recorded = recorder.record(&effects);
        assert_eq!(json(&turn.effects), json(&recorded), "{id}, turn {at}");
        assert_eq!(turn.seq, 1 + events.len() as u64, "{id}, turn {at}");
        events.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Emit(event) => Some(event),
            _ => None,
        }));
    }
    let stored = place.journal().events(id, 0, u32::MAX).await.unwrap();
    let numbers: Vec<u64> = stored.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=stored.len() as u64).collect::<Vec<_>>(), "{id}");
    assert_eq!(stored.into_iter().map(|one| one.event).collect::<Vec<_>>(), events, "{id}");
    turns.len()
}

#[tokio::test]
async fn generated_runs_with_the_engine_are_those_of_the_machine() {
    let Some(first) = with_engine() else { return };
    let mut random = fastrand::Rng::with_seed(41);
    for run in 0..20 {
        let (place, id) = (first.another(), format!("r{run}"));
        let turns = turns(&mut random);
        let (ended, _) = place.run(&place.journal(), &ByTurn(turns.clone()), &id).await;
        assert_eq!(answer(&ended), "done", "{turns:#?}");
        assert!(compare_with_the_machine(&place, &id).await > turns.len());
        assert_eq!(place.replay(&id).await.difference, None, "run {run}: {turns:#?}");
    }
}

#[tokio::test]
async fn a_run_with_the_engine_resumes_after_a_kill_at_any_write() {
    let Some(first) = with_engine() else { return };
    let model = ByTurn(vec![
        wat(r#"(kv.incr? "n" 1)"#),
        wat(r#"(fs.append? "log.txt" "x") (kv.set? "k" "v")"#),
        done(),
    ]);
    let mut writes = 1;
    loop {
        for written in [false, true] {
            let place = first.another();
            let journal = Stopping::at(&place.store, writes, written);
            let run: journal::SharedJournal = journal.clone();
            let is_stopped = tokio::select! {
                _ = place.run(&run, &model, "r") => false,
                () = journal.stopped.notified() => true,
            };
            if !is_stopped {
                return assert!(writes > 4, "{writes}");
            }
            match place.journal().run("r").await.unwrap() {
                None => continue,
                Some(run) if run.status == Status::Ended => continue,
                Some(_) => {}
            }
            let (ended, _) = place.resume(&model, "r", &[]).await;
            assert_eq!(answer(&ended.unwrap()), "done", "{writes} {written}");
            compare_with_the_machine(&place, "r").await;
        }
        writes += 1;
    }
}

#[tokio::test]
async fn a_run_is_resumed_with_its_own_engine_only() {
    let Some(place) = with_engine() else { return };
    let model = ByTurn(vec![wat(r#"(out "a")"#), done()]);
    let journal = Stopping::at(&place.store, 3, true);
    let run: journal::SharedJournal = journal.clone();
    tokio::select! {
        ended = place.run(&run, &model, "r") => panic!("{ended:?}"),
        () = journal.stopped.notified() => {}
    }
    let other = Place::new();
    let other = Place { store: place.store.clone(), ..other };
    let other = Place { host: other.host.clone().with_engine(None), ..other };
    let (refused, _) = other.resume(&model, "r", &[]).await;
    let Err(ResumeError::Engine(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("no engine is set") && why.contains("--engine"), "{why}");
    let replayed = other.replay("r").await.difference.unwrap().1;
    assert_eq!(replayed.what, "the engine");
    let (ended, _) = place.resume(&model, "r", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
}

#[tokio::test]
async fn an_engine_that_does_not_do_what_is_recorded_ends_the_run() {
    let Some(place) = with_engine() else { return };
    let model = ByTurn(vec![wat(r#"(out "a")"#), done()]);
    let (_, _) = place.run(&place.journal(), &model, "whole").await;
    let whole = place.opened("whole").await;
    let turns = place.journal().turns("whole").await.unwrap();
    // Another process recorded a different message than the one with which the engine begins again.
    let changed = RunRecord { id: "r".into(), status: Status::Open, summary: None, ..whole };
    place.journal().open(changed).await.unwrap();
    let mut first = turns[0].clone();
    first.input = Input::Begin { message: "something else".to_owned() };
    place.journal().turn("r", first, Vec::new(), Vec::new()).await.unwrap();
    let (ended, _) = place.resume(&model, "r", &[]).await;
    let RunOutcome::Done(report) = ended.unwrap() else { panic!("the run waits") };
    let Ending::Failed { message } = &report.ending else { panic!("{:?}", report.ending) };
    assert!(message.starts_with("error: the engine is not deterministic: it did "), "{message}");
    assert!(message.contains("something else"), "{message}");
    journal::end(&place.journal(), &report, false).await.unwrap();
    assert_eq!(status(&place, "r").await, Status::Ended);
    let last = place.journal().events("r", 0, u32::MAX).await.unwrap().pop().unwrap();
    assert_eq!(serde_json::to_value(last.event).unwrap()["message"], *message);
}

/// The engine traps at once. Other runs of the host are not affected.
#[tokio::test]
async fn a_trap_ends_one_run() {
    let Some(component) = engine() else { return };
    let place = Place::new();
    let bounds = Bounds { memory: 1 << 16, ..Bounds::default() };
    let binary = wattle_cases::engine::component().unwrap();
    let folder = wattle_cases::guests::SharedGuests::in_target();
    let small = Component::load(&binary, Some(folder.folder()), bounds).unwrap();
    let starved = Place { host: place.host.clone().with_engine(Some(small)), ..place.another() };
    let (ended, events) = starved.run(&starved.journal(), &ByTurn(vec![done()]), "r").await;
    assert!(answer(&ended).starts_with("error: the engine was stopped: "), "{ended:?}");
    assert_eq!(events.len(), 1, "{events:?}");
    let other = Place { host: place.host.clone().with_engine(Some(component)), ..place };
    let (ended, _) = other.run(&other.journal(), &ByTurn(vec![done()]), "r").await;
    assert_eq!(answer(&ended), "done");
}
