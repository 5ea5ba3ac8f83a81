//! The builtins `read` and `mapfile`.

use std::str::FromStr;
use std::time::Duration;

use super::Arguments;
use crate::bounds::amount;
use crate::errno::Errno;
use crate::language::escape;
use crate::language::interpreter::{Attempt, Flow, Interpreter, Stop};
use crate::stream::{Stream, StreamKind};

/// Options of `read`, and the names of the variables that it sets.
struct ReadOptions {
    raw: bool,
    array: Option<String>,
    delimiter: u8,
    max_chars: Option<usize>,
    exact: bool,
    fd: u32,
    timeout: Option<Duration>,
    prompt: Option<String>,
    names: Vec<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            raw: false,
            array: None,
            delimiter: b'\n',
            max_chars: None,
            exact: false,
            fd: 0,
            timeout: None,
            prompt: None,
            names: Vec::new(),
        }
    }
}

/// The characters of a line, each with a flag that is true if a backslash escaped it.
type Line = Vec<(char, bool)>;

/// The end of a line: the delimiter, or the end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Delimiter,
    Input,
}

impl Interpreter {
    pub(super) async fn read_builtin(&mut self, words: Vec<String>) -> Attempt<u8> {
        let options = ReadOptions::parse(words)?;
        if let Some(prompt) = &options.prompt {
            self.write_stderr(prompt).await;
        }
        let fd = options.fd;
        let Some(stream) = self.descriptors.open.get(&fd).cloned() else {
            return Err(format!("{fd}: invalid file descriptor: Bad file descriptor").into());
        };
        let limit = self.run.bounds.substitution;
        let reading = read_line(&stream, &options, limit);
        let read = match options.timeout {
            Some(timeout) if timeout.is_zero() => {
                return Ok(u8::from(stream.kind() == StreamKind::Pipe));
            }
            Some(timeout) => match tokio::time::timeout(timeout, reading).await {
                Ok(read) => read,
                Err(_) => return Ok(142),
            },
            None => reading.await,
        };
        let (line, end) = read?;
        let status = u8::from(end == LineEnd::Input);
        if let Some(name) = &options.array {
            let fields = self.split(line, usize::MAX);
            self.set_list(name, fields)?;
            return Ok(status);
        }
        if options.names.is_empty() {
            self.set("REPLY", text(&line)).await?;
            return Ok(status);
        }
        let mut fields =
            if options.exact { vec![text(&line)] } else { self.split(line, options.names.len()) };
        fields.resize(options.names.len(), String::new());
        for (name, text) in options.names.iter().zip(fields) {
            self.set(name, text).await?;
        }
        Ok(status)
    }

    /// Reads a line from standard input for `select`, or returns `None` at the end of the input.
    pub(crate) async fn read_line(&mut self) -> Flow<Option<String>> {
        let Some(stream) = self.descriptors.open.get(&0).cloned() else { return Ok(None) };
        let options = ReadOptions { raw: true, ..ReadOptions::default() };
        match read_line(&stream, &options, self.run.bounds.substitution).await {
            Ok((line, LineEnd::Delimiter)) => Ok(Some(text(&line))),
            Ok((line, LineEnd::Input)) if !line.is_empty() => Ok(Some(text(&line))),
            _ => Ok(None),
        }
    }

