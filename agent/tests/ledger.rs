//! Every kind of tampering with a trace is detected and named.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::path::Path;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use wattle_agent::STEPS_FILE;
use wattle_agent::ledger::{
    FinalSeal, Finding, Keys, LEDGER_FILE, Pins, Recorder, Verdict, Verification, verify,
};

/// A folder with the interleaved traces of two runs, and their keys.
struct TraceFolder {
    folder: TempDir,
    keys: Keys,
}

const TENANT: &str = "acme";

impl TraceFolder {
    fn new() -> TraceFolder {
        let folder = TempDir::new().unwrap();
        let keys = Keys::new(folder.path().join("keys"));
        let (mut one, mut other) =
            (recorder(&folder, &keys, "one"), recorder(&folder, &keys, "other"));
        for step in 1..=5 {
            one.line(&step_line("one", step)).unwrap();
            if step < 3 {
                other.line(&step_line("other", step)).unwrap();
            }
        }
        one.end().unwrap();
        other.end().unwrap();
        TraceFolder { folder, keys }
    }

    fn read(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.folder.path().join(name))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn write(&self, name: &str, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Removes bytes from the end of a file.
    fn cut(&self, name: &str, bytes: usize) {
        let path = self.folder.path().join(name);
        let mut text = std::fs::read(&path).unwrap();
        text.truncate(text.len() - bytes);
        std::fs::write(path, text).unwrap();
    }

    fn add(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        let text = [&std::fs::read(&path).unwrap(), bytes].concat();
        std::fs::write(path, text).unwrap();
    }

    /// Removes a run with its steps and its seals.
    fn remove_run(&self, run: &str) {
        self.change(STEPS_FILE, |l| {
            l.retain(|line| !line.contains(&format!("\"run_id\":\"{run}\"")))
        });
        self.change(LEDGER_FILE, |l| {
            l.retain(|line| !line.contains(&format!("\"run\":\"{run}\"")))
        });
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.read(name);
        change(&mut lines);
        self.write(name, &lines);
    }

    /// Describes the verdict on run `one` and the findings about the files.
    fn verdict(&self) -> String {
        let Verification { runs, files } = self.verified(&[]);
        let run = words(runs.iter().find(|verdict| verdict.run == "one").unwrap());
        files.iter().fold(run, |text, finding| format!("{text}; {finding}"))
    }

    fn verified(&self, known: &[FinalSeal]) -> Verification {
        verify(self.folder.path(), &Pins::Keys(self.keys.clone()), known).unwrap()
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

/// Seals the current trace again with other keys, as an attacker could.
fn reseal(traces: &TraceFolder, keys: &Keys, tenant: &str) {
    let lines = traces.read(STEPS_FILE);
    std::fs::remove_file(traces.folder.path().join(LEDGER_FILE)).unwrap();
    std::fs::remove_file(traces.folder.path().join(STEPS_FILE)).unwrap();
    let mut recorder =
        Recorder::open(traces.folder.path(), "one", Some(keys.signer(tenant).unwrap().into()))
            .unwrap();
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

type Tamper = fn(&TraceFolder);

/// The trace is: one 1, other 1, one 2, other 2, one 3, one 4, one 5. The ledger has a seal for
/// each line, and one for each end.
const CASES: &[(&str, Tamper, &str)] = &[
    ("untouched", |_| {}, "5 lines, ended"),
    (
        "edited output",
        |p| p.change(STEPS_FILE, |l| set(&mut l[2], "output", json!("nothing"))),
        "_steps.jsonl line 3: edited",
    ),
    ("added space", |p| p.change(STEPS_FILE, |l| l[4].push(' ')), "_steps.jsonl line 5: edited"),
    (
        "first edited",
        |p| p.change(STEPS_FILE, |l| set(&mut l[0], "ts", json!(9))),
        "_steps.jsonl line 1: edited",
    ),
    (
        "last edited",
        |p| p.change(STEPS_FILE, |l| set(&mut l[6], "ts", json!(9))),
        "_steps.jsonl line 7: edited",
    ),
    (
        "given to another run",
        |p| p.change(STEPS_FILE, |l| set(&mut l[4], "run_id", json!("none"))),
        "_steps.jsonl line 5: edited",
    ),
    (
        "made unreadable",
        |p| p.change(STEPS_FILE, |l| l[4] = "{".to_owned()),
        "_steps.jsonl line 5: edited",
    ),
    (
        "last made unreadable",
        |p| p.change(STEPS_FILE, |l| l[6] = "{".to_owned()),
        "_steps.jsonl line 7: edited",
    ),
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
        "_steps.jsonl: truncated; 5 lines were sealed, 3 remain",
    ),
    (
        "all removed",
        |p| p.change(STEPS_FILE, Vec::clear),
        "_steps.jsonl: truncated; 5 lines were sealed, 0 remain",
    ),
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
    (
        "first and last swapped",
        |p| p.change(STEPS_FILE, |l| l.swap(0, 6)),
        "_steps.jsonl line 1: reordered",
    ),
    (
        "one added",
        |p| p.change(STEPS_FILE, |l| l.push(step_line("one", 6).to_string())),
        "_steps.jsonl line 8: follows the last seal; the process stopped before sealing it, or it \
         was added",
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
        |p| p.change(LEDGER_FILE, |l| l.retain(|line| line.contains("\"run\":\"other\""))),
        "_steps.jsonl line 1: the run has no seal in `_ledger.jsonl`",
    ),
    (
        "a seal removed",
        |p| p.change(LEDGER_FILE, |l| drop(l.remove(2))),
        "_ledger.jsonl line 4: expected seal 2, found seal 3; seals were removed or reordered",
    ),
    (
        "seals swapped",
        |p| p.change(LEDGER_FILE, |l| l.swap(4, 5)),
        "_ledger.jsonl line 5: expected seal 3, found seal 4; seals were removed or reordered",
    ),
    (
        "a seal unreadable",
        |p| p.change(LEDGER_FILE, |l| l.push("seal".to_owned())),
        "_ledger.jsonl line 10: not a valid seal",
    ),
    ("count forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "count", json!(4))), FORGED_5),
    ("time forged", |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "time", json!(1))), FORGED_5),
    (
        "head forged",
        |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "head", json!("00".repeat(32)))),
        FORGED_5,
    ),
    (
        "line's hash forged",
        |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "line", json!("00".repeat(32)))),
        FORGED_5,
    ),
    (
        "an end forged",
        |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "last", json!(true))),
        "_ledger.jsonl line 5: not a valid seal",
    ),
    (
        "tenant forged",
        |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "tenant", json!("other"))),
        FORGED_5,
    ),
    (
        "seals of another run under its name",
        |p| {
            p.change(LEDGER_FILE, |l| {
                set(&mut l[1], "run", json!("one"));
                l[0] = l[1].clone()
            })
        },
        "_ledger.jsonl line 1: the signature is invalid; the count, the time or the head was \
         changed",
    ),
    (
        "an empty line in the trace",
        |p| p.change(STEPS_FILE, |l| l.insert(2, String::new())),
        "_steps.jsonl line 3: an empty line was inserted",
    ),
    (
        "an empty line at the end of the trace",
        |p| p.change(STEPS_FILE, |l| l.push(String::new())),
        "_steps.jsonl line 8: an empty line",
    ),
    (
        "an empty line in the ledger",
        |p| p.change(LEDGER_FILE, |l| l.insert(4, String::new())),
        "_ledger.jsonl line 5: an empty line",
    ),
    (
        "an empty line at the end of the ledger",
        |p| p.change(LEDGER_FILE, |l| l.push(String::new())),
        "_ledger.jsonl line 10: an empty line",
    ),
    (
        "a space after a seal",
        |p| p.change(LEDGER_FILE, |l| l[4].push(' ')),
        "_ledger.jsonl line 5: not a valid seal",
    ),
    (
        "line breaks of Windows in the ledger",
        |p| p.change(LEDGER_FILE, |l| l.iter_mut().for_each(|l| l.push('\r'))),
        "_ledger.jsonl line 1: not a valid seal",
    ),
    (
        "line breaks of Windows in the trace",
        |p| p.change(STEPS_FILE, |l| l.iter_mut().for_each(|l| l.push('\r'))),
        "_steps.jsonl line 1: edited",
    ),
    (
        "a key of a seal twice",
        |p| p.change(LEDGER_FILE, |l| l[4] = l[4].replacen("{", "{\"v\":2,", 1)),
        "_ledger.jsonl line 5: not a valid seal",
    ),
    (
        "a seal twice",
        |p| p.change(LEDGER_FILE, |l| l.insert(5, l[4].clone())),
        "_ledger.jsonl line 6: expected seal 4, found seal 3",
    ),
    (
        "the end twice",
        |p| p.change(LEDGER_FILE, |l| l.insert(8, l[7].clone())),
        "_ledger.jsonl line 9: the previous seal is not the one of the run one ",
    ),
    (
        "a mark at the beginning",
        |p| p.change(LEDGER_FILE, |l| l[0].insert(0, '\u{feff}')),
        "_ledger.jsonl line 1: not a valid seal",
    ),
    (
        "no line break at the end of the trace",
        |p| p.cut(STEPS_FILE, 1),
        "_steps.jsonl line 7: the line break at its end is missing",
    ),
    (
        "no line break at the end of the ledger",
        |p| p.cut(LEDGER_FILE, 1),
        "_ledger.jsonl line 9: the line break at its end is missing",
    ),
    (
        "garbage at the end of the trace",
        |p| p.add(STEPS_FILE, b"\0\xff"),
        "_steps.jsonl line 8: the line break",
    ),
    (
        "garbage at the end of the ledger",
        |p| p.add(LEDGER_FILE, b"\0\xff"),
        "_ledger.jsonl line 10: not a valid seal",
    ),
    (
        "a line of 5 MiB in the trace",
        |p| p.add(STEPS_FILE, &[&vec![b' '; 5 << 20][..], b"\n"].concat()),
        "_steps.jsonl line 8: longer than 4 MiB",
    ),
    (
        "lines of two runs swapped",
        |p| p.change(STEPS_FILE, |l| l.swap(2, 3)),
        "_steps.jsonl line 3: reordered; the lines of several runs",
    ),
    (
        "the other run removed",
        |p| p.remove_run("other"),
        "is not the one of the run other that it names",
    ),
    (
        "a seal of version 1 instead",
        |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "v", json!(1))),
        "_ledger.jsonl line 5: not a valid seal",
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
        "sealed again with another key",
        |p| reseal(p, &Keys::new(p.folder.path().join("others")), TENANT),
        "sealed with another key",
    ),
    (
        "sealed again for a tenant without a key",
        |p| reseal(p, &Keys::new(p.folder.path().join("others")), "nobody"),
        "no public key is pinned for this tenant; give the right one with `--key`",
    ),
];

