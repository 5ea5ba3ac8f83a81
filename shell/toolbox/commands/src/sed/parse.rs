//! The parser for sed scripts.

use std::collections::HashMap;
use std::rc::Rc;

use super::Error;
use super::syntax::{
    Action, Address, Case, Command, Condition, Part, RangeEnd, Regex, Script, Substitution,
};
use crate::pattern::{Notation, Posix, Tool};

/// The options that change how a script is parsed.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub extended: bool,
    /// If true, commands that read or write files are rejected.
    pub sandbox: bool,
}

/// Parses a script.
///
/// # Errors
///
/// If the script is invalid. The message is GNU sed's and contains the position of the error.
pub(super) fn parse(cursor: Cursor, rules: Rules) -> Result<Script, Error> {
    let mut parser = Parser {
        cursor,
        rules,
        script: Script::default(),
        blocks: Vec::new(),
        labels: HashMap::new(),
        jumps: Vec::new(),
    };
    parser.commands()?;
    parser.link()?;
    Ok(parser.script)
}

struct Parser {
    cursor: Cursor,
    rules: Rules,
    script: Script,
    /// The indexes of the commands that start the open blocks.
    blocks: Vec<usize>,
    labels: HashMap<String, usize>,
    /// The indexes of the jump commands, with their labels.
    jumps: Vec<(usize, String)>,
}

impl Parser {
    fn commands(&mut self) -> Result<(), String> {
        if self.cursor.at_start() && self.cursor.take('#') {
            let comment = self.cursor.take_while(|letter| letter != '\n');
            self.script.quiet = comment == "n";
        }
        loop {
            self.cursor.take_while(|letter| letter.is_whitespace() || letter == ';');
            if self.cursor.peek().is_none() {
                break;
            }
            self.command()?;
        }
        if self.blocks.is_empty() { Ok(()) } else { Err(self.cursor.error("unmatched `{'")) }
    }

    /// Resolves the labels of the jumps.
    fn link(&mut self) -> Result<(), Error> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let target = self.labels.get(&label).copied();
            if target.is_none() {
                return Err(Error(format!("can't find label for jump to `{label}'"), 4));
            }
            if let Some(Command { action: Action::Branch(_, to), .. }) =
                self.script.commands.get_mut(at)
            {
                *to = target;
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), String> {
        let first = self.address()?;
        self.cursor.skip_spaces();
        let ranges = first.is_some() && self.cursor.take(',');
        let last = ranges.then(|| self.range_end()).transpose()?;
        if matches!(first, Some(Address::Line(0))) && !matches!(last, Some(RangeEnd::Regex(_))) {
            return Err(self.cursor.error("invalid usage of line address 0"));
        }
        self.cursor.skip_whitespace();
        let negated = self.cursor.take('!');
        if negated {
            self.cursor.skip_whitespace();
            if self.cursor.peek() == Some('!') {
                return Err(self.cursor.error("multiple `!'s"));
            }
        }
        let Some(name) = self.cursor.next() else {
            return Err(self.cursor.error("missing command"));
        };
        let addresses = usize::from(first.is_some()) + usize::from(last.is_some());
        let most = match name {
            ':' | '}' | '#' => 0,
            'q' | 'Q' => 1,
            _ => 2,
        };
        if addresses > most {
            let why = match name {
                ':' => ": doesn't want any addresses",
                '#' => "comments don't accept any addresses",
                '}' => "unexpected `}'",
                _ => "command only uses one address",
            };
            return Err(self.cursor.error(why));
        }
        if name == '#' {
            self.cursor.take_while(|letter| letter != '\n');
            return Ok(());
        }
        let action = self.action(name)?;
        self.script.commands.push(Command { first, last, negated, action });
        Ok(())
    }

    fn address(&mut self) -> Result<Option<Address>, String> {
        if let Some(line) = self.cursor.number() {
            self.cursor.skip_spaces();
            if !self.cursor.take('~') {
                return Ok(Some(Address::Line(line)));
            }
            self.cursor.skip_spaces();
            return Ok(Some(Address::Step(line, self.cursor.number().unwrap_or(0))));
        }
        match self.cursor.peek() {
            Some('$') => {
                self.cursor.next();
                Ok(Some(Address::Last))
            }
            Some('/' | '\\') => Ok(Some(Address::Regex(self.address_regex()?))),
            Some('+' | '~') => Err(self.cursor.error("invalid usage of +N or ~N as first address")),
            _ => Ok(None),
        }
    }

