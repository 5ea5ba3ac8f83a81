//! Tests of the options and the help of every command.

use super::*;

const MODEL: &str = "model cassette";
const ENDPOINT: &str = "base-url api-key-env provider";
const LIMITS: &str = "max-steps max-tokens-total max-cost dialect orient timeout";
const AI: &str = "ai-calls ai-tokens embed-model";
const SEARCH: &str = "search-engine search-url search-key-env";
const WRITE: &str = "write apply exec";
const POLICY: &str = "allow ask deny";
const STORE: &str = "store blobs tenant";
const PROCESS: &str = "sandbox verbose root";

/// Every command, with its own options and its settings.
const OPTIONS: &[(&str, &str, &[&str])] = &[
    (
        "run",
        "resume approve refuse release fork step park json output output-schema context artifacts \
         no-session-store",
        ALL,
    ),
    ("repl", "context", ALL),
    ("serve", "listen allow-name allow-origin", SERVE),
    ("exec", "artifacts json", EXEC),
    ("shell", "c", &["timeout", WRITE, POLICY, STORE, PROCESS, "catalog"]),
    ("check", "fix authority json", CATALOG),
    ("expand", "", &[]),
    ("parse", "", &[]),
    ("catalog list", "json", CATALOG),
    ("catalog search", "json", CATALOG),
    ("catalog new", "dir json", CATALOG),
    ("catalog test", "json", CATALOG),
    ("catalog fmt", "check json", CATALOG),
    ("catalog show", "json", CATALOG),
    ("agents list", "json", AGENTS),
    ("agents show", "json", AGENTS),
    ("agents check", "json", AGENTS),
    ("agents test", "json model recorded", &[ENDPOINT, "root catalog agents"]),
    ("agents new", "dir", AGENTS),
    ("workbook run", "json", EXEC),
    ("workbook list", "json", &[]),
    ("workbook lint", "", CATALOG),
    ("workbook tangle", "dir", &[]),
    ("workbook query", "", &[]),
    ("replay", "from json", &[STORE, "verbose root catalog"]),
    ("session list", "json", &[STORE]),
    ("session runs", "json", &[STORE]),
    ("session show", "json", &[STORE]),
    ("session resume", "", RESUME),
    ("session fork", "json", &[STORE]),
    ("session export", "", &[STORE]),
    ("session import", "as json", &[STORE]),
    ("session release", "all", &[STORE]),
    ("session rm", "", &[STORE]),
    (
        "eval",
        "against baseline check dialect filter fresh jobs json model out \
         preamble record recorded repeat resume save-transcripts",
        &[ENDPOINT, "verbose catalog agents agent"],
    ),
    ("trace show", "run json", &[STORE]),
    ("trace query", "", &[STORE]),
    ("trace digest", "json", &[STORE]),
    ("trace feed", "json", &[STORE]),
    ("telemetry", "json", &[STORE]),
    ("ledger verify", "run key json", &[STORE]),
    ("ledger key", "", &[STORE]),
    ("vars get", "", &[STORE]),
    ("vars set", "secret host", &[STORE]),
    ("vars list", "secret json", &[STORE]),
    ("vars rm", "secret", &[STORE]),
    ("memory list", "json", &[STORE]),
    ("memory search", "json", &[STORE]),
    ("memory add", "", &[STORE]),
    ("memory remove", "", &[STORE]),
    ("token new", "scope", &[STORE]),
    ("token list", "json", &[STORE]),
    ("token revoke", "", &[STORE]),
    ("store copy", "json", &[]),
    ("store check", "json", &[]),
    ("store vacuum", "json", &[]),
    ("store stats", "json", &[]),
    ("prune", "dry-run json", &[]),
    ("demo", "list", &[]),
    ("init", "provider base-url api-key-env model no-test", &[]),
    ("doctor", "json", &[MODEL, ENDPOINT, SEARCH, "allow-host", STORE, PROCESS, "catalog"]),
    ("trust", "", &[]),
    ("untrust", "", &[]),
    ("status", "json", &[]),
    ("config show", "origin json", ALL),
    ("completions", "", &[]),
];

