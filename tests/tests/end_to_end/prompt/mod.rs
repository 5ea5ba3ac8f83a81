//! Tests the system prompt with all capabilities granted. In `tests/prompt/`, `system.md` and
//! `native.md` are the prompts of the two dialects, for review, and `cost.md` lists the length of
//! each section of `system.md`, in tokens. `UPDATE=1` updates these files.

mod prefix;

use std::fmt::Write;
use std::path::Path;

use wattle_agent::Settings;
use wattle_agent::host::machine::Dialect;
use wattle_agent::host::rt::Grants;
use wattle_tests::World;

/// Maximum length of the prompt, in tokens of the encoding `o200k_base`.
const MAX_TOKENS: usize = 3_000;

#[tokio::test]
async fn the_prompt_with_every_capability_is_as_committed() {
    let world = World::new();
    let capabilities = world.host.runtime().capabilities().iter();
    let everything = Grants::without_state(capabilities.map(|capability| capability.name));
    let prompt = || {
        let listing = world.host.listing(None, "");
        world.host.prompt(&Settings::default(), &everything, &listing, Dialect::Text).to_string()
    };
    let system = prompt();
    assert_eq!(system, prompt(), "the prompt changes from one request to the next");
    let encoding = tiktoken_rs::o200k_base().unwrap();
    let count = |text: &str| encoding.encode_ordinary(text).len();
    let mut cost = String::from("| part of the prompt | tokens (o200k) |\n|---|---:|\n");
    for section in sections(&system) {
        let title = section.lines().next().unwrap_or_default().trim_start_matches("# ");
        writeln!(cost, "| {} | {} |", title.chars().take(60).collect::<String>(), count(section))
            .unwrap();
        for part in section.split("\n## ").skip(1) {
            let name = part.split_whitespace().next().unwrap_or_default();
            writeln!(cost, "| – `{name}` | {} |", count(part)).unwrap();
        }
    }
    let tokens = count(&system);
    writeln!(cost, "| all | {tokens} |").unwrap();
    compare("system.md", &system);
    compare("cost.md", &cost);
    assert!(tokens <= MAX_TOKENS, "the prompt has {tokens} tokens:\n{cost}");
}

/// Maximum length of the prompt and the functions of the native dialect, in percent of the text
/// dialect's prompt.
const MAX_NATIVE_PERCENT: usize = 120;

/// In the native dialect, the functions' schemas are sent in addition to this prompt.
#[tokio::test]
async fn the_prompt_of_the_native_dialect_is_as_committed() {
    let world = World::new();
    let capabilities = world.host.runtime().capabilities().iter();
    let everything = Grants::without_state(capabilities.map(|capability| capability.name));
    let listing = world.host.listing(None, "");
    let system = world.host.prompt(&Settings::default(), &everything, &listing, Dialect::Native);
    let system = system.to_string();
    compare("native.md", &system);
    let functions = world.host.functions(&Settings::default(), &everything);
    let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["catalog", "wat", "fix", "done"]);
    let schemas = serde_json::to_string(&*functions).unwrap();
    let text = world.host.prompt(&Settings::default(), &everything, &listing, Dialect::Text);
    let encoding = tiktoken_rs::o200k_base().unwrap();
    let count = |text: &str| encoding.encode_ordinary(text).len();
    let (native, text) = (count(&system) + count(&schemas), count(&text.to_string()));
    assert!(
        native * 100 <= text * MAX_NATIVE_PERCENT,
        "{native} tokens, {text} in the text dialect"
    );
    let listed = Settings { functions: vec!["file_read".into()], ..Settings::default() };
    assert_eq!(
        serde_json::to_string(&*world.host.functions(&listed, &everything)).unwrap(),
        serde_json::to_string(&*world.host.functions(&listed, &everything)).unwrap()
    );
    let catalog = world.host.catalog();
    let all = catalog.iter().map(|entry| entry.name().to_string()).collect();
    let functions =
        world.host.functions(&Settings { functions: all, ..Settings::default() }, &everything);
    assert!(functions.len() > 50, "{} functions", functions.len());
    for function in &*functions {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(
            (1..=64).contains(&function.name.len()) && function.name.chars().all(is_plain),
            "{}",
            function.name
        );
        assert_eq!(function.parameters["type"], "object", "{}", function.name);
    }
}

#[tokio::test]
async fn the_prompt_names_what_is_not_granted() {
    let world = World::new();
    let job = world.job("x");
    let prompt = world.host.prompt(
        &Settings::default(),
        &job.grants,
        &world.host.listing(None, ""),
        Dialect::Text,
    );
    let prompt = prompt.to_string();
    for part in ["(http.get url)", "read", "ENOENT", "ai (no model is configured"] {
        assert!(prompt.contains(part), "{part} is missing in\n{prompt}");
    }
    assert!(!prompt.contains("ai.assist"), "{prompt}");
}

/// Splits the prompt at its top-level headings.
fn sections(prompt: &str) -> Vec<&str> {
    let starts: Vec<usize> = prompt.match_indices("\n# ").map(|(at, _)| at + 1).collect();
    let ends = starts.iter().copied().chain([prompt.len()]);
    [0].into_iter()
        .chain(starts.iter().copied())
        .zip(ends)
        .map(|(start, end)| prompt.get(start..end).unwrap())
        .collect()
}

/// Compares a string with a file in `tests/prompt/`.
fn compare(name: &str, found: &str) {
    wattle_cases::compare(Path::new("tests/prompt").join(name), found);
}
