//! Tests of a tree of agents whose server is killed repeatedly.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_tests::provider::{Answer, Provider, Recorded};

use super::{Served, wattle};

/// Maximum number of times that the server is killed.
const KILLS: u32 = 30;

/// The answer of the root agent.
const ANSWER: &str = "lead a: wa1+wa2+wa3+wa4; lead b: wb1+wb2+wb3+wb4; lead c: \
                      wc1+wc2+wc3+wc4; lead d: wd1+wd2+wd3+wd4";

/// Writes the agents' files: `boss` may delegate to `lead`, and `lead` may delegate to `worker`.
fn agents(home: &Path) {
    let folder = home.join("agents");
    std::fs::create_dir(&folder).unwrap();
    for (name, delegates) in
        [("boss", "[{ id = \"lead\" }]"), ("lead", "[{ id = \"worker\" }]"), ("worker", "[]")]
    {
        let text = format!(
            "name = \"{name}\"\nprompt = \"You are the {name}.\"\ndelegates = {delegates}\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

fn wat(program: &str) -> String {
    format!("ToolCall::Wat(```wat\n{program}\n```)")
}

fn respond(text: &str) -> String {
    format!("ToolCall::Response(\"\"\"{text}\"\"\")")
}

/// Returns the model's answer to a request of one of the agents. The answer depends only on the
/// conversation.
fn answer(request: &Recorded) -> Answer {
    let messages = request.messages();
    let (prompt, last) = (&messages[0], messages.last().unwrap());
    let task: String = messages[1].chars().take_while(|c| c.is_alphanumeric()).collect();
    let observed =
        last.split("Execution result:\n").nth(1).map(|text| text.lines().next().unwrap());
    let ask = |agent: &str, items: &str, between: &str| {
        wat(&format!(
            "(ret (str.join (par.map \"ask_{agent}\" (str.split \"{items}\" \",\")) \"{between}\"))"
        ))
    };
    let text = match (prompt, observed) {
        (prompt, None) if prompt.starts_with("You are the boss.") => ask("lead", "a,b,c,d", "; "),
        (prompt, None) if prompt.starts_with("You are the lead.") => {
            let items: Vec<String> = (1..=4).map(|n| format!("{task}{n}")).collect();
            ask("worker", &items.join(","), "+")
        }
        (prompt, Some(found)) if prompt.starts_with("You are the lead.") => {
            respond(&format!("lead {task}: {found}"))
        }
        (prompt, None) if prompt.starts_with("You are the worker.") => {
            wat(&format!("(fs.write \"{task}.txt\" \"{task}\")\n(ret \"written\")"))
        }
        (prompt, Some(_)) if prompt.starts_with("You are the worker.") => {
            respond(&format!("w{task}"))
        }
        (_, Some(found)) => respond(found),
        (prompt, None) => panic!("unexpected request: {prompt}"),
    };
    std::thread::sleep(Duration::from_millis(30));
    Answer::text(text)
}

fn api(served: &Served, token: &str, line: &str, body: &str) -> Option<Json> {
    let answer = served.send(token, line, body).ok()?;
    serde_json::from_str(answer.split("\r\n\r\n").nth(1)?).ok()
}

fn serve(home: &Path, provider: &Provider) -> Served {
    Served::start_with(home, provider, &["--agents", "agents"])
}

fn start(served: &Served, token: &str) -> String {
    let body = json!({"prompt": "go", "agent": "boss", "session_id": "s"}).to_string();
    let started = api(served, token, "POST /api/run", &body).unwrap();
    started["id"].as_str().unwrap().to_owned()
}

/// Waits until the run has ended and returns its final state. Releases the run each time it is
/// parked because its server was killed twice before the run made progress.
fn ended(served: &Served, token: &str, run: &str) -> Json {
    for _ in 0..400 {
        let view = api(served, token, &format!("GET /api/run/{run}"), "").unwrap();
        match view["status"].as_str().unwrap() {
            "running" | "queued" => {}
            "parked" => release(served, token, run),
            _ => return view,
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let children = api(served, token, &format!("GET /api/runs?tree_of={run}&limit=100"), "");
    panic!("the run {run} does not end: {children:#?}");
}

/// Releases a parked run. The server rejects the request if it has already released the run but has
/// not resumed it yet.
fn release(served: &Served, token: &str, run: &str) {
    api(served, token, &format!("POST /api/run/{run}/release"), "").unwrap();
}

#[test]
fn a_tree_whose_server_is_killed_at_random_moments_ends_as_it_would_have() {
    let (calm, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    [calm.path(), home.path()].into_iter().for_each(agents);
    let provider = Provider::answering(answer);
    let undisturbed = serve(calm.path(), &provider);
    let token = undisturbed.token.clone().unwrap();
    let expected = ended(&undisturbed, &token, &start(&undisturbed, &token));
    assert_eq!(expected["result"], ANSWER, "{expected}");
    drop(undisturbed);

    let mut served = serve(home.path(), &provider);
    let token = served.token.clone().unwrap();
    let run = start(&served, &token);
    let mut random = fastrand::Rng::with_seed(7);
    let mut kills = 0;
    while kills < KILLS {
        std::thread::sleep(Duration::from_millis(random.u64(20..350)));
        let view = api(&served, &token, &format!("GET /api/run/{run}"), "").unwrap();
        match view["status"].as_str().unwrap() {
            "running" | "queued" => {}
            "parked" => release(&served, &token, &run),
            _ => break,
        }
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        kills += 1;
        served = serve(home.path(), &provider);
    }
    let view = ended(&served, &token, &run);
    assert!(kills > 3, "the run was killed {kills} times");
    assert_eq!((&view["status"], &view["result"]), (&json!("done"), &json!(ANSWER)), "{view}");
    let children = api(&served, &token, &format!("GET /api/runs?tree_of={run}&limit=100"), "");
    let children = children.unwrap()["runs"].as_array().unwrap().clone();
    assert_eq!(children.len(), 4 + 16, "an agent was asked twice: {children:#?}");
    let used: Vec<(&Json, &Json, &Json)> = children
        .iter()
        .map(|child| (&child["agent"], &child["prompt"], &child["usage"]["completion"]))
        .collect();
    // Only completion tokens are compared. The requests differ, because they show the files that
    // exist when a run begins.
    let written = |view: &Json| view["usage"]["completion"].clone();
    assert_eq!(written(&view), written(&expected), "each answer counts once: {used:?}");
    assert!(children.iter().all(|child| child["status"] == "done"), "{children:?}");
    let files = api(&served, &token, "GET /api/sessions/s", "").unwrap();
    let files = files["files"].as_array().unwrap();
    assert_eq!(files.len(), 16, "{files:?}");
    let runs = children.iter().map(|child| child["id"].as_str().unwrap()).chain([run.as_str()]);
    for run in runs {
        let replayed = api(&served, &token, &format!("POST /api/run/{run}/replay"), "").unwrap();
        assert_eq!(replayed["difference"], Json::Null, "{replayed}");
    }
    served.stop();
    let verified = wattle(home.path(), &["ledger", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}