    /// Splits a line into at most `max` fields. The last field contains the rest of the line.
    fn split(&self, line: Line, max: usize) -> Vec<String> {
        let separators = self.separators();
        let is_separator = |(c, escaped): &(char, bool)| !escaped && separators.contains(*c);
        let is_space =
            |sign: &(char, bool)| is_separator(sign) && matches!(sign.0, ' ' | '\t' | '\n');
        let mut rest = line.as_slice();
        let skip = |rest: &[(char, bool)]| rest.iter().take_while(|sign| is_space(sign)).count();
        rest = rest.split_at(skip(rest)).1;
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let plain = rest.iter().position(is_separator).unwrap_or(rest.len());
            // A delimiter consists of whitespace and at most one other separator.
            let mut after = plain + skip(rest.split_at(plain).1);
            if rest.get(after).is_some_and(|sign| is_separator(sign) && !is_space(sign)) {
                after += 1;
                after += skip(rest.split_at(after).1);
            }
            if fields.len() + 1 == max {
                let mut last = rest;
                if after >= rest.len() {
                    // Only one field remains, so a separator at its end belongs to the delimiter.
                    last = rest.split_at(plain).0;
                } else {
                    while let Some((_, front)) =
                        last.split_last().filter(|(sign, _)| is_space(sign))
                    {
                        last = front;
                    }
                }
                fields.push(text(last));
                break;
            }
            fields.push(text(rest.split_at(plain).0));
            rest = rest.split_at(after).1;
        }
        fields
    }

    pub(super) async fn mapfile(&mut self, words: Vec<String>) -> Attempt<u8> {
        let given = Arguments::parse(words, "C:c:d:n:O:s:tu:")?;
        let trim = given.has('t');
        let max_lines = match number(&given, 'n', "line count")? {
            None | Some(0) => usize::MAX,
            Some(max) => max,
        };
        let origin: Option<i64> = number(&given, 'O', "array origin")?;
        let skip: usize = number(&given, 's', "line count")?.unwrap_or_default();
        let fd: u32 = number(&given, 'u', "file descriptor specification")?.unwrap_or_default();
        let quantum: usize = number(&given, 'c', "callback quantum")?.unwrap_or(5_000);
        if quantum == 0 {
            return Err("0: invalid callback quantum".into());
        }
        let delimiter = delimiter(&given);
        let name = given.words.first().map_or("MAPFILE", String::as_str);
        let Some(stream) = self.descriptors.open.get(&fd).cloned() else {
            return Err(format!("{fd}: invalid file descriptor").into());
        };
        let (data, over) = self.read_whole(&stream).await?;
        if over {
            let limit = amount(self.run.bounds.substitution);
            return Err(format!("the input is longer than {limit}").into());
        }
        let lines = data.split_inclusive(|byte| *byte == delimiter).skip(skip).take(max_lines);
        let lines = lines.map(|line| {
            let line = if trim { line.strip_suffix(&[delimiter]).unwrap_or(line) } else { line };
            String::from_utf8_lossy(line).into_owned()
        });
        let lines: Vec<String> = lines.collect();
        if let Some(callback) = given.value('C') {
            for (at, line) in lines.iter().enumerate().skip(quantum - 1).step_by(quantum) {
                let index = origin.unwrap_or_default().saturating_add_unsigned(at as u64);
                self.evaluate(&format!("{callback} {index} {}", escape::quoted(line))).await?;
            }
        }
        let Some(origin) = origin else {
            self.set_list(name, lines)?;
            return Ok(0);
        };
        let mut done = Ok(());
        for (offset, line) in (0_i64..).zip(lines) {
            let Some(index) = origin.checked_add(offset) else {
                return Err("the array has no index after the last number".into());
            };
            match self.set(&format!("{name}[{index}]"), line).await {
                Err(stop @ (Stop::Jump(_) | Stop::Abandoned(_))) => return Err(stop),
                set => done = done.and(set),
            }
        }
        done.map(|()| 0)
    }
}

impl ReadOptions {
    /// Parses the arguments of `read`.
    fn parse(words: Vec<String>) -> Attempt<ReadOptions> {
        let given = Arguments::parse(words, "ersa:d:i:n:N:p:t:u:")?;
        let timeout = match given.value('t') {
            None => None,
            Some(value) => {
                let seconds = value.parse::<f64>().ok();
                let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                Some(timeout.ok_or_else(|| format!("{value}: invalid timeout specification"))?)
            }
        };
        let exact: Option<usize> = number(&given, 'N', "number")?;
        Ok(ReadOptions {
            raw: given.has('r'),
            array: given.value('a').map(str::to_owned),
            delimiter: delimiter(&given),
            max_chars: exact.or(number(&given, 'n', "number")?),
            exact: exact.is_some(),
            fd: number(&given, 'u', "file descriptor specification")?.unwrap_or_default(),
            timeout,
            prompt: given.value('p').map(str::to_owned),
            names: given.words,
        })
    }
}

