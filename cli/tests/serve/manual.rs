//! Tests of the examples in `docs/http.md`, which `sh` runs against a real server.

use std::process::{Command, Stdio};

use wattle_tests::provider::{Answer, Provider};

use super::Served;

const MANUAL: &str = include_str!("../../../docs/http.md");

/// Returns true if some line contains all parts of `expected`, in order. The parts are separated by
/// `…`.
fn has_line(output: &str, expected: &str) -> bool {
    output.lines().any(|line| {
        let mut rest = Some(line);
        for part in expected.split('…') {
            rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
        }
        rest.is_some()
    })
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn every_example_of_the_manual_has_its_output() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: `curl` is not installed");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let provider = Provider::answering(|request| {
        let has_schema =
            request.messages().iter().any(|text| text.contains("# Form of the final answer"));
        Answer::text(if has_schema {
            r#"{"greeting": "hello"}"#
        } else {
            "ToolCall::Response(\"hello\")"
        })
    });
    let programs = home.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let programs = programs.to_str().unwrap();
    let args = ["--allow-origin", "https://app.example", "--catalog", programs];
    let served = Served::start_with(home.path(), &provider, &args);
    let token = served.token.clone().unwrap();
    let blocks: Vec<&str> = MANUAL.split("```").skip(1).step_by(2).collect();
    let mut examples = 0;
    for pair in blocks.windows(2) {
        let (Some(script), Some(expected)) =
            (pair[0].strip_prefix("sh\n"), pair[1].strip_prefix("text\n"))
        else {
            continue;
        };
        let mut shell = Command::new("sh");
        shell
            .args(["-c", script])
            .env("SERVER", format!("http://{}", served.address))
            .env("TOKEN", &token);
        let done = shell.env_remove("http_proxy").env("no_proxy", "*").output().unwrap();
        let output = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{script}{}", String::from_utf8_lossy(&done.stderr));
        for line in expected.lines().filter(|line| !line.is_empty()) {
            assert!(has_line(&output, line), "{script}lacks the line\n{line}\nin\n{output}");
        }
        examples += 1;
    }
    assert!(examples >= 6, "only {examples} examples were found");
    served.stop();
}

/// Each error code in the server's sources is in the manual's table.
#[test]
fn the_manual_has_every_error_code() {
    const ERRORS: &str = include_str!("../../../server/src/error.rs");
    let mut codes = 0;
    for found in ERRORS.split("StatusCode::").skip(1) {
        let Some((_, rest)) = found.split_once('"') else { continue };
        let code = rest.split('"').next().unwrap_or_default();
        if !found.split('"').next().unwrap_or_default().contains(',')
            || code.contains(|c: char| !c.is_ascii_lowercase() && c != '_')
        {
            continue;
        }
        assert!(MANUAL.contains(&format!("| `{code}` |")), "{code}");
        codes += 1;
    }
    assert!(codes >= 12, "only {codes} codes were found");
}

/// Each route is in the manual's tables with its scope, and in an example with `curl`.
#[test]
fn the_manual_has_every_route() {
    let document: serde_json::Value = serde_json::from_str(wattle_server::document()).unwrap();
    let examples: String =
        MANUAL.split("```sh").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let mut routes = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let route = format!("{} {path}", method.to_uppercase());
            let scope = operation["x-scope"].as_str().unwrap_or("none");
            let is_chat = path == "/chat";
            assert!(
                is_chat || MANUAL.contains(&format!("| `{route}` | {scope} |")),
                "`{route}` with the scope {scope} is not in a table"
            );
            // The part of the path before the first parameter.
            let begin = path.split('{').next().unwrap();
            assert!(examples.contains(&format!("$SERVER{begin}")), "`{route}` has no example");
            routes += 1;
        }
    }
    assert!(routes >= 40, "only {routes} routes were found");
}
