//! `cmp`: reports the first difference between two files.

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known};
use crate::say::{About as _, Failure, ended, say, whole};

const OPTIONS: &[Known] = &[
    ('s', "silent", Nothing),
    ('\0', "quiet", Nothing),
    ('l', "verbose", Nothing),
    ('b', "print-bytes", Nothing),
    ('n', "bytes", Value),
];

/// Runs `cmp`. Returns 0 if the files are equal, 1 if they differ, or 2 after an error.
pub(crate) fn cmp(args: &[String]) -> i32 {
    ended("cmp", 2, compared(args))
}

fn compared(args: &[String]) -> Result<i32, Failure> {
    let line = options::parse(args, OPTIONS, true)?;
    let Some(left) = line.operands.first() else {
        return Err("missing operand; usage: cmp [-sl] LEFT [RIGHT]".into());
    };
    let right = line.operands.get(1).map_or("-", String::as_str);
    let silent = line.has("s") || line.has("quiet");
    let why = |text: &str| format!("invalid --bytes value '{text}'");
    let most = line.parsed("n", why)?.unwrap_or(usize::MAX);
    let read = |path: &str| {
        let mut bytes = whole(path).about(path)?;
        bytes.truncate(most);
        Ok::<_, Failure>(bytes)
    };
    let one = read(left)?;
    let other = read(right)?;
    let differing: Vec<(usize, u8, u8)> = one
        .iter()
        .zip(&other)
        .enumerate()
        .filter(|(_, (one, other))| one != other)
        .map(|(at, (one, other))| (at, *one, *other))
        .collect();
    if differing.is_empty() && one.len() == other.len() {
        return Ok(0);
    }
    if silent {
        return Ok(1);
    }
    if line.has("l") {
        let width = one.len().min(other.len()).to_string().len();
        for (at, one, other) in &differing {
            crate::say::line(format_args!("{:width$} {one:3o} {other:3o}", at + 1));
        }
    } else if let Some((at, ..)) = differing.first() {
        let lines = one.iter().take(*at).filter(|byte| **byte == b'\n').count() + 1;
        crate::say::line(format_args!("{left} {right} differ: char {}, line {lines}", at + 1));
        return Ok(1);
    }
    if one.len() != other.len() {
        let (short, length, bytes) = if one.len() < other.len() {
            (left.as_str(), one.len(), &one)
        } else {
            (right, other.len(), &other)
        };
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        match length {
            0 => say("cmp", format_args!("EOF on {short} which is empty")),
            _ if bytes.last() == Some(&b'\n') => {
                say("cmp", format_args!("EOF on {short} after byte {length}, line {lines}"))
            }
            _ => say(
                "cmp",
                format_args!("EOF on {short} after byte {length}, in line {}", lines + 1),
            ),
        }
    }
    Ok(1)
}
