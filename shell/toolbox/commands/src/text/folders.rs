//! `du`: prints the sizes of folders. There are no blocks, so the size of a file is its length.

use std::fs;
use std::io::Write;

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{Failure, about, ended, names, out};

const OPTIONS: &[Known] = &[
    ('s', "summarize", Nothing),
    ('a', "all", Nothing),
    ('b', "bytes", Nothing),
    ('h', "human-readable", Nothing),
    ('k', "", Nothing),
    ('m', "", Nothing),
    ('c', "total", Nothing),
    ('d', "max-depth", Value),
    ('\0', "apparent-size", Nothing),
];

struct Du<W: Write> {
    out: W,
    all: bool,
    most: usize,
    unit: Unit,
    failed: bool,
}

#[derive(Clone, Copy)]
enum Unit {
    Human,
    Of(u64),
}

/// Runs `du` and returns its exit status.
pub(crate) fn du(args: &[String]) -> i32 {
    ended("du", 1, measured(args))
}

fn measured(args: &[String]) -> Result<i32, Failure> {
    let line = options::parse(args, OPTIONS, true)?;
    let most = line.parsed("d", |text| format!("invalid maximum depth '{text}'"))?;
    let most = most.unwrap_or(if line.has("s") { 0 } else { usize::MAX });
    let mut du = Du { out: out(), all: line.has("a"), most, unit: unit(&line), failed: false };
    let total = line.operands_or(&["."]).into_iter().map(|path| du.below(path, 0)).sum();
    if line.has("c") {
        du.line(total, "total");
    }
    Ok(i32::from(du.out.flush().is_err() || du.failed))
}

fn unit(line: &Line) -> Unit {
    if line.has("h") {
        Unit::Human
    } else if line.has("b") {
        Unit::Of(1)
    } else if line.has("m") {
        Unit::Of(1 << 20)
    } else {
        Unit::Of(1 << 10)
    }
}

impl<W: Write> Du<W> {
    fn below(&mut self, path: &str, depth: usize) -> u64 {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) => {
                _ = self.out.flush();
                about("du", &format!("cannot access '{path}'"), &error);
                self.failed = true;
                return 0;
            }
        };
        if !found.is_dir() {
            if depth == 0 || (self.all && depth <= self.most) {
                self.line(found.len(), path);
            }
            return found.len();
        }
        let names = names(path).unwrap_or_else(|error| {
            about("du", &format!("cannot read directory '{path}'"), &error);
            self.failed = true;
            Vec::new()
        });
        let size = names
            .iter()
            .map(|name| self.below(&format!("{}/{name}", path.trim_end_matches('/')), depth + 1))
            .sum();
        if depth <= self.most {
            self.line(size, path);
        }
        size
    }

    fn line(&mut self, size: u64, name: &str) {
        let size = match self.unit {
            Unit::Of(unit) => size.div_ceil(unit).to_string(),
            Unit::Human => human(size),
        };
        _ = writeln!(self.out, "{size}\t{name}");
    }
}

/// Formats a size in a human-readable unit, rounded up.
fn human(size: u64) -> String {
    let mut number = size as f64;
    for unit in ["", "K", "M", "G", "T"] {
        if number < 1024.0 || unit == "T" {
            return match unit {
                "" => size.to_string(),
                _ if number < 10.0 => format!("{:.1}{unit}", (number * 10.0).ceil() / 10.0),
                _ => format!("{:.0}{unit}", number.ceil()),
            };
        }
        number /= 1024.0;
    }
    size.to_string()
}