/// Parses the argument of an option as a number. `what` describes the number in the message.
fn number<T: FromStr>(given: &Arguments, letter: char, what: &str) -> Result<Option<T>, String> {
    let parse = |value: &str| value.parse().map_err(|_| format!("{value}: invalid {what}"));
    given.value(letter).map(parse).transpose()
}

/// Returns the delimiter of lines: the first byte of the argument of `-d`, or NUL if it is empty.
fn delimiter(given: &Arguments) -> u8 {
    given.value('d').map_or(b'\n', |value| value.bytes().next().unwrap_or_default())
}

/// Reads a line up to the delimiter. Returns the line, and whether the delimiter or the input's end
/// terminated it. Reads a pipe byte by byte, because the bytes after the delimiter belong to the
/// next reader.
async fn read_line(
    stream: &Stream,
    options: &ReadOptions,
    limit: usize,
) -> Result<(Line, LineEnd), String> {
    let mut line = Line::new();
    let mut bytes = ByteReader { stream: stream.clone(), buffer: Vec::new(), at: 0 };
    let mut escaped = false;
    let mut utf8 = Vec::new();
    let mut count = 0_usize;
    let end = loop {
        if options.max_chars.is_some_and(|max| line.len() >= max) {
            break LineEnd::Delimiter;
        }
        let Some(byte) = bytes.next().await.map_err(|errno| format!("read error: {errno}"))? else {
            break LineEnd::Input;
        };
        if utf8.is_empty()
            && byte == options.delimiter
            && !options.exact
            && (!escaped || options.raw)
        {
            break LineEnd::Delimiter;
        }
        count += 1;
        if count.is_multiple_of(1024) {
            // Reading an endless device such as `/dev/zero` never waits, so the loop must yield.
            tokio::task::yield_now().await;
        }
        if count > limit {
            return Err(format!("the line is longer than {}", amount(limit)));
        }
        utf8.push(byte);
        let c = match std::str::from_utf8(&utf8) {
            Ok(text) => text.chars().next(),
            Err(error) if error.error_len().is_none() && utf8.len() < 4 => continue,
            Err(_) => Some(char::REPLACEMENT_CHARACTER),
        };
        utf8.clear();
        let Some(c) = c.filter(|c| *c != '\0') else { continue };
        if !options.raw && c == '\\' && !escaped {
            escaped = true;
            continue;
        }
        if escaped && c == '\n' {
            escaped = false;
            continue;
        }
        line.push((c, std::mem::take(&mut escaped)));
    };
    bytes.seek_back();
    Ok((line, end))
}

fn text(line: &[(char, bool)]) -> String {
    line.iter().map(|(c, _)| *c).collect()
}

/// A reader that returns the bytes of a stream one by one. It buffers reads from a file and seeks
/// back over the unused bytes.
struct ByteReader {
    stream: Stream,
    buffer: Vec<u8>,
    at: usize,
}

impl ByteReader {
    async fn next(&mut self) -> Result<Option<u8>, Errno> {
        if self.at >= self.buffer.len() {
            let len = if self.stream.kind() == StreamKind::File { 4096 } else { 1 };
            self.buffer = self.stream.read(len).await?.to_vec();
            self.at = 0;
        }
        let byte = self.buffer.get(self.at).copied();
        self.at += 1;
        Ok(byte)
    }

    fn seek_back(&self) {
        let unused = self.buffer.len().saturating_sub(self.at);
        if unused > 0 {
            // Only files are buffered, and a file can seek.
            let _ = self
                .stream
                .seek(std::io::SeekFrom::Current(-i64::try_from(unused).unwrap_or_default()));
        }
    }
}
