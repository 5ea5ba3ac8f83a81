//! The parts of the help that clap does not write itself.

use std::fmt::Write as _;

use clap::Command;

use crate::output::width;

/// The commands of `wattle`, in groups. Each group has a heading.
pub(super) const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "repl", "serve", "mcp", "exec", "shell"]),
    (
        "Look at runs",
        &[
            "runs",
            "show",
            "changes",
            "apply",
            "discard",
            "replay",
            "session",
            "trace",
            "telemetry",
            "ledger",
        ],
    ),
    ("Write", &["check", "expand", "parse", "catalog", "agents", "skills", "workbook", "eval"]),
    ("Keep", &["vars", "memory", "store", "prune", "token"]),
    (
        "Set up",
        &["init", "demo", "doctor", "config", "trust", "untrust", "status", "completions", "man"],
    ),
];

/// The width of the column of names, in columns.
const NAMES: usize = 15;

/// Makes the help of `wattle` list its commands in groups. Lines have at most `columns` columns.
pub(super) fn in_groups(command: Command, columns: usize) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for below in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            let name = format!("  {:<width$}", below.get_name(), width = NAMES - 2);
            let about = width::wrap(&about, columns.saturating_sub(NAMES));
            let about = about.join(&format!("\n{:NAMES$}", ""));
            let _ = writeln!(text, "{literal}{name}{literal:#}{about}");
        }
        text.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{header}Options:{header:#}\n\
         {{options}}{{after-help}}"
    ))
}

/// The text at the end of the short help of a command with settings.
const MORE: &str = "`--help` describes all settings.";

/// Makes the short help of a command say that the long one describes all settings, if it does.
pub(super) fn about_settings(command: Command, has_settings: bool) -> Command {
    if !has_settings {
        return command;
    }
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let short = [MORE, &own].join("\n");
    command.after_help(short.trim_end().to_owned()).after_long_help(own)
}
