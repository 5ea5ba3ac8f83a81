//! Tests of every kind of tampering, each with the expected finding.

use serde_json::{Value as Json, json};
use wattle_agent::host::STEPS_FILE;
use wattle_agent::host::ledger::{Keys, LEDGER_FILE, Recorder};

use super::traces::{TENANT, TraceFolder, set, step_line};

type Tamper = fn(&TraceFolder);

/// The kinds of tampering, each with a name, an edit, and a part of the expected verdict. The trace
/// consists of these lines of the runs `one` and `other`: one 1, other 1, one 2, other 2, one 3,
/// one 4, one 5. The ledger contains a seal for each line, and one for the end of each run.
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
        "sealed by another store's key",
    ),
    (
        "the name of the key changed in one seal",
        |p| p.change(LEDGER_FILE, |l| set(&mut l[4], "key", json!("0123456789abcdef"))),
        "_ledger.jsonl line 5: sealed with another key (0123456789abcdef)",
    ),
    (
        "sealed again for a tenant without a key",
        |p| reseal(p, &Keys::new(p.folder.path().join("others")), "nobody"),
        "sealed by another store's key",
    ),
];

const FORGED_5: &str =
    "_ledger.jsonl line 5: the signature is invalid; the count, the time or the head was changed";

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

#[test]
fn every_change_is_reported() {
    for (name, tamper, expected) in CASES {
        let traces = TraceFolder::new();
        tamper(&traces);
        let found = traces.verdict();
        assert!(found.contains(expected), "{name}: {found}");
    }
}
