//! The documents that describe an MCP server and its authorization server.

use serde::Deserialize;
use wattle_agent::host::capability::egress::Url;
use wattle_agent::host::rt::quote;

use super::challenge::{Challenge, scopes};
use super::web::{MAX_QUOTE, Web};

/// What a sign-in needs to know about both servers.
pub(super) struct Discovered {
    /// The identifier of the MCP server, for which tokens are valid.
    pub(super) resource: String,
    /// The scopes to ask for.
    pub(super) scopes: Vec<String>,
    /// The identifier of the authorization server.
    pub(super) issuer: String,
    /// The page that asks the user.
    pub(super) authorization: Url,
    /// The address that grants tokens.
    pub(super) token: Url,
    /// The address that registers clients.
    pub(super) registration: Option<Url>,
    /// The address that revokes tokens.
    pub(super) revocation: Option<Url>,
    /// If true, the authorization server reads client metadata documents.
    pub(super) reads_client_documents: bool,
    /// If true, each redirect of the authorization server has its identifier.
    pub(super) names_itself: bool,
}

/// The metadata of a protected resource (RFC 9728).
#[derive(Deserialize)]
struct ResourceDocument {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// The metadata of an authorization server (RFC 8414, OpenID Connect Discovery).
#[derive(Deserialize)]
struct ServerDocument {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Finds the authorization server of an MCP server. `challenge` is the MCP server's response to a
/// request without a token.
pub(super) async fn discover(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
) -> Result<Discovered, String> {
    let resource = resource_document(web, server, challenge).await?;
    check_resource(server, &resource.resource)?;
    let issuer =
        resource.authorization_servers.first().ok_or("it names no authorization server")?;
    let document = server_document(web, issuer).await?;
    if !document.code_challenge_methods_supported.iter().any(|method| method == "S256") {
        return Err("its authorization server does not support PKCE with S256".to_owned());
    }
    let endpoint = |what: &str, url: &str| web.url(&format!("the {what} endpoint"), url);
    let optional = |what: &str, url: &Option<String>| {
        url.as_deref().map(|url| endpoint(what, url)).transpose()
    };
    let mut wanted = challenge.scopes.clone();
    if wanted.is_empty() {
        wanted = scopes(&resource.scopes_supported.join(" "));
    }
    // Without this scope, some authorization servers grant no token for renewals.
    let offline = document.scopes_supported.iter().filter(|scope| *scope == "offline_access");
    wanted.extend(offline.cloned());
    Ok(Discovered {
        resource: resource.resource,
        scopes: wanted,
        authorization: endpoint("authorization", &document.authorization_endpoint)?,
        token: endpoint("token", &document.token_endpoint)?,
        registration: optional("registration", &document.registration_endpoint)?,
        revocation: optional("revocation", &document.revocation_endpoint)?,
        reads_client_documents: document.client_id_metadata_document_supported,
        names_itself: document.authorization_response_iss_parameter_supported,
        issuer: document.issuer,
    })
}

async fn resource_document(
    web: &Web,
    server: &Url,
    challenge: &Challenge,
) -> Result<ResourceDocument, String> {
    const NAME: &str = "oauth-protected-resource";
    let places = match &challenge.metadata {
        Some(text) => {
            let url = web.url("its metadata URL", text)?;
            if url.origin() != server.origin() {
                let url = quote(url.as_str(), MAX_QUOTE);
                return Err(format!("its metadata URL {url} is at another origin than the server"));
            }
            vec![url]
        }
        None => vec![well_known(server, NAME), at_path(server, &format!("/.well-known/{NAME}"))],
    };
    for place in &places {
        if let Some(document) = web.document(place).await? {
            return Ok(document);
        }
    }
    Err("it does not say where to sign in: it has no protected resource metadata".to_owned())
}

/// Checks that a server is, or is part of, the resource that its metadata describe. Otherwise its
/// tokens would be valid for another server.
fn check_resource(server: &Url, resource: &str) -> Result<(), String> {
    let is_within = |of: &Url| {
        let prefix = of.path().trim_end_matches('/');
        let rest = server.path().strip_prefix(prefix);
        of.origin() == server.origin()
            && of.fragment().is_none()
            && of.query().is_none_or(|query| server.query() == Some(query))
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match Url::parse(resource).is_ok_and(|url| is_within(&url)) {
        true => Ok(()),
        false => {
            Err(format!("its metadata are for another server, {}", quote(resource, MAX_QUOTE)))
        }
    }
}

async fn server_document(web: &Web, issuer: &str) -> Result<ServerDocument, String> {
    let url = web.url("its authorization server", issuer)?;
    if url.query().is_some() {
        return Err(format!("its authorization server {} has a query", quote(issuer, MAX_QUOTE)));
    }
    let openid = ".well-known/openid-configuration";
    let appended = at_path(&url, &format!("{}/{openid}", url.path().trim_end_matches('/')));
    let mut places = vec![
        well_known(&url, "oauth-authorization-server"),
        well_known(&url, "openid-configuration"),
        appended,
    ];
    places.dedup();
    for place in &places {
        let Some(document) = web.document::<ServerDocument>(place).await? else { continue };
        if document.issuer != issuer {
            return Err(format!(
                "the metadata of its authorization server {} are those of {}",
                quote(issuer, MAX_QUOTE),
                quote(&document.issuer, MAX_QUOTE)
            ));
        }
        return Ok(document);
    }
    Err(format!("its authorization server {} has no metadata", quote(issuer, MAX_QUOTE)))
}

/// Returns the well-known URL of a document about `of`: its name precedes the path.
fn well_known(of: &Url, name: &str) -> Url {
    at_path(of, &format!("/.well-known/{name}{}", of.path().trim_end_matches('/')))
}

fn at_path(of: &Url, path: &str) -> Url {
    let mut url = of.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_server_or_contains_it() {
        let server: Url = "https://a.example/v1/mcp".parse().unwrap();
        for (resource, is_right) in [
            ("https://a.example/v1/mcp", true),
            ("https://A.example:443/v1/mcp/", true),
            ("https://a.example", true),
            ("https://a.example/v1", true),
            ("https://a.example/v", false),
            ("https://a.example/v1/mcp/more", false),
            ("https://b.example/v1/mcp", false),
            ("http://a.example/v1/mcp", false),
            ("https://a.example/v1/mcp?tenant=1", false),
            ("not a url", false),
        ] {
            assert_eq!(check_resource(&server, resource).is_ok(), is_right, "{resource}");
        }
    }

    #[test]
    fn well_known_urls_precede_the_path() {
        for (url, known) in [
            ("https://a.example", "https://a.example/.well-known/x"),
            ("https://a.example/", "https://a.example/.well-known/x"),
            ("https://a.example/t/1?q", "https://a.example/.well-known/x/t/1"),
        ] {
            assert_eq!(well_known(&url.parse().unwrap(), "x").as_str(), known);
        }
    }
}
