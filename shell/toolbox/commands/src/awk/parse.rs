//! The awk parser. This module reads the tokens and parses the rules and functions of a program;
//! `statement` parses statements, and `expr` parses expressions.

use std::collections::HashMap;

use super::lex::{Token, tokens};
use super::syntax::{Expr, Function, Guard, Place, Program, Variable};

/// The built-in variables, in the order of their slots.
pub(crate) const SPECIAL: [&str; 22] = [
    "NF",
    "NR",
    "FNR",
    "FS",
    "OFS",
    "ORS",
    "RS",
    "FILENAME",
    "SUBSEP",
    "RSTART",
    "RLENGTH",
    "CONVFMT",
    "OFMT",
    "ENVIRON",
    "ARGC",
    "ARGV",
    "PROCINFO",
    "IGNORECASE",
    "FPAT",
    "FIELDWIDTHS",
    "RT",
    "ERRNO",
];

/// The maximum nesting depth of statements and expressions.
const DEEPEST: usize = 100;

pub(crate) struct Parser {
    tokens: Vec<(Token, usize)>,
    pub(super) at: usize,
    pub(super) globals: HashMap<String, usize>,
    pub(super) functions: HashMap<String, usize>,
    pub(super) program: Program,
    /// The function whose body is being parsed.
    pub(super) within: Option<usize>,
    /// If true, `>` redirects output, because the parser is inside `print`.
    pub(super) no_more: bool,
    /// If true, `in` is not an operator, because the parser is in the head of a `for` loop.
    pub(super) no_in: bool,
    depth: usize,
    pub(super) loops: usize,
}

/// Parses an awk program.
pub(crate) fn parse(text: &str) -> Result<Program, String> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        globals: HashMap::new(),
        functions: HashMap::new(),
        program: Program::default(),
        within: None,
        no_more: false,
        no_in: false,
        depth: 0,
        loops: 0,
    };
    SPECIAL.iter().for_each(|name| _ = parser.global(name));
    parser.items()?;
    super::arrays::infer(&mut parser.program);
    Ok(parser.program)
}

impl Parser {
    pub(super) fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |token| &token.0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.at + ahead).map_or(&Token::End, |token| &token.0)
    }

    pub(super) fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    /// Steps back by one token.
    pub(super) fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(super) fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Token::Keyword(found) if *found == keyword);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(self.wrong(&format!("`{sign}`"))) }
    }

    pub(super) fn wrong(&self, expected: &str) -> String {
        let line = self.tokens.get(self.at).map_or(0, |token| token.1);
        let found = match self.peek() {
            Token::Number(number) => format!("`{number}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Regex(text) => format!("/{text}/"),
            Token::Name(name) | Token::Call(name) => format!("`{name}`"),
            Token::Keyword(name) | Token::Builtin(name) | Token::Sign(name) => format!("`{name}`"),
            Token::Line => "the end of the line".to_owned(),
            Token::End => "the end of the program".to_owned(),
        };
        format!("syntax error at source line {line}: expected {expected}, found {found}")
    }

    pub(super) fn lines(&mut self) {
        while *self.peek() == Token::Line {
            self.at += 1;
        }
    }

    pub(super) fn ends(&mut self) {
        while *self.peek() == Token::Line || self.is(";") {
            self.at += 1;
        }
    }

    /// Calls `read` one nesting level deeper. Fails at the maximum depth.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if self.depth >= DEEPEST {
            return Err(format!("the program nests deeper than {DEEPEST} levels"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    pub(super) fn global(&mut self, name: &str) -> usize {
        if let Some(known) = self.globals.get(name) {
            return *known;
        }
        let place = self.program.globals.len();
        self.program.globals.push(name.to_owned());
        self.globals.insert(name.to_owned(), place);
        place
    }

    pub(super) fn variable(&mut self, name: &str) -> Variable {
        let local = self
            .within
            .and_then(|function| self.program.functions.get(function))
            .and_then(|function| function.params.iter().position(|param| param == name));
        local.map_or_else(|| Variable::Global(self.global(name)), Variable::Local)
    }

    pub(super) fn function(&mut self, name: &str) -> usize {
        if let Some(known) = self.functions.get(name) {
            return *known;
        }
        let place = self.program.functions.len();
        self.program.functions.push(Function { name: name.to_owned(), ..Function::default() });
        self.functions.insert(name.to_owned(), place);
        place
    }

    fn items(&mut self) -> Result<(), String> {
        self.ends();
        while *self.peek() != Token::End {
            match self.peek().clone() {
                Token::Keyword(name @ ("BEGIN" | "END" | "BEGINFILE" | "ENDFILE")) => {
                    self.at += 1;
                    let body = self.body()?;
                    match name {
                        "BEGIN" => self.program.begin.push(body),
                        "END" => self.program.end.push(body),
                        "BEGINFILE" => self.program.begin_file.push(body),
                        _ => self.program.end_file.push(body),
                    }
                }
                Token::Keyword("function") => self.defined()?,
                Token::Sign("{") => {
                    let body = self.body()?;
                    self.program.rules.push((Guard::Always, Some(body)));
                }
                _ => {
                    let first = self.expr()?;
                    let pattern = if self.sign(",") {
                        self.lines();
                        Guard::Range(first, self.expr()?)
                    } else {
                        Guard::Expr(first)
                    };
                    let body = if self.is("{") { Some(self.body()?) } else { None };
                    self.program.rules.push((pattern, body));
                }
            }
            self.ends();
        }
        Ok(())
    }

    fn defined(&mut self) -> Result<(), String> {
        self.at += 1;
        let (Token::Name(name) | Token::Call(name)) = self.take() else {
            return Err(self.wrong("the name of a function"));
        };
        let place = self.function(&name);
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.sign(")") {
            self.lines();
            let Token::Name(param) = self.take() else {
                return Err(self.wrong("the name of a parameter"));
            };
            params.push(param);
            self.lines();
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        self.lines();
        let Some(function) = self.program.functions.get_mut(place) else { return Ok(()) };
        if function.defined {
            return Err(format!("function `{name}' is defined twice"));
        }
        function.defined = true;
        function.arrays = vec![false; params.len()];
        function.params = params;
        self.within = Some(place);
        let body = self.body()?;
        self.within = None;
        if let Some(function) = self.program.functions.get_mut(place) {
            function.body = body;
        }
        Ok(())
    }

    /// Parses comma-separated expressions up to the closing token `end`.
    pub(super) fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let (no_more, no_in) = (std::mem::take(&mut self.no_more), std::mem::take(&mut self.no_in));
        let mut items = Vec::new();
        self.lines();
        while !self.sign(end) {
            items.push(self.expr()?);
            self.lines();
            if !self.is(end) {
                self.expect(",")?;
                self.lines();
            }
        }
        (self.no_more, self.no_in) = (no_more, no_in);
        Ok(items)
    }

    /// Converts an expression to an assignment target. Returns `None` if it cannot be assigned to.
    pub(super) fn place(expr: &Expr) -> Option<Place> {
        match expr {
            Expr::Read(place) => Some(place.clone()),
            _ => None,
        }
    }
}
