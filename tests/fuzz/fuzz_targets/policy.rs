//! Checks that the policy makes the same decisions as the reference implementation, for arbitrary
//! rules and calls.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wattle_capability::ALL;
use wattle_capability::policy::{Policy, Rule, Verdict};
use wattle_capability::{ai, git, image, issue, memory, publish, sys, web};
use wattle_rt::Target;

#[path = "../../../capability/tests/reference/mod.rs"]
mod reference;

/// Host names. Rules and targets use the same few strings, so that they often match.
const HOSTS: &[&str] =
    &["a.example", "x.a.example", "example", "b.org", "a.example:8443", "b.org:8080"];
const PATHS: &[&str] = &["/", "/a", "/a/b", "/a/b/c", "/ab", "/b"];
const KEYS: &[&str] = &["", "a", "a.", "a.b", "tenant:", "tenant:a"];
const NAMES: &[&str] = &["x", "file_read", "ada"];
const ALL_OF_A_KIND: &[&str] =
    &["host:*", "host:*:8443", "read:*", "write:*", "path:*", "key:*", "program:*", "agent:*"];
const VERDICTS: &[Verdict] = &[Verdict::Allow, Verdict::Ask, Verdict::Deny];

fn pick<T: Copy>(bytes: &mut impl Iterator<Item = u8>, from: &[T]) -> T {
    from[usize::from(bytes.next().unwrap_or(0)) % from.len()]
}

fn rule(bytes: &mut impl Iterator<Item = u8>) -> String {
    let functions: Vec<&str> = ALL.iter().flat_map(|c| c.functions).map(|f| f.name).collect();
    match bytes.next().unwrap_or(0) % 12 {
        0 => "*".to_owned(),
        1..=3 => pick(bytes, ALL).name.to_owned(),
        4 => pick(bytes, &functions).to_owned(),
        5 => format!("host:{}", pick(bytes, HOSTS)),
        6 => format!("host:*.{}", pick(bytes, HOSTS)),
        7 => pick(bytes, ALL_OF_A_KIND).to_owned(),
        8 | 9 => format!("{}:{}", pick(bytes, &["read", "write", "path"]), pick(bytes, PATHS)),
        10 => format!("key:{}", pick(bytes, KEYS)),
        _ => format!("{}:{}", pick(bytes, &["program", "agent", "tool"]), pick(bytes, NAMES)),
    }
}

fn rules(bytes: &mut impl Iterator<Item = u8>) -> Vec<(String, Verdict)> {
    (0..bytes.next().unwrap_or(0) % 8).map(|_| (rule(bytes), pick(bytes, VERDICTS))).collect()
}

fn policy(rules: &[(String, Verdict)]) -> Policy {
    let of = |wanted| -> Vec<Rule> {
        rules
            .iter()
            .filter(|(_, verdict)| *verdict == wanted)
            .map(|(rule, _)| rule.parse().expect("the rule is valid"))
            .collect()
    };
    Policy::new(of(Verdict::Allow), of(Verdict::Ask), of(Verdict::Deny))
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.iter().copied();
    let functions: Vec<&str> = ALL.iter().flat_map(|c| c.functions).map(|f| f.name).collect();
    let function = pick(&mut bytes, &functions);
    let services = [
        &ai::MODEL,
        &image::IMAGES,
        &git::REMOTE,
        &publish::PUBLIC,
        &issue::TICKETS,
        &memory::STORE,
        &sys::ARTIFACTS,
    ];
    let (target, text) = match bytes.next().unwrap_or(0) % 5 {
        0 => {
            let target = pick(&mut bytes, &[Target::Url, Target::Service(&web::ENGINE)]);
            (target, format!("https://{}/", pick(&mut bytes, HOSTS)))
        }
        1 => {
            let target =
                pick(&mut bytes, &[Target::Read, Target::ReadTree, Target::Write, Target::Tree]);
            (target, pick(&mut bytes, PATHS).to_owned())
        }
        2 => (pick(&mut bytes, &[Target::Key, Target::Keys]), pick(&mut bytes, KEYS).to_owned()),
        3 => (
            pick(&mut bytes, &[Target::Program, Target::Agent, Target::Tool]),
            pick(&mut bytes, NAMES).to_owned(),
        ),
        _ => (Target::Service(pick(&mut bytes, &services)), String::new()),
    };
    let (own, project) = (rules(&mut bytes), rules(&mut bytes));
    let real = policy(&own).and(policy(&project)).verdict(function, target, &text);
    let expected = reference::verdict(&own, function, target, &text)
        .max(reference::verdict(&project, function, target, &text));
    assert_eq!(real, expected, "{function} {target:?} {text:?}, by {own:?} and {project:?}");
});
