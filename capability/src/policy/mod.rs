//! The policy of a run, which determines whether an effect of its programs is allowed, needs the
//! user's approval, or is denied.
//!
//! Grants determine which capabilities exist, and a policy restricts their use. A policy is a set
//! of rules, each with a verdict. A rule covers effects, no matter which function causes them:
//!
//! | rule | covers |
//! |---|---|
//! | `*` | every effect outside the run |
//! | `egress` | everything that leaves the machine: what `http` and `ai` cover, agents at other endpoints, tools, the public folder, tickets and artifacts |
//! | `http` | every request to a URL; if it denies or asks, also requests to a search engine, a model, an image generator or a Git remote, and questions to an agent whose model is at another endpoint |
//! | `fs` | every access to the run's files; if it denies or asks, also to the public folder and tickets |
//! | `kv` | every key of the state; if it denies or asks, also tickets and the memory |
//! | `par` | every program that a program starts |
//! | `agent` | every question to another agent |
//! | `tool` | every call to a tool of the application |
//! | `ai` | every message to a model; if it denies or asks, also requests to an image generator, and questions to an agent whose model is at another endpoint |
//! | `web`, `search`, `shell`, … | all functions of that capability; if it allows, only the effects that are the capability's purpose |
//! | `http.post` | one function |
//! | `host:api.example.com`, `host:*.example.com:8443`, `host:*` | hosts, on one port or on all |
//! | `read:notes`, `write:notes`, `path:notes` | reads, writes, or both, of that path and everything below it |
//! | `private` | if it denies or asks, every read of a file that holds secrets by its name, such as `.env` or a key; if it allows, they are files like others |
//! | `protected` | if it denies or asks, every write of a file that runs or authorizes something, such as `.bashrc`, a workflow or a build file; if it allows, they are files like others |
//! | `key:user.` | the keys of the session's state with that prefix; if it allows, the prefix ends at a boundary: `key:user` covers `user` and `user.name`, but not `users` |
//! | `program:NAME` | the program whose code the catalog has under that name, whoever starts it, by whatever name; a rule that denies or asks also covers the program that an agent calls by that name |
//! | `agent:NAME`, `tool:NAME` | the agent or tool with that name |
//! | `tool:github.*` | the tools whose names begin with `github.`: those of that MCP server |
//! | `read:*`, `write:*`, `path:*`, `key:*`, `program:*`, `agent:*`, `tool:*` | everything of that kind |
//!
//! There are no other wildcards: a `*` within a path, a prefix or a name is an error. `\*` is a
//! literal `*`.
//!
//! For each call, the most specific rule wins: a rule on the resource (a host before a wildcard, a
//! longer path before a shorter one), then a rule on the class of effects, then `*`. Among equally
//! specific rules, the strictest wins: deny, then ask, then allow. A rule on the function, or on a
//! capability whose name is not a class of effects, counts in addition to a rule on the resource,
//! and precedes a rule on the class. An effect that no rule covers is allowed.
//!
//! The decision about a program is made [before its first instruction](Policy::decide), based on
//! its [`Authority`](wattle_rt::Authority). If an argument is not known by then, the same rules
//! decide the call when it is made. If such a call may need approval, the user is asked before the
//! run, and the approval covers the values for which the known prefix can stand. It ends at a
//! boundary: `http://a.example` stands for that host alone, and not for `a.example.evil.example`;
//! `notes/a` for the files in `notes` whose names start with `a`; `notes/` for everything below it.
//! An approval of a known resource covers exactly that resource, for that function.
//!
//! ```
//! use wattle_capability::policy::{Policy, Verdict};
//! use wattle_rt::Target;
//!
//! let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect::<Vec<_>>();
//! let policy = Policy::new(
//!     rules(&["host:api.example.com"]),
//!     rules(&["write:notes"]),
//!     rules(&["http"]),
//! );
//! let url = "https://api.example.com/v1";
//! assert_eq!(policy.verdict("http.get", Target::Url, url), Verdict::Allow);
//! assert_eq!(policy.verdict("web.fetch", Target::Url, "https://example.org/"), Verdict::Deny);
//! assert_eq!(policy.verdict("shell.run", Target::Write, "notes/a.txt"), Verdict::Ask);
//! ```
//!
//! The operator can give [privileges](Policy::giving) to single programs of the catalog. They are
//! allow rules for one text of one program, ranked against the operator's other rules, and for
//! nobody else.

