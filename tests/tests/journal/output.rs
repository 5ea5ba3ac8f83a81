//! A run with a schema for its answer is stopped at any moment, resumed and replayed like any other.

use std::sync::Arc;

use serde_json::json;
use wattle_agent::journal::{Journal as _, RecordedEffect, RunOutcome, SharedJournal, Status, end};
use wattle_agent::output::{OutputSchema, OutputSettings};

use crate::place::{ByTurn, Place, status};
use crate::stopped::Stopping;

fn place() -> Place {
    let schema =
        json!({"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]});
    let schema = OutputSchema::new("point", schema).unwrap();
    Place { output: Some(OutputSettings::new(schema)), ..Place::new() }
}

/// Returns a model whose first answer is invalid.
fn model() -> ByTurn {
    ByTurn(vec!["x is 1".to_owned(), "{\"x\": 1}".to_owned()])
}

fn value(ended: &RunOutcome) -> Option<&serde_json::Value> {
    match ended {
        RunOutcome::Done(report) => report.data(),
        RunOutcome::Parked(parked) => panic!("the run waits: {parked:?}"),
    }
}

#[tokio::test]
async fn a_replay_of_a_corrected_answer_is_the_same() {
    let place = place();
    let (ended, _) = place.run(&place.journal(), &model(), "r").await;
    assert_eq!(value(&ended), Some(&json!({"x": 1})));
    let replayed = place.replay("r").await;
    assert_eq!((replayed.difference, replayed.turns), (None, 5));
    let turns = place.store.turns("r").await.unwrap();
    let effects = turns.iter().flat_map(|turn| &turn.effects);
    let validated = effects.filter(|effect| matches!(effect, RecordedEffect::Validate { .. }));
    assert_eq!(validated.count(), 2);
}

#[tokio::test]
async fn a_run_that_is_stopped_while_its_answer_is_validated_is_resumed() {
    let first = place();
    let mut moments = 0;
    for written in [false, true] {
        for write in 2.. {
            let place = first.another();
            let stopping = Arc::new(Stopping::at(&place.store, write, written));
            let journal: SharedJournal = Arc::<Stopping>::clone(&stopping);
            let model = model();
            tokio::select! {
                _ = place.run(&journal, &model, "r") => break,
                () = stopping.stopped.notified() => {}
            }
            moments += 1;
            let (ended, _) = place.resume(&model, "r", &[]).await;
            let ended = ended.unwrap();
            assert_eq!(value(&ended), Some(&json!({"x": 1})), "write {write}, written {written}");
            let RunOutcome::Done(report) = ended else { panic!() };
            end(&place.journal(), &report, false).await.unwrap();
            assert_eq!(place.replay("r").await.difference, None, "write {write}");
            assert_eq!(status(&place, "r").await, Status::Ended);
        }
    }
    assert!(moments >= 10, "{moments}");
}