    fn range_end(&mut self) -> Result<RangeEnd, String> {
        self.cursor.skip_spaces();
        if let Some(line) = self.cursor.number() {
            return Ok(RangeEnd::Line(line));
        }
        let sign = self.cursor.peek();
        match sign {
            Some('/' | '\\') => return Ok(RangeEnd::Regex(self.address_regex()?)),
            Some('$' | '+' | '~') => _ = self.cursor.next(),
            _ => return Err(self.cursor.error("unexpected `,'")),
        }
        if sign == Some('$') {
            return Ok(RangeEnd::Last);
        }
        let Some(count) = self.cursor.number() else {
            return Err(self.cursor.error("expected a number after + or ~"));
        };
        Ok(if sign == Some('+') { RangeEnd::Count(count) } else { RangeEnd::Multiple(count) })
    }

    fn address_regex(&mut self) -> Result<Regex, String> {
        const UNTERMINATED: &str = "unterminated address regex";
        self.cursor.take('\\');
        let Some(delimiter) = self.cursor.next() else {
            return Err(self.cursor.error(UNTERMINATED));
        };
        let pattern = pattern(&mut self.cursor, delimiter, UNTERMINATED)?;
        let mut ignore_case = false;
        let mut lines = false;
        loop {
            if self.cursor.take('I') {
                ignore_case = true;
            } else if self.cursor.take('M') {
                lines = true;
            } else {
                return self.regex(&pattern, ignore_case, lines);
            }
        }
    }

    fn regex(&self, pattern: &str, ignore_case: bool, lines: bool) -> Result<Regex, String> {
        if pattern.is_empty() {
            return Ok(None);
        }
        let notation =
            Notation { ignore_case, lines, ..Notation::new(Tool::Sed, self.rules.extended) };
        match Posix::new(pattern, notation) {
            Ok(regex) => Ok(Some(Rc::new(regex))),
            Err(why) => Err(self.cursor.error(why)),
        }
    }

    /// Parses the arguments and the end of a command.
    fn action(&mut self, name: char) -> Result<Action, String> {
        let action = match name {
            '{' => {
                self.blocks.push(self.script.commands.len());
                return Ok(Action::Block(0));
            }
            '}' => self.block_end()?,
            ':' => return self.label(),
            'a' => return Ok(Action::Append(lines(&mut self.cursor)?)),
            'i' => return Ok(Action::Insert(lines(&mut self.cursor)?)),
            'c' => return Ok(Action::Change(lines(&mut self.cursor)?)),
            'b' => self.jump(Condition::Always),
            't' => self.jump(Condition::Substituted),
            'T' => self.jump(Condition::NotSubstituted),
            'r' => return Ok(Action::ReadFile(self.file()?)),
            'R' => return Ok(Action::ReadLine(self.file()?)),
            'w' => return Ok(Action::Write(self.output()?)),
            'W' => return Ok(Action::WriteFirst(self.output()?)),
            's' => return self.substitution(),
            'y' => self.transliteration()?,
            'l' => Action::List(self.argument().map(|length| length as usize)),
            'q' | 'Q' => {
                let status = self.argument().unwrap_or(0);
                Action::Quit(i32::try_from(status).unwrap_or(i32::MAX), name == 'q')
            }
            'e' => return Err(self.cursor.error(NO_COMMANDS)),
            'v' => {
                self.cursor.take_while(|letter| !letter.is_whitespace() && letter != ';');
                Action::Nothing
            }
            '=' => Action::LineNumber,
            'd' => Action::Delete,
            'D' => Action::DeleteFirst,
            'F' => Action::FileName,
            'g' => Action::Get,
            'G' => Action::GetAppend,
            'h' => Action::Hold,
            'H' => Action::HoldAppend,
            'n' => Action::Next,
            'N' => Action::NextAppend,
            'p' => Action::Print,
            'P' => Action::PrintFirst,
            'x' => Action::Exchange,
            'z' => Action::Zap,
            _ => return Err(self.cursor.error(format_args!("unknown command: `{name}'"))),
        };
        self.end()?;
        Ok(action)
    }

