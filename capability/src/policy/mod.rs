//! The policy of a run: what its programs may touch, what the user is asked about first, and what they may not.
//!
//! Grants say which capabilities there are; a policy narrows them. It is a set of rules, each a verdict on something. What counts is
//! what a call touches, whichever function does it:
//!
//! | rule | is about |
//! |---|---|
//! | `*` | everything outside the run |
//! | `http` | every request to a URL; where it refuses, also what is sent to a search engine, a model, a remote |
//! | `fs` | every file of the run that is read or written; where it refuses, also the public folder and tickets |
//! | `kv` | every key of the state; where it refuses, also tickets |
//! | `par` | every program that a program starts |
//! | `ai` | every message to a model; where it refuses, also to one that makes pictures |
//! | `web`, `search`, `shell`, … | all functions of that capability; where it allows, for what they are for |
//! | `http.post` | one function |
//! | `host:api.example.com`, `host:*.example.com:8443`, `host:*` | hosts, on one port or on all |
//! | `read:notes`, `write:notes`, `path:notes` | that path and all below it, when read, when written, and both |
//! | `key:user.` | the keys of the session's state that begin so |
//! | `program:NAME`, `agent:NAME` | a catalog program or an agent that a program starts |
//!
//! For one call, the most specific rule counts: one on what the call names (a host before a wildcard, a longer path before a shorter)
//! before one on its class of effect, and that before `*`. Of equally specific rules the stricter counts: deny, then ask, then allow. A
//! rule on the function, or else on its capability where that leads no class, stands beside one on what the call names: both count; and
//! before one on the class. What no rule is about is allowed.
//!
//! A program is decided about [before its first instruction](Policy::decide), by its [`Authority`](wattle_rt::Authority). An argument that is not known until it
//! runs is decided about when the call is made, by the same rules; a question about it comes before the run and is about anything that the
//! argument could be.
//!
//! ```
//! use wattle_capability::policy::{Policy, Verdict};
//! use wattle_rt::Target;
//!
//! let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect::<Vec<_>>();
//! let policy = Policy::new(rules(&["host:api.example.com"]), rules(&["write:notes"]), rules(&["http"]));
//! assert_eq!(policy.verdict("http.get", Target::Url, "https://api.example.com/v1"), Verdict::Allow);
//! assert_eq!(policy.verdict("web.fetch", Target::Url, "https://example.org/"), Verdict::Deny);
//! assert_eq!(policy.verdict("shell.run", Target::Write, "notes/a.txt"), Verdict::Ask);
//! ```

mod class;
mod decide;
mod place;
mod preflight;
mod rule;

use wattle_rt::Target;

pub use decide::{Decision, Question, Refusal, Touch};
pub use preflight::{Answer, Asker, Line, NoApprover, Preflight, Request};
pub use rule::{Rule, RuleError};

use class::Class;
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

    /// The verdict on a call of that function, such as `http.get`, that touches what the text names.
    #[must_use]
    pub fn verdict(&self, function: &str, target: Target, text: &str) -> Verdict {
        self.on(function, Touched::of(target, Place::of(target, text).as_ref())).verdict
    }

    /// The ruling on a call of a function that touches that.
    fn on(&self, function: &str, touched: Touched<'_>) -> Ruling<'_> {
        let rulings = self.sets.iter().map(|set| on(set, function, touched));
        rulings.fold(Ruling::OPEN, Ruling::stricter)
    }

    /// The rulings that a call may get which names something of that kind that is not known, in each set.
    fn on_unknown(&self, function: &str, target: Target, beginning: &str) -> Vec<Vec<Ruling<'_>>> {
        self.sets.iter().map(|set| on_unknown(set, function, target, beginning)).collect()
    }
}

/// What a call touches, as far as a ruling needs it.
#[derive(Clone, Copy)]
enum Touched<'c> {
    /// Nothing outside the run.
    Nothing,
    /// Something of that kind that no rule names.
    Elsewhere(Target),
    /// Something of that kind that cannot be told.
    Unreadable(Target),
    /// That.
    Place(Target, &'c Place),
}

impl<'c> Touched<'c> {
    fn of(target: Target, place: Option<&'c Place>) -> Touched<'c> {
        place.map_or(Touched::Unreadable(target), |place| Touched::Place(target, place))
    }

    fn class(self) -> Option<Class> {
        match self {
            Touched::Nothing => None,
            Touched::Elsewhere(target) | Touched::Unreadable(target) | Touched::Place(target, _) => {
                Some(Class::of(target))
            }
        }
    }
}

/// The ruling of the rule that is most specific by that measure; of equally specific ones the strictest. The measure is told whether the
/// rule refuses.
fn best<'p>(set: &'p Set, rank: impl Fn(&Rule, bool) -> Option<Rank>) -> Option<Ruling<'p>> {
    let ranked =
        set.iter().filter_map(|(rule, verdict)| Some((rank(rule, *verdict != Verdict::Allow)?, *verdict, rule)));
    let best = ranked.max_by_key(|(rank, verdict, _)| (*rank, *verdict));
    best.map(|(_, verdict, rule)| Ruling { verdict, rule: Some(rule) })
}

fn on<'p>(set: &'p Set, function: &str, touched: Touched<'_>) -> Ruling<'p> {
    let by_place = match touched {
        Touched::Nothing | Touched::Elsewhere(_) => None,
        Touched::Unreadable(target) => {
            best(set, |rule, refuses| (refuses && rule.is_about_all(target)).then_some((0, 0, 0)))
        }
        Touched::Place(_, place) => {
            let at = best(set, |rule, refuses| rule.on_place(place, refuses));
            // What is read or moved as a whole is as strict as the strictest rule on what it holds.
            let below = best(set, |rule, refuses| (refuses && rule.is_below(place)).then_some((0, 0, 0)));
            match (at, below) {
                (None, Some(below)) => Some(by_class(set, touched).stricter(below)),
                (Some(at), Some(below)) => Some(at.stricter(below)),
                (at, None) => at,
            }
        }
    };
    match (by_name(set, function, touched), by_place) {
        (Some(name), Some(place)) => name.stricter(place),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => by_class(set, touched),
    }
}

/// The ruling of the rules on the function, or on its capability.
fn by_name<'p>(set: &'p Set, function: &str, touched: Touched<'_>) -> Option<Ruling<'p>> {
    let capability = function.split('.').next().unwrap_or_default();
    best(set, |rule, refuses| rule.on_name(capability, function, touched.class(), refuses))
}

/// The ruling of the rules on the class of effect.
fn by_class<'p>(set: &'p Set, touched: Touched<'_>) -> Ruling<'p> {
    let ruling = touched.class().and_then(|class| best(set, |rule, refuses| rule.on_class(class, refuses)));
    ruling.unwrap_or(Ruling::OPEN)
}

fn on_unknown<'p>(set: &'p Set, function: &str, target: Target, beginning: &str) -> Vec<Ruling<'p>> {
    let elsewhere = Touched::Elsewhere(target);
    let named = by_name(set, function, elsewhere);
    let places = set.iter().filter(|(rule, _)| rule.may_be_about(target, beginning));
    let rulings = places.map(|(rule, verdict)| {
        let place = Ruling { verdict: *verdict, rule: Some(rule) };
        named.map_or(place, |named| named.stricter(place))
    });
    let mut rulings: Vec<Ruling<'p>> = rulings.collect();
    if !set.iter().any(|(rule, _)| rule.is_about_all(target)) {
        rulings.push(on(set, function, elsewhere));
    }
    rulings
}
