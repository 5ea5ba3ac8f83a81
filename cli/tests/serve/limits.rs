//! Tests of servers with few files and addresses, and with signals that end other programs.

use std::process::Command;
use std::thread;

use wattle_tests::provider::{Answer, Provider};

use super::{Served, ended, wattle};

/// Returns the command with a limit of the shell, such as `-n 96`.
fn limited(limit: &str, of: &Command) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-euc", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
    command.arg(of.get_program()).args(of.get_args());
    command.current_dir(of.get_current_dir().unwrap()).env_clear();
    command.envs(of.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

#[test]
fn signals_that_end_other_programs_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start([Answer::text("ToolCall::Response(\"hi\")")]);
    let served = Served::start(home.path(), &provider);
    for signal in ["-HUP", "-USR1", "-USR2"] {
        let process = served.child.id().to_string();
        assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
    }
    let token = served.token.clone().unwrap();
    assert!(served.ask(&token, r#"{"message":"hello"}"#).contains("hi"));
    served.stop();
}

#[test]
fn with_few_files_requests_wait_or_are_refused_and_no_run_fails() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"fine\")"));
    let url = provider.base_url();
    let args = ["serve", "--listen", "127.0.0.1:0", "--base-url", &url, "--model", "m"];
    let served = Served::spawn(limited("-n 100", &wattle(home.path(), &args)));
    let token = served.token.clone().unwrap();
    let answers: Vec<String> = thread::scope(|scope| {
        let ask = |at: usize| {
            let (served, token) = (&served, &token);
            scope.spawn(move || {
                let body = format!(r#"{{"message":"hello","session_id":"s{at}"}}"#);
                served.try_ask(token, &body).unwrap_or_default()
            })
        };
        let asked: Vec<_> = (0..40).map(ask).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert!(answers.iter().any(|answer| answer.contains("fine")));
    for answer in &answers {
        let is_shed = answer.is_empty() || answer.starts_with("HTTP/1.1 503");
        assert!(answer.contains("fine") || is_shed, "{answer}");
    }
    served.stop();
}

#[test]
fn limits_that_are_too_low_name_what_raises_them() {
    let home = tempfile::tempdir().unwrap();
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--base-url", "http://127.0.0.1:1", "--model", "m"];
    let (code, stderr) = ended(&mut limited("-n 40", &wattle(home.path(), &args)));
    assert!(code == Some(3) && stderr.contains("`ulimit -n`"), "{stderr}");
    // 60 GiB of addresses.
    let exec = ["exec", "text_count", "two words"];
    let (code, stderr) = ended(&mut limited("-v 62914560", &wattle(home.path(), &exec)));
    assert!(code == Some(3) && stderr.contains("`limits.programs`"), "{stderr}");
    let mut few = wattle(home.path(), &exec);
    few.env("WATTLE_LIMITS_PROGRAMS", "4");
    let (code, stderr) = ended(&mut limited("-v 62914560", &few));
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn an_empty_token_file_is_refused_with_the_fix() {
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join(".local/state/wattle/token");
    std::fs::create_dir_all(token.parent().unwrap()).unwrap();
    std::fs::write(&token, "").unwrap();
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--base-url", "http://127.0.0.1:1", "--model", "m"];
    let (code, stderr) = ended(&mut wattle(home.path(), &args));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(
        stderr.contains("the token is empty") && stderr.contains("remove that file"),
        "{stderr}"
    );
}
