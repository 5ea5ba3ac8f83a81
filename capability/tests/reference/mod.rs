//! A minimal second implementation of the policy, for comparison with the real one.

use wattle_capability::policy::Verdict;
use wattle_capability::{ai, git, image, issue, memory, publish, sys, web};
use wattle_rt::Target;

/// The capabilities whose names, used as rules, refer to classes of effects.
const LEADS: &[&str] = &["http", "fs", "kv", "par", "agent", "tool", "ai"];
/// The other capabilities, each with the classes of effects that a rule on it may allow.
const FOR: &[&str] = &[
    "web: http engine",
    "vfs: fs",
    "shell: fs",
    "search: fs",
    "workbook: par",
    "wattle: par",
    "issue: tickets",
    "memory: memory",
    "sys: artifacts",
    "git: fs remote",
    "publish: fs public",
    "image: fs images",
];

/// The classes of effects that leave the machine.
const LEAVES: &[&str] =
    &["http", "ai", "tool", "engine", "remote", "images", "public", "tickets", "artifacts"];

/// The specificity of a rule's match: its kind, its length, and whether the rule names a port.
type Score = Option<(u8, usize, bool)>;

/// Returns the verdict of the rules on a call to `function` that touches the resource `text` of the
/// kind `target`.
pub(crate) fn verdict(
    rules: &[(String, Verdict)],
    function: &str,
    target: Target,
    text: &str,
) -> Verdict {
    let best = |score: &dyn Fn(&str, bool) -> Score| {
        let scored =
            rules.iter().filter_map(|(rule, v)| Some((score(rule, *v != Verdict::Allow)?, *v)));
        scored.max().map(|(_, verdict)| verdict)
    };
    let class = best(&|rule, refuses| class(rule, refuses, kind(target))).unwrap_or(Verdict::Allow);
    let name = best(&|rule, refuses| name(rule, refuses, function, kind(target)));
    let at = best(&|rule, refuses| place(rule, refuses, target, text));
    let below =
        best(&|rule, refuses| (refuses && is_below(rule, target, text)).then_some((0, 0, false)));
    let place = at.or(below.map(|_| class)).max(below);
    name.max(place).unwrap_or(class)
}

