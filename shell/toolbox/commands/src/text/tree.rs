//! `tree`: draws folders as a tree.

use std::fs;
use std::io::{self, Write};

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known, Line};
use crate::pattern;
use crate::say::{Failure, ended, names, out};

const OPTIONS: &[Known] = &[
    ('a', "", Nothing),
    ('d', "", Nothing),
    ('f', "", Nothing),
    ('i', "", Nothing),
    ('L', "", Value),
    ('I', "", Value),
    ('P', "", Value),
    ('F', "", Nothing),
    ('n', "", Nothing),
    ('C', "", Nothing),
    ('\0', "noreport", Nothing),
    ('\0', "dirsfirst", Nothing),
    ('\0', "charset", Value),
];

struct Tree<W: Write> {
    out: W,
    line: Line,
    most: usize,
    ignored: Vec<regex::bytes::Regex>,
    wanted: Vec<regex::bytes::Regex>,
    folders: usize,
    files: usize,
}

/// Runs `tree` and returns its exit status.
pub(crate) fn tree(args: &[String]) -> i32 {
    ended("tree", 1, drawn(args))
}

fn drawn(args: &[String]) -> Result<i32, Failure> {
    let line = options::parse(args, OPTIONS, true)?;
    let most = match line.value("L").map(str::parse) {
        None => usize::MAX,
        Some(Ok(most)) if most > 0 => most,
        Some(_) => return Err("invalid level, must be greater than 0".into()),
    };
    let globs = |option: &str| {
        let text = line.value(option).unwrap_or_default();
        text.split('|')
            .filter(|glob| !glob.is_empty())
            .map(|glob| pattern::names(glob, false))
            .collect::<Result<Vec<_>, _>>()
    };
    let tops: Vec<String> = line.operands_or(&["."]).into_iter().map(str::to_owned).collect();
    let mut tree = Tree {
        out: out(),
        most,
        ignored: globs("I")?,
        wanted: globs("P")?,
        line,
        folders: 0,
        files: 0,
    };
    let mut status = 0;
    for top in tops {
        let drawn = match fs::metadata(&top) {
            Ok(found) if found.is_dir() => {
                tree.folders += 1;
                writeln!(tree.out, "{top}").and_then(|()| tree.below(&top, "", 1))
            }
            _ => {
                status = 2;
                writeln!(tree.out, "{top}  [error opening dir]")
            }
        };
        drawn?;
    }
    if !tree.line.has("noreport") {
        let count = |count: usize, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let mut report = count(tree.folders, "directory", "directories");
        if !tree.line.has("d") {
            report = format!("{report}, {}", count(tree.files, "file", "files"));
        }
        writeln!(tree.out, "\n{report}")?;
    }
    tree.out.flush()?;
    Ok(status)
}

impl<W: Write> Tree<W> {
    fn below(&mut self, folder: &str, indent: &str, depth: usize) -> io::Result<()> {
        let mut entries: Vec<(String, fs::Metadata)> = Vec::new();
        for name in names(folder)? {
            let Ok(found) = fs::symlink_metadata(format!("{folder}/{name}")) else { continue };
            let any = |patterns: &[regex::bytes::Regex]| {
                patterns.iter().any(|pattern| pattern.is_match(name.as_bytes()))
            };
            let hidden = name.starts_with('.') && !self.line.has("a");
            let unwanted = !found.is_dir()
                && (self.line.has("d") || !(self.wanted.is_empty() || any(&self.wanted)));
            if !hidden && !unwanted && !any(&self.ignored) {
                entries.push((name, found));
            }
        }
        if self.line.has("dirsfirst") {
            entries.sort_by_key(|(_, found)| !found.is_dir());
        }
        let count = entries.len();
        for (n, (name, found)) in entries.iter().enumerate() {
            let last = n + 1 == count;
            let path = format!("{folder}/{name}");
            if !self.line.has("i") {
                write!(self.out, "{indent}{} ", if last { "└──" } else { "├──" })?;
            }
            self.out.write_all(if self.line.has("f") {
                path.as_bytes()
            } else {
                name.as_bytes()
            })?;
            if found.is_symlink() {
                let target = fs::read_link(&path)
                    .map_or(String::new(), |target| target.to_string_lossy().into_owned());
                write!(self.out, " -> {target}")?;
            }
            if self.line.has("F") && found.is_dir() {
                self.out.write_all(b"/")?;
            }
            self.out.write_all(b"\n")?;
            if found.is_dir() {
                self.folders += 1;
                if depth < self.most {
                    let indent =
                        format!("{indent}{}", if last { "    " } else { "│\u{a0}\u{a0} " });
                    self.below(&path, &indent, depth + 1)?;
                }
            } else {
                self.files += 1;
            }
        }
        Ok(())
    }
}
