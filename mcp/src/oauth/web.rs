//! The requests of a sign-in: bounded, through the egress, and without redirects.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::de::DeserializeOwned;
use wattle_agent::host::capability::egress::{Egress, Limits, Request, Response, Url, is_loopback};
use wattle_agent::host::rt::quote;

/// Maximum size of a document, in bytes.
const MAX_DOCUMENT: usize = 256 << 10;

/// Maximum time of a request.
const TIME: Duration = Duration::from_secs(20);

/// Maximum length of a quoted piece of a document, in characters.
pub(super) const MAX_QUOTE: usize = 200;

/// Sends the requests of the sign-in to one MCP server.
pub(super) struct Web {
    egress: Egress,
    /// If true, the MCP server is on this machine, and its authorization server may be, too.
    is_local: bool,
}

impl Web {
    pub(super) fn new(egress: Egress, server: &Url) -> Web {
        Web { egress, is_local: is_loopback(server) }
    }

    /// Reads a URL to which tokens or the user's browser may be sent. `what` names it in errors.
    pub(super) fn url(&self, what: &str, text: &str) -> Result<Url, String> {
        let wrong = |why: &str| format!("{what} {} {why}", quote(text, MAX_QUOTE));
        let url = Url::parse(text).map_err(|_| wrong("is not a URL"))?;
        match (url.scheme(), is_loopback(&url)) {
            (_, true) if !self.is_local => {
                return Err(wrong("is on this machine, and the MCP server is not"));
            }
            ("https", _) | ("http", true) => {}
            _ => return Err(wrong("is not an `https` URL")),
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(wrong("has a user name or a fragment"));
        }
        Ok(url)
    }

    /// Reads a JSON document. Returns `None` if there is none at this URL.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        url: &Url,
    ) -> Result<Option<T>, String> {
        let response = self.send(Method::GET, url, HeaderMap::new(), Bytes::new()).await?;
        match response.status {
            status if status.is_success() => json(url, &response.body).map(Some),
            status if status.is_client_error() => Ok(None),
            status => Err(format!("{} answers {status}", shown(url))),
        }
    }

    /// Sends a form and returns the response. `identity` authenticates the client.
    pub(super) async fn form(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        identity: Option<HeaderValue>,
    ) -> Result<Response, String> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        headers.extend(identity.map(|identity| (AUTHORIZATION, identity)));
        self.send(Method::POST, url, headers, body.into()).await
    }

    /// Sends a JSON document and returns the response.
    pub(super) async fn post(
        &self,
        url: &Url,
        document: &serde_json::Value,
    ) -> Result<Response, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(Method::POST, url, headers, document.to_string().into()).await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, String> {
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let limits = Limits { body: MAX_DOCUMENT, time: TIME, ..Limits::default() };
        let client = self.egress.endpoint(url).map_err(|error| error.to_string())?;
        let request = Request { method, url: url.to_string(), headers, body };
        let sent = client.with_limits(limits).send(request).await;
        sent.map_err(|error| error.to_string())
    }
}

/// Reads the JSON document that was at `url`.
pub(super) fn json<T: DeserializeOwned>(url: &Url, text: &[u8]) -> Result<T, String> {
    serde_json::from_slice(text)
        .map_err(|error| format!("the document at {} cannot be used: {error}", shown(url)))
}

/// Returns the reason that an authorization server gives for an error.
pub(super) fn refusal(status: StatusCode, text: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Refusal {
        error: String,
        #[serde(default)]
        error_description: String,
    }
    match serde_json::from_slice::<Refusal>(text) {
        Ok(Refusal { error, error_description: about }) if about.is_empty() => quote(&error, 100),
        Ok(Refusal { error, error_description: about }) => {
            format!("{}: {}", quote(&error, 100), quote(&about, MAX_QUOTE))
        }
        Err(_) => format!("HTTP {status}"),
    }
}

fn shown(url: &Url) -> String {
    quote(url.as_str(), MAX_QUOTE)
}

#[cfg(test)]
mod tests {
    use wattle_agent::host::capability::egress::Policy;

    use super::*;

    #[test]
    fn tokens_go_to_https_or_stay_on_this_machine() {
        let web = |server: &str| Web::new(Egress::new(Policy::default()), &server.parse().unwrap());
        let (remote, local) = (web("https://mcp.example/"), web("http://127.0.0.1:1/mcp"));
        for (url, by_remote, by_local) in [
            ("https://a.example/x?y=z", true, true),
            ("http://a.example/", false, false),
            ("http://localhost:9/", false, true),
            ("https://[::1]/", false, true),
            ("javascript:alert(1)", false, false),
            ("file:///etc/passwd", false, false),
            ("https://user@a.example/", false, false),
            ("https://:secret@a.example/", false, false),
            ("https://a.example/#f", false, false),
            ("/relative", false, false),
            ("\u{1b}]8;;", false, false),
        ] {
            assert_eq!(remote.url("it", url).is_ok(), by_remote, "{url}");
            assert_eq!(local.url("it", url).is_ok(), by_local, "{url}");
        }
        assert!(
            !remote.url("it", "a\u{1b}[1m\u{202e}").unwrap_err().contains(['\u{1b}', '\u{202e}'])
        );
    }
}
