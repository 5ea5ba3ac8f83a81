//! Runs scripts like those that people and models write, and compares the results with those of
//! bash.
//!
//! `tests/corpus/*.txt` contain scripts, separated by `---` lines; `tests/corpus/*.out` contain the
//! expected output and status of each. Each script runs in a copy of `tests/corpus/files`.
//! `UPDATE=1` updates the expected results, with bash if it is installed. The files `sed`, `grep`,
//! `gawk` and `jq` cover the features described in the manuals of these programs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wattle_capability::files::{Files, OVERLAY_LIMIT};
use wattle_cases::guests::SharedGuests;
use wattle_shell::{Bounds, Shell, Toolbox};

/// Time limit of one script.
const DEADLINE: Duration = Duration::from_secs(300);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn shell() -> &'static Shell {
    static SHELL: OnceLock<Shell> = OnceLock::new();
    SHELL.get_or_init(|| {
        let toolbox = Toolbox::new(Some(SharedGuests::in_target().folder())).unwrap();
        Shell::new(Arc::new(toolbox), Bounds::default())
    })
}

/// Standard output and status of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    stdout: String,
    status: u8,
}

async fn by_wattle(script: &str) -> (Outcome, String) {
    let files = Arc::new(Files::overlay(None, OVERLAY_LIMIT));
    for entry in std::fs::read_dir(folder().join("files")).unwrap() {
        let path = entry.unwrap().path();
        files
            .write(path.file_name().unwrap().to_str().unwrap(), &std::fs::read(&path).unwrap())
            .unwrap();
    }
    let output = shell().capture(&files, script, "", Some(DEADLINE)).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (Outcome { stdout: text(&output.stdout), status: output.status.0 }, text(&output.stderr))
}

/// Runs a script with bash. Returns `None` if bash is not installed or did not exit normally.
fn by_bash(script: &str) -> Option<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder().join("files")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let output = std::process::Command::new("bash")
        .args(["-c", script, "bash"])
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("HOME", "/")])
        .current_dir(dir.path())
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(Outcome { stdout, status: u8::try_from(output.status.code()?).ok()? })
}

/// Returns the scripts of a file. A file that starts with `$ ` contains one script per line, each
/// with that prefix.
fn blocks(text: &str) -> Vec<&str> {
    if text.starts_with("$ ") {
        return text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    }
    text.split("\n---\n").map(|script| script.trim_matches('\n')).collect()
}

/// Formats an outcome for an `.out` file.
fn rendered(script: &str, outcome: &Outcome) -> String {
    let mut text = format!("### {}\n", script.lines().next().unwrap_or_default());
    let _ = writeln!(text, "status {}", outcome.status);
    text.push_str(&outcome.stdout);
    if !outcome.stdout.is_empty() && !outcome.stdout.ends_with('\n') {
        text.push_str("\n(no line end)\n");
    }
    text
}

async fn check(name: &str) {
    let texts = wattle_cases::read(folder().join(name).with_extension("txt"));
    let scripts = blocks(&texts);
    let expected_path = folder().join(name).with_extension("out");
    if wattle_cases::is_updating() {
        let mut all = String::new();
        for script in &scripts {
            let outcome = match by_bash(script) {
                Some(outcome) => outcome,
                None => by_wattle(script).await.0,
            };
            all.push_str(&rendered(script, &outcome));
        }
        std::fs::write(&expected_path, all).unwrap();
    }
    let expected = wattle_cases::read(&expected_path);
    let (mut all, mut wrong) = (String::new(), String::new());
    let mut outcomes = expected.split("### ").skip(1);
    for script in &scripts {
        let (outcome, stderr) = by_wattle(script).await;
        let ours = rendered(script, &outcome);
        all.push_str(&ours);
        let theirs = format!("### {}", outcomes.next().unwrap_or_default());
        if ours != theirs {
            let _ =
                writeln!(wrong, "{script}\n{}stderr: {stderr}", wattle_cases::diff(&theirs, &ours));
        }
    }
    assert!(wrong.is_empty(), "{name}: other than expected:\n{wrong}");
    assert_eq!(
        all, expected,
        "the outcomes of {name} are not those of its scripts: run with UPDATE=1"
    );
}

