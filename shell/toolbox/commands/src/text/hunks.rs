//! The output formats of `diff`.

use std::io::{self, Write};
use std::ops::Range;

use similar::{DiffOp, DiffTag, group_diff_ops};

type Lines = [Vec<u8>];

/// Removes the differences that consist only of blank lines.
pub(crate) fn without_blank(ops: &mut [DiffOp], one: &Lines, other: &Lines) {
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

/// Prints the differences in the normal format, with lines such as `2c2`, `< old` and `> new`.
pub(crate) fn normal(
    out: &mut impl Write,
    ops: &[DiffOp],
    one: &Lines,
    other: &Lines,
) -> io::Result<()> {
    let span = |range: &Range<usize>| match range.len() {
        0 => range.start.to_string(),
        1 => (range.start + 1).to_string(),
        _ => format!("{},{}", range.start + 1, range.end),
    };
    for op in ops {
        let letter = match op.tag() {
            DiffTag::Equal => continue,
            DiffTag::Delete => 'd',
            DiffTag::Insert => 'a',
            DiffTag::Replace => 'c',
        };
        let (old, new) = (op.old_range(), op.new_range());
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
pub(crate) fn unified(
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
pub(crate) fn context(
    out: &mut impl Write,
    ops: &[DiffOp],
    one: &Lines,
    other: &Lines,
    around: usize,
) -> io::Result<()> {
    let span = |range: &Range<usize>| match range.len() {
        0 => range.start.to_string(),
        1 => (range.start + 1).to_string(),
        _ => format!("{},{}", range.start + 1, range.end),
    };
    for group in group_diff_ops(ops.to_vec(), around) {
        let (old, new) = cover(&group);
        let has = |tags: &[DiffTag]| group.iter().any(|op| tags.contains(&op.tag()));
        writeln!(out, "***************\n*** {} ****", span(&old))?;
        if has(&[DiffTag::Delete, DiffTag::Replace]) {
            for op in &group {
                let sign = match op.tag() {
                    DiffTag::Equal => "  ",
                    DiffTag::Delete => "- ",
                    _ => "! ",
                };
                put(out, sign, one, op.old_range())?;
            }
        }
        writeln!(out, "--- {} ----", span(&new))?;
        if has(&[DiffTag::Insert, DiffTag::Replace]) {
            for op in &group {
                let sign = match op.tag() {
                    DiffTag::Equal => "  ",
                    DiffTag::Insert => "+ ",
                    _ => "! ",
                };
                put(out, sign, other, op.new_range())?;
            }
        }
    }
    Ok(())
}
