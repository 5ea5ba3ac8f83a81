//! The actions `-printf` and `-ls`.

use std::fs::Metadata;
use std::io::{self, Write};
use std::time::UNIX_EPOCH;

use super::expression::Which;
use super::walk::{Here, letter, name, time};
use crate::clock;
use crate::pattern::escaped_code;

/// The maximum width of a field, in characters.
const MAX_WIDTH: usize = 1 << 20;

/// A part of a `-printf` format.
pub(crate) enum Part {
    Text(Vec<u8>),
    /// A directive: its flags and width, its letter, and the letter after `T`, `A` or `C`.
    Field {
        flags: String,
        letter: char,
        time: char,
    },
    /// `\c`: the end of the output.
    Stop,
}

/// Parses a `-printf` format.
pub(crate) fn parse(format: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' && letter != '\\' {
            text.extend(letter.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let Some(next) = letters.next() else {
            text.push(letter as u8);
            break;
        };
        if letter == '\\' {
            match next {
                '\\' => text.push(b'\\'),
                'c' => {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    parts.push(Part::Stop);
                }
                'n' | 't' | 'r' | 'a' | 'b' | 'f' | 'v' | '0'..='7' => {
                    let code = escaped_code(next, &mut letters);
                    text.extend(code.map(|code| code as u32 as u8));
                }
                other => text.extend(format!("\\{other}").bytes()),
            }
            continue;
        }
        if next == '%' {
            text.push(b'%');
            continue;
        }
        let mut flags = String::new();
        let mut directive = next;
        while "-0123456789. +#".contains(directive) {
            flags.push(directive);
            let Some(next) = letters.next() else {
                return Err(format!("the format of -printf ends within a directive: '{format}'"));
            };
            directive = next;
        }
        let time = if "TAC".contains(directive) { letters.next().unwrap_or('c') } else { ' ' };
        if !"pfhPHsdyYmMltTaAcCinugUGkbDFS".contains(directive) {
            return Err(format!("-printf does not know '%{directive}'"));
        }
        parts.push(Part::Text(std::mem::take(&mut text)));
        parts.push(Part::Field { flags, letter: directive, time });
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

/// Prints the current file as the parsed format specifies.
pub(crate) fn put(out: &mut impl Write, parts: &[Part], here: &Here<'_>) -> io::Result<()> {
    for part in parts {
        match part {
            Part::Text(text) => out.write_all(text)?,
            Part::Stop => break,
            Part::Field { flags, letter, time } => {
                let value = field(here, *letter, *time);
                let left = flags.contains('-');
                let flags = flags.trim_start_matches(['-', ' ', '+', '#']);
                let zero = flags.starts_with('0');
                let (width, most) = flags
                    .split_once('.')
                    .map_or((flags, None), |(width, most)| (width, most.parse().ok()));
                let width = width.parse().unwrap_or(0).min(MAX_WIDTH);
                let value: String = value.chars().take(most.unwrap_or(usize::MAX)).collect();
                let padding = width.saturating_sub(value.chars().count());
                match (left, zero) {
                    (true, _) => write!(out, "{value}{}", " ".repeat(padding))?,
                    (false, true) => write!(out, "{}{value}", "0".repeat(padding))?,
                    (false, false) => write!(out, "{}{value}", " ".repeat(padding))?,
                }
            }
        }
    }
    Ok(())
}

fn field(here: &Here<'_>, directive: char, of_time: char) -> String {
    let found = here.found;
    match directive {
        'p' => here.path.to_owned(),
        'f' => name(here.path).to_owned(),
        'h' => match here.path.trim_end_matches('/').rfind('/') {
            Some(end) => here.path.get(..end).unwrap_or_default().to_owned(),
            None => ".".to_owned(),
        },
        'P' => {
            here.path.strip_prefix(here.top).unwrap_or(here.path).trim_start_matches('/').to_owned()
        }
        'H' => here.top.to_owned(),
        's' => found.len().to_string(),
        'd' => here.depth.to_string(),
        'y' => letter(found).to_string(),
        'Y' => std::fs::metadata(here.path).map_or('N', |found| letter(&found)).to_string(),
        'm' => format!("{:o}", mode(found)),
        'M' => mode_text(found),
        'l' => std::fs::read_link(here.path)
            .map_or(String::new(), |target| target.to_string_lossy().into_owned()),
        't' | 'T' | 'a' | 'A' | 'c' | 'C' => moment(here, directive, of_time),
        'k' => found.len().div_ceil(4096).saturating_mul(4).to_string(),
        'b' => found.len().div_ceil(4096).saturating_mul(8).to_string(),
        'n' => "1".to_owned(),
        'u' | 'g' => "user".to_owned(),
        'U' | 'G' => "1000".to_owned(),
        _ => "0".to_owned(),
    }
}

fn moment(here: &Here<'_>, directive: char, letter: char) -> String {
    let which = if matches!(directive, 'a' | 'A') { Which::Read } else { Which::Changed };
    let time = time(here.found, which).unwrap_or(UNIX_EPOCH);
    let (seconds, nanos) = clock::epoch(time);
    let at = clock::utc(time);
    let fraction = format!(".{nanos:09}0");
    match letter {
        ' ' => clock::format(&at, &format!("%a %b %e %H:%M:%S{fraction} %Y")),
        '@' => format!("{seconds}{fraction}"),
        'S' => clock::format(&at, "%S") + &fraction,
        'T' => clock::format(&at, "%H:%M:%S") + &fraction,
        '+' => clock::format(&at, "%Y-%m-%d+%H:%M:%S") + &fraction,
        other => clock::format(&at, &format!("%{other}")),
    }
}

/// Returns the mode of a file, which depends only on the file's type.
pub(crate) fn mode(found: &Metadata) -> u32 {
    match letter(found) {
        'd' => 0o755,
        'l' => 0o777,
        _ => 0o644,
    }
}

/// Returns the mode of a file as `ls -l` prints it.
pub(crate) fn mode_text(found: &Metadata) -> String {
    match letter(found) {
        'd' => "drwxr-xr-x",
        'l' => "lrwxrwxrwx",
        _ => "-rw-r--r--",
    }
    .to_owned()
}

/// Prints a file in the format of `-ls`.
pub(crate) fn list(out: &mut impl Write, here: &Here<'_>) -> io::Result<()> {
    let at = clock::utc(here.found.modified().unwrap_or(UNIX_EPOCH));
    let at = clock::format(&at, "%b %e %H:%M");
    let blocks = here.found.len().div_ceil(4096) * 4;
    writeln!(
        out,
        "{:9} {blocks:6} {} 1 user user {:8} {at} {}",
        0,
        mode_text(here.found),
        here.found.len(),
        here.path
    )
}
