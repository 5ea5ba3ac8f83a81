//! Everything that the guard says when it says no: texts for a model and for the log.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use url::{Host, Url};
use wattle_rt::truncate;

use super::address::Class;
use super::policy::{DomainPattern, Target};

/// Tells why a request brought no response. Its text is written for a model to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressError {
    kind: EgressErrorKind,
    text: String,
}

/// Sorts the ways in which a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EgressErrorKind {
    /// The policy forbids it; the text names the setting that would permit it, where there is one.
    Refused,
    /// The URL cannot be asked for.
    BadUrl,
    /// The method or a header cannot be sent.
    BadRequest,
    /// The host's name has no address.
    Resolve,
    /// No connection came about.
    Connect,
    /// The time limit passed.
    Timeout,
    /// The response's body is over the size limit.
    TooLarge,
    /// A redirect that cannot be followed.
    Redirect,
    /// The connection broke, or what came is not HTTP.
    Broken,
}

impl EgressError {
    /// Tells which kind of failure this is.
    pub fn kind(&self) -> EgressErrorKind {
        self.kind
    }

    /// Tells whether the policy said no, so that asking again is of no use.
    pub fn is_refusal(&self) -> bool {
        self.kind == EgressErrorKind::Refused
    }

    /// Tells whether the network failed in a way that may pass: no address, no connection, a broken one, or no time left.
    pub fn is_transient(&self) -> bool {
        use EgressErrorKind::*;
        matches!(self.kind, Resolve | Connect | Timeout | Broken)
    }
}

impl fmt::Display for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for EgressError {}

fn error(kind: EgressErrorKind, text: String) -> EgressError {
    EgressError { kind, text }
}

/// The wording, by kind.
impl EgressError {
    pub(super) fn not_public(target: &Target, class: Class) -> Self {
        let is_name = matches!(target.host, Host::Domain(_));
        let what = with_article(class, if is_name { "name" } else { "address" });
        // A rule for such a name would not help: what it resolves to is refused all the same.
        let hint = if is_name && class == Class::Metadata {
            "no setting permits it".to_owned()
        } else {
            format!("`--allow-host {target}` would permit it")
        };
        error(EgressErrorKind::Refused, format!("refused: {} is {what}; {hint}", target.host))
    }

    pub(super) fn resolves_to(name: &str, address: IpAddr, class: Class, permittable: bool) -> Self {
        let what = with_article(class, "address");
        let hint = if permittable {
            format!("`--allow-host {name}` would permit it")
        } else {
            "no setting permits a name that leads there".to_owned()
        };
        error(EgressErrorKind::Refused, format!("refused: {name} resolves to {address}, {what}; {hint}"))
    }

    pub(super) fn not_listed(target: &Target, only: &[DomainPattern]) -> Self {
        const SHOWN: usize = 10;
        let mut list: Vec<String> = only.iter().take(SHOWN).map(|pattern| format!("`{pattern}`")).collect();
        if only.len() > SHOWN {
            list.push(format!("and {} more", only.len() - SHOWN));
        }
        let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        let host = &target.host;
        let text = format!(
            "refused: {host} is not one of the allowed domains ({list}); `--allow-host {target}` would permit it"
        );
        error(EgressErrorKind::Refused, text)
    }

    pub(super) fn other_origin(asked: &Url, origin: &str) -> Self {
        let text = format!("refused: {} is outside the configured endpoint {origin}", origin_of(asked));
        error(EgressErrorKind::Refused, text)
    }

    pub(super) fn downgrade(to: &Url) -> Self {
        let text = format!("refused: redirect from https to plain http ({}); ask for that URL itself", origin_of(to));
        error(EgressErrorKind::Refused, text)
    }

    pub(super) fn userinfo(url: &Url) -> Self {
        let text = format!(
            "refused: the URL for {} carries a user name or password before `@`; send an `authorization` header instead",
            url.host_str().unwrap_or("the host")
        );
        error(EgressErrorKind::Refused, text)
    }

    pub(super) fn scheme(scheme: &str) -> Self {
        let scheme = truncate(scheme, 40);
        error(EgressErrorKind::Refused, format!("refused: the scheme `{scheme}` is not `http` or `https`"))
    }

    pub(super) fn bad_url(why: url::ParseError) -> Self {
        let text = match why {
            url::ParseError::RelativeUrlWithoutBase => {
                "invalid URL: it has no scheme; begin it with `https://` or `http://`".to_owned()
            }
            why => format!("invalid URL: {why}"),
        };
        error(EgressErrorKind::BadUrl, text)
    }

    pub(super) fn long_url(limit: usize) -> Self {
        error(
            EgressErrorKind::BadUrl,
            format!("invalid URL: it is longer than {limit} bytes; send the data in the body"),
        )
    }

    pub(super) fn no_host(url: &Url) -> Self {
        error(EgressErrorKind::BadUrl, format!("invalid URL: `{}` has no host", truncate(url.as_str(), 100)))
    }

