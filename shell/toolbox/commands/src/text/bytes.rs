//! `strings`, `hexdump`, `xxd`: print bytes as text.

use std::io::{self, Write};

use crate::options::Takes::{Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{out, say, whole, words};

fn gathered(operands: &[String]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let standard = ["-".to_owned()];
    for file in if operands.is_empty() { &standard } else { operands } {
        bytes.extend(whole(file).map_err(|error| format!("{file}: {}", words(&error)))?);
    }
    Ok(bytes)
}

fn run(
    name: &str,
    args: &[String],
    known: &'static [Known],
    write: impl Fn(&Line, &mut dyn Write) -> Result<(), String>,
) -> i32 {
    let mut out = out();
    let done = options::read(args.get(1..).unwrap_or_default(), known, true)
        .and_then(|line| write(&line, &mut out));
    match done.and_then(|()| out.flush().map_err(|error| words(&error))) {
        Ok(()) => 0,
        Err(why) => {
            say(name, why);
            1
        }
    }
}

fn number(line: &Line, option: &str, otherwise: usize) -> Result<usize, String> {
    let read = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16),
        None => text.parse(),
    };
    line.value(option)
        .map_or(Ok(otherwise), |text| read(text).map_err(|_| format!("invalid number '{text}'")))
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
        let bytes = gathered(&line.operands)?;
        let mut at = 0;
        for part in bytes.split(|byte| !(b' '..=b'~').contains(byte) && *byte != b'\t') {
            if part.len() >= least {
                let written = match line.value("t") {
                    Some("d") => write!(out, "{at:7} "),
                    Some("x") => write!(out, "{at:7x} "),
                    Some("o") => write!(out, "{at:7o} "),
                    _ => Ok(()),
                };
                written
                    .and_then(|()| out.write_all(part))
                    .and_then(|()| out.write_all(b"\n"))
                    .map_err(|error| words(&error))?;
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
        let mut bytes = gathered(&line.operands)?;
        let skip = number(line, "s", 0)?.min(bytes.len());
        bytes.drain(..skip);
        bytes.truncate(number(line, "n", usize::MAX)?);
        dump(out, &bytes, skip, canonical, line.has("v")).map_err(|error| words(&error))
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
        let mut bytes = gathered(&line.operands)?;
        if line.has("r") {
            return back(out, &bytes, line.has("p")).map_err(|error| words(&error));
        }
        let skip = number(line, "s", 0)?.min(bytes.len());
        bytes.drain(..skip);
        bytes.truncate(number(line, "l", usize::MAX)?);
        let hex =
            |byte: &u8| if line.has("u") { format!("{byte:02X}") } else { format!("{byte:02x}") };
        let width = number(line, "c", if line.has("p") { 30 } else { 16 })?.clamp(1, 256);
        let group = number(line, "g", 2)?.clamp(1, 256);
        for (n, row) in bytes.chunks(width).enumerate() {
            let written = if line.has("p") {
                writeln!(out, "{}", row.iter().map(hex).collect::<String>())
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
                )
            };
            written.map_err(|error| words(&error))?;
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
