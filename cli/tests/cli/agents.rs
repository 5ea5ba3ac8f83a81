//! Command-line tests of agents that are declared in files.

use serde_json::json;
use wattle_tests::provider::{Answer, Provider};

use crate::place::{Done, Place};

const CLERK: &str = r#"
name = "clerk"
title = "The clerk"
description = "Keeps the files in order"
prompt = "You are a clerk."
temperature = 0.9
max_tokens = 77
max_steps = 3
tools = ["file_read", { id = "file_list", alias = "shelf", description = "List the shelf" }]
[policy]
deny = ["write:*"]
"#;

fn answer(text: &str) -> Answer {
    Answer::text(format!("ToolCall::Response(\"\"\"{text}\"\"\")"))
}

fn clerk(script: Vec<Answer>, args: &[&str]) -> (Provider, Done) {
    let place = Place::new();
    place.write("agents/clerk.toml", CLERK);
    let provider = Provider::start(script);
    let all = ["run", "--base-url", &provider.base_url(), "--model", "m", "--agents", "agents"];
    let done = place.wattle(all.iter().chain(args)).run();
    (provider, done)
}

#[test]
fn an_agents_prompt_settings_and_programs_are_its_runs() {
    let (provider, done) = clerk(vec![answer("sorted")], &["--agent", "clerk", "sort"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "sorted\n"), "{}", done.stderr);
    let request = provider.requests().remove(0);
    let body = request.json();
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.9), &json!(77)));
    let prompt = request.messages_verbatim().remove(0);
    assert!(prompt.starts_with("You are a clerk.\n"), "{prompt}");
    assert!(prompt.contains("At most 3 calls"), "{prompt}");
    let programs = prompt.split("# Catalog programs").nth(1).unwrap();
    assert!(programs.contains("file_read(") && programs.contains("shelf("), "{programs}");
    assert!(!programs.contains("http_get"), "{programs}");
}

