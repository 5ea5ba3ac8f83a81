//! `stat`, `chmod`: commands for file metadata.

use std::fs::{self, Metadata};
use std::io::Write as _;
use std::time::UNIX_EPOCH;

use crate::clock;
use crate::find;
use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known};
use crate::say::{Failure, about, ended, out, say};

const STAT: &[Known] = &[
    ('c', "format", Value),
    ('\0', "printf", Value),
    ('L', "dereference", Nothing),
    ('t', "terse", Nothing),
];

/// Runs `stat`: prints a file's size, type and times.
pub(crate) fn stat(args: &[String]) -> i32 {
    ended("stat", 1, shown(args))
}

fn shown(args: &[String]) -> Result<i32, Failure> {
    let line = options::parse(args, STAT, true)?;
    if line.operands.is_empty() {
        return Err("missing operand; usage: stat [-L] [-c FORMAT] FILE...".into());
    }
    let (format, end) = match (line.value("printf"), line.value("c")) {
        (Some(format), _) => (crate::awk::unescape(format), ""),
        (None, Some(format)) => (format.to_owned(), "\n"),
        (None, None) => (WHOLE.to_owned(), "\n"),
    };
    let mut status = 0;
    let mut out = out();
    for path in &line.operands {
        let found = if line.has("L") { fs::metadata(path) } else { fs::symlink_metadata(path) };
        match found {
            Ok(found) => {
                let text = filled(&format, path, &found);
                if write!(out, "{text}{end}").is_err() {
                    return Ok(1);
                }
            }
            Err(error) => {
                _ = out.flush();
                about("stat", &format!("cannot statx '{path}'"), &error);
                status = 1;
            }
        }
    }
    Ok(if out.flush().is_ok() { status } else { 1 })
}

const WHOLE: &str = "  File: %N\n  Size: %s\tBlocks: %b\tIO Block: %o\t%F\nAccess: (0%a/%A)  Uid: (%u/%U)  Gid: (%g/%G)\nAccess: %x\nModify: %y\nChange: %z";

fn filled(format: &str, path: &str, found: &Metadata) -> String {
    let mut out = String::new();
    let mut letters = format.chars();
    let kind = find::letter(found);
    let changed = found.modified().unwrap_or(UNIX_EPOCH);
    let read = found.accessed().unwrap_or(changed);
    let full = |time| clock::format(&clock::utc(time), "%Y-%m-%d %H:%M:%S.%N %z");
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        let part = match letters.next() {
            Some('n') => path.to_owned(),
            Some('N') if kind == 'l' => {
                let target = fs::read_link(path)
                    .map_or(String::new(), |target| target.to_string_lossy().into_owned());
                format!("'{path}' -> '{target}'")
            }
            Some('N') => format!("'{path}'"),
            Some('s') => found.len().to_string(),
            Some('b') => (found.len().div_ceil(4096) * 8).to_string(),
            Some('B') => "512".to_owned(),
            Some('o') => "4096".to_owned(),
            Some('F') => match kind {
                'd' => "directory",
                'l' => "symbolic link",
                _ if found.len() == 0 => "regular empty file",
                _ => "regular file",
            }
            .to_owned(),
            Some('a') => format!("{:o}", find::mode(found)),
            Some('A') => find::mode_text(found),
            Some('f') => {
                let kind = match kind {
                    'd' => 0o040_000,
                    'l' => 0o120_000,
                    _ => 0o100_000,
                };
                format!("{:x}", find::mode(found) | kind)
            }
            Some('u' | 'g') => "1000".to_owned(),
            Some('U' | 'G') => "user".to_owned(),
            Some('h') => "1".to_owned(),
            Some('i' | 'd') => "0".to_owned(),
            Some('Y' | 'Z' | 'W') => clock::epoch(changed).0.to_string(),
            Some('X') => clock::epoch(read).0.to_string(),
            Some('y' | 'z' | 'w') => full(changed),
            Some('x') => full(read),
            Some('%') => "%".to_owned(),
            Some(other) => format!("%{other}"),
            None => "%".to_owned(),
        };
        out.push_str(&part);
    }
    out
}

/// Runs `chmod`. Files have no permissions here, so it only checks that they exist.
pub(crate) fn chmod(args: &[String]) -> i32 {
    let mut operands = args
        .iter()
        .skip(1)
        .filter(|word| !matches!(word.as_str(), "-R" | "-v" | "-c" | "-f" | "--recursive" | "--"));
    if operands.next().is_none() {
        say("chmod", "missing operand; usage: chmod MODE FILE...");
        return 1;
    }
    let mut status = 0;
    for path in operands {
        if let Err(error) = fs::metadata(path) {
            about("chmod", &format!("cannot access '{path}'"), &error);
            status = 1;
        }
    }
    status
}
