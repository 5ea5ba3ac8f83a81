//! Routes for the tokens of the caller's tenant.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wattle_agent::host::Scope;

use crate::body::read_json;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::field::SessionId;
use crate::path::Path;
use crate::route::Route;
use crate::route::{INVALID, NOT_FOUND, NOT_JSON};
use crate::state::Shared;
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new("GET", "/api/tokens", Scope::Admin, get(list), "Lists the tokens.")
            .json::<TokenList>(200, "The tokens, by name, without their secrets."),
        Route::new("POST", "/api/tokens", Scope::Admin, post(create), "Creates a token.")
            .body::<NewToken>()
            .json::<CreatedToken>(201, "The token. Its secret is not shown again.")
            .errors(&[NOT_JSON, (409, "There is a token with this name."), INVALID]),
        Route::new(
            "DELETE",
            "/api/tokens/{name}",
            Scope::Admin,
            delete(revoke),
            "Revokes a token. Its streams end, and its active runs are cancelled.",
        )
        .empty(204, "The token is revoked.")
        .errors(&[NOT_FOUND]),
    ]
}

/// A list of a tenant's tokens.
#[derive(Debug, Serialize, JsonSchema)]
struct TokenList {
    /// The tokens, sorted by name.
    tokens: Vec<TokenView>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, JsonSchema)]
struct TokenView {
    /// The name.
    name: String,
    /// The scope: `read`, `run` or `admin`.
    scope: String,
    /// Creation time, in milliseconds since 1970.
    created: u64,
    /// Time of the last use, in milliseconds since 1970, accurate to the minute. Null if the token
    /// has not been used.
    used: Option<u64>,
}

/// A new token.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewToken {
    /// The name, unique within the tenant.
    name: SessionId,
    /// The permissions of the bearer. Each scope includes the scopes before it.
    scope: TokenScope,
}

/// The permissions of a token's bearer.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TokenScope {
    /// Permission to read runs, sessions, files and traces.
    Read,
    /// Permission to start, answer and cancel runs, and to change sessions, files and variables.
    Run,
    /// Permission to manage tokens and integrations, to save programs, and to release runs.
    Admin,
}

/// A token with its secret.
#[derive(Debug, Serialize, JsonSchema)]
struct CreatedToken {
    /// The name.
    name: String,
    /// The secret.
    token: String,
}

async fn list(State(_): State<Arc<Shared>>, caller: Caller) -> Result<Json<TokenList>, ApiError> {
    let tokens = caller.store.tokens().await?.into_iter().map(|line| TokenView {
        name: line.name,
        scope: line.scope.to_owned(),
        created: line.created,
        used: line.used,
    });
    Ok(Json(TokenList { tokens: tokens.collect() }))
}

async fn create(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    request: Request,
) -> Result<(StatusCode, Json<CreatedToken>), ApiError> {
    let NewToken { name, scope } = read_json(request, &shared.limits).await?;
    let scope = match scope {
        TokenScope::Read => Scope::Read,
        TokenScope::Run => Scope::Run,
        TokenScope::Admin => Scope::Admin,
    };
    let token = Token::generate().map_err(ApiError::internal)?;
    if caller.store.add_token(&name.0, scope, token.reveal()).await? {
        let created = CreatedToken { name: name.0, token: token.reveal().to_owned() };
        Ok((StatusCode::CREATED, Json(created)))
    } else {
        Err(ApiError::taken("token", &name.0))
    }
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    if caller.store.revoke_token(&name).await? {
        shared.quotas.notice_revoked();
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("token", &name))
    }
}
