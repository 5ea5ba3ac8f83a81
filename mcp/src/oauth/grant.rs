//! Tokens, and the requests that get, renew and revoke them.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use wattle_agent::host::capability::egress::{Response, Url};
use wattle_agent::host::capability::secrets::Secret;

use super::challenge::scopes;
use super::web::{Web, json, refusal};

/// The client that an authorization server knows.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    /// The secret, if the authorization server gave one at the registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    /// If true, the secret is sent in the body of requests instead of a header.
    #[serde(default)]
    pub(super) secret_in_body: bool,
}

/// The tokens of a sign-in, and all that is needed to renew them.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    /// The URL of the MCP server in the settings. The tokens are sent nowhere else.
    pub(super) server: String,
    /// The identifier of the authorization server that granted them.
    pub(super) issuer: String,
    /// The identifier of the MCP server for which they are valid.
    pub(super) resource: String,
    /// The address of the authorization server that renews them.
    pub(super) token_endpoint: String,
    /// The address of the authorization server that revokes them.
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client: Client,
    /// The granted scopes.
    pub(super) scopes: Vec<String>,
    /// The token of requests to the MCP server.
    pub(super) access: String,
    /// The token with which another access token is requested.
    pub(super) refresh: Option<String>,
    /// The end of the access token, in seconds since 1970. `None` if it is unknown.
    pub(super) ends: Option<u64>,
}

/// Why there are no tokens.
pub(super) enum Refused {
    /// The authorization server rejects the request. Repeating it is useless.
    Rejected(String),
    /// The authorization server cannot be reached, or is out of order.
    Failed(String),
}

impl Refused {
    pub(super) fn reason(self) -> String {
        let (Refused::Rejected(why) | Refused::Failed(why)) = self;
        why
    }
}

/// The response of a token endpoint.
#[derive(Deserialize)]
struct TokenDocument {
    access_token: String,
    token_type: String,
    expires_in: Option<Json>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// Tokens as a token endpoint returns them.
pub(super) struct Granted {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) ends: Option<u64>,
    pub(super) scopes: Option<Vec<String>>,
}

impl Grant {
    /// Returns true if the access token ends within this time, in seconds.
    pub(super) fn ends_within(&self, seconds: u64) -> bool {
        self.ends.is_some_and(|ends| ends <= now() + seconds)
    }

    /// Requests other tokens with the refresh token.
    pub(super) async fn renewed(&self, web: &Web) -> Result<Grant, Refused> {
        let Some(refresh) = &self.refresh else {
            return Err(Refused::Rejected("there is no refresh token".to_owned()));
        };
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh),
            ("resource", &self.resource),
        ];
        let endpoint = web.url("the token endpoint", &self.token_endpoint);
        let endpoint = endpoint.map_err(Refused::Failed)?;
        let granted = request(web, &endpoint, &self.client, &form).await?;
        Ok(Grant {
            access: granted.access,
            // A server that rotates refresh tokens returns the next one.
            refresh: granted.refresh.or_else(|| self.refresh.clone()),
            ends: granted.ends,
            scopes: granted.scopes.unwrap_or_else(|| self.scopes.clone()),
            ..self.clone()
        })
    }

    /// Revokes the tokens, if the authorization server can.
    pub(super) async fn revoke(&self, web: &Web) -> Result<(), String> {
        let Some(endpoint) = &self.revocation_endpoint else { return Ok(()) };
        let endpoint = web.url("the revocation endpoint", endpoint)?;
        let (token, hint) = match &self.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&self.access, "access_token"),
        };
        let form = [("token", token.as_str()), ("token_type_hint", hint)];
        let response = send(web, &endpoint, &self.client, &form).await?;
        match response.status.is_success() {
            true => Ok(()),
            false => Err(refusal(response.status, &response.body)),
        }
    }

    /// Returns the values that no record may contain, with a name for each.
    pub(super) fn secrets(&self, server: &str) -> Vec<Secret> {
        let values = [
            ("token", Some(&self.access)),
            ("refresh", self.refresh.as_ref()),
            ("client", self.client.secret.as_ref()),
        ];
        let secret = |(what, value): (&str, Option<&String>)| {
            Secret::new(&format!("mcp-{server}-{what}"), value?, Vec::new()).ok()
        };
        values.into_iter().filter_map(secret).collect()
    }
}

/// Requests tokens.
pub(super) async fn request(
    web: &Web,
    endpoint: &Url,
    client: &Client,
    form: &[(&str, &str)],
) -> Result<Granted, Refused> {
    let response = send(web, endpoint, client, form).await.map_err(Refused::Failed)?;
    let status = response.status;
    if !status.is_success() {
        let why = refusal(status, &response.body);
        let may_recover = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        return Err(if may_recover { Refused::Failed(why) } else { Refused::Rejected(why) });
    }
    let token: TokenDocument = json(endpoint, &response.body).map_err(Refused::Failed)?;
    let wrong = |why: &str| Refused::Failed(format!("its authorization server granted {why}"));
    if !token.token_type.eq_ignore_ascii_case("bearer") {
        return Err(wrong("a token of another type than `Bearer`"));
    }
    for token in [Some(&token.access_token), token.refresh_token.as_ref()].into_iter().flatten() {
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        // A value that cannot be a secret could not be masked, either.
        if !is_plain || Secret::new("token", token, Vec::new()).is_err() {
            return Err(wrong("a token that has not 8 to 8,192 printable characters"));
        }
    }
    let seconds = token.expires_in.and_then(|it| it.as_f64().or_else(|| it.as_str()?.parse().ok()));
    Ok(Granted {
        access: token.access_token,
        refresh: token.refresh_token,
        // The cast saturates.
        ends: seconds.map(|seconds| now().saturating_add(seconds as u64)),
        scopes: token.scope.map(|scope| scopes(&scope)),
    })
}

async fn send(
    web: &Web,
    endpoint: &Url,
    client: &Client,
    form: &[(&str, &str)],
) -> Result<Response, String> {
    let mut form = form.to_vec();
    let mut identity = None;
    match &client.secret {
        Some(secret) if !client.secret_in_body => identity = Some(basic(&client.id, secret)?),
        secret => {
            form.push(("client_id", &client.id));
            form.extend(secret.as_deref().map(|secret| ("client_secret", secret)));
        }
    }
    web.form(endpoint, &form, identity).await
}

/// Returns the header that authenticates a client by its secret.
fn basic(id: &str, secret: &str) -> Result<HeaderValue, String> {
    let encoded =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let text = format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))));
    let mut header = HeaderValue::try_from(text).map_err(|error| error.to_string())?;
    header.set_sensitive(true);
    Ok(header)
}

/// Returns the current time, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
