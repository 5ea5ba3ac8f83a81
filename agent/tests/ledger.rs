//! Every way to tamper with a trace is found, and named.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::path::Path;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use wattle_agent::STEPS_FILE;
use wattle_agent::ledger::{Finding, Keys, LEDGER_FILE, Pins, Recorder, Verdict, verify};

/// A folder with the traces of two runs whose lines take turns, and the keys they were sealed with.
struct Place {
    folder: TempDir,
    keys: Keys,
}

const TENANT: &str = "acme";

impl Place {
    fn new() -> Place {
        let folder = TempDir::new().unwrap();
        let keys = Keys::new(folder.path().join("keys"));
        let (mut one, mut other) = (recorder(&folder, &keys, "one"), recorder(&folder, &keys, "other"));
        for step in 1..=5 {
            one.line(&step_line("one", step)).unwrap();
            if step < 3 {
                other.line(&step_line("other", step)).unwrap();
            }
        }
        one.end().unwrap();
        other.end().unwrap();
        Place { folder, keys }
    }

    fn read(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap().lines().map(str::to_owned).collect()
    }

    fn write(&self, name: &str, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.read(name);
        change(&mut lines);
        self.write(name, &lines);
    }

    /// The verdict about run `one`, in words.
    fn verdict(&self) -> String {
        let verdicts = verify(self.folder.path(), &Pins::Keys(self.keys.clone())).unwrap();
        words(verdicts.iter().find(|verdict| verdict.run == "one").unwrap())
    }
}

fn words(verdict: &Verdict) -> String {
    match (&verdict.finding, verdict.ended) {
        (Some(finding), _) => finding.to_string(),
        (None, true) => format!("{} lines, ended", verdict.sealed),
        (None, false) => format!("{} lines, not ended", verdict.sealed),
    }
}

fn recorder(folder: &TempDir, keys: &Keys, run: &str) -> Recorder {
    Recorder::open(folder.path(), run, Some(keys.signer(TENANT).unwrap().into())).unwrap()
}

fn step_line(run: &str, step: u32) -> Json {
    json!({"run_id": run, "step": step, "tool": "wat", "output": format!("result {step}"), "ts": step})
}

/// Seals the trace as it stands anew, as somebody could who has a key of his own.
fn reseal(place: &Place, keys: &Keys, tenant: &str) {
    let lines = place.read(STEPS_FILE);
    std::fs::remove_file(place.folder.path().join(LEDGER_FILE)).unwrap();
    std::fs::remove_file(place.folder.path().join(STEPS_FILE)).unwrap();
    let mut recorder = Recorder::open(place.folder.path(), "one", Some(keys.signer(tenant).unwrap().into())).unwrap();
    for line in lines.iter().filter(|line| line.contains("\"one\"")) {
        recorder.line(&serde_json::from_str::<Json>(line).unwrap()).unwrap();
    }
    recorder.end().unwrap();
}

fn set(line: &mut String, field: &str, value: Json) {
    let mut object: Json = serde_json::from_str(line).unwrap();
    object[field] = value;
    *line = object.to_string();
}

type Tamper = fn(&Place);

