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
    /// A question to an agent whose model is at another endpoint than that of the run.
    AgentsElsewhere,
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

    /// Returns true if effects of this class carry data out of the machine, or hand it to somebody
    /// who may: to a host, a provider, the readers of public files or tickets, or the application
    /// that started the run. Every channel out of a run is listed here and nowhere else.
    ///
    /// The run's own model is no such channel: it reads all results of the run's programs anyway.
    pub(super) fn leaves_machine(self) -> bool {
        match self {
            Class::Requests | Class::AgentsElsewhere | Class::Tools => true,
            Class::Service(service) => match service {
                Service::Model
                | Service::Engine
                | Service::Images
                | Service::Remote
                | Service::Public
                | Service::Tickets
                | Service::Artifacts => true,
                Service::Memory => false,
            },
            Class::Files | Class::State | Class::Programs | Class::Agents => false,
        }
    }

    /// Returns the class whose name stands for this class in rules.
    pub(super) fn named(self) -> Class {
        if self == Class::AgentsElsewhere { Class::Agents } else { self }
    }

    /// Returns the classes that this class depends on. A rule that denies a dependency also denies
    /// this class, but a rule that allows a dependency does not allow this class.
    pub(super) fn dependencies(self) -> &'static [Class] {
        match self {
            Class::Service(Service::Engine | Service::Model | Service::Remote) => {
                &[Class::Requests]
            }
            Class::AgentsElsewhere => &[Class::Requests, Class::Service(Service::Model)],
            Class::Service(Service::Images) => &[Class::Requests, Class::Service(Service::Model)],
            Class::Service(Service::Public) => &[Class::Files],
            Class::Service(Service::Tickets) => &[Class::Files, Class::State],
            Class::Service(Service::Memory) => &[Class::State],
            _ => &[],
        }
    }
}

/// The rule for every effect that leaves the machine.
pub(super) const EGRESS: &str = "egress";

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
        "sys" => class == Class::Service(Service::Artifacts),
        "issue" => class == Class::Service(Service::Tickets),
        "memory" => class == Class::Service(Service::Memory),
        "git" => matches!(class, Class::Files | Class::Service(Service::Remote)),
        "publish" => matches!(class, Class::Files | Class::Service(Service::Public)),
        "image" => matches!(class, Class::Files | Class::Service(Service::Images)),
        _ => false,
    }
}

/// Returns true if an effect on a resource of this kind leaves the machine, which is what the rule
/// `egress` covers. A question to an agent leaves it only if the agent's model is at another
/// endpoint than that of the run.
#[must_use]
pub fn leaves_machine(target: Target) -> bool {
    match target {
        Target::Agent => Class::AgentsElsewhere.leaves_machine(),
        target => Class::of(target).leaves_machine(),
    }
}
