//! `wattle token`: manages the tokens of the HTTP server. The store contains only their hashes.

use wattle_agent::host::{Scope, TenantStore, is_session_id};
use wattle_server::Token;

use crate::args::{TokenCommand, TokenScope};
use crate::config::Layer;
use crate::fault::Fault;
use crate::output::{self, visible};
use crate::{setup, trust};

/// Creates, lists and revokes tokens of the tenant.
pub(crate) async fn token(command: TokenCommand, flags: &[Layer]) -> Result<(), Fault> {
    let store = setup::store(&trust::gather(flags)?)?;
    match command {
        TokenCommand::New { name, scope } => create(&store, &name, scope).await,
        TokenCommand::List { json } => list(&store, json).await,
        TokenCommand::Revoke { name } => {
            if store.revoke_token(&name).await? {
                return Ok(());
            }
            Err(Fault::usage(format!("there is no token `{name}`"))
                .hint("`wattle token list` lists the tokens"))
        }
    }
}

async fn create(store: &TenantStore, name: &str, scope: TokenScope) -> Result<(), Fault> {
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
    let token = Token::generate().map_err(Fault::failed)?;
    if store.add_token(name, scope, token.reveal()).await? {
        output::text(token.reveal())?;
        output::note("this is the only time that the token is shown");
        Ok(())
    } else {
        Err(Fault::usage(format!("there is a token `{name}` already"))
            .hint(format!("use another name, or `wattle token revoke {name}` first")))
    }
}

async fn list(store: &TenantStore, json: bool) -> Result<(), Fault> {
    let tokens = store.tokens().await?;
    if json {
        return output::json(&tokens);
    }
    tokens.iter().try_for_each(|token| {
        let used = if token.used.is_some() { "used" } else { "never used" };
        output::text(&visible(&format!("{:<28} {:<6} {used}", token.name, token.scope)))
    })
}
