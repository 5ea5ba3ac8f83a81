//! The operator's rules for the hosts that requests may reach.

use std::net::IpAddr;
use std::time::Duration;

use url::{Host, Url};

use crate::address::{Class, classify, classify_name};
use crate::error::EgressError;
use crate::host::{DomainPattern, HostRule, Target};

/// The hosts that requests may reach, and the limits on each request. The default allows every
/// public host and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Hosts that the operator allows (`--allow-host`), even if they are not public.
    pub allow: Vec<HostRule>,
    /// If set, only these domains and the hosts in `allow` are allowed. An empty list allows no
    /// domain.
    pub only: Option<Vec<DomainPattern>>,
    /// The limits on each request.
    pub limits: Limits,
}

/// Limits on a request, including its redirects.
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

/// The addresses that an allowed host may resolve to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses only.
    Public,
    /// All addresses except metadata, multicast and broadcast addresses. Applies to a host that the
    /// operator allowed explicitly.
    Named,
    /// The same addresses, for the operator's own endpoints. They alone use the proxies and
    /// certificates of the environment.
    Endpoint,
}

impl Reach {
    /// Returns the class of the address if it is denied, or `None` if connections to it are
    /// allowed.
    pub(crate) fn refuses(self, address: IpAddr) -> Option<Class> {
        classify(address).filter(|class| match self {
            Reach::Public => true,
            Reach::Named | Reach::Endpoint => {
                matches!(class, Class::Metadata | Class::Multicast | Class::Broadcast)
            }
        })
    }
}

impl Policy {
    /// Checks the host of a URL without resolving it. Returns the addresses that the host may
    /// resolve to.
    pub(crate) fn admit(&self, url: &Url) -> Result<Reach, EgressError> {
        let target = Target::of(url).ok_or_else(|| EgressError::no_host(url))?;
        if self.allow.iter().any(|rule| rule.allows(&target.host, target.port)) {
            return Ok(Reach::Named);
        }
        let class = match &target.host {
            Host::Domain(name) => classify_name(name),
            Host::Ipv4(v4) => classify((*v4).into()),
            Host::Ipv6(v6) => classify((*v6).into()),
        };
        if let Some(class) = class {
            return Err(EgressError::not_public(&target, class));
        }
        match &self.only {
            Some(only) if !only.iter().any(|pattern| pattern.allows(&target.host)) => {
                Err(EgressError::not_listed(&target, only))
            }
            _ => Ok(Reach::Public),
        }
    }
}
