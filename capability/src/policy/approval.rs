//! The effects that a user's approval permits.

use wattle_rt::{Service, Target};

use super::Rule;
use super::resource::{Resource, names};

/// The effects of one function that a user's approval permits.
///
/// Unlike a [`Rule`], an approval of a path, a key or a name permits exactly that resource: no path
/// below it, and no other key with that prefix. An approval of a tree, or of a list of keys, also
/// permits everything in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalScope(Scope);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// The calls that touch no resource.
    Nothing,
    /// The use of a service.
    Service(Service),
    /// A known resource.
    One(Resource),
    /// The resources that `rule` covers and whose names start with `prefix`.
    Any { rule: Rule, prefix: String },
}

impl ApprovalScope {
    /// Creates the scope of a call that touches no resource.
    pub(super) fn nothing() -> ApprovalScope {
        ApprovalScope(Scope::Nothing)
    }

    /// Creates the scope of a known resource.
    pub(super) fn one(resource: &Resource) -> ApprovalScope {
        ApprovalScope(match resource {
            Resource::Service { service, .. } => Scope::Service(*service),
            resource => Scope::One(resource.clone()),
        })
    }

    /// Creates the scope of a call whose resource is not known in advance: all resources of the
    /// target whose names start with `prefix`.
    pub(super) fn any(function: &str, target: Target, prefix: &str) -> ApprovalScope {
        ApprovalScope(match target {
            Target::Service(service) => Scope::Service(service),
            target => Scope::Any { rule: Rule::all(function, target), prefix: prefix.to_owned() },
        })
    }

    /// Returns true if the scope contains a resource that a call of the function touches.
    /// `resource` is `None` if the resource's name is invalid.
    pub(super) fn contains(
        &self,
        function: &str,
        target: Target,
        resource: Option<&Resource>,
    ) -> bool {
        match (&self.0, resource) {
            (Scope::Any { rule, prefix }, None) => {
                prefix.is_empty() && *rule == Rule::all(function, target)
            }
            (Scope::Any { rule, prefix }, Some(resource)) => {
                rule.covers(resource) && starts_with(resource, prefix)
            }
            (Scope::One(own), Some(resource)) => is_same_or_part(own, resource),
            (Scope::Service(own), Some(Resource::Service { service, .. })) => own == service,
            _ => false,
        }
    }
}

/// Returns true if `touched` is the approved resource, or a part of an approved tree or list.
fn is_same_or_part(approved: &Resource, touched: &Resource) -> bool {
    match (approved, touched) {
        (Resource::Host { host: own, port: own_port }, Resource::Host { host, port }) => {
            own == host && (own_port == port || (is_usual(*own_port) && is_usual(*port)))
        }
        (
            Resource::Path { names: own, read, write, whole },
            Resource::Path { names, read: reads, write: writes, whole: is_tree },
        ) => {
            let is_below = if *whole { names.starts_with(own) } else { names == own && !*is_tree };
            is_below && (*read || !*reads) && (*write || !*writes)
        }
        (Resource::Key { key: own, whole: true }, Resource::Key { key, .. }) => {
            key.starts_with(own.as_str())
        }
        _ => approved == touched,
    }
}

/// Returns true if the port is the default port of http or https. A site may redirect from one to
/// the other.
fn is_usual(port: u16) -> bool {
    matches!(port, 80 | 443)
}

/// Returns true if a resource's name starts with the prefix that the user approved.
fn starts_with(resource: &Resource, prefix: &str) -> bool {
    match resource {
        Resource::Host { host, port } => {
            let start = prefix.split_once("://").map_or("", |(_, start)| start);
            format!("{host}:{port}").starts_with(&start.to_ascii_lowercase())
        }
        Resource::Path { names, .. } => is_path_with(names, prefix),
        Resource::Key { key: name, .. }
        | Resource::Program(name)
        | Resource::Agent(name)
        | Resource::Tool(name) => name.starts_with(prefix),
        Resource::Service { .. } => false,
    }
}

