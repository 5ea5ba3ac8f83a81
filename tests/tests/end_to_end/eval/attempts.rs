//! Tests attempts: their runs, verdicts and results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wattle_agent::model::Timeouts;
use wattle_eval::{
    Answers, Approach, Attempt, Earlier, Plan, Results, Scorecard, Verdict, evaluate,
};
use wattle_tests::Scripted;
use wattle_tests::provider::{Answer, Provider};

use super::place::{Place, live, recorded};

const ADA: &str = "prompt = 'who?'\nexpect.answer.equals = 'Ada'\n";
const SAYS_ADA: &str = "ToolCall::Response(\"Ada\")";

fn program(body: &str) -> String {
    format!("ToolCall::Wat(```wat\n{body}\n```)")
}

#[tokio::test]
async fn expectations_check_the_answer_files_state_and_a_program() {
    let place = Place::new(&[(
        "a.toml",
        r#"
prompt = "copy"
files = { "in.txt" = "one" }
kv = { n = "1" }
[expect]
files = { "out.txt" = { equals = "one" }, "in.txt" = { absent = true } }
kv = { n = { number = 2 }, m = { absent = true } }
program = '(local $e i32) (local $t i32) (call $fs.read "out.txt") (local.set $e) (local.set $t) (resv $t) (local.get $e)'
"#,
    )]);
    let write = program(
        "(call $fs.write \"out.txt\" \"one\") (drop) (call $fs.remove \"in.txt\") (drop) (call \
         $kv.set \"n\" \"2\") (drop) (i32.const 0)",
    );
    place.record("m/general/a.jsonl", &[&write, "ToolCall::Response(\"done\")"]);
    let attempt = place.play(Approach::Programs).await.remove(0);
    assert_eq!(
        (attempt.verdict, attempt.steps, attempt.programs, attempt.valid),
        (Verdict::Failed, 1, 1, 1)
    );
    assert_eq!(attempt.problems, ["one"], "only the program has something to say");

    place.record("m/general/a.jsonl", &["ToolCall::Response(\"done\")"]);
    let problems = place.play(Approach::Programs).await.remove(0).problems;
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[3].starts_with("the expectation's program trapped: "), "{problems:?}");
}

#[tokio::test]
async fn programs_that_do_not_compile_are_counted_and_so_are_their_repairs() {
    let place = Place::new(&[("a.toml", ADA)]);
    let (broken, good) =
        (program("(call $str.lem \"x\")"), program("(resv \"Ada\") (i32.const 0)"));
    place.record("m/general/a.jsonl", &[&good, &broken, "", &good, SAYS_ADA]);
    let attempt = place.play(Approach::Programs).await.remove(0);
    assert_eq!(attempt.verdict, Verdict::Passed, "{:?}", attempt.problems);
    // The empty answer also leads to another request, so there are two repairs.
    assert_eq!((attempt.steps, attempt.programs, attempt.valid, attempt.repairs), (2, 2, 1, 2));
    assert!(attempt.tokens.estimated && attempt.tokens.input > 1_000 && attempt.tokens.output > 10);
}

#[tokio::test]
async fn attempts_end_at_their_budget() {
    let place = Place::new(&[
        ("steps.toml", &format!("{ADA}[budget]\nsteps = 1\n")),
        ("time.toml", &format!("{ADA}[budget]\ntimeout_ms = 300\n")),
        ("tokens.toml", &format!("{ADA}[budget]\ntokens = 10\n")),
    ]);
    let (good, waits) = (
        program("(resv \"Ada\") (i32.const 0)"),
        program("(call $sys.sleep (i32.const 60000)) (i32.const 0)"),
    );
    place.record("m/general/steps.jsonl", &[&good, "It is not known."]);
    place.record("m/general/time.jsonl", &[&waits, SAYS_ADA]);
    place.record("m/general/tokens.jsonl", &[SAYS_ADA]);
    let attempts = place.play(Approach::Programs).await;
    assert!(attempts.iter().all(|attempt| attempt.verdict == Verdict::Failed), "{attempts:?}");
    assert_eq!(attempts[0].problems, ["the answer is \"It is not known.\", expected \"Ada\""]);
    assert_eq!(attempts[1].problems, ["it took longer than the limit of 300 ms"]);
    let tokens = attempts[2].tokens.total();
    assert_eq!(attempts[2].problems, [format!("it used {tokens} tokens, and the limit is 10")]);
}

