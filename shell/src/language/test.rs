//! Tests of files, strings and numbers: the operators of `test`, `[` and `[[ ]]`.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use wattle_capability::files::{EntryKind, Stat};

use super::arithmetic;
use super::ast::Test;
use super::interpreter::{Attempt, Interpreter, usage};
use super::pattern;
use super::variables::split_index;
use crate::stream::Device;

/// Compares two numbers with an operator such as `-lt`.
fn compare_numbers(left: i64, operator: &str, right: i64) -> bool {
    match operator {
        "-eq" => left == right,
        "-ne" => left != right,
        "-lt" => left < right,
        "-le" => left <= right,
        "-gt" => left > right,
        _ => left >= right,
    }
}

/// The operators of `[[ ]]`, and those that it shares with `test`.
impl Interpreter {
    /// Evaluates a test.
    pub(crate) fn conditional<'a>(&'a mut self, test: &'a Test) -> BoxFuture<'a, Attempt<bool>> {
        async move {
            self.checkpoint().await?;
            Ok(match test {
                Test::And(left, right) => {
                    self.conditional(left).await? && self.conditional(right).await?
                }
                Test::Or(left, right) => {
                    self.conditional(left).await? || self.conditional(right).await?
                }
                Test::Not(inner) => !self.conditional(inner).await?,
                Test::Word(word) => !self.text(word).await?.is_empty(),
                Test::Unary(operator, word) => {
                    let text = self.text(word).await?;
                    self.unary(operator, &text).await?
                }
                Test::Binary(left, operator, right) => match operator.as_str() {
                    "=~" => {
                        let text = self.text(left).await?;
                        let fragments = self.fragments(right).await?;
                        self.regex_match(&text, &pattern::extended_regex(&fragments))?
                    }
                    "=" | "==" | "!=" => {
                        let text = self.text(left).await?;
                        let pattern = self.pattern(right, true, self.options.nocasematch).await?;
                        self.matches(&pattern, &text)? == (operator != "!=")
                    }
                    operator => {
                        let left = self.text(left).await?;
                        let right = self.text(right).await?;
                        if operator.starts_with('-') && !matches!(operator, "-nt" | "-ot" | "-ef") {
                            self.compare(&left, operator, &right)?
                        } else {
                            self.binary(&left, operator, &right).await?
                        }
                    }
                },
            })
        }
        .boxed()
    }

    /// Compares two numbers. In `[[ ]]`, both sides are arithmetic expressions.
    fn compare(&mut self, left: &str, operator: &str, right: &str) -> Result<bool, String> {
        let about = |message| format!("[[: {message}");
        let left = arithmetic::evaluate(left, self).map_err(about)?;
        let right = arithmetic::evaluate(right, self).map_err(about)?;
        Ok(compare_numbers(left, operator, right))
    }

    /// Evaluates `=~` and sets `BASH_REMATCH`.
    fn regex_match(&mut self, text: &str, regex: &str) -> Attempt<bool> {
        let regex =
            self.run.patterns.regex(regex, self.options.nocasematch).map_err(|message| {
                usage(format!("[[: the regular expression is not valid: {message}"))
            })?;
        let found = regex.captures(text);
        let groups = found.iter().flat_map(|found| found.iter());
        let groups = groups.map(|group| group.map_or("", |group| group.as_str()).to_owned());
        self.set_list("BASH_REMATCH", groups.collect()).map(|()| found.is_some())
    }

    /// Returns the metadata of the file or folder at a path, following symbolic links, or `None` if
    /// nothing exists there.
    pub(crate) async fn stat(&self, path: &str) -> Option<Stat> {
        if path.is_empty() {
            return None;
        }
        let path = self.path(path);
        self.on_files(move |files| Ok(files.stat(&path)?)).await.ok()
    }

    async fn stat_link(&self, path: &str) -> Option<Stat> {
        let path = self.path(path);
        self.on_files(move |files| Ok(files.stat_link(&path)?)).await.ok()
    }

    /// Evaluates a unary operator such as `-f`.
    async fn unary(&mut self, operator: &str, text: &str) -> Result<bool, String> {
        match operator {
            "-n" => return Ok(!text.is_empty()),
            "-z" => return Ok(text.is_empty()),
            "-v" => {
                return match split_index(text) {
                    (name, Some("@" | "*")) => Ok(!self.list_of(name).is_empty()),
                    (name, Some(index)) => {
                        let element = self.element(name, index);
                        Ok(element.map_err(|error| error.to_string())?.is_some())
                    }
                    (name, None) => Ok(self.value(name).is_some()),
                };
            }
            "-R" => {
                return Ok(self
                    .variables
                    .get_itself(text)
                    .is_some_and(|variable| variable.reference));
            }
            "-o" => return Ok(self.option(text).unwrap_or(false)),
            // No descriptor of a run is a terminal.
            "-t" => return Ok(false),
            _ => {}
        }
        let device = Device::from_path(&self.path(text)).filter(|_| !text.is_empty());
        if let Some(device) = device {
            let exists = matches!(operator, "-e" | "-a" | "-r" | "-w" | "-c");
            return Ok(exists && device != Device::Other);
        }
        let kind = if matches!(operator, "-L" | "-h") {
            self.stat_link(text).await
        } else {
            self.stat(text).await
        };
        Ok(match (operator, kind) {
            (_, None) => false,
            ("-e" | "-a" | "-r" | "-w" | "-x" | "-O" | "-G" | "-N", Some(_)) => true,
            ("-f", Some(stat)) => stat.kind == EntryKind::File,
            ("-d", Some(stat)) => stat.kind == EntryKind::Folder,
            ("-L" | "-h", Some(stat)) => stat.kind == EntryKind::Link,
            ("-s", Some(stat)) => stat.size > 0 || stat.kind == EntryKind::Folder,
            ("-b" | "-c" | "-p" | "-S" | "-g" | "-u" | "-k", Some(_)) => false,
            (operator, _) => return Err(format!("{operator}: unary operator expected")),
        })
    }