    fn block_end(&mut self) -> Result<Action, String> {
        let Some(start) = self.blocks.pop() else {
            return Err(self.cursor.error("unexpected `}'"));
        };
        let end = self.script.commands.len();
        if let Some(block) = self.script.commands.get_mut(start) {
            block.action = Action::Block(end);
        }
        Ok(Action::Nothing)
    }

    fn label(&mut self) -> Result<Action, String> {
        self.cursor.skip_spaces();
        let label = self.cursor.take_while(|letter| !letter.is_whitespace() && letter != ';');
        if label.is_empty() {
            return Err(self.cursor.error("\":\" lacks a label"));
        }
        self.labels.insert(label, self.script.commands.len());
        Ok(Action::Nothing)
    }

    fn jump(&mut self, condition: Condition) -> Action {
        self.cursor.skip_spaces();
        let label = self
            .cursor
            .take_while(|letter| !letter.is_whitespace() && letter != ';' && letter != '}');
        if !label.is_empty() {
            self.jumps.push((self.script.commands.len(), label));
        }
        Action::Branch(condition, None)
    }

    fn argument(&mut self) -> Option<u64> {
        self.cursor.skip_spaces();
        self.cursor.number()
    }

    fn file(&mut self) -> Result<String, String> {
        if self.rules.sandbox {
            return Err(self.cursor.error("e/r/w commands disabled in sandbox mode"));
        }
        self.cursor.skip_spaces();
        let path = self.cursor.take_while(|letter| letter != '\n');
        if path.is_empty() {
            return Err(self.cursor.error("missing filename in r/R/w/W commands"));
        }
        Ok(path)
    }

    fn output(&mut self) -> Result<usize, String> {
        let path = self.file()?;
        let known = self.script.outputs.iter().position(|output| *output == path);
        Ok(known.unwrap_or_else(|| {
            self.script.outputs.push(path);
            self.script.outputs.len() - 1
        }))
    }

    /// Parses the end of a command.
    fn end(&mut self) -> Result<(), String> {
        self.cursor.take_while(|letter| letter != '\n' && letter.is_whitespace());
        match self.cursor.peek() {
            None | Some('\n' | ';' | '}' | '#') => Ok(()),
            Some(_) => {
                self.cursor.next();
                Err(self.cursor.error("extra characters after command"))
            }
        }
    }

    fn delimiter(&mut self, unterminated: &str) -> Result<char, String> {
        match self.cursor.next() {
            Some(delimiter) if !matches!(delimiter, '\n' | '\\') => Ok(delimiter),
            _ => Err(self.cursor.error(unterminated)),
        }
    }

    fn transliteration(&mut self) -> Result<Action, String> {
        let delimiter = self.delimiter("unterminated `y' command")?;
        let from = letters(&mut self.cursor, delimiter)?;
        let to = letters(&mut self.cursor, delimiter)?;
        if from.len() != to.len() {
            return Err(self.cursor.error("strings for `y' command are different lengths"));
        }
        Ok(Action::Transliterate(from.into_iter().zip(to).collect()))
    }

    fn substitution(&mut self) -> Result<Action, String> {
        const UNTERMINATED: &str = "unterminated `s' command";
        let delimiter = self.delimiter(UNTERMINATED)?;
        let pattern = pattern(&mut self.cursor, delimiter, UNTERMINATED)?;
        let replacement = replacement(&mut self.cursor, delimiter)?;
        let mut flags = Flags::default();
        self.flags(&mut flags)?;
        let regex = self.regex(&pattern, flags.ignore_case, flags.lines)?;
        let referred = replacement.iter().filter_map(|part| match part {
            Part::Group(number) => Some(*number),
            _ => None,
        });
        let referred = referred.max().unwrap_or(0);
        if let Some(regex) = &regex
            && referred > regex.groups()
        {
            let why = format_args!("invalid reference \\{referred} on `s' command's RHS");
            return Err(self.cursor.error(why));
        }
        Ok(Action::Substitute(Box::new(Substitution {
            regex,
            replacement,
            from: flags.number.unwrap_or(1),
            all: flags.all,
            print: flags.print,
            write: flags.write,
        })))
    }