#[tokio::test]
async fn a_provider_failure_fails_no_task_and_is_retried_by_the_next_run() {
    let place = Place::new(&[("a.toml", ADA), ("b.toml", ADA)]);
    let refuses = || Answer::status(401);
    let provider = Provider::start([Answer::text(SAYS_ADA), refuses()]);
    let results = place.results("kept/results.jsonl");
    let plan = Plan { jobs: 1, ..Plan::default() };
    let contender = [live(client(&provider))];
    let done = evaluate(&place.host, &place.suite(), &contender, &plan, Some(&results), &|_| {})
        .await
        .unwrap();
    assert_eq!(
        done.attempts.iter().map(|a| a.verdict).collect::<Vec<_>>(),
        [Verdict::Passed, Verdict::Error]
    );
    assert!(
        done.attempts[1].problems[0].starts_with("provider: the provider requires a key (401)")
    );
    let card = Scorecard::of(&done.attempts);
    assert_eq!((card.rows[0].score.attempts, card.rows[0].score.errors), (1, 1));
    assert_eq!(card.rows[0].score.success, Some(1.0));

    drop(results);
    provider.push(Answer::text(SAYS_ADA));
    let again = place.evaluate(&contender, Some(&place.results("kept/results.jsonl"))).await;
    assert_eq!((again.reused, provider.requests().len()), (1, 3));
    assert!(again.attempts.iter().all(Attempt::passed));
}

pub(crate) fn client(provider: &Provider) -> wattle_agent::model::RemoteModel {
    use wattle_agent::model::{EndpointSettings, RemoteModel, resolve};
    use wattle_capability::egress::{Egress, Policy};
    let base = provider.base_url();
    let settings =
        EndpointSettings { base_url: Some(&base), model: Some("m"), ..Default::default() };
    let timeouts = Timeouts {
        retry_for: Duration::ZERO,
        backoff: Duration::from_millis(1),
        ..Timeouts::default()
    };
    RemoteModel::new(
        resolve(&settings, |_| None).unwrap(),
        &Egress::new(Policy::default()),
        timeouts,
    )
    .unwrap()
}

#[tokio::test]
async fn known_attempts_are_reused_and_an_incomplete_line_is_repeated() {
    let place = Place::new(&[("a.toml", ADA), ("b.toml", ADA)]);
    for task in ["a", "b"] {
        place.record(&format!("m/general/{task}.jsonl"), &[SAYS_ADA]);
    }
    let contender = [recorded(Approach::Programs)];
    let first = place.evaluate(&contender, Some(&place.results("r.jsonl"))).await;
    assert_eq!((first.reused, first.attempts.len()), (0, 2));

    let text = std::fs::read_to_string(place.path("r.jsonl")).unwrap();
    place.write("r.jsonl", &text[..text.len() - 10]);
    let second = place.evaluate(&contender, Some(&place.results("r.jsonl"))).await;
    assert_eq!((second.reused, second.attempts.len()), (1, 2));
    assert_eq!(std::fs::read_to_string(place.path("r.jsonl")).unwrap().lines().count(), 2);
    assert_eq!(place.evaluate(&contender, Some(&place.results("r.jsonl"))).await.reused, 2);

    place.write("b.toml", &format!("{ADA}# a comment\n[samples]\nright = ['Ada']\n"));
    assert_eq!(place.evaluate(&contender, Some(&place.results("r.jsonl"))).await.reused, 2);
    place.write("b.toml", &ADA.replace("who?", "who is it?"));
    assert_eq!(place.evaluate(&contender, Some(&place.results("r.jsonl"))).await.reused, 1);
    let fresh = Results::open(&place.path("r.jsonl"), Earlier::Discard).unwrap();
    assert_eq!(place.evaluate(&contender, Some(&fresh)).await.reused, 0);
    assert_eq!(std::fs::read_to_string(place.path("r.jsonl")).unwrap().lines().count(), 2);
}

