//! The awk parser.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::lex::{Token, tokens};
use super::syntax::{
    ArrayName, Comparison, Expr, Function, Guard, Operator, Output, Pattern, Place, Program,
    SPECIAL, Source, Statement, Target, Variable,
};
use crate::pattern::{Notation, Posix, Tool};

/// The maximum nesting depth of statements and expressions.
const DEEPEST: usize = 100;

pub(crate) struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    globals: HashMap<String, usize>,
    functions: HashMap<String, usize>,
    program: Program,
    /// The function whose body is being parsed.
    within: Option<usize>,
    /// If true, `>` redirects output, because the parser is inside `print`.
    no_more: bool,
    /// The parameters that are arrays, each as a function and the number of its parameter.
    arrays: HashSet<(usize, usize)>,
    /// Calls that pass a parameter on: the parameter, and the parameter of the called function.
    passed: Vec<((usize, usize), (usize, usize))>,
    depth: usize,
    loops: usize,
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
        arrays: HashSet::new(),
        passed: Vec::new(),
        depth: 0,
        loops: 0,
    };
    SPECIAL.iter().for_each(|name| _ = parser.global(name));
    parser.items()?;
    parser.mark_arrays();
    Ok(parser.program)
}

/// Tokens, names, rules and functions.
impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |token| &token.0)
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.at + ahead).map_or(&Token::End, |token| &token.0)
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    /// Steps back by one token.
    fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Token::Keyword(found) if *found == keyword);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(self.wrong(&format!("`{sign}`"))) }
    }

    fn wrong(&self, expected: &str) -> String {
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

    fn lines(&mut self) {
        while *self.peek() == Token::Line {
            self.at += 1;
        }
    }

    fn ends(&mut self) {
        while *self.peek() == Token::Line || self.is(";") {
            self.at += 1;
        }
    }

    /// Calls `read` one nesting level deeper. Fails at the maximum depth.
    fn deeper<T>(
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

    fn global(&mut self, name: &str) -> usize {
        if let Some(known) = self.globals.get(name) {
            return *known;
        }
        let place = self.program.globals.len();
        self.program.globals.push(name.to_owned());
        self.globals.insert(name.to_owned(), place);
        place
    }

    fn variable(&mut self, name: &str) -> Variable {
        let local = self
            .within
            .and_then(|function| self.program.functions.get(function))
            .and_then(|function| function.params.iter().position(|param| param == name));
        local.map_or_else(|| Variable::Global(self.global(name)), Variable::Local)
    }

    /// Records that a variable is used as an array.
    fn mark(&mut self, variable: Variable) {
        if let (Variable::Local(param), Some(function)) = (variable, self.within) {
            self.arrays.insert((function, param));
        }
    }

    /// Records the arguments of a call that are parameters of the function that is being parsed.
    fn pass(&mut self, function: usize, args: &[Expr]) {
        for (n, arg) in args.iter().enumerate() {
            if let (Expr::Read(Place::Variable(Variable::Local(param))), Some(within)) =
                (arg, self.within)
            {
                self.passed.push(((within, *param), (function, n)));
            }
        }
    }

    /// Marks the array parameters of all functions. A parameter that is passed on as an array is an
    /// array, too.
    fn mark_arrays(&mut self) {
        loop {
            let known = self.arrays.len();
            let passed = self.passed.iter().filter(|(_, to)| self.arrays.contains(to));
            let more: Vec<_> = passed.map(|(from, _)| *from).collect();
            self.arrays.extend(more);
            if self.arrays.len() == known {
                break;
            }
        }
        for (number, function) in self.program.functions.iter_mut().enumerate() {
            let params = 0..function.params.len();
            function.arrays = params.map(|n| self.arrays.contains(&(number, n))).collect();
        }
    }

    fn function(&mut self, name: &str) -> usize {
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
    fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        self.deeper(|parser| {
            let no_more = std::mem::take(&mut parser.no_more);
            let mut items = Vec::new();
            parser.lines();
            while !parser.sign(end) {
                items.push(parser.expr()?);
                parser.lines();
                if !parser.is(end) {
                    parser.expect(",")?;
                    parser.lines();
                }
            }
            parser.no_more = no_more;
            Ok(items)
        })
    }

    /// Converts an expression to an assignment target. Returns `None` if it cannot be assigned to.
    fn place(expr: &Expr) -> Option<Place> {
        match expr {
            Expr::Read(place) => Some(place.clone()),
            _ => None,
        }
    }
}

/// Statements.
impl Parser {
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

    /// Parses the body of an `if`, `else` or loop, which is a single statement.
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
                let condition = self.condition()?;
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
                let condition = self.condition()?;
                return Ok(Statement::For(None, Some(condition), None, self.looped()?));
            }
            "do" => {
                let body = self.looped()?;
                self.ends();
                if !self.keyword("while") {
                    return Err(self.wrong("`while`"));
                }
                Statement::Do(body, self.condition()?)
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

    /// Parses an expression in parentheses.
    fn condition(&mut self) -> Result<Expr, String> {
        self.expect("(")?;
        let condition = self.expr()?;
        self.expect(")")?;
        Ok(condition)
    }

    /// Parses the end of a statement: a newline, `;` or a closing brace.
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
        if let Some((key, array)) = self.each_head()? {
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

    /// Parses `key in array)`. Consumes nothing if other tokens follow.
    fn each_head(&mut self) -> Result<Option<(Variable, ArrayName)>, String> {
        let start = self.at;
        if let (Token::Name(key), Token::Keyword("in")) = (self.take(), self.take())
            && let Token::Name(array) = self.take()
        {
            let key = self.variable(&key);
            let array = self.array(&array)?;
            if self.sign(")") {
                return Ok(Some((key, array)));
            }
        }
        self.at = start;
        Ok(None)
    }

    fn switch(&mut self) -> Result<Statement, String> {
        let value = self.condition()?;
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
            return Ok(match self.array(&name)? {
                ArrayName::Element(array, keys) => Statement::Delete(*array, Some(keys)),
                array => Statement::Delete(array, None),
            });
        }
        Ok(Statement::Expr(self.expr()?))
    }

    fn printed(&mut self) -> Result<(Vec<Expr>, Option<Target>), String> {
        let before = std::mem::replace(&mut self.no_more, true);
        let mut values = Vec::new();
        while !(*self.peek() == Token::Line
            || self.is(";")
            || self.is("}")
            || OUTPUTS.iter().any(|(sign, _)| self.is(sign)))
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
        let output = OUTPUTS.iter().find(|(sign, _)| self.sign(sign));
        let target = match output {
            Some((_, output)) => Some((*output, self.joined()?)),
            None => None,
        };
        self.no_more = before;
        Ok((values, target))
    }
}

const OUTPUTS: [(&str, Output); 3] =
    [(">", Output::File), (">>", Output::Append), ("|", Output::Command)];

const UPDATES: [(&str, Operator); 7] = [
    ("+=", Operator::Add),
    ("-=", Operator::Subtract),
    ("*=", Operator::Multiply),
    ("/=", Operator::Divide),
    ("%=", Operator::Remainder),
    ("^=", Operator::Power),
    ("**=", Operator::Power),
];

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrSame),
    ("==", Comparison::Same),
    ("!=", Comparison::Different),
    (">", Comparison::More),
    (">=", Comparison::MoreOrSame),
];

