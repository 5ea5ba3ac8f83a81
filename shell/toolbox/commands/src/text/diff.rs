//! `diff`: prints the differences between two files or folders.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::time::UNIX_EPOCH;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use crate::clock;
use crate::options::Takes::{Maybe, Nothing, Value};
use crate::options::{self, Known};
use crate::say::{Failure, ended, names, out, say, whole, words};

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

const USAGE: &str = "two files or folders are compared; usage: diff [-uqrNiwbB] [-U N] LEFT RIGHT";

/// The output format.
#[derive(Clone, Copy, PartialEq)]
enum Form {
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
    ended("diff", 2, prepared(args))
}

fn prepared(args: &[String]) -> Result<i32, Failure> {
    // `--unified` and `--context` may lack a number, but `Takes::Value` requires a value.
    let args = args.iter().map(|word| match word.as_str() {
        "--unified" => "-u".to_owned(),
        "--context" => "-c".to_owned(),
        word => word.to_owned(),
    });
    let args: Vec<String> = args.collect();
    let line = options::parse(&args, OPTIONS, true)?;
    let [left, right] = line.operands.as_slice() else {
        return Err(USAGE.into());
    };
    let number = |name| line.parsed(name, |text| format!("invalid context length '{text}'"));
    let form = match (number("U")?, number("C")?) {
        _ if line.has("q") => Form::Brief,
        (Some(lines), _) => Form::Unified(lines),
        (None, Some(lines)) => Form::Context(lines),
        _ if line.has("u") => Form::Unified(3),
        _ if line.has("c") => Form::Context(3),
        _ => Form::Normal,
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
        labels: line.values("L").map(str::to_owned).collect(),
        exclude: line.globs("x")?,
        command: args
            .iter()
            .filter(|word| word.starts_with('-') && word.len() > 1)
            .map(|word| format!("{word} "))
            .collect(),
        trouble: false,
    };
    let mut out = out();
    let mut left = left.clone();
    let mut right = right.clone();
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
    let differs = differs?;
    out.flush()?;
    Ok(if diff.trouble { 2 } else { i32::from(differs) })
}

