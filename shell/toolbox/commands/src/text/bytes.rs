//! `strings`, `hexdump`, `xxd`: print bytes as text.

use std::io::{self, Write};

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{About as _, Failure, ended, out, whole};

fn gathered(line: &Line) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    for file in line.operands_or(&["-"]) {
        bytes.extend(whole(file).about(file)?);
    }
    Ok(bytes)
}

fn run(
    name: &str,
    args: &[String],
    known: &'static [Known],
    write: impl Fn(&Line, &mut dyn Write) -> Result<(), Failure>,
) -> i32 {
    let done = || {
        let mut out = out();
        write(&options::parse(args, known, true)?, &mut out)?;
        out.flush()?;
        Ok(0)
    };
    ended(name, 1, done())
}

fn number(line: &Line, option: &str, otherwise: usize) -> Result<usize, Failure> {
    let read = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let Some(text) = line.value(option) else { return Ok(otherwise) };
    read(text).map_err(|_| format!("invalid number '{text}'").into())
}

const STRINGS: &[Known] = &[
    ('n', "bytes", Value),
    ('a', "all", Nothing),
    ('t', "radix", Value),
    ('f', "print-file-name", Nothing),
];

/// Runs `strings`: prints the sequences of printable characters in binary data.
pub(crate) fn strings(args: &[String]) -> i32 {
    run("strings", args, STRINGS, |line, out| {
        let least = number(line, "n", 4)?;
        let bytes = gathered(line)?;
        let mut at = 0;
        for part in bytes.split(|byte| !(b' '..=b'~').contains(byte) && *byte != b'\t') {
            if part.len() >= least {
                match line.value("t") {
                    Some("d") => write!(out, "{at:7} ")?,
                    Some("x") => write!(out, "{at:7x} ")?,
                    Some("o") => write!(out, "{at:7o} ")?,
                    _ => {}
                }
                out.write_all(part)?;
                out.write_all(b"\n")?;
            }
            at += part.len() + 1;
        }
        Ok(())
    })
}

const HEXDUMP: &[Known] = &[
    ('C', "canonical", Nothing),
    ('v', "no-squeezing", Nothing),
    ('n', "length", Value),
    ('s', "skip", Value),
    ('x', "", Nothing),
];

/// Runs `hexdump`: prints bytes in hexadecimal, and with `-C` also as characters.
pub(crate) fn hexdump(args: &[String]) -> i32 {
    let canonical = args.first().is_some_and(|name| name == "hd");
    run("hexdump", args, HEXDUMP, |line, out| {
        let canonical = canonical || line.has("C");
        let mut bytes = gathered(line)?;
        let skip = number(line, "s", 0)?.min(bytes.len());
        bytes.drain(..skip);
        bytes.truncate(number(line, "n", usize::MAX)?);
        Ok(dump(out, &bytes, skip, canonical, line.has("v"))?)
    })
}

fn dump(
    out: &mut dyn Write,
    bytes: &[u8],
    skip: usize,
    canonical: bool,
    all: bool,
) -> io::Result<()> {
    let mut before: Option<&[u8]> = None;
    let mut starred = false;
    for (n, row) in bytes.chunks(16).enumerate() {
        if before == Some(row) && row.len() == 16 && !all {
            if !starred {
                out.write_all(b"*\n")?;
            }
            starred = true;
            continue;
        }
        starred = false;
        before = Some(row);
        let at = skip + n * 16;
        if !canonical {
            write!(out, "{at:07x}")?;
            for pair in row.chunks(2) {
                let high = pair.get(1).copied().unwrap_or(0);
                write!(out, " {high:02x}{:02x}", pair.first().copied().unwrap_or(0))?;
            }
            let missing = 8 - row.len().div_ceil(2);
            writeln!(out, "{:1$}", "", missing * 5)?;
            continue;
        }
        write!(out, "{at:08x} ")?;
        for n in 0..16 {
            let gap = if n == 8 { " " } else { "" };
            match row.get(n) {
                Some(byte) => write!(out, "{gap} {byte:02x}")?,
                None => write!(out, "{gap}   ")?,
            }
        }
        writeln!(out, "  |{}|", letters(row))?;
    }
    match bytes.len() {
        0 => Ok(()),
        length if canonical => writeln!(out, "{:08x}", skip + length),
        length => writeln!(out, "{:07x}", skip + length),
    }
}

fn letters(row: &[u8]) -> String {
    row.iter()
        .map(|byte| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' })
        .collect()
}

const XXD: &[Known] = &[
    ('p', "ps", Nothing),
    ('r', "revert", Nothing),
    ('l', "len", Value),
    ('s', "seek", Value),
    ('c', "cols", Value),
    ('g', "", Value),
    ('u', "", Nothing),
];

/// Runs `xxd`: prints bytes in hexadecimal, or converts a dump back with `-r`.
pub(crate) fn xxd(args: &[String]) -> i32 {
    run("xxd", args, XXD, |line, out| {
        let mut bytes = gathered(line)?;
        if line.has("r") {
            return Ok(back(out, &bytes, line.has("p"))?);
        }
        let skip = number(line, "s", 0)?.min(bytes.len());
        bytes.drain(..skip);
        bytes.truncate(number(line, "l", usize::MAX)?);
        let hex =
            |byte: &u8| if line.has("u") { format!("{byte:02X}") } else { format!("{byte:02x}") };
        let width = number(line, "c", if line.has("p") { 30 } else { 16 })?.clamp(1, 256);
        let group = number(line, "g", 2)?.clamp(1, 256);
        for (n, row) in bytes.chunks(width).enumerate() {
            if line.has("p") {
                writeln!(out, "{}", row.iter().map(hex).collect::<String>())?;
            } else {
                let groups: Vec<String> =
                    row.chunks(group).map(|part| part.iter().map(hex).collect()).collect();
                let length = width * 2 + width.div_ceil(group);
                writeln!(
                    out,
                    "{:08x}: {:length$} {}",
                    skip + n * width,
                    groups.join(" "),
                    letters(row)
                )?;
            }
        }
        Ok(())
    })
}

/// Converts a dump back to bytes.
fn back(out: &mut dyn Write, dump: &[u8], plain: bool) -> io::Result<()> {
    for row in String::from_utf8_lossy(dump).lines() {
        let row = match row.split_once(':') {
            Some((_, row)) if !plain => row.trim_start().split("  ").next().unwrap_or_default(),
            _ => row,
        };
        let digits: Vec<u32> = row.chars().filter_map(|letter| letter.to_digit(16)).collect();
        for pair in digits.chunks_exact(2) {
            out.write_all(&[pair.iter().fold(0, |byte, digit| byte * 16 + *digit as u8)])?;
        }
    }
    Ok(())
}
