//! The syntax tree of a script. The parser builds it and the interpreter walks it.
//!
//! A word is a list of parts with their quoting, because quoting decides how expansion splits,
//! globs and matches them. Nodes that run in a separate shell (subshells, substitutions, stages,
//! functions) are behind an [`Arc`], so that a task can own them.

use std::sync::{Arc, OnceLock};

use crate::ledger::Charge;

/// A sequence of commands.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Item>,
    /// The charge for the list's own nodes, excluding those of its commands.
    pub(super) _charge: Charge,
}

/// A chain of pipelines in a list. The chain may run as a background job.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) chain: Arc<Chain>,
    /// The job's source in the form that `jobs` prints, if the chain ends with `&`.
    pub(crate) background: Option<String>,
    /// If true, the chain starts on a later line than the one where the chain before it ends.
    pub(crate) starts_line: bool,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Connector, Pipeline)>,
}

/// The operator between two pipelines: `&&` or `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) timed: Option<TimeFormat>,
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Arc<Command>>,
}

/// The form of the keyword `time`: `time`, or `time -p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    Plain,
    Posix,
}

/// A command with its redirections.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) line: u32,
    /// The charge for the command's own nodes, excluding those of its lists.
    pub(super) _charge: Charge,
}

/// The kind of a command.
#[derive(Debug)]
pub(crate) enum Kind {
    Simple(Simple),
    Group(Arc<List>),
    Subshell(Arc<List>),
    If { arms: Vec<(List, List)>, otherwise: Option<List> },
    For { name: String, words: Option<Vec<Word>>, body: List },
    Count { start: Word, test: Word, step: Word, body: List },
    Select { name: String, words: Option<Vec<Word>>, body: List },
    While { until: bool, test: List, body: List },
    Case { word: Word, arms: Vec<Arm> },
    Function(String, Arc<Command>),
    Test(Test),
    Arithmetic(Word),
}

/// A simple command: assignments and words.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Argument>,
}

/// A word of a simple command. Arguments of `declare` and similar builtins may be assignments.
#[derive(Debug)]
pub(crate) enum Argument {
    Word(Word),
    Assignment(Box<Assignment>),
}

/// An assignment: `NAME=value`, `NAME[index]+=value`, or `NAME=(…)`.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: AssignedValue,
}

/// The right side of an assignment.
#[derive(Debug)]
pub(crate) enum AssignedValue {
    Text(Word),
    Array(Vec<Element>),
}

/// An element of an array literal.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: Word,
}

/// A clause of a `case`.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: List,
    pub(crate) then: CaseEnd,
}

/// The terminator of a `case` clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseEnd {
    /// `;;`
    Break,
    /// `;&`: also runs the body of the next clause.
    FallThrough,
    /// `;;&`: also tests the patterns of the next clauses.
    TestNext,
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) fd: Descriptor,
    pub(crate) to: Target,
}

/// The descriptor that a redirection sets.
#[derive(Debug)]
pub(crate) enum Descriptor {
    Number(u32),
    /// `{name}>file`: a free descriptor. Its number is stored in the variable `name`.
    Named(String),
    /// `&>`: descriptors 1 and 2.
    Both,
}

/// The target of a redirection.
#[derive(Debug)]
pub(crate) enum Target {
    Read(Word),
    Write {
        path: Word,
        clobber: bool,
    },
    Append(Word),
    ReadWrite(Word),
    /// `n>&word` or `n<&word`. The word expands to a number, a number followed by `-`, or `-`
    /// alone. If no descriptor precedes `>&`, the word may also be a file name, as in `>&file`.
    Duplicate {
        word: Word,
        input: bool,
    },
    /// A here-document. Its body is set when the parser reaches it, after the current line.
    Here(Arc<OnceLock<Word>>),
    HereString(Word),
}

/// A word: a sequence of parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    /// If true, the word contains an unquoted `{` and is subject to brace expansion.
    pub(crate) braces: bool,
    /// If true, the word contains an extended pattern such as `!(a|b)`.
    pub(crate) extended: bool,
}

/// A part of a word.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Unquoted text, in which pattern characters are special.
    Literal(String),
    /// Quoted text.
    Quoted(String),
    /// The contents of double quotes.
    Double(Vec<Part>),
    Parameter(Box<Parameter>),
    Command(Arc<List>),
    Arithmetic(Box<Word>),
    /// A process substitution: `<( )` if `input` is true, `>( )` otherwise.
    Process {
        input: bool,
        list: Arc<List>,
    },
    /// A tilde prefix such as `~`, `~+` or `~name`, without the tilde.
    Tilde(String),
}

/// A parameter expansion: `$name` or `${name…}`.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) index: Option<Index>,
    pub(crate) indirect: bool,
    pub(crate) action: Action,
}

/// The index of an array expansion.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// `[@]`
    All,
    /// `[*]`
    Joined,
    At(Word),
}

/// The operation of a parameter expansion.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Value,
    Length,
    /// `${!name[@]}`
    Keys,
    /// `${!prefix*}`, `${!prefix@}`
    Names {
        joined: bool,
    },
    Default {
        colon: bool,
        word: Word,
    },
    Assign {
        colon: bool,
        word: Word,
    },
    Fail {
        colon: bool,
        word: Word,
    },
    Alternative {
        colon: bool,
        word: Word,
    },
    Trim {
        suffix: bool,
        longest: bool,
        pattern: Word,
    },
    Replace {
        scope: ReplaceScope,
        pattern: Word,
        with: Word,
    },
    Case {
        upper: bool,
        all: bool,
        pattern: Word,
    },
    Slice {
        offset: Word,
        length: Option<Word>,
    },
    /// `${name@Q}`
    Transform(char),
}

/// The matches that `${name/pattern/text}` replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceScope {
    /// `/`: the first match.
    First,
    /// `//`: all matches.
    All,
    /// `/#`: a match at the start.
    Start,
    /// `/%`: a match at the end.
    End,
}

/// An expression of `[[ ]]`.
#[derive(Debug)]
pub(crate) enum Test {
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
    Not(Box<Test>),
    Word(Word),
    Unary(String, Word),
    Binary(Word, String, Word),
}

impl Word {
    /// Creates a word of one part.
    pub(crate) fn of_part(part: Part) -> Word {
        Word { parts: vec![part], ..Word::default() }
    }

    /// Returns the word's text, or `None` if the word contains quotes or expansions.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }
}