mod approval;
mod class;
mod decide;
mod directory;
mod preflight;
mod privilege;
mod resource;
mod rule;
mod start;

use std::path::{Component, Path};

use wattle_files::{Change, ChangeKind, EntryKind, Sensitivity, sensitive};
use wattle_rt::Target;

pub use approval::ApprovalScope;
pub use class::leaves_machine;
pub use decide::{Decision, Question, Refusal, Touch};
pub use preflight::{Answer, Approver, Line, NoApprover, Preflight, Request};
pub use privilege::{Grant, Privilege, Privileges, SourceHash};
pub use rule::{Rule, RuleError};

use class::Class;
use directory::Directory;
use resource::Resource;
use rule::Rank;

/// The verdict of a rule. The variants are ordered from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The effect is permitted.
    Allow,
    /// The user must approve the effect first. If no user can be asked, the effect is denied.
    Ask,
    /// The effect is denied.
    Deny,
}

impl Verdict {
    /// Returns the name of the setting that lists the rules with this verdict: `allow`, `ask` or
    /// `deny`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

/// The rules for the programs of a run. The default policy allows everything that is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The sets of rules. An effect is allowed only if every set allows it.
    sets: Vec<Set>,
}

/// A set of rules. Only rules in the same set are ranked against each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set {
    rules: Vec<(Rule, Verdict)>,
    /// What the author of the rules gives to single programs.
    privileges: Privileges,
}

