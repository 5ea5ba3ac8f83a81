//! Tests of what belongs to a tenant or to a client, and to nobody else.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};
use wattle_tests::provider::{Answer, Provider};

use super::{Served, wattle};

/// Writes the user's settings.
fn settings(home: &Path, text: &str) {
    let folder = home.join(".config/wattle");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wattle.toml"), text).unwrap();
}

/// Runs a command for a tenant and returns its output.
fn done(home: &Path, tenant: &str, args: &[&str]) -> String {
    let done = wattle(home, &[args, &["--tenant", tenant]].concat()).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Creates a token that may start runs of a tenant.
fn token_of(home: &Path, tenant: &str) -> String {
    done(home, tenant, &["token", "new", "n", "--scope", "run"]).trim().to_owned()
}

/// Waits until a condition is met.
fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_met() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happens: {what}");
}

/// Returns the body of a response.
fn json_of(response: &str) -> Json {
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_run_that_needs_its_client_does_not_go_on_after_its_server_was_killed() {
    let message = json!([{"role": "user", "content": "count"}]);
    let task = json!([{"role": "user", "content": "### Task:\nTitle"}]);
    for (line, body, asks) in [
        ("POST /v1/chat/completions", json!({"model": "wattle", "messages": message}), false),
        ("POST /chat", json!({"message": "count", "on_disconnect": "cancel"}), true),
        ("POST /v1/chat/completions", json!({"model": "wattle", "messages": task}), false),
        ("POST /v1/responses", json!({"model": "wattle", "input": "count"}), false),
        ("POST /chat", json!({"message": "count", "on_disconnect": "cancel"}), false),
    ] {
        let home = tempfile::tempdir().unwrap();
        if asks {
            settings(home.path(), "ask = [\"key:*\"]\n");
        }
        let program = "ToolCall::Wat(```wat\n(kv.set \"n\" \"1\")\n```)";
        let first = if asks { Answer::text(program) } else { Answer::hang() };
        let provider = Provider::start([first, Answer::text("ToolCall::Response(\"done\")")]);
        let mut served = Served::start(home.path(), &provider);
        let token = served.token.clone().unwrap();
        let mut stream = TcpStream::connect(&served.address).unwrap();
        let (address, body) = (&served.address, body.to_string());
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer \
             {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let status = |served: &Served| -> Json {
            let runs = json_of(&served.send(&token, "GET /api/runs", "").unwrap());
            runs["runs"][0]["status"].clone()
        };
        until("the model is asked", || provider.requests().len() == 1);
        if asks {
            until("the run is parked", || status(&served) == "parked");
        }
        served.child.kill().unwrap();
        served.child.wait().unwrap();

        let served = Served::start(home.path(), &provider);
        until("the run is cancelled", || status(&served) == "cancelled");
        assert_eq!(provider.requests().len(), 1, "{line}: the run goes on");
        served.stop();
    }
}

#[test]
fn a_secret_of_the_operator_is_sent_for_another_tenant_only_if_it_is_shared() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::answering(|_| Answer::body("hello"));
    let host = provider.host();
    settings(
        home.path(),
        &format!(
            "[secrets.own]\nenv = \"OWN\"\nhosts = [\"{host}\"]\n\
             [secrets.all]\nenv = \"ALL\"\nhosts = [\"{host}\"]\nshared = true\n"
        ),
    );
    let bob = token_of(home.path(), "bob");
    let url = provider.base_url();
    let args = ["serve", "--listen", "127.0.0.1:0", "--base-url", &url, "--model", "m"];
    let mut server = wattle(home.path(), &[&args[..], &["--allow-host", &host]].concat());
    server.env("OWN", "secret-of-the-operator").env("ALL", "secret-of-all-tenants");
    let served = Served::spawn(server);
    let own = served.token.clone().unwrap();
    for (token, name, sent) in [
        (&own, "own", Some("secret-of-the-operator")),
        (&own, "all", Some("secret-of-all-tenants")),
        (&bob, "own", None),
        (&bob, "all", Some("secret-of-all-tenants")),
    ] {
        let before = provider.requests().len();
        let program = format!(
            "(ret (http.request? \"GET\" \"{url}\" \
             \"{{\\\"x-token\\\":\\\"${{secret:{name}}}\\\"}}\" \"\"))"
        );
        let exec = json!({"body": program}).to_string();
        let answer = json_of(&served.send(token, "POST /api/exec", &exec).unwrap());
        let requests = provider.requests();
        let received = requests.get(before).and_then(|request| request.header("x-token"));
        assert_eq!(received, sent, "{name}: {answer}");
        if sent.is_none() {
            let error = answer["error"].as_str().unwrap();
            assert!(error.contains("there is no secret `own`"), "{error}");
        }
    }
    served.stop();
}

#[test]
fn a_reference_to_an_agent_is_resolved_with_the_data_of_its_tenant() {
    let home = tempfile::tempdir().unwrap();
    let programs = home.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    settings(home.path(), &format!("agent_resolver = \"find_agent\"\ncatalog = [{programs:?}]\n"));
    let resolver = ";;; name = \"find_agent\"\n;;; description = \"Find an agent\"\n\
                    ;;; [[args]]\n;;; name = \"reference\"\n;;; type_hint = \"string\"\n\
                    ;;; description = \"The reference\"\n\
                    (ret (default (kv.get \"tenant:agent:support\") \"\"))\n";
    std::fs::write(programs.join("find_agent.wat"), resolver).unwrap();
    let agent = |prompt: &str| format!("name = \"support\"\nprompt = \"{prompt}\"\n");
    let (bob, carol) = (token_of(home.path(), "bob"), token_of(home.path(), "carol"));
    for (tenant, prompt) in [("default", "of the operator"), ("bob", "of bob")] {
        done(home.path(), tenant, &["vars", "set", "agent:support", &agent(prompt)]);
    }
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"done\")"));
    let served = Served::start(home.path(), &provider);
    let own = served.token.clone().unwrap();
    let prompt_of = |token: &str| {
        let request = json!({"message": "go", "agent": "custom:support"}).to_string();
        let answer = served.ask(token, &request);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        provider.requests().last().unwrap().messages().concat()
    };
    let check = |token: &str, prompt: &str, other: &str| {
        let seen = prompt_of(token);
        assert!(seen.contains(prompt) && !seen.contains(other), "{seen}");
    };
    check(&own, "of the operator", "of bob");
    check(&bob, "of bob", "of the operator");
    // What a tenant's program writes changes the agents of this tenant alone.
    let poison = format!("(kv.set \"tenant:agent:support\" {:?})", agent("poisoned"));
    let exec = json!({"body": poison}).to_string();
    let answer = json_of(&served.send(&bob, "POST /api/exec", &exec).unwrap());
    assert_eq!(answer["success"], true, "{answer}");
    check(&bob, "poisoned", "of bob");
    check(&own, "of the operator", "poisoned");
    let request = json!({"message": "go", "agent": "custom:support"}).to_string();
    let answer = served.ask(&carol, &request);
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    served.stop();
}
