//! The syntax tree of a sed script: a list of commands, with the indexes of jump targets.

use std::rc::Rc;

use crate::pattern::Posix;

/// A regular expression in a script; `None` is the last one used.
pub(super) type Regex = Option<Rc<Posix>>;

/// A compiled script.
#[derive(Default)]
pub(super) struct Script {
    pub commands: Vec<Command>,
    /// The files that the script writes to.
    pub outputs: Vec<String>,
    /// If true, the first line of the script is `#n`.
    pub quiet: bool,
}

/// A command with its addresses.
pub(super) struct Command {
    pub first: Option<Address>,
    pub last: Option<RangeEnd>,
    /// If true, the command applies to the lines that its addresses do not match.
    pub negated: bool,
    pub action: Action,
}

/// The lines that an address matches.
pub(super) enum Address {
    Line(u64),
    /// `first~step`: every `step`th line, starting at `first`.
    Step(u64, u64),
    Last,
    Regex(Regex),
}

/// The end of a range of lines.
pub(super) enum RangeEnd {
    Line(u64),
    Last,
    Regex(Regex),
    /// `+N`: N lines after the first line of the range.
    Count(u64),
    /// `~N`: up to the next line whose number is a multiple of N.
    Multiple(u64),
}

/// A command without its addresses.
pub(super) enum Action {
    /// `{`, with the index of its `}`.
    Block(usize),
    /// `}`, a label or `v`.
    Nothing,
    LineNumber,
    Append(Vec<u8>),
    Insert(Vec<u8>),
    Change(Vec<u8>),
    /// A jump to a command, or to the end of the script if there is no target.
    Branch(Condition, Option<usize>),
    Delete,
    DeleteFirst,
    FileName,
    Get,
    GetAppend,
    Hold,
    HoldAppend,
    Exchange,
    /// `l`, with the maximum length of its lines.
    List(Option<usize>),
    Next,
    NextAppend,
    Print,
    PrintFirst,
    /// `q` or `Q`: the exit status, and `true` for `q`, which prints the pattern space.
    Quit(i32, bool),
    ReadFile(String),
    ReadLine(String),
    Substitute(Box<Substitution>),
    Transliterate(Vec<(char, char)>),
    /// `w`, with the index of its file.
    Write(usize),
    WriteFirst(usize),
    Zap,
}

/// The condition of a jump.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Condition {
    Always,
    Substituted,
    NotSubstituted,
}

/// The arguments of the `s` command.
pub(super) struct Substitution {
    pub regex: Regex,
    pub replacement: Vec<Part>,
    /// The number of the first match to replace, counted from 1.
    pub from: usize,
    /// If true, all later matches are also replaced.
    pub all: bool,
    pub print: bool,
    /// The index of the file that the result is written to.
    pub write: Option<usize>,
}

/// A part of a replacement.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Text(Vec<u8>),
    /// A group of the match; 0 is the whole match.
    Group(usize),
    Case(Case),
}

/// A case conversion of the text that follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Case {
    Upper,
    Lower,
    End,
    NextUpper,
    NextLower,
}
