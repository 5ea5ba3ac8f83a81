//! `xargs`: runs commands with arguments from its input.

use crate::host::Command;
use crate::options::Takes::{Maybe, Nothing, Value};
use crate::options::{self, Known, Line};
use crate::say::{About as _, Failure, ended, say, whole};

const OPTIONS: &[Known] = &[
    ('0', "null", Nothing),
    ('a', "arg-file", Value),
    ('d', "delimiter", Value),
    ('E', "", Value),
    ('e', "eof", Maybe),
    ('I', "", Value),
    ('i', "replace", Maybe),
    ('L', "", Value),
    ('l', "max-lines", Maybe),
    ('n', "max-args", Value),
    ('P', "max-procs", Value),
    ('p', "interactive", Nothing),
    ('r', "no-run-if-empty", Nothing),
    ('s', "max-chars", Value),
    ('t', "verbose", Nothing),
    ('x', "exit", Nothing),
];

/// The default maximum total size of a command's words, in bytes.
const MOST: usize = 96 << 10;

/// The command to run, and the limits on the number and size of its arguments.
struct Plan {
    command: Vec<String>,
    replace: Option<String>,
    most_words: usize,
    most_lines: usize,
    most_bytes: usize,
    verbose: bool,
    empty_input: bool,
}

/// A word of the input. `ends_line` is true for the last word of a line.
struct Word {
    text: Vec<u8>,
    ends_line: bool,
}

/// Runs `xargs` and returns its exit status.
pub(crate) fn xargs(args: &[String]) -> i32 {
    ended("xargs", 1, prepared(args))
}

fn prepared(args: &[String]) -> Result<i32, Failure> {
    let line = options::parse(args, OPTIONS, false)?;
    let replace = line
        .value("I")
        .map(str::to_owned)
        .or_else(|| line.has("i").then(|| line.value("i").unwrap_or("{}").to_owned()));
    let most_lines = if line.has("l") {
        line.parsed("l", |_| "invalid number for -l".to_owned())?.unwrap_or(1)
    } else {
        number(&line, "L")?.unwrap_or(usize::MAX)
    };
    let mut command = line.operands.clone();
    if command.is_empty() {
        command.push("echo".to_owned());
    }
    let plan = Plan {
        command,
        most_words: if replace.is_some() { 1 } else { number(&line, "n")?.unwrap_or(usize::MAX) },
        most_lines,
        most_bytes: number(&line, "s")?.unwrap_or(MOST),
        verbose: line.has("t"),
        empty_input: line.value("a").is_none(),
        replace,
    };
    let input = match line.value("a") {
        Some(path) => whole(path).about(format_args!("Cannot open input file '{path}'"))?,
        None => whole("-")?,
    };
    let mut items = if line.has("0") {
        delimited(&input, 0)
    } else if let Some(text) = line.value("d") {
        delimited(&input, delimiter(text)?)
    } else {
        quoted(&input, plan.replace.is_some())?
    };
    if let Some(end) = line.value("E").or_else(|| line.value("e")).filter(|end| !end.is_empty())
        && let Some(at) = items.iter().position(|word| word.text == end.as_bytes())
    {
        items.truncate(at);
    }
    if items.is_empty() {
        return Ok(if line.has("r") || plan.replace.is_some() {
            0
        } else {
            plan.run(&[]).unwrap_or_else(|status| status)
        });
    }
    let mut status = 0;
    let mut rest = items.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(plan.length(rest));
        match plan.run(now) {
            Ok(0) => {}
            Ok(ended) => status = ended,
            Err(fatal) => return Ok(fatal),
        }
        rest = later;
    }
    Ok(status)
}

impl Plan {
    /// Returns the number of leading words that fit into one command.
    fn length(&self, items: &[Word]) -> usize {
        let mut bytes: usize = self.command.iter().map(|word| word.len() + 1).sum();
        let mut count = 0;
        let mut lines = 0;
        for item in items {
            bytes += item.text.len() + 1;
            if count > 0 && bytes > self.most_bytes {
                break;
            }
            count += 1;
            lines += usize::from(item.ends_line);
            if count >= self.most_words || lines >= self.most_lines {
                break;
            }
        }
        count
    }

