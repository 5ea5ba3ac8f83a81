//! `wattle memory`: reads and changes the tenant's memory items. Programs in all of the tenant's
//! sessions find these items through the capability `memory`.

use serde_json::{Value as Json, json};
use wattle_agent::host::StoredMemory;
use wattle_agent::host::capability::memory::{
    Item, MAX_ITEMS, Memory as _, MemoryText, NewItem, Scope,
};
use wattle_agent::host::capability::search::Query;
use wattle_agent::host::rt::Failure;

use crate::args::{MemoryCommand, StoreFlags};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::{input, output, setup, trust};

/// Reads and writes the tenant's memory.
pub(crate) async fn memory(command: MemoryCommand, outer: Layer) -> Result<Exit, Fault> {
    let open = async |flags: StoreFlags| -> Result<StoredMemory, Fault> {
        let config = trust::gather(&[flags.into(), outer.clone()])?;
        // The store encrypts items that contain a secret, so it needs to know the secrets.
        setup::mask_settings(&config).await?;
        Ok(setup::store(&config)?.memory(None))
    };
    match command {
        MemoryCommand::List { json, flags } => {
            let items = open(flags).await?.list(MAX_ITEMS).await.map_err(failed)?;
            print(&items, json)
        }
        MemoryCommand::Search { words, json, flags } => {
            let query = Query::read(&words.join(" "))
                .ok_or_else(|| Fault::usage("there are no words to search for"))?;
            let memory = open(flags).await?;
            let found = memory.by_words(query).await.map_err(failed)?;
            let ids = found.into_iter().map(|(id, _)| id).collect();
            print(&memory.items(ids).await.map_err(failed)?, json)
        }
        MemoryCommand::Add { text, flags } => {
            let text = if text == "-" { from_stdin()? } else { text };
            let text = MemoryText::new(&text).map_err(|failure| Fault::usage(failure.reason))?;
            let item = NewItem { text, scope: Scope::Tenant };
            let id = open(flags).await?.add(None, item).await.map_err(failed)?;
            output::text(&id.to_string())?;
            Ok(Exit::Done)
        }
        MemoryCommand::Remove { ids, flags } => {
            let memory = open(flags).await?;
            for id in ids {
                if !memory.remove(None, id).await.map_err(failed)? {
                    return Err(Fault::failed(format!("the memory has no item {id}"))
                        .hint("`wattle memory list` lists the items"));
                }
            }
            Ok(Exit::Done)
        }
    }
}

fn from_stdin() -> Result<String, Fault> {
    String::from_utf8(input::stdin()?).map_err(|_| Fault::usage("an item is text in UTF-8"))
}

/// Prints the items, one per line or as a JSON array.
fn print(items: &[Item], as_json: bool) -> Result<Exit, Fault> {
    if as_json {
        let item = |item: &Item| json!({"id": item.id, "text": item.text, "created": item.made});
        output::json(&Json::Array(items.iter().map(item).collect()))?;
        return Ok(Exit::Done);
    }
    for item in items {
        let line = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
        output::text(&output::visible(&format!("{} {line}", item.id)))?;
    }
    Ok(Exit::Done)
}

fn failed(failure: Failure) -> Fault {
    Fault::failed(failure.reason)
}
