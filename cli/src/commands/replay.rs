//! `wattle replay`: replays a run and compares it with its record.

use std::sync::Arc;

use serde_json::json;
use wattle_agent::agents::AgentSpec;
use wattle_agent::host::journal::{self, Difference, ReplayReport, SharedJournal};

use super::run::find;
use crate::args::ReplayArgs;
use crate::config::{Layer, McpServers};
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::progress::counted;
use crate::setup::{RUN_STEPS, Setup};
use crate::trust;

/// Replays a run. Prints the first difference on stdout and fails if there is one.
pub(crate) async fn replay(args: ReplayArgs, flags: &[Layer]) -> Result<Exit, Fault> {
    let (store, opened) = find(&args.run, flags).await?;
    let granted =
        opened.start.origin.get("granted").map(Layer::of_granted).transpose()?.unwrap_or_default();
    let config = trust::gather(&[flags, &[granted]].concat())?;
    let mut config = trust::with_trusted_content(config)?;
    let origin = &opened.start.origin;
    let setup = if origin.get("by").is_some_and(|by| by == "run") {
        config.mcp.value = McpServers::default();
        Setup::new(config)?.with_tools_of(origin).await
    } else {
        Setup::new(config)?
    };
    let agent = AgentSpec::of_origin(&opened.start.origin).map_err(Fault::failed)?;
    let (setup, _) = setup.for_agent(&agent, &setup.settings(RUN_STEPS))?;
    let journal: SharedJournal = Arc::new(store);
    let replayed = journal::replay(&setup.host, &journal, &opened, args.from).await;
    let replayed = replayed.map_err(Fault::failed)?;
    if args.json {
        output::json(&as_json(&opened.id, &replayed))?;
    } else {
        output::text(&visible(&as_text(&opened.id, &replayed)))?;
    }
    Ok(Exit::of(replayed.difference.is_none()))
}

/// Describes the result of a replay.
pub(crate) fn as_text(run: &str, replayed: &ReplayReport) -> String {
    let played =
        format!("{}, {}", counted(replayed.turns, "turn"), counted(replayed.programs, "program"));
    match &replayed.difference {
        None => format!("the run {run} matches its record ({played})"),
        Some((step, Difference { what, was, is })) => {
            let place = match step {
                0 => "before its first step".to_owned(),
                step => format!("in step {step}"),
            };
            format!("the run {run} differs {place}: {what}\n  was: {was}\n  is:  {is}")
        }
    }
}

fn as_json(run: &str, replayed: &ReplayReport) -> serde_json::Value {
    let difference = replayed.difference.as_ref().map(|(step, Difference { what, was, is })| {
        json!({"step": step, "what": what, "was": was, "is": is})
    });
    json!({
        "run": run, "turns": replayed.turns, "programs": replayed.programs,
        "difference": difference,
    })
}
