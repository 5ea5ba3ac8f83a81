//! Tests the shipped suite: its families, its reference programs, and its expectations.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wattle_eval::{
    Answers, Approach, Attempt, Contender, Plan, Scorecard, Suite, Verdict, evaluate,
};

use super::place::Place;

/// The folder that contains the suite.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../eval/tasks");
/// The folder with recordings of plausible but wrong replies.
const WRONG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/eval/wrong");

/// Tasks with heavy computation. Their programs have at most 25 lines.
const SHORT: [&str; 4] =
    ["algorithms/edit_distance", "algorithms/life", "algorithms/queens", "algorithms/sieve"];

fn suite() -> Suite {
    Suite::load(Path::new(SHIPPED)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn by_hand(approach: Approach) -> Contender {
    Contender { model: "by-hand".to_owned(), approach, answers: Answers::Recorded }
}

#[test]
fn the_suite_has_a_hundred_tasks_in_nine_families() {
    let mut families = BTreeMap::new();
    for task in suite().tasks {
        *families.entry(task.kind).or_insert(0) += 1;
    }
    let families: Vec<_> = families.iter().map(|(kind, tasks)| (kind.as_str(), *tasks)).collect();
    assert_eq!(
        families,
        [
            ("algorithms", 20),
            ("chains", 10),
            ("data", 4),
            ("files", 20),
            ("hostile", 15),
            ("state", 9),
            ("text", 6),
            ("typed", 10),
            ("web", 6)
        ]
    );
}

/// Each task has at least two sample results that must pass and three that must fail.
#[tokio::test(flavor = "multi_thread")]
async fn expectations_accept_every_right_sample_and_no_wrong_one() {
    let (place, suite) = (Place::new(&[]), suite());
    for task in &suite.tasks {
        let (right, wrong) = (task.samples.right.len(), task.samples.wrong.len());
        assert!(right >= 2 && wrong >= 3, "{}: {right} right and {wrong} wrong samples", task.id);
    }
    assert_eq!(suite.check(&place.host).await.unwrap(), Vec::<String>::new());
}

/// The recorded programs are complete solutions: the output of the last one is the answer. Tasks
/// are exempt if they need no program, call a catalog program, or need a model between their steps.
#[tokio::test(flavor = "multi_thread")]
async fn reference_programs_print_the_right_answer() {
    let (place, suite) = (Place::new(&[]), suite());
    let (mut without, mut wrong) = (Vec::new(), Vec::new());
    for task in &suite.tasks {
        let path = format!("{SHIPPED}/recordings/by-hand/{}.txt", task.id);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"));
        let Some((_, program)) = text.rsplit_once("```wat\n") else {
            without.push(task.id.as_str());
            continue;
        };
        let (program, args) = program.split_once("\n```").unwrap();
        let (args, _) = args.split_once(")\n").unwrap();
        let args: Vec<String> =
            serde_json::from_str(&format!("[{}]", args.trim_start_matches(','))).unwrap();
        let lines = program.lines().count();
        assert!(lines <= 25 || !SHORT.contains(&task.id.as_str()), "{}: {lines} lines", task.id);
        let scene = wattle_agent::host::ExampleWorld::new(&task.fixtures).await.unwrap();
        let runtime = place.host.runtime();
        let grants = Arc::new(scene.grants(scene.access(&place.host)));
        let program = runtime.prepare(program).await.unwrap_or_else(|why| panic!("{path}: {why}"));
        let outcome = runtime.run(&program, &grants, args).await.unwrap();
        let printed = outcome.texts().join("\n");
        let problems = task.problems(&place.host, &scene, &printed).await.unwrap();
        if !problems.is_empty() {
            wrong.push(format!("{}: {problems:?}, {:?}", task.id, outcome.exit));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let known = ["chains/riddles", "chains/web_riddles", "state/leap_days", "web/save_page"];
    assert_eq!(without, known);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_task_passes_both_ways_as_recorded() {
    let (place, suite) = (Place::new(&[]), suite());
    let contenders = [by_hand(Approach::Programs), by_hand(Approach::Tools)];
    let done =
        evaluate(&place.host, &suite, &contenders, &Plan::default(), None, &|_| {}).await.unwrap();
    let of = |approach| done.attempts.iter().filter(move |attempt| attempt.approach == approach);
    // Only these attempts may contain a failed call, because the service in their task is busy.
    let busy = |attempt: &Attempt| {
        attempt.approach == Approach::Tools && attempt.task == "hostile/try_again"
    };
    let bad = done
        .attempts
        .iter()
        .filter(|attempt| !attempt.passed() || (attempt.failures > 0 && !busy(attempt)));
    assert_eq!(bad.collect::<Vec<_>>(), Vec::<&Attempt>::new());
    assert_eq!(of(Approach::Programs).count(), suite.tasks.len(), "every task has its recording");
    assert!(of(Approach::Tools).count() >= 10, "too few tasks for the baseline");

    let card = Scorecard::of(&done.attempts);
    let all = card.rows.iter().find(|row| row.kind.is_none()).unwrap();
    assert!(
        all.score.repairs >= 3 && all.score.valid < all.score.programs,
        "some programs are repaired: {:?}",
        all.score
    );
    assert!(
        of(Approach::Programs).any(|attempt| attempt.steps == 0),
        "no task passed without a program"
    );
    assert!(
        of(Approach::Programs).any(|attempt| attempt.steps > attempt.programs),
        "some call the catalog"
    );
    assert!(of(Approach::Programs).any(|attempt| attempt.steps > 1), "no task took several steps");
}

/// Every task fails if the model makes no calls and returns a generic answer.
#[tokio::test(flavor = "multi_thread")]
async fn no_task_passes_without_the_right_answer_or_the_work() {
    let (place, suite) = (Place::new(&[]), suite());
    for answer in
        ["Done.", "I have carried out the task as you asked; everything is in place.", "0", "null"]
    {
        for task in &suite.tasks {
            let scene = wattle_agent::host::ExampleWorld::new(&task.fixtures).await.unwrap();
            let problems = task.problems(&place.host, &scene, answer).await.unwrap();
            assert!(!problems.is_empty(), "{} passes with {answer:?}", task.id);
        }
    }
}

/// Plausible but wrong replies to tasks of five kinds fail for the reasons stated in the files that
/// contain the replies.
#[tokio::test(flavor = "multi_thread")]
async fn plausible_replies_that_are_wrong_fail() {
    let place = Place::new(&[]);
    let mut suite = suite();
    let wrong = Place::new(&[]);
    let mut kinds = std::collections::BTreeSet::new();
    let mut expected = Vec::new();
    for path in super::place::files(Path::new(WRONG)) {
        let id = path.strip_prefix(WRONG).unwrap().with_extension("").to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let (problem, replies) = text.split_once('\n').unwrap();
        let replies: Vec<&str> =
            replies.split("\n=== reply\n").map(|r| r.trim_start_matches("=== reply\n")).collect();
        wrong.record(&format!("by-hand/{id}.jsonl"), &replies);
        kinds.insert(id.split('/').next().unwrap().to_owned());
        expected.push((id, problem.to_owned()));
    }
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    suite.tasks.retain(|task| expected.iter().any(|(id, _)| *id == task.id));
    assert_eq!(suite.tasks.len(), expected.len(), "every wrong answer has its task");
    wrong.write("x.toml", "prompt = 'p'\nexpect.answer.equals = 'x'");
    suite.recordings = wrong.suite().recordings;
    let done = evaluate(
        &place.host,
        &suite,
        &[by_hand(Approach::Programs)],
        &Plan::default(),
        None,
        &|_| {},
    )
    .await
    .unwrap();
    for attempt in &done.attempts {
        let (_, problem) = expected.iter().find(|(id, _)| *id == attempt.task).unwrap();
        assert_eq!(attempt.verdict, Verdict::Failed, "{attempt:?}");
        assert!(
            attempt.problems.iter().any(|p| p.contains(problem)),
            "{}: {:?}",
            attempt.task,
            attempt.problems
        );
    }
}
