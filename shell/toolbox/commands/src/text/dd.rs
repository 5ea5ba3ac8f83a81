//! `dd`: copies blocks of bytes from one file to another.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Instant;

use crate::say::{About as _, Failure, ended, open, out};

/// The parsed operands.
struct Copy<'a> {
    from: &'a str,
    to: Option<&'a str>,
    block: u64,
    count: Option<u64>,
    skip: u64,
    seek: u64,
    keep: bool,
    append: bool,
    silent: bool,
    upper: bool,
    lower: bool,
}

/// Runs `dd` and returns its exit status.
pub(crate) fn dd(args: &[String]) -> i32 {
    ended("dd", 1, copied(args).map(|()| 0))
}

fn copied(args: &[String]) -> Result<(), Failure> {
    let start = Instant::now();
    let copy = parse(args)?;
    let bytes = copy.run()?;
    if !copy.silent {
        let whole = bytes / copy.block;
        let part = u64::from(!bytes.is_multiple_of(copy.block));
        let seconds = start.elapsed().as_secs_f64();
        crate::say::note(format_args!(
            "{whole}+{part} records in\n{whole}+{part} records out\n{bytes} bytes copied, {seconds:.3} s"
        ));
    }
    Ok(())
}

fn parse(args: &[String]) -> Result<Copy<'_>, Failure> {
    let mut copy = Copy {
        from: "-",
        to: None,
        block: 512,
        count: None,
        skip: 0,
        seek: 0,
        keep: false,
        append: false,
        silent: false,
        upper: false,
        lower: false,
    };
    for arg in args.iter().skip(1) {
        let (name, value) =
            arg.split_once('=').ok_or_else(|| format!("unrecognized operand '{arg}'"))?;
        match name {
            "if" => copy.from = value,
            "of" => copy.to = Some(value),
            "bs" | "ibs" | "obs" => copy.block = size(value)?.clamp(1, 1 << 30),
            "count" => copy.count = Some(size(value)?),
            "skip" | "iseek" => copy.skip = size(value)?,
            "seek" | "oseek" => copy.seek = size(value)?,
            "status" => copy.silent = value == "none",
            "conv" => {
                for word in value.split(',') {
                    match word {
                        "notrunc" => copy.keep = true,
                        "ucase" => copy.upper = true,
                        "lcase" => copy.lower = true,
                        "fsync" | "fdatasync" | "noerror" | "sync" => {}
                        other => return Err(format!("invalid conversion: '{other}'").into()),
                    }
                }
            }
            "oflag" => copy.append = value.split(',').any(|flag| flag == "append"),
            "iflag" => {}
            other => return Err(format!("unrecognized operand '{other}={value}'").into()),
        }
    }
    Ok(copy)
}

/// Parses a size in bytes, such as `4`, `2k`, `1M` or `512x2`.
fn size(text: &str) -> Result<u64, Failure> {
    let mut total: u64 = 1;
    for part in text.split('x') {
        let digits = part.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit: u64 = match part.get(digits.len()..).unwrap_or_default() {
            "" | "c" => 1,
            "w" => 2,
            "b" => 512,
            "k" | "K" | "KiB" => 1 << 10,
            "kB" | "KB" => 1_000,
            "M" | "MiB" => 1 << 20,
            "MB" => 1_000_000,
            "G" | "GiB" => 1 << 30,
            "GB" => 1_000_000_000,
            _ => return Err(format!("invalid number: '{text}'").into()),
        };
        let number: u64 = digits.parse().map_err(|_| format!("invalid number: '{text}'"))?;
        total = total
            .checked_mul(number)
            .and_then(|total| total.checked_mul(unit))
            .ok_or_else(|| format!("invalid number: '{text}'"))?;
    }
    Ok(total)
}

impl Copy<'_> {
    /// Copies the bytes and returns their number.
    fn run(&self) -> Result<u64, Failure> {
        let mut input = open(self.from).about(format_args!("failed to open '{}'", self.from))?;
        io::copy(&mut input.by_ref().take(self.skip.saturating_mul(self.block)), &mut io::sink())?;
        let mut input =
            input.take(self.count.map_or(u64::MAX, |count| count.saturating_mul(self.block)));
        let mut output: Box<dyn Write> = match self.to {
            None => Box::new(out()),
            Some(path) => {
                let keep = self.keep || self.append || self.seek > 0;
                let file = OpenOptions::new()
                    .create(true)
                    .write(true)
                    .append(self.append)
                    .truncate(!keep)
                    .open(path);
                let mut file = file.about(format_args!("failed to open '{path}'"))?;
                if self.seek > 0 && !self.append {
                    let start = self.seek.saturating_mul(self.block);
                    if !self.keep {
                        file.set_len(start)?;
                    }
                    file.seek(SeekFrom::Start(start))?;
                }
                Box::new(file)
            }
        };
        let mut buffer = vec![0; 1 << 16];
        let mut total = 0;
        loop {
            let read = input.read(&mut buffer)?;
            let Some(bytes) = buffer.get_mut(..read).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            if self.upper {
                bytes.make_ascii_uppercase();
            } else if self.lower {
                bytes.make_ascii_lowercase();
            }
            output.write_all(bytes)?;
            total += read as u64;
        }
        output.flush()?;
        Ok(total)
    }
}
