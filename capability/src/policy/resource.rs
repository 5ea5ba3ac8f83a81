//! The resources that are named in calls, parsed exactly as the host parses them.

use std::net::Ipv4Addr;

use url::Host;
use wattle_rt::{Service, Target, Text};

use crate::egress::Url;

/// An external resource that a call accesses: a host, a path, a key, a program, an agent, a tool or
/// a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// A host and a port. The host is in lowercase, without a trailing dot.
    Host { host: String, port: u16 },
    /// A path in the run's files, relative to the workdir's root. If `whole` is true, the resource
    /// includes everything below the path.
    Path { names: Vec<String>, read: bool, write: bool, whole: bool },
    /// A key or, if `whole` is true, all keys that start with `key`.
    Key { key: String, whole: bool },
    /// A program. `names` are the names in the catalog of the code that runs; there are none for a
    /// program that is not in the catalog. `called` is the name by which it is called, which may be
    /// an alias.
    Program { names: Vec<String>, called: String },
    /// An agent, by name. If `elsewhere` is true, its model is at another endpoint than that of the
    /// run.
    Agent { name: String, elsewhere: bool },
    /// An application tool, by name.
    Tool(String),
    /// A service that the operator configured, with its host and port if known.
    Service { service: &'static Service, at: Option<(String, u16)> },
}

impl Resource {
    /// Parses the name of a resource. Returns `None` if the name is invalid.
    pub(super) fn of(target: Target, text: &str) -> Option<Resource> {
        let path =
            |read, write, whole| Some(Resource::Path { names: names(text)?, read, write, whole });
        Some(match target {
            Target::Url => {
                let (host, port) = host_and_port(text)?;
                Resource::Host { host, port }
            }
            Target::Read => path(true, false, false)?,
            Target::ReadTree => path(true, false, true)?,
            Target::Write => path(false, true, false)?,
            Target::Tree => path(true, true, true)?,
            Target::Key => Resource::Key { key: text.to_owned(), whole: false },
            Target::Keys => Resource::Key { key: text.to_owned(), whole: true },
            Target::Program => Resource::Program {
                names: Some(text.to_owned()).filter(|name| !name.is_empty()).into_iter().collect(),
                called: text.to_owned(),
            },
            Target::Agent => Resource::Agent { name: text.to_owned(), elsewhere: false },
            Target::Tool => Resource::Tool(text.to_owned()),
            Target::Service(service) => Resource::Service { service, at: host_and_port(text) },
        })
    }

    /// Parses the name of a resource that may be known only in part. Returns `None` if the unknown
    /// part could change the resource.
    pub(super) fn of_text(target: Target, text: &Text) -> Option<Resource> {
        match (text.whole(), target) {
            (Some(whole), _) => Resource::of(target, whole),
            // The text from the first `/`, `?` or `#` after the host cannot change the host.
            (None, Target::Url) => {
                let prefix = text.prefix();
                let scheme = ["https://", "http://"].into_iter().find(|scheme| {
                    prefix.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme))
                })?;
                let rest = prefix.get(scheme.len()..)?;
                let end = rest.find(['/', '?', '#'])?;
                let authority = rest.get(..end)?;
                let plain = |c: char| {
                    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']')
                };
                let sound = !authority.is_empty() && authority.chars().all(plain);
                Resource::of(Target::Url, &format!("{scheme}{}/", sound.then_some(authority)?))
            }
            (None, _) => None,
        }
    }
}

/// Returns true if the port is the default port of http or https. A site may redirect from one to
/// the other.
pub(super) fn is_default_port(port: u16) -> bool {
    matches!(port, 80 | 443)
}

fn host_and_port(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    Some((host_name(&url.host()?), url.port_or_known_default()?))
}

/// Returns the canonical name of a host: in lowercase and without a trailing dot. An IPv6 address
/// that maps to an IPv4 address becomes that IPv4 address.
pub(super) fn host_name(host: &Host<&str>) -> String {
    match host {
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => {
            match address.segments() {
                // IPv4-mapped, IPv4-translated and NAT64 addresses: traffic reaches the IPv4
                // address.
                [0, 0, 0, 0, 0, 0xffff, high, low]
                | [0, 0, 0, 0, 0xffff, 0, high, low]
                | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).to_string()
                }
                _ => format!("[{address}]"),
            }
        }
    }
}

/// Splits a path relative to the workdir's root into its components, without `.` and `..`. Returns
/// `None` if the path leads above the root.
pub(super) fn names(text: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name.to_owned()),
        }
    }
    Some(names)
}
