//! The errors that requests return, with the text of every message.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use url::{Host, Url};
use wattle_rt::truncate;

use crate::address::Class;
use crate::host::{DomainPattern, Target};

/// An error that ended a request. Its message is written for a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressError {
    kind: EgressErrorKind,
    text: String,
}

/// The category of an [`EgressError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EgressErrorKind {
    /// The policy denies the request. The message names the setting that would permit it, if there
    /// is one.
    Refused,
    /// The URL is invalid.
    BadUrl,
    /// The method or a header is not allowed.
    BadRequest,
    /// The host name could not be resolved, or has no address.
    Resolve,
    /// The connection failed.
    Connect,
    /// The request exceeded the time limit.
    Timeout,
    /// The body of the response exceeds the size limit.
    TooLarge,
    /// A redirect is invalid, there are too many redirects, or an endpoint responds with a
    /// redirect.
    Redirect,
    /// The connection was lost, or the response is not HTTP.
    Broken,
}

impl EgressError {
    /// Returns the category of the error.
    pub fn kind(&self) -> EgressErrorKind {
        self.kind
    }

    /// Returns true if the policy denies the request. A retry would fail again.
    pub fn is_refusal(&self) -> bool {
        self.kind == EgressErrorKind::Refused
    }

    /// Returns true if a retry may succeed: the name was not resolved, the connection failed or was
    /// lost, or the time limit was exceeded.
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

/// Constructors for the errors, with their messages.
impl EgressError {
    pub(crate) fn not_public(target: &Target, class: Class) -> Self {
        let is_name = matches!(target.host, Host::Domain(_));
        let what = with_article(class, if is_name { "name" } else { "address" });
        // A rule for a metadata name would have no effect, because its address is denied anyway.
        let hint = if is_name && class == Class::Metadata {
            "no setting permits it".to_owned()
        } else {
            format!("`--allow-host {target}` would permit it")
        };
        error(EgressErrorKind::Refused, format!("refused: {} is {what}; {hint}", target.host))
    }

    pub(crate) fn resolves_to(
        name: &str,
        address: IpAddr,
        class: Class,
        permittable: bool,
    ) -> Self {
        let what = with_article(class, "address");
        let hint = if permittable {
            format!("`--allow-host {name}` would permit it")
        } else {
            "no setting permits a name that leads there".to_owned()
        };
        error(
            EgressErrorKind::Refused,
            format!("refused: {name} resolves to {address}, {what}; {hint}"),
        )
    }

    pub(crate) fn not_listed(target: &Target, only: &[DomainPattern]) -> Self {
        const MAX_LISTED: usize = 10;
        let mut list: Vec<String> =
            only.iter().take(MAX_LISTED).map(|pattern| format!("`{pattern}`")).collect();
        if only.len() > MAX_LISTED {
            list.push(format!("and {} more", only.len() - MAX_LISTED));
        }
        let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        let host = &target.host;
        let text = format!(
            "refused: {host} is not one of the allowed domains ({list}); `--allow-host {target}` \
             would permit it"
        );
        error(EgressErrorKind::Refused, text)
    }

    pub(crate) fn other_origin(asked: &Url, origin: &str) -> Self {
        let text =
            format!("refused: {} is outside the configured endpoint {origin}", origin_of(asked));
        error(EgressErrorKind::Refused, text)
    }

    pub(crate) fn downgrade(to: &Url) -> Self {
        let text = format!(
            "refused: redirect from https to plain http ({}); ask for that URL itself",
            origin_of(to)
        );
        error(EgressErrorKind::Refused, text)
    }

    pub(crate) fn userinfo(url: &Url) -> Self {
        let text = format!(
            "refused: the URL for {} carries a user name or password before `@`; send an \
             `authorization` header instead",
            url.host_str().unwrap_or("the host")
        );
        error(EgressErrorKind::Refused, text)
    }

    pub(crate) fn scheme(scheme: &str) -> Self {
        let scheme = truncate(scheme, 40);
        error(
            EgressErrorKind::Refused,
            format!("refused: the scheme `{scheme}` is not `http` or `https`"),
        )
    }