    /// Parses the flags of `s` and the end of the command.
    fn flags(&mut self, flags: &mut Flags) -> Result<(), String> {
        loop {
            let twice = match self.cursor.peek() {
                None | Some('\n' | ';' | '}' | '#') => return Ok(()),
                Some('0'..='9') => {
                    let number = self.cursor.number().unwrap_or(0);
                    if number == 0 {
                        let why = "number option to `s' command may not be zero";
                        return Err(self.cursor.error(why));
                    }
                    flags.number.replace(number as usize).map(|_| "number")
                }
                Some(letter) => {
                    self.cursor.next();
                    match letter {
                        'g' => std::mem::replace(&mut flags.all, true).then_some("`g'"),
                        'p' => std::mem::replace(&mut flags.print, true).then_some("`p'"),
                        'i' | 'I' => {
                            flags.ignore_case = true;
                            None
                        }
                        'm' | 'M' => {
                            flags.lines = true;
                            None
                        }
                        'w' => {
                            flags.write = Some(self.output()?);
                            return Ok(());
                        }
                        'e' => return Err(self.cursor.error(NO_COMMANDS)),
                        ' ' | '\t' | '\r' => None,
                        _ => return Err(self.cursor.error("unknown option to `s'")),
                    }
                }
            };
            if let Some(name) = twice {
                let why = format_args!("multiple {name} options to `s' command");
                return Err(self.cursor.error(why));
            }
        }
    }
}

/// The flags of the `s` command.
#[derive(Default)]
struct Flags {
    number: Option<usize>,
    all: bool,
    print: bool,
    ignore_case: bool,
    lines: bool,
    write: Option<usize>,
}

const NO_COMMANDS: &str =
    "`e' cannot run commands here; run them in the shell, or with `system` of awk";

/// Parses a pattern up to its delimiter, with sed's escapes replaced by their characters. A
/// delimiter within brackets does not end the pattern.
///
/// # Errors
///
/// If the delimiter is missing (with the message `unterminated`), or the escapes are not UTF-8.
fn pattern(cursor: &mut Cursor, delimiter: char, unterminated: &str) -> Result<String, String> {
    let mut text = Vec::new();
    let mut bracket = Bracket::default();
    loop {
        let Some(letter) = cursor.next() else { return Err(cursor.error(unterminated)) };
        if letter == delimiter && !bracket.is_open() {
            return String::from_utf8(text)
                .map_err(|_| cursor.error("the escapes of the pattern are not UTF-8"));
        }
        if letter != '\\' {
            bracket.step(letter, cursor.peek());
            push(&mut text, letter);
            continue;
        }
        let Some(escaped) = cursor.peek() else { return Err(cursor.error(unterminated)) };
        if escaped == delimiter && !bracket.is_open() {
            cursor.next();
            push(&mut text, escaped);
        } else if let Some(byte) = code(cursor) {
            bracket.step('x', None);
            text.push(byte);
        } else if bracket.is_open() {
            bracket.step('\\', None);
            text.push(b'\\');
        } else {
            cursor.next();
            text.push(b'\\');
            push(&mut text, escaped);
        }
    }
}

/// A scanner that tracks whether a position in a pattern is inside a bracket expression.
#[derive(Default)]
struct Bracket {
    /// The number of members read so far; `None` outside a bracket expression.
    members: Option<usize>,
    /// The sign of the class that is being read, such as the colon of `[:alpha:]`.
    class: Option<char>,
    previous: Option<char>,
}

impl Bracket {
    fn is_open(&self) -> bool {
        self.members.is_some()
    }

