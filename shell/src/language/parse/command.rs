//! Parses lists, chains, pipelines, simple commands and functions.

use std::sync::Arc;

use super::cursor::ends_word;
use super::size::{CHAINED, COMMAND, ITEM, REDIRECT, WORD, text_size};
use super::{ParseResult, Parser};
use crate::language::ast::{
    Argument, Chain, Command, Connector, Item, Kind, List, Pipeline, Redirect, Simple, TimeFormat,
};

/// Reserved words. They are special where a command may start.
const RESERVED: [&str; 21] = [
    "!", "{", "}", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// Reserved words that end a list of commands.
const ENDS: [&str; 8] = ["}", "do", "done", "elif", "else", "esac", "fi", "then"];

/// Maximum length of a function's name, in bytes.
const MAX_NAME: usize = 1_024;

/// Builtins whose arguments may be assignments.
const DECLARES: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

impl Parser {
    /// Parses commands up to the end of the script, a `)`, a `;;` or a reserved word that ends a
    /// list.
    pub(super) fn list(&mut self) -> ParseResult<List> {
        let mut items = Vec::new();
        loop {
            self.newlines()?;
            if self.list_ends() {
                items.shrink_to_fit();
                return Ok(List { items, _charge: self.charge() });
            }
            let from = self.at;
            let chain = self.chain()?;
            let text = self.text_since(from);
            self.skip_spaces();
            let background = if self.peek() == Some('&') && self.peek_at(1) != Some('&') {
                self.next();
                Some(text.trim().to_owned())
            } else {
                None
            };
            let separated = background.is_some()
                || match self.peek() {
                    Some(';') if !matches!(self.peek_at(1), Some(';' | '&')) => {
                        self.next().is_some()
                    }
                    Some('\n') => true,
                    _ => false,
                };
            self.count(ITEM + background.as_deref().map_or(0, text_size))?;
            items.push(Item { chain: Arc::new(chain), background });
            self.skip_spaces();
            if !separated && !self.list_ends() {
                let found = self.found();
                return Err(self.error(format!("unexpected {found} after a command")));
            }
            if separated && self.peek() == Some(';') && !matches!(self.peek_at(1), Some(';' | '&'))
            {
                return Err(self.error("unexpected `;`: expected a command"));
            }
        }
    }

    /// Parses a list of at least one command. `of` describes the list in the error message.
    pub(super) fn body(&mut self, of: &str) -> ParseResult<List> {
        let list = self.deeper(Parser::list)?;
        if list.items.is_empty() {
            let found = self.found();
            return Err(self.error(format!("unexpected {found}: expected a command {of}")));
        }
        Ok(list)
    }

    fn list_ends(&self) -> bool {
        match self.peek() {
            None | Some(')') => true,
            Some(';') => matches!(self.peek_at(1), Some(';' | '&')),
            _ => self.reserved().is_some_and(|word| ENDS.contains(&word)),
        }
    }

    /// Returns the reserved word that comes next, if there is one.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        let length =
            self.chars.iter().skip(self.at).take(9).take_while(|c| !ends_word(**c)).count();
        RESERVED.into_iter().find(|word| word.len() == length && self.looking_at(word))
    }

    /// Consumes a reserved word if it comes next.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let found = self.reserved() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Consumes a reserved word. Fails if another word comes next. `opened` is the word that starts
    /// the enclosing construct, with its line number.
    pub(super) fn expect(&mut self, word: &str, opened: (&str, u32)) -> ParseResult<()> {
        if self.keyword(word) {
            return Ok(());
        }
        let (of, line) = opened;
        let found = self.found();
        Err(self
            .error(format!("unexpected {found}: expected `{word}` for the `{of}` in line {line}")))
    }

    fn chain(&mut self) -> ParseResult<Chain> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_spaces();
            let joint = if self.take("&&") {
                Connector::And
            } else if self.take("||") {
                Connector::Or
            } else {
                rest.shrink_to_fit();
                return Ok(Chain { first, rest });
            };
            self.newlines()?;
            self.count(CHAINED)?;
            rest.push((joint, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> ParseResult<Pipeline> {
        let (mut timed, mut negated) = (None, false);
        loop {
            self.skip_spaces();
            if self.keyword("!") {
                negated = !negated;
            } else if timed.is_none() && self.keyword("time") {
                self.skip_spaces();
                let mark = self.mark();
                timed = Some(TimeFormat::Plain);
                if self.take("-p") {
                    if self.peek().is_none_or(ends_word) {
                        timed = Some(TimeFormat::Posix);
                    } else {
                        self.back_to(&mark);
                    }
                }
            } else {
                break;
            }
        }
        let bare = (timed.is_some() || negated)
            && (self.list_ends() || matches!(self.peek(), Some('\n' | ';')));
        if bare {
            return Ok(Pipeline { timed, negated, stages: Vec::new() });
        }
        let mut stages = vec![self.command()?];
        loop {
            self.skip_spaces();
            let both = self.looking_at("|&");
            if !both && (self.peek() != Some('|') || self.peek_at(1) == Some('|')) {
                break;
            }
            self.at += if both { 2 } else { 1 };
            if both && let Some(stage) = stages.last_mut() {
                stage.redirects.push(Redirect::errors_to_output());
                stage.redirects.shrink_to_fit();
                self.count(REDIRECT + WORD)?;
            }
            self.newlines()?;
            stages.push(self.command()?);
        }
        Ok(Pipeline { timed, negated, stages: stages.into_iter().map(Arc::new).collect() })
    }

    /// Parses a command.
    pub(super) fn command(&mut self) -> ParseResult<Command> {
        self.skip_spaces();
        let line = self.line;
        let kind = match self.compound()? {
            Some(kind) => kind,
            None => return self.simple(line),
        };
        let redirects = self.redirects()?;
        self.finish_command(kind, redirects, line)
    }

    /// Creates a command and charges its nodes.
    fn finish_command(
        &mut self,
        kind: Kind,
        mut redirects: Vec<Redirect>,
        line: u32,
    ) -> ParseResult<Command> {
        redirects.shrink_to_fit();
        self.count(COMMAND)?;
        Ok(Command { kind, redirects, line, _charge: self.charge() })
    }

    fn simple(&mut self, line: u32) -> ParseResult<Command> {
        let (mut simple, mut redirects) = (Simple::default(), Vec::new());
        let mut declares = false;
        loop {
            self.skip_spaces();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if (simple.words.is_empty() || declares)
                && let Some(assignment) = self.assignment()?
            {
                if simple.words.is_empty() {
                    simple.assignments.push(assignment);
                } else {
                    simple.words.push(Argument::Assignment(Box::new(assignment)));
                }
                continue;
            }
            match self.peek() {
                Some('<' | '>') if self.peek_at(1) == Some('(') => {}
                Some(c) if !ends_word(c) => {}
                _ => break,
            }
            let word = self.word()?;
            let first = simple.words.iter().all(|word| {
                matches!(
                    word,
                    Argument::Word(word)
                        if word.plain().is_some_and(|name| matches!(name, "command" | "builtin"))
                )
            });
            declares |= first && word.plain().is_some_and(|name| DECLARES.contains(&name));
            if simple.words.is_empty()
                && simple.assignments.is_empty()
                && redirects.is_empty()
                && self.parentheses()?
            {
                return self.function(word.plain().map(str::to_owned), line);
            }
            simple.words.push(Argument::Word(word));
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && redirects.is_empty() {
            let found = self.found();
            return Err(self.error(format!("unexpected {found}: expected a command")));
        }
        if self.peek() == Some('(') {
            return Err(
                self.error("unexpected `(`: quote it, or put a space and `;` before a subshell")
            );
        }
        simple.assignments.shrink_to_fit();
        simple.words.shrink_to_fit();
        self.finish_command(Kind::Simple(simple), redirects, line)
    }

    /// Consumes the `()` after a function's name, if it comes next.
    pub(super) fn parentheses(&mut self) -> ParseResult<bool> {
        let mark = self.mark();
        self.skip_spaces();
        if self.take("(") {
            self.skip_spaces();
            if self.take(")") {
                return Ok(true);
            }
        }
        self.back_to(&mark);
        Ok(false)
    }

    /// Parses the body of a function.
    pub(super) fn function(&mut self, name: Option<String>, line: u32) -> ParseResult<Command> {
        let Some(name) = name.filter(|name| !name.contains(['$', '=', '/'])) else {
            return Err(self.error("a function's name is a plain word"));
        };
        if name.len() > MAX_NAME {
            return Err(self.error(format!("a function's name has at most {MAX_NAME} bytes")));
        }
        self.newlines()?;
        let body_line = self.line;
        let Some(kind) = self.deeper(Parser::compound)? else {
            let found = self.found();
            return Err(self.error(format!(
                "unexpected {found}: expected the body of the function `{name}`, such as `{{ …; \
                 }}`"
            )));
        };
        let redirects = self.redirects()?;
        // The shell keeps a copy of the name with the body.
        self.count(2 * text_size(&name))?;
        let body = Arc::new(self.finish_command(kind, redirects, body_line)?);
        self.finish_command(Kind::Function(name, body), Vec::new(), line)
    }
}