    pub(crate) fn bad_url(why: url::ParseError) -> Self {
        let text = match why {
            url::ParseError::RelativeUrlWithoutBase => {
                "invalid URL: it has no scheme; begin it with `https://` or `http://`".to_owned()
            }
            why => format!("invalid URL: {why}"),
        };
        error(EgressErrorKind::BadUrl, text)
    }

    pub(crate) fn long_url(limit: usize) -> Self {
        error(
            EgressErrorKind::BadUrl,
            format!("invalid URL: it is longer than {limit} bytes; send the data in the body"),
        )
    }

    pub(crate) fn no_host(url: &Url) -> Self {
        error(
            EgressErrorKind::BadUrl,
            format!("invalid URL: `{}` has no host", truncate(url.as_str(), 100)),
        )
    }

    pub(crate) fn method(method: &str) -> Self {
        let text = format!(
            "method `{}` is not sent; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
            truncate(method, 20)
        );
        error(EgressErrorKind::BadRequest, text)
    }

    pub(crate) fn header(name: &str) -> Self {
        let text = format!("header `{name}` is set by the host and cannot be given; leave it out");
        error(EgressErrorKind::BadRequest, text)
    }

    /// Returns the error for a redirect that the run's guard denies.
    pub(crate) fn not_admitted(url: &Url, why: &str) -> Self {
        error(EgressErrorKind::Refused, format!("redirected to {}: {why}", origin_of(url)))
    }

    pub(crate) fn unresolved(name: &str, why: &str) -> Self {
        error(EgressErrorKind::Resolve, format!("failed to resolve {name}: {why}"))
    }

    pub(crate) fn timeout(url: &Url, limit: Duration) -> Self {
        let text = format!(
            "{} returned no complete response within {}",
            origin_of(url),
            format_time(limit)
        );
        error(EgressErrorKind::Timeout, text)
    }

    pub(crate) fn too_large(url: &Url, limit: usize) -> Self {
        let text =
            format!("the response of {} is larger than the limit of {limit} bytes", origin_of(url));
        error(EgressErrorKind::TooLarge, text)
    }

    pub(crate) fn redirects(limit: usize, to: &Url) -> Self {
        let text =
            format!("more than {limit} redirects, the last to {}", truncate(to.as_str(), 200));
        error(EgressErrorKind::Redirect, text)
    }

    pub(crate) fn location(why: &str) -> Self {
        error(EgressErrorKind::Redirect, format!("redirect to an invalid location: {why}"))
    }

    /// Returns the error for an endpoint that responds with a redirect. The message omits the
    /// query, which may contain a secret from the request.
    pub(crate) fn endpoint_moved(url: &Url, location: &str) -> Self {
        let to = match url.join(location) {
            Ok(mut to) => {
                to.set_query(None);
                to.to_string()
            }
            Err(_) => "an invalid location".to_owned(),
        };
        let text = format!(
            "{} redirects to `{}`; set that as the endpoint's URL, redirects of an endpoint are \
             not followed",
            origin_of(url),
            truncate(&to, 200)
        );
        error(EgressErrorKind::Redirect, text)
    }

    pub(crate) fn no_client(why: &str) -> Self {
        error(
            EgressErrorKind::Connect,
            format!(
                "failed to set up the HTTP client: {why}; https needs the system's CA certificates"
            ),
        )
    }

    pub(crate) fn unconnected(url: &Url, why: &str) -> Self {
        error(
            EgressErrorKind::Connect,
            format!("failed to connect to {}: {}", origin_of(url), truncate(why, 200)),
        )
    }

    pub(crate) fn broken(url: &Url, why: &str) -> Self {
        error(
            EgressErrorKind::Broken,
            format!("the connection to {} broke: {}", origin_of(url), truncate(why, 200)),
        )
    }

    /// Returns the error with `text` as its message.
    pub(crate) fn with_text(self, text: String) -> Self {
        error(self.kind, text)
    }
}

/// Returns the scheme, host and port of a URL for messages. The path and the query may contain
/// secrets.
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

fn format_time(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}