/// A verdict, and the rule that determined it. The rule is `None` if no rule covers the effect.
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
    /// Creates a policy from the rules for each verdict.
    #[must_use]
    pub fn new(allow: Vec<Rule>, ask: Vec<Rule>, deny: Vec<Rule>) -> Policy {
        let with = |rules: Vec<Rule>, verdict| rules.into_iter().map(move |rule| (rule, verdict));
        let rules = with(allow, Verdict::Allow)
            .chain(with(ask, Verdict::Ask))
            .chain(with(deny, Verdict::Deny))
            .collect();
        Policy { sets: vec![Set { rules, privileges: Privileges::default() }] }
    }

    /// Combines two policies: an effect is allowed only if both allow it.
    #[must_use]
    pub fn and(mut self, other: Policy) -> Policy {
        self.sets.extend(other.sets);
        self
    }

    /// Returns the policy with a rule that denies reading [private](Sensitivity::Private) files,
    /// unless it has a rule on them.
    #[must_use]
    pub fn keeping_private_files(self) -> Policy {
        self.with_default(Sensitivity::Private, Verdict::Deny)
    }

    /// Returns the policy with a rule that asks about writing
    /// [protected](Sensitivity::Protected) files, unless it has a rule on them.
    #[must_use]
    pub fn asking_about_protected_files(self) -> Policy {
        self.with_default(Sensitivity::Protected, Verdict::Ask)
    }

    /// Returns the policy with a rule that asks about each of these tools for which it has no rule.
    #[must_use]
    pub fn asking_about_tools(mut self, names: &[String]) -> Policy {
        let open = names.iter().filter(|name| {
            let tool = Resource::of(Target::Tool, name);
            let touched = TouchedResource::of(Target::Tool, tool.as_ref());
            self.on("tool.call", touched).rule.is_none()
        });
        let rules = open.filter_map(|name| format!("tool:{name}").parse().ok());
        let rules: Vec<(Rule, Verdict)> = rules.map(|rule| (rule, Verdict::Ask)).collect();
        if self.sets.is_empty() {
            self.sets.push(Set::default());
        }
        if let Some(set) = self.sets.first_mut() {
            set.rules.extend(rules);
        }
        self
    }

    fn with_default(mut self, class: Sensitivity, verdict: Verdict) -> Policy {
        let rule = Rule::sensitive(class);
        if self.sets.is_empty() {
            self.sets.push(Set::default());
        }
        if let Some(set) = self.sets.first_mut()
            && !set.rules.iter().any(|(own, _)| *own == rule)
        {
            set.rules.push((rule, verdict));
        }
        self
    }

    /// Returns a noun phrase that says what a file is, such as `a build file`, if somebody must be
    /// asked before the file is written to the workdir: it is protected, and no rule allows to
    /// write it. `root` are the names of the workdir's path, and `path` is relative to the workdir.
    /// If `whole` is true, everything below the path is meant, too.
    #[must_use]
    pub fn protects(&self, root: &[String], path: &str, whole: bool) -> Option<&'static str> {
        let own = resource::names(path)?;
        let found = sensitive(Sensitivity::Protected, &[root, own.as_slice()].concat(), whole)?;
        let depth = found.depth.saturating_sub(root.len()).max(1);
        let allows = |(rule, verdict): &(Rule, Verdict)| {
            *verdict == Verdict::Allow && rule.permits_protected(&own, depth)
        };
        (!self.sets.first().is_some_and(|set| set.rules.iter().any(allows))).then_some(found.what)
    }

    /// Returns a noun phrase that says what a file is, such as `a build file`, if somebody must be
    /// asked before its change is applied to the workdir; see [`protects`](Policy::protects). `root`
    /// is the path of the workdir, without links.
    #[must_use]
    pub fn protects_change(&self, root: &Path, change: &Change) -> Option<&'static str> {
        // An empty folder does nothing, and a link stands for everything below it.
        if change.entry == EntryKind::Folder && change.kind != ChangeKind::Deleted {
            return None;
        }
        let names = root.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        let names: Vec<String> = names.collect();
        self.protects(&names, &change.path, change.entry == EntryKind::Link)
    }

    /// Returns true if the policy denies nothing and requires no approvals.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.sets.iter().flat_map(|set| &set.rules).all(|(_, verdict)| *verdict == Verdict::Allow)
    }

    /// Returns the verdict on a call to a function, such as `http.get`. `text` names the resource.
    #[must_use]
    pub fn verdict(&self, function: &str, target: Target, text: &str) -> Verdict {
        self.on(function, TouchedResource::of(target, Resource::of(target, text).as_ref())).verdict
    }

    /// Returns all rules, of all sets.
    fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.sets.iter().flat_map(|set| &set.rules).map(|(rule, _)| rule)
    }

    /// Returns the ruling on a call to a function that touches a resource.
    fn on(&self, function: &str, touched: TouchedResource<'_>) -> Ruling<'_> {
        let rulings = self.sets.iter().map(|set| on(set, function, touched));
        rulings.fold(Ruling::OPEN, Ruling::stricter)
    }

    /// Returns the ruling on a program that is about to start, whoever starts it. Only rules on
    /// programs decide about it: what the program may do is decided by its effects.
    fn on_start(&self, program: &Resource) -> Ruling<'_> {
        let rulings = self
            .sets
            .iter()
            .map(|set| best(set, |rule, restricts| rule.on_resource(program, restricts)));
        rulings.flatten().fold(Ruling::OPEN, Ruling::stricter)
    }

    /// Returns the possible rulings of each set on a call, given only a prefix of the resource's
    /// name.
    fn on_unknown(&self, function: &str, target: Target, prefix: &str) -> Vec<Vec<Ruling<'_>>> {
        self.sets.iter().map(|set| on_unknown(set, function, target, prefix)).collect()
    }
}

/// The resource that a call touches.
#[derive(Clone, Copy)]
enum TouchedResource<'c> {
    /// The call touches no resource.
    Nothing,
    /// A resource of the given kind that no rule names.
    Other(Target),
    /// An agent that no rule names, whose model is at another endpoint than that of the run.
    AgentElsewhere,
    /// A resource of the given kind whose name is invalid.
    Invalid(Target),
    /// A known resource.
    Resource(Target, &'c Resource),
}

