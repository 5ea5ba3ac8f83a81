//! Parses commands: lists, pipelines, simple and compound commands, functions, redirections,
//! assignments, and the tests of `[[ ]]`.

use std::sync::{Arc, OnceLock};

use super::word::{Style, Until};
use super::{
    ARM, ASSIGNMENT, BRANCH, CHAINED, COMMAND, Document, ELEMENT, ITEM, MAX_MISREAD, ParseResult,
    Parser, REDIRECT, SyntaxError, TEST, WORD, begins_name, ends_word, in_name, text_size,
};
use crate::language::ast::{
    Argument, Arm, AssignedValue, Assignment, CaseEnd, Chain, Command, Connector, Descriptor,
    Element, Item, Kind, List, Part, Pipeline, Redirect, Simple, Target, Test, TimeFormat, Word,
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
            let line = self.line;
            self.newlines()?;
            let starts_line = self.line > line;
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
            items.push(Item { chain: Arc::new(chain), background, starts_line });
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
    fn body(&mut self, of: &str) -> ParseResult<List> {
        let list = self.deeper(Parser::list)?;
        if list.items.is_empty() {
            return Err(self.unexpected(format!("a command {of}")));
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
    fn reserved(&self) -> Option<&'static str> {
        let length =
            self.chars.iter().skip(self.at).take(9).take_while(|c| !ends_word(**c)).count();
        RESERVED.into_iter().find(|word| word.len() == length && self.looking_at(word))
    }

    /// Consumes a reserved word if it comes next.
    fn keyword(&mut self, word: &str) -> bool {
        let found = self.reserved() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Consumes a reserved word. Fails if another word comes next. `of` is the word that starts the
    /// enclosing construct, in line `line`.
    fn expect(&mut self, word: &str, of: &str, line: u32) -> ParseResult<()> {
        if self.keyword(word) {
            return Ok(());
        }
        Err(self.unexpected(format!("`{word}` for the `{of}` in line {line}")))
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
        let mut timed = None;
        let mut negated = false;
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
    fn command(&mut self) -> ParseResult<Command> {
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
        let mut simple = Simple::default();
        let mut redirects = Vec::new();
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
            if !self.starts_word() {
                break;
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
            return Err(self.unexpected("a command"));
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
    fn parentheses(&mut self) -> ParseResult<bool> {
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
            return Err(
                self.unexpected(format!("the body of the function `{name}`, such as `{{ …; }}`"))
            );
        };
        let redirects = self.redirects()?;
        // The shell keeps a copy of the name with the body.
        self.count(2 * text_size(&name))?;
        let body = Arc::new(self.finish_command(kind, redirects, body_line)?);
        self.finish_command(Kind::Function(name, body), Vec::new(), line)
    }
}

/// Compound commands: groups, conditions, loops, `case`.
impl Parser {
    /// Parses a compound command, if one comes next.
    fn compound(&mut self) -> ParseResult<Option<Kind>> {
        let line = self.line;
        if self.peek() == Some('(') {
            if self.peek_at(1) == Some('(')
                && let Some(word) = self.double_parentheses()?
            {
                return Ok(Some(Kind::Arithmetic(word)));
            }
            self.next();
            return Ok(Some(Kind::Subshell(Arc::new(self.until_parenthesis("(", line)?))));
        }
        let Some(word) = self.reserved() else { return Ok(None) };
        let kind = match word {
            "{" => {
                self.at += 1;
                let list = self.body("after `{`")?;
                self.expect("}", "{", line)?;
                Kind::Group(Arc::new(list))
            }
            "if" => self.condition(line)?,
            "while" | "until" => {
                self.at += 5;
                let test = self.body(&format!("after `{word}`"))?;
                let body = self.do_group(word, line)?;
                Kind::While { until: word == "until", test, body }
            }
            "for" => self.for_loop(line)?,
            "select" => {
                self.at += 6;
                let (name, words) = self.loop_head("select")?;
                Kind::Select { name, words, body: self.do_group("select", line)? }
            }
            "case" => self.case(line)?,
            "[[" => {
                self.at += 2;
                Kind::Test(self.deeper(|parser| parser.double_bracket(line))?)
            }
            "function" => {
                self.at += 8;
                self.skip_spaces();
                let name = self.word()?;
                self.parentheses()?;
                let command = self.function(name.plain().map(str::to_owned), line)?;
                command.kind
            }
            "coproc" => {
                return Err(
                    self.error("`coproc` is not supported: use a pipeline or `&` with a file")
                );
            }
            _ => {
                return Err(self.unexpected("a command"));
            }
        };
        Ok(Some(kind))
    }

    /// Parses a list and the `)` that closes it.
    pub(super) fn until_parenthesis(&mut self, opened: &str, line: u32) -> ParseResult<List> {
        let outer = std::mem::take(&mut self.documents);
        let list = self.deeper(Parser::list)?;
        if !self.take(")") {
            return Err(self.unexpected(format!("`)` for the `{opened}` in line {line}")));
        }
        // The body of a pending here-document starts after the line in which the parentheses end.
        let pending = std::mem::replace(&mut self.documents, outer);
        self.documents.extend(pending);
        Ok(list)
    }

    /// Parses `(( … ))`. Returns `None` if the parentheses open subshells.
    pub(super) fn double_parentheses(&mut self) -> ParseResult<Option<Word>> {
        if self.misread >= MAX_MISREAD {
            let message = "too many `((` that do not start arithmetic: put a space between the \
                           parentheses of subshells";
            return Err(SyntaxError { incomplete: false, ..self.error(message) });
        }
        let mark = self.mark();
        self.at += 2;
        match self.deeper(|parser| parser.arithmetic(Until::Parentheses)) {
            Ok(word) if self.take("))") => Ok(Some(word)),
            Ok(_) | Err(_) => {
                self.misread += 1;
                self.back_to(&mark);
                Ok(None)
            }
        }
    }

    fn condition(&mut self, line: u32) -> ParseResult<Kind> {
        self.at += 2;
        let mut arms = Vec::new();
        let mut otherwise = None;
        let mut word = "if";
        loop {
            let test = self.body(&format!("after `{word}`"))?;
            self.expect("then", word, line)?;
            arms.push((test, self.body("after `then`")?));
            self.count(BRANCH)?;
            if self.keyword("elif") {
                word = "elif";
                continue;
            }
            if self.keyword("else") {
                otherwise = Some(self.body("after `else`")?);
            }
            self.expect("fi", "if", line)?;
            arms.shrink_to_fit();
            return Ok(Kind::If { arms, otherwise });
        }
    }

    fn do_group(&mut self, of: &str, line: u32) -> ParseResult<List> {
        self.newlines()?;
        if self.keyword("{") {
            let list = self.body("after `{`")?;
            self.expect("}", "{", line)?;
            return Ok(list);
        }
        self.expect("do", of, line)?;
        let list = self.body("after `do`")?;
        self.expect("done", of, line)?;
        Ok(list)
    }

    fn for_loop(&mut self, line: u32) -> ParseResult<Kind> {
        self.at += 3;
        self.skip_spaces();
        if self.take("((") {
            let start = self.arithmetic(Until::Semicolon)?;
            let test = self.take(";").then(|| self.arithmetic(Until::Semicolon)).transpose()?;
            let step = self.take(";").then(|| self.arithmetic(Until::Parentheses)).transpose()?;
            let (Some(test), Some(step), true) = (test, step, self.take("))")) else {
                return Err(self.error("expected `for ((start; test; step))`"));
            };
            self.skip_spaces();
            if self.peek() == Some(';') {
                self.next();
            }
            return Ok(Kind::Count { start, test, step, body: self.do_group("for", line)? });
        }
        let (name, words) = self.loop_head("for")?;
        Ok(Kind::For { name, words, body: self.do_group("for", line)? })
    }

    /// Parses the head of a loop: `name [in words] ;`.
    fn loop_head(&mut self, of: &str) -> ParseResult<(String, Option<Vec<Word>>)> {
        self.skip_spaces();
        let name = self.name().filter(|_| self.peek().is_none_or(ends_word));
        let Some(name) = name else {
            return Err(self.unexpected(format!("a variable's name after `{of}`")));
        };
        self.count(text_size(&name))?;
        self.newlines()?;
        let mut words = None;
        if self.keyword("in") {
            words = Some(self.words()?);
        }
        self.skip_spaces();
        if self.peek() == Some(';') && self.peek_at(1) != Some(';') {
            self.next();
        }
        Ok((name, words))
    }

    /// Returns true if a word comes next. `<(` and `>(` start a word, too.
    fn starts_word(&self) -> bool {
        match self.peek() {
            Some('<' | '>') => self.peek_at(1) == Some('('),
            next => next.is_some_and(|c| !ends_word(c)),
        }
    }

    /// Parses words up to the end of the command.
    fn words(&mut self) -> ParseResult<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_spaces();
            if !self.starts_word() {
                words.shrink_to_fit();
                return Ok(words);
            }
            words.push(self.word()?);
        }
    }

    fn case(&mut self, line: u32) -> ParseResult<Kind> {
        self.at += 4;
        self.skip_spaces();
        let word = self.word()?;
        self.newlines()?;
        self.expect("in", "case", line)?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.keyword("esac") {
                arms.shrink_to_fit();
                return Ok(Kind::Case { word, arms });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_spaces();
                if self.peek().is_none_or(ends_word) {
                    return Err(self.unexpected(format!(
                        "a pattern, or `esac` for the `case` in line {line}"
                    )));
                }
                patterns.push(self.word()?);
                self.skip_spaces();
                if !self.take("|") {
                    break;
                }
            }
            patterns.shrink_to_fit();
            if !self.take(")") {
                return Err(
                    self.unexpected(format!("`)` after a pattern of the `case` in line {line}"))
                );
            }
            self.count(ARM)?;
            let body = self.deeper(Parser::list)?;
            let then = if self.take(";;&") {
                CaseEnd::TestNext
            } else if self.take(";&") {
                CaseEnd::FallThrough
            } else if self.take(";;") {
                CaseEnd::Break
            } else {
                arms.push(Arm { patterns, body, then: CaseEnd::Break });
                self.expect("esac", "case", line)?;
                arms.shrink_to_fit();
                return Ok(Kind::Case { word, arms });
            };
            arms.push(Arm { patterns, body, then });
        }
    }
}

impl Redirect {
    /// Creates the redirection `2>&1`, which `|&` adds to a command.
    fn errors_to_output() -> Redirect {
        let word = Word::of_part(Part::Literal("1".into()));
        Redirect { fd: Descriptor::Number(2), to: Target::Duplicate { word, input: false } }
    }
}

/// Redirections and assignments.
impl Parser {
    /// Parses the redirections after a compound command.
    fn redirects(&mut self) -> ParseResult<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.skip_spaces();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// Parses a redirection, if one comes next.
    fn redirect(&mut self) -> ParseResult<Option<Redirect>> {
        let redirect = self.one_redirect()?;
        if let Some(Redirect { fd, .. }) = &redirect {
            let name = if let Descriptor::Named(name) = fd { text_size(name) } else { 0 };
            self.count(REDIRECT + name)?;
        }
        Ok(redirect)
    }

    fn one_redirect(&mut self) -> ParseResult<Option<Redirect>> {
        let mark = self.mark();
        let fd = self.descriptor();
        match (self.peek(), self.peek_at(1)) {
            (Some('<' | '>'), Some('(')) => {
                self.back_to(&mark);
                return Ok(None);
            }
            (Some('&'), Some('>')) if fd.is_none() => {
                self.at += 2;
                let append = self.take(">");
                let path = self.target("&>")?;
                let to = if append {
                    Target::Append(path)
                } else {
                    Target::Write { path, clobber: false }
                };
                return Ok(Some(Redirect { fd: Descriptor::Both, to }));
            }
            (Some('<' | '>'), _) => {}
            _ => {
                self.back_to(&mark);
                return Ok(None);
            }
        }
        let output = self.peek() == Some('>');
        let to = if self.take("<<<") {
            Target::HereString(self.target("<<<")?)
        } else if self.take("<<-") {
            self.document(true)?
        } else if self.take("<<") {
            self.document(false)?
        } else if self.take("<&") {
            Target::Duplicate { word: self.target("<&")?, input: true }
        } else if self.take(">&") {
            Target::Duplicate { word: self.target(">&")?, input: false }
        } else if self.take("<>") {
            Target::ReadWrite(self.target("<>")?)
        } else if self.take(">>") {
            Target::Append(self.target(">>")?)
        } else if self.take(">|") {
            Target::Write { path: self.target(">|")?, clobber: true }
        } else if self.take(">") {
            Target::Write { path: self.target(">")?, clobber: false }
        } else {
            self.take("<");
            Target::Read(self.target("<")?)
        };
        // `>&word` means `&>word` if the word is not a number, which the interpreter decides.
        Ok(Some(Redirect { fd: fd.unwrap_or(Descriptor::Number(u32::from(output))), to }))
    }

    /// Parses a number or `{name}` directly before `<` or `>`.
    fn descriptor(&mut self) -> Option<Descriptor> {
        let mark = self.mark();
        let from = self.at;
        if self.take("{") {
            if let Some(name) = self.name()
                && self.take("}")
                && matches!(self.peek(), Some('<' | '>'))
            {
                return Some(Descriptor::Named(name));
            }
        } else {
            while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                self.at += 1;
            }
            if matches!(self.peek(), Some('<' | '>'))
                && let Ok(number) = self.text_since(from).parse()
            {
                return Some(Descriptor::Number(number));
            }
        }
        self.back_to(&mark);
        None
    }

    fn target(&mut self, after: &str) -> ParseResult<Word> {
        self.skip_spaces();
        if !self.starts_word() {
            return Err(self.unexpected(format!("a file after `{after}`")));
        }
        self.word()
    }

    fn document(&mut self, strip_tabs: bool) -> ParseResult<Target> {
        self.skip_spaces();
        let line = self.line;
        let from = self.at;
        if self.peek().is_none_or(ends_word) {
            return Err(self.unexpected("the word that ends the here-document"));
        }
        self.word()?;
        let written = self.text_since(from);
        let mut end = String::new();
        let mut chars = written.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => end.extend(chars.next()),
                '\'' | '"' => {}
                '$' if written.starts_with("$'") => {}
                other => end.push(other),
            }
        }
        let literal = written.contains(['\'', '"', '\\']);
        let body = Arc::new(OnceLock::new());
        self.documents.push(Document { end, strip_tabs, literal, line, body: body.clone() });
        Ok(Target::Here(body))
    }

    /// Parses an assignment, if one comes next.
    fn assignment(&mut self) -> ParseResult<Option<Assignment>> {
        if !self.peek().is_some_and(begins_name) || !self.may_assign() {
            return Ok(None);
        }
        let mark = self.mark();
        let Some(name) = self.name() else { return Ok(None) };
        let index = if self.peek() == Some('[') {
            match self.bracketed() {
                Ok(index) => Some(index),
                Err(_) => {
                    self.back_to(&mark);
                    return Ok(None);
                }
            }
        } else {
            None
        };
        let append = self.looking_at("+=");
        if !append && self.peek() != Some('=') {
            self.back_to(&mark);
            return Ok(None);
        }
        self.at += if append { 2 } else { 1 };
        let value = if self.peek() == Some('(') && index.is_none() {
            AssignedValue::Array(self.deeper(Parser::elements)?)
        } else {
            AssignedValue::Text(self.word_in(Style::Assigned)?)
        };
        self.count(ASSIGNMENT + text_size(&name))?;
        Ok(Some(Assignment { name, index, append, value }))
    }

    /// Returns true if the next word can be an assignment.
    fn may_assign(&self) -> bool {
        let after = self.chars.iter().skip(self.at).find(|c| !in_name(**c));
        matches!(after, Some('=' | '+' | '['))
    }

    /// Parses `[…]` and returns the word between the brackets.
    pub(super) fn bracketed(&mut self) -> ParseResult<Word> {
        self.take("[");
        let word = self.deeper(|parser| parser.arithmetic(Until::Bracket))?;
        if self.take("]") { Ok(word) } else { Err(self.error("expected `]`")) }
    }

    fn elements(&mut self) -> ParseResult<Vec<Element>> {
        let line = self.line;
        self.take("(");
        let mut elements = Vec::new();
        loop {
            self.newlines()?;
            if self.take(")") {
                elements.shrink_to_fit();
                return Ok(elements);
            }
            if !self.starts_word() {
                return Err(self.unexpected(format!("`)` for the array in line {line}")));
            }
            elements.push(self.element()?);
            self.count(ELEMENT)?;
        }
    }

    fn element(&mut self) -> ParseResult<Element> {
        let mark = self.mark();
        if self.peek() == Some('[')
            && let Ok(index) = self.bracketed()
        {
            let append = self.take("+=");
            if append || self.take("=") {
                return Ok(Element {
                    index: Some(index),
                    append,
                    value: self.word_in(Style::Assigned)?,
                });
            }
        }
        self.back_to(&mark);
        Ok(Element { index: None, append: false, value: self.word()? })
    }
}

