//! Runs a task to its end and prints the answer.
//!
//! The model plays a recording, so the example needs no network. An application passes a
//! `RemoteModel` instead. The first reply calls a program of the built-in catalog, and the second
//! one answers.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use wattle_agent::capability::files::Files;
use wattle_agent::model::Cassette;
use wattle_agent::{Access, Host, Job, Settings};

const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "ToolCall::Catalog(\"file_write\", \"sum.txt\", \"four\")"}
{"reply": "ToolCall::Response(\"Two and two is four.\")"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The engine, the programs and the network access, which all runs share.
    let host = Host::built_in()?;
    let model = Cassette::parse(RECORDING)?;

    // The files of the run are in memory, at most 1 MiB.
    let files = Arc::new(Files::overlay(None, 1 << 20));
    let access = Access::new(&host, Arc::clone(&files));
    let job = Job::new("Write the sum of two and two to sum.txt.", access.grants());

    // The last argument receives each event of the run.
    let report = wattle_agent::run(&host, &model, &Settings::default(), job, &|_: &_| {}).await;
    println!("{}", report.ending.text());
    let changed: Vec<String> = files.changes()?.into_iter().map(|change| change.path).collect();
    println!("{} step, changed files: {}", report.steps, changed.join(", "));

    assert_eq!(report.ending.text(), "Two and two is four.");
    assert_eq!((report.steps, changed), (1, vec!["sum.txt".to_owned()]));
    Ok(())
}
