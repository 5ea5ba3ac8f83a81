//! The classes of effect, and the words of rules that decide them.
//!
//! A word is the name of a capability. Some lead a class of effect: a rule on `http` is about every request, whichever function
//! makes it. All others are about their own functions, as a rule on a function is.

use wattle_rt::{Service, Target};

/// A kind of effect outside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// A request to a URL.
    Requests,
    /// The run's files, read or written.
    Files,
    /// The state of session and tenant.
    State,
    /// A program that is started.
    Programs,
    /// An agent that is asked.
    Agents,
    /// Something that the operator set up.
    Service(Service),
}

impl Class {
    /// The class of a target.
    pub(super) fn of(target: Target) -> Class {
        match target {
            Target::Url => Class::Requests,
            Target::Read | Target::ReadTree | Target::Write | Target::Tree => Class::Files,
            Target::Key | Target::Keys => Class::State,
            Target::Program => Class::Programs,
            Target::Agent => Class::Agents,
            Target::Service(service) => Class::Service(service),
        }
    }

    /// The classes that are touched on the way to this one: what refuses those refuses it, and what allows those does not
    /// allow it.
    pub(super) fn by_way_of(self) -> &'static [Class] {
        match self {
            Class::Service(Service::Engine | Service::Model | Service::Remote) => &[Class::Requests],
            Class::Service(Service::Images) => &[Class::Requests, Class::Service(Service::Model)],
            Class::Service(Service::Public) => &[Class::Files],
            Class::Service(Service::Tickets) => &[Class::Files, Class::State],
            _ => &[],
        }
    }
}

/// The class that a capability's name leads; `None` where it is about its own functions only.
pub(super) fn led_by(word: &str) -> Option<Class> {
    Some(match word {
        "http" => Class::Requests,
        "fs" => Class::Files,
        "kv" => Class::State,
        "par" => Class::Programs,
        "ai" => Class::Service(Service::Model),
        _ => return None,
    })
}

/// What a rule that allows a capability's own functions allows them: what they are for, and not all that they could touch.
pub(super) fn is_for(word: &str, class: Class) -> bool {
    match word {
        "web" => matches!(class, Class::Requests | Class::Service(Service::Engine)),
        "vfs" | "shell" | "search" => class == Class::Files,
        "workbook" | "wattle" => class == Class::Programs,
        "issue" => class == Class::Service(Service::Tickets),
        "git" => matches!(class, Class::Files | Class::Service(Service::Remote)),
        "publish" => matches!(class, Class::Files | Class::Service(Service::Public)),
        "image" => matches!(class, Class::Files | Class::Service(Service::Images)),
        _ => false,
    }
}
