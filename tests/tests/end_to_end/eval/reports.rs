//! Tests reports: errors on the first try, paired comparisons, transcripts, dialects, and
//! misbehaving providers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wattle_eval::{
    Answers, Approach, Attempt, Contender, ErrorReport, Plan, Side, Verdict, compare, evaluate,
    read_attempts,
};
use wattle_tests::provider::{Answer, Provider};
use wattle_tests::{Scripted, calls};

use super::attempts::client;
use super::place::{Place, live, recorded};

const ADA: &str = "prompt = 'who?'\nexpect.answer.says = 'Ada'\n";

fn program(body: &str) -> String {
    format!("ToolCall::Wat(```wat\n{body}\n```)")
}

fn answer(text: &str) -> String {
    format!("ToolCall::Response(\"{text}\")")
}

#[tokio::test]
async fn errors_at_the_first_try_have_a_class_and_the_models_own_line() {
    let place = Place::new(&[("text/a.toml", ADA), ("text/b.toml", ADA)]);
    let unknown = program("(let $s \"x\")\n  (out (str.lem $s))");
    let good = program("(out \"Ada\")");
    place.record("m/text/a.jsonl", &[&unknown, &good, &answer("Ada")]);
    let missing = program("(let $n 1)\n(out (fs.read? \"no.txt\"))");
    let catalog = "ToolCall::Catalog(\"no_such_program\", \"x\")";
    place.record("m/text/b.jsonl", &[&unknown, &good, &missing, catalog, &answer("Ada")]);
    let attempts = place.play(Approach::Programs).await;
    assert!(attempts.iter().all(Attempt::passed), "{attempts:?}");

    let found: Vec<_> = attempts[1]
        .errors
        .iter()
        .map(|error| (error.step, error.class.as_str(), error.line, error.text.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (1, "unknown-function", Some(2), "(out (str.lem $s))"),
            (2, "ENOENT", Some(2), "(out (fs.read? \"no.txt\"))"),
            (3, "refused", None, "no_such_program \"x\""),
        ]
    );
    assert_eq!((attempts[1].programs, attempts[1].valid, attempts[1].failures), (2, 1, 2));

    let report = ErrorReport::of(&attempts).remove(0);
    let classes: Vec<_> =
        report.classes.iter().map(|c| (c.class.as_str(), c.count, c.tasks)).collect();
    assert_eq!(classes, [("unknown-function", 2, 2), ("ENOENT", 1, 1), ("refused", 1, 1)]);
    let text = report.to_string();
    assert!(
        text.starts_with(
            "errors at the first try: m, programs, 3 programs\n  unknown-function: 2 in 2 \
             tasks\n    text/a, step 1, line 2: (out (str.lem $s))\n"
        ),
        "{text}"
    );
    let passed_only: Vec<_> = attempts.iter().filter(|a| a.errors.is_empty()).cloned().collect();
    assert_eq!(ErrorReport::of(&passed_only), []);
}

/// Returns an attempt by the model `m` at a task.
fn attempt(task: u32, trial: u32, passed: bool, steps: u32) -> Attempt {
    let verdict = if passed { "passed" } else { "failed" };
    serde_json::from_value(serde_json::json!({
        "task": format!("text/t{task:02}"), "model": "m", "approach": "programs", "trial": trial,
        "recorded": false, "fingerprint": format!("f{task}"), "verdict": verdict, "problems": [],
        "answer": "", "stop": null, "steps": steps, "programs": 1, "valid": u32::from(passed),
        "failures": 0, "repairs": 0, "tokens": {"input": 100, "output": 10, "estimated": false},
        "dur_ms": 1, "ended_ms": 1
    }))
    .unwrap()
}

