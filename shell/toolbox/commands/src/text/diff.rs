//! `diff`: prints the differences between two files or folders.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

use similar::{Algorithm, capture_diff_slices};

use super::hunks;
use crate::clock;
use crate::options::Takes::{Maybe, Nothing, Value};
use crate::options::{self, Known};
use crate::say::{out, say, whole, words};

const OPTIONS: &[Known] = &[
    ('u', "", Nothing),
    ('U', "unified", Value),
    ('c', "", Nothing),
    ('C', "context", Value),
    ('q', "brief", Nothing),
    ('s', "report-identical-files", Nothing),
    ('r', "recursive", Nothing),
    ('N', "new-file", Nothing),
    ('i', "ignore-case", Nothing),
    ('w', "ignore-all-space", Nothing),
    ('b', "ignore-space-change", Nothing),
    ('Z', "ignore-trailing-space", Nothing),
    ('B', "ignore-blank-lines", Nothing),
    ('a', "text", Nothing),
    ('d', "minimal", Nothing),
    ('L', "label", Value),
    ('x', "exclude", Value),
    ('\0', "strip-trailing-cr", Nothing),
    ('\0', "color", Maybe),
    ('\0', "normal", Nothing),
];

/// The output format.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Normal,
    Unified(usize),
    Context(usize),
    Brief,
}

struct Diff {
    form: Form,
    same_told: bool,
    recursive: bool,
    new_files: bool,
    ignore_case: bool,
    no_space: bool,
    less_space: bool,
    no_trailing: bool,
    no_blank_lines: bool,
    no_returns: bool,
    labels: Vec<String>,
    exclude: Vec<regex::bytes::Regex>,
    /// The options as given, which are repeated in the header of each file in a folder.
    command: String,
    trouble: bool,
}

/// Runs `diff`. Returns 0 if nothing differs, 1 if something differs, or 2 after an error.
pub(crate) fn diff(args: &[String]) -> i32 {
    match prepared(args.get(1..).unwrap_or_default()) {
        Ok(status) => status,
        Err(why) => {
            say("diff", why);
            2
        }
    }
}

fn prepared(args: &[String]) -> Result<i32, String> {
    // `--unified` and `--context` may lack a number, but `Takes::Value` requires a value.
    let args: Vec<String> = args
        .iter()
        .map(|word| {
            if word == "--unified" {
                "-u".to_owned()
            } else if word == "--context" {
                "-c".to_owned()
            } else {
                word.clone()
            }
        })
        .collect();
    let line = options::read(&args, OPTIONS, true)?;
    let [left, right] = line.operands.as_slice() else {
        return Err("two files or folders are compared; usage: diff [-uqrNiwbB] [-U N] LEFT RIGHT"
            .to_owned());
    };
    let number = |text: &str| text.parse().map_err(|_| format!("invalid context length '{text}'"));
    let form = match (line.value("U"), line.value("C")) {
        _ if line.has("q") => Form::Brief,
        (Some(lines), _) => Form::Unified(number(lines)?),
        (None, Some(lines)) => Form::Context(number(lines)?),
        _ if line.has("u") => Form::Unified(3),
        _ if line.has("c") => Form::Context(3),
        _ => Form::Normal,
    };
    let values = |name: &str| {
        line.options
            .iter()
            .filter(|found| line.name(found) == name)
            .filter_map(|found| found.value.clone())
            .collect::<Vec<_>>()
    };
    let mut diff = Diff {
        form,
        same_told: line.has("s"),
        recursive: line.has("r"),
        new_files: line.has("N"),
        ignore_case: line.has("i"),
        no_space: line.has("w"),
        less_space: line.has("b"),
        no_trailing: line.has("Z"),
        no_blank_lines: line.has("B"),
        no_returns: line.has("strip-trailing-cr"),
        labels: values("L"),
        exclude: values("x")
            .iter()
            .map(|glob| crate::pattern::names(glob, false))
            .collect::<Result<_, _>>()?,
        command: args
            .iter()
            .filter(|word| word.starts_with('-') && word.len() > 1)
            .map(|word| format!("{word} "))
            .collect(),
        trouble: false,
    };
    let mut out = out();
    let (mut left, mut right) = (left.clone(), right.clone());
    let folder = |path: &str| path != "-" && fs::metadata(path).is_ok_and(|found| found.is_dir());
    let below = |folder: &str, file: &str| {
        format!("{}/{}", folder.trim_end_matches('/'), file.rsplit('/').next().unwrap_or(file))
    };
    match (folder(&left), folder(&right)) {
        (true, false) => left = below(&left, &right),
        (false, true) => right = below(&right, &left),
        _ => {}
    }
    let differs = if folder(&left) && folder(&right) {
        diff.folders(&mut out, &left, &right)
    } else {
        diff.files(&mut out, &left, &right, false)
    };
    let differs = differs.map_err(|error| words(&error))?;
    out.flush().map_err(|error| words(&error))?;
    Ok(if diff.trouble { 2 } else { i32::from(differs) })
}

