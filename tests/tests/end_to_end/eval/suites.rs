//! Tests the loading of suites.

use wattle_eval::Suite;

use super::place::Place;

#[test]
fn tasks_are_read_from_the_folder_and_its_kinds() {
    let place = Place::new(&[
        ("eval.toml", "about = 'sums'\ntemperature = 0\n[budget]\nsteps = 3\ntimeout_ms = 1000\n"),
        ("one.toml", "prompt = 'p'\nexpect.answer.equals = 'a'\n"),
        (
            "text/two.toml",
            "prompt = ' p '\nexpect.files.'a.txt'.absent = true\n[budget]\nsteps = 5\ntokens = 9\n",
        ),
        ("text/notes.md", "not a task"),
        ("recordings/m/text/two.toml", "not a task"),
        (".hidden/x.toml", "not a task"),
    ]);
    let suite = place.suite();
    assert_eq!(suite.about, "sums");
    let tasks: Vec<_> =
        suite.tasks.iter().map(|t| (t.id.as_str(), t.kind.as_str(), t.prompt.as_str())).collect();
    assert_eq!(tasks, [("general/one", "general", "p"), ("text/two", "text", "p")]);
    let budgets: Vec<_> = suite
        .tasks
        .iter()
        .map(|t| (t.budget.steps, t.budget.tokens, t.budget.time.as_millis()))
        .collect();
    assert_eq!(budgets, [(3, None, 1000), (5, Some(9), 1000)]);
}

#[test]
fn a_fingerprint_changes_with_the_task_and_the_suites_settings() {
    let place = Place::new(&[("a.toml", "prompt = 'p'\nexpect.answer.equals = 'a'\n")]);
    let first = place.suite().tasks[0].fingerprint.clone();
    assert_eq!(place.suite().tasks[0].fingerprint, first);
    place.write(
        "a.toml",
        "# a comment\nprompt = 'p'\nexpect.answer.equals = 'a'\nsamples.right = ['a']\n",
    );
    assert_eq!(place.suite().tasks[0].fingerprint, first, "samples and comments do not count");
    place.write("eval.toml", "temperature = 1");
    let second = place.suite().tasks[0].fingerprint.clone();
    place.write("a.toml", "prompt = 'p'\nexpect.answer.equals = 'b'\n");
    let third = place.suite().tasks[0].fingerprint.clone();
    assert!(first != second && second != third);
}

/// Returns the errors that are reported when a suite fails to load, without the name of the suite's
/// folder.
fn errors(files: &[(&str, &str)]) -> Vec<String> {
    let place = Place::new(files);
    let folder = place.path("").display().to_string();
    let errors = Suite::load(&place.path("")).expect_err("the suite is wrong");
    let mut errors: Vec<String> =
        errors.iter().map(|error| error.to_string().replace(&folder, "")).collect();
    errors.sort();
    errors
}

#[test]
fn an_error_in_a_task_is_reported_with_its_location() {
    let good = "expect.answer.equals = 'a'\n";
    let task = |text: &str| errors(&[("x.toml", text)]).remove(0);
    for (text, expected) in [
        (
            "promt = 'p'\n",
            "failed to load `x.toml`, line 1: unknown key `promt`\nhint: the nearest known key is \
             `prompt`; known keys are prompt, agent, now, files, kv, memory, http, ai, expect, \
             budget, samples",
        ),
        (
            "prompt = 'p'\n[expect.answer]\nequal = 'x'\n",
            "failed to load `x.toml`, line 3: unknown key `equal`\nhint: the nearest known key is \
             `equals`; known keys are equals, contains, lacks, matches, says, among, list, set, \
             csv, number, within, json, document, absent",
        ),
        (
            "prompt = 'p'\n",
            "failed to load `x.toml`: the task has no expectation, so every answer would \
             pass\nhint: add `expect.answer`, `expect.files`, `expect.kv`, `expect.memory` \
             or `expect.program`",
        ),
        (
            "prompt = ' '\nexpect.answer.equals = 'a'\n",
            "failed to load `x.toml`: the prompt is empty",
        ),
        ("expect.answer.equals = 'a'\n", "failed to load `x.toml`, line 1: missing field `prompt`"),
        (
            "prompt = 'p'\nexpect.answer.within = 1\n",
            "failed to load `x.toml`: the task has no expectation",
        ),
        (
            "prompt = 'p'\n\nexpect.answer.matches = '('\n",
            "failed to load `x.toml`, line 3: invalid regular expression",
        ),
        ("prompt = 'p\n", "failed to load `x.toml`, line 1: "),
    ] {
        let found = task(text);
        assert!(found.starts_with(expected), "{found}\n--- expected\n{expected}");
    }
    for (http, expected) in [
        ("url = 'a.b'", "line 4: \"a.b\" is not an absolute http or https URL"),
        (
            "url = 'https://a.b/'\nstatus = 99",
            "line 4: 99 is not an HTTP status between 100 and 599",
        ),
        ("url = 'https://a.b/'\nmethod = 'G T'", "line 4: \"G T\" is not an HTTP method"),
        (
            "url = 'https://a.b/'\nbdy = ''",
            "unknown key `bdy`\nhint: the nearest known key is `body`",
        ),
    ] {
        let found = task(&format!("prompt = 'p'\n{good}\n[[http]]\n{http}\n"));
        assert!(found.contains(expected), "{found}\n--- expected\n{expected}");
    }
}

#[test]
fn all_errors_of_a_suite_are_reported() {
    let found = errors(&[
        ("eval.toml", ""),
        ("a.toml", "prompt = 1"),
        ("b.toml", "x = 1"),
        ("bad name/c.toml", "prompt = 'p'\nexpect.answer.equals = ''"),
        ("good.toml", "prompt = 'p'\nexpect.answer.equals = ''"),
    ]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[2].contains("the names of tasks and kinds are letters, digits"), "{}", found[2]);
    assert!(
        errors(&[("notes.md", "")])[0]
            .contains("the folder contains no task\nhint: a task is a file `NAME.toml`")
    );
    assert!(
        errors(&[("eval.toml", "temperature = 3")])[0]
            .contains("the temperature is not between 0 and 2")
    );
    assert!(errors(&[("eval.toml", "[budgets]")])[0].contains("the nearest known key is `budget`"));
}
