//! The syntax tree of an awk program.

use std::rc::Rc;

use super::value::Text;
use crate::pattern::Posix;

macro_rules! special {
    ($($name:ident),* $(,)?) => {
        /// The built-in variables, in the order of their slots.
        pub(crate) const SPECIAL: &[&str] = &[$(stringify!($name)),*];

        /// The slots of the built-in variables.
        pub(crate) mod place {
            special!(@slots 0; $($name)*);
        }
    };
    (@slots $slot:expr;) => {};
    (@slots $slot:expr; $name:ident $($rest:ident)*) => {
        pub(crate) const $name: usize = $slot;
        special!(@slots $slot + 1; $($rest)*);
    };
}

special! {
    NF, NR, FNR, FS, OFS, ORS, RS, FILENAME, SUBSEP, RSTART, RLENGTH, CONVFMT, OFMT, ENVIRON,
    ARGC, ARGV, PROCINFO, IGNORECASE, FPAT, FIELDWIDTHS, RT, ERRNO,
}

/// A variable, identified by its slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Variable {
    Global(usize),
    Local(usize),
}

/// The target of an assignment.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Variable(Variable),
    Field(Box<Expr>),
    Element(ArrayName, Vec<Expr>),
}

/// An array: a variable, or an element of another array.
#[derive(Clone, Debug)]
pub(crate) enum ArrayName {
    Variable(Variable),
    Element(Box<ArrayName>, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Comparison {
    Less,
    LessOrSame,
    Same,
    Different,
    More,
    MoreOrSame,
}

/// The source that `getline` reads from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Input,
    File(Box<Expr>),
    Command(Box<Expr>),
}

/// A regular expression: its text and its compiled form.
#[derive(Clone)]
pub(crate) struct Pattern {
    pub text: Text,
    pub regex: Rc<Posix>,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "/{}/", self.text)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Number(f64),
    Text(Text),
    Regex(Pattern),
    /// `@/…/`: a regular expression as a value.
    TypedRegex(Pattern),
    Read(Place),
    Assign(Place, Box<Expr>),
    Update(Operator, Place, Box<Expr>),
    /// An increment: the target, the amount, and `true` if the expression returns the old value.
    Step(Place, f64, bool),
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    Positive(Box<Expr>),
    Arithmetic(Operator, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Join(Box<Expr>, Box<Expr>),
    Matches(Box<Expr>, Box<Expr>, bool),
    Within(Vec<Expr>, ArrayName),
    Call(usize, Vec<Expr>),
    /// `@name(…)`: a call of the function named by the value of a variable.
    Indirect(Variable, Vec<Expr>),
    Builtin(&'static str, Vec<Expr>),
    Getline(Source, Option<Place>),
    /// A parenthesized expression, or a parenthesized list, as in `(a, b) in c` and `print (a, b)`.
    Group(Vec<Expr>),
}

/// The kind of a destination of `print`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    File,
    Append,
    Command,
}

/// The destination of `print`: its kind, and the path of the file or the command.
pub(crate) type Target = (Output, Expr);

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Expr(Expr),
    Print(Vec<Expr>, Option<Target>),
    Printf(Vec<Expr>, Option<Target>),
    If(Expr, Box<Statement>, Option<Box<Statement>>),
    Do(Box<Statement>, Expr),
    For(Option<Box<Statement>>, Option<Expr>, Option<Box<Statement>>, Box<Statement>),
    Each(Variable, ArrayName, Box<Statement>),
    Switch(Expr, Vec<(Option<Expr>, Vec<Statement>)>),
    Block(Vec<Statement>),
    Delete(ArrayName, Option<Vec<Expr>>),
    Next,
    NextFile,
    Break,
    Continue,
    Exit(Option<Expr>),
    Return(Option<Expr>),
}

/// The records that a rule applies to.
#[derive(Debug)]
pub(crate) enum Guard {
    Always,
    Expr(Expr),
    Range(Expr, Expr),
}

/// A user-defined function: its name, its parameters, which of them are arrays, and its body.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub name: String,
    pub params: Vec<String>,
    pub arrays: Vec<bool>,
    pub body: Vec<Statement>,
    pub defined: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub begin: Vec<Vec<Statement>>,
    pub end: Vec<Vec<Statement>>,
    pub begin_file: Vec<Vec<Statement>>,
    pub end_file: Vec<Vec<Statement>>,
    /// The rules, each with its body. A rule without a body prints the record.
    pub rules: Vec<(Guard, Option<Vec<Statement>>)>,
    pub functions: Vec<Function>,
    pub globals: Vec<String>,
}
