//! `wattle ledger`: whether traces are as they were written.

use serde_json::json;
use wattle_agent::ledger::{Pins, PublicKey, Verdict, verify};

use crate::args::LedgerCommand;
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, GOOD, paint};
use crate::setup;

/// Verifies a trace, or tells the key that others verify it by.
pub(crate) fn ledger(command: LedgerCommand, outer: Layer) -> Result<Exit, Fault> {
    match command {
        LedgerCommand::Verify { dir, run, key, json, flags } => {
            let config = Config::gather(&[(*flags).into(), outer])?;
            let pins = pins(&config, key.as_deref())?;
            let wrong = |error: wattle_agent::ledger::VerifyError| Fault::usage(error.to_string());
            let mut verdicts = verify(&dir, &pins).map_err(wrong)?;
            if let Some(run) = &run {
                verdicts.retain(|verdict| verdict.run.starts_with(run));
                if verdicts.is_empty() {
                    return Err(Fault::usage(format!("no run `{run}` in the trace")));
                }
            }
            if json {
                output::json(&verdicts.iter().map(document).collect())?;
            } else {
                verdicts.iter().try_for_each(|verdict| output::styled(&words(verdict)))?;
            }
            let sound = verdicts.iter().all(|verdict| verdict.finding.is_none());
            Ok(if sound { Exit::Done } else { Exit::Failed })
        }
        LedgerCommand::Key { flags } => {
            let config = Config::gather(&[(*flags).into(), outer])?;
            let tenant = setup::tenant(&config)?;
            let pinned = keys(&config)?.pinned(&tenant).map_err(|error| Fault::failed(error.to_string()))?;
            let key = pinned.ok_or_else(|| {
                Fault::failed(format!("tenant `{tenant}` has no key yet")).hint("its first run makes one")
            })?;
            output::text(&key.to_string())?;
            Ok(Exit::Done)
        }
    }
}

fn keys(config: &Config) -> Result<wattle_agent::ledger::Keys, Fault> {
    setup::keys(config).ok_or_else(|| {
        Fault::configuration("there is no folder that keys are kept in")
            .hint("they stand beside the store: `--store FILE`")
    })
}

fn pins(config: &Config, key: Option<&str>) -> Result<Pins, Fault> {
    match key {
        None => Ok(Pins::Keys(keys(config)?)),
        Some(text) => PublicKey::parse(text)
            .map(Pins::One)
            .ok_or_else(|| Fault::usage("a key has 64 hexadecimal digits; `wattle ledger key` prints it")),
    }
}

fn words(verdict: &Verdict) -> String {
    let run = output::visible(if verdict.run.is_empty() { "(no run)" } else { &verdict.run });
    match &verdict.finding {
        Some(finding) => format!("{run}: {} {}", paint(BAD, "BROKEN"), output::visible(&finding.to_string())),
        None => {
            let late =
                if verdict.late > 0 { format!(", {} sealed after a restart", verdict.late) } else { String::new() };
            let end = if verdict.ended {
                ""
            } else {
                ", no end: the run is under way, was cut short, or its end was cut off"
            };
            format!("{run}: {} {} lines{late}{end}", paint(GOOD, "sound"), verdict.sealed)
        }
    }
}

fn document(verdict: &Verdict) -> serde_json::Value {
    json!({
        "run": verdict.run,
        "tenant": verdict.tenant,
        "sound": verdict.finding.is_none(),
        "finding": verdict.finding.as_ref().map(ToString::to_string),
        "sealed": verdict.sealed,
        "late": verdict.late,
        "time": verdict.time,
        "ended": verdict.ended,
    })
}