/// The binary operators. Each operator is listed before its prefixes.
const BINARY: [&str; 15] = [
    "=~", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "=", "<", ">",
];

/// The expressions of `[[ ]]`.
impl Parser {
    /// Parses the rest of a test after `[[`, up to and including the `]]`.
    fn double_bracket(&mut self, line: u32) -> ParseResult<Test> {
        let test = self.either()?;
        self.newlines()?;
        if self.at_brackets() && self.take("]]") {
            return Ok(test);
        }
        Err(self.unexpected(format!("`]]` for the `[[` in line {line}")))
    }

    /// Returns true if the closing `]]` comes next.
    fn at_brackets(&self) -> bool {
        self.looking_at("]]") && self.peek_at(2).is_none_or(ends_word)
    }

    fn either(&mut self) -> ParseResult<Test> {
        let mut left = self.both()?;
        loop {
            self.newlines()?;
            if !self.take("||") {
                return Ok(left);
            }
            left = Test::Or(Box::new(left), Box::new(self.both()?));
        }
    }

    fn both(&mut self) -> ParseResult<Test> {
        let mut left = self.term()?;
        loop {
            self.newlines()?;
            if !self.take("&&") {
                return Ok(left);
            }
            left = Test::And(Box::new(left), Box::new(self.term()?));
        }
    }