    fn step(&mut self, letter: char, next: Option<char>) {
        match (self.members, self.class) {
            (None, _) if letter == '[' => self.members = Some(0),
            (None, _) => {}
            (Some(_), Some(sign)) => {
                if letter == ']' && self.previous == Some(sign) {
                    self.class = None;
                }
            }
            (Some(0), None) if letter == '^' && self.previous == Some('[') => {}
            (Some(count), None) if letter == ']' && count > 0 => self.members = None,
            (Some(count), None) => {
                if letter == '[' {
                    self.class = next.filter(|next| matches!(next, ':' | '.' | '='));
                }
                self.members = Some(count + 1);
            }
        }
        self.previous = Some(letter);
    }
}

/// Parses a replacement up to its delimiter.
fn replacement(cursor: &mut Cursor, delimiter: char) -> Result<Vec<Part>, String> {
    const UNTERMINATED: &str = "unterminated `s' command";
    let mut parts = Vec::new();
    let mut text = Vec::new();
    loop {
        let Some(letter) = cursor.next() else { return Err(cursor.error(UNTERMINATED)) };
        let part = match letter {
            letter if letter == delimiter => break,
            '\n' => return Err(cursor.error(UNTERMINATED)),
            '&' => Part::Group(0),
            '\\' => {
                let Some(escaped) = cursor.peek() else { return Err(cursor.error(UNTERMINATED)) };
                if escaped != delimiter
                    && let Some(byte) = code(cursor)
                {
                    text.push(byte);
                    continue;
                }
                cursor.next();
                match (escaped.to_digit(10), case(escaped)) {
                    (Some(digit), _) if escaped != delimiter => Part::Group(digit as usize),
                    (_, Some(case)) if escaped != delimiter => Part::Case(case),
                    _ => {
                        push(&mut text, escaped);
                        continue;
                    }
                }
            }
            other => {
                push(&mut text, other);
                continue;
            }
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(part);
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

fn case(letter: char) -> Option<Case> {
    Some(match letter {
        'U' => Case::Upper,
        'L' => Case::Lower,
        'E' => Case::End,
        'u' => Case::NextUpper,
        'l' => Case::NextLower,
        _ => return None,
    })
}

/// Parses a character list of `y` up to its delimiter.
fn letters(cursor: &mut Cursor, delimiter: char) -> Result<Vec<char>, String> {
    const UNTERMINATED: &str = "unterminated `y' command";
    let mut text = Vec::new();
    loop {
        let Some(letter) = cursor.next() else { return Err(cursor.error(UNTERMINATED)) };
        if letter == delimiter {
            break;
        }
        if letter != '\\' {
            push(&mut text, letter);
            continue;
        }
        match cursor.peek() {
            None => return Err(cursor.error(UNTERMINATED)),
            Some(escaped) if escaped == delimiter || escaped == '\\' => {
                cursor.next();
                push(&mut text, escaped);
            }
            Some(_) => match code(cursor) {
                Some(byte) => text.push(byte),
                None => text.push(b'\\'),
            },
        }
    }
    match String::from_utf8(text) {
        Ok(text) => Ok(text.chars().collect()),
        Err(_) => Err(cursor.error("the escapes of the `y' command are not UTF-8")),
    }
}

/// Parses the text of `a`, `i` or `c`: the rest of the line, or the lines after `a\`.
fn lines(cursor: &mut Cursor) -> Result<Vec<u8>, String> {
    cursor.skip_spaces();
    if cursor.peek().is_none() {
        return Err(cursor.error("expected \\ after `a', `c' or `i'"));
    }
    if cursor.take('\\') {
        let start = cursor.position();
        cursor.skip_spaces();
        if cursor.peek().is_none() {
            return Ok(Vec::new());
        }
        // Text on the same line keeps its leading whitespace.
        if !cursor.take('\n') {
            cursor.back_to(start);
        }
    }
    let mut text = Vec::new();
    while let Some(letter) = cursor.next() {
        match letter {
            '\n' => break,
            '\\' => match code(cursor) {
                Some(byte) => text.push(byte),
                None => cursor.next().into_iter().for_each(|letter| push(&mut text, letter)),
            },
            other => push(&mut text, other),
        }
    }
    text.push(b'\n');
    Ok(text)
}

/// Parses an escape that denotes a byte, starting after its backslash. Consumes nothing if the
/// escape has another meaning.
fn code(cursor: &mut Cursor) -> Option<u8> {
    let start = cursor.position();
    let byte = match cursor.next()? {
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(0x0b),
        'c' => cursor
            .take_if(|letter| letter.is_ascii())
            .map(|letter| letter.to_ascii_uppercase() as u8 ^ 0x40),
        'd' => digits(cursor, 10, 3),
        'o' => digits(cursor, 8, 3),
        'x' => digits(cursor, 16, 2),
        _ => None,
    };
    if byte.is_none() {
        cursor.back_to(start);
    }
    byte
}

fn digits(cursor: &mut Cursor, radix: u32, most: usize) -> Option<u8> {
    let mut code = None;
    for _ in 0..most {
        let Some(letter) = cursor.take_if(|letter| letter.is_digit(radix)) else { break };
        code = Some(code.unwrap_or(0) * radix + letter.to_digit(radix).unwrap_or_default());
    }
    code.map(|code| code as u8)
}

fn push(text: &mut Vec<u8>, letter: char) {
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

/// A script, joined from the `-e` options and script files, and the current position in it.
pub(super) struct Cursor {
    letters: Vec<char>,
    at: usize,
    /// The start index of the text of each option or file, with its source for error messages.
    pieces: Vec<(usize, Piece)>,
}

/// The source of a part of a script: an `-e` option or a script file.
enum Piece {
    /// An `-e` option, by its number.
    Expression(usize),
    File(String),
}

impl Cursor {
    pub(super) fn new() -> Cursor {
        Cursor { letters: Vec::new(), at: 0, pieces: Vec::new() }
    }

    /// Adds the text of an `-e` option.
    pub(super) fn add_expression(&mut self, text: &str) {
        let count = self.pieces.iter().filter(|(_, piece)| matches!(piece, Piece::Expression(_)));
        let number = count.count() + 1;
        self.add(text, Piece::Expression(number));
    }

    /// Adds the text of a script file.
    pub(super) fn add_file(&mut self, name: &str, text: &str) {
        self.add(text.strip_suffix('\n').unwrap_or(text), Piece::File(name.to_owned()));
    }

    fn add(&mut self, text: &str, piece: Piece) {
        if !self.pieces.is_empty() {
            self.letters.push('\n');
        }
        self.pieces.push((self.letters.len(), piece));
        self.letters.extend(text.chars());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn at_start(&self) -> bool {
        self.at == 0
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        letter
    }

    /// If the next character is `letter`, consumes it and returns true.
    pub(super) fn take(&mut self, letter: char) -> bool {
        self.take_if(|next| next == letter).is_some()
    }

    pub(super) fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        let letter = self.peek().filter(|letter| wanted(*letter))?;
        self.at += 1;
        Some(letter)
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(letter) = self.take_if(&wanted) {
            text.push(letter);
        }
        text
    }

    /// Skips spaces and tabs.
    pub(super) fn skip_spaces(&mut self) {
        self.take_while(|letter| letter == ' ' || letter == '\t');
    }

    /// Skips whitespace, including newlines.
    pub(super) fn skip_whitespace(&mut self) {
        self.take_while(char::is_whitespace);
    }

    /// Returns the current position, which can be passed to `back_to`.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, position: usize) {
        self.at = position;
    }

    /// Parses an unsigned number, if there is one.
    pub(super) fn number(&mut self) -> Option<u64> {
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        if digits.is_empty() { None } else { Some(digits.parse().unwrap_or(u64::MAX)) }
    }

    /// Returns an error message that contains the current position.
    pub(super) fn error(&self, why: impl std::fmt::Display) -> String {
        match self.pieces.iter().rev().find(|(start, _)| *start <= self.at) {
            Some((start, Piece::Expression(number))) => {
                format!("-e expression #{number}, char {}: {why}", self.at - start)
            }
            Some((start, Piece::File(name))) => {
                let before = self.letters.get(*start..self.at).unwrap_or_default();
                let line = before.iter().filter(|letter| **letter == '\n').count() + 1;
                format!("file {name} line {line}: {why}")
            }
            None => why.to_string(),
        }
    }
}
