//! What a rule is about, as it is written.

use std::fmt;
use std::str::FromStr;

use wattle_rt::{Service, Target};

use super::class::{self, Class};
use super::place::{self, Place, names};
use crate::egress::{HostRule, Url};

/// What a rule of a [`Policy`](super::Policy) is about. Read from and shown as the text that settings use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule(About);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum About {
    Everything,
    Capability(String),
    Function(String),
    Host { host: Hosts, port: Option<u16> },
    Path { names: Vec<String>, read: bool, write: bool },
    Key(String),
    Program(Option<String>),
    Agent(Option<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Hosts {
    All,
    Below(String),
    One(String),
}

impl Hosts {
    /// How specific they are for a host on a port.
    fn rank(&self, own_port: Option<u16>, host: &str, port: u16) -> Option<Rank> {
        if own_port.is_some_and(|own| own != port) {
            return None;
        }
        let by_port = u8::from(own_port.is_some());
        match self {
            Hosts::All => Some((0, 0, by_port)),
            Hosts::Below(domain) => host
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                .then_some((1, domain.len(), by_port)),
            Hosts::One(own) => (own == host).then_some((2, 0, by_port)),
        }
    }
}

/// How specific a rule is for one thing: the greater, the more.
pub(super) type Rank = (u8, usize, u8);

/// Tells why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// The kinds of rules, for errors.
const KINDS: &str = "write `*`, a capability such as `http`, a function such as `http.post`, or `host:`, `read:`, `write:`, `path:`, \
                     `key:`, `program:` or `agent:` with a name behind it";

impl Rule {
    /// The rule about that function.
    pub(super) fn function(name: &str) -> Rule {
        Rule(About::Function(name.to_owned()))
    }

    /// The narrowest rule that permits a function to touch that: about the place itself, or about all of its kind where it cannot be
    /// told, or about the function where only that can be named.
    pub(super) fn exactly(function: &str, target: Target, place: Option<&Place>) -> Rule {
        let Some(place) = place else { return Rule::all(function, target) };
        Rule(match place {
            Place::Host { host, port } => {
                let usual = matches!(port, 80 | 443);
                About::Host { host: Hosts::One(host.clone()), port: (!usual).then_some(*port) }
            }
            Place::Path { names, read, write, .. } => About::Path { names: names.clone(), read: *read, write: *write },
            Place::Key { key, .. } => About::Key(key.clone()),
            Place::Program(name) => About::Program((!name.is_empty()).then(|| name.clone())),
            Place::Agent(name) => About::Agent(Some(name.clone())),
            Place::Service { .. } => return Rule::function(function),
        })
    }

    /// The rule about all that a function can name as a target of that kind.
    pub(super) fn all(function: &str, target: Target) -> Rule {
        let path = |read, write| About::Path { names: Vec::new(), read, write };
        Rule(match target {
            Target::Url => About::Host { host: Hosts::All, port: None },
            Target::Read | Target::ReadTree => path(true, false),
            Target::Write => path(false, true),
            Target::Tree => path(true, true),
            Target::Key | Target::Keys => About::Key(String::new()),
            Target::Program => About::Program(None),
            Target::Agent => About::Agent(None),
            Target::Service(_) => return Rule::function(function),
        })
    }

    /// How specific the rule is for a function by its name, or by that of its capability, where that leads no class of its own. What
    /// allows a capability allows what that is for.
    pub(super) fn on_name(
        &self,
        capability: &str,
        function: &str,
        class: Option<Class>,
        refuses: bool,
    ) -> Option<Rank> {
        match &self.0 {
            About::Function(own) if own == function => Some((1, 0, 0)),
            About::Capability(own) if own == capability => match class {
                None => Some((0, 0, 0)),
                Some(class) if class::led_by(own) == Some(class) => None,
                Some(class) => (refuses || class::is_for(own, class)).then_some((0, 0, 0)),
            },
            _ => None,
        }
    }

    /// How specific the rule is for a class of effect. What refuses a class also refuses what is done by way of it.
    pub(super) fn on_class(&self, class: Class, refuses: bool) -> Option<Rank> {
        match &self.0 {
            About::Capability(word) => {
                let led = class::led_by(word)?;
                let on_the_way = refuses && class.by_way_of().contains(&led);
                (led == class).then_some((2, 0, 0)).or(on_the_way.then_some((1, 0, 0)))
            }
            About::Everything => Some((0, 0, 0)),
            _ => None,
        }
    }

    /// How specific the rule is for what a call names.
    pub(super) fn on_place(&self, place: &Place, refuses: bool) -> Option<Rank> {
        match (&self.0, place) {
            (About::Host { host: own, port: own_port }, Place::Host { host, port }) => own.rank(*own_port, host, *port),
            (About::Path { names: own, read, write }, Place::Path { names, read: reads, write: writes, .. }) => {
                let about = (*read && *reads) || (*write && *writes);
                (about && names.starts_with(own)).then_some((0, own.len(), 0))
            }
            (About::Key(own), Place::Key { key, .. }) => key.starts_with(own.as_str()).then_some((0, own.len(), 0)),
            (About::Program(own), Place::Program(name)) | (About::Agent(own), Place::Agent(name)) => match own {
                None => Some((0, 0, 0)),
                Some(own) => (own == name).then_some((1, 0, 0)),
            },
            (_, Place::Service { service, at }) if refuses => self.on_service(*service, at.as_ref()),
            _ => None,
        }
    }

    /// How specific a rule that refuses is for a service: one on all that it is reached by, or on the host where that is known.
    fn on_service(&self, service: Service, at: Option<&(String, u16)>) -> Option<Rank> {
        let by_way_of = Class::Service(service).by_way_of();
        let about_all = match &self.0 {
            About::Host { host: Hosts::All, port: None } => by_way_of.contains(&Class::Requests),
            About::Host { host, port } => return at.and_then(|(own, own_port)| host.rank(*port, own, *own_port)),
            About::Path { names, write: true, .. } if names.is_empty() => by_way_of.contains(&Class::Files),
            About::Key(beginning) if beginning.is_empty() => by_way_of.contains(&Class::State),
            _ => false,
        };
        about_all.then_some((0, 0, 0))
    }

    /// Whether an approval of the rule, for that function, is good for what it is about to touch.
    pub(super) fn approves(&self, function: &str, target: Target, place: Option<&Place>) -> bool {
        match place {
            None => *self == Rule::all(function, target),
            Some(Place::Service { .. }) => *self == Rule::function(function),
            Some(place) => self.covers(place),
        }
    }

    /// Whether the rule is about all that a place stands for.
    fn covers(&self, place: &Place) -> bool {
        let whole = match (&self.0, place) {
            (About::Path { read, write, .. }, Place::Path { read: reads, write: writes, .. }) => {
                (*read || !*reads) && (*write || !*writes)
            }
            _ => true,
        };
        whole && self.on_place(place, false).is_some()
    }

    /// Whether the rule is about something that a place holds, which is read or moved as a whole.
    pub(super) fn is_below(&self, place: &Place) -> bool {
        match (&self.0, place) {
            (
                About::Path { names: own, read, write },
                Place::Path { names, read: reads, write: writes, whole: true },
            ) => ((*read && *reads) || (*write && *writes)) && own.starts_with(names),
            (About::Key(own), Place::Key { key, whole: true }) => own.starts_with(key.as_str()),
            _ => false,
        }
    }

    /// Whether the rule is about some of what a target of that kind can name that begins so.
    pub(super) fn may_be_about(&self, target: Target, beginning: &str) -> bool {
        match (&self.0, target) {
            (About::Host { .. }, Target::Url)
            | (About::Path { .. }, Target::Tree)
            | (About::Program(_), Target::Program)
            | (About::Agent(_), Target::Agent) => true,
            (About::Path { read, .. }, Target::Read | Target::ReadTree) => *read,
            (About::Path { write, .. }, Target::Write) => *write,
            (About::Key(own), Target::Key | Target::Keys) => {
                own.starts_with(beginning) || beginning.starts_with(own.as_str())
            }
            _ => false,
        }
    }

    /// Whether the rule is about all that a target of that kind can name.
    pub(super) fn is_about_all(&self, target: Target) -> bool {
        let path = |reads: bool, writes: bool| match &self.0 {
            About::Path { names, read, write } => names.is_empty() && (*read || !reads) && (*write || !writes),
            _ => false,
        };
        match target {
            Target::Url => matches!(&self.0, About::Host { host: Hosts::All, port: None }),
            Target::Read | Target::ReadTree => path(true, false),
            Target::Write => path(false, true),
            Target::Tree => path(true, true),
            Target::Key | Target::Keys => matches!(&self.0, About::Key(own) if own.is_empty()),
            Target::Program => matches!(self.0, About::Program(None)),
            Target::Agent => matches!(self.0, About::Agent(None)),
            Target::Service(_) => false,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let text = text.trim();
        let Some((kind, what)) = text.split_once(':') else { return known(text).map(Rule) };
        let path = |read, write| match names(what) {
            Some(names) => Ok(About::Path { names, read, write }),
            None => Err(RuleError(format!("invalid rule `{text}`: the path climbs above the workdir"))),
        };
        let name = || match what {
            "" => Err(RuleError(format!("invalid rule `{text}`: a name stands behind `{kind}:`, or `*`"))),
            "*" => Ok(None),
            name => Ok(Some(name.to_owned())),
        };
        Ok(Rule(match kind {
            "host" => host(text, what)?,
            "read" => path(true, false)?,
            "write" => path(false, true)?,
            "path" => path(true, true)?,
            "key" => About::Key(what.to_owned()),
            "program" => About::Program(name()?),
            "agent" => About::Agent(name()?),
            _ => return Err(RuleError(format!("invalid rule `{text}`: there is no kind `{kind}:`; {KINDS}"))),
        }))
    }
}

/// A capability or a function that there is.
fn known(text: &str) -> Result<About, RuleError> {
    if text == "*" {
        return Ok(About::Everything);
    }
    let functions = || crate::ALL.iter().flat_map(|capability| capability.functions);
    if crate::ALL.iter().any(|capability| capability.name == text) {
        return Ok(About::Capability(text.to_owned()));
    }
    if functions().any(|function| function.name == text) {
        return Ok(About::Function(text.to_owned()));
    }
    let unknown = if text.contains('.') { "function" } else { "capability" };
    Err(RuleError(format!("invalid rule `{text}`: there is no such {unknown}; {KINDS}")))
}

fn host(text: &str, what: &str) -> Result<About, RuleError> {
    let wrong = |why: &dyn fmt::Display| RuleError(format!("invalid rule `{text}`: {why}"));
    // The port of a wildcard is read behind a name that stands for it.
    let (below, name) = match what.strip_prefix("*.") {
        Some(domain) => (true, domain.to_owned()),
        None => (false, what.to_owned()),
    };
    let all = name == "*" || name.starts_with("*:");
    let name = if all { name.replacen('*', "all.invalid", 1) } else { name };
    let rule: HostRule = name.parse().map_err(|why| wrong(&why))?;
    let url = Url::parse(&format!("http://{rule}/")).map_err(|why| wrong(&why))?;
    let host = url.host().map(|host| place::host_name(&host)).unwrap_or_default();
    let port = rule.port();
    let is_address = !matches!(url.host(), Some(url::Host::Domain(_)));
    Ok(match (all, below) {
        (true, _) => About::Host { host: Hosts::All, port },
        (false, true) if is_address => return Err(wrong(&"nothing lies below an address")),
        (false, true) => About::Host { host: Hosts::Below(host), port },
        (false, false) => About::Host { host: Hosts::One(host), port },
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            About::Everything => f.write_str("*"),
            About::Capability(name) | About::Function(name) => f.write_str(name),
            About::Host { host, port } => {
                match host {
                    Hosts::All => f.write_str("host:*"),
                    Hosts::Below(domain) => write!(f, "host:*.{domain}"),
                    Hosts::One(host) => write!(f, "host:{host}"),
                }?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            About::Path { names, read, write } => {
                let kind = match (read, write) {
                    (true, false) => "read",
                    (false, true) => "write",
                    _ => "path",
                };
                write!(f, "{kind}:/{}", names.join("/"))
            }
            About::Key(beginning) => write!(f, "key:{beginning}"),
            About::Program(name) => write!(f, "program:{}", name.as_deref().unwrap_or("*")),
            About::Agent(name) => write!(f, "agent:{}", name.as_deref().unwrap_or("*")),
        }
    }
}
