//! `wattle ledger`: verifies the seals of traces.

use std::path::Path;

use serde_json::json;
use wattle_agent::host::ledger::{
    FinalSeal, Finding, Pins, PublicKey, Verdict, Verification, verify,
};

use crate::args::LedgerCommand;
use crate::config::{Config, Layer};
use crate::fault::{Exit, Fault};
use crate::output::{self, BAD, GOOD, WARN, paint};
use crate::progress::counted;
use crate::{setup, trust};

/// Verifies a trace or prints the tenant's public key.
pub(crate) async fn ledger(command: LedgerCommand, flags: &[Layer]) -> Result<Exit, Fault> {
    let config = trust::gather(flags)?;
    match command {
        LedgerCommand::Verify { dir, run, key, json } => {
            let dir = setup::traces_of(&config, dir);
            let pins = pins(&config, key.as_deref())?;
            let known = if key.is_none() { known(&config, &dir).await? } else { Vec::new() };
            let Verification { runs: mut verdicts, files } =
                verify(&dir, &pins, &known).map_err(Fault::usage)?;
            if let Some(run) = &run {
                verdicts.retain(|verdict| verdict.run.starts_with(run));
                if verdicts.is_empty() {
                    return Err(Fault::usage(format!("no run `{run}` in the trace")));
                }
            }
            if json {
                let documents = verdicts.iter().map(document);
                let documents = documents.chain(files.iter().map(file_document));
                output::json(&documents.collect::<Vec<_>>())?;
            } else {
                verdicts.iter().try_for_each(|verdict| output::styled(&words(verdict)))?;
                files.iter().try_for_each(|finding| output::styled(&broken(finding)))?;
            }
            let findings = || verdicts.iter().filter_map(|verdict| verdict.finding.as_ref());
            let unverified = findings().filter(|finding| finding.is_unverified()).count();
            if unverified > 0 {
                output::warn(&format!(
                    "{} not verified: the key is not one of this store\n\
                     hint: `wattle ledger verify --store FILE` verifies with the keys of another \
                     store, `--key KEY` with one key",
                    counted(unverified, "run")
                ));
            }
            Ok(if !files.is_empty() || findings().count() > unverified {
                Exit::Failed
            } else if unverified > 0 {
                Exit::Configuration
            } else {
                Exit::Done
            })
        }
        LedgerCommand::Key => {
            let tenant = setup::tenant(&config)?;
            let pinned = keys(&config)?.pinned(tenant.as_str()).map_err(Fault::failed)?;
            let key = pinned.ok_or_else(|| {
                Fault::failed(format!("tenant `{tenant}` has no key yet"))
                    .hint("its first run creates one")
            })?;
            output::text(&key.to_string()).map(Exit::from)
        }
    }
}

/// Returns the final seals that the store has recorded for the runs in the folder. The list
/// includes the runs of all tenants, because all tenants share the folder's ledger. It is empty if
/// there is no store.
async fn known(config: &Config, folder: &Path) -> Result<Vec<FinalSeal>, Fault> {
    let (Some(store), Ok(folder)) = (setup::store_if_there(config)?, folder.canonicalize()) else {
        return Ok(Vec::new());
    };
    Ok(store.file().sealed(&folder).await?)
}

fn keys(config: &Config) -> Result<wattle_agent::host::ledger::Keys, Fault> {
    setup::keys(config).ok_or_else(|| {
        Fault::configuration("no folder for keys is known")
            .hint("keys are kept beside the store; name it with `--store FILE`")
    })
}

fn pins(config: &Config, key: Option<&str>) -> Result<Pins, Fault> {
    match key {
        None => Ok(Pins::Keys(keys(config)?)),
        Some(text) => PublicKey::parse(text).map(Pins::One).ok_or_else(|| {
            Fault::usage("a key has 64 hexadecimal digits; `wattle ledger key` prints it")
        }),
    }
}

fn words(verdict: &Verdict) -> String {
    let run = output::visible(if verdict.run.is_empty() { "(no run)" } else { &verdict.run });
    match &verdict.finding {
        Some(finding) if finding.is_unverified() => {
            format!("{run}: {}, {finding}", paint(WARN, "not verified"))
        }
        Some(finding) => format!("{run}: {}", broken(finding)),
        None => {
            let late = match verdict.late {
                0 => String::new(),
                late => format!(", {late} sealed late"),
            };
            let end = if verdict.ended {
                ""
            } else {
                ", no end: the run is still active, was aborted, or its end was removed"
            };
            format!("{run}: {} {} lines{late}{end}", paint(GOOD, "sound"), verdict.sealed)
        }
    }
}

/// Renders a finding.
fn broken(finding: &Finding) -> String {
    format!("{} {}", paint(BAD, "BROKEN"), output::visible(&finding.to_string()))
}

fn file_document(finding: &Finding) -> serde_json::Value {
    json!({"run": null, "result": "broken", "sound": false, "finding": finding.to_string()})
}

fn document(verdict: &Verdict) -> serde_json::Value {
    let result = match &verdict.finding {
        None => "sound",
        Some(finding) if finding.is_unverified() => "not verified",
        Some(_) => "broken",
    };
    json!({
        "run": verdict.run,
        "tenant": verdict.tenant,
        "result": result,
        "sound": verdict.finding.is_none(),
        "finding": verdict.finding.as_ref().map(ToString::to_string),
        "sealed": verdict.sealed,
        "late": verdict.late,
        "time": verdict.time,
        "ended": verdict.ended,
    })
}