impl<'c> TouchedResource<'c> {
    fn of(target: Target, resource: Option<&'c Resource>) -> TouchedResource<'c> {
        resource.map_or(TouchedResource::Invalid(target), |resource| {
            TouchedResource::Resource(target, resource)
        })
    }

    fn class(self) -> Option<Class> {
        match self {
            TouchedResource::Nothing => None,
            TouchedResource::Resource(_, Resource::Agent { elsewhere: true, .. })
            | TouchedResource::AgentElsewhere => Some(Class::AgentsElsewhere),
            TouchedResource::Other(target)
            | TouchedResource::Invalid(target)
            | TouchedResource::Resource(target, _) => Some(Class::of(target)),
        }
    }
}

/// Returns the ruling of the rule with the highest rank, or `None` if no rule has a rank. If
/// several rules have that rank, the strictest one decides. The second argument of `rank` is true
/// if the rule is restrictive, which means that it denies or asks.
fn best<'p>(set: &'p Set, rank: impl Fn(&Rule, bool) -> Option<Rank>) -> Option<Ruling<'p>> {
    let ranked = set.rules.iter().filter_map(|(rule, verdict)| {
        Some((rank(rule, *verdict != Verdict::Allow)?, *verdict, rule))
    });
    let best = ranked.max_by_key(|(rank, verdict, _)| (*rank, *verdict));
    best.map(|(_, verdict, rule)| Ruling { verdict, rule: Some(rule) })
}

fn on<'p>(set: &'p Set, function: &str, touched: TouchedResource<'_>) -> Ruling<'p> {
    let by_resource = match touched {
        TouchedResource::Nothing | TouchedResource::Other(_) | TouchedResource::AgentElsewhere => {
            None
        }
        TouchedResource::Invalid(target) => {
            best(set, |rule, restricts| (restricts && rule.covers_all(target)).then_some((0, 0, 0)))
        }
        TouchedResource::Resource(_, resource) => {
            let at = best(set, |rule, restricts| rule.on_resource(resource, restricts));
            // A tree that is read or moved as a whole gets the strictest verdict on any of its
            // parts.
            let below = best(set, |rule, restricts| {
                (restricts && rule.is_below(resource)).then_some((0, 0, 0))
            });
            match (at, below) {
                (None, Some(below)) => Some(by_class(set, touched).stricter(below)),
                (Some(at), Some(below)) => Some(at.stricter(below)),
                (at, None) => at,
            }
        }
    };
    match (by_name(set, function, touched), by_resource) {
        (Some(name), Some(resource)) => name.stricter(resource),
        (Some(ruling), None) | (None, Some(ruling)) => ruling,
        (None, None) => by_class(set, touched),
    }
}

/// Returns the ruling of the rules on the function or on its capability, or `None` if there is no
/// such rule.
fn by_name<'p>(set: &'p Set, function: &str, touched: TouchedResource<'_>) -> Option<Ruling<'p>> {
    let capability = function.split('.').next().unwrap_or_default();
    best(set, |rule, restricts| rule.on_name(capability, function, touched.class(), restricts))
}

/// Returns the ruling of the rules on the resource's class of effects. If there is no such rule,
/// the effect is allowed.
fn by_class<'p>(set: &'p Set, touched: TouchedResource<'_>) -> Ruling<'p> {
    let ruling = touched
        .class()
        .and_then(|class| best(set, |rule, restricts| rule.on_class(class, restricts)));
    ruling.unwrap_or(Ruling::OPEN)
}

fn on_unknown<'p>(set: &'p Set, function: &str, target: Target, prefix: &str) -> Vec<Ruling<'p>> {
    let other = TouchedResource::Other(target);
    let by_name = by_name(set, function, other);
    let possible = set.rules.iter().filter(|(rule, _)| rule.may_cover(target, prefix));
    let rulings = possible.map(|(rule, verdict)| {
        let ruling = Ruling { verdict: *verdict, rule: Some(rule) };
        by_name.map_or(ruling, |by_name| by_name.stricter(ruling))
    });
    let mut rulings: Vec<Ruling<'p>> = rulings.collect();
    if !set.rules.iter().any(|(rule, _)| rule.covers_all(target)) {
        rulings.push(on(set, function, other));
        if target == Target::Agent {
            rulings.push(on(set, function, TouchedResource::AgentElsewhere));
        }
    }
    rulings
}
