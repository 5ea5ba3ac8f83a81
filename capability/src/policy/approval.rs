//! The effects that a user's approval permits.

use wattle_rt::{Service, Target};

use super::Rule;
use super::resource::{Resource, is_default_port};
use super::start::Start;

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
    Service(&'static Service),
    /// A known resource.
    One(Resource),
    /// The resources that `rule` covers and for which a partly known name can stand.
    Any { rule: Rule, start: Start },
}

impl ApprovalScope {
    /// Creates the scope of a call that touches no resource.
    pub(super) fn nothing() -> ApprovalScope {
        ApprovalScope(Scope::Nothing)
    }

    /// Creates the scope of a known resource.
    pub(super) fn one(resource: &Resource) -> ApprovalScope {
        ApprovalScope(match resource {
            Resource::Service { service, .. } => Scope::Service(service),
            resource => Scope::One(resource.clone()),
        })
    }

    /// Creates the scope of a call whose resource is not known in advance: all resources of the
    /// target for which a name that starts with `prefix` can [stand](Start).
    pub(super) fn any(function: &str, target: Target, prefix: &str) -> ApprovalScope {
        ApprovalScope(match target {
            Target::Service(service) => Scope::Service(service),
            target => {
                Scope::Any { rule: Rule::all(function, target), start: Start::of(target, prefix) }
            }
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
            (Scope::Any { rule, start }, None) => {
                *start == Start::Any && *rule == Rule::all(function, target)
            }
            (Scope::Any { rule, start }, Some(resource)) => {
                rule.covers(resource) && start.contains(resource)
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
            own == host
                && (own_port == port || (is_default_port(*own_port) && is_default_port(*port)))
        }
        (
            Resource::Path { names: own, read, write, whole },
            Resource::Path { names, read: reads, write: writes, whole: is_tree },
        ) => {
            let is_below = if *whole { names.starts_with(own) } else { names == own && !*is_tree };
            is_below && (*read || !*reads) && (*write || !*writes)
        }
        (Resource::Program { names: own, .. }, Resource::Program { names, .. }) => {
            (own.is_empty() && names.is_empty()) || own.iter().any(|name| names.contains(name))
        }
        (Resource::Key { key: own, whole: true }, Resource::Key { key, .. }) => {
            key.starts_with(own.as_str())
        }
        _ => approved == touched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::MODEL;
    use crate::memory::STORE;

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
            (Target::Key, "user.", "user.a.b", true),
            (Target::Key, "user", "user1", true),
            (Target::Key, "user", "users.a", false),
            (Target::Key, "user", "user:a", false),
            (Target::Keys, "user", "user", false),
            (Target::Keys, "user.", "user.", true),
            (Target::Write, "", "a", true),
            (Target::Write, "./notes/a", "notes/ab", true),
            (Target::Write, "./notes/a", "notes/ab/c", false),
            (Target::Write, "notes/a", "notes/../ab", false),
            (Target::Write, "notes", "notes/a", false),
            (Target::Write, "notes/", "notesx", false),
            (Target::Write, "notes/", "notes/a/b", true),
            (Target::ReadTree, "notes/a", "notes/ab", false),
            (Target::ReadTree, "notes/", "notes/ab", true),
            (Target::Write, "../", "notes", false),
            (Target::Write, "notes/", "notes/../secret", false),
            (Target::Write, "notes/a", "notes/b", false),
            (Target::Url, "https://", "https://b.example/", true),
            (Target::Url, "https://API.", "https://api.example/", true),
            (Target::Url, "https://api.", "https://api.@evil.example/", false),
            (Target::Url, "https://api", "https://api-1.example/", true),
            (Target::Url, "http://a.example", "http://a.example/x", true),
            (Target::Url, "http://A.Example", "https://a.example./x", true),
            (Target::Url, "http://a.example", "http://a.example:443/", true),
            (Target::Url, "http://a.example", "http://a.example.evil.example/", false),
            (Target::Url, "http://a.example", "http://a.examplex/", false),
            (Target::Url, "http://a.example", "http://a.example-x.example/", false),
            (Target::Url, "http://a.example", "http://a.example@evil.example/", false),
            (Target::Url, "http://a.example", "http://a.example:80@evil.example/", false),
            (Target::Url, "http://a.example", "http://a.example:8080/", false),
            (Target::Url, "http://a.example.", "http://a.example.evil.example/", false),
            (Target::Url, "http://a.example.", "http://a.example./", true),
            (Target::Url, "http://a%2Eexample", "http://a.example.evil.example/", false),
            (Target::Url, "http://a%2Eexample", "http://a.example/", true),
            (Target::Url, "http://a\u{3002}example", "http://a.example.evil.example/", false),
            (Target::Url, "http://bücher.example", "http://xn--bcher-kva.example/", true),
            (Target::Url, "http://bücher.example", "http://bücher.example.b.example/", false),
            (Target::Url, "http://u:p@a.example", "http://a.example/", true),
            (Target::Url, "http://u:p@a.example", "http://a.example.evil.example/", false),
            (Target::Url, "http://a.example:80", "http://a.example:8080/", false),
            (Target::Url, "http://a.example:8080", "http://a.example:8080/", true),
            (Target::Url, "http://a.example:8080", "http://a.example/", false),
            (Target::Url, "http://a.example:", "http://a.example:8080/", true),
            (Target::Url, "http://a.example:", "http://b.example:8080/", false),
            (Target::Url, "http://u@a.example/", "http://b.example/", false),
            (Target::Url, "http://1.2.3.4", "http://1.2.3.45/", false),
            (Target::Url, "http://1.2.3.4", "http://1.2.3.4.evil.example/", false),
            (Target::Url, "http://[2001:db8::1]", "http://[2001:db8::1]/", true),
            (Target::Url, "http://[2001:db8::1]", "http://[2001:db8::2]/", false),
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
        let scope = ApprovalScope::any("f", Target::Service(&STORE), "");
        assert!(permits(&scope, "f", Target::Service(&STORE), ""));
        assert!(!permits(&scope, "f", Target::Service(&MODEL), ""));
        assert!(!permits(&ApprovalScope::nothing(), "f", Target::Service(&MODEL), ""));
    }
}