/// The trace is: one 1, other 1, one 2, other 2, one 3, one 4, one 5; the ledger has a seal for each, and one for each end.
const CASES: &[(&str, Tamper, &str)] = &[
    ("untouched", |_| {}, "5 lines, ended"),
    (
        "edited output",
        |p| p.change(STEPS_FILE, |l| set(&mut l[2], "output", json!("nothing"))),
        "_steps.jsonl line 3: edited",
    ),
    ("edited blank", |p| p.change(STEPS_FILE, |l| l[4].push(' ')), "_steps.jsonl line 5: edited"),
    ("first edited", |p| p.change(STEPS_FILE, |l| set(&mut l[0], "ts", json!(9))), "_steps.jsonl line 1: edited"),
    ("last edited", |p| p.change(STEPS_FILE, |l| set(&mut l[6], "ts", json!(9))), "_steps.jsonl line 7: edited"),
    (
        "given to another run",
        |p| p.change(STEPS_FILE, |l| set(&mut l[4], "run_id", json!("none"))),
        "_steps.jsonl line 5: edited",
    ),
    ("made unreadable", |p| p.change(STEPS_FILE, |l| l[4] = "{".to_owned()), "_steps.jsonl line 5: edited"),
    ("last made unreadable", |p| p.change(STEPS_FILE, |l| l[6] = "{".to_owned()), "_steps.jsonl line 7: edited"),
    (
        "one removed",
        |p| p.change(STEPS_FILE, |l| drop(l.remove(2))),
        "_steps.jsonl line 4: the line before it was removed",
    ),
    (
        "first removed",
        |p| p.change(STEPS_FILE, |l| drop(l.remove(0))),
        "_steps.jsonl line 2: the line before it was removed",
    ),
    (
        "two removed",
        |p| p.change(STEPS_FILE, |l| drop(l.drain(4..6))),
        "_steps.jsonl line 5: 2 lines before it were removed",
    ),
    (
        "truncated",
        |p| p.change(STEPS_FILE, |l| l.truncate(5)),
        "_steps.jsonl: truncated; 5 lines were sealed, 3 are there",
    ),
    ("all removed", |p| p.change(STEPS_FILE, Vec::clear), "_steps.jsonl: truncated; 5 lines were sealed, 0 are there"),
    (
        "inserted",
        |p| p.change(STEPS_FILE, |l| l.insert(4, step_line("one", 9).to_string())),
        "_steps.jsonl line 5: inserted",
    ),
    (
        "a line twice",
        |p| {
            p.change(STEPS_FILE, |l| {
                let again = l[2].clone();
                l.insert(3, again)
            })
        },
        "_steps.jsonl line 4: inserted",
    ),
    (
        "a line again at the end",
        |p| {
            p.change(STEPS_FILE, |l| {
                let again = l[2].clone();
                l.push(again)
            })
        },
        "_steps.jsonl line 8: inserted",
    ),
    ("two swapped", |p| p.change(STEPS_FILE, |l| l.swap(4, 5)), "_steps.jsonl line 5: reordered"),
    ("first and last swapped", |p| p.change(STEPS_FILE, |l| l.swap(0, 6)), "_steps.jsonl line 1: reordered"),
    (
        "one added",
        |p| p.change(STEPS_FILE, |l| l.push(step_line("one", 6).to_string())),
        "_steps.jsonl line 8: written after the last seal; the process stopped before it, or it was added",
    ),
    (
        "three added",
        |p| p.change(STEPS_FILE, |l| l.extend((6..9).map(|n| step_line("one", n).to_string()))),
        "_steps.jsonl line 8: 3 lines were added after the last seal",
    ),
    (
        "ledger removed",
        |p| std::fs::remove_file(p.folder.path().join(LEDGER_FILE)).unwrap(),
        "the ledger `_ledger.jsonl` is missing",
    ),
    (
        "seals of the run removed",
        |p| p.change(LEDGER_FILE, |l| l.retain(|line| line.contains("\"other\""))),
        "_steps.jsonl line 1: the run has no seal in `_ledger.jsonl`",
    ),
    (
        "a seal removed",
        |p| p.change(LEDGER_FILE, |l| drop(l.remove(2))),
        "_ledger.jsonl line 4: this is seal 3, and seal 2 should stand here; seals were removed or reordered",
    ),
    (
        "seals swapped",
        |p| p.change(LEDGER_FILE, |l| l.swap(4, 5)),
        "_ledger.jsonl line 5: this is seal 4, and seal 3 should stand here; seals were removed or reordered",
    ),
    (
        "a seal unreadable",
        |p| p.change(LEDGER_FILE, |l| l.push("seal".to_owned())),
        "_ledger.jsonl line 10: not a seal of version 1",
    ),
    ("count forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "count", json!(4))), FORGED_5),
    ("time forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "time", json!(1))), FORGED_5),
    ("head forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "head", json!("00".repeat(32)))), FORGED_5),
    ("line's hash forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "line", json!("00".repeat(32)))), FORGED_5),
    ("an end forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "last", json!(true))), FORGED_5),
    ("tenant forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "tenant", json!("other"))), FORGED_5),
    (
        "seals of another run under its name",
        |p| {
            p.change(LEDGER_FILE, |l| {
                set(&mut l[1], "run", json!("one"));
                l[0] = l[1].clone()
            })
        },
        "_ledger.jsonl line 1: the signature does not fit; the count, the time or the head was changed",
    ),
    (
        "end cut off in both",
        |p| {
            p.change(STEPS_FILE, |l| l.truncate(6));
            p.change(LEDGER_FILE, |l| l.truncate(6))
        },
        "4 lines, not ended",
    ),
    (
        "sealed anew with another key",
        |p| reseal(p, &Keys::new(p.folder.path().join("others")), TENANT),
        "sealed with another key",
    ),
    (
        "sealed anew for a tenant without a key",
        |p| reseal(p, &Keys::new(p.folder.path().join("others")), "nobody"),
        "no public key is pinned for this tenant; give the right one with `--key`",
    ),
];

const FORGED_5: &str = "_ledger.jsonl line 5: the signature does not fit; the count, the time or the head was changed";

#[test]
fn every_change_is_named() {
    for (name, tamper, expected) in CASES {
        let place = Place::new();
        tamper(&place);
        let found = place.verdict();
        assert!(found.contains(expected), "{name}: {found}");
    }
}

#[test]
fn a_run_that_was_killed_leaves_a_valid_beginning() {
    let place = Place::new();
    let (mut run, line) = (recorder(&place.folder, &place.keys, "third"), step_line("third", 1));
    run.line(&line).unwrap();
    drop(run);
    let verdict = |place: &Place| verify(place.folder.path(), &Pins::Keys(place.keys.clone())).unwrap().pop().unwrap();
    assert_eq!(words(&verdict(&place)), "1 lines, not ended");
    // The process stops between the line and its seal.
    place.change(STEPS_FILE, |lines| lines.push(step_line("third", 2).to_string()));
    assert_eq!(verdict(&place).finding, Some(Finding::Unsealed { line: 9, lines: 1 }));
    // The run goes on.
    let mut run = recorder(&place.folder, &place.keys, "third");
    assert_eq!(run.lines(), 2);
    run.line(&step_line("third", 3)).unwrap();
    run.end().unwrap();
    let found = verdict(&place);
    assert_eq!((words(&found).as_str(), found.late), ("3 lines, ended", 1));
}

#[test]
fn a_key_is_made_once_and_is_private() {
    let folder = TempDir::new().unwrap();
    let keys = Keys::new(folder.path().join("a/b"));
    assert_eq!(keys.pinned(TENANT).unwrap(), None);
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| keys.signer(TENANT).unwrap().public())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().all(|key| Some(*key) == keys.pinned(TENANT).unwrap()));
    assert_ne!(keys.signer("another").unwrap().public(), made[0]);
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
    assert!(refused.contains("others may read it (mode 644); make it private with `chmod 600`"), "{refused}");
}
