//! Tests that every kind of tampering with a trace is detected and identified.

mod edits;
mod rotation;
mod takeover;
mod tampering;
mod traces;

use std::path::Path;

use serde_json::Value as Json;
use tempfile::TempDir;
use wattle_agent::host::STEPS_FILE;
use wattle_agent::host::ledger::{
    FinalSeal, Finding, Keys, LEDGER_FILE, Pins, Recorder, Verification, VerifyError, lines_read,
    verify,
};
use wattle_store::journal::new_id;

use traces::{TENANT, TraceFolder, in_turn, is_valid, recorder, step_line, words};

#[test]
fn a_run_that_was_killed_leaves_a_valid_beginning() {
    let traces = TraceFolder::new();
    let (mut run, line) = (recorder(&traces.folder, &traces.keys, "third"), step_line("third", 1));
    run.line(&line).unwrap();
    drop(run);
    let verdict = |traces: &TraceFolder| traces.verified(&[]).runs.pop().unwrap();
    assert_eq!(words(&verdict(&traces)), "1 lines, not ended");
    // The process stops after writing the line and before sealing it.
    traces.change(STEPS_FILE, |lines| lines.push(step_line("third", 2).to_string()));
    assert_eq!(verdict(&traces).finding, Some(Finding::Unsealed { line: 9, lines: 1 }));
    // The run is resumed.
    let mut run = recorder(&traces.folder, &traces.keys, "third");
    assert_eq!(run.lines(), 2);
    run.line(&step_line("third", 3)).unwrap();
    run.end().unwrap();
    let found = verdict(&traces);
    assert_eq!((words(&found).as_str(), found.late), ("3 lines, ended", 1));
}

#[test]
fn a_key_is_created_once_and_is_private() {
    let folder = TempDir::new().unwrap();
    let keys = Keys::new(folder.path().join("a/b"));
    assert_eq!(keys.pinned(TENANT).unwrap(), None);
    let created: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| keys.signer(TENANT).unwrap().public())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(created.iter().all(|key| Some(*key) == keys.pinned(TENANT).unwrap()));
    assert_ne!(keys.signer("another").unwrap().public(), created[0]);
    #[cfg(unix)]
    permissions(&folder.path().join("a/b"), &keys);
}

#[cfg(unix)]
fn permissions(folder: &Path, keys: &Keys) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let refused = keys.signer(TENANT).unwrap_err().to_string();
    assert!(
        refused.contains("others can read it (mode 644); make it private with `chmod 600`"),
        "{refused}"
    );
}

#[test]
fn a_run_that_is_removed_with_its_seals_is_reported() {
    for removed in ["a", "b"] {
        let (traces, _) = in_turn(&["a", "b", "c"]);
        traces.remove_run(removed);
        let found = traces.verified(&[]).files;
        assert!(
            matches!(
                found.as_slice(),
                [Finding::Unchained { previous_run, .. }] if previous_run == removed
            ),
            "{found:?}"
        );
    }
    let (traces, known) = in_turn(&["a", "b", "c"]);
    assert!(is_valid(&traces.verified(&known)));
    traces.remove_run("c");
    assert!(is_valid(&traces.verified(&[])), "no seal follows it");
    let last = traces.verified(&known).runs.pop().unwrap();
    assert_eq!((last.run.as_str(), last.finding), ("c", Some(Finding::RunRemoved { lines: 3 })));
}

#[cfg(unix)]
#[test]
fn links_and_fifos_are_not_verified_and_nothing_waits() {
    for file in [STEPS_FILE, LEDGER_FILE] {
        let traces = TraceFolder::new();
        let (folder, pins) = (traces.folder.path(), Pins::Keys(traces.keys.clone()));
        let path = folder.join(file);
        let is_rejected = || matches!(verify(folder, &pins, &[]), Err(VerifyError::Read { .. }));
        assert!(!is_rejected());
        std::fs::rename(&path, folder.join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &path).unwrap();
        assert!(is_rejected(), "{file} is a link");
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert!(is_rejected(), "{file} is a fifo");
    }
}

