//! Prints the events of a run as they happen, and the model's answers as the model writes them.
//!
//! Dropping the stream cancels the run. Runs of a `RunService` continue even if nobody follows
//! them: see the example `agents`.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use futures_util::StreamExt;
use wattle_agent::model::Cassette;
use wattle_agent::prelude::*;

const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "ToolCall::Catalog(\"file_write\", \"poem.txt\", \"The rain has gone.\")"}
{"reply": "ToolCall::Response(\"The poem is in poem.txt.\")"}
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(Cassette::parse(RECORDING)?).build()?;
    let mut stream = agent.stream("Write a poem.");
    let (mut answer, mut calls) = (String::new(), Vec::new());
    while let Some(item) = stream.next().await {
        match item {
            StreamItem::Answer { answer: text } => answer.push_str(&text),
            // What was shown of an answer is none: the model calls a program after all.
            StreamItem::Void { .. } => answer.clear(),
            StreamItem::Event(event) => match event.kind {
                RunEventKind::CallStarted { name, .. } => calls.push(format!("start of {name}")),
                RunEventKind::CallEnded { name, success, .. } => {
                    calls.push(format!("end of {name}, success: {success}"));
                }
                other => println!("{other:?}"),
            },
            // The text as received, thoughts and errors.
            _ => {}
        }
    }
    let report = stream.result().await?;
    println!("{}\n{}", calls.join("\n"), report.data);

    assert_eq!(calls, ["start of file_write", "end of file_write, success: true"]);
    assert_eq!(answer, report.data);
    assert_eq!(report.data, "The poem is in poem.txt.");
    Ok(())
}
