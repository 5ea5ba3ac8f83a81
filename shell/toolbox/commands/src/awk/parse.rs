//! The parser: statements. The expressions are in `expr`.

use std::collections::HashMap;

use super::lex::{Token, tokens};
use super::syntax::{Expr, Function, Pattern, Place, Program, Statement, Target, Variable};

/// The built-in variables, in the order of their slots.
pub(crate) const SPECIAL: [&str; 18] = [
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
];

/// The maximum nesting depth of a program.
const DEEPEST: usize = 100;

pub(crate) struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    pub(super) globals: HashMap<String, usize>,
    pub(super) functions: HashMap<String, usize>,
    pub(super) program: Program,
    /// The function whose body is being read.
    pub(super) within: Option<usize>,
    /// If true, `>` redirects: the parser is inside `print`.
    pub(super) no_more: bool,
    /// If true, `in` is not an operator: the parser is in the head of `for`.
    pub(super) no_in: bool,
    depth: usize,
    loops: usize,
}

/// Parses a program.
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
    if let Some(function) = parser.program.functions.iter().find(|function| !function.defined) {
        return Err(format!("function `{}' is not defined", function.name));
    }
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

    /// Goes back by one token.
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

    fn keyword(&mut self, keyword: &str) -> bool {
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

    fn ends(&mut self) {
        while *self.peek() == Token::Line || self.is(";") {
            self.at += 1;
        }
    }

    /// Enters one more nesting level.
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
                Token::Keyword("BEGIN") => {
                    self.at += 1;
                    let body = self.body()?;
                    self.program.begin.push(body);
                }
                Token::Keyword("END") => {
                    self.at += 1;
                    let body = self.body()?;
                    self.program.end.push(body);
                }
                Token::Keyword("function") => self.defined()?,
                Token::Sign("{") => {
                    let body = self.body()?;
                    self.program.rules.push((Pattern::Always, Some(body)));
                }
                _ => {
                    let first = self.expr()?;
                    let pattern = if self.sign(",") {
                        self.lines();
                        Pattern::Range(first, self.expr()?)
                    } else {
                        Pattern::Expr(first)
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

    fn body(&mut self) -> Result<Vec<Statement>, String> {
        self.expect("{")?;
        let mut body = Vec::new();
        loop {
            self.ends();
            if self.sign("}") {
                return Ok(body);
            }
            if *self.peek() == Token::End {
                return Err(self.wrong("`}`"));
            }
            body.push(self.statement()?);
        }
    }

    /// Reads the single statement after `if`, `while`, …
    fn inner(&mut self) -> Result<Box<Statement>, String> {
        self.lines();
        if self.sign(";") {
            return Ok(Box::new(Statement::Block(Vec::new())));
        }
        Ok(Box::new(self.statement()?))
    }

    fn statement(&mut self) -> Result<Statement, String> {
        self.deeper(Self::any_statement)
    }

    fn any_statement(&mut self) -> Result<Statement, String> {
        if self.is("{") {
            return Ok(Statement::Block(self.body()?));
        }
        let Token::Keyword(keyword) = *self.peek() else {
            let simple = self.simple()?;
            self.ended()?;
            return Ok(simple);
        };
        self.at += 1;
        let statement = match keyword {
            "if" => {
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                let then = self.inner()?;
                let back = self.at;
                self.ends();
                if self.keyword("else") {
                    return Ok(Statement::If(condition, then, Some(self.inner()?)));
                }
                self.at = back;
                return Ok(Statement::If(condition, then, None));
            }
            "while" => {
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                return Ok(Statement::While(condition, self.looped()?));
            }
            "do" => {
                let body = self.looped()?;
                self.ends();
                if !self.keyword("while") {
                    return Err(self.wrong("`while`"));
                }
                self.expect("(")?;
                let condition = self.expr()?;
                self.expect(")")?;
                Statement::Do(body, condition)
            }
            "for" => return self.for_loop(),
            "switch" => return self.switch(),
            "break" | "continue" if self.loops == 0 => {
                return Err(format!("`{keyword}` is not within a loop"));
            }
            "break" => Statement::Break,
            "continue" => Statement::Continue,
            "next" => Statement::Next,
            "nextfile" => Statement::NextFile,
            "exit" => Statement::Exit(self.maybe()?),
            "return" if self.within.is_none() => {
                return Err("`return` is not within a function".to_owned());
            }
            "return" => Statement::Return(self.maybe()?),
            _ => {
                self.at -= 1;
                self.simple()?
            }
        };
        self.ended()?;
        Ok(statement)
    }

    /// Reads the end of a statement: a line end, `;`, or a closing brace.
    fn ended(&mut self) -> Result<(), String> {
        if *self.peek() == Token::Line || self.is(";") {
            self.at += 1;
            return Ok(());
        }
        if self.is("}") || *self.peek() == Token::End {
            Ok(())
        } else {
            Err(self.wrong("the end of the statement"))
        }
    }

    fn looped(&mut self) -> Result<Box<Statement>, String> {
        self.loops += 1;
        let body = self.inner();
        self.loops -= 1;
        body
    }

    fn maybe(&mut self) -> Result<Option<Expr>, String> {
        if *self.peek() == Token::Line || self.is(";") || self.is("}") {
            Ok(None)
        } else {
            Ok(Some(self.expr()?))
        }
    }

    fn for_loop(&mut self) -> Result<Statement, String> {
        self.expect("(")?;
        if let (Token::Name(key), Token::Keyword("in"), Token::Name(array), Token::Sign(")")) = (
            self.peek().clone(),
            self.peek_at(1).clone(),
            self.peek_at(2).clone(),
            self.peek_at(3).clone(),
        ) {
            self.at += 4;
            let (key, array) = (self.variable(&key), self.variable(&array));
            return Ok(Statement::Each(key, array, self.looped()?));
        }
        let start = if self.is(";") { None } else { Some(Box::new(self.simple()?)) };
        self.expect(";")?;
        self.lines();
        let condition = if self.is(";") { None } else { Some(self.expr()?) };
        self.expect(";")?;
        self.lines();
        let step = if self.is(")") { None } else { Some(Box::new(self.simple()?)) };
        self.expect(")")?;
        Ok(Statement::For(start, condition, step, self.looped()?))
    }

    fn switch(&mut self) -> Result<Statement, String> {
        self.expect("(")?;
        let value = self.expr()?;
        self.expect(")")?;
        self.lines();
        self.expect("{")?;
        let mut cases: Vec<(Option<Expr>, Vec<Statement>)> = Vec::new();
        self.loops += 1;
        loop {
            self.ends();
            if self.sign("}") {
                break;
            }
            if self.keyword("case") {
                let value = self.primary()?;
                self.expect(":")?;
                cases.push((Some(value), Vec::new()));
            } else if self.keyword("default") {
                self.expect(":")?;
                cases.push((None, Vec::new()));
            } else {
                let statement = self.statement()?;
                match cases.last_mut() {
                    Some((_, body)) => body.push(statement),
                    None => return Err(self.wrong("`case`")),
                }
            }
        }
        self.loops -= 1;
        Ok(Statement::Switch(value, cases))
    }

    fn simple(&mut self) -> Result<Statement, String> {
        if self.keyword("print") {
            let (values, target) = self.printed()?;
            return Ok(Statement::Print(values, target));
        }
        if self.keyword("printf") {
            let (values, target) = self.printed()?;
            if values.is_empty() {
                return Err(self.wrong("the format of `printf`"));
            }
            return Ok(Statement::Printf(values, target));
        }
        if self.keyword("delete") {
            let Token::Name(name) = self.take() else {
                return Err(self.wrong("the name of an array"));
            };
            let array = self.variable(&name);
            let keys = if self.sign("[") { Some(self.list("]")?) } else { None };
            return Ok(Statement::Delete(array, keys));
        }
        Ok(Statement::Expr(self.expr()?))
    }

    fn printed(&mut self) -> Result<(Vec<Expr>, Option<Target>), String> {
        let before = std::mem::replace(&mut self.no_more, true);
        let mut values = Vec::new();
        while !(*self.peek() == Token::Line
            || [";", "}", ">", ">>", "|"].iter().any(|sign| self.is(sign)))
        {
            values.push(self.expr()?);
            if !self.sign(",") {
                break;
            }
            self.lines();
        }
        if let [Expr::Group(items)] = values.as_slice() {
            values = items.clone();
        }
        let target = if self.sign(">") {
            Some(Target::File(self.joined()?))
        } else if self.sign(">>") {
            Some(Target::Append(self.joined()?))
        } else if self.sign("|") {
            Some(Target::Command(self.joined()?))
        } else {
            None
        };
        self.no_more = before;
        Ok((values, target))
    }

    /// Reads expressions up to a closing token.
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

    /// Returns the assignment target that an expression names, if it is one.
    pub(super) fn place(expr: &Expr) -> Option<Place> {
        match expr {
            Expr::Read(place) => Some(place.clone()),
            _ => None,
        }
    }
}
