//! `tac`, `rev`, `less`, `sponge`, `dos2unix`, `unix2dos`: simple text filters.

use std::io::{self, Read as _, Write};

use crate::say::{about, open, out, say, whole};

/// Calls `put` with standard output and the bytes of each file, or of standard input if no files are
/// named.
fn each(
    name: &str,
    files: &[String],
    mut put: impl FnMut(&mut dyn Write, &[u8]) -> io::Result<()>,
) -> i32 {
    let mut out = out();
    let mut status = 0;
    let standard = ["-".to_owned()];
    for file in if files.is_empty() { &standard } else { files } {
        match whole(file) {
            Ok(bytes) => {
                if put(&mut out, &bytes).is_err() {
                    return 1;
                }
            }
            Err(error) => {
                about(name, file, &error);
                status = 1;
            }
        }
    }
    if out.flush().is_ok() { status } else { 1 }
}

fn operands(args: &[String]) -> Vec<String> {
    args.iter().skip(1).filter(|word| *word == "-" || !word.starts_with('-')).cloned().collect()
}

/// Runs `tac`: prints the lines in reverse order.
pub(crate) fn tac(args: &[String]) -> i32 {
    if let Some(option) =
        args.iter().skip(1).find(|word| word.starts_with('-') && *word != "-" && *word != "--")
    {
        say("tac", format_args!("option {option} is not known here"));
        return 1;
    }
    each("tac", &operands(args), |out, bytes| {
        let mut end = bytes.len();
        while end > 0 {
            let before = bytes.get(..end - 1).unwrap_or_default();
            let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
            out.write_all(bytes.get(start..end).unwrap_or_default())?;
            end = start;
        }
        Ok(())
    })
}

/// Runs `rev`: prints each line's characters in reverse order.
pub(crate) fn rev(args: &[String]) -> i32 {
    each("rev", &operands(args), |out, bytes| {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, end) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
            let turned: String = String::from_utf8_lossy(text).chars().rev().collect();
            out.write_all(turned.as_bytes())?;
            if end {
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    })
}

/// Runs `less` or `more`: prints the files, because there is no terminal for paging.
pub(crate) fn less(args: &[String]) -> i32 {
    let name = args.first().map_or("less", String::as_str);
    each(name, &operands(args), |out, bytes| out.write_all(bytes))
}

/// Runs `sponge`: reads all input before writing the file.
pub(crate) fn sponge(args: &[String]) -> i32 {
    let mut bytes = Vec::new();
    if let Err(error) = open("-").and_then(|mut input| input.read_to_end(&mut bytes)) {
        about("sponge", "-", &error);
        return 1;
    }
    let append = args.iter().any(|word| word == "-a");
    let done = match operands(args).first() {
        Some(path) => {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .write(true)
                .append(append)
                .truncate(!append)
                .open(path);
            file.and_then(|mut file| file.write_all(&bytes))
                .inspect_err(|error| about("sponge", path, error))
        }
        None => out().write_all(&bytes),
    };
    i32::from(done.is_err())
}

/// Runs `dos2unix`: converts line endings to LF.
pub(crate) fn dos2unix(args: &[String]) -> i32 {
    converted("dos2unix", args, b"\n", |line| line.strip_suffix(b"\r\n"))
}

/// Runs `unix2dos`: converts line endings to CRLF.
pub(crate) fn unix2dos(args: &[String]) -> i32 {
    converted("unix2dos", args, b"\r\n", |line| {
        line.strip_suffix(b"\n").filter(|text| !text.ends_with(b"\r"))
    })
}

/// Converts files in place, or standard input if no files are named. `bare` returns a line without
/// its ending, which becomes `end`, or `None` to keep the line.
fn converted(
    name: &str,
    args: &[String],
    end: &[u8],
    bare: impl Fn(&[u8]) -> Option<&[u8]>,
) -> i32 {
    let make = |bytes: &[u8]| {
        let mut made = Vec::with_capacity(bytes.len() + bytes.len() / 16);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = bare(line);
            made.extend_from_slice(text.unwrap_or(line));
            made.extend_from_slice(text.map_or(b"", |_| end));
        }
        made
    };
    let files = operands(args);
    if files.is_empty() {
        return each(name, &[], |out, bytes| out.write_all(&make(bytes)));
    }
    let mut status = 0;
    for file in &files {
        if let Err(error) = whole(file).and_then(|bytes| std::fs::write(file, make(&bytes))) {
            about(name, file, &error);
            status = 1;
        }
    }
    status
}
