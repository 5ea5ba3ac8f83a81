//! `read` and `mapfile`.

use std::time::Duration;

use crate::bounds::amount;
use crate::errno::Errno;
use crate::language::interpreter::{Flow, Interpreter};
use crate::stream::{Stream, StreamKind};

/// What `read` was asked for.
struct Asked {
    raw: bool,
    array: Option<String>,
    delimiter: u8,
    most: Option<usize>,
    exact: bool,
    fd: u32,
    timeout: Option<Duration>,
    prompt: Option<String>,
    names: Vec<String>,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            raw: false,
            array: None,
            delimiter: b'\n',
            most: None,
            exact: false,
            fd: 0,
            timeout: None,
            prompt: None,
            names: Vec::new(),
        }
    }
}

/// A line as it was read: its characters, each with whether a backslash stood before it.
type Line = Vec<(char, bool)>;

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Delimiter,
    Input,
}

impl Interpreter {
    pub(super) async fn read(&mut self, words: Vec<String>) -> Flow<u8> {
        let asked = match asked(words) {
            Ok(asked) => asked,
            Err(words) => return self.usage(format!("read: {words}")).await,
        };
        if let Some(prompt) = &asked.prompt {
            self.write_stderr(prompt).await;
        }
        let Some(stream) = self.descriptors.open.get(&asked.fd).cloned() else {
            return self.refuse(format!("read: {}: invalid file descriptor: Bad file descriptor", asked.fd)).await;
        };
        let limit = self.run.bounds.substitution;
        let reading = read_line(&stream, &asked, limit);
        let read = match asked.timeout {
            Some(timeout) if timeout.is_zero() => return Ok(u8::from(stream.kind() == StreamKind::Pipe)),
            Some(timeout) => match tokio::time::timeout(timeout, reading).await {
                Ok(read) => read,
                Err(_) => return Ok(142),
            },
            None => reading.await,
        };
        let (line, end) = match read {
            Ok(read) => read,
            Err(words) => return self.refuse(format!("read: {words}")).await,
        };
        let status = u8::from(end == End::Input);
        if let Some(name) = &asked.array {
            let fields = self.split(line, usize::MAX);
            return match self.set_list(name, fields)? {
                Ok(()) => Ok(status),
                Err(words) => self.refuse(format!("read: {words}")).await,
            };
        }
        let pairs = if asked.names.is_empty() {
            vec![("REPLY".to_owned(), text(&line))]
        } else if asked.exact {
            let mut texts = vec![text(&line)];
            texts.resize(asked.names.len(), String::new());
            asked.names.into_iter().zip(texts).collect()
        } else {
            let mut fields = self.split(line, asked.names.len());
            fields.resize(asked.names.len(), String::new());
            asked.names.into_iter().zip(fields).collect::<Vec<_>>()
        };
        for (name, text) in pairs {
            if let Err(words) = self.set(&name, text).await? {
                return self.refuse(format!("read: {words}")).await;
            }
        }
        Ok(status)
    }

    /// A line of standard input for `select`; nothing at its end.
    pub(crate) async fn read_line(&mut self) -> Flow<Option<String>> {
        let Some(stream) = self.descriptors.open.get(&0).cloned() else { return Ok(None) };
        let asked = Asked { raw: true, ..Asked::default() };
        match read_line(&stream, &asked, self.run.bounds.substitution).await {
            Ok((line, End::Delimiter)) => Ok(Some(text(&line))),
            Ok((line, End::Input)) if !line.is_empty() => Ok(Some(text(&line))),
            _ => Ok(None),
        }
    }

    /// Splits a line into at most `most` fields, the last of which takes the rest.
    fn split(&self, line: Line, most: usize) -> Vec<String> {
        let separators = self.separators();
        let is_separator = |(c, escaped): &(char, bool)| !escaped && separators.contains(*c);
        let is_blank = |sign: &(char, bool)| is_separator(sign) && matches!(sign.0, ' ' | '\t' | '\n');
        let mut rest = line.as_slice();
        let skip = |rest: &[(char, bool)]| rest.iter().take_while(|sign| is_blank(sign)).count();
        rest = rest.get(skip(rest)..).unwrap_or_default();
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let plain = rest.iter().position(is_separator).unwrap_or(rest.len());
            // What follows the field: blanks, one other separator, blanks.
            let mut after = plain + skip(rest.get(plain..).unwrap_or_default());
            if rest.get(after).is_some_and(|sign| is_separator(sign) && !is_blank(sign)) {
                after += 1;
                after += skip(rest.get(after..).unwrap_or_default());
            }
            if fields.len() + 1 == most {
                let mut last = rest;
                if after >= rest.len() {
                    // One field is left: a separator at its end ends it.
                    last = rest.get(..plain).unwrap_or_default();
                } else {
                    while let Some((_, front)) = last.split_last().filter(|(sign, _)| is_blank(sign)) {
                        last = front;
                    }
                }
                fields.push(text(last));
                break;
            }
            fields.push(text(rest.get(..plain).unwrap_or_default()));
            rest = rest.get(after..).unwrap_or_default();
        }
        fields
    }

    pub(super) async fn mapfile(&mut self, words: Vec<String>) -> Flow<u8> {
        let (mut trim, mut most, mut origin, mut delimiter, mut fd, mut skip, mut name) =
            (false, usize::MAX, None, b'\n', 0_u32, 0_usize, "MAPFILE".to_owned());
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word.as_str() {
                "-t" => trim = true,
                "-n" => most = value().parse().ok().filter(|most| *most > 0).unwrap_or(usize::MAX),
                "-O" => origin = value().parse::<i64>().ok(),
                "-s" => skip = value().parse().unwrap_or_default(),
                "-u" => fd = value().parse().unwrap_or_default(),
                "-d" => delimiter = value().bytes().next().unwrap_or_default(),
                word if word.starts_with('-') && word.len() > 1 => {
                    return self.usage(format!("mapfile: {word}: invalid option")).await;
                }
                word => name = word.to_owned(),
            }
        }
        let Some(stream) = self.descriptors.open.get(&fd).cloned() else {
            return self.refuse(format!("mapfile: {fd}: invalid file descriptor")).await;
        };
        let (data, over) = self.read_whole(&stream).await?;
        if over {
            return self
                .refuse(format!("mapfile: the input is longer than {}", amount(self.run.bounds.substitution)))
                .await;
        }
        let lines = data.split_inclusive(|byte| *byte == delimiter).skip(skip).take(most).map(|line| {
            let line = if trim { line.strip_suffix(&[delimiter]).unwrap_or(line) } else { line };
            String::from_utf8_lossy(line).into_owned()
        });
        let lines: Vec<String> = lines.collect();
        let done = match origin {
            None => self.set_list(&name, lines)?,
            Some(origin) => {
                let mut done = Ok(());
                for (offset, line) in (0_i64..).zip(lines) {
                    let Some(index) = origin.checked_add(offset) else {
                        return self.refuse("mapfile: the array has no index after the last number").await;
                    };
                    done = done.and(self.set(&format!("{name}[{index}]"), line).await?);
                }
                done
            }
        };
        match done {
            Ok(()) => Ok(0),
            Err(words) => self.refuse(format!("mapfile: {words}")).await,
        }
    }
}

