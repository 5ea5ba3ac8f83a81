//! Hosts: the host of a URL, and the rules and patterns that match it.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use url::{Host, Url};
use wattle_rt::truncate;

/// The normalized host and port of a URL, for comparison with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Target {
    /// Returns the host and port of a URL, or `None` if the URL has no host.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let (host, port) = (url.host()?, url.port_or_known_default()?);
        Some(Self { host: without_final_dot(host.to_owned()), port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A host that the operator allows, on one port or on all ports: `intra.example`, `127.0.0.1:8080`,
/// `[::1]:8080`.
///
/// A rule for a name also allows the addresses of the name, except for cloud metadata, multicast
/// and broadcast addresses. Those are allowed only by a rule for the address itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    host: Host,
    port: Option<u16>,
}

impl HostRule {
    /// Returns the port, or `None` if the rule allows all ports.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn allows(&self, host: &Host, port: u16) -> bool {
        self.host == *host && self.port.is_none_or(|allowed| allowed == port)
    }
}

impl FromStr for HostRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.contains("://") {
            return Err(RuleError::scheme(text));
        }
        if text.contains(['/', '?', '#', '@', '\\', '%']) {
            return Err(RuleError::more_than_host(text));
        }
        if text.contains('*') {
            return Err(RuleError::wildcard(text));
        }
        let (host, port) = split_port(text)?;
        Ok(Self { host: parse_host(host, text)?, port })
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => self.host.fmt(f),
        }
    }
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), RuleError> {
    let after_host = match text.rfind(']') {
        Some(end) => text.split_at(end + 1),
        None => match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => return Err(RuleError::no_brackets(text)),
            Some((host, _)) => text.split_at(host.len()),
            None => (text, ""),
        },
    };
    match after_host {
        (host, "") => Ok((host, None)),
        (host, rest) => match rest.strip_prefix(':').map(str::parse::<u16>) {
            Some(Ok(port)) if port > 0 && !rest.contains('+') => Ok((host, Some(port))),
            _ => Err(RuleError::port(text)),
        },
    }
}

fn parse_host(host: &str, whole: &str) -> Result<Host, RuleError> {
    let parsed = Host::parse(host).map_err(|why| RuleError::host(whole, why))?;
    match without_final_dot(parsed) {
        Host::Domain(name) if name.is_empty() => {
            Err(RuleError::host(whole, url::ParseError::EmptyHost))
        }
        host => Ok(host),
    }
}

/// A pattern in an allow-list: `example.com` matches only that domain, and `*.example.com` matches
/// all of its subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainPattern {
    host: Host,
    /// If true, the pattern matches only subdomains of `host`.
    below: bool,
}

impl DomainPattern {
    /// Returns true if the pattern matches the host of a URL.
    #[must_use]
    pub fn matches(&self, url: &Url) -> bool {
        Target::of(url).is_some_and(|target| self.allows(&target.host))
    }

    pub(crate) fn allows(&self, host: &Host) -> bool {
        match (self.below, &self.host, host) {
            (false, own, host) => own == host,
            (true, Host::Domain(own), Host::Domain(name)) => name
                .strip_suffix(own.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            (true, _, _) => false,
        }
    }
}

impl FromStr for DomainPattern {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.contains("://") {
            return Err(RuleError::scheme(text));
        }
        if rest.contains('*') {
            return Err(RuleError::inner_wildcard(text));
        }
        let host = parse_host(rest, text)?;
        match (&host, below) {
            (Host::Ipv4(_) | Host::Ipv6(_), true) => Err(RuleError::inner_wildcard(text)),
            _ => Ok(Self { host, below }),
        }
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.host)
    }
}

/// Removes a final dot: `example.com.` and `example.com` are the same host.
fn without_final_dot(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(&name).to_owned()),
        address => address,
    }
}

/// The error returned if a host rule or a domain pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RuleError {}

impl RuleError {
    pub(crate) fn scheme(text: &str) -> Self {
        Self(format!(
            "invalid host `{}`: give the host alone, without a scheme",
            truncate(text, 100)
        ))
    }

    pub(crate) fn more_than_host(text: &str) -> Self {
        Self(format!(
            "invalid host `{}`: give HOST or HOST:PORT, without user, path or query",
            truncate(text, 100)
        ))
    }

    pub(crate) fn wildcard(text: &str) -> Self {
        Self(format!(
            "invalid host `{}`: a wildcard is not allowed here, name each host",
            truncate(text, 100)
        ))
    }

    pub(crate) fn inner_wildcard(text: &str) -> Self {
        Self(format!(
            "invalid domain `{}`: `*` may only replace the names below a domain, `*.example.com`",
            truncate(text, 100)
        ))
    }

    pub(crate) fn no_brackets(text: &str) -> Self {
        Self(format!(
            "invalid host `{}`: write an IPv6 address in brackets, `[::1]` or `[::1]:8080`",
            truncate(text, 100)
        ))
    }

    pub(crate) fn port(text: &str) -> Self {
        Self(format!(
            "invalid host `{}`: the port is a number from 1 to 65535",
            truncate(text, 100)
        ))
    }

    pub(crate) fn host(text: &str, why: url::ParseError) -> Self {
        Self(format!("invalid host `{}`: {why}", truncate(text, 100)))
    }
}
