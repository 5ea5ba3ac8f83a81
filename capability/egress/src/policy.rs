//! The operator's rules for the hosts that requests may reach.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use url::{Host, Url};

use crate::address::{Class, classify, classify_name};
use crate::error::{EgressError, RuleError};

/// The hosts that requests may reach, and the limits of a request. The default allows every public
/// host and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Hosts that the operator allows (`--allow-host`), even if they are not public.
    pub allow: Vec<HostRule>,
    /// If set, only these domains and the hosts of `allow` are allowed. An empty list allows no
    /// domain.
    pub only: Option<Vec<DomainPattern>>,
    /// The limits of each request.
    pub limits: Limits,
}

/// The limits of a request, including its redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a response's body in bytes, after decompression (default 8 MiB).
    pub body: usize,
    /// Maximum time from the first name lookup to the last byte of the body (default 30 s).
    pub time: Duration,
    /// Maximum number of redirects (default 5).
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 8 << 20, time: Duration::from_secs(30), redirects: 5 }
    }
}

/// A host that the operator allows, on one port or on all ports: `intra.example`, `127.0.0.1:8080`,
/// `[::1]:8080`.
///
/// A rule for a name also allows the addresses of the name, except for cloud metadata and multicast
/// addresses. Those are allowed only by a rule for the address itself.
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

    fn allows(&self, host: &Host, port: u16) -> bool {
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

/// A pattern of an allow-list: `example.com` matches only that domain, and `*.example.com` matches
/// every domain below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainPattern {
    host: Host,
    /// If true, the pattern matches only domains below `host`.
    below: bool,
}

impl DomainPattern {
    /// Returns true if the pattern matches the host of a URL.
    #[must_use]
    pub fn matches(&self, url: &Url) -> bool {
        Target::of(url).is_ok_and(|target| self.allows(&target.host))
    }

    fn allows(&self, host: &Host) -> bool {
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

/// The addresses that an allowed host may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses only.
    Public,
    /// Any address of a single machine except for a metadata service, because the operator named
    /// the host.
    Named,
}

impl Reach {
    /// Returns the class of a refused address, or `None` if connections to it are allowed.
    pub(crate) fn refuses(self, address: IpAddr) -> Option<Class> {
        classify(address).filter(|class| match self {
            Reach::Public => true,
            Reach::Named => matches!(class, Class::Metadata | Class::Multicast | Class::Broadcast),
        })
    }
}

/// The normalized host and port of a URL, as compared with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Target {
    /// Returns the host and port of a URL.
    pub(crate) fn of(url: &Url) -> Result<Self, EgressError> {
        let host = url.host().ok_or_else(|| EgressError::no_host(url))?;
        let port = url.port_or_known_default().ok_or_else(|| EgressError::no_host(url))?;
        Ok(Self { host: without_final_dot(host.to_owned()), port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Policy {
    /// Checks a host without resolving it.
    pub(crate) fn admit(&self, target: &Target) -> Result<Reach, EgressError> {
        if self.allow.iter().any(|rule| rule.allows(&target.host, target.port)) {
            return Ok(Reach::Named);
        }
        let class = match &target.host {
            Host::Domain(name) => classify_name(name),
            Host::Ipv4(v4) => classify((*v4).into()),
            Host::Ipv6(v6) => classify((*v6).into()),
        };
        if let Some(class) = class {
            return Err(EgressError::not_public(target, class));
        }
        match &self.only {
            Some(only) if !only.iter().any(|pattern| pattern.allows(&target.host)) => {
                Err(EgressError::not_listed(target, only))
            }
            _ => Ok(Reach::Public),
        }
    }
}

/// Removes a final dot: `example.com.` and `example.com` are the same host.
fn without_final_dot(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(&name).to_owned()),
        address => address,
    }
}