const FORGED_5: &str =
    "_ledger.jsonl line 5: the signature is invalid; the count, the time or the head was changed";

#[test]
fn every_change_is_reported() {
    for (name, tamper, expected) in CASES {
        let traces = TraceFolder::new();
        tamper(&traces);
        let found = traces.verdict();
        assert!(found.contains(expected), "{name}: {found}");
    }
}

#[test]
fn a_run_that_was_killed_leaves_a_valid_beginning() {
    let traces = TraceFolder::new();
    let (mut run, line) = (recorder(&traces.folder, &traces.keys, "third"), step_line("third", 1));
    run.line(&line).unwrap();
    drop(run);
    let verdict = |traces: &TraceFolder| traces.verified(&[]).runs.pop().unwrap();
    assert_eq!(words(&verdict(&traces)), "1 lines, not ended");
    // The process stops between the line and its seal.
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

/// Creates a folder with runs one after the other, and returns their final seals.
fn in_turn(runs: &[&str]) -> (TraceFolder, Vec<FinalSeal>) {
    let folder = TempDir::new().unwrap();
    let keys = Keys::new(folder.path().join("keys"));
    let sealed = runs.iter().map(|run| {
        let mut recorder = recorder(&folder, &keys, run);
        for step in 1..=3 {
            recorder.line(&step_line(run, step)).unwrap();
        }
        recorder.end().unwrap().unwrap()
    });
    let sealed = sealed.collect();
    (TraceFolder { folder, keys }, sealed)
}

fn is_valid(verified: &Verification) -> bool {
    verified.files.is_empty() && verified.runs.iter().all(|run| run.finding.is_none())
}

#[test]
fn a_run_that_is_removed_with_its_seals_is_reported() {
    for removed in ["a", "b"] {
        let (traces, _) = in_turn(&["a", "b", "c"]);
        traces.remove_run(removed);
        let found = traces.verified(&[]).files;
        assert!(
            matches!(found.as_slice(), [Finding::Unchained { previous_run, .. }] if previous_run == removed),
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
    let (found, _) = (traces.verified(&[]), ());
    assert_eq!(
        found.files,
        [Finding::BadSeal { line: 5 }, Finding::NoLineBreak { file: LEDGER_FILE, line: 5 }]
    );
    let mut other = recorder(&traces.folder, &traces.keys, "c");
    other.line(&step_line("c", 1)).unwrap();
    other.end().unwrap();
    // The run is resumed, and seals the unsealed line.
    recorder(&traces.folder, &traces.keys, "b").end().unwrap();
    let verified = traces.verified(&[]);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!(verified.runs.iter().map(|run| run.late).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn a_locked_ledger_does_not_stop_a_run() {
    let (traces, _) = in_turn(&["a"]);
    let locked = std::fs::File::open(traces.folder.path().join(LEDGER_FILE)).unwrap();
    locked.lock().unwrap();
    let mut run = Recorder::begin(
        traces.folder.path(),
        "b",
        Some(traces.keys.signer(TENANT).unwrap().into()),
    );
    assert!(
        run.line(&step_line("b", 1))
            .unwrap_err()
            .to_string()
            .contains("another process keeps it locked")
    );
    run.line(&step_line("b", 2)).unwrap();
    drop(locked);
    assert_eq!(traces.read(STEPS_FILE).len(), 5);
    assert_eq!(traces.verified(&[]).runs[1].finding, Some(Finding::NoSeals { line: 4 }));
}

/// Writes lines with seals of version 1.
fn version_1(traces: &TraceFolder, run: &str, steps: u32) {
    use ed25519_dalek::Signer as _;
    use sha2::{Digest as _, Sha256};
    use std::fmt::Write as _;
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    };
    let secret = std::fs::read_dir(traces.folder.path().join("keys")).unwrap().find_map(|file| {
        let path = file.unwrap().path();
        path.extension()
            .is_some_and(|kind| kind == "key")
            .then(|| std::fs::read_to_string(path).unwrap())
    });
    let secret: Json = serde_json::from_str(&secret.unwrap()).unwrap();
    let secret = secret["secret"].as_str().unwrap();
    let seed: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&secret[2 * at..2 * at + 2], 16).unwrap()).collect();
    let key = ed25519_dalek::SigningKey::from_bytes(&seed.try_into().unwrap());
    let fingerprint = traces.keys.pinned(TENANT).unwrap().unwrap().fingerprint();
    let mut head = Sha256::digest(
        [b"wattle ledger 1\0", run.as_bytes(), b"\0", TENANT.as_bytes(), b"\0"].concat(),
    )
    .to_vec();
    for step in 1..=steps + 1 {
        let is_last = step > steps;
        let count = u64::from(step.min(steps));
        let mut hash = String::new();
        if !is_last {
            let line = step_line(run, step).to_string();
            traces.add(STEPS_FILE, format!("{line}\n").as_bytes());
            hash = hex(&Sha256::digest(&line));
            head = Sha256::digest(
                [&head[..], &(line.len() as u64).to_le_bytes(), line.as_bytes()].concat(),
            )
            .to_vec();
        }
        let parts = ["wattle seal 1", run, TENANT]
            .iter()
            .flat_map(|part| [part.as_bytes(), b"\0"])
            .collect::<Vec<_>>()
            .concat();
        let signed = [
            &parts[..],
            &count.to_le_bytes(),
            &7_u64.to_le_bytes(),
            &[u8::from(is_last)],
            hex(&head).as_bytes(),
            b"\0",
            hash.as_bytes(),
        ]
        .concat();
        let mut seal = json!({"v": 1, "run": run, "tenant": TENANT, "count": count, "time": 7, "line": hash, "head": hex(&head)});
        if is_last {
            seal["last"] = json!(true);
        }
        seal["key"] = json!(fingerprint);
        seal["sig"] = json!(hex(&key.sign(&signed).to_bytes()));
        traces.add(LEDGER_FILE, format!("{seal}\n").as_bytes());
    }
}

#[test]
fn a_ledger_of_version_1_verifies_and_continues() {
    let (traces, _) = in_turn(&[]);
    traces.keys.signer(TENANT).unwrap();
    std::fs::write(traces.folder.path().join(STEPS_FILE), "").unwrap();
    std::fs::write(traces.folder.path().join(LEDGER_FILE), "").unwrap();
    version_1(&traces, "old", 3);
    version_1(&traces, "older", 2);
    let verified = traces.verified(&[]);
    assert!(is_valid(&verified), "{verified:?}");
    assert!(verified.runs.iter().all(|run| run.version == 1 && run.ended));
    let mut new = recorder(&traces.folder, &traces.keys, "new");
    new.line(&step_line("new", 1)).unwrap();
    new.end().unwrap();
    let verified = traces.verified(&[]);
    assert!(is_valid(&verified), "{verified:?}");
    assert_eq!(verified.runs.iter().map(|run| run.version).collect::<Vec<_>>(), [1, 1, 2]);
    traces.change(STEPS_FILE, |lines| set(&mut lines[1], "output", json!("x")));
    assert_eq!(traces.verified(&[]).runs[0].finding, Some(Finding::Edited { line: 2 }));
    traces.remove_run("older");
    assert!(
        matches!(traces.verified(&[]).files.as_slice(), [Finding::Unchained { .. }]),
        "the newer run is chained to it"
    );
}

/// An edit of a file by lines or bytes.
#[derive(Clone, Debug)]
enum Edit {
    Remove(usize),
    RemoveMany(usize, usize),
    Swap(usize, usize),
    Copy(usize, usize),
    Insert(usize, String),
    Byte(usize, u8),
    Truncate(usize),
}

impl Edit {
    fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> =
            text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let count = lines.len();
        match self {
            Edit::Remove(at) => drop(lines.remove(at % count)),
            Edit::RemoveMany(from, many) => {
                let from = from % count;
                drop(lines.drain(from..(from + many).min(count)));
            }
            Edit::Swap(one, other) => lines.swap(one % count, other % count),
            Edit::Copy(from, to) => lines.insert(to % (count + 1), lines[from % count].clone()),
            Edit::Insert(at, line) => {
                lines.insert(at % (count + 1), format!("{line}\n").into_bytes())
            }
            Edit::Byte(at, byte) => {
                let mut text = text.to_vec();
                let at = at % text.len();
                text[at] = *byte;
                return text;
            }
            Edit::Truncate(at) => return text[..at % text.len()].to_vec(),
        }
        lines.concat()
    }
}

fn edits() -> impl proptest::strategy::Strategy<Value = Edit> {
    use proptest::prelude::*;
    prop_oneof![
        any::<usize>().prop_map(Edit::Remove),
        (any::<usize>(), 1..12_usize).prop_map(|(from, many)| Edit::RemoveMany(from, many)),
        (any::<usize>(), any::<usize>()).prop_map(|(one, other)| Edit::Swap(one, other)),
        (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Edit::Copy(from, to)),
        (any::<usize>(), "[ \r{}a\"]{0,3}").prop_map(|(at, line)| Edit::Insert(at, line)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        any::<usize>().prop_map(Edit::Truncate),
    ]
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, cases: 400, ..Default::default() })]

    /// With the final seals of the store, every change of either file is detected.
    #[test]
    fn every_edit_of_a_line_or_a_run_is_detected(in_ledger: bool, edit in edits()) {
        thread_local! {
            static SEALED: (TraceFolder, Vec<FinalSeal>) = {
                let (traces, mut known) = in_turn(&["a", "b"]);
                let (mut one, mut other) = (recorder(&traces.folder, &traces.keys, "c"), recorder(&traces.folder, &traces.keys, "d"));
                for step in 1..=3 {
                    one.line(&step_line("c", step)).unwrap();
                    other.line(&step_line("d", step)).unwrap();
                }
                known.extend([one.end().unwrap().unwrap(), other.end().unwrap().unwrap()]);
                (traces, known)
            };
        }
        SEALED.with(|(traces, known)| {
            let path = traces.folder.path().join(if in_ledger { LEDGER_FILE } else { STEPS_FILE });
            let text = std::fs::read(&path).unwrap();
            let edited = edit.apply(&text);
            std::fs::write(&path, &edited).unwrap();
            let verified = traces.verified(known);
            std::fs::write(&path, &text).unwrap();
            assert_eq!(is_valid(&verified), edited == text, "{edit:?}: {verified:?}");
        });
    }
}
