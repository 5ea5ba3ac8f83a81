//! The expression of `find`: its tests and actions.

use std::time::{Duration, SystemTime};

use regex::bytes::{Regex, RegexBuilder};

use super::printf::{self, Part};
use super::walk::{Follow, Options};
use crate::clock;
use crate::pattern::{self, Notation, Tool};
use crate::say::words;

/// An expression that is evaluated for each file.
pub(crate) enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    /// A list (`,`): all expressions are evaluated, and the result is that of the last one.
    List(Vec<Expression>),
    Not(Box<Expression>),
    True,
    False,
    Name(Regex),
    Path(Regex),
    Target(Regex),
    Kind(Vec<char>, bool),
    Size(Compare, u64),
    Age {
        moment: Which,
        compare: Compare,
        unit: u64,
        now: SystemTime,
    },
    Newer {
        moment: Which,
        than: SystemTime,
    },
    Mode {
        bits: u32,
        kind: char,
    },
    Empty,
    Print {
        end: u8,
    },
    Printf(Vec<Part>),
    List5,
    Delete,
    Prune,
    Quit,
    Run {
        words: Vec<String>,
        folder: bool,
    },
    RunMany {
        words: Vec<String>,
        number: usize,
    },
}

/// The numeric comparison of a test: `-N`, `N` or `+N`.
#[derive(Clone, Copy)]
pub(crate) enum Compare {
    Less(u64),
    Same(u64),
    More(u64),
}

/// A timestamp of a file.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    Changed,
    Read,
}

impl Compare {
    pub(crate) fn holds(self, found: u64) -> bool {
        match self {
            Compare::Less(than) => found < than,
            Compare::Same(with) => found == with,
            Compare::More(than) => found > than,
        }
    }
}

struct Reader {
    words: std::iter::Peekable<std::vec::IntoIter<String>>,
    options: Options,
    notation: Notation,
    acts: bool,
    commands: usize,
    now: SystemTime,
}

/// Parses an expression. An expression without an action prints the path.
pub(crate) fn parse(words: Vec<String>) -> Result<(Expression, Options), String> {
    let mut reader = Reader {
        words: words.into_iter().peekable(),
        options: Options { most: usize::MAX, least: 0, deep: false, follow: Follow::Never },
        notation: Notation::new(Tool::Grep, false),
        acts: false,
        commands: 0,
        now: SystemTime::now(),
    };
    let expression = match reader.words.peek() {
        Some(_) => reader.list()?,
        None => Expression::True,
    };
    if let Some(word) = reader.words.next() {
        return Err(match word.as_str() {
            ")" => "you have too many ')'".to_owned(),
            _ => format!("paths must precede expression: '{word}'"),
        });
    }
    let print = Expression::Print { end: b'\n' };
    Ok((
        if reader.acts { expression } else { Expression::And(vec![expression, print]) },
        reader.options,
    ))
}

impl Reader {
    fn list(&mut self) -> Result<Expression, String> {
        let mut items = vec![self.or()?];
        while self.words.next_if(|word| word == ",").is_some() {
            items.push(self.or()?);
        }
        Ok(one(items, Expression::List))
    }

    fn or(&mut self) -> Result<Expression, String> {
        let mut items = vec![self.and()?];
        while self.words.next_if(|word| word == "-o" || word == "-or").is_some() {
            items.push(self.and()?);
        }
        Ok(one(items, Expression::Or))
    }

    fn and(&mut self) -> Result<Expression, String> {
        let mut items = vec![self.not()?];
        loop {
            match self.words.peek().map(String::as_str) {
                Some("-a" | "-and") => _ = self.words.next(),
                None | Some("-o" | "-or" | "," | ")") => break,
                Some(_) => {}
            }
            items.push(self.not()?);
        }
        Ok(one(items, Expression::And))
    }

    fn not(&mut self) -> Result<Expression, String> {
        if self.words.next_if(|word| word == "!" || word == "-not").is_some() {
            return Ok(Expression::Not(Box::new(self.not()?)));
        }
        if self.words.next_if(|word| word == "(").is_some() {
            let inner = self.list()?;
            return match self.words.next().as_deref() {
                Some(")") => Ok(inner),
                _ => Err("invalid expression; I was expecting to find a ')' somewhere but did not see one".to_owned()),
            };
        }
        let Some(word) = self.words.next() else {
            return Err("invalid expression; an operator lacks its operand".to_owned());
        };
        self.primary(&word)
    }