    /// Runs one command. Returns 0, or 123 if it fails. `Err` is the status with which xargs exits.
    fn run(&self, items: &[Word]) -> Result<i32, i32> {
        let argv: Vec<Vec<u8>> = match (&self.replace, items.first()) {
            (Some(sign), Some(item)) => {
                let item = String::from_utf8_lossy(&item.text);
                self.command
                    .iter()
                    .map(|word| word.replace(sign.as_str(), &item).into_bytes())
                    .collect()
            }
            _ => self
                .command
                .iter()
                .map(|word| word.clone().into_bytes())
                .chain(items.iter().map(|item| item.text.clone()))
                .collect(),
        };
        if self.verbose {
            let words: Vec<_> = argv.iter().map(|word| String::from_utf8_lossy(word)).collect();
            crate::say::note(format_args!("{}", words.join(" ")));
        }
        let mut command = Command::new(argv);
        command.empty_input = self.empty_input;
        match command.run() {
            0 => Ok(0),
            255 => {
                say(
                    "xargs",
                    format_args!(
                        "{}: exited with status 255; aborting",
                        self.command.first().map_or("", String::as_str)
                    ),
                );
                Err(124)
            }
            status @ (126 | 127) => Err(status),
            _ => Ok(123),
        }
    }
}

fn number(line: &Line, option: &str) -> Result<Option<usize>, Failure> {
    let read = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(format!("value {text} for -{option} option should be >= 1").into()),
        Ok(number) => Ok(number),
    };
    line.value(option).map(read).transpose()
}

fn delimiter(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        [only] => Ok(*only),
        [b'\\', b'n'] => Ok(b'\n'),
        [b'\\', b't'] => Ok(b'\t'),
        [b'\\', b'0'] => Ok(0),
        [b'\\', b'\\'] => Ok(b'\\'),
        _ => Err(format!(
            "Invalid input delimiter specification {text}: the delimiter must be a single character or one of \\n, \\t, \\0"
        )
        .into()),
    }
}

fn delimited(input: &[u8], end: u8) -> Vec<Word> {
    let input = input.strip_suffix(&[end]).unwrap_or(input);
    if input.is_empty() {
        return Vec::new();
    }
    input
        .split(|byte| *byte == end)
        .map(|text| Word { text: text.to_vec(), ends_line: true })
        .collect()
}

/// Splits the input at whitespace that is neither quoted nor escaped, or only at the ends of lines
/// if `lines` is true.
fn quoted(input: &[u8], lines: bool) -> Result<Vec<Word>, Failure> {
    let mut items: Vec<Word> = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = input.iter().copied();
    let mut blank = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' | b'"' => {
                let text = word.get_or_insert_default();
                loop {
                    match bytes.next() {
                        Some(next) if next == byte => break,
                        Some(b'\n') | None => return Err(unmatched(byte)),
                        Some(next) => text.push(next),
                    }
                }
            }
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            b' ' | b'\t' if lines => word.iter_mut().for_each(|text| text.push(byte)),
            b' ' | b'\t' | b'\n' => {
                items.extend(word.take().map(|text| Word { text, ends_line: false }));
                // Whitespace at the end of a line joins it with the next line.
                if byte == b'\n'
                    && !blank
                    && let Some(last) = items.last_mut()
                {
                    last.ends_line = true;
                }
            }
            other => word.get_or_insert_default().push(other),
        }
        blank = matches!(byte, b' ' | b'\t');
    }
    items.extend(word.map(|text| Word { text, ends_line: true }));
    Ok(items)
}

fn unmatched(quote: u8) -> Failure {
    let kind = if quote == b'"' { "double" } else { "single" };
    format!(
        "unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option"
    )
    .into()
}
