//! What the model is told with everything on: `system.md` is the whole prompt, for a reviewer to read, and `cost.md` what each part of it
//! costs. `UPDATE=1` writes both anew.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::Path;

use wattle_agent::Settings;
use wattle_agent::machine::Dialect;
use wattle_agent::rt::Grants;
use wattle_tests::World;

/// The most tokens that the prompt may have, by the encoding `o200k_base`.
const MOST: usize = 3_500;

#[tokio::test]
async fn the_prompt_with_everything_on() {
    let world = World::new();
    let everything = world.host.runtime().capabilities().iter().fold(Grants::new(), |grants, c| grants.allow(c.name));
    let prompt = || world.host.prompt(&Settings::default(), &everything, &world.host.listing(None, ""), Dialect::Text);
    let system = prompt();
    assert_eq!(system, prompt(), "the prompt changes from one request to the next");
    let encoding = tiktoken_rs::o200k_base().unwrap();
    let count = |text: &str| encoding.encode_ordinary(text).len();
    let mut cost = String::from("| part of the prompt | tokens (o200k) |\n|---|---:|\n");
    for section in sections(&system) {
        let title = section.lines().next().unwrap_or_default().trim_start_matches("# ");
        writeln!(cost, "| {} | {} |", title.chars().take(60).collect::<String>(), count(section)).unwrap();
        for part in section.split("\n## ").skip(1) {
            let name = part.split_whitespace().next().unwrap_or_default();
            writeln!(cost, "| – `{name}` | {} |", count(part)).unwrap();
        }
    }
    let tokens = count(&system);
    writeln!(cost, "| all | {tokens} |").unwrap();
    same("system.md", &system);
    same("cost.md", &cost);
    assert!(tokens <= MOST, "the prompt has {tokens} tokens:\n{cost}");
}

/// What a model is told that calls functions; the functions themselves come on top.
#[tokio::test]
async fn the_prompt_of_the_native_dialect() {
    let world = World::new();
    let everything = world.host.runtime().capabilities().iter().fold(Grants::new(), |grants, c| grants.allow(c.name));
    let listing = world.host.listing(None, "");
    let system = world.host.prompt(&Settings::default(), &everything, &listing, Dialect::Native);
    same("native.md", &system);
    let tokens = tiktoken_rs::o200k_base().unwrap().encode_ordinary(&system).len();
    assert!(tokens <= MOST, "the prompt has {tokens} tokens");
    let functions = world.host.functions(&listing, &everything);
    assert_eq!(
        serde_json::to_string(&functions).unwrap(),
        serde_json::to_string(&world.host.functions(&listing, &everything)).unwrap()
    );
    for function in &functions {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!((1..=64).contains(&function.name.len()) && function.name.chars().all(is_plain), "{}", function.name);
        assert_eq!(function.parameters["type"], "object", "{}", function.name);
    }
}

#[tokio::test]
async fn what_is_not_granted_is_told() {
    let world = World::new();
    let job = world.job("x");
    let prompt = world.host.prompt(&Settings::default(), &job.grants, &world.host.listing(None, ""), Dialect::Text);
    for part in ["(http.get? url)", "read", "ENOENT", "ai (no model is configured"] {
        assert!(prompt.contains(part), "{part} is missing in\n{prompt}");
    }
    assert!(!prompt.contains("ai.assist"), "{prompt}");
}

/// The parts that begin with a heading of the first level, and what stands before the first.
fn sections(prompt: &str) -> Vec<&str> {
    let starts: Vec<usize> = prompt.match_indices("\n# ").map(|(at, _)| at + 1).collect();
    let ends = starts.iter().copied().chain([prompt.len()]);
    [0].into_iter()
        .chain(starts.iter().copied())
        .zip(ends)
        .map(|(start, end)| prompt.get(start..end).unwrap())
        .collect()
}

/// Compares with a file beside this one.
fn same(name: &str, found: &str) {
    wattle_cases::compare(Path::new("tests/prompt").join(name), found);
}
