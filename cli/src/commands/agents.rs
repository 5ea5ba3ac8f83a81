//! `wattle agents`: lists, shows, checks, tests and creates agents.

mod test;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use wattle_agent::agents::{AgentError, AgentSpec, Agents};
use wattle_eval::Suite;

use crate::args::AgentsCommand;
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, NAME, paint, visible};
use crate::progress::counted;
use crate::setup::{self, RUN_STEPS, Setup};
use crate::trust;

/// Runs an `agents` command.
pub(crate) async fn agents(command: AgentsCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::with_trusted_content(trust::gather(flags)?)?;
    match command {
        AgentsCommand::New { name, dir } => new(&name, dir, &config).map(Exit::from),
        AgentsCommand::List { json } => list(json, &Setup::new(config)?).map(Exit::from),
        AgentsCommand::Show { name, json } => {
            show(&name, json, Setup::new(config)?).await.map(Exit::from)
        }
        // The problems of all agents are part of the report.
        AgentsCommand::Check { names, json } if names.is_empty() => {
            check(&names, json, &Setup::without_warnings(config)?)
        }
        AgentsCommand::Check { names, json } => check(&names, json, &Setup::new(config)?),
        AgentsCommand::Test(args) => test::test(args, Setup::new(config)?).await,
    }
}

fn list(json: bool, setup: &Setup) -> Result<(), Fault> {
    let agents = setup.agents.list();
    if json { output::json(&json!(agents)) } else { print(&agents, None) }
}

/// Prints a list of agents and marks the current one.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn print(agents: &[Arc<AgentSpec>], current: Option<&str>) -> Result<(), Fault> {
    let width = agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    let line = |agent: &Arc<AgentSpec>| {
        let about = match (agent.title.as_str(), agent.description.as_str()) {
            ("", about) => about.to_owned(),
            (title, "") => title.to_owned(),
            (title, about) => format!("{title}: {about}"),
        };
        let mark = if current == Some(&agent.name) { " (in use)" } else { "" };
        let (name, about) = (visible(&agent.name), visible(about.trim()));
        format!("{}{mark}  {about}\n", paint(NAME, &format!("{name:<width$}")))
    };
    output::styled(agents.iter().map(line).collect::<String>().trim_end())
}

async fn show(name: &str, json: bool, setup: Setup) -> Result<(), Fault> {
    let agent = setup
        .agents
        .load(&setup::tenant(&setup.config)?, name)
        .await
        .map_err(|error| Fault::usage(error).hint("`wattle agents list` shows the agents"))?;
    let agent = AgentSpec { reference: None, ..agent.as_ref().clone() };
    let (complete, open) = with_placeholders(&agent, &setup);
    let (setup, settings) = setup.for_agent(&complete, &setup.settings(RUN_STEPS))?;
    let catalog = setup.host.catalog();
    let programs: Vec<&str> = catalog.iter().map(|entry| entry.name().as_str()).collect();
    if json {
        let mut document = json!(agent);
        let max_steps = settings.machine.max_steps;
        let more = json!({"programs": programs, "required_context": open, "max_steps": max_steps});
        super::extend(&mut document, more);
        return output::json(&document);
    }
    let declared = toml::to_string_pretty(&agent)
        .map_err(|error| Fault::failed(format!("failed to print the agent: {error}")))?;
    output::text(&visible(declared.trim_end()))?;
    let steps = match settings.machine.max_steps {
        0 => "any number of".to_owned(),
        steps => steps.to_string(),
    };
    let about = format!("\nruns take {steps} steps, and are offered: {}", programs.join(", "));
    output::styled(&paint(DIM, &visible(&about)))?;
    if !open.is_empty() {
        let about = format!("each request gives: {}", open.join(", "));
        output::styled(&paint(DIM, &visible(&about)))?;
    }
    Ok(())
}

/// A placeholder for a context value that a request would supply. It is a valid string, path and
/// number.
const PLACEHOLDER: &str = "1";

/// Returns a copy of the agent in which placeholders replace missing context values. Also returns
/// the keys of these values.
fn with_placeholders(agent: &AgentSpec, setup: &Setup) -> (AgentSpec, Vec<String>) {
    let (mut agent, settings) = (agent.clone(), setup.settings(RUN_STEPS));
    let mut open = Vec::new();
    while let Err(AgentError::MissingContext { key, .. }) = setup.agent_parts(&agent, &settings) {
        agent.context.insert(key.clone(), PLACEHOLDER.to_owned());
        open.push(key);
    }
    (agent, open)
}

/// Checks that all named agents exist. Returns all agents, not only the named ones.
fn known(agents: &Agents, names: &[String]) -> Result<Vec<Arc<AgentSpec>>, Fault> {
    let known = agents.list();
    match names.iter().find(|name| known.iter().all(|agent| agent.name != **name)) {
        None => Ok(known),
        Some(unknown) => Err(Fault::usage(format!("there is no agent `{unknown}`"))
            .hint("`wattle agents list` shows the agents")),
    }
}

fn check(names: &[String], json: bool, setup: &Setup) -> Result<Exit, Fault> {
    let known = known(&setup.agents, names)?;
    let checked = known.iter().filter(|agent| names.is_empty() || names.contains(&agent.name));
    let settings = setup.settings(RUN_STEPS);
    let mut problems: Vec<String> = Vec::new();
    if names.is_empty() {
        problems.extend(setup.agents.problems().iter().map(ToString::to_string));
    }
    let mut count = 0;
    for agent in checked {
        count += 1;
        if let Err(fault) = setup.for_agent(&with_placeholders(agent, setup).0, &settings) {
            problems.push(fault.message().to_owned());
        }
    }
    if let Err(errors) = Suite::of_agents(&setup.agents, names) {
        problems.extend(errors.iter().map(ToString::to_string));
    }
    if json {
        output::json(&json!({"checked": count, "problems": problems}))?;
    } else {
        problems.iter().try_for_each(|problem| output::text(&visible(problem)))?;
        let found = counted(problems.len(), "problem");
        output::aside(&format!("{}, {found}", counted(count, "agent")));
    }
    Ok(Exit::of(problems.is_empty()))
}

/// Writes a working agent to a new file and prints a command that runs it.
fn new(name: &str, dir: Option<PathBuf>, config: &Config) -> Result<(), Fault> {
    let text = AgentSpec::skeleton(name);
    AgentSpec::parse(&text).map_err(Fault::usage)?;
    let folder =
        dir.or_else(|| config.agents.value.last().cloned()).unwrap_or_else(|| PathBuf::from("."));
    let path = super::write_new(&folder, &format!("{name}.toml"), &text)?;
    let shown = path.display();
    output::text(&visible(&shown.to_string()))?;
    let hint = format!(
        "use it: wattle run --agents {} --agent {name} \"…\"",
        if folder.as_os_str().is_empty() { Path::new(".") } else { &folder }.display()
    );
    output::aside(&visible(&hint));
    Ok(())
}