impl Diff {
    fn folders(&mut self, out: &mut impl Write, left: &str, right: &str) -> std::io::Result<bool> {
        let list = |path: &str| -> std::io::Result<BTreeSet<String>> {
            let names = fs::read_dir(path)?
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            names.collect()
        };
        let (lefts, rights) = (list(left)?, list(right)?);
        let mut differs = false;
        for name in lefts.union(&rights) {
            if self.exclude.iter().any(|pattern| pattern.is_match(name.as_bytes())) {
                continue;
            }
            let join = |folder: &str| format!("{}/{name}", folder.trim_end_matches('/'));
            let (one, other) = (join(left), join(right));
            let kind = |path: &str| fs::metadata(path).map(|found| found.is_dir());
            let both = lefts.contains(name) && rights.contains(name);
            if !both && !self.new_files {
                let folder = if lefts.contains(name) { left } else { right };
                writeln!(out, "Only in {}: {name}", folder.trim_end_matches('/'))?;
                differs = true;
                continue;
            }
            let kinds = (kind(&one).unwrap_or(false), kind(&other).unwrap_or(false));
            differs |= match kinds {
                (true, true) if self.recursive => self.folders(out, &one, &other)?,
                (true, true) => {
                    writeln!(out, "Common subdirectories: {one} and {other}")?;
                    false
                }
                (true, false) | (false, true) if both => {
                    let word = |folder| if folder { "directory" } else { "regular file" };
                    writeln!(
                        out,
                        "File {one} is a {} while file {other} is a {}",
                        word(kinds.0),
                        word(kinds.1)
                    )?;
                    true
                }
                _ => self.files(out, &one, &other, true)?,
            };
        }
        Ok(differs)
    }

    fn files(
        &mut self,
        out: &mut impl Write,
        left: &str,
        right: &str,
        below: bool,
    ) -> std::io::Result<bool> {
        let mut read = |path: &str| match whole(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if self.new_files && error.kind() == std::io::ErrorKind::NotFound => {
                Some(Vec::new())
            }
            Err(error) => {
                say("diff", format_args!("{path}: {}", words(&error)));
                self.trouble = true;
                None
            }
        };
        let (Some(one), Some(other)) = (read(left), read(right)) else { return Ok(false) };
        if one == other {
            if self.same_told {
                writeln!(out, "Files {left} and {right} are identical")?;
            }
            return Ok(false);
        }
        if self.form != Form::Brief && (one.contains(&0) || other.contains(&0)) {
            writeln!(out, "Binary files {left} and {right} differ")?;
            return Ok(true);
        }
        let lines = |bytes: &[u8]| {
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let (one, other) = (lines(&one), lines(&other));
        let keys = |lines: &[Vec<u8>]| lines.iter().map(|line| self.key(line)).collect::<Vec<_>>();
        let mut ops = capture_diff_slices(Algorithm::Myers, &keys(&one), &keys(&other));
        if self.no_blank_lines {
            hunks::without_blank(&mut ops, &one, &other);
        }
        if ops.iter().all(|op| matches!(op, similar::DiffOp::Equal { .. })) {
            return Ok(false);
        }
        if self.form == Form::Brief {
            writeln!(out, "Files {left} and {right} differ")?;
            return Ok(true);
        }
        if below {
            writeln!(out, "diff {}{left} {right}", self.command)?;
        }
        let head = |n: usize, path: &str| {
            self.labels.get(n).cloned().unwrap_or_else(|| format!("{path}\t{}", moment(path)))
        };
        match self.form {
            Form::Unified(around) => {
                writeln!(out, "--- {}\n+++ {}", head(0, left), head(1, right))?;
                hunks::unified(out, &ops, &one, &other, around)?;
            }
            Form::Context(around) => {
                writeln!(out, "*** {}\n--- {}", head(0, left), head(1, right))?;
                hunks::context(out, &ops, &one, &other, around)?;
            }
            _ => hunks::normal(out, &ops, &one, &other)?,
        }
        Ok(true)
    }

    /// Normalizes a line for comparison, as the options specify.
    fn key(&self, line: &[u8]) -> Vec<u8> {
        let mut key = line.to_vec();
        if self.no_returns && key.ends_with(b"\r\n") {
            key.truncate(key.len() - 2);
            key.push(b'\n');
        }
        if self.ignore_case {
            key = String::from_utf8_lossy(&key).to_lowercase().into_bytes();
        }
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        if self.no_space {
            key.retain(|byte| !blank(byte));
        } else if self.less_space {
            let mut made: Vec<u8> = Vec::with_capacity(key.len());
            for byte in &key {
                match (blank(byte), made.last() == Some(&b' ')) {
                    (true, true) => {}
                    (true, false) => made.push(b' '),
                    (false, _) => made.push(*byte),
                }
            }
            key = made.trim_ascii_end().to_vec();
        } else if self.no_trailing {
            key = key.trim_ascii_end().to_vec();
        }
        key
    }
}

fn moment(path: &str) -> String {
    let (seconds, nanos) =
        fs::metadata(path).and_then(|found| found.modified()).map(clock::epoch).unwrap_or_default();
    clock::format(&clock::moment(seconds, nanos), "%Y-%m-%d %H:%M:%S.%N %z")
}