    pub(super) fn method(method: &str) -> Self {
        let text = format!(
            "method `{}` is not sent; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
            truncate(method, 20)
        );
        error(EgressErrorKind::BadRequest, text)
    }

    pub(super) fn header(name: &str) -> Self {
        let text = format!("header `{name}` is set by the host and cannot be given; leave it out");
        error(EgressErrorKind::BadRequest, text)
    }

    /// What the caller's own rules say of where a redirect leads.
    pub(super) fn not_admitted(url: &Url, why: &str) -> Self {
        error(EgressErrorKind::Refused, format!("redirected to {}: {why}", origin_of(url)))
    }

    pub(super) fn unresolved(name: &str, why: &str) -> Self {
        error(EgressErrorKind::Resolve, format!("failed to resolve {name}: {why}"))
    }

    pub(super) fn timeout(url: &Url, limit: Duration) -> Self {
        let text = format!("{} gave no complete response within {}", origin_of(url), span(limit));
        error(EgressErrorKind::Timeout, text)
    }

    pub(super) fn too_large(url: &Url, limit: usize) -> Self {
        let text = format!("the response of {} is larger than the limit of {limit} bytes", origin_of(url));
        error(EgressErrorKind::TooLarge, text)
    }

    pub(super) fn redirects(limit: usize, to: &Url) -> Self {
        let text = format!("more than {limit} redirects, the last to {}", truncate(to.as_str(), 200));
        error(EgressErrorKind::Redirect, text)
    }

    pub(super) fn location(why: &str) -> Self {
        error(EgressErrorKind::Redirect, format!("redirect to an invalid location: {why}"))
    }

    /// A query is not repeated: it may carry a secret of the request.
    pub(super) fn endpoint_moved(url: &Url, location: &str) -> Self {
        let to = match url.join(location) {
            Ok(mut to) => {
                to.set_query(None);
                to.to_string()
            }
            Err(_) => "an invalid location".to_owned(),
        };
        let text = format!(
            "{} redirects to `{}`; set that as the endpoint's URL, redirects of an endpoint are not followed",
            origin_of(url),
            truncate(&to, 200)
        );
        error(EgressErrorKind::Redirect, text)
    }

    pub(super) fn no_client(why: &str) -> Self {
        error(
            EgressErrorKind::Connect,
            format!("failed to set up the HTTP client: {why}; https needs the system's CA certificates"),
        )
    }

    pub(super) fn unconnected(url: &Url, why: &str) -> Self {
        error(EgressErrorKind::Connect, format!("failed to connect to {}: {}", origin_of(url), truncate(why, 200)))
    }

    pub(super) fn broken(url: &Url, why: &str) -> Self {
        error(EgressErrorKind::Broken, format!("the connection to {} broke: {}", origin_of(url), truncate(why, 200)))
    }

    /// The same error in other words.
    pub(super) fn with_text(self, text: String) -> Self {
        error(self.kind, text)
    }
}

/// Tells why a host rule or a domain pattern cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RuleError {}

impl RuleError {
    pub(super) fn scheme(text: &str) -> Self {
        Self(format!("invalid host `{}`: give the host alone, without a scheme", truncate(text, 100)))
    }

    pub(super) fn more_than_host(text: &str) -> Self {
        Self(format!("invalid host `{}`: give HOST or HOST:PORT, without user, path or query", truncate(text, 100)))
    }

    pub(super) fn wildcard(text: &str) -> Self {
        Self(format!("invalid host `{}`: a wildcard is not allowed here, name each host", truncate(text, 100)))
    }

    pub(super) fn inner_wildcard(text: &str) -> Self {
        Self(format!(
            "invalid domain `{}`: `*` may only stand for the names below a domain, `*.example.com`",
            truncate(text, 100)
        ))
    }

    pub(super) fn no_brackets(text: &str) -> Self {
        Self(format!(
            "invalid host `{}`: an IPv6 address stands in brackets, `[::1]` or `[::1]:8080`",
            truncate(text, 100)
        ))
    }

    pub(super) fn port(text: &str) -> Self {
        Self(format!("invalid host `{}`: the port is a number from 1 to 65535", truncate(text, 100)))
    }

    pub(super) fn host(text: &str, why: url::ParseError) -> Self {
        Self(format!("invalid host `{}`: {why}", truncate(text, 100)))
    }
}

/// Scheme, host and port of a URL: as much as an error may repeat, since paths and queries can carry secrets.
fn origin_of(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{}://{host}:{port}", url.scheme()),
        (Some(host), None) => format!("{}://{host}", url.scheme()),
        (None, _) => url.scheme().to_owned(),
    }
}

fn with_article(class: Class, what: &str) -> String {
    let article = if matches!(class, Class::Unspecified) { "an" } else { "a" };
    format!("{article} {class} {what}")
}

fn span(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}
