//! One request on its way: the first hop, and what a redirect makes of it.

use bytes::Bytes;
use url::Url;

use super::Request;
use super::error::EgressError;
use super::wire::header::{self, LOCATION};
use super::wire::{HeaderMap, HeaderName, Method, StatusCode};

/// Greatest length of a URL in bytes; servers refuse longer ones anyway.
const URL_LIMIT: usize = 16 << 10;

/// What only the HTTP layer sets: framing, connection, and the host that the policy was asked about.
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

/// What still goes along to another origin. Any other header may carry a secret, whatever its name.
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

/// One request of a chain, its URL parsed and free of credentials.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Hop {
    pub(super) fn first(request: Request) -> Result<Self, EgressError> {
        let Request { method, url, headers, body } = request;
        if method == Method::CONNECT || method == Method::TRACE {
            return Err(EgressError::method(method.as_str()));
        }
        if let Some(name) = OWN_HEADERS.iter().find(|name| headers.contains_key(*name)) {
            return Err(EgressError::header(name.as_str()));
        }
        Ok(Self { url: parse(&url)?, method, headers, body })
    }

    /// Makes the request that a response asks for next; `None` where the response is the last one.
    pub(super) fn next(&self, status: StatusCode, response: &HeaderMap) -> Result<Option<Self>, EgressError> {
        let Some(location) = location(status, response) else { return Ok(None) };
        let location = location.map_err(|_| EgressError::location("it is not text"))?;
        if location.len() > URL_LIMIT {
            return Err(EgressError::long_url(URL_LIMIT));
        }
        let url = self.url.join(location).map_err(|why| EgressError::location(&why.to_string()))?;
        let url = clean(url)?;
        if self.url.scheme() == "https" && url.scheme() == "http" {
            return Err(EgressError::downgrade(&url));
        }
        let mut next = Self { url, ..self.clone() };
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
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

/// Gives where a response redirects to, as it stands there; `None` for a response that is not a redirect.
pub(super) fn location(status: StatusCode, headers: &HeaderMap) -> Option<Result<&str, std::str::Utf8Error>> {
    use StatusCode as S;
    let redirects = [S::MOVED_PERMANENTLY, S::FOUND, S::SEE_OTHER, S::TEMPORARY_REDIRECT, S::PERMANENT_REDIRECT];
    let value = redirects.contains(&status).then(|| headers.get(LOCATION)).flatten()?;
    Some(std::str::from_utf8(value.as_bytes()))
}

/// Parses a URL that may be asked for.
pub(super) fn parse(text: &str) -> Result<Url, EgressError> {
    if text.len() > URL_LIMIT {
        return Err(EgressError::long_url(URL_LIMIT));
    }
    clean(Url::parse(text).map_err(EgressError::bad_url)?)
}

fn clean(mut url: Url) -> Result<Url, EgressError> {
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
    let kept = headers.iter().filter(|(name, value)| PUBLIC_HEADERS.contains(name) && !value.is_sensitive());
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
