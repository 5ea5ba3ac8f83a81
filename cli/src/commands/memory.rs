//! `wattle memory`: reads and changes the tenant's memory items. Programs in all of the tenant's
//! sessions find these items through the capability `memory`.

use serde_json::json;
use wattle_agent::host::StoredMemory;
use wattle_agent::host::capability::memory::{
    Item, MAX_ITEMS, Memory as _, MemoryText, NewItem, Scope,
};
use wattle_agent::host::capability::search::Query;
use wattle_agent::host::rt::decode_text;

use crate::args::MemoryCommand;
use crate::config::Layer;
use crate::fault::Fault;
use crate::{input, output, setup, trust};

/// Reads and writes the tenant's memory.
pub(crate) async fn memory(command: MemoryCommand, flags: &[Layer]) -> Result<(), Fault> {
    let open = async || -> Result<StoredMemory, Fault> {
        let config = trust::gather(flags)?;
        // The store encrypts items that contain a secret, so it needs to know the secrets.
        setup::mask_settings(&config).await?;
        Ok(setup::store(&config)?.memory(None))
    };
    match command {
        MemoryCommand::List { json } => {
            print(&open().await?.list(MAX_ITEMS).await?, json, "the memory has no items")
        }
        MemoryCommand::Search { words, json } => {
            let query = Query::read(&words.join(" "))
                .ok_or_else(|| Fault::usage("there are no words to search for"))?;
            let memory = open().await?;
            let ids = memory.by_words(query).await?.into_iter().map(|(id, _)| id).collect();
            print(&memory.items(ids).await?, json, "no item of the memory matches")
        }
        MemoryCommand::Add { text } => {
            let text = if text == "-" { from_stdin()? } else { text };
            let text = MemoryText::new(&text).map_err(|failure| Fault::usage(failure.reason))?;
            let item = NewItem { text, scope: Scope::Tenant };
            output::text(&open().await?.add(None, item).await?.to_string())
        }
        MemoryCommand::Remove { ids } => {
            let memory = open().await?;
            for id in ids {
                if !memory.remove(None, id).await? {
                    return Err(Fault::failed(format!("the memory has no item {id}"))
                        .hint("`wattle memory list` lists the items"));
                }
            }
            Ok(())
        }
    }
}

fn from_stdin() -> Result<String, Fault> {
    decode_text(input::stdin()?).map_err(|_| Fault::usage("an item is text in UTF-8"))
}

/// Prints the items, one per line or as a JSON array. Without items, notes `none`.
fn print(items: &[Item], as_json: bool, none: &str) -> Result<(), Fault> {
    if as_json {
        let item = |item: &Item| json!({"id": item.id, "text": item.text, "created": item.made});
        return output::json(&items.iter().map(item).collect::<Vec<_>>());
    }
    if items.is_empty() {
        output::note(none);
    }
    items.iter().try_for_each(|item| {
        let line = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
        output::text(&output::visible(&format!("{} {line}", item.id)))
    })
}