/// Returns a target's class, and the classes whose deny rules also apply to it.
fn kind(target: Target) -> (&'static str, &'static [&'static str]) {
    match target {
        Target::Url => ("http", &[]),
        Target::Read | Target::ReadTree | Target::Write | Target::Tree => ("fs", &[]),
        Target::Key | Target::Keys => ("kv", &[]),
        Target::Program => ("par", &[]),
        Target::Agent => ("agent", &[]),
        Target::Tool => ("tool", &[]),
        Target::Service(&ai::MODEL) => ("ai", &["http"]),
        Target::Service(&web::ENGINE) => ("engine", &["http"]),
        Target::Service(&git::REMOTE) => ("remote", &["http"]),
        Target::Service(&image::IMAGES) => ("images", &["http", "ai"]),
        Target::Service(&publish::PUBLIC) => ("public", &["fs"]),
        Target::Service(&issue::TICKETS) => ("tickets", &["fs", "kv"]),
        Target::Service(&memory::STORE) => ("memory", &["kv"]),
        Target::Service(&sys::ARTIFACTS) => ("artifacts", &[]),
        Target::Service(other) => panic!("no class for {other:?}"),
    }
}

fn class(rule: &str, refuses: bool, (kind, by): (&str, &[&str])) -> Option<(u8, usize, bool)> {
    let leads = LEADS.contains(&rule);
    let rank = if leads && rule == kind {
        3
    } else if refuses && by.contains(&rule) {
        2
    } else {
        u8::from(rule == "egress" && LEAVES.contains(&kind))
    };
    (rule == "*" || rank > 0).then_some((rank, 0, false))
}

fn name(
    rule: &str,
    refuses: bool,
    function: &str,
    (kind, _): (&str, &[&str]),
) -> Option<(u8, usize, bool)> {
    let own = function.split('.').next() == Some(rule) && !(LEADS.contains(&rule) && rule == kind);
    let is_for = || {
        FOR.iter().any(|line| {
            line.split([' ', ':']).next() == Some(rule) && line.split(' ').any(|k| k == kind)
        })
    };
    (rule == function || own && (refuses || is_for())).then_some((
        u8::from(rule == function),
        0,
        false,
    ))
}

fn place(rule: &str, refuses: bool, target: Target, text: &str) -> Option<(u8, usize, bool)> {
    let (scheme, what) = split(rule)?;
    let (reads, writes) = (scheme != "write", scheme != "read");
    match (scheme, target) {
        ("host", Target::Url) => host(what, text),
        ("host", Target::Service(_)) if what == "*" => {
            (refuses && kind(target).1.contains(&"http")).then_some((0, 0, false))
        }
        ("host", Target::Service(_)) => host(what, text).filter(|_| refuses),
        ("write" | "path", Target::Service(&issue::TICKETS)) if what == "/_issues.jsonl" => {
            refuses.then_some((0, 0, false))
        }
        ("write" | "path", Target::Service(_)) => {
            (refuses && what == "/" && kind(target).1.contains(&"fs")).then_some((0, 0, false))
        }
        ("key", Target::Service(&issue::TICKETS)) => {
            (refuses && "tenant:_issues.jsonl".starts_with(what)).then_some((0, 0, false))
        }
        ("key", Target::Service(&memory::STORE)) => {
            (refuses && what.is_empty()).then_some((0, 0, false))
        }
        ("read" | "write" | "path", _) if kind(target).0 == "fs" => {
            (touches(reads, writes, target) && starts(&names(text), &names(what)))
                .then(|| (0, names(what).len(), false))
        }
        ("key", Target::Key | Target::Keys) => {
            let is_there = if refuses { text.starts_with(what) } else { key(what, target, text) };
            is_there.then_some((0, what.len(), false))
        }
        ("program", Target::Program) | ("agent", Target::Agent) | ("tool", Target::Tool) => {
            (what == "*" || what == text).then_some((u8::from(what != "*"), 0, false))
        }
        _ => None,
    }
}

/// Returns true if an allow rule on `prefix` covers the key. Its prefix ends at a boundary.
fn key(prefix: &str, target: Target, text: &str) -> bool {
    let is_separator = |c: char| ['.', ':', '/'].contains(&c);
    match text.strip_prefix(prefix).map(|rest| rest.chars().next()) {
        None => false,
        Some(_) if !prefix.chars().last().is_some_and(char::is_alphanumeric) => true,
        Some(next) => next.map_or(target == Target::Key, is_separator),
    }
}

fn host(rule: &str, url: &str) -> Option<(u8, usize, bool)> {
    let authority = url.split('/').nth(2)?.rsplit('@').next()?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
    let host = host.trim_end_matches('.').to_lowercase();
    let (name, own_port) =
        rule.split_once(':').map_or((rule, None), |(name, port)| (name, Some(port)));
    let below = name.strip_prefix("*.").filter(|domain| host.ends_with(&format!(".{domain}")));
    let rank = if name == "*" {
        (0, 0)
    } else if name == host {
        (2, 0)
    } else {
        (1, below?.len())
    };
    own_port.is_none_or(|own| own == port).then_some((rank.0, rank.1, own_port.is_some()))
}

/// Returns true if the target is a whole folder or key prefix, and the rule covers a part of it.
fn is_below(rule: &str, target: Target, text: &str) -> bool {
    match (split(rule), target) {
        (Some((scheme @ ("read" | "write" | "path"), what)), Target::ReadTree | Target::Tree) => {
            touches(scheme != "write", scheme != "read", target)
                && starts(&names(what), &names(text))
        }
        (Some(("key", what)), Target::Keys) => what.starts_with(text),
        _ => false,
    }
}

/// Splits a rule into its kind and its name, or returns `None` if it has no kind. A `*` for all
/// paths becomes `/`, and a `*` for all keys becomes the empty prefix.
fn split(rule: &str) -> Option<(&str, &str)> {
    Some(match rule.split_once(':')? {
        (scheme @ ("read" | "write" | "path"), "*") => (scheme, "/"),
        ("key", "*") => ("key", ""),
        other => other,
    })
}

fn touches(reads: bool, writes: bool, target: Target) -> bool {
    reads && target != Target::Write || writes && matches!(target, Target::Write | Target::Tree)
}

fn names(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty()).collect()
}

fn starts(long: &[&str], short: &[&str]) -> bool {
    long.starts_with(short)
}
