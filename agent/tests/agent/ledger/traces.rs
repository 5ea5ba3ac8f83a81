//! Helpers that create folders with traces and ledgers.

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use wattle_agent::host::STEPS_FILE;
use wattle_agent::host::ledger::{
    FinalSeal, Keys, LEDGER_FILE, Pins, Recorder, Verdict, Verification, verify,
};

/// A folder with a trace and its ledger, and the keys that seal the trace.
pub(crate) struct TraceFolder {
    pub(crate) folder: TempDir,
    pub(crate) keys: Keys,
}

pub(crate) const TENANT: &str = "acme";

impl TraceFolder {
    /// Creates a folder with the interleaved traces of the runs `one` and `other`.
    pub(crate) fn new() -> TraceFolder {
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

    pub(crate) fn read(&self, name: &str) -> Vec<String> {
        std::fs::read_to_string(self.folder.path().join(name))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn write(&self, name: &str, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Removes bytes from the end of a file.
    pub(crate) fn cut(&self, name: &str, bytes: usize) {
        let path = self.folder.path().join(name);
        let mut text = std::fs::read(&path).unwrap();
        text.truncate(text.len() - bytes);
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn add(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        let text = [&std::fs::read(&path).unwrap(), bytes].concat();
        std::fs::write(path, text).unwrap();
    }

    /// Removes a run's steps and seals.
    pub(crate) fn remove_run(&self, run: &str) {
        self.change(STEPS_FILE, |l| {
            l.retain(|line| !line.contains(&format!("\"run_id\":\"{run}\"")))
        });
        self.change(LEDGER_FILE, |l| {
            l.retain(|line| !line.contains(&format!("\"run\":\"{run}\"")))
        });
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.read(name);
        change(&mut lines);
        self.write(name, &lines);
    }

    /// Describes the verdict on run `one` and the findings about the files.
    pub(crate) fn verdict(&self) -> String {
        let Verification { runs, files } = self.verified(&[]);
        let run = words(runs.iter().find(|verdict| verdict.run == "one").unwrap());
        files.iter().fold(run, |text, finding| format!("{text}; {finding}"))
    }

    pub(crate) fn verified(&self, known: &[FinalSeal]) -> Verification {
        verify(self.folder.path(), &Pins::Keys(self.keys.clone()), known).unwrap()
    }
}

/// Creates a folder with the trace of runs that were recorded one after another. Returns the folder
/// with the runs' final seals.
pub(crate) fn in_turn(runs: &[&str]) -> (TraceFolder, Vec<FinalSeal>) {
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

pub(crate) fn words(verdict: &Verdict) -> String {
    match (&verdict.finding, verdict.ended) {
        (Some(finding), _) => finding.to_string(),
        (None, true) => format!("{} lines, ended", verdict.sealed),
        (None, false) => format!("{} lines, not ended", verdict.sealed),
    }
}

pub(crate) fn is_valid(verified: &Verification) -> bool {
    verified.files.is_empty() && verified.runs.iter().all(|run| run.finding.is_none())
}

pub(crate) fn recorder(folder: &TempDir, keys: &Keys, run: &str) -> Recorder {
    Recorder::open(folder.path(), run, Some(keys.signer(TENANT).unwrap().into())).unwrap()
}

pub(crate) fn step_line(run: &str, step: u32) -> Json {
    json!({
        "run_id": run, "step": step, "tool": "wat", "output": format!("result {step}"), "ts": step,
    })
}

pub(crate) fn set(line: &mut String, field: &str, value: Json) {
    let mut object: Json = serde_json::from_str(line).unwrap();
    object[field] = value;
    *line = object.to_string();
}
