//! What a call names, read as the host reads it.

use std::net::Ipv4Addr;

use url::Host;
use wattle_rt::{Service, Target, Text};

use crate::egress::Url;

/// Something outside a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A host in lower case without a final dot, and a port.
    Host { host: String, port: u16 },
    /// A path of the run's files, from the top.
    Path { names: Vec<String>, read: bool, write: bool, whole: bool },
    /// A key, or all that begin so.
    Key { key: String, whole: bool },
    /// A catalog program; empty for one without a name.
    Program(String),
    /// An agent.
    Agent(String),
    /// Something that the operator set up, with the host and port that it is reached at where they are known.
    Service { service: Service, at: Option<(String, u16)> },
}

impl Place {
    /// What a text names as a target of that kind; `None` where it names nothing that could be told.
    pub(super) fn of(target: Target, text: &str) -> Option<Place> {
        let path = |read, write, whole| Some(Place::Path { names: names(text)?, read, write, whole });
        Some(match target {
            Target::Url => {
                let (host, port) = host_and_port(text)?;
                Place::Host { host, port }
            }
            Target::Read => path(true, false, false)?,
            Target::ReadTree => path(true, false, true)?,
            Target::Write => path(false, true, false)?,
            Target::Tree => path(true, true, true)?,
            Target::Key => Place::Key { key: text.to_owned(), whole: false },
            Target::Keys => Place::Key { key: text.to_owned(), whole: true },
            Target::Program => Place::Program(text.to_owned()),
            Target::Agent => Place::Agent(text.to_owned()),
            Target::Service(service) => Place::Service { service, at: host_and_port(text) },
        })
    }

    /// What a text names that is known as far as it is known; `None` where what follows could change it.
    pub(super) fn of_text(target: Target, text: &Text) -> Option<Place> {
        match (text.whole(), target) {
            (Some(whole), _) => Place::of(target, whole),
            // Behind its first `/` a URL can name no other host.
            (None, Target::Url) => {
                let beginning = text.prefix();
                let scheme = ["https://", "http://"]
                    .into_iter()
                    .find(|scheme| beginning.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme)))?;
                let rest = beginning.get(scheme.len()..)?;
                let end = rest.find(['/', '?', '#'])?;
                let authority = rest.get(..end)?;
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
                let sound = !authority.is_empty() && authority.chars().all(plain);
                Place::of(Target::Url, &format!("{scheme}{}/", sound.then_some(authority)?))
            }
            (None, _) => None,
        }
    }
}

fn host_and_port(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    Some((host_name(&url.host()?), url.port_or_known_default()?))
}

/// A host by its one name: in lower case, without a final dot, and an IPv4 address in IPv6 as what it leads to.
pub(super) fn host_name(host: &Host<&str>) -> String {
    match host {
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => {
            match address.segments() {
                // Mapped, translated, and NAT64: traffic reaches the IPv4 address.
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

/// The names on a path, from the top; one that climbs above the top has none.
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
