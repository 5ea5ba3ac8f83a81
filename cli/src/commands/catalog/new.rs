//! `wattle catalog new`: writes a new program as a starting point.

use std::path::PathBuf;

use serde_json::json;
use wattle_agent::host::catalog::{Name, skeleton};

use crate::args::NewArgs;
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::output::{self, DIM, paint, visible};
use crate::setup;
use crate::trust;

/// Writes a working program with examples to a new file and prints the commands that test and run
/// it.
pub(super) fn new(args: NewArgs, outer: Layer) -> Result<Exit, Fault> {
    let config = trust::gather(&[args.flags.into(), outer])?;
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
    if let Some(known) = setup::folders(&config)
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
        output::json(&json!({"name": name.as_str(), "file": path}))?;
        return Ok(Exit::Done);
    }
    output::text(&visible(&shown.to_string()))?;
    let hint = format!("test it: wattle catalog test {shown}\nrun it:  wattle exec {shown}");
    output::note(&paint(DIM, &visible(&hint)));
    Ok(Exit::Done)
}
