//! Tests of policy decisions about programs. Each case in `tests/data/policy.txt` has this form:
//!
//! ```text
//! === title
//! allow|ask|deny RULE …, one verdict per line; `also` starts the rules of a second policy
//! ---
//! program; its arguments follow `;; args:` in the first line
//! ---
//! the decision
//! ```
//!
//! `UPDATE=1` updates the decisions.

use std::fmt::Write;

use wattle_capability::ALL;
use wattle_capability::policy::{Policy, Rule, Verdict};
use wattle_rt::{Limits, Runtime, Target};

#[tokio::test]
async fn policies_decide_as_expected() {
    let runtime = Runtime::new(ALL, Limits::default()).unwrap();
    let path = "tests/data/policy.txt";
    let text = wattle_cases::read(path);
    let mut found = String::new();
    for wattle_cases::Case { title, input: rules, expected } in wattle_cases::split(&text).1 {
        let (source, _) = wattle_cases::split_line(expected);
        let program = runtime.prepare(source).await.unwrap_or_else(|why| panic!("{title}: {why}"));
        let args = source
            .lines()
            .next()
            .and_then(|line| line.strip_prefix(";; args:"))
            .unwrap_or_default();
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let decision = policy(rules).decide(program.authority(), &args);
        write!(found, "=== {title}\n{rules}---\n{source}---\n").unwrap();
        for refusal in &decision.refusals {
            writeln!(found, "deny: {refusal}; {}", refusal.remedy).unwrap();
        }
        for question in &decision.questions {
            writeln!(found, "ask: {question}; {}", question.remedy).unwrap();
        }
        if decision.refusals.is_empty() && decision.questions.is_empty() {
            writeln!(found, "allow").unwrap();
        }
        found.push('\n');
    }
    wattle_cases::compare(path, &format!("{}\n", found.trim_end()));
}

fn policy(rules: &str) -> Policy {
    let mut parties = rules.split("also\n").map(|rules| {
        let of = |verdict: Verdict| -> Vec<Rule> {
            let lines = rules
                .lines()
                .filter_map(|line| line.split_once(' '))
                .filter(|(name, _)| *name == verdict.name());
            lines
                .flat_map(|(_, rules)| rules.split(' '))
                .map(|rule| rule.parse().unwrap())
                .collect()
        };
        Policy::new(of(Verdict::Allow), of(Verdict::Ask), of(Verdict::Deny))
    });
    let first = parties.next().unwrap();
    parties.fold(first, Policy::and)
}

#[test]
fn rules_are_parsed_and_printed() {
    for (text, shown) in [
        ("*", "*"),
        (" http ", "http"),
        ("kv.set", "kv.set"),
        ("host:API.Example.com.", "host:api.example.com"),
        ("host:*.example.com:8443", "host:*.example.com:8443"),
        ("host:*", "host:*"),
        ("host:*:8080", "host:*:8080"),
        ("host:127.1:80", "host:127.0.0.1:80"),
        ("host:[::1]:80", "host:[::1]:80"),
        ("host:bücher.example", "host:xn--bcher-kva.example"),
        ("read:a//b/./c/../d", "read:/a/b/d"),
        ("write:/", "write:/"),
        ("path:", "path:/"),
        ("read:*", "read:/"),
        ("write:*", "write:/"),
        ("path:*", "path:/"),
        (r"write:a/\*.txt", r"write:/a/\*.txt"),
        (r"read:\\*", r"read:/\\*"),
        ("key:user.", "key:user."),
        ("key:*", "key:"),
        (r"key:\*", r"key:\*"),
        ("program:x", "program:x"),
        (r"program:\*", r"program:\*"),
        ("agent:*", "agent:*"),
        ("tool:add_user", "tool:add_user"),
        ("tool:github.*", "tool:github.*"),
    ] {
        assert_eq!(text.parse::<Rule>().unwrap().to_string(), shown, "{text}");
        assert_eq!(shown.parse::<Rule>().unwrap().to_string(), shown);
    }
    for text in [
        "",
        "htp",
        "http.fetch",
        "host:",
        "host:https://a.example",
        "host:a.example/x",
        "host:a.*.example",
        "host:*.127.0.0.1",
        "host:*.*",
        "host:a.example:0",
        "host:a.example:99999",
        "read:../x",
        "program:",
        "place:x",
        "http get",
        "host:a@b.example",
    ] {
        let error = text.parse::<Rule>().map(|rule| rule.to_string()).unwrap_err().to_string();
        assert!(error.starts_with("invalid rule `"), "{error}");
    }
}

#[test]
fn a_star_alone_covers_everything_of_its_kind() {
    for (rule, target, text) in [
        ("read:*", Target::Read, "notes/a.txt"),
        ("write:*", Target::Write, "a.txt"),
        ("path:*", Target::Tree, "notes"),
        ("key:*", Target::Key, "tenant:a"),
        ("program:*", Target::Program, "file_read"),
        ("agent:*", Target::Agent, "ada"),
        ("tool:*", Target::Tool, "add_user"),
    ] {
        let policy = Policy::new(Vec::new(), Vec::new(), vec![rule.parse().unwrap()]);
        assert_eq!(policy.verdict("shell.run", target, text), Verdict::Deny, "{rule}");
    }
}

#[test]
fn an_escaped_star_is_the_character_itself() {
    let policy = Policy::new(Vec::new(), Vec::new(), vec![r"write:a\*".parse().unwrap()]);
    assert_eq!(policy.verdict("fs.write", Target::Write, "a*"), Verdict::Deny);
    assert_eq!(policy.verdict("fs.write", Target::Write, "ab"), Verdict::Allow);
}

#[test]
fn a_star_within_a_name_is_an_error_that_says_what_to_write() {
    for (rule, hint) in [
        ("write:notes/*", "`write:notes` covers everything below that folder"),
        ("read:a/b/**/*", "`read:a/b` covers everything below that folder"),
        ("path:/*", "`path:*` covers all files"),
        ("write:**", "`write:*` covers all files"),
        ("read:*.txt", "a rule covers its file, or its folder with everything below it"),
        ("read:notes/a*", "a rule covers its file, or its folder with everything below it"),
        ("key:user.*", "`key:user.` covers all keys with that prefix"),
        ("key:**", "`key:*` covers all keys"),
        (r"key:a\**", "a rule covers all keys with its prefix"),
        ("key:tenant:*", "`key:tenant:` covers all keys with that prefix"),
        ("key:*.name", "a rule covers all keys with its prefix"),
        ("program:file_*", "write a rule for each program, or `program:*` for all"),
        ("agent:a*", "write a rule for each agent, or `agent:*` for all"),
    ] {
        let error = rule.parse::<Rule>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("invalid rule `{rule}`: ")) && error.contains(hint),
            "{error}"
        );
    }
}
