//! Tests of `wattle eval`: the built-in set, with recordings and with an endpoint, and the commands
//! and files of its manual page.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

const MANUAL: &str = include_str!("../../../docs/eval.md");
/// The model endpoint in the manual's examples.
const ENDPOINT: &str = "http://127.0.0.1:11434/v1";

/// Returns the paths and contents of the files under a folder of the repository.
fn tree(folder: &str) -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut folders, mut files) = (vec![top.join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                let name = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Creates the folders of a test, with the built-in tasks in the workdir.
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
    // The recordings are sorted by task name. The order of the file names differs if one name is a
    // prefix of another.
    let mut chosen: Vec<(String, String)> = recordings
        .filter(|(name, _)| name.contains(part))
        .filter_map(|(name, text)| Some((name.strip_suffix(".txt")?.to_owned(), text)))
        .collect();
    chosen.sort();
    let replies = chosen.iter().flat_map(|(_, text)| text.split("=== reply\n").skip(1));
    Provider::start(replies.map(|reply| Answer::text(reply.trim_end())))
}

/// Masks the values in the table that differ between runs or depend on the length of the prompt.
fn masked(table: &str) -> String {
    let mut rows = table.lines().take_while(|line| !line.is_empty());
    let mask = |line: &str| {
        let mut columns: Vec<String> =
            line.split("  ").filter(|c| !c.is_empty()).map(|c| c.trim().to_owned()).collect();
        if columns.first().is_some_and(|first| first != "model") {
            let count = columns.len();
            columns.splice(count - 3.., ["~[n]", "~[n]", "[time]"].map(str::to_owned));
        }
        columns.join("  ")
    };
    rows.by_ref().map(mask).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_set_passes_from_its_recordings() {
    let place = place();
    let done = place.wattle(["eval", "eval/tasks", "--baseline", "tools"]).run().code(0);
    wattle_cases::compare("tests/cli/eval-table.txt", &masked(&done.stdout));
    assert!(
        done.stderr.starts_with("100 tasks of `eval/tasks`, from recordings\n"),
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
fn an_evaluation_is_resumed_only_on_request() {
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
    assert!(done.stderr.starts_with("6 tasks of `eval/tasks`, live\n"), "{}", done.stderr);
    assert_eq!(provider.unused_answers(), 0);
    assert!(provider.requests().iter().all(|request| request.json()["model"] == "llama3"));

    let asked = provider.requests().len();
    let refused = place.wattle(args).run().code(2);
    assert!(
        refused.stderr.contains(
            "results.jsonl`: it has 6 attempts of an earlier evaluation\nhint: continue that \
             evaluation with `--resume`"
        ),
        "{}",
        refused.stderr
    );
    let again = place.wattle(args.into_iter().chain(["--resume"])).run().code(0);
    assert_eq!(provider.requests().len(), asked, "nothing is asked twice");
    assert_eq!(again.stdout, done.stdout);
    assert!(
        again.stderr.contains("6 attempts kept from `eval/tasks/results.jsonl`"),
        "{}",
        again.stderr
    );

    // The provider has no answers left, so it fails. Its failures are reported as errors, not as
    // failed tasks.
    let fresh = place.wattle(args.into_iter().chain(["--fresh", "--json"]));
    let fresh = fresh.env("WATTLE_RETRY_FOR", "1s").run().code(4);
    let document: Json = serde_json::from_str(&fresh.stdout).unwrap();
    let all = document["rows"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (all["score"]["attempts"].as_u64(), all["score"]["errors"].as_u64()),
        (Some(0), Some(6)),
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
        done.stderr.contains("interrupted: 2 attempts not made; `--resume` continues from here"),
        "{}",
        done.stderr
    );
    assert_eq!(place.read("set/results.jsonl").lines().count(), 1);
    provider.push(Answer::text("Ada"));
    provider.push(Answer::text("Ada"));
    let args = ["eval", "set", "--jobs", "1", "--base-url", &base, "--model", "m", "--resume"];
    place.wattle(args).run().code(0);
    assert_eq!(place.read("set/results.jsonl").lines().count(), 3);
}

#[test]
fn a_killed_evaluation_keeps_its_attempts() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.write(&format!("set/{name}.toml"), "prompt = 'who?'\nexpect.answer.equals = 'Ada'\n");
    }
    let provider = Provider::start([Answer::text("Ada"), Answer::text("Ada"), Answer::hang()]);
    let base = provider.base_url();
    let args = ["eval", "set", "--jobs", "1", "--base-url", &base, "--model", "m"];
    let mut child = place.wattle(args).start();
    while provider.requests().len() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // A second evaluation must not mix its attempts with those of the first.
    let busy = place.wattle(args).run().code(2);
    assert!(busy.stderr.contains("another evaluation is writing it"), "{}", busy.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.read("set/results.jsonl").lines().count(), 2);

    provider.push(Answer::text("Ada"));
    let asked = provider.requests().len();
    let done = place.wattle(args.into_iter().chain(["--resume"])).run().code(0);
    assert_eq!(provider.requests().len() - asked, 1, "only the third task is asked again");
    assert!(done.stderr.contains("2 attempts kept from"), "{}", done.stderr);
    assert_eq!(place.read("set/results.jsonl").lines().count(), 3);
}

#[test]
fn two_prompts_are_compared_task_by_task() {
    let place = Place::new();
    for at in 0..12 {
        let task = format!("prompt = 'who is {at}?'\nexpect.answer.says = 'Ada'\n");
        place.write(&format!("set/t{at:02}.toml"), task);
    }
    place.write("terse.txt", "Be terse.\n");
    // With the preamble, the model knows the answer.
    let provider = Provider::answering(|request| {
        let knows = request.messages()[0].starts_with("Be terse.");
        Answer::text(format!("ToolCall::Response(\"{}\")", if knows { "Ada" } else { "Grace" }))
    });
    let base = provider.base_url();
    let eval = |more: &[&str]| {
        let args = ["eval", "set", "--base-url", &base, "--model", "m"];
        place.wattle(args.into_iter().chain(more.iter().copied())).run()
    };
    eval(&["--out", "old.jsonl"]).code(1);
    let new = ["--out", "new.jsonl", "--preamble", "terse.txt", "--against", "old.jsonl"];
    let done = eval(&new).code(0);
    let (_, compared) = done.stdout.split_once("compared with `old.jsonl`: ").unwrap();
    let mut lines = compared.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(
        lines.next().unwrap(),
        "m, programs: 12 tasks on both sides, 0 left out, another prompt"
    );
    assert_eq!(
        lines.next().unwrap(),
        "measure tasks before after difference 95% interval better worse p"
    );
    assert_eq!(
        lines.next().unwrap(),
        "success 12 0.0% 100.0% +100.0% +100.0% to +100.0% 12 0 0.000"
    );

    let json = eval(&[
        "--out",
        "new.jsonl",
        "--resume",
        "--preamble",
        "terse.txt",
        "--against",
        "old.jsonl",
        "--json",
    ]);
    let document: Json = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["paired"][0]["measures"][0]["difference"], 1.0);
    place.write("set/t00.toml", "prompt = 'p'\nexpect.answer.says = 'Ada'\n");
    let changed = eval(&["--filter", "t00", "--out", "x.jsonl", "--against", "old.jsonl"]).code(2);
    assert!(
        changed.stderr.contains(
            "there is nothing to compare in `old.jsonl`\nhint: compare the same tasks, model and \
             approach; the file has `m` by programs, and changed tasks do not count"
        ),
        "{}",
        changed.stderr
    );
}

#[test]
fn dialects_errors_and_transcripts_are_reported() {
    let place = Place::new();
    place.write("set/a.toml", "prompt = 'who?'\nexpect.answer.says = 'Ada'\n");
    let provider = Provider::answering(|request| {
        let turns = request.messages().len();
        if request.json()["tools"].is_array() {
            let body = serde_json::json!({"choices": [{"message": {"content": null, "tool_calls": [{
                "id": "c1", "type": "function",
                "function": {"name": "done", "arguments": "{\"result\": \"Ada\"}"}
            }]}, "finish_reason": "tool_calls"}]});
            return Answer::body(body.to_string());
        }
        Answer::text(match turns {
            2 => "ToolCall::Wat(```wat\n(let $x 1)\n(out (str.lem \"x\"))\n```)",
            4 => "ToolCall::Wat(```wat\n(out \"Ada\")\n```)",
            _ => "ToolCall::Response(\"Ada\")",
        })
    });
    let base = provider.base_url();
    let args = [
        "eval",
        "set",
        "--base-url",
        &base,
        "--model",
        "m",
        "--dialect",
        "text",
        "--dialect",
        "native",
        "--save-transcripts",
        "talk",
    ];
    let done = place.wattle(args).run().code(0);
    for words in [
        "m      programs  general",
        "m      native    general",
        "errors at the first try: m, programs, 2 programs\n  unknown-function: 1 in 1 task\n    \
         general/a, step 1, line 2: (out (str.lem \"x\"))\n",
        "compared: m, native after programs: 1 task on both sides",
    ] {
        assert!(done.stdout.contains(words), "{words}\n{}", done.stdout);
    }
    let talk = place.read("talk/m/general/a.txt");
    assert!(talk.starts_with("=== attempt general/a by m, programs: passed\n"), "{talk}");
    assert!(place.read("talk/m/general/a.native.txt").contains("\ndone({\"result\": \"Ada\"})\n"));
}

#[test]
fn the_samples_of_a_set_can_be_checked() {
    let place = place();
    let done = place.wattle(["eval", "eval/tasks", "--check"]).run().code(0);
    assert!(done.stderr.starts_with("100 tasks and "), "{}", done.stderr);
    place.write("set/a.toml", "prompt = 'p'\nexpect.answer.number = 4\nsamples.right = ['5']\n");
    let bad = place.wattle(["eval", "set", "--check"]).run().code(1);
    assert!(
        bad.stderr.contains("general/a: right sample 1 fails: the answer has the number 5"),
        "{}",
        bad.stderr
    );
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
        (&["eval", "eval/tasks", "--dialect", "latin"], 2, "--dialect"),
        (&["eval", "eval/tasks", "--resume", "--fresh"], 2, "cannot be used with"),
        (
            &["eval", "eval/tasks", "--preamble", "absent"],
            2,
            "failed to read the preamble `absent`",
        ),
        (&["eval", "eval/tasks", "--against", "absent"], 2, "failed to load `absent`"),
    ] {
        let done = place.wattle(args).run();
        assert_eq!(done.code, code, "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{args:?}: {}", done.stderr);
    }
}

/// Returns the manual's fenced blocks, each with its info string and its content.
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
        // The endpoint returns its answers in a fixed order, so the attempts must not run
        // concurrently.
        let jobs = if line.contains(ENDPOINT) { " --jobs 1" } else { "" };
        let done = place.shell(&(line.replace(ENDPOINT, &whole.base_url()) + jobs)).run();
        assert_eq!(done.code, 0, "{line}\n{}{}", done.stdout, done.stderr);
        table = done.stdout;
        ran += 1;
    }
    assert_eq!((ran, whole.unused_answers()), (8, 0));
    let (_, head) = blocks().into_iter().find(|(info, _)| *info == "text").unwrap();
    let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(plain(table.lines().next().unwrap()), plain(head));
    assert!(MANUAL.contains("`eval/tasks/` is part of the repository: 100 tasks"));
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
