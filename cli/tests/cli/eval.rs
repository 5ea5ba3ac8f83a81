//! `wattle eval`: the built-in set, from recordings and against an endpoint, and the commands and
//! files of its manual page.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

const MANUAL: &str = include_str!("../../../docs/eval.md");
/// The endpoint in the manual.
const ENDPOINT: &str = "http://127.0.0.1:11434/v1";

/// Returns the files below a folder of the repository, by their paths.
fn tree(folder: &str) -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut folders, mut files) = (vec![top.join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
                    files.push((name, std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    files.sort();
    files
}

/// Creates a place with the set in its workdir.
fn place() -> Place {
    let place = Place::new();
    tree("eval/tasks").into_iter().filter(|(name, _)| !name.ends_with("/results.jsonl")).for_each(
        |(name, content)| {
            place.write(&name, content);
        },
    );
    place
}

/// Starts an endpoint that returns the recorded answers, task by task.
fn provider(part: &str) -> Provider {
    let recordings = tree("eval/tasks/recordings").into_iter();
    let chosen =
        recordings.filter(|(name, _)| name.contains(part) && !name.ends_with(".tools.jsonl"));
    let mut replies = Vec::new();
    // In the order of the tasks' names, which differs from that of the files' names if one is a
    // prefix of another.
    let mut chosen: Vec<_> =
        chosen.map(|(name, text)| (name.trim_end_matches(".jsonl").to_owned(), text)).collect();
    chosen.sort();
    for (_, text) in chosen {
        let turns = text.lines().skip(1).map(|line| serde_json::from_str::<Json>(line).unwrap());
        replies.extend(turns.map(|turn| Answer::text(turn["reply"].as_str().unwrap())));
    }
    Provider::start(replies)
}

/// Masks the values in the table that differ between runs or depend on the length of the prompt.
fn masked(table: &str) -> String {
    let mask = |line: &str| {
        let mut columns: Vec<String> =
            line.split("  ").filter(|c| !c.is_empty()).map(|c| c.trim().to_owned()).collect();
        if columns.first().is_some_and(|first| first != "model") {
            let count = columns.len();
            columns.splice(count - 3.., ["~[n]", "~[n]", "[time]"].map(str::to_owned));
        }
        columns.join("  ")
    };
    table.lines().map(mask).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_set_passes_from_its_recordings() {
    let place = place();
    let done = place.wattle(["eval", "eval/tasks", "--baseline", "tools"]).run().code(0);
    wattle_cases::compare("tests/cli/eval-table.txt", &masked(&done.stdout));
    assert!(
        done.stderr.starts_with("51 tasks of `eval/tasks`, from recordings\n"),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("attempts left out: not recorded") && !done.stderr.contains("FAILED"),
        "{}",
        done.stderr
    );
    assert!(
        !place.work().join("eval/tasks/results.jsonl").exists(),
        "recordings write no results file by default"
    );
}

#[test]
fn the_same_command_continues_a_live_evaluation() {
    let place = place();
    let provider = provider("/text/");
    let base = provider.base_url();
    let args = [
        "eval",
        "eval/tasks",
        "--filter",
        "text/",
        "--jobs",
        "1",
        "--base-url",
        &base,
        "--model",
        "llama3",
    ];
    let done = place.wattle(args).run().code(0);
    assert!(done.stdout.contains("llama3  programs  all"), "{}", done.stdout);
    assert!(done.stderr.starts_with("11 tasks of `eval/tasks`, live\n"), "{}", done.stderr);
    assert_eq!(provider.unused_answers(), 0);
    assert!(provider.requests().iter().all(|request| request.json()["model"] == "llama3"));

    let asked = provider.requests().len();
    let again = place.wattle(args).run().code(0);
    assert_eq!(provider.requests().len(), asked, "nothing is asked twice");
    assert_eq!(again.stdout, done.stdout);
    assert!(
        again.stderr.contains("11 attempts reused from `eval/tasks/results.jsonl`"),
        "{}",
        again.stderr
    );

    // The script is used up, so the provider fails. The failures are reported as errors, not as
    // failed tasks.
    let fresh = place.wattle(args.into_iter().chain(["--fresh", "--json"])).run().code(4);
    let document: Json = serde_json::from_str(&fresh.stdout).unwrap();
    let all = document["rows"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (all["score"]["attempts"].as_u64(), all["score"]["errors"].as_u64()),
        (Some(0), Some(11)),
        "{all}"
    );
}

#[test]
fn several_models_share_one_table_and_a_wrong_answer_fails() {
    let place = Place::new();
    place.write("set/a.toml", "prompt = 'who?'\nexpect.answer.equals = 'Ada'\n");
    for (model, says) in [("one", "Ada"), ("two", "Grace")] {
        let header = "{\"wattle_cassette\":1}\n";
        place.write(
            &format!("set/recordings/{model}/general/a.jsonl"),
            format!("{header}{{\"reply\":\"{says}\"}}\n"),
        );
    }
    let done = place.wattle(["eval", "set", "--jobs", "1"]).run().code(1);
    let rows: Vec<_> = masked(&done.stdout)
        .lines()
        .skip(1)
        .map(|line| line.split("  [").next().unwrap().to_owned())
        .collect();
    assert_eq!(rows.len(), 4, "{}", done.stdout);
    assert!(
        rows[1].starts_with("one  programs  all  1  100%")
            && rows[3].starts_with("two  programs  all  1  0%")
    );
    let words =
        "FAILED general/a two by programs\n       the answer is \"Grace\", expected \"Ada\"\n";
    assert!(done.stderr.contains(words), "{}", done.stderr);
    assert!(
        place
            .wattle(["eval", "set", "--model", "one"])
            .run()
            .code(0)
            .stderr
            .contains("passed general/a\n")
    );
}

#[test]
fn an_interrupt_keeps_the_finished_attempts() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.write(&format!("set/{name}.toml"), "prompt = 'who?'\nexpect.answer.equals = 'Ada'\n");
    }
    let provider = Provider::start([Answer::text("Ada"), Answer::hang()]);
    let base = provider.base_url();
    let child =
        place.wattle(["eval", "set", "--jobs", "1", "--base-url", &base, "--model", "m"]).start();
    while provider.requests().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let done = Done::of(child).code(130);
    assert!(
        done.stderr
            .contains("interrupted: 2 attempts not made; the same command continues from here"),
        "{}",
        done.stderr
    );
    assert_eq!(place.read("set/results.jsonl").lines().count(), 1);
    provider.push(Answer::text("Ada"));
    provider.push(Answer::text("Ada"));
    place.wattle(["eval", "set", "--jobs", "1", "--base-url", &base, "--model", "m"]).run().code(0);
    assert_eq!(place.read("set/results.jsonl").lines().count(), 3);
}

#[test]
fn recorded_answers_can_be_replayed() {
    let place = Place::new();
    place.write("set/a.toml", "prompt = 'who?'\nexpect.answer.equals = 'Ada'\n");
    let provider = Provider::start([Answer::text("Ada")]);
    let base = provider.base_url();
    place
        .wattle(["eval", "set", "--record", "--base-url", &base, "--model", "lab/m:1"])
        .run()
        .code(0);
    assert!(place.work().join("set/recordings/lab%2fm%3a1/general/a.jsonl").is_file());
    let played = place.wattle(["eval", "set"]).run().code(0);
    assert!(played.stdout.contains("lab/m:1  programs  all"), "{}", played.stdout);
}

#[test]
fn invalid_requests_are_errors() {
    let place = place();
    place.write("bad/x.toml", "promt = 'p'\n");
    place.write("none/x.toml", "prompt = 'p'\nexpect.answer.equals = 'x'\n");
    place.write("broken.jsonl", "no\n");
    for (args, code, words) in [
        (&["eval", "absent"][..], 2, "no folder `absent`"),
        (
            &["eval", "bad"],
            3,
            "failed to load `bad/x.toml`, line 1: unknown key `promt`\nhint: the nearest known \
             key is `prompt`",
        ),
        (
            &["eval", "none"],
            3,
            "there are no recordings for these tasks in `none`\nhint: name an endpoint to ask",
        ),
        (
            &["eval", "none", "--model", "m"],
            3,
            "there are no recordings of `m` for these tasks in `none`",
        ),
        (&["eval", "none", "--record"], 3, "no model is set up"),
        (
            &["eval", "eval/tasks", "--filter", "zzz"],
            2,
            "no task has \"zzz\" in its name, which is `KIND/NAME`",
        ),
        (
            &["eval", "eval/tasks", "--out", "broken.jsonl"],
            2,
            "broken.jsonl`, line 1: the line is not an attempt",
        ),
        (&["eval", "eval/tasks", "--record", "--recorded"], 2, "cannot be used with"),
        (&["eval", "eval/tasks", "--baseline", "python"], 2, "tools"),
        (&["eval", "eval/tasks", "--jobs", "0"], 2, "--jobs"),
    ] {
        let done = place.wattle(args).run();
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
    }
}

/// Returns the fenced blocks of the manual: the fence's tag, and the content.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let blocks = MANUAL.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn the_commands_and_files_of_the_manual_work() {
    let place = place();
    for (info, content) in blocks() {
        if let Some((_, path)) = info.split_once(' ') {
            place.write(path, format!("{content}\n"));
        }
    }
    let whole = provider("");
    let (mut ran, mut table) = (0, String::new());
    for line in
        blocks().iter().filter(|(info, _)| *info == "sh").flat_map(|(_, content)| content.lines())
    {
        // The endpoint answers in order, so it is asked in order.
        let jobs = if line.contains(ENDPOINT) { " --jobs 1" } else { "" };
        let done = place.shell(&(line.replace(ENDPOINT, &whole.base_url()) + jobs)).run();
        assert_eq!(done.code, 0, "{line}\n{}{}", done.stdout, done.stderr);
        table = done.stdout;
        ran += 1;
    }
    assert_eq!((ran, whole.unused_answers()), (6, 0));
    let (_, head) = blocks().into_iter().find(|(info, _)| *info == "text").unwrap();
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(plain(table.lines().next().unwrap()), plain(head));
    assert!(MANUAL.contains("`eval/tasks/` is part of the repository: 51 tasks"));
}

#[test]
fn the_manual_names_every_flag_and_key() {
    let place = Place::new();
    let help = place.wattle(["eval", "--help"]).run().code(0).stdout;
    let own = help.split("Settings:").next().unwrap();
    let flags = own.split_whitespace().filter(|word| word.starts_with("--") && *word != "--help");
    for flag in flags.map(|flag| flag.trim_end_matches([',', ']', '.'])) {
        assert!(MANUAL.contains(&format!("`{flag}")), "{flag} is not in the manual");
    }
    place.write("x/x.toml", "promt = 'p'");
    place.write("y/y.toml", "prompt = 'p'\nexpect.answer.x = 1");
    place.write("z/y.toml", "prompt = 'p'\nbudget.x = 1");
    for set in ["x", "y", "z"] {
        let report = place.wattle(["eval", set]).run().code(3).stderr;
        for key in report.rsplit("known keys are ").next().unwrap().trim().split(", ") {
            assert!(
                MANUAL.contains(&format!("`{key}")) || MANUAL.contains(&format!(".{key}`")),
                "{key} is not in the manual"
            );
        }
    }
}