#[test]
fn an_agents_policy_narrows_and_its_tools_are_all_that_a_model_can_call_by_name() {
    let script = vec![
        Answer::text("ToolCall::Wat(```wat\n(fs.write \"a.txt\" \"x\")\n```)"),
        Answer::text("ToolCall::Catalog(\"http_get\", \"https://example.org/\")"),
        answer("no"),
    ];
    let (provider, done) = clerk(script, &["--agent", "The Clerk", "--allow", "write:*", "write"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let requests = provider.requests();
    let last = |at: usize| requests[at].messages().pop().unwrap();
    assert!(last(1).contains("write a.txt"), "{}", last(1));
    assert!(last(1).contains("denied"), "{}", last(1));
    assert!(last(2).contains("no program `http_get`"), "{}", last(2));
}

#[test]
fn the_users_limit_on_steps_is_the_higher_bound() {
    let look = || Answer::text("ToolCall::Catalog(\"shelf\")");
    let script = vec![look(), answer("enough")];
    let (provider, _) = clerk(script, &["--agent", "clerk", "--max-steps", "1", "look"]);
    let last = provider.requests()[1].messages().pop().unwrap();
    assert!(last.contains("The limit of 1 steps is reached"), "{last}");
    let script = vec![look(), look(), look(), answer("enough")];
    let (provider, _) = clerk(script, &["--agent", "clerk", "--max-steps", "9", "look"]);
    assert_eq!(provider.requests().len(), 4);
}

#[test]
fn an_unknown_agent_ends_the_command_before_the_model_is_asked() {
    let (provider, done) = clerk(vec![], &["--agent", "clark", "sort"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("did you mean `clerk`?"), "{}", done.stderr);
    assert!(provider.requests().is_empty());
}

const FINDER: &str = r#";;; name = "find_agent"
;;; description = "Finds an agent"
;;; [[args]]
;;; name = "reference"
;;; type_hint = "string"
;;; description = "r"
(let $reference (arg 0))
(cond
  ((= $reference "custom:support") (out (fs.read "support.toml")))
  ((= $reference "custom:broken") (fail EREMOTE "the list is out of order"))
  ((= $reference "custom:typo") (out "nam = 1"))
  ((= $reference "custom:json") (out "{\"name\":\"json\",\"prompt\":\"You are made of JSON.\"}")))
"#;

#[test]
fn a_program_finds_agents_that_no_file_declares() {
    let place = Place::new();
    place.write("programs/find_agent.wat", FINDER);
    place.write("support.toml", "name = \"support\"\nprompt = \"You support.\"");
    let run = |agent: &str| {
        let provider = Provider::start([answer("ok")]);
        let base = provider.base_url();
        let model = ["run", "--base-url", &base, "--model", "m", "--catalog", "programs"];
        let which = ["--agent", agent, "go"];
        let done = place
            .wattle(model.iter().chain(&which))
            .env("WATTLE_AGENT_RESOLVER", "find_agent")
            .run();
        let prompt = provider.requests().pop().map(|one| one.messages_verbatim().remove(0));
        (done, prompt.unwrap_or_default())
    };
    for (agent, words) in [
        ("custom:support", "You support.\n"),
        ("custom:json", "You are made of JSON.\n"),
        // The resolver program is not called for a plain name.
        ("default", "You"),
    ] {
        let (done, prompt) = run(agent);
        assert_eq!(done.code, 0, "{agent}: {}", done.stderr);
        assert!(prompt.starts_with(words), "{agent}: {prompt}");
    }
    for (agent, words) in [
        (
            "custom:broken",
            "the resolver (the program `find_agent`: EREMOTE: the list is out of order)",
        ),
        (
            "custom:typo",
            "its result is not an agent: line 1: unknown key `nam`; did you mean `name`?",
        ),
        ("custom:none", "looked among the resolver, the names, the titles"),
    ] {
        let (done, prompt) = run(agent);
        assert_eq!((done.code, prompt.as_str()), (2, ""), "{}", done.stderr);
        assert!(done.stderr.contains(words), "{agent}: {}", done.stderr);
    }
}

#[test]
fn a_resumed_run_keeps_the_agent_that_it_began_with() {
    let place = Place::new();
    place.write("agents/clerk.toml", CLERK);
    let script = [Answer::text("ToolCall::Wat(```wat\n(out (kv.get \"x\"))\n```)"), answer("done")];
    let provider = Provider::start(script);
    let url = provider.base_url();
    let model = ["--base-url", &url, "--model", "m"];
    let run = ["run", "--agents", "agents", "--agent", "clerk", "--ask", "kv.get", "--park", "go"];
    let parked = place.wattle(model.iter().chain(&run)).run();
    assert_eq!(parked.code, 7, "{parked:?}");
    place.write("agents/clerk.toml", "name = \"clerk\"\nprompt = \"Another one.\"");
    let resume = ["run", "--resume", "last", "--approve", "1.1"];
    let done = place.wattle(model.iter().chain(&resume)).run();
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\n"), "{}", done.stderr);
    let prompt = provider.requests()[1].messages_verbatim().remove(0);
    assert!(prompt.starts_with("You are a clerk.\n"), "{prompt}");
}

#[test]
fn agents_are_listed_shown_checked_and_written() {
    let place = Place::new();
    place.write("agents/clerk.toml", CLERK);
    let wattle = |args: &[&str]| {
        place.wattle(["agents"].iter().chain(args).chain(&["--agents", "agents"])).run()
    };
    let listed = wattle(&["list"]);
    let expected = "clerk    The clerk: Keeps the files in order\ndefault  The deployment's \
                    settings, with all of its programs\n";
    assert_eq!(listed.stdout, expected);
    let shown = wattle(&["show", "clerk"]);
    assert!(shown.stdout.contains("prompt = \"You are a clerk.\"\n"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("runs take 3 steps, and are offered: done, file_read, help, shelf")
    );
    assert_eq!(wattle(&["check"]).code, 0);
    place.write("agents/bad.toml", "name = \"bad\"\ntools = [\"file_raed\"]");
    place.write("agents/worse.toml", "nam = \"worse\"");
    place.write(
        "agents/oblivious.toml",
        "name = \"oblivious\"\nmemory_contract.program = \"recal\"",
    );
    let checked = wattle(&["check"]);
    assert_eq!(checked.code, 1);
    for part in [
        "the agent `bad`: there is no program `file_raed`; did you mean `file_read`",
        "the agent `oblivious`: there is no program `recal`; did you mean `recall`",
        "worse.toml:1: unknown key `nam`; did you mean `name`?",
    ] {
        assert!(checked.stdout.contains(part), "{}", checked.stdout);
    }
    assert!(checked.stderr.ends_with("agents, 3 problems\n"), "{}", checked.stderr);
    assert!(!checked.stderr.contains("worse.toml"), "{}", checked.stderr);
    assert_eq!(wattle(&["check", "clerk"]).code, 0);
    let made = wattle(&["new", "helper"]);
    assert_eq!((made.code, made.stdout.as_str()), (0, "agents/helper.toml\n"), "{made:?}");
    assert_eq!(wattle(&["check", "helper"]).code, 0);
    assert_eq!(wattle(&["new", "helper"]).code, 2);
}

/// Writes an agent that asks another one, and starts the model of both.
fn boss_and_coder(place: &Place) -> Provider {
    place.write(
        "agents/boss.toml",
        "name = \"boss\"\nprompt = \"You are the boss.\"\ndelegates = [{ id = \"coder\" }]",
    );
    place.write("agents/coder.toml", "name = \"coder\"\nprompt = \"You are the coder.\"");
    Provider::answering(|request| {
        let messages = request.messages();
        let observed = messages.last().unwrap().contains("Execution result:");
        match (messages[0].starts_with("You are the boss."), observed) {
            (true, false) => Answer::text("ToolCall::Catalog(\"ask_coder\", \"write\")"),
            (false, false) => {
                Answer::text("ToolCall::Wat(```wat\n(fs.write \"a.txt\" \"x\") (ret \"ok\")\n```)")
            }
            (true, true) => answer("all done"),
            (false, true) => answer("written"),
        }
    })
}

#[test]
fn the_events_of_child_runs_are_printed_if_asked_for() {
    let place = Place::new();
    let provider = boss_and_coder(&place);
    let url = provider.base_url();
    let all = ["run", "--base-url", &url, "--model", "m", "--agents", "agents", "--agent", "boss"];
    let runs = |args: &[&str], code: i32| {
        let done = place.wattle(all.iter().chain(args)).run();
        assert_eq!(done.code, code, "{done:?}");
        let events = done.json_lines();
        let of = |key: &str| events.iter().map(|event| event[key].to_string()).collect();
        let (runs, roots): (std::collections::BTreeSet<_>, std::collections::BTreeSet<_>) =
            (of("run_id"), of("root_run_id"));
        assert_eq!(roots.len(), 1);
        runs.len()
    };
    assert_eq!(runs(&["--json", "go"], 0), 1);
    assert_eq!(runs(&["--json", "--tree", "go"], 0), 2);
    // The events end where a run is parked.
    assert_eq!(runs(&["--json", "--tree", "--ask", "write:*", "--park", "go"], 7), 2);
    place.wattle(["run", "--tree", "go"]).run().code(2).reports(&["--json"]);
}

#[test]
fn a_question_of_an_agent_that_was_asked_is_answered_with_the_id_of_its_run() {
    let place = Place::new();
    let provider = boss_and_coder(&place);
    let url = provider.base_url();
    let model = ["--base-url", &url, "--model", "m"];
    let run = ["run", "--agents", "agents", "--agent", "boss", "--ask", "write:*", "--park", "go"];
    let parked = place.wattle(model.iter().chain(&run)).run();
    assert_eq!(parked.code, 7, "{parked:?}");
    let call = parked.stderr.split("--approve ").nth(1).unwrap().lines().next().unwrap();
    assert!(call.ends_with("/1.1"), "{}", parked.stderr);
    let listed = place.wattle(["runs"]).run();
    assert!(listed.stdout.contains(&format!("  waits: call {call}: ")), "{}", listed.stdout);
    let resume = ["run", "--resume", "last", "--approve", call];
    let done = place.wattle(model.iter().chain(&resume)).run();
    assert_eq!((done.code, done.stdout.as_str()), (0, "all done\n"), "{}", done.stderr);
    assert_eq!(provider.requests().len(), 4);
}

/// The file of an agent with examples. The paths of the recordings are relative to this file.
const COUNTER: &str = r#"
name = "counter"
prompt = "You count."
tools = ["file_list"]

[[example]]
message = "How many notes are there?"
recording = "counter/notes.txt"
scene.files = { "notes/a.txt" = "one", "notes/b.txt" = "two" }
expect.answer.number = 2

[[example]]
message = "Write the number of notes to count.txt."
recording = "counter/count.txt"
scene.files = { "notes/a.txt" = "one" }
expect.files."count.txt".equals = "1"

[[example]]
message = "What is new?"
expect.answer.contains = "nothing"
"#;

const NOTES: &str = "=== reply\nToolCall::Catalog(\"file_list\", \"notes\")\n=== reply\n\
                     ToolCall::Response(\"There are 2 notes.\")\n";
const COUNT: &str = "=== reply\nToolCall::Wat(```wat\n(fs.write \"count.txt\" (str.from_int \
                     (arr.len (fs.list \"notes\"))))\n```)\n\
                     === reply\nToolCall::Response(\"done\")\n";

fn counter() -> Place {
    let place = Place::new();
    place.write("agents/counter.toml", COUNTER);
    place.write("agents/counter/notes.txt", NOTES);
    place.write("agents/counter/count.txt", COUNT);
    place
}

#[test]
fn the_examples_of_an_agent_run_from_their_recordings() {
    let place = counter();
    let test = ["agents", "test", "--agents", "agents"];
    let done = place.wattle(test).run();
    let expected = "ok     counter/1  How many notes are there?\n\
                    ok     counter/2  Write the number of notes to count.txt.\n\
                    none   counter/3  no recording\n\
                    1 agent, 2 examples, 1 not run: all pass\n";
    assert_eq!((done.code, done.stdout.as_str()), (0, expected), "{}", done.stderr);

    // An example fails if its answer is wrong, or if its program makes a change that it should not
    // make.
    let wrong = NOTES.replace("There are 2 notes", "There are 3 notes");
    place.write("agents/counter/notes.txt", &wrong);
    let removes = "(fs.write \"count.txt\" \"1\") (fs.remove \"notes/a.txt\")";
    let damage = format!(
        "=== reply\nToolCall::Wat(```wat\n{removes}\n```)\n=== reply\n\
         ToolCall::Response(\"done\")\n"
    );
    place.write("agents/counter/count.txt", &damage);
    let done = place.wattle(test.iter().chain(&["--json"])).run();
    assert_eq!(done.code, 1, "{done:?}");
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&report["ok"], &report["unrecorded"]), (&json!(false), &json!(1)));
    let problems = |at: usize| report["examples"][at]["problems"].clone();
    assert_eq!(problems(0), json!(["the answer has the number 3, expected 2"]));
    assert_eq!(problems(1), json!(["the file `notes/a.txt` was changed, but should not be"]));
    assert_eq!(report["examples"][0]["agent"], "counter");
}

#[test]
fn the_examples_of_an_agent_run_with_a_model() {
    let place = counter();
    let script = |_: &_| answer("2 and nothing else");
    let provider = Provider::answering(script);
    let url = provider.base_url();
    let test = ["agents", "test", "counter", "--agents", "agents", "--base-url", &url];
    let done = place.wattle(test.iter().chain(&["--model", "m"])).run();
    assert_eq!(done.code, 1, "{done:?}");
    let expected = "FAILED counter/2  Write the number of notes to count.txt.\n       the file \
                    `count.txt` does not exist\n";
    assert!(done.stdout.contains(expected), "{}", done.stdout);
    assert!(done.stdout.ends_with("1 agent, 3 examples: 1 failed\n"), "{}", done.stdout);
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].messages_verbatim()[0].starts_with("You count.\n"));
    // A recording with function calls is replayed as function calls.
    let functions = "{\"wattle_cassette\":1,\"model\":\"m\"}\n{\"reply\":{\"text\":\"\",\"calls\":\
                     [{\"id\":\"1\",\"name\":\"file_list\",\
                     \"arguments\":\"{\\\"path\\\":\\\"notes\\\"}\"}]}}\n\
                     {\"reply\":\"There are 2 notes.\"}\n";
    place.write("agents/counter/notes.jsonl", functions);
    place.write(
        "agents/counter.toml",
        COUNTER.replace("notes.txt\"\nscene", "notes.jsonl\"\nscene"),
    );
    // With `--recorded`, a configured endpoint is not used.
    let done = place.wattle(test.iter().chain(&["--recorded", "--json"])).run();
    assert_eq!((done.code, provider.requests().len()), (0, 3), "{done:?}");
    let report: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(report["examples"][0]["steps"], 1);
}