#[test]
fn the_final_seals_of_a_store_must_be_in_the_ledger() {
    let (traces, known) = in_turn(&["a", "b"]);
    traces.change(STEPS_FILE, |lines| lines.truncate(5));
    traces.change(LEDGER_FILE, |lines| lines.truncate(6));
    let last = traces.verified(&known).runs.pop().unwrap();
    assert_eq!(last.finding, Some(Finding::EndRemoved { lines: 3, found: 2 }));
    for file in [STEPS_FILE, LEDGER_FILE] {
        std::fs::remove_file(traces.folder.path().join(file)).unwrap();
    }
    let runs = traces.verified(&known).runs;
    assert!(
        runs.iter().all(|run| run.finding == Some(Finding::RunRemoved { lines: 3 })),
        "{runs:?}"
    );
    assert_eq!(runs.len(), 2);

    // An attacker with the key seals the run again, but the store has the original seal.
    let (traces, known) = in_turn(&["a"]);
    std::thread::sleep(std::time::Duration::from_millis(2));
    let text = traces
        .read(STEPS_FILE)
        .iter()
        .map(|line| line.replace("result", "other"))
        .collect::<Vec<_>>();
    for file in [STEPS_FILE, LEDGER_FILE] {
        std::fs::remove_file(traces.folder.path().join(file)).unwrap();
    }
    let mut recorder = recorder(&traces.folder, &traces.keys, "a");
    text.iter()
        .for_each(|line| recorder.line(&serde_json::from_str::<Json>(line).unwrap()).unwrap());
    recorder.end().unwrap();
    assert!(is_valid(&traces.verified(&[])));
    assert_eq!(traces.verified(&known).runs[0].finding, Some(Finding::OtherEnd));
}

#[test]
fn a_run_of_another_store_is_not_verified_and_its_faults_are_found() {
    let (traces, known) = in_turn(&["a"]);
    let others = Keys::new(traces.folder.path().join("others"));
    let mut other = recorder(&traces.folder, &others, "b");
    (1..=3).for_each(|step| other.line(&step_line("b", step)).unwrap());
    let sealed = other.end().unwrap().unwrap();
    let own = recorder(&traces.folder, &traces.keys, "c").line(&step_line("c", 1));
    own.unwrap();
    let verified = |known: &[FinalSeal]| {
        let Verification { runs, files } = traces.verified(known);
        assert_eq!(files, []);
        runs.into_iter().map(|run| (run.sealed, run.finding)).collect::<Vec<_>>()
    };
    let found = others.pinned(TENANT).unwrap().unwrap().fingerprint();
    let unknown = Finding::UnknownKey { found: found.clone() };
    assert!(unknown.is_unverified());
    assert_eq!(verified(&known), [(3, None), (0, Some(unknown)), (1, None)]);
    // A run that the store has was not sealed by another store.
    let replaced = Finding::OtherKey { line: 5, found };
    assert!(!replaced.is_unverified());
    assert_eq!(verified(&[sealed])[1].1, Some(replaced));
    traces.change(STEPS_FILE, |lines| lines[4] = lines[4].replace("result", "other"));
    assert_eq!(verified(&known)[1], (1, Some(Finding::Edited { line: 5 })));
}

#[test]
fn runs_that_seal_at_the_same_time_are_chained() {
    let folder = TempDir::new().unwrap();
    let keys = Keys::new(folder.path().join("keys"));
    keys.signer(TENANT).unwrap();
    std::thread::scope(|scope| {
        for run in ["a", "b", "c", "d"] {
            let (folder, keys) = (&folder, &keys);
            scope.spawn(move || {
                let mut recorder = recorder(folder, keys, run);
                (1..=20).for_each(|step| recorder.line(&step_line(run, step)).unwrap());
                recorder.end().unwrap();
            });
        }
    });
    let traces = TraceFolder { folder, keys };
    let verified = traces.verified(&[]);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!(
        verified.runs.iter().map(|run| (run.sealed, run.ended)).collect::<Vec<_>>(),
        [(20, true); 4]
    );
}

