//! Tests the suite of tasks for agents: delegates, memory, and answers with a schema.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use wattle_agent::agents::AgentSpec;
use wattle_eval::{
    Answers, Approach, Attempt, Contender, Plan, Scorecard, Suite, Verdict, evaluate,
};

use super::place::{Place, files, recorded};

/// The folder that contains the suite.
const TEAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../eval/team");
/// The folder with recordings of plausible but wrong replies.
const WRONG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/eval/wrong-team");

fn team() -> Suite {
    Suite::load(Path::new(TEAM)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn by_hand() -> Contender {
    let (model, answers) = ("by-hand".to_owned(), Answers::Recorded);
    Contender { model, approach: Approach::Programs, answers }
}

async fn play(suite: &Suite, plan: &Plan) -> Vec<Attempt> {
    let place = Place::new(&[]);
    let done = evaluate(&place.host, suite, &[by_hand()], plan, None, &|_| {}).await.unwrap();
    assert_eq!(done.unrecorded, 0);
    done.attempts
}

#[tokio::test(flavor = "multi_thread")]
async fn the_expectations_of_the_team_accept_right_samples_alone() {
    let (place, team) = (Place::new(&[]), team());
    let mut kinds = BTreeMap::new();
    for task in &team.tasks {
        *kinds.entry(task.kind.as_str()).or_insert(0) += 1;
        assert!(task.agent.is_some(), "{} is for no agent", task.id);
        let (right, wrong) = (task.samples.right.len(), task.samples.wrong.len());
        assert!(right >= 2 && wrong >= 3, "{}: {right} right and {wrong} wrong samples", task.id);
    }
    assert_eq!(kinds, BTreeMap::from([("delegates", 4), ("memory", 3), ("typed", 3)]));
    assert_eq!(team.check(&place.host).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_task_of_the_team_passes_as_recorded() {
    let transcripts = tempfile::tempdir().unwrap();
    let plan = Plan { transcripts: Some(transcripts.path().to_owned()), ..Plan::default() };
    let attempts = play(&team(), &plan).await;
    assert_eq!(attempts.len(), 10);
    let bad: Vec<&Attempt> = attempts.iter().filter(|attempt| !attempt.passed()).collect();
    assert_eq!(bad, Vec::<&Attempt>::new());
    let of = |task: &str| attempts.iter().find(|attempt| attempt.task == task).unwrap();
    // The steps and programs of the delegates are included.
    assert_eq!((of("delegates/two_totals").steps, of("delegates/three_levels").steps), (4, 3));
    assert_eq!((of("delegates/shared_file").steps, of("delegates/shared_file").programs), (3, 2));
    assert_eq!(of("delegates/kept_draft").failures, 1, "the reader may not write");

    let read = |task: &str| {
        let path = transcripts.path().join(format!("by-hand/{task}.txt"));
        std::fs::read_to_string(path).unwrap()
    };
    let room = read("memory/room");
    assert!(room.contains("Ada is in room 214"), "the item is recalled: {room}");
    assert!(room.contains("The office is in Jena."), "the item is in the prompt: {room}");
    let no_town = read("typed/no_town");
    assert!(no_town.matches("=== assistant").count() >= 3, "it is asked again: {no_town}");

    let card = Scorecard::of(&attempts);
    let mut agents: Vec<(&str, u32)> = card
        .rows
        .iter()
        .filter(|row| row.kind.is_none())
        .map(|row| (row.agent.as_str(), row.score.passed))
        .collect();
    agents.sort_unstable();
    assert_eq!(agents, [("chief", 1), ("editor", 3), ("keeper", 3), ("registrar", 3)]);
    let table = card.to_string();
    assert!(table.starts_with("model    approach  agent      kind"), "{table}");
}

/// Every task has a recording of plausible but wrong replies. The attempt that replays it fails for
/// a specific reason.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_replies_fail_the_tasks_of_the_team() {
    let (mut team, wrong) =
        (team(), Place::new(&[("x.toml", "prompt = 'p'\nexpect.answer = {equals = 'x'}")]));
    let mut expected = BTreeMap::new();
    for path in files(Path::new(WRONG)) {
        let id = path.strip_prefix(WRONG).unwrap().with_extension("").to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let (problem, replies) = text.split_once('\n').unwrap();
        wrong.write(&format!("recordings/by-hand/{id}.txt"), replies);
        expected.insert(id, problem.to_owned());
    }
    assert_eq!(expected.len(), team.tasks.len(), "every task has its wrong replies");
    team.recordings = wrong.suite().recordings;
    for attempt in play(&team, &Plan::default()).await {
        assert_eq!(attempt.verdict, Verdict::Failed, "{attempt:?}");
        let problem = &expected[&attempt.task];
        let has = attempt.problems.iter().any(|found| found.contains(problem));
        assert!(has, "{}: {:?}", attempt.task, attempt.problems);
    }
}

#[tokio::test]
async fn an_evaluation_has_an_agent_for_the_tasks_that_name_none() {
    let ada = "prompt = 'who?'\nexpect.answer.equals = 'Ada'\n";
    let place = Place::new(&[
        ("a.toml", ada),
        ("b.toml", &format!("agent = 'own'\n{ada}")),
        ("agents/own.toml", "name = 'own'\nprompt = 'You are the own one.'"),
    ]);
    for task in ["a", "b"] {
        place.record(&format!("m/general/{task}.jsonl"), &["ToolCall::Response(\"Ada\")"]);
    }
    let contender = [recorded(Approach::Programs)];
    let results = |suite: Suite| {
        let place = &place;
        let contender = &contender;
        async move {
            let results = place.results("r.jsonl");
            let done =
                evaluate(&place.host, &suite, contender, &Plan::default(), Some(&results), &|_| {})
                    .await
                    .unwrap();
            let agents: Vec<String> = done.attempts.iter().map(|a| a.agent.clone()).collect();
            assert!(done.attempts.iter().all(Attempt::passed), "{:?}", done.attempts);
            (agents, done.reused)
        }
    };
    let whose = |agents: &[&str]| agents.iter().map(|agent| (*agent).to_owned()).collect();
    assert_eq!(results(place.suite()).await, (whose(&["", "own"]), 0));
    let mut suite = place.suite();
    suite.set_agent(Arc::new(AgentSpec::parse("name = 'given'").unwrap()));
    // An attempt by one agent does not count as an attempt by another.
    assert_eq!(results(suite).await, (whose(&["given", "own"]), 1));
    // An agent repeats its task after its prompt has changed.
    place.write("agents/own.toml", "name = 'own'\nprompt = 'You are another one.'");
    assert_eq!(results(place.suite()).await, (whose(&["", "own"]), 1));

    let baseline = [recorded(Approach::Tools)];
    let suite = place.suite();
    let refused = evaluate(&place.host, &suite, &baseline, &Plan::default(), None, &|_| {})
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("the baseline has no agents"), "{refused}");
}

#[test]
fn a_task_of_an_unknown_agent_is_an_error() {
    let place = Place::new(&[
        ("a.toml", "prompt = 'p'\nagent = 'clark'\nexpect.answer.equals = 'x'"),
        ("agents/clerk.toml", "name = 'clerk'"),
        ("agents/bad.toml", "nam = 'bad'"),
    ]);
    let errors = Suite::load(&place.path("")).unwrap_err();
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("unknown key `nam`; did you mean `name`?"), "{errors:?}");
    assert!(errors[1].contains("there is no agent `clark`\nhint: known agents are clerk"));
}
