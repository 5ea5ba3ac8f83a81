//! Tests the system prompt with all capabilities granted. In `tests/prompt/`, `system.md` and
//! `native.md` are the prompts of the two dialects, for review, and `cost.md` lists the length of
//! each section of `system.md`, in tokens. `UPDATE=1` updates these files.

mod prefix;

use std::fmt::Write;
use std::path::Path;

use wattle_agent::host::ToolProgram;
use wattle_agent::host::capability::egress::{Egress, Policy};
use wattle_agent::host::catalog::{Folders, Meta, Origin};
use wattle_agent::host::machine::Dialect;
use wattle_agent::host::rt::{Grants, Limits};
use wattle_agent::{Host, Settings};
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

/// Maximum length of the prompt with a thousand tools, in tokens.
const MAX_TOKENS_WITH_TOOLS: usize = 4_500;

/// The tools of these servers are described one by one until there are more than a hundred. From
/// then on, the prompt lists families, and the programs that match the first message.
#[tokio::test]
async fn the_prompt_of_a_thousand_tools_is_short() {
    const VERBS: [&str; 5] = ["list", "get", "create", "update", "delete"];
    const NOUNS: [&str; 10] = [
        "issue",
        "comment",
        "pull_request",
        "label",
        "milestone",
        "branch",
        "release",
        "webhook",
        "invitation",
        "notification",
    ];
    let schema = serde_json::json!({
        "type": "object", "required": ["owner"],
        "properties": {"owner": {"type": "string"}, "limit": {"type": "integer"}},
    });
    let tool = |number: usize| {
        let (server, rest) = (number / 50, number % 50);
        let (verb, noun) = (VERBS[rest / 10], NOUNS[rest % 10]);
        let name = format!("server{server:02}.{verb}_{noun}");
        let program = ToolProgram::new(name.parse().unwrap(), &name, &schema).unwrap();
        let about = format!("{verb}s a {noun} of the repository, with its author and its dates");
        let meta = Meta { description: about, ..Meta::default() };
        program.entry(Origin::Server(format!("server{server:02}")), meta)
    };
    let encoding = tiktoken_rs::o200k_base().unwrap();
    let count = |text: &str| encoding.encode_ordinary(text).len();
    let mut table = String::from("| tools | tokens of the prompt (o200k) |\n|---:|---:|\n");
    let mut last = String::new();
    for number in [0, 10, 100, 1_000] {
        let catalog = Folders::default().adding((0..number).map(tool).collect());
        let host = Host::new(Limits::default(), catalog, Egress::new(Policy::default())).unwrap();
        let capabilities = host.runtime().capabilities().iter();
        let everything = Grants::without_state(capabilities.map(|capability| capability.name));
        let listing = host.listing(None, "delete the webhook of the repository");
        last = host.prompt(&Settings::default(), &everything, &listing, Dialect::Text).to_string();
        writeln!(table, "| {number} | {} |", count(&last)).unwrap();
    }
    compare("tools.md", &table);
    assert!(count(&last) <= MAX_TOKENS_WITH_TOOLS, "{table}\n{last}");
    for part in
        ["\nserver00. create_branch create_comment", "\nserver00.delete_webhook(owner, limit"]
    {
        assert!(last.contains(part), "{part} is missing in\n{last}");
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
