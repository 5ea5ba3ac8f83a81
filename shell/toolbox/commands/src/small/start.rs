//! `env`, `timeout`, `nice`, `nohup`: commands that start another command.

use std::io::Write as _;

use crate::host::Command;
use crate::say::{out, say};

fn bytes(words: &[String]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.clone().into_bytes()).collect()
}

/// Runs `env`: prints the environment, or starts a command in a modified one.
pub(crate) fn env(args: &[String]) -> i32 {
    let mut empty = false;
    let mut end = '\n';
    let mut unset: Vec<&str> = Vec::new();
    let mut folder: Option<&str> = None;
    let mut words =
        args.get(1..).unwrap_or_default().iter().map(String::as_str).collect::<Vec<_>>();
    let mut at = 0;
    while let Some(word) = words.get(at).copied() {
        at += 1;
        let mut value = |inline: Option<&'_ str>| match inline {
            Some(value) if !value.is_empty() => None,
            _ => {
                at += 1;
                words.get(at - 1).copied()
            }
        };
        match word {
            "--" => break,
            "-" | "-i" | "--ignore-environment" => empty = true,
            "-0" | "--null" => end = '\0',
            "-u" | "--unset" => unset.extend(value(None)),
            "-C" | "--chdir" => folder = value(None),
            "-S" | "--split-string" => {
                let Some(text) = value(None) else { break };
                let rest = words.split_off(at.min(words.len()));
                words.extend(text.split_whitespace());
                words.extend(rest);
            }
            _ if word.starts_with("--unset=") => {
                unset.extend(word.split_once('=').map(|(_, name)| name))
            }
            _ if word.starts_with("--chdir=") => {
                folder = word.split_once('=').map(|(_, name)| name)
            }
            _ if word.starts_with("-u") => unset.extend(word.get(2..)),
            _ if word.starts_with('-') => {
                say(
                    "env",
                    format_args!(
                        "unknown option '{word}'; usage: env [-i] [-u NAME] [NAME=VALUE]... [COMMAND [ARG]...]"
                    ),
                );
                return 125;
            }
            _ => {
                at -= 1;
                break;
            }
        }
    }
    let mut variables: Vec<(String, String)> =
        if empty { Vec::new() } else { std::env::vars().collect() };
    variables.retain(|(name, _)| !unset.contains(&name.as_str()));
    let mut rest = words.get(at..).unwrap_or_default();
    while let Some((name, value)) = rest.first().and_then(|word| word.split_once('=')) {
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value.to_owned()));
        rest = rest.get(1..).unwrap_or_default();
    }
    if rest.is_empty() {
        let mut out = out();
        for (name, value) in &variables {
            _ = write!(out, "{name}={value}{end}");
        }
        return i32::from(out.flush().is_err());
    }
    let mut command = Command::new(rest.iter().map(|word| word.as_bytes().to_vec()).collect());
    if let Some(folder) = folder {
        command = command.within(folder);
    }
    command.env = Some(
        variables.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect(),
    );
    command.run()
}

/// Runs `timeout`: starts a command with a time limit.
pub(crate) fn timeout(args: &[String]) -> i32 {
    let mut rest = args.get(1..).unwrap_or_default();
    while let Some(word) = rest.first().filter(|word| word.starts_with('-')) {
        let takes = matches!(word.as_str(), "-k" | "-s" | "--kill-after" | "--signal");
        rest = rest.get(if takes { 2 } else { 1 }..).unwrap_or_default();
    }
    let (Some(length), Some(command)) =
        (rest.first(), rest.get(1..).filter(|command| !command.is_empty()))
    else {
        say("timeout", "missing operand; usage: timeout DURATION COMMAND [ARG]...");
        return 125;
    };
    let Some(seconds) = seconds(length) else {
        say("timeout", format_args!("invalid time interval '{length}'"));
        return 125;
    };
    let mut command = Command::new(bytes(command));
    command.timeout = if seconds == 0.0 { 0 } else { ((seconds * 1000.0) as i64).max(1) };
    command.run()
}

/// Parses a duration, such as `1.5`, `2s`, `3m`, `4h` or `5d`. Returns the number of seconds.
fn seconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..)? {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| number * unit).filter(|seconds| *seconds >= 0.0)
}

/// Runs `nice`: starts a command. All commands have the same priority here.
pub(crate) fn nice(args: &[String]) -> i32 {
    let mut rest = args.get(1..).unwrap_or_default();
    while let Some(word) = rest.first().filter(|word| word.starts_with('-')) {
        let takes = word == "-n" || word == "--adjustment";
        rest = rest.get(if takes { 2 } else { 1 }..).unwrap_or_default();
    }
    if rest.is_empty() {
        crate::say::line(format_args!("0"));
        return 0;
    }
    Command::new(bytes(rest)).run()
}

/// Runs `nohup`: starts a command. Nothing sends a hangup signal here.
pub(crate) fn nohup(args: &[String]) -> i32 {
    match args.get(1..).filter(|rest| !rest.is_empty()) {
        Some(rest) => Command::new(bytes(rest)).run(),
        None => {
            say("nohup", "missing operand; usage: nohup COMMAND [ARG]...");
            125
        }
    }
}