    fn primary(&mut self, word: &str) -> Result<Expression, String> {
        Ok(match word {
            "-true"
            | "-readable"
            | "-writable"
            | "-noleaf"
            | "-mount"
            | "-xdev"
            | "-warn"
            | "-nowarn"
            | "-ignore_readdir_race" => Expression::True,
            "-daystart" => {
                let (now, _) = clock::epoch(self.now);
                let end = now - now.rem_euclid(86_400) + 86_400;
                self.now = clock::from_epoch(end).unwrap_or(self.now);
                Expression::True
            }
            "-false" => Expression::False,
            "-name" | "-iname" => Expression::Name(self.glob(word)?),
            "-path" | "-wholename" | "-ipath" | "-iwholename" => Expression::Path(self.glob(word)?),
            "-lname" | "-ilname" => Expression::Target(self.glob(word)?),
            "-regex" | "-iregex" => {
                let made = pattern::translate(&self.value(word)?, self.notation)?;
                let text = format!(r"\A(?:{})\z", made.text);
                let built = RegexBuilder::new(&text).case_insensitive(word == "-iregex").build();
                Expression::Path(built.map_err(|error| error.to_string())?)
            }
            "-regextype" => {
                let extended = match self.value(word)?.as_str() {
                    "posix-extended" | "posix-egrep" | "egrep" | "awk" | "posix-awk"
                    | "gnu-awk" => true,
                    "posix-basic"
                    | "grep"
                    | "sed"
                    | "ed"
                    | "emacs"
                    | "findutils-default"
                    | "posix-minimal-basic" => false,
                    other => {
                        return Err(format!(
                            "unknown regular expression type '{other}'; use posix-extended or posix-basic"
                        ));
                    }
                };
                self.notation = Notation::new(Tool::Grep, extended);
                Expression::True
            }
            "-type" | "-xtype" => self.kind(word)?,
            "-size" => self.size()?,
            "-empty" => Expression::Empty,
            "-executable" => Expression::Mode { bits: 0o111, kind: '/' },
            "-perm" => self.permissions(word)?,
            "-mtime" | "-ctime" => self.age(word, Which::Changed, 86_400)?,
            "-atime" => self.age(word, Which::Read, 86_400)?,
            "-mmin" | "-cmin" => self.age(word, Which::Changed, 60)?,
            "-amin" => self.age(word, Which::Read, 60)?,
            "-newer" | "-cnewer" | "-anewer" | "-newermm" => {
                let path = self.value(word)?;
                let found = std::fs::metadata(&path).and_then(|found| found.modified());
                let than = found.map_err(|error| format!("'{path}': {}", words(&error)))?;
                let moment = if word == "-anewer" { Which::Read } else { Which::Changed };
                Expression::Newer { moment, than }
            }
            "-newermt" | "-newerct" | "-newerat" => {
                let text = self.value(word)?;
                let than = clock::parse(&text).ok_or_else(|| {
                    format!("I cannot figure out how to interpret '{text}' as a date or time")
                })?;
                let moment = if word == "-newerat" { Which::Read } else { Which::Changed };
                Expression::Newer { moment, than }
            }
            "-maxdepth" => {
                self.options.most = self.whole(word)?;
                Expression::True
            }
            "-mindepth" => {
                self.options.least = self.whole(word)?;
                Expression::True
            }
            "-depth" | "-d" => {
                self.options.deep = true;
                Expression::True
            }
            "-follow" => {
                self.options.follow = Follow::Always;
                Expression::True
            }
            "-prune" => Expression::Prune,
            "-quit" => self.act(Expression::Quit),
            "-print" => self.act(Expression::Print { end: b'\n' }),
            "-print0" => self.act(Expression::Print { end: 0 }),
            "-printf" => {
                let format = self.value(word)?;
                let parts = printf::parse(&format)?;
                self.act(Expression::Printf(parts))
            }
            "-ls" => self.act(Expression::List5),
            "-delete" => {
                self.options.deep = true;
                self.act(Expression::Delete)
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => self.command(word)?,
            other => return Err(format!("unknown predicate '{other}'")),
        })
    }

    /// Compiles the file name pattern that follows the test `of`, such as `-name` or `-iname`.
    fn glob(&mut self, of: &str) -> Result<Regex, String> {
        pattern::names(&self.value(of)?, of.starts_with("-i"))
    }

    fn kind(&mut self, word: &str) -> Result<Expression, String> {
        let value = self.value(word)?;
        let kinds: Vec<char> = value.split(',').filter_map(|kind| kind.chars().next()).collect();
        if let Some(other) = kinds.iter().find(|kind| !"fdlbcps".contains(**kind)) {
            return Err(format!("Unknown argument to {word}: {other}"));
        }
        Ok(Expression::Kind(kinds, word == "-xtype"))
    }

    fn permissions(&mut self, word: &str) -> Result<Expression, String> {
        let value = self.value(word)?;
        let kind = value.chars().next().filter(|first| "-/".contains(*first)).unwrap_or('=');
        let digits = value.trim_start_matches(['-', '/']);
        let bits = u32::from_str_radix(digits, 8)
            .map_err(|_| format!("invalid mode '{value}'; write it in octal digits"))?;
        Ok(Expression::Mode { bits, kind })
    }

    fn act(&mut self, action: Expression) -> Expression {
        self.acts |= !matches!(action, Expression::Quit);
        action
    }

    fn value(&mut self, of: &str) -> Result<String, String> {
        self.words.next().ok_or_else(|| format!("missing argument to '{of}'"))
    }

    fn whole(&mut self, of: &str) -> Result<usize, String> {
        let value = self.value(of)?;
        value.parse().map_err(|_| {
            format!("Expected a positive decimal integer argument to {of}, but got '{value}'")
        })
    }

    fn size(&mut self) -> Result<Expression, String> {
        let value = self.value("-size")?;
        let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match value.get(digits.len()..).unwrap_or_default() {
            "" | "b" => 512,
            "c" => 1,
            "w" => 2,
            "k" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            other => return Err(format!("invalid -size type '{other}'")),
        };
        Ok(Expression::Size(compare("-size", digits)?, unit))
    }

    fn age(&mut self, of: &str, moment: Which, unit: u64) -> Result<Expression, String> {
        let value = self.value(of)?;
        Ok(Expression::Age { moment, compare: compare(of, &value)?, unit, now: self.now })
    }

    fn command(&mut self, of: &str) -> Result<Expression, String> {
        let mut words = Vec::new();
        loop {
            let Some(word) = self.words.next() else {
                return Err(format!("missing argument to '{of}'"));
            };
            let many = word == "+" && words.last().is_some_and(|last| last == "{}");
            if word != ";" && !many {
                words.push(word);
                continue;
            }
            if words.is_empty() {
                return Err(format!("missing argument to '{of}'"));
            }
            self.commands += 1;
            let number = self.commands;
            if many {
                words.pop();
                return Ok(self.act(Expression::RunMany { words, number }));
            }
            return Ok(self.act(Expression::Run { words, folder: of.ends_with("dir") }));
        }
    }
}

fn one(mut items: Vec<Expression>, many: impl FnOnce(Vec<Expression>) -> Expression) -> Expression {
    match items.pop() {
        Some(only) if items.is_empty() => only,
        Some(last) => {
            items.push(last);
            many(items)
        }
        None => Expression::True,
    }
}

fn compare(of: &str, text: &str) -> Result<Compare, String> {
    let number = |digits: &str| {
        digits
            .parse::<f64>()
            .map(|number| number as u64)
            .map_err(|_| format!("invalid argument '{text}' to '{of}'"))
    };
    Ok(match text.chars().next() {
        Some('-') => Compare::Less(number(text.get(1..).unwrap_or_default())?),
        Some('+') => Compare::More(number(text.get(1..).unwrap_or_default())?),
        _ => Compare::Same(number(text)?),
    })
}

/// Returns the time that has passed from `moment` to `now`; zero if `moment` is later.
pub(crate) fn before(now: SystemTime, moment: SystemTime) -> Duration {
    now.duration_since(moment).unwrap_or_default()
}