impl Diff {
    fn folders(&mut self, out: &mut impl Write, left: &str, right: &str) -> io::Result<bool> {
        let lefts: BTreeSet<String> = names(left)?.into_iter().collect();
        let rights: BTreeSet<String> = names(right)?.into_iter().collect();
        let mut differs = false;
        for name in lefts.union(&rights) {
            if self.exclude.iter().any(|pattern| pattern.is_match(name.as_bytes())) {
                continue;
            }
            let join = |folder: &str| format!("{}/{name}", folder.trim_end_matches('/'));
            let one = join(left);
            let other = join(right);
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
    ) -> io::Result<bool> {
        let mut read = |path: &str| match whole(path) {
            Ok(bytes) => Some(bytes),
            Err(error) if self.new_files && error.kind() == io::ErrorKind::NotFound => {
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
        let one = lines(&one);
        let other = lines(&other);
        let keys = |lines: &[Vec<u8>]| lines.iter().map(|line| self.key(line)).collect::<Vec<_>>();
        let mut ops = capture_diff_slices(Algorithm::Myers, &keys(&one), &keys(&other));
        if self.no_blank_lines {
            without_blank(&mut ops, &one, &other);
        }
        if ops.iter().all(|op| matches!(op, DiffOp::Equal { .. })) {
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
                unified(out, &ops, &one, &other, around)?;
            }
            Form::Context(around) => {
                writeln!(out, "*** {}\n--- {}", head(0, left), head(1, right))?;
                context(out, &ops, &one, &other, around)?;
            }
            _ => normal(out, &ops, &one, &other)?,
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
    let time = fs::metadata(path).and_then(|found| found.modified()).unwrap_or(UNIX_EPOCH);
    clock::format(&clock::utc(time), "%Y-%m-%d %H:%M:%S.%N %z")
}

/// The lines of a file.
type Lines = [Vec<u8>];

/// Removes the differences that consist only of blank lines.
fn without_blank(ops: &mut [DiffOp], one: &Lines, other: &Lines) {
    let blank = |lines: &Lines, range: Range<usize>| {
        lines.get(range).unwrap_or_default().iter().all(|line| line.trim_ascii().is_empty())
    };
    for op in ops {
        if blank(one, op.old_range()) && blank(other, op.new_range()) && op.tag() != DiffTag::Equal
        {
            *op = DiffOp::Equal {
                old_index: op.old_range().start,
                new_index: op.new_range().start,
                len: 0,
            };
        }
    }
}

fn put(out: &mut impl Write, sign: &str, lines: &Lines, range: Range<usize>) -> io::Result<()> {
    for line in lines.get(range).unwrap_or_default() {
        out.write_all(sign.as_bytes())?;
        out.write_all(line)?;
        if line.last() != Some(&b'\n') {
            out.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

/// Formats a range of lines for the normal and the context format.
fn span(range: &Range<usize>) -> String {
    match range.len() {
        0 => range.start.to_string(),
        1 => (range.start + 1).to_string(),
        _ => format!("{},{}", range.start + 1, range.end),
    }
}

/// Prints the differences in the normal format, with lines such as `2c2`, `< old` and `> new`.
fn normal(out: &mut impl Write, ops: &[DiffOp], one: &Lines, other: &Lines) -> io::Result<()> {
    for op in ops {
        let letter = match op.tag() {
            DiffTag::Equal => continue,
            DiffTag::Delete => 'd',
            DiffTag::Insert => 'a',
            DiffTag::Replace => 'c',
        };
        let old = op.old_range();
        let new = op.new_range();
        writeln!(out, "{}{letter}{}", span(&old), span(&new))?;
        put(out, "< ", one, old)?;
        if letter == 'c' {
            out.write_all(b"---\n")?;
        }
        put(out, "> ", other, new)?;
    }
    Ok(())
}

/// Returns the line ranges that a group of differences covers in the old and the new file.
fn cover(group: &[DiffOp]) -> (Range<usize>, Range<usize>) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return (0..0, 0..0) };
    (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end)
}

/// Prints the differences in the unified format, with headers such as `@@ -1,3 +1,4 @@`.
fn unified(
    out: &mut impl Write,
    ops: &[DiffOp],
    one: &Lines,
    other: &Lines,
    around: usize,
) -> io::Result<()> {
    let span = |range: &Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        length => format!("{},{length}", range.start + 1),
    };
    for group in group_diff_ops(ops.to_vec(), around) {
        let (old, new) = cover(&group);
        writeln!(out, "@@ -{} +{} @@", span(&old), span(&new))?;
        for op in &group {
            match op.tag() {
                DiffTag::Equal => put(out, " ", one, op.old_range())?,
                _ => {
                    put(out, "-", one, op.old_range())?;
                    put(out, "+", other, op.new_range())?;
                }
            }
        }
    }
    Ok(())
}

/// Prints the differences in the context format, with headers such as `*** 1,3 ****`.
fn context(
    out: &mut impl Write,
    ops: &[DiffOp],
    one: &Lines,
    other: &Lines,
    around: usize,
) -> io::Result<()> {
    for group in group_diff_ops(ops.to_vec(), around) {
        let (old, new) = cover(&group);
        let has = |tags: &[DiffTag]| group.iter().any(|op| tags.contains(&op.tag()));
        let sign = |op: &DiffOp| match op.tag() {
            DiffTag::Equal => "  ",
            DiffTag::Delete => "- ",
            DiffTag::Insert => "+ ",
            DiffTag::Replace => "! ",
        };
        writeln!(out, "***************\n*** {} ****", span(&old))?;
        if has(&[DiffTag::Delete, DiffTag::Replace]) {
            group.iter().try_for_each(|op| put(out, sign(op), one, op.old_range()))?;
        }
        writeln!(out, "--- {} ----", span(&new))?;
        if has(&[DiffTag::Insert, DiffTag::Replace]) {
            group.iter().try_for_each(|op| put(out, sign(op), other, op.new_range()))?;
        }
    }
    Ok(())
}