    /// Evaluates a binary operator such as `=` or `-nt`. Numbers must be decimal.
    async fn binary(&mut self, left: &str, operator: &str, right: &str) -> Result<bool, String> {
        match operator {
            "=" | "==" => Ok(left == right),
            "!=" => Ok(left != right),
            "<" => Ok(left < right),
            ">" => Ok(left > right),
            "-nt" | "-ot" => {
                let (newer, older) = if operator == "-nt" { (left, right) } else { (right, left) };
                let older = self.stat(older).await;
                Ok(self
                    .stat(newer)
                    .await
                    .is_some_and(|newer| older.is_none_or(|older| newer.modified > older.modified)))
            }
            "-ef" => {
                let left = self.path(left);
                let right = self.path(right);
                let same = self
                    .on_files(move |files| {
                        Ok(files.stat(&left).is_ok()
                            && files.real_path(&left)? == files.real_path(&right)?)
                    })
                    .await;
                Ok(same.unwrap_or(false))
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let number = |text: &str| {
                    text.trim()
                        .trim_start_matches('+')
                        .parse::<i64>()
                        .map_err(|_| format!("{text}: integer expression expected"))
                };
                Ok(compare_numbers(number(left)?, operator, number(right)?))
            }
            operator => Err(format!("{operator}: binary operator expected")),
        }
    }
}

const BINARY: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

/// The arguments of a test, and the parser's position in them.
struct Words {
    list: Vec<String>,
    at: usize,
    depth: u32,
}

impl Words {
    fn peek(&self, ahead: usize) -> Option<&str> {
        self.list.get(self.at + ahead).map(String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.list.get(self.at - 1).cloned().unwrap_or_default()
    }

    fn remaining(&self) -> usize {
        self.list.len().saturating_sub(self.at)
    }
}

fn is_unary(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next() == Some('-')
        && letters.next().is_some_and(|letter| "abcdefghkLnNoOGprRsStuvwxz".contains(letter))
        && letters.next().is_none()
}

/// The grammar of `test` and `[`.
impl Interpreter {
    /// Runs `test` or `[`.
    pub(crate) async fn test_builtin(&mut self, name: &str, mut words: Vec<String>) -> Attempt<u8> {
        if name == "[" && words.pop().as_deref() != Some("]") {
            return Err(usage("missing `]'"));
        }
        if words.is_empty() {
            return Ok(1);
        }
        let mut words = Words { list: words, at: 0, depth: 0 };
        let truth = self.test_or(&mut words).await.map_err(usage)?;
        if words.remaining() > 0 {
            return Err(usage("too many arguments"));
        }
        Ok(u8::from(!truth))
    }

    fn test_or<'a>(&'a mut self, words: &'a mut Words) -> BoxFuture<'a, Result<bool, String>> {
        async move {
            let mut value = self.test_and(words).await?;
            while words.peek(0) == Some("-o") {
                words.next();
                value |= self.test_and(words).await?;
            }
            Ok(value)
        }
        .boxed()
    }

    async fn test_and(&mut self, words: &mut Words) -> Result<bool, String> {
        let mut value = self.test_not(words).await?;
        while words.peek(0) == Some("-a") && words.remaining() > 1 {
            words.next();
            value &= self.test_not(words).await?;
        }
        Ok(value)
    }

    async fn test_not(&mut self, words: &mut Words) -> Result<bool, String> {
        let mut negated = false;
        while words.peek(0) == Some("!")
            && words.remaining() > 1
            && !(words.remaining() == 3 && words.peek(1).is_some_and(|word| BINARY.contains(&word)))
        {
            words.next();
            negated = !negated;
        }
        Ok(self.test_primary(words).await? != negated)
    }

    async fn test_primary(&mut self, words: &mut Words) -> Result<bool, String> {
        if words.remaining() == 0 {
            return Err("argument expected".into());
        }
        if words.remaining() >= 3 && words.peek(1).is_some_and(|word| BINARY.contains(&word)) {
            let left = words.next();
            let operator = words.next();
            let right = words.next();
            return self.binary(&left, &operator, &right).await;
        }
        if words.peek(0) == Some("(") && words.remaining() > 2 {
            if words.depth > 20 {
                return Err("too many parentheses".into());
            }
            words.next();
            words.depth += 1;
            let value = self.test_or(words).await?;
            words.depth -= 1;
            return if words.next() == ")" { Ok(value) } else { Err("`)' expected".into()) };
        }
        if words.remaining() >= 2 && words.peek(0).is_some_and(is_unary) {
            let operator = words.next();
            let text = words.next();
            return self.unary(&operator, &text).await;
        }
        if words.remaining() == 2
            && words.peek(1).is_none_or(|word| word != "-a" && word != "-o" && word != ")")
        {
            return Err(format!("{}: unary operator expected", words.peek(0).unwrap_or_default()));
        }
        if words.remaining() == 3
            && words.depth == 0
            && words.peek(1).is_some_and(|word| word != "-a" && word != "-o")
        {
            return Err(format!("{}: binary operator expected", words.peek(1).unwrap_or_default()));
        }
        Ok(!words.next().is_empty())
    }
}