fn asked(words: Vec<String>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty() && asked.names.is_empty())
        else {
            asked.names.push(word);
            continue;
        };
        if letters == "-" {
            asked.names.extend(words.by_ref());
            break;
        }
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            if matches!(letter, 'r' | 's' | 'e') {
                asked.raw |= letter == 'r';
                continue;
            }
            let value = match letters.as_str() {
                "" => words.next().ok_or_else(|| format!("-{letter}: option requires an argument"))?,
                rest => rest.to_owned(),
            };
            let number = || value.parse().map_err(|_| format!("{value}: invalid number"));
            match letter {
                'a' => asked.array = Some(value),
                'd' => asked.delimiter = value.bytes().next().unwrap_or_default(),
                'n' => asked.most = Some(number()?),
                'N' => {
                    asked.most = Some(number()?);
                    asked.exact = true;
                }
                'u' => {
                    asked.fd = value.parse().map_err(|_| format!("{value}: invalid file descriptor specification"))?
                }
                't' => {
                    let seconds =
                        value.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    asked.timeout = Some(seconds.ok_or_else(|| format!("{value}: invalid timeout specification"))?);
                }
                'p' => asked.prompt = Some(value),
                'i' => {}
                other => return Err(format!("-{other}: invalid option")),
            }
            break;
        }
    }
    Ok(asked)
}

/// Reads up to the delimiter, byte by byte where what follows is another's to read.
async fn read_line(stream: &Stream, asked: &Asked, limit: usize) -> Result<(Line, End), String> {
    let mut line = Line::new();
    let mut bytes = Bytes { stream: stream.clone(), held: Vec::new(), at: 0 };
    let mut escaped = false;
    let mut sign = Vec::new();
    let mut count = 0_usize;
    let end = loop {
        if asked.most.is_some_and(|most| line.len() >= most) {
            break End::Delimiter;
        }
        let Some(byte) = bytes.next().await.map_err(|errno| format!("read error: {errno}"))? else { break End::Input };
        if sign.is_empty() && byte == asked.delimiter && !asked.exact && (!escaped || asked.raw) {
            break End::Delimiter;
        }
        count += 1;
        if count.is_multiple_of(1024) {
            // An endless device is always ready.
            tokio::task::yield_now().await;
        }
        if count > limit {
            return Err(format!("the line is longer than {}", amount(limit)));
        }
        sign.push(byte);
        let c = match std::str::from_utf8(&sign) {
            Ok(text) => text.chars().next(),
            Err(error) if error.error_len().is_none() && sign.len() < 4 => continue,
            Err(_) => Some(char::REPLACEMENT_CHARACTER),
        };
        sign.clear();
        let Some(c) = c.filter(|c| *c != '\0') else { continue };
        if !asked.raw && c == '\\' && !escaped {
            escaped = true;
            continue;
        }
        if escaped && c == '\n' {
            escaped = false;
            continue;
        }
        line.push((c, std::mem::take(&mut escaped)));
    };
    bytes.give_back();
    Ok((line, end))
}

fn text(line: &[(char, bool)]) -> String {
    line.iter().map(|(c, _)| *c).collect()
}

/// Bytes of a stream one after another. Of a file many are read at once, and those that were not used are given back.
struct Bytes {
    stream: Stream,
    held: Vec<u8>,
    at: usize,
}

impl Bytes {
    async fn next(&mut self) -> Result<Option<u8>, Errno> {
        if self.at >= self.held.len() {
            let most = if self.stream.kind() == StreamKind::File { 4096 } else { 1 };
            self.held = self.stream.read(most).await?.to_vec();
            self.at = 0;
        }
        let byte = self.held.get(self.at).copied();
        self.at += 1;
        Ok(byte)
    }

    fn give_back(&self) {
        let left = self.held.len().saturating_sub(self.at);
        if left > 0 {
            // A file can always be gone back in.
            let _ = self.stream.seek(std::io::SeekFrom::Current(-i64::try_from(left).unwrap_or_default()));
        }
    }
}