#[test]
fn an_incomplete_seal_is_removed_before_the_next_one() {
    let (traces, _) = in_turn(&["a"]);
    let mut run = recorder(&traces.folder, &traces.keys, "b");
    run.line(&step_line("b", 1)).unwrap();
    drop(run);
    traces.cut(LEDGER_FILE, 40);
    let found = traces.verified(&[]);
    assert_eq!(
        found.files,
        [Finding::BadSeal { line: 5 }, Finding::NoLineBreak { file: LEDGER_FILE, line: 5 }]
    );
    let mut other = recorder(&traces.folder, &traces.keys, "c");
    other.line(&step_line("c", 1)).unwrap();
    other.end().unwrap();
    // The process that resumes the run seals the unsealed line.
    recorder(&traces.folder, &traces.keys, "b").end().unwrap();
    let verified = traces.verified(&[]);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!(verified.runs.iter().map(|run| run.late).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn a_run_does_not_continue_an_incomplete_line_of_another() {
    let (traces, _) = in_turn(&["a"]);
    let incomplete = "{\"run_id\":\"b\",\"st";
    traces.add(STEPS_FILE, incomplete.as_bytes());
    let mut run = begin(&traces, "c");
    run.line(&step_line("c", 1)).unwrap();
    run.end().unwrap();
    let verified = traces.verified(&[]);
    assert!(is_valid(&verified), "{verified:?}");
    // Without a ledger, the incomplete line stays on a line of its own.
    traces.add(STEPS_FILE, incomplete.as_bytes());
    let mut run = Recorder::begin(traces.folder.path(), "d", None);
    run.line(&step_line("d", 1)).unwrap();
    run.line(&step_line("d", 2)).unwrap();
    let lines = traces.read(STEPS_FILE);
    assert_eq!((lines.len(), lines[4].as_str()), (7, incomplete));
    // A run does not continue an incomplete line that it left itself, either.
    let steps = traces.folder.path().join(STEPS_FILE);
    let moved = traces.folder.path().join("moved");
    std::fs::rename(&steps, &moved).unwrap();
    std::fs::create_dir(&steps).unwrap();
    run.line(&step_line("d", 3)).unwrap_err();
    std::fs::remove_dir(&steps).unwrap();
    std::fs::rename(&moved, &steps).unwrap();
    traces.add(STEPS_FILE, incomplete.as_bytes());
    run.line(&step_line("d", 3)).unwrap();
    let lines = traces.read(STEPS_FILE);
    assert_eq!((lines.len(), lines[7].as_str()), (9, incomplete));
}

/// Locks the ledger of a trace, like a process that was paused while it wrote a seal.
fn lock_ledger(traces: &TraceFolder) -> std::fs::File {
    let locked = std::fs::File::open(traces.folder.path().join(LEDGER_FILE)).unwrap();
    locked.lock().unwrap();
    locked
}

fn begin(traces: &TraceFolder, run: &str) -> Recorder {
    let signer = traces.keys.signer(TENANT).unwrap();
    Recorder::begin(traces.folder.path(), run, Some(signer.into()))
}

#[test]
fn lines_that_are_written_while_the_ledger_is_locked_are_sealed_later() {
    let (traces, _) = in_turn(&["a"]);
    let (mut first, mut second) = (begin(&traces, "b"), begin(&traces, "c"));
    second.line(&step_line("c", 1)).unwrap();
    let locked = lock_ledger(&traces);
    for step in 2..4 {
        first.line(&step_line("b", step - 1)).unwrap();
        second.line(&step_line("c", step)).unwrap();
    }
    assert_eq!(first.end().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let findings: Vec<_> =
        traces.verified(&[]).runs.into_iter().map(|run| run.finding.is_some()).collect();
    assert_eq!(findings, [false, true, true]);
    drop(locked);
    // One run continues; the other one ends.
    second.line(&step_line("c", 4)).unwrap();
    let ends = [first.end().unwrap().unwrap(), second.end().unwrap().unwrap()];
    assert_eq!(ends.each_ref().map(|end| end.lines), [2, 4]);
    let verified = traces.verified(&ends);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!(verified.runs.iter().map(|run| run.late).collect::<Vec<_>>(), [0, 2, 2]);
}

#[test]
fn a_run_that_is_resumed_while_the_ledger_is_locked_is_sealed_later() {
    let (traces, _) = in_turn(&["a"]);
    begin(&traces, "b").line(&step_line("b", 1)).unwrap();
    let locked = lock_ledger(&traces);
    // The process is killed before it can seal its second line.
    let mut killed = recorder(&traces.folder, &traces.keys, "b");
    killed.line(&step_line("b", 2)).unwrap();
    let mut resumed = recorder(&traces.folder, &traces.keys, "b");
    assert_eq!(resumed.lines(), 2);
    resumed.line(&step_line("b", 3)).unwrap();
    drop(locked);
    let end = resumed.end().unwrap().unwrap();
    let verified = traces.verified(&[end]);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!((verified.runs[1].sealed, verified.runs[1].late), (3, 2));
}

/// Begins many runs that work at the same time, and returns the number of ledger lines that were
/// read for each of their lines.
fn lines_read_per_line(traces: &TraceFolder, runs: usize) -> u64 {
    let ids: Vec<String> = (0..runs).map(|_| new_id()).collect();
    let mut recorders: Vec<Recorder> = ids.iter().map(|id| begin(traces, id)).collect();
    let before = lines_read();
    for step in 1..=3 {
        for (recorder, id) in recorders.iter_mut().zip(&ids) {
            recorder.line(&step_line(id, step)).unwrap();
        }
    }
    let ends: Vec<FinalSeal> =
        recorders.iter_mut().map(|recorder| recorder.end().unwrap().unwrap()).collect();
    let read = lines_read() - before;
    assert!(is_valid(&traces.verified(&ends)));
    read.div_ceil(4 * runs as u64)
}

#[test]
fn the_lines_that_a_run_reads_do_not_depend_on_the_number_of_other_runs() {
    let (traces, _) = in_turn(&["a"]);
    for runs in [10, 40, 160] {
        assert!(lines_read_per_line(&traces, runs) <= 1, "{runs} runs");
    }
}
