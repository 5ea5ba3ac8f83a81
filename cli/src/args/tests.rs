//! Tests of the options and the help of every command.

use super::*;

/// Writes down the options of every command. `UPDATE=1` updates the file.
#[test]
fn a_command_has_the_options_that_it_uses() {
    let name = |arg: &Arg| {
        let long = arg.get_long().map(|long| format!(" --{long}"));
        long.or_else(|| arg.get_short().map(|short| format!(" -{short}")))
    };
    let line = |(command, parsed): (String, clap::Command)| {
        let options = parsed.get_arguments().filter_map(name).collect::<String>();
        format!("{command}:{options}\n")
    };
    let text: String = leaves(&command(), "").into_iter().map(line).collect();
    wattle_cases::compare("tests/options.txt", &text);
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
        assert_eq!(parse(line).unwrap().is_verbose(), verbose, "{line}");
    }
}

/// The verbs that may begin the help text of a command or an option.
const VERBS: &str = "Accept Act Add Allow Answer Apply Approve Ask Attempt Call Check Choose \
                     Compact Compare Confine Continue Copy Create Deny Discard Encrypt Evaluate \
                     Find Fork Format Import Keep Limit List Listen Load Move Open Park Play Print Read \
                     Record Release Remove Replay Require Resume Retry Revoke Run Search Select \
                     Send Serve Set Show Sign Skip Start Stop Summarize Trust Use Verify Work Write";

#[test]
fn a_help_sentence_is_an_imperative_of_at_most_70_characters() {
    let top = command();
    let mut commands = leaves(&top, "");
    commands
        .extend(top.get_subcommands().map(|group| (group.get_name().to_owned(), group.clone())));
    commands.push(("wattle".to_owned(), top));
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

#[test]
fn every_command_is_in_one_group_of_the_help() {
    let grouped: Vec<&str> = help::GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    let command = command();
    let mut names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let mut sorted = grouped.clone();
    sorted.sort_unstable();
    names.sort_unstable();
    assert_eq!(sorted, names);
}

#[test]
fn the_help_wraps_at_words() {
    let (narrow, wide) = (60, 100);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let help = |columns: usize| {
        let top = help::in_groups(Cli::command(), columns);
        let mut commands = vec![with_options(top.clone(), "").term_width(columns)];
        let below = leaves(&with_options(top, ""), "");
        commands.extend(below.into_iter().map(|(_, below)| below.term_width(columns)));
        let render = |mut command: clap::Command| {
            [command.render_help(), command.render_long_help()].map(|help| help.to_string())
        };
        commands.into_iter().flat_map(render).collect::<Vec<_>>()
    };
    for (narrow_help, wide_help) in help(narrow).iter().zip(help(wide)) {
        for line in narrow_help.lines().filter(|line| !line.starts_with("Usage:")) {
            let is_word = line.split_whitespace().count() == 1;
            assert!(width::width(line) <= narrow || is_word, "{line}");
        }
        assert_eq!(words(narrow_help), words(&wide_help), "no word is cut");
    }
}

#[test]
fn the_short_help_leaves_out_most_settings() {
    let run = |long: bool| {
        let mut command = command();
        let run = command.find_subcommand_mut("run").unwrap();
        if long { run.render_long_help() } else { run.render_help() }.to_string()
    };
    let (short, long) = (run(false), run(true));
    assert!(short.contains("--model") && short.contains("--help` describes all settings"));
    assert!(!short.contains("--search-engine") && short.lines().count() < 45, "{short}");
    assert!(long.contains("[key: search.engine, variable: WATTLE_SEARCH_ENGINE]"), "{long}");
    let words = ["Run:", "Look at runs:", "Set up:"];
    let top = command().render_help().to_string();
    assert!(words.iter().all(|word| top.contains(word)), "{top}");
    let version = command().render_version();
    let commit = version.trim_end().strip_prefix(concat!("wattle ", env!("CARGO_PKG_VERSION")));
    let commit = commit.unwrap().trim().trim_matches(['(', ')']);
    assert!(commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
}
