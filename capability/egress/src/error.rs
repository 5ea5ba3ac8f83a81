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

    pub(crate) fn bad_url(why: url::ParseError) -> Self {
        let text = match why {
            url::ParseError::RelativeUrlWithoutBase => {
                "invalid URL: it has no scheme; begin it with `https://` or `http://`".to_owned()
            }
            why => format!("invalid URL: {why}"),
        };
        error(EgressErrorKind::BadUrl, text)
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

    /// Returns the error with `text` as its message.
    pub(crate) fn with_text(self, text: String) -> Self {
        error(self.kind, text)
    }
}

/// Declares the errors that have one message: for each, a function that makes it. The values after a
/// message are what it shows in place of the arguments.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $name:ident($($arg:ident: $ty:ty),*) => $kind:ident,
            $text:literal $(, $shown:ident = $value:expr)*;
    )*) => {
        impl EgressError {$(
            $(#[$doc])*
            pub(crate) fn $name($($arg: $ty),*) -> Self {
                error(EgressErrorKind::$kind, format!($text $(, $shown = $value)*))
            }
        )*}
    };
}

messages! {
    other_origin(asked: &Url, origin: &str) => Refused,
        "refused: {asked} is outside the configured endpoint {origin}", asked = origin_of(asked);
    downgrade(to: &Url) => Refused,
        "refused: redirect from https to plain http ({to}); ask for that URL itself",
        to = origin_of(to);
    userinfo(url: &Url) => Refused,
        "refused: the URL for {host} carries a user name or password before `@`; send an \
         `authorization` header instead",
        host = url.host_str().unwrap_or("the host");
    scheme(scheme: &str) => Refused,
        "refused: the scheme `{scheme}` is not `http` or `https`", scheme = truncate(scheme, 40);
    long_url(limit: usize) => BadUrl,
        "invalid URL: it is longer than {limit} bytes; send the data in the body";
    no_host(url: &Url) => BadUrl,
        "invalid URL: `{url}` has no host", url = truncate(url.as_str(), 100);
    method(method: &str) => BadRequest,
        "method `{method}` is not sent; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS",
        method = truncate(method, 20);
    header(name: &str) => BadRequest,
        "header `{name}` is set by the host and cannot be given; leave it out";
    /// Returns the error for a redirect that the run's guard denies.
    not_admitted(url: &Url, why: &str) => Refused,
        "redirected to {url}: {why}", url = origin_of(url);
    unresolved(name: &str, why: &str) => Resolve,
        "failed to resolve {name}: {why}";
    timeout(url: &Url, limit: Duration) => Timeout,
        "{url} returned no complete response within {limit}",
        url = origin_of(url), limit = format_time(limit);
    too_large(url: &Url, limit: usize) => TooLarge,
        "the response of {url} is larger than the limit of {limit} bytes", url = origin_of(url);
    redirects(limit: usize, to: &Url) => Redirect,
        "more than {limit} redirects, the last to {to}", to = truncate(to.as_str(), 200);
    location(why: &str) => Redirect,
        "redirect to an invalid location: {why}";
    no_client(why: &str) => Connect,
        "failed to set up the HTTP client: {why}; https needs the system's CA certificates";
    no_proxy(variable: &str) => Connect,
        "the variable `{variable}` does not contain the URL of a proxy, such as \
         `http://proxy.example:3128`; the schemes are http, https, socks4, socks4a, socks5 and \
         socks5h";
    unconnected(url: &Url, why: &str) => Connect,
        "failed to connect to {url}: {why}", url = origin_of(url), why = truncate(why, 200);
    broken(url: &Url, why: &str) => Broken,
        "the connection to {url} broke: {why}", url = origin_of(url), why = truncate(why, 200);
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