#[test]
fn invalid_examples_are_named_by_their_agent_their_number_and_their_key() {
    let place = Place::new();
    let check = |example: &str| {
        let text = format!("name = \"a\"\n[[example]]\nmessage = \"m\"\n{example}\n");
        place.write("agents/a.toml", &text);
        let done = place.wattle(["agents", "check", "--agents", "agents"]).run();
        assert_eq!(done.code, 1, "{done:?}");
        done.stdout
    };
    for (example, problem) in [
        ("mesage = \"x\"", "unknown key `mesage`; did you mean `message`?"),
        ("expect.anser.number = 2", "example 1: `expect`: unknown key `anser`"),
        ("expect.anser.number = 2", "the nearest known key is `answer`"),
        ("expect.answer.nunber = 2", "the nearest known key is `number`"),
        ("expect.answer.number = 2\nscene.fils = {}", "example 1: `scene`: unknown key `fils`"),
        ("", "it has no expectation, so every answer would pass"),
        ("expect.answer.number = 2\nrecording = \"x.txt\"", "there is no recording"),
        (
            "expect.answer.number = 2\nrecording = \"../x.txt\"",
            "the recording \"../x.txt\" is not a path below the folder of the agent's file",
        ),
    ] {
        let found = check(example);
        assert!(found.contains(problem), "{example}: {found}");
    }
    place.write("agents/x.jsonl", "no recording");
    let found = check("expect.answer.number = 2\nrecording = \"x.jsonl\"");
    assert!(found.contains("x.jsonl"), "{found}");
    let test = |args: &[&str]| {
        place.wattle(["agents", "test", "--agents", "agents"].iter().chain(args)).run()
    };
    assert_eq!(test(&[]).code, 3);
    assert_eq!(test(&["nobody"]).code, 2);
    place.write("agents/a.toml", "name = \"a\"");
    let done = test(&["a"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("these agents have no examples"), "{}", done.stderr);
    place.write("agents/a.toml", COUNTER.replace("recording = ", "#"));
    let done = test(&["counter"]);
    assert_eq!(done.code, 3);
    assert!(done.stderr.contains("no example of these agents has a recording"), "{}", done.stderr);
}

/// Returns the code blocks of the manual's page about agents, each with its language and its
/// content.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let manual = include_str!("../../../docs/agents.md");
    let blocks = manual.split("\n```").skip(1).step_by(2);
    blocks.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn the_commands_of_the_manual_run() {
    let place = Place::new();
    let provider = Provider::answering(|request| match request.messages() {
        messages if !messages[0].starts_with("You count.") => answer("sorted"),
        messages if messages.len() == 2 => {
            Answer::text("ToolCall::Catalog(\"file_list\", \"notes\")")
        }
        _ => answer("2"),
    });
    let endpoint = format!("--base-url {} --model m", provider.base_url());
    let commands = blocks().into_iter().filter(|(kind, _)| *kind == "sh");
    let lines = commands.flat_map(|(_, content)| content.lines());
    let (mut ran, mut tested) = (0, String::new());
    for line in lines.filter(|line| line.starts_with("wattle ")) {
        let line = if line.contains("--provider") {
            line.replace("--provider openrouter --model NAME", &endpoint)
        } else {
            line.replace("wattle run", &format!("wattle run {endpoint}"))
        };
        let done = place.shell(&line).run();
        assert_eq!(done.code, 0, "{line}\n{}{}", done.stdout, done.stderr);
        tested = done.stdout;
        ran += 1;
        if ran > 1 {
            continue;
        }
        // The first command creates an agent. The later ones use the files on the page.
        for (_, content) in blocks().into_iter().filter(|(kind, _)| *kind == "toml") {
            let name = content.lines().next().unwrap().split('"').nth(1).unwrap();
            place.write(&format!("agents/{name}.toml"), content);
        }
        place.write("agents/coder.toml", "name = \"coder\"\nprompt = \"You write code.\"");
        let recording = blocks().into_iter().find(|(_, content)| content.starts_with("=== reply"));
        place.write("agents/counter/notes.txt", recording.unwrap().1);
    }
    assert_eq!(ran, 7);
    let expected = blocks().into_iter().find(|(kind, _)| *kind == "text").unwrap().1;
    assert_eq!(tested.trim_end(), expected);
}