#[test]
fn an_invalid_results_file_is_an_error() {
    let place = Place::new(&[("r.jsonl", "{\"task\":1}\n")]);
    let error = Results::open(&place.path("r.jsonl"), Earlier::Resume).unwrap_err().to_string();
    assert!(
        error.contains("r.jsonl`, line 1: the line is not an attempt: ")
            && error.contains("`--fresh`"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(place.path("r.jsonl")).unwrap(),
        "{\"task\":1}\n",
        "the file is unchanged"
    );
    let folder = Results::open(&place.path(""), Earlier::Refuse).unwrap();
    assert_eq!(folder.path(), place.path("results.jsonl"));
}

#[tokio::test]
async fn a_conversation_that_grows_too_long_fails_its_attempt() {
    let place = Place::new(&[("a.toml", ADA)]);
    let body = r#"{"error":{"message":"maximum context length is 4096 tokens"}}"#;
    let provider = Provider::start([Answer::status(400).with_body(body)]);
    let attempt = place.evaluate(&[live(client(&provider))], None).await.attempts.remove(0);
    assert_eq!(attempt.verdict, Verdict::Failed);
    assert!(
        attempt.problems[0].starts_with("the conversation exceeds the context window of model `m`"),
        "{:?}",
        attempt.problems
    );
}

#[tokio::test]
async fn cancelling_keeps_finished_attempts() {
    let place = Place::new(&[("a.toml", ADA), ("b.toml", ADA), ("c.toml", ADA)]);
    let plan = Plan { jobs: 1, ..Plan::default() };
    let cancel = plan.cancel.clone();
    // The model does not respond after its first answer.
    let model = live(Scripted::new(&[SAYS_ADA]));
    let results = place.results("r.jsonl");
    let made = AtomicU32::new(0);
    let on_attempt = |_: &Attempt| {
        made.fetch_add(1, Ordering::Relaxed);
        let cancel = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        });
    };
    let done = evaluate(&place.host, &place.suite(), &[model], &plan, Some(&results), &on_attempt)
        .await
        .unwrap();
    assert_eq!((done.attempts.len(), done.cancelled, made.load(Ordering::Relaxed)), (1, 2, 1));
    assert_eq!(std::fs::read_to_string(place.path("r.jsonl")).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_recording_of_a_model_can_be_replayed() {
    let place = Place::new(&[("text/a.toml", ADA), ("text/b.toml", ADA)]);
    let good = program("(resv \"Ada\") (i32.const 0)");
    let provider = Provider::start(
        [good.as_str(), SAYS_ADA, "no"].map(Answer::text).into_iter().chain([Answer::status(401)]),
    );
    let answers = Answers::Live { model: Arc::new(client(&provider)), record: true };
    let contender =
        wattle_eval::Contender { model: "a/b".to_owned(), approach: Approach::Programs, answers };
    let plan = Plan { jobs: 1, repeat: 2, ..Plan::default() };
    let live = evaluate(
        &place.host,
        &place.suite(),
        std::slice::from_ref(&contender),
        &plan,
        None,
        &|_| {},
    )
    .await
    .unwrap();
    let verdicts = |attempts: &[Attempt]| attempts.iter().map(|a| a.verdict).collect::<Vec<_>>();
    assert_eq!(
        verdicts(&live.attempts),
        [Verdict::Passed, Verdict::Failed, Verdict::Error, Verdict::Error]
    );
    // An attempt that ended with an error is not recorded.
    let recordings = super::place::files(&place.path("recordings"));
    let names: Vec<_> = recordings
        .iter()
        .map(|path| path.strip_prefix(place.path("")).unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names, ["recordings/a%2fb/text/a.2.jsonl", "recordings/a%2fb/text/a.jsonl"]);

    assert_eq!(place.suite().recordings.models().unwrap(), ["a/b"]);
    let played = wattle_eval::Contender { answers: Answers::Recorded, ..contender };
    let done =
        evaluate(&place.host, &place.suite(), &[played], &plan, None, &|_| {}).await.unwrap();
    assert_eq!(verdicts(&done.attempts), [Verdict::Passed, Verdict::Failed]);
    assert_eq!(done.unrecorded, 2);
    assert_eq!(done.attempts[0].tokens, live.attempts[0].tokens);
    assert!(done.attempts[0].recorded && !done.attempts[0].tokens.estimated);
}

#[tokio::test]
async fn a_broken_or_short_recording_is_an_error_and_not_a_failure_of_the_model() {
    let place = Place::new(&[("a.toml", ADA), ("b.toml", ADA), ("c.toml", ADA)]);
    place.record("m/general/a.jsonl", &[&program("(resv \"Ada\") (i32.const 0)")]);
    place.write("recordings/m/general/b.jsonl", "nonsense\n");
    let done = place.evaluate(&[recorded(Approach::Programs)], None).await;
    assert!(done.attempts.iter().all(|attempt| attempt.verdict == Verdict::Error));
    assert!(
        done.attempts[0].problems[0].starts_with("recording: the recording has ended"),
        "{:?}",
        done.attempts[0]
    );
    assert!(done.attempts[1].problems[0].contains("b.jsonl"), "{:?}", done.attempts[1].problems);
    assert_eq!(done.unrecorded, 1);
}