/// Returns true if a path starts with `prefix`, whose last name may be incomplete.
fn is_path_with(path: &[String], prefix: &str) -> bool {
    let (folder, start) = prefix.rsplit_once('/').unwrap_or(("", prefix));
    let Some(rest) = names(folder).and_then(|folder| path.strip_prefix(folder.as_slice())) else {
        return false;
    };
    start.is_empty() || rest.first().is_some_and(|name| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(scope: &ApprovalScope, function: &str, target: Target, text: &str) -> bool {
        scope.contains(function, target, Resource::of(target, text).as_ref())
    }

    #[test]
    fn an_approval_of_a_resource_permits_that_resource_and_its_parts_only() {
        for (target, approved, touched, text, is_permitted) in [
            (Target::Key, "", Target::Key, "", true),
            (Target::Key, "", Target::Key, "a", false),
            (Target::Key, "a", Target::Key, "a", true),
            (Target::Key, "a", Target::Key, "ab", false),
            (Target::Key, "a", Target::Keys, "a", false),
            (Target::Keys, "a", Target::Key, "ab", true),
            (Target::Keys, "a", Target::Key, "b", false),
            (Target::Read, "/", Target::Read, "a", false),
            (Target::Read, "a", Target::Read, "./a", true),
            (Target::Read, "a", Target::Read, "a/b", false),
            (Target::Read, "a", Target::ReadTree, "a", false),
            (Target::Read, "a", Target::Write, "a", false),
            (Target::ReadTree, "a", Target::Read, "a/b", true),
            (Target::ReadTree, "a", Target::Read, "ab", false),
            (Target::ReadTree, "a", Target::Write, "a/b", false),
            (Target::Tree, "a", Target::Write, "a/b", true),
            (Target::Program, "", Target::Program, "", true),
            (Target::Program, "", Target::Program, "file_write", false),
            (Target::Tool, "a", Target::Tool, "b", false),
            (Target::Url, "https://a.example/1", Target::Url, "https://a.example/2", true),
            (Target::Url, "http://a.example/", Target::Url, "https://a.example/", true),
            (Target::Url, "https://a.example/", Target::Url, "https://a.example:8443/", false),
            (Target::Url, "https://a.example/", Target::Url, "https://b.a.example/", false),
        ] {
            let scope = ApprovalScope::one(&Resource::of(target, approved).unwrap());
            let found = permits(&scope, "f", touched, text);
            assert_eq!(found, is_permitted, "{target:?} {approved:?}: {touched:?} {text:?}");
        }
    }

    #[test]
    fn an_approval_of_a_prefix_permits_no_other_prefix() {
        for (target, prefix, text, is_permitted) in [
            (Target::Key, "", "a", true),
            (Target::Key, "user.", "user.a", true),
            (Target::Key, "user.", "users", false),
            (Target::Write, "", "a", true),
            (Target::Write, "./notes/a", "notes/ab/c", true),
            (Target::Write, "notes/", "notes/../secret", false),
            (Target::Write, "notes/a", "notes/b", false),
            (Target::Url, "https://", "https://b.example/", true),
            (Target::Url, "https://API.", "https://api.example/", true),
            (Target::Url, "https://api.", "https://api.@evil.example/", false),
            (Target::Program, "file_", "web_search", false),
        ] {
            let scope = ApprovalScope::any("f", target, prefix);
            assert_eq!(permits(&scope, "f", target, text), is_permitted, "{prefix:?}: {text:?}");
        }
        let all = ApprovalScope::any("f", Target::Read, "");
        assert!(permits(&all, "f", Target::Read, "../a"), "the call itself rejects the name");
        let some = ApprovalScope::any("f", Target::Read, "a");
        assert!(!permits(&some, "f", Target::Read, "../a"));
    }

    #[test]
    fn an_approval_of_a_service_permits_no_other_service() {
        let scope = ApprovalScope::any("f", Target::Service(Service::Memory), "");
        assert!(permits(&scope, "f", Target::Service(Service::Memory), ""));
        assert!(!permits(&scope, "f", Target::Service(Service::Model), ""));
        assert!(!permits(&ApprovalScope::nothing(), "f", Target::Service(Service::Model), ""));
    }
}
