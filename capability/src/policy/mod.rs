//! The policy of a run: what its programs may touch, what the user is asked about first, and what they may not.
//!
//! Grants say which capabilities there are; a policy narrows them. It is a set of rules, each a verdict on something:
//!
//! | rule | is about |
//! |---|---|
//! | `*` | everything that reaches outside the run |
//! | `http` | a capability; `fs` is about `vfs` and `shell` too, which reach the same files |
//! | `http.post` | one function |
//! | `host:api.example.com`, `host:*.example.com:8443`, `host:*` | hosts, on one port or on all |
//! | `read:notes`, `write:notes`, `path:notes` | that path and all below it, when read, when written, and both |
//! | `key:user.` | the keys of the session's state that begin so |
//! | `program:NAME`, `agent:NAME` | a catalog program or an agent that a program starts |
//!
//! For one call, the most specific rule counts: one on what the call names (a host before a wildcard, a longer path before a shorter)
//! before one on the capability, and that before `*`. Of equally specific rules the stricter counts: deny, then ask, then allow. A rule on the
//! function stands beside one on what the call names: both count. What no rule is about is allowed.
//!
//! A program is decided about [before its first instruction](Policy::decide), by its [`Authority`](wattle_rt::Authority). An argument that is not known until it
//! runs is decided about when the call is made, by the same rules; a question about it comes before the run and is about anything that the
//! argument could be.
//!
//! ```
//! use wattle_capability::policy::{Policy, Verdict};
//!
//! let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect::<Vec<_>>();
//! let policy = Policy::new(rules(&["host:api.example.com"]), rules(&["write:notes"]), rules(&["http"]));
//! assert_eq!(policy.on_url("http", "http.get", "https://api.example.com/v1"), Verdict::Allow);
//! assert_eq!(policy.on_url("http", "http.get", "https://example.org/"), Verdict::Deny);
//! ```

mod decide;
mod place;
mod preflight;
mod rule;

use wattle_rt::{Signature, Target};

pub use decide::{Decision, Question, Refusal, Touch};
pub use preflight::{Answer, Asker, Line, Preflight, Request};
pub use rule::{Rule, RuleError};

use place::Place;
use rule::Rank;

/// What a rule says about the things that it is about, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Programs may.
    Allow,
    /// The user is asked first; where nobody can be asked, programs may not.
    Ask,
    /// Programs may not.
    Deny,
}

impl Verdict {
    /// The setting that holds the rules of this verdict: `allow`, `ask` or `deny`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

/// What the programs of a run may touch. The default allows all that is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What is allowed is allowed by each of these.
    sets: Vec<Set>,
}

/// Rules that are weighed against each other.
type Set = Vec<(Rule, Verdict)>;

/// A verdict with the rule that it comes from; `None` where no rule is about it.
#[derive(Clone, Copy, Debug)]
struct Ruling<'p> {
    verdict: Verdict,
    rule: Option<&'p Rule>,
}

impl<'p> Ruling<'p> {
    const OPEN: Ruling<'static> = Ruling { verdict: Verdict::Allow, rule: None };

    fn stricter(self, other: Ruling<'p>) -> Ruling<'p> {
        if other.verdict > self.verdict { other } else { self }
    }
}

impl Policy {
    /// A policy of those rules.
    #[must_use]
    pub fn new(allow: Vec<Rule>, ask: Vec<Rule>, deny: Vec<Rule>) -> Policy {
        let with = |rules: Vec<Rule>, verdict| rules.into_iter().map(move |rule| (rule, verdict));
        let set: Set =
            with(allow, Verdict::Allow).chain(with(ask, Verdict::Ask)).chain(with(deny, Verdict::Deny)).collect();
        Policy { sets: vec![set] }
    }

    /// A policy that allows what both allow: neither can widen the other.
    #[must_use]
    pub fn and(mut self, other: Policy) -> Policy {
        self.sets.extend(other.sets);
        self
    }

    /// Whether nothing is asked about or denied.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.sets.iter().flatten().all(|(_, verdict)| *verdict == Verdict::Allow)
    }

    /// The verdict on a request of that function for a URL.
    #[must_use]
    pub fn on_url(&self, capability: &str, function: &str, url: &str) -> Verdict {
        match Place::of(Target::Url, url) {
            Some(place) => self.on(capability, function, Some(&place)).verdict,
            None => self.on(capability, function, None).verdict,
        }
    }

    /// The verdict on one call, with what it names where it names anything.
    fn on(&self, capability: &str, function: &str, place: Option<&Place>) -> Ruling<'_> {
        let rulings = self.sets.iter().map(|set| on(set, capability, function, place));
        rulings.fold(Ruling::OPEN, Ruling::stricter)
    }

    /// The verdicts that a call may get which names something of that kind that is not known, in each set.
    fn on_unknown(&self, function: &Signature, target: Target, beginning: &str) -> Vec<Vec<Ruling<'_>>> {
        self.sets.iter().map(|set| on_unknown(set, function, target, beginning)).collect()
    }
}

fn on<'p>(set: &'p Set, capability: &str, function: &str, place: Option<&Place>) -> Ruling<'p> {
    let best = |rank: &dyn Fn(&Rule) -> Option<Rank>| {
        let ranked = set.iter().filter_map(|(rule, verdict)| Some((rank(rule)?, *verdict, rule)));
        let best = ranked.max_by_key(|(rank, verdict, _)| (*rank, *verdict));
        best.map(|(_, verdict, rule)| Ruling { verdict, rule: Some(rule) })
    };
    let of_function = best(&|rule| rule.on_function(function));
    let of_place = place.and_then(|place| {
        let at = best(&|rule| rule.on_place(place));
        // What is read or moved as a whole is as strict as the strictest rule on what it holds.
        let below = set.iter().filter(|(rule, verdict)| *verdict != Verdict::Allow && rule.is_below(place));
        let below = below.max_by_key(|(_, verdict)| *verdict);
        let below = below.map(|(rule, verdict)| Ruling { verdict: *verdict, rule: Some(rule) });
        match (at, below) {
            (None, Some(below)) => {
                Some(best(&|rule| rule.on_capability(capability)).unwrap_or(Ruling::OPEN).stricter(below))
            }
            (Some(at), Some(below)) => Some(at.stricter(below)),
            (at, None) => at,
        }
    });
    match (of_function, of_place) {
        (Some(function), Some(place)) => function.stricter(place),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => best(&|rule| rule.on_capability(capability)).unwrap_or(Ruling::OPEN),
    }
}

fn on_unknown<'p>(set: &'p Set, function: &Signature, target: Target, beginning: &str) -> Vec<Ruling<'p>> {
    let name = rule::full_name(function);
    let elsewhere = on(set, function.module, &name, None);
    let of_function = set.iter().any(|(rule, _)| rule.on_function(&name).is_some()).then_some(elsewhere);
    let places = set.iter().filter(|(rule, _)| rule.may_be_about(target, beginning));
    let rulings = places.map(|(rule, verdict)| {
        let place = Ruling { verdict: *verdict, rule: Some(rule) };
        of_function.map_or(place, |function| function.stricter(place))
    });
    let mut rulings: Vec<Ruling<'p>> = rulings.collect();
    if of_function.is_some() || !set.iter().any(|(rule, _)| rule.is_about_all(target)) {
        rulings.push(elsewhere);
    }
    rulings
}
