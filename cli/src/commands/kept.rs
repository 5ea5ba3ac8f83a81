//! The settings of a resumed or forked run. The run keeps those that it started with. The others
//! come from the command, as for a new run.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value as Json;
use wattle_agent::host::DialectSetting;
use wattle_agent::host::journal::RunRecord;
use wattle_agent::host::machine::Dialect;

use crate::config::{Config, Layer, Origin, Row, Temperature, Timeout};
use crate::fault::Fault;
use crate::{output, trust};

/// The lists of rules. The rules of the command are added to those that the run started with.
const RULES: &[&str] = &["allow", "ask", "deny"];

/// Returns the settings with which a recorded run goes on.
///
/// # Errors
/// If `wattle run` did not start the run, if a setting is invalid, or if a flag would change a
/// setting that the run keeps.
pub(super) fn settings(flags: &[Layer], opened: &RunRecord) -> Result<Config, Fault> {
    let started = started_with(opened)?;
    let wanted = trust::gather(flags)?;
    let layers = [std::slice::from_ref(&started), flags].concat();
    let mut kept = trust::gather(&layers)?;
    keep_recorded(&mut kept, &wanted, opened);
    let mut refused = Vec::new();
    for (wanted, kept) in wanted.rows().into_iter().zip(kept.rows()) {
        if is_same(&wanted, &kept) {
            continue;
        }
        match &wanted.origin {
            Origin::Default => {}
            Origin::Flag => refused.push((wanted.name, shown(&kept))),
            origin => output::warn(&format!(
                "the run keeps {}, with which it started; {origin} has another value",
                shown(&kept)
            )),
        }
    }
    refused.extend(replaced_rules(&wanted, &started));
    if refused.is_empty() {
        return Ok(kept);
    }
    let values: Vec<&str> = refused.iter().map(|(_, value)| value.as_str()).collect();
    let message =
        format!("the run `{}` keeps {}, with which it started", opened.id, values.join(", "));
    let flags: Vec<String> =
        refused.iter().map(|(key, _)| format!("`--{}`", key.replace(['_', '.'], "-"))).collect();
    let hint = format!("leave out {}, or start a new run", flags.join(", "));
    Err(Fault::usage(message).hint(hint))
}

/// Returns the permissions, folders and budgets that the run started with.
fn started_with(opened: &RunRecord) -> Result<Layer, Fault> {
    let origin = &opened.start.origin;
    if origin.get("by").is_none_or(|by| by != "run") {
        let message = format!("the run `{}` was not started by `wattle run`", opened.id);
        return Err(Fault::usage(message).hint("a server resumes its runs when it starts"));
    }
    let mut started = Layer::of_granted(origin.get("granted").unwrap_or(&Json::Null))?;
    // Changes are applied at the end, so this can still be decided.
    started.apply = started.apply.filter(|apply| *apply);
    Ok(started)
}

/// Sets the settings that are part of the run's record.
fn keep_recorded(kept: &mut Config, wanted: &Config, opened: &RunRecord) {
    let start = &opened.start;
    let machine = &start.setup.settings;
    kept.max_steps.value = Some(machine.max_steps);
    kept.on_max_steps.value = machine.on_max_steps;
    kept.max_repetitions.value = machine.max_repetitions;
    let tokens = machine.max_tokens_total.and_then(|tokens| u32::try_from(tokens).ok());
    kept.max_tokens_total.value = tokens.and_then(NonZeroU32::new);
    kept.max_cost.value = machine.max_cost;
    kept.timeout.value = start.timeout_ms.map(|ms| Timeout(Duration::from_millis(ms)));
    if wanted.temperature.value.get() != start.temperature
        && let Some(recorded) = Temperature::of(start.temperature)
    {
        kept.temperature.value = recorded;
    }
    kept.max_tokens.value = NonZeroU32::new(start.max_tokens).unwrap_or(NonZeroU32::MIN);
    kept.thinking_effort.value = start.thinking_effort;
    kept.tool_call.value = start.tool_call;
    kept.dialect.value = match (wanted.dialect.value, start.setup.dialect) {
        (DialectSetting::Text | DialectSetting::Native, Dialect::Text) => DialectSetting::Text,
        (DialectSetting::Text | DialectSetting::Native, Dialect::Native) => DialectSetting::Native,
        (wanted, _) => wanted,
    };
    if wanted.orient.origin == Origin::Flag {
        kept.orient.value = start.setup.orientation.is_some();
    }
    if wanted.system.origin == Origin::Flag {
        // The prompt is recorded, not its file.
        kept.system.value = None;
    }
    kept.session.value.clone_from(&opened.session);
    if wanted.agent.value.is_some() {
        kept.agent.value = Some(start.agent.clone());
    }
}

/// Returns true if both rows have the same value. A relative path equals its absolute form.
fn is_same(wanted: &Row, kept: &Row) -> bool {
    if RULES.contains(&wanted.name) || wanted.value == kept.value {
        return true;
    }
    let real = |value: &Json| value.as_str().and_then(|path| std::fs::canonicalize(path).ok());
    let paths = |row: &Row| match &row.value {
        Json::Array(paths) => paths.iter().map(real).collect(),
        path => vec![real(path)],
    };
    wanted.is_path && paths(wanted).iter().all(Option::is_some) && paths(wanted) == paths(kept)
}

/// Returns the lists of the flags that have a rule for which the run started with another verdict,
/// each with that verdict.
fn replaced_rules(wanted: &Config, started: &Layer) -> Vec<(&'static str, String)> {
    let lists = [
        ("allow", &wanted.allow, &started.allow),
        ("ask", &wanted.ask, &started.ask),
        ("deny", &wanted.deny, &started.deny),
    ];
    let mut replaced = Vec::new();
    for (key, setting, _) in lists {
        for rule in setting.value.iter().filter(|_| setting.origin == Origin::Flag) {
            let other = lists.iter().find(|(other, _, started)| {
                *other != key && started.as_ref().is_some_and(|rules| rules.contains(rule))
            });
            replaced.extend(other.map(|(other, _, _)| (key, format!("`{other} = {rule}`"))));
        }
    }
    replaced
}

/// Formats a setting.
fn shown(row: &Row) -> String {
    match &row.value {
        Json::Null => format!("no `{}`", row.name),
        value => format!("`{} = {value}`", row.name),
    }
}
