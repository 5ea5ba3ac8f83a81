//! The sign-in of a user, and its end.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use wattle_agent::host::capability::egress::Url;
use wattle_agent::host::rt::quote;

use super::access::Access;
use super::challenge::{Challenge, scopes};
use super::discovery::{Discovered, discover};
use super::grant::{Client, Grant, request};
use super::redirect::{Expected, Redirect};
use super::web::{MAX_QUOTE, json, refusal};

/// The name under which this client registers.
const CLIENT_NAME: &str = "Wattle";

/// How a user signs in.
pub struct SignIn<'a> {
    /// Scopes to ask for, in addition to those that the server names and those of the last sign-in.
    pub scopes: &'a [String],
    /// The port of this machine to which the browser is redirected. If it is 0, any free port.
    pub port: u16,
    /// Shows the user where to sign in.
    pub show: &'a (dyn Fn(&SignInLink) + Sync),
}

/// The page on which the user signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInLink {
    /// The identifier of the authorization server.
    pub issuer: String,
    /// The URL to open in a browser: `https`, or `http` on this machine.
    pub url: String,
    /// The host of the page if it is at another origin than the authorization server. Only the user
    /// knows if the two belong together.
    pub other_host: Option<String>,
}

/// The result of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The identifier of the authorization server.
    pub issuer: String,
    /// The granted scopes. Empty if the authorization server does not name them.
    pub scopes: Vec<String>,
}

/// The response to a registration (RFC 7591).
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl Access {
    /// Signs in. `challenge` is the server's response to a request without a token.
    pub(crate) async fn sign_in(
        &self,
        challenge: &Challenge,
        sign_in: &SignIn<'_>,
    ) -> Result<SignedIn, String> {
        let web = &self.web;
        web.url("its URL", self.url.as_str())?;
        let found = discover(web, &self.url, challenge).await?;
        let wanted = self.wanted(&found, sign_in.scopes)?;
        let redirect = Redirect::listen(sign_in.port).await?;
        let client = self.client(&found, redirect.uri(), &wanted).await?;
        let (state, verifier) = (random()?, random()?);
        let link = link(&found, &client, redirect.uri(), &wanted, &state, &verifier);
        let is_other = Url::parse(&found.issuer).is_ok_and(|url| url.origin() != link.origin());
        let other_host = link.host_str().filter(|_| is_other).map(str::to_owned);
        let issuer = found.issuer.clone();
        (sign_in.show)(&SignInLink { issuer, url: link.into(), other_host });
        let uri = redirect.uri().to_owned();
        let expected =
            Expected { state, issuer: found.issuer.clone(), needs_issuer: found.names_itself };
        let code = redirect.receive(expected).await?;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &uri),
            ("code_verifier", &verifier),
            ("resource", &found.resource),
        ];
        let granted = request(web, &found.token, &client, &form).await;
        let granted = granted.map_err(|refused| {
            format!("the authorization server granted no token: {}", refused.reason())
        })?;
        let grant = Grant {
            server: self.url.to_string(),
            issuer: found.issuer,
            resource: found.resource,
            token_endpoint: found.token.into(),
            revocation_endpoint: found.revocation.map(String::from),
            client,
            scopes: granted.scopes.unwrap_or(wanted),
            access: granted.access,
            refresh: granted.refresh,
            ends: granted.ends,
        };
        let mut current = self.current.lock().await;
        let _lock = self.tokens.lock(&self.server).await.map_err(|error| error.to_string())?;
        self.tokens.save(&self.server, &grant).map_err(|error| error.to_string())?;
        let signed_in = SignedIn { issuer: grant.issuer.clone(), scopes: grant.scopes.clone() };
        *current = Some(grant);
        Ok(signed_in)
    }

    /// Removes the tokens, and revokes them. Returns false if there were none.
    ///
    /// # Errors
    /// If they cannot be removed, or not be revoked. In the second case, they are removed.
    pub(crate) async fn sign_out(&self) -> Result<bool, String> {
        let mut current = self.current.lock().await;
        let _lock = self.tokens.lock(&self.server).await.map_err(|error| error.to_string())?;
        // Tokens that cannot be read are removed, too.
        let kept = self.tokens.load(&self.server, self.url.as_str());
        self.tokens.remove(&self.server).map_err(|error| error.to_string())?;
        *current = None;
        match kept {
            Ok(None) => Ok(false),
            Ok(Some(grant)) => {
                let revoked = grant.revoke(&self.web).await;
                revoked
                    .map_err(|why| format!("its tokens were removed, but not revoked: {why}"))?;
                Ok(true)
            }
            Err(_) => Ok(true),
        }
    }

    /// Returns the scopes to ask for. Those of the last sign-in at the same authorization server are
    /// asked for again, since a grant replaces the earlier one.
    fn wanted(&self, found: &Discovered, more: &[String]) -> Result<Vec<String>, String> {
        let last = self.tokens.load(&self.server, self.url.as_str()).ok().flatten();
        let last = last.filter(|last| last.issuer == found.issuer).map(|last| last.scopes);
        let mut wanted: Vec<String> = Vec::new();
        let given: Vec<String> = more.iter().flat_map(|list| scopes(list)).collect();
        if given.len() != more.iter().flat_map(|list| list.split_whitespace()).count() {
            return Err("a scope has printable characters only, and no quotes".to_owned());
        }
        for scope in found.scopes.iter().cloned().chain(last.unwrap_or_default()).chain(given) {
            if !wanted.contains(&scope) {
                wanted.push(scope);
            }
        }
        Ok(wanted)
    }

    /// Returns the client that signs in: the one of the settings, or else one that is registered now.
    /// A client id that is the URL of a metadata document needs an authorization server that reads
    /// such documents.
    async fn client(
        &self,
        found: &Discovered,
        redirect: &str,
        wanted: &[String],
    ) -> Result<Client, String> {
        let id = self.client_id.as_ref();
        let usable = id.filter(|id| found.reads_client_documents || !id.starts_with("https://"));
        if let Some(id) = usable {
            return Ok(Client { id: id.clone(), secret: None, secret_in_body: false });
        }
        let Some(endpoint) = &found.registration else {
            let hint = format!("hint: `client_id` of [mcp.{}] is the id of a client", self.server);
            return Err(format!(
                "the authorization server {} registers no clients\n{hint} that was registered there",
                quote(&found.issuer, MAX_QUOTE)
            ));
        };
        let mut document = json!({
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        });
        if let (Some(fields), false) = (document.as_object_mut(), wanted.is_empty()) {
            fields.insert("scope".to_owned(), wanted.join(" ").into());
        }
        let response = self.web.post(endpoint, &document).await?;
        if !response.status.is_success() {
            let why = refusal(response.status, &response.body);
            return Err(format!("the authorization server registered no client: {why}"));
        }
        let registered: Registered = json(endpoint, &response.body)?;
        let method = registered.token_endpoint_auth_method;
        Ok(Client {
            id: registered.client_id,
            secret: registered.client_secret.filter(|_| method.as_deref() != Some("none")),
            secret_in_body: method.as_deref() == Some("client_secret_post"),
        })
    }
}

/// Returns the URL of the page that asks the user.
fn link(
    found: &Discovered,
    client: &Client,
    redirect: &str,
    wanted: &[String],
    state: &str,
    verifier: &str,
) -> Url {
    let mut link = found.authorization.clone();
    link.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", redirect)
        .append_pair("state", state)
        .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)))
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &found.resource);
    if !wanted.is_empty() {
        link.query_pairs_mut().append_pair("scope", &wanted.join(" "));
    }
    link
}

/// Returns 43 random characters.
fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
