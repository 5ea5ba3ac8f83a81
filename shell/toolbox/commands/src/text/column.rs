//! `column`: prints the input's words as a table, or its lines side by side.

use std::io::Write as _;

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known};
use crate::say::{About as _, Failure, ended, out, whole};

const OPTIONS: &[Known] = &[
    ('t', "table", Nothing),
    ('s', "separator", Value),
    ('o', "output-separator", Value),
    ('c', "output-width", Value),
    ('n', "", Nothing),
    ('x', "fillrows", Nothing),
    ('N', "table-columns", Value),
    ('R', "table-right", Value),
    ('L', "keep-empty-lines", Nothing),
];

/// Runs `column` and returns its exit status.
pub(crate) fn column(args: &[String]) -> i32 {
    ended("column", 1, arranged(args).map(|()| 0))
}

fn arranged(args: &[String]) -> Result<(), Failure> {
    let line = options::parse(args, OPTIONS, true)?;
    let mut text = String::new();
    for file in line.operands_or(&["-"]) {
        let bytes = whole(file).about(file)?;
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    let rows: Vec<&str> = text.lines().filter(|row| !row.trim().is_empty()).collect();
    let mut out = out();
    if !line.has("t") {
        let why = |text: &str| format!("invalid columns argument: '{text}'");
        let most = line.parsed("c", why)?.unwrap_or(80);
        beside(&mut out, &rows, most, line.has("x"))?;
        return Ok(out.flush()?);
    }
    let between = line.value("o").unwrap_or("  ");
    let mut table: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| match line.value("s") {
            // Adjacent separators count as one only if no separator is given.
            Some(letters) => row.split(|letter| letters.contains(letter)).collect(),
            None => row.split_whitespace().collect(),
        })
        .collect();
    if let Some(names) = line.value("N") {
        table.insert(0, names.split(',').collect());
    }
    let width = |text: &str| text.chars().count();
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|n| {
            table.iter().filter_map(|row| row.get(n)).map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    let right: Vec<usize> = line
        .value("R")
        .unwrap_or_default()
        .split(',')
        .filter_map(|number| number.parse::<usize>().ok())
        .collect();
    for row in &table {
        for (n, (cell, most)) in row.iter().zip(&widths).enumerate() {
            if n > 0 {
                _ = out.write_all(between.as_bytes());
            }
            let fill = " ".repeat(most - width(cell));
            let right = right.contains(&(n + 1));
            if right {
                _ = out.write_all(fill.as_bytes());
            }
            _ = out.write_all(cell.as_bytes());
            if !right && n + 1 < row.len() {
                _ = out.write_all(fill.as_bytes());
            }
        }
        // A row with missing cells is padded to the width of the table.
        if row.len() < columns {
            let rest: usize = widths.iter().skip(row.len()).map(|most| most + between.len()).sum();
            let last = row
                .len()
                .checked_sub(1)
                .and_then(|n| Some(widths.get(n)? - width(row.get(n)?)))
                .unwrap_or(0);
            let trailing = widths.last().map_or(0, |_| rest + last);
            _ = write!(out, "{:trailing$}", "");
        }
        _ = out.write_all(b"\n");
    }
    Ok(out.flush()?)
}

/// Prints input lines in columns of equal width, padded with tabs. `most` is the output's width.
fn beside(
    out: &mut impl std::io::Write,
    rows: &[&str],
    most: usize,
    by_row: bool,
) -> std::io::Result<()> {
    let longest = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
    let width = (longest / 8 + 1) * 8;
    let columns = (most / width).max(1);
    let lines = rows.len().div_ceil(columns);
    for line in 0..lines {
        let chosen: Vec<&&str> = if by_row {
            rows.iter().skip(line * columns).take(columns).collect()
        } else {
            rows.iter().skip(line).step_by(lines.max(1)).collect()
        };
        for (n, entry) in chosen.iter().enumerate() {
            out.write_all(entry.as_bytes())?;
            if n + 1 < chosen.len() {
                let tabs = (width - entry.chars().count()).div_ceil(8);
                out.write_all("\t".repeat(tabs).as_bytes())?;
            }
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}
