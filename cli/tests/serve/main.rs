//! Tests of `wattle serve` as a process. The tests of the server crate cover the responses to
//! requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod limits;
mod load;
mod manual;
mod poison;
mod storage;
mod stream;
mod tenancy;
mod tree;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use wattle_tests::provider::{Answer, Provider};

fn wattle(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(args).current_dir(home).env_clear().env("HOME", home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running server, its address, and the token that it printed.
struct Served {
    child: Child,
    address: String,
    token: Option<String>,
    /// The printed link to the page, if any.
    link: Option<String>,
}

impl Served {
    fn start(home: &Path, provider: &Provider) -> Served {
        Served::start_with(home, provider, &[])
    }

    fn start_with(home: &Path, provider: &Provider, more: &[&str]) -> Served {
        Served::start_in(home, provider, more, &[])
    }

    /// Starts a server with these arguments and environment variables.
    fn start_in(
        home: &Path,
        provider: &Provider,
        more: &[&str],
        variables: &[(&str, String)],
    ) -> Served {
        let url = provider.base_url();
        let args = ["serve", "--listen", "127.0.0.1:0", "--base-url", &url, "--model", "m"];
        let args = [&args[..], more].concat();
        let mut command = wattle(home, &args);
        command.envs(variables.iter().cloned());
        Served::spawn(command)
    }

    /// Starts a server and waits until it listens.
    fn spawn(mut command: Command) -> Served {
        let mut served = Served {
            child: command.spawn().unwrap(),
            address: String::new(),
            token: None,
            link: None,
        };
        let mut lines = BufReader::new(served.child.stderr.take().unwrap()).lines();
        loop {
            let line = lines.next().expect("the server ended").unwrap();
            if let Some(rest) =
                line.strip_prefix("token: ").filter(|rest| !rest.starts_with("as in"))
            {
                served.token = rest.split(' ').next().map(str::to_owned);
            }
            if let Some(link) = line.strip_prefix("page: ") {
                served.link = Some(link.to_owned());
            }
            if let Some(address) = line.strip_prefix("listening on http://") {
                served.address = address.to_owned();
                // The remaining lines are read so that the server never blocks on a full pipe.
                std::thread::spawn(move || lines.for_each(drop));
                return served;
            }
        }
    }

    fn ask(&self, token: &str, body: &str) -> String {
        self.try_ask(token, body).unwrap()
    }

    fn try_ask(&self, token: &str, body: &str) -> std::io::Result<String> {
        self.send(token, "POST /chat", body)
    }

    /// Sends a request and returns the whole response.
    fn send(&self, token: &str, line: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer \
             {token}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Stops the server with a termination signal, as a service manager does.
    fn stop(mut self) {
        let sent =
            Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails only if the server has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn every_thread_of_a_server_is_confined() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start([Answer::text("ToolCall::Response(\"hi\")")]);
    let served = Served::start(home.path(), &provider);
    let token = served.token.clone().unwrap();
    assert!(served.ask(&token, r#"{"message":"hello"}"#).contains("hi"));
    let process = format!("/proc/{}", served.child.id());
    let threads: Vec<_> = std::fs::read_dir(format!("{process}/task")).unwrap().flatten().collect();
    assert!(threads.len() > 2, "{}", threads.len());
    for thread in threads {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        assert!(status.is_empty() || status.contains("NoNewPrivs:\t1"), "{status}");
    }
    let limits = std::fs::read_to_string(format!("{process}/limits")).unwrap();
    let cores = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(cores.split_whitespace().filter(|word| *word == "0").count(), 2, "{cores}");
    served.stop();
}

/// The server's own tenant and another one work in a folder that the operator shares with both.
#[test]
fn a_folder_that_tenants_share_contains_no_trace_of_them() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("shared")).unwrap();
    let provider = Provider::answering(|request| {
        let messages = request.messages();
        let last = messages.last().unwrap();
        let name =
            |name: &str| messages.iter().any(|message| message == name).then(|| name.to_owned());
        let who = name("operator").or_else(|| name("guest")).unwrap();
        Answer::text(match last.as_str() {
            first if first == who => {
                format!("ToolCall::Catalog(\"text_count\", \"mark of {who}\")")
            }
            second if second.contains("(step 1)") => {
                "ToolCall::Wat(```wat\n(out (fs.read \"_steps.jsonl\"))\n(out (default (fs.read \
                 \"_ledger.jsonl\") \"none\"))\n(out (default (fs.read \"events.org\") \
                 \"none\"))\n```)"
                    .to_owned()
            }
            _ => "ToolCall::Response(\"done\")".to_owned(),
        })
    });
    for mode in ["", "workdir"] {
        let made = wattle(home.path(), &["token", "new", &format!("t{mode}"), "--tenant", "guest"]);
        let made = { made }.output().unwrap();
        let guest = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let served = Served::start_in(
            home.path(),
            &provider,
            &["--root", "shared"],
            &[("WATTLE_TRACE_DIR", mode.to_owned())],
        );
        let own = std::fs::read_to_string(home.path().join(".local/state/wattle/token")).unwrap();
        for (token, who, other) in
            [(own.trim(), "operator", "guest"), (&guest, "guest", "operator")]
        {
            assert!(served.ask(token, &format!("{{\"message\":\"{who}\"}}")).contains("done"));
            let requests = provider.requests();
            let seen = requests.last().unwrap().messages().pop().unwrap();
            assert!(seen.contains(&format!("mark of {who}")), "{seen}");
            assert!(!seen.contains(&format!("mark of {other}")), "{mode}: {seen}");
        }
        let files = std::fs::read_dir(home.path().join("shared")).unwrap().count();
        assert_eq!(files > 0, mode == "workdir");
        served.stop();
    }
}

#[test]
fn a_request_names_a_class_of_models() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/wattle");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("wattle.toml"), "[models]\nfast = \"small\"\n").unwrap();
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"hi\")"));
    let served = Served::start(home.path(), &provider);
    let token = served.token.clone().unwrap();
    for (model, expected) in [("class:fast", "small"), ("class:balanced", "m"), ("m", "m")] {
        let before = provider.requests().len();
        let run = served.send(
            &token,
            "POST /api/run",
            &format!(r#"{{"prompt":"hello","model":"{model}"}}"#),
        );
        let id = run.unwrap().split(r#""id":""#).nth(1).unwrap()[..26].to_owned();
        let followed = served.send(&token, &format!("GET /api/run/{id}/stream"), "").unwrap();
        assert!(followed.contains("response"), "{followed}");
        assert_eq!(provider.requests()[before].json()["model"], expected);
    }
    served.stop();
}

fn ended(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_chat_is_answered_and_the_token_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let answer = "ToolCall::Response(\"\"\"\nhello to you\n\"\"\")";
    let provider = Provider::start([Answer::text(answer), Answer::text(answer)]);
    let served = Served::start(home.path(), &provider);
    let token = served.token.clone().expect("the token is shown at the first start");
    assert_eq!(token.len(), 64);
    assert_eq!(served.link, Some(format!("http://{}/#token={token}", served.address)));
    let said = served.ask(&token, r#"{"message":"hello"}"#);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("hello to you"), "{said}");
    assert!(served.ask("wrong", r#"{"message":"hello"}"#).starts_with("HTTP/1.1 401 "));
    served.stop();

    let served = Served::start(home.path(), &provider);
    assert_eq!((&served.token, &served.link), (&None, &None), "a log has the token once");
    assert!(served.ask(&token, r#"{"message":"hello"}"#).starts_with("HTTP/1.1 200 "));
    served.stop();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let kept = std::fs::metadata(home.path().join(".local/state/wattle/token")).unwrap();
        assert_eq!(kept.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_server_that_cannot_start_reports_why() {
    let home = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let model = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    for (args, model, code, words) in [
        (&["--listen", "127.0.0.1:0"][..], &["--provider", "ollama"][..], 3, "no model is named"),
        (&["--listen", &address], &model, 1, "failed to listen on"),
        (&["--listen", "0.0.0.0:0"], &model, 3, "WATTLE_TOKEN"),
        (&["--listen", "nowhere"], &model, 2, "give an address and a port"),
        (&["--allow-origin", "app.example"], &model, 2, "is not an origin"),
        (&["--allow-name", "http://a"], &model, 2, "is not a host name"),
        (&["--write"], &model, 2, "unexpected argument '--write'"),
        (&["--session", "s"], &model, 2, "unexpected argument '--session'"),
    ] {
        let (exited, stderr) = ended(&mut wattle(home.path(), &[&["serve"], args, model].concat()));
        assert_eq!(exited, Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    }
    let (exited, stderr) = ended(
        wattle(home.path(), &[&["serve"], &model[..]].concat()).env("WATTLE_TOKEN", "two words"),
    );
    assert_eq!(exited, Some(3), "{stderr}");
    assert!(stderr.contains("WATTLE_TOKEN") && !stderr.contains("two words"), "{stderr}");
    let open = ["serve", "--listen", "0.0.0.0:0"];
    let (exited, stderr) =
        ended(wattle(home.path(), &[&open, &model[..]].concat()).env("WATTLE_TOKEN", "abc123"));
    assert_eq!(exited, Some(3), "{stderr}");
    assert!(stderr.contains("can be guessed") && !stderr.contains("abc123"), "{stderr}");
}

#[test]
fn a_file_of_a_session_is_compared_with_that_of_the_folder() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("work")).unwrap();
    std::fs::write(home.path().join("work/a.txt"), "first").unwrap();
    let provider = Provider::answering(|_| Answer::text("ToolCall::Response(\"hi\")"));
    let served = Served::start_with(home.path(), &provider, &["--root", "work"]);
    let token = served.token.clone().unwrap();
    for (path, text) in [("a.txt", "second"), ("b.txt", "new")] {
        served.send(&token, &format!("PUT /api/sessions/s/files/{path}"), text).unwrap();
    }
    let list = served.send(&token, "GET /api/sessions/s/files", "").unwrap();
    let created: Vec<bool> =
        list.split("\"created\":").skip(1).map(|rest| rest.starts_with("true")).collect();
    assert_eq!(created, [false, true], "{list}");
    let file = |query| served.send(&token, &format!("GET /api/sessions/s/files/a.txt{query}"), "");
    assert!(file("").unwrap().ends_with("second"));
    assert!(file("?base=true").unwrap().ends_with("first"));
    served.stop();
}

/// The page can be used without a model, and says what is missing.
#[test]
fn a_server_without_a_model_starts_and_reports_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let mut command = wattle(home.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.stderr(std::process::Stdio::piped());
    let served = Served::spawn(command);
    let token = served.token.clone().unwrap();
    let settings = served.send(&token, "GET /api/settings", "").unwrap();
    assert!(
        settings.contains(r#""model_problem":"no model is set up: `wattle init`"#),
        "{settings}"
    );
    let ran = served.send(&token, "POST /api/exec", r#"{"body":"(out (+ 1 2))"}"#).unwrap();
    assert!(ran.contains(r#""output":"3"#), "{ran}");
    let said = served.ask(&token, r#"{"message":"hello"}"#);
    assert!(said.contains("no model is set up: `wattle init`"), "{said}");
    served.stop();
}

/// A run stays open if its server is killed during a model request. The next server resumes the
/// run, and the session continues.
#[test]
fn a_server_resumes_the_runs_of_a_killed_one() {
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::start([
        Answer::text(
            "ToolCall::Wat(```wat\n(resv (str.from_int (kv.incr? \"n\" 1)))\n(i32.const 0)\n```)",
        ),
        Answer::hang(),
        Answer::text("ToolCall::Response(\"counted\")"),
        Answer::text("ToolCall::Response(\"still here\")"),
    ]);
    let waits = |count: usize| {
        for _ in 0..3_000 {
            if provider.requests().len() >= count {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the model was asked {} times, not {count}", provider.requests().len());
    };
    let mut served = Served::start(home.path(), &provider);
    let token = served.token.clone().unwrap();
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let body = r#"{"message":"count","session_id":"s"}"#;
    let (address, length) = (&served.address, body.len());
    let head = format!(
        "POST /chat HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer \
         {token}\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    waits(2);
    served.child.kill().unwrap();
    served.child.wait().unwrap();

    let served = Served::start(home.path(), &provider);
    waits(3);
    let said = served.ask(&token, r#"{"message":"and now?","session_id":"s"}"#);
    assert!(said.contains("still here"), "{said}");
    let asked = provider.requests().last().unwrap().messages();
    assert!(asked.iter().any(|text| text.contains("(step 1)] Execution result:\n1")), "{asked:#?}");
    assert!(
        asked.iter().any(|text| text.contains("counted")),
        "the session has the answer of the run: {asked:#?}"
    );
    served.stop();
}
