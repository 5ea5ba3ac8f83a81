//! Rules: their text form, and the resources that they cover.

use std::fmt;
use std::str::FromStr;

use wattle_files::{Sensitivity, sensitive};
use wattle_rt::{Service, Target};

use super::class::{self, Class};
use super::resource::{self, Resource, names};
use super::start;
use crate::egress::{HostRule, Url};
use crate::kv::TENANT;

/// A rule of a [`Policy`](super::Policy). Its text form is the form used in settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule(Scope);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Scope {
    Everything,
    Egress,
    Capability(String),
    Function(String),
    Host {
        host: Hosts,
        port: Option<u16>,
    },
    Path {
        names: Vec<String>,
        read: bool,
        write: bool,
    },
    Sensitive(Sensitivity),
    Key(String),
    Program(Option<String>),
    Agent(Option<String>),
    Tool(Option<String>),
    /// The tools whose names begin like this: those of an MCP server, such as `github.`.
    Tools(String),
}

/// The rule on reading files that hold secrets.
const PRIVATE: &str = "private";
/// The rule on writing files that run or authorize something.
const PROTECTED: &str = "protected";

/// The hosts that a rule covers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Hosts {
    All,
    Subdomains(String),
    One(String),
}

impl Hosts {
    /// Returns the rank of a rule on these hosts for `host` and `port`, or `None` if the rule does
    /// not cover that host and port. `own_port` is the rule's port, or `None` if the rule covers
    /// all ports.
    fn rank(&self, own_port: Option<u16>, host: &str, port: u16) -> Option<Rank> {
        if own_port.is_some_and(|own| own != port) {
            return None;
        }
        let by_port = u8::from(own_port.is_some());
        match self {
            Hosts::All => Some((0, 0, by_port)),
            Hosts::Subdomains(domain) => host
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                .then_some((1, domain.len(), by_port)),
            Hosts::One(own) => (own == host).then_some((2, 0, by_port)),
        }
    }
}

/// The specificity of a rule for one resource. A rule with a higher rank is more specific.
pub(super) type Rank = (u8, usize, u8);

/// An error in the text of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError(String);

