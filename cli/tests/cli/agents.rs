//! Declared agents on the command line.

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
    let checked = wattle(&["check"]);
    assert_eq!(checked.code, 1);
    for part in [
        "the agent `bad`: there is no program `file_raed`; did you mean `file_read`",
        "worse.toml:1: unknown key `nam`; did you mean `name`?",
    ] {
        assert!(checked.stdout.contains(part), "{}", checked.stdout);
    }
    assert_eq!(wattle(&["check", "clerk"]).code, 0);
    let made = wattle(&["new", "helper"]);
    assert_eq!((made.code, made.stdout.as_str()), (0, "agents/helper.toml\n"), "{made:?}");
    assert_eq!(wattle(&["check", "helper"]).code, 0);
    assert_eq!(wattle(&["new", "helper"]).code, 2);
}

#[test]
fn a_question_of_an_agent_that_was_asked_is_answered_with_the_id_of_its_run() {
    let place = Place::new();
    place.write(
        "agents/boss.toml",
        "name = \"boss\"\nprompt = \"You are the boss.\"\ndelegates = [{ id = \"coder\" }]",
    );
    place.write("agents/coder.toml", "name = \"coder\"\nprompt = \"You are the coder.\"");
    let provider = Provider::answering(|request| {
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
    });
    let url = provider.base_url();
    let model = ["--base-url", &url, "--model", "m"];
    let run = ["run", "--agents", "agents", "--agent", "boss", "--ask", "write:*", "--park", "go"];
    let parked = place.wattle(model.iter().chain(&run)).run();
    assert_eq!(parked.code, 7, "{parked:?}");
    let call = parked.stderr.split("--approve ").nth(1).unwrap().lines().next().unwrap();
    assert!(call.ends_with("/1.1"), "{}", parked.stderr);
    let resume = ["run", "--resume", "last", "--approve", call];
    let done = place.wattle(model.iter().chain(&resume)).run();
    assert_eq!((done.code, done.stdout.as_str()), (0, "all done\n"), "{}", done.stderr);
    assert_eq!(provider.requests().len(), 4);
}
