//! Tests that the tape of a run records the calls of trait programs: a stopped run is resumed
//! without repeating these calls, and a replay runs the programs again.

use wattle_agent::agents::{AgentBase, AgentSpec, Agents};
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::capability::policy;
use wattle_agent::host::catalog::Folders;
use wattle_agent::host::journal::{RunOutcome, SharedJournal, Status, end};
use wattle_agent::host::rt::Limits;
use wattle_agent::{Host, Settings};

use super::place::{ByTurn, Place, answer, done, wat};
use super::stopped::Stopping;

/// The trait's programs. Each of them except `told` counts its runs.
const PROGRAMS: &[(&str, &str)] = &[
    ("build", "(kv.incr \"builds\" 1)\n(ret \"{\\\"tools\\\":[\\\"added\\\"]}\")"),
    ("before", "(kv.incr \"steps\" 1)"),
    ("listed", "(ret (fmt \"{} steps so far\" (kv.get \"steps\")))"),
    ("added", "(kv.incr \"added\" 1)\n(ret (sys.context \"word\"))"),
];

const AGENT: &str = r#"
name = "planner"
tools = ["file_read"]
context = { word = "plum" }
traits = [{ name = "plan", programs = { build = "build", step = "before", prompt = "listed" } }]
"#;

fn place(folder: &std::path::Path) -> Place {
    for (name, body) in PROGRAMS {
        let text = format!(";;; name = \"{name}\"\n;;; description = \"{name}\"\n\n{body}\n");
        std::fs::write(folder.join(format!("{name}.wat")), text).unwrap();
    }
    let folders = Folders::open(&[folder.to_owned()], &|_, _| Ok(()));
    let host = Host::new(Limits::default(), folders, Egress::new(Policy::default())).unwrap();
    let (settings, agents) = (Settings::default(), Agents::default());
    let base = AgentBase { host: &host, settings: &settings, agents: &agents, max_steps: None };
    let parts = AgentSpec::parse(AGENT).unwrap().parts(base).unwrap();
    Place { settings: parts.settings, ..Place::with(parts.host) }
}

fn script() -> ByTurn {
    let added = "ToolCall::Catalog(\"added\")".to_owned();
    ByTurn(vec![wat(r#"(resv "one")"#), added, done()])
}

#[tokio::test]
async fn a_run_that_is_stopped_at_any_write_runs_each_program_once() {
    let folder = tempfile::tempdir().unwrap();
    let first = place(folder.path());
    let mut moments = 0;
    for written in [false, true] {
        for write in 1.. {
            let place = first.another();
            let stopping = Stopping::at(&place.store, write, written);
            let journal: SharedJournal = std::sync::Arc::<Stopping>::clone(&stopping);
            let model = script();
            let ran = async {
                let (ended, _) = place.run(&journal, &model, "r").await;
                if let RunOutcome::Done(report) = &ended {
                    end(&journal, report, false).await.unwrap();
                }
            };
            tokio::select! {
                () = ran => break,
                () = stopping.stopped.notified() => moments += 1,
            }
            let open = place.journal().run("r").await.unwrap();
            if open.is_none_or(|run| run.status == Status::Ended) {
                continue;
            }
            let ended = place.resume(&script(), "r", &[]).await.0.unwrap();
            assert_eq!(answer(&ended), "done", "write {write}");
            for (key, times) in [("builds", "1"), ("steps", "3"), ("added", "1")] {
                assert_eq!(place.value(key).await.as_deref(), Some(times), "{key}, write {write}");
            }
            let steps = place.steps();
            let added = steps.iter().find(|line| line["tool"] == "added").unwrap();
            assert!(added["output"].to_string().contains("plum"), "write {write}: {added}");
            assert_eq!(place.replay("r").await.difference, None, "write {write}");
        }
    }
    assert!(moments > 20, "{moments}");
}

#[tokio::test]
async fn a_replay_runs_the_programs_again() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let (ended, _) = place.run(&place.journal(), &script(), "r").await;
    assert_eq!(answer(&ended), "done");
    let replayed = place.replay("r").await;
    assert_eq!(replayed.difference, None);
    // The replay runs `build` once, `before` and `told` three times each, and the two programs that
    // the model calls once each.
    assert_eq!(replayed.programs, 9);
    assert_eq!(place.value("steps").await.as_deref(), Some("3"), "a replay has no effect");
}

/// If a trait's program makes a call that needs approval, the call is denied. The run is never
/// parked.
#[tokio::test]
async fn a_program_that_needs_approval_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rules = vec!["kv".parse().unwrap()];
    let place = Place {
        policy: policy::Policy::new(Vec::new(), rules, Vec::new()),
        ..place(folder.path())
    };
    let model = ByTurn(vec![wat(r#"(resv "one")"#), done()]);
    let (ended, _) = place.run(&place.journal(), &model, "r").await;
    assert_eq!(answer(&ended), "done");
    let line = &place.steps()[0];
    assert_eq!(line["tool"], "plan.build");
    assert!(line["error"].as_str().unwrap().contains("needs an approval"), "{line}");
    assert_eq!(place.value("builds").await, None);
    assert_eq!(place.replay("r").await.difference, None);
}