/// A binary operator: its sign, and the function that makes its expression.
type Binary = (&'static str, fn(Box<Expr>, Box<Expr>) -> Expr);

/// Compiles an awk regular expression.
pub(crate) fn regex(text: &str, ignore_case: bool) -> Result<Rc<Posix>, String> {
    let notation = Notation { ignore_case, ..Notation::new(Tool::Awk, true) };
    match Posix::new(text, notation) {
        Ok(regex) => Ok(Rc::new(regex)),
        Err(why) => Err(format!("regular expression /{text}/: {why}")),
    }
}

fn pattern(text: String) -> Result<Pattern, String> {
    Ok(Pattern { regex: regex(&text, false)?, text: Rc::from(text) })
}

/// Expressions.
impl Parser {
    /// Parses a whole expression.
    fn expr(&mut self) -> Result<Expr, String> {
        self.deeper(Self::choice)
    }

    fn choice(&mut self) -> Result<Expr, String> {
        let condition = self.or()?;
        if !self.sign("?") {
            return Ok(condition);
        }
        self.lines();
        let yes = self.expr()?;
        self.lines();
        self.expect(":")?;
        self.lines();
        let no = self.expr()?;
        Ok(Expr::Choice(Box::new(condition), Box::new(yes), Box::new(no)))
    }

    /// Parses operands between the operators of one precedence, from left to right.
    fn chain(
        &mut self,
        operators: &[Binary],
        operand: fn(&mut Self) -> Result<Expr, String>,
    ) -> Result<Expr, String> {
        let mut left = operand(self)?;
        while let Some((sign, join)) = operators.iter().find(|(sign, _)| self.sign(sign)) {
            if matches!(*sign, "||" | "&&") {
                self.lines();
            }
            left = join(Box::new(left), Box::new(operand(self)?));
        }
        Ok(left)
    }

    fn or(&mut self) -> Result<Expr, String> {
        self.chain(&[("||", Expr::Or)], Self::and)
    }

    fn and(&mut self) -> Result<Expr, String> {
        self.chain(&[("&&", Expr::And)], Self::within)
    }

    fn within(&mut self) -> Result<Expr, String> {
        let mut left = self.matching()?;
        while *self.peek() == Token::Keyword("in") {
            self.take();
            let Token::Name(name) = self.take() else {
                return Err(self.wrong("the name of an array"));
            };
            let keys = match left {
                Expr::Group(items) => items,
                other => vec![other],
            };
            left = Expr::Within(keys, self.array(&name)?);
        }
        Ok(left)
    }

    fn matching(&mut self) -> Result<Expr, String> {
        self.chain(
            &[
                ("~", |text, regex| Expr::Matches(text, regex, false)),
                ("!~", |text, regex| Expr::Matches(text, regex, true)),
            ],
            Self::comparison,
        )
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let left = self.joined()?;
        let found =
            COMPARISONS.iter().find(|(sign, _)| self.is(sign) && !(self.no_more && *sign == ">"));
        let Some((_, comparison)) = found else { return Ok(left) };
        self.take();
        Ok(Expr::Compare(*comparison, Box::new(left), Box::new(self.joined()?)))
    }

    /// Parses concatenations and pipes from commands (`command | getline`).
    fn joined(&mut self) -> Result<Expr, String> {
        let mut left = self.sum()?;
        loop {
            if self.is("|") && *self.peek_at(1) == Token::Keyword("getline") {
                self.take();
                self.take();
                let place = self.target()?;
                left = Expr::Getline(Source::Command(Box::new(left)), place);
            } else if self.starts_operand() {
                left = Expr::Join(Box::new(left), Box::new(self.sum()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn starts_operand(&self) -> bool {
        match self.peek() {
            Token::Number(_)
            | Token::Text(_)
            | Token::Regex(_)
            | Token::Name(_)
            | Token::Call(_)
            | Token::Builtin(_) => true,
            Token::Sign(sign) => matches!(*sign, "$" | "!" | "(" | "-" | "+" | "++" | "--"),
            _ => false,
        }
    }

    fn sum(&mut self) -> Result<Expr, String> {
        self.chain(
            &[
                ("+", |left, right| Expr::Arithmetic(Operator::Add, left, right)),
                ("-", |left, right| Expr::Arithmetic(Operator::Subtract, left, right)),
            ],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Expr, String> {
        self.chain(
            &[
                ("*", |left, right| Expr::Arithmetic(Operator::Multiply, left, right)),
                ("/", |left, right| Expr::Arithmetic(Operator::Divide, left, right)),
                ("%", |left, right| Expr::Arithmetic(Operator::Remainder, left, right)),
            ],
            Self::unary,
        )
    }

    fn unary(&mut self) -> Result<Expr, String> {
        self.deeper(|parser| {
            if parser.sign("!") {
                return Ok(Expr::Not(Box::new(parser.unary()?)));
            }
            if parser.sign("-") {
                return Ok(Expr::Negative(Box::new(parser.unary()?)));
            }
            if parser.sign("+") {
                return Ok(Expr::Positive(Box::new(parser.unary()?)));
            }
            parser.power()
        })
    }

    fn power(&mut self) -> Result<Expr, String> {
        let base = self.stepped()?;
        if !self.sign("^") && !self.sign("**") {
            return Ok(base);
        }
        let exponent = self.unary()?;
        Ok(Expr::Arithmetic(Operator::Power, Box::new(base), Box::new(exponent)))
    }

    /// Parses an operand and the `++`, `--` or assignment that may follow it.
    fn stepped(&mut self) -> Result<Expr, String> {
        let operand = self.primary()?;
        let Some(place) = Self::place(&operand) else { return Ok(operand) };
        if self.sign("++") {
            return Ok(Expr::Step(place, 1.0, true));
        }
        if self.sign("--") {
            return Ok(Expr::Step(place, -1.0, true));
        }
        if self.sign("=") {
            self.lines();
            return Ok(Expr::Assign(place, Box::new(self.expr()?)));
        }
        match UPDATES.iter().find(|(sign, _)| self.is(sign)) {
            Some((_, operator)) => {
                self.take();
                self.lines();
                Ok(Expr::Update(*operator, place, Box::new(self.expr()?)))
            }
            None => Ok(operand),
        }
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let token = self.take();
        match token {
            Token::Number(number) => Ok(Expr::Number(number)),
            Token::Text(text) => Ok(Expr::Text(Rc::from(text))),
            Token::Regex(text) => Ok(Expr::Regex(pattern(text)?)),
            Token::Sign("@") => self.after_at(),
            Token::Sign("$") => {
                let inner = self.deeper(Self::primary)?;
                Ok(Expr::Read(Place::Field(Box::new(inner))))
            }
            Token::Sign(sign @ ("++" | "--")) => {
                let operand = self.primary()?;
                let place =
                    Self::place(&operand).ok_or_else(|| self.wrong("something to count"))?;
                Ok(Expr::Step(place, if sign == "++" { 1.0 } else { -1.0 }, false))
            }
            Token::Sign("-" | "+" | "!") => {
                self.back();
                self.unary()
            }
            Token::Sign("(") => {
                let items = self.list(")")?;
                if items.is_empty() {
                    return Err(self.wrong("an expression within the parentheses"));
                }
                Ok(Expr::Group(items))
            }
            Token::Name(name) => Ok(Expr::Read(match self.array_name(&name)? {
                ArrayName::Variable(variable) => Place::Variable(variable),
                ArrayName::Element(array, keys) => Place::Element(*array, keys),
            })),
            Token::Call(name) => {
                let function = self.function(&name);
                self.expect("(")?;
                let args = self.list(")")?;
                self.pass(function, &args);
                Ok(Expr::Call(function, args))
            }
            Token::Builtin(name) => {
                if self.sign("(") {
                    let args = self.list(")")?;
                    for place in array_arguments(name) {
                        if let Some(Expr::Read(Place::Variable(variable))) = args.get(*place) {
                            self.mark(*variable);
                        }
                    }
                    return Ok(Expr::Builtin(name, args));
                }
                if name == "length" {
                    Ok(Expr::Builtin(name, Vec::new()))
                } else {
                    Err(self.wrong("`(`"))
                }
            }
            Token::Keyword("getline") => {
                let place = self.target()?;
                if self.sign("<") {
                    let file = self.deeper(Self::primary)?;
                    return Ok(Expr::Getline(Source::File(Box::new(file)), place));
                }
                Ok(Expr::Getline(Source::Input, place))
            }
            _ => {
                self.back();
                Err(self.wrong("an expression"))
            }
        }
    }

    /// Parses the rest of `@/…/` or `@name(…)`, starting after the `@`.
    fn after_at(&mut self) -> Result<Expr, String> {
        match self.take() {
            Token::Regex(text) => Ok(Expr::TypedRegex(pattern(text)?)),
            Token::Call(name) => {
                let variable = self.variable(&name);
                self.expect("(")?;
                Ok(Expr::Indirect(variable, self.list(")")?))
            }
            _ => {
                self.back();
                Err(self.wrong("a regular expression or a call after `@`"))
            }
        }
    }

    /// Parses the optional subscripts after a name, such as those of `a[1]` and `a[1][2]`.
    fn array_name(&mut self, name: &str) -> Result<ArrayName, String> {
        let variable = self.variable(name);
        if self.is("[") {
            self.mark(variable);
        }
        let mut array = ArrayName::Variable(variable);
        while self.sign("[") {
            let keys = self.list("]")?;
            array = ArrayName::Element(Box::new(array), keys);
        }
        Ok(array)
    }

    /// Parses the rest of the name of an array.
    fn array(&mut self, name: &str) -> Result<ArrayName, String> {
        let array = self.array_name(name)?;
        if let ArrayName::Variable(variable) = array {
            self.mark(variable);
        }
        Ok(array)
    }

    /// Parses the optional target of `getline`.
    fn target(&mut self) -> Result<Option<Place>, String> {
        if !(matches!(self.peek(), Token::Name(_)) || self.is("$")) {
            return Ok(None);
        }
        let operand = self.primary()?;
        Ok(Self::place(&operand))
    }
}

/// Returns the indexes of the array arguments of a built-in function.
fn array_arguments(name: &str) -> &'static [usize] {
    match name {
        "split" | "patsplit" => &[1, 3],
        "match" => &[2],
        "asort" | "asorti" => &[0, 1],
        _ => &[],
    }
}
