//! Classes of effects, and the capabilities whose names refer to them in rules.
//!
//! A rule on `http` covers every request, no matter which function makes it. A rule on a capability
//! whose name does not refer to a class covers only the functions of that capability.

use wattle_rt::{Service, Target};

/// A class of effects that reach outside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// A request to a URL.
    Requests,
    /// Access to the run's files.
    Files,
    /// Access to the state of the session or the tenant.
    State,
    /// The start of a program.
    Programs,
    /// A question to an agent.
    Agents,
    /// A call to one of the application's tools.
    Tools,
    /// The use of a service that the operator configured.
    Service(Service),
}

impl Class {
    /// Returns the class of the effects on a kind of resource.
    pub(super) fn of(target: Target) -> Class {
        match target {
            Target::Url => Class::Requests,
            Target::Read | Target::ReadTree | Target::Write | Target::Tree => Class::Files,
            Target::Key | Target::Keys => Class::State,
            Target::Program => Class::Programs,
            Target::Agent => Class::Agents,
            Target::Tool => Class::Tools,
            Target::Service(service) => Class::Service(service),
        }
    }

    /// Returns the classes that this class depends on. A rule that denies a dependency also denies
    /// this class, but a rule that allows a dependency does not allow this class.
    pub(super) fn dependencies(self) -> &'static [Class] {
        match self {
            Class::Service(Service::Engine | Service::Model | Service::Remote) => {
                &[Class::Requests]
            }
            Class::Service(Service::Images) => &[Class::Requests, Class::Service(Service::Model)],
            Class::Service(Service::Public) => &[Class::Files],
            Class::Service(Service::Tickets) => &[Class::Files, Class::State],
            Class::Service(Service::Memory) => &[Class::State],
            _ => &[],
        }
    }
}

/// Returns the class that the name of a capability refers to, if any.
pub(super) fn class_of_capability(name: &str) -> Option<Class> {
    Some(match name {
        "http" => Class::Requests,
        "fs" => Class::Files,
        "kv" => Class::State,
        "par" => Class::Programs,
        "agent" => Class::Agents,
        "tool" => Class::Tools,
        "ai" => Class::Service(Service::Model),
        _ => return None,
    })
}

/// Returns true if effects of a class are the purpose of a capability. A rule that allows the
/// capability allows only these effects, even if its functions have other effects.
pub(super) fn is_purpose(capability: &str, class: Class) -> bool {
    match capability {
        "web" => matches!(class, Class::Requests | Class::Service(Service::Engine)),
        "vfs" | "shell" | "search" => class == Class::Files,
        "workbook" | "wattle" => class == Class::Programs,
        "issue" => class == Class::Service(Service::Tickets),
        "memory" => class == Class::Service(Service::Memory),
        "git" => matches!(class, Class::Files | Class::Service(Service::Remote)),
        "publish" => matches!(class, Class::Files | Class::Service(Service::Public)),
        "image" => matches!(class, Class::Files | Class::Service(Service::Images)),
        _ => false,
    }
}
