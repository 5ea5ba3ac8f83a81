//! Declares two agents in files; one of them delegates to the other.
//!
//! The model is scripted, so the example needs no network. The coordinator calls the program
//! `ask_clerk`, which starts a run of the clerk. Both runs share their files.

#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use wattle_agent::Cancel;
use wattle_agent::agents::{AgentBase, AgentSpec, Agents};
use wattle_agent::host::capability::files::Files;
use wattle_agent::host::capability::policy::Preflight;
use wattle_agent::host::service::{
    AssembleFuture, Outcome, RunAssembler, RunService, ServiceLimits,
};
use wattle_agent::host::{RunParts, RunRequest, TenantStore};
use wattle_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use wattle_agent::{Host, Resources, Settings, Store, Tenant};

const BOSS: &str =
    "name = \"boss\"\nprompt = \"You coordinate.\"\ndelegates = [{ id = \"clerk\" }]";
const CLERK: &str = "name = \"clerk\"\nprompt = \"You count.\"\n[policy]\ndeny = [\"http\"]";

/// A model that plays both agents.
struct Script;

impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn complete<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let said = |text: &str| request.messages.iter().any(|one| one.content.contains(text));
        let text = match (said("You coordinate."), said("There are 3.")) {
            (true, false) => "ToolCall::Catalog(\"ask_clerk\", \"How many letters has `ash`?\")",
            (true, true) => "ToolCall::Response(\"The clerk counted 3 letters.\")",
            (false, _) => "ToolCall::Response(\"There are 3.\")",
        };
        Box::pin(ready(Ok(ModelReply { text: text.to_owned(), ..ModelReply::default() })))
    }
}

/// An assembler that builds each run from its agent's declaration.
struct Assembler {
    host: Host,
    agents: Agents,
}

impl Assembler {
    fn parts(
        &self,
        run: &RunRequest,
        files: Option<&Arc<Files>>,
    ) -> Result<RunParts, Box<dyn Error>> {
        let (settings, agents) = (&Settings::default(), &self.agents);
        let base = AgentBase { host: &self.host, settings, agents, max_steps: None };
        let agent = AgentSpec::of_origin(&run.origin)?.parts(base)?;
        // A child run works on the files of its parent.
        let files = files.cloned().unwrap_or_else(|| Arc::new(Files::overlay(None, 1 << 20)));
        let guard = Arc::new(Preflight::new(agent.policy, None));
        let grants = Resources::new(&agent.host, files).grants().guarded(guard);
        let parts = RunParts::new(agent.host, Arc::new(Script), grants);
        Ok(RunParts { settings: agent.settings, ..parts })
    }
}

impl RunAssembler for Assembler {
    fn assemble<'a>(
        &'a self,
        _: &'a TenantStore,
        run: &'a RunRequest,
        files: Option<&'a Arc<Files>>,
    ) -> AssembleFuture<'a> {
        Box::pin(async move { self.parts(run, files).map_err(|error| error.to_string().into()) })
    }

    fn agents(&self) -> Agents {
        self.agents.clone()
    }

    fn model(&self, _: &RunRequest, _: &str) -> Option<Arc<dyn Model>> {
        Some(Arc::new(Script))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("boss.toml"), BOSS)?;
    std::fs::write(folder.path().join("clerk.toml"), CLERK)?;
    let agents = Agents::open(&[folder.path().to_owned()]);
    let boss = agents.load(&Tenant::default(), "boss").await?;

    let host = Host::built_in()?;
    let assembler = Arc::new(Assembler { host: host.clone(), agents });
    let service = RunService::new(host, assembler, ServiceLimits::default());
    let store = Store::in_memory(Duration::from_secs(3600))?.tenant(&Tenant::default());
    let mut request = RunRequest::new("How many letters has `ash`?");
    boss.write_to(&mut request.origin);
    let run = service.start(&store, request, &Cancel::new()).await?;
    let Outcome::Ended(report) = run.outcome().await else {
        return Err("the run has not ended".into());
    };
    println!("{} (run by `{}`)", report.ending.text(), boss.name);
    service.stop(Duration::from_secs(5)).await;

    assert_eq!(report.ending.text(), "The clerk counted 3 letters.");
    Ok(())
}
