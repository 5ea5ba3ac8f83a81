//! Starts a run in the background and follows its events while they happen.
//!
//! A `RunService` owns its runs: they are recorded in a store, go on when their followers leave, and
//! can be followed from any event. An application tells the service with a `RunAssembler` what each
//! run may use.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use wattle_agent::capability::files::Files;
use wattle_agent::machine::Event;
use wattle_agent::model::{Cassette, Model};
use wattle_agent::service::{
    AssembleFuture, RunAssembler, RunParts, RunRequest, RunSeed, RunService, ServiceLimits,
};
use wattle_agent::{Access, Host, Store, Tenant};

const RECORDING: &str = r#"{"wattle_cassette": 1, "model": "recorded"}
{"reply": "ToolCall::Catalog(\"file_write\", \"poem.txt\", \"The rain has gone.\")"}
{"reply": "ToolCall::Response(\"The poem is in poem.txt.\")"}
"#;

/// Gives each run the same model, and files of its own.
struct Assembler {
    host: Host,
    model: Arc<dyn Model>,
}

impl RunAssembler for Assembler {
    fn assemble<'a>(&'a self, _: RunSeed<'a>) -> AssembleFuture<'a> {
        Box::pin(async {
            let access = Access::new(&self.host, Arc::new(Files::overlay(None, 1 << 20)));
            Ok(RunParts::new(self.host.clone(), Arc::clone(&self.model), access.grants()))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::built_in()?;
    let model = Arc::new(Cassette::parse(RECORDING)?);
    let assembler = Arc::new(Assembler { host: host.clone(), model });
    let service = RunService::new(host, assembler, ServiceLimits::default());
    // An application opens a file instead, so that its runs outlive the process.
    let store = Store::in_memory(Duration::from_secs(3600))?.tenant(&Tenant::default());

    let run = service.start(&store, RunRequest::new("Write a poem.")).await?;
    let mut follower = service.follow(&store, &run.id, 0);
    let mut kinds = Vec::new();
    while let Some(envelope) = follower.next().await? {
        let kind = match &envelope.event {
            // The answer while it arrives; how many pieces there are depends on the reader's speed.
            Event::Delta { .. } => continue,
            Event::ToolStart { label, .. } => format!("start of {label}"),
            Event::ToolResult { success, .. } => format!("result, success: {success}"),
            Event::Response { text, .. } => format!("answer: {text}"),
            other => format!("{other:?}"),
        };
        println!("{} {kind}", envelope.seq);
        kinds.push(kind);
    }
    service.stop(Duration::from_secs(5)).await;

    let expected =
        ["start of file_write", "result, success: true", "answer: The poem is in poem.txt."];
    assert_eq!(kinds, expected);
    Ok(())
}
