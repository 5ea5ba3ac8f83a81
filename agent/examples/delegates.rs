//! Lets one agent delegate to another. Both are declared in code.
//!
//! The writer asks the clerk through the program `ask_clerk`. The clerk's run is a child of the
//! writer's: it shares the writer's files, and its report is part of the writer's report.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use wattle_agent::model::Cassette;
use wattle_agent::prelude::*;

const WRITER: &str = r#"{"wattle_cassette": 1, "model": "large"}
{"reply": "ToolCall::Catalog(\"ask_clerk\", \"How many letters has `ash`?\")"}
{"reply": "ToolCall::Response(\"The clerk counted 3 letters.\")"}
"#;
const CLERK: &str = r#"{"wattle_cassette": 1, "model": "small"}
{"reply": "ToolCall::Response(\"There are 3.\")"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The agents share the engine.
    let host = Host::built_in()?;
    let clerk = Agent::builder(Cassette::parse(CLERK)?)
        .name("clerk")
        .prompt("You count.")
        .host(host.clone())
        .build()?;
    let writer = Agent::builder(Cassette::parse(WRITER)?)
        .name("writer")
        .prompt("You write.")
        .host(host)
        .delegate("clerk", clerk)
        .build()?;

    let report = writer.execute("How many letters has `ash`?").await?;
    for child in &report.children {
        println!("{}: {}", child.agent, child.text);
    }
    println!("{}: {}", report.agent, report.data);

    let texts: Vec<&str> = report.children.iter().map(|child| child.text.as_str()).collect();
    assert_eq!(texts, ["There are 3."]);
    assert_eq!(report.data, "The clerk counted 3 letters.");
    Ok(())
}
