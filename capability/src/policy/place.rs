//! What a call names, read as the host reads it.

use wattle_rt::{Target, Text};

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
    /// A catalog program.
    Program(String),
    /// An agent.
    Agent(String),
}

impl Place {
    /// What a text names as a target of that kind; `None` where it names nothing that could be told.
    pub(super) fn of(target: Target, text: &str) -> Option<Place> {
        Some(match target {
            Target::Url => Place::host(&Url::parse(text).ok()?)?,
            Target::Read => Place::path(text, true, false, false)?,
            Target::Write => Place::path(text, false, true, false)?,
            Target::Tree => Place::path(text, true, true, true)?,
            Target::Key => Place::Key { key: text.to_owned(), whole: false },
            Target::Keys => Place::Key { key: text.to_owned(), whole: true },
            Target::Program => Place::Program(text.to_owned()),
            Target::Agent => Place::Agent(text.to_owned()),
        })
    }

    /// What a text names that is known as far as it is known; `None` where what follows could change it.
    pub(super) fn of_text(target: Target, text: &Text) -> Option<Place> {
        match (text.whole(), target) {
            (Some(whole), _) => Place::of(target, whole),
            // Behind its first `/` a URL can name no other host.
            (None, Target::Url) => {
                let beginning = text.beginning();
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

    fn host(url: &Url) -> Option<Place> {
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        Some(Place::Host { host, port: url.port_or_known_default()? })
    }

    /// The path without its `.` and `..`; one that climbs above the top names nothing.
    fn path(text: &str, read: bool, write: bool, whole: bool) -> Option<Place> {
        Some(Place::Path { names: names(text)?, read, write, whole })
    }
}

/// The names on a path, from the top.
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
