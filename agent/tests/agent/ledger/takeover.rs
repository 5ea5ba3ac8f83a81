//! Tests of a run whose trace is written by two processes: one was paused, and the other took over
//! the run.

use std::fs::File;
use std::path::Path;

use tempfile::TempDir;
use wattle_agent::host::STEPS_FILE;
use wattle_agent::host::ledger::{
    FinalSeal, Keys, LEDGER_FILE, Pins, Recorder, Verification, verify,
};

use super::traces::{TENANT, is_valid, recorder, step_line};

struct Shared {
    folder: TempDir,
    keys: Keys,
}

impl Shared {
    fn new() -> Shared {
        let folder = TempDir::new().unwrap();
        let keys = Keys::new(folder.path().join("keys"));
        Shared { folder, keys }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Begins the run's trace as a process that does not know about the other writer
    /// would.
    fn begin(&self, run: &str) -> Recorder {
        Recorder::begin(self.path(), run, Some(self.keys.signer(TENANT).unwrap().into()))
    }

    fn resume(&self, run: &str) -> Recorder {
        recorder(&self.folder, &self.keys, run)
    }

    fn verified(&self, known: &[FinalSeal]) -> Verification {
        verify(self.path(), &Pins::Keys(self.keys.clone()), known).unwrap()
    }
}

#[test]
fn lines_of_a_process_that_lost_its_run_do_not_break_the_chain() {
    let shared = Shared::new();
    for run in ["one", "01M848KZ6C1FZVRNZQYS2W6EFM"] {
        let mut paused = shared.begin(run);
        paused.line(&step_line(run, 1)).unwrap();
        let mut other = shared.resume(run);
        other.line(&step_line(run, 2)).unwrap();
        paused.line(&step_line(run, 2)).unwrap();
        other.line(&step_line(run, 3)).unwrap();
        let sealed = other.end().unwrap().unwrap();
        assert_eq!(sealed.lines, 4);
        let verified = shared.verified(&[sealed]);
        assert!(is_valid(&verified), "{verified:?}");
    }
}

#[test]
fn a_run_that_two_processes_begin_has_one_chain() {
    let shared = Shared::new();
    for run in ["one", "01M848KZ6C1FZVRNZQYS2W6EFM"] {
        shared.begin("before").line(&step_line("before", 1)).unwrap();
        let (mut paused, mut other) = (shared.begin(run), shared.begin(run));
        paused.line(&step_line(run, 1)).unwrap();
        other.line(&step_line(run, 1)).unwrap();
        let sealed = other.end().unwrap().unwrap();
        let verified = shared.verified(&[sealed]);
        assert!(is_valid(&verified), "{verified:?}");
    }
}

#[test]
fn nothing_is_added_to_a_run_whose_end_another_process_has_sealed() {
    let shared = Shared::new();
    let (mut paused, mut other) = (shared.begin("one"), shared.begin("one"));
    paused.line(&step_line("one", 1)).unwrap();
    other.line(&step_line("one", 2)).unwrap();
    let sealed = other.end().unwrap().unwrap();
    for step in 3..5 {
        paused.line(&step_line("one", step)).unwrap_err();
    }
    assert_eq!(paused.end().unwrap(), Some(sealed.clone()));
    let verified = shared.verified(&[sealed]);
    assert!(is_valid(&verified), "{verified:?}");
    let steps = std::fs::read_to_string(shared.path().join(STEPS_FILE)).unwrap();
    assert_eq!(steps.lines().count(), 2);
}

#[test]
fn nothing_is_added_after_the_end_while_a_third_process_keeps_the_ledger_locked() {
    let shared = Shared::new();
    for run in ["one", "01M848KZ6C1FZVRNZQYS2W6EFM"] {
        let (mut paused, mut other) = (shared.begin(run), shared.begin(run));
        other.line(&step_line(run, 1)).unwrap();
        let sealed = other.end().unwrap().unwrap();
        let locked = File::open(shared.path().join(LEDGER_FILE)).unwrap();
        locked.lock().unwrap();
        paused.line(&step_line(run, 1)).unwrap_err();
        drop(locked);
        let verified = shared.verified(&[sealed]);
        assert!(is_valid(&verified), "{verified:?}");
    }
}

#[test]
fn a_line_that_is_being_written_is_sealed_once() {
    let shared = Shared::new();
    let mut first = shared.begin("one");
    first.line(&step_line("one", 1)).unwrap();
    drop(first);
    // A process was killed after it wrote a line and before it wrote the seal.
    let line = format!("{}\n", step_line("one", 2));
    let mut steps = std::fs::read_to_string(shared.path().join(STEPS_FILE)).unwrap();
    steps.push_str(&line);
    std::fs::write(shared.path().join(STEPS_FILE), steps).unwrap();
    let (mut one, mut other) = (shared.resume("one"), shared.resume("one"));
    assert_eq!((one.lines(), other.lines()), (2, 2));
    one.line(&step_line("one", 3)).unwrap();
    other.line(&step_line("one", 4)).unwrap();
    let sealed = other.end().unwrap().unwrap();
    assert_eq!(sealed.lines, 4);
    let verified = shared.verified(&[sealed]);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!(verified.runs[0].late, 1);
}