const RESUME: &[&str] = &[
    MODEL,
    ENDPOINT,
    "record",
    LIMITS,
    AI,
    SEARCH,
    WRITE,
    "allow-host",
    POLICY,
    STORE,
    PROCESS,
    "catalog agents agent",
];
const ALL: &[&str] = &[
    MODEL,
    ENDPOINT,
    "record",
    LIMITS,
    AI,
    SEARCH,
    WRITE,
    "allow-host",
    POLICY,
    "session",
    STORE,
    PROCESS,
    "catalog agents agent",
];
const SERVE: &[&str] = &[
    MODEL,
    ENDPOINT,
    "record",
    LIMITS,
    AI,
    SEARCH,
    "allow-host",
    POLICY,
    STORE,
    PROCESS,
    "catalog agents",
];
const EXEC: &[&str] = &[
    MODEL,
    ENDPOINT,
    "record",
    "timeout",
    AI,
    SEARCH,
    WRITE,
    "allow-host",
    POLICY,
    "session",
    STORE,
    PROCESS,
    "catalog",
];
const CATALOG: &[&str] = &["root catalog"];
const AGENTS: &[&str] = &["root catalog agents"];

/// Collects the commands that have no subcommands, each with its full name.
fn leaves(command: &clap::Command, name: &str, into: &mut Vec<(String, clap::Command)>) {
    for below in command.get_subcommands() {
        let name = format!("{name} {}", below.get_name()).trim().to_owned();
        if below.has_subcommands() {
            leaves(below, &name, into)
        } else {
            into.push((name, below.clone()))
        }
    }
}

fn all_leaves() -> Vec<(String, clap::Command)> {
    let mut all = Vec::new();
    leaves(&Cli::command(), "", &mut all);
    all
}

fn option_name(arg: &Arg) -> Option<String> {
    arg.get_long().map(str::to_owned).or_else(|| arg.get_short().map(String::from))
}

#[test]
fn a_command_has_the_options_that_it_uses() {
    let leaves = all_leaves();
    let names: Vec<&str> = leaves.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, OPTIONS.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    for ((name, command), (_, own, settings)) in leaves.iter().zip(OPTIONS) {
        let mut expected: Vec<&str> = own.split_whitespace().collect();
        expected.extend(settings.iter().flat_map(|group| group.split_whitespace()));
        let mut found: Vec<String> = command.get_arguments().filter_map(option_name).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn an_option_that_a_command_does_not_use_is_an_error() {
    let parse = |line: &str| Cli::parse_checked(line.split(' ').map(str::to_owned));
    for line in [
        "wattle check --model m a.wat",
        "wattle --model m check a.wat",
        "wattle --write serve",
        "wattle serve --exec",
        "wattle --root x vars list",
        "wattle vars list --root x",
        "wattle session export a --json",
    ] {
        let error = parse(line).err().map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::UnknownArgument), "{line}");
    }
    for line in [
        "wattle --model m",
        "wattle --model m run x",
        "wattle --model m eval tasks",
        "wattle --store s vars list",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
    for (line, verbose) in
        [("wattle -v exec a", true), ("wattle exec -v a", true), ("wattle exec a", false)]
    {
        assert_eq!(parse(line).unwrap().verbose, verbose, "{line}");
    }
}

/// The verbs that may begin the help text of a command or an option.
const VERBS: &str = "Accept Act Add Allow Answer Apply Approve Ask Attempt Call Check Choose \
                     Compact Compare Confine Continue Copy Create Deny Discard Encrypt Evaluate \
                     Find Fork Format Import Keep Limit List Listen Load Open Park Play Print Read \
                     Record Release Remove Replay Require Resume Retry Revoke Run Search Select \
                     Send Serve Set Show Skip Start Stop Summarize Trust Use Verify Work Write";

#[test]
fn a_help_sentence_is_an_imperative_of_at_most_70_characters() {
    let mut commands = all_leaves();
    commands.push(("wattle".to_owned(), Cli::command()));
    commands.extend(
        Cli::command().get_subcommands().map(|group| (group.get_name().to_owned(), group.clone())),
    );
    let short = |name: &str, text: &str| {
        assert!(!text.is_empty() && text.chars().count() <= 70, "{name}: {text}");
        assert!(!text.ends_with('.'), "{name}: {text}");
    };
    let imperative = |name: &str, text: &str| {
        let first = text.split([' ', ',']).next().unwrap_or_default();
        assert!(VERBS.split_whitespace().any(|verb| verb == first), "{name}: {text}");
    };
    for (name, command) in commands {
        let about = command.get_about().unwrap_or_default().to_string();
        short(&name, &about);
        if name != "wattle" {
            imperative(&name, &about);
        }
        for arg in command.get_arguments() {
            let (name, help) = (
                format!("{name} {}", arg.get_id()),
                arg.get_help().unwrap_or_default().to_string(),
            );
            short(&name, &help);
            if !arg.is_positional() {
                imperative(&name, &help);
            }
        }
    }
}
