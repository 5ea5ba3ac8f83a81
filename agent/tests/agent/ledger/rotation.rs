//! Tests of traces that are rotated.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use wattle_agent::host::STEPS_FILE;
use wattle_agent::host::ledger::{FinalSeal, LEDGER_FILE, Pins, RotateError, Rotation, verify};
use wattle_agent::host::trace;

use super::traces::{TraceFolder, in_turn, is_valid, recorder, step_line, words};

fn rotate(folder: &Path) -> Result<PathBuf, RotateError> {
    Rotation::of(folder)?.finish(&HashSet::new())
}

/// Records a run of three lines.
fn record(traces: &TraceFolder, run: &str) -> FinalSeal {
    let mut recorder = recorder(&traces.folder, &traces.keys, run);
    for step in 1..=3 {
        recorder.line(&step_line(run, step)).unwrap();
    }
    recorder.end().unwrap().unwrap()
}

/// A trace of four runs with two rotated parts.
fn rotated() -> (TraceFolder, Vec<FinalSeal>) {
    let (traces, mut sealed) = in_turn(&["one", "two"]);
    let folder = traces.folder.path().to_owned();
    assert_eq!(rotate(&folder).unwrap(), folder.join("_rotated/0001"));
    sealed.push(record(&traces, "three"));
    assert_eq!(rotate(&folder).unwrap(), folder.join("_rotated/0002"));
    sealed.push(record(&traces, "four"));
    (traces, sealed)
}

#[test]
fn a_rotated_trace_is_verified_and_read_as_one() {
    let (traces, sealed) = rotated();
    let verified = traces.verified(&sealed);
    assert!(is_valid(&verified), "{verified:?}");
    let runs: Vec<&str> = verified.runs.iter().map(|verdict| verdict.run.as_str()).collect();
    assert_eq!(runs, ["one", "two", "three", "four"]);
    let mut read = Vec::new();
    trace::read(traces.folder.path(), |step| {
        read.push(step.run_id);
        Ok::<(), std::io::Error>(())
    })
    .unwrap();
    read.dedup();
    assert_eq!(read, runs);
    // A part is verified alone, too.
    for part in ["_rotated/0001", "_rotated/0002"] {
        let pins = Pins::Keys(traces.keys.clone());
        assert!(is_valid(&verify(&traces.folder.path().join(part), &pins, &[]).unwrap()));
    }
}

#[test]
fn a_folder_has_no_trace_until_the_next_run() {
    let (traces, sealed) = in_turn(&["one"]);
    rotate(traces.folder.path()).unwrap();
    assert!(!traces.folder.path().join(STEPS_FILE).exists());
    assert!(is_valid(&traces.verified(&sealed)));
    assert!(matches!(rotate(traces.folder.path()), Err(RotateError::NoTrace)));
}

#[test]
fn what_is_changed_in_a_part_is_found_there() {
    let (traces, _) = rotated();
    let steps = traces.folder.path().join("_rotated/0001").join(STEPS_FILE);
    let text = fs::read_to_string(&steps).unwrap();
    fs::write(&steps, text.replacen("result 2", "result 9", 1)).unwrap();
    let verified = traces.verified(&[]);
    let found: Vec<String> = verified.runs.iter().map(words).collect();
    assert_eq!(found[0], "_rotated/0001: _steps.jsonl line 2: edited");
    assert_eq!(found[1..], ["3 lines, ended", "3 lines, ended", "3 lines, ended"]);
}

#[test]
fn the_oldest_part_may_be_removed_and_its_runs_are_missed_only_by_the_store() {
    let (traces, sealed) = rotated();
    fs::remove_dir_all(traces.folder.path().join("_rotated/0001")).unwrap();
    assert!(is_valid(&traces.verified(&sealed[2..])));
    let verified = traces.verified(&sealed);
    let missing = verified.runs.iter().filter(|verdict| verdict.finding.is_some());
    assert_eq!(missing.map(|verdict| verdict.run.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    // The newest part is the beginning of the chain of the current ledger.
    fs::remove_dir_all(traces.folder.path().join("_rotated/0002")).unwrap();
    let files = traces.verified(&sealed[3..]).files;
    assert!(files[0].to_string().contains("_ledger.jsonl line 1"), "{files:?}");
}

#[test]
fn a_trace_with_an_unfinished_run_is_rotated_only_if_the_run_was_stopped() {
    let (traces, _) = in_turn(&["one"]);
    let folder = traces.folder.path();
    let before = Rotation::of(folder).unwrap();
    let mut going_on = recorder(&traces.folder, &traces.keys, "two");
    going_on.line(&step_line("two", 1)).unwrap();
    let refused = before.finish(&HashSet::new()).unwrap_err();
    assert_eq!(refused.to_string(), "a run has not ended: two");
    assert_eq!(Rotation::of(folder).unwrap().unfinished(), ["two"]);
    assert!(rotate(folder).is_err() && !folder.join("_rotated").exists());
    drop(going_on);
    let stopped = HashSet::from(["two".to_owned()]);
    Rotation::of(folder).unwrap().finish(&stopped).unwrap();
    let found: Vec<String> = traces.verified(&[]).runs.iter().map(words).collect();
    assert_eq!(found, ["3 lines, ended", "1 lines, not ended"]);
}

#[test]
fn a_rotation_that_is_killed_at_any_point_loses_nothing() {
    for linked in 0..=2 {
        let (traces, mut sealed) = in_turn(&["one", "two"]);
        let folder = traces.folder.path();
        let part = folder.join("_rotated/0001");
        fs::create_dir_all(&part).unwrap();
        for name in [STEPS_FILE, LEDGER_FILE].iter().take(linked) {
            fs::hard_link(folder.join(name), part.join(name)).unwrap();
        }
        if linked == 2 {
            assert!(
                is_valid(&traces.verified(&sealed)),
                "killed before the first names are removed"
            );
        }
        sealed.push(record(&traces, "three"));
        rotate(folder).unwrap();
        sealed.push(record(&traces, "four"));
        let verified = traces.verified(&sealed);
        assert!(is_valid(&verified) && verified.runs.len() == 4, "{linked}: {verified:?}");
        assert_eq!(folder.join("_rotated/0002").exists(), linked == 2);
    }
}
