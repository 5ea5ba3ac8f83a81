//! The MCP servers of this process, and their accepted tools.

use std::sync::Arc;

use serde_json::Value as Json;
use wattle_agent::host::capability::egress::Egress;
use wattle_mcp::{Launcher, Pins, ServerError, Servers, ServersParts, Tokens};

use super::keys;
use crate::config::{Config, Places};
use crate::{broker, output};

/// The key under which a run's origin has the hashes of its tools, by servers.
pub(crate) const TOOLS: &str = "tools";

/// Returns the folder of the accepted tools, or `None` if the user has no home directory.
pub(crate) fn pins() -> Option<Pins> {
    Places::of_user().mcp.map(Pins::in_folder)
}

/// Returns the tokens of the user's sign-ins, or `None` if the user has no home directory. They are in
/// the same folder as the accepted tools.
fn tokens(config: &Config) -> Option<Tokens> {
    let (folder, keys) = (Places::of_user().mcp?, keys(config)?);
    Some(Tokens::in_folder(folder, keys, &config.tenant.value, output::mask().clone()))
}

/// Creates the configured servers. None of them is started.
pub(crate) fn configured(config: &Config, egress: &Egress) -> Servers {
    let settings = config.mcp.value.0.clone();
    if settings.is_empty() {
        return Servers::default();
    }
    let pins = pins();
    let launcher = broker::started().map(|broker| broker as Arc<dyn Launcher>);
    Servers::new(&ServersParts {
        settings,
        pins: pins.as_ref(),
        egress,
        tokens: tokens(config),
        launcher,
        value: &|name, is_secret| broker::value(config, name, is_secret),
    })
}

/// Returns the tools with which a run began, from its origin, as servers that nothing calls. Tools that
/// are not kept on this machine are left out, with a warning.
pub(crate) fn of_run(origin: &Json) -> Servers {
    let recorded = origin.get(TOOLS).and_then(Json::as_object).into_iter().flatten();
    let find = |(name, hash): (&String, &Json)| {
        let found = pins().map_or(Ok(None), |pins| pins.kept(hash.as_str().unwrap_or_default()));
        match found {
            Ok(Some(pin)) => return Some((name.clone(), pin)),
            Ok(None) => output::warn(&format!(
                "the tools of the MCP server `{name}` with which the run began are not on this machine"
            )),
            Err(error) => output::warn(&format!("the tools of the MCP server `{name}`: {error}")),
        }
        None
    };
    Servers::of_pins(recorded.filter_map(find).collect())
}

/// Warns about servers that cannot be used and tools that are left out.
pub(crate) fn warn(servers: &Servers, errors: &[ServerError]) {
    for error in errors {
        output::warn(&format!("the tools of an MCP server are missing: {error}"));
    }
    for status in servers.iter().map(|server| server.status()) {
        if let Some(problem) = status.problems.first() {
            let more = match status.problems.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more: `wattle mcp show {}`)", status.name),
            };
            output::warn(&format!("the MCP server `{}`: {problem}{more}", status.name));
        }
    }
}
