//! What may leave: the operator's settings, parsed into types that answer questions.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use url::{Host, Url};

use super::address::{Class, classify, classify_name};
use super::error::{EgressError, RuleError};

/// Says what may be reached, and within which bounds. The default reaches every public host and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Hosts named by the operator (`--allow-host`): reachable even where they are not public.
    pub allow: Vec<HostRule>,
    /// Where set, only these domains (and the hosts of `allow`) are reachable; an empty list leaves nothing.
    pub only: Option<Vec<DomainPattern>>,
    /// Bounds of one request.
    pub limits: Limits,
}

/// Bounds one request, redirects included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Greatest length of a response's body in bytes, after decompression (default 8 MiB).
    pub body: usize,
    /// Time from the first lookup to the last byte of the body (default 30 s).
    pub time: Duration,
    /// Greatest number of redirects that are followed (default 5).
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 8 << 20, time: Duration::from_secs(30), redirects: 5 }
    }
}

/// Names one host that the operator allows, on one port or on all: `intra.example`, `127.0.0.1:8080`, `[::1]:8080`.
///
/// A rule for a name also permits what the name resolves to, cloud metadata and multicast addresses excepted;
/// such an address is only reached where the rule names the address itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    host: Host,
    port: Option<u16>,
}

impl HostRule {
    /// The one port that it names; `None` where it names all.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn allows(&self, host: &Host, port: u16) -> bool {
        self.host == *host && self.port.is_none_or(|own| own == port)
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
        Host::Domain(name) if name.is_empty() => Err(RuleError::host(whole, url::ParseError::EmptyHost)),
        host => Ok(host),
    }
}

/// Names the domains of an allow-list: `example.com` stands for itself, `*.example.com` for everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainPattern {
    host: Host,
    below: bool,
}

impl DomainPattern {
    /// Whether the URL's host is one that it names.
    #[must_use]
    pub fn matches(&self, url: &Url) -> bool {
        Target::of(url).is_ok_and(|target| self.allows(&target.host))
    }

    fn allows(&self, host: &Host) -> bool {
        match (self.below, &self.host, host) {
            (false, own, asked) => own == asked,
            (true, Host::Domain(own), Host::Domain(asked)) => {
                asked.strip_suffix(own.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
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

/// Says how far the addresses behind an admitted host are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public addresses only.
    Public,
    /// The operator named this host: any address that one machine can have, except a metadata service.
    Named,
}

impl Reach {
    /// Says why an address that a name resolved to is out of reach; `None` where it may be connected to.
    pub(super) fn refuses(self, address: IpAddr) -> Option<Class> {
        classify(address).filter(|class| match self {
            Reach::Public => true,
            Reach::Named => matches!(class, Class::Metadata | Class::Multicast | Class::Broadcast),
        })
    }
}

/// Holds a URL's host and port, normalised: what rules are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Target {
    /// Takes host and port from a URL that has both.
    pub(super) fn of(url: &Url) -> Result<Self, EgressError> {
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
    /// Decides about a host as far as that needs no lookup.
    pub(super) fn admit(&self, target: &Target) -> Result<Reach, EgressError> {
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

/// `example.com.` and `example.com` are one host.
fn without_final_dot(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(&name).to_owned()),
        address => address,
    }
}