#[test]
fn a_comparison_pairs_the_tasks_and_counts_each_once() {
    // Of 12 tasks, six fail before the change, and one fails after it. Each task is attempted
    // twice, with the same result.
    let side = |passes: fn(u32) -> bool, steps: u32| {
        (0..12)
            .flat_map(|task| (1..=2).map(move |trial| attempt(task, trial, passes(task), steps)))
            .collect::<Vec<_>>()
    };
    let before = side(|task| task >= 6, 3);
    let mut after = side(|task| task != 11, 2);
    // Attempts at a changed task, and at a task that was attempted on only one side, do not count.
    after[0].fingerprint = "changed".to_owned();
    after[1].fingerprint = "changed".to_owned();
    after.push(attempt(40, 1, true, 1));
    let programs = Approach::Programs;
    let sides = |attempts| {
        (Side { attempts, approach: programs }, Side { attempts: &after, approach: programs })
    };
    let (first, second) = sides(&before);
    let pairing = compare("m", first, second).unwrap();
    assert_eq!((pairing.tasks, pairing.left_out), (11, 3));
    let success = &pairing.measures[0];
    assert_eq!((success.name, success.better, success.worse), ("success", 5, 1));
    assert!((success.difference - 4.0 / 11.0).abs() < 1e-9, "{success:?}");
    assert!((success.p - 0.21875).abs() < 1e-9, "McNemar's exact test: {success:?}");
    let interval = success.interval.unwrap();
    assert!(interval.low < 0.2 && interval.high > 0.5, "{interval:?}");
    let steps = pairing.measures.iter().find(|measure| measure.name == "steps").unwrap();
    assert_eq!((steps.difference, steps.better, steps.worse), (-1.0, 11, 0));
    let text = pairing.to_string();
    assert!(text.starts_with("m, programs: 11 tasks on both sides, 3 left out, the same prompt\n"));
    assert!(text.contains("+36.4%"), "{text}");

    assert_eq!(compare("other", first, second), None);
    let few = compare("m", Side { attempts: &before[..6], ..first }, second).unwrap();
    assert_eq!((few.tasks, few.measures[0].interval), (2, None));
    assert!(few.to_string().contains("needs 10 tasks"));
}

#[tokio::test]
async fn a_transcript_has_the_conversation_and_masks_the_key() {
    let place = Place::new(&[("text/a.toml", ADA), ("text/b.toml", ADA)]);
    let provider = Provider::start([
        Answer::text(program("(out \"Grace\")")),
        Answer::text(answer("Grace")),
        Answer::status(401),
    ]);
    let plan = Plan { jobs: 1, transcripts: Some(place.path("transcripts")), ..Plan::default() };
    let contender = live(client(&provider));
    let done = evaluate(&place.host, &place.suite(), &[contender], &plan, None, &|_| {}).await;
    assert_eq!(done.unwrap().attempts[1].verdict, Verdict::Error);
    let read = |name| std::fs::read_to_string(place.path(name)).unwrap();
    let text = read("transcripts/m/text/a.txt");
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with("=== ")).collect();
    assert_eq!(
        heads,
        [
            "=== attempt text/a by m, programs: failed",
            "=== system",
            "=== user",
            "=== assistant",
            "=== user",
            "=== assistant"
        ]
    );
    assert!(text.contains("\nthe answer does not say \"Ada\": \"Grace\"\n=== system\n"), "{text}");
    assert!(text.contains("Execution result:\nGrace\n"), "{text}");
    let failed = read("transcripts/m/text/b.txt");
    assert!(failed.starts_with("=== attempt text/b by m, programs: error\nprovider: "), "{failed}");
    assert!(failed.contains("\n=== error\n"), "{failed}");
}

