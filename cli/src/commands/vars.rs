//! `wattle vars`: manages the tenant's variables and secrets. Programs read variables through `kv`
//! as `tenant:NAME`. They can refer to secrets but not read them.

use serde_json::{Map, Value as Json};
use wattle_agent::host::capability::kv::Backend;
use wattle_agent::host::rt::Failure;

use crate::args::{StoreFlags, VarsCommand};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::setup::{self, Setup};
use crate::{input, output, trust};

/// Runs a `vars` command.
pub(crate) async fn vars(command: VarsCommand, outer: Layer) -> Result<Exit, Fault> {
    let variables = |flags: StoreFlags| -> Result<_, Fault> {
        let setup = Setup::new(trust::gather(&[flags.into(), outer.clone()])?)?;
        Ok(setup.store()?.variables())
    };
    let secrets =
        |flags: StoreFlags| setup::stored_secrets(&trust::gather(&[flags.into(), outer.clone()])?);
    match command {
        VarsCommand::Get { name, flags } => {
            let value = variables(flags)?.get(name.clone()).await.map_err(failed)?;
            output::data(&value.ok_or_else(|| missing(&name))?)?;
            Ok(Exit::Done)
        }
        VarsCommand::Set { name, value, secret: true, host, flags } => {
            if value != "-" {
                let message =
                    "a secret is read from stdin, because a list of processes shows arguments";
                return Err(Fault::usage(message).hint("write `-` instead of the value"));
            }
            let value = input::stdin()?;
            let value = std::str::from_utf8(&value)
                .map_err(|_| Fault::usage("a secret is text in UTF-8"))?;
            let value = value.strip_suffix('\n').unwrap_or(value);
            secrets(flags)?
                .set(&name, value, host)
                .await
                .map_err(|error| Fault::usage(error.to_string()))?;
            Ok(Exit::Done)
        }
        VarsCommand::Set { name, value, flags, .. } => {
            if name.is_empty() {
                return Err(Fault::usage("a variable needs a name"));
            }
            let value = if value == "-" { input::stdin()? } else { value.into_bytes() };
            let set = Box::new(move |_| Ok(Some(value.clone())));
            variables(flags)?.update(name, set).await.map_err(failed)?;
            Ok(Exit::Done)
        }
        VarsCommand::List { prefix, secret: true, json, flags } => {
            let mut listed =
                secrets(flags)?.list().await.map_err(|error| Fault::failed(error.to_string()))?;
            listed.retain(|(name, _)| name.starts_with(&prefix));
            for (name, hosts) in listed {
                if json {
                    output::text(&format!("{{{}:{hosts}}}", Json::String(name)))?
                } else {
                    output::text(&output::visible(&format!("{name} {hosts}")))?
                }
            }
            Ok(Exit::Done)
        }
        VarsCommand::List { prefix, json, flags, .. } => {
            let variables = variables(flags)?;
            let names = variables.keys(prefix).await.map_err(failed)?;
            if !json {
                names.iter().try_for_each(|name| output::text(&output::visible(name)))?;
                return Ok(Exit::Done);
            }
            let mut all = Map::new();
            for name in names {
                if let Some(value) = variables.get(name.clone()).await.map_err(failed)? {
                    all.insert(name, String::from_utf8_lossy(&value).into());
                }
            }
            output::json(&Json::Object(all))?;
            Ok(Exit::Done)
        }
        VarsCommand::Rm { name, secret: true, flags } => {
            let removed = secrets(flags)?
                .remove(&name)
                .await
                .map_err(|error| Fault::failed(error.to_string()))?;
            if removed {
                Ok(Exit::Done)
            } else {
                Err(Fault::failed(format!("there is no secret `{name}` in the store")))
            }
        }
        VarsCommand::Rm { name, flags, .. } => {
            let variables = variables(flags)?;
            if variables.get(name.clone()).await.map_err(failed)?.is_none() {
                return Err(missing(&name));
            }
            variables.update(name, Box::new(|_| Ok(None))).await.map_err(failed)?;
            Ok(Exit::Done)
        }
    }
}

fn missing(name: &str) -> Fault {
    Fault::failed(format!("there is no variable `{name}`"))
        .hint("`wattle vars list` lists the variables")
}

fn failed(failure: Failure) -> Fault {
    Fault::failed(failure.reason)
}
