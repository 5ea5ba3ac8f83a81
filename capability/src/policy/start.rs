//! The resources that a partly known name can stand for, as far as an approval of it reaches.
//!
//! Only the start of the name is known, for example because a program appends a word from a page.
//! What is approved ends at a boundary of the name, so that the unknown rest cannot lead to a place
//! that its start seems to exclude:
//!
//! - A host with a domain, such as `http://other.example`, stands for that host and port alone. The
//!   rest of a host's name decides where it is, so `other.example.evil.example` has nothing to do
//!   with it.
//! - A path or a key that ends within a part of its name stands for the parts that start like it,
//!   up to the next separator. One that ends with a separator stands for everything below it.

use std::fmt;

use wattle_rt::Target;

use super::resource::{Resource, is_default_port, names};

/// The characters that separate the parts of a key.
const SEPARATORS: [char; 3] = ['.', ':', '/'];

/// The resources of one kind that a partly known name can stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// All resources of the kind.
    Any,
    /// One host. The port is `None` if every port is meant.
    Host { host: String, port: Option<u16> },
    /// The hosts whose names start with this text, which ends within the first label or after it.
    /// `shown` is the text as the program has it.
    Hosts { start: String, shown: String },
    /// The paths in a folder whose names start with `name`, and nothing below them. If `name` is
    /// empty, everything below the folder.
    Paths { folder: Vec<String>, name: String },
    /// The keys that start with this text. If it ends within a part of a name, that part is the
    /// last one of the key.
    Keys(String),
    /// The programs, agents or tools whose names start with this text.
    Names(String),
}

impl Start {
    /// Returns the resources that a name with this prefix can stand for.
    pub(super) fn of(target: Target, prefix: &str) -> Start {
        let text = || prefix.to_owned();
        if prefix.is_empty() {
            return Start::Any;
        }
        match target {
            Target::Url => hosts(prefix),
            Target::Read | Target::ReadTree | Target::Write | Target::Tree => {
                let (folder, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
                // No resource has a path that climbs above the root.
                names(folder).map_or(Start::Names(text()), |folder| {
                    if folder.is_empty() && matches!(name, "" | ".") {
                        Start::Any
                    } else {
                        Start::Paths { folder, name: name.to_owned() }
                    }
                })
            }
            Target::Key | Target::Keys => Start::Keys(text()),
            Target::Program | Target::Agent | Target::Tool => Start::Names(text()),
            Target::Service(_) => Start::Any,
        }
    }

    /// Returns true if the name can stand for this resource.
    pub(super) fn contains(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (Start::Any, _) => true,
            (Start::Host { host: own, port: own_port }, Resource::Host { host, port }) => {
                let same_port =
                    |own: u16| own == *port || (is_default_port(own) && is_default_port(*port));
                own == host && own_port.is_none_or(same_port)
            }
            (Start::Hosts { start, .. }, Resource::Host { host, .. }) => {
                host.starts_with(start.as_str())
            }
            (Start::Paths { folder, name }, Resource::Path { names, whole, .. }) => {
                match names.strip_prefix(folder.as_slice()) {
                    Some(_) if name.is_empty() => true,
                    Some([last]) => last.starts_with(name.as_str()) && !*whole,
                    _ => false,
                }
            }
            (Start::Keys(start), Resource::Key { key, whole }) => {
                key.strip_prefix(start.as_str()).is_some_and(|rest| {
                    start.ends_with(SEPARATORS) || (!rest.contains(SEPARATORS) && !*whole)
                })
            }
            (Start::Names(start), Resource::Program { names, .. }) => {
                names.iter().any(|name| name.starts_with(start.as_str()))
            }
            (Start::Names(start), Resource::Agent { name, .. } | Resource::Tool(name)) => {
                name.starts_with(start.as_str())
            }
            _ => false,
        }
    }
}

/// Describes the resources after a verb phrase such as `write any file`.
impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Any => Ok(()),
            Start::Host { host, port: None } => write!(f, " that is {host}, on any port"),
            Start::Host { host, port: Some(port) } if is_default_port(*port) => {
                write!(f, " that is {host}")
            }
            Start::Host { host, port: Some(port) } => write!(f, " that is {host}:{port}"),
            Start::Hosts { shown, .. } => write!(f, " that starts with {shown:?}"),
            Start::Paths { folder, name } => {
                let folder = folder.join("/");
                match (folder.as_str(), name.as_str()) {
                    (folder, "") => write!(f, " below {folder:?}"),
                    ("", name) => write!(f, " at the top whose name starts with {name:?}"),
                    (folder, name) => write!(f, " in {folder:?} whose name starts with {name:?}"),
                }
            }
            Start::Keys(start) | Start::Names(start) => write!(f, " that starts with {start:?}"),
        }
    }
}

/// Returns the hosts of a URL of which only the start is known.
fn hosts(prefix: &str) -> Start {
    let scheme = ["https://", "http://"].into_iter().find(|scheme| {
        prefix.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme))
    });
    let Some((scheme, rest)) =
        scheme.and_then(|scheme| Some((scheme, prefix.get(scheme.len()..)?)))
    else {
        return Start::Any;
    };
    let end = rest.find(['/', '\\', '?', '#']);
    let authority = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, open_port) = match authority.strip_suffix(':') {
        Some(name) => (name, end.is_none()),
        None => (authority, false),
    };
    let Some(Resource::Host { host, port }) =
        Resource::of(Target::Url, &format!("{scheme}{name}/"))
    else {
        return Start::Any;
    };
    let is_complete = end.is_some() || host.contains(['.', ':']) || name.contains(':');
    if is_complete {
        Start::Host { host, port: (!open_port).then_some(port) }
    } else {
        let start = if name.ends_with('.') { format!("{host}.") } else { host };
        Start::Hosts { start, shown: prefix.to_owned() }
    }
}

/// Returns true if a key, or all keys that start with it if `whole` is true, is at or below
/// `prefix`, which ends at a boundary: `user` covers `user` and `user.name`, but not `users`. A
/// prefix that ends with punctuation, such as `user_`, has its boundary there.
pub(super) fn is_key_below(prefix: &str, key: &str, whole: bool) -> bool {
    let is_bounded = !prefix.ends_with(char::is_alphanumeric);
    key.strip_prefix(prefix).is_some_and(|rest| {
        is_bounded || rest.starts_with(SEPARATORS) || (rest.is_empty() && !whole)
    })
}
