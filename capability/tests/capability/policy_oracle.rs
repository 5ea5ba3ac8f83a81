//! Compares the policy's verdicts with those of a reference implementation, for arbitrary rules and
//! calls.

use proptest::prelude::*;
use wattle_capability::policy::{Policy, Rule, Verdict};
use wattle_capability::{ALL, ai, git, image, issue, memory, publish, sys, web};
use wattle_rt::Target;

use crate::reference;

const PLACES: &[&str] = &[
    "*",
    "host:*",
    "host:*:8443",
    "host:a.example",
    "host:a.example:8443",
    "host:*.example",
    "host:*.a.example",
    "host:b.org",
    "read:/",
    "write:/",
    "path:/",
    "read:*",
    "write:*",
    "path:*",
    "read:/notes",
    "write:/notes",
    "path:/notes/today",
    "path:/notesx",
    "read:/notes/today/a.txt",
    "write:/_issues.jsonl",
    "key:tenant:_issues.jsonl",
    "key:",
    "key:*",
    "key:user.",
    "key:user",
    "key:tenant",
    "key:us",
    "key:user_",
    "key:user.a",
    "key:tenant:",
    "program:*",
    "program:file_read",
    "program:x",
    "agent:*",
    "agent:ada",
    "tool:*",
    "tool:x",
];
const URLS: &[&str] = &[
    "https://a.example/",
    "https://a.example:8443/x",
    "https://x.a.example/",
    "https://xa.example/",
    "https://b.org/",
    "https://example/",
    "https://A.Example./",
    "https://a.example.b.org/",
    "https://a.example@b.org/",
    "https://b.org:443/a.example",
    "https://xb.org/",
];
const PATHS: &[&str] =
    &["/", "/notes", "/notes/today", "/notes/today/a.txt", "/notesx", "/other/a"];
const KEYS: &[&str] = &[
    "", "user", "user.", "user.a", "user.b", "users", "user:a", "user/a", "user_a", "usé",
    "tenant:", "tenant:a", "other",
];
const NAMES: &[&str] = &["file_read", "x", "", "ada"];

fn rule() -> impl Strategy<Value = String> {
    let words: Vec<String> = ALL.iter().map(|capability| capability.name.to_owned()).collect();
    let functions: Vec<String> =
        ALL.iter().flat_map(|c| c.functions).map(|f| f.name.to_owned()).collect();
    prop_oneof![
        prop::sample::select(PLACES).prop_map(str::to_owned),
        prop::sample::select(words),
        Just("egress".to_owned()),
        prop::sample::select(functions),
    ]
}

fn rules() -> impl Strategy<Value = Vec<(String, Verdict)>> {
    let verdict = prop::sample::select(vec![Verdict::Allow, Verdict::Ask, Verdict::Deny]);
    prop::collection::vec((rule(), verdict), 0..8)
}

fn touched() -> impl Strategy<Value = (Target, &'static str)> {
    let of = |targets: Vec<Target>, texts: &'static [&'static str]| {
        (prop::sample::select(targets), prop::sample::select(texts))
    };
    use Target::{Agent, Key, Keys, Program, Read, ReadTree, Tool, Tree, Url, Write};
    let services = [
        &ai::MODEL,
        &image::IMAGES,
        &git::REMOTE,
        &publish::PUBLIC,
        &issue::TICKETS,
        &memory::STORE,
        &sys::ARTIFACTS,
    ];
    prop_oneof![
        of(vec![Url, Target::Service(&web::ENGINE)], URLS),
        of(vec![Read, ReadTree, Write, Tree], PATHS),
        of(vec![Key, Keys], KEYS),
        of(vec![Program, Agent, Tool], NAMES),
        of(services.map(Target::Service).to_vec(), &[""]),
    ]
}

fn policy(rules: &[(String, Verdict)]) -> Policy {
    let of = |wanted| -> Vec<Rule> {
        rules
            .iter()
            .filter(|(_, verdict)| *verdict == wanted)
            .map(|(rule, _)| rule.parse().unwrap())
            .collect()
    };
    Policy::new(of(Verdict::Allow), of(Verdict::Ask), of(Verdict::Deny))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_policy_decides_as_the_reference_does(
        own in rules(),
        project in rules(),
        function in prop::sample::select(
            ALL.iter().flat_map(|c| c.functions).map(|f| f.name).collect::<Vec<_>>(),
        ),
        (target, text) in touched(),
    ) {
        let real = policy(&own).and(policy(&project)).verdict(function, target, text);
        let expected = reference::verdict(&own, function, target, text)
            .max(reference::verdict(&project, function, target, text));
        prop_assert_eq!(real, expected, "{} {:?} {:?}", function, target, text);
    }
}
