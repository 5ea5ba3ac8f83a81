//! The hops of a request: one for the first URL, and one for each redirect.

use bytes::Bytes;
use url::Url;

use crate::client::header::{self, LOCATION};
use crate::client::{HeaderMap, HeaderName, Method, StatusCode};
use crate::error::EgressError;
use crate::request::Request;

/// Maximum length of a URL, in bytes. Most servers refuse longer ones.
const MAX_URL: usize = 16 << 10;

/// Headers that only the HTTP client sets. They control the framing and the connection, or name the
/// host that the policy checked.
static OWN_HEADERS: [HeaderName; 11] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Headers that are still sent when a redirect leads to another origin. Any other header may
/// contain a secret.
static PUBLIC_HEADERS: [HeaderName; 8] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::RANGE,
    header::USER_AGENT,
];

/// A request in a chain of redirects. Its URL contains no credentials.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) url: Url,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Hop {
    /// Checks a request and converts it into the first hop.
    pub(crate) fn first(request: Request) -> Result<Self, EgressError> {
        let Request { method, url, headers, body } = request;
        if method == Method::CONNECT || method == Method::TRACE {
            return Err(EgressError::method(method.as_str()));
        }
        if let Some(name) = OWN_HEADERS.iter().find(|name| headers.contains_key(*name)) {
            return Err(EgressError::header(name.as_str()));
        }
        Ok(Self { url: parse(&url)?, method, headers, body })
    }

    /// Returns the next hop after a response, or `None` if the response is not a redirect.
    pub(crate) fn next(
        &self,
        status: StatusCode,
        response: &HeaderMap,
    ) -> Result<Option<Self>, EgressError> {
        let Some(location) = location(status, response) else { return Ok(None) };
        let location = location.map_err(|_| EgressError::location("it is not text"))?;
        if location.len() > MAX_URL {
            return Err(EgressError::long_url(MAX_URL));
        }
        let url = self.url.join(location).map_err(|why| EgressError::location(&why.to_string()))?;
        let url = without_fragment(url)?;
        if self.url.scheme() == "https" && url.scheme() == "http" {
            return Err(EgressError::downgrade(&url));
        }
        let mut next = Self { url, ..self.clone() };
        let keeps_method =
            matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if !keeps_method && next.method != Method::HEAD {
            next.method = Method::GET;
            next.body = Bytes::new();
            for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::CONTENT_LANGUAGE] {
                next.headers.remove(name);
            }
        }
        if next.url.origin() != self.url.origin() {
            next.headers = public_headers(&next.headers);
        }
        Ok(Some(next))
    }
}

/// Returns the target of a redirect as written in the response, or `None` if the response is not a
/// redirect. The inner result is an error if the target is not valid UTF-8.
pub(crate) fn location(
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Result<&str, std::str::Utf8Error>> {
    use StatusCode as S;
    let redirects = [
        S::MOVED_PERMANENTLY,
        S::FOUND,
        S::SEE_OTHER,
        S::TEMPORARY_REDIRECT,
        S::PERMANENT_REDIRECT,
    ];
    let value = redirects.contains(&status).then(|| headers.get(LOCATION)).flatten()?;
    Some(std::str::from_utf8(value.as_bytes()))
}

/// Parses the URL of a request.
pub(crate) fn parse(text: &str) -> Result<Url, EgressError> {
    if text.len() > MAX_URL {
        return Err(EgressError::long_url(MAX_URL));
    }
    without_fragment(Url::parse(text).map_err(EgressError::bad_url)?)
}

/// Checks the scheme, refuses a URL with credentials, and removes the fragment.
fn without_fragment(mut url: Url) -> Result<Url, EgressError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EgressError::scheme(url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::userinfo(&url));
    }
    url.set_fragment(None);
    Ok(url)
}

fn public_headers(headers: &HeaderMap) -> HeaderMap {
    let public = headers
        .iter()
        .filter(|(name, value)| PUBLIC_HEADERS.contains(name) && !value.is_sensitive());
    public.map(|(name, value)| (name.clone(), value.clone())).collect()
}