#[tokio::test]
async fn the_native_dialect_offers_functions_and_has_its_own_row() {
    let place = Place::new(&[("text/a.toml", ADA)]);
    let model = Arc::new(Scripted::calling([
        calls(&[("wat", r#"{"body":"(out \"Ada\")"}"#)]),
        calls(&[("done", r#"{"result":"Ada"}"#)]),
    ]));
    let native = Contender {
        model: "m".to_owned(),
        approach: Approach::Native,
        answers: Answers::Live { model: Arc::<Scripted>::clone(&model), record: false },
    };
    place.record("m/text/a.jsonl", &[&answer("Ada")]);
    let done = place.evaluate(&[recorded(Approach::Programs), native], None).await;
    assert!(done.attempts.iter().all(Attempt::passed), "{:?}", done.attempts);
    assert!(model.offered().iter().all(|names| names.contains(&"wat".to_owned())));
    assert_eq!((done.attempts[1].approach, done.attempts[1].programs), (Approach::Native, 1));
    assert_ne!(done.attempts[0].prompt, done.attempts[1].prompt);
    let [text, native] = [Approach::Programs, Approach::Native]
        .map(|approach| Side { attempts: &done.attempts, approach });
    assert!(
        compare("m", text, native).unwrap().to_string().starts_with("m, native after programs")
    );
}

#[tokio::test]
async fn attempts_with_another_prompt_are_repeated() {
    let place = Place::new(&[("a.toml", ADA)]);
    place.record("m/general/a.jsonl", &[&answer("Ada")]);
    let mut suite = place.suite();
    let run = async |suite: &wattle_eval::Suite| {
        let results = place.results("r.jsonl");
        let plan = Plan::default();
        let contender = [recorded(Approach::Programs)];
        evaluate(&place.host, suite, &contender, &plan, Some(&results), &|_| {}).await.unwrap()
    };
    assert_eq!(run(&suite).await.reused, 0);
    assert_eq!(run(&suite).await.reused, 1);
    suite.set_preamble("You are terse.".to_owned());
    let other = run(&suite).await;
    assert_eq!((other.reused, other.other_prompt), (0, 1));
    assert_eq!(run(&suite).await.reused, 1);
    let prompts: Vec<_> =
        read_attempts(&place.path("r.jsonl")).unwrap().into_iter().map(|a| a.prompt).collect();
    assert!(prompts.len() == 2 && prompts[0] != prompts[1], "{prompts:?}");
}

/// Each attempt ends with a verdict, whatever the provider sends. The next evaluation repeats only
/// the attempts that ended with an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_misbehaves_fails_its_own_attempts_only() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let files: Vec<(String, &str)> =
        names.iter().map(|name| (format!("text/{name}.toml"), ADA)).collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let place = Place::new(&files);
    let next = AtomicU32::new(0);
    let provider = Provider::answering(move |_| match next.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::close(),
        1 => Answer::body("this is not JSON"),
        2 => Answer::body(r#"{"choices": []}"#),
        3 => Answer::text(answer("Ada")).then_break_off(),
        4 => Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"),
        5 => Answer::status(500).with_body("\u{1b}[31mgone\u{1b}[0m"),
        6 => Answer::text("ToolCall::Response(\"Ada"),
        _ => Answer::text(answer("Ada")),
    });
    let plan = Plan { jobs: 1, ..Plan::default() };
    let results = place.results("r.jsonl");
    let contender = [live(client(&provider))];
    let suite = place.suite();
    let done =
        evaluate(&place.host, &suite, &contender, &plan, Some(&results), &|_| {}).await.unwrap();
    drop(results);
    assert_eq!(done.attempts.len(), names.len());
    let errors = done.attempts.iter().filter(|a| a.verdict == Verdict::Error).count();
    assert!((5..=7).contains(&errors), "{:?}", done.attempts);
    assert!(done.attempts[7].passed(), "the last answer is right");
    assert!(
        done.attempts.iter().all(|a| a.verdict != Verdict::Error || !a.problems.is_empty()),
        "every error says why"
    );

    // The next evaluation repeats only the attempts with errors.
    let asked = provider.requests().len();
    let results = place.results("r.jsonl");
    let again =
        evaluate(&place.host, &suite, &contender, &plan, Some(&results), &|_| {}).await.unwrap();
    assert_eq!(again.reused, names.len() - errors);
    assert_eq!(provider.requests().len() - asked, errors);
    assert!(again.attempts.iter().all(|attempt| attempt.verdict != Verdict::Error));
}

#[tokio::test]
async fn damage_to_other_files_and_keys_fails_a_task() {
    let place = Place::new(&[(
        "a.toml",
        "prompt = 'p'\nfiles = { 'x.txt' = '1', 'y.txt' = '2' }\nkv = { k = '3' }\n\
         expect.answer.says = 'Ada'\nexpect.files.'y.txt' = {}\n",
    )]);
    let damage =
        "(fs.write? \"x.txt\" \"0\") (fs.write? \"y.txt\" \"0\") (kv.del? \"k\") (out \"Ada\")";
    place.record("m/general/a.jsonl", &[&program(damage), &answer("Ada")]);
    let attempt = place.play(Approach::Programs).await.remove(0);
    assert_eq!(
        attempt.problems,
        [
            "the file `x.txt` was changed, but should not be",
            "the key `k` was changed, but should not be"
        ]
    );
}

#[tokio::test]
async fn the_programs_of_a_task_have_a_shell_on_its_files() {
    let task =
        "prompt = 'p'\nfiles = { 'x.txt' = \"b\\na\\n\" }\nexpect.answer.equals = \"a\\nb\"\n";
    let place = Place::new(&[("a.toml", task)]);
    let line = program("(out (shell.run? \"sort x.txt\"))");
    place.record("m/general/a.jsonl", &[&line, &answer("a\\nb")]);
    let attempt = place.play(Approach::Programs).await.remove(0);
    assert_eq!((attempt.failures, attempt.verdict), (0, Verdict::Passed), "{attempt:?}");
}

#[tokio::test]
async fn samples_on_which_the_expectations_are_wrong_are_reported() {
    let place = Place::new(&[(
        "a.toml",
        "prompt = 'p'\nfiles = { 'x.txt' = '1' }\nexpect.answer.number = 4\n\
         expect.files.'y.txt'.equals = 'y'\n[samples]\n\
         right = [{ answer = '4', files = { 'y.txt' = 'y' } }, 'four', '5']\n\
         wrong = ['3', '4.0', { removed = ['y.txt'] }, { files = { 'x.txt' = '2' } }]\n",
    )]);
    assert_eq!(
        place.suite().check(&place.host).await.unwrap(),
        [
            "general/a: right sample 3 fails: the answer has the number 5, expected 4",
            "general/a: wrong sample 2 passes"
        ]
    );
}
