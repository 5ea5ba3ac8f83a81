//! Tests of agents that are declared in code.

use std::process::Command;

use serde_json::json;
use wattle_agent::prelude::*;

use super::{agent, say};

/// Returns an unnamed agent that has one tool.
fn unnamed(prompt: &str, kind: &str) -> Agent {
    let properties = json!({"b": {"type": kind}, "a": {"type": "string"}});
    let schema = json!({"type": "object", "properties": properties});
    let tool = Tool::with_schema("note", "Notes", schema, |_, _| async { Ok("") });
    agent(&[&say("ok")]).prompt(prompt).tool(tool).build().unwrap()
}

#[test]
fn the_fingerprint_depends_on_the_configuration_alone() {
    let one = unnamed("Be brief.", "string");
    assert_eq!(one.fingerprint(), unnamed("Be brief.", "string").fingerprint());
    assert_eq!(one.name(), format!("agent-{}", &one.fingerprint()[..16]));
    for other in [unnamed("Be kind.", "string"), unnamed("Be brief.", "integer")] {
        assert_ne!(one.fingerprint(), other.fingerprint());
    }
    let named = agent(&[&say("ok")]).name("clerk").build().unwrap();
    let without = agent(&[&say("ok")]).build().unwrap();
    assert_eq!(named.fingerprint(), without.fingerprint());
    assert_eq!(named.name(), "clerk");
    let typed = agent(&[&say("ok")]).output::<Vec<u8>>().build().unwrap();
    assert_ne!(typed.fingerprint(), without.fingerprint());
}

/// The environment variable that is set when the test runs itself in another process.
const PRINT: &str = "WATTLE_TEST_PRINT_FINGERPRINT";

#[test]
fn the_fingerprint_is_the_same_in_every_process() {
    let own = unnamed("Be brief.", "string").fingerprint().to_owned();
    if std::env::var_os(PRINT).is_some() {
        println!("fingerprint: {own}");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let other = Command::new(this)
        .args([
            "--exact",
            "embed::agents::the_fingerprint_is_the_same_in_every_process",
            "--nocapture",
        ])
        .env(PRINT, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8(other.stdout).unwrap();
    assert!(printed.contains(&format!("fingerprint: {own}")), "{printed}");
}

#[test]
fn what_cannot_be_built_is_an_error() {
    let name = agent(&["x"]).name("The Clerk").build().unwrap_err().to_string();
    assert_eq!(
        name,
        "\"The Clerk\" cannot be the name of an agent: it needs a lowercase letter, followed by \
         lowercase letters, digits, `_`, `-` and `.`"
    );
    let schema = agent(&["x"]).output_schema(json!({"type": "strin"})).build().unwrap_err();
    assert!(schema.to_string().contains("the agent `agent`: the output: the schema"), "{schema}");
}

#[tokio::test]
async fn an_access_that_panics_ends_its_run_alone() {
    let agent = agent(&[&say("ok")]).access(|_| panic!("a bug of the application"));
    let agent = agent.build().unwrap();
    let failure = agent.execute("go").await.unwrap_err();
    assert_eq!(failure.reason(), "the application failed; its log has the reason");
    assert!(agent.stream("go").result().await.is_err());
}

#[tokio::test]
async fn runs_of_clones_share_nothing_but_the_configuration() {
    let agent = agent(&[&super::call("file_write", &["a.txt", "x"]), &say("ok")]).build().unwrap();
    let runs = (0..4).map(|at| agent.clone().execute(format!("run {at}")).into_future());
    let reports = futures_util::future::join_all(runs).await;
    let mut ids: Vec<String> = reports.into_iter().map(|report| report.unwrap().run_id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}
