//! The classes of settings. The class of a setting determines whether a project file may set it.

use std::time::Duration;

use wattle_agent::host::capability::egress::HostRule;
use wattle_agent::host::machine::Dollars;

use super::{SearchEngine, Timeout};

/// The class of a setting of type `T`, which determines whether a project file may set it. Each row
/// of the table of settings has a class.
pub(crate) enum Class<T> {
    /// The setting affects how output looks or how the model is called, but does not affect
    /// permissions or limits. Any project file may set it.
    Presentation,
    /// A limit or a switch. Any project file may set a value that the function accepts. The
    /// function receives the project's value and the value that applies without the project file.
    /// It accepts the project's value if that value is not more permissive. Any other value needs
    /// trust.
    Narrows(fn(&T, &T) -> bool),
    /// A project file may set the setting only in a folder that the user trusts.
    NeedsTrust,
    /// No project file may set the setting.
    Never,
}

/// A [`Class`] without its type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// See [`Class::Presentation`].
    Presentation,
    /// See [`Class::Narrows`].
    Narrows,
    /// See [`Class::NeedsTrust`].
    NeedsTrust,
    /// See [`Class::Never`].
    Never,
}

impl<T> Class<T> {
    /// Returns the class without its type parameter.
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Class::Presentation => Kind::Presentation,
            Class::Narrows(_) => Kind::Narrows,
            Class::NeedsTrust => Kind::NeedsTrust,
            Class::Never => Kind::Never,
        }
    }

    /// Returns true if a project file in an untrusted folder may not set the setting to `given`.
    /// `otherwise` is the value that applies without the project file.
    pub(super) fn needs_trust(&self, given: &T, otherwise: &T) -> bool {
        match self {
            Class::Presentation => false,
            Class::Narrows(is_narrower) => !is_narrower(given, otherwise),
            Class::NeedsTrust | Class::Never => true,
        }
    }
}

impl Kind {
    /// Returns the printed name of the class.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Presentation => "presentation",
            Kind::Narrows => "narrows",
            Kind::NeedsTrust => "needs trust",
            Kind::Never => "never from a project",
        }
    }
}

/// Accepts every value, because `ask` and `deny` rules only narrow the policy.
pub(super) fn always<T>(_: &T, _: &T) -> bool {
    true
}

/// Accepts only the value `off`: any project file may disable web search.
pub(super) fn no_search(given: &SearchEngine, _: &SearchEngine) -> bool {
    *given == SearchEngine::Off
}

/// Accepts `false`. Accepts `true` only if the value is also true without the project file.
pub(super) fn off(given: &bool, otherwise: &bool) -> bool {
    !given || *otherwise
}

/// Accepts a limit that does not exceed the limit that applies without the project file.
pub(super) fn at_most<T: PartialOrd>(given: &T, otherwise: &T) -> bool {
    given <= otherwise
}

/// Accepts a limit on steps that does not exceed the limit that applies without the project file.
/// If none is set without it, accepts at most [`FEWEST_STEPS`], because each command then has its
/// own default limit.
pub(super) fn steps(given: &Option<u32>, otherwise: &Option<u32>) -> bool {
    given.is_some_and(|given| repetitions(&given, &otherwise.unwrap_or(FEWEST_STEPS)))
}

/// Accepts a limit that does not exceed the limit that applies without the project file. A limit of
/// 0 means no limit.
pub(super) fn repetitions(given: &u32, otherwise: &u32) -> bool {
    *otherwise == 0 || (*given > 0 && given <= otherwise)
}

/// The lowest of the commands' default limits on steps.
const FEWEST_STEPS: u32 = 10;

/// The default of `retry_for` in a terminal, where a person repeats a message sooner than a server.
pub(crate) const RETRY_IN_TERMINAL: Timeout = Timeout(Duration::from_secs(15));

/// Accepts a time that does not exceed the time that applies without the project file.
pub(super) fn retries(given: &Option<Timeout>, otherwise: &Option<Timeout>) -> bool {
    given.is_some_and(|given| given <= otherwise.unwrap_or(RETRY_IN_TERMINAL))
}

/// Accepts a limit that does not exceed the limit that applies without the project file. If no
/// limit applies without it, accepts any limit.
pub(super) fn bounded<T: PartialOrd>(given: &Option<T>, otherwise: &Option<T>) -> bool {
    match (given, otherwise) {
        (Some(given), Some(otherwise)) => given <= otherwise,
        (Some(_), None) => true,
        (None, otherwise) => otherwise.is_none(),
    }
}

/// Applies [`bounded`] to amounts of money.
pub(super) fn cheaper(given: &Option<Dollars>, otherwise: &Option<Dollars>) -> bool {
    bounded(&given.map(|cost| cost.nanos()), &otherwise.map(|cost| cost.nanos()))
}

/// Accepts a list if every host in it is already allowed without the project file.
#[expect(clippy::ptr_arg, reason = "a class looks at values of the setting's own type")]
pub(super) fn fewer_hosts(given: &Vec<HostRule>, otherwise: &Vec<HostRule>) -> bool {
    given.iter().all(|host| otherwise.contains(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_narrows_only_if_it_permits_no_more() {
        let n = Some::<u32>;
        assert!(steps(&n(10), &None) && !steps(&n(11), &None) && !steps(&n(0), &None));
        assert!(steps(&n(11), &n(11)) && !steps(&n(12), &n(11)) && !steps(&n(0), &n(11)));
        assert!(steps(&n(12), &n(0)) && steps(&n(0), &n(0)) && !steps(&None, &n(0)));
        assert!(repetitions(&4, &5) && !repetitions(&6, &5) && !repetitions(&0, &5));
        assert!(
            bounded(&Some(9), &None)
                && bounded(&Some(9), &Some(9))
                && !bounded(&Some(10), &Some(9))
        );
        assert!(!bounded(&None, &Some(9)), "no bound is more than any");
        assert!(off(&false, &false) && off(&true, &true) && !off(&true, &false));
        let hosts = |text: &str| {
            text.split(' ').map(|host| host.parse().unwrap()).collect::<Vec<HostRule>>()
        };
        assert!(fewer_hosts(&hosts("a.example"), &hosts("a.example b.example")));
        assert!(fewer_hosts(&Vec::new(), &hosts("a.example")));
        assert!(!fewer_hosts(&hosts("c.example"), &hosts("a.example b.example")));
        assert!(!fewer_hosts(&hosts("a.example:81"), &hosts("a.example:80")));
    }
}
