//! Tests of version 1 ledgers.

use serde_json::{Value as Json, json};
use wattle_agent::STEPS_FILE;
use wattle_agent::ledger::{Finding, LEDGER_FILE};

use super::traces::{TENANT, TraceFolder, in_turn, is_valid, recorder, set, step_line};

/// Writes the step lines of an ended run to the trace, and their version 1 seals to the ledger.
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
        let mut seal = json!({
            "v": 1, "run": run, "tenant": TENANT, "count": count, "time": 7, "line": hash,
            "head": hex(&head),
        });
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