/// A program that produced the committed outcomes.
struct Oracle {
    /// Words that indicate that a script uses the program. Empty if every script uses it.
    words: &'static [&'static str],
    /// The command that prints the program's version.
    probe: &'static str,
    /// A string in the version output that identifies the recorded program.
    recorded: &'static str,
}

const ORACLES: &[Oracle] = &[
    Oracle { words: &[], probe: "bash --version", recorded: "version 5.2" },
    Oracle { words: &[], probe: "sort --version", recorded: "(GNU coreutils)" },
    Oracle { words: &["sed"], probe: "sed --version", recorded: "(GNU sed)" },
    Oracle { words: &["grep", "egrep", "fgrep"], probe: "grep --version", recorded: "(GNU grep)" },
    Oracle { words: &["find", "xargs"], probe: "find --version", recorded: "(GNU findutils)" },
    Oracle { words: &["diff", "cmp"], probe: "diff --version", recorded: "(GNU diffutils)" },
    Oracle { words: &["awk"], probe: "awk --version", recorded: "GNU Awk 5" },
    Oracle { words: &["jq"], probe: "jq --version", recorded: "jq-1." },
];

impl Oracle {
    /// Returns the first line that this machine's program prints as its version, or `None` if the
    /// program is the recorded one.
    fn differs(&self) -> Option<String> {
        let shown = by_bash(&format!("{} </dev/null 2>&1", self.probe));
        let shown = shown.map_or_else(String::new, |outcome| outcome.stdout);
        let first = shown.lines().next().unwrap_or("nothing").to_owned();
        (!shown.contains(self.recorded)).then_some(first)
    }

    fn is_used_by(&self, script: &str) -> bool {
        let mut words = script.split(|c: char| !c.is_alphanumeric() && c != '_');
        self.words.is_empty() || words.any(|word| self.words.contains(&word))
    }
}

/// Returns the oracles whose version on this machine differs from the recorded one. Prints a line
/// for each.
///
/// # Panics
/// Panics in CI if a version differs.
fn missing_oracles() -> Vec<&'static Oracle> {
    let differs = |oracle: &&'static Oracle| {
        let Some(found) = oracle.differs() else { return false };
        let line = format!("`{}` shows {found:?}, not {:?}", oracle.probe, oracle.recorded);
        assert!(std::env::var_os("CI").is_none(), "an oracle is missing: {line}");
        println!("skipped: scripts whose outcomes this machine cannot judge: {line}");
        true
    };
    ORACLES.iter().filter(differs).collect()
}

/// Compares the committed outcomes of a corpus file with those of this machine's programs, except
/// for scripts that use a program in `missing`. Returns the number of compared scripts.
fn agrees(name: &str, missing: &[&Oracle]) -> usize {
    let texts = std::fs::read_to_string(folder().join(name).with_extension("txt")).unwrap();
    let expected = std::fs::read_to_string(folder().join(name).with_extension("out")).unwrap();
    let scripts = blocks(&texts);
    let pairs = scripts.iter().zip(expected.split("### ").skip(1));
    let judged =
        pairs.filter(|(script, _)| !missing.iter().any(|oracle| oracle.is_used_by(script)));
    let compared = judged.map(|(script, theirs)| {
        let outcome = by_bash(script).unwrap_or_else(|| panic!("bash did not run {script}"));
        assert_eq!(rendered(script, &outcome), format!("### {theirs}"), "{name}: {script}");
    });
    compared.count()
}

macro_rules! corpus {
    ($($name:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            check(stringify!($name)).await;
        })*

        #[test]
        fn every_file_is_checked() {
            let known = [$(stringify!($name)),*];
            for path in wattle_cases::files(folder(), "txt") {
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert!(known.contains(&name), "{}", path.display());
            }
        }

        /// Tests that the committed outcomes are those of bash and the GNU tools. If a tool on the
        /// machine is a different program or version, the test prints a line about it and skips the
        /// scripts that use it. CI has all of the recorded tools.
        #[test]
        fn bash_agrees() {
            let missing = missing_oracles();
            let compare = |name: &'static str| agrees(name, &missing);
            let compared: usize = std::thread::scope(|scope| {
                let threads = [$(scope.spawn(move || compare(stringify!($name)))),*];
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            println!("compared {compared} scripts with bash");
        }
    };
}

corpus! {
    words expansion control functions redirection options arguments errors text scripts commands awk
    sed grep gawk jq
}
