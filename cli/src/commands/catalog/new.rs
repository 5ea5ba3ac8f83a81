//! `wattle catalog new`: writes a new program as a starting point.

use std::path::PathBuf;

use serde_json::json;
use wattle_agent::host::catalog::{Name, skeleton};

use crate::args::NewArgs;
use crate::config::Config;
use crate::fault::Fault;
use crate::output::{self, visible};
use crate::setup;

/// Writes a working program with examples to a new file and prints the commands that test and run
/// it.
pub(super) fn new(args: NewArgs, config: &Config) -> Result<(), Fault> {
    let name: Name = args.name.parse().map_err(|rule| {
        Fault::usage(format!("`{}` is not a valid program name", args.name)).hint(format!("{rule}"))
    })?;
    // The last folder overrides the others, so it contains the author's own programs.
    let folder = args
        .dir
        .or_else(|| config.catalog.value.last().cloned())
        .unwrap_or_else(|| PathBuf::from("."));
    let path = crate::commands::write_new(&folder, &format!("{name}.wat"), &skeleton(&name))?;
    let shown = path.display();
    if let Some(known) = setup::folders(config)
        .catalog()
        .get(name.as_str())
        .filter(|known| known.origin().path().is_none())
    {
        output::warn(&format!(
            "from a catalog folder, it replaces the program `{}` ({})",
            known.name(),
            known.origin()
        ));
    }
    if args.json {
        return output::json(&json!({"name": name.as_str(), "file": path}));
    }
    output::text(&visible(&shown.to_string()))?;
    let hint = format!("test it: wattle catalog test {shown}\nrun it:  wattle exec {shown}");
    output::aside(&visible(&hint));
    Ok(())
}