impl RuleError {
    pub(super) fn new(message: String) -> RuleError {
        RuleError(message)
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleError {}

/// A hint for error messages that lists the forms of a rule.
const KINDS: &str = "write `*`, `egress`, `private`, `protected`, a capability such as `http`, a function such as \
                     `http.post`, or `host:`, `read:`, `write:`, `path:`, `key:`, `program:`, \
                     `agent:` or `tool:` followed by a name";

impl Rule {
    /// Creates a rule on a function.
    pub(super) fn function(name: &str) -> Rule {
        Rule(Scope::Function(name.to_owned()))
    }

    /// Creates a rule on the program that the catalog has under this name.
    #[must_use]
    pub fn on_program(name: &str) -> Rule {
        Rule(Scope::Program(Some(name.to_owned())))
    }

    /// Creates a rule on questions to the agent with this name.
    #[must_use]
    pub fn on_agent(name: &str) -> Rule {
        Rule(Scope::Agent(Some(name.to_owned())))
    }

    /// Creates the rule on files that are sensitive in this way: on reading private files, or on
    /// writing protected ones.
    pub(super) fn sensitive(class: Sensitivity) -> Rule {
        Rule(Scope::Sensitive(class))
    }

    /// Returns true if the rule, which allows, covers writing the protected file at this path.
    /// `depth` is the number of names up to the file or folder that is protected: a rule on a
    /// folder above it does not cover it.
    pub(super) fn permits_protected(&self, names: &[String], depth: usize) -> bool {
        match &self.0 {
            Scope::Sensitive(Sensitivity::Protected) => true,
            Scope::Path { names: own, write: true, .. } => {
                own.len() >= depth && names.starts_with(own)
            }
            _ => false,
        }
    }

    /// Creates the narrowest rule that permits a function's effect. The rule is on the resource
    /// itself, on all resources of its kind if the resource is unknown, or on the function if rules
    /// cannot name the resource.
    pub(super) fn exactly(function: &str, target: Target, resource: Option<&Resource>) -> Rule {
        let Some(resource) = resource else { return Rule::all(function, target) };
        Rule(match resource {
            Resource::Host { host, port } => {
                let port = (!resource::is_default_port(*port)).then_some(*port);
                Scope::Host { host: Hosts::One(host.clone()), port }
            }
            Resource::Path { names, read, write, .. } => {
                Scope::Path { names: names.clone(), read: *read, write: *write }
            }
            Resource::Key { key, .. } => Scope::Key(key.clone()),
            Resource::Program { names, .. } => Scope::Program(names.first().cloned()),
            Resource::Agent { name, .. } => Scope::Agent(Some(name.clone())),
            Resource::Tool(name) => Scope::Tool(Some(name.clone())),
            Resource::Service { .. } => return Rule::function(function),
        })
    }

    /// Creates a rule on all resources of a kind, or on the function if rules cannot name such
    /// resources.
    pub(super) fn all(function: &str, target: Target) -> Rule {
        let path = |read, write| Scope::Path { names: Vec::new(), read, write };
        Rule(match target {
            Target::Url => Scope::Host { host: Hosts::All, port: None },
            Target::Read | Target::ReadTree => path(true, false),
            Target::Write => path(false, true),
            Target::Tree => path(true, true),
            Target::Key | Target::Keys => Scope::Key(String::new()),
            Target::Program => Scope::Program(None),
            Target::Agent => Scope::Agent(None),
            Target::Tool => Scope::Tool(None),
            Target::Service(_) => return Rule::function(function),
        })
    }

    /// Returns the rank of the rule for a function, or `None` if the rule does not match. A rule
    /// matches if it names the function or its capability. If the call has an effect of the class
    /// `class`, a rule that names the capability has two exceptions:
    ///
    /// - If the capability's name also refers to `class`, the rule does not match here, because
    ///   [`on_class`](Rule::on_class) ranks it.
    /// - Unless `restricts` is true, the rule matches only if effects of `class` are the
    ///   capability's purpose.
    ///
    /// `restricts` is true if the rule denies or asks.
    pub(super) fn on_name(
        &self,
        capability: &str,
        function: &str,
        class: Option<Class>,
        restricts: bool,
    ) -> Option<Rank> {
        match &self.0 {
            Scope::Function(own) if own == function => Some((1, 0, 0)),
            Scope::Capability(own) if own == capability => match class {
                None => Some((0, 0, 0)),
                Some(class) if class.word() == Some(own.as_str()) => None,
                Some(class) => (restricts || class.is_purpose_of(own)).then_some((0, 0, 0)),
            },
            _ => None,
        }
    }

    /// Returns the rank of the rule for a class of effects, or `None` if the rule does not cover
    /// the class. A rule that restricts a class also restricts the classes that depend on it.
    pub(super) fn on_class(&self, class: Class, restricts: bool) -> Option<Rank> {
        match &self.0 {
            Scope::Capability(word) => {
                let depends = restricts && class.depends_on(word);
                (class.word() == Some(word.as_str()))
                    .then_some((3, 0, 0))
                    .or(depends.then_some((2, 0, 0)))
            }
            Scope::Egress => class.leaves_machine().then_some((1, 0, 0)),
            Scope::Everything => Some((0, 0, 0)),
            _ => None,
        }
    }

    /// Returns the rank of the rule for a resource, or `None` if the rule does not cover the
    /// resource.
    pub(super) fn on_resource(&self, resource: &Resource, restricts: bool) -> Option<Rank> {
        match (&self.0, resource) {
            (Scope::Host { host: own, port: own_port }, Resource::Host { host, port }) => {
                own.rank(*own_port, host, *port)
            }
            (
                Scope::Path { names: own, read, write },
                Resource::Path { names, read: reads, write: writes, .. },
            ) => {
                let covers = (*read && *reads) || (*write && *writes);
                (covers && names.starts_with(own)).then_some((0, own.len(), 1))
            }
            // A rule on the sensitive file or folder itself is more specific, and one on a folder
            // above it is not. A rule that allows these files only replaces the one that does not.
            (Scope::Sensitive(class), Resource::Path { names, read, write, whole }) => {
                let covers = match class {
                    Sensitivity::Private => *read,
                    Sensitivity::Protected => *write,
                };
                let found = sensitive(*class, names, *whole).filter(|_| covers && restricts)?;
                Some((0, found.depth, 0))
            }
            (Scope::Key(own), Resource::Key { key, whole }) => {
                let covers = if restricts {
                    key.starts_with(own.as_str())
                } else {
                    start::is_key_below(own, key, *whole)
                };
                covers.then_some((0, own.len(), 0))
            }
            (Scope::Program(own), Resource::Program { names, called }) => match own {
                None => Some((0, 0, 0)),
                Some(own) => {
                    let is_meant = names.contains(own) || (restricts && own == called);
                    is_meant.then_some((1, 0, 0))
                }
            },
            (Scope::Agent(own), Resource::Agent { name, .. })
            | (Scope::Tool(own), Resource::Tool(name)) => match own {
                None => Some((0, 0, 0)),
                Some(own) => (own == name).then_some((1, 0, 0)),
            },
            (Scope::Tools(prefix), Resource::Tool(name)) => {
                name.starts_with(prefix.as_str()).then_some((0, 1, 0))
            }
            (
                Scope::Host { host: Hosts::All, port: None },
                Resource::Agent { elsewhere: true, .. },
            ) if restricts => Some((0, 0, 0)),
            (_, Resource::Service { service, at }) if restricts => {
                self.on_service(service, at.as_ref())
            }
            _ => None,
        }
    }

    /// Returns the rank of a restrictive rule for a service, or `None` if the rule does not cover
    /// the service. The rule covers the service if it covers all resources of a class that the
    /// service depends on, or the service's own host, file or key.
    fn on_service(&self, service: &Service, at: Option<&(String, u16)>) -> Option<Rank> {
        let depends_on = |word| service.depends_on.contains(&word);
        let covers = match &self.0 {
            Scope::Host { host: Hosts::All, port: None } => depends_on(class::REQUESTS),
            Scope::Host { host, port } => {
                return at.and_then(|(own, own_port)| host.rank(*port, own, *own_port));
            }
            Scope::Path { names, write: true, .. } => {
                let is_own = service.kept_in.is_some_and(|own| *names == [own]);
                is_own || (names.is_empty() && depends_on(class::FILES))
            }
            Scope::Key(prefix) => {
                let own = service.kept_in.map(|own| format!("{TENANT}{own}"));
                own.is_some_and(|own| own.starts_with(prefix.as_str()))
                    || (prefix.is_empty() && depends_on(class::STATE))
            }
            _ => false,
        };
        covers.then_some((0, 0, 0))
    }

    /// Returns true if the rule covers every access to the resource, for example both reads and
    /// writes of a path.
    pub(super) fn covers(&self, resource: &Resource) -> bool {
        let whole = match (&self.0, resource) {
            (
                Scope::Path { read, write, .. },
                Resource::Path { read: reads, write: writes, .. },
            ) => (*read || !*reads) && (*write || !*writes),
            _ => true,
        };
        whole && self.on_resource(resource, false).is_some()
    }

    /// Returns the name of the program that the rule names, if it names one.
    pub(super) fn program(&self) -> Option<&str> {
        match &self.0 {
            Scope::Program(name) => name.as_deref(),
            _ => None,
        }
    }

    /// Returns true if the rule covers programs: one, or all of them.
    pub(super) fn is_on_programs(&self) -> bool {
        matches!(self.0, Scope::Program(_))
    }

    /// Returns true if the rule covers a part of a resource that is read or moved as a whole.
    pub(super) fn is_below(&self, resource: &Resource) -> bool {
        match (&self.0, resource) {
            (
                Scope::Path { names: own, read, write },
                Resource::Path { names, read: reads, write: writes, whole: true },
            ) => ((*read && *reads) || (*write && *writes)) && own.starts_with(names),
            (Scope::Key(own), Resource::Key { key, whole: true }) => own.starts_with(key.as_str()),
            _ => false,
        }
    }

    /// Returns true if the rule may cover a resource of this kind whose name starts with `prefix`.
    pub(super) fn may_cover(&self, target: Target, prefix: &str) -> bool {
        match (&self.0, target) {
            (Scope::Host { .. }, Target::Url)
            | (Scope::Host { host: Hosts::All, port: None }, Target::Agent)
            | (Scope::Path { .. }, Target::Tree)
            | (Scope::Program(_), Target::Program)
            | (Scope::Agent(_), Target::Agent)
            | (Scope::Tool(_), Target::Tool) => true,
            (Scope::Path { read, .. }, Target::Read | Target::ReadTree) => *read,
            (Scope::Path { write, .. }, Target::Write) => *write,
            (Scope::Key(own), Target::Key | Target::Keys) | (Scope::Tools(own), Target::Tool) => {
                own.starts_with(prefix) || prefix.starts_with(own.as_str())
            }
            _ => false,
        }
    }

    /// Returns true if the rule covers all resources of a kind.
    pub(super) fn covers_all(&self, target: Target) -> bool {
        let path = |reads: bool, writes: bool| match &self.0 {
            Scope::Path { names, read, write } => {
                names.is_empty() && (*read || !reads) && (*write || !writes)
            }
            _ => false,
        };
        match target {
            Target::Url => matches!(&self.0, Scope::Host { host: Hosts::All, port: None }),
            Target::Read | Target::ReadTree => path(true, false),
            Target::Write => path(false, true),
            Target::Tree => path(true, true),
            Target::Key | Target::Keys => matches!(&self.0, Scope::Key(own) if own.is_empty()),
            Target::Program => matches!(self.0, Scope::Program(None)),
            Target::Agent => matches!(self.0, Scope::Agent(None)),
            Target::Tool => matches!(self.0, Scope::Tool(None)),
            Target::Service(_) => false,
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let text = text.trim();
        let Some((kind, what)) = text.split_once(':') else { return known(text).map(Rule) };
        let path = |read, write| {
            let path = match what {
                "*" => String::new(),
                _ => literal(kind, what)?,
            };
            match names(&path) {
                Some(names) => Ok(Scope::Path { names, read, write }),
                None => Err(RuleError(format!(
                    "invalid rule `{text}`: the path climbs above the workdir"
                ))),
            }
        };
        let name = || match what {
            "" => Err(RuleError(format!(
                "invalid rule `{text}`: a name or `*` must follow `{kind}:`"
            ))),
            "*" => Ok(None),
            _ => literal(kind, what).map(Some),
        };
        Ok(Rule(match kind {
            "host" => host(text, what)?,
            "read" => path(true, false)?,
            "write" => path(false, true)?,
            "path" => path(true, true)?,
            "key" if what == "*" => Scope::Key(String::new()),
            "key" => Scope::Key(literal(kind, what)?),
            "program" => Scope::Program(name()?),
            "agent" => Scope::Agent(name()?),
            "tool" => match what.strip_suffix(".*").filter(|server| !server.contains('*')) {
                Some(server) if !server.is_empty() => Scope::Tools(format!("{server}.")),
                _ => Scope::Tool(name()?),
            },
            _ => {
                return Err(RuleError(format!(
                    "invalid rule `{text}`: unknown kind `{kind}:`; {KINDS}"
                )));
            }
        }))
    }
}

/// Parses a rule without a colon: `*`, or the name of a capability or a function.
fn known(text: &str) -> Result<Scope, RuleError> {
    match text {
        "*" => return Ok(Scope::Everything),
        class::EGRESS => return Ok(Scope::Egress),
        PRIVATE => return Ok(Scope::Sensitive(Sensitivity::Private)),
        PROTECTED => return Ok(Scope::Sensitive(Sensitivity::Protected)),
        _ => {}
    }
    let functions = || crate::ALL.iter().flat_map(|capability| capability.functions);
    if crate::is_namespace(text) {
        return Ok(Scope::Capability(text.to_owned()));
    }
    if functions().any(|function| function.name == text) {
        return Ok(Scope::Function(text.to_owned()));
    }
    let unknown = if text.contains('.') { "function" } else { "capability" };
    Err(RuleError(format!("invalid rule `{text}`: no such {unknown}; {KINDS}")))
}

/// Parses a path, a prefix or a name, in which `\*` is a literal `*`. The caller handles a single
/// `*`, which means everything.
///
/// # Errors
/// If the text contains an unescaped `*`, because patterns are not supported.
fn literal(kind: &str, what: &str) -> Result<String, RuleError> {
    if !what.replace(r"\*", "").contains('*') {
        return Ok(what.replace(r"\*", "*"));
    }
    let hint = match kind {
        "key" => match what.trim_end_matches('*') {
            "" => "`key:*` covers all keys".to_owned(),
            prefix if prefix.contains('*') || prefix.ends_with('\\') => {
                "a rule covers all keys with its prefix".to_owned()
            }
            prefix => format!("`key:{prefix}` covers all keys with that prefix"),
        },
        "tool" => "`tool:SERVER.*` covers the tools of an MCP server, and `tool:*` all".to_owned(),
        "program" | "agent" => format!("write a rule for each {kind}, or `{kind}:*` for all"),
        _ => {
            let mut names: Vec<&str> = what.split('/').collect();
            while names.pop_if(|name| name.chars().all(|c| c == '*')).is_some() {}
            match names.join("/") {
                folder if folder.contains('*') => {
                    "a rule covers its file, or its folder with everything below it".to_owned()
                }
                folder if folder.is_empty() => format!("`{kind}:*` covers all files"),
                folder => format!("`{kind}:{folder}` covers everything below that folder"),
            }
        }
    };
    Err(RuleError(format!(
        "invalid rule `{kind}:{what}`: `*` is a wildcard only if nothing else follows `{kind}:`; \
         {hint}; the character itself is `\\*`"
    )))
}

/// Escapes a path, a prefix or a name so that [`literal`] can parse it.
fn escaped(text: &str) -> String {
    text.replace('*', r"\*")
}

/// Formats a name, or `*` for all names.
fn name_or_all(name: Option<&str>) -> String {
    name.map_or_else(|| "*".to_owned(), escaped)
}

fn host(text: &str, what: &str) -> Result<Scope, RuleError> {
    let wrong = |why: &dyn fmt::Display| RuleError(format!("invalid rule `{text}`: {why}"));
    // A wildcard is replaced with a placeholder name, so that its port can be parsed.
    let (subdomains, name) = match what.strip_prefix("*.") {
        Some(domain) => (true, domain.to_owned()),
        None => (false, what.to_owned()),
    };
    let all = name == "*" || name.starts_with("*:");
    if all && subdomains {
        return Err(wrong(&"use `*` alone, or before a domain"));
    }
    let name = if all { name.replacen('*', "all.invalid", 1) } else { name };
    let rule: HostRule = name.parse().map_err(|why| wrong(&why))?;
    let url = Url::parse(&format!("http://{rule}/")).map_err(|why| wrong(&why))?;
    let host = url.host().map(|host| resource::host_name(&host)).unwrap_or_default();
    let port = rule.port();
    let is_address = !matches!(url.host(), Some(url::Host::Domain(_)));
    Ok(match (all, subdomains) {
        (true, _) => Scope::Host { host: Hosts::All, port },
        (false, true) if is_address => return Err(wrong(&"an address has no subdomains")),
        (false, true) => Scope::Host { host: Hosts::Subdomains(host), port },
        (false, false) => Scope::Host { host: Hosts::One(host), port },
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Scope::Everything => f.write_str("*"),
            Scope::Egress => f.write_str(class::EGRESS),
            Scope::Sensitive(Sensitivity::Private) => f.write_str(PRIVATE),
            Scope::Sensitive(Sensitivity::Protected) => f.write_str(PROTECTED),
            Scope::Capability(name) | Scope::Function(name) => f.write_str(name),
            Scope::Host { host, port } => {
                match host {
                    Hosts::All => f.write_str("host:*"),
                    Hosts::Subdomains(domain) => write!(f, "host:*.{domain}"),
                    Hosts::One(host) => write!(f, "host:{host}"),
                }?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
            Scope::Path { names, read, write } => {
                let kind = match (read, write) {
                    (true, false) => "read",
                    (false, true) => "write",
                    _ => "path",
                };
                write!(f, "{kind}:/{}", escaped(&names.join("/")))
            }
            Scope::Key(prefix) => write!(f, "key:{}", escaped(prefix)),
            Scope::Program(name) => write!(f, "program:{}", name_or_all(name.as_deref())),
            Scope::Agent(name) => write!(f, "agent:{}", name_or_all(name.as_deref())),
            Scope::Tool(name) => write!(f, "tool:{}", name_or_all(name.as_deref())),
            Scope::Tools(prefix) => write!(f, "tool:{prefix}*"),
        }
    }
}
