//! What a script says: the tree that the parser makes of it and the interpreter walks.
//!
//! Words are kept as parts, each with how it was quoted, because quoting decides what is split, globbed and matched later on. What runs in a
//! shell of its own (subshells, substitutions, stages, functions) stands behind an [`Arc`], so that a task can hold it.

use std::sync::{Arc, OnceLock};

/// Commands one after another.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Item>,
}

/// One entry of a list.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) chain: Arc<Chain>,
    /// It was ended by `&`; with its text, as `jobs` shows it.
    pub(crate) background: Option<String>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Joint, Pipeline)>,
}

/// What stands between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) timed: Option<Timed>,
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Arc<Command>>,
}

/// How the keyword `time` was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    Plain,
    Posix,
}

/// One command with its redirections.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) kind: Kind,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) line: u32,
}

/// The kinds of commands.
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

/// Assignments and words.
#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Argument>,
}

/// A word of a simple command. Those of `declare` and its like may be assignments.
#[derive(Debug)]
pub(crate) enum Argument {
    Word(Word),
    Assignment(Assignment),
}

/// `NAME=value`, `NAME[index]+=value`, `NAME=(…)`.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: Assigned,
}

/// The right side of an assignment.
#[derive(Debug)]
pub(crate) enum Assigned {
    Text(Word),
    Array(Vec<Element>),
}

/// One element between the parentheses of an array.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: Word,
}

/// One arm of a `case`.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: List,
    pub(crate) then: Then,
}

/// What follows an arm of a `case`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// `;;`
    Leave,
    /// `;&`: the next body is run as well.
    Fall,
    /// `;;&`: the next patterns are tried as well.
    Test,
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) fd: Descriptor,
    pub(crate) to: Target,
}

/// Which descriptor a redirection is about.
#[derive(Debug)]
pub(crate) enum Descriptor {
    Number(u32),
    /// `{name}>file`: a free one, whose number goes into the variable.
    Named(String),
    /// `&>`: both 1 and 2.
    Both,
}

/// Where a redirection leads.
#[derive(Debug)]
pub(crate) enum Target {
    Read(Word),
    Write {
        path: Word,
        clobber: bool,
    },
    Append(Word),
    ReadWrite(Word),
    /// `n>&word`, `n<&word`: a number, a number and `-`, or `-`.
    Duplicate {
        word: Word,
        input: bool,
    },
    /// The body comes after the line that has the redirection.
    Here(Arc<OnceLock<Word>>),
    HereString(Word),
}

/// A word: its parts in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    /// It has an unquoted `{`, so braces are looked for.
    pub(crate) braces: bool,
    /// It has an extended pattern such as `!(a|b)` written out.
    pub(crate) extended: bool,
}

/// A part of a word.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Plain text: what is special in patterns is special.
    Literal(String),
    /// Text that stands for itself.
    Quoted(String),
    /// What stands between double quotes.
    Double(Vec<Part>),
    Parameter(Box<Parameter>),
    Command(Arc<List>),
    Arithmetic(Box<Word>),
    /// `<( )`, or `>( )`.
    Process {
        input: bool,
        list: Arc<List>,
    },
    /// `~`, `~+`, `~name`: what follows the tilde.
    Tilde(String),
}

/// `$name`, `${name…}`.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) index: Option<Index>,
    pub(crate) indirect: bool,
    pub(crate) action: Action,
}

/// Which elements of an array.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// `[@]`
    Each,
    /// `[*]`
    Joined,
    At(Word),
}

/// What is done with a parameter's value.
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
    Cut {
        suffix: bool,
        longest: bool,
        pattern: Word,
    },
    Replace {
        place: Place,
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

/// Where a pattern is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    All,
    Start,
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
    /// A word of one part.
    pub(crate) fn of(part: Part) -> Word {
        Word { parts: vec![part], ..Word::default() }
    }

    /// The text of a word in which nothing is quoted or expanded.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }
}
