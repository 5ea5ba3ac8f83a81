//! Tests that a run with a schema for its answer can be stopped at any point, resumed and replayed
//! like any other run.

use std::sync::Arc;

use serde_json::json;
use wattle_agent::Settings;
use wattle_agent::host::journal::{
    Journal as _, RecordedEffect, RunOutcome, RunRequest, RunStart, SharedJournal, Status, end, run,
};
use wattle_agent::host::machine::Envelope;
use wattle_agent::model::{FunctionChoice, ThinkingEffort};
use wattle_agent::output::{OutputSchema, OutputSettings};
use wattle_tests::Scripted;

use super::place::{ByTurn, Place, answer, status};
use super::stopped::Stopping;

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
            let stopping = Stopping::at(&place.store, write, written);
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

#[tokio::test]
async fn a_resumed_run_keeps_the_settings_of_its_requests() {
    let place = Place::new();
    let settings = Settings {
        thinking_effort: ThinkingEffort::new(30),
        tool_call: FunctionChoice::Required,
        ..Settings::default()
    };
    let stopping = Stopping::at(&place.store, 2, true);
    let journal: SharedJournal = Arc::<Stopping>::clone(&stopping);
    let (_, job) = place.job();
    let unasked = Scripted::new(&[]);
    let (parts, request) = job.on(&place.host, &unasked, &settings);
    let request = RunRequest { id: "r".to_owned(), ..request };
    tokio::select! {
        _ = run(parts, &request, &|_: &Envelope| {}, &journal) => panic!(),
        () = stopping.stopped.notified() => {}
    }
    let start = place.opened("r").await.start;
    assert_eq!(start.thinking_effort, ThinkingEffort::new(30));
    // The process that resumes the run has different settings.
    let model = Scripted::new(&["ToolCall::Response(\"done\")"]);
    let (ended, _) = place.resume(&model, "r", &[]).await;
    assert_eq!(answer(&ended.unwrap()), "done");
    assert_eq!(model.choices(), [FunctionChoice::Required]);
    assert_eq!(model.efforts(), [ThinkingEffort::new(30)]);
}

#[test]
fn a_start_of_an_earlier_version_has_default_settings() {
    let record = json!({"setup": {}, "message": "go", "agent": "a", "model": "m",
        "temperature": 0.5, "max_tokens": 9, "granted": [], "capabilities": {}});
    let start: RunStart = serde_json::from_value(record).unwrap();
    assert_eq!((start.thinking_effort, start.tool_call), (None, FunctionChoice::Auto));
    assert_eq!(start.setup.output, None);
}