    fn term(&mut self) -> ParseResult<Test> {
        self.newlines()?;
        self.count(TEST)?;
        if self.peek() == Some('!') && self.peek_at(1).is_none_or(ends_word) {
            self.next();
            return Ok(Test::Not(Box::new(self.deeper(Parser::term)?)));
        }
        if self.take("(") {
            let test = self.deeper(Parser::either)?;
            self.newlines()?;
            if self.take(")") {
                return Ok(test);
            }
            let found = self.found();
            return Err(self.error(format!("unexpected {found} in `[[ ]]`: expected `)`")));
        }
        if let Some(operator) = self.unary_operator() {
            self.skip_spaces();
            return Ok(Test::Unary(operator, self.test_word()?));
        }
        let left = self.test_word()?;
        self.skip_spaces();
        let Some(operator) = self.binary_operator() else { return Ok(Test::Word(left)) };
        self.at += operator.len();
        self.skip_spaces();
        let right = match operator {
            "=~" => self.word_in(Style::Regex)?,
            _ => self.test_word()?,
        };
        Ok(Test::Binary(left, operator.into(), right))
    }

    /// Consumes a unary operator such as `-f`, if it is followed by a word that is not an operator.
    fn unary_operator(&mut self) -> Option<String> {
        let letter = self.peek_at(1).filter(char::is_ascii_alphabetic)?;
        if self.peek() != Some('-') || !matches!(self.peek_at(2), Some(' ' | '\t')) {
            return None;
        }
        let mark = self.mark();
        self.at += 2;
        self.skip_spaces();
        if self.binary_operator().is_some()
            || self.peek().is_none_or(|c| matches!(c, ')' | '&' | '|'))
            || self.at_brackets()
        {
            self.back_to(&mark);
            return None;
        }
        Some(format!("-{letter}"))
    }

    /// Returns the binary operator that comes next, if there is one.
    fn binary_operator(&self) -> Option<&'static str> {
        let ends = |operator: &str| {
            matches!(operator, "<" | ">")
                || self.peek_at(operator.len()).is_none_or(|c| matches!(c, ' ' | '\t' | '\n'))
        };
        BINARY.into_iter().find(|operator| self.looking_at(operator) && ends(operator))
    }

    fn test_word(&mut self) -> ParseResult<Word> {
        if self.peek().is_none_or(ends_word) || self.at_brackets() {
            let found = self.found();
            return Err(self.error(format!("unexpected {found} in `[[ ]]`: expected a word")));
        }
        self.word()
    }
}
