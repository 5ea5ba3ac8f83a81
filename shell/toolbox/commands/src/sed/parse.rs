//! The parser for sed scripts.

use std::collections::HashMap;
use std::rc::Rc;

use super::Error;
use super::cursor::Cursor;
use super::syntax::{
    Action, Address, Command, Condition, Part, RangeEnd, Regex, Script, Substitution,
};
use super::text;
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
        match self.blocks.is_empty() {
            true => Ok(()),
            false => Err(self.cursor.error("unmatched `{'")),
        }
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
        let last = match first.is_some() && self.cursor.take(',') {
            true => Some(self.range_end()?),
            false => None,
        };
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
        let pattern = text::pattern(&mut self.cursor, delimiter, UNTERMINATED)?;
        let (mut ignore_case, mut lines) = (false, false);
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
            'a' => return Ok(Action::Append(text::lines(&mut self.cursor)?)),
            'i' => return Ok(Action::Insert(text::lines(&mut self.cursor)?)),
            'c' => return Ok(Action::Change(text::lines(&mut self.cursor)?)),
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
            _ => match simple(name) {
                Some(action) => action,
                None => return Err(self.cursor.error(format_args!("unknown command: `{name}'"))),
            },
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
        let from = text::letters(&mut self.cursor, delimiter)?;
        let to = text::letters(&mut self.cursor, delimiter)?;
        if from.len() != to.len() {
            return Err(self.cursor.error("strings for `y' command are different lengths"));
        }
        Ok(Action::Transliterate(from.into_iter().zip(to).collect()))
    }

    fn substitution(&mut self) -> Result<Action, String> {
        const UNTERMINATED: &str = "unterminated `s' command";
        let delimiter = self.delimiter(UNTERMINATED)?;
        let pattern = text::pattern(&mut self.cursor, delimiter, UNTERMINATED)?;
        let replacement = text::replacement(&mut self.cursor, delimiter)?;
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

/// Returns the action of a command that has no arguments.
fn simple(name: char) -> Option<Action> {
    Some(match name {
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
        _ => return None,
    })
}
