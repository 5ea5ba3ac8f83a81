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
                     Find Fork Format Import Keep Limit List Listen Load Open Park Play Print Read \
                     Record Release Remove Replay Require Resume Retry Revoke Run Search Select \
                     Send Serve Set Show Skip Start Stop Summarize Trust Use Verify Work Write";

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
