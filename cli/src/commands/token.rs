//! `wattle token`: manages the tokens of the HTTP server. The store contains only their hashes.

use serde_json::{Value as Json, json};
use wattle_agent::host::{Scope, TenantStore, is_session_id};
use wattle_server::Token;

use crate::args::{StoreFlags, TokenCommand, TokenScope};
use crate::config::Layer;
use crate::fault::{Exit, Fault};
use crate::output::{self, visible};
use crate::setup;
use crate::trust;

/// Creates, lists and revokes tokens of the tenant.
pub(crate) async fn token(command: TokenCommand, outer: Layer) -> Result<Exit, Fault> {
    let open = |flags: StoreFlags| -> Result<TenantStore, Fault> {
        setup::store(&trust::gather(&[flags.into(), outer.clone()])?)
    };
    match command {
        TokenCommand::New { name, scope, flags } => create(&open(flags)?, &name, scope).await,
        TokenCommand::List { json, flags } => list(&open(flags)?, json).await,
        TokenCommand::Revoke { name, flags } => match open(flags)?.revoke_token(&name).await {
            Ok(true) => Ok(Exit::Done),
            Ok(false) => Err(Fault::usage(format!("there is no token `{name}`"))
                .hint("`wattle token list` lists the tokens")),
            Err(error) => Err(failed(error)),
        },
    }
}

async fn create(store: &TenantStore, name: &str, scope: TokenScope) -> Result<Exit, Fault> {
    if !is_session_id(name) {
        return Err(Fault::usage(format!(
            "a token's name is {}, not {name:?}",
            wattle_agent::host::SESSION_ID
        )));
    }
    let scope = match scope {
        TokenScope::Read => Scope::Read,
        TokenScope::Run => Scope::Run,
        TokenScope::Admin => Scope::Admin,
    };
    let token = Token::generate().map_err(failed)?;
    if store.add_token(name, scope, token.reveal()).await.map_err(failed)? {
        output::text(token.reveal())?;
        output::note("this is the only time that the token is shown");
        Ok(Exit::Done)
    } else {
        Err(Fault::usage(format!("there is a token `{name}` already"))
            .hint(format!("use another name, or `wattle token revoke {name}` first")))
    }
}

async fn list(store: &TenantStore, json: bool) -> Result<Exit, Fault> {
    let tokens = store.tokens().await.map_err(failed)?;
    if json {
        let lines: Vec<Json> = tokens.iter().map(|token| json!(token)).collect();
        output::json(&Json::from(lines))?;
        return Ok(Exit::Done);
    }
    for token in tokens {
        let used = if token.used.is_some() { "used" } else { "never used" };
        output::text(&visible(&format!("{:<28} {:<6} {used}", token.name, token.scope)))?;
    }
    Ok(Exit::Done)
}

fn failed(error: impl ToString) -> Fault {
    Fault::failed(error.to_string())
}
