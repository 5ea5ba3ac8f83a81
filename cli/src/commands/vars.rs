//! `wattle vars`: manages the tenant's variables and secrets. Programs read variables through `kv`
//! as `tenant:NAME`. They can refer to secrets but not read them.

use serde_json::{Map, Value as Json};
use wattle_agent::host::capability::kv::Backend;

use crate::args::VarsCommand;
use crate::config::Layer;
use crate::fault::Fault;
use crate::{input, output, setup, trust};

/// Runs a `vars` command.
pub(crate) async fn vars(command: VarsCommand, flags: &[Layer]) -> Result<(), Fault> {
    let config = trust::gather(flags)?;
    let variables = || setup::store(&config).map(|store| store.variables());
    let secrets = || setup::stored_secrets(&config);
    match command {
        VarsCommand::Get { name } => {
            let value = variables()?.get(name.clone()).await?;
            output::data(&value.ok_or_else(|| missing(&name))?)
        }
        VarsCommand::Set { name, value, secret: true, host } => {
            if value != "-" {
                let message =
                    "a secret is read from stdin, because a list of processes shows arguments";
                return Err(Fault::usage(message).hint("write `-` instead of the value"));
            }
            let value = input::stdin()?;
            let value = std::str::from_utf8(&value)
                .map_err(|_| Fault::usage("a secret is text in UTF-8"))?;
            let value = value.strip_suffix('\n').unwrap_or(value);
            let store = setup::store(&config)?;
            setup::check_keys(&config, store.file(), Some(store.tenant())).await?;
            secrets()?.set(&name, value, host).await.map_err(Fault::usage)?;
            setup::check_keys(&config, store.file(), Some(store.tenant())).await
        }
        VarsCommand::Set { name, value, .. } => {
            if name.is_empty() {
                return Err(Fault::usage("a variable needs a name"));
            }
            let value = if value == "-" { input::stdin()? } else { value.into_bytes() };
            let set = Box::new(move |_| Ok(Some(value.clone())));
            variables()?.update(name, set).await?;
            Ok(())
        }
        VarsCommand::List { prefix, secret: true, json } => {
            let mut listed = secrets()?.list().await.map_err(Fault::failed)?;
            listed.retain(|(name, _)| name.starts_with(&prefix));
            note_if(listed.is_empty() && !json, "the store has no such secrets");
            listed.into_iter().try_for_each(|(name, hosts)| {
                if json {
                    output::text(&format!("{{{}:{hosts}}}", Json::String(name)))
                } else {
                    output::text(&output::visible(&format!("{name} {hosts}")))
                }
            })
        }
        VarsCommand::List { prefix, json, .. } => {
            let variables = variables()?;
            let names = variables.keys(prefix).await?;
            note_if(names.is_empty() && !json, "the tenant has no such variables");
            if !json {
                return names.iter().try_for_each(|name| output::text(&output::visible(name)));
            }
            let mut all = Map::new();
            for name in names {
                if let Some(value) = variables.get(name.clone()).await? {
                    all.insert(name, String::from_utf8_lossy(&value).into());
                }
            }
            output::json(&all)
        }
        VarsCommand::Rm { name, secret: true } => {
            if secrets()?.remove(&name).await.map_err(Fault::failed)? {
                return Ok(());
            }
            Err(Fault::failed(format!("there is no secret `{name}` in the store")))
        }
        VarsCommand::Rm { name, .. } => {
            let variables = variables()?;
            if variables.get(name.clone()).await?.is_none() {
                return Err(missing(&name));
            }
            variables.update(name, Box::new(|_| Ok(None))).await?;
            Ok(())
        }
    }
}

/// Writes a note to stderr if a list is empty.
fn note_if(is_empty: bool, note: &str) {
    if is_empty {
        output::note(note);
    }
}

fn missing(name: &str) -> Fault {
    Fault::failed(format!("there is no variable `{name}`"))
        .hint("`wattle vars list` lists the variables")
}
