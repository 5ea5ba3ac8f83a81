//! `/model`, `/agent`, `/tools`, `/catalog`, `/mcp`: the model, the agent, the functions, the programs
//! and the MCP servers of the session.

use std::time::Duration;

use wattle_agent::agents::DEFAULT_AGENT;
use wattle_agent::host::capability;
use wattle_agent::model::{list_models, presets};

use crate::commands::{agents, catalog as listing, mcp as servers};
use crate::fault::Fault;
use crate::output::{self, DIM, NAME, paint, visible};
use crate::repl::Repl;
use crate::repl::session::Session;
use crate::setup;

/// Maximum number of models that `/model` prints.
const LISTED: usize = 40;

/// Maximum time to wait for the list of models.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the model and the models of its endpoint, or switches to another one of them.
pub(super) async fn model(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let session = &mut repl.session;
    let Some(name) = arguments.into_iter().next() else { return list(session).await };
    let before = session.setup.config.model.value.replace(name);
    let opened = session.setup.model();
    match opened {
        Ok(model) => session.model = Some(model),
        Err(fault) => {
            // The session keeps its previous model, which works.
            session.setup.config.model.value = before;
            return Err(fault);
        }
    }
    output::aside(&format!("the model is {}", visible(&session.model_name())));
    Ok(())
}

/// Prints the MCP servers or the tools of one, or makes a prompt of a server the next input.
pub(super) async fn mcp(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let all = &repl.session.setup.servers;
    let (server, prompt) = match arguments.as_slice() {
        [] => return servers::list(all, false).map(drop),
        [name] => return servers::show(servers::find(all, name)?, false).map(drop),
        [name, prompt, ..] => (servers::find(all, name)?, prompt),
    };
    let given = arguments.iter().skip(2).map(|argument| match argument.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.into())),
        None => Err(Fault::usage(format!("`{argument}` is not of the form `NAME=VALUE`"))),
    });
    let given = given.collect::<Result<_, Fault>>()?;
    let text =
        server.prompt(prompt, given).await.map_err(|error| Fault::failed(error.to_string()))?;
    repl.session.next = text;
    Ok(())
}

/// Prints the model and the models of its endpoint. Without an endpoint, prints the usual models of
/// the providers.
async fn list(session: &mut Session) -> Result<(), Fault> {
    output::text(&visible(&session.model_name()))?;
    let config = session.config();
    let is_recording = config.cassette.value.is_some();
    let Some(named) = setup::endpoint(config, None).ok().filter(|_| !is_recording) else {
        let known = presets().iter().filter_map(|preset| {
            preset.model.as_ref().map(|model| format!("{}: {model}", preset.name))
        });
        let known = known.collect::<Vec<_>>().join(", ");
        output::aside(&format!("/model NAME switches; the usual models are {known}"));
        return Ok(());
    };
    match list_models(&named.endpoint, session.setup.host.egress(), PATIENCE).await {
        Ok(mut names) => {
            names.sort();
            let mut shown = names.iter().take(LISTED);
            shown.try_for_each(|name| output::text(&format!("  {}", visible(name))))?;
            let more = names.len().saturating_sub(LISTED);
            let more = if more > 0 { format!("… {more} more; ") } else { String::new() };
            output::aside(&format!("{more}/model NAME switches, Tab completes the names"));
            session.models = names;
        }
        Err(why) => output::warn(&format!("the endpoint lists no models: {why}")),
    }
    Ok(())
}

/// Prints the agents or switches to another one. The session keeps its conversation.
pub(super) async fn agent(repl: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let setup = &mut repl.session.setup;
    setup.agents.refresh().iter().for_each(|problem| output::warn(&problem.to_string()));
    let Some(name) = arguments.into_iter().next() else {
        let current = setup.config.agent.value.as_deref().unwrap_or(DEFAULT_AGENT);
        return agents::print(&setup.agents.list(), Some(current));
    };
    let before = setup.config.agent.value.replace(name);
    match setup.agent().await {
        Ok(agent) => {
            setup.config.agent.value = Some(agent.name.clone());
            output::aside(&format!("the agent is {}", visible(agent.shown_name())));
            Ok(())
        }
        Err(fault) => {
            setup.config.agent.value = before;
            Err(fault)
        }
    }
}

/// Prints the namespaces of host functions, or the functions of one namespace.
pub(super) async fn tools(_: &mut Repl, arguments: Vec<String>) -> Result<(), Fault> {
    let Some(name) = arguments.first() else {
        for namespace in capability::ALL {
            output::styled(&format!("{:<10} {}", paint(NAME, namespace.name), namespace.about))?;
        }
        return Ok(());
    };
    let found = capability::ALL.iter().find(|namespace| namespace.name == *name);
    let namespace = found.ok_or_else(|| {
        Fault::usage(format!("there is no namespace `{name}`")).hint("`/tools` lists them")
    })?;
    for function in namespace.functions {
        output::styled(&format!(
            "{}  {}",
            paint(NAME, &function.signature.usage()),
            paint(DIM, function.about)
        ))?;
    }
    Ok(())
}

/// Prints the programs of the catalog, or those that match the given words, best match first.
pub(super) async fn catalog(repl: &mut Repl, words: Vec<String>) -> Result<(), Fault> {
    let catalog = repl.session.setup.host.catalog();
    if words.is_empty() {
        return listing::print(&catalog.iter().map(|entry| &**entry).collect::<Vec<_>>());
    }
    let found = catalog.search(&words.join(" "));
    if found.is_empty() {
        return Err(Fault::usage(format!("no program matches `{}`", words.join(" ")))
            .hint("`/catalog` lists all programs"));
    }
    listing::print(&found.into_iter().map(|entry| &**entry).collect::<Vec<_>>())
}
