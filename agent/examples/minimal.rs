//! Runs a task to completion and prints the answer.
//!
//! The model replays a recording, so the example needs no network. An application passes a
//! `RemoteModel` instead. The first reply calls a program of the built-in catalog, and the second
//! is the answer.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use wattle_agent::host::capability::files::Files;
use wattle_agent::model::Cassette;
use wattle_agent::prelude::*;

const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "ToolCall::Catalog(\"file_write\", \"sum.txt\", \"four\")"}
{"reply": "ToolCall::Response(\"Two and two is four.\")"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(Cassette::parse(RECORDING)?).build()?;

    // The run's files are kept in memory, at most 1 MiB.
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let run = agent.execute("Write the sum of two and two to sum.txt.").files(Arc::clone(&files));
    let report = run.await?;
    println!("{}", report.data);
    let changed: Vec<String> = files.changes()?.into_iter().map(|change| change.path).collect();
    println!(
        "{} rounds to the model, changed files: {}",
        report.model_calls.len(),
        changed.join(", ")
    );

    assert_eq!(report.data, "Two and two is four.");
    assert_eq!((report.model_calls.len(), changed), (2, vec!["sum.txt".to_owned()]));
    Ok(())
}
