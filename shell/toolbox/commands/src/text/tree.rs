//! `tree`: draws folders as a tree.

use std::fs;
use std::io::{self, Write};

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known};
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
    hidden: bool,
    folders_only: bool,
    whole_paths: bool,
    no_lines: bool,
    marks: bool,
    folders_first: bool,
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
    let line = options::read(args, OPTIONS, true)?;
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
    let mut tree = Tree {
        out: out(),
        hidden: line.has("a"),
        folders_only: line.has("d"),
        whole_paths: line.has("f"),
        no_lines: line.has("i"),
        marks: line.has("F"),
        folders_first: line.has("dirsfirst"),
        most,
        ignored: globs("I")?,
        wanted: globs("P")?,
        folders: 0,
        files: 0,
    };
    let mut status = 0;
    for top in line.operands_or(&["."]) {
        let drawn = match fs::metadata(top) {
            Ok(found) if found.is_dir() => {
                tree.folders += 1;
                writeln!(tree.out, "{top}").and_then(|()| tree.below(top, "", 1))
            }
            _ => {
                status = 2;
                writeln!(tree.out, "{top}  [error opening dir]")
            }
        };
        drawn?;
    }
    if !line.has("noreport") {
        let count = |count: usize, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let mut report = count(tree.folders, "directory", "directories");
        if !tree.folders_only {
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
            let hidden = name.starts_with('.') && !self.hidden;
            let unwanted = !found.is_dir()
                && (self.folders_only || !(self.wanted.is_empty() || any(&self.wanted)));
            if !hidden && !unwanted && !any(&self.ignored) {
                entries.push((name, found));
            }
        }
        if self.folders_first {
            entries.sort_by_key(|(_, found)| !found.is_dir());
        }
        let count = entries.len();
        for (n, (name, found)) in entries.iter().enumerate() {
            let last = n + 1 == count;
            let path = format!("{folder}/{name}");
            if !self.no_lines {
                write!(self.out, "{indent}{} ", if last { "└──" } else { "├──" })?;
            }
            self.out.write_all(if self.whole_paths { path.as_bytes() } else { name.as_bytes() })?;
            if found.is_symlink() {
                let target = fs::read_link(&path)
                    .map_or(String::new(), |target| target.to_string_lossy().into_owned());
                write!(self.out, " -> {target}")?;
            }
            if self.marks && found.is_dir() {
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
