//! Classes of effects, and the capabilities whose names refer to them in rules.
//!
//! A rule on `http` covers every request, no matter which function makes it. A rule on a capability
//! whose name does not refer to a class covers only the functions of that capability.

use wattle_rt::{Service, Target};

use crate::ai::MODEL;

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
    Service(&'static Service),
}

/// The rule for every effect that leaves the machine.
pub(super) const EGRESS: &str = "egress";

/// The word of rules for [`Class::Requests`].
pub(super) const REQUESTS: &str = "http";
/// The word of rules for [`Class::Files`].
pub(super) const FILES: &str = "fs";
/// The word of rules for [`Class::State`].
pub(super) const STATE: &str = "kv";

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

    /// Returns the word that refers to the class in rules, which is the name of a capability.
    /// Returns `None` if only the capability whose purpose it is refers to it.
    pub(super) fn word(self) -> Option<&'static str> {
        Some(match self {
            Class::Requests => REQUESTS,
            Class::Files => FILES,
            Class::State => STATE,
            Class::Programs => "par",
            Class::Agents | Class::AgentsElsewhere => "agent",
            Class::Tools => "tool",
            Class::Service(service) => return service.is_class.then_some(service.capability),
        })
    }

    /// Returns true if effects of this class carry data out of the machine, or hand it to somebody
    /// who may. Every channel out of a run is listed here or is a service that says so.
    ///
    /// The run's own model is no such channel: it reads all results of the run's programs anyway.
    pub(super) fn leaves_machine(self) -> bool {
        match self {
            Class::Requests | Class::AgentsElsewhere | Class::Tools => true,
            Class::Service(service) => service.leaves_machine,
            Class::Files | Class::State | Class::Programs | Class::Agents => false,
        }
    }

    /// Returns true if this class depends on the one that `word` refers to. A rule that denies a
    /// dependency also denies this class, but a rule that allows a dependency does not allow this
    /// class.
    pub(super) fn depends_on(self, word: &str) -> bool {
        match self {
            Class::AgentsElsewhere => word == REQUESTS || word == MODEL.capability,
            Class::Service(service) => service.depends_on.contains(&word),
            _ => false,
        }
    }

    /// Returns true if effects of this class are the purpose of a capability. A rule that allows
    /// the capability allows only these effects, even if its functions have other effects.
    pub(super) fn is_purpose_of(self, capability: &str) -> bool {
        let is_named = |word| {
            let known = crate::ALL.iter().find(|known| known.name == capability);
            known.is_some_and(|known| known.purpose.contains(&word))
        };
        match self {
            Class::Service(service) => service.capability == capability,
            class => class.word().is_some_and(is_named),
        }
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
