//! Tests of a run that kills its server.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value as Json;
use wattle_tests::provider::{Answer, Provider, Recorded};

use super::{Served, ended, wattle};

/// Returns the runs in the store under `home`.
fn runs(home: &std::path::Path) -> Json {
    let done = wattle(home, &["runs", "--json"]).output().unwrap();
    serde_json::from_slice(&done.stdout).unwrap()
}

/// A server with a run in the session `a` that has ended its process twice, and is parked therefore.
/// The run has written a file before.
struct Poisoned {
    home: tempfile::TempDir,
    _provider: Provider,
    served: Served,
    token: String,
    run: String,
}

fn poisoned() -> Poisoned {
    let home = tempfile::tempdir().unwrap();
    let victim = Arc::new(Mutex::new(None::<u32>));
    let next = Arc::clone(&victim);
    let provider = Provider::answering(move |request: &Recorded| {
        if !request.body.contains("poison") {
            return Answer::text("ToolCall::Response(\"fine\")");
        }
        if !request.messages().iter().any(|text| text.starts_with("[Observation")) {
            return Answer::text("ToolCall::Wat(```wat\n(fs.write \"a.txt\" \"one\")\n```)");
        }
        let pid = loop {
            if let Some(pid) = next.lock().unwrap().take() {
                break pid;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
        Answer::close()
    });

    let mut served = Served::start(home.path(), &provider);
    let token = served.token.clone().unwrap();
    *victim.lock().unwrap() = Some(served.child.id());
    let _ = served.try_ask(&token, r#"{"message":"poison","session_id":"a"}"#);
    served.child.wait().unwrap();
    let mut served = Served::start(home.path(), &provider);
    *victim.lock().unwrap() = Some(served.child.id());
    served.child.wait().unwrap();
    assert_eq!(provider.requests().len(), 3);

    let served = Served::start(home.path(), &provider);
    let parked = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        runs(home.path())[0]["status"] == "parked"
    });
    assert!(parked, "{}", runs(home.path()));
    assert_eq!(provider.requests().len(), 3, "the run is not resumed");
    let run = runs(home.path())[0]["run"].as_str().unwrap().to_owned();
    Poisoned { home, _provider: provider, served, token, run }
}

#[test]
fn a_run_that_kills_its_server_is_parked_at_the_third_start() {
    let Poisoned { home, _provider, served, token, run } = poisoned();
    assert!(served.ask(&token, r#"{"message":"hello"}"#).contains("fine"), "other runs continue");
    served.stop();
    let (code, stderr) = ended(&mut wattle(home.path(), &["session", "release", &run]));
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn a_run_that_is_cancelled_without_being_driven_leaves_its_files_to_its_session() {
    let Poisoned { home, _provider, served, token, run } = poisoned();
    served.send(&token, &format!("DELETE /api/run/{run}"), "").unwrap();
    let cancelled = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        runs(home.path())[0]["outcome"] == "cancelled"
    });
    assert!(cancelled, "{}", runs(home.path()));
    let files = served.send(&token, "GET /api/sessions/a/files", "").unwrap();
    assert!(files.contains("a.txt"), "{files}");
}
