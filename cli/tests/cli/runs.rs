//! Tests of the commands for recorded runs, and of `last` in place of an id.

use wattle_tests::provider::{Answer, Provider, Recorded};

use crate::durable::{command, done, wat};
use crate::place::Place;

/// Starts an endpoint whose model acts once and then answers.
fn acts_once() -> Provider {
    Provider::answering(|request: &Recorded| {
        let has_acted =
            request.messages().last().is_some_and(|text| text.starts_with("[Observation"));
        Answer::text(if has_acted { done() } else { wat("(ret \"21\")") })
    })
}

#[test]
fn the_runs_are_listed_with_their_outcomes_and_shown_with_their_answers() {
    let (place, provider) = (Place::new(), acts_once());
    command(&place, &provider, &["count the words"]).run().code(0);
    command(&place, &provider, &["count again", "--max-steps", "1"]).run().code(5);
    let of_store =
        |args: &[&str]| place.wattle(args.iter().chain(&["--store", "runs.db"])).run().code(0);
    let listed = of_store(&["runs"]).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    for (line, words) in lines.iter().zip([["stopped", "count again"], ["done", "count the words"]])
    {
        assert!(line.contains(" s ago ") && words.iter().all(|word| line.contains(word)), "{line}");
    }
    assert_eq!(lines.len(), 2, "{listed}");
    let runs = of_store(&["runs", "--json"]).json_lines().remove(0);
    assert_eq!((&runs[0]["outcome"], &runs[1]["outcome"]), (&"stopped".into(), &"done".into()));

    let first = runs[1]["run"].as_str().unwrap();
    let shown = of_store(&["show", first]).stdout;
    for part in ["answered · 1 step", "user: count the words", "(ret \"21\")", "\n\nall done\n"] {
        assert!(shown.contains(part), "{part:?} is missing in {shown}");
    }
    assert_eq!(shown.matches("all done").count(), 1, "{shown}");
    assert!(of_store(&["show", "last"]).stdout.contains("user: count again"));
    let document = of_store(&["show", first, "--json"]).json_lines().remove(0);
    assert_eq!(document["answer"], "all done");
    assert!(document["messages"].as_array().unwrap().len() > 2, "{document}");
}

#[test]
fn the_session_used_last_is_continued() {
    let (place, provider) = (Place::new(), Provider::answering(|_| Answer::text(done())));
    let run = |args: &[&str]| command(&place, &provider, args).run();
    run(&["hello", "--continue"]).code(2).reports(&["the store has no session yet"]);
    run(&["my name is Ada", "--session", "one"]).code(0);
    run(&["my name is Bo", "--session", "two"]).code(0);
    for again in [&["who?", "-c"][..], &["who?", "--session", "last"]] {
        run(again).code(0);
        let messages = provider.requests().pop().unwrap().messages();
        assert!(messages.iter().any(|text| text == "my name is Bo"), "{messages:?}");
    }
    run(&["who?", "-c", "--session", "one"]).code(2);
    let of_store = |args: &[&str]| {
        place.wattle(args.iter().chain(&["--store", "runs.db"])).run().code(0).stdout
    };
    assert!(of_store(&["session", "show", "last"]).contains("my name is Bo"));
    of_store(&["session", "rm", "last"]);
    assert!(of_store(&["session", "show", "last"]).contains("my name is Ada"));
}

#[test]
fn a_quiet_run_shows_the_answer_alone() {
    let (place, provider) = (Place::new(), acts_once());
    std::fs::create_dir(place.work().join("below")).unwrap();
    let url = provider.base_url();
    let args = ["run", "count", "-q", "-m", "m", "-C", "below", "--base-url", &url];
    let quiet = place.wattle(args).run().code(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("all done\n", ""));
}
